//! What is there: a snapshot with its rows, changes and files, in the form of `expected.json`.

use futures::TryStreamExt;
use paimon::format::dv::DeletionVector;
use paimon::format::kv::{KvFiles, ReadSpec};
use paimon::format::meta::{DataFileMeta, FileSource};
use paimon::format::row::BinaryRow;
use paimon::format::types::{DataField, DataType, Datum, RowKind};
use paimon::manifest::manifest::ManifestEntry;
use paimon::manifest::scan::ScanKind;
use paimon::{Error, Snapshot, StreamStart, Table, TimeTravel};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks at one table.
pub(crate) struct Observer<'a> {
    table: &'a Table,
    /// The types of the partition columns.
    pub(crate) partition: Vec<DataType>,
    /// The types of the trimmed primary key.
    pub(crate) key: Vec<DataType>,
}

impl<'a> Observer<'a> {
    /// Errors: the table's keys are not among its columns.
    pub(crate) fn new(table: &'a Table) -> Result<Self, Error> {
        let schema = table.schema();
        Ok(Self {
            partition: schema.partition_types(),
            key: schema
                .fields_at(&schema.trimmed_primary_key()?)
                .into_iter()
                .map(|field| field.data_type)
                .collect(),
            table,
        })
    }

    /// Everything about a snapshot.
    pub(crate) async fn snapshot(&self, snapshot: &Snapshot) -> Result<Map<String, Value>, Error> {
        let mut members = match json!({
            "id": snapshot.id,
            "schemaId": snapshot.schema_id,
            "commitUser": snapshot.commit_user,
            "commitIdentifier": snapshot.commit_identifier,
            "commitKind": snapshot.commit_kind.to_string(),
            "totalRecordCount": snapshot.total_record_count,
            "deltaRecordCount": snapshot.delta_record_count,
            "changelogRecordCount": snapshot.changelog_record_count,
            "hasChangelogManifest": snapshot.changelog_manifest_list.is_some(),
            "hasIndexManifest": snapshot.index_manifest.is_some(),
        }) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let rows = self.rows(Some(TimeTravel::SnapshotId(snapshot.id))).await?;
        members.insert("rows".to_owned(), Value::Array(rows));
        members.insert("changelog".to_owned(), Value::Array(self.changes(snapshot.id).await?));
        members.insert("buckets".to_owned(), Value::Array(self.buckets(snapshot).await?));
        Ok(members)
    }

    /// Merged rows, each with a kind in front: of a snapshot, or of the one that the table's options say.
    pub(crate) async fn rows(&self, travel: Option<TimeTravel>) -> Result<Vec<Value>, Error> {
        let mut read = self.table.read_builder();
        if let Some(travel) = travel {
            read = read.time_travel(travel);
        }
        let plan = read.new_scan().plan().await?;
        let fields = read.fields().to_vec();
        let mut batches = read.new_read().stream(plan.splits)?;
        let mut rows = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for row in 0..batch.num_rows() {
                let mut values = vec![Value::from("+I")];
                values.extend(json_row(batch.columns(), &fields, row)?);
                rows.push(Value::Array(values));
            }
        }
        Ok(rows)
    }

    /// What a stream reads of a snapshot: changes, each with its kind in front.
    pub(crate) async fn changes(&self, snapshot: i64) -> Result<Vec<Value>, Error> {
        let changelog = self
            .table
            .changelog_builder()
            .start(StreamStart::FromSnapshot(snapshot));
        let fields = changelog.fields().to_vec();
        let mut stream = changelog.stream().await?;
        let mut changes = Vec::new();
        while let Some(batch) = stream.next_available().await? {
            if batch.snapshot_id != snapshot {
                break;
            }
            for (row, kind) in batch.row_kinds().enumerate() {
                let mut values = vec![Value::from(kind.short_string())];
                values.extend(json_row(batch.columns.columns(), &fields, row)?);
                changes.push(Value::Array(values));
            }
        }
        Ok(changes)
    }

    async fn buckets(&self, snapshot: &Snapshot) -> Result<Vec<Value>, Error> {
        let mut buckets = BTreeMap::new();
        self.add_files(snapshot, ScanKind::All, "files", &mut buckets).await?;
        if snapshot.changelog_manifest_list.is_some() {
            self.add_files(snapshot, ScanKind::Changelog, "changelogFiles", &mut buckets)
                .await?;
        }
        self.add_hash_indexes(snapshot, &mut buckets).await?;
        Ok(buckets.into_values().collect())
    }

    /// The sorted key hashes of dynamic buckets.
    async fn add_hash_indexes(
        &self,
        snapshot: &Snapshot,
        buckets: &mut BTreeMap<(Vec<u8>, i32), Value>,
    ) -> Result<(), Error> {
        for files in self
            .table
            .file_store_scan()?
            .plan(snapshot, ScanKind::All)
            .await?
            .buckets
        {
            let place = (files.partition.as_bytes().to_vec(), files.bucket);
            if let (Some(file), Some(bucket)) = (&files.hash_index, buckets.get_mut(&place)) {
                let index = self.table.hash_index(&files.partition, files.bucket)?;
                let mut hashes = index.read(file).await?;
                hashes.sort_unstable();
                bucket["hashIndex"] = hashes.into();
            }
        }
        Ok(())
    }

    async fn add_files(
        &self,
        snapshot: &Snapshot,
        kind: ScanKind,
        list: &str,
        buckets: &mut BTreeMap<(Vec<u8>, i32), Value>,
    ) -> Result<(), Error> {
        let mut entries = self.table.file_store_scan()?.entries(snapshot, kind).await?;
        self.sort(&mut entries)?;
        let deleted = self.deleted(snapshot, kind).await?;
        for entry in entries {
            let mut file = self.file(&entry.partition, entry.bucket, &entry.file).await?;
            if let Some(vector) = deleted.get(&entry.file.file_name) {
                file["deleted"] = vector.iter().collect();
            }
            let partition = json_values(&entry.partition, &self.partition)?;
            let bucket = buckets
                .entry((entry.partition.as_bytes().to_vec(), entry.bucket))
                .or_insert_with(|| {
                    json!({"partition": partition, "bucket": entry.bucket, "totalBuckets": entry.total_buckets, "files": []})
                });
            match bucket[list].as_array_mut() {
                Some(files) => files.push(file),
                None => bucket[list] = Value::Array(vec![file]),
            }
        }
        Ok(())
    }

    /// The deletion vectors of a snapshot, by data file.
    async fn deleted(
        &self,
        snapshot: &Snapshot,
        kind: ScanKind,
    ) -> Result<BTreeMap<String, Arc<DeletionVector>>, Error> {
        let mut deleted = BTreeMap::new();
        for bucket in self.table.file_store_scan()?.plan(snapshot, kind).await?.buckets {
            let index = self.table.deletion_vectors(&bucket.partition, bucket.bucket)?;
            for file in bucket.deletion_index_files() {
                deleted.extend(index.read(&file, |_| true).await?);
            }
        }
        Ok(deleted)
    }

    /// By level; level 0 newest first, others by key.
    fn sort(&self, entries: &mut [ManifestEntry]) -> Result<(), Error> {
        let keys = self.table.schema().key_comparator()?;
        let mut failed = None;
        entries.sort_by(|a, b| {
            let mut by_key = || {
                keys.compare(&a.file.min_key, &b.file.min_key).unwrap_or_else(|error| {
                    failed = Some(error);
                    std::cmp::Ordering::Equal
                })
            };
            a.file.level.cmp(&b.file.level).then_with(|| match a.file.level {
                0 => b.file.max_sequence_number.cmp(&a.file.max_sequence_number),
                _ => by_key(),
            })
        });
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn file(&self, partition: &BinaryRow, bucket: i32, file: &DataFileMeta) -> Result<Value, Error> {
        Ok(json!({
            "level": file.level,
            "rowCount": file.row_count,
            "deleteRowCount": file.delete_row_count,
            "minKey": json_values(&file.min_key, &self.key)?,
            "maxKey": json_values(&file.max_key, &self.key)?,
            "minSeq": file.min_sequence_number,
            "maxSeq": file.max_sequence_number,
            "schemaId": file.schema_id,
            "fileSource": file.file_source.map(|source| match source {
                FileSource::Append => "APPEND",
                FileSource::Compact => "COMPACT",
            }),
            "fileSize": file.file_size,
            "records": self.records(partition, bucket, file).await?,
        }))
    }

    /// The records of a file as stored: `[sequence, kind, value…]`.
    async fn records(&self, partition: &BinaryRow, bucket: i32, file: &DataFileMeta) -> Result<Vec<Value>, Error> {
        let files: Arc<dyn KvFiles> = self.table.kv_files(partition, bucket)?;
        let schema = Arc::new(self.table.schema().kv_schema()?);
        let fields = schema.fields.clone();
        let mut batches = files.open(file, ReadSpec::all(schema));
        let mut records = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for (row, &sequence) in batch.sequence_numbers().iter().enumerate() {
                let kind: RowKind = batch.kind(row);
                let mut record = vec![Value::from(sequence), Value::from(kind.short_string())];
                record.extend(json_row(batch.values(), &fields, row)?);
                records.push(Value::Array(record));
            }
        }
        Ok(records)
    }
}

fn json_values(row: &BinaryRow, types: &[DataType]) -> Result<Vec<Value>, Error> {
    let values = row.to_datums(types)?;
    Ok(values
        .iter()
        .zip(types)
        .map(|(value, data_type)| value.to_json(data_type))
        .collect())
}

/// One row of some columns.
pub(crate) fn json_row(
    columns: &[arrow_array::ArrayRef],
    fields: &[DataField],
    row: usize,
) -> Result<Vec<Value>, Error> {
    let values = columns.iter().zip(fields);
    let values = values.map(|(column, field)| Ok(Datum::from_array(column, row)?.to_json(&field.data_type)));
    values.collect()
}
