//! A batch of records.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::kv::{Keys, KvSchema};

/// The LSM level of a batch's rows: -1 write buffer, 0.. on disk.
#[derive(Clone, Debug)]
pub enum RowLevels {
    /// One for all rows.
    All(i32),
    /// One a row: spills and looked-up rows.
    Each(Arc<[i32]>),
}

/// A batch of one sorted run: `_SEQUENCE_NUMBER` Int64, `_VALUE_KIND` Int8, then the schema's value columns.
///
/// Keys are taken from the value columns, as Java does; the `_KEY_*` copies exist only in files that are not thin and are added
/// on writing. A key occurs once in a data file, often several times in a spill or a changelog.
#[derive(Clone, Debug)]
pub struct KvBatch {
    /// The columns.
    pub schema: Arc<KvSchema>,
    /// Sequence number, kind, values.
    pub columns: RecordBatch,
    /// Normalized keys, one a row.
    pub keys: Keys,
    /// Where the rows come from.
    pub levels: RowLevels,
    /// Row numbers in the file, counted before any filter; only when asked for.
    pub positions: Option<Arc<[u64]>>,
}

impl KvBatch {
    /// Rows.
    pub fn len(&self) -> usize {
        self.columns.num_rows()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
