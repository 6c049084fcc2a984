//! Long-lived changelogs: what is left of a snapshot after its expiration, so that streaming readers find its changes.

use std::time::Duration;

use paimon_format::options::Options;

use super::hint::read_hint;
use super::model::Snapshot;
use super::store::SnapshotStore;
use crate::error::Result;
use crate::numbered::list_ids;

const DIR: &str = "changelog";
const PREFIX: &str = "changelog-";
const EARLIEST: &str = "changelog/EARLIEST";

/// Whether a table keeps changelogs longer than snapshots: an option of `changelog.*` is above that of `snapshot.*`, which it
/// follows when it is not set.
///
/// Errors: `Invalid`, naming the option. Source: `org.apache.paimon.CoreOptions#changelogLifecycleDecoupled`.
pub fn outlives_snapshots(options: &Options) -> Result<bool> {
    let count = |key: &str| options.int(key);
    let snapshot_max = count("snapshot.num-retained.max")?.unwrap_or(i32::MAX);
    let snapshot_min = count("snapshot.num-retained.min")?.unwrap_or(10);
    let snapshot_time = options
        .duration("snapshot.time-retained")?
        .unwrap_or(Duration::from_secs(3600));
    Ok(
        count("changelog.num-retained.max")?.is_some_and(|max| max > snapshot_max)
            || count("changelog.num-retained.min")?.is_some_and(|min| min > snapshot_min)
            || options
                .duration("changelog.time-retained")?
                .is_some_and(|time| time > snapshot_time),
    )
}

/// Long-lived changelogs have the fields of the snapshot that they were: `changelog/changelog-<id>`.
///
/// Source: `org.apache.paimon.utils.ChangelogManager`.
impl SnapshotStore {
    /// The changelog of an expired snapshot, if it is there. Errors: `Corrupt`.
    pub async fn find_changelog(&self, id: i64) -> Result<Option<Snapshot>> {
        self.read(&format!("{DIR}/{PREFIX}{id}"), Snapshot::from_json).await
    }

    /// The id of the earliest long-lived changelog; `None` when there is none.
    ///
    /// Cost: a small read and an existence check; a listing when the hint is missing or wrong.
    pub async fn earliest_changelog_id(&self) -> Result<Option<i64>> {
        if let Some(id) = read_hint(self.storage(), EARLIEST).await?
            && self.storage().size(&format!("{DIR}/{PREFIX}{id}")).await?.is_some()
        {
            return Ok(Some(id));
        }
        Ok(list_ids(self.storage(), DIR, PREFIX).await?.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        pairs.iter().copied().collect()
    }

    #[test]
    fn changelogs_live_longer_only_when_an_option_says_so() {
        for (pairs, expected) in [
            (&[][..], false),
            (&[("changelog.num-retained.min", "10")], false),
            (&[("changelog.num-retained.min", "11")], true),
            (&[("changelog.num-retained.max", "100")], false),
            (
                &[
                    ("changelog.num-retained.max", "100"),
                    ("snapshot.num-retained.max", "99"),
                ],
                true,
            ),
            (&[("changelog.time-retained", "1 h")], false),
            (&[("changelog.time-retained", "61 min")], true),
            (&[("snapshot.time-retained", "1 min")], false),
        ] {
            assert_eq!(outlives_snapshots(&options(pairs)).unwrap(), expected, "{pairs:?}");
        }
        let error = outlives_snapshots(&options(&[("changelog.time-retained", "soon")])).unwrap_err();
        assert!(
            error.to_string().contains("'changelog.time-retained' = 'soon'"),
            "{error}"
        );
    }
}
