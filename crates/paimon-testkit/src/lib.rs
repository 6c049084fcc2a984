//! Test support for the crates of this workspace and for those who build on them.
//!
//! | Module | What it gives |
//! |---|---|
//! | [`faulty`] | a storage that fails, loses answers or is slow, by plan or at random |
//! | [`model`] | what a primary-key table must hold, row by row |
//! | [`observed`] | what code tells through `metrics` and `tracing` |
//! | [`mod@print`] | rows, changes and compactions as lines of text |
//! | [`replay`] | a table made of its changelog, which must fit |

pub mod faulty;
pub mod model;
pub mod observed;
pub mod print;
pub mod replay;
