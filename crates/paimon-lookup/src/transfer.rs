//! Lookup files to and from the table's storage.

use std::sync::Arc;

use bytes::Bytes;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::meta::DataFileMeta;

use crate::build::{append, create};
use crate::cache::{LocalFile, LookupFile, LookupFileCache};
use crate::metrics;
use crate::remote::RemoteLookupStore;

/// Bytes that are moved at once.
const CHUNK_BYTES: u64 = 4 << 20;

/// Copies a sidecar to local disk. `None`: there is none, or the local disk does not take it.
///
/// Errors: those of the store. Nothing is left then.
pub(crate) async fn download(
    env: &Env,
    cache: &LookupFileCache,
    store: &dyn RemoteLookupStore,
    file: &DataFileMeta,
    name: &str,
) -> Result<Option<LocalFile>, FormatError> {
    let Some(bytes) = store.size(file, name).await? else {
        return Ok(None);
    };
    let Some(mut output) = create(env).await? else {
        return Ok(None);
    };
    let mut start = 0;
    while start < bytes {
        let end = bytes.min(start + CHUNK_BYTES);
        let chunk = store.read(file, name, start..end).await?;
        match append(env, cache, output, chunk).await? {
            Some(written) => output = written,
            None => return Ok(None),
        }
        start = end;
    }
    let local = output.finish();
    metrics::file_made("download", bytes);
    tracing::debug!(file = file.file_name, bytes, "lookup file downloaded");
    Ok(Some(local))
}

/// Copies a lookup file to the sidecar `name`. `false`: the local file cannot be read, which is noted; the sidecar is not there.
///
/// Errors: those of the store. Whether the sidecar is there is unknown then.
pub(crate) async fn upload(
    env: &Env,
    store: &dyn RemoteLookupStore,
    file: &DataFileMeta,
    name: &str,
    local: &Arc<LookupFile>,
) -> Result<bool, FormatError> {
    let mut output = store.create(file, name).await?;
    let bytes = local.local.bytes();
    let mut start = 0;
    while start < bytes {
        let end = bytes.min(start + CHUNK_BYTES);
        let read = Arc::clone(local);
        let chunk: Vec<Bytes> = match env.blocking(move || read.local.read(&[start..end])).await? {
            Ok(chunk) => chunk,
            Err(error) => {
                tracing::warn!(%error, "a local lookup file cannot be copied");
                output.abort().await;
                return Ok(false);
            }
        };
        for part in chunk {
            output.write(part).await?;
        }
        start = end;
    }
    output.finish().await?;
    Ok(true)
}
