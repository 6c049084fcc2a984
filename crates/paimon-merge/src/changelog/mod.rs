//! Merging that also says what changed.
//!
//! A compaction gives its blocks to a [`MergeStage`]. Which one depends on the table's changelog producer and on whether old rows are
//! looked up:
//!
//! | Stage | Where | What it compares |
//! |---|---|---|
//! | [`ReducerMergeFunctionWrapper`] | no changelog | nothing |
//! | [`LookupChangelogMergeFunctionWrapper`] | rows leave level 0, and older ones are looked up | the key's old row, merged or looked up, with the merged row |
//! | [`FirstRowMergeFunctionWrapper`] | the same for first-row | whether the key is there |
//! | [`FullChangelogMergeFunctionWrapper`] | full compactions | the row of the top level with the merged row |
//!
//! In tables whose compactions look old rows up, a row above level 0 is the whole state of its key: [`LookupMergeFunction`] makes an
//! engine that merges accordingly, for their reads and for compactions that take no part of level 0.

mod diff;
mod equal;
mod first_row;
mod full;
mod hits;
mod lookup;
mod lookup_function;
mod plain;
mod selection;
mod settings;
mod stage;

pub use equal::ValueEqualiser;
pub use first_row::FirstRowMergeFunctionWrapper;
pub use full::FullChangelogMergeFunctionWrapper;
pub use hits::{Hit, Hits, LookupNeed};
pub use lookup::LookupChangelogMergeFunctionWrapper;
pub use lookup_function::LookupMergeFunction;
pub use plain::ReducerMergeFunctionWrapper;
pub use settings::ChangelogSettings;
pub use stage::{ChangelogRows, MergeStage, StageOutput};
