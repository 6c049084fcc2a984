//! The storage contract on a real S3 server: `.ci/with_s3.py cargo test -p paimon-format s3_server`.
#![expect(clippy::unwrap_used, reason = "a test's own set-up must work")]

use std::sync::Arc;

use futures::StreamExt;
use paimon_format::env::{Env, TokioRuntime};
use paimon_format::options::Options;
use paimon_format::storage::testing::{S3Server, check_put_if_absent_race, check_storage};
use paimon_format::storage::{Storage, StorageError, StorageFactory, UrlStorageFactory};

pub(crate) fn tokio_env() -> Env {
    let runtime = TokioRuntime::with_threads(tokio::runtime::Handle::current(), 1).unwrap();
    Env::system(Arc::new(runtime), 1 << 20, 1 << 20, "unused")
}

/// An empty folder of the bucket.
async fn open(options: Options, bucket: &str, folder: &str) -> Arc<dyn Storage> {
    let env = tokio_env();
    let url = format!("s3://{bucket}/{folder}-{}", env.ids.uuid());
    UrlStorageFactory::new(env, options).open(&url).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_keeps_the_promises() {
    let Some(S3Server { options, bucket }) = S3Server::from_env() else {
        return;
    };
    let storage = open(options, &bucket, "promises/dt=a%3A00").await;
    check_storage(storage.as_ref()).await.unwrap();
}

/// Clients of their own, as several processes have them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_writers_wins_on_a_real_server() {
    let Some(S3Server { options, bucket }) = S3Server::from_env() else {
        return;
    };
    let storage = open(options, &bucket, "race").await;
    check_put_if_absent_race(storage.as_ref(), 10, 8).await.unwrap();
}

#[tokio::test]
async fn wrong_keys_are_refused_and_say_nothing_about_files() {
    let Some(S3Server { mut options, bucket }) = S3Server::from_env() else {
        return;
    };
    options.set("s3.secret-key", "wrong");
    let storage = open(options, &bucket, "keys").await;
    let answers = [
        storage.size("absent").await.map(drop),
        storage.put_if_absent("snapshot-1", "{}".into()).await.map(drop),
        storage.list("").next().await.unwrap().map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(StorageError::Refused { .. })), "{answer:?}");
    }
}

#[tokio::test]
async fn a_missing_bucket_is_refused_by_a_listing() {
    let Some(S3Server { options, .. }) = S3Server::from_env() else {
        return;
    };
    let storage = open(options, "no-such-bucket", "table").await;
    assert_eq!(storage.size("snapshot/snapshot-1").await.unwrap(), None);
    let error = storage.list("snapshot").next().await.unwrap().unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error}");
}
