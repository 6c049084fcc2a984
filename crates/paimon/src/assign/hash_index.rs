//! Dynamic buckets whose keys stay in their partition: an index of key hashes a partition.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use paimon_format::meta::{HASH_INDEX, HashIndexFile, IndexFileMeta, IndexFileNames};
use paimon_format::row::{BinaryRow, RowEncoder};

use super::partition_index::PartitionIndex;
use super::{Assigned, Columns, NewHashIndex, NewHashIndexes, named_partition};
use crate::error::{Error, Result};
use crate::options::DynamicBucketSettings;
use crate::table::Table;
use crate::write::Partitioned;

/// Index files that are read side by side.
const READS: usize = 8;

/// Hashes with the file that holds them, by bucket.
type StoredHashes = BTreeMap<u16, (IndexFileMeta, Vec<i32>)>;

/// Keeps the same key in the same bucket, and opens new buckets as keys come. The index of a partition is read when its first row comes, from
/// the latest snapshot; its files are written anew as far as buckets got new keys.
///
/// One job at a time may bring new keys into a partition: a commit whose index files do not build on those that are there is a conflict.
///
/// Memory: that of [`PartitionIndex`], for the partitions that are being written.
///
/// Source: `org.apache.paimon.index.HashBucketAssigner`.
#[derive(Debug)]
pub(crate) struct HashBucketAssigner {
    table: Table,
    key: Columns,
    settings: DynamicBucketSettings,
    names: Arc<IndexFileNames>,
    partitions: HashMap<BinaryRow, PartitionIndex>,
    overwrites: bool,
}

impl HashBucketAssigner {
    pub(super) fn new(table: &Table, overwrites: bool) -> Result<Self> {
        Ok(Self {
            key: Columns::new(table, table.schema().trimmed_primary_key()?),
            settings: DynamicBucketSettings::from_options(table.options())?,
            names: Arc::new(IndexFileNames::new(Arc::clone(&table.context().env().ids))),
            partitions: HashMap::new(),
            overwrites,
            table: table.clone(),
        })
    }

    pub(super) async fn assign(&mut self, rows: Partitioned) -> Result<Assigned> {
        self.load(&rows.partitions).await?;
        let key = self.key.of(&rows.rows.rows)?;
        let hashes = RowEncoder::new(&key, &self.key.types)?.hashes()?;
        let mut buckets = Vec::with_capacity(hashes.len());
        for (hash, &partition) in hashes.into_iter().zip(&rows.of_row) {
            let partition = rows.partition(partition)?;
            let index = self.partitions.get_mut(partition);
            let index = index.ok_or_else(|| Error::internal("a partition without an index"))?;
            match index.assign(hash) {
                Some(bucket) => buckets.push(i32::from(bucket)),
                None => return Err(self.full(partition)),
            }
        }
        Ok(Assigned { rows, buckets })
    }

    pub(super) async fn prepare_commit(&mut self) -> Result<NewHashIndexes> {
        let mut written = NewHashIndexes::new();
        for (partition, index) in &mut self.partitions {
            for (bucket, index) in index.grown() {
                let bucket = i32::from(bucket);
                let file = hash_index_file(&self.table, &self.names, partition, bucket)?
                    .write(&index.hashes)
                    .await?;
                let replaces = index.file.replace(file.clone());
                index.grown = false;
                written.insert((partition.as_bytes().to_vec(), bucket), NewHashIndex { file, replaces });
            }
        }
        Ok(written)
    }

    pub(super) fn retain(&mut self, partitions: &HashSet<Vec<u8>>) {
        self.partitions
            .retain(|partition, _| partitions.contains(partition.as_bytes()));
    }

    /// Reads the indexes of partitions that are new here.
    async fn load(&mut self, partitions: &[BinaryRow]) -> Result<()> {
        let unknown: HashSet<&BinaryRow> = partitions
            .iter()
            .filter(|partition| !self.partitions.contains_key(*partition))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut stored = if self.overwrites {
            HashMap::new()
        } else {
            self.stored(&unknown).await?
        };
        for partition in unknown {
            let there = stored.remove(partition).unwrap_or_default();
            let index = PartitionIndex::new(self.settings, partition, there);
            self.partitions.insert(partition.clone(), index);
        }
        Ok(())
    }

    /// The hashes in the index files of these partitions.
    async fn stored(&self, partitions: &HashSet<&BinaryRow>) -> Result<HashMap<BinaryRow, StoredHashes>> {
        let mut stored: HashMap<BinaryRow, StoredHashes> = HashMap::new();
        let Some(snapshot) = self.table.snapshot_store().latest().await? else {
            return Ok(stored);
        };
        let Some(name) = &snapshot.index_manifest else {
            return Ok(stored);
        };
        let entries = self.table.file_store_scan()?.manifests().read_index(name).await?;
        let entries = entries
            .into_iter()
            .filter(|entry| entry.file.index_type == HASH_INDEX && partitions.contains(&entry.partition));
        let reads = entries.map(|entry| async move {
            let file = hash_index_file(&self.table, &self.names, &entry.partition, entry.bucket)?;
            let hashes = file.read(&entry.file).await?;
            Ok::<_, Error>((entry, hashes))
        });
        let mut reads = stream::iter(reads).buffered(READS);
        while let Some((entry, hashes)) = reads.try_next().await? {
            let bucket = u16::try_from(entry.bucket).map_err(|_| {
                Error::invalid(format!(
                    "{}: it is the index of bucket {}",
                    entry.file.file_name, entry.bucket
                ))
            })?;
            stored
                .entry(entry.partition)
                .or_default()
                .insert(bucket, (entry.file, hashes));
        }
        Ok(stored)
    }

    fn full(&self, partition: &BinaryRow) -> Error {
        match named_partition(&self.table, partition) {
            Ok(named) => Error::invalid(format!(
                "{}all its buckets have {} keys each: increase 'dynamic-bucket.target-row-num'",
                named.map_or_else(String::new, |named| format!("{named}: ")),
                self.settings.target_rows
            )),
            Err(error) => error,
        }
    }
}

/// The index files of a bucket's keys; new ones are named by `names`.
pub(crate) fn hash_index_file(
    table: &Table,
    names: &Arc<IndexFileNames>,
    partition: &BinaryRow,
    bucket: i32,
) -> Result<HashIndexFile> {
    let paths = table.paths().bucket(partition, bucket)?;
    Ok(HashIndexFile::new(table.file_roots(), paths, Arc::clone(names)))
}
