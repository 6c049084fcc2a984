//! Level by level, first hit wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::lock::Mutex;
use futures::{StreamExt, TryStreamExt, stream};
use paimon_format::dv::DeletionVector;
use paimon_format::kv::KvSchema;
use paimon_format::meta::DataFileMeta;
use paimon_format::{ErrorKind, FormatError};
use paimon_lsm::LsmError;
use paimon_lsm::lookup::{LookupSource, LookupView, SortedKeys};
use paimon_merge::changelog::{Hits, LookupNeed};

use crate::cache::LookupFile;
use crate::candidates::Bounds;
use crate::cursor::{self, EncodedKeys};
use crate::files::LookupFiles;
use crate::found::{Answers, FileHits};
use crate::metrics;
use crate::room::Room;

/// Files of one level that are searched at the same time.
const FILES_AT_ONCE: usize = 4;

/// Looks up old rows in the levels of one bucket, through lookup files or in the data files themselves.
///
/// A sorted block of keys goes down the levels at once; a key that was found goes no further. On each level above 0 a key has one file at
/// most, found by binary search over the key ranges; level 0 is searched file by file, newest first. A row that is deleted by a vector of
/// the view is no hit, and the search goes on below; a retract is a hit.
///
/// A file is searched in a lookup file if there is one on disk or beside the data file; else the data file itself is read, from the first
/// page that can hold a key to the last. That is as fast when many keys are asked at once, as a compaction does. Where it is not, the rows
/// read in vain add up, and when they are [`LookupSettings::build_after`](crate::LookupSettings::build_after) times the file's own, a lookup
/// file is built: so both together cost at most twice what the better one would have.
///
/// Memory, besides the cache's: up to 8 MiB of pages of each of the (at most four) files that are searched at the same time, and what is found,
/// which is weighed while it is found. A look-up that comes to more than `max_bytes` begins anew with fewer keys.
///
/// A lookup file that is gone from the local disk, or whose bytes are wrong, is not used again, and the data file is read instead.
///
/// Made by [`LookupLevels::builder`]. Cheap to clone; needs no closing.
///
/// Source: `org.apache.paimon.mergetree.{LookupLevels, LookupUtils}`.
#[derive(Clone, Debug)]
pub struct LookupLevels {
    files: Arc<LookupFiles>,
    /// Keys that the next look-up begins with: fewer after one that found too much at once.
    pace: Arc<AtomicUsize>,
}

/// Of so many keys whose records were too much the first one of so many is tried.
const SLOW_DOWN: usize = 4;

impl LookupLevels {
    pub(crate) fn new(files: LookupFiles) -> Self {
        Self {
            files: Arc::new(files),
            pace: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    async fn search(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Hits, FormatError> {
        let asked = Asked {
            keys,
            encoded: Mutex::new(None),
        };
        let mut first = keys.keys.len().min(self.pace.load(Ordering::Relaxed));
        let answers = loop {
            let room = Room::new(first, max_bytes);
            let answers = self
                .search_first(first, &asked, view, start_level, (need, &room))
                .await?;
            if let Some(answers) = answers {
                self.pace.fetch_max(first.saturating_mul(2), Ordering::Relaxed);
                break answers;
            }
            first = (first / SLOW_DOWN).max(1);
            self.pace.store(first, Ordering::Relaxed);
        };
        let hits = answers.finish(self.files.persist().codec())?;
        let found = hits.found.iter().flatten().count();
        metrics::keys(found, hits.found.len() - found);
        Ok(hits)
    }

    /// The answers to the first keys. `None`: there is no room for them.
    async fn search_first(
        &self,
        keys: usize,
        asked: &Asked<'_>,
        view: &LookupView,
        start_level: i32,
        (need, room): (LookupNeed, &Room),
    ) -> Result<Option<Answers>, FormatError> {
        let persist = self.files.persist();
        let mut answers = Answers::new(keys);
        for run in view.levels.runs().iter().filter(|run| run.level >= start_level) {
            let pending = answers.pending();
            if pending.is_empty() {
                break;
            }
            let bounds = Bounds::new(persist.schema(), persist.codec(), run.run.files())?;
            let candidates = bounds.candidates(&asked.keys.keys, &pending);
            let probes = candidates.into_iter().filter_map(|(file, range)| {
                let file = run.run.files().get(file)?;
                let wanted = pending.get(range)?.to_vec();
                let deleted = view.deleted.get(&file.file_name).filter(|deleted| !deleted.is_empty());
                Some(self.probe(file, asked, wanted, (need, room), deleted))
            });
            let mut hits = stream::iter(probes.collect::<Vec<_>>()).buffered(FILES_AT_ONCE);
            while let Some((file, hits)) = hits.try_next().await? {
                if room.is_over() {
                    return Ok(None);
                }
                answers.add(&file.file_name, hits)?;
            }
        }
        Ok(Some(answers))
    }

    async fn probe<'f>(
        &self,
        file: &'f DataFileMeta,
        asked: &Asked<'_>,
        wanted: Vec<u32>,
        (need, room): (LookupNeed, &Room),
        deleted: Option<&Arc<DeletionVector>>,
    ) -> Result<(&'f DataFileMeta, FileHits), FormatError> {
        // Whether a hit is deleted is seen by its position.
        let stored = match (deleted, need) {
            (Some(_), LookupNeed::Existence) => LookupNeed::Position,
            (Some(_), LookupNeed::Value) => LookupNeed::PositionAndValue,
            _ => need,
        };
        let found = match self.files.open(file, stored).await? {
            Some(lookup) => self.search_file(file, &lookup, asked, &wanted, (stored, room)).await?,
            None => None,
        };
        let hits = match found {
            Some(hits) => hits,
            None => self.files.scan(file, (stored, room), asked.keys, &wanted).await?,
        };
        if room.is_over() {
            return Ok((file, FileHits::default()));
        }
        let hits = match deleted {
            Some(deleted) => hits.without_deleted(deleted)?,
            None => hits,
        };
        Ok((file, hits))
    }

    /// Searches a lookup file. `None`: it is broken or gone, and not used again.
    async fn search_file(
        &self,
        file: &DataFileMeta,
        lookup: &Arc<LookupFile>,
        asked: &Asked<'_>,
        wanted: &[u32],
        (stored, room): (LookupNeed, &Room),
    ) -> Result<Option<FileHits>, FormatError> {
        let (env, cache, persist) = (self.files.env(), self.files.cache(), self.files.persist());
        let keys = asked.encoded(&self.files).await?;
        let hits = match cursor::probe(env, cache, lookup, persist, &keys, (wanted.to_vec(), room)).await {
            Ok(found) => persist.decode(found, stored, file.level),
            Err(error) => Err(error),
        };
        match hits {
            Ok(hits) => Ok(Some(hits)),
            Err(error) if error.kind() == ErrorKind::Internal => Err(error),
            Err(error) => {
                self.files.reject(file, stored, &error);
                Ok(None)
            }
        }
    }

    fn check(&self, keys: &KvSchema) -> Result<(), FormatError> {
        let own = self.files.persist().schema();
        if keys.key == own.key && keys.fields == own.fields {
            return Ok(());
        }
        Err(FormatError::internal(format!(
            "keys of schema {} are looked up with schema {}",
            keys.schema_id, own.schema_id
        )))
    }
}

/// The keys of a look-up, in the form of lookup files once one is searched.
struct Asked<'k> {
    keys: &'k SortedKeys,
    encoded: Mutex<Option<EncodedKeys>>,
}

impl Asked<'_> {
    async fn encoded(&self, files: &LookupFiles) -> Result<EncodedKeys, FormatError> {
        let mut encoded = self.encoded.lock().await;
        if let Some(encoded) = &*encoded {
            return Ok(Arc::clone(encoded));
        }
        let made = files.encode(self.keys).await?;
        *encoded = Some(Arc::clone(&made));
        Ok(made)
    }
}

#[async_trait]
impl LookupSource for LookupLevels {
    async fn lookup(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Hits, LsmError> {
        self.check(&keys.schema)?;
        Ok(self.search(keys, view, start_level, need, max_bytes).await?)
    }

    async fn written(&self, files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError> {
        Ok(self.files.with_remote(files).await?)
    }

    fn dropped(&self, files: &[Arc<DataFileMeta>]) {
        let names: Vec<&str> = files.iter().map(|file| file.file_name.as_str()).collect();
        self.files.cache().remove(&names);
    }
}
