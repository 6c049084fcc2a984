//! Reading: a plan of splits, then streams of batches.

mod builder;
mod plan;
mod split;
mod stream;
mod visibility;

pub use builder::ReadBuilder;
pub use plan::{Plan, TableScan};
pub use split::{split_from_bytes, split_to_bytes};
pub use stream::{RowStream, TableRead};
