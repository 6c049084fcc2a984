//! What an Apache Paimon primary-key table is on disk, and the vocabulary that all crates of this workspace share.
//!
//! | Module | What it holds |
//! |---|---|
//! | [`types`] | Paimon's data types, single values, row kinds, and how they map to Arrow |
//! | [`row`] | `BinaryRow` (manifests, bucket hash), compacted rows (lookup files), Murmur hash |
//! | [`bucket`] | which bucket a key belongs to |
//! | [`meta`] | file metadata, commit messages, path names |
//! | [`formats`] | data files by format: Parquet, Avro, ORC |
//! | [`kv`] | batches of key-value records and the files that hold them |
//! | [`storage`] | bytes by name: the [`storage::Storage`] trait and its local, object-store and memory implementations |
//! | `sst` (feature `sst`) | lookup files: sorted keys, blocks, bloom filter |
//! | [`dv`] | deletion vectors |
//! | [`mod@env`] | the only door to time, randomness, threads and shared budgets |
//! | [`predicate`] | filters: on batches, on partition values, against statistics |
//! | [`options`] | the table's options, typed |
//!
//! Nothing here depends on another crate of the workspace.

pub mod bucket;
pub mod dv;
pub mod env;
pub mod error;
pub mod formats;
pub mod kv;
pub mod meta;
pub mod options;
pub mod predicate;
pub mod row;
#[cfg(feature = "sst")]
pub mod sst;
pub mod storage;
mod tokens;
pub mod types;

pub use error::{ErrorKind, FormatError};

// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
