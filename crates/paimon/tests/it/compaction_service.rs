//! Compaction for good.

#![expect(clippy::disallowed_methods, reason = "several tasks that know nothing of each other")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use async_trait::async_trait;
use paimon::format::env::{Env, TickingClock};
use paimon::format::meta::DataFileMeta;
use paimon::format::options::Options;
use paimon::format::row::BinaryRow;
use paimon::format::storage::{Storage, StorageError, StorageFactory, UrlStorageFactory};
use paimon::{
    BucketFailure, Catalog, CompactService, Context, FileSystemCatalog, Identifier, RoundReport, SchemaBuilder,
    Selection, ServiceSettings, StopSignal, Table, TableSchema, TableSource, TimeTravel,
};
use paimon_testkit::faulty::{CallKind, Fault, FaultPlan, FaultyStorage, Rule};

use crate::support::{Place, commit, commit_batch, copy, kinds, kv, kv_schema, rows, shape, stop_after, strays, with};

fn one(table: &Table, settings: ServiceSettings) -> CompactService {
    CompactService::new(TableSource::One(table.clone()), settings, StopSignal::never())
}

/// Keys of partitions.
fn partitioned() -> SchemaBuilder {
    TableSchema::builder()
        .column("p", "STRING".parse().unwrap())
        .column("k", "INT".parse().unwrap())
        .partition_keys(["p"])
        .primary_key(["p", "k"])
        .option("bucket", "1")
        .option("write-only", "true")
}

fn row(partition: &str, key: i32) -> RecordBatch {
    let columns: [(&str, ArrayRef); 2] = [
        ("p", Arc::new(StringArray::from(vec![partition]))),
        ("k", Arc::new(Int32Array::from(vec![key]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

async fn write_to(table: &Table, partition: &str, key: i32) {
    commit_batch(table, &row(partition, key), &kinds(["+I"].into_iter())).await;
}

/// Commits a file that is not what the metadata says.
async fn write_wrong(table: &Table, partition: &str, change: impl Fn(&mut DataFileMeta)) {
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    write.write(&row(partition, 1)).await.unwrap();
    let mut messages = write.prepare_commit(true).await.unwrap();
    write.abort().await;
    let files = messages
        .iter_mut()
        .flat_map(|message| &mut message.increment.data.new_files);
    files.for_each(|file| change(Arc::make_mut(file)));
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
}

fn compacted(report: &RoundReport) -> Vec<String> {
    let buckets = report.buckets.iter();
    buckets
        .map(|bucket| format!("{}: {} runs", bucket.report.bucket, bucket.runs))
        .collect()
}

#[tokio::test]
async fn the_bucket_with_most_debt_comes_first() {
    let place = Place::new();
    let table = place.create(partitioned()).await;
    for (partition, commits) in [("a", 5), ("b", 9), ("c", 2), ("d", 7)] {
        for key in 0..commits {
            write_to(&table, partition, key).await;
        }
    }
    let before = rows(&table).await;
    let dry = one(&table, ServiceSettings::default()).dry_run().await.unwrap();
    assert_eq!((dry.buckets_looked_at, dry.waiting.0), (4, 3));
    let order = ["p=b/bucket-0: 9 runs", "p=d/bucket-0: 7 runs", "p=a/bucket-0: 5 runs"];
    assert_eq!(compacted(&dry), order);
    assert_eq!(table.snapshots(1).await.unwrap()[0].id, 23);

    let settings = ServiceSettings {
        jobs: 1,
        ..ServiceSettings::default()
    };
    let mut service = one(&table, settings);
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), order);
    assert_eq!(rows(&table).await, before);
    // Nothing is left, and nothing is looked at again before something changes.
    let looked_at: Vec<usize> = {
        let mut looked_at = Vec::new();
        for _ in 0..3 {
            looked_at.push(service.next_round().await.unwrap().unwrap().tables_looked_at);
        }
        looked_at
    };
    assert_eq!(looked_at, [1, 0, 0]);
    for key in 0..9 {
        write_to(&table, "c", key).await;
    }
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=c/bucket-0: 11 runs"]);
}

#[tokio::test]
async fn only_partitions_that_have_been_idle_are_compacted() {
    let place = Place::new();
    let clock = TickingClock::new(1_704_067_200_000, 1).with_offset_ms(-3_600_000);
    let env = Env {
        clock: Arc::new(clock.clone()),
        ..Env::fixed(place.dir.path())
    };
    let table = Table::create(&place.location("t"), partitioned(), &Context::new(env))
        .await
        .unwrap();
    write_to(&table, "old", 1).await;
    write_to(&table, "both", 1).await;
    clock.advance_ms(60_000);
    write_to(&table, "both", 2).await;
    write_to(&table, "new", 1).await;
    let idle = Duration::from_secs(30);
    let settings = ServiceSettings {
        full: true,
        idle: Some(idle),
        ..ServiceSettings::default()
    };
    let mut service = one(&table, settings);
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=old/bucket-0: 1 runs"]);
    let report = table.compact_builder().full(true).idle(idle).run().await.unwrap();
    assert_eq!((report.buckets_looked_at, report.buckets.len()), (1, 0));

    // Nothing is written, but time passes.
    assert_eq!(service.next_round().await.unwrap().unwrap().tables_looked_at, 1);
    clock.advance_ms(61_000);
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=both/bucket-0: 2 runs", "p=new/bucket-0: 1 runs"]);
}

#[tokio::test]
async fn tables_that_fit_are_found_and_one_that_fails_does_not_stop_the_others() {
    let place = Place::new();
    let catalog = FileSystemCatalog::new(&place.location("wh"), place.context.clone());
    let catalog: Arc<dyn Catalog> = Arc::new(catalog);
    let make = |database: &'static str, table: &'static str| {
        let catalog = Arc::clone(&catalog);
        async move {
            let schema = kv_schema().option("write-only", "true");
            let table = catalog
                .create_table(&Identifier::new(database, table), schema)
                .await
                .unwrap();
            for key in 0..6 {
                commit(&table, &[("+I", key, "x")]).await;
            }
            table
        }
    };
    make("shop", "orders").await;
    let broken = make("shop", "old_orders").await;
    make("shop", "customers").await;
    make("test", "orders").await;
    std::fs::write(Path::new(broken.location()).join("schema/schema-0"), "{").unwrap();
    let source = TableSource::Matching {
        catalog: Arc::clone(&catalog),
        pattern: "shop.*orders*".parse().unwrap(),
        options: Options::new(),
        context: place.context.clone(),
    };
    let mut service = CompactService::new(source, ServiceSettings::default(), StopSignal::never());
    let round = service.next_round().await.unwrap().unwrap();
    let tables: Vec<&str> = round.buckets.iter().map(|bucket| bucket.table.as_str()).collect();
    assert_eq!(tables, ["shop.orders"]);
    let failures: Vec<_> = round.failures.iter().map(|failure| failure.table.as_str()).collect();
    assert_eq!(failures, ["shop.old_orders"]);
    // It is left alone; a table that is made meanwhile is found.
    make("shop", "orders2").await;
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!((round.tables, round.failures.len(), round.buckets.len()), (2, 0, 1));
    assert_eq!(round.buckets[0].table, "shop.orders2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_is_compacted_while_it_is_written() {
    let place = Place::on_threads();
    let schema = kv_schema().option("bucket", "2").option("write-only", "true");
    let table = place.create(schema).await;
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    let service = tokio::spawn({
        let location = table.location().to_owned();
        async move {
            let context = Context::system().unwrap();
            let table = Table::open(&location, Options::new(), &context).await.unwrap();
            let settings = ServiceSettings {
                interval: Duration::from_millis(5),
                ..ServiceSettings::default()
            };
            let stop = StopSignal::new(async {
                let _ = stopped.await;
            });
            let mut service = CompactService::new(TableSource::One(table), settings, stop);
            let (mut buckets, mut failures) = (0, Vec::new());
            while let Some(round) = service.next_round().await.unwrap() {
                buckets += round.buckets.len();
                failures.extend(round.failures);
            }
            (buckets, failures)
        }
    });
    let mut expected = BTreeMap::new();
    for round in 0..60 {
        let text = format!("v{round}");
        let keys = [round % 7, 1000 + round];
        commit(&table, &keys.map(|key| ("+I", key, text.as_str()))).await;
        expected.extend(keys.map(|key| (key, text.clone())));
    }
    // The debt is paid soon after the last commit.
    let paid = async {
        loop {
            let buckets = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
            if buckets.iter().all(|bucket| bucket.runs().len() < 5) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), paid).await.unwrap();
    stop.send(()).unwrap();
    let (buckets, failures) = service.await.unwrap();
    assert!(buckets > 1, "{buckets} compactions");
    assert!(failures.is_empty(), "{failures:?}");
    let mut expected: Vec<String> = expected.iter().map(|(key, text)| format!("{key} {text}")).collect();
    expected.sort_unstable();
    assert_eq!(rows(&table).await, expected);
}

/// Partition `misread` has a file that the table's options take for something else, `corrupt` one whose key bounds are no key.
async fn two_bad_buckets(place: &Place, context: &Context) -> Table {
    let schema = partitioned()
        .option("merge-engine", "aggregation")
        .option("changelog-producer", "lookup");
    let table = Table::create(&place.location("t"), schema, context).await.unwrap();
    write_wrong(&table, "misread", |file| file.level = 5).await;
    write_wrong(&table, "misread", |file| file.level = 1).await;
    write_wrong(&table, "corrupt", |file| {
        file.level = 1;
        file.min_key = BinaryRow::empty();
    })
    .await;
    for key in 0..6 {
        write_to(&table, "well", key).await;
    }
    table
}

#[tokio::test]
async fn a_bucket_that_cannot_be_looked_at_does_not_stop_the_others() {
    let place = Place::new();
    let clock = TickingClock::new(1_704_067_200_000, 0);
    let env = Env {
        clock: Arc::new(clock.clone()),
        ..Env::fixed(place.dir.path())
    };
    let table = two_bad_buckets(&place, &Context::new(env)).await;
    let mut service = one(&table, ServiceSettings::default());
    let failures = |round: &RoundReport| -> Vec<(String, i64)> {
        let failures = round.failures.iter();
        let of = |failure: &BucketFailure| (failure.bucket.clone().unwrap(), failure.retry_in_ms / 1000);
        failures.map(of).collect()
    };
    let both = |seconds| {
        [
            ("p=corrupt/bucket-0".to_owned(), seconds),
            ("p=misread/bucket-0".to_owned(), seconds),
        ]
    };
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=well/bucket-0: 6 runs"]);
    assert_eq!((round.buckets_looked_at, failures(&round)), (3, both(1).into()));
    let misread = &round.failures[1];
    assert!(
        misread.error.contains("would be taken for complete states"),
        "{misread:?}"
    );

    // They are left alone, then tried again, and others are compacted all the while.
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(failures(&round), []);
    clock.advance_ms(1300);
    for key in 0..6 {
        write_to(&table, "well", key).await;
    }
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=well/bucket-0: 7 runs"]);
    assert_eq!(failures(&round), both(2));
}

#[tokio::test]
async fn who_compacts_once_leaves_bad_buckets_out_by_name() {
    let place = Place::new();
    let table = two_bad_buckets(&place, &place.context).await;
    let before = table.snapshots(1).await.unwrap()[0].id;
    let error = table.compact_builder().full(true).run().await.unwrap_err();
    assert!(error.to_string().starts_with("p=corrupt/bucket-0"), "{error}");
    assert_eq!(table.snapshots(1).await.unwrap()[0].id, before, "all or nothing");
    let well = Selection::all().partition([("p", "well")]);
    let report = table.compact_builder().full(true).select(well).run().await.unwrap();
    assert_eq!((report.buckets_looked_at, report.buckets.len()), (1, 1));
}

/// A storage that answers slowly where it is told to.
#[derive(Debug)]
struct Slow(Arc<dyn Storage>);

#[async_trait]
impl StorageFactory for Slow {
    async fn open(&self, _url: &str) -> Result<Arc<dyn Storage>, StorageError> {
        Ok(Arc::clone(&self.0))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_that_another_compaction_took_is_left_alone_for_a_while() {
    let place = Place::on_threads();
    let table = place.create(partitioned()).await;
    for key in 0..6 {
        write_to(&table, "a", key).await;
        write_to(&table, "b", key).await;
    }
    let before = rows(&table).await;
    // The service is slow to make its output in partition a: someone else compacts that in between.
    let clock = TickingClock::new(place.context.env().clock.now_ms(), 0);
    let env = Env {
        clock: Arc::new(clock.clone()),
        ..place.context.env().clone()
    };
    let inner = UrlStorageFactory::new(env.clone(), Options::new());
    let inner = inner.open(table.location()).await.unwrap();
    let delay = Fault::Delay(Duration::from_secs(5));
    let plan = FaultPlan::new().rule(Rule::new(CallKind::Create, "p=*/bucket-0/data-*", delay).times(2));
    let slow = FaultyStorage::new(inner, env.clone(), plan);
    let context = Context::new(env.clone()).with_storages(Arc::new(Slow(Arc::new(slow))));
    let same = Table::open(table.location(), Options::new(), &context).await.unwrap();
    let settings = ServiceSettings {
        interval: Duration::from_millis(1),
        ..ServiceSettings::default()
    };
    let mut service = one(&same, settings);
    let (round, other) = futures::join!(service.next_round(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let a = Selection::all().partition([("p", "a")]);
        table.compact_builder().full(true).select(a).run().await
    });
    other.unwrap();
    let round = round.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=b/bucket-0: 6 runs"]);
    let [failure] = round.failures.as_slice() else {
        panic!("{:?}", round.failures)
    };
    assert!(failure.conflict, "{failure:?}");
    assert_eq!(failure.bucket.as_deref(), Some("p=a/bucket-0"));
    assert!((1000..1250).contains(&failure.retry_in_ms), "{failure:?}");
    assert_eq!(rows(&table).await, before);
    // What lost is removed.
    let folder = Path::new(table.location()).join("p=a/bucket-0");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 7);

    // Not before its time is the bucket tried again, however much debt it has.
    for key in 10..20 {
        write_to(&table, "a", key).await;
    }
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!((round.waiting.0, round.buckets.len()), (0, 0), "{round:?}");
    clock.advance_ms(1300);
    let round = service.next_round().await.unwrap().unwrap();
    assert_eq!(compacted(&round), ["p=a/bucket-0: 11 runs"]);
}

/// As [`kv_schema`], with a column in between: `v` is another field.
fn other_schema() -> SchemaBuilder {
    TableSchema::builder()
        .column("k", "INT".parse().unwrap())
        .column("between", "STRING".parse().unwrap())
        .column("v", "STRING".parse().unwrap())
        .primary_key(["k"])
        .option("bucket", "1")
        .option("write-only", "true")
}

#[tokio::test]
async fn a_table_that_is_made_where_another_was_dropped_is_compacted_as_itself() {
    for of_catalog in [false, true] {
        let place = Place::new();
        let catalog = FileSystemCatalog::new(&place.location("wh"), place.context.clone());
        let name = Identifier::new("shop", "orders");
        let schema = kv_schema().option("write-only", "true");
        let dropped = catalog.create_table(&name, schema).await.unwrap();
        // Options of a service's own are no reason to take a table for another.
        let options: Options = [("write-buffer-size", "1 mb")].into_iter().collect();
        let source = match of_catalog {
            false => TableSource::One(catalog.get_table(&name, options).await.unwrap()),
            true => TableSource::Matching {
                catalog: Arc::new(catalog.clone()),
                pattern: "shop.*".parse().unwrap(),
                options,
                context: place.context.clone(),
            },
        };
        let mut service = CompactService::new(source, ServiceSettings::default(), StopSignal::never());
        for key in 0..6 {
            commit(&dropped, &[("+I", key, "x")]).await;
        }
        assert_eq!(service.next_round().await.unwrap().unwrap().buckets.len(), 1);

        std::fs::remove_dir_all(dropped.location()).unwrap();
        let table = catalog.create_table(&name, other_schema()).await.unwrap();
        for key in 0..8 {
            commit(&table, &[("+I", key, "y")]).await;
        }
        let before = rows(&table).await;
        let round = service.next_round().await.unwrap().unwrap();
        assert_eq!((round.buckets.len(), &round.failures), (1, &Vec::new()), "{round:?}");
        assert_eq!(rows(&table).await, before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_compacted_of_a_dropped_table_is_not_committed_to_the_next_one() {
    let place = Place::on_threads();
    let dropped = place.create(kv_schema().option("write-only", "true")).await;
    for key in 0..6 {
        commit(&dropped, &[("+I", key, "x")]).await;
    }
    let env = place.context.env();
    let inner = UrlStorageFactory::new(env.clone(), Options::new());
    let inner = inner.open(dropped.location()).await.unwrap();
    let delay = Fault::Delay(Duration::from_secs(3));
    let plan = FaultPlan::new().rule(Rule::new(CallKind::Create, "bucket-0/data-*", delay).times(1));
    let slow = FaultyStorage::new(inner, env.clone(), plan);
    let context = Context::new(env.clone()).with_storages(Arc::new(Slow(Arc::new(slow))));
    let same = Table::open(dropped.location(), Options::new(), &context).await.unwrap();
    let mut service = one(&same, ServiceSettings::default());
    let (round, table) = futures::join!(service.next_round(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::fs::remove_dir_all(dropped.location()).unwrap();
        let table = place.create(other_schema()).await;
        commit(&table, &[("+I", 1, "y")]).await;
        table
    });
    let round = round.unwrap().unwrap();
    let [failure] = round.failures.as_slice() else {
        panic!("{round:?}")
    };
    assert!(failure.conflict && failure.error.contains("was dropped"), "{failure:?}");
    assert_eq!(rows(&table).await, ["1 null y"]);
    assert_eq!(strays(&table).await, [] as [String; 0]);
}

/// Asks to stop at every possible moment of a round.
#[tokio::test]
async fn a_stopped_service_leaves_nothing_half_done() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    for key in 0..6 {
        commit(&table, &[("+I", key, "x"), ("+I", 100, "y")]).await;
    }
    let before = rows(&table).await;
    let (mut stopped, mut finished) = (0, 0);
    for polls in (0..).map(|step| step * (step + 1) / 2) {
        let location = place.location(&format!("copy-{polls}"));
        copy(Path::new(table.location()), Path::new(&location));
        let copy = Table::open(&location, Options::new(), &place.context).await.unwrap();
        let source = TableSource::One(copy.clone());
        let mut service = CompactService::new(source, ServiceSettings::default(), stop_after(polls));
        let mut compacted = 0;
        while let Some(round) = service.next_round().await.unwrap() {
            assert_eq!(round.failures, []);
            compacted += round.buckets.len();
        }
        let snapshots = copy.snapshots(1).await.unwrap()[0].id;
        assert_eq!(snapshots, 6 + i64::try_from(compacted).unwrap(), "after {polls} polls");
        assert_eq!(strays(&copy).await, [""; 0], "after {polls} polls");
        assert_eq!(rows(&copy).await, before, "after {polls} polls");
        std::fs::remove_dir_all(&location).unwrap();
        if compacted == 0 {
            stopped += 1;
        } else {
            finished += 1;
        }
        if finished == 3 {
            break;
        }
    }
    assert!(stopped > 1, "stopped {stopped} times before the end");
}

#[tokio::test]
async fn a_dropped_round_is_taken_back_and_the_next_service_goes_on() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    for key in 0..6 {
        commit(&table, &[("+I", key, "x")]).await;
    }
    assert_eq!(shape(&table).await, "L0:1 L0:1 L0:1 L0:1 L0:1 L0:1");
    let mut service = one(&table, ServiceSettings::default());
    {
        let round = std::pin::pin!(service.next_round());
        assert!(futures::poll!(round).is_pending());
    }
    assert_eq!(shape(&table).await, "L0:1 L0:1 L0:1 L0:1 L0:1 L0:1");
    let mut service = one(&table, ServiceSettings::default());
    assert_eq!(service.next_round().await.unwrap().unwrap().buckets.len(), 1);
    assert_eq!(shape(&table).await, "L5:6");
}

#[tokio::test]
async fn options_that_forbid_compaction_end_the_service_of_one_table() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let (batch, of) = kv(&[("+I", 1, "x")]);
    commit_batch(&table, &batch, &of).await;
    let wrong = with(&table, "num-sorted-run.compaction-trigger", "none");
    let error = one(&wrong, ServiceSettings::default()).next_round().await.unwrap_err();
    assert!(
        error.to_string().contains("num-sorted-run.compaction-trigger"),
        "{error}"
    );
}
