//! Look-ups against a map a level.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::executor::block_on;
use paimon_format::sst::{SstCompression, SstSettings};
use paimon_format::types::{RowKind, TypeKind};
use paimon_lookup::{LookupLevels, LookupSettings};
use paimon_lsm::testing::check_lookup;
use paimon_merge::changelog::LookupNeed;
use proptest::prelude::*;

use crate::support::{Answer, Bucket, Record, STRING};

/// A file of the model.
#[derive(Debug)]
struct File {
    name: String,
    level: i32,
    rows: BTreeMap<i32, Record>,
    deleted: BTreeSet<u64>,
}

/// What a bucket does in a life.
#[derive(Clone, Debug)]
enum Step {
    Ask(BTreeSet<i32>, i32, LookupNeed),
    /// A row of a file is deleted, if the numbers hit one.
    Delete(usize, usize),
    /// All lookup files go.
    Evict,
    /// The writer is made anew, with the same cache.
    Restart,
}

fn any_need() -> impl Strategy<Value = LookupNeed> {
    prop_oneof![
        Just(LookupNeed::Existence),
        Just(LookupNeed::Value),
        Just(LookupNeed::Position),
        Just(LookupNeed::PositionAndValue),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (prop::collection::btree_set(-5..65_i32, 0..40), 0..7_i32, any_need())
            .prop_map(|(keys, level, need)| Step::Ask(keys, level, need)),
        3 => (0..12_usize, 0..60_usize).prop_map(|(file, row)| Step::Delete(file, row)),
        1 => Just(Step::Evict),
        1 => Just(Step::Restart),
    ]
}

fn any_key() -> impl Strategy<Value = Vec<TypeKind>> {
    prop_oneof![
        Just(vec![TypeKind::Int]),
        Just(vec![TypeKind::BigInt]),
        Just(vec![STRING]),
        Just(vec![TypeKind::Decimal(10, 2)]),
        Just(vec![TypeKind::Decimal(38, 2)]),
        Just(vec![TypeKind::Timestamp(3), TypeKind::Int]),
        Just(vec![TypeKind::Timestamp(6)]),
        Just(vec![TypeKind::VarBinary(10)]),
        Just(vec![STRING, TypeKind::Date]),
        Just(vec![TypeKind::Double, TypeKind::Decimal(38, 2), TypeKind::Boolean]),
    ]
}

fn any_rows(sequence: i64) -> impl Strategy<Value = BTreeMap<i32, Record>> {
    let kind = prop_oneof![4 => Just(RowKind::Insert), 1 => Just(RowKind::UpdateAfter), 1 => Just(RowKind::Delete)];
    prop::collection::btree_map(0..60_i32, (Just(sequence), kind, any::<i32>()), 0..40)
}

/// Rows of each level: two files of level 0, levels 1, 2 and 5.
fn any_levels() -> impl Strategy<Value = Vec<(i32, BTreeMap<i32, Record>)>> {
    let levels = [(5, 1), (2, 2), (1, 3), (0, 4), (0, 5)];
    let rows: Vec<_> = levels
        .into_iter()
        .map(|(level, sequence)| any_rows(sequence).prop_map(move |rows| (level, rows)))
        .collect();
    rows
}

fn expected(files: &[File], key: i32, start_level: i32, need: LookupNeed) -> Option<Answer> {
    let mut searched: Vec<&File> = files.iter().filter(|file| file.level >= start_level).collect();
    // Ascending levels; on level 0 the newer file first.
    searched.sort_by_key(|file| (file.level, file.rows.values().map(|row| -row.0).min()));
    searched
        .iter()
        .find_map(|file| {
            let row = file.rows.keys().position(|&other| other == key)? as u64;
            let record = *file.rows.get(&key)?;
            (!file.deleted.contains(&row)).then_some((file, record, row))
        })
        .map(|(file, record, row)| {
            let with_position = need.position() || (!file.deleted.is_empty());
            Answer {
                record: need.value().then_some((record, file.level)),
                place: with_position.then(|| (file.name.clone(), row)),
            }
        })
}

#[test]
fn the_checks_of_every_source() {
    for build_after in [0, 1, 3] {
        let bucket = Bucket::building();
        let settings = LookupSettings {
            build_after,
            ..LookupSettings::default()
        };
        block_on(check_lookup(|files, schema| {
            LookupLevels::builder(bucket.env.clone(), Arc::new(files), schema, bucket.cache.clone())
                .settings(settings.clone())
                .build()
                .unwrap()
        }))
        .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn look_ups_find_what_the_levels_hold(
        key in any_key(),
        levels in any_levels(),
        roll in 3_usize..20,
        steps in prop::collection::vec(any_step(), 1..25),
        build_after in prop_oneof![Just(0), Just(1), Just(3)],
        (block_bytes, bloom) in (0_usize..2000, any::<bool>()),
        max_disk_bytes in prop_oneof![3 => Just(u64::MAX), 1 => Just(3000_u64)],
    ) {
        let settings = LookupSettings {
            files: SstSettings {
                block_bytes,
                compression: SstCompression::Lz4,
                zstd_level: 1,
                bloom_fpp: bloom.then_some(0.05),
            },
            max_disk_bytes,
            max_memory_bytes: 4000,
            build_after,
            ..LookupSettings::default()
        };
        let mut bucket = Bucket::new(&key, settings);
        let mut files: Vec<File> = Vec::new();
        for (level, rows) in levels {
            let rows: Vec<(i32, Record)> = rows.into_iter().collect();
            let size = if level == 0 { rows.len().max(1) } else { roll };
            for part in rows.chunks(size) {
                let rows: BTreeMap<i32, Record> = part.iter().copied().collect();
                let name = bucket.add(level, &rows);
                files.push(File { name, level, rows, deleted: BTreeSet::new() });
            }
        }
        let mut source = bucket.levels();
        for step in steps {
            match step {
                Step::Evict => bucket.cache.clear(),
                Step::Restart => source = bucket.levels(),
                Step::Delete(file, row) => {
                    if let Some(file) = files.get_mut(file) && row < file.rows.len() {
                        file.deleted.insert(row as u64);
                    }
                }
                Step::Ask(keys, start_level, need) => {
                    let keys: Vec<i32> = keys.into_iter().collect();
                    let deleted: Vec<(&str, Vec<u64>)> = files
                        .iter()
                        .map(|file| (file.name.as_str(), file.deleted.iter().copied().collect()))
                        .collect();
                    let deleted: Vec<(&str, &[u64])> =
                        deleted.iter().map(|(name, rows)| (*name, rows.as_slice())).collect();
                    let found = bucket.ask(&source, &keys, start_level, need, &deleted);
                    let expected: Vec<_> =
                        keys.iter().map(|&key| expected(&files, key, start_level, need)).collect();
                    prop_assert_eq!(found, expected, "{:?} from level {}", keys, start_level);
                }
            }
        }
        prop_assert!(bucket.cache.disk_bytes() <= max_disk_bytes);
        drop(source);
        let temp = bucket.temp;
        drop(bucket.cache);
        prop_assert_eq!(crate::support::on_disk(&temp), 0, "nothing is left on disk");
    }
}
