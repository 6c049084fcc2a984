//! A bucket for tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, RecordBatch};
use futures::executor::block_on;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Env;
use paimon_format::kv::{KeyCodec, KvBatch, KvFiles, KvSchema, RowLevels};
use paimon_format::meta::DataFileMeta;
use paimon_format::types::{DataField, DataType, Datum, RowKind, TypeKind, array_from_datums};
use paimon_lookup::{LookupFileCache, LookupLevels, LookupSettings};
use paimon_lsm::levels::{KeyOrder, Levels};
use paimon_lsm::lookup::{LookupSource, LookupView, SortedKeys};
use paimon_lsm::testing::MemoryKvFiles;
use paimon_merge::changelog::LookupNeed;
use tempfile::TempDir;

pub(crate) const STRING: TypeKind = TypeKind::VarChar(i32::MAX as u32);

/// A record: sequence number, kind, value.
pub(crate) type Record = (i64, RowKind, i32);

/// What a look-up says about a key: the record and its level, the file and its row, as far as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) record: Option<(Record, i32)>,
    pub(crate) place: Option<(String, u64)>,
}

/// The columns of a table: a key of these types, an INT and a text made of it.
pub(crate) fn schema(key: &[TypeKind]) -> Arc<KvSchema> {
    let mut fields: Vec<DataField> = key
        .iter()
        .zip(0..)
        .map(|(kind, id)| DataField::new(id, format!("k{id}"), DataType::not_null(kind.clone())))
        .collect();
    let next = fields.len() as i32;
    fields.push(DataField::new(next, "v", DataType::nullable(TypeKind::Int)));
    fields.push(DataField::new(next + 1, "text", DataType::nullable(STRING)));
    Arc::new(KvSchema::new(0, fields, (0..key.len()).collect(), None).unwrap())
}

/// Values that have the order of the numbers they are made of: column `i` of a key.
fn datum(kind: &TypeKind, number: i32) -> Datum {
    match kind {
        TypeKind::Int => Datum::Int32(number),
        TypeKind::BigInt => Datum::Int64(i64::from(number) * 1_000_000_007),
        TypeKind::Double => Datum::Float64(f64::from(number) / 8.0),
        TypeKind::Date => Datum::Date(number),
        TypeKind::Boolean => Datum::Boolean(number > 0),
        TypeKind::Decimal(38, _) => Datum::Decimal(i128::from(number) * 10_i128.pow(25)),
        TypeKind::Decimal(..) => Datum::Decimal(number.into()),
        TypeKind::Timestamp(3) => Datum::Timestamp {
            millis: number.into(),
            nanos: 0,
        },
        TypeKind::Timestamp(_) => Datum::Timestamp {
            millis: i64::from(number).div_euclid(3),
            nanos: number.rem_euclid(3) * 1000,
        },
        TypeKind::VarBinary(_) => Datum::Bytes((number ^ i32::MIN).to_be_bytes().to_vec()),
        _ => Datum::String(format!("key {:010}", i64::from(number) - i64::from(i32::MIN))),
    }
}

/// The key columns of numbers: one column of the number, or its parts.
pub(crate) fn key_columns(schema: &KvSchema, numbers: &[i32]) -> Vec<ArrayRef> {
    let fields: Vec<&DataField> = schema.key_fields().collect();
    let parts = |number: i32| match fields.len() {
        1 => vec![number],
        2 => vec![number.div_euclid(4), number.rem_euclid(4)],
        _ => vec![number.div_euclid(8), number.rem_euclid(8) / 2, number.rem_euclid(2)],
    };
    (0..fields.len())
        .map(|i| {
            let kind = &fields[i].data_type.kind;
            let values: Vec<Datum> = numbers.iter().map(|number| datum(kind, parts(*number)[i])).collect();
            array_from_datums(fields[i], &values).unwrap()
        })
        .collect()
}

pub(crate) fn batch(schema: &Arc<KvSchema>, level: i32, rows: &BTreeMap<i32, Record>) -> KvBatch {
    let numbers: Vec<i32> = rows.keys().copied().collect();
    let sequences: Int64Array = rows.values().map(|row| Some(row.0)).collect();
    let kinds: Int8Array = rows.values().map(|row| Some(row.1 as i8)).collect();
    let values: Vec<Datum> = rows.values().map(|row| Datum::Int32(row.2)).collect();
    let texts: Vec<Datum> = rows
        .values()
        .map(|row| Datum::String(format!("text of {}", row.2)))
        .collect();
    let mut columns: Vec<ArrayRef> = vec![Arc::new(sequences), Arc::new(kinds)];
    columns.extend(key_columns(schema, &numbers));
    let others = schema.fields.iter().skip(schema.key.len());
    for (field, values) in others.zip([values, texts]) {
        columns.push(array_from_datums(field, &values).unwrap());
    }
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    let codec = KeyCodec::new(schema).unwrap();
    KvBatch::new(schema, columns, &codec, RowLevels::All(level)).unwrap()
}

pub(crate) fn sorted_keys(schema: &Arc<KvSchema>, numbers: &[i32]) -> SortedKeys {
    let columns = key_columns(schema, numbers);
    SortedKeys {
        schema: Arc::clone(schema),
        keys: KeyCodec::new(schema).unwrap().keys_of_columns(&columns).unwrap(),
        columns,
    }
}

/// Rows of a key with numbers, values by number: 1 → value 10 and so on.
pub(crate) fn rows(keys: impl IntoIterator<Item = i32>, sequence: i64) -> BTreeMap<i32, Record> {
    keys.into_iter()
        .map(|key| (key, (sequence, RowKind::Insert, key * 10)))
        .collect()
}

/// The answers as text of numbers, and a check that they fit together.
pub(crate) fn answers(
    schema: &KvSchema,
    keys: &SortedKeys,
    hits: &paimon_merge::changelog::Hits,
) -> Vec<Option<Answer>> {
    assert_eq!(hits.found.len(), keys.keys.len());
    hits.found
        .iter()
        .enumerate()
        .map(|(key, hit)| {
            let hit = (*hit)?;
            let record = hit.row.map(|row| {
                let (rows, row) = (hits.rows.as_ref().unwrap(), row as usize);
                assert!(rows.keys.equal(row, &keys.keys, key), "a row of another key");
                let value = rows.values()[schema.key.len()].as_primitive::<Int32Type>().value(row);
                if let Some(text) = rows.values().get(schema.key.len() + 1) {
                    let text = text.as_string_opt::<i32>();
                    assert!(text.is_none_or(|text| text.is_null(row) || text.value(row) == format!("text of {value}")));
                }
                (
                    (rows.sequence_numbers()[row], rows.kind(row), value),
                    rows.levels.get(row),
                )
            });
            let place = hit
                .position
                .map(|(file, row)| (hits.files[file as usize].to_string(), row));
            Some(Answer { record, place })
        })
        .collect()
}

/// The view of files and deleted rows.
pub(crate) fn view(schema: &KvSchema, files: &[Arc<DataFileMeta>], deleted: &[(&str, &[u64])]) -> LookupView {
    let levels = Levels::restore(KeyOrder::new(schema).unwrap(), files.to_vec(), 6).unwrap();
    let deleted: HashMap<String, Arc<DeletionVector>> = deleted
        .iter()
        .map(|(file, rows)| ((*file).to_owned(), Arc::new(rows.iter().copied().collect())))
        .collect();
    LookupView {
        levels: levels.view(),
        deleted: Arc::new(deleted),
    }
}

/// A bucket in memory.
pub(crate) struct Bucket {
    pub(crate) env: Env,
    pub(crate) schema: Arc<KvSchema>,
    pub(crate) data: MemoryKvFiles,
    pub(crate) files: Vec<Arc<DataFileMeta>>,
    pub(crate) settings: LookupSettings,
    pub(crate) cache: LookupFileCache,
    pub(crate) temp: TempDir,
}

impl Bucket {
    pub(crate) fn new(key: &[TypeKind], settings: LookupSettings) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let env = Env::fixed(temp.path());
        let schema = schema(key);
        Self {
            data: MemoryKvFiles::new(Arc::clone(&schema)),
            cache: LookupFileCache::new(env.clone(), &settings),
            env,
            schema,
            files: Vec::new(),
            settings,
            temp,
        }
    }

    /// A bucket of an INT key whose lookup files are built at once.
    pub(crate) fn building() -> Self {
        let settings = LookupSettings {
            build_after: 0,
            ..LookupSettings::default()
        };
        Self::new(&[TypeKind::Int], settings)
    }

    /// Adds a file; gives its name.
    pub(crate) fn add(&mut self, level: i32, rows: &BTreeMap<i32, Record>) -> String {
        let file = self.data.add(level, &[batch(&self.schema, level, rows)]).unwrap();
        let name = file.file_name.clone();
        self.files.push(file);
        name
    }

    pub(crate) fn levels(&self) -> LookupLevels {
        let files: Arc<dyn KvFiles> = Arc::new(self.data.clone());
        LookupLevels::builder(self.env.clone(), files, Arc::clone(&self.schema), self.cache.clone())
            .settings(self.settings.clone())
            .build()
            .unwrap()
    }

    pub(crate) fn ask(
        &self,
        levels: &LookupLevels,
        numbers: &[i32],
        start_level: i32,
        need: LookupNeed,
        deleted: &[(&str, &[u64])],
    ) -> Vec<Option<Answer>> {
        let keys = sorted_keys(&self.schema, numbers);
        let view = view(&self.schema, &self.files, deleted);
        let hits = block_on(levels.lookup(&keys, &view, start_level, need, u64::MAX)).unwrap();
        answers(&self.schema, &keys, &hits)
    }

    /// The values found, all needs but the value left out.
    pub(crate) fn values(&self, levels: &LookupLevels, numbers: &[i32]) -> Vec<Option<i32>> {
        let answers = self.ask(levels, numbers, 0, LookupNeed::Value, &[]);
        let value = |answer: Option<Answer>| Some(answer?.record?.0.2);
        answers.into_iter().map(value).collect()
    }

    /// The lookup files on disk.
    pub(crate) fn on_disk(&self) -> usize {
        on_disk(&self.temp)
    }
}

pub(crate) fn on_disk(temp: &TempDir) -> usize {
    std::fs::read_dir(temp.path()).unwrap().count()
}
