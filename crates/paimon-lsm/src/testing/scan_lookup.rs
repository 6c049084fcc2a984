//! Look-ups without caches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use async_trait::async_trait;
use futures::TryStreamExt;
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, Keys, KvBatch, KvFiles, KvSchema, ReadSpec, RowLevels};
use paimon_format::meta::DataFileMeta;
use paimon_merge::changelog::{Hit, Hits, LookupNeed};

use crate::LsmError;
use crate::lookup::{LookupSource, LookupView, SortedKeys};

/// Reads every file of every level from its start: slow, and plainly right. What other sources are compared with. Answers all keys,
/// whatever their records weigh.
#[derive(Debug)]
pub struct ScanLookup {
    files: Arc<dyn KvFiles>,
}

impl ScanLookup {
    /// Looks up in the files of one bucket.
    pub fn new(files: Arc<dyn KvFiles>) -> Self {
        Self { files }
    }
}

/// Answers in the making.
struct Answers {
    hits: Hits,
    /// Batches that found rows lie in.
    batches: Vec<KvBatch>,
    rows: Vec<(usize, usize)>,
}

#[async_trait]
impl LookupSource for ScanLookup {
    async fn lookup(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        _max_bytes: u64,
    ) -> Result<Hits, LsmError> {
        let mut answers = Answers {
            hits: Hits {
                found: vec![None; keys.keys.len()],
                ..Hits::default()
            },
            batches: Vec::new(),
            rows: Vec::new(),
        };
        let runs = view.levels.runs().iter().filter(|run| run.level >= start_level);
        for file in runs.flat_map(|run| run.run.files()) {
            let spec = ReadSpec {
                deleted: view.deleted.get(&file.file_name).map(Arc::clone),
                positions: true,
                ..ReadSpec::all(Arc::clone(&keys.schema))
            };
            let mut rows = self.files.open(file, spec);
            let mut first = 0;
            while let Some(batch) = rows.try_next().await? {
                answers.add(file, &batch, first, keys, need)?;
                first += batch.len() as u64;
            }
        }
        answers.finish(&keys.schema)
    }

    async fn written(&self, files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError> {
        Ok(files)
    }

    fn dropped(&self, _files: &[Arc<DataFileMeta>]) {}
}

impl Answers {
    /// Answers those keys that have no answer yet with the rows of a batch.
    fn add(
        &mut self,
        file: &DataFileMeta,
        batch: &KvBatch,
        first: u64,
        keys: &SortedKeys,
        need: LookupNeed,
    ) -> Result<(), LsmError> {
        let mut next = 0;
        let mut used = false;
        for key in 0..keys.keys.len() {
            next = batch.keys.lower_bound(next, &keys.keys, key);
            if next == batch.len() {
                break;
            }
            let missing = matches!(self.hits.found.get(key), Some(None));
            if !missing || !batch.keys.equal(next, &keys.keys, key) {
                continue;
            }
            let mut hit = Hit::default();
            if need.value() {
                hit.row = Some(self.rows.len() as u32);
                self.rows.push((self.batches.len(), next));
                used = true;
            }
            if need.position() {
                let position = match &batch.positions {
                    Some(positions) => positions.get(next).copied(),
                    None => Some(first + next as u64),
                };
                let position = position.ok_or_else(|| FormatError::internal("a row without position"))?;
                hit.position = Some((self.file(&file.file_name), position));
            }
            if let Some(found) = self.hits.found.get_mut(key) {
                *found = Some(hit);
            }
        }
        if used {
            self.batches.push(batch.clone());
        }
        Ok(())
    }

    /// The number of a file among those named.
    fn file(&mut self, name: &str) -> u32 {
        let files = &mut self.hits.files;
        let known = files.iter().position(|file| file.as_ref() == name);
        let file = known.unwrap_or_else(|| {
            files.push(Arc::from(name));
            files.len() - 1
        });
        file as u32
    }

    fn finish(mut self, schema: &Arc<KvSchema>) -> Result<Hits, LsmError> {
        if !self.rows.is_empty() {
            let columns: Vec<&RecordBatch> = self.batches.iter().map(|batch| &batch.columns).collect();
            let columns = interleave_record_batch(&columns, &self.rows)
                .map_err(|error| FormatError::internal(format!("gathering old rows: {error}")))?;
            let keys: Vec<&Keys> = self.batches.iter().map(|batch| &batch.keys).collect();
            let keys = KeyCodec::new(schema)?.gather(&keys, self.rows.iter().copied())?;
            let levels = self
                .rows
                .iter()
                .filter_map(|&(batch, row)| Some(self.batches.get(batch)?.levels.get(row)));
            let levels = RowLevels::Each(levels.collect());
            self.hits.rows = Some(KvBatch::with_keys(schema, columns, keys, levels)?);
        }
        Ok(self.hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_lookup;

    #[tokio::test]
    async fn it_keeps_what_it_is_the_measure_of() {
        check_lookup(|files, _| ScanLookup::new(Arc::new(files))).await.unwrap();
    }
}
