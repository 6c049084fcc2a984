//! Changes of a table's schema, and what the files that are there forbid.

use std::sync::Arc;

use paimon_format::options::Options;
use paimon_lsm::compact::{ChangelogProducer, CompactSettings};
use paimon_manifest::ManifestError;
use paimon_manifest::scan::{BucketFiles, ScanFilter};
use paimon_manifest::schema::{SchemaChange, TableSchema};
use paimon_manifest::snapshot::Snapshot;

use crate::error::{Error, Result};
use crate::options;
use crate::table::Table;

/// Each lost attempt means that another one won.
const ATTEMPTS: u32 = 50;

impl Table {
    /// Changes the schema, and returns the table at its new version. Who loses the race for it makes the changes to the winner's.
    ///
    /// Writers and readers that are open stay at theirs: what they write has null in columns that were added. End them before a change
    /// of whether old rows are looked up, if the merge engine makes new values: what they compact later would have another meaning, and
    /// is refused when it is read.
    ///
    /// Errors: `NotFound` when there is no table any more; `Invalid` naming the column or option that cannot be changed so, or not before
    /// a full compaction; `Unsupported` for a type that this engine could not write; `Conflict` when others change the schema all the
    /// time. The schema is as it was then.
    ///
    /// Source: `org.apache.paimon.schema.SchemaManager#commitChanges`.
    pub async fn alter(&self, changes: &[SchemaChange]) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let schema = self.latest_schema().await?;
            if let Some(altered) = self.alter_at(schema, changes).await? {
                return Ok(altered);
            }
        }
        let message = format!("others changed the schema {ATTEMPTS} times while it was to be changed");
        Err(ManifestError::Conflict(message).into())
    }

    /// As [`alter`](Self::alter), for changes that were found by looking at this very version of the schema: `None` when it is not the
    /// latest any more, and nothing has changed.
    ///
    /// Errors: as there, but no `Conflict`.
    pub async fn alter_if_latest(&self, changes: &[SchemaChange]) -> Result<Option<Self>> {
        let latest = self.latest_schema().await?;
        match latest.id == self.schema().id {
            true => self.alter_at(latest, changes).await,
            false => Ok(None),
        }
    }

    /// Makes the changes to a version of the schema. `None`: another one has been put behind it.
    async fn alter_at(&self, schema: Arc<TableSchema>, changes: &[SchemaChange]) -> Result<Option<Self>> {
        let now_ms = self.context().env().clock.now_ms();
        // What this use sets on top of the schema's options does not count.
        let none = Options::new();
        let next = Arc::new(schema.with_changes(changes, now_ms)?);
        let (before, after) = (self.at(schema, &none)?, self.at(Arc::clone(&next), &none)?);
        let snapshot = self.snapshot_store().latest().await?;
        for change in changes {
            let (key, value) = match change {
                SchemaChange::SetOption { key, value } => (key, Some(value.as_str())),
                SchemaChange::RemoveOption { key } => (key, None),
                _ => continue,
            };
            options::check_change(before.options(), key, value, snapshot.is_some())?;
        }
        after.check_writable()?;
        if let Some(snapshot) = snapshot {
            before.check_levels(&after, &snapshot).await?;
        }
        let altered = self.at(Arc::clone(&next), self.dynamic_options())?;
        Ok(self.schemas().create(&next).await?.then_some(altered))
    }

    /// Whether the files of a snapshot keep their meaning with the options of `after`.
    async fn check_levels(&self, after: &Self, snapshot: &Snapshot) -> Result<()> {
        let change = LevelsChange {
            before: LevelOptions::of(self)?,
            after: LevelOptions::of(after)?,
        };
        if change.before == change.after {
            return Ok(());
        }
        let buckets = self.files(snapshot, ScanFilter::all()).await?;
        for bucket in &buckets {
            let refuse = |message| match self.paths().bucket(&bucket.partition, bucket.bucket) {
                Ok(paths) => Error::invalid(message).in_bucket(paths.directory()),
                Err(error) => error.into(),
            };
            change.check(bucket).map_err(refuse)?;
        }
        after.check_level_states(&buckets).await
    }
}

/// Options that say what the levels of a bucket are.
#[derive(Debug, PartialEq, Eq)]
struct LevelOptions {
    top_level: i32,
    producer: ChangelogProducer,
    vectors: bool,
    looks_up: bool,
}

impl LevelOptions {
    fn of(table: &Table) -> Result<Self> {
        let settings = CompactSettings::from_options(table.options(), table.merge_engine()?.promises())?;
        Ok(Self {
            top_level: settings.num_levels.saturating_sub(1),
            producer: settings.producer,
            vectors: settings.lookup.deletion_vector,
            looks_up: settings.lookup.need_lookup(),
        })
    }

    /// What the top level holds has been told to readers of the changelog, and nothing else.
    fn top_level_is_told(&self) -> bool {
        self.producer == ChangelogProducer::FullCompaction
    }
}

struct LevelsChange {
    before: LevelOptions,
    after: LevelOptions,
}

impl LevelsChange {
    /// Errors: what a bucket has that forbids the change.
    fn check(&self, bucket: &BucketFiles) -> Result<(), String> {
        let Self { before, after } = self;
        let upper = bucket.files.iter().map(|file| file.level).filter(|&level| level > 0);
        let (lowest, highest) = upper.fold((i32::MAX, 0), |(low, high), level| (low.min(level), high.max(level)));
        if before.top_level != after.top_level {
            let told = before.top_level_is_told() && after.top_level_is_told();
            let becomes = |why| {
                Err(format!(
                    "option 'num-levels' cannot become {} (its default is 'num-sorted-run.compaction-trigger' + 1): there are files on \
                     level {highest}{why}",
                    after.top_level + 1
                ))
            };
            if highest > after.top_level && after.top_level < before.top_level {
                return becomes("");
            }
            if told && (highest == before.top_level || highest == after.top_level) {
                return becomes(
                    ", and with 'changelog-producer' = 'full-compaction' changes would be told twice or never",
                );
            }
        }
        if after.vectors && !before.vectors && lowest < highest {
            return Err(
                "option 'deletion-vectors.enabled' cannot become true while there are files on several levels above 0, because keys \
                 would be seen twice: run a full compaction first"
                    .to_owned(),
            );
        }
        if before.vectors && !after.vectors && !bucket.deletion_files.is_empty() {
            return Err(
                "option 'deletion-vectors.enabled' cannot become false while there are deletion vectors, because deleted rows would be \
                 seen again: run a full compaction first"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
