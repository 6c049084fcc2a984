//! What every look-up must keep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{KeyCodec, KvBatch, KvFiles, KvSchema, RowLevels};
use paimon_format::meta::DataFileMeta;
use paimon_format::types::{DataField, DataType, RowKind, TypeKind};
use paimon_merge::changelog::{Hits, LookupNeed};

use super::MemoryKvFiles;
use super::strategy::SplitMix;
use crate::LsmError;
use crate::levels::{KeyOrder, LevelSortedRun, LevelsView};
use crate::lookup::{LookupSource, LookupView, SortedKeys};

const LEVELS: i32 = 5;
const KEYS: u64 = 120;

/// Checks a source on generated trees of files in memory: every need, every level to start from, deleted rows, retracts, keys that are
/// not there, files that leave and come while the source lives.
///
/// `make` gives a source for the files of a bucket with this schema; it lives as long as the bucket does.
///
/// Errors: the question, the answer, and the right one.
pub async fn check_lookup<S: LookupSource>(make: impl Fn(Arc<dyn KvFiles>, Arc<KvSchema>) -> S) -> Result<(), String> {
    let text = |error: LsmError| error.to_string();
    for (round, composite) in (0..6).zip([false, true].into_iter().cycle()) {
        let mut random = SplitMix(round);
        let mut bucket = Bucket::new(composite).map_err(text)?;
        let source = make(Arc::new(bucket.files.clone()), Arc::clone(&bucket.schema));
        for step in 0..12 {
            let gone = bucket.change(&mut random).map_err(text)?;
            source.dropped(&gone);
            for _ in 0..6 {
                let question = bucket.question(&mut random).map_err(text)?;
                let view = bucket.view();
                let hits = source.lookup(&question.keys, &view, question.start_level, question.need);
                let hits = hits.await.map_err(text)?;
                bucket
                    .check(&question, &hits)
                    .map_err(|wrong| format!("tree {round}, step {step}: {wrong}\n{}", view.levels))?;
            }
        }
    }
    Ok(())
}

/// What is at a row of a file.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    sequence: i64,
    kind: RowKind,
}

/// A file's rows, by key, with their positions.
type FileRows = BTreeMap<u64, (u64, Row)>;

struct Bucket {
    schema: Arc<KvSchema>,
    files: MemoryKvFiles,
    order: KeyOrder,
    codec: KeyCodec,
    levels: BTreeMap<i32, Vec<(Arc<DataFileMeta>, FileRows)>>,
    deleted: HashMap<String, Arc<DeletionVector>>,
    sequence: i64,
}

struct Question {
    wanted: Vec<u64>,
    keys: SortedKeys,
    start_level: i32,
    need: LookupNeed,
}

impl Bucket {
    fn new(composite: bool) -> Result<Self, LsmError> {
        let fields = vec![
            DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
            DataField::new(1, "name", DataType::not_null(TypeKind::VarChar(20))),
            DataField::new(2, "v", DataType::nullable(TypeKind::VarChar(20))),
        ];
        let key = if composite { vec![1, 0] } else { vec![0] };
        let schema = Arc::new(KvSchema::new(0, fields, key, None)?);
        Ok(Self {
            files: MemoryKvFiles::new(Arc::clone(&schema)),
            order: KeyOrder::new(&schema)?,
            codec: KeyCodec::new(&schema)?,
            schema,
            levels: BTreeMap::new(),
            deleted: HashMap::new(),
            sequence: 0,
        })
    }

    /// Makes a level anew, of one to three files, and deletes some rows. Returns the files that are gone.
    fn change(&mut self, random: &mut SplitMix) -> Result<Vec<Arc<DataFileMeta>>, LsmError> {
        let level = 1 + random.below(LEVELS as u64) as i32;
        let mut files = Vec::new();
        let mut from = random.below(KEYS / 2);
        for _ in 0..random.below(4) {
            let to = (from + 1 + random.below(KEYS / 2)).min(KEYS);
            let keys: Vec<u64> = (from..to).filter(|_| random.below(3) > 0).collect();
            if !keys.is_empty() {
                files.push(self.file(level, &keys, random)?);
            }
            from = to + 1;
        }
        let gone = match files.is_empty() {
            true => self.levels.remove(&level),
            false => self.levels.insert(level, files),
        };
        for (file, rows) in self.levels.values().flatten() {
            let vector = self.deleted.entry(file.file_name.clone()).or_default();
            for (position, _) in rows.values() {
                if random.below(9) == 0 {
                    Arc::make_mut(vector).insert(*position);
                }
            }
        }
        self.deleted.retain(|_, rows| !rows.is_empty());
        let gone = gone.unwrap_or_default().into_iter().map(|(file, _)| file);
        Ok(gone
            .inspect(|file| {
                self.deleted.remove(&file.file_name);
            })
            .collect())
    }

    fn file(
        &mut self,
        level: i32,
        keys: &[u64],
        random: &mut SplitMix,
    ) -> Result<(Arc<DataFileMeta>, FileRows), LsmError> {
        let rows: Vec<Row> = keys
            .iter()
            .map(|_| {
                self.sequence += 1;
                Row {
                    sequence: self.sequence,
                    kind: match random.below(6) {
                        0 => RowKind::Delete,
                        1 => RowKind::UpdateAfter,
                        _ => RowKind::Insert,
                    },
                }
            })
            .collect();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.sequence))),
            Arc::new(Int8Array::from_iter_values(rows.iter().map(|row| row.kind as i8))),
        ];
        columns.extend(key_columns(keys));
        let values = rows
            .iter()
            .map(|row| (row.sequence % 7 > 0).then(|| format!("v{}", row.sequence)));
        columns.push(Arc::new(values.collect::<StringArray>()));
        let columns = RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns)
            .map_err(|error| LsmError::Internal(error.to_string()))?;
        let batch = KvBatch::new(&self.schema, columns, &self.codec, RowLevels::All(level))?;
        let meta = self.files.add(level, &[batch])?;
        let rows = (0..).zip(rows).map(|(position, row)| (position, row));
        Ok((meta, keys.iter().copied().zip(rows).collect()))
    }

    fn view(&self) -> LookupView {
        let runs = self.levels.iter().filter_map(|(&level, files)| {
            let files = files.iter().map(|(file, _)| Arc::clone(file)).collect();
            let run = self.order.sorted_run(files).ok()?;
            Some(LevelSortedRun { level, run })
        });
        LookupView {
            levels: LevelsView::new(LEVELS + 1, runs.collect::<Vec<LevelSortedRun>>()),
            deleted: Arc::new(self.deleted.clone()),
        }
    }

    fn question(&self, random: &mut SplitMix) -> Result<Question, LsmError> {
        let share = 1 + random.below(8);
        let wanted: Vec<u64> = (0..KEYS).filter(|_| random.below(share) == 0).collect();
        let columns = key_columns(&wanted);
        let columns: Vec<ArrayRef> = self
            .schema
            .key
            .iter()
            .filter_map(|&column| columns.get(column).map(Arc::clone))
            .collect();
        let needs = [
            LookupNeed::Existence,
            LookupNeed::Value,
            LookupNeed::Position,
            LookupNeed::PositionAndValue,
        ];
        Ok(Question {
            keys: SortedKeys {
                schema: Arc::clone(&self.schema),
                keys: self.codec.keys_of_columns(&columns)?,
                columns,
            },
            wanted,
            start_level: 1 + random.below(LEVELS as u64 + 1) as i32,
            need: needs[random.below(4) as usize % needs.len()],
        })
    }

    /// The first level's row that is not deleted: its file, position and content.
    fn right(&self, key: u64, start_level: i32) -> Option<(&str, u64, &Row)> {
        let files = self.levels.range(start_level..).flat_map(|(_, files)| files);
        files
            .filter_map(|(file, rows)| {
                let (position, row) = rows.get(&key)?;
                let deleted = self.deleted.get(&file.file_name);
                let lives = deleted.is_none_or(|deleted| !deleted.contains(*position));
                lives.then_some((file.file_name.as_str(), *position, row))
            })
            .next()
    }

    fn check(&self, question: &Question, hits: &Hits) -> Result<(), String> {
        let Question {
            wanted,
            start_level,
            need,
            ..
        } = question;
        if hits.found.len() != wanted.len() {
            return Err(format!("{} answers to {} keys", hits.found.len(), wanted.len()));
        }
        for (key, hit) in wanted.iter().zip(&hits.found) {
            let right = self.right(*key, *start_level);
            let wrong = |what: &str| {
                format!("key {key} from level {start_level}, {need:?}: {what}: {hit:?}, right is {right:?}")
            };
            let (hit, (file, position, row)) = match (hit, right) {
                (None, None) => continue,
                (Some(hit), Some(right)) => (hit, right),
                _ => return Err(wrong("found or not")),
            };
            if need.value() {
                let at = hit.row.zip(hits.rows.as_ref()).ok_or_else(|| wrong("no record"))?;
                if !is_row(at.1, at.0 as usize, *key, row) {
                    return Err(wrong("another record"));
                }
            }
            if need.position() {
                let at = hit.position.ok_or_else(|| wrong("no position"))?;
                if hits.files.get(at.0 as usize).map(AsRef::as_ref) != Some(file) || at.1 != position {
                    return Err(wrong("another position"));
                }
            }
        }
        Ok(())
    }
}

/// `k` and `name`, in such an order that both rise together.
fn key_columns(keys: &[u64]) -> Vec<ArrayRef> {
    vec![
        Arc::new(Int64Array::from_iter_values(keys.iter().map(|&key| key as i64))),
        Arc::new(StringArray::from_iter_values(
            keys.iter().map(|key| format!("n{:03}", key / 2)),
        )),
    ]
}

fn is_row(rows: &KvBatch, at: usize, key: u64, row: &Row) -> bool {
    if at >= rows.len() {
        return false;
    }
    let keys = rows
        .values()
        .first()
        .and_then(|keys| keys.as_primitive_opt::<Int64Type>());
    let value = rows.values().get(2).and_then(|values| values.as_string_opt::<i32>());
    let (Some(keys), Some(value)) = (keys, value) else {
        return false;
    };
    let value = value.iter().nth(at).flatten();
    let expected = (row.sequence % 7 > 0).then(|| format!("v{}", row.sequence));
    keys.value(at) == key as i64
        && rows.sequence_numbers().get(at) == Some(&row.sequence)
        && rows.kind(at) == row.kind
        && value == expected.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ScanLookup;

    #[tokio::test]
    async fn the_reference_keeps_it() {
        check_lookup(|files, _| ScanLookup::new(files)).await.unwrap();
    }

    /// A source that forgets about deleted rows.
    #[tokio::test]
    async fn forgotten_deletions_are_noticed() {
        #[derive(Debug)]
        struct Forgetful(ScanLookup);
        #[async_trait::async_trait]
        impl LookupSource for Forgetful {
            async fn lookup(
                &self,
                keys: &SortedKeys,
                view: &LookupView,
                start_level: i32,
                need: LookupNeed,
            ) -> Result<Hits, LsmError> {
                let view = LookupView {
                    levels: view.levels.clone(),
                    deleted: Arc::default(),
                };
                self.0.lookup(keys, &view, start_level, need).await
            }
            async fn written(&self, files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError> {
                self.0.written(files).await
            }
            fn dropped(&self, files: &[Arc<DataFileMeta>]) {
                self.0.dropped(files);
            }
        }
        let wrong = check_lookup(|files, _| Forgetful(ScanLookup::new(files)))
            .await
            .unwrap_err();
        assert!(wrong.contains("right is"), "{wrong}");
    }
}
