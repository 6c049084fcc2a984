//! A unit of reading.

use std::sync::Arc;

use paimon_format::FormatError;
use paimon_format::meta::{CommitIncrement, CommitMessage, DataFileMeta, DataIncrement};
use paimon_format::row::BinaryRow;

use crate::error::{Error, Result};

/// Files of one bucket that must be read together, because their keys may meet. Splits are independent of each other.
///
/// Source: `org.apache.paimon.table.source.DataSplit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The snapshot that the files live in.
    pub snapshot: i64,
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// How many buckets the partition has.
    pub total_buckets: i32,
    /// The files.
    pub files: Vec<Arc<DataFileMeta>>,
    /// No two rows of the files share a key and none is a retract: they need no merging.
    pub raw_convertible: bool,
}

/// Of the layout of [`Split::to_bytes`].
const VERSION: u8 = 1;
/// Of the commit message within.
const MESSAGE_VERSION: i32 = CommitMessage::VERSION;
const HEADER_BYTES: usize = 10;

impl Split {
    /// Rows in the files; after merging there may be fewer.
    pub fn row_count(&self) -> i64 {
        self.files.iter().map(|file| file.row_count).sum()
    }

    /// Bytes to hand to another process of this version.
    ///
    /// | Bytes | What |
    /// |---|---|
    /// | 1 | layout: 1 |
    /// | 1 | 1: raw convertible |
    /// | 8 | snapshot, big endian |
    /// | rest | partition, bucket, bucket count and files, as Java's commit message that brings these files |
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let message = CommitMessage {
            partition: self.partition.clone(),
            bucket: self.bucket,
            total_buckets: Some(self.total_buckets),
            increment: CommitIncrement {
                data: DataIncrement {
                    new_files: self.files.clone(),
                    ..DataIncrement::default()
                },
                ..CommitIncrement::default()
            },
        };
        let mut bytes = vec![VERSION, u8::from(self.raw_convertible)];
        bytes.extend(self.snapshot.to_be_bytes());
        bytes.extend(message.to_bytes(MESSAGE_VERSION)?);
        Ok(bytes)
    }

    /// The split of these bytes. Errors: `Invalid` when they are none of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::invalid(format!("not a split: {what}"));
        let Some((&[version, raw, ref snapshot @ ..], message)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(wrong("too short"));
        };
        if version != VERSION || raw > 1 {
            return Err(wrong("of another version"));
        }
        let snapshot = <[u8; 8]>::try_from(snapshot.as_slice()).map_err(|_| wrong("too short"))?;
        let message = CommitMessage::from_bytes(MESSAGE_VERSION, message)
            .map_err(|error: FormatError| wrong(&error.to_string()))?;
        Ok(Self {
            snapshot: i64::from_be_bytes(snapshot),
            partition: message.partition,
            bucket: message.bucket,
            total_buckets: message.total_buckets.ok_or_else(|| wrong("no bucket count"))?,
            files: message.increment.data.new_files,
            raw_convertible: raw == 1,
        })
    }
}
