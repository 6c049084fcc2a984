use std::sync::Arc;

use super::testing::check_storage;
use super::*;
use crate::env::{Env, TokioRuntime};

fn tokio_env() -> Env {
    let runtime = TokioRuntime::with_threads(tokio::runtime::Handle::current(), 1).unwrap();
    Env::system(Arc::new(runtime), 1 << 20, 1 << 20, "unused")
}

#[tokio::test(flavor = "multi_thread")]
async fn local_keeps_its_promises_with_threads() {
    let root = tempfile::tempdir().unwrap();
    let storage = LocalStorage::new(root.path().join("not/yet/there"), tokio_env());
    check_storage(&storage).await.unwrap();
}

#[test]
fn local_keeps_its_promises_on_one_thread() {
    let root = tempfile::tempdir().unwrap();
    let storage = LocalStorage::new(root.path(), Env::fixed("unused"));
    futures::executor::block_on(check_storage(&storage)).unwrap();
}

#[tokio::test]
async fn memory_keeps_its_promises() {
    let storage = MemoryStorage::new(Env::fixed("unused").clock);
    check_storage(&storage).await.unwrap();
    check_storage(&storage.below("one/folder").unwrap()).await.unwrap();
}

#[cfg(feature = "object-store")]
#[tokio::test]
async fn object_store_keeps_its_promises() {
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    for root in ["", "warehouse/db.db/t%3A1"] {
        let storage = object::ObjectStorage::new(Arc::clone(&store), root, tokio_env()).unwrap();
        check_storage(&storage).await.unwrap();
    }
}

/// A store that lets two writers win, or one that shows half a file, must be caught.
#[tokio::test]
async fn the_check_catches_an_overwriting_storage() {
    #[derive(Debug)]
    struct Overwrites(MemoryStorage);

    #[async_trait]
    impl Storage for Overwrites {
        async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
            self.0.read(path, ranges).await
        }
        async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
            self.0.read_all(path).await
        }
        async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
            self.0.size(path).await
        }
        async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
            self.0.create(path).await
        }
        async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
            self.0.put(path, bytes).await.map(|()| true)
        }
        async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
            self.0.put(path, bytes).await
        }
        fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
            self.0.list(dir)
        }
        async fn delete(&self, path: &str) -> Result<(), StorageError> {
            self.0.delete(path).await
        }
    }

    let storage = Overwrites(MemoryStorage::new(Env::fixed("unused").clock));
    let broken = check_storage(&storage).await.unwrap_err();
    assert_eq!(
        broken,
        "snapshot/snapshot-1: put_if_absent of an existing name must be false"
    );
    let broken = testing::check_put_if_absent_race(&storage, 1, 2).await.unwrap_err();
    assert_eq!(broken, "race/snapshot-0: two writers were told that they won");
}
