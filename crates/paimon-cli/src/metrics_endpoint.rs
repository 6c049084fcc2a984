//! Metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paimon::format::env::Env;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::error::CliError;

/// The longest request that is read.
const REQUEST_BYTES: usize = 8 << 10;
/// A client that takes longer is left alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records the metrics of the process, and answers `GET /metrics` with them from now on. Returns the address, with the port that was
/// taken.
///
/// Errors: `Usage` when the address cannot be listened at, or the process records its metrics elsewhere.
pub(crate) async fn serve(address: SocketAddr, env: &Env) -> Result<SocketAddr, CliError> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| CliError::usage(format!("--metrics {address}: {error}")))?;
    let address = listener
        .local_addr()
        .map_err(|error| CliError::usage(format!("--metrics {address}: {error}")))?;
    let handle = PrometheusBuilder::new()
        .install_recorder()
        .map_err(|error| CliError::usage(format!("--metrics: {error}")))?;
    let env = env.clone();
    let runtime = Arc::clone(&env.runtime);
    runtime.spawn(Box::pin(async move {
        loop {
            let connection = match listener.accept().await {
                Ok((connection, _)) => connection,
                Err(_) => {
                    // Too many open files, or the like: it may pass.
                    env.runtime.sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let (handle, sleep) = (handle.clone(), env.runtime.sleep(PATIENCE));
            env.runtime.spawn(Box::pin(async move {
                let answered = Box::pin(answer(connection, handle));
                // A client that went away needs no answer.
                let _ = select(answered, sleep).await;
            }));
        }
    }));
    Ok(address)
}

async fn answer(mut connection: TcpStream, handle: PrometheusHandle) -> std::io::Result<()> {
    let mut request = Vec::with_capacity(1024);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES {
        if connection.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics" | b"/") => {
            handle.run_upkeep();
            ("200 OK", handle.render())
        }
        (b"GET" | b"HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await?;
    if method != b"HEAD" {
        connection.write_all(body.as_bytes()).await?;
    }
    connection.shutdown().await
}
