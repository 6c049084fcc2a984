//! Behaviour of look-ups.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at the first surprise")]

mod cache;
mod counters;
mod evolution;
mod java;
mod model;
mod remote;
mod room;
mod scanning;
mod support;
