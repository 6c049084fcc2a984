use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::executor::block_on;
use paimon_format::env::Env;
use paimon_format::error::ErrorKind;
use paimon_format::storage::testing::check_storage;
use paimon_format::storage::{MemoryStorage, Storage, StorageError};

use super::*;

fn faulty(plan: FaultPlan) -> FaultyStorage {
    let env = Env::fixed("unused");
    FaultyStorage::new(Arc::new(MemoryStorage::new(Arc::clone(&env.clock))), env, plan)
}

fn put(storage: &FaultyStorage, path: &str) -> Result<bool, StorageError> {
    block_on(storage.put_if_absent(path, Bytes::from_static(b"{}")))
}

#[test]
fn without_faults_it_keeps_the_promises_of_a_storage() {
    block_on(check_storage(&faulty(FaultPlan::new()))).unwrap();
}

#[test]
fn a_lost_answer_leaves_the_file_and_a_failure_does_not() {
    let storage = faulty(
        FaultPlan::new()
            .rule(Rule::new(
                CallKind::PutIfAbsent,
                "snapshot/snapshot-2",
                Fault::LoseAnswer,
            ))
            .rule(Rule::new(CallKind::PutIfAbsent, "snapshot/snapshot-3", Fault::Fail)),
    );
    let error = put(&storage, "snapshot/snapshot-2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "snapshot/snapshot-2: storage unavailable: time-out by plan"
    );
    assert!(!put(&storage, "snapshot/snapshot-2").unwrap());
    let error = put(&storage, "snapshot/snapshot-3").unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().contains("503")),
        (ErrorKind::Unavailable, true)
    );
    assert!(put(&storage, "snapshot/snapshot-3").unwrap());
}

#[test]
fn rules_match_paths_and_count_calls() {
    let rule = Rule::new(CallKind::Finish, "*/bucket-*.parquet", Fault::Fail)
        .skip(1)
        .times(2);
    let storage = faulty(FaultPlan::new().rule(rule));
    let finish = |path: &str| block_on(async { storage.create(path).await?.finish().await });
    let answers = [
        "a/bucket-0/1.parquet",
        "a/bucket-0/2.parquet",
        "a/b/c/bucket-1/3.parquet",
        "a/bucket-0/4.parquet",
    ];
    assert_eq!(answers.map(|path| finish(path).is_ok()), [true, false, false, true]);
    assert!(finish("a/bucket-0/5.avro").is_ok());
    let calls = storage.take_calls().into_iter().map(|call| call.to_string());
    assert_eq!(
        calls.skip(2).take(2).collect::<Vec<_>>(),
        ["Create a/bucket-0/2.parquet", "Finish a/bucket-0/2.parquet ! Fail"]
    );
    assert!(storage.calls().is_empty());
}

#[test]
fn a_refused_head_is_no_answer_about_the_file() {
    let rule = Rule::new(CallKind::Size, "*", Fault::Refuse).times(usize::MAX);
    let storage = faulty(FaultPlan::new().rule(rule));
    let error = block_on(storage.size("absent")).unwrap_err();
    assert_eq!(error.to_string(), "absent: refused by the storage: 403 by plan");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    storage.follow(FaultPlan::new());
    assert_eq!(block_on(storage.size("absent")).unwrap(), None);
}

#[test]
fn a_slow_listing_is_a_listing() {
    let rule = Rule::new(CallKind::List, "snapshot", Fault::Delay(Duration::from_secs(60)));
    let storage = faulty(FaultPlan::new().rule(rule));
    put(&storage, "snapshot/snapshot-1").unwrap();
    let files: Vec<_> = block_on(storage.list("snapshot").try_collect()).unwrap();
    assert_eq!(files.len(), 1);
}

#[test]
fn random_faults_repeat_with_their_seed() {
    let run = |seed| {
        let storage = faulty(FaultPlan::new().random(seed, 20));
        for call in 0..200 {
            // Good or bad, the log tells.
            let _ = put(&storage, &format!("file-{call}"));
        }
        storage.calls()
    };
    let calls = run(1);
    assert_eq!(calls, run(1));
    assert_ne!(calls, run(2));
    let with = |fault| calls.iter().filter(|call| call.fault == Some(fault)).count();
    let (failed, lost) = (with(Fault::Fail), with(Fault::LoseAnswer));
    assert!(
        (20..=60).contains(&(failed + lost)),
        "{failed} + {lost} of 200 at 20 percent"
    );
    assert!(failed > 0 && lost > 0);
}
