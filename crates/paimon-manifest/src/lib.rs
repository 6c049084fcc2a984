//! Which files make a snapshot of an Apache Paimon table.
//!
//! | Module | What it holds |
//! |---|---|
//! | [`schema`] | schema versions: JSON, creation, what follows from one |
//! | [`snapshot`] | snapshots, hint files, tags, time travel |
//! | [`manifest`] | manifests, manifest lists, index manifests: Avro, merging |
//! | [`scan`] | the files of a snapshot, pruned and cut into splits |
//! | [`commit`] | new snapshots: conflicts, retries, publishing |
//!
//! Everything goes through [`paimon_format::storage::Storage`] and [`paimon_format::env::Env`]. Of the LSM tree this crate knows
//! only what file metadata says.

pub mod commit;
mod error;
mod json;
pub mod manifest;
mod numbered;
pub mod scan;
pub mod schema;
pub mod snapshot;
#[cfg(feature = "test-util")]
pub mod testing;

pub use error::ManifestError;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
