//! The local lookup files of a process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::lock::Mutex as AsyncMutex;
use paimon_format::env::{Env, Reservation};
use paimon_format::kv::PageCache;
use paimon_merge::changelog::LookupNeed;

use super::LookupMemory;
use super::local_file::LocalFile;
use super::lru::Lru;
use crate::LookupSettings;
use crate::metrics;

/// The lookup files that are on local disk, of all buckets that share it. Cheap to clone; clones share the files.
///
/// A file goes when the files together have more than `lookup.cache-max-disk-size` bytes, when [`Env::disk`] is short (the one unused for
/// longest first), when it was not used for `lookup.cache-file-retention`, and when its data file has left the tree; a look-up that still
/// reads it goes on. What is left is deleted with the last clone. Blocks, indexes and filters that were read, and decompressed pages of data
/// files that are read without a lookup file, stay in memory up to `lookup.cache-max-memory-size`, as far as [`Env::cache`] has room.
///
/// Source: `org.apache.paimon.mergetree.LookupFile#createCache`.
#[derive(Clone, Debug)]
pub struct LookupFileCache {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    env: Env,
    retention_ms: i64,
    files: Mutex<Lru<FileKey, Arc<LookupFile>>>,
    /// Those who make a file that is not there, one after the other.
    turns: Mutex<HashMap<FileKey, Weak<AsyncMutex<()>>>>,
    /// Rows of data files that were read in vain.
    regrets: Mutex<Lru<FileKey, u64>>,
    /// Files whose bytes were wrong.
    rejected: Mutex<Lru<FileKey, ()>>,
    memory: LookupMemory,
    next_number: AtomicU64,
}

/// Which lookup file of a data file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    /// The data file's name.
    pub(crate) name: Arc<str>,
    /// What is stored.
    pub(crate) need: LookupNeed,
    /// The schema of the values.
    pub(crate) schema_id: i64,
}

/// A lookup file that can be read.
#[derive(Debug)]
pub(crate) struct LookupFile {
    /// Tells files apart in memory.
    pub(crate) number: u64,
    pub(crate) local: LocalFile,
}

impl LookupFileCache {
    /// An empty cache. Nothing is written before a look-up.
    pub fn new(env: Env, settings: &LookupSettings) -> Self {
        Self {
            shared: Arc::new(Shared {
                retention_ms: i64::try_from(settings.file_retention.as_millis()).unwrap_or(i64::MAX),
                files: Mutex::new(Lru::new(settings.max_disk_bytes)),
                turns: Mutex::default(),
                regrets: Mutex::new(Lru::new(0)),
                rejected: Mutex::new(Lru::new(0)),
                memory: LookupMemory::new(settings.max_memory_bytes, settings.high_priority_ratio, &env),
                next_number: AtomicU64::new(0),
                env,
            }),
        }
    }

    /// Files that it holds.
    pub fn len(&self) -> usize {
        lock(&self.shared.files).len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the files that it holds.
    pub fn disk_bytes(&self) -> u64 {
        lock(&self.shared.files).weight()
    }

    /// Bytes of the decompressed pages of data files that it holds in memory.
    pub fn page_bytes(&self) -> u64 {
        self.pages().bytes()
    }

    /// Lets go of what was not used for too long: files, what of them and of data files is in memory, and what was noted about them. Every
    /// look-up does this, too; whoever keeps a table open calls it from time to time, as an idle cache takes room from those of other tables.
    pub fn remove_idle(&self) {
        let before_ms = self.now_ms().saturating_sub(self.shared.retention_ms);
        let gone = lock(&self.shared.files).remove_unused_since(before_ms);
        metrics::files_gone(gone.len(), "idle");
        self.shared.memory.remove_unused_since(before_ms);
        lock(&self.shared.regrets).remove_unused_since(before_ms);
        lock(&self.shared.rejected).remove_unused_since(before_ms);
    }

    /// Lets go of all files.
    pub fn clear(&self) {
        let gone = lock(&self.shared.files).remove_where(|_| true);
        metrics::files_gone(gone.len(), "cleared");
        self.shared.memory.clear();
        lock(&self.shared.regrets).remove_where(|_| true);
    }

    pub(crate) fn pages(&self) -> &PageCache {
        self.shared.memory.pages()
    }

    pub(crate) fn memory(&self) -> &LookupMemory {
        &self.shared.memory
    }

    fn now_ms(&self) -> i64 {
        self.shared.env.clock.now_ms()
    }

    pub(crate) fn get(&self, key: &FileKey) -> Option<Arc<LookupFile>> {
        self.remove_idle();
        lock(&self.shared.files).get(key, self.now_ms())
    }

    /// Keeps a new file.
    pub(crate) fn put(&self, key: FileKey, local: LocalFile) -> Arc<LookupFile> {
        let file = Arc::new(LookupFile {
            number: self.shared.next_number.fetch_add(1, Ordering::Relaxed),
            local,
        });
        lock(&self.shared.regrets).remove(&key);
        self.pages().remove(&[&*key.name]);
        let (kept, bytes, now_ms) = (Arc::clone(&file), file.local.bytes(), self.now_ms());
        let gone = lock(&self.shared.files).insert(key, kept, bytes, now_ms);
        metrics::files_gone(gone.len(), "size");
        file
    }

    /// Data files that have left the tree.
    pub(crate) fn remove(&self, names: &[&str]) {
        let gone = lock(&self.shared.files).remove_where(|key| names.contains(&&*key.name));
        metrics::files_gone(gone.len(), "dropped");
        self.pages().remove(names);
        lock(&self.shared.regrets).remove_where(|key| names.contains(&&*key.name));
        lock(&self.shared.rejected).remove_where(|key| names.contains(&&*key.name));
    }

    /// Lets go of a file that cannot be read.
    pub(crate) fn lose(&self, key: &FileKey) {
        let gone = lock(&self.shared.files).remove(key);
        metrics::files_gone(gone.iter().len(), "broken");
    }

    /// Lets go of a file whose bytes are wrong, and remembers it.
    pub(crate) fn reject(&self, key: FileKey) {
        self.lose(&key);
        lock(&self.shared.rejected).insert(key, (), 0, self.now_ms());
    }

    /// Whether a file of this key was broken.
    pub(crate) fn is_rejected(&self, key: &FileKey) -> bool {
        lock(&self.shared.rejected).get(key, self.now_ms()).is_some()
    }

    /// A share of the disk budget; files that are not in use go for it. `None`: there is not so much.
    pub(crate) fn reserve_disk(&self, bytes: u64) -> Option<Reservation> {
        if bytes > self.shared.env.disk.total() {
            return None;
        }
        loop {
            if let Some(reservation) = self.shared.env.disk.try_reserve(bytes) {
                return Some(reservation);
            }
            let gone = lock(&self.shared.files).pop_oldest()?;
            metrics::files_gone(1, "disk");
            drop(gone);
        }
    }

    /// Who holds it may make the file of this key; others wait, and find it when they look again.
    pub(crate) fn turn(&self, key: &FileKey) -> Arc<AsyncMutex<()>> {
        let mut turns = lock(&self.shared.turns);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(AsyncMutex::new(()));
        turns.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Rows read in vain since the file was last built.
    pub(crate) fn regret(&self, key: &FileKey) -> u64 {
        lock(&self.shared.regrets).get(key, self.now_ms()).unwrap_or(0)
    }

    pub(crate) fn forget_regret(&self, key: &FileKey) {
        lock(&self.shared.regrets).remove(key);
    }

    pub(crate) fn add_regret(&self, key: &FileKey, rows: u64) {
        let mut regrets = lock(&self.shared.regrets);
        let now_ms = self.now_ms();
        let regret = regrets.get(key, now_ms).unwrap_or(0);
        regrets.insert(key.clone(), regret.saturating_add(rows), 0, now_ms);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
