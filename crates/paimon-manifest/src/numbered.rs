//! Directories of numbered files: `schema/schema-7`, `snapshot/snapshot-7`.

use futures::TryStreamExt;
use paimon_format::storage::Storage;

use crate::error::Result;

/// The numbers of the files `PREFIX<number>` in a directory, ascending; other files do not count. Cost: a listing.
pub(crate) async fn list_ids(storage: &dyn Storage, dir: &str, prefix: &str) -> Result<Vec<i64>> {
    let files = storage.list(dir).try_filter_map(|file| async move {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        Ok(name.strip_prefix(prefix).and_then(|id| id.parse::<i64>().ok()))
    });
    let mut ids: Vec<i64> = files.try_collect().await?;
    ids.sort_unstable();
    Ok(ids)
}
