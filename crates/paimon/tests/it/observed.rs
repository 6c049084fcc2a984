//! What a table tells through `metrics` and `tracing`.

use std::sync::Arc;

use paimon::format::env::{Env, InlineRuntime};
use paimon::{
    Catalog, CompactService, Context, FileSystemCatalog, Identifier, ServiceSettings, StopSignal, Table, TableSource,
};
use paimon_testkit::observed::{RecordedMetrics, RecordedSpans};

use crate::support::{commit, kv, kv_schema};

/// A table that is written, compacted by the service, written again, and whose changes look old rows up.
async fn life(context: Context, warehouse: &str) {
    let catalog = FileSystemCatalog::new(warehouse, context);
    let schema = kv_schema()
        .option("changelog-producer", "lookup")
        .option("write-only", "true");
    let table = catalog
        .create_table(&Identifier::new("shop", "orders"), schema)
        .await
        .unwrap();
    for round in 0..6 {
        commit(&table, &[("+I", round, "x"), ("+I", 100, "y")]).await;
    }
    let source = TableSource::One(table.clone());
    let mut service = CompactService::new(source, ServiceSettings::default(), StopSignal::never());
    assert_eq!(service.next_round().await.unwrap().unwrap().buckets.len(), 1);
    commit(&table, &[("+I", 1, "z")]).await;
    assert_eq!(service.next_round().await.unwrap().unwrap().buckets.len(), 1);
}

/// Runs it on this thread, where what it tells is recorded.
fn observe() -> (RecordedMetrics, RecordedSpans) {
    let dir = tempfile::tempdir().unwrap();
    let runtime = InlineRuntime::new();
    let env = Env {
        runtime: Arc::new(runtime.clone()),
        ..Env::fixed(dir.path())
    };
    let (metrics, spans) = (RecordedMetrics::default(), RecordedSpans::default());
    let warehouse = dir.path().to_str().unwrap();
    metrics::with_local_recorder(&metrics, || {
        spans.record_while(|| runtime.block_on(life(Context::new(env), warehouse)));
    });
    (metrics, spans)
}

#[test]
fn writes_compactions_and_commits_are_measured_under_the_names_of_the_reference() {
    let (metrics, _) = observe();
    let of = |name: &str| metrics.get(&format!("paimon_{name}{{table=shop.orders}}"));
    // One compaction of six files, then one of one file, which looks old rows up.
    assert_eq!(of("compaction_compaction_total_count"), Some(2.0));
    assert_eq!(of("compaction_compaction_completed_count"), Some(2.0));
    assert_eq!(of("compaction_compaction_queued_count"), Some(0.0));
    assert_eq!(of("commit_commit_duration"), Some(9.0), "nine commits");
    assert_eq!(of("commit_last_committed_snapshot_id"), Some(9.0));
    assert_eq!(of("commit_last_commit_attempts"), Some(1.0));
    assert_eq!(of("commit_last_table_files_appended"), Some(0.0));
    assert_eq!(of("commit_last_table_files_commit_compacted"), Some(2.0));
    assert_eq!(of("commit_last_changelog_file_commit_compacted"), Some(1.0));
    assert_eq!(of("commit_last_changelog_records_commit_compacted"), Some(2.0));
    assert_eq!(of("commit_last_buckets_written"), Some(1.0));
    assert!(of("commit_last_compaction_input_file_size").unwrap() > 0.0);
    assert!(of("compaction_max_total_file_size").unwrap() > 0.0);
    // As the last look saw it.
    assert_eq!(of("compaction_max_level0_file_count"), Some(1.0));
    assert_eq!(of("compaction_max_sorted_run_count"), Some(2.0));
    assert!(of("compaction_compaction_thread_busy").unwrap() > 0.0);
    assert_eq!(metrics.get("paimon_service_buckets_compacted"), Some(2.0));
    // The names, so that none is lost or renamed by mistake.
    let names: Vec<String> = metrics
        .print()
        .lines()
        .filter_map(|line| Some(line.split_once(['{', ' '])?.0.to_owned()))
        .filter(|name| !name.starts_with("paimon_lookup"))
        .collect();
    insta::assert_snapshot!(names.join("\n"));
}

/// While a writer is open, and when its buckets take memory from each other.
#[test]
fn buffers_of_writers_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let (metrics, runtime) = (RecordedMetrics::default(), InlineRuntime::new());
    let env = Env {
        runtime: Arc::new(runtime.clone()),
        ..Env::fixed(dir.path())
    };
    let of = |name: &str| metrics.get(&format!("paimon_writer_buffer_{name}{{table=t}}"));
    let work = async {
        let schema = kv_schema().option("bucket", "2").option("write-buffer-size", "512 kb");
        let location = dir.path().join("t");
        let context = Context::new(env);
        let table = Table::create(location.to_str().unwrap(), schema, &context)
            .await
            .unwrap();
        let mut writer = table.write_builder().new_write().unwrap();
        let mut other = table.write_builder().new_write().unwrap();
        let value = "x".repeat(10_000);
        let rows: Vec<_> = (0..8).map(|key| ("+I", key, value.as_str())).collect();
        let (batch, kinds) = kv(&rows);
        writer.write_with_kinds(&batch, &kinds).await.unwrap();
        let used = of("used_write_buffer_size_byte").unwrap();
        assert!((80_000.0..524_288.0).contains(&used), "{used}");
        assert_eq!(of("num_writers"), Some(2.0));
        assert_eq!(of("total_write_buffer_size_byte"), Some(524_288.0));
        assert_eq!(of("buffer_preempt_count"), None);
        // Two jobs of one process add up.
        other.write_with_kinds(&batch, &kinds).await.unwrap();
        assert_eq!(of("num_writers"), Some(4.0));
        assert_eq!(of("total_write_buffer_size_byte"), Some(1_048_576.0));
        other.abort().await;
        assert_eq!(of("num_writers"), Some(2.0));
        for _ in 0..10 {
            writer.write_with_kinds(&batch, &kinds).await.unwrap();
        }
        assert!(of("buffer_preempt_count").unwrap() > 0.0);
        writer.prepare_commit(true).await.unwrap();
        assert_eq!(of("used_write_buffer_size_byte"), Some(0.0));
        writer.abort().await;
        assert_eq!(
            (of("num_writers"), of("total_write_buffer_size_byte")),
            (Some(0.0), Some(0.0))
        );
    };
    metrics::with_local_recorder(&metrics, || runtime.block_on(work));
}

#[test]
fn flush_pick_compact_lookup_and_commit_have_spans() {
    let (_, spans) = observe();
    let spans = spans.spans();
    let of = |name: &str| -> Vec<&String> {
        spans
            .iter()
            .filter(|span| span.split(' ').next() == Some(name))
            .collect()
    };
    let (flush, pick, compact, commit) = (of("flush"), of("pick"), of("compact"), of("commit"));
    assert_eq!(flush.len(), 7);
    assert!(
        flush[0].starts_with("flush table=shop.orders bucket=bucket-0 bytes="),
        "{flush:?}"
    );
    assert!(pick.len() >= 2);
    assert!(
        pick[0].starts_with("pick table=shop.orders bucket=bucket-0 files=6 bytes="),
        "{pick:?}"
    );
    assert_eq!(compact.len(), 2);
    assert!(
        compact[0].starts_with("compact table=shop.orders bucket=bucket-0 files=6 bytes="),
        "{compact:?}"
    );
    assert_eq!(commit.len(), 9);
    assert!(commit[0].starts_with("commit table=shop.orders user="), "{commit:?}");
    assert!(commit[8].contains(" kind=Compact files=2 bytes="), "{commit:?}");
    assert!(!of("lookup").is_empty());
}
