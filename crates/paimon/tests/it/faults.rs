//! Storage that fails in the middle.

use paimon::format::options::Options;
use paimon::{ErrorKind, Table};
use paimon_testkit::faulty::{CallKind, Fault, FaultPlan, Rule};

use crate::faulty_place::FaultyPlace;
use crate::support::{kv, kv_schema, rows, shape};

/// Eight level-0 files.
async fn table(place: &FaultyPlace) -> Table {
    let table = place.create(kv_schema().option("write-only", "true")).await;
    for round in 0..8 {
        crate::support::commit(&table, &[("+I", round, "x"), ("+I", 100, "y")]).await;
    }
    table
}

#[tokio::test]
async fn a_compaction_that_cannot_write_leaves_the_table_as_it_was() {
    for rule in [
        Rule::new(CallKind::Create, "bucket-0/*", Fault::Fail),
        Rule::new(CallKind::Finish, "bucket-0/*", Fault::Fail),
        Rule::new(CallKind::Read, "bucket-0/*", Fault::Fail),
        Rule::new(CallKind::Finish, "manifest/*", Fault::Fail).times(usize::MAX),
    ] {
        let place = FaultyPlace::new();
        let table = table(&place).await;
        let before = (rows(&table).await, shape(&table).await);
        place.storage.follow(FaultPlan::new().rule(rule.clone()));
        let result = table.compact_builder().full(true).run().await;
        place.storage.follow(FaultPlan::new());
        assert!(result.is_err(), "{rule:?} did not hit anything");
        assert_eq!((rows(&table).await, shape(&table).await), before, "{rule:?}");
        // The next one goes through.
        table.compact_builder().full(true).run().await.unwrap();
        assert_eq!(
            (rows(&table).await, shape(&table).await),
            (before.0, "L5:9".to_owned()),
            "{rule:?}"
        );
    }
}

#[tokio::test]
async fn a_lost_answer_to_the_publishing_call_is_looked_up() {
    let place = FaultyPlace::new();
    let table = table(&place).await;
    let before = rows(&table).await;
    place
        .storage
        .follow(FaultPlan::new().rule(Rule::new(CallKind::PutIfAbsent, "snapshot/*", Fault::LoseAnswer)));
    let report = table.compact_builder().full(true).run().await.unwrap();
    place.storage.follow(FaultPlan::new());
    assert_eq!(report.snapshot, Some(9));
    assert_eq!(table.snapshots(1).await.unwrap()[0].id, 9);
    assert_eq!(rows(&table).await, before);
}

#[tokio::test]
async fn an_unclear_commit_deletes_nothing() {
    let place = FaultyPlace::new();
    let table = table(&place).await;
    let before = rows(&table).await;
    let rule = Rule::new(CallKind::PutIfAbsent, "snapshot/*", Fault::LoseAnswer).times(1);
    let blind = Rule::new(CallKind::Read, "snapshot/*", Fault::Fail)
        .skip(1)
        .times(usize::MAX);
    place.storage.follow(FaultPlan::new().rule(rule).rule(blind));
    let error = table.compact_builder().full(true).run().await.unwrap_err();
    place.storage.follow(FaultPlan::new());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(rows(&table).await, before);
}

#[tokio::test]
async fn a_flush_that_fails_is_reported_and_aborts_cleanly() {
    let place = FaultyPlace::new();
    let table = table(&place).await;
    let before = rows(&table).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 1, "new")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    place
        .storage
        .follow(FaultPlan::new().rule(Rule::new(CallKind::Finish, "bucket-0/*", Fault::Fail)));
    let error = write.prepare_commit(true).await.unwrap_err();
    place.storage.follow(FaultPlan::new());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().starts_with("bucket-0/data-"), "{error}");
    write.abort().await;
    assert_eq!(rows(&table).await, before);
    assert_eq!(place.unreferenced(&table).await, [""; 0]);
    let reopened = Table::open("t", Options::new(), &place.context).await.unwrap();
    assert_eq!(rows(&reopened).await, before);
}
