//! A lookup file of a data file.

use futures::StreamExt;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, ReadSpec};
use paimon_format::meta::DataFileMeta;
use paimon_format::sst::{SstSettings, SstWriter};
use paimon_merge::changelog::LookupNeed;

use crate::cache::{LocalFile, LocalFileWriter, LookupFileCache};
use crate::metrics;
use crate::persist::Persist;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Reads a data file and writes what `need` stores of each of its rows to local disk. Rows that a deletion vector hides are stored, too:
/// whether a hit counts is decided when it is found, so the file never grows old. `None`: the local disk does not take it; nothing is left of it.
///
/// Errors: those of the data file. Nothing is left then.
pub(crate) async fn build(
    env: &Env,
    cache: &LookupFileCache,
    files: &dyn KvFiles,
    file: &DataFileMeta,
    read: ReadSpec,
    (persist, need, settings): (&Persist, LookupNeed, SstSettings),
) -> Result<Option<LocalFile>, FormatError> {
    let mut rows = files.open(file, read);
    let mut writer = SstWriter::new(settings, u64::try_from(file.row_count).unwrap_or(0))?;
    let Some(mut output) = create(env).await? else {
        return Ok(None);
    };
    while let Some(batch) = rows.next().await {
        let (batch, persist) = (batch?, persist.clone());
        writer = env
            .cpu(move || persist.put(&batch, need, &mut writer).map(|()| writer))
            .await??;
        if writer.ready_bytes() >= WRITE_BYTES {
            match append(env, cache, output, writer.take()).await? {
                Some(written) => output = written,
                None => return Ok(None),
            }
        }
    }
    let rest = env.cpu(move || writer.finish()).await??;
    let Some(output) = append(env, cache, output, rest).await? else {
        return Ok(None);
    };
    let built = output.finish();
    metrics::file_made("build", built.bytes());
    tracing::debug!(
        file = file.file_name,
        rows = file.row_count,
        bytes = built.bytes(),
        "lookup file built"
    );
    Ok(Some(built))
}

/// A new local file. `None`: it cannot be made, which is noted: look-ups do without.
pub(crate) async fn create(env: &Env) -> Result<Option<LocalFileWriter>, FormatError> {
    let environment = env.clone();
    let created = env.blocking(move || LocalFileWriter::create(&environment)).await?;
    Ok(created.inspect_err(not_on_disk).ok())
}

/// Appends bytes. `None`: there is no room on disk, or it fails, which is noted; the file is gone.
pub(crate) async fn append(
    env: &Env,
    cache: &LookupFileCache,
    mut output: LocalFileWriter,
    bytes: impl AsRef<[u8]> + Send + 'static,
) -> Result<Option<LocalFileWriter>, FormatError> {
    let Some(disk) = cache.reserve_disk(bytes.as_ref().len() as u64) else {
        tracing::warn!(budget = env.disk.total(), "no room on disk for a lookup file");
        return Ok(None);
    };
    let written = env
        .blocking(move || output.write(bytes.as_ref(), disk).map(|()| output))
        .await?;
    Ok(written.inspect_err(not_on_disk).ok())
}

fn not_on_disk(error: &FormatError) {
    tracing::warn!(%error, "the local disk does not take a lookup file");
}
