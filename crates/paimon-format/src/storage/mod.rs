//! Bytes by name: the [`Storage`] trait and its implementations.
//!
//! | Implementation | For |
//! |---|---|
//! | [`LocalStorage`] | a folder: hidden temporary file, sync, link; never overwrites a published name |
//! | [`MemoryStorage`] | tests, scratch tables |
//! | `object::ObjectStorage` (feature `object-store`) | S3 and compatible stores |
//!
//! [`UrlStorageFactory`] opens a root by path or URL. Own implementations run `testing::check_storage` (feature `test-util`).

mod error;
mod factory;
mod local;
mod memory;
#[cfg(feature = "object-store")]
pub mod object;
mod path;
mod roots;
#[cfg(feature = "aws")]
mod s3;
#[cfg(feature = "test-util")]
pub mod testing;

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

pub use error::StorageError;
pub use factory::{StorageFactory, UrlStorageFactory};
pub use local::LocalStorage;
pub use memory::MemoryStorage;
pub use roots::FileRoots;

/// A file found by [`Storage::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Relative to the storage's root, `/`-separated.
    pub path: String,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// Last modification, milliseconds since the epoch, when the storage knows it.
    pub modified_ms: Option<i64>,
    /// A directory (or a common prefix of an object store).
    pub is_dir: bool,
}

/// Bytes by name below one root: a table, or one external data path.
///
/// Paths are `/`-separated, relative, and taken as they are: `dt=a%3A00/x` is the very name with the percent sign in it.
/// Writing is all-or-nothing: a name is either absent or holds all of its bytes. Temporary names of an implementation start
/// with a dot, so that listings of Java readers do not trip over them. An error of any write means *unknown*: the file may be there.
#[async_trait]
pub trait Storage: Debug + Send + Sync + 'static {
    /// Byte ranges, end exclusive, in the order asked. A range beyond the end of the file is an error.
    ///
    /// Errors: `NotFound`, `OutOfRange`, `Unavailable`, `Refused`.
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError>;

    /// The whole file. Errors: `NotFound`, `Unavailable`, `Refused`.
    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError>;

    /// The size in bytes, or `None` when there is no such file (a directory is none). `None` is a clear answer of the storage: a
    /// refusal is an error, whatever it may hide.
    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError>;

    /// Starts a new file; nothing is visible before [`StorageWriter::finish`]. Data files have unique names, so an existing
    /// file is never meant to be replaced; an implementation may overwrite or refuse it.
    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError>;

    /// Writes a small file, durably, unless one is there. `false`: one was there and is untouched (it may be ours, after a
    /// retry below). Any error means unknown: it may be there.
    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError>;

    /// Writes a small file, replacing what is there: hints, tags, consumers.
    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError>;

    /// Direct children of a directory, in no order. A directory that does not exist has none.
    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>>;

    /// Removes a file. An absent one counts as removed.
    async fn delete(&self, path: &str) -> Result<(), StorageError>;
}

/// One file being written. Dropping it without [`finish`](Self::finish) leaves nothing under the name.
#[async_trait]
pub trait StorageWriter: Send {
    /// Appends bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError>;
    /// Makes the file visible with all its bytes, durably. Returns its size in bytes.
    async fn finish(self: Box<Self>) -> Result<u64, StorageError>;
    /// Gives up: nothing is left under the name.
    async fn abort(self: Box<Self>);
}

#[cfg(test)]
mod tests;
