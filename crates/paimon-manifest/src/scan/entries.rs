//! What lives: files added and not removed.

use std::collections::HashSet;

use futures::TryStreamExt;

use super::filter::ScanFilter;
use crate::error::Result;
use crate::manifest::{FileIdentity, FileKind, ManifestEntry, ManifestFileMeta, ManifestFiles};

/// The files that live according to these manifests, in the order of their entries, as far as the filter wants them.
///
/// Cost: reads the manifests that the filter does not rule out, some at a time. Errors: `NotFound`, `Corrupt`, naming the file.
/// Source: `org.apache.paimon.operation.AbstractFileStoreScan#readAndMergeFileEntries`.
pub async fn live_entries(
    files: &ManifestFiles,
    manifests: &[ManifestFileMeta],
    filter: &ScanFilter,
) -> Result<Vec<ManifestEntry>> {
    let mut entries = all_entries(files, manifests, filter).await?;
    let deleted: HashSet<FileIdentity<'_>> = entries
        .iter()
        .filter(|entry| entry.kind == FileKind::Delete)
        .map(ManifestEntry::identity)
        .collect();
    if deleted.is_empty() {
        return Ok(entries);
    }
    let lives: Vec<bool> = entries
        .iter()
        .map(|entry| entry.kind == FileKind::Add && !deleted.contains(&entry.identity()))
        .collect();
    let mut lives = lives.into_iter();
    entries.retain(|_| lives.next().unwrap_or(false));
    Ok(entries)
}

/// The entries of these manifests in their order, files that come and files that go, as far as the filter wants them.
pub(crate) async fn all_entries(
    files: &ManifestFiles,
    manifests: &[ManifestFileMeta],
    filter: &ScanFilter,
) -> Result<Vec<ManifestEntry>> {
    let mut pruner = filter.pruner(files.partition_fields());
    let mut needed = Vec::new();
    for manifest in manifests {
        if pruner.keeps_manifest(manifest)? {
            needed.push(manifest.clone());
        }
    }
    let mut entries = Vec::new();
    let mut read = files.read_manifests(needed);
    while let Some(of_manifest) = read.try_next().await? {
        for entry in of_manifest {
            if pruner.keeps_entry(&entry)? {
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}
