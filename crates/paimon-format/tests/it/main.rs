//! Behaviour of this crate's public API.

mod files;
