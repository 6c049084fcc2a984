//! Work that is asked to stop, at each of the moments at which it looks: nothing of it is left, or all of it is committed.

use std::path::Path;

use paimon::format::options::Options;
use paimon::{CompactService, SchemaBuilder, Selection, ServiceSettings, StopSignal, Table, TableSource};

use crate::support::{Place, commit, copy, kv, kv_schema, rows, stop_after, strays};

/// Eight commits of two keys each, one of them the same every time.
async fn table(place: &Place, schema: SchemaBuilder) -> Table {
    let table = place.create(schema).await;
    for key in 0..8 {
        commit(&table, &[("+I", key, "x"), ("+U", 100, &key.to_string())]).await;
    }
    table
}

/// After how many looks work is stopped: threads make some thousands in the time of a compaction.
fn ever_later() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0), |polls| Some(polls + polls / 2 + 1))
}

/// Stops work on a copy of the table ever later, until it ends before. Gives how often it was stopped and had committed nothing.
///
/// `work` says whether it was stopped.
async fn check(place: &Place, table: &Table, work: impl AsyncFn(&Table, StopSignal) -> bool) -> usize {
    let expected = rows(&to_the_end(table, place, "expected").await).await;
    let latest = async |table: &Table| table.snapshot_store().latest_id().await.unwrap();
    let before = latest(table).await;
    let mut stopped_at_once = 0;
    for polls in ever_later() {
        let copy = copy_of(table, place, &format!("copy-{polls}")).await;
        let stopped = work(&copy, stop_after(polls)).await;
        assert_eq!(strays(&copy).await, [""; 0], "after {polls} polls");
        let untouched = latest(&copy).await == before;
        stopped_at_once += usize::from(stopped && untouched);
        assert!(stopped || !untouched, "neither stopped nor done after {polls} polls");
        let done = to_the_end(&copy, place, &format!("done-{polls}")).await;
        assert_eq!(rows(&done).await, expected, "after {polls} polls");
        if !stopped {
            break;
        }
    }
    stopped_at_once
}

async fn copy_of(table: &Table, place: &Place, name: &str) -> Table {
    let location = place.location(name);
    copy(Path::new(table.location()), Path::new(&location));
    Table::open(&location, Options::new(), &place.context).await.unwrap()
}

/// A copy in which all is compacted.
async fn to_the_end(table: &Table, place: &Place, name: &str) -> Table {
    let copy = copy_of(table, place, name).await;
    copy.compact_builder().full(true).run().await.unwrap();
    copy
}

async fn compact(table: &Table, stop: StopSignal) -> bool {
    let report = table.compact_builder().full(true).jobs(1).stop_on(stop).run().await;
    report.unwrap().stopped
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction() {
    let place = Place::on_threads();
    let table = table(&place, kv_schema().option("bucket", "2").option("write-only", "true")).await;
    assert!(check(&place, &table, compact).await > 1);
}

fn postponed() -> SchemaBuilder {
    kv_schema()
        .option("bucket", "-2")
        .option("postpone.default-bucket-num", "2")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_get_their_buckets() {
    let place = Place::on_threads();
    let table = table(&place, postponed()).await;
    assert!(check(&place, &table, compact).await > 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_get_their_buckets_from_a_service() {
    let place = Place::on_threads();
    let table = table(&place, postponed()).await;
    let rounds = async |table: &Table, stop: StopSignal| {
        let source = TableSource::One(table.clone());
        let mut service = CompactService::new(source, ServiceSettings::default(), stop.clone());
        service.next_round().await.unwrap();
        stop.is_asked()
    };
    assert!(check(&place, &table, rounds).await > 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_number_of_buckets() {
    let place = Place::on_threads();
    let table = table(&place, kv_schema()).await;
    let rescale = async |table: &Table, stop: StopSignal| {
        let rescaled = table.rescale(3, &Selection::all(), &stop).await.unwrap();
        assert_eq!(rescaled.stopped, rescaled.partitions.is_empty());
        rescaled.stopped
    };
    assert!(check(&place, &table, rescale).await > 1);
}

/// A writer whose commit waits for the compactions that are due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer() {
    let place = Place::on_threads();
    let table = table(&place, kv_schema().option("write-only", "true")).await;
    let mut cut = 0;
    for polls in ever_later() {
        let copy = copy_of(&table, &place, &format!("copy-{polls}")).await;
        let options: Options = [("write-only", "false")].into_iter().collect();
        let stop = stop_after(polls);
        let builder = copy
            .with_options(&options)
            .unwrap()
            .write_builder()
            .stop_on(stop.clone());
        let mut writer = builder.new_write().unwrap();
        let (batch, kinds) = kv(&[("+I", 50, "y")]);
        writer.write_with_kinds(&batch, &kinds).await.unwrap();
        let messages = writer.prepare_commit(true).await.unwrap();
        let compacted = messages
            .iter()
            .any(|message| !message.increment.compact.compact_after.is_empty());
        cut += usize::from(!compacted);
        assert!(compacted || stop.is_asked(), "after {polls} polls");
        let was_asked = stop.is_asked();
        builder.new_commit().unwrap().abort(&messages).await.unwrap();
        writer.abort().await;
        assert_eq!(strays(&copy).await, [""; 0], "after {polls} polls");
        if !was_asked {
            break;
        }
    }
    assert!(cut > 1, "cut {cut} times");
}
