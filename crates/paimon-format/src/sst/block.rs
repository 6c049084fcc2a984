//! A block: entries in key order, and where each begins.
//!
//! An entry is the key's length, the key, the value's length, the value. Behind the entries of a block whose entries all have the same
//! length: that length, and 0 (aligned); of any other block: the offset of each entry, how many there are, and 1. The numbers have 4
//! bytes, the last one 1.

use std::cmp::Ordering;

use bytes::Bytes;

use super::compress::take_block;
use super::corrupt;
use crate::FormatError;
use crate::row::compacted::{CompactedKeyOrder, Input, put_bytes};

const ALIGNED: u8 = 0;
const UNALIGNED: u8 = 1;
/// Bytes behind the offsets.
const TAIL_BYTES: usize = 5;

/// Collects the entries of a block.
#[derive(Debug, Default)]
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    starts: Vec<u32>,
    /// Bytes of each entry so far; `None`: they differ.
    aligned: Option<usize>,
}

impl BlockWriter {
    /// Adds an entry. `Invalid` when the block would be more than Java can address.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), FormatError> {
        let start = self.bytes.len();
        put_bytes(&mut self.bytes, key)?;
        put_bytes(&mut self.bytes, value)?;
        let length = self.bytes.len() - start;
        self.aligned = match self.aligned {
            _ if self.starts.is_empty() => Some(length),
            aligned => aligned.filter(|aligned| *aligned == length),
        };
        self.starts.push(start as u32);
        if i32::try_from(self.len()).is_err() {
            return Err(FormatError::invalid("a block of a lookup file with 2 GiB or more"));
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes of the block if it ended here.
    pub(super) fn len(&self) -> usize {
        let offsets = if self.aligned.is_some() {
            0
        } else {
            4 * self.starts.len()
        };
        self.bytes.len() + offsets + TAIL_BYTES
    }

    /// The block; the writer is empty again.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let starts = std::mem::take(&mut self.starts);
        match self.aligned.take() {
            Some(length) if !starts.is_empty() => {
                bytes.extend_from_slice(&(length as u32).to_le_bytes());
                bytes.push(ALIGNED);
            }
            _ => {
                starts
                    .iter()
                    .for_each(|start| bytes.extend_from_slice(&start.to_le_bytes()));
                bytes.extend_from_slice(&(starts.len() as u32).to_le_bytes());
                bytes.push(UNALIGNED);
            }
        }
        bytes
    }
}

/// A block that has been read: a list of entries in key order.
#[derive(Clone, Debug)]
pub struct SstBlock {
    entries: Bytes,
    starts: Starts,
}

#[derive(Clone, Debug)]
enum Starts {
    /// Bytes of an entry, entries.
    Every(usize, usize),
    /// Four bytes an entry.
    Listed(Bytes),
}

impl SstBlock {
    /// From the bytes of a [`BlockHandle`](super::BlockHandle)'s range: the checksum is checked and the block decompressed.
    ///
    /// Errors: `Corrupt`, without the file's name; `Unsupported` for LZO.
    pub fn decode(stored: Bytes) -> Result<Self, FormatError> {
        Self::new(take_block(stored)?)
    }

    pub(super) fn new(block: Bytes) -> Result<Self, FormatError> {
        let wrong = || {
            corrupt(format_args!(
                "a block of {} bytes without its list of entries",
                block.len()
            ))
        };
        let tail = block.len().checked_sub(TAIL_BYTES).ok_or_else(wrong)?;
        let mut numbers = Input::new(block.get(tail..).unwrap_or_default());
        let number = u32::from_le_bytes(numbers.fixed()?) as usize;
        match numbers.fixed()? {
            [ALIGNED] if number > 0 && tail % number == 0 => Ok(Self {
                entries: block.slice(..tail),
                starts: Starts::Every(number, tail / number),
            }),
            [UNALIGNED] => {
                let offsets = number
                    .checked_mul(4)
                    .and_then(|bytes| tail.checked_sub(bytes))
                    .ok_or_else(wrong)?;
                Ok(Self {
                    entries: block.slice(..offsets),
                    starts: Starts::Listed(block.slice(offsets..tail)),
                })
            }
            _ => Err(wrong()),
        }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        match &self.starts {
            Starts::Every(_, count) => *count,
            Starts::Listed(offsets) => offsets.len() / 4,
        }
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory.
    pub fn memory_size(&self) -> usize {
        match &self.starts {
            Starts::Every(..) => self.entries.len(),
            Starts::Listed(offsets) => self.entries.len() + offsets.len(),
        }
    }

    /// Key and value of an entry. `Corrupt` when there is no such entry.
    pub fn entry(&self, i: usize) -> Result<(&[u8], &[u8]), FormatError> {
        let mut entry = self.input(i)?;
        Ok((entry.bytes()?, entry.bytes()?))
    }

    /// The first entry at or after `from` whose key is not less than `key`; [`len`](Self::len) when all are less. Gallops: cheap for
    /// ascending keys.
    ///
    /// Errors: `Corrupt` when an entry is none, or a key is none of the order's.
    pub fn lower_bound(&self, from: usize, key: &[u8], order: &CompactedKeyOrder) -> Result<usize, FormatError> {
        let len = self.len();
        let is_less = |i| Ok::<_, FormatError>(order.compare(self.key(i)?, key)? == Ordering::Less);
        if from >= len || !is_less(from)? {
            return Ok(from.min(len));
        }
        // `low` is less; `low + step` is looked at next.
        let (mut low, mut step) = (from, 1);
        while low + step < len && is_less(low + step)? {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(len);
        low += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_less(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// As [`lower_bound`](Self::lower_bound), with the value of the entry there if its key is `key`.
    pub fn find(
        &self,
        from: usize,
        key: &[u8],
        order: &CompactedKeyOrder,
    ) -> Result<(usize, Option<&[u8]>), FormatError> {
        let at = self.lower_bound(from, key, order)?;
        if at == self.len() {
            return Ok((at, None));
        }
        let (found, value) = self.entry(at)?;
        Ok((at, order.compare(found, key)?.is_eq().then_some(value)))
    }

    fn key(&self, i: usize) -> Result<&[u8], FormatError> {
        self.input(i)?.bytes()
    }

    fn input(&self, i: usize) -> Result<Input<'_>, FormatError> {
        let start = match &self.starts {
            Starts::Every(length, count) => (i < *count).then(|| i * length),
            Starts::Listed(offsets) => offsets
                .get(4 * i..)
                .and_then(|offsets| offsets.first_chunk::<4>())
                .map(|start| u32::from_le_bytes(*start) as usize),
        };
        let entry = start.and_then(|start| self.entries.get(start..));
        let entry = entry.ok_or_else(|| corrupt(format_args!("no entry {i} in a block of {}", self.len())))?;
        Ok(Input::new(entry))
    }
}
