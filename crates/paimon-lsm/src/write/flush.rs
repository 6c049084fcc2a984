//! From the write buffer to level 0.

use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, KvSchemaRef};
use paimon_format::meta::FileSource;
use paimon_merge::engine::MergeEngine;

use crate::LsmError;
use crate::compact::ChangelogProducer;
use crate::compact::pipeline::{BufferedRuns, MergeSinks, Merged, merge_buffered};

/// Merges sorted runs, in which a key may occur often, and writes what is left of each key: deletes too, for older versions may
/// lie in files. With producer `input` every record is in the changelog, unmerged, in the order of keys, then versions. On an error
/// none of the files is left.
///
/// Source: `org.apache.paimon.mergetree.MergeTreeWriter#flushWriteBuffer`.
pub(super) async fn flush(
    env: &Env,
    files: &dyn KvFiles,
    schema: &KvSchemaRef,
    engine: &dyn MergeEngine,
    producer: ChangelogProducer,
    runs: BufferedRuns,
) -> Result<Merged, LsmError> {
    let sinks = MergeSinks {
        data: Some(files.data_sink(0, FileSource::Append)),
        changelog: (producer == ChangelogProducer::Input).then(|| files.changelog_sink(0)),
    };
    merge_buffered(env, files, schema, engine, runs, sinks).await
}
