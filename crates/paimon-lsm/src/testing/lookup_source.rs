//! What every source of old rows must keep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch};
use paimon_format::FormatError;
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, KvSchemaRef, RowLevels};
use paimon_format::types::{DataField, DataType, RowKind, TypeKind};
use paimon_merge::changelog::{Hits, LookupNeed};

use super::MemoryKvFiles;
use crate::LsmError;
use crate::levels::{KeyOrder, Levels};
use crate::lookup::{LookupSource, LookupView, SortedKeys};

/// Checks a source on a small bucket: columns `id` INT (the key) and `v` INT, files on levels 0, 4 and 5.
///
/// `make` gives a source for the bucket's files. Checked for every need and start level, cold and warm: answers are one a key, in the order
/// of the keys; the first level that has a key answers, the newer file on level 0; a retract answers; a row that is deleted does not, and the
/// search goes on below, also when it was deleted after it had been found; rows come with their levels, positions count all rows of a file;
/// keys that nobody has, an empty block of keys and an empty bucket are no errors; with room for one byte some keys are answered, and the rest
/// when they are asked again.
///
/// Errors: the question, and what was wrong with the answer.
pub async fn check_lookup<S: LookupSource>(
    make: impl Fn(MemoryKvFiles, KvSchemaRef) -> S,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut bucket = Bucket::new()?;
    let source = make(bucket.data.clone(), Arc::clone(&bucket.schema));
    bucket.ask_all(&source).await?;
    bucket.add(5, &[(1, 10), (2, 20), (3, 30)], RowKind::Insert)?;
    bucket.add(5, &[(6, 60), (8, 80)], RowKind::Insert)?;
    bucket.add(4, &[(2, 21), (6, 61), (7, 71)], RowKind::Insert)?;
    bucket.add(0, &[(3, 32), (7, 72)], RowKind::Delete)?;
    bucket.add(0, &[(3, 33), (9, 93)], RowKind::UpdateAfter)?;
    bucket.ask_all(&source).await?;
    for (file, row) in [(2, 0), (2, 2), (0, 1), (4, 0)] {
        bucket.delete(file, row);
        bucket.ask_all(&source).await?;
    }
    // A source made now must answer alike.
    let source = make(bucket.data.clone(), Arc::clone(&bucket.schema));
    bucket.ask_all(&source).await
}

/// Files with their rows, in the order they were made.
struct Bucket {
    schema: KvSchemaRef,
    data: MemoryKvFiles,
    files: Vec<TestFile>,
}

struct TestFile {
    meta: Arc<paimon_format::meta::DataFileMeta>,
    rows: BTreeMap<i32, i32>,
    kind: RowKind,
    sequence: i64,
    deleted: DeletionVector,
}

/// What is known about a key: level, sequence number, kind and value of its row; file and position.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    row: Option<(i32, i64, RowKind, i32)>,
    place: Option<(String, u64)>,
}

impl Bucket {
    fn new() -> Result<Self, FormatError> {
        let field = |id, name: &str| DataField::new(id, name, DataType::not_null(TypeKind::Int));
        let schema = Arc::new(KvSchema::new(0, vec![field(0, "id"), field(1, "v")], vec![0], None)?);
        Ok(Self {
            data: MemoryKvFiles::new(Arc::clone(&schema)),
            schema,
            files: Vec::new(),
        })
    }

    fn add(&mut self, level: i32, rows: &[(i32, i32)], kind: RowKind) -> Result<(), FormatError> {
        let sequence = self.files.len() as i64;
        let ids: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int32Array>());
        let values: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int32Array>());
        let sequences: ArrayRef = Arc::new(Int64Array::from(vec![sequence; rows.len()]));
        let kinds: ArrayRef = Arc::new(Int8Array::from(vec![kind as i8; rows.len()]));
        let columns = RecordBatch::try_new(Arc::clone(&self.schema.arrow), vec![sequences, kinds, ids, values])
            .map_err(FormatError::internal)?;
        let codec = KeyCodec::new(&self.schema)?;
        let batch = KvBatch::new(&self.schema, columns, &codec, RowLevels::All(level))?;
        self.files.push(TestFile {
            meta: self.data.add(level, &[batch])?,
            rows: rows.iter().copied().collect(),
            kind,
            sequence,
            deleted: DeletionVector::new(),
        });
        Ok(())
    }

    fn delete(&mut self, file: usize, row: u64) {
        if let Some(file) = self.files.get_mut(file) {
            file.deleted.insert(row);
        }
    }

    fn view(&self) -> Result<LookupView, LsmError> {
        let files = self.files.iter().map(|file| Arc::clone(&file.meta)).collect();
        let deleted: HashMap<_, _> = self
            .files
            .iter()
            .map(|file| (file.meta.file_name.clone(), Arc::new(file.deleted.clone())))
            .collect();
        Ok(LookupView {
            levels: Levels::restore(KeyOrder::new(&self.schema)?, files, 6)?.view(),
            deleted: Arc::new(deleted),
        })
    }

    async fn ask_all(&self, source: &impl LookupSource) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let all: Vec<i32> = (0..11).collect();
        let needs = [
            LookupNeed::Existence,
            LookupNeed::Value,
            LookupNeed::Position,
            LookupNeed::PositionAndValue,
        ];
        for need in needs {
            for start_level in 0..7 {
                for (keys, max_bytes) in [(&all[..], u64::MAX), (&[3, 7], u64::MAX), (&[], u64::MAX), (&all, 1)] {
                    let found = self.ask(source, keys, start_level, need, max_bytes).await?;
                    let expected: Vec<_> = keys.iter().map(|&key| self.expected(key, start_level, need)).collect();
                    if found != expected {
                        return Err(format!(
                            "keys {keys:?} from level {start_level}, {need:?}, {max_bytes} bytes at most:\n  \
                             expected {expected:?}\n  found    {found:?}"
                        )
                        .into());
                    }
                }
            }
        }
        Ok(())
    }

    async fn ask(
        &self,
        source: &impl LookupSource,
        asked: &[i32],
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Vec<Option<Answer>>, Box<dyn std::error::Error + Send + Sync>> {
        let mut answers = Vec::new();
        loop {
            let keys = self.keys(asked.get(answers.len()..).unwrap_or_default())?;
            let hits = source
                .lookup(&keys, &self.view()?, start_level, need, max_bytes)
                .await?;
            if !(usize::from(!keys.keys.is_empty())..=keys.keys.len()).contains(&hits.found.len()) {
                return Err(format!("{} answers to {} keys", hits.found.len(), keys.keys.len()).into());
            }
            for key in 0..hits.found.len() {
                answers.push(answer(&hits, &keys, key, need)?);
            }
            if answers.len() == asked.len() {
                return Ok(answers);
            }
        }
    }

    fn keys(&self, keys: &[i32]) -> Result<SortedKeys, FormatError> {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(keys.to_vec()))];
        Ok(SortedKeys {
            schema: Arc::clone(&self.schema),
            keys: KeyCodec::new(&self.schema)?.keys_of_columns(&columns)?,
            columns,
        })
    }

    /// What the rows say.
    fn expected(&self, key: i32, start_level: i32, need: LookupNeed) -> Option<Answer> {
        let mut files: Vec<&TestFile> = self
            .files
            .iter()
            .filter(|file| file.meta.level >= start_level)
            .collect();
        files.sort_by_key(|file| (file.meta.level, -file.sequence));
        files.into_iter().find_map(|file| {
            let position = file.rows.keys().position(|&row| row == key)? as u64;
            let value = *file.rows.get(&key)?;
            (!file.deleted.contains(position)).then(|| Answer {
                row: need
                    .value()
                    .then_some((file.meta.level, file.sequence, file.kind, value)),
                place: need.position().then(|| (file.meta.file_name.clone(), position)),
            })
        })
    }
}

/// What the hit of a key says; more than was asked is left out.
fn answer(hits: &Hits, keys: &SortedKeys, key: usize, need: LookupNeed) -> Result<Option<Answer>, String> {
    let Some(hit) = hits.found.get(key).copied().flatten() else {
        return Ok(None);
    };
    let row = match (need.value(), hit.row, &hits.rows) {
        (false, ..) => None,
        (true, Some(row), Some(rows)) if (row as usize) < rows.len() => {
            let row = row as usize;
            if !rows.keys.equal(row, &keys.keys, key) {
                return Err(format!("key {key} has the row of another key"));
            }
            let value = rows.values()[1].as_primitive::<Int32Type>().value(row);
            Some((
                rows.levels.get(row),
                rows.sequence_numbers()[row],
                rows.kind(row),
                value,
            ))
        }
        (true, row, _) => return Err(format!("key {key} was found, without a row: {row:?}")),
    };
    let place = match (need.position(), hit.position) {
        (false, _) => None,
        (true, Some((file, position))) => {
            let file = hits.files.get(file as usize).ok_or("a hit in a file without a name")?;
            Some((file.to_string(), position))
        }
        (true, None) => return Err(format!("key {key} was found, without a position")),
    };
    Ok(Some(Answer { row, place }))
}
