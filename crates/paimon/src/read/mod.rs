//! Reading: a plan of splits, then streams of batches.

mod ahead;
mod builder;
mod plan;
mod split;
mod stream;
mod visibility;

pub(crate) use ahead::read_ahead;
pub use builder::ReadBuilder;
pub use plan::{Plan, TableScan};
pub use split::{split_from_bytes, split_to_bytes};
pub(crate) use stream::SplitReader;
pub use stream::{RowStream, TableRead};
pub(crate) use visibility::BatchVisibility;
