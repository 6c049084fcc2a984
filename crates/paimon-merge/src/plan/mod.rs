//! Which versions of which keys meet: a loser tree over sorted runs gives blocks of spans.

mod cursor;
mod gallop;
mod groups;
mod lane;
mod loser_tree;
mod order;
mod spans;

pub use groups::{KeyGroups, RowRef};
pub use order::{VersionOrder, Versioned};
pub use spans::{Block, MergePlan, PassRule, PlanOptions, Span, Step};
