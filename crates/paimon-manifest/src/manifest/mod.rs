//! Manifests: which files came and went, and which of these lists make a snapshot.
//!
//! A snapshot names two manifest lists, base and delta (and one of its changelog files); a list names manifests; a manifest has
//! an entry for each file that came or went. What lives at a snapshot is what was added and not removed. One index manifest
//! names all index files.

mod avro;
mod entry;
mod files;
mod index;
mod merge;
mod meta;
mod schemas;
mod settings;

pub use entry::{FileIdentity, FileKind, ManifestEntry, merge_entries};
pub use files::{CreatedFiles, ManifestFiles, WrittenList};
pub use index::{IndexManifestEntry, combine_index_entries};
pub use merge::merge_manifests;
pub use meta::ManifestFileMeta;
pub use settings::ManifestSettings;
