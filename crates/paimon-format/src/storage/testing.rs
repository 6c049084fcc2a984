//! Conformance of [`Storage`] implementations.

use std::ops::Range;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join_all;

use super::{FileStatus, Storage, StorageError};
use crate::error::ErrorKind;
use crate::options::Options;

/// Names that a table may have in partition folders and files; each is one path component, taken literally.
const LITERAL_NAMES: [&str; 13] = [
    "dt=a%3A00",
    "dt=a:00",
    "%2F",
    "100%",
    "blank blank",
    " leading",
    "plus+plus",
    "query?x=1&y=#2",
    "star*[x]{y}",
    "quote'\"`",
    "~tilde",
    "ключ=値",
    "dots...",
];

/// Checks every promise of [`Storage`]. The root must be empty; it is left without files.
///
/// Errors: the first promise that was broken, in words.
pub async fn check_storage(storage: &dyn Storage) -> Result<(), String> {
    check_absent(storage).await?;
    check_put_if_absent(storage).await?;
    check_race(storage).await?;
    check_put(storage).await?;
    check_create(storage).await?;
    check_given_up(storage).await?;
    check_ranges(storage).await?;
    check_literal_names(storage).await?;
    check_list(storage).await?;
    check_refused_paths(storage).await
}

/// Races `writers` writers for one name, `rounds` times: one wins, and its bytes are there. Part of [`check_storage`], with
/// chosen numbers.
///
/// Errors: as [`check_storage`].
pub async fn check_put_if_absent_race(storage: &dyn Storage, rounds: usize, writers: usize) -> Result<(), String> {
    for round in 0..rounds {
        let path = format!("race/snapshot-{round}");
        let content = |writer: usize| Bytes::from(format!("writer {writer} of round {round}"));
        let writes = (0..writers).map(|writer| storage.put_if_absent(&path, content(writer)));
        let mut winner = None;
        for (writer, answer) in join_all(writes).await.into_iter().enumerate() {
            if done(answer)? {
                ensure(winner.is_none(), || {
                    format!("{path}: two writers were told that they won")
                })?;
                winner = Some(writer);
            }
        }
        let winner = winner.ok_or_else(|| format!("{path}: nobody won the race"))?;
        let found = done(storage.read_all(&path).await)?;
        ensure(found == content(winner), || {
            format!("{path}: holds {found:?}, but writer {winner} won")
        })?;
        ensure_names(storage, "race", &[&path]).await?;
        done(storage.delete(&path).await)?;
    }
    Ok(())
}

async fn check_absent(storage: &dyn Storage) -> Result<(), String> {
    ensure_names(storage, "", &[]).await?;
    ensure_names(storage, "no/such/folder", &[]).await?;
    ensure_absent(storage, "absent").await?;
    ensure_absent(storage, "no/such/folder/absent").await?;
    done(storage.delete("absent").await)?;
    done(storage.delete("no/such/folder/absent").await)
}

async fn check_put_if_absent(storage: &dyn Storage) -> Result<(), String> {
    let path = "snapshot/snapshot-1";
    let first = done(storage.put_if_absent(path, Bytes::from_static(b"first")).await)?;
    ensure(first, || format!("{path}: put_if_absent of a new name must be true"))?;
    let second = done(storage.put_if_absent(path, Bytes::from_static(b"second")).await)?;
    ensure(!second, || {
        format!("{path}: put_if_absent of an existing name must be false")
    })?;
    ensure_content(storage, path, b"first").await?;
    ensure_names(storage, "snapshot", &[path]).await?;
    ensure_absent(storage, "snapshot").await?;
    done(storage.delete(path).await)?;
    ensure_absent(storage, path).await?;
    let again = done(storage.put_if_absent(path, Bytes::new()).await)?;
    ensure(again, || format!("{path}: put_if_absent after delete must be true"))?;
    ensure_content(storage, path, b"").await?;
    done(storage.delete(path).await)
}

async fn check_race(storage: &dyn Storage) -> Result<(), String> {
    check_put_if_absent_race(storage, 3, 8).await
}

async fn check_put(storage: &dyn Storage) -> Result<(), String> {
    let path = "snapshot/LATEST";
    for content in ["1", "10", ""] {
        done(storage.put(path, Bytes::from(content)).await)?;
        ensure_content(storage, path, content.as_bytes()).await?;
    }
    ensure_names(storage, "snapshot", &[path]).await?;
    done(storage.delete(path).await)
}

async fn check_create(storage: &dyn Storage) -> Result<(), String> {
    // Small, empty, and more than two parts of a multipart upload, in chunks that fit no part size.
    for (chunks, chunk_bytes) in [(3, 5), (0, 0), (19, 1_000_003)] {
        let path = "bucket-0/data-1.parquet";
        let chunk = |index: u8| Bytes::from((0..chunk_bytes).map(|at| at as u8 ^ index).collect::<Vec<_>>());
        let mut writer = done(storage.create(path).await)?;
        for index in 0..chunks {
            done(writer.write(chunk(index)).await)?;
            ensure_absent(storage, path).await?;
        }
        ensure_names(storage, "bucket-0", &[]).await?;
        let size = done(writer.finish().await)?;
        let content: Vec<u8> = (0..chunks).flat_map(chunk).collect();
        ensure(size == content.len() as u64, || {
            format!("{path}: finish says {size} bytes, but {} were written", content.len())
        })?;
        ensure_content(storage, path, &content).await?;
        ensure_names(storage, "bucket-0", &[path]).await?;
        done(storage.delete(path).await)?;
    }
    Ok(())
}

async fn check_given_up(storage: &dyn Storage) -> Result<(), String> {
    for chunks in [0, 1, 10] {
        for drop_it in [true, false] {
            let path = "bucket-0/given-up.parquet";
            let mut writer = done(storage.create(path).await)?;
            for _ in 0..chunks {
                done(writer.write(Bytes::from(vec![7; 1 << 20])).await)?;
            }
            if drop_it {
                drop(writer);
            } else {
                writer.abort().await;
                let left = all_names(storage, "bucket-0").await?;
                ensure(left.is_empty(), || format!("{path}: abort left {left:?}"))?;
            }
            ensure_absent(storage, path).await?;
            ensure_names(storage, "bucket-0", &[]).await?;
        }
    }
    Ok(())
}

async fn check_ranges(storage: &dyn Storage) -> Result<(), String> {
    let path = "bucket-0/ranges";
    done(storage.put(path, Bytes::from_static(b"0123456789")).await)?;
    let ranges = [8..10, 0..3, 2..5, 0..10, 4..4, 10..10];
    let parts = done(storage.read(path, &ranges).await)?;
    let expected: [&[u8]; 6] = [b"89", b"012", b"234", b"0123456789", b"", b""];
    ensure(parts == expected, || format!("{path}: {ranges:?} gave {parts:?}"))?;
    let none = done(storage.read(path, &[]).await)?;
    ensure(none.is_empty(), || format!("{path}: no ranges gave {none:?}"))?;
    #[expect(clippy::reversed_empty_ranges, reason = "one of the ranges that must be refused")]
    let wrong: [Range<u64>; 5] = [9..11, 10..11, 20..30, 5..4, 0..u64::MAX];
    for range in wrong {
        let answer = storage.read(path, &[0..1, range.clone()]).await;
        let refused =
            matches!(&answer, Err(error @ StorageError::OutOfRange { .. }) if error.kind() == ErrorKind::Corrupt);
        ensure(refused, || {
            format!("{path}: {range:?} of 10 bytes gave {answer:?}, not OutOfRange")
        })?;
    }
    done(storage.delete(path).await)
}

async fn check_literal_names(storage: &dyn Storage) -> Result<(), String> {
    let mut folders = Vec::new();
    for name in LITERAL_NAMES {
        let path = format!("names/{name}/{name}");
        let made = done(storage.put_if_absent(&path, Bytes::from(name)).await)?;
        ensure(made, || format!("{path}: taken for another name"))?;
        ensure_content(storage, &path, name.as_bytes()).await?;
        ensure_names(storage, &format!("names/{name}"), &[&path]).await?;
        folders.push(format!("names/{name}"));
    }
    let listed = all_names(storage, "names").await?;
    folders.sort();
    ensure(listed == folders, || {
        format!("names: lists {listed:?}, not {folders:?}")
    })?;
    for name in LITERAL_NAMES {
        done(storage.delete(&format!("names/{name}/{name}")).await)?;
    }
    Ok(())
}

async fn check_list(storage: &dyn Storage) -> Result<(), String> {
    let files = ["list/b", "list/a/x", "list/a/y/z", "list/a!", "list2/c", "list!"];
    for path in files {
        done(storage.put(path, Bytes::from(path)).await)?;
    }
    let mut found: Vec<FileStatus> = done(storage.list("list").try_collect().await)?;
    found.sort_by(|one, two| one.path.cmp(&two.path));
    let shapes: Vec<_> = found
        .iter()
        .map(|file| (file.path.as_str(), file.size, file.is_dir))
        .collect();
    let expected = [("list/a", 0, true), ("list/a!", 7, false), ("list/b", 6, false)];
    ensure(shapes == expected, || {
        format!("list: gave {shapes:?}, not {expected:?}")
    })?;
    ensure_names(storage, "list/a", &["list/a/x", "list/a/y"]).await?;
    for path in files {
        done(storage.delete(path).await)?;
    }
    Ok(())
}

async fn check_refused_paths(storage: &dyn Storage) -> Result<(), String> {
    for path in ["", "/etc/passwd", "a/../b", "..", "./a", "a//b", "a/", "a\0b", "a\nb"] {
        let answers = [
            storage.read(path, &[]).await.err(),
            storage.read_all(path).await.err(),
            storage.size(path).await.err(),
            storage.create(path).await.err(),
            storage.put_if_absent(path, Bytes::new()).await.err(),
            storage.put(path, Bytes::new()).await.err(),
            storage.delete(path).await.err(),
        ];
        for answer in answers {
            let refused = matches!(&answer, Some(StorageError::Refused { .. }));
            ensure(refused, || format!("{path:?}: gave {answer:?}, not Refused"))?;
        }
    }
    Ok(())
}

fn done<T>(answer: Result<T, StorageError>) -> Result<T, String> {
    answer.map_err(|error| format!("unexpected error: {error}"))
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

async fn ensure_absent(storage: &dyn Storage, path: &str) -> Result<(), String> {
    let size = done(storage.size(path).await)?;
    ensure(size.is_none(), || {
        format!("{path}: must be absent, but has size {size:?}")
    })?;
    let ranges = storage.read(path, std::slice::from_ref(&(0..1))).await.map(drop);
    let whole = storage.read_all(path).await.map(drop);
    for answer in [ranges, whole] {
        ensure(matches!(answer, Err(StorageError::NotFound { .. })), || {
            format!("{path}: must be absent, but a read gave {answer:?}")
        })?;
    }
    Ok(())
}

async fn ensure_content(storage: &dyn Storage, path: &str, content: &[u8]) -> Result<(), String> {
    let size = done(storage.size(path).await)?;
    ensure(size == Some(content.len() as u64), || {
        format!("{path}: size is {size:?}, not {}", content.len())
    })?;
    let found = done(storage.read_all(path).await)?;
    ensure(found == content, || format!("{path}: other bytes than were written"))
}

/// The visible names (without a leading dot) of a directory are these, and nothing else.
async fn ensure_names(storage: &dyn Storage, dir: &str, expected: &[&str]) -> Result<(), String> {
    let mut names = all_names(storage, dir).await?;
    names.retain(|name| !name.starts_with('.') && !name.contains("/."));
    ensure(names == expected, || {
        format!("{dir:?}: lists {names:?}, not {expected:?}")
    })
}

async fn all_names(storage: &dyn Storage, dir: &str) -> Result<Vec<String>, String> {
    let files: Vec<FileStatus> = done(storage.list(dir).try_collect().await)?;
    let mut names: Vec<_> = files.into_iter().map(|file| file.path).collect();
    names.sort();
    Ok(names)
}

/// A real S3 server for tests, and a bucket of it.
#[derive(Clone, Debug)]
pub struct S3Server {
    /// Where it is and how to get in: `s3.endpoint`, ….
    pub options: Options,
    /// The bucket.
    pub bucket: String,
}

impl S3Server {
    /// The server that `.ci/with_s3.py` starts beside a command, by `PAIMON_TEST_S3_{ENDPOINT,BUCKET,ACCESS_KEY,SECRET_KEY}`. `None`, and a line
    /// on standard error: there is none, and tests that need one skip.
    pub fn from_env() -> Option<Self> {
        let variable = |name: &str| std::env::var(format!("PAIMON_TEST_S3_{name}")).ok();
        let found = ["ENDPOINT", "ACCESS_KEY", "SECRET_KEY", "BUCKET"].map(variable);
        let [Some(endpoint), Some(key), Some(secret), Some(bucket)] = found else {
            eprintln!("skipped: PAIMON_TEST_S3_ENDPOINT names no S3 server; run it under .ci/with_s3.py");
            return None;
        };
        let options = [
            ("s3.endpoint", endpoint),
            ("s3.access-key", key),
            ("s3.secret-key", secret),
            ("s3.path.style.access", "true".to_owned()),
        ];
        Some(Self {
            options: options.into_iter().collect(),
            bucket,
        })
    }
}
