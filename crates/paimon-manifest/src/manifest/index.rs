//! The index manifest: all index files that live at a snapshot.

use std::collections::HashMap;

use paimon_format::meta::{DELETION_VECTORS_INDEX, DeletionVectorRange, GlobalIndexMeta, HASH_INDEX, IndexFileMeta};
use paimon_format::row::BinaryRow;

use super::avro::{AvroError, AvroResult, Encoder, Value, required};
use super::entry::{FileKind, check_version, decode_kind, decode_row, encode_kind};

const VERSION: i32 = 1;

/// An index file that came or went. Stored index manifests hold only files that are there.
///
/// Source: `org.apache.paimon.manifest.IndexManifestEntry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexManifestEntry {
    /// Came or went.
    pub kind: FileKind,
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// The file.
    pub file: IndexFileMeta,
}

impl IndexManifestEntry {
    /// Decodes a row of an index manifest.
    pub(super) fn decode(row: Value<'_, '_, '_>) -> AvroResult<Self> {
        let (mut version, mut kind, mut partition, mut bucket) = (None, None, None, None);
        let (mut index_type, mut file_name, mut file_size, mut row_count) = (None, None, None, None);
        let (mut dv_ranges, mut external_path, mut global_index) = (None, None, None);
        row.record(|name, value| {
            match name {
                "_VERSION" => version = Some(value.int()?),
                "_KIND" => kind = Some(value.int()?),
                "_PARTITION" => partition = Some(decode_row(value)?),
                "_BUCKET" => bucket = Some(value.int()?),
                "_INDEX_TYPE" => index_type = Some(value.string()?),
                "_FILE_NAME" => file_name = Some(value.string()?),
                "_FILE_SIZE" => file_size = Some(value.long()?),
                "_ROW_COUNT" => row_count = Some(value.long()?),
                "_DELETIONS_VECTORS_RANGES" => dv_ranges = value.optional(|value| value.array(decode_range))?,
                "_EXTERNAL_PATH" => external_path = value.optional(Value::string)?,
                "_GLOBAL_INDEX" => global_index = value.optional(decode_global_index)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        check_version(version, VERSION)?;
        let kind = decode_kind(kind)?;
        if kind != FileKind::Add {
            return Err(AvroError::new(
                "_KIND 1 (delete), but an index manifest holds only files that are there",
            ));
        }
        Ok(Self {
            kind,
            partition: required(partition, "_PARTITION")?,
            bucket: required(bucket, "_BUCKET")?,
            file: IndexFileMeta {
                index_type: required(index_type, "_INDEX_TYPE")?,
                file_name: required(file_name, "_FILE_NAME")?,
                file_size: required(file_size, "_FILE_SIZE")?,
                row_count: required(row_count, "_ROW_COUNT")?,
                dv_ranges,
                external_path,
                global_index,
            },
        })
    }

    /// Encodes a row of an index manifest.
    pub(super) fn encode(&self, row: &mut Encoder) {
        row.int(VERSION);
        row.int(encode_kind(self.kind));
        row.bytes(&self.partition.to_serialized());
        row.int(self.bucket);
        row.string(&self.file.index_type);
        row.string(&self.file.file_name);
        row.long(self.file.file_size);
        row.long(self.file.row_count);
        row.optional(self.file.dv_ranges.as_deref(), |row, ranges| {
            row.array(ranges, |row, range| row.optional(Some(range), encode_range));
        });
        row.optional(self.file.external_path.as_deref(), Encoder::string);
        row.optional(self.file.global_index.as_ref(), encode_global_index);
    }
}

/// The state after `changes`: removals first, then additions. One HASH and one DELETION_VECTORS file a bucket, the newest;
/// every other index file is known by its name, so that index types of other engines are carried through.
///
/// The order is: files that were there, in their order, then new ones. Source: `org.apache.paimon.manifest.IndexManifestFileHandler`.
pub fn combine_index_entries(
    previous: Vec<IndexManifestEntry>,
    changes: &[IndexManifestEntry],
) -> Vec<IndexManifestEntry> {
    let mut state = IndexState::default();
    previous.into_iter().for_each(|entry| state.put(entry));
    for change in changes.iter().filter(|change| change.kind == FileKind::Delete) {
        state.remove(change);
    }
    for change in changes.iter().filter(|change| change.kind == FileKind::Add) {
        state.put(change.clone());
    }
    state.entries.into_iter().flatten().collect()
}

/// What an index file replaces.
#[derive(PartialEq, Eq, Hash)]
enum IndexKey {
    /// The file of this type in a bucket.
    Bucket(BinaryRow, i32, String),
    /// The file of this name.
    File(String),
}

#[derive(Default)]
struct IndexState {
    entries: Vec<Option<IndexManifestEntry>>,
    places: HashMap<IndexKey, usize>,
}

impl IndexState {
    fn key(entry: &IndexManifestEntry) -> IndexKey {
        match entry.file.index_type.as_str() {
            HASH_INDEX | DELETION_VECTORS_INDEX => {
                IndexKey::Bucket(entry.partition.clone(), entry.bucket, entry.file.index_type.clone())
            }
            _ => IndexKey::File(entry.file.file_name.clone()),
        }
    }

    fn put(&mut self, entry: IndexManifestEntry) {
        let entries = &mut self.entries;
        let place = *self.places.entry(Self::key(&entry)).or_insert_with(|| {
            entries.push(None);
            entries.len() - 1
        });
        if let Some(slot) = entries.get_mut(place) {
            *slot = Some(entry);
        }
    }

    fn remove(&mut self, entry: &IndexManifestEntry) {
        let place = self.places.remove(&Self::key(entry));
        if let Some(slot) = place.and_then(|place| self.entries.get_mut(place)) {
            *slot = None;
        }
    }
}

fn decode_range(value: Value<'_, '_, '_>) -> AvroResult<DeletionVectorRange> {
    let (mut data_file_name, mut offset, mut length, mut cardinality) = (None, None, None, None);
    value.record(|name, value| {
        match name {
            "f0" => data_file_name = Some(value.string()?),
            "f1" => offset = Some(value.int()?),
            "f2" => length = Some(value.int()?),
            "_CARDINALITY" => cardinality = value.optional(Value::long)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(DeletionVectorRange {
        data_file_name: required(data_file_name, "f0")?,
        offset: required(offset, "f1")?,
        length: required(length, "f2")?,
        cardinality,
    })
}

fn encode_range(row: &mut Encoder, range: &DeletionVectorRange) {
    row.string(&range.data_file_name);
    row.int(range.offset);
    row.int(range.length);
    row.optional(range.cardinality, Encoder::long);
}

fn decode_global_index(value: Value<'_, '_, '_>) -> AvroResult<GlobalIndexMeta> {
    let (mut row_range_start, mut row_range_end, mut index_field_id) = (None, None, None);
    let (mut extra_field_ids, mut index_meta, mut source_meta) = (None, None, None);
    value.record(|name, value| {
        match name {
            "_ROW_RANGE_START" => row_range_start = Some(value.long()?),
            "_ROW_RANGE_END" => row_range_end = Some(value.long()?),
            "_INDEX_FIELD_ID" => index_field_id = Some(value.int()?),
            "_EXTRA_FIELD_IDS" => extra_field_ids = value.optional(|value| value.array(|item| item.int()))?,
            "_INDEX_META" => index_meta = value.optional(|value| Ok(value.bytes()?.to_vec()))?,
            "_SOURCE_META" => source_meta = value.optional(|value| Ok(value.bytes()?.to_vec()))?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(GlobalIndexMeta {
        row_range_start: required(row_range_start, "_ROW_RANGE_START")?,
        row_range_end: required(row_range_end, "_ROW_RANGE_END")?,
        index_field_id: required(index_field_id, "_INDEX_FIELD_ID")?,
        extra_field_ids,
        index_meta,
        source_meta,
    })
}

fn encode_global_index(row: &mut Encoder, index: &GlobalIndexMeta) {
    row.long(index.row_range_start);
    row.long(index.row_range_end);
    row.int(index.index_field_id);
    row.optional(index.extra_field_ids.as_deref(), |row, ids| {
        row.array(ids, |row, id| row.int(*id));
    });
    row.optional(index.index_meta.as_deref(), Encoder::bytes);
    row.optional(index.source_meta.as_deref(), Encoder::bytes);
}
