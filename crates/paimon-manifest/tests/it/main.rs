//! Behaviour of the crate, on tables that Java wrote and on tables of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what tests share fails by panicking, as they do"
)]

mod bad_input;
mod commit;
mod deletion_vectors;
mod faulty;
mod golden;
mod merge;
mod overwrite;
mod scan;
mod schema;
mod snapshot;
mod streaming;
mod support;
