//! A file's footer: metadata and page indexes, checked, and the bytes that came with them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::DecodeResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};

use crate::error::FormatError;
use crate::formats::caught::caught;
use crate::formats::fetch::{TAIL_BYTES, fetch, part};
use crate::storage::Storage;

/// Length and magic.
const FOOTER_BYTES: u64 = 8;
/// Magic, an empty footer, length, magic.
const MIN_BYTES: u64 = 12;

/// What is known of a file before any page is read.
#[derive(Debug)]
pub(super) struct Footer {
    /// With page indexes, where the file has them.
    pub(super) metadata: Arc<ParquetMetaData>,
    /// The end of the file.
    pub(super) tail: Tail,
}

/// Bytes from `start` to the end of the file.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    start: u64,
    bytes: Bytes,
}

impl Tail {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self { start: 0, bytes }
    }

    /// The bytes of a range, if all of it is here.
    pub(super) fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        part(&self.bytes, self.start, range)
    }
}

/// Reads the footer of a file in one call, or a few when it is large.
pub(super) async fn read_footer(storage: &dyn Storage, path: &str, file_size: u64) -> Result<Footer, FormatError> {
    if file_size < MIN_BYTES {
        return Err(FormatError::corrupt(
            path,
            format!("{file_size} bytes are no Parquet file, which has at least {MIN_BYTES}"),
        ));
    }
    let range = file_size.saturating_sub(TAIL_BYTES)..file_size;
    let bytes = match fetch(storage, path, range.clone()).await {
        Ok(bytes) => bytes,
        Err(error) => return Err(wrong_size(storage, path, file_size).await.unwrap_or(error)),
    };
    let tail = Tail {
        start: range.start,
        bytes,
    };
    let mut decoder = start(path, file_size, &tail)?;
    loop {
        match caught("Parquet", path, || {
            decoder.try_decode().map_err(|error| damaged(path, error))
        })? {
            DecodeResult::Data(metadata) => {
                check(&metadata, path, file_size)?;
                return Ok(Footer {
                    metadata: Arc::new(metadata),
                    tail,
                });
            }
            DecodeResult::NeedsData(ranges) => {
                for range in ranges {
                    let bytes = match tail.get(&range) {
                        Some(bytes) => bytes,
                        None if range.start <= range.end && range.end <= file_size => {
                            fetch(storage, path, range.clone()).await?
                        }
                        None => return Err(damaged(path, format!("it points to bytes {range:?} of {file_size}"))),
                    };
                    decoder.push_range(range, bytes).map_err(|error| damaged(path, error))?;
                }
            }
            DecodeResult::Finished => return Err(FormatError::internal(format!("{path}: no Parquet metadata"))),
        }
    }
}

/// The footer of a file that is in memory.
pub(super) fn footer_of(path: &str, file: &Bytes) -> Result<Footer, FormatError> {
    let file_size = file.len() as u64;
    if file_size < MIN_BYTES {
        return Err(FormatError::corrupt(
            path,
            format!("{file_size} bytes are no Parquet file"),
        ));
    }
    let tail = Tail::whole(file.clone());
    let mut decoder = start(path, file_size, &tail)?;
    match caught("Parquet", path, || {
        decoder.try_decode().map_err(|error| damaged(path, error))
    })? {
        DecodeResult::Data(metadata) => {
            check(&metadata, path, file_size)?;
            Ok(Footer {
                metadata: Arc::new(metadata),
                tail,
            })
        }
        _ => Err(damaged(path, "it points beyond the end of the file")),
    }
}

/// A decoder that has seen the tail. The magic and the length are looked at first: the decoder trusts them.
fn start(path: &str, file_size: u64, tail: &Tail) -> Result<ParquetMetaDataPushDecoder, FormatError> {
    let end = tail.get(&(file_size - FOOTER_BYTES..file_size)).unwrap_or_default();
    let Some((length, magic)) = end.split_first_chunk::<4>() else {
        return Err(damaged(path, "the storage gave fewer bytes than asked for"));
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => return Err(FormatError::unsupported(format!("{path}: an encrypted Parquet file"))),
        other => {
            let message = format!("no Parquet file: it ends with {other:02x?}, not with \"PAR1\"");
            return Err(FormatError::corrupt(path, message));
        }
    }
    let length = u64::from(u32::from_le_bytes(*length));
    if length > file_size - MIN_BYTES {
        return Err(damaged(
            path,
            format!("its length is {length} in a file of {file_size} bytes"),
        ));
    }
    let decoder = ParquetMetaDataPushDecoder::try_new(file_size).map_err(|error| damaged(path, error))?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Optional);
    let range = tail.start..file_size;
    decoder
        .push_range(range, tail.bytes.clone())
        .map_err(|error| damaged(path, error))?;
    Ok(decoder)
}

/// Why the end of a file could not be read, if it is that the file has another size than its metadata says.
async fn wrong_size(storage: &dyn Storage, path: &str, file_size: u64) -> Option<FormatError> {
    match storage.size(path).await {
        Ok(Some(size)) if size != file_size => Some(FormatError::corrupt(
            path,
            format!("the file has {size} bytes, its metadata says {file_size}"),
        )),
        _ => None,
    }
}

fn damaged(path: &str, error: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt(path, format!("Parquet footer: {error}"))
}

/// Checks what the page reader relies on: places within the file, rows that add up.
fn check(metadata: &ParquetMetaData, path: &str, file_size: u64) -> Result<(), FormatError> {
    let mut rows = 0_i64;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        let wrong = |what: &str| damaged(path, format!("row group {i}: {what}"));
        if group.num_rows() < 0 {
            return Err(wrong("a negative number of rows"));
        }
        rows = rows
            .checked_add(group.num_rows())
            .ok_or_else(|| wrong("too many rows"))?;
        for (leaf, column) in group.columns().iter().enumerate() {
            let name = column.column_path().string();
            let Some(bytes) = chunk_bytes(column).filter(|bytes| bytes.end <= file_size) else {
                return Err(wrong(&format!("column {name} is not within the file")));
            };
            let index = metadata.offset_index().and_then(|index| index.get(i)?.get(leaf));
            let Some(index) = index else { continue };
            let mut next = bytes.start;
            let mut first_row = 0;
            for (page, location) in index.page_locations().iter().enumerate() {
                let start = u64::try_from(location.offset).ok();
                let length = u64::try_from(location.compressed_page_size).ok();
                let in_order = location.first_row_index >= first_row
                    && location.first_row_index <= group.num_rows()
                    && (page > 0 || location.first_row_index == 0);
                match (start, length) {
                    (Some(start), Some(length)) if in_order && start >= next && start + length <= bytes.end => {
                        next = start + length;
                        first_row = location.first_row_index;
                    }
                    _ => {
                        return Err(wrong(&format!(
                            "column {name}: the offset index has no place for page {page}"
                        )));
                    }
                }
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        let said = metadata.file_metadata().num_rows();
        return Err(damaged(
            path,
            format!("its row groups have {rows} rows, it says {said}"),
        ));
    }
    Ok(())
}

/// Where a column chunk is, if its numbers are any: [`ColumnChunkMetaData::byte_range`] panics on others.
fn chunk_bytes(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let length = u64::try_from(column.compressed_size()).ok()?;
    Some(start..start.checked_add(length)?)
}
