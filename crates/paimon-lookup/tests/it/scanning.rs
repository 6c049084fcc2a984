//! When a data file is read itself, and when a lookup file is built of it.

use paimon_format::types::{RowKind, TypeKind};
use paimon_lookup::LookupSettings;
use paimon_merge::changelog::LookupNeed;

use crate::support::{Answer, Bucket, rows};

fn bucket() -> Bucket {
    let mut bucket = Bucket::new(&[TypeKind::Int], LookupSettings::default());
    // A key in a lookup file costs about one row: small blocks.
    bucket.settings.files.block_bytes = 1;
    bucket.add(5, &rows(0..1000, 1));
    bucket
}

#[test]
fn a_cold_start_builds_nothing() {
    let bucket = bucket();
    let levels = bucket.levels();
    assert_eq!(bucket.values(&levels, &[3, 500, 5000]), [Some(30), Some(5000), None]);
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (0, 0));
}

#[test]
fn single_keys_build_a_file_when_enough_was_read_in_vain() {
    let bucket = bucket();
    let levels = bucket.levels();
    // In memory the whole file is read for a key: after three times its rows a file is built.
    for key in 0..4 {
        assert_eq!(bucket.values(&levels, &[key]), [Some(key * 10)]);
        let expected = usize::from(key == 3);
        // 1000 rows were read for the price of one or none.
        assert_eq!(bucket.cache.len(), expected, "after {} keys", key + 1);
    }
    let opened = bucket.data.opened().len();
    assert_eq!(bucket.values(&levels, &[7]), [Some(70)]);
    assert_eq!(bucket.data.opened().len(), opened);
}

#[test]
fn many_keys_at_once_never_build_one() {
    let mut bucket = bucket();
    bucket.settings.files.block_bytes = 64 << 10;
    let levels = bucket.levels();
    let keys: Vec<i32> = (0..1000).step_by(2).collect();
    let expected: Vec<Option<i32>> = keys.iter().map(|key| Some(key * 10)).collect();
    for _ in 0..10 {
        assert_eq!(bucket.values(&levels, &keys), expected);
    }
    assert_eq!(bucket.cache.len(), 0);
}

/// (1, a) deleted by a vector, found in a warm lookup file: no hit, and the search goes on below.
#[test]
fn a_deleted_row_is_no_hit_and_the_search_goes_on() {
    for build_after in [0, 3] {
        let mut bucket = Bucket::building();
        bucket.settings.build_after = build_after;
        let old = bucket.add(5, &rows([1, 2], 1));
        let new = bucket.add(4, &rows([1, 3], 2));
        let levels = bucket.levels();
        for need in [LookupNeed::Value, LookupNeed::PositionAndValue] {
            let found = |deleted: &[(&str, &[u64])]| {
                let answers = bucket.ask(&levels, &[1, 2, 3], 1, need, deleted);
                let level = |answer: Option<Answer>| Some(answer?.record?.1);
                answers.into_iter().map(level).collect::<Vec<_>>()
            };
            assert_eq!(found(&[]), [Some(4), Some(5), Some(4)]);
            assert_eq!(found(&[(&new, &[0])]), [Some(5), Some(5), Some(4)]);
            assert_eq!(found(&[(&new, &[0]), (&old, &[0])]), [None, Some(5), Some(4)]);
        }
    }
}

#[test]
fn a_retract_is_a_hit() {
    let mut bucket = Bucket::building();
    bucket.add(5, &rows([1], 1));
    bucket.add(4, &[(1, (2, RowKind::Delete, 7))].into());
    let answers = bucket.ask(&bucket.levels(), &[1], 1, LookupNeed::Value, &[]);
    let expected = Answer {
        record: Some(((2, RowKind::Delete, 7), 4)),
        place: None,
    };
    assert_eq!(answers, [Some(expected)]);
}
