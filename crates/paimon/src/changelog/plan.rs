//! From a snapshot to the files that tell what changed.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::meta::DataFileMeta;
use paimon_format::row::BinaryRow;
use paimon_manifest::manifest::{FileIdentity, FileKind, ManifestEntry};
use paimon_manifest::scan::{DataSplit, ScanKind, ValueFiltering};
use paimon_manifest::snapshot::Snapshot;

use super::read::ChangesReader;
use crate::error::Result;
use crate::partition::{Partition, Selection};

/// What one reader reads of one bucket.
#[derive(Clone, Debug)]
pub(super) enum ChangeSplit {
    /// Rows of a state: all are new to the reader.
    Rows(DataSplit),
    /// Files of one bucket.
    Files(ChangedFiles),
}

/// Files of one bucket, in the order in which they are read.
#[derive(Clone, Debug)]
pub(super) struct ChangedFiles {
    pub(super) partition: BinaryRow,
    pub(super) bucket: i32,
    pub(super) files: Vec<Arc<DataFileMeta>>,
    pub(super) meaning: FileMeaning,
}

/// What files say about the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileMeaning {
    /// Each record is a change.
    Changes,
    /// Their rows, merged, have gone.
    Gone,
    /// Their rows, merged, have come.
    Come,
}

impl ChangesReader {
    /// All rows of a snapshot that a stream starts with.
    pub(super) async fn plan_rows(&self, snapshot: &Snapshot) -> Result<Vec<ChangeSplit>> {
        let splits = self
            .read
            .new_scan()
            .plan_of(snapshot, self.first_levels.clone())
            .await?
            .splits;
        Ok(splits.into_iter().map(ChangeSplit::Rows).collect())
    }

    /// The files of a snapshot whose records are changes, one split a bucket, in the order of partition bytes and bucket.
    ///
    /// Source: `org.apache.paimon.table.source.MergeTreeSplitGenerator#splitForStreaming`.
    pub(super) async fn plan_changes(&self, snapshot: &Snapshot, kind: ScanKind) -> Result<Vec<ChangeSplit>> {
        let mut scan = self.table().file_store_scan()?;
        if let Some(filter) = &self.read.filter {
            // Every change is tested by itself, so a file in which none passes can go.
            scan = scan.with_predicate(filter, ValueFiltering::EachFile)?;
        }
        let selected = Selected::new(self)?;
        let mut splits = Vec::new();
        for bucket in scan.plan(snapshot, kind).await?.buckets {
            if selected.contains(&bucket.partition, bucket.bucket)? {
                splits.push(ChangedFiles {
                    partition: bucket.partition,
                    bucket: bucket.bucket,
                    files: bucket.files,
                    meaning: FileMeaning::Changes,
                });
            }
        }
        splits.sort_by(|a, b| (a.partition.as_bytes(), a.bucket).cmp(&(b.partition.as_bytes(), b.bucket)));
        Ok(splits.into_iter().map(ChangeSplit::Files).collect())
    }

    /// The files that an OVERWRITE snapshot removed and added: for each bucket, in the order of partition bytes and bucket, first
    /// the rows that went, then those that came.
    ///
    /// Source: `org.apache.paimon.table.source.snapshot.SnapshotReaderImpl#readChanges`.
    pub(super) async fn plan_overwrite(&self, snapshot: &Snapshot) -> Result<Vec<ChangeSplit>> {
        let selected = Selected::new(self)?;
        let entries = self.table().file_store_scan()?.delta_entries(snapshot).await?;
        let of_kind = |kind: FileKind| -> HashMap<FileIdentity<'_>, &ManifestEntry> {
            let entries = entries.iter().filter(|entry| entry.kind == kind);
            entries.map(|entry| (entry.identity(), entry)).collect()
        };
        let (added, deleted) = (of_kind(FileKind::Add), of_kind(FileKind::Delete));
        // A file that is on both lists did not change.
        let only_in = |kind: FileKind, other: &HashMap<FileIdentity<'_>, &ManifestEntry>| {
            let differs = |entry: &&ManifestEntry| {
                let twin = other.get(&entry.identity());
                twin.is_none_or(|twin| twin.file != entry.file)
            };
            let entries = entries.iter().filter(|entry| entry.kind == kind);
            entries.filter(differs).collect::<Vec<_>>()
        };
        let gone = only_in(FileKind::Delete, &added)
            .into_iter()
            .map(|entry| (FileMeaning::Gone, entry));
        let come = only_in(FileKind::Add, &deleted)
            .into_iter()
            .map(|entry| (FileMeaning::Come, entry));
        let mut splits: Vec<ChangedFiles> = Vec::new();
        for (meaning, entry) in gone.chain(come) {
            if !selected.contains(&entry.partition, entry.bucket)? {
                continue;
            }
            let file = Arc::clone(&entry.file);
            let split = splits.iter_mut().find(|split| {
                split.meaning == meaning && split.bucket == entry.bucket && split.partition == entry.partition
            });
            match split {
                Some(split) => split.files.push(file),
                None => splits.push(ChangedFiles {
                    partition: entry.partition.clone(),
                    bucket: entry.bucket,
                    files: vec![file],
                    meaning,
                }),
            }
        }
        // The sort is stable: what went stays before what came.
        splits.sort_by(|a, b| (a.partition.as_bytes(), a.bucket).cmp(&(b.partition.as_bytes(), b.bucket)));
        Ok(splits.into_iter().map(ChangeSplit::Files).collect())
    }
}

/// Which buckets the reader wants.
struct Selected {
    selection: Selection,
    fields: Vec<paimon_format::types::DataField>,
}

impl Selected {
    fn new(reader: &ChangesReader) -> Result<Self> {
        let table = reader.table();
        let fields = table.partition_fields();
        let selection = reader
            .read
            .selection
            .resolve(&fields, &table.default_partition_name())?;
        Ok(Self { selection, fields })
    }

    fn contains(&self, partition: &BinaryRow, bucket: i32) -> Result<bool> {
        let partition = Partition::new(partition.clone(), &self.fields)?;
        Ok(self.selection.contains(&partition, bucket))
    }
}
