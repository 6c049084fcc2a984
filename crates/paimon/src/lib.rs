//! Apache Paimon primary-key tables in Rust: write, compact and read them on the files that Java, Flink, Spark and Python use.
//!
//! | You want to | Start at |
//! |---|---|
//! | find or make tables | [`FileSystemCatalog`], [`Table::open`], [`Table::create`] |
//! | write rows | [`Table::write_builder`] → [`TableWrite`] → [`format::meta::CommitMessage`] → [`TableCommit`] |
//! | read rows | [`Table::read_builder`] → [`TableScan`] → [`Plan`] → [`TableRead`] |
//! | read changes | [`Table::changelog_builder`] → [`TableStream`] → [`ChangelogBatch`] |
//! | replace rows | [`WriteBuilder::overwrite`], [`TableCommit::truncate`], [`Table::rescale`] |
//! | change the schema | [`Table::alter`] |
//! | compact | [`Table::compact_builder`], or [`TableWrite::compact`] within a writer; for good: [`CompactService`] |
//! | look at the tree | [`Table::buckets`], [`Table::explain`], [`Table::changelog_totals`] |
//! | add a merge engine | [`Context::with_registry`] |
//!
//! The layers below are re-exported: [`mod@format`], [`merge`], [`lsm`], [`manifest`]. All errors are [`Error`], and callers branch on
//! [`Error::kind`].

mod alter;
mod assign;
mod bucket;
mod catalog;
mod changelog;
mod compact;
mod context;
mod error;
mod explain;
mod level_states;
mod levels;
pub mod options;
mod partition;
mod postpone;
mod read;
mod rescale;
mod scan;
mod table;
pub mod write;

pub use catalog::{Catalog, FileSystemCatalog, Identifier};
pub use changelog::{
    Between, ChangelogBatch, ChangelogBuilder, ChangelogStream, IncrementalMode, StreamPosition, TableStream,
};
pub use compact::{
    BucketFailure, BucketReport, CompactBuilder, CompactReport, CompactService, CompactionId, CompactionResult,
    CompactionTask, FileTotals, RoundBucket, RoundReport, ServiceSettings, TablePattern, TableSource,
};
pub use context::Context;
pub use error::{Error, Result};
pub use explain::BucketPick;
pub use levels::{BackPressure, BucketLevels};
pub use partition::{Partition, Selection};
pub use postpone::DistributedPartition;
pub use read::{Plan, ReadBuilder, RowStream, TableRead, TableScan, split_from_bytes, split_to_bytes};
pub use rescale::{Rescaled, RescaledPartition};
pub use table::Table;
pub use write::{CommittedPart, TableCommit, TableWrite, TableWriteState, TableWriteWatch, WriteBuilder};

pub use paimon_format as format;
pub use paimon_format::ErrorKind;
pub use paimon_format::env::StopSignal;
pub use paimon_lsm as lsm;
pub use paimon_manifest as manifest;
pub use paimon_manifest::scan::{DataSplit, StreamStart};
pub use paimon_manifest::schema::{SchemaBuilder, SchemaChange, TableSchema};
pub use paimon_manifest::snapshot::{Consumer, ConsumerStore, Snapshot, TimeTravel};
pub use paimon_merge as merge;
pub use paimon_merge::engine::Registry;

// The example of the workspace's README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
