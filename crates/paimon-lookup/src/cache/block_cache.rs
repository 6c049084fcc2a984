//! Blocks, indexes and filters in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paimon_format::sst::{BlockHandle, SstBlock, SstIndex};

use super::lru::Lru;

/// Parts of lookup files, decoded, by the number of the file. Indexes and filters have a share of their own: a pass over many blocks does
/// not push them out.
///
/// Source: `org.apache.paimon.io.cache.CacheManager`.
#[derive(Debug)]
pub(crate) struct BlockCache {
    indexes: Mutex<Lru<u64, Arc<SstIndex>>>,
    blocks: Mutex<Lru<(u64, BlockHandle), SstBlock>>,
}

impl BlockCache {
    /// `ratio`: the share of indexes and filters.
    pub(crate) fn new(max_bytes: u64, ratio: f64) -> Self {
        let index_bytes = (max_bytes as f64 * ratio) as u64;
        Self {
            indexes: Mutex::new(Lru::new(index_bytes)),
            blocks: Mutex::new(Lru::new(max_bytes.saturating_sub(index_bytes))),
        }
    }

    pub(crate) fn index(&self, file: u64) -> Option<Arc<SstIndex>> {
        lock(&self.indexes).get(&file, 0)
    }

    pub(crate) fn put_index(&self, file: u64, index: &Arc<SstIndex>) {
        let weight = index.memory_size() as u64;
        let gone = lock(&self.indexes).insert(file, Arc::clone(index), weight, 0);
        drop(gone);
    }

    pub(crate) fn block(&self, file: u64, handle: BlockHandle) -> Option<SstBlock> {
        lock(&self.blocks).get(&(file, handle), 0)
    }

    pub(crate) fn put_block(&self, file: u64, handle: BlockHandle, block: &SstBlock) {
        let weight = block.memory_size() as u64;
        let gone = lock(&self.blocks).insert((file, handle), block.clone(), weight, 0);
        drop(gone);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
