//! What happens when files are slow, fail, or a caller stops half-way.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::poll;
use paimon_format::kv::{BatchSink, FileFormat, KvBatch, KvFiles, KvStream, ReadSpec};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::storage::StorageError;
use paimon_format::{ErrorKind, FormatError};
use paimon_lsm::LsmError;
use paimon_lsm::lookup::{LookupSource, LookupView, SortedKeys};
use paimon_lsm::testing::{MemoryKvFiles, ScanLookup};
use paimon_lsm::write::WaitCompaction::{No, Yes};
use paimon_merge::changelog::{Hits, LookupNeed};
use tokio::sync::Semaphore;

use crate::bucket::{Bucket, all, idle, print, write};

/// Files in memory that can be slow or fail.
#[derive(Clone, Debug)]
struct Faulty {
    inner: MemoryKvFiles,
    /// Opening a file takes a permit.
    opens: Arc<Semaphore>,
    /// Writing a batch takes a permit.
    writes: Arc<Semaphore>,
    fail_reads: Arc<AtomicBool>,
    fail_writes: Arc<AtomicBool>,
    /// As `fail_writes`, for changelog files.
    fail_changelog: Arc<AtomicBool>,
}

const MANY: usize = 1 << 20;

impl Faulty {
    /// Around the bucket's files; nothing is slow yet.
    fn around(bucket: &mut Bucket) -> Self {
        let faulty = Self {
            inner: bucket.memory.clone(),
            opens: Arc::new(Semaphore::new(MANY)),
            writes: Arc::new(Semaphore::new(MANY)),
            fail_reads: Arc::default(),
            fail_writes: Arc::default(),
            fail_changelog: Arc::default(),
        };
        bucket.files = Arc::new(faulty.clone());
        faulty
    }

    fn close(gate: &Semaphore) {
        gate.forget_permits(MANY);
    }

    fn open_again(gate: &Semaphore) {
        gate.add_permits(MANY);
    }
}

fn failure() -> FormatError {
    FormatError::Storage(StorageError::Unavailable {
        path: "bucket-0/file".into(),
        message: "on purpose".into(),
    })
}

#[async_trait]
impl KvFiles for Faulty {
    fn open(&self, file: &DataFileMeta, read: ReadSpec) -> KvStream {
        let (opens, fail) = (Arc::clone(&self.opens), Arc::clone(&self.fail_reads));
        let batches = self.inner.open(file, read);
        futures::stream::once(async move {
            opens.acquire().await.unwrap().forget();
            match fail.load(Ordering::SeqCst) {
                true => futures::stream::once(async { Err(failure()) }).boxed(),
                false => batches,
            }
        })
        .flatten()
        .boxed()
    }

    fn format(&self, level: i32) -> FileFormat {
        self.inner.format(level)
    }

    fn data_sink(&self, level: i32, source: FileSource) -> Box<dyn BatchSink> {
        Box::new(FaultySink {
            inner: self.inner.data_sink(level, source),
            writes: Arc::clone(&self.writes),
            fail: Arc::clone(&self.fail_writes),
        })
    }

    fn changelog_sink(&self, level: i32) -> Box<dyn BatchSink> {
        Box::new(FaultySink {
            inner: self.inner.changelog_sink(level),
            writes: Arc::clone(&self.writes),
            fail: Arc::clone(&self.fail_changelog),
        })
    }

    async fn delete(&self, file: &DataFileMeta) -> Result<(), FormatError> {
        self.inner.delete(file).await
    }

    async fn delete_extra(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError> {
        self.inner.delete_extra(file, name).await
    }
}

struct FaultySink {
    inner: Box<dyn BatchSink>,
    writes: Arc<Semaphore>,
    fail: Arc<AtomicBool>,
}

#[async_trait]
impl BatchSink for FaultySink {
    async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        self.writes.acquire().await.unwrap().forget();
        self.inner.write(batch).await?;
        match self.fail.load(Ordering::SeqCst) {
            true => Err(failure()),
            false => Ok(()),
        }
    }

    async fn finish(self: Box<Self>) -> Result<Vec<DataFileMeta>, FormatError> {
        self.inner.finish().await
    }

    async fn abort(self: Box<Self>) {
        self.inner.abort().await;
    }
}

/// Two runs are compacted, four stop the writer, a full buffer is flushed.
fn hasty() -> Bucket {
    let mut bucket = Bucket::new();
    bucket.settings.max_spill_bytes = None;
    bucket.settings.compact.strategy.universal.compaction_trigger = 2;
    bucket.settings.compact.stop_trigger = 3;
    bucket
}

#[tokio::test]
async fn too_many_runs_hold_the_writer_back_until_the_compaction_ends() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    Faulty::close(&faulty.opens);
    // A compaction starts at the second run and gets stuck; two more flushes do not mind.
    for round in 0..4 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        writer.flush_memory().await.unwrap();
    }
    let runs = |writer: &paimon_lsm::write::MergeTreeWriter| writer.levels().map_or(0, |view| view.runs().len());
    assert_eq!(runs(&writer), 4);
    write(&mut writer, &bucket.schema, &all(0..5, 4)).await;
    let watch = writer.watch();
    assert_eq!((watch.state().sorted_runs, watch.state().stalls), (4, 0));
    assert!(watch.state().buffered_bytes > 0);
    {
        let mut flush = pin!(writer.flush_memory());
        assert!(poll!(flush.as_mut()).is_pending());
        // Others see that it waits, and since when.
        let stalled = watch.state();
        assert!(stalled.stalled_since_ms.is_some() && stalled.stalls == 1, "{stalled:?}");
        assert!(poll!(flush.as_mut()).is_pending());
        Faulty::open_again(&faulty.opens);
        flush.await.unwrap();
    }
    let state = watch.state();
    assert!(
        state.stalled_since_ms.is_none() && state.stalls == 1 && state.stalled_ms > 0,
        "{state:?}"
    );
    assert_eq!(
        (state.sorted_runs, state.buffered_bytes),
        (4, 0),
        "two of five runs became one"
    );
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "0=4 1=4 2=4 3=4 4=4");
    assert!(bucket.live.len() < 4, "{}", bucket.tree());
}

#[tokio::test]
async fn a_commit_waits_only_when_the_tree_is_far_too_large() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    Faulty::close(&faulty.opens);
    for round in 0..4 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        assert!(increment.compact.is_empty());
        bucket.commit(&increment);
    }
    // A task whose result is outstanding is not followed by another one.
    assert!(writer.compact_not_completed().unwrap());
    write(&mut writer, &bucket.schema, &all(0..5, 4)).await;
    let increment = {
        let mut commit = pin!(writer.prepare_commit(No));
        assert!(poll!(commit.as_mut()).is_pending());
        Faulty::open_again(&faulty.opens);
        commit.await.unwrap()
    };
    assert!(!increment.compact.is_empty());
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "0=4 1=4 2=4 3=4 4=4");
}

#[tokio::test]
async fn a_failed_compaction_leaves_tree_and_files_as_they_were() {
    let mut bucket = hasty();
    bucket.settings.compact.strategy.universal.compaction_trigger = 10;
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    for round in 0..2 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
    }
    for broken in [&faulty.fail_reads, &faulty.fail_writes] {
        write(&mut writer, &bucket.schema, &all(0..5, 7)).await;
        writer.compact(false).await.unwrap();
        writer.sync().await.unwrap();
        // Flushed is all; only compactions fail now.
        broken.store(true, Ordering::SeqCst);
        writer.compact(true).await.unwrap();
        let error = writer.sync().await.unwrap_err();
        broken.store(false, Ordering::SeqCst);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.to_string(), "bucket-0/file: storage unavailable: on purpose");
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
        assert_eq!(print(&bucket.rows().await), "0=7 1=7 2=7 3=7 4=7");
    }
    writer.close().await;
}

#[tokio::test]
async fn a_closed_writer_stops_its_compaction_without_a_trace() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    Faulty::close(&faulty.opens);
    for round in 0..2 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    let before = bucket.tree();
    {
        let mut close = pin!(writer.close());
        // It ends when its task has.
        assert!(poll!(close.as_mut()).is_pending());
        Faulty::open_again(&faulty.opens);
        close.await;
    }
    assert_eq!(bucket.orphans(), [""; 0]);
    assert_eq!(bucket.tree(), before);
    assert_eq!(print(&bucket.rows().await), "0=1 1=1 2=1 3=1 4=1");
}

#[tokio::test]
async fn a_dropped_writer_stops_its_compaction_too() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    Faulty::close(&faulty.opens);
    for round in 0..2 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    drop(writer);
    Faulty::open_again(&faulty.opens);
    idle(200).await;
    assert_eq!(bucket.orphans(), [""; 0]);
}

#[tokio::test]
async fn a_failed_flush_ends_the_writer() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    faulty.fail_writes.store(true, Ordering::SeqCst);
    write(&mut writer, &bucket.schema, &all(0..5, 1)).await;
    let error = writer.prepare_commit(No).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    faulty.fail_writes.store(false, Ordering::SeqCst);
    let error = writer.prepare_commit(No).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the writer lost records when a flush failed: close it, open a new one and write again from the last commit"
    );
    writer.close().await;
    assert_eq!(bucket.memory.names(), [""; 0]);
}

#[tokio::test]
async fn a_flush_that_is_dropped_half_way_ends_the_writer() {
    let mut bucket = hasty();
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    Faulty::close(&faulty.writes);
    write(&mut writer, &bucket.schema, &all(0..5, 1)).await;
    {
        let mut commit = pin!(writer.prepare_commit(No));
        assert!(poll!(commit.as_mut()).is_pending());
    }
    Faulty::open_again(&faulty.writes);
    assert_eq!(writer.prepare_commit(No).await.unwrap_err().kind(), ErrorKind::Invalid);
    writer.close().await;
    assert_eq!(bucket.memory.names(), [""; 0]);
}

#[tokio::test]
async fn changelog_and_data_of_a_failed_compaction_go_together() {
    let mut bucket = Bucket::with_options(&[
        ("changelog-producer", "lookup"),
        ("merge-engine", "aggregation"),
        ("fields.v.aggregate-function", "sum"),
    ]);
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &all(0..5, 1)).await;
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    for broken in [&faulty.fail_reads, &faulty.fail_writes, &faulty.fail_changelog] {
        // The flush goes well, the compaction does not.
        bucket.settings.write_only = true;
        let mut beside = bucket.writer();
        write(&mut beside, &bucket.schema, &all(0..5, 1)).await;
        let increment = beside.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
        bucket.settings.write_only = false;
        let known = faulty.inner.names();
        let mut writer = bucket.writer();
        broken.store(true, Ordering::SeqCst);
        assert!(writer.compact_not_completed().unwrap());
        let error = writer.sync().await.unwrap_err();
        broken.store(false, Ordering::SeqCst);
        assert_eq!(error.to_string(), "bucket-0/file: storage unavailable: on purpose");
        assert_eq!(faulty.inner.names(), known);
    }
    let mut writer = bucket.writer();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    // Three rows of a key that were merged before the old one was looked up.
    assert_eq!(
        bucket.records(&increment.compact.changelog_files).await,
        "-U(0,1) +U(0,4) -U(1,1) +U(1,4) -U(2,1) +U(2,4) -U(3,1) +U(3,4) -U(4,1) +U(4,4)"
    );
}

#[tokio::test]
async fn an_input_changelog_goes_with_its_flush() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "input")]);
    let faulty = Faulty::around(&mut bucket);
    let mut writer = bucket.writer();
    faulty.fail_changelog.store(true, Ordering::SeqCst);
    write(&mut writer, &bucket.schema, &all(0..5, 1)).await;
    assert_eq!(
        writer.prepare_commit(No).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    writer.close().await;
    assert_eq!(bucket.memory.names(), [""; 0]);
}

/// Puts a file beside each file that it sees, until it fails.
#[derive(Debug)]
struct Sidecars {
    inner: ScanLookup,
    files: MemoryKvFiles,
    sample: KvBatch,
    left: AtomicUsize,
}

#[async_trait]
impl LookupSource for Sidecars {
    async fn lookup(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Hits, LsmError> {
        self.inner.lookup(keys, view, start_level, need, max_bytes).await
    }

    async fn written(&self, mut files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError> {
        for file in &mut files {
            let left = self.left.load(Ordering::SeqCst).checked_sub(1);
            self.left.store(left.ok_or_else(failure)?, Ordering::SeqCst);
            let beside = self.files.add(file.level, std::slice::from_ref(&self.sample))?;
            file.extra_files.push(beside.file_name.clone());
        }
        Ok(files)
    }

    fn dropped(&self, _files: &[Arc<DataFileMeta>]) {}
}

impl Sidecars {
    /// For the bucket's files, with rows of the first live one in the sidecars.
    async fn of(bucket: &Bucket, left: usize) -> Self {
        let all = ReadSpec::all(Arc::clone(&bucket.schema));
        let sample = bucket.memory.open(&bucket.live[0], all).collect::<Vec<_>>().await;
        Self {
            inner: ScanLookup::new(Arc::clone(&bucket.files)),
            files: bucket.memory.clone(),
            sample: sample.into_iter().next().unwrap().unwrap(),
            left: AtomicUsize::new(left),
        }
    }
}

/// A bucket with one file on level 0 for each of these ranges of keys.
async fn flushed(options: &[(&str, &str)], files: impl IntoIterator<Item = std::ops::Range<i64>>) -> Bucket {
    let mut bucket = Bucket::with_options(options);
    bucket.settings.write_only = true;
    let mut writer = bucket.writer();
    for keys in files {
        write(&mut writer, &bucket.schema, &all(keys, 1)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    writer.close().await;
    bucket.settings.write_only = false;
    bucket
}

/// Two files of level 0 that overlap nothing: a compaction moves both, one after the other.
#[rstest::rstest]
#[case::the_second_file_gets_none(1)]
#[case::the_writer_ends_without_a_commit(2)]
#[tokio::test]
async fn sidecars_of_moved_files_go_when_the_move_comes_to_nothing(#[case] sidecars: usize) {
    let bucket = flushed(&[("changelog-producer", "lookup")], [0..20, 100..120]).await;
    let known = bucket.memory.names();
    let lookup = Sidecars::of(&bucket, sidecars).await;
    let writer = bucket.builder().lookup(Some(Arc::new(lookup)));
    let mut writer = writer.restore(bucket.live.clone()).build().unwrap();
    writer.compact(true).await.unwrap();
    match writer.sync().await {
        Ok(()) => assert_eq!((sidecars, bucket.memory.names().len()), (2, known.len() + 4)),
        Err(error) => assert_eq!(error.to_string(), "bucket-0/file: storage unavailable: on purpose"),
    }
    writer.close().await;
    assert_eq!(bucket.memory.names(), known);
}

#[tokio::test]
async fn sidecars_of_a_moved_file_go_when_it_is_merged_before_the_commit() {
    let bucket = flushed(&[("changelog-producer", "lookup")], [0..20]).await;
    let known = bucket.memory.names();
    let lookup = Sidecars::of(&bucket, MANY).await;
    let writer = bucket.builder().lookup(Some(Arc::new(lookup)));
    let mut writer = writer.restore(bucket.live.clone()).build().unwrap();
    writer.compact(true).await.unwrap();
    writer.sync().await.unwrap();
    assert_eq!(bucket.memory.names().len(), known.len() + 2, "changelog and sidecar");
    write(&mut writer, &bucket.schema, &all(0..20, 2)).await;
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    let (data, compact) = (&increment.data, &increment.compact);
    let lists = [
        &data.new_files,
        &compact.compact_before,
        &compact.compact_after,
        &compact.changelog_files,
    ];
    let files = lists.into_iter().flatten();
    let named: Vec<&String> = files
        .flat_map(|file| std::iter::once(&file.file_name).chain(&file.extra_files))
        .collect();
    assert_eq!(compact.compact_after.len(), 1);
    for name in bucket.memory.names() {
        assert!(named.contains(&&name), "nobody names {name}");
    }
    writer.close().await;
}

#[tokio::test]
async fn a_result_that_does_not_fit_in_any_more_leaves_nothing() {
    let bucket = flushed(&[("changelog-producer", "lookup")], [0..20, 10..30]).await;
    let all = ReadSpec::all(Arc::clone(&bucket.schema));
    let rows = bucket.memory.open(&bucket.live[0], all).collect::<Vec<_>>().await;
    let mut writer = bucket.writer();
    writer.compact(true).await.unwrap();
    // Another job has put a file where the result is to go.
    let other = bucket
        .memory
        .add(5, &[rows.into_iter().next().unwrap().unwrap()])
        .unwrap();
    let known = bucket.memory.names();
    writer.notify_new_files(&[other]).unwrap();
    let error = writer.sync().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(bucket.memory.names(), known);
    writer.close().await;
}
