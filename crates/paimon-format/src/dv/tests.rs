//! Vectors on disk and in a bucket, against sets of numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::ErrorKind;
use crate::env::{CountingIds, TickingClock};
use crate::meta::{
    BucketPaths, DataFileMeta, DeletionVectorRange, IndexFileMeta, IndexFileNames, PathSettings, TablePaths,
};
use crate::options::Options;
use crate::row::BinaryRow;
use crate::storage::{FileRoots, MemoryStorage, Storage};

struct Bucket {
    storage: Arc<MemoryStorage>,
    paths: BucketPaths,
    ids: CountingIds,
}

impl Bucket {
    fn new() -> Self {
        let settings = PathSettings::from_options(Vec::new(), &Options::new()).unwrap();
        Self {
            storage: Arc::new(MemoryStorage::new(Arc::new(TickingClock::new(0, 1)))),
            paths: TablePaths::new(settings).bucket(&BinaryRow::empty(), 0).unwrap(),
            ids: CountingIds::default(),
        }
    }

    fn index(&self, kind: BitmapKind) -> DeletionVectorsIndexFile {
        let storage: Arc<MemoryStorage> = Arc::clone(&self.storage);
        let names = Arc::new(IndexFileNames::new(Arc::new(self.ids.clone())));
        DeletionVectorsIndexFile::new(FileRoots::new(storage), self.paths.clone(), names, kind)
    }

    fn bytes(&self, file: &IndexFileMeta) -> Bytes {
        block_on(self.storage.read_all(&format!("index/{}", file.file_name))).unwrap()
    }

    /// Puts other bytes in the place of a file.
    fn put(&self, file: &IndexFileMeta, bytes: Vec<u8>) {
        block_on(self.storage.put(&format!("index/{}", file.file_name), bytes.into())).unwrap();
    }
}

fn live(names: &[&str]) -> Vec<Arc<DataFileMeta>> {
    let file = |name: &&str| Arc::new(crate::meta::tests::data_file(name));
    names.iter().map(file).collect()
}

/// One vector, written.
fn written(bucket: &Bucket, kind: BitmapKind, vector: &DeletionVector) -> IndexFileMeta {
    block_on(bucket.index(kind).write([("data-1.parquet", vector)])).unwrap()
}

fn read(bucket: &Bucket, file: &IndexFileMeta) -> Result<BTreeMap<String, Arc<DeletionVector>>, crate::FormatError> {
    block_on(bucket.index(BitmapKind::default()).read(file, |_| true))
}

/// Bytes as `org.apache.paimon.deletionvectors` writes them.
#[rstest]
#[case(
    BitmapKind::Bits32,
    "01000000185e43f2d03a300000010000000000010010000000010005008c77fe55",
    24
)]
#[case(
    BitmapKind::Bits64,
    "0100000024d1d339640100000000000000000000003a300000010000000000010010000000010005003e6e302f",
    44
)]
fn layout(#[case] kind: BitmapKind, #[case] expected: &str, #[case] length: i32) {
    let bucket = Bucket::new();
    let vector = DeletionVector::from([1, 5]);
    let file = written(&bucket, kind, &vector);
    let bytes: String = bucket.bytes(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bytes, expected);
    let range = DeletionVectorRange {
        data_file_name: "data-1.parquet".to_owned(),
        offset: 1,
        length,
        cardinality: Some(2),
    };
    assert_eq!(file.dv_ranges.as_deref(), Some(&[range][..]));
    assert_eq!((file.index_type.as_str(), file.row_count), ("DELETION_VECTORS", 1));
    assert_eq!(file.file_size, bucket.bytes(&file).len() as i64);
}

#[test]
fn runs_are_compressed() {
    let bucket = Bucket::new();
    for kind in [BitmapKind::Bits32, BitmapKind::Bits64] {
        let vector: DeletionVector = (0..1_000_000).collect();
        let file = written(&bucket, kind, &vector);
        assert!(file.file_size < 400, "{} bytes", file.file_size);
        assert_eq!(*read(&bucket, &file).unwrap()["data-1.parquet"], vector);
    }
}

#[test]
fn a_bitmap_that_java_wrote_in_vain_is_passed_over() {
    // Rows 1 and 2^33: Java writes an empty bitmap for the key 1.
    let mut bitmap = 3_u64.to_le_bytes().to_vec();
    for (key, rows) in [(0_u32, vec![1_u16]), (1, vec![]), (2, vec![0])] {
        bitmap.extend(key.to_le_bytes());
        bitmap.extend(12346_u32.to_le_bytes());
        bitmap.extend((rows.len() as u32).to_le_bytes());
        for row in rows {
            bitmap.extend([0, 0, 0, 0]);
            bitmap.extend(16_u32.to_le_bytes());
            bitmap.extend(row.to_le_bytes());
        }
    }
    let expected = DeletionVector::from([1, 1 << 33]);
    assert_eq!(bitmap64::decode(&bitmap).unwrap(), expected);
    let mut ours = Vec::new();
    bitmap64::encode(&expected, &mut ours).unwrap();
    assert_eq!(bitmap64::decode(&ours).unwrap(), expected);
}

#[rstest]
#[case(BitmapKind::Bits32, (1 << 31) - 1, "; option 'deletion-vectors.bitmap64' = 'true' allows more")]
#[case(BitmapKind::Bits64, 0x7fff_fffe_8000_0000, "")]
fn rows_have_a_limit(#[case] kind: BitmapKind, #[case] last: u64, #[case] alternative: &str) {
    let bucket = Bucket::new();
    let mut maintainer = BucketDvMaintainer::new(bucket.index(kind));
    assert!(maintainer.notify_new_deletion("data-1.parquet", last).unwrap());
    let expected = format!(
        "data-1.parquet: row {} cannot be deleted: the last possible is {last}{alternative}",
        last + 1
    );
    let errors = [
        maintainer.notify_new_deletion("data-1.parquet", last + 1).unwrap_err(),
        maintainer
            .merge_new_deletion("data-1.parquet", &DeletionVector::from([0, last + 1]))
            .unwrap_err(),
        block_on(
            bucket
                .index(kind)
                .write([("data-1.parquet", &DeletionVector::from([last + 1]))]),
        )
        .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Invalid, expected.clone())
        );
    }
    let written = block_on(maintainer.write_deletion_vectors_index()).unwrap().unwrap();
    let vectors = read(&bucket, &written.file).unwrap();
    assert_eq!(*vectors["data-1.parquet"], DeletionVector::from([last]));
}

/// A change to a file's bytes or metadata, and what reading it says.
#[rstest]
#[case::version(|bytes: &mut Vec<u8>, _: &mut DeletionVectorRange| bytes[0] = 2, "version Some([2]) of deletion vectors, expected [1]")]
#[case::size(|bytes: &mut Vec<u8>, _: &mut DeletionVectorRange| bytes[4] += 1, "deletion vector of data-1.parquet at 1: size 25, but the metadata says 24")]
#[case::length(|_: &mut Vec<u8>, range: &mut DeletionVectorRange| range.length -= 1, "deletion vector of data-1.parquet at 1: size 24, but the metadata says 23")]
#[case::magic(|bytes: &mut Vec<u8>, _: &mut DeletionVectorRange| bytes[8] = 0, "deletion vector of data-1.parquet at 1: magic number 1581511168, expected 1581511376 or 3520280932")]
#[case::checksum(|bytes: &mut Vec<u8>, _: &mut DeletionVectorRange| *bytes.last_mut().unwrap() = 0, "deletion vector of data-1.parquet at 1: checksum 8c77fe00, but its bytes have 8c77fe55")]
#[case::rows(|_: &mut Vec<u8>, range: &mut DeletionVectorRange| range.cardinality = Some(3), "deletion vector of data-1.parquet at 1: 2 rows, but the metadata says 3")]
#[case::beyond(|_: &mut Vec<u8>, range: &mut DeletionVectorRange| range.length = i32::MAX, "its metadata has a deletion vector of data-1.parquet at 1, 2147483647 bytes long, in a file of 33 bytes")]
#[case::negative(|_: &mut Vec<u8>, range: &mut DeletionVectorRange| range.offset = -1, "its metadata has a deletion vector of data-1.parquet at -1, 24 bytes long, in a file of 33 bytes")]
fn damage_is_named(#[case] damage: fn(&mut Vec<u8>, &mut DeletionVectorRange), #[case] message: &str) {
    let bucket = Bucket::new();
    let mut file = written(&bucket, BitmapKind::Bits32, &DeletionVector::from([1, 5]));
    let mut bytes = bucket.bytes(&file).to_vec();
    damage(&mut bytes, &mut file.dv_ranges.as_mut().unwrap()[0]);
    bucket.put(&file, bytes);
    let error = read(&bucket, &file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.to_string(),
        format!("index/{}: corrupt: {message}", file.file_name)
    );
}

#[test]
fn a_file_that_is_shorter_than_its_metadata_says_is_named() {
    let bucket = Bucket::new();
    let file = written(&bucket, BitmapKind::Bits64, &DeletionVector::from([1, 5]));
    let bytes = bucket.bytes(&file).to_vec();
    for length in 0..bytes.len() {
        bucket.put(&file, bytes[..length].to_vec());
        let error = read(&bucket, &file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}: {error}");
        assert!(error.to_string().contains(&file.file_name), "{error}");
    }
}

#[test]
fn a_vector_without_rows_is_not_written() {
    let bucket = Bucket::new();
    let index = bucket.index(BitmapKind::Bits32);
    let file = block_on(index.write([("data-1.parquet", &DeletionVector::new())])).unwrap();
    assert_eq!(bucket.bytes(&file).as_ref(), [1]);
    assert_eq!((file.row_count, file.dv_ranges.as_deref()), (0, Some(&[][..])));
}

#[test]
fn a_snapshot_does_not_change() {
    let bucket = Bucket::new();
    let mut maintainer = BucketDvMaintainer::new(bucket.index(BitmapKind::Bits32));
    maintainer.notify_new_deletion("a", 1).unwrap();
    maintainer.notify_new_deletion("b", 1).unwrap();
    let before = maintainer.snapshot();
    maintainer.notify_new_deletion("a", 2).unwrap();
    maintainer.remove_deletion_vector_of("b");
    assert_eq!(*before["a"], DeletionVector::from([1]));
    assert_eq!(*before["b"], DeletionVector::from([1]));
    assert_eq!(
        **maintainer.deletion_vector_of("a").unwrap(),
        DeletionVector::from([1, 2])
    );
    assert_eq!(maintainer.deletion_vector_of("b"), None);
}

#[test]
fn vectors_of_files_that_left_are_not_restored() {
    let bucket = Bucket::new();
    let index = bucket.index(BitmapKind::Bits32);
    let (one, two) = (DeletionVector::from([1]), DeletionVector::from([2]));
    let file = block_on(index.write([("gone", &one), ("there", &two)])).unwrap();
    let other = crate::meta::tests::index_file("index-of-hashes");
    let (files, data) = ([Arc::new(other), Arc::new(file)], live(&["there"]));
    let restored = block_on(BucketDvMaintainer::restore(index, &files, &data)).unwrap();
    assert!(!restored.is_modified());
    assert_eq!(
        *restored.snapshot(),
        HashMap::from([("there".to_owned(), Arc::new(two))])
    );
}

#[test]
fn an_index_file_can_be_removed() {
    let bucket = Bucket::new();
    let file = written(&bucket, BitmapKind::Bits32, &DeletionVector::from([1]));
    block_on(bucket.index(BitmapKind::Bits32).delete(&file)).unwrap();
    assert_eq!(read(&bucket, &file).unwrap_err().kind(), ErrorKind::NotFound);
}

#[derive(Clone, Debug)]
enum Op {
    Delete(u8, u64),
    Merge(u8, Vec<u64>),
    Remove(u8),
    Write,
    Reopen,
}

/// Rows in clusters, so that arrays, bitmaps and runs all occur.
fn rows(kind: BitmapKind) -> impl Strategy<Value = BTreeSet<u64>> {
    let starts = match kind {
        BitmapKind::Bits32 => prop_oneof![0..200_000_u64, Just(kind.max_row() - 70_000)].boxed(),
        BitmapKind::Bits64 => prop_oneof![
            0..200_000_u64,
            Just((1 << 32) - 35_000),
            Just((7 << 32) + 5),
            Just(kind.max_row() - 70_000)
        ]
        .boxed(),
    };
    let cluster = (starts, 1..3_u64, 1..7_000_u64)
        .prop_map(|(start, step, count)| (start..).step_by(step as usize).take(count as usize));
    prop::collection::vec(cluster, 0..5).prop_map(|clusters| clusters.into_iter().flatten().collect())
}

fn kinds() -> impl Strategy<Value = BitmapKind> {
    prop_oneof![Just(BitmapKind::Bits32), Just(BitmapKind::Bits64)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read((kind, sets) in kinds().prop_flat_map(|kind| {
        (Just(kind), prop::collection::vec(rows(kind), 0..4))
    })) {
        let bucket = Bucket::new();
        let names: Vec<String> = (0..sets.len()).map(|file| format!("data-{file}.parquet")).collect();
        let vectors: Vec<DeletionVector> = sets.iter().map(|rows| rows.iter().copied().collect()).collect();
        let named = names.iter().map(String::as_str).zip(&vectors);
        let file = block_on(bucket.index(kind).write(named)).unwrap();
        let found = read(&bucket, &file).unwrap();
        for ((name, rows), vector) in names.iter().zip(&sets).zip(&vectors) {
            match found.get(name) {
                Some(found) => {
                    prop_assert_eq!(found.as_ref(), vector);
                    prop_assert!(found.iter().eq(rows.iter().copied()));
                    prop_assert_eq!(found.cardinality(), rows.len() as u64);
                }
                None => prop_assert!(rows.is_empty()),
            }
        }
    }

    /// A flipped bit is an error that names the file: the checksum covers all but the size and the version, which are checked.
    #[test]
    fn a_flipped_bit_is_found(
        (kind, rows) in kinds().prop_flat_map(|kind| (Just(kind), rows(kind))),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let bucket = Bucket::new();
        let file = written(&bucket, kind, &rows.iter().copied().chain([3]).collect());
        let mut bytes = bucket.bytes(&file).to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        bucket.put(&file, bytes);
        let error = read(&bucket, &file).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        prop_assert!(error.to_string().contains(&file.file_name));
    }

    /// Any bytes as a bitmap: a vector or an error, no panic.
    #[test]
    fn any_bytes_are_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), cookie in any::<bool>()) {
        if cookie && bytes.len() > 24 {
            bytes[0..8].copy_from_slice(&1_u64.to_le_bytes());
            bytes[12..14].copy_from_slice(&12347_u16.to_le_bytes());
        }
        let _ = bitmap64::decode(&bytes);
        let _ = bitmap32::decode(bytes.get(12..).unwrap_or_default());
    }

    #[test]
    fn a_bucket_is_a_map_of_sets(
        mut kind in kinds(),
        ops in prop::collection::vec(prop_oneof![
            4 => (0..3_u8, 0..50_u64).prop_map(|(file, row)| Op::Delete(file, row)),
            2 => (0..3_u8, prop::collection::vec(0..50_u64, 0..9)).prop_map(|(file, rows)| Op::Merge(file, rows)),
            1 => (0..3_u8).prop_map(Op::Remove),
            1 => Just(Op::Write),
            1 => Just(Op::Reopen),
        ], 0..40),
    ) {
        let bucket = Bucket::new();
        let mut maintainer = BucketDvMaintainer::new(bucket.index(kind));
        let mut model: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let (mut stored, mut committed) = (None, BTreeMap::new());
        for op in ops {
            match op {
                Op::Delete(file, row) => {
                    let file = format!("f{file}");
                    let added = maintainer.notify_new_deletion(&file, row).unwrap();
                    prop_assert_eq!(added, model.entry(file).or_default().insert(row));
                }
                Op::Merge(file, rows) => {
                    let (file, vector) = (format!("f{file}"), rows.iter().copied().collect());
                    let added = maintainer.merge_new_deletion(&file, &vector).unwrap();
                    let set = model.entry(file).or_default();
                    let before = set.len();
                    set.extend(rows);
                    prop_assert_eq!(added, set.len() > before);
                }
                Op::Remove(file) => {
                    let file = format!("f{file}");
                    let had = model.remove(&file).is_some_and(|rows| !rows.is_empty());
                    prop_assert_eq!(maintainer.remove_deletion_vector_of(&file), had);
                }
                Op::Write => {
                    let modified = maintainer.is_modified();
                    let written = block_on(maintainer.write_deletion_vectors_index()).unwrap();
                    prop_assert_eq!(written.is_some(), modified);
                    prop_assert!(!maintainer.is_modified());
                    committed = model.clone();
                    if let Some(written) = written {
                        let replaced: Vec<IndexFileMeta> = stored.replace(written.file).into_iter().collect();
                        prop_assert_eq!(written.replaced, replaced);
                    }
                }
                Op::Reopen => {
                    let files: Vec<Arc<IndexFileMeta>> = stored.iter().cloned().map(Arc::new).collect();
                    let data = live(&["f0", "f1", "f2"]);
                    // With the other kind: vectors that are there are read all the same.
                    kind = match kind {
                        BitmapKind::Bits32 => BitmapKind::Bits64,
                        BitmapKind::Bits64 => BitmapKind::Bits32,
                    };
                    maintainer = block_on(BucketDvMaintainer::restore(bucket.index(kind), &files, &data)).unwrap();
                    model = committed.clone();
                }
            }
            model.retain(|_, rows| !rows.is_empty());
            let now: BTreeMap<String, BTreeSet<u64>> = maintainer
                .snapshot()
                .iter()
                .map(|(file, vector)| (file.clone(), vector.iter().collect()))
                .collect();
            prop_assert_eq!(&now, &model);
        }
    }
}
