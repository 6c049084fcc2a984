//! Behaviour of the crate, on tables that Java wrote and on tables of its own.

mod bad_input;
mod commit;
mod faulty;
mod golden;
mod merge;
mod scan;
mod schema;
mod snapshot;
mod support;
