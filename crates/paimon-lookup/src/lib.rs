//! The old value of a key: looks keys up in the levels of one bucket's merge tree, below those that a compaction merges.
//!
//! [`LookupLevels`] implements [`LookupSource`](paimon_lsm::lookup::LookupSource): sorted blocks of keys in, rows or positions out. It searches
//! lookup files, sorted string tables in Java Paimon's format (`paimon_format::sst`), which lie in a [`LookupFileCache`] on local disk; or the
//! data files themselves, as long as that is cheaper than building them.
//!
//! In the order in which a key meets them:
//!
//! | Module | What it does |
//! |---|---|
//! | `levels` | level by level, first hit wins: [`LookupLevels`] |
//! | `candidates` | which file of a run may hold a key |
//! | `files` | decides how a file is searched; fetches, builds, reads |
//! | `cache` | lookup files on local disk, blocks in memory: [`LookupFileCache`] |
//! | `remote`, `transfer` | lookup files beside their data files: [`RemoteLookupStore`] |
//! | `build` | data file → lookup file |
//! | `persist` | what a lookup file stores of a row |
//! | `cursor` | sorted keys in a lookup file |
//! | `scan` | sorted keys in a data file |
//! | `found`, `room` | the answers, and how much they may weigh |
//! | [`metrics`] | counters |
//! | `settings` | the table's `lookup.*` options: [`LookupSettings`] |

mod build;
mod cache;
mod candidates;
mod cursor;
mod files;
mod found;
mod levels;
pub mod metrics;
mod persist;
mod remote;
mod room;
mod scan;
mod settings;
mod transfer;

pub use cache::LookupFileCache;
pub use files::LookupLevelsBuilder;
pub use levels::LookupLevels;
pub use remote::{BucketRemoteLookups, RemoteLookupStore};
pub use settings::LookupSettings;

// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
