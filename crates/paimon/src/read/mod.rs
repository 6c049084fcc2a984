//! Reading: a plan of splits, then streams of batches.

mod builder;
mod plan;
mod prune;
mod split;
mod stream;

pub use builder::ReadBuilder;
pub use plan::{Plan, TableScan};
pub use split::Split;
pub use stream::{RowStream, TableRead};
