//! From the write buffer to level 0.

use paimon_format::env::Env;
use paimon_format::kv::{BatchSink, KvSchemaRef, KvStream};
use paimon_format::meta::DataFileMeta;
use paimon_merge::engine::MergeEngine;

use crate::LsmError;
use crate::compact::pipeline::merge_streams;

/// Merges sorted runs, in which a key may occur often, and writes what is left of each key: deletes too, for older versions may
/// lie in files. On an error none of the files is left.
pub(super) async fn flush(
    env: &Env,
    schema: &KvSchemaRef,
    engine: &dyn MergeEngine,
    runs: Vec<KvStream>,
    mut sink: Box<dyn BatchSink>,
) -> Result<Vec<DataFileMeta>, LsmError> {
    match merge_streams(env, schema, engine, runs, &mut *sink).await {
        Ok(()) => Ok(sink.finish().await?),
        Err(error) => {
            sink.abort().await;
            Err(error)
        }
    }
}
