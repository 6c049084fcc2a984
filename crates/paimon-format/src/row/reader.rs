//! Values from the bytes of rows, arrays and maps. Nothing about the bytes is taken for granted.

use super::section::{
    Place, WIDE_DECIMAL_BYTES, array_header_bytes, element_width, place, row_header_bytes, unsupported,
};
use crate::FormatError;
use crate::types::{DataType, Datum, TypeKind};

/// One row or array in the bytes of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowReader<'a> {
    bytes: &'a [u8],
    nulls: usize,
    slots: usize,
    width: usize,
    size: usize,
}

impl<'a> RowReader<'a> {
    /// A row. `Corrupt` when its fixed part is not there.
    pub(super) fn row(bytes: &'a [u8], arity: usize) -> Result<Self, FormatError> {
        Self::section(bytes, 1, row_header_bytes(arity), 8, arity)
    }

    /// An array. `Corrupt` when it is shorter than its number of elements takes.
    fn array(bytes: &'a [u8], element: &TypeKind) -> Result<Self, FormatError> {
        let size = array_length(bytes)?;
        Self::section(bytes, 4, array_header_bytes(size), element_width(element), size)
    }

    fn section(bytes: &'a [u8], nulls: usize, slots: usize, width: usize, size: usize) -> Result<Self, FormatError> {
        // `size` is at most 2^31, `width` at most 8.
        let fixed = slots as u64 + width as u64 * size as u64;
        if (bytes.len() as u64) < fixed {
            return Err(corrupt(format!(
                "{} bytes, but {size} fields take at least {fixed}",
                bytes.len()
            )));
        }
        Ok(Self {
            bytes,
            nulls,
            slots,
            width,
            size,
        })
    }

    /// Whether the null bit of field `i` is set.
    pub(super) fn is_null(&self, i: usize) -> Result<bool, FormatError> {
        let byte = self.bytes.get(self.nulls + i / 8).ok_or_else(|| self.no_field(i))?;
        Ok(byte & (1 << (i % 8)) != 0)
    }

    /// The value of field `i`.
    pub(super) fn value(&self, i: usize, data_type: &DataType) -> Result<Datum, FormatError> {
        if self.is_null(i)? {
            return Ok(Datum::Null);
        }
        Ok(match &data_type.kind {
            TypeKind::Boolean => Datum::Boolean(self.fixed::<1>(i)? != [0]),
            TypeKind::TinyInt => Datum::Int8(i8::from_le_bytes(self.fixed(i)?)),
            TypeKind::SmallInt => Datum::Int16(i16::from_le_bytes(self.fixed(i)?)),
            TypeKind::Int => Datum::Int32(i32::from_le_bytes(self.fixed(i)?)),
            TypeKind::BigInt => Datum::Int64(i64::from_le_bytes(self.fixed(i)?)),
            TypeKind::Float => Datum::Float32(f32::from_le_bytes(self.fixed(i)?)),
            TypeKind::Double => Datum::Float64(f64::from_le_bytes(self.fixed(i)?)),
            TypeKind::Date => Datum::Date(i32::from_le_bytes(self.fixed(i)?)),
            TypeKind::Time(_) => Datum::Time(i32::from_le_bytes(self.fixed(i)?)),
            TypeKind::Char(_) | TypeKind::VarChar(_) => {
                let text = str::from_utf8(self.text_or_bytes(i)?)
                    .map_err(|error| corrupt(format!("field {i}: text is not UTF-8: {error}")))?;
                Datum::String(text.to_owned())
            }
            TypeKind::Binary(_) | TypeKind::VarBinary(_) => Datum::Bytes(self.text_or_bytes(i)?.to_vec()),
            TypeKind::Decimal(..) => Datum::Decimal(self.decimal(i, place(data_type))?),
            TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => self.timestamp(i, place(data_type))?,
            TypeKind::Variant => self.variant(i)?,
            TypeKind::Array(element) => Datum::Array(array_values(self.nested(i)?, element)?),
            TypeKind::Map(key, value) => Datum::Map(map_entries(self.nested(i)?, key, value)?),
            TypeKind::Multiset(element) => {
                let count = DataType::not_null(TypeKind::Int);
                Datum::Map(map_entries(self.nested(i)?, element, &count)?)
            }
            TypeKind::Row(fields) => {
                let row = Self::row(self.nested(i)?, fields.len())?;
                let values: Result<Vec<Datum>, FormatError> = fields
                    .iter()
                    .enumerate()
                    .map(|(i, field)| row.value(i, &field.data_type))
                    .collect();
                Datum::Row(values?)
            }
            TypeKind::Blob | TypeKind::Vector(..) => return Err(unsupported(data_type)),
        })
    }

    fn fixed<const N: usize>(&self, i: usize) -> Result<[u8; N], FormatError> {
        let slot = self.slots + i * self.width;
        self.bytes
            .get(slot..)
            .and_then(|bytes| bytes.first_chunk::<N>())
            .filter(|_| i < self.size)
            .copied()
            .ok_or_else(|| self.no_field(i))
    }

    fn text_or_bytes(&self, i: usize) -> Result<&'a [u8], FormatError> {
        let slot = self.slots + i * self.width;
        let bytes: [u8; 8] = self.fixed(i)?;
        if bytes[7] & 0x80 == 0 {
            return self.nested(i);
        }
        let length = usize::from(bytes[7] & 0x7f);
        if length > super::section::MAX_INLINE_BYTES {
            return Err(corrupt(format!("field {i}: {length} bytes in a slot of 7")));
        }
        self.bytes.get(slot..slot + length).ok_or_else(|| self.no_field(i))
    }

    /// The bytes in the variable part to which the slot points.
    fn nested(&self, i: usize) -> Result<&'a [u8], FormatError> {
        let (offset, length) = self.position(i)?;
        self.variable(i, offset, length as usize)
    }

    /// Offset in the section, and the number beside it.
    fn position(&self, i: usize) -> Result<(usize, u32), FormatError> {
        let slot = u64::from_le_bytes(self.fixed(i)?);
        Ok(((slot >> 32) as usize, slot as u32))
    }

    fn variable(&self, i: usize, offset: usize, length: usize) -> Result<&'a [u8], FormatError> {
        self.bytes.get(offset..offset + length).ok_or_else(|| {
            corrupt(format!(
                "field {i}: bytes {offset}..{} of {}",
                offset + length,
                self.bytes.len()
            ))
        })
    }

    fn decimal(&self, i: usize, place: Place) -> Result<i128, FormatError> {
        if place == Place::Plain {
            return Ok(i128::from(i64::from_le_bytes(self.fixed(i)?)));
        }
        let bytes = self.nested(i)?;
        let sign = match bytes.first() {
            Some(first) if bytes.len() <= WIDE_DECIMAL_BYTES => first & 0x80 != 0,
            _ => {
                return Err(corrupt(format!(
                    "field {i}: a decimal of {} bytes, not 1..=16",
                    bytes.len()
                )));
            }
        };
        let mut wide = if sign { [0xff; 16] } else { [0; 16] };
        for (to, from) in wide.iter_mut().rev().zip(bytes.iter().rev()) {
            *to = *from;
        }
        Ok(i128::from_be_bytes(wide))
    }

    fn timestamp(&self, i: usize, place: Place) -> Result<Datum, FormatError> {
        if place == Place::Plain {
            let millis = i64::from_le_bytes(self.fixed(i)?);
            return Ok(Datum::Timestamp { millis, nanos: 0 });
        }
        let (offset, nanos) = self.position(i)?;
        let millis = self
            .variable(i, offset, 8)?
            .first_chunk::<8>()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .ok_or_else(|| self.no_field(i))?;
        if nanos >= 1_000_000 {
            return Err(corrupt(format!("field {i}: {nanos} ns of a millisecond")));
        }
        Ok(Datum::Timestamp {
            millis,
            nanos: nanos as i32,
        })
    }

    fn variant(&self, i: usize) -> Result<Datum, FormatError> {
        let bytes = self.nested(i)?;
        let (value, metadata) = split_prefixed(bytes).ok_or_else(|| {
            corrupt(format!(
                "field {i}: a variant whose value is longer than its {} bytes",
                bytes.len()
            ))
        })?;
        Ok(Datum::Variant {
            value: value.to_vec(),
            metadata: metadata.to_vec(),
        })
    }

    fn no_field(&self, i: usize) -> FormatError {
        corrupt(format!("no field {i} in a section of {} bytes", self.bytes.len()))
    }
}

pub(super) fn array_values(bytes: &[u8], element: &DataType) -> Result<Vec<Datum>, FormatError> {
    let array = RowReader::array(bytes, &element.kind)?;
    // As many as there are bytes for: an element takes one at least.
    (0..array.size).map(|i| array.value(i, element)).collect()
}

pub(super) fn map_entries(bytes: &[u8], key: &DataType, value: &DataType) -> Result<Vec<(Datum, Datum)>, FormatError> {
    let (keys, values) = split_prefixed(bytes)
        .ok_or_else(|| corrupt(format!("a map whose keys are longer than its {} bytes", bytes.len())))?;
    let (keys, values) = (array_values(keys, key)?, array_values(values, value)?);
    if keys.len() != values.len() {
        return Err(corrupt(format!(
            "a map of {} keys and {} values",
            keys.len(),
            values.len()
        )));
    }
    Ok(keys.into_iter().zip(values).collect())
}

fn array_length(bytes: &[u8]) -> Result<usize, FormatError> {
    bytes
        .first_chunk::<4>()
        .map(|size| i32::from_le_bytes(*size))
        .and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| corrupt(format!("no size of an array in {} bytes", bytes.len())))
}

/// A little-endian `i32` length, so many bytes, and the rest.
fn split_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(i32::from_le_bytes(*length)).ok()?)
}

pub(super) fn corrupt(message: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt("binary row", message)
}
