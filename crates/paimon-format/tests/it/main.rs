//! Behaviour of this crate's public API.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that fails says so by a panic")]

mod files;
mod options_doc;
mod s3_answers;
mod s3_server;
