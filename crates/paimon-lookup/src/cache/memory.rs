//! What look-ups keep in memory: indexes, filters and blocks of lookup files, and pages of data files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paimon_format::env::{Budget, Clock, Env, Reservation};
use paimon_format::kv::PageCache;
use paimon_format::sst::{BlockHandle, SstBlock, SstIndex};

use super::lru::Lru;

/// Parts of lookup files, decoded, by the number of the file. Indexes and filters have a share of their own: a pass over many blocks does
/// not push them out. Pages of data files share the rest with the blocks.
///
/// All of it also takes room in the process' one budget for caches. Blocks unused for longest make room, and pages for indexes, without
/// which no look-up in a lookup file is cheap.
///
/// Source: `org.apache.paimon.io.cache.CacheManager`.
#[derive(Debug)]
pub(crate) struct LookupMemory {
    indexes: Mutex<Lru<u64, Held<Arc<SstIndex>>>>,
    blocks: Mutex<Blocks>,
    pages: PageCache,
    /// Of the blocks and pages.
    own: Budget,
    /// Of all caches of the process.
    shared: Budget,
    clock: Arc<dyn Clock>,
}

type Blocks = Lru<(u64, BlockHandle), Held<SstBlock>>;

/// What is cached, and the room that it takes.
#[derive(Clone, Debug)]
struct Held<T> {
    value: T,
    _room: Arc<Vec<Reservation>>,
}

impl LookupMemory {
    /// `ratio`: the share of indexes and filters.
    pub(crate) fn new(max_bytes: u64, ratio: f64, env: &Env) -> Self {
        let index_bytes = (max_bytes as f64 * ratio) as u64;
        let shared = env.cache.clone();
        let own = Budget::new(max_bytes.saturating_sub(index_bytes));
        Self {
            indexes: Mutex::new(Lru::new(index_bytes)),
            blocks: Mutex::new(Lru::new(own.total())),
            pages: PageCache::new([own.clone(), shared.clone()]),
            own,
            shared,
            clock: Arc::clone(&env.clock),
        }
    }

    /// Lets go of what was last used before a moment.
    pub(crate) fn remove_unused_since(&self, before_ms: i64) {
        let indexes = lock(&self.indexes).remove_unused_since(before_ms);
        let blocks = lock(&self.blocks).remove_unused_since(before_ms);
        drop((indexes, blocks));
        self.pages.remove_unused_since(before_ms);
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        let indexes = lock(&self.indexes).remove_where(|_| true);
        let blocks = lock(&self.blocks).remove_where(|_| true);
        drop((indexes, blocks));
        self.pages.clear();
    }

    /// Pages of data files that were read without a lookup file.
    pub(crate) fn pages(&self) -> &PageCache {
        &self.pages
    }

    pub(crate) fn index(&self, file: u64) -> Option<Arc<SstIndex>> {
        let found = lock(&self.indexes).get(&file, self.clock.now_ms());
        found.map(|held| held.value)
    }

    pub(crate) fn put_index(&self, file: u64, index: &Arc<SstIndex>) {
        let weight = index.memory_size() as u64;
        let budgets = [&self.shared];
        let mut room = make_room(&mut lock(&self.blocks), &budgets, weight);
        while room.is_none() && weight <= self.shared.total() && self.pages.remove_oldest() {
            room = make_room(&mut lock(&self.blocks), &budgets, weight);
        }
        let Some(room) = room else { return };
        let held = Held {
            value: Arc::clone(index),
            _room: room,
        };
        let gone = lock(&self.indexes).insert(file, held, weight, self.clock.now_ms());
        drop(gone);
    }

    pub(crate) fn block(&self, file: u64, handle: BlockHandle) -> Option<SstBlock> {
        let found = lock(&self.blocks).get(&(file, handle), self.clock.now_ms());
        found.map(|held| held.value)
    }

    pub(crate) fn put_block(&self, file: u64, handle: BlockHandle, block: &SstBlock) {
        let weight = block.memory_size() as u64;
        let mut blocks = lock(&self.blocks);
        let Some(room) = make_room(&mut blocks, &[&self.own, &self.shared], weight) else {
            return;
        };
        let held = Held {
            value: block.clone(),
            _room: room,
        };
        let gone = blocks.insert((file, handle), held, weight, self.clock.now_ms());
        drop(blocks);
        drop(gone);
    }
}

/// Takes so many bytes of each budget; blocks go for it, but not for what is larger than a whole budget.
fn make_room(blocks: &mut Blocks, budgets: &[&Budget], bytes: u64) -> Option<Arc<Vec<Reservation>>> {
    if budgets.iter().any(|budget| bytes > budget.total()) {
        return None;
    }
    loop {
        if let Some(room) = Budget::try_reserve_of_each(budgets.iter().copied(), bytes) {
            return Some(Arc::new(room));
        }
        blocks.pop_oldest()?;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
