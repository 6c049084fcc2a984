//! Splits as bytes, for readers in other processes.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::FormatError;
use paimon_format::meta::{COMMIT_MESSAGE_VERSION, CommitIncrement, CommitMessage, DataIncrement, IndexFileMeta};
use paimon_manifest::scan::{DataSplit, DeletionFile};

use crate::error::{Error, Result};

/// Of the layout of [`split_to_bytes`].
const VERSION: u8 = 2;
const HEADER_BYTES: usize = 10;

/// A split as bytes, to hand to another process of this version.
///
/// | Bytes | What |
/// |---|---|
/// | 1 | layout: 2 |
/// | 1 | 1: raw convertible |
/// | 8 | snapshot, big endian |
/// | rest | partition, bucket, bucket count, files, and index files with the places of their deletion vectors, as Java's commit message that brings these files |
pub fn split_to_bytes(split: &DataSplit) -> Result<Vec<u8>> {
    let message = CommitMessage {
        partition: split.partition.clone(),
        bucket: split.bucket,
        total_buckets: Some(split.total_buckets),
        increment: CommitIncrement {
            data: DataIncrement {
                new_files: split.files.clone(),
                new_index_files: index_files(split),
                ..DataIncrement::default()
            },
            ..CommitIncrement::default()
        },
    };
    let mut bytes = vec![VERSION, u8::from(split.raw_convertible)];
    bytes.extend(split.snapshot_id.to_be_bytes());
    bytes.extend(message.to_bytes(COMMIT_MESSAGE_VERSION)?);
    Ok(bytes)
}

/// The split of these bytes. Errors: `Invalid` when they are none of [`split_to_bytes`].
pub fn split_from_bytes(bytes: &[u8]) -> Result<DataSplit> {
    let wrong = |what: &str| Error::invalid(format!("not a split: {what}"));
    let Some((header, message)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(wrong("too short"));
    };
    let [version, raw, snapshot @ ..] = *header;
    if version != VERSION || raw > 1 {
        return Err(wrong("of another version"));
    }
    let message = CommitMessage::from_bytes(COMMIT_MESSAGE_VERSION, message)
        .map_err(|error: FormatError| wrong(&error.to_string()))?;
    let files = message.increment.data.new_files;
    let vectors = deletion_files(message.increment.data.new_index_files);
    Ok(DataSplit {
        snapshot_id: i64::from_be_bytes(snapshot),
        partition: message.partition,
        bucket: message.bucket,
        total_buckets: message.total_buckets.ok_or_else(|| wrong("no bucket count"))?,
        deletion_files: files.iter().map(|file| vectors.get(&file.file_name).cloned()).collect(),
        files,
        raw_convertible: raw == 1,
    })
}

/// The index files of a split's deletion vectors, with the places of these vectors alone.
fn index_files(split: &DataSplit) -> Vec<IndexFileMeta> {
    let of_file = |index_file: Arc<IndexFileMeta>| {
        let deletions = split.deletion_files.iter().flatten();
        let ranges = deletions
            .filter(|deletion| deletion.index_file.file_name == index_file.file_name)
            .map(|deletion| deletion.range.clone());
        IndexFileMeta {
            dv_ranges: Some(ranges.collect()),
            ..IndexFileMeta::clone(&index_file)
        }
    };
    split.deletion_index_files().into_iter().map(of_file).collect()
}

/// The deletion vectors of index files, by data file.
fn deletion_files(index_files: Vec<IndexFileMeta>) -> HashMap<String, DeletionFile> {
    let mut found = HashMap::new();
    for index_file in index_files.into_iter().map(Arc::new) {
        for range in index_file.dv_ranges.iter().flatten() {
            let deletion = DeletionFile {
                index_file: Arc::clone(&index_file),
                range: range.clone(),
            };
            found.insert(range.data_file_name.clone(), deletion);
        }
    }
    found
}
