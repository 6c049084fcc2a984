//! Pages of data files that several reads share.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::env::{Budget, Reservation};

/// Pages of data files, decompressed, for reads that come again and again. Cheap to clone; clones share the pages.
///
/// Bounded by two budgets, its own and the process' one. What came first stays: reads go over a file in order, and a pass over more than there is room for would push out
/// each page shortly before the next pass wants it. So files that nobody reads any more have to be [removed](Self::remove).
///
/// Only pages of Parquet files are kept, of those that are compressed and have an offset index.
#[derive(Clone, Debug)]
pub struct PageCache {
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "only pages of Parquet files are kept")
    )]
    budgets: [Budget; 2],
    files: Arc<Mutex<HashMap<Arc<str>, FilePages>>>,
}

/// What a file format makes of a page.
type Page = Arc<dyn Any + Send + Sync>;

/// The pages of one file, by their place in it.
#[derive(Debug, Default)]
struct FilePages {
    pages: HashMap<u64, (Page, Vec<Reservation>)>,
    used_ms: i64,
}

impl PageCache {
    /// An empty cache, whose pages take their bytes from each of these budgets.
    pub fn new(budgets: [Budget; 2]) -> Self {
        Self {
            budgets,
            files: Arc::default(),
        }
    }

    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        let files = self.lock();
        let pages = files.values().flat_map(|file| file.pages.values());
        pages.filter_map(|(_, room)| room.first()).map(Reservation::bytes).sum()
    }

    /// Lets go of the pages of these data files.
    pub fn remove(&self, names: &[&str]) {
        self.retain(|path, _| !names.contains(&file_name(path)));
    }

    /// Lets go of the pages of files that were last read before a moment.
    pub fn remove_unused_since(&self, before_ms: i64) {
        self.retain(|_, file| file.used_ms >= before_ms);
    }

    /// Lets go of the pages of the file that was last read before all others. `false`: there is none.
    pub fn remove_oldest(&self) -> bool {
        let mut files = self.lock();
        let oldest = files.iter().min_by_key(|(_, file)| file.used_ms);
        let path = oldest.map(|(path, _)| Arc::clone(path));
        let gone = path.and_then(|path| files.remove(&path));
        drop(files);
        gone.is_some()
    }

    /// Lets go of all pages.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Notes that the file of this path is read.
    #[cfg(feature = "parquet")]
    pub(crate) fn touch(&self, path: &Arc<str>, now_ms: i64) {
        self.lock().entry(Arc::clone(path)).or_default().used_ms = now_ms;
    }

    /// The page at this place.
    #[cfg(feature = "parquet")]
    pub(crate) fn get<P: Any + Send + Sync>(&self, path: &str, start: u64) -> Option<Arc<P>> {
        let page = Arc::clone(&self.lock().get(path)?.pages.get(&start)?.0);
        page.downcast().ok()
    }

    /// Keeps a page of a file that is being read, if there is room.
    #[cfg(feature = "parquet")]
    pub(crate) fn put<P: Any + Send + Sync>(&self, path: &str, start: u64, page: P, bytes: u64) {
        let mut files = self.lock();
        // What was read of a file that was removed meanwhile is not kept.
        let Some(file) = files.get_mut(path) else { return };
        if file.pages.contains_key(&start) {
            return;
        }
        if let Some(room) = Budget::try_reserve_of_each(&self.budgets, bytes) {
            file.pages.insert(start, (Arc::new(page), room));
        }
    }

    fn retain(&self, keep: impl Fn(&str, &FilePages) -> bool) {
        // Pages are freed outside of the lock.
        let gone: Vec<_> = self.lock().extract_if(|path, file| !keep(path, file)).collect();
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, FilePages>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
