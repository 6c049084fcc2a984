//! The last 36 bytes of a file, which say where the rest is.

use std::ops::Range;

use super::compress::TRAILER_BYTES;
use super::corrupt;
use crate::FormatError;
use crate::row::compacted::{Input, put_varint};

const MAGIC: u32 = 1_481_571_681;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    pub(super) offset: u64,
    /// Without the trailer.
    pub(super) bytes: u32,
}

impl BlockHandle {
    /// The bytes of the file to read, trailer included.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.bytes) + TRAILER_BYTES as u64
    }

    /// As the value of an index entry.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(14);
        put_varint(&mut bytes, self.offset);
        put_varint(&mut bytes, self.bytes.into());
        bytes
    }

    /// From an index entry; `end`: the block lies before it.
    pub(super) fn decode(bytes: &[u8], end: u64) -> Result<Self, FormatError> {
        let mut input = Input::new(bytes);
        let (offset, bytes) = (input.varint()?, input.varint()?);
        Self::new(offset, bytes, end)
    }

    fn new(offset: u64, bytes: u64, end: u64) -> Result<Self, FormatError> {
        let last = offset
            .checked_add(bytes)
            .and_then(|last| last.checked_add(TRAILER_BYTES as u64));
        match (u32::try_from(bytes), last) {
            (Ok(bytes), Some(last)) if last <= end => Ok(Self { offset, bytes }),
            _ => Err(corrupt(format_args!(
                "a block of {bytes} bytes at {offset}, behind the end of the blocks at {end}"
            ))),
        }
    }
}

/// Where the bloom filter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BloomHandle {
    pub(super) offset: u64,
    pub(super) bytes: u32,
    pub(super) entries: u64,
}

/// The end of a file.
///
/// | Bytes | What |
/// |---|---|
/// | 8, 4, 8 | bloom filter: offset, bytes, keys it was made for; all 0: none |
/// | 8, 4 | index block: offset, bytes without the trailer |
/// | 4 | 61fd4e58 |
///
/// Source: `org.apache.paimon.lookup.sort.SortLookupStoreFooter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SstFooter {
    pub(super) bloom: Option<BloomHandle>,
    pub(super) index: BlockHandle,
}

impl SstFooter {
    /// Bytes of a footer.
    pub const BYTES: usize = 36;

    /// From the last bytes of a file of `file_bytes`.
    ///
    /// Errors: `Corrupt`, without the file's name, when it is none, or names places that are not in the file.
    pub fn decode(bytes: &[u8], file_bytes: u64) -> Result<Self, FormatError> {
        let mut input = Input::new(bytes);
        let bloom_offset = u64::from_le_bytes(input.fixed()?);
        let bloom_bytes = u32::from_le_bytes(input.fixed()?);
        let entries = u64::from_le_bytes(input.fixed()?);
        let index_offset = u64::from_le_bytes(input.fixed()?);
        let index_bytes = u32::from_le_bytes(input.fixed()?);
        let magic = u32::from_le_bytes(input.fixed()?);
        if magic != MAGIC || !input.rest().is_empty() {
            return Err(corrupt(format_args!(
                "no lookup file: it ends in {magic:08x}, not {MAGIC:08x}"
            )));
        }
        let end = file_bytes.checked_sub(Self::BYTES as u64);
        let end = end.ok_or_else(|| corrupt(format_args!("a file of {file_bytes} bytes")))?;
        let bloom = BloomHandle {
            offset: bloom_offset,
            bytes: bloom_bytes,
            entries,
        };
        let none = bloom.offset == 0 && bloom.bytes == 0 && bloom.entries == 0;
        let fits = bloom
            .offset
            .checked_add(u64::from(bloom.bytes))
            .is_some_and(|last| last <= end);
        if !none && !fits {
            return Err(corrupt(format_args!(
                "a bloom filter of {bloom_bytes} bytes at {bloom_offset}, in a file of {file_bytes}"
            )));
        }
        Ok(Self {
            bloom: (!none).then_some(bloom),
            index: BlockHandle::new(index_offset, u64::from(index_bytes), end)?,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        let (offset, length, entries) = self
            .bloom
            .map_or((0, 0, 0), |bloom| (bloom.offset, bloom.bytes, bloom.entries));
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&entries.to_le_bytes());
        bytes.extend_from_slice(&self.index.offset.to_le_bytes());
        bytes.extend_from_slice(&self.index.bytes.to_le_bytes());
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes
    }

    /// The bytes of the file that [`SstIndex::decode`](super::SstIndex::decode) needs: bloom filter (empty: none) and index block.
    pub fn ranges(&self) -> [Range<u64>; 2] {
        let bloom = self
            .bloom
            .map_or(0..0, |bloom| bloom.offset..bloom.offset + u64::from(bloom.bytes));
        [bloom, self.index.range()]
    }
}
