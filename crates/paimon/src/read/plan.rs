//! From a snapshot to splits.

use paimon_format::types::Datum;
use paimon_manifest::{BucketFiles, ScanFilter, SplitSettings, split_for_batch};

use crate::error::{Error, Result};
use crate::partition::Partition;
use crate::read::prune::Pruning;
use crate::read::{ReadBuilder, Split};

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
    pub splits: Vec<Split>,
}

impl TableScan {
    pub(super) fn new(read: ReadBuilder) -> Self {
        Self { read }
    }

    /// Reads the snapshot and its manifests, and leaves out files that cannot hold a row that is wanted.
    ///
    /// Errors: `NotFound` for a snapshot, tag or instant that is not there; `Invalid` naming a column or option; `Unsupported`
    /// naming the feature that this engine cannot read; `Corrupt` naming the file.
    pub async fn plan(&self) -> Result<Plan> {
        let ReadBuilder { table, .. } = &self.read;
        table.check_readable()?;
        if let Some(filter) = &self.read.filter {
            filter.check(&table.schema().fields)?;
        }
        let fields = table.partition_fields();
        let selection = self.read.selection.resolve(&fields, &table.default_partition_name())?;
        let travel = match &self.read.travel {
            Some(travel) => travel.clone(),
            None => table.default_time_travel()?,
        };
        let Some(snapshot) = table.snapshot_store().travel(&travel).await? else {
            return Ok(Plan::default());
        };
        let keys = table.schema().key_comparator()?;
        let settings = SplitSettings::from_options(table.options(), false)?;
        let pruning = Pruning::new(table, self.read.filter.as_deref())?;
        let mut splits = Vec::new();
        for bucket in table.files(&snapshot, ScanFilter::all()).await? {
            // Rows without a bucket are not visible before a compaction gives them one.
            if bucket.bucket < 0 || !self.wants(&bucket, &selection, &pruning)? {
                continue;
            }
            if !bucket.deletion_files.is_empty() {
                let name = table.paths().bucket(&bucket.partition, bucket.bucket)?;
                return Err(Error::unsupported(format!("{}: it has deletion vectors", name.directory())));
            }
            let files = pruning.files(bucket.files)?;
            for split in split_for_batch(&files, &settings, &keys)? {
                splits.push(Split {
                    snapshot: snapshot.id,
                    partition: bucket.partition.clone(),
                    bucket: bucket.bucket,
                    total_buckets: bucket.total_buckets,
                    files: split.files,
                    raw_convertible: split.raw_convertible,
                });
            }
        }
        Ok(Plan {
            snapshot: Some(snapshot.id),
            splits: self.enough(splits),
        })
    }

    fn wants(&self, bucket: &BucketFiles, selection: &crate::Selection, pruning: &Pruning) -> Result<bool> {
        let fields = self.read.table.partition_fields();
        let partition = Partition::new(bucket.partition.clone(), &fields)?;
        if !selection.contains(&partition, bucket.bucket) {
            return Ok(false);
        }
        let mut values: Vec<(&str, Datum)> = Vec::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            values.push((&field.name, bucket.partition.get(position, &field.data_type)?));
        }
        pruning.wants_partition(&values)
    }

    /// As many splits as surely hold the rows of the limit: those whose every row comes out.
    fn enough(&self, splits: Vec<Split>) -> Vec<Split> {
        let (Some(limit), None) = (self.read.limit, &self.read.filter) else {
            return splits;
        };
        let mut sure = 0_u64;
        let mut enough = Vec::new();
        for split in splits {
            if usize::try_from(sure).is_ok_and(|sure| sure >= limit) {
                break;
            }
            if split.raw_convertible && split.files.iter().all(|file| file.is_known_without_deletes()) {
                sure += u64::try_from(split.row_count()).unwrap_or(0);
            }
            enough.push(split);
        }
        enough
    }
}
