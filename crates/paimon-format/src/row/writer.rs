//! Rows from single values.

use bytes::Bytes;

use super::BinaryRow;
use super::section::{Section, place, unsupported};
use crate::FormatError;
use crate::types::{DataType, Datum, TypeKind};

/// Writes rows of fixed types; the buffer is kept between rows.
///
/// Source: `org.apache.paimon.data.BinaryRowWriter`, `RowHelper`.
#[derive(Debug)]
pub struct BinaryRowWriter<'t> {
    types: &'t [DataType],
    buffer: Vec<u8>,
}

impl<'t> BinaryRowWriter<'t> {
    /// A writer of rows with these fields.
    pub fn new(types: &'t [DataType]) -> Self {
        Self {
            types,
            buffer: Vec::new(),
        }
    }

    /// One row, of kind `+I`. `Invalid` when the values do not fit the types, `Unsupported` for BLOB and VECTOR.
    pub fn write(&mut self, values: &[Datum]) -> Result<BinaryRow, FormatError> {
        self.buffer.clear();
        write_row(&mut self.buffer, values, self.types)?;
        Ok(BinaryRow::from_valid(
            values.len(),
            Bytes::copy_from_slice(&self.buffer),
        ))
    }
}

fn write_row(buffer: &mut Vec<u8>, values: &[Datum], types: &[DataType]) -> Result<(), FormatError> {
    if values.len() != types.len() {
        return Err(FormatError::invalid(format!(
            "a row of {} values for {} fields",
            values.len(),
            types.len()
        )));
    }
    let section = Section::row(buffer, types.len());
    for (i, (value, data_type)) in values.iter().zip(types).enumerate() {
        write_value(&section, buffer, i, value, data_type)?;
    }
    Ok(())
}

fn write_array<'v>(
    buffer: &mut Vec<u8>,
    values: impl ExactSizeIterator<Item = &'v Datum>,
    element: &DataType,
) -> Result<(), FormatError> {
    let section = Section::array(buffer, values.len(), &element.kind)?;
    for (i, value) in values.enumerate() {
        write_value(&section, buffer, i, value, element)?;
    }
    Ok(())
}

fn write_map(
    buffer: &mut Vec<u8>,
    entries: &[(Datum, Datum)],
    key: &DataType,
    value: &DataType,
) -> Result<(), FormatError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    write_array(buffer, entries.iter().map(|(key, _)| key), key)?;
    end_map_keys(buffer, start)?;
    write_array(buffer, entries.iter().map(|(_, value)| value), value)
}

/// Writes the length of a map's key array, which ends here, in front of it.
pub(super) fn end_map_keys(buffer: &mut [u8], start: usize) -> Result<(), FormatError> {
    let length = i32::try_from(buffer.len() - start - 4)
        .map_err(|_| FormatError::invalid("a map with more than 2 GiB of keys has no binary form"))?;
    buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn write_value(
    section: &Section,
    buffer: &mut Vec<u8>,
    i: usize,
    value: &Datum,
    data_type: &DataType,
) -> Result<(), FormatError> {
    let place = place(data_type);
    match (&data_type.kind, value) {
        (TypeKind::Blob | TypeKind::Vector(..), _) => return Err(unsupported(data_type)),
        (_, Datum::Null) => section.put_null(buffer, i, place)?,
        (TypeKind::Boolean, Datum::Boolean(value)) => section.put_fixed(buffer, i, [u8::from(*value)]),
        (TypeKind::TinyInt, Datum::Int8(value)) => section.put_fixed(buffer, i, value.to_le_bytes()),
        (TypeKind::SmallInt, Datum::Int16(value)) => section.put_fixed(buffer, i, value.to_le_bytes()),
        (TypeKind::Int, Datum::Int32(value))
        | (TypeKind::Date, Datum::Date(value))
        | (TypeKind::Time(_), Datum::Time(value)) => section.put_fixed(buffer, i, value.to_le_bytes()),
        (TypeKind::BigInt, Datum::Int64(value)) => section.put_fixed(buffer, i, value.to_le_bytes()),
        (TypeKind::Float, Datum::Float32(value)) => section.put_f32(buffer, i, *value),
        (TypeKind::Double, Datum::Float64(value)) => section.put_f64(buffer, i, *value),
        (TypeKind::Char(_) | TypeKind::VarChar(_), Datum::String(text)) => {
            section.put_bytes(buffer, i, text.as_bytes())?;
        }
        (TypeKind::Binary(_) | TypeKind::VarBinary(_), Datum::Bytes(bytes)) => section.put_bytes(buffer, i, bytes)?,
        (TypeKind::Decimal(..), Datum::Decimal(unscaled)) => section.put_decimal(buffer, i, *unscaled, place)?,
        (TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_), Datum::Timestamp { millis, nanos }) => {
            section.put_timestamp(buffer, i, (*millis, *nanos), place)?
        }
        (TypeKind::Variant, Datum::Variant { value, metadata }) => section.put_variant(buffer, i, value, metadata)?,
        (TypeKind::Array(element), Datum::Array(values)) => {
            let start = buffer.len();
            write_array(buffer, values.iter(), element)?;
            section.end_nested(buffer, i, start)?;
        }
        (TypeKind::Map(key, item), Datum::Map(entries)) => {
            let start = buffer.len();
            write_map(buffer, entries, key, item)?;
            section.end_nested(buffer, i, start)?;
        }
        (TypeKind::Multiset(element), Datum::Map(entries)) => {
            let start = buffer.len();
            write_map(buffer, entries, element, &DataType::not_null(TypeKind::Int))?;
            section.end_nested(buffer, i, start)?;
        }
        (TypeKind::Row(fields), Datum::Row(values)) => {
            let start = buffer.len();
            let types: Vec<DataType> = fields.iter().map(|field| field.data_type.clone()).collect();
            write_row(buffer, values, &types)?;
            section.end_nested(buffer, i, start)?;
        }
        (_, value) => {
            return Err(FormatError::invalid(format!(
                "{value:?} is no value of type {data_type}"
            )));
        }
    }
    Ok(())
}
