//! Which versions of which keys meet.

mod groups;

pub use groups::{KeyGroups, RowRef};
