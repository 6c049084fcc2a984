//! Random writes, flushes, compactions, commits and reopenings against a map.

use std::collections::{BTreeMap, BTreeSet};

use paimon_lsm::pick::{ForceUpLevel0, PickRule};
use paimon_lsm::testing::MemoryKvFiles;
use paimon_lsm::write::MergeTreeWriter;
use paimon_lsm::write::WaitCompaction::{No, Yes};
use proptest::prelude::*;
use std::sync::Arc;

use crate::bucket::{Bucket, Change, idle, write};

/// What happens to the bucket next.
#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Change>),
    /// Memory is given back: to a temporary file, or level 0.
    Spill,
    /// A flush, a wait and a pick.
    Compact,
    Full,
    Commit,
    CommitAndWait,
    /// The writer ends without a commit: what it had is lost.
    Crash,
    /// Another writer goes on with the state.
    HandOver,
    /// Background tasks come so far.
    Yield(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..40_i64, prop::option::weighted(0.8, 0..1000_i64));
    prop_oneof![
        6 => prop::collection::vec(change, 1..30).prop_map(Step::Write),
        1 => Just(Step::Spill),
        2 => Just(Step::Compact),
        1 => Just(Step::Full),
        3 => Just(Step::Commit),
        2 => Just(Step::CommitAndWait),
        1 => Just(Step::Crash),
        1 => Just(Step::HandOver),
        2 => (1..40_u8).prop_map(Step::Yield),
    ]
}

fn bucket() -> impl Strategy<Value = (usize, u64, usize, PickRule, ForceUpLevel0, bool)> {
    (
        1..6_usize,
        prop_oneof![Just(0_u64), Just(10), Just(1000)],
        1..40_usize,
        prop_oneof![
            Just(PickRule::Current),
            Just(PickRule::Release2_0),
            Just(PickRule::Release1_4)
        ],
        prop_oneof![
            Just(ForceUpLevel0::Never),
            Just(ForceUpLevel0::Radical),
            Just(ForceUpLevel0::Gentle(3))
        ],
        any::<bool>(),
    )
}

/// The bucket, what its rows must be, and what files may be there.
struct Model {
    bucket: Bucket,
    writer: MergeTreeWriter,
    committed: BTreeMap<i64, Option<i64>>,
    written: BTreeMap<i64, Option<i64>>,
    /// Committed once and compacted away since: their snapshots still need them.
    expired: BTreeSet<String>,
}

impl Model {
    async fn run(&mut self, step: Step) {
        match step {
            Step::Write(changes) => {
                write(&mut self.writer, &self.bucket.schema, &changes).await;
                for (key, value) in changes {
                    match value {
                        Some(value) => self.written.insert(key, Some(value)),
                        None => self.written.remove(&key),
                    };
                }
            }
            Step::Yield(times) => idle(times).await,
            Step::Spill => self.writer.flush_memory().await.unwrap(),
            Step::Compact => self.writer.compact(false).await.unwrap(),
            Step::Full => self.writer.compact(true).await.unwrap(),
            Step::Commit => self.commit(No).await,
            Step::CommitAndWait => self.commit(Yes).await,
            Step::Crash => {
                let next = self.bucket.writer();
                std::mem::replace(&mut self.writer, next).close().await;
                self.written = self.committed.clone();
                let orphans = self.bucket.orphans();
                assert!(orphans.iter().all(|name| self.expired.contains(name)), "{orphans:?}");
                assert_eq!(self.bucket.spills(), 0);
            }
            Step::HandOver => {
                let state = self.writer.checkpoint().await.unwrap();
                let next = self.bucket.builder().state(state).build().unwrap();
                std::mem::replace(&mut self.writer, next).close().await;
            }
        }
    }

    async fn commit(&mut self, wait: paimon_lsm::write::WaitCompaction) {
        let increment = self.writer.prepare_commit(wait).await.unwrap();
        let before: BTreeSet<String> = self.bucket.live.iter().map(|file| file.file_name.clone()).collect();
        self.bucket.commit(&increment);
        self.expired.extend(before);
        self.expired
            .extend(increment.data.new_files.iter().map(|file| file.file_name.clone()));
        self.committed = self.written.clone();
        assert_eq!(self.bucket.rows().await, self.committed, "{}", self.bucket.tree());
        let top = self.bucket.live.iter().filter(|file| file.level == 5);
        assert!(
            top.into_iter().all(|file| file.delete_row_count == Some(0)),
            "{}",
            self.bucket.tree()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_bucket_is_a_map(
        (trigger, small_file_bytes, roll_rows, rule, force_up_level0, spillable) in bucket(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bucket = Bucket::new();
        bucket.memory = MemoryKvFiles::new(Arc::clone(&bucket.schema)).with_roll_rows(roll_rows);
        bucket.files = Arc::new(bucket.memory.clone());
        let compact = &mut bucket.settings.compact;
        compact.small_file_bytes = small_file_bytes;
        compact.strategy.universal.rule = rule;
        compact.strategy.universal.compaction_trigger = trigger;
        compact.strategy.force_up_level0 = force_up_level0;
        compact.stop_trigger = trigger + 1;
        if !spillable {
            bucket.settings.max_spill_bytes = None;
        }
        let mut model = Model {
            writer: bucket.writer(),
            bucket,
            committed: BTreeMap::new(),
            written: BTreeMap::new(),
            expired: BTreeSet::new(),
        };
        // One thread: background tasks run while the test waits or yields.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for step in steps {
                model.run(step).await;
            }
            model.run(Step::CommitAndWait).await;
            model.run(Step::Crash).await;
        });
    }
}
