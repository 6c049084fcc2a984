//! Users' batches made into a table's columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as ArrowType, Field, Fields, SchemaRef};

use crate::error::FormatError;
use crate::types::arrow_map::child_path;

/// The columns of `batch` in the order and with the Arrow types of `schema`, which is a table's (see
/// [`arrow_schema`](super::arrow_schema)). Columns are matched by name.
///
/// A column of another Arrow type is cast when no value can change: other string, binary and list layouts, dictionaries, narrower
/// or wider numbers, other units and scales. A value that does not fit is refused, never rounded or made null. Columns that match
/// already are not copied.
///
/// Errors, all `Invalid` and naming the column: a column missing or unknown; a type with no lossless cast; a value that does not
/// fit; a null in a NOT NULL column or field.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, FormatError> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = match_by_name(batch.schema_ref().fields(), batch.columns(), schema.fields(), None, "")?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(FormatError::internal)
}

/// The columns of a batch or the fields of a struct, in the order that is wanted.
fn match_by_name(
    given: &Fields,
    columns: &[ArrayRef],
    wanted: &Fields,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<Vec<ArrayRef>, FormatError> {
    if let Some(unknown) = given.iter().find(|field| wanted.find(field.name()).is_none()) {
        return Err(FormatError::invalid(format!(
            "the table has no column {}",
            child_path(path, unknown.name())
        )));
    }
    let columns = wanted.iter().map(|field| {
        let path = child_path(path, field.name());
        let mut matching = given
            .iter()
            .zip(columns)
            .filter(|(given, _)| given.name() == field.name());
        match (matching.next(), matching.next()) {
            (Some((_, column)), None) => conform_column(column, field, parent, &path),
            (Some(_), Some(_)) => Err(FormatError::invalid(format!("the batch has two columns {path}"))),
            (None, _) => Err(FormatError::invalid(format!("the batch has no column {path}"))),
        }
    });
    columns.collect()
}

/// `column` as `field` wants it. `parent` says which rows exist: below a null parent there is nothing to check.
fn conform_column(
    column: &ArrayRef,
    field: &Field,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef, FormatError> {
    let column = conform_type(column, field.data_type(), parent, path)?;
    if let (false, Some(nulls)) = (field.is_nullable(), column.nulls()) {
        let exists = |row: usize| parent.is_none_or(|parent| parent.is_valid(row));
        if let Some(row) = (0..column.len()).find(|&row| nulls.is_null(row) && exists(row)) {
            return Err(FormatError::invalid(format!(
                "column {path} is NOT NULL, but row {row} is null"
            )));
        }
    }
    Ok(column)
}

fn conform_type(
    column: &ArrayRef,
    wanted: &ArrowType,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef, FormatError> {
    let invalid = |error| FormatError::invalid(format!("column {path}: {error}"));
    match (column.data_type(), wanted) {
        (found, wanted) if found == wanted => Ok(Arc::clone(column)),
        (ArrowType::Null, _) => Ok(new_null_array(wanted, column.len())),
        (ArrowType::Dictionary(_, values), _) => conform_type(&cast(column, values, path)?, wanted, parent, path),
        (ArrowType::RunEndEncoded(_, values), _) => {
            conform_type(&cast(column, values.data_type(), path)?, wanted, parent, path)
        }
        (
            ArrowType::LargeList(element)
            | ArrowType::ListView(element)
            | ArrowType::LargeListView(element)
            | ArrowType::FixedSizeList(element, _),
            ArrowType::List(_),
        ) => {
            let list = ArrowType::List(Arc::clone(element));
            conform_type(&cast(column, &list, path)?, wanted, parent, path)
        }
        (ArrowType::List(_), ArrowType::List(element)) => {
            let list: &ListArray = column.as_list();
            let used = used_values(list.offsets(), list.nulls(), list.values().len());
            let path = child_path(path, "element");
            let values = conform_column(list.values(), element, used.as_ref(), &path)?;
            let list = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            );
            Ok(Arc::new(list.map_err(invalid)?))
        }
        (ArrowType::Map(..), ArrowType::Map(entries, sorted)) => {
            let ArrowType::Struct(fields) = entries.data_type() else {
                return Err(no_cast(path, column.data_type(), wanted));
            };
            let map = column.as_map();
            let used = used_values(map.offsets(), map.nulls(), map.entries().len());
            let columns = fields.iter().zip(map.entries().columns());
            let columns = columns
                .map(|(field, column)| conform_column(column, field, used.as_ref(), &child_path(path, field.name())));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let values = StructArray::try_new(fields.clone(), columns, None).map_err(invalid)?;
            let map = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                values,
                map.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(map.map_err(invalid)?))
        }
        (ArrowType::Struct(given), ArrowType::Struct(fields)) => {
            let array = column.as_struct();
            let nulls = NullBuffer::union(array.nulls(), parent);
            let columns = match_by_name(given, array.columns(), fields, nulls.as_ref(), path)?;
            let array = StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len());
            Ok(Arc::new(array.map_err(invalid)?))
        }
        (found, wanted) => match exactness(found, wanted) {
            Exactness::None => Err(no_cast(path, found, wanted)),
            Exactness::OrError => cast(column, wanted, path),
            Exactness::Checked => {
                let result = cast(column, wanted, path)?;
                let back = cast(&result, found, path)?;
                if &back == column {
                    return Ok(result);
                }
                let row = (0..column.len()).find(|&row| back.slice(row, 1) != column.slice(row, 1));
                let value = row
                    .and_then(|row| array_value_to_string(column, row).ok())
                    .unwrap_or_default();
                Err(FormatError::invalid(format!(
                    "column {path}: {value} is no exact value of {wanted}"
                )))
            }
        },
    }
}

/// Which of `len` values belong to a list or map that is there; `None` when all do.
fn used_values(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>, len: usize) -> Option<NullBuffer> {
    if nulls.is_none_or(|nulls| nulls.null_count() == 0) && offsets.first() == Some(&0) {
        let used = offsets.last().and_then(|&end| usize::try_from(end).ok());
        if used == Some(len) {
            return None;
        }
    }
    let mut used = BooleanBufferBuilder::new(len);
    used.append_n(len, false);
    for (row, range) in offsets.windows(2).enumerate() {
        if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
            for value in range[0]..range[1] {
                used.set_bit(value as usize, true);
            }
        }
    }
    Some(NullBuffer::new(used.finish()))
}

/// How a cast of a column keeps its values.
enum Exactness {
    /// There is no cast, or it may change values unseen.
    None,
    /// The cast keeps every value or fails.
    OrError,
    /// The cast may round: it has to be undone and compared.
    Checked,
}

fn exactness(found: &ArrowType, wanted: &ArrowType) -> Exactness {
    use ArrowType::{
        Binary, BinaryView, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, FixedSizeBinary, Float16,
        Float32, Float64, Int8, Int16, Int32, LargeBinary, LargeUtf8, Time32, Time64, Timestamp, UInt8, UInt16, UInt32,
        Utf8, Utf8View,
    };
    match (found, wanted) {
        (LargeUtf8 | Utf8View, Utf8)
        | (LargeBinary | BinaryView | FixedSizeBinary(_), Binary)
        | (Float16, Float32)
        | (Float16 | Float32, Float64)
        | (Int8 | Int16 | UInt8 | UInt16, Float32)
        | (Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32, Float64) => Exactness::OrError,
        (found, wanted) if found.is_integer() && wanted.is_integer() => Exactness::OrError,
        (found, Decimal128(..)) if found.is_integer() => Exactness::OrError,
        (Decimal32(_, from) | Decimal64(_, from) | Decimal128(_, from) | Decimal256(_, from), Decimal128(_, to))
            if from <= to =>
        {
            Exactness::OrError
        }
        (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), Decimal128(..))
        | (Date64, Date32)
        | (Time32(_) | Time64(_), Time32(_)) => Exactness::Checked,
        // An instant and a local time are different things: one is not made of the other unasked.
        (Timestamp(from, found), Timestamp(to, wanted)) if found.is_some() == wanted.is_some() => {
            if from <= to {
                Exactness::OrError
            } else {
                Exactness::Checked
            }
        }
        _ => Exactness::None,
    }
}

fn cast(column: &ArrayRef, wanted: &ArrowType, path: &str) -> Result<ArrayRef, FormatError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(column, wanted, &options)
        .map_err(|error| FormatError::invalid(format!("column {path} does not fit {wanted}: {error}")))
}

fn no_cast(path: &str, found: &ArrowType, wanted: &ArrowType) -> FormatError {
    FormatError::invalid(format!(
        "column {path} has the Arrow type {found}, but the table needs {wanted}"
    ))
}

#[cfg(test)]
mod tests;
