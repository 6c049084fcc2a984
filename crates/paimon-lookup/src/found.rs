//! What was found, on the way to the caller.

use std::sync::Arc;

use arrow_array::UInt32Array;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use paimon_format::FormatError;
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{KeyCodec, KvBatch, RowLevels};
use paimon_merge::changelog::{Hit, Hits};

/// Values found in a lookup file, in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Found {
    keys: Vec<u32>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Found {
    pub(crate) fn push(&mut self, key: u32, value: &[u8]) {
        self.keys.push(key);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// Adds what was found for later keys.
    pub(crate) fn append(&mut self, other: Self) {
        let offset = self.bytes.len();
        self.keys.extend(other.keys);
        self.bytes.extend(other.bytes);
        self.ends.extend(other.ends.iter().map(|end| offset + end));
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }

    pub(crate) fn into_keys(self) -> Vec<u32> {
        self.keys
    }
}

/// The hits of one file, in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct FileHits {
    /// Numbers of the keys that were found.
    pub(crate) keys: Vec<u32>,
    /// One a key, if asked for: rows of the data file.
    pub(crate) positions: Option<Vec<u64>>,
    /// One row a key, if asked for.
    pub(crate) rows: Option<KvBatch>,
}

impl FileHits {
    /// Without those whose rows are deleted: they are no hits.
    pub(crate) fn without_deleted(self, deleted: &DeletionVector) -> Result<Self, FormatError> {
        let Some(positions) = &self.positions else {
            return Err(FormatError::internal("deleted rows of hits without positions"));
        };
        let kept: Vec<u32> = positions
            .iter()
            .zip(0..)
            .filter_map(|(&position, hit)| (!deleted.contains(position)).then_some(hit))
            .collect();
        if kept.len() == positions.len() {
            return Ok(self);
        }
        let rows = match &self.rows {
            Some(rows) => Some(take_rows(rows, &kept)?),
            None => None,
        };
        let at = |hit: &u32| *hit as usize;
        Ok(Self {
            keys: kept.iter().filter_map(|hit| self.keys.get(at(hit)).copied()).collect(),
            positions: Some(kept.iter().filter_map(|hit| positions.get(at(hit)).copied()).collect()),
            rows,
        })
    }
}

/// Some rows of a batch, copied, with their positions.
pub(crate) fn take_rows(batch: &KvBatch, rows: &[u32]) -> Result<KvBatch, FormatError> {
    let indices = UInt32Array::from(rows.to_vec());
    let columns = take_record_batch(&batch.columns, &indices).map_err(FormatError::internal)?;
    let codec = KeyCodec::new(&batch.schema)?;
    let picks = rows.iter().map(|&row| (0, row as usize));
    let keys = codec.gather(&[&batch.keys], picks)?;
    let levels = match &batch.levels {
        RowLevels::All(level) => RowLevels::All(*level),
        RowLevels::Each(levels) => RowLevels::Each(
            rows.iter()
                .filter_map(|&row| levels.get(row as usize).copied())
                .collect(),
        ),
    };
    let taken = KvBatch::with_keys(&batch.schema, columns, keys, levels)?;
    let positions = batch.positions.as_ref().map(|positions| {
        let positions = rows.iter().filter_map(|&row| positions.get(row as usize).copied());
        positions.collect()
    });
    Ok(KvBatch { positions, ..taken })
}

/// Collects the answers of all files.
#[derive(Debug)]
pub(crate) struct Answers {
    found: Vec<Option<Hit>>,
    files: Vec<Arc<str>>,
    batches: Vec<KvBatch>,
    rows: usize,
}

impl Answers {
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            found: vec![None; keys],
            files: Vec::new(),
            batches: Vec::new(),
            rows: 0,
        }
    }

    /// Adds the hits of a file.
    pub(crate) fn add(&mut self, file: &str, hits: FileHits) -> Result<(), FormatError> {
        if hits.keys.is_empty() {
            return Ok(());
        }
        let number = index(self.files.len())?;
        self.files.push(file.into());
        let with_rows = hits.rows.is_some();
        for (i, &key) in hits.keys.iter().enumerate() {
            let position = hits.positions.as_ref().and_then(|positions| positions.get(i));
            let row = with_rows.then(|| index(self.rows + i)).transpose()?;
            let found = self.found.get_mut(key as usize);
            let found = found.ok_or_else(|| FormatError::internal(format!("no key {key} was asked")))?;
            *found = Some(Hit {
                row,
                position: position.map(|&position| (number, position)),
            });
        }
        if let Some(rows) = hits.rows {
            self.rows += rows.len();
            self.batches.push(rows);
        }
        Ok(())
    }

    /// Keys that have no answer yet, ascending.
    pub(crate) fn pending(&self) -> Vec<u32> {
        let keys = self.found.iter().zip(0..);
        keys.filter_map(|(found, key)| found.is_none().then_some(key)).collect()
    }

    /// All answers, their rows in one batch.
    pub(crate) fn finish(self, codec: &KeyCodec) -> Result<Hits, FormatError> {
        Ok(Hits {
            found: self.found,
            rows: concat(&self.batches, codec)?,
            files: self.files,
        })
    }
}

/// Errors: `Unsupported`: a look-up finds at most 2^32 rows.
fn index(at: usize) -> Result<u32, FormatError> {
    u32::try_from(at).map_err(|_| FormatError::unsupported(format!("{at} rows or files in the answer to one look-up")))
}

/// The rows of batches, one after the other, without positions; `None`: there are none.
pub(crate) fn concat(batches: &[KvBatch], codec: &KeyCodec) -> Result<Option<KvBatch>, FormatError> {
    let [first, _, ..] = batches else {
        return Ok(batches.first().cloned());
    };
    let columns = concat_batches(&first.schema.arrow, batches.iter().map(|batch| &batch.columns));
    let levels = batches
        .iter()
        .flat_map(|batch| (0..batch.len()).map(|row| batch.levels.get(row)))
        .collect();
    let keys: Vec<_> = batches.iter().map(|batch| &batch.keys).collect();
    let picks: Vec<_> = batches
        .iter()
        .enumerate()
        .flat_map(|(source, batch)| (0..batch.len()).map(move |row| (source, row)))
        .collect();
    KvBatch::with_keys(
        &first.schema,
        columns.map_err(FormatError::internal)?,
        codec.gather(&keys, picks.into_iter())?,
        RowLevels::Each(levels),
    )
    .map(Some)
}
