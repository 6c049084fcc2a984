//! Whether a commit still fits the files that are there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use paimon_format::meta::{DELETION_VECTORS_INDEX, HASH_INDEX};
use paimon_format::row::{BinaryRow, KeyComparator};

use super::committable::UpperFiles;
use crate::error::{ManifestError, Result};
use crate::manifest::{FileKind, IndexManifestEntry, ManifestEntry, merge_entries};
use crate::snapshot::CommitKind;

/// Checks the changes of one commit against the files that live in the partitions it touches.
///
/// What can go wrong: the bucket count of a partition changed (not for OVERWRITE); a file is added twice; a file that the commit
/// removes is no longer there, as after two compactions of one bucket; files of one level above 0 would overlap in keys.
/// Concurrent appends never conflict.
///
/// Errors: `Conflict`, naming partition, bucket and file. Source: `org.apache.paimon.operation.commit.ConflictDetection`.
pub fn check_conflicts(
    base: &[ManifestEntry],
    delta: &[ManifestEntry],
    kind: CommitKind,
    keys: &KeyComparator,
) -> Result<()> {
    if kind != CommitKind::Overwrite {
        check_bucket_counts(base.iter().chain(delta))?;
    }
    merge_entries(delta)?;
    let merged = merge_entries(base.iter().chain(delta))?;
    if let Some(missing) = merged.iter().find(|entry| entry.kind == FileKind::Delete) {
        return Err(ManifestError::Conflict(format!(
            "file {} (bucket {}, level {}) is to be removed, but another commit has removed it already",
            missing.file.file_name, missing.bucket, missing.file.level
        )));
    }
    check_key_ranges(&merged, keys)
}

/// Where a file is, on whatever level.
fn place(entry: &ManifestEntry) -> (&BinaryRow, i32, &str) {
    (&entry.partition, entry.bucket, &entry.file.file_name)
}

/// Checks that nobody else has changed what a bucket has above level 0 since a compaction of it began: old rows that it looked up may be stale, and
/// older versions may have come of keys whose deletes it has dropped.
///
/// `base`: the data files that live, at least of these buckets. Errors: `Conflict`, naming bucket and file. The reference does not look: there who
/// starts the jobs must see to it that a bucket has only one.
pub(super) fn check_upper_files(
    base: &[ManifestEntry],
    changes: &[ManifestEntry],
    expected: &[UpperFiles],
) -> Result<()> {
    if expected.is_empty() {
        return Ok(());
    }
    let (added, removed): (Vec<_>, Vec<_>) = changes.iter().partition(|entry| entry.kind == FileKind::Add);
    // One that is moved from level to level is in both.
    let removed: HashSet<_> = removed.into_iter().map(place).collect();
    let left = base.iter().filter(|entry| !removed.contains(&place(entry)));
    let mut found: HashMap<(&BinaryRow, i32), BTreeSet<&str>> = HashMap::new();
    for entry in left.chain(added).filter(|entry| entry.file.level > 0) {
        let (partition, bucket, name) = place(entry);
        found.entry((partition, bucket)).or_default().insert(name);
    }
    for UpperFiles {
        partition,
        bucket,
        names,
    } in expected
    {
        let found = found.remove(&(partition, *bucket)).unwrap_or_default();
        let expected: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        if let Some(other) = found.symmetric_difference(&expected).next() {
            let what = if expected.contains(other) {
                "has taken away"
            } else {
                "has brought"
            };
            return Err(ManifestError::Conflict(format!(
                "bucket {bucket}: another commit {what} the file {other} above level 0 while it was compacted"
            )));
        }
    }
    Ok(())
}

/// Checks that no rows have been hidden of files that a compaction merges since it began: it would bring them back. One that knew of
/// them changes the bucket's deletion vectors.
///
/// Errors: `Conflict`, naming the files. The reference does not look.
pub(super) fn check_hidden_rows(
    index: &[IndexManifestEntry],
    changes: &[ManifestEntry],
    index_changes: &[IndexManifestEntry],
) -> Result<()> {
    fn bucket(entry: &IndexManifestEntry) -> (&BinaryRow, i32) {
        (&entry.partition, entry.bucket)
    }
    let of_kind = |kind: FileKind| changes.iter().filter(move |entry| entry.kind == kind).map(place);
    // One that is only moved keeps its vector.
    let kept: HashSet<_> = of_kind(FileKind::Add).collect();
    let merged: HashSet<_> = of_kind(FileKind::Delete).filter(|file| !kept.contains(file)).collect();
    let is_vectors = |entry: &&IndexManifestEntry| entry.file.index_type == DELETION_VECTORS_INDEX;
    let changed: HashSet<_> = index_changes.iter().filter(is_vectors).map(bucket).collect();
    for entry in index
        .iter()
        .filter(is_vectors)
        .filter(|entry| !changed.contains(&bucket(entry)))
    {
        let mut ranges = entry.file.dv_ranges.iter().flatten();
        let hidden =
            ranges.find(|range| merged.contains(&(&entry.partition, entry.bucket, range.data_file_name.as_str())));
        if let Some(hidden) = hidden {
            return Err(ManifestError::Conflict(format!(
                "deletion vectors of bucket {} in {}: another commit has deleted rows of {} while it was compacted",
                entry.bucket, entry.file.file_name, hidden.data_file_name
            )));
        }
    }
    Ok(())
}

/// Checks that the deletion vectors which a compaction replaces are those that live: each bucket has all of its vectors in one file, so a
/// compaction that began from other ones would bring rows back.
///
/// `base`: the data files that live; vectors of others do not count. Errors: `Conflict`, naming the file. The reference does not look: there
/// the later file wins.
pub(super) fn check_deletion_vectors(
    base: &[ManifestEntry],
    index: &[IndexManifestEntry],
    changes: &[IndexManifestEntry],
) -> Result<()> {
    let live: HashSet<&str> = base.iter().map(|entry| entry.file.file_name.as_str()).collect();
    let hides_rows = |entry: &IndexManifestEntry| {
        let mut ranges = entry.file.dv_ranges.iter().flatten();
        ranges.any(|range| live.contains(range.data_file_name.as_str()))
    };
    for change in changes {
        if change.file.index_type != DELETION_VECTORS_INDEX {
            continue;
        }
        let of_bucket = |entry: &&IndexManifestEntry| {
            entry.file.index_type == change.file.index_type
                && (&entry.partition, entry.bucket) == (&change.partition, change.bucket)
        };
        let names = |entries: &[IndexManifestEntry], which: &dyn Fn(&IndexManifestEntry) -> bool| -> BTreeSet<String> {
            let entries = entries.iter().filter(of_bucket).filter(|entry| which(entry));
            entries.map(|entry| entry.file.file_name.clone()).collect()
        };
        let replaced = names(changes, &|entry| entry.kind == FileKind::Delete);
        let there = names(index, &|_| true);
        let needed = names(index, &hides_rows);
        if !needed.is_subset(&replaced) || !replaced.is_subset(&there) {
            return Err(ManifestError::Conflict(format!(
                "deletion vectors of bucket {} in {}: another commit has changed those that they were made from",
                change.bucket, change.file.file_name
            )));
        }
    }
    Ok(())
}

fn check_bucket_counts<'a>(entries: impl Iterator<Item = &'a ManifestEntry>) -> Result<()> {
    let mut counts: HashMap<&BinaryRow, i32> = HashMap::new();
    for entry in entries.filter(|entry| entry.total_buckets > 0) {
        let count = *counts.entry(&entry.partition).or_insert(entry.total_buckets);
        if count != entry.total_buckets {
            return Err(ManifestError::Conflict(format!(
                "the partition of file {} has {count} buckets, but the file was written for {}: rescale with an overwrite",
                entry.file.file_name, entry.total_buckets
            )));
        }
    }
    Ok(())
}

fn check_key_ranges(entries: &[&ManifestEntry], keys: &KeyComparator) -> Result<()> {
    let mut levels: BTreeMap<(&[u8], i32, i32), Vec<&ManifestEntry>> = BTreeMap::new();
    for &entry in entries.iter().filter(|entry| entry.file.level >= 1) {
        let level = (entry.partition.as_bytes(), entry.bucket, entry.file.level);
        levels.entry(level).or_default().push(entry);
    }
    for ((_, bucket, level), entries) in levels {
        let mut ranges = entries
            .iter()
            .map(|entry| Ok((keys.key(&entry.file.min_key)?, keys.key(&entry.file.max_key)?, *entry)))
            .collect::<Result<Vec<_>>>()?;
        ranges.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        for pair in ranges.windows(2) {
            if let [(_, max, first), (min, _, second)] = pair
                && max >= min
            {
                return Err(ManifestError::Conflict(format!(
                    "files {} and {} would overlap in keys on level {level} of bucket {bucket}",
                    first.file.file_name, second.file.file_name
                )));
            }
        }
    }
    Ok(())
}

/// Checks that every new index of a dynamic bucket builds on the one that is there: a commit takes away the index that its writer started from. Of
/// two writers that bring new keys into a partition at the same time, the second would send keys to other buckets than the first did.
///
/// Java lets the last one win; there, who starts the jobs must see to it that there is only one.
///
/// Errors: `Conflict`, naming bucket and files.
pub(super) fn check_hash_indexes(there: &[IndexManifestEntry], changes: &[IndexManifestEntry]) -> Result<()> {
    type Place<'a> = (&'a BinaryRow, i32);
    fn of(entries: &[IndexManifestEntry], kind: FileKind) -> HashMap<Place<'_>, &str> {
        let entries = entries
            .iter()
            .filter(|entry| entry.kind == kind && entry.file.index_type == HASH_INDEX);
        let entries = entries.map(|entry| ((&entry.partition, entry.bucket), entry.file.file_name.as_str()));
        entries.collect()
    }
    let new = of(changes, FileKind::Add);
    if new.is_empty() {
        return Ok(());
    }
    let (there, replaced) = (of(there, FileKind::Add), of(changes, FileKind::Delete));
    for (place, name) in new {
        let (found, expected) = (there.get(&place), replaced.get(&place));
        if found != expected {
            let text = |index: Option<&&str>| index.map_or_else(|| "no index".to_owned(), |name| (*name).to_owned());
            return Err(ManifestError::Conflict(format!(
                "{name}, the index of the keys in bucket {}, builds on {}, but there is {}: another job has written new keys",
                place.1,
                text(expected),
                text(found)
            )));
        }
    }
    Ok(())
}
