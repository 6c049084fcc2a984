//! A file from sorted entries.

use serde::{Deserialize, Serialize};

use super::SstCompression;
use super::block::BlockWriter;
use super::bloom::BloomFilter;
use super::compress::put_block;
use super::footer::{BlockHandle, BloomHandle, SstFooter};
use crate::FormatError;
use crate::row::murmur;

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SstSettings {
    /// A block ends with the entry that makes it larger than this: `cache-page-size`, bytes before compression.
    pub block_bytes: usize,
    /// `lookup.cache-spill-compression`
    pub compression: SstCompression,
    /// `spill-compression.zstd-level`
    pub zstd_level: i32,
    /// `lookup.cache.bloom.filter.fpp`; `None`: no filter (`lookup.cache.bloom.filter.enabled` = false).
    pub bloom_fpp: Option<f64>,
}

impl Default for SstSettings {
    fn default() -> Self {
        Self {
            block_bytes: 64 << 10,
            compression: SstCompression::Zstd,
            zstd_level: 1,
            bloom_fpp: Some(0.05),
        }
    }
}

/// Writes one file, from its first byte to its last. What it makes is taken away with [`take`](Self::take).
///
/// Source: `org.apache.paimon.lookup.sort.SortLookupStoreWriter`.
#[derive(Debug)]
pub struct SstWriter {
    settings: SstSettings,
    block: BlockWriter,
    index: BlockWriter,
    bloom: Option<BloomFilter<Vec<u8>>>,
    last_key: Vec<u8>,
    /// Bytes that were not taken yet.
    ready: Vec<u8>,
    /// Bytes that were.
    taken: u64,
}

impl SstWriter {
    /// A file for about `entries` entries: the bloom filter is made for so many.
    ///
    /// Errors: `Invalid` when the filter's share of false answers is not between 0 and 1.
    pub fn new(settings: SstSettings, entries: u64) -> Result<Self, FormatError> {
        if let Some(fpp) = settings.bloom_fpp
            && !(fpp > 0.0 && fpp < 1.0)
        {
            return Err(FormatError::invalid(format!(
                "lookup.cache.bloom.filter.fpp is {fpp}: expected a number between 0 and 1"
            )));
        }
        Ok(Self {
            bloom: settings.bloom_fpp.and_then(|fpp| BloomFilter::new(entries, fpp)),
            settings,
            block: BlockWriter::default(),
            index: BlockWriter::default(),
            last_key: Vec::new(),
            ready: Vec::new(),
            taken: 0,
        })
    }

    /// Adds an entry; keys ascend, each comes once. That is the caller's to see to: a file with keys out of order does not find them.
    ///
    /// Errors: `Invalid` when a block would have 2 GiB.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), FormatError> {
        self.block.add(key, value)?;
        if let Some(bloom) = &mut self.bloom {
            bloom.add(murmur::hash_bytes(key));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        if self.block.len() > self.settings.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    /// Bytes that are ready.
    pub fn ready_bytes(&self) -> usize {
        self.ready.len()
    }

    /// The next bytes of the file, as far as they are ready.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.ready.len() as u64;
        std::mem::take(&mut self.ready)
    }

    /// The rest of the file. A file without entries is legal.
    pub fn finish(mut self) -> Result<Vec<u8>, FormatError> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let bloom = self.bloom.as_ref().map(|bloom| BloomHandle {
            offset: self.taken + self.ready.len() as u64,
            bytes: bloom.bytes().len() as u32,
            entries: bloom.entries(),
        });
        if let Some(bloom) = &self.bloom {
            self.ready.extend_from_slice(bloom.bytes());
        }
        let block = self.index.finish();
        let index = self.put_block(&block)?;
        self.ready.extend_from_slice(&SstFooter { bloom, index }.encode());
        Ok(self.take())
    }

    fn end_block(&mut self) -> Result<(), FormatError> {
        let block = self.block.finish();
        let handle = self.put_block(&block)?;
        self.index.add(&self.last_key, &handle.encode())
    }

    fn put_block(&mut self, block: &[u8]) -> Result<BlockHandle, FormatError> {
        let offset = self.taken + self.ready.len() as u64;
        let (codec, level) = (self.settings.compression, self.settings.zstd_level);
        let bytes = put_block(&mut self.ready, block, codec, level)?;
        Ok(BlockHandle { offset, bytes })
    }
}
