//! Keeps the number of manifests small: part of every commit.

use std::collections::HashSet;

use futures::TryStreamExt;
use paimon_format::row::BinaryRow;

use super::entry::{FileIdentity, FileKind, ManifestEntry, merge_entries};
use super::files::{CreatedFiles, ManifestFiles};
use super::meta::ManifestFileMeta;
use crate::error::Result;

/// Merges manifests of a base: a full compaction when enough of them are small or hold removals, else a minor one. The result
/// describes the same files, in an order that readers may rely on; manifests that stay are not touched.
///
/// Cost: reads and rewrites only what it merges. On an error the new files are in `created`.
/// Source: `org.apache.paimon.operation.ManifestFileMerger`.
pub async fn merge_manifests(
    files: &ManifestFiles,
    input: Vec<ManifestFileMeta>,
    created: &mut CreatedFiles,
) -> Result<Vec<ManifestFileMeta>> {
    match full_compaction(files, &input, created).await? {
        Some(merged) => Ok(merged),
        None => minor_compaction(files, input, created).await,
    }
}

/// Takes all removals out. `None`: not worth it.
async fn full_compaction(
    files: &ManifestFiles,
    input: &[ManifestFileMeta],
    created: &mut CreatedFiles,
) -> Result<Option<Vec<ManifestFileMeta>>> {
    let settings = files.settings();
    let must_change = |manifest: &ManifestFileMeta| {
        manifest.num_deleted_files > 0 || (manifest.file_size as u64) < settings.target_file_size
    };
    let changing: u64 = input
        .iter()
        .filter(|manifest| must_change(manifest))
        .map(|manifest| manifest.file_size as u64)
        .sum();
    if changing < settings.full_compaction_threshold {
        return Ok(None);
    }
    let with_deletes: Vec<ManifestFileMeta> = input
        .iter()
        .filter(|manifest| manifest.num_deleted_files > 0)
        .cloned()
        .collect();
    let mut deletes = Vec::new();
    let mut read = files.read_manifests(with_deletes);
    while let Some(entries) = read.try_next().await? {
        deletes.extend(entries.into_iter().filter(|entry| entry.kind == FileKind::Delete));
    }
    let deleted: HashSet<FileIdentity<'_>> = deletes.iter().map(ManifestEntry::identity).collect();

    let types = files.partition_types();
    let partitions: HashSet<&BinaryRow> = deletes.iter().map(|entry| &entry.partition).collect();
    let (mut merged, mut rest) = (Vec::new(), Vec::new());
    for manifest in input {
        let affected = must_change(manifest) || manifest.may_contain_partitions(partitions.iter().copied(), types)?;
        if affected { &mut rest } else { &mut merged }.push(manifest);
    }
    if rest.len() <= 1 {
        return Ok(None);
    }
    let mut merged: Vec<ManifestFileMeta> = merged.into_iter().cloned().collect();
    let mut writer = files.rolling_writer();
    for manifest in rest {
        let mut entries = files.read_manifest(manifest).await?;
        entries.retain(|entry| entry.kind == FileKind::Add);
        let all = entries.len();
        entries.retain(|entry| !deleted.contains(&entry.identity()));
        if must_change(manifest) || entries.len() < all {
            writer.write(&entries, created).await?;
        } else {
            merged.push(manifest.clone());
        }
    }
    merged.extend(writer.finish(created).await?);
    Ok(Some(merged))
}

/// Merges neighbours until they reach the target size; at the end of the list only when there are many of them.
async fn minor_compaction(
    files: &ManifestFiles,
    input: Vec<ManifestFileMeta>,
    created: &mut CreatedFiles,
) -> Result<Vec<ManifestFileMeta>> {
    let settings = files.settings();
    let mut merged = Vec::new();
    let mut candidates = Vec::new();
    let mut size = 0;
    for manifest in input {
        size += manifest.file_size as u64;
        candidates.push(manifest);
        if size >= settings.target_file_size {
            merge_candidates(files, std::mem::take(&mut candidates), &mut merged, created).await?;
            size = 0;
        }
    }
    if candidates.len() >= settings.merge_min_count {
        merge_candidates(files, candidates, &mut merged, created).await?;
    } else {
        merged.extend(candidates);
    }
    Ok(merged)
}

async fn merge_candidates(
    files: &ManifestFiles,
    candidates: Vec<ManifestFileMeta>,
    merged: &mut Vec<ManifestFileMeta>,
    created: &mut CreatedFiles,
) -> Result<()> {
    if candidates.len() == 1 {
        merged.extend(candidates);
        return Ok(());
    }
    let entries: Vec<ManifestEntry> = files.read_manifests(candidates).try_concat().await?;
    let entries: Vec<ManifestEntry> = merge_entries(&entries)?.into_iter().cloned().collect();
    merged.extend(files.write_manifests(&entries, created).await?);
    Ok(())
}
