//! Values that an array can hold, but the type of their column cannot.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Time32MillisecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::datum::number::{format_decimal, pow10};
use super::temporal::DAY_MS;
use crate::error::FormatError;
use crate::types::arrow_map::child_path;
use crate::types::{DataField, DataType, MAX_LENGTH, TypeKind};

/// Refuses values that are none of their type: CHAR and VARCHAR with more characters, BINARY and VARBINARY with more bytes, DECIMAL with
/// more digits, TIME outside of a day. Shorter CHAR and BINARY are fine, nothing is padded. `rows` has the columns of `fields`, in order.
///
/// Java's writers check none of these (`org.apache.paimon.table.sink.TableWriteImpl`); some SQL engines do before them.
///
/// Errors: `Invalid`, naming column, row and type. Cost: for text a look at its offsets, and counting the characters of what has more
/// bytes than characters are allowed.
pub fn check_limits(rows: &RecordBatch, fields: &[DataField]) -> Result<(), FormatError> {
    for (column, field) in rows.columns().iter().zip(fields) {
        if let Some(found) = beyond(column, &field.data_type, None, &field.name) {
            return Err(FormatError::invalid(format!(
                "column {}, row {}: {} for {}",
                found.path, found.row, found.what, found.data_type
            )));
        }
    }
    Ok(())
}

struct Beyond<'a> {
    path: String,
    row: usize,
    what: String,
    data_type: &'a DataType,
}

/// The first value that is too large. Rows that do not exist in `parent` have none.
fn beyond<'a>(
    array: &ArrayRef,
    data_type: &'a DataType,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Option<Beyond<'a>> {
    let nulls = NullBuffer::union(parent, array.nulls());
    match &data_type.kind {
        TypeKind::Row(fields) => {
            let columns = array.as_struct_opt()?.columns();
            let mut columns = columns.iter().zip(fields);
            columns.find_map(|(column, field)| {
                let path = child_path(path, &field.name);
                beyond(column, &field.data_type, nulls.as_ref(), &path)
            })
        }
        TypeKind::Array(element) => {
            let list = array.as_list_opt::<i32>()?;
            beyond_element(list.offsets(), list.values(), element, path)
        }
        TypeKind::Map(key, value) => {
            let map = array.as_map_opt()?;
            beyond_element(map.offsets(), map.keys(), key, path)
                .or_else(|| beyond_element(map.offsets(), map.values(), value, path))
        }
        TypeKind::Multiset(element) => {
            let map = array.as_map_opt()?;
            beyond_element(map.offsets(), map.keys(), element, path)
        }
        kind => {
            let exists = |&row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let (row, what) = beyond_flat(array, kind, exists)?;
            Some(Beyond {
                path: path.to_owned(),
                row,
                what,
                data_type,
            })
        }
    }
}

/// The same for the elements of lists; the row is that of the list.
fn beyond_element<'a>(
    offsets: &OffsetBuffer<i32>,
    values: &ArrayRef,
    data_type: &'a DataType,
    path: &str,
) -> Option<Beyond<'a>> {
    let (first, last) = (*offsets.first()?, *offsets.last()?);
    let (start, end) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
    let found = beyond(&values.slice(start, end.saturating_sub(start)), data_type, None, path)?;
    let element = i32::try_from(start + found.row).ok()?;
    Some(Beyond {
        row: offsets.partition_point(|&offset| offset <= element).saturating_sub(1),
        ..found
    })
}

fn beyond_flat(array: &ArrayRef, kind: &TypeKind, exists: impl Fn(&usize) -> bool) -> Option<(usize, String)> {
    let mut rows = (0..array.len()).filter(exists);
    match *kind {
        TypeKind::Char(length) | TypeKind::VarChar(length) if length != MAX_LENGTH => {
            let texts = array.as_string_opt::<i32>()?;
            rows.find_map(|row| {
                let too_long = texts.value_length(row).unsigned_abs() > length;
                let characters = too_long.then(|| texts.value(row).chars().count())?;
                (characters > length as usize).then(|| (row, format!("{characters} characters are too many")))
            })
        }
        TypeKind::Binary(length) | TypeKind::VarBinary(length) if length != MAX_LENGTH => {
            let values = array.as_binary_opt::<i32>()?;
            rows.find_map(|row| {
                let bytes = values.value_length(row).unsigned_abs();
                (bytes > length).then(|| (row, format!("{bytes} bytes are too many")))
            })
        }
        TypeKind::Decimal(precision, scale) => {
            let values = array.as_primitive_opt::<Decimal128Type>()?;
            let end = pow10(precision)?.unsigned_abs();
            rows.find_map(|row| {
                let value = values.value(row);
                (value.unsigned_abs() >= end)
                    .then(|| (row, format!("{} has too many digits", format_decimal(value, scale))))
            })
        }
        TypeKind::Time(_) => {
            let values = array.as_primitive_opt::<Time32MillisecondType>()?;
            rows.find_map(|row| {
                let millis = values.value(row);
                (!(0..DAY_MS).contains(&millis.into())).then(|| (row, format!("{millis} ms are no time of a day")))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, Time32MillisecondArray};
    use serde_json::{Value, json};

    use super::*;
    use crate::types::{Datum, array_from_datums, arrow_schema};

    /// What is said about a column `c` with these values; they are made by a type without limits.
    fn check(limited: &str, unlimited: &str, values: &[Value]) -> String {
        let field = |text: &str| DataField::new(0, "c", text.parse().unwrap());
        let wide = field(unlimited);
        let values: Vec<Datum> = values
            .iter()
            .map(|value| Datum::from_json(value, &wide.data_type).unwrap())
            .collect();
        check_array(limited, array_from_datums(&wide, &values).unwrap(), &wide)
    }

    fn check_array(limited: &str, array: ArrayRef, field: &DataField) -> String {
        let schema = Arc::new(arrow_schema(std::slice::from_ref(field)).unwrap());
        let rows = RecordBatch::try_new(schema, vec![array]).unwrap();
        let fields = [DataField::new(0, "c", limited.parse().unwrap())];
        match check_limits(&rows, &fields) {
            Ok(()) => "fits".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_type_with_a_limit() {
        assert_eq!(
            check("VARCHAR(2)", "STRING", &[json!("žž"), json!(null), json!("")]),
            "fits"
        );
        assert_eq!(
            check("VARCHAR(2)", "STRING", &[json!("žž"), json!("abc")]),
            "column c, row 1: 3 characters are too many for VARCHAR(2)"
        );
        assert_eq!(check("CHAR(3)", "STRING", &[json!("a")]), "fits");
        assert_eq!(
            check("BINARY(1)", "BYTES", &[json!("00"), json!("0000")]),
            "column c, row 1: 2 bytes are too many for BINARY(1)"
        );
        assert_eq!(check("VARBINARY(2)", "BYTES", &[json!("0000")]), "fits");
        let decimal = DataField::new(0, "c", "DECIMAL(3, 1)".parse().unwrap());
        let digits = |value| {
            Arc::new(
                Decimal128Array::from(vec![value])
                    .with_precision_and_scale(3, 1)
                    .unwrap(),
            )
        };
        assert_eq!(check_array("DECIMAL(3, 1)", digits(-999), &decimal), "fits");
        assert_eq!(
            check_array("DECIMAL(3, 1)", digits(-1000), &decimal),
            "column c, row 0: -100.0 has too many digits for DECIMAL(3, 1)"
        );
        let time = DataField::new(0, "c", "TIME(3)".parse().unwrap());
        let millis = |value| Arc::new(Time32MillisecondArray::from(vec![value]));
        assert_eq!(check_array("TIME(3)", millis(86_399_999), &time), "fits");
        assert_eq!(
            check_array("TIME(3)", millis(86_400_000), &time),
            "column c, row 0: 86400000 ms are no time of a day for TIME(3)"
        );
    }

    #[test]
    fn within_rows_lists_and_maps() {
        assert_eq!(
            check(
                "ROW<a INT, b VARCHAR(1)>",
                "ROW<a INT, b STRING>",
                &[json!(null), json!([1, "x"]), json!([1, "xy"])]
            ),
            "column c.b, row 2: 2 characters are too many for VARCHAR(1)"
        );
        assert_eq!(
            check(
                "ARRAY<CHAR(1)>",
                "ARRAY<STRING>",
                &[json!([]), json!(["a", "b"]), json!(["a", "bc"])]
            ),
            "column c, row 2: 2 characters are too many for CHAR(1)"
        );
        assert_eq!(
            check("MAP<INT, VARCHAR(1)>", "MAP<INT, STRING>", &[json!([[1, "ab"]])]),
            "column c, row 0: 2 characters are too many for VARCHAR(1)"
        );
        assert_eq!(
            check("MULTISET<VARCHAR(2)>", "MULTISET<STRING>", &[json!([["ab", 1]])]),
            "fits"
        );
    }
}
