//! The versions of one key, row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use paimon_format::FormatError;
use paimon_format::kv::KvBatch;
use paimon_format::types::{Datum, RowKind};

use crate::MergeError;
use crate::plan::RowRef;

/// All versions of one key, oldest first; never empty.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    sources: &'a [KvBatch],
    rows: &'a [RowRef],
}

impl<'a> Versions<'a> {
    pub(crate) fn new(sources: &'a [KvBatch], rows: &'a [RowRef]) -> Self {
        Self { sources, rows }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One of them, 0 being the oldest.
    pub fn get(&self, version: usize) -> Option<Version<'a>> {
        let at = self.rows.get(version)?;
        Some(Version {
            batch: self.sources.get(at.batch as usize)?,
            row: at.row as usize,
        })
    }

    /// From the oldest to the newest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Version<'a>> + use<'a> {
        let versions = *self;
        (0..versions.len()).filter_map(move |version| versions.get(version))
    }
}

/// One version of a key.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    batch: &'a KvBatch,
    row: usize,
}

impl<'a> Version<'a> {
    /// Its kind.
    pub fn kind(&self) -> RowKind {
        self.batch.kind(self.row)
    }

    /// Its sequence number.
    pub fn sequence_number(&self) -> i64 {
        self.batch.sequence_numbers().get(self.row).copied().unwrap_or(-1)
    }

    /// The level it comes from; -1 for the write buffer.
    pub fn level(&self) -> i32 {
        self.batch.levels.get(self.row)
    }

    /// A value by the position of its column in the schema read, without a copy; `None` when it is null.
    ///
    /// Errors: `Internal` when the column does not exist or holds values of another type.
    pub fn get<T: ColumnValue<'a>>(&self, column: usize) -> Result<Option<T>, MergeError> {
        let array = self.column(column)?;
        if array.is_null(self.row) {
            return Ok(None);
        }
        T::read(array, self.row).map(Some).ok_or_else(|| {
            MergeError::internal(format!(
                "column {column} holds {}, asked for as {}",
                array.data_type(),
                std::any::type_name::<T>()
            ))
        })
    }

    /// A value of any type, copied.
    ///
    /// Errors: `Internal` when the column does not exist.
    pub fn datum(&self, column: usize) -> Result<Datum, MergeError> {
        Ok(Datum::from_array(self.column(column)?, self.row)?)
    }

    /// All values, copied, in the order of the schema read.
    pub fn values(&self) -> Result<Vec<Datum>, MergeError> {
        let values = self.batch.values().iter();
        Ok(values
            .map(|column| Datum::from_array(column, self.row))
            .collect::<Result<_, FormatError>>()?)
    }

    fn column(&self, column: usize) -> Result<&'a ArrayRef, MergeError> {
        let values = self.batch.values();
        values
            .get(column)
            .ok_or_else(|| MergeError::internal(format!("column {column} of {}", values.len())))
    }
}

/// A value that can be read from a column without a copy.
pub trait ColumnValue<'a>: Sized {
    /// The value of a row that is not null; `None` when the column holds another type.
    fn read(column: &'a ArrayRef, row: usize) -> Option<Self>;
}

macro_rules! primitive_value {
    ($native:ty, $($arrow:ty),+) => {
        impl ColumnValue<'_> for $native {
            fn read(column: &ArrayRef, row: usize) -> Option<Self> {
                $(if let Some(values) = column.as_primitive_opt::<$arrow>() {
                    return values.values().get(row).copied();
                })+
                None
            }
        }
    };
}

primitive_value!(i8, Int8Type);
primitive_value!(i16, Int16Type);
primitive_value!(i32, Int32Type, Date32Type, Time32MillisecondType);
primitive_value!(
    i64,
    Int64Type,
    TimestampMillisecondType,
    TimestampMicrosecondType,
    TimestampNanosecondType
);
primitive_value!(i128, Decimal128Type);
primitive_value!(f32, Float32Type);
primitive_value!(f64, Float64Type);

impl ColumnValue<'_> for bool {
    fn read(column: &ArrayRef, row: usize) -> Option<Self> {
        column.as_boolean_opt().map(|values| values.value(row))
    }
}

impl<'a> ColumnValue<'a> for &'a str {
    fn read(column: &'a ArrayRef, row: usize) -> Option<Self> {
        column.as_string_opt::<i32>().map(|values| values.value(row))
    }
}

impl<'a> ColumnValue<'a> for &'a [u8] {
    fn read(column: &'a ArrayRef, row: usize) -> Option<Self> {
        column.as_binary_opt::<i32>().map(|values| values.value(row))
    }
}
