//! Merging equal keys before rows are given to their buckets.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::env::{Budget, Env};
use paimon_format::kv::{KvBatch, KvSchemaRef};
use paimon_format::types::RowKind;
use paimon_merge::engine::MergeEngine;

use super::buffer::WriteBuffer;
use crate::LsmError;
use crate::compact::pipeline::collect_buffered;

/// Gathers rows of any number of buckets and merges those of equal keys: what has hot keys gets smaller before it is cut by bucket and
/// buffered there. It may take as much memory again while it is emptied.
///
/// The key of its schema is the whole primary key, partition columns included.
///
/// Source: `org.apache.paimon.mergetree.localmerge.LocalMerger`.
#[derive(Debug)]
pub struct LocalMerger {
    schema: KvSchemaRef,
    engine: Arc<dyn MergeEngine>,
    env: Env,
    buffer: WriteBuffer,
    /// Rows are numbered while they are here: later ones are newer.
    rows: i64,
}

impl LocalMerger {
    /// An empty one, which is full at so many bytes.
    ///
    /// Errors: `Unsupported` for a key or sequence column without an order.
    pub fn new(schema: KvSchemaRef, engine: Arc<dyn MergeEngine>, env: Env, bytes: u64) -> Result<Self, LsmError> {
        Ok(Self {
            buffer: WriteBuffer::new(Arc::clone(&schema), env.clone(), Budget::new(bytes), None)?,
            schema,
            engine,
            env,
            rows: 0,
        })
    }

    /// Takes rows. `false`: it is full, and should be drained.
    ///
    /// Errors: `Invalid`, naming the column; nothing is taken then.
    pub fn push(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<bool, LsmError> {
        let has_room = self.buffer.push(values, kinds, self.rows)?;
        self.rows = self.rows.saturating_add(i64::try_from(kinds.len()).unwrap_or(i64::MAX));
        Ok(has_room)
    }

    /// Takes all rows out, one for each key, in the order of keys. When it fails or is dropped they are lost.
    ///
    /// Errors: those of merging.
    pub async fn drain(&mut self) -> Result<Vec<KvBatch>, LsmError> {
        self.rows = 0;
        if self.buffer.is_empty() {
            return Ok(Vec::new());
        }
        let runs = self.buffer.drain().await?;
        collect_buffered(&self.env, &self.schema, &*self.engine, runs).await
    }
}
