//! Sorted keys in a data file itself.

use futures::StreamExt;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::kv::{KeyCodec, Keys, KvBatch, KvFiles, ReadSpec};
use paimon_format::meta::DataFileMeta;
use paimon_merge::changelog::LookupNeed;

use crate::found::{FileHits, concat, take_rows};
use crate::metrics;
use crate::room::Room;

/// The hits of a data file for these keys (`wanted`: their numbers, ascending), and how many rows were read for them: one pass, from the
/// first page that can hold a key to the last, as long as there is `room` for what is found.
///
/// `read` has the columns and the key range; rows that it hides are no hits. Errors: those of the file.
pub(crate) async fn scan(
    env: &Env,
    files: &dyn KvFiles,
    file: &DataFileMeta,
    read: ReadSpec,
    (keys, wanted): (&Keys, &[u32]),
    (need, room): (LookupNeed, &Room),
) -> Result<(FileHits, u64), FormatError> {
    metrics::probe("scan");
    let codec = KeyCodec::new(&read.schema)?;
    let mut rows = files.open(file, read);
    let mut rows_read = 0;
    let mut search = Search {
        keys: keys.clone(),
        wanted: wanted.to_vec(),
        next: 0,
        need,
        room: room.clone(),
        hits: FileHits {
            positions: need.position().then(Vec::new),
            ..FileHits::default()
        },
        parts: Vec::new(),
    };
    while search.next < search.wanted.len()
        && !room.is_over()
        && let Some(batch) = rows.next().await
    {
        let batch = batch?;
        rows_read += batch.len() as u64;
        search = env.cpu(move || search.batch(&batch).map(|()| search)).await??;
    }
    Ok((search.finish(&codec)?, rows_read))
}

/// A walk along keys and rows.
struct Search {
    keys: Keys,
    wanted: Vec<u32>,
    /// The first of `wanted` that may still come.
    next: usize,
    need: LookupNeed,
    room: Room,
    hits: FileHits,
    parts: Vec<KvBatch>,
}

impl Search {
    fn batch(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        let (mut at, mut rows) = (0, Vec::new());
        while let Some(&key) = self.wanted.get(self.next) {
            at = batch.keys.lower_bound(at, &self.keys, key as usize);
            if at == batch.len() {
                break;
            }
            if batch.keys.equal(at, &self.keys, key as usize) {
                self.hits.keys.push(key);
                rows.push(at as u32);
            }
            self.next += 1;
        }
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(positions) = &mut self.hits.positions {
            let all = batch.positions.as_ref();
            let all = all.ok_or_else(|| FormatError::internal("a batch without positions"))?;
            positions.extend(rows.iter().filter_map(|&row| all.get(row as usize).copied()));
        }
        if self.need.value() {
            let part = take_rows(batch, &rows)?;
            if self.room.take(part.memory_size()) {
                self.parts.push(part);
            }
        }
        Ok(())
    }

    fn finish(self, codec: &KeyCodec) -> Result<FileHits, FormatError> {
        Ok(FileHits {
            rows: concat(&self.parts, codec)?,
            ..self.hits
        })
    }
}
