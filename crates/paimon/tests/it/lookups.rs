//! Look-ups of old rows: how much they take, and for how long.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use futures::TryStreamExt;
use paimon::format::env::{Budget, Env, TickingClock};
use paimon::format::types::RowKind;
use paimon::{Between, ChangelogBatch, CompactService, Context, ServiceSettings, StopSignal, TableSource};

use crate::support::{Place, commit, kv, kv_schema};

/// A place whose clock can be moved on, and the room for caches there.
fn clocked() -> (Place, TickingClock, Budget) {
    let dir = tempfile::tempdir().unwrap();
    let clock = TickingClock::new(1_704_067_200_000, 1);
    let env = Env {
        clock: Arc::new(clock.clone()),
        ..Env::fixed(dir.path())
    };
    let caches = env.cache.clone();
    let context = Context::new(env);
    (Place { dir, context }, clock, caches)
}

fn rows(text: &str) -> Vec<(&str, i32, &str)> {
    (0..500).map(|key| ("+I", key, text)).collect()
}

/// The rows that are looked up for one block of keys are more than the job's memory, and than their file's size tells.
#[tokio::test]
async fn narrow_deletes_over_wide_rows_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env {
        memory: Budget::new(16 << 20),
        ..Env::fixed(dir.path())
    };
    let context = Context::new(env);
    let place = Place { dir, context };
    let table = place.create(kv_schema().option("changelog-producer", "lookup")).await;
    let text = |key: i32| format!("{key:03}").repeat(100_000);
    let texts: Vec<String> = (0..64).map(text).collect();
    let wide: Vec<_> = (0..)
        .zip(&texts)
        .map(|(key, text)| ("+I", key, text.as_str()))
        .collect();
    let before = *commit(&table, &wide).await.last().unwrap();
    let deletes: Vec<_> = (0..64).map(|key| ("-D", key, "")).collect();
    let after = *commit(&table, &deletes).await.last().unwrap();
    let changes = table.changelog_builder().between(Between::snapshots(before, after));
    let changes: Vec<ChangelogBatch> = changes.read_between().unwrap().try_collect().await.unwrap();
    let mut next = 0;
    for batch in &changes {
        let keys = batch.columns.column(0).as_primitive::<Int32Type>();
        let values = batch.columns.column(1).as_string::<i32>();
        for row in 0..batch.columns.num_rows() {
            assert_eq!((batch.kinds.value(row), keys.value(row)), (RowKind::Delete as i8, next));
            assert!(values.value(row) == text(next), "the old row of key {next}");
            next += 1;
        }
    }
    assert_eq!(next, 64);
}

#[tokio::test]
async fn a_service_empties_the_caches_of_a_table_that_is_idle() {
    let (place, clock, caches) = clocked();
    let schema = kv_schema().option("changelog-producer", "lookup");
    let schema = schema
        .option("write-only", "true")
        .option("lookup.cache-file-retention", "1 min");
    let table = place.create(schema).await;
    let source = TableSource::One(table.clone());
    let mut service = CompactService::new(source, ServiceSettings::default(), StopSignal::never());
    for text in ["old", "new"] {
        commit(&table, &rows(text)).await;
        let round = service.next_round().await.unwrap().unwrap();
        assert_eq!((round.buckets.len(), round.failures.len()), (1, 0));
    }
    assert!(caches.free() < caches.total(), "nothing was looked up");
    clock.advance_ms(61_000);
    service.next_round().await.unwrap();
    assert_eq!(caches.free(), caches.total());
}

#[tokio::test]
async fn a_writer_empties_its_caches_when_it_is_idle() {
    let (place, clock, caches) = clocked();
    let schema = kv_schema().option("changelog-producer", "lookup");
    let table = place
        .create(schema.option("lookup.cache-file-retention", "1 min"))
        .await;
    let builder = table.write_builder();
    let (mut write, commit) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for (identifier, text) in (1..).zip(["old", "new"]) {
        let (batch, kinds) = kv(&rows(text));
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        commit
            .commit(identifier, write.prepare_commit(true).await.unwrap())
            .await
            .unwrap();
    }
    assert!(caches.free() < caches.total(), "nothing was looked up");
    clock.advance_ms(61_000);
    assert!(write.prepare_commit(true).await.unwrap().is_empty());
    assert_eq!(caches.free(), caches.total());
    write.abort().await;
}
