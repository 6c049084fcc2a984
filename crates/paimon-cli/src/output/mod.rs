//! What a command prints: tables for people, JSON for machines.

mod amount;
mod console;
mod grid;
mod lost;
mod rows;

pub(crate) use amount::{bytes, counted, duration_ms, rows, time_ms};
pub use console::Console;
pub(crate) use grid::Grid;
pub(crate) use lost::rows_without_compaction;
pub(crate) use rows::Rows;
