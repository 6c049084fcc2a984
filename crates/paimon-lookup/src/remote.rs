//! Lookup files beside their data files, made once and used by all.
//!
//! Names are `<data file>.<id>.<bytes>.<what is stored>.<version>.lookup`; a data file names its own in its extra files, so it is deleted with
//! it. Readers look at the last parts only. The id, which Java's names have not, is drawn anew for each file: of two compactions that move one
//! data file, the one that loses must not touch what the other has committed.
//!
//! Source: `org.apache.paimon.mergetree.lookup.RemoteLookupFileManager`.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use paimon_format::FormatError;
use paimon_format::meta::{BucketPaths, DataFileMeta};
use paimon_format::storage::{FileRoots, Storage, StorageWriter};
use paimon_merge::changelog::LookupNeed;

use crate::persist::{VERSION, identifier};

const SUFFIX: &str = ".lookup";

/// Where remote lookup files lie. [`BucketRemoteLookups`] is the built-in one.
#[async_trait]
pub trait RemoteLookupStore: Debug + Send + Sync {
    /// Starts the sidecar `name` of a data file. There is none of that name yet.
    async fn create(&self, file: &DataFileMeta, name: &str) -> Result<Box<dyn StorageWriter>, FormatError>;

    /// The size of a sidecar; `None`: there is none.
    async fn size(&self, file: &DataFileMeta, name: &str) -> Result<Option<u64>, FormatError>;

    /// A range of bytes of a sidecar.
    async fn read(&self, file: &DataFileMeta, name: &str, range: Range<u64>) -> Result<Bytes, FormatError>;

    /// Removes a sidecar that no snapshot can name.
    async fn delete(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError>;
}

/// Remote lookup files of one bucket, each beside its data file.
#[derive(Clone, Debug)]
pub struct BucketRemoteLookups {
    roots: FileRoots,
    paths: BucketPaths,
}

impl BucketRemoteLookups {
    /// For a bucket at `paths` below these roots.
    pub fn new(roots: FileRoots, paths: BucketPaths) -> Self {
        Self { roots, paths }
    }

    async fn locate(&self, file: &DataFileMeta, name: &str) -> Result<(Arc<dyn Storage>, String), FormatError> {
        self.roots.locate(self.paths.extra_file(file, name)).await
    }
}

#[async_trait]
impl RemoteLookupStore for BucketRemoteLookups {
    async fn create(&self, file: &DataFileMeta, name: &str) -> Result<Box<dyn StorageWriter>, FormatError> {
        let (storage, path) = self.locate(file, name).await?;
        Ok(storage.create(&path).await?)
    }

    async fn size(&self, file: &DataFileMeta, name: &str) -> Result<Option<u64>, FormatError> {
        let (storage, path) = self.locate(file, name).await?;
        Ok(storage.size(&path).await?)
    }

    async fn read(&self, file: &DataFileMeta, name: &str, range: Range<u64>) -> Result<Bytes, FormatError> {
        let (storage, path) = self.locate(file, name).await?;
        let parts = storage.read(&path, std::slice::from_ref(&range)).await?;
        let part = parts.into_iter().next();
        part.ok_or_else(|| FormatError::internal(format!("{path}: one range was asked")))
    }

    async fn delete(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError> {
        self.roots.delete(self.paths.extra_file(file, name)).await
    }
}

/// The name of a new remote lookup file. `id`: one that no other file has.
pub(crate) fn new_name(file: &DataFileMeta, id: &str, bytes: u64, need: LookupNeed) -> String {
    format!("{}.{id}.{bytes}.{}.{VERSION}{SUFFIX}", file.file_name, identifier(need))
}

/// Whether a sidecar is a remote lookup file that stores what is needed in a form that is known here.
fn stores(name: &str, need: LookupNeed) -> bool {
    let mut parts = name.strip_suffix(SUFFIX).unwrap_or_default().rsplit('.');
    let (version, stored) = (parts.next(), parts.next());
    version == Some(VERSION) && stored == Some(identifier(need))
}

/// Whether a data file names a remote lookup file that stores what is needed, be it the first one or not.
pub(crate) fn has_one(file: &DataFileMeta, need: LookupNeed) -> bool {
    file.extra_files.iter().any(|name| stores(name, need))
}

/// The remote lookup file of a data file, if the first one that it names stores what is needed in a form that is known here.
pub(crate) fn usable_name(file: &DataFileMeta, need: LookupNeed) -> Option<&str> {
    let name = file.extra_files.iter().find(|name| name.ends_with(SUFFIX))?;
    stores(name, need).then_some(name)
}

#[cfg(test)]
mod tests {
    use paimon_lsm::testing::file;

    use super::*;

    #[test]
    fn names_tell_what_is_stored() {
        let mut data = file("data-1.parquet", 5, 1);
        let name = new_name(&data, "7", 4711, LookupNeed::PositionAndValue);
        assert_eq!(name, "data-1.parquet.7.4711.position-and-value.v1.lookup");
        assert_eq!(usable_name(&data, LookupNeed::Value), None);
        data.extra_files = vec!["data-1.parquet.index".to_owned(), name.clone()];
        assert_eq!(usable_name(&data, LookupNeed::PositionAndValue), Some(name.as_str()));
        assert_eq!(usable_name(&data, LookupNeed::Value), None);
        assert!(has_one(&data, LookupNeed::PositionAndValue) && !has_one(&data, LookupNeed::Value));
        // As Java names them.
        data.extra_files = vec!["data-1.parquet.4711.value.v1.lookup".to_owned(), name];
        assert!(usable_name(&data, LookupNeed::Value).is_some());
        assert_eq!(
            usable_name(&data, LookupNeed::PositionAndValue),
            None,
            "only the first one counts"
        );
        assert!(has_one(&data, LookupNeed::PositionAndValue));
        for unusable in [
            "x.lookup",
            "d.parquet.1.value.v2.lookup",
            "d.parquet.1.values.v1.lookup",
        ] {
            data.extra_files = vec![unusable.to_owned()];
            assert_eq!(usable_name(&data, LookupNeed::Value), None, "{unusable}");
        }
    }
}
