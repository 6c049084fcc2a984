//! Commit messages as Java's bytes.
//!
//! | Bytes | What |
//! |---|---|
//! | `i32` length, `i32` arity, row | partition |
//! | `i32` | bucket |
//! | `u8`, then `i32` if it is 1 | total buckets |
//! | 3 lists of data files, 2 lists of index files | appended: new, deleted, changelog; new index, deleted index |
//! | 3 lists of data files, 2 lists of index files | compacted: before, after, changelog; new index, deleted index |
//!
//! A list is an `i32` count and so many records; a record is an `i32` length and a row. All numbers outside of rows are big endian.
//! The version is not in the bytes. Source: `org.apache.paimon.table.sink.CommitMessageSerializer`.

use std::sync::Arc;

use bytes::Bytes;

use super::records::{RecordTypes, data_file_from_row, data_file_to_row, index_file_from_row, index_file_to_row};
use super::{CommitIncrement, CommitMessage, CompactIncrement, DataFileMeta, DataIncrement, IndexFileMeta};
use crate::FormatError;
use crate::row::{BinaryRow, BinaryRowWriter};
use crate::types::{DataType, Datum};

/// The version that is written unless another is asked for: Paimon 2.0's. 11 is 1.4's, 13 follows 2.0.
pub const COMMIT_MESSAGE_VERSION: i32 = 12;

impl CommitMessage {
    /// Java's bytes of a version, 11..=13 ([`COMMIT_MESSAGE_VERSION`] unless a peer is older or newer). `Unsupported` for others.
    pub fn to_bytes(&self, version: i32) -> Result<Vec<u8>, FormatError> {
        let types = RecordTypes::of_version(version)?;
        let mut out = Output {
            bytes: Vec::new(),
            types: &types,
        };
        out.block(&self.partition.to_serialized())?;
        out.int(self.bucket);
        out.bytes.push(u8::from(self.total_buckets.is_some()));
        if let Some(total_buckets) = self.total_buckets {
            out.int(total_buckets);
        }
        let CommitIncrement { data, compact } = &self.increment;
        out.data_files(&data.new_files)?;
        out.data_files(&data.deleted_files)?;
        out.data_files(&data.changelog_files)?;
        out.index_files(&data.new_index_files)?;
        out.index_files(&data.deleted_index_files)?;
        out.data_files(&compact.compact_before)?;
        out.data_files(&compact.compact_after)?;
        out.data_files(&compact.changelog_files)?;
        out.index_files(&compact.new_index_files)?;
        out.index_files(&compact.deleted_index_files)?;
        Ok(out.bytes)
    }

    /// From Java's bytes of a version. `Unsupported` for versions but 11..=13, `Corrupt` when the bytes are no such message.
    pub fn from_bytes(version: i32, bytes: &[u8]) -> Result<Self, FormatError> {
        let types = RecordTypes::of_version(version)?;
        let mut input = Input {
            length: bytes.len(),
            rest: bytes,
            types: &types,
        };
        let partition = BinaryRow::from_serialized(Bytes::copy_from_slice(input.block()?))?;
        let bucket = input.int()?;
        let total_buckets = match input.take::<1>()? {
            [0] => None,
            [_] => Some(input.int()?),
        };
        // Fields of a struct literal are evaluated in the order written, which is the order of the bytes.
        let data = DataIncrement {
            new_files: input.data_files()?,
            deleted_files: input.data_files()?,
            changelog_files: input.data_files()?,
            new_index_files: input.index_files()?,
            deleted_index_files: input.index_files()?,
        };
        let compact = CompactIncrement {
            compact_before: input.data_files()?,
            compact_after: input.data_files()?,
            changelog_files: input.data_files()?,
            new_index_files: input.index_files()?,
            deleted_index_files: input.index_files()?,
            upper_files: None,
        };
        if !input.rest.is_empty() {
            return Err(corrupt(format!("{} bytes after its end", input.rest.len())));
        }
        Ok(Self {
            partition,
            bucket,
            total_buckets,
            increment: CommitIncrement { data, compact },
        })
    }
}

struct Output<'t> {
    bytes: Vec<u8>,
    types: &'t RecordTypes,
}

impl Output<'_> {
    fn int(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn count(&mut self, count: usize) -> Result<(), FormatError> {
        let count = i32::try_from(count).map_err(|_| FormatError::invalid("a commit message of more than 2 GiB"))?;
        self.int(count);
        Ok(())
    }

    fn block(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.count(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn data_files(&mut self, files: &[Arc<DataFileMeta>]) -> Result<(), FormatError> {
        let types = self.types;
        let rows = files.iter().map(|file| data_file_to_row(file, types));
        self.records(files.len(), rows, &types.data_file)
    }

    fn index_files(&mut self, files: &[IndexFileMeta]) -> Result<(), FormatError> {
        let types = self.types;
        let rows = files.iter().map(|file| index_file_to_row(file, types));
        self.records(files.len(), rows, &types.index_file)
    }

    fn records(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = Result<Vec<Datum>, FormatError>>,
        types: &[DataType],
    ) -> Result<(), FormatError> {
        self.count(count)?;
        let mut writer = BinaryRowWriter::new(types);
        for row in rows {
            let row = writer.write(&row?)?;
            self.block(row.as_bytes())?;
        }
        Ok(())
    }
}

struct Input<'a> {
    length: usize,
    rest: &'a [u8],
    types: &'a RecordTypes,
}

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.ended())?;
        self.rest = rest;
        Ok(*taken)
    }

    fn int(&mut self) -> Result<i32, FormatError> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    fn length(&mut self) -> Result<usize, FormatError> {
        let length = self.int()?;
        usize::try_from(length).map_err(|_| corrupt(format!("a length of {length} before byte {}", self.offset())))
    }

    fn block(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.length()?;
        let (block, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.ended())?;
        self.rest = rest;
        Ok(block)
    }

    fn data_files(&mut self) -> Result<Vec<Arc<DataFileMeta>>, FormatError> {
        let types = self.types;
        self.records(&types.data_file, |row| data_file_from_row(row).map(Arc::new))
    }

    fn index_files(&mut self) -> Result<Vec<IndexFileMeta>, FormatError> {
        let types = self.types;
        self.records(&types.index_file, index_file_from_row)
    }

    fn records<T>(
        &mut self,
        types: &[DataType],
        from_row: impl Fn(Vec<Datum>) -> Result<T, FormatError>,
    ) -> Result<Vec<T>, FormatError> {
        // Not reserved: the count is not to be trusted, and each record takes bytes that must be there.
        (0..self.length()?)
            .map(|_| {
                let row = BinaryRow::from_bytes(types.len(), Bytes::copy_from_slice(self.block()?))?;
                from_row(row.to_datums(types)?)
            })
            .collect()
    }

    fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    fn ended(&self) -> FormatError {
        corrupt(format!(
            "ends at byte {} within a value at {}",
            self.length,
            self.offset()
        ))
    }
}

fn corrupt(message: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt("commit message", message)
}
