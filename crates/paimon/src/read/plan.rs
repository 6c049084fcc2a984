//! From a snapshot to splits.

use paimon_manifest::scan::{DataSplit, LevelRange, ScanFilter, ScanKind, SplitSettings, limit_splits};
use paimon_manifest::snapshot::Snapshot;

use crate::error::Result;
use crate::partition::Partition;
use crate::read::ReadBuilder;
use crate::read::visibility::BatchVisibility;

/// Plans a batch read.
///
/// Source: `org.apache.paimon.table.source.TableScan`.
#[derive(Clone, Debug)]
pub struct TableScan {
    read: ReadBuilder,
}

/// What a batch read has to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The snapshot; `None`: the table has none yet.
    pub snapshot: Option<i64>,
    /// Independent units, by partition, bucket and key.
    pub splits: Vec<DataSplit>,
}

impl TableScan {
    pub(super) fn new(read: ReadBuilder) -> Self {
        Self { read }
    }

    /// Reads the snapshot and its manifests, and leaves out files that cannot hold a row that is wanted.
    ///
    /// Errors: `NotFound` for a snapshot, tag or instant that is not there; `Invalid` naming a column, an option or a bucket; `Unsupported`
    /// naming the feature that this engine cannot read, or a file that was written with options of another meaning; `Corrupt` naming the
    /// file.
    pub async fn plan(&self) -> Result<Plan> {
        let table = &self.read.table;
        let travel = match &self.read.travel {
            Some(travel) => travel.clone(),
            None => table.default_time_travel()?,
        };
        match table.snapshot_store().travel(&travel).await? {
            Some(snapshot) => self.plan_of(&snapshot, LevelRange::all()).await,
            None => {
                table.check_readable()?;
                self.read.selection.check_buckets(table.options(), &[])?;
                Ok(Plan::default())
            }
        }
    }

    /// The plan of a snapshot, as far as these levels go.
    pub(crate) async fn plan_of(&self, snapshot: &Snapshot, levels: LevelRange) -> Result<Plan> {
        let ReadBuilder { table, filter, .. } = &self.read;
        table.check_readable()?;
        let visibility = BatchVisibility::of(table)?;
        let levels = ScanFilter::all().with_levels(visibility.levels.and(&levels));
        let mut scan = table.file_store_scan()?.with_filter(levels);
        if let Some(filter) = filter {
            scan = scan.with_predicate(filter, visibility.values)?;
        }
        let fields = table.partition_fields();
        let selection = self.read.selection.resolve(&fields, &table.default_partition_name())?;
        let mut plan = scan.plan(snapshot, ScanKind::All).await?;
        if filter.is_none() {
            selection.check_buckets(table.options(), &plan.buckets)?;
        }
        let mut selected = Vec::with_capacity(plan.buckets.len());
        for bucket in plan.buckets {
            let partition = Partition::new(bucket.partition.clone(), &fields)?;
            // Rows without a bucket are not visible before a compaction gives them one.
            if bucket.bucket < 0 || !selection.contains(&partition, bucket.bucket) {
                continue;
            }
            selected.push(bucket);
        }
        selected.sort_by(|a, b| (a.partition.as_bytes(), a.bucket).cmp(&(b.partition.as_bytes(), b.bucket)));
        plan.buckets = selected;
        table.check_level_states(&plan.buckets).await?;
        let settings = SplitSettings::from_options(table.options(), visibility.never_merges)?;
        let mut splits = plan.splits(&settings, &table.schema().key_comparator()?)?;
        if let (Some(limit), None) = (self.read.limit, filter) {
            splits = limit_splits(splits, limit as u64);
        }
        Ok(Plan {
            snapshot: Some(snapshot.id),
            splits,
        })
    }
}
