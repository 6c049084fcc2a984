//! One bucket of benchmark files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use paimon_format::env::{Env, InlineRuntime};
use paimon_format::kv::{KeyCodec, KvBatch, KvFiles, KvSchema, ReadSpec, TableKvFiles};
use paimon_format::meta::{DataFileMeta, FileSource, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::LocalStorage;
use paimon_lsm::LsmError;
use paimon_lsm::compact::pipeline::{MergeJob, MergePipeline, MergeSinks};
use paimon_lsm::levels::SortedRun;
use paimon_merge::engine::Registry;

use crate::{Result, rows};

/// The file that lists the runs: a line a run, its files as `name:size`.
const RUNS: &str = "runs.txt";

/// Overlapping runs in a local folder, read and compacted by one thread.
#[derive(Debug)]
pub struct Bucket {
    schema: Arc<KvSchema>,
    files: Arc<TableKvFiles>,
    pipeline: MergePipeline,
    runs: Vec<SortedRun>,
}

impl Bucket {
    /// A bucket below a table's folder that has no files yet; `options` say how it is merged.
    ///
    /// Errors: when the folder cannot be used, or the options.
    pub fn new(table: &Path, memory_bytes: u64, options: &Options) -> Result<Self> {
        let env = Env::system(
            Arc::new(InlineRuntime::default()),
            memory_bytes,
            u64::MAX / 2,
            table.join("tmp"),
        );
        let schema = rows::schema()?;
        let paths = TablePaths::new(PathSettings::from_options(Vec::new(), options)?);
        let bucket = paths.bucket(&BinaryRow::default(), 0)?;
        let storage = Arc::new(LocalStorage::new(table, env.clone()));
        let files = Arc::new(TableKvFiles::builder(storage, env.clone(), Arc::clone(&schema), bucket).build());
        let engine = Registry::default().for_options(&schema, options)?;
        let pipeline = MergePipeline::new(env, Arc::<TableKvFiles>::clone(&files), Arc::clone(&schema), engine);
        Ok(Self {
            schema,
            files,
            pipeline,
            runs: Vec::new(),
        })
    }

    /// Writes `runs` level-0 runs of `rows` rows in all, and the list of them.
    pub async fn generate(&self, table: &Path, rows: u64, runs: u64, nulls: bool) -> Result<()> {
        let codec = KeyCodec::new(&self.schema)?;
        let mut list = String::new();
        for run in 0..runs {
            let mut sink = self.files.data_sink(0, FileSource::Append);
            for keys in rows::run_keys(run, runs, rows).chunks(64 << 10) {
                sink.write(&rows::batch(&self.schema, &codec, run, keys, nulls)?)
                    .await?;
            }
            let files = sink.finish().await?;
            let words: Vec<String> = files
                .iter()
                .map(|file| format!("{}:{}", file.file_name, file.file_size))
                .collect();
            list += &(words.join(" ") + "\n");
        }
        Ok(fs::write(table.join(RUNS), list)?)
    }

    /// Opens the runs that [`generate`](Self::generate) listed; without a list, every data file in the bucket is a run, as in a write-only
    /// table of Java.
    pub fn open(mut self, table: &Path) -> Result<Self> {
        let list = match fs::read_to_string(table.join(RUNS)) {
            Ok(list) => list,
            Err(_) => {
                let mut list = String::new();
                for entry in fs::read_dir(table.join("bucket-0"))? {
                    let entry = entry?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if name.starts_with("data-") {
                        list += &format!("{name}:{}\n", entry.metadata()?.len());
                    }
                }
                list
            }
        };
        for line in list.lines() {
            let files = line.split_whitespace().map(file).collect::<Option<Vec<_>>>();
            self.runs
                .push(SortedRun::from_sorted(files.ok_or("a line that is not name:size")?));
        }
        Ok(self)
    }

    /// How many runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Decodes every row in batches of 8 K, keeping none. Returns the number of rows.
    pub async fn decode(&self) -> std::result::Result<usize, LsmError> {
        let mut rows = 0;
        for file in self.runs.iter().flat_map(|run| run.files()) {
            let read = ReadSpec {
                window_bytes: 12 << 20,
                ..ReadSpec::all(Arc::clone(&self.schema))
            };
            let mut batches = self.files.open(file, read);
            while let Some(batch) = batches.try_next().await? {
                rows += batch.len();
            }
        }
        Ok(rows)
    }

    fn job(&self) -> MergeJob {
        MergeJob {
            sections: vec![self.runs.clone()],
            drop_delete: true,
            ..MergeJob::default()
        }
    }

    /// The merged rows, as the compaction writes them.
    pub async fn merged(&self) -> std::result::Result<Vec<KvBatch>, LsmError> {
        self.pipeline.merge(self.job()).try_collect().await
    }

    /// Writes batches as a compaction does. Returns the files.
    pub async fn encode(&self, batches: &[KvBatch]) -> std::result::Result<Vec<DataFileMeta>, LsmError> {
        let mut sink = self.files.data_sink(5, FileSource::Compact);
        for batch in batches {
            sink.write(batch).await?;
        }
        Ok(sink.finish().await?)
    }

    /// The whole compaction. Returns the files.
    pub async fn compact(&self) -> std::result::Result<Vec<DataFileMeta>, LsmError> {
        self.pipeline
            .rewrite(
                self.job(),
                MergeSinks::data(self.files.data_sink(5, FileSource::Compact)),
            )
            .await
            .map(|merged| merged.data)
    }

    /// Removes output files.
    pub async fn remove(&self, files: &[DataFileMeta]) -> std::result::Result<(), LsmError> {
        for file in files {
            self.files.delete(file).await?;
        }
        Ok(())
    }
}

/// A level-0 file from `name:size`; what else is known about it, a merge does not ask.
fn file(word: &str) -> Option<Arc<DataFileMeta>> {
    let (name, size) = word.split_once(':')?;
    Some(Arc::new(DataFileMeta {
        file_source: Some(FileSource::Append),
        ..DataFileMeta::new(name, size.parse().ok()?)
    }))
}
