//! Rows merged before they go to their buckets: `local-merge-buffer-size`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use paimon_format::kv::{KvBatch, KvSchema};
use paimon_lsm::write::LocalMerger;

use super::rows::{Prepared, row_kinds};
use crate::error::Result;
use crate::options::RowSettings;
use crate::table::Table;

/// The position of the sequence number among the columns of a merged batch; the kind follows.
const SEQUENCE_COLUMN: usize = 0;

/// Merges prepared rows of equal keys, whatever their buckets.
///
/// Source: `org.apache.paimon.flink.sink.LocalMergeOperator`.
#[derive(Debug)]
pub(super) struct LocalMerge(LocalMerger);

impl LocalMerge {
    /// `None`: the table's options do not ask for it, or its keys move between partitions: which one a key is in, its first row says. Nor where
    /// a delete removes what is older: a row that was merged of a delete and a later one would not tell of the delete.
    pub(super) fn new(table: &Table, settings: &RowSettings) -> Result<Option<Self>> {
        let schema = table.schema();
        let Some(bytes) = settings.local_merge_bytes.filter(|_| !schema.cross_partition_update()) else {
            return Ok(None);
        };
        let key = schema.primary_keys.iter().filter_map(|name| schema.position(name));
        let schema = KvSchema::new(
            schema.id,
            schema.fields.clone(),
            key.collect(),
            schema.sequence_order()?,
        )?;
        let engine = table.context().registry().for_options(&schema, table.options())?;
        if engine.promises().deletes_need_older {
            return Ok(None);
        }
        let env = table.context().env().clone();
        Ok(Some(Self(LocalMerger::new(Arc::new(schema), engine, env, bytes)?)))
    }

    /// Takes rows. `false`: it is full.
    pub(super) fn push(&mut self, rows: &Prepared) -> Result<bool> {
        Ok(self.0.push(&rows.rows, &row_kinds(&rows.kinds)?)?)
    }

    /// Takes all rows out, merged. When it fails or is dropped they are lost.
    pub(super) async fn drain(&mut self) -> Result<Vec<Prepared>> {
        let batches = self.0.drain().await?;
        Ok(batches.into_iter().map(prepared).collect())
    }
}

fn prepared(batch: KvBatch) -> Prepared {
    let mut rows = batch.columns;
    rows.remove_column(SEQUENCE_COLUMN);
    let kinds = rows.remove_column(SEQUENCE_COLUMN);
    Prepared {
        rows,
        kinds: kinds.as_primitive::<Int8Type>().clone(),
    }
}
