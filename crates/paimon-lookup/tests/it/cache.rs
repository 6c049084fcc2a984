//! What stays on disk, and for how long.

use std::path::Path;
use std::time::Duration;

use futures::executor::block_on;
use paimon_format::env::{Budget, Env, TickingClock};
use paimon_format::sst::{SstCompression, SstSettings};
use paimon_lookup::{LookupFileCache, LookupSettings};
use paimon_lsm::lookup::LookupSource;
use paimon_merge::changelog::LookupNeed;

use crate::support::{Bucket, rows, sorted_keys, view};

/// Two files on different levels, 20 keys each.
fn two_files(bucket: &mut Bucket) {
    bucket.add(5, &rows(0..20, 1));
    bucket.add(4, &rows(100..120, 2));
}

#[test]
fn a_warm_file_is_not_built_again() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    let levels = bucket.levels();
    for _ in 0..3 {
        assert_eq!(bucket.values(&levels, &[3, 50, 110]), [Some(30), None, Some(1100)]);
    }
    assert_eq!(bucket.data.opened().len(), 2);
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (2, 2));
    let restarted = bucket.levels();
    bucket.values(&restarted, &[3]);
    assert_eq!(bucket.data.opened().len(), 2, "a new writer finds the files");
}

#[test]
fn files_outside_of_the_keys_are_not_touched() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    bucket.values(&bucket.levels(), &[-5, 3, 50, 99, 500]);
    assert_eq!(bucket.data.opened(), ["data-0001.parquet"]);
}

#[test]
fn the_file_unused_for_longest_makes_room() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    bucket.values(&bucket.levels(), &[3]);
    let one = bucket.cache.disk_bytes();
    bucket.settings.max_disk_bytes = one + one / 2;
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    let levels = bucket.levels();
    assert_eq!(bucket.values(&levels, &[3, 110]), [Some(30), Some(1100)]);
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (1, 1));
    drop(levels);
    bucket.settings.max_disk_bytes = 1;
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    let levels = bucket.levels();
    assert_eq!(
        bucket.values(&levels, &[3, 110]),
        [Some(30), Some(1100)],
        "heavier than the cache"
    );
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (0, 0));
}

#[test]
fn one_disk_budget_for_all() {
    let mut bucket = Bucket::building();
    bucket.settings.files = SstSettings {
        compression: SstCompression::None,
        ..SstSettings::default()
    };
    bucket.env.disk = Budget::new(1500);
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    two_files(&mut bucket);
    let levels = bucket.levels();
    assert_eq!(bucket.values(&levels, &[3]), [Some(30)]);
    let one = bucket.cache.disk_bytes();
    assert_eq!(bucket.env.disk.free(), 1500 - one);
    assert!(one * 2 > 1500, "{one} bytes a file");
    assert_eq!(bucket.values(&levels, &[110]), [Some(1100)]);
    assert_eq!(bucket.cache.len(), 1, "the second file took the room of the first");
    // Others hold the disk: files are read without a lookup file.
    bucket.cache.clear();
    let held = bucket.env.disk.try_reserve(1500).unwrap();
    assert_eq!(bucket.values(&levels, &[3, 110]), [Some(30), Some(1100)]);
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (0, 0));
    drop(held);
    assert_eq!(bucket.env.disk.free(), 1500);
}

/// As a full disk: what only makes look-ups faster does not stop them.
#[test]
fn files_are_read_themselves_where_the_local_disk_takes_none() {
    let mut bucket = Bucket::building();
    bucket.env.temp = bucket.temp.path().join("no-folder");
    std::fs::write(&bucket.env.temp, "").unwrap();
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    two_files(&mut bucket);
    let levels = bucket.levels();
    for _ in 0..2 {
        assert_eq!(bucket.values(&levels, &[3, 50, 110]), [Some(30), None, Some(1100)]);
    }
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (0, 1));
}

#[test]
fn idle_files_go() {
    let mut bucket = Bucket::building();
    let clock = TickingClock::new(1_000_000, 1);
    bucket.env.clock = std::sync::Arc::new(clock.clone());
    bucket.settings.file_retention = Duration::from_secs(60);
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    two_files(&mut bucket);
    let levels = bucket.levels();
    bucket.values(&levels, &[3, 110]);
    clock.advance_ms(40_000);
    bucket.values(&levels, &[3]);
    clock.advance_ms(40_000);
    bucket.cache.remove_idle();
    assert_eq!((bucket.cache.len(), bucket.on_disk()), (1, 1));
    clock.advance_ms(80_000);
    bucket.values(&levels, &[110]);
    assert_eq!(bucket.cache.len(), 1, "a look-up lets the idle one go, too");
}

#[test]
fn files_that_left_the_tree_go() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    let levels = bucket.levels();
    bucket.values(&levels, &[3, 110]);
    bucket.ask(&levels, &[3], 0, LookupNeed::Existence, &[]);
    assert_eq!(bucket.on_disk(), 3);
    levels.dropped(&bucket.files[..1]);
    assert_eq!(bucket.on_disk(), 1);
}

#[test]
fn the_last_clone_takes_the_files_with_it() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    bucket.values(&bucket.levels(), &[3, 110]);
    assert_eq!(bucket.on_disk(), 2);
    let temp = bucket.temp;
    drop(bucket.cache);
    assert_eq!(crate::support::on_disk(&temp), 0);
}

#[test]
fn a_broken_file_is_not_used_again() {
    let mut bucket = Bucket::building();
    two_files(&mut bucket);
    let levels = bucket.levels();
    bucket.values(&levels, &[3]);
    let path = std::fs::read_dir(bucket.temp.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let length = std::fs::metadata(&path).unwrap().len() as usize;
    std::fs::write(&path, vec![7; length]).unwrap();
    // What was read stays in memory; a new cache would not have it.
    bucket.settings.max_memory_bytes = 0;
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    let levels = bucket.levels();
    bucket.values(&levels, &[3]);
    let mut files = std::fs::read_dir(bucket.temp.path())
        .unwrap()
        .map(|file| file.unwrap().path());
    let path = files.find(|other| *other != path).unwrap_or(path);
    std::fs::write(&path, vec![7; length]).unwrap();
    assert_eq!(bucket.values(&levels, &[3]), [Some(30)]);
    assert_eq!(bucket.cache.len(), 0);
    assert_eq!(bucket.values(&levels, &[3]), [Some(30)], "and it is built again");
    assert_eq!(bucket.cache.len(), 1);
}

#[test]
fn a_file_that_vanished_is_built_again() {
    let damages: [fn(&Path) -> std::io::Result<()>; 2] = [
        |path| std::fs::remove_file(path),
        |path| std::fs::OpenOptions::new().write(true).open(path)?.set_len(10),
    ];
    for damage in damages {
        let mut bucket = Bucket::building();
        // What was read does not stay in memory.
        bucket.settings.max_memory_bytes = 0;
        bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
        two_files(&mut bucket);
        let levels = bucket.levels();
        assert_eq!(bucket.values(&levels, &[3]), [Some(30)]);
        let mut files = std::fs::read_dir(bucket.temp.path()).unwrap();
        damage(&files.next().unwrap().unwrap().path()).unwrap();
        assert_eq!(bucket.values(&levels, &[3]), [Some(30)]);
        assert_eq!(bucket.cache.len(), 0);
        assert_eq!(bucket.values(&levels, &[3]), [Some(30)], "and it is built again");
        assert_eq!((bucket.cache.len(), bucket.on_disk()), (1, 1));
    }
}

#[test]
fn idle_memory_goes() {
    let mut bucket = Bucket::building();
    let clock = TickingClock::new(1_000_000, 1);
    bucket.env.clock = std::sync::Arc::new(clock.clone());
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
    two_files(&mut bucket);
    let levels = bucket.levels();
    bucket.values(&levels, &[3, 110]);
    let (free, total) = (bucket.env.cache.free(), bucket.env.cache.total());
    assert!(free < total);
    clock.advance_ms(1_800_000);
    bucket.values(&levels, &[3]);
    clock.advance_ms(1_801_000);
    bucket.cache.remove_idle();
    let half = bucket.env.cache.free();
    assert!((free + 1..total).contains(&half), "{free} {half} {total}");
    clock.advance_ms(1_801_000);
    bucket.cache.remove_idle();
    assert_eq!(bucket.env.cache.free(), total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_want_a_file_one_builds_it() {
    let mut bucket = Bucket::building();
    let runtime = paimon_format::env::TokioRuntime::with_threads(tokio::runtime::Handle::current(), 2).unwrap();
    bucket.env = Env::system(std::sync::Arc::new(runtime), 1 << 28, 1 << 28, bucket.temp.path());
    bucket.cache = LookupFileCache::new(bucket.env.clone(), &LookupSettings::default());
    two_files(&mut bucket);
    let levels = bucket.levels();
    let tasks = (0..20).map(|i| {
        let levels = levels.clone();
        let keys = sorted_keys(&bucket.schema, &[i % 20, 100 + i % 20]);
        let view = view(&bucket.schema, &bucket.files, &[]);
        #[expect(clippy::disallowed_methods, reason = "the race needs tasks")]
        tokio::spawn(async move { levels.lookup(&keys, &view, 1, LookupNeed::Value, u64::MAX).await })
    });
    for hits in futures::future::join_all(tasks).await {
        assert_eq!(hits.unwrap().unwrap().found.iter().flatten().count(), 2);
    }
    assert_eq!(bucket.data.opened().len(), 2);
}

#[test]
fn keys_of_another_schema_are_refused() {
    let bucket = Bucket::building();
    let other = crate::support::schema(&[crate::support::STRING]);
    let keys = sorted_keys(&other, &[1]);
    let view = view(&bucket.schema, &[], &[]);
    let error = block_on(bucket.levels().lookup(&keys, &view, 1, LookupNeed::Value, u64::MAX)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "internal error: keys of schema 0 are looked up with schema 0"
    );
}
