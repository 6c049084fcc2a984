//! Normalized keys: comparing two of them is comparing two integers or two byte strings.

use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::DataType as ArrowType;

use crate::error::FormatError;
use crate::kv::KvSchema;
use crate::kv::schema::VALUE_OFFSET;
use crate::types::canonical_nan;

/// The keys of a batch in Java's order, one a row.
///
/// A single INT or BIGINT (or DATE, TIME, TINYINT, SMALLINT widened) key stays a native integer; everything else is row-encoded
/// by `arrow-row`, with NaN made one value first (arrow-row puts negative NaN lowest, Java puts every NaN highest).
///
/// Keys made by codecs of one table's key compare; keys of unlike forms (a fault of the caller) order by form. Positions out of
/// range panic, as slices do.
#[derive(Clone, Debug)]
pub enum Keys {
    /// One integer column of 32 bits or less.
    Int32(ScalarBuffer<i32>),
    /// One BIGINT column.
    Int64(ScalarBuffer<i64>),
    /// Any other key: `rows` from `start`, `len` of them. Keys of one bucket come from one `RowConverter` configuration and compare by bytes.
    Rows {
        /// Row-encoded keys, shared by slices.
        rows: Arc<Rows>,
        /// First row of this batch.
        start: usize,
        /// Rows of this batch.
        len: usize,
    },
}

impl Keys {
    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Rows { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` keys from `offset`, not copied.
    pub fn slice(&self, offset: usize, len: usize) -> Self {
        match self {
            Self::Int32(values) => Self::Int32(values.slice(offset, len)),
            Self::Int64(values) => Self::Int64(values.slice(offset, len)),
            Self::Rows { rows, start, len: all } => {
                assert!(
                    offset.checked_add(len).is_some_and(|end| end <= *all),
                    "keys {offset}..{offset}+{len} of {all}"
                );
                Self::Rows {
                    rows: Arc::clone(rows),
                    start: start + offset,
                    len,
                }
            }
        }
    }

    /// Key `i` against key `j` of `other`.
    #[inline]
    pub fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        match (self, other) {
            (Self::Int32(a), Self::Int32(b)) => a[i].cmp(&b[j]),
            (Self::Int64(a), Self::Int64(b)) => a[i].cmp(&b[j]),
            (Self::Rows { rows: a, start: a0, .. }, Self::Rows { rows: b, start: b0, .. }) => {
                a.row(a0 + i).cmp(&b.row(b0 + j))
            }
            _ => self.form().cmp(&other.form()),
        }
    }

    /// Whether key `i` is key `j` of `other`.
    #[inline]
    pub fn equal(&self, i: usize, other: &Self, j: usize) -> bool {
        self.compare(i, other, j) == Ordering::Equal
    }

    /// Hashes key `i`: equal keys of one form hash alike.
    pub fn hash(&self, i: usize, hasher: &mut impl Hasher) {
        match self {
            Self::Int32(values) => hasher.write_i32(values[i]),
            Self::Int64(values) => hasher.write_i64(values[i]),
            Self::Rows { rows, start, .. } => hasher.write(rows.row(start + i).data()),
        }
    }

    /// The first position at or after `from` whose key is not less than key `j` of `other`; `len` when all are less.
    ///
    /// Needs ascending keys. Gallops: O(log of the distance).
    pub fn lower_bound(&self, from: usize, other: &Self, j: usize) -> usize {
        match (self, other) {
            (Self::Int32(a), Self::Int32(b)) => gallop(a, from, |value| value < b[j]),
            (Self::Int64(a), Self::Int64(b)) => gallop(a, from, |value| value < b[j]),
            _ => gallop_by(self.len(), from, |i| self.compare(i, other, j) == Ordering::Less),
        }
    }

    /// The first position at or after `from` whose key is greater than key `j` of `other`; `len` when none is. As
    /// [`lower_bound`](Self::lower_bound).
    pub fn upper_bound(&self, from: usize, other: &Self, j: usize) -> usize {
        match (self, other) {
            (Self::Int32(a), Self::Int32(b)) => gallop(a, from, |value| value <= b[j]),
            (Self::Int64(a), Self::Int64(b)) => gallop(a, from, |value| value <= b[j]),
            _ => gallop_by(self.len(), from, |i| self.compare(i, other, j) != Ordering::Greater),
        }
    }

    /// The end of the run of keys equal to key `i` that starts at `i`. Looks at neighbours only: runs are short.
    #[inline]
    pub fn run_end(&self, i: usize) -> usize {
        let len = self.len();
        let mut end = i + 1;
        while end < len && self.equal(end, self, i) {
            end += 1;
        }
        end
    }

    /// Bytes in memory; shared buffers count whole.
    pub fn memory_size(&self) -> usize {
        match self {
            Self::Int32(values) => values.inner().capacity(),
            Self::Int64(values) => values.inner().capacity(),
            Self::Rows { rows, .. } => rows.size(),
        }
    }

    fn form(&self) -> u8 {
        match self {
            Self::Int32(_) => 0,
            Self::Int64(_) => 1,
            Self::Rows { .. } => 2,
        }
    }

    /// The bytes of key `i` when row-encoded.
    fn row_bytes(&self, i: usize) -> Option<&[u8]> {
        match self {
            Self::Rows { rows, start, .. } => Some(rows.row(start + i).data()),
            _ => None,
        }
    }
}

#[inline]
fn gallop<T: Copy>(values: &[T], from: usize, before: impl Fn(T) -> bool) -> usize {
    gallop_by(values.len(), from, |i| before(values[i]))
}

/// The first position in `from..len` that is not `before`, where those before stand first.
#[inline]
fn gallop_by(len: usize, from: usize, before: impl Fn(usize) -> bool) -> usize {
    if from >= len || !before(from) {
        return from.min(len);
    }
    // `low` is before; `low + step` is looked at next.
    let mut low = from;
    let mut step = 1;
    while low + step < len && before(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = (low + step).min(len);
    low += 1;
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Makes [`Keys`] of a table's key. One a schema, shared; cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    columns: Arc<[usize]>,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Int32,
    Int64,
    Rows(Arc<RowConverter>),
}

impl KeyCodec {
    /// A codec for the key of `schema`.
    ///
    /// Errors: `Unsupported` when a key column's type cannot be normalized.
    pub fn new(schema: &KvSchema) -> Result<Self, FormatError> {
        let columns: Arc<[usize]> = schema.key.iter().map(|position| position + VALUE_OFFSET).collect();
        let fields = columns.iter().map(|&column| schema.arrow.field(column));
        let fields: Vec<_> = fields.collect();
        let form = match fields.as_slice() {
            [field] if !field.is_nullable() && is_int32(field.data_type()) => Form::Int32,
            [field] if !field.is_nullable() && *field.data_type() == ArrowType::Int64 => Form::Int64,
            _ => {
                let sort = fields
                    .iter()
                    .map(|field| SortField::new(field.data_type().clone()))
                    .collect();
                let converter = RowConverter::new(sort).map_err(|error| {
                    FormatError::unsupported(format!("a primary key of these column types: {error}"))
                })?;
                Form::Rows(Arc::new(converter))
            }
        };
        Ok(Self { columns, form })
    }

    /// The keys of a batch that has the schema's columns: sequence number, kind, values.
    ///
    /// Errors: `Internal` when columns do not have the key's types.
    pub fn keys(&self, batch: &RecordBatch) -> Result<Keys, FormatError> {
        let columns = self.columns.iter().map(|&column| match batch.columns().get(column) {
            Some(array) => Ok(Arc::clone(array)),
            None => Err(FormatError::internal(format!("no key column at {column}"))),
        });
        self.keys_of_columns(&columns.collect::<Result<Vec<_>, _>>()?)
    }

    /// The keys made of key columns alone, in key order.
    ///
    /// Errors: `Internal` when columns do not have the key's types, or a lone integer column has nulls.
    pub fn keys_of_columns(&self, columns: &[ArrayRef]) -> Result<Keys, FormatError> {
        let wrong = |error: &dyn std::fmt::Display| FormatError::internal(format!("key columns: {error}"));
        match (&self.form, columns) {
            (Form::Rows(converter), _) => {
                let columns: Vec<ArrayRef> = columns.iter().map(canonical_nan).collect();
                let rows = converter.convert_columns(&columns).map_err(|error| wrong(&error))?;
                let len = rows.num_rows();
                Ok(Keys::Rows {
                    rows: Arc::new(rows),
                    start: 0,
                    len,
                })
            }
            (_, [column]) if column.null_count() > 0 => Err(wrong(&"null in a column that is not nullable")),
            (Form::Int32, [column]) => match int32_values(column) {
                Some(values) => Ok(Keys::Int32(values)),
                None => Err(wrong(&format!("{} is no integer", column.data_type()))),
            },
            (Form::Int64, [column]) => match column.as_primitive_opt::<Int64Type>() {
                Some(values) => Ok(Keys::Int64(values.values().clone())),
                None => Err(wrong(&format!("{} is no BIGINT", column.data_type()))),
            },
            _ => Err(wrong(&format!("{} columns, not one", columns.len()))),
        }
    }

    /// New keys picked from others of the same table's key: `(source, position)` each, in the order given.
    ///
    /// Errors: `Internal` when a source is of another key, or 2 GiB of row-encoded keys would be made.
    pub fn gather(
        &self,
        sources: &[&Keys],
        picks: impl ExactSizeIterator<Item = (usize, usize)>,
    ) -> Result<Keys, FormatError> {
        let wrong = || FormatError::internal("keys of another form than the codec's");
        match &self.form {
            Form::Int32 => {
                let values = picks.map(|(source, i)| match sources.get(source) {
                    Some(Keys::Int32(values)) => Ok(values[i]),
                    _ => Err(wrong()),
                });
                Ok(Keys::Int32(values.collect::<Result<Vec<_>, _>>()?.into()))
            }
            Form::Int64 => {
                let values = picks.map(|(source, i)| match sources.get(source) {
                    Some(Keys::Int64(values)) => Ok(values[i]),
                    _ => Err(wrong()),
                });
                Ok(Keys::Int64(values.collect::<Result<Vec<_>, _>>()?.into()))
            }
            Form::Rows(converter) => {
                let len = picks.len();
                let mut bytes = BinaryBuilder::with_capacity(len, 0);
                let mut total = 0_usize;
                for (source, i) in picks {
                    let key = sources
                        .get(source)
                        .and_then(|keys| keys.row_bytes(i))
                        .ok_or_else(wrong)?;
                    total += key.len();
                    if i32::try_from(total).is_err() {
                        return Err(FormatError::internal("a batch with 2 GiB of keys"));
                    }
                    bytes.append_value(key);
                }
                Ok(Keys::Rows {
                    rows: Arc::new(converter.from_binary(bytes.finish())),
                    start: 0,
                    len,
                })
            }
        }
    }
}

fn is_int32(arrow: &ArrowType) -> bool {
    matches!(
        arrow,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::Date32 | ArrowType::Time32(_)
    )
}

fn int32_values(column: &ArrayRef) -> Option<ScalarBuffer<i32>> {
    match column.data_type() {
        ArrowType::Int8 => Some(
            column
                .as_primitive_opt::<Int8Type>()?
                .values()
                .iter()
                .map(|&v| v.into())
                .collect(),
        ),
        ArrowType::Int16 => Some(
            column
                .as_primitive_opt::<Int16Type>()?
                .values()
                .iter()
                .map(|&v| v.into())
                .collect(),
        ),
        ArrowType::Int32 => Some(column.as_primitive_opt::<Int32Type>()?.values().clone()),
        ArrowType::Date32 => Some(column.as_primitive_opt::<Date32Type>()?.values().clone()),
        ArrowType::Time32(_) => Some(column.as_primitive_opt::<Time32MillisecondType>()?.values().clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
