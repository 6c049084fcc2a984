//! A batch of records.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};

use crate::error::FormatError;
use crate::kv::schema::VALUE_OFFSET;
use crate::kv::{KeyCodec, Keys, KvSchema};
use crate::types::RowKind;

/// The LSM level of a batch's rows: -1 write buffer, 0.. on disk.
#[derive(Clone, Debug)]
pub enum RowLevels {
    /// One for all rows.
    All(i32),
    /// One a row: spills and looked-up rows.
    Each(Arc<[i32]>),
}

impl RowLevels {
    /// The level of a row.
    #[inline]
    pub fn get(&self, row: usize) -> i32 {
        match self {
            Self::All(level) => *level,
            Self::Each(levels) => levels[row],
        }
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        match self {
            Self::All(level) => Self::All(*level),
            Self::Each(levels) => Self::Each(Arc::from(&levels[offset..offset + len])),
        }
    }
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
    /// A batch of `columns`, which have the Arrow schema of `schema`, with the keys that `codec` makes of them.
    ///
    /// Errors: `Internal` when the columns have another schema; `Invalid` when a kind is not 0..=3: a reader of files makes that
    /// `Corrupt` and names the file.
    pub fn new(
        schema: &Arc<KvSchema>,
        columns: RecordBatch,
        codec: &KeyCodec,
        levels: RowLevels,
    ) -> Result<Self, FormatError> {
        check_schema(schema, &columns)?;
        let keys = codec.keys(&columns)?;
        Self::with_keys(schema, columns, keys, levels)
    }

    /// As [`new`](Self::new), with keys that are known already: those of merged or sorted rows.
    pub fn with_keys(
        schema: &Arc<KvSchema>,
        columns: RecordBatch,
        keys: Keys,
        levels: RowLevels,
    ) -> Result<Self, FormatError> {
        check_schema(schema, &columns)?;
        if keys.len() != columns.num_rows() {
            return Err(FormatError::internal(format!(
                "{} keys for {} records",
                keys.len(),
                columns.num_rows()
            )));
        }
        let batch = Self {
            schema: Arc::clone(schema),
            columns,
            keys,
            levels,
            positions: None,
        };
        let wrong = |&kind: &i8| RowKind::from_byte(kind).is_none();
        match batch.kinds().iter().position(wrong) {
            None => Ok(batch),
            Some(row) => Err(FormatError::invalid(format!(
                "row {row}: _VALUE_KIND is {}, not 0 (+I), 1 (-U), 2 (+U) or 3 (-D)",
                batch.kinds()[row]
            ))),
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.columns.num_rows()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sequence numbers, one a row.
    #[inline]
    pub fn sequence_numbers(&self) -> &[i64] {
        self.columns.column(0).as_primitive::<Int64Type>().values()
    }

    /// The bytes of the row kinds, one a row; the constructors saw that each is one of [`RowKind`].
    #[inline]
    pub fn kinds(&self) -> &[i8] {
        self.columns.column(1).as_primitive::<Int8Type>().values()
    }

    /// The kind of a row.
    #[inline]
    pub fn kind(&self, row: usize) -> RowKind {
        RowKind::from_byte(self.kinds()[row]).unwrap_or(RowKind::Insert)
    }

    /// The value columns, in the order of [`KvSchema::fields`].
    pub fn values(&self) -> &[ArrayRef] {
        &self.columns.columns()[VALUE_OFFSET..]
    }

    /// `len` rows from `offset`. Columns and keys are not copied.
    pub fn slice(&self, offset: usize, len: usize) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            columns: self.columns.slice(offset, len),
            keys: self.keys.slice(offset, len),
            levels: self.levels.slice(offset, len),
            positions: self
                .positions
                .as_ref()
                .map(|positions| Arc::from(&positions[offset..offset + len])),
        }
    }

    /// Bytes in memory; shared buffers count whole.
    pub fn memory_size(&self) -> usize {
        self.columns.get_array_memory_size() + self.keys.memory_size()
    }
}

fn check_schema(schema: &KvSchema, columns: &RecordBatch) -> Result<(), FormatError> {
    let found = columns.schema_ref();
    if Arc::ptr_eq(found, &schema.arrow) || found.fields() == schema.arrow.fields() {
        return Ok(());
    }
    Err(FormatError::internal(format!(
        "a batch with other columns than its schema: expected {:?}, found {:?}",
        schema.arrow.fields(),
        found.fields()
    )))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int8Array, Int32Array, Int64Array};

    use super::*;
    use crate::types::{DataField, DataType, TypeKind};

    fn schema() -> Arc<KvSchema> {
        let field = DataField::new(0, "id", DataType::not_null(TypeKind::Int));
        Arc::new(KvSchema::new(0, vec![field], vec![0], None).unwrap())
    }

    fn batch(kinds: Vec<i8>) -> Result<KvBatch, FormatError> {
        let schema = schema();
        let ids: Vec<i32> = (0..).take(kinds.len()).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((100..).take(kinds.len()))),
            Arc::new(Int8Array::from(kinds)),
            Arc::new(Int32Array::from(ids)),
        ];
        let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
        KvBatch::new(&schema, columns, &KeyCodec::new(&schema).unwrap(), RowLevels::All(2))
    }

    #[test]
    fn slices_take_everything_along() {
        let mut batch = batch(vec![0, 3, 2, 1]).unwrap();
        batch.positions = Some(Arc::from([10, 11, 12, 13]));
        batch.levels = RowLevels::Each(Arc::from([0, 1, 2, 3]));
        let part = batch.slice(1, 2);
        assert_eq!(part.len(), 2);
        assert_eq!(part.sequence_numbers(), [101, 102]);
        assert_eq!(part.kinds(), [3, 2]);
        assert_eq!((part.kind(0), part.kind(1)), (RowKind::Delete, RowKind::UpdateAfter));
        assert!(matches!(&part.keys, Keys::Int32(keys) if keys[..] == [1, 2]));
        assert_eq!(part.levels.get(1), 2);
        assert_eq!(part.positions.as_deref(), Some(&[11, 12][..]));
        assert_eq!(
            part.values()[0]
                .as_primitive::<arrow_array::types::Int32Type>()
                .values(),
            &[1, 2]
        );
    }

    #[test]
    fn an_unknown_kind_is_refused() {
        assert_eq!(
            batch(vec![0, 4]).unwrap_err().to_string(),
            "row 1: _VALUE_KIND is 4, not 0 (+I), 1 (-U), 2 (+U) or 3 (-D)"
        );
    }

    #[test]
    fn other_columns_are_refused() {
        let schema = schema();
        let columns = RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()));
        let error = KvBatch::new(&schema, columns, &KeyCodec::new(&schema).unwrap(), RowLevels::All(0)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Internal);
    }
}
