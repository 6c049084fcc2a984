//! A table on an S3 server that is busy now and then: a loopback server that keeps objects in memory.
#![expect(
    clippy::disallowed_methods,
    reason = "the server runs beside the client, for a real time"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use paimon::format::options::Options;
use paimon::{Context, Table};

use crate::commit_cases::{add, sums_schema};
use crate::support::rows;

/// How often a name is refused before it is taken.
const BUSY_TRIES: usize = 2;

#[derive(Default)]
struct Bucket {
    objects: BTreeMap<String, Vec<u8>>,
    /// Parts of names whose first tries come at a bad time.
    busy: Vec<&'static str>,
    /// When each name was sent.
    tries: BTreeMap<String, Vec<Instant>>,
}

impl Bucket {
    fn put(&mut self, key: &str, body: Vec<u8>, only_new: bool) -> Answer {
        let tries = self.tries.entry(key.to_owned()).or_default();
        tries.push(Instant::now());
        if self.busy.iter().any(|part| key.contains(part)) && tries.len() <= BUSY_TRIES {
            return Answer::status("503 Slow Down");
        }
        if only_new && self.objects.contains_key(key) {
            return Answer::status("412 Precondition Failed");
        }
        self.objects.insert(key.to_owned(), body);
        Answer::status("200 OK")
    }

    fn get(&self, key: &str, range: Option<&str>) -> Answer {
        let Some(object) = self.objects.get(key) else {
            return Answer::status("404 Not Found");
        };
        let Some((from, to)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) else {
            return Answer {
                body: object.clone(),
                ..Answer::status("200 OK")
            };
        };
        let (from, to) = (
            from.parse().unwrap(),
            to.parse::<usize>().unwrap().min(object.len() - 1),
        );
        Answer {
            body: object[from..=to].to_vec(),
            range: Some(format!("bytes {from}-{to}/{}", object.len())),
            ..Answer::status("206 Partial Content")
        }
    }

    /// What lies directly below a prefix.
    fn list(&self, prefix: &str) -> Answer {
        let mut entries = String::new();
        let mut folders: Vec<&str> = Vec::new();
        for (key, object) in self.objects.range(prefix.to_owned()..) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            match rest.split_once('/') {
                Some((folder, _)) => folders.push(&key[..prefix.len() + folder.len() + 1]),
                None => write!(
                    entries,
                    "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>",
                    object.len()
                )
                .unwrap(),
            }
        }
        folders.dedup();
        for folder in folders {
            write!(entries, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>").unwrap();
        }
        let body = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>");
        Answer {
            body: body.into_bytes(),
            ..Answer::status("200 OK")
        }
    }
}

struct Answer {
    status: &'static str,
    range: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    fn status(status: &'static str) -> Self {
        Self {
            status,
            range: None,
            body: Vec::new(),
        }
    }
}

/// Answers one request.
fn answer(connection: &TcpStream, bucket: &Mutex<Bucket>) {
    let mut reader = BufReader::new(connection);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let Some(request) = head.first() else { return };
    let header = |name: &str| {
        let mut headers = head.iter().filter_map(|line| line.split_once(':'));
        headers.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim()))
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let (method, target) = request.split_once(' ').unwrap();
    let target = target.split(' ').next().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.strip_prefix("/bucket").unwrap_or(path).trim_start_matches('/');
    let mut bucket = bucket.lock().unwrap();
    let answer = match method {
        "PUT" => bucket.put(key, body, header("if-none-match").is_some()),
        "GET" if query.contains("list-type=2") => {
            let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix="));
            bucket.list(&prefix.unwrap_or_default().replace("%2F", "/"))
        }
        "GET" | "HEAD" => bucket.get(key, header("range")),
        other => panic!("{other} {target}"),
    };
    let mut text = format!(
        "HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
        answer.status,
        answer.body.len(),
    );
    if let Some(range) = answer.range {
        write!(text, "Content-Range: {range}\r\n").unwrap();
    }
    let body = if method == "HEAD" { &[][..] } else { &answer.body };
    let mut connection = connection;
    connection
        .write_all(&[text.as_bytes(), b"\r\n", body].concat())
        .unwrap();
}

/// A server, and the options that lead to it.
fn serve() -> (Arc<Mutex<Bucket>>, Options) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = [
        ("s3.endpoint", format!("http://{}", listener.local_addr().unwrap())),
        ("s3.access-key", "key".to_owned()),
        ("s3.secret-key", "secret".to_owned()),
    ];
    let bucket = Arc::new(Mutex::new(Bucket::default()));
    let served = Arc::clone(&bucket);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let served = Arc::clone(&served);
            std::thread::spawn(move || answer(&connection.unwrap(), &served));
        }
    });
    (bucket, options.into_iter().collect())
}

/// The first two tries of each data file and of each manifest are refused; the third, a little later, is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_files_are_sent_again_and_counted_once() {
    let (bucket, options) = serve();
    let context = Context::system().unwrap().with_storage_options(options);
    let table = Table::create("s3://bucket/t", sums_schema(), &context).await.unwrap();
    add(&table.write_builder(), 5).await.unwrap();
    bucket.lock().unwrap().busy = vec!["t/bucket-0/data-", "t/manifest/manifest-"];
    let before = bucket.lock().unwrap().tries.clone();
    assert_eq!(add(&table.write_builder(), 5).await.unwrap(), [2]);

    let mut tries = bucket.lock().unwrap().tries.clone();
    tries.retain(|key, _| !before.contains_key(key));
    let refused: Vec<_> = tries.iter().filter(|(_, tries)| tries.len() > 1).collect();
    let kinds = |part: &str| refused.iter().filter(|(key, _)| key.contains(part)).count();
    assert_eq!(
        (kinds("/bucket-0/data-"), kinds("/manifest/manifest-")),
        (1, refused.len() - 1)
    );
    assert!(refused.len() > 1, "{tries:?}");
    for (key, tries) in refused {
        assert_eq!(tries.len(), BUSY_TRIES + 1, "{key}");
        let pauses = tries.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            { pauses }.all(|pause| pause >= Duration::from_millis(50)),
            "{key}: no pause between tries"
        );
    }
    let snapshots = table.snapshots(usize::MAX).await.unwrap();
    assert_eq!(snapshots.len(), 2);
    assert_eq!(rows(&table).await, ["1 10"]);
}
