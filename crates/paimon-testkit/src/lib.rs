//! Test support for the crates of this workspace and for those who build on them.
//!
//! | Module | What it gives |
//! |---|---|
//! | [`faulty`] | a storage that fails, loses answers or is slow, by plan or at random |
//! | [`model`] | what a primary-key table must hold, row by row |

pub mod faulty;
pub mod model;
