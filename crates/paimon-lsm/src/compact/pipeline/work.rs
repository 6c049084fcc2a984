//! The synchronous half of a merge.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_select::interleave::interleave;
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, Keys, KvBatch, KvSchema};
use paimon_merge::MergeError;
use paimon_merge::changelog::{Hits, MergeStage, StageOutput};
use paimon_merge::kernel::Assembler;
use paimon_merge::plan::{Block, KeyGroups, MergePlan, Step};

use crate::lookup::SortedKeys;

/// A batch that a merge gives.
#[derive(Debug)]
pub(super) enum Output {
    /// Merged rows.
    Data(KvBatch),
    /// Changes.
    Changelog(KvBatch),
}

/// Which rows a merge keeps, and which it tells about.
pub(super) enum Merging {
    /// All versions of all keys.
    Nothing,
    /// What a stage makes of them.
    Stage(Box<dyn MergeStage>),
    /// What a stage makes of them; the changelog has all versions of all keys.
    StageBesideInput(Box<dyn MergeStage>),
}

/// Rows that are in key order already, versions of a key oldest first: blocks without a merge.
pub(crate) trait SortedBlocks: Send {
    /// The next stretch of keys, each with all of its versions, or cut where there are very many and `cut_keys` allows it; `None` at the
    /// end. CPU-bound.
    fn next_block(&mut self, cut_keys: bool) -> Result<Option<Block>, MergeError>;
}

/// Where blocks come from.
pub(super) enum Blocks {
    /// Before the first section that is merged.
    None,
    /// Runs.
    Plan(Box<MergePlan>),
    /// One run in memory, and whether its keys may be cut.
    Sorted(Box<dyn SortedBlocks>, bool),
}

/// Travels to the CPU pool and back, once a block, twice if old rows are looked up.
pub(super) struct Work {
    pub(super) blocks: Blocks,
    merging: Merging,
    output: StageOutput,
    waiting: Option<Waiting>,
    schema: Arc<KvSchema>,
    codec: KeyCodec,
    /// `None`: merged rows are not wanted.
    data: Option<Assembler>,
    /// `None`: changes are not wanted.
    changelog: Option<Assembler>,
}

/// A block whose old rows are being looked up.
struct Waiting {
    block: Block,
    /// The groups whose old rows are wanted, ascending.
    missing: Vec<u32>,
}

/// What one call on the CPU pool came to.
#[derive(Debug)]
pub(super) enum Progress {
    Block,
    /// The old rows of these keys are needed.
    LookUp(SortedKeys),
    Starving,
    Done,
}

impl Work {
    /// Errors: `Unsupported` when a key column's type cannot be normalized.
    pub(super) fn new(
        schema: &Arc<KvSchema>,
        merging: Merging,
        data: Option<Assembler>,
        changelog: Option<Assembler>,
    ) -> Result<Self, MergeError> {
        Ok(Self {
            blocks: Blocks::None,
            merging,
            output: StageOutput::default(),
            waiting: None,
            codec: KeyCodec::new(schema)?,
            schema: Arc::clone(schema),
            data,
            changelog,
        })
    }

    /// Goes on to the next block and merges it, unless old rows are needed for that.
    pub(super) fn block(&mut self) -> Result<Progress, MergeError> {
        if let Some(Waiting { block, missing }) = &self.waiting {
            return self.keys_of(&block.groups(), missing).map(Progress::LookUp);
        }
        let step = match &mut self.blocks {
            Blocks::None => Step::Done,
            Blocks::Plan(plan) => plan.step()?,
            Blocks::Sorted(sorted, cut_keys) => sorted.next_block(*cut_keys)?.map_or(Step::Done, Step::Block),
        };
        let block = match step {
            Step::NeedInput(_) => return Ok(Progress::Starving),
            Step::Done => return Ok(Progress::Done),
            Step::Block(block) => block,
        };
        let groups = block.groups();
        let missing = match &self.merging {
            Merging::Stage(stage) if !groups.is_empty() => stage.missing(&groups),
            _ => Vec::new(),
        };
        if missing.is_empty() {
            self.merge(&block, &Hits::none())?;
            return Ok(Progress::Block);
        }
        let keys = self.keys_of(&groups, &missing)?;
        self.waiting = Some(Waiting { block, missing });
        Ok(Progress::LookUp(keys))
    }

    /// Merges the block whose old rows were asked for, up to the first key that was not answered: the rest waits on.
    pub(super) fn merge_waiting(&mut self, hits: &Hits) -> Result<(), MergeError> {
        let Some(Waiting { mut block, missing }) = self.waiting.take() else {
            return Err(MergeError::internal("old rows of a block that was not there"));
        };
        if let Some(&next) = missing.get(hits.found.len()) {
            let (answered, rest) = block.split_at(next);
            block = answered;
            let missing = missing.iter().skip(hits.found.len());
            self.waiting = Some(Waiting {
                block: rest,
                missing: missing.map(|group| group - next).collect(),
            });
        }
        self.merge(&block, hits)
    }

    fn merge(&mut self, block: &Block, hits: &Hits) -> Result<(), MergeError> {
        let groups = block.groups();
        let stage = match &mut self.merging {
            Merging::Nothing => {
                return self.data.as_mut().map_or(Ok(()), |data| data.add_unmerged(block));
            }
            Merging::Stage(stage) => stage,
            Merging::StageBesideInput(stage) => {
                if let Some(changelog) = &mut self.changelog {
                    changelog.add_unmerged(block)?;
                }
                stage
            }
        };
        self.output.clear();
        if !groups.is_empty() {
            stage.merge(&groups, hits, &mut self.output)?;
        }
        let StageOutput {
            merged,
            changelog: changes,
        } = &self.output;
        let assembler = self.data.as_ref().or(self.changelog.as_ref());
        let Some(assembler) = assembler else { return Ok(()) };
        let extras = assembler.extras(merged.made.as_ref(), hits.rows.as_ref())?;
        if let Some(data) = &mut self.data {
            data.add_merged(block, merged, &extras)?;
        }
        if let (Some(changelog), Merging::Stage(_)) = (&mut self.changelog, &self.merging) {
            changelog.add_changelog(block, changes, &extras)?;
        }
        Ok(())
    }

    /// Appends a batch in which nothing can change.
    pub(super) fn pass(&mut self, batch: &KvBatch) -> Result<(), MergeError> {
        self.data.as_mut().map_or(Ok(()), |data| data.add_batch(batch))
    }

    /// The next finished batch.
    pub(super) fn next_output(&mut self) -> Option<Output> {
        let data = self.data.as_mut().and_then(Assembler::next_batch);
        data.map(Output::Data).or_else(|| {
            let changes = self.changelog.as_mut().and_then(Assembler::next_batch);
            changes.map(Output::Changelog)
        })
    }

    /// Ends the unfinished batches.
    pub(super) fn finish(&mut self) -> Result<(), MergeError> {
        let assemblers = [&mut self.data, &mut self.changelog];
        assemblers.into_iter().flatten().try_for_each(Assembler::finish)
    }

    /// The keys of some groups, gathered from the first version of each.
    fn keys_of(&self, groups: &KeyGroups<'_>, wanted: &[u32]) -> Result<SortedKeys, MergeError> {
        // Most batches have no such row: only those that do take part in gathering.
        let mut slots: BTreeMap<u32, usize> = BTreeMap::new();
        let mut rows = Vec::with_capacity(wanted.len());
        for &group in wanted {
            let first = groups.rows.get(groups.start(group as usize));
            let first = first.ok_or_else(|| MergeError::internal("a stage asks for a group that is not there"))?;
            let next = slots.len();
            let slot = *slots.entry(first.batch).or_insert(next);
            rows.push((slot, first.row as usize));
        }
        let mut sources: Vec<(usize, &KvBatch)> = slots
            .into_iter()
            .filter_map(|(batch, slot)| Some((slot, groups.sources.get(batch as usize)?)))
            .collect();
        sources.sort_unstable_by_key(|(slot, _)| *slot);
        let columns = self.schema.key.iter().map(|&column| {
            let arrays = sources.iter().filter_map(|(_, source)| source.values().get(column));
            let arrays: Vec<&dyn Array> = arrays.map(AsRef::as_ref).collect();
            interleave(&arrays, &rows)
        });
        let columns: Vec<ArrayRef> = columns
            .collect::<Result<_, _>>()
            .map_err(|error| FormatError::internal(format!("gathering keys: {error}")))?;
        let keys: Vec<&Keys> = sources.iter().map(|(_, source)| &source.keys).collect();
        Ok(SortedKeys {
            schema: Arc::clone(&self.schema),
            keys: self.codec.gather(&keys, rows.iter().copied())?,
            columns,
        })
    }
}
