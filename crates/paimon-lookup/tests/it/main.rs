//! Behaviour of look-ups.

mod cache;
mod evolution;
mod java;
mod model;
mod remote;
mod scanning;
mod support;
