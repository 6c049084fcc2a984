//! Splits as bytes, for readers in other processes.

use paimon_format::FormatError;
use paimon_format::meta::{COMMIT_MESSAGE_VERSION, CommitIncrement, CommitMessage, DataIncrement};
use paimon_manifest::scan::DataSplit;

use crate::error::{Error, Result};

/// Of the layout of [`split_to_bytes`].
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 10;

/// A split as bytes, to hand to another process of this version.
///
/// | Bytes | What |
/// |---|---|
/// | 1 | layout: 1 |
/// | 1 | 1: raw convertible |
/// | 8 | snapshot, big endian |
/// | rest | partition, bucket, bucket count and files, as Java's commit message that brings these files |
///
/// Errors: `Unsupported` for a split with deletion vectors.
pub fn split_to_bytes(split: &DataSplit) -> Result<Vec<u8>> {
    if split.deletion_files.iter().any(Option::is_some) {
        return Err(Error::unsupported("a split with deletion vectors as bytes"));
    }
    let message = CommitMessage {
        partition: split.partition.clone(),
        bucket: split.bucket,
        total_buckets: Some(split.total_buckets),
        increment: CommitIncrement {
            data: DataIncrement {
                new_files: split.files.clone(),
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
    Ok(DataSplit {
        snapshot_id: i64::from_be_bytes(snapshot),
        partition: message.partition,
        bucket: message.bucket,
        total_buckets: message.total_buckets.ok_or_else(|| wrong("no bucket count"))?,
        deletion_files: vec![None; files.len()],
        files,
        raw_convertible: raw == 1,
    })
}
