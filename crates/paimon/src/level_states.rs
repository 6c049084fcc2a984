//! What rows above level 0 are: complete states of their keys, or parts of them.
//!
//! Where compactions look old rows up, every row that they write is the complete state of its key, and of two levels the lower one
//! counts. Elsewhere a row is merged with what lies deeper. A merge engine that makes new values (sums, partial updates) would count
//! rows twice, or not at all, in a file that was written in one way and is read in the other. Only files with something deeper in their
//! bucket matter: what lies deepest is complete in both ways.

use std::sync::Arc;

use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_lsm::lookup::LookupStrategy;
use paimon_manifest::scan::BucketFiles;
use paimon_merge::engine::Promises;

use crate::error::{Error, Result};
use crate::options;
use crate::table::Table;

impl Table {
    /// Refuses files that the table's options take for something else than they are: those of a snapshot from before the options
    /// changed, or of a writer that did not know of the change. Costs nothing unless a bucket has files on several levels above 0.
    ///
    /// Errors: `Invalid`, naming the file and the options; `NotFound`, `Corrupt` for the schema of a file.
    pub(crate) async fn check_level_states(&self, buckets: &[BucketFiles]) -> Result<()> {
        for bucket in buckets {
            if let Err(error) = self.check_states_of(&bucket.files).await {
                let paths = self.paths().bucket(&bucket.partition, bucket.bucket)?;
                return Err(error.in_bucket(paths.directory()));
            }
        }
        Ok(())
    }

    /// The same for the files of one bucket, which errors do not name.
    pub(crate) async fn check_states_of(&self, files: &[Arc<DataFileMeta>]) -> Result<()> {
        let deepest = files.iter().map(|file| file.level).max().unwrap_or(0);
        let is_between = |file: &DataFileMeta| 0 < file.level && file.level < deepest;
        if !files.iter().any(|file| is_between(file)) {
            return Ok(());
        }
        let promises = self.merge_engine()?.promises();
        if promises.idempotent {
            return Ok(());
        }
        let complete = LookupStrategy::from_options(self.options(), promises)?.need_lookup();
        for file in files {
            if is_between(file) && self.holds_complete_states(file, promises, complete).await? != complete {
                return Err(self.misread(file, complete));
            }
        }
        Ok(())
    }

    /// A compaction writes as the options of its schema say. A file that was only moved up is a part: where old rows are looked up such
    /// files are rewritten, unless nothing lies deeper. `now`: compactions write complete states now.
    async fn holds_complete_states(&self, file: &DataFileMeta, promises: Promises, now: bool) -> Result<bool> {
        if file.file_source == Some(FileSource::Append) {
            return Ok(false);
        }
        if file.schema_id == self.schema().id {
            return Ok(now);
        }
        let written = self.schema_by_id(file.schema_id).await?;
        Ok(LookupStrategy::from_options(&written.options, promises)?.need_lookup())
    }

    fn misread(&self, file: &DataFileMeta, complete: bool) -> Error {
        let (is, taken_for) = match complete {
            true => ("changes of its keys", "complete states"),
            false => ("complete states of its keys", "changes"),
        };
        Error::invalid(format!(
            "{} on level {} holds {is}, and would be taken for {taken_for} with {}: run a full compaction with the options of schema {} \
             before they change",
            file.file_name,
            file.level,
            options::lookup_options(self.options()),
            file.schema_id,
        ))
    }
}
