use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use async_trait::async_trait;
use futures::TryStreamExt;
use paimon_format::FormatError;
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{BatchSink, KeyCodec, RowLevels};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, RowKind, TypeKind};
use paimon_merge::changelog::{ChangelogSettings, Hits, LookupNeed};
use paimon_merge::engine::Registry;
use proptest::prelude::*;

use super::*;
use crate::levels::{KeyOrder, Levels, SortedRun};
use crate::lookup::{LookupSource, LookupView, SortedKeys};
use crate::testing::{MemoryKvFiles, ScanLookup};

/// Key, sequence number, kind.
type Record = (i64, i64, RowKind);

fn schema() -> Arc<KvSchema> {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, "v", DataType::nullable(TypeKind::Int)),
        DataField::new(2, "s", DataType::nullable(TypeKind::VarChar(100))),
    ];
    Arc::new(KvSchema::new(0, fields, vec![0], None).unwrap())
}

fn batch(records: &[Record]) -> KvBatch {
    let schema = schema();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(records.iter().map(|record| Some(record.1)).collect::<Int64Array>()),
        Arc::new(records.iter().map(|record| Some(record.2 as i8)).collect::<Int8Array>()),
        Arc::new(records.iter().map(|record| Some(record.0)).collect::<Int64Array>()),
        Arc::new(
            records
                .iter()
                .map(|record| Some(record.1 as i32))
                .collect::<Int32Array>(),
        ),
        Arc::new(
            records
                .iter()
                .map(|record| Some(format!("s{}", record.1)))
                .collect::<StringArray>(),
        ),
    ];
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    KvBatch::new(&schema, columns, &KeyCodec::new(&schema).unwrap(), RowLevels::All(0)).unwrap()
}

fn records(batches: &[KvBatch]) -> Vec<Record> {
    let mut records = Vec::new();
    for batch in batches {
        let keys: &Int64Array = batch.values()[0].as_any().downcast_ref().unwrap();
        let values: &Int32Array = batch.values()[1].as_any().downcast_ref().unwrap();
        for row in 0..batch.len() {
            // Columns move together.
            assert_eq!(i64::from(values.value(row)), batch.sequence_numbers()[row]);
            records.push((keys.value(row), batch.sequence_numbers()[row], batch.kind(row)));
        }
    }
    records
}

struct Table {
    files: MemoryKvFiles,
    pipeline: MergePipeline,
    env: Env,
    temp: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let env = Env::fixed(temp.path());
        let files = MemoryKvFiles::new(schema()).with_roll_rows(50);
        let engine = Registry::default().for_options(&schema(), &Options::new()).unwrap();
        let pipeline = MergePipeline::new(env.clone(), Arc::new(files.clone()), schema(), engine);
        Self {
            files,
            pipeline,
            env,
            temp,
        }
    }

    fn settings(mut self, settings: PipelineSettings) -> Self {
        self.pipeline = self.pipeline.with_settings(settings);
        self
    }

    fn run(&self, level: i32, files: &[&[Record]]) -> SortedRun {
        let file = |records: &&[Record]| self.files.add(level, &[batch(records)]).unwrap();
        SortedRun::from_sorted(files.iter().map(file).collect())
    }

    async fn merged(&self, job: MergeJob) -> Result<Vec<Record>, LsmError> {
        let batches: Vec<KvBatch> = self.pipeline.merge(job).try_collect().await?;
        Ok(records(&batches))
    }

    fn spills_left(&self) -> usize {
        std::fs::read_dir(self.temp.path()).unwrap().count()
    }
}

use RowKind::{Delete, Insert, UpdateAfter};

/// The output batch under way holds batches of several sections, each merged by a plan of its own.
#[tokio::test]
async fn two_overlapping_sections_share_an_output_batch() {
    let table = Table::new();
    let sections = [0, 1].map(|key| {
        vec![
            table.run(0, &[&[(key, 10 + key, Insert)]]),
            table.run(0, &[&[(key, key, Insert)]]),
        ]
    });
    let job = MergeJob {
        sections: sections.to_vec(),
        ..MergeJob::default()
    };
    let merged = table.merged(job).await.unwrap();
    assert_eq!(merged, [(0, 10, Insert), (1, 11, Insert)]);
}

#[tokio::test]
async fn sections_come_one_after_another() {
    let table = Table::new();
    let older: Vec<Record> = (0..100).map(|key| (key, key, Insert)).collect();
    let newer: Vec<Record> = (0..50)
        .map(|key| (key * 2, 1000 + key, if key == 3 { Delete } else { UpdateAfter }))
        .collect();
    let alone: Vec<Record> = (200..210)
        .map(|key| (key, key, if key == 205 { Delete } else { Insert }))
        .collect();
    let sections = vec![
        vec![table.run(5, &[&older[..40], &older[40..]]), table.run(0, &[&newer])],
        vec![table.run(5, &[&alone])],
    ];
    let mut expected: BTreeMap<i64, Record> = BTreeMap::new();
    for record in older.iter().chain(&newer).chain(&alone) {
        expected.insert(record.0, *record);
    }
    let job = MergeJob {
        sections,
        ..MergeJob::default()
    };
    assert_eq!(
        table.merged(job.clone()).await.unwrap(),
        expected.values().copied().collect::<Vec<_>>()
    );
    expected.retain(|_, record| record.2 != Delete);
    let job = MergeJob {
        drop_delete: true,
        ..job
    };
    assert_eq!(
        table.merged(job).await.unwrap(),
        expected.into_values().collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn hidden_rows_are_never_seen() {
    let table = Table::new();
    let old = table.run(5, &[&[(1, 1, Insert), (2, 2, Insert), (3, 3, Insert)]]);
    let new = table.run(0, &[&[(2, 7, UpdateAfter), (3, 8, UpdateAfter)]]);
    let hidden = |run: &SortedRun, rows: &[u64]| {
        (
            run.files()[0].file_name.clone(),
            Arc::new(rows.iter().copied().collect::<DeletionVector>()),
        )
    };
    let job = MergeJob {
        deleted: HashMap::from([hidden(&old, &[0]), hidden(&new, &[1])]),
        sections: vec![vec![new, old]],
        ..MergeJob::default()
    };
    assert_eq!(table.merged(job).await.unwrap(), [(2, 7, UpdateAfter), (3, 3, Insert)]);
}

#[tokio::test]
async fn files_open_when_their_turn_comes() {
    let table = Table::new();
    let parts: Vec<Vec<Record>> = (0..3)
        .map(|part| (0..10).map(|i| (part * 10 + i, i, Insert)).collect())
        .collect();
    let run = table.run(5, &[&parts[0], &parts[1], &parts[2]]);
    let mut merged = table.pipeline.merge(MergeJob {
        sections: vec![vec![run]],
        ..MergeJob::default()
    });
    assert!(table.files.opened().is_empty());
    merged.try_next().await.unwrap();
    // Small batches are put together until the end of the job.
    assert_eq!(
        table.files.opened(),
        ["data-0001.parquet", "data-0002.parquet", "data-0003.parquet"]
    );
    assert!(merged.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn rewriting_rolls_files() {
    let table = Table::new().settings(PipelineSettings {
        output_rows: 20,
        block_keys: 10,
        ..PipelineSettings::default()
    });
    let older: Vec<Record> = (0..100).map(|key| (key, key, Insert)).collect();
    let newer: Vec<Record> = (0..100).map(|key| (key, 1000 + key, UpdateAfter)).collect();
    let job = MergeJob {
        sections: vec![vec![table.run(5, &[&older]), table.run(0, &[&newer])]],
        ..MergeJob::default()
    };
    let sink = table.files.data_sink(5, FileSource::Compact);
    let files = table.pipeline.rewrite(job, MergeSinks::data(sink)).await.unwrap().data;
    assert_eq!(files.iter().map(|file| file.row_count).collect::<Vec<_>>(), [60, 40]);
    let sections = vec![vec![SortedRun::from_sorted(files.into_iter().map(Arc::new).collect())]];
    assert_eq!(
        table
            .merged(MergeJob {
                sections,
                ..MergeJob::default()
            })
            .await
            .unwrap(),
        newer
    );
}

#[tokio::test]
async fn a_failed_rewrite_leaves_nothing() {
    struct Failing(Box<dyn BatchSink>, usize);
    #[async_trait]
    impl BatchSink for Failing {
        async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
            self.1 -= 1;
            match self.1 {
                0 => Err(FormatError::internal("the disk is gone")),
                _ => self.0.write(batch).await,
            }
        }
        async fn finish(self: Box<Self>) -> Result<Vec<DataFileMeta>, FormatError> {
            self.0.finish().await
        }
        async fn abort(self: Box<Self>) {
            self.0.abort().await;
        }
    }
    let table = Table::new().settings(PipelineSettings {
        output_rows: 20,
        block_keys: 10,
        ..PipelineSettings::default()
    });
    let run: Vec<Record> = (0..100).map(|key| (key, key, Insert)).collect();
    let job = MergeJob {
        sections: vec![vec![table.run(5, &[&run]), table.run(0, &[&run])]],
        ..MergeJob::default()
    };
    let before = table.files.names();
    let sink = Box::new(Failing(table.files.data_sink(5, FileSource::Compact), 4));
    let error = table.pipeline.rewrite(job, MergeSinks::data(sink)).await.unwrap_err();
    assert_eq!(error.to_string(), "internal error: the disk is gone");
    assert_eq!(table.files.names(), before);
    assert_eq!(table.env.memory.free(), table.env.memory.total());
}

#[tokio::test]
async fn files_that_are_not_in_order_are_named() {
    let table = Table::new();
    let good = table.run(5, &[&[(1, 1, Insert)]]);
    let bad = table.run(0, &[&[(9, 1, Insert), (2, 1, Insert)]]);
    let error = table
        .merged(MergeJob {
            sections: vec![vec![good, bad]],
            ..MergeJob::default()
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), paimon_format::ErrorKind::Corrupt);
    assert!(
        error
            .to_string()
            .starts_with("data-0002.parquet: corrupt: its keys are not in order"),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_file_ends_the_stream() {
    let table = Table::new();
    let run = table.run(5, &[&[(1, 1, Insert)]]);
    table.files.delete(&run.files()[0]).await.unwrap();
    let mut merged = table.pipeline.merge(MergeJob {
        sections: vec![vec![run]],
        ..MergeJob::default()
    });
    let error = merged.try_next().await.unwrap_err();
    assert_eq!(error.kind(), paimon_format::ErrorKind::NotFound);
    assert!(merged.try_next().await.unwrap().is_none());
}

/// Answers so many keys at most; notes how many bytes it might have found each time.
#[derive(Debug)]
struct FirstKeys(ScanLookup, usize, Mutex<Vec<u64>>);

#[async_trait]
impl LookupSource for FirstKeys {
    async fn lookup(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Hits, LsmError> {
        self.2.lock().unwrap().push(max_bytes);
        let mut hits = self.0.lookup(keys, view, start_level, need, max_bytes).await?;
        hits.found.truncate(self.1);
        Ok(hits)
    }

    async fn written(&self, files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError> {
        Ok(files)
    }

    fn dropped(&self, _files: &[Arc<DataFileMeta>]) {}
}

/// Old rows that are too large to be found all at once come part by part, and so does what is made of them.
#[tokio::test]
async fn a_look_up_may_answer_the_first_keys_only() {
    let table = Table::new();
    let old: Vec<Record> = (0..20).map(|key| (key * 2, key, Insert)).collect();
    let kinds = [Delete, UpdateAfter, Insert];
    let new: Vec<Record> = (0..30).map(|key| (key, 100 + key, kinds[key as usize % 3])).collect();
    // These need no look-up: what takes part has the old row.
    let above: Vec<Record> = (5..9).map(|key| (key, 50 + key, Insert)).collect();
    let deep = table.run(5, &[&old]);
    let sections = vec![vec![table.run(0, &[&new]), table.run(4, &[&above])]];
    let keys = KeyOrder::new(&schema()).unwrap();
    let view = LookupView {
        levels: Levels::restore(keys, deep.files().to_vec(), 6).unwrap().view(),
        deleted: Arc::default(),
    };
    let mut expected = None;
    for (first, calls) in [(1000, 1), (7, 4), (1, 26)] {
        let scan = ScanLookup::new(Arc::new(table.files.clone()));
        let source = Arc::new(FirstKeys(scan, first, Mutex::default()));
        let job = MergeJob {
            sections: sections.clone(),
            stage: StageKind::LookupChangelog(Some(ChangelogSettings::default())),
            lookup: Some(JobLookup {
                source: Arc::clone(&source) as _,
                view: view.clone(),
                start_level: 5,
                need: LookupNeed::Value,
            }),
            ..MergeJob::default()
        };
        let sinks = MergeSinks {
            data: Some(table.files.data_sink(4, FileSource::Compact)),
            changelog: Some(table.files.changelog_sink(4)),
        };
        let merged = table.pipeline.rewrite(job, sinks).await.unwrap();
        let mut made = Vec::new();
        for file in merged.data.iter().chain(&merged.changelog) {
            let read = paimon_format::kv::ReadSpec::all(schema());
            let batches: Vec<KvBatch> = table.files.open(file, read).try_collect().await.unwrap();
            made.push(records(&batches));
        }
        assert_eq!(&made, expected.get_or_insert(made.clone()), "{first} keys at a time");
        let asked = source.2.lock().unwrap();
        assert_eq!(asked.len(), calls, "{first} keys at a time");
        assert!(asked.iter().all(|bytes| (1..=12 << 20).contains(bytes)), "{asked:?}");
    }
}

fn histories() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let run = prop::collection::btree_map(0i64..150, 0usize..6, 0..60);
    prop::collection::vec(run, 1..14).prop_map(|runs| {
        let record = |run: usize, (key, kind): (i64, usize)| {
            (
                key,
                (run * 1000) as i64 + key,
                [Insert, Insert, UpdateAfter, UpdateAfter, UpdateAfter, Delete][kind],
            )
        };
        let run =
            |(run, records): (usize, BTreeMap<i64, usize>)| records.into_iter().map(|at| record(run, at)).collect();
        runs.into_iter().enumerate().map(run).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn many_runs_are_merged_in_passes(history in histories(), threshold in 2usize..6, drop_delete: bool, read_rows in 1usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let table = Table::new().settings(PipelineSettings { sort_spill_threshold: threshold, read_rows, block_keys: 16, output_rows: 30 });
            let runs = history.iter().filter(|run| !run.is_empty()).map(|run| table.run(0, &[run])).collect();
            let mut expected: BTreeMap<i64, Record> = BTreeMap::new();
            for record in history.iter().flatten() {
                expected.insert(record.0, *record);
            }
            expected.retain(|_, record| !drop_delete || record.2 != Delete);
            let job = MergeJob { sections: vec![runs], drop_delete, ..MergeJob::default() };
            let merged = table.merged(job).await.unwrap();
            prop_assert_eq!(merged, expected.into_values().collect::<Vec<_>>());
            prop_assert_eq!(table.spills_left(), 0);
            prop_assert_eq!(table.env.disk.free(), table.env.disk.total());
            Ok(())
        })?;
    }
}
