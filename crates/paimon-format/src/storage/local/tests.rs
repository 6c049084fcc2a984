use futures::TryStreamExt;
use futures::executor::block_on;

use super::*;

fn storage() -> (tempfile::TempDir, LocalStorage) {
    let root = tempfile::tempdir().unwrap();
    let storage = LocalStorage::new(root.path(), Env::fixed("unused"));
    (root, storage)
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_temporary_file_is_hidden_beside_its_target_and_goes() {
    let (root, storage) = storage();
    let mut writer = block_on(storage.create("snapshot/snapshot-7")).unwrap();
    block_on(writer.write(Bytes::from_static(b"{}"))).unwrap();
    let temp = ".snapshot-7.00000000-0000-4000-8000-000000000001.tmp";
    assert_eq!(names(&root.path().join("snapshot")), [temp]);
    block_on(writer.finish()).unwrap();
    assert_eq!(names(&root.path().join("snapshot")), ["snapshot-7"]);
    assert!(block_on(storage.put_if_absent("snapshot/snapshot-8", Bytes::new())).unwrap());
    assert!(!block_on(storage.put_if_absent("snapshot/snapshot-8", Bytes::new())).unwrap());
    block_on(storage.put("snapshot/LATEST", Bytes::from_static(b"8"))).unwrap();
    assert_eq!(
        names(&root.path().join("snapshot")),
        ["LATEST", "snapshot-7", "snapshot-8"]
    );
}

/// The kernel's folders say "not found" when one is to be made in them, however often it is tried.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let storage = LocalStorage::new(Path::new("/proc/self"), Env::fixed("unused"));
    let error = block_on(storage.put("no/such/folder/file", Bytes::new())).unwrap_err();
    assert!(error.to_string().contains("no/such/folder/file"), "{error}");
}

#[test]
fn a_file_that_is_there_is_never_replaced_by_a_new_one() {
    let (_root, storage) = storage();
    let mut writer = block_on(storage.create("data-1")).unwrap();
    block_on(writer.write(Bytes::from_static(b"second"))).unwrap();
    assert!(block_on(storage.put_if_absent("data-1", Bytes::from_static(b"first"))).unwrap());
    let error = block_on(writer.finish()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "data-1: refused by the storage: there is such a file already"
    );
    assert_eq!(block_on(storage.read_all("data-1")).unwrap(), "first");
}

#[test]
fn a_file_in_the_place_of_a_folder_is_named() {
    let (_root, storage) = storage();
    block_on(storage.put("file", Bytes::new())).unwrap();
    let error = block_on(storage.put_if_absent("file/snapshot-1", Bytes::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file/snapshot-1: refused by the storage: Not a directory (os error 20)"
    );
    assert_eq!(block_on(storage.size("file/snapshot-1")).unwrap(), None);
    assert!(matches!(
        block_on(storage.read_all("file/snapshot-1")),
        Err(StorageError::NotFound { .. })
    ));
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let (root, storage) = storage();
    fs::create_dir(root.path().join("snapshot-1")).unwrap();
    assert!(!block_on(storage.put_if_absent("snapshot-1", Bytes::new())).unwrap());
    let error = block_on(storage.put("snapshot-1", Bytes::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "snapshot-1: refused by the storage: Is a directory (os error 21)"
    );
    let error = block_on(storage.delete("snapshot-1")).unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error}");
    assert_eq!(names(root.path()), ["snapshot-1"]);
}

#[test]
fn listing_gives_sizes_times_and_hidden_files_but_no_broken_links() {
    let (root, storage) = storage();
    block_on(storage.put("data", Bytes::from_static(b"12345"))).unwrap();
    block_on(storage.put(".hidden", Bytes::new())).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", root.path().join("link")).unwrap();
    let mut files: Vec<_> = block_on(storage.list("").try_collect()).unwrap();
    files.sort_by_key(|file: &FileStatus| file.path.clone());
    let shapes: Vec<_> = files
        .iter()
        .map(|file| (file.path.as_str(), file.size, file.is_dir))
        .collect();
    assert_eq!(shapes, [(".hidden", 0, false), ("data", 5, false)]);
    assert!(files.iter().all(|file| file.modified_ms > Some(1_704_067_200_000)));
    assert!(names(root.path()).len() >= 2);
}

#[test]
fn a_dropped_call_leaves_no_temporary_file() {
    let (root, storage) = storage();
    let mut writer = block_on(storage.create("data")).unwrap();
    block_on(writer.write(Bytes::from(vec![1; 3 << 20]))).unwrap();
    drop(writer);
    drop(storage.put_if_absent("snapshot-1", Bytes::new()));
    assert_eq!(names(root.path()), Vec::<String>::new());
}
