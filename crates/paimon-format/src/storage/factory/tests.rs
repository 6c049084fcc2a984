use bytes::Bytes;
use futures::executor::block_on;

use super::*;

fn factory(options: &[(&str, &str)]) -> UrlStorageFactory {
    UrlStorageFactory::new(Env::fixed("unused"), options.iter().copied().collect())
}

fn refusal(options: &[(&str, &str)], url: &str) -> String {
    block_on(factory(options).open(url)).unwrap_err().to_string()
}

#[test]
fn a_folder_has_three_spellings() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a%20b c");
    let path = path.to_str().unwrap();
    block_on(async {
        let factory = factory(&[]);
        let plain = factory.open(path).await.unwrap();
        plain.put("x", Bytes::from_static(b"1")).await.unwrap();
        for url in [format!("file:{path}"), format!("file://{path}")] {
            assert_eq!(
                factory.open(&url).await.unwrap().read_all("x").await.unwrap(),
                "1",
                "{url}"
            );
        }
    });
    assert!(root.path().join("a%20b c/x").is_file());
}

#[test]
fn memory_is_shared_by_name() {
    block_on(async {
        let factory = factory(&[]);
        let one = factory.open("memory://one/table").await.unwrap();
        one.put("x", Bytes::from_static(b"1")).await.unwrap();
        assert_eq!(
            factory
                .open("memory://one")
                .await
                .unwrap()
                .size("table/x")
                .await
                .unwrap(),
            Some(1)
        );
        assert_eq!(
            factory
                .open("memory://two")
                .await
                .unwrap()
                .size("table/x")
                .await
                .unwrap(),
            None
        );
    });
}

#[test]
fn urls_that_are_not_served_are_refused_by_name() {
    assert_eq!(
        refusal(&[], "hdfs://host/t"),
        "hdfs://host/t: refused by the storage: no storage for 'hdfs://' here; known are file, memory and s3"
    );
    assert_eq!(
        refusal(&[], "file://host/t"),
        "file://host/t: refused by the storage: a file URL needs an absolute path and no host"
    );
    assert_eq!(
        refusal(&[], ""),
        ": refused by the storage: an empty path is no place for a table"
    );
    assert_eq!(
        refusal(&[], "memory://a/../b"),
        "a/../b: refused by the storage: '.' and '..' cannot be path components"
    );
}

#[cfg(feature = "aws")]
#[test]
fn wrong_s3_settings_are_refused_by_name() {
    let keys = [("s3.access-key", "a"), ("s3.secret-key", "b")];
    let with = |key, value| [keys[0], keys[1], (key, value)];
    assert_eq!(
        refusal(&keys, "s3:///t"),
        "s3:///t: refused by the storage: the URL names no bucket"
    );
    assert_eq!(
        refusal(&[("s3.access-key", "a")], "s3://bucket/t"),
        "s3://bucket/t: refused by the storage: credentials are missing: set both s3.access-key and s3.secret-key"
    );
    assert_eq!(
        refusal(&with("fs.s3a.path.style.access", "yes"), "s3a://bucket/t"),
        "s3a://bucket/t: refused by the storage: s3.path-style-access is 'yes', expected true or false"
    );
    block_on(factory(&with("s3.endpoint", "http://127.0.0.1:1")).open("s3://bucket/t")).unwrap();
    block_on(factory(&[]).with_system_credentials().open("s3://bucket")).unwrap();
}
