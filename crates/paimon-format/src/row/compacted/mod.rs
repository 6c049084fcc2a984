//! Rows without padding: the keys and values of lookup files.
//!
//! | Bytes | What |
//! |---|---|
//! | 1 | row kind: 0 |
//! | ⌈arity / 8⌉ | null bits, that of field 0 lowest |
//! | | the fields that are not null, one after the other: |
//!
//! | Type | Form |
//! |---|---|
//! | BOOLEAN, TINYINT · SMALLINT · INT, DATE, TIME, FLOAT · BIGINT, DOUBLE | 1 · 2 · 4 · 8 bytes, little endian |
//! | DECIMAL(p ≤ 18) | unscaled value, 8 bytes, little endian |
//! | DECIMAL(p > 18) | length, unscaled value in as few bytes as possible, big endian |
//! | TIMESTAMP(p ≤ 3) | milliseconds, 8 bytes |
//! | TIMESTAMP(p > 3) | milliseconds, 8 bytes; nanoseconds of the millisecond as a varint |
//! | CHAR, VARCHAR, BINARY, VARBINARY | length, bytes |
//! | ARRAY, MAP, MULTISET | length, the bytes they have in a [`BinaryRow`](super::BinaryRow) |
//! | ROW | length, compacted row |
//! | VARIANT | length of all, then length and bytes of the value and of the metadata |
//!
//! Lengths are varints: seven bits a byte, the lowest first, the high bit says that another byte follows. BLOB and VECTOR are
//! refused by name.
//!
//! Source: `org.apache.paimon.data.serializer.RowCompactedSerializer`.

mod decode;
mod encode;
mod order;
#[cfg(test)]
mod tests;

pub use decode::CompactedRowDecoder;
pub use encode::CompactedRowEncoder;
pub use order::CompactedKeyOrder;

use super::section::Place;
use crate::FormatError;

/// Bytes of the row kind and the null bits.
fn header_bytes(arity: usize) -> usize {
    1 + arity.div_ceil(8)
}

/// Appends a varint. Java reads at most 9 bytes: `value` is below 2^63.
///
/// Source: `org.apache.paimon.utils.VarLengthIntUtils`.
pub fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

/// The varint that bytes begin with. `Corrupt` when they are none.
pub fn read_varint(bytes: &[u8]) -> Result<u64, FormatError> {
    Input::new(bytes).varint()
}

/// Appends a length and bytes. `Invalid` when they are more than Java counts.
pub(crate) fn put_bytes(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), FormatError> {
    let length = i32::try_from(bytes.len())
        .map_err(|_| FormatError::invalid("a value of more than 2 GiB has no compacted form"))?;
    put_varint(buffer, length as u64);
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Bytes that are read from the front. Nothing about them is taken for granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    #[cfg(feature = "sst")]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.too_short(length))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.too_short(N))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A varint below 2^63.
    pub(crate) fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt("a number of more than 9 bytes"))
    }

    /// A length and so many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.varint()?;
        // What does not fit is longer than any slice.
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The unscaled value of a decimal.
    fn decimal(&mut self, place: Place) -> Result<i128, FormatError> {
        if place == Place::Plain {
            return Ok(i64::from_le_bytes(self.fixed()?).into());
        }
        let bytes = self.bytes()?;
        let sign = match bytes.first() {
            Some(first) if bytes.len() <= 16 => first & 0x80 != 0,
            _ => return Err(corrupt(format_args!("a decimal of {} bytes, not 1..=16", bytes.len()))),
        };
        let mut wide = if sign { [0xff; 16] } else { [0; 16] };
        for (to, from) in wide.iter_mut().rev().zip(bytes.iter().rev()) {
            *to = *from;
        }
        Ok(i128::from_be_bytes(wide))
    }

    /// Milliseconds, and nanoseconds of the millisecond.
    fn timestamp(&mut self, place: Place) -> Result<(i64, i64), FormatError> {
        let millis = i64::from_le_bytes(self.fixed()?);
        if place == Place::Plain {
            return Ok((millis, 0));
        }
        match self.varint()? {
            nanos @ 0..1_000_000 => Ok((millis, nanos as i64)),
            nanos => Err(corrupt(format_args!("{nanos} ns of a millisecond"))),
        }
    }

    fn too_short(&self, wanted: usize) -> FormatError {
        corrupt(format_args!("{wanted} bytes expected, {} left", self.rest.len()))
    }
}

/// A row of which field after field is read.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    nulls: &'a [u8],
    values: Input<'a>,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], arity: usize) -> Result<Self, FormatError> {
        let mut values = Input::new(bytes);
        let header = values.take(header_bytes(arity))?;
        Ok(Self {
            nulls: header.get(1..).unwrap_or_default(),
            values,
        })
    }

    fn is_null(&self, i: usize) -> bool {
        self.nulls.get(i / 8).is_some_and(|byte| byte & (1 << (i % 8)) != 0)
    }
}

fn corrupt(message: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt("compacted row", message)
}
