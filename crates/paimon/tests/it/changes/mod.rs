//! Reads of changes: streams and what changed between two states.

mod following;
mod incremental;
mod resuming;
mod starting;
mod support;
