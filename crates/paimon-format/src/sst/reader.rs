//! Many keys at once: which blocks may hold which of them.

use bytes::Bytes;

use super::block::SstBlock;
use super::bloom::BloomFilter;
use super::footer::{BlockHandle, SstFooter};
use crate::FormatError;
use crate::row::compacted::CompactedKeyOrder;
use crate::row::murmur;

/// The index and the bloom filter of a file.
///
/// Source: `org.apache.paimon.sst.SstFileReader`.
#[derive(Clone, Debug)]
pub struct SstIndex {
    blocks: SstBlock,
    bloom: Option<BloomFilter<Bytes>>,
    /// Where the data blocks end.
    data_end: u64,
}

/// A block, and the keys that it holds if the file does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockProbe {
    /// The block.
    pub block: BlockHandle,
    /// Positions among the keys asked, ascending.
    pub keys: Vec<u32>,
}

impl SstIndex {
    /// From the bytes of [`SstFooter::ranges`].
    ///
    /// Errors: `Corrupt`, without the file's name; `Unsupported` for LZO.
    pub fn decode(footer: &SstFooter, [bloom, index]: [Bytes; 2]) -> Result<Self, FormatError> {
        let bloom = match &footer.bloom {
            Some(handle) => Some(BloomFilter::read(bloom, handle)?),
            None => None,
        };
        Ok(Self {
            blocks: SstBlock::decode(index)?,
            bloom,
            data_end: footer.bloom.map_or(footer.index.offset, |bloom| bloom.offset),
        })
    }

    /// Bytes in memory.
    pub fn memory_size(&self) -> usize {
        self.blocks.memory_size() + self.bloom.as_ref().map_or(0, BloomFilter::memory_size)
    }

    /// The blocks to read for these of the `keys`, which ascend in `order`: one forward walk over the index. A key that is in no block
    /// of the answer is not in the file.
    ///
    /// Errors: `Corrupt`, without the file's name.
    pub fn probe<'k>(
        &self,
        keys: impl IntoIterator<Item = (u32, &'k [u8])>,
        order: &CompactedKeyOrder,
    ) -> Result<Vec<BlockProbe>, FormatError> {
        let mut probes: Vec<BlockProbe> = Vec::new();
        let (mut at, mut last) = (0, None);
        for (number, key) in keys {
            if self
                .bloom
                .as_ref()
                .is_some_and(|bloom| !bloom.may_contain(murmur::hash_bytes(key)))
            {
                continue;
            }
            at = self.blocks.lower_bound(at, key, order)?;
            if at == self.blocks.len() {
                break;
            }
            match probes.last_mut() {
                Some(probe) if last == Some(at) => probe.keys.push(number),
                _ => {
                    let (_, handle) = self.blocks.entry(at)?;
                    probes.push(BlockProbe {
                        block: BlockHandle::decode(handle, self.data_end)?,
                        keys: vec![number],
                    });
                    last = Some(at);
                }
            }
        }
        Ok(probes)
    }
}

impl SstBlock {
    /// Looks the ascending keys up, by their numbers, and gives `found` the values of those that are there.
    ///
    /// Errors: `Corrupt`, without the file's name; those of `found`.
    pub fn search<'k>(
        &self,
        keys: impl IntoIterator<Item = (u32, &'k [u8])>,
        order: &CompactedKeyOrder,
        mut found: impl FnMut(u32, &[u8]) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut at = 0;
        for (number, key) in keys {
            let (next, value) = self.find(at, key, order)?;
            if let Some(value) = value {
                found(number, value)?;
            }
            at = next;
        }
        Ok(())
    }
}
