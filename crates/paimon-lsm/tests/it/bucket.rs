//! One bucket over files in memory, with the least that can be called a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::Schema;
use futures::TryStreamExt;
use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, KvSchema, KvSchemaRef, ReadSpec, SequenceOrder};
use paimon_format::meta::{CommitIncrement, DataFileMeta};
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, RowKind, TypeKind};
use paimon_lsm::compact::pipeline::{MergeJob, MergePipeline, StageKind};
use paimon_lsm::levels::{KeyOrder, Levels};
use paimon_lsm::testing::{MemoryKvFiles, ScanLookup};
use paimon_lsm::write::{MergeTreeWriter, MergeTreeWriterBuilder, WriteSettings};
use paimon_merge::engine::{MergeEngine, Registry};

/// A change: `k` BIGINT is the key, `v` BIGINT the value. `None` as the value: a delete.
pub(crate) type Change = (i64, Option<i64>);

/// A bucket of a deduplicate table.
pub(crate) struct Bucket {
    pub(crate) schema: KvSchemaRef,
    pub(crate) memory: MemoryKvFiles,
    /// What writers use: the files in memory, or something around them.
    pub(crate) files: Arc<dyn KvFiles>,
    pub(crate) env: Env,
    pub(crate) settings: WriteSettings,
    /// Of the merge engine.
    pub(crate) options: Options,
    /// The files of the last snapshot.
    pub(crate) live: Vec<Arc<DataFileMeta>>,
    pub(crate) temp: tempfile::TempDir,
}

impl Bucket {
    /// Sizes in memory are rows: the settings call files of fewer than ten rows small.
    pub(crate) fn new() -> Self {
        Self::with_sequence(None)
    }

    /// `v` is also the sequence field.
    pub(crate) fn with_sequence(sequence: Option<SequenceOrder>) -> Self {
        let fields = vec![
            DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
            DataField::new(1, "v", DataType::nullable(TypeKind::BigInt)),
        ];
        let schema = Arc::new(KvSchema::new(0, fields, vec![0], sequence).unwrap());
        let memory = MemoryKvFiles::new(Arc::clone(&schema));
        let temp = tempfile::tempdir().unwrap();
        let mut settings = WriteSettings::default();
        settings.compact.small_file_bytes = 10;
        Self {
            files: Arc::new(memory.clone()),
            memory,
            env: Env::fixed(temp.path()),
            schema,
            settings,
            options: Options::new(),
            live: Vec::new(),
            temp,
        }
    }

    /// A bucket of a table with these options. Every file is large enough to be moved alone.
    pub(crate) fn with_options(options: &[(&str, &str)]) -> Self {
        Self::with_sequence(None).set_options(options)
    }

    /// The same bucket with these options.
    pub(crate) fn set_options(mut self, options: &[(&str, &str)]) -> Self {
        self.options = options.iter().copied().collect();
        let promises = self.engine().promises();
        self.settings = WriteSettings::from_options(&self.options, promises).unwrap();
        self.settings.compact.small_file_bytes = 1;
        self
    }

    pub(crate) fn engine(&self) -> Arc<dyn MergeEngine> {
        Registry::default().for_options(&self.schema, &self.options).unwrap()
    }

    pub(crate) fn builder(&self) -> MergeTreeWriterBuilder {
        MergeTreeWriter::builder(Arc::clone(&self.schema), Arc::clone(&self.files))
            .engine(self.engine())
            .env(self.env.clone())
            .settings(self.settings.clone())
            .lookup(Some(Arc::new(ScanLookup::new(Arc::clone(&self.files)))))
    }

    /// A writer that starts from the last snapshot.
    pub(crate) fn writer(&self) -> MergeTreeWriter {
        self.builder().restore(self.live.clone()).build().unwrap()
    }

    /// Makes a snapshot: an append, then a compaction, as committers do. Every file taken away must be there, and what is left
    /// must be a tree of files in memory.
    pub(crate) fn commit(&mut self, increment: &CommitIncrement) {
        self.commit_unchecked(increment);
        let names = self.memory.names();
        for file in &self.live {
            assert!(names.contains(&file.file_name), "{} has no bytes", file.file_name);
        }
    }

    /// As [`commit`](Self::commit), for files that are elsewhere.
    pub(crate) fn commit_unchecked(&mut self, increment: &CommitIncrement) {
        self.live.extend(increment.data.new_files.iter().map(Arc::clone));
        for gone in &increment.compact.compact_before {
            let position = self.live.iter().position(|file| file == gone);
            self.live
                .remove(position.unwrap_or_else(|| panic!("{} is not live", gone.file_name)));
        }
        self.live.extend(increment.compact.compact_after.iter().map(Arc::clone));
        self.tree();
    }

    /// The last snapshot's tree, drawn.
    pub(crate) fn tree(&self) -> String {
        let keys = KeyOrder::new(&self.schema).unwrap();
        Levels::restore(keys, self.live.clone(), 6).unwrap().view().to_string()
    }

    /// The rows that a reader of the last snapshot sees.
    pub(crate) async fn rows(&self) -> BTreeMap<i64, Option<i64>> {
        let job = MergeJob {
            sections: KeyOrder::new(&self.schema).unwrap().sections(&self.live).unwrap(),
            stage: match self.settings.compact.lookup.need_lookup() {
                true => StageKind::Lookup,
                false => StageKind::Plain,
            },
            drop_delete: true,
            ..MergeJob::default()
        };
        let pipeline = MergePipeline::new(
            self.env.clone(),
            Arc::clone(&self.files),
            Arc::clone(&self.schema),
            self.engine(),
        );
        let batches: Vec<_> = pipeline.merge(job).try_collect().await.unwrap();
        let mut rows = BTreeMap::new();
        for batch in batches {
            let [keys, values] = batch.values() else {
                panic!("two columns")
            };
            let (keys, values) = (keys.as_primitive::<Int64Type>(), values.as_primitive::<Int64Type>());
            for (key, value) in keys.iter().zip(values) {
                assert!(rows.insert(key.unwrap(), value).is_none(), "key {key:?} twice");
            }
        }
        rows
    }

    /// The records of files as they are: `+I(1,10)` words.
    pub(crate) async fn records(&self, files: &[Arc<DataFileMeta>]) -> String {
        let mut words = Vec::new();
        for file in files {
            let spec = ReadSpec::all(Arc::clone(&self.schema));
            let batches: Vec<_> = self.files.open(file, spec).try_collect().await.unwrap();
            for batch in batches {
                let [keys, values] = batch.values() else {
                    panic!("two columns")
                };
                let (keys, values) = (keys.as_primitive::<Int64Type>(), values.as_primitive::<Int64Type>());
                for (row, (key, value)) in keys.iter().zip(values).enumerate() {
                    let value = value.map_or("null".to_owned(), |value| value.to_string());
                    words.push(format!("{}({},{value})", batch.kind(row).short_string(), key.unwrap()));
                }
            }
        }
        words.join(" ")
    }

    /// Names of the files that no snapshot knows.
    pub(crate) fn orphans(&self) -> Vec<String> {
        let mut names = self.memory.names();
        names.retain(|name| self.live.iter().all(|file| file.file_name != *name));
        names
    }

    /// Temporary files.
    pub(crate) fn spills(&self) -> usize {
        std::fs::read_dir(self.temp.path()).unwrap().count()
    }
}

/// Columns and kinds of some changes.
pub(crate) fn batch(schema: &KvSchema, changes: &[Change]) -> (RecordBatch, Vec<RowKind>) {
    let fields: Vec<_> = schema.arrow.fields().iter().skip(2).map(Arc::clone).collect();
    let keys: Int64Array = changes.iter().map(|change| Some(change.0)).collect();
    let values: Int64Array = changes.iter().map(|change| change.1).collect();
    let columns = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(keys), Arc::new(values)]).unwrap();
    let kind = |change: &Change| match change.1 {
        Some(_) => RowKind::Insert,
        None => RowKind::Delete,
    };
    (columns, changes.iter().map(kind).collect())
}

/// Writes some changes.
pub(crate) async fn write(writer: &mut MergeTreeWriter, schema: &KvSchema, changes: &[Change]) {
    let (columns, kinds) = batch(schema, changes);
    writer.write(&columns, &kinds).await.unwrap();
}

/// `k=v` words, in key order.
pub(crate) fn print(rows: &BTreeMap<i64, Option<i64>>) -> String {
    let words: Vec<_> = rows
        .iter()
        .map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => format!("{key}=null"),
        })
        .collect();
    words.join(" ")
}

/// Keys from `range`, each with the same value.
pub(crate) fn all(range: std::ops::Range<i64>, value: i64) -> Vec<Change> {
    range.map(|key| (key, Some(value))).collect()
}

/// Lets background tasks come forward.
pub(crate) async fn idle(times: u8) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}
