//! Index files of deletion vectors: a version byte, then one record after another.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::record::{self, FRAME_BYTES};
use super::{BitmapKind, DeletionVector};
use crate::FormatError;
use crate::meta::{BucketPaths, DELETION_VECTORS_INDEX, DeletionVectorRange, IndexFileMeta, IndexFileNames};
use crate::storage::FileRoots;

/// The first byte of every file.
const VERSION: u8 = 1;

/// Reads and writes the deletion vectors of one bucket.
///
/// Source: `org.apache.paimon.deletionvectors.DeletionVectorsIndexFile`.
#[derive(Clone, Debug)]
pub struct DeletionVectorsIndexFile {
    roots: FileRoots,
    paths: BucketPaths,
    names: Arc<IndexFileNames>,
    kind: BitmapKind,
}

impl DeletionVectorsIndexFile {
    /// For the bucket at `paths`. New files are named by `names`; their vectors are of this kind. Vectors of both kinds are read.
    pub fn new(roots: FileRoots, paths: BucketPaths, names: Arc<IndexFileNames>, kind: BitmapKind) -> Self {
        Self {
            roots,
            paths,
            names,
            kind,
        }
    }

    /// The kind of new vectors.
    pub fn kind(&self) -> BitmapKind {
        self.kind
    }

    /// The vectors in an index file of those data files that `wanted` names, in one request; by data file.
    ///
    /// Errors: `Corrupt`, `NotFound`, `Unavailable`, all naming the index file.
    pub async fn read(
        &self,
        file: &IndexFileMeta,
        wanted: impl Fn(&str) -> bool + Send,
    ) -> Result<BTreeMap<String, Arc<DeletionVector>>, FormatError> {
        let ranges = file.dv_ranges.iter().flatten();
        let ranges: Vec<&DeletionVectorRange> = ranges.filter(|range| wanted(&range.data_file_name)).collect();
        if ranges.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (storage, path) = self.roots.locate(self.paths.index_file(file)).await?;
        let bytes: Result<Vec<Range<u64>>, FormatError> = ranges
            .iter()
            .map(|range| record_bytes(range, file).map_err(|message| FormatError::corrupt(&path, message)))
            .collect();
        let mut asked = bytes?;
        asked.push(0..1);
        let mut bytes = storage.read(&path, &asked).await?;
        match bytes.pop().as_deref() {
            Some([VERSION]) => {}
            version => {
                let message = format!("version {version:?} of deletion vectors, expected [{VERSION}]");
                return Err(FormatError::corrupt(path, message));
            }
        }
        ranges
            .into_iter()
            .zip(bytes)
            .map(|(range, bytes)| {
                let vector = decode(range, &bytes).map_err(|message| {
                    let of = format!("deletion vector of {} at {}", range.data_file_name, range.offset);
                    FormatError::corrupt(&path, format!("{of}: {message}"))
                })?;
                Ok((range.data_file_name.clone(), Arc::new(vector)))
            })
            .collect()
    }

    /// Writes a new index file with these vectors, in this order. Empty ones are left out; without any the file says that no row of the
    /// bucket is deleted.
    ///
    /// Errors: `Invalid`, naming the data file, for a row that is too large; `Unavailable`: there may be a file.
    pub async fn write<'a>(
        &self,
        vectors: impl IntoIterator<Item = (&'a str, &'a DeletionVector)> + Send,
    ) -> Result<IndexFileMeta, FormatError> {
        let name = self.names.next_name();
        let mut bytes = vec![VERSION];
        let mut ranges = Vec::new();
        for (data_file, vector) in vectors.into_iter().filter(|(_, vector)| !vector.is_empty()) {
            let offset = bytes.len();
            let length = record::encode(self.kind, data_file, vector, &mut bytes)?;
            let (Ok(offset), Ok(length)) = (i32::try_from(offset), i32::try_from(length)) else {
                return Err(FormatError::invalid(format!(
                    "{name}: the deletion vectors of one bucket do not fit into 2 GiB"
                )));
            };
            ranges.push(DeletionVectorRange {
                data_file_name: data_file.to_owned(),
                offset,
                length,
                cardinality: i64::try_from(vector.cardinality()).ok(),
            });
        }
        let file = IndexFileMeta {
            index_type: DELETION_VECTORS_INDEX.to_owned(),
            file_name: name,
            file_size: bytes.len() as i64,
            row_count: ranges.len() as i64,
            dv_ranges: Some(ranges),
            external_path: None,
            global_index: None,
        };
        self.roots.write_new(self.paths.index_file(&file), bytes.into()).await?;
        Ok(file)
    }

    /// Removes an index file that no snapshot can name.
    pub async fn delete(&self, file: &IndexFileMeta) -> Result<(), FormatError> {
        self.roots.delete(self.paths.index_file(file)).await
    }
}

/// The bytes that hold a record. Of a 32-bit vector the length does not count the frame; which kind it is, its bytes say.
fn record_bytes(range: &DeletionVectorRange, file: &IndexFileMeta) -> Result<Range<u64>, String> {
    let place = (u64::try_from(range.offset), u64::try_from(range.length));
    let size = u64::try_from(file.file_size).unwrap_or(0);
    match place {
        (Ok(offset), Ok(length)) if offset > 0 && offset + length <= size => {
            Ok(offset..(offset + length + FRAME_BYTES).min(size))
        }
        _ => Err(format!(
            "its metadata has a deletion vector of {} at {}, {} bytes long, in a file of {} bytes",
            range.data_file_name, range.offset, range.length, file.file_size
        )),
    }
}

fn decode(range: &DeletionVectorRange, bytes: &[u8]) -> Result<DeletionVector, String> {
    let vector = record::decode(bytes, u64::try_from(range.length).unwrap_or(0))?;
    let rows = vector.cardinality();
    match range.cardinality.map(u64::try_from) {
        Some(expected) if expected != Ok(rows) => Err(format!(
            "{rows} rows, but the metadata says {}",
            range.cardinality.unwrap_or_default()
        )),
        _ => Ok(vector),
    }
}
