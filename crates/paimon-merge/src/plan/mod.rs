//! Which versions of which keys meet: a loser tree over sorted runs gives blocks of spans.

mod block;
mod cursor;
mod gallop;
mod groups;
mod lane;
mod loser_tree;
mod merge;
mod merge_plan;
mod order;

pub use block::{Block, BlockSources, Span};
pub use groups::{KeyGroups, RowRef};
pub use merge_plan::{MergePlan, PassRule, PlanOptions, Step};
pub use order::{VersionOrder, Versioned};
