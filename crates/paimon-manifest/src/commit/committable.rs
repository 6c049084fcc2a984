//! What is committed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use paimon_format::meta::{
    CommitMessage, DELETION_VECTORS_INDEX, DataFileIdentity, DataFileMeta, IndexFileMeta, SimpleStats,
};
use paimon_format::row::BinaryRow;

use crate::manifest::{FileKind, IndexManifestEntry, ManifestEntry};

/// What all writers of one checkpoint (or one batch job) hand over, to be committed together.
///
/// Source: `org.apache.paimon.manifest.ManifestCommittable`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestCommittable {
    /// Grows with each commit of one user; [`i64::MAX`] for batch jobs.
    pub identifier: i64,
    /// Event time up to which all is there, milliseconds.
    pub watermark: Option<i64>,
    /// Noted in the snapshot.
    pub properties: BTreeMap<String, String>,
    /// One a bucket.
    pub messages: Vec<CommitMessage>,
}

impl ManifestCommittable {
    /// Messages under an identifier.
    pub fn new(identifier: i64, messages: Vec<CommitMessage>) -> Self {
        Self {
            identifier,
            messages,
            ..Self::default()
        }
    }
}

/// The entries of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// Data files.
    pub table: Vec<ManifestEntry>,
    /// Changelog files; all added.
    pub changelog: Vec<ManifestEntry>,
    /// Index files.
    pub index: Vec<IndexManifestEntry>,
    /// What compactions expect of their buckets.
    pub upper_files: Vec<UpperFiles>,
}

/// What a compaction leaves in its bucket above level 0, if no other commit has changed that since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpperFiles {
    /// The partition.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// The names of the files.
    pub names: Vec<String>,
}

/// What a committable changes: first by appending, then by compacting.
///
/// Source: `org.apache.paimon.operation.commit.ManifestEntryChanges`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitChanges {
    /// New files of flushes.
    pub append: ChangeSet,
    /// Files of compactions. An upgraded file is removed before it is added: expiration relies on it.
    pub compact: ChangeSet,
}

impl CommitChanges {
    /// Collects the changes of messages, in their order. `default_buckets`: the bucket count of messages without one.
    pub fn collect(messages: &[CommitMessage], default_buckets: i32, drop_delete_stats: bool) -> Self {
        let mut changes = Self::default();
        for message in messages {
            let data = &message.increment.data;
            let compact = &message.increment.compact;
            let of = BucketOf {
                message,
                total_buckets: message.total_buckets.unwrap_or(default_buckets),
                drop_delete_stats,
            };
            of.files(FileKind::Add, &data.new_files, &mut changes.append.table);
            of.files(FileKind::Delete, &data.deleted_files, &mut changes.append.table);
            of.files(FileKind::Add, &data.changelog_files, &mut changes.append.changelog);
            of.index(FileKind::Delete, &data.deleted_index_files, &mut changes.append.index);
            of.index(FileKind::Add, &data.new_index_files, &mut changes.append.index);
            of.files(FileKind::Delete, &compact.compact_before, &mut changes.compact.table);
            of.files(FileKind::Add, &compact.compact_after, &mut changes.compact.table);
            of.files(FileKind::Add, &compact.changelog_files, &mut changes.compact.changelog);
            of.index(
                FileKind::Delete,
                &compact.deleted_index_files,
                &mut changes.compact.index,
            );
            of.index(FileKind::Add, &compact.new_index_files, &mut changes.compact.index);
            changes
                .compact
                .upper_files
                .extend(compact.upper_files.as_ref().map(|names| UpperFiles {
                    partition: message.partition.clone(),
                    bucket: message.bucket,
                    names: names.clone(),
                }));
        }
        changes
    }

    /// Makes the compaction a part of the append. Files that are added and taken away again are in neither then.
    pub(super) fn join(&mut self) {
        fn place(entry: &ManifestEntry) -> (&BinaryRow, i32, DataFileIdentity<'_>) {
            (&entry.partition, entry.bucket, entry.file.identity())
        }
        let compact = std::mem::take(&mut self.compact);
        let all = self.append.table.iter().chain(&compact.table);
        let added = all.filter(|entry| entry.kind == FileKind::Add);
        let added: HashSet<_> = added.map(place).collect();
        let taken = compact.table.iter().filter(|entry| entry.kind == FileKind::Delete);
        let passing: HashSet<_> = taken.map(place).filter(|place| added.contains(place)).collect();
        let is_left = |entry: &&ManifestEntry| !passing.contains(&place(entry));
        let table = self.append.table.iter().filter(is_left).cloned();
        let table = table.chain(compact.table.iter().filter(is_left).cloned()).collect();
        self.append.table = table;
        self.append.index.extend(compact.index);
        self.append.changelog.extend(compact.changelog);
    }
}

impl ChangeSet {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.changelog.is_empty() && self.index.is_empty()
    }

    /// The changes, with this sequence number for all records of the files that come.
    ///
    /// Source: `org.apache.paimon.operation.FileStoreCommitImpl#stampSequenceWithSnapshotId`.
    pub(super) fn with_sequence(&self, sequence: i64) -> Self {
        let mut changes = self.clone();
        for entry in changes.table.iter_mut().filter(|entry| entry.kind == FileKind::Add) {
            entry.file = Arc::new(DataFileMeta {
                min_sequence_number: sequence,
                max_sequence_number: sequence,
                ..(*entry.file).clone()
            });
        }
        changes
    }

    /// Whether rows go away: such an append is an OVERWRITE snapshot.
    pub(super) fn takes_away(&self) -> bool {
        self.table.iter().any(|entry| entry.kind == FileKind::Delete)
            || self
                .index
                .iter()
                .any(|entry| entry.file.index_type == DELETION_VECTORS_INDEX)
    }
}

struct BucketOf<'a> {
    message: &'a CommitMessage,
    total_buckets: i32,
    drop_delete_stats: bool,
}

impl BucketOf<'_> {
    fn files(&self, kind: FileKind, files: &[Arc<DataFileMeta>], entries: &mut Vec<ManifestEntry>) {
        entries.extend(files.iter().map(|file| ManifestEntry {
            kind,
            partition: self.message.partition.clone(),
            bucket: self.message.bucket,
            total_buckets: self.total_buckets,
            file: match kind {
                FileKind::Delete if self.drop_delete_stats => Arc::new(without_value_stats(file)),
                _ => Arc::clone(file),
            },
        }));
    }

    fn index(&self, kind: FileKind, files: &[IndexFileMeta], entries: &mut Vec<IndexManifestEntry>) {
        entries.extend(files.iter().map(|file| IndexManifestEntry {
            kind,
            partition: self.message.partition.clone(),
            bucket: self.message.bucket,
            file: file.clone(),
        }));
    }
}

pub(super) fn without_value_stats(file: &DataFileMeta) -> DataFileMeta {
    DataFileMeta {
        value_stats: SimpleStats::default(),
        value_stats_cols: Some(Vec::new()),
        ..file.clone()
    }
}
