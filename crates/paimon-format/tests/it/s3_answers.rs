//! What the S3 client makes of bad answers: a loopback server that answers by script.
#![expect(clippy::unwrap_used, reason = "a test's own set-up must work")]
#![expect(clippy::disallowed_methods, reason = "the server runs beside the client")]

use std::sync::{Arc, Mutex};

use paimon_format::options::Options;
use paimon_format::storage::{Storage, StorageError, StorageFactory, UrlStorageFactory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::s3_server::tokio_env;

/// A storage whose server gives these answers in turn, and what it was asked: method, key, and `if-none-match` if it was sent.
async fn scripted(answers: &'static [&'static str]) -> (Arc<dyn Storage>, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    tokio::task::spawn(async move {
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let request = read_request(&mut connection).await;
            log.lock().unwrap().push(request);
            let head = format!("HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 0\r\nETag: \"1\"\r\n\r\n");
            connection.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let mut options = Options::new();
    options.set("s3.endpoint", endpoint);
    options.set("s3.access-key", "key");
    options.set("s3.secret-key", "secret");
    let factory = UrlStorageFactory::new(tokio_env(), options);
    (factory.open("s3://bucket/t").await.unwrap(), asked)
}

async fn read_request(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        assert_ne!(connection.read_buf(&mut bytes).await.unwrap(), 0, "the client hung up");
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap().to_lowercase();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let length: usize = header("content-length:").map_or(0, |text| text.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        assert_ne!(connection.read_buf(&mut bytes).await.unwrap(), 0, "the client hung up");
    }
    let mut request: Vec<_> = head.split_whitespace().take(2).collect();
    if let Some(condition) = header("if-none-match:") {
        request.extend(["if-none-match", condition]);
    }
    request.join(" ")
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let (storage, asked) = scripted(&["503 Slow Down", "503 Slow Down", "200 OK"]).await;
    let mut writer = storage.create("bucket-0/data-1.parquet").await.unwrap();
    writer.write("data".into()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap(), 4);
    assert_eq!(*asked.lock().unwrap(), ["put /bucket/t/bucket-0/data-1.parquet"; 3]);
}

#[tokio::test]
async fn a_conditional_create_is_won_or_lost_by_the_servers_word() {
    let (storage, asked) = scripted(&["200 OK", "412 Precondition Failed", "304 Not Modified"]).await;
    for won in [true, false, false] {
        assert_eq!(
            storage.put_if_absent("snapshot/snapshot-2", "{}".into()).await.unwrap(),
            won
        );
    }
    assert_eq!(
        *asked.lock().unwrap(),
        ["put /bucket/t/snapshot/snapshot-2 if-none-match *"; 3]
    );
}

#[tokio::test]
async fn a_conflicting_create_is_lost_only_if_the_object_is_there() {
    let (storage, _) = scripted(&["409 Conflict", "200 OK", "409 Conflict", "404 Not Found"]).await;
    assert!(!storage.put_if_absent("snapshot-2", "{}".into()).await.unwrap());
    let error = storage.put_if_absent("snapshot-2", "{}".into()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "snapshot-2: storage unavailable: another write of this name was under way"
    );
}

#[tokio::test]
async fn a_forbidden_head_is_neither_absent_nor_present() {
    let (storage, _) = scripted(&["403 Forbidden", "401 Unauthorized", "404 Not Found"]).await;
    for _ in 0..2 {
        let error = storage.size("snapshot-2").await.unwrap_err();
        assert!(matches!(error, StorageError::Refused { .. }), "{error}");
    }
    assert_eq!(storage.size("snapshot-2").await.unwrap(), None);
}

#[tokio::test]
async fn a_forbidden_create_is_refused() {
    let (storage, _) = scripted(&["403 Forbidden"]).await;
    let error = storage.put_if_absent("snapshot-2", "{}".into()).await.unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn names_are_sent_literally() {
    let (storage, asked) = scripted(&["200 OK"]).await;
    storage.put("dt=a%3A00/x", "1".into()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["put /bucket/t/dt%3da%253a00/x"]);
}
