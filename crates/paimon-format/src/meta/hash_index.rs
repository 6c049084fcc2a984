//! Index files of dynamic buckets: the hashes of the keys in a bucket.

use std::sync::Arc;

use super::{BucketPaths, HASH_INDEX, IndexFileMeta, IndexFileNames};
use crate::FormatError;
use crate::storage::FileRoots;

const HASH_BYTES: usize = size_of::<i32>();

/// Reads and writes the key hashes of one bucket.
///
/// | Bytes | What |
/// |---|---|
/// | 4 each, big endian | the hashes, each once, in no order |
///
/// Source: `org.apache.paimon.index.HashIndexFile`.
#[derive(Clone, Debug)]
pub struct HashIndexFile {
    roots: FileRoots,
    paths: BucketPaths,
    names: Arc<IndexFileNames>,
}

impl HashIndexFile {
    /// For the bucket at `paths`. New files are named by `names`.
    pub fn new(roots: FileRoots, paths: BucketPaths, names: Arc<IndexFileNames>) -> Self {
        Self { roots, paths, names }
    }

    /// The hashes in a file, in its order.
    ///
    /// Errors: `Corrupt` when the file is not as long as its metadata says, `NotFound`, `Unavailable`, all naming the file.
    pub async fn read(&self, file: &IndexFileMeta) -> Result<Vec<i32>, FormatError> {
        let (storage, path) = self.roots.locate(self.paths.index_file(file)).await?;
        let bytes = storage.read_all(&path).await?;
        let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
        if !rest.is_empty() || i64::try_from(hashes.len()) != Ok(file.row_count) {
            let message = format!(
                "{} bytes of key hashes, expected {} hashes of {HASH_BYTES} bytes each",
                bytes.len(),
                file.row_count
            );
            return Err(FormatError::corrupt(path, message));
        }
        Ok(hashes.iter().map(|hash| i32::from_be_bytes(*hash)).collect())
    }

    /// Writes a new file with these hashes. Errors: `Unavailable`: there may be a file.
    pub async fn write(&self, hashes: &[i32]) -> Result<IndexFileMeta, FormatError> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect();
        let file = IndexFileMeta {
            index_type: HASH_INDEX.to_owned(),
            file_name: self.names.next_name(),
            file_size: bytes.len() as i64,
            row_count: hashes.len() as i64,
            dv_ranges: None,
            external_path: None,
            global_index: None,
        };
        self.roots.write_new(self.paths.index_file(&file), bytes.into()).await?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{CountingIds, TickingClock};
    use crate::meta::{PathSettings, TablePaths};
    use crate::options::Options;
    use crate::row::BinaryRow;
    use crate::storage::{MemoryStorage, Storage};

    fn index(storage: &Arc<MemoryStorage>) -> HashIndexFile {
        let settings = PathSettings::from_options(Vec::new(), &Options::new()).unwrap();
        let paths = TablePaths::new(settings).bucket(&BinaryRow::empty(), 0).unwrap();
        let storage: Arc<dyn Storage> = Arc::clone(storage) as _;
        let ids = Arc::new(CountingIds::default());
        HashIndexFile::new(FileRoots::new(storage), paths, Arc::new(IndexFileNames::new(ids)))
    }

    #[tokio::test]
    async fn hashes_are_big_endian_numbers() {
        let storage = Arc::new(MemoryStorage::new(Arc::new(TickingClock::new(0, 1))));
        let index = index(&storage);
        let file = index.write(&[1, -2]).await.unwrap();
        assert_eq!((file.row_count, file.file_size), (2, 8));
        let path = format!("index/{}", file.file_name);
        assert_eq!(
            storage.read_all(&path).await.unwrap().as_ref(),
            [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]
        );
        assert_eq!(index.read(&file).await.unwrap(), [1, -2]);
    }

    #[tokio::test]
    async fn a_file_of_another_length_is_refused() {
        let storage = Arc::new(MemoryStorage::new(Arc::new(TickingClock::new(0, 1))));
        let index = index(&storage);
        let mut file = index.write(&[1, 2]).await.unwrap();
        file.row_count = 3;
        let error = index.read(&file).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "index/{}: corrupt: 8 bytes of key hashes, expected 3 hashes of 4 bytes each",
                file.file_name
            )
        );
    }
}
