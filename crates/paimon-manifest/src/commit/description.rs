//! What a snapshot says of itself and of the table.

use std::collections::BTreeMap;

use paimon_format::ErrorKind;
use serde::Deserialize;

use super::attempt::{SnapshotLists, next_id};
use super::file_store_commit::{FileStoreCommit, SnapshotRequest};
use crate::error::{ManifestError, Result};
use crate::manifest::{FileKind, ManifestEntry, ManifestFileMeta};
use crate::scan::{ScanFilter, live_entries};
use crate::snapshot::{MAX_SEQUENCE_NUMBER, Snapshot};

impl FileStoreCommit {
    /// The properties of the committable, and the largest sequence number if snapshots note it: that of the snapshot before, or of all
    /// files where that has none, and of the files that come.
    ///
    /// Source: `org.apache.paimon.operation.SequenceSnapshotProperties`.
    pub(super) async fn properties(
        &self,
        latest: Option<&Snapshot>,
        manifests: &[ManifestFileMeta],
        request: &SnapshotRequest<'_>,
    ) -> Result<BTreeMap<String, String>> {
        let mut properties = request.committable.properties.clone();
        if self.settings.note_max_sequence {
            let noted = latest.map(Snapshot::max_sequence_number).transpose()?.flatten();
            let before = match (noted, latest) {
                (None, Some(_)) => {
                    let live = live_entries(&self.manifests, manifests, &ScanFilter::all()).await?;
                    live.iter().map(|entry| entry.file.max_sequence_number).max()
                }
                (noted, _) => noted,
            };
            let added = request.changes.table.iter().filter(|entry| entry.kind == FileKind::Add);
            let added = added.map(|entry| entry.file.max_sequence_number).max();
            if let Some(max) = before.max(added) {
                properties.insert(MAX_SEQUENCE_NUMBER.to_string(), max.to_string());
            }
        }
        Ok(properties)
    }

    /// The snapshot after `latest`.
    pub(super) async fn describe(
        &self,
        latest: Option<&Snapshot>,
        lists: SnapshotLists<'_>,
        properties: BTreeMap<String, String>,
        request: &SnapshotRequest<'_>,
    ) -> Result<Snapshot> {
        let committable = request.committable;
        let schema = self.schemas.latest().await?.ok_or_else(|| {
            ManifestError::NotFound("the table has no schema: it was dropped, or never was".to_string())
        })?;
        let delta_record_count = record_count(&request.changes.table);
        let SnapshotLists { base, delta, index } = lists;
        let changelog = delta.changelog.as_ref();
        let watermarks = [latest.and_then(|latest| latest.watermark), committable.watermark];
        let now_ms = self.env.clock.now_ms();
        Ok(Snapshot {
            version: Snapshot::VERSION,
            uuid: Some(self.env.ids.uuid()),
            id: next_id(latest),
            schema_id: schema.id,
            base_manifest_list: base.name,
            base_manifest_list_size: Some(base.size),
            delta_manifest_list: delta.list.name.clone(),
            delta_manifest_list_size: Some(delta.list.size),
            changelog_manifest_list: changelog.map(|list| list.name.clone()),
            changelog_manifest_list_size: changelog.map(|list| list.size),
            index_manifest: index,
            commit_user: self.user.clone(),
            commit_identifier: committable.identifier,
            commit_kind: request.kind,
            // Time travel searches by time, so it must not go back when clocks differ.
            time_millis: latest.map_or(now_ms, |latest| now_ms.max(latest.time_millis)),
            total_record_count: latest.map_or(0, |latest| latest.total_record_count) + delta_record_count,
            delta_record_count,
            changelog_record_count: changelog.map(|_| record_count(&request.changes.changelog)),
            watermark: watermarks.into_iter().flatten().max(),
            statistics: self.inherited_statistics(latest, schema.id).await?,
            properties: (!properties.is_empty()).then_some(properties),
            next_row_id: Some(latest.and_then(|latest| latest.next_row_id).unwrap_or(0)),
            operation: None,
        })
    }

    /// Statistics are good as long as the schema is the one they were made for.
    async fn inherited_statistics(&self, latest: Option<&Snapshot>, schema_id: i64) -> Result<Option<String>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Statistics {
            schema_id: i64,
        }
        let Some(name) = latest.and_then(|latest| latest.statistics.as_deref()) else {
            return Ok(None);
        };
        let path = format!("statistics/{name}");
        let bytes = match self.storage.read_all(&path).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let statistics: Statistics = serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of statistics: {error}")))?;
        Ok((statistics.schema_id == schema_id).then(|| name.to_string()))
    }
}

/// Physical rows added minus removed.
fn record_count(entries: &[ManifestEntry]) -> i64 {
    entries
        .iter()
        .map(|entry| match entry.kind {
            FileKind::Add => entry.file.row_count,
            FileKind::Delete => -entry.file.row_count,
        })
        .sum()
}
