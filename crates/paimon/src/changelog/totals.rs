//! How much changelog a snapshot brought.

use std::collections::HashMap;

use paimon_lsm::compact::ChangelogProducer;
use paimon_manifest::scan::ScanKind;

use crate::compact::FileTotals;
use crate::error::Result;
use crate::levels::BucketLevels;
use crate::table::Table;

impl Table {
    /// The changelog files that came with the snapshot of these buckets, which is one for all: sums for each of them, in their order. Those of
    /// other snapshots do not count. `None`: the table has no `changelog-producer`, or the snapshot has expired and its changelog with it.
    ///
    /// Cost: reads the snapshot's changelog manifests. Errors: `Invalid` naming an option; `NotFound` when the changelog expires meanwhile;
    /// `Corrupt`.
    pub async fn changelog_totals(&self, buckets: &[BucketLevels]) -> Result<Option<Vec<FileTotals>>> {
        if ChangelogProducer::from_options(self.options())? == ChangelogProducer::None {
            return Ok(None);
        }
        let Some(first) = buckets.first() else {
            return Ok(Some(Vec::new()));
        };
        let (store, id) = (self.snapshot_store(), first.snapshot);
        let snapshot = match store.find(id).await? {
            Some(snapshot) => snapshot,
            // A tag keeps the data files of a snapshot, not its changelog.
            None => match store.find_changelog(id).await? {
                Some(changelog) => changelog,
                None => return Ok(None),
            },
        };
        let changelog = self.file_store_scan()?.plan(&snapshot, ScanKind::Changelog).await?;
        let found = changelog.buckets.into_iter();
        let found: HashMap<_, _> = found
            .map(|bucket| ((bucket.partition, bucket.bucket), FileTotals::of(&bucket.files)))
            .collect();
        let of_bucket = |bucket: &BucketLevels| {
            let place = (bucket.partition.row().clone(), bucket.bucket);
            found.get(&place).copied().unwrap_or_default()
        };
        Ok(Some(buckets.iter().map(of_bucket).collect()))
    }
}
