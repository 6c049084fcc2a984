//! Two states of a table, compared bucket by bucket.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch};
use arrow_select::filter::{filter, filter_record_batch};
use arrow_select::interleave::interleave_record_batch;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use paimon_format::env::Env;
use paimon_format::kv::{KeyCodec, Keys};
use paimon_format::predicate::Predicate;
use paimon_format::row::BinaryRow;
use paimon_format::types::RowKind;
use paimon_manifest::scan::{DataSplit, LevelRange};
use paimon_manifest::snapshot::Snapshot;
use paimon_merge::changelog::ValueEqualiser;
use paimon_merge::plan::RowRef;

use super::read::{ChangesReader, SplitRows};
use super::stream::ChangelogStream;
use super::{ChangelogBatch, StreamPosition};
use crate::error::{Error, Result};
use crate::read::{ReadBuilder, RowStream, SplitReader, read_ahead};

/// A partition and a bucket of it.
type Bucket = (BinaryRow, i32);

/// What is new, other or gone in `after` against `before` (`None`: no rows). Buckets come in the order of partition bytes and number,
/// rows in key order.
///
/// Cost: both states are read and merged. Source: `org.apache.paimon.table.source.splitread.IncrementalDiffSplitRead`.
pub(super) async fn read(reader: ChangesReader, before: Option<Snapshot>, after: Snapshot) -> Result<ChangelogStream> {
    let states = [before.as_ref(), Some(&after)].map(|snapshot| whole_buckets(&reader, snapshot));
    let [before, mut after_buckets] = future::try_join_all(states)
        .await?
        .try_into()
        .map_err(|_| Error::internal("two states, not two plans"))?;
    let differ = Arc::new(Differ::new(&reader)?);
    let mut pairs = Vec::new();
    for (bucket, before) in before {
        let after = after_buckets.remove(&bucket);
        check_bucket_count(&differ, &before, after.as_ref())?;
        pairs.push((bucket, (Some(before), after)));
    }
    pairs.extend(
        after_buckets
            .into_iter()
            .map(|(bucket, after)| (bucket, (None, Some(after)))),
    );
    pairs.sort_by(|((a, a_bucket), _), ((b, b_bucket), _)| (a.as_bytes(), a_bucket).cmp(&(b.as_bytes(), b_bucket)));
    let runtime = Arc::clone(&reader.table().context().env().runtime);
    let buckets = pairs.into_iter().enumerate();
    let buckets = buckets.map(move |(number, (_, (before, after)))| {
        let differ = Arc::clone(&differ);
        let changes = stream::once(async move { differ.changes(before, after).await });
        changes
            .try_flatten()
            .map_ok(move |rows| SplitRows::new(number, rows))
            .boxed()
    });
    // All changes together lead to the second state, which a stream may follow from there.
    let position = StreamPosition::changes_of(after.id + 1);
    let changes = read_ahead(runtime, buckets, reader.parallelism).map_ok(move |rows| ChangelogBatch {
        snapshot_id: after.id,
        ..ChangelogBatch::new(position, rows)
    });
    Ok(changes.boxed())
}

/// Everything that lives in each bucket.
async fn whole_buckets(reader: &ChangesReader, snapshot: Option<&Snapshot>) -> Result<HashMap<Bucket, DataSplit>> {
    let mut buckets: HashMap<Bucket, DataSplit> = HashMap::new();
    let Some(snapshot) = snapshot else {
        return Ok(buckets);
    };
    // Whether a row passes is asked when it is known what became of it.
    let read = ReadBuilder::new(reader.table().clone()).select(reader.read.selection.clone());
    for split in read.new_scan().plan_of(snapshot, LevelRange::all()).await?.splits {
        match buckets.get_mut(&(split.partition.clone(), split.bucket)) {
            Some(bucket) => {
                bucket.files.extend(split.files);
                bucket.deletion_files.extend(split.deletion_files);
            }
            None => {
                let whole = DataSplit {
                    raw_convertible: false,
                    ..split
                };
                buckets.insert((whole.partition.clone(), whole.bucket), whole);
            }
        }
    }
    Ok(buckets)
}

/// Keys change their bucket with the bucket count.
fn check_bucket_count(differ: &Differ, before: &DataSplit, after: Option<&DataSplit>) -> Result<()> {
    match after {
        Some(after) if after.total_buckets != before.total_buckets => {
            let error = Error::unsupported(format!(
                "comparing a state of {} buckets with one of {}",
                before.total_buckets, after.total_buckets
            ));
            Err(error.in_bucket(&differ.splits.bucket_name(&before.partition, before.bucket)?))
        }
        _ => Ok(()),
    }
}

/// Compares buckets of one table.
struct Differ {
    env: Env,
    /// Reads all columns.
    splits: Arc<SplitReader>,
    codec: KeyCodec,
    /// Positions of the key among the columns.
    key: Vec<usize>,
    equaliser: ValueEqualiser,
    /// Of what changed, the rows and columns that are wanted.
    filter: Option<Arc<Predicate>>,
    columns: Arc<[usize]>,
}

/// Rows of one state, and where the next ones come from.
struct Side {
    rows: RowStream,
    head: Option<Rows>,
}

/// Rows with their keys, ascending.
struct Rows {
    columns: RecordBatch,
    keys: Keys,
}

impl Rows {
    fn len(&self) -> usize {
        self.columns.num_rows()
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        Self {
            columns: self.columns.slice(from, to - from),
            keys: self.keys.slice(from, to - from),
        }
    }

    /// Splits off the rows whose keys are at most the last key of the other rows.
    fn up_to(&self, other: &Self) -> (Self, Option<Self>) {
        let end = match other.len() {
            0 => 0,
            len => self.keys.upper_bound(0, &other.keys, len - 1),
        };
        let rest = (end < self.len()).then(|| self.slice(end, self.len()));
        (self.slice(0, end), rest)
    }
}

impl Differ {
    fn new(reader: &ChangesReader) -> Result<Self> {
        let table = reader.table();
        let schema = table.schema().kv_schema()?;
        let positions = 0..schema.fields.len();
        Ok(Self {
            env: table.context().env().clone(),
            splits: Arc::new(SplitReader::of_all_columns(table)?),
            codec: KeyCodec::new(&schema)?,
            equaliser: ValueEqualiser::of_columns(positions.filter(|&position| !schema.is_primary_key(position))),
            key: schema.key.clone(),
            filter: reader.read.filter.clone(),
            columns: Arc::clone(&reader.read.columns),
        })
    }

    /// What changed in a bucket.
    async fn changes(
        self: Arc<Self>,
        before: Option<DataSplit>,
        after: Option<DataSplit>,
    ) -> Result<BoxStream<'static, Result<(RecordBatch, Int8Array)>>> {
        let sides = (self.side(before).await?, self.side(after).await?);
        let blocks = stream::try_unfold(sides, move |(mut before, mut after)| {
            let differ = Arc::clone(&self);
            async move {
                let Some((old, new)) = differ.next_block(&mut before, &mut after).await? else {
                    return Ok(None);
                };
                let env = differ.env.clone();
                let changes = env.cpu(move || differ.compare(&old, &new)).await??;
                Ok::<_, Error>(Some((changes, (before, after))))
            }
        });
        Ok(blocks.try_filter(|(_, kinds)| future::ready(!kinds.is_empty())).boxed())
    }

    async fn side(&self, split: Option<DataSplit>) -> Result<Side> {
        let rows = match split {
            Some(split) => Arc::clone(&self.splits).rows(split).await?,
            None => stream::empty().boxed(),
        };
        Ok(Side { rows, head: None })
    }

    /// The next rows of both states, up to the same key; `None` at the end of both.
    async fn next_block(&self, before: &mut Side, after: &mut Side) -> Result<Option<(Rows, Rows)>> {
        self.fill(before).await?;
        self.fill(after).await?;
        Ok(match (before.head.take(), after.head.take()) {
            (None, None) => None,
            (Some(old), None) => {
                let none = old.slice(0, 0);
                Some((old, none))
            }
            (None, Some(new)) => Some((new.slice(0, 0), new)),
            (Some(old), Some(new)) => {
                let (old_part, old_rest) = old.up_to(&new);
                let (new_part, new_rest) = new.up_to(&old);
                (before.head, after.head) = (old_rest, new_rest);
                Some((old_part, new_part))
            }
        })
    }

    /// Reads on where no rows are at hand.
    async fn fill(&self, side: &mut Side) -> Result<()> {
        while side.head.is_none() {
            let Some(columns) = side.rows.try_next().await? else {
                return Ok(());
            };
            if columns.num_rows() == 0 {
                continue;
            }
            let key = self.key.iter().filter_map(|&column| columns.columns().get(column));
            let key: Vec<_> = key.map(Arc::clone).collect();
            let keys = self.codec.keys_of_columns(&key)?;
            side.head = Some(Rows { columns, keys });
        }
        Ok(())
    }

    /// What changed, with kinds: `+I` new, `+U` other than before, `-D` gone.
    fn compare(&self, old: &Rows, new: &Rows) -> Result<(RecordBatch, Int8Array)> {
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut kinds = Vec::new();
        // Of keys that both have: the rows, and their place in `rows`.
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < old.len() || j < new.len() {
            let order = match (i < old.len(), j < new.len()) {
                (true, true) => old.keys.compare(i, &new.keys, j),
                (true, false) => Ordering::Less,
                (false, _) => Ordering::Greater,
            };
            match order {
                Ordering::Less => {
                    rows.push((0, i));
                    kinds.push(RowKind::Delete as i8);
                    i += 1;
                }
                Ordering::Greater => {
                    rows.push((1, j));
                    kinds.push(RowKind::Insert as i8);
                    j += 1;
                }
                Ordering::Equal => {
                    places.push(rows.len());
                    pairs.push((row_ref(0, i)?, row_ref(1, j)?));
                    rows.push((1, j));
                    kinds.push(RowKind::UpdateAfter as i8);
                    i += 1;
                    j += 1;
                }
            }
        }
        let batches = [&old.columns, &new.columns];
        let mut changed = vec![true; rows.len()];
        for (place, equal) in places.into_iter().zip(self.equaliser.equal(&batches, &pairs)?) {
            if let Some(changed) = changed.get_mut(place) {
                *changed = !equal;
            }
        }
        let mut keep = changed.iter();
        rows.retain(|_| keep.next().is_some_and(|keep| *keep));
        let mut keep = changed.iter();
        kinds.retain(|_| keep.next().is_some_and(|keep| *keep));
        self.wanted(interleave_record_batch(&batches, &rows)?, Int8Array::from(kinds))
    }

    /// The rows that pass, and the columns that were asked for.
    fn wanted(&self, columns: RecordBatch, kinds: Int8Array) -> Result<(RecordBatch, Int8Array)> {
        let (columns, kinds) = match &self.filter {
            None => (columns, kinds),
            Some(predicate) => {
                let keep = predicate.evaluate(&columns)?;
                let kinds = filter(&kinds, &keep)?;
                let kinds = Int8Array::from(arrow_array::Array::to_data(&kinds));
                (filter_record_batch(&columns, &keep)?, kinds)
            }
        };
        Ok((columns.project(&self.columns)?, kinds))
    }
}

fn row_ref(batch: u32, row: usize) -> Result<RowRef> {
    let row = u32::try_from(row).map_err(|_| Error::internal("a batch of more than 2^32 rows"))?;
    Ok(RowRef { batch, row })
}
