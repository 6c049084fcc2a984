//! Parquet files read in windows: what is fetched, how large batches are, which rows are left out.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, BinaryArray, Int8Array, Int64Array, RecordBatch, StringArray};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Budget;
use paimon_format::formats::parquet::decode;
use paimon_format::kv::{
    BatchLimit, ExpiredBefore, KeyCodec, KeyRange, KvBatch, KvFileSettings, KvFiles, KvSchema, PageCache, ReadSpec,
    RowLevels, TableKvFiles,
};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::predicate::Predicate;
use paimon_format::storage::{FileStatus, MemoryStorage, Storage, StorageError, StorageWriter};
use paimon_format::types::{DataField, DataType, Datum, TypeKind};
use rstest::rstest;

use super::table::{block_on, env, files_in, read, read_all, records};

const ROWS: usize = 50_000;

/// Storage that remembers what was read.
struct Watched {
    inner: MemoryStorage,
    reads: Mutex<Vec<Vec<Range<u64>>>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[async_trait]
impl Storage for Watched {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        self.reads.lock().unwrap().push(ranges.to_vec());
        self.inner.read(path, ranges).await
    }
    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        self.inner.read_all(path).await
    }
    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.inner.size(path).await
    }
    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        self.inner.create(path).await
    }
    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        self.inner.put_if_absent(path, bytes).await
    }
    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.inner.put(path, bytes).await
    }
    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        self.inner.list(dir)
    }
    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.inner.delete(path).await
    }
}

struct Table {
    schema: Arc<KvSchema>,
    storage: Arc<Watched>,
    files: TableKvFiles,
}

/// `k` BIGINT key, `s` STRING, `b` BYTES, `n` BIGINT.
fn table(options: &[(&str, &str)]) -> Table {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, "s", DataType::nullable(TypeKind::VarChar(u32::MAX >> 1))),
        DataField::new(2, "b", DataType::nullable(TypeKind::VarBinary(u32::MAX >> 1))),
        DataField::new(3, "n", DataType::nullable(TypeKind::BigInt)),
    ];
    let schema = Arc::new(KvSchema::new(0, fields, vec![0], None).unwrap());
    let storage = Arc::new(Watched {
        inner: MemoryStorage::new(env().clock),
        reads: Mutex::default(),
    });
    let settings = KvFileSettings::from_options(&options.iter().copied().collect()).unwrap();
    let files = files_in(&storage, &schema, settings);
    Table { schema, storage, files }
}

fn batch(schema: &Arc<KvSchema>, keys: Range<i64>, text: impl Fn(i64) -> String) -> KvBatch {
    let rows = keys.end - keys.start;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(keys.clone())),
        Arc::new(Int8Array::from(vec![0; rows as usize])),
        Arc::new(Int64Array::from_iter_values(keys.clone())),
        Arc::new(StringArray::from_iter(
            keys.clone().map(|key| (key % 7 != 0).then(|| text(key))),
        )),
        Arc::new(BinaryArray::from_iter(
            keys.clone().map(|key| (key % 5 != 0).then(|| key.to_be_bytes())),
        )),
        Arc::new(Int64Array::from_iter(
            keys.map(|key| (key % 3 != 0).then_some(key * 1000)),
        )),
    ];
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    KvBatch::new(schema, columns, &KeyCodec::new(schema).unwrap(), RowLevels::All(0)).unwrap()
}

fn write(table: &Table, batches: &[KvBatch]) -> DataFileMeta {
    let mut sink = table.files.data_sink(5, FileSource::Compact);
    for batch in batches {
        block_on(sink.write(batch)).unwrap();
    }
    let mut files = block_on(sink.finish()).unwrap();
    assert_eq!(files.len(), 1);
    table.storage.reads.lock().unwrap().clear();
    files.remove(0)
}

fn many_pages() -> (Table, KvBatch, DataFileMeta) {
    let options = [
        ("parquet.page.size", "16384"),
        ("parquet.page.row.count.limit", "3000"),
        ("parquet.dictionary.page.size", "4096"),
        ("file.compression", "none"),
        ("file.block-size", "1 mb"),
    ];
    let table = table(&options);
    let all = batch(&table.schema, 0..ROWS as i64, |key| {
        format!("text {key} {}", "x".repeat((key % 50) as usize))
    });
    let file = write(&table, std::slice::from_ref(&all));
    (table, all, file)
}

#[test]
fn windows_fetch_every_byte_once_and_hold_little() {
    let (table, all, file) = many_pages();
    let window_bytes = 1 << 20;
    let spec = ReadSpec {
        window_bytes,
        batch: BatchLimit {
            rows: 1000,
            bytes: 8 << 20,
        },
        ..read_all(&table.schema)
    };
    let batches = read(&table.files, &file, spec).unwrap();
    assert_eq!(records(&batches), records(&[all]));
    assert!(batches.iter().all(|batch| batch.len() <= 1000));
    let reads = std::mem::take(&mut *table.storage.reads.lock().unwrap());
    let mut ranges: Vec<Range<u64>> = reads.iter().flatten().cloned().collect();
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        // The end of the file comes with the footer.
        assert!(
            pair[0].end <= pair[1].start || pair[1].end == file.file_size as u64,
            "{pair:?} overlap"
        );
    }
    let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!(total <= file.file_size as u64 + (64 << 10));
    assert!(reads.len() > 10, "{} reads", reads.len());
    for read in &reads[1..] {
        let bytes: u64 = read.iter().map(|range| range.end - range.start).sum();
        assert!(bytes <= window_bytes as u64 / 2, "{bytes} bytes in one window");
    }
}

#[test]
fn only_wanted_columns_are_fetched() {
    let (table, all, file) = many_pages();
    let few = Arc::new(table.schema.project(&[3]).unwrap());
    let batches = read(&table.files, &file, read_all(&few)).unwrap();
    let wanted: Vec<_> = records(&[all])
        .into_iter()
        .map(|row| serde_json::json!([row[0], row[1], row[2], row[5]]))
        .collect();
    assert_eq!(records(&batches), wanted);
    let reads = std::mem::take(&mut *table.storage.reads.lock().unwrap());
    let total: u64 = reads.iter().flatten().map(|range| range.end - range.start).sum();
    assert!(total < file.file_size as u64 / 2, "{total} of {}", file.file_size);
}

/// Reads that share pages get the rows that others get; what is kept is not fetched again.
#[rstest]
#[case::all_of_it(1 << 30)]
#[case::a_part(300_000)]
#[case::nothing(1000)]
fn pages_are_shared(#[case] room: u64) {
    let options = [
        ("parquet.page.row.count.limit", "3000"),
        ("parquet.dictionary.page.size", "4096"),
        ("file.block-size", "200 kb"),
    ];
    let table = table(&options);
    let all = batch(&table.schema, 0..ROWS as i64, |key| format!("text {}", key * 37 % 1009));
    let file = write(&table, std::slice::from_ref(&all));
    let (own, shared) = (Budget::new(room), Budget::new(1 << 30));
    let cache = PageCache::new([own.clone(), shared.clone()]);
    let spec = |min: i64, max: i64, page_cache| ReadSpec {
        keys: KeyRange {
            min: Some(vec![Datum::Int64(min)]),
            max: Some(vec![Datum::Int64(max)]),
        },
        positions: true,
        window_bytes: 1 << 20,
        page_cache,
        ..read_all(&table.schema)
    };
    let mut fetched = Vec::new();
    for (min, max) in [
        (20_000, 31_000),
        (25_000, 26_000),
        (0, 50_000),
        (7, 49_000),
        (0, 50_000),
    ] {
        let expected = read(&table.files, &file, spec(min, max, None)).unwrap();
        table.storage.reads.lock().unwrap().clear();
        let found = read(&table.files, &file, spec(min, max, Some(cache.clone()))).unwrap();
        assert_eq!(records(&found), records(&expected), "keys {min} to {max}");
        let positions = |batches: &[KvBatch]| -> Vec<u64> {
            let positions = batches.iter().map(|batch| batch.positions.as_ref().unwrap());
            positions.flat_map(|positions| positions.iter().copied()).collect()
        };
        assert_eq!(positions(&found), positions(&expected));
        let reads = std::mem::take(&mut *table.storage.reads.lock().unwrap());
        fetched.push(reads.iter().flatten().map(|range| range.end - range.start).sum::<u64>());
        assert_eq!(
            (own.free(), shared.free()),
            (room - cache.bytes(), (1 << 30) - cache.bytes())
        );
    }
    // The footer is always read.
    let footer = 64 << 10;
    match room {
        // Not even one page of rows.
        1000 => assert!(cache.bytes() < 1000 && fetched[4] == fetched[2], "{fetched:?}"),
        300_000 => assert!(cache.bytes() > 200_000 && fetched[4] > footer && fetched[4] < fetched[0] + fetched[2]),
        _ => assert!(
            fetched[1] <= footer && fetched[4] <= footer && fetched[2] > footer,
            "{fetched:?}"
        ),
    }
    cache.remove(&["another", &file.file_name]);
    assert_eq!((cache.bytes(), own.free()), (0, room));
}

#[test]
fn a_small_file_is_read_in_one_call() {
    let table = table(&[]);
    let all = batch(&table.schema, 0..100, |key| key.to_string());
    let file = write(&table, std::slice::from_ref(&all));
    let batches = read(&table.files, &file, read_all(&table.schema)).unwrap();
    assert_eq!(records(&batches), records(&[all]));
    assert_eq!(table.storage.reads.lock().unwrap().len(), 1);
}

#[test]
fn keys_outside_of_a_range_are_not_fetched() {
    let (table, all, file) = many_pages();
    for (min, max) in [
        (Some(20_000), Some(20_010)),
        (None, Some(5)),
        (Some(49_990), None),
        (Some(-5), Some(-1)),
    ] {
        let key = |key: Option<i64>| key.map(|key| vec![Datum::Int64(key)]);
        let spec = ReadSpec {
            keys: KeyRange {
                min: key(min),
                max: key(max),
            },
            positions: true,
            ..read_all(&table.schema)
        };
        let batches = read(&table.files, &file, spec).unwrap();
        let wanted = min.unwrap_or(0).max(0)..=max.unwrap_or(ROWS as i64 - 1);
        let inside: Vec<KvBatch> = if wanted.is_empty() {
            Vec::new()
        } else {
            let length = (wanted.end() - wanted.start() + 1) as usize;
            vec![all.slice(*wanted.start() as usize, length)]
        };
        let found = records(&batches);
        for record in records(&inside) {
            assert!(found.contains(&record));
        }
        assert!(found.len() <= 6000, "{} rows for {wanted:?}", found.len());
        for batch in &batches {
            let positions: Vec<i64> = batch
                .positions
                .as_ref()
                .unwrap()
                .iter()
                .map(|&position| position as i64)
                .collect();
            assert_eq!(positions, batch.sequence_numbers());
        }
        let reads = std::mem::take(&mut *table.storage.reads.lock().unwrap());
        let total: u64 = reads.iter().flatten().map(|range| range.end - range.start).sum();
        assert!(
            total < file.file_size as u64 / 4,
            "{total} bytes of {} for {wanted:?}",
            file.file_size
        );
    }
}

/// Statistics save reading, and never a row that passes.
#[rstest]
#[case("n BETWEEN 20000000 AND 20001000", 6000)]
#[case("n = 1000 OR n = 49999000", 6000)]
#[case("n < 0", 0)]
#[case("n IS NULL AND s < 'a'", 0)]
#[case("s LIKE 'text 4999%'", 8000)]
#[case("s >= 'text 7' AND n <= 9000000", 9000)]
#[case("k < 100 AND n > 40000000", 0)]
#[case("b = x'0000000000002710'", 6000)]
#[case("n IS NULL", ROWS)]
#[case("NOT (n > 5000000 AND k > 3)", 12_000)]
fn rows_that_statistics_refute_are_not_fetched(#[case] filter: &str, #[case] at_most: usize) {
    let (table, all, file) = many_pages();
    let filter = Predicate::parse(filter, &table.schema.fields).unwrap();
    let deleted: DeletionVector = (0..ROWS as u64).step_by(10).collect();
    let spec = |filter| ReadSpec {
        filter,
        deleted: Some(Arc::new(deleted.clone())),
        positions: true,
        ..read_all(&table.schema)
    };
    let passing = |batches: &[KvBatch]| {
        let batches = batches.iter().map(|batch| {
            let passes = filter.evaluate(&batch.columns).unwrap();
            let rows = (0..batch.len()).filter(|&row| passes.value(row));
            rows.map(|row| batch.sequence_numbers()[row]).collect::<Vec<_>>()
        });
        batches.collect::<Vec<_>>().concat()
    };
    let pruned = read(&table.files, &file, spec(Some(Arc::new(filter.clone())))).unwrap();
    let reads = std::mem::take(&mut *table.storage.reads.lock().unwrap());
    let whole = read(&table.files, &file, spec(None)).unwrap();
    assert_eq!(passing(&pruned), passing(&whole));
    for batch in &pruned {
        let positions = batch.positions.as_ref().unwrap().iter();
        let positions: Vec<i64> = positions.map(|&position| position as i64).collect();
        assert_eq!(positions, batch.sequence_numbers());
    }
    let rows: usize = pruned.iter().map(KvBatch::len).sum();
    assert!(rows <= at_most, "{rows} rows");
    let total: u64 = reads.iter().flatten().map(|range| range.end - range.start).sum();
    let bound = file.file_size as u64 / if at_most == ROWS { 1 } else { 3 };
    assert!(total <= bound, "{total} bytes of {}", file.file_size);
    assert_eq!(all.len(), ROWS);
}

#[test]
fn deleted_and_expired_rows_do_not_come_out() {
    let (table, all, file) = many_pages();
    let deleted: DeletionVector = (0..ROWS as u64)
        .filter(|row| row % 10 == 3 || (8000..20_000).contains(row))
        .collect();
    let limit = 30_000_000;
    let spec = ReadSpec {
        deleted: Some(Arc::new(deleted.clone())),
        expired_before: Some(ExpiredBefore {
            column: 3,
            seconds: limit,
        }),
        positions: true,
        ..read_all(&table.schema)
    };
    let batches = read(&table.files, &file, spec).unwrap();
    // Times that are null are kept.
    let kept = |row: u64| !deleted.contains(row) && (row.is_multiple_of(3) || row as i64 * 1000 >= limit);
    let wanted: Vec<u64> = (0..ROWS as u64).filter(|&row| kept(row)).collect();
    let positions: Vec<u64> = batches
        .iter()
        .flat_map(|batch| batch.positions.as_ref().unwrap().iter().copied())
        .collect();
    assert_eq!(positions, wanted);
    let keys: Vec<i64> = batches
        .iter()
        .flat_map(|batch| batch.sequence_numbers().to_vec())
        .collect();
    assert_eq!(keys, wanted.iter().map(|&row| row as i64).collect::<Vec<_>>());
    assert_eq!(all.len(), ROWS);
}

#[test]
fn batches_are_limited_by_bytes() {
    let table = table(&[("parquet.page.row.count.limit", "1000")]);
    // Wide rows in the middle of narrow ones.
    let all = batch(&table.schema, 0..20_000, |key| {
        if (10_000..10_500).contains(&key) {
            format!("{key}{}", "y".repeat(20_000))
        } else {
            key.to_string()
        }
    });
    let file = write(&table, std::slice::from_ref(&all));
    let limit = 1 << 20;
    let spec = ReadSpec {
        batch: BatchLimit {
            rows: 4096,
            bytes: limit,
        },
        ..read_all(&table.schema)
    };
    let batches = read(&table.files, &file, spec).unwrap();
    assert_eq!(records(&batches), records(&[all]));
    assert!(batches.iter().any(|batch| batch.len() == 4096));
    // Pages say only how large their rows are on average: twice the limit is what a batch can reach here.
    for batch in &batches {
        assert!(
            batch.columns.get_array_memory_size() <= 3 * limit,
            "{} bytes",
            batch.columns.get_array_memory_size()
        );
    }
}

#[test]
fn a_row_larger_than_the_window_comes_through() {
    let table = table(&[]);
    let all = batch(&table.schema, 1..4, |key| "z".repeat(key as usize * 400_000));
    let file = write(&table, std::slice::from_ref(&all));
    let spec = ReadSpec {
        window_bytes: 1024,
        batch: BatchLimit { rows: 10, bytes: 1000 },
        ..read_all(&table.schema)
    };
    let batches = read(&table.files, &file, spec).unwrap();
    assert_eq!(records(&batches), records(&[all]));
    assert_eq!(batches.len(), 3);
}

#[test]
fn decoding_alone_gives_the_same_rows() {
    let (table, all, file) = many_pages();
    let bytes = block_on(table.storage.read_all(&format!("bucket-0/{}", file.file_name))).unwrap();
    let decoded: Vec<RecordBatch> = decode(bytes, &table.schema.fields, 8192)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(decoded.iter().all(|batch| batch.num_rows() <= 8192));
    let decoded = arrow_select::concat::concat_batches(decoded[0].schema_ref(), &decoded).unwrap();
    assert_eq!(decoded.columns(), all.values());
}
