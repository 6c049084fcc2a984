//! Conformance of [`CommitBackend`] implementations.

use futures::future::join_all;

use crate::commit::{CommitBackend, Published};
use crate::snapshot::{CommitKind, Snapshot, SnapshotStore};

/// A snapshot for tests: it names lists that do not exist.
pub fn snapshot(id: i64, user: &str, identifier: i64) -> Snapshot {
    Snapshot {
        version: Snapshot::VERSION,
        uuid: Some(format!("uuid of {id} by {user}")),
        id,
        schema_id: 0,
        base_manifest_list: format!("manifest-list-{user}-{id}-0"),
        base_manifest_list_size: Some(1),
        delta_manifest_list: format!("manifest-list-{user}-{id}-1"),
        delta_manifest_list_size: Some(1),
        changelog_manifest_list: None,
        changelog_manifest_list_size: None,
        index_manifest: None,
        commit_user: user.to_string(),
        commit_identifier: identifier,
        commit_kind: CommitKind::Append,
        time_millis: 1_700_000_000_000 + id,
        total_record_count: 0,
        delta_record_count: 0,
        changelog_record_count: None,
        watermark: None,
        statistics: None,
        properties: None,
        next_row_id: Some(0),
        operation: None,
    }
}

/// Checks every promise of [`CommitBackend`] on a table without snapshots, which `snapshots` reads.
///
/// `rounds` races of `committers` each. Errors: the first promise that was broken, in words.
pub async fn check_backend(
    backend: &dyn CommitBackend,
    snapshots: &SnapshotStore,
    rounds: i64,
    committers: usize,
) -> Result<(), String> {
    let mut base: Option<Snapshot> = None;
    for id in 1..=rounds {
        let candidates: Vec<Snapshot> = (0..committers)
            .map(|committer| snapshot(id, &format!("user-{committer}"), id))
            .collect();
        let answers = join_all(candidates.iter().map(|next| backend.publish(base.as_ref(), next))).await;
        let mut winner = None;
        for (candidate, answer) in candidates.iter().zip(answers) {
            let answer = answer.map_err(|error| format!("snapshot {id} of {}: {error}", candidate.commit_user))?;
            if answer == Published::Won && winner.replace(candidate).is_some() {
                return Err(format!("two committers won snapshot {id}"));
            }
        }
        let winner = winner.ok_or_else(|| format!("nobody won snapshot {id}"))?;
        expect_stored(snapshots, winner).await?;

        let late = snapshot(id, "late", id);
        expect(backend, base.as_ref(), &late, Published::Lost, "a late committer").await?;
        expect(
            backend,
            base.as_ref(),
            winner,
            Published::Won,
            "the winner, who asks again",
        )
        .await?;
        expect_stored(snapshots, winner).await?;
        base = Some(winner.clone());
    }
    Ok(())
}

async fn expect(
    backend: &dyn CommitBackend,
    base: Option<&Snapshot>,
    next: &Snapshot,
    expected: Published,
    who: &str,
) -> Result<(), String> {
    match backend.publish(base, next).await {
        Ok(published) if published == expected => Ok(()),
        other => Err(format!(
            "{who} of snapshot {} was told {other:?}, not {expected:?}",
            next.id
        )),
    }
}

async fn expect_stored(snapshots: &SnapshotStore, winner: &Snapshot) -> Result<(), String> {
    match snapshots.find(winner.id).await {
        Ok(Some(found)) if found == *winner => Ok(()),
        other => Err(format!("snapshot {} is not the winner's: {other:?}", winner.id)),
    }
}
