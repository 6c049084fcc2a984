//! The buckets that a writer of a table has open.

use std::collections::btree_map::Entry;

use paimon_format::row::BinaryRow;
use paimon_manifest::scan::BucketFiles;
use paimon_manifest::snapshot::Snapshot;

use super::TableWrite;
use crate::error::Result;
use crate::options;
use crate::write::record_writer::RecordWriter;
use crate::write::route::{Part, Partitioned};

/// The writer of one bucket.
#[derive(Debug)]
pub(super) struct BucketWriter {
    pub(super) partition: BinaryRow,
    pub(super) bucket: i32,
    pub(super) total_buckets: i32,
    /// The bucket's directory, for errors.
    pub(super) name: String,
    pub(super) writer: RecordWriter,
    /// The last commit got nothing from it.
    pub(super) idle: bool,
    /// It was written to after its last full compaction.
    pub(super) since_full: bool,
}

impl TableWrite {
    /// Opens the writers of buckets that have none, on the files that are in the latest snapshot.
    pub(super) async fn open_writers(&mut self, parts: &[Part], partitions: &Partitioned) -> Result<()> {
        let mut missing = Vec::new();
        for part in parts {
            let partition = partitions.partition(part.partition)?;
            if !self.writers.contains_key(&(partition.as_bytes().to_vec(), part.bucket)) {
                missing.push((partition, part.bucket));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.learn_sequence().await?;
        let of: Vec<&BinaryRow> = missing.iter().map(|(partition, _)| *partition).collect();
        // Rows without a bucket are only appended.
        let nothing_counts = self.overwrites || self.postponed.is_some();
        let live = self.table.files_before(nothing_counts, &of).await?;
        for (partition, bucket) in missing {
            let there = |files: &&BucketFiles| files.partition == *partition && files.bucket == bucket;
            self.open_writer(partition.clone(), bucket, live.iter().find(there))
                .await?;
        }
        Ok(())
    }

    /// The writer of one bucket, opened when it is not yet.
    pub(super) async fn bucket_writer(&mut self, partition: &BinaryRow, bucket: i32) -> Result<&mut BucketWriter> {
        let mut live = Vec::new();
        if !self.writers.contains_key(&(partition.as_bytes().to_vec(), bucket)) {
            self.learn_sequence().await?;
            live = self.table.files_before(self.overwrites, &[partition]).await?;
        }
        let there = live.iter().find(|files| files.bucket == bucket);
        self.open_writer(partition.clone(), bucket, there).await
    }

    /// Looks up from where on new writers number their records, where the latest snapshot says that.
    async fn learn_sequence(&mut self) -> Result<()> {
        if self.sequence_from_snapshot && !self.overwrites {
            let latest = self.table.snapshot_store().latest().await?;
            let noted = latest.as_ref().map(Snapshot::max_sequence_number).transpose()?;
            self.first_sequence = noted.flatten().map_or(0, |max| max.saturating_add(1));
        }
        Ok(())
    }

    async fn open_writer(
        &mut self,
        partition: BinaryRow,
        bucket: i32,
        live: Option<&BucketFiles>,
    ) -> Result<&mut BucketWriter> {
        let total_buckets = self.assigner.total_buckets(&partition);
        match self.writers.entry((partition.as_bytes().to_vec(), bucket)) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(new) => {
                let paths = self.table.paths().bucket(&partition, bucket)?;
                let name = paths.directory().to_owned();
                let buffers = self.buffers.clone();
                let writer = match &self.postponed {
                    Some(postponed) => self
                        .stores
                        .postponed(&partition, postponed, buffers)
                        .map(|writer| RecordWriter::Postponed(Box::new(writer))),
                    None => {
                        let writer = self
                            .stores
                            .writer(&partition, bucket, live, buffers, self.first_sequence)
                            .await;
                        writer.map(|writer| {
                            self.watch.add(&name, writer.watch());
                            RecordWriter::Tree(Box::new(writer))
                        })
                    }
                };
                let writer = writer.map_err(|error| error.in_bucket(&name))?;
                Ok(new.insert(BucketWriter {
                    partition,
                    bucket,
                    total_buckets,
                    name,
                    writer,
                    idle: false,
                    since_full: false,
                }))
            }
        }
    }

    /// Closes the buckets that have written nothing since the last but one [`prepare_commit`](Self::prepare_commit) and have nothing to compact, so
    /// that a job that runs for months does not keep every partition that it ever saw. They are opened again when rows come.
    ///
    /// Only to be called when all messages that were handed out are committed: a bucket is opened on the latest snapshot, and
    /// would not know files that are not in it.
    pub async fn close_idle_buckets(&mut self) -> Result<()> {
        let mut idle = Vec::new();
        let full_every = options::full_compaction_delta_commits(self.table.options())?;
        let compacts = full_every.is_some() && !self.stores.settings().write_only;
        for (key, writer) in &mut self.writers {
            let waits = compacts && writer.since_full;
            if writer.idle && !waits && writer.writer.memory_bytes() == 0 && !writer.writer.compact_not_completed()? {
                idle.push(key.clone());
            }
        }
        for key in idle {
            if let Some(writer) = self.writers.remove(&key) {
                self.watch.remove(&writer.name);
                writer.writer.close().await;
            }
        }
        let open = self.writers.keys().map(|(partition, _)| partition.clone());
        self.assigner.retain(&open.collect());
        self.metrics.tell(self.writers.len(), &self.buffers);
        Ok(())
    }
}
