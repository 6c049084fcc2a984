//! The layout that rows and arrays share: null bits, one slot a field, variable part.
//!
//! A section starts anywhere in a buffer; its offsets count from its own first byte, so nested sections are written in place.
//! Source: `org.apache.paimon.data.AbstractBinaryWriter`.

use crate::FormatError;
use crate::types::{DataType, TypeKind};

/// Values of at most this many bytes lie in their slot.
pub(super) const MAX_INLINE_BYTES: usize = 7;
/// A decimal above the compact precision takes this much of the variable part, null or not.
pub(super) const WIDE_DECIMAL_BYTES: usize = 16;
/// Decimals up to this precision are an `i64` in their slot.
const MAX_COMPACT_DECIMAL_PRECISION: u8 = 18;
/// Timestamps up to this precision are milliseconds in their slot.
const MAX_COMPACT_TIMESTAMP_PRECISION: u8 = 3;

/// Bytes of a row's header and null bits.
pub(super) fn row_header_bytes(arity: usize) -> usize {
    (arity + 63 + 8) / 64 * 8
}

/// Bytes of an array's size and null bits.
pub(super) fn array_header_bytes(size: usize) -> usize {
    4 + size.div_ceil(32) * 4
}

/// Bytes of an array element's slot.
pub(super) fn element_width(kind: &TypeKind) -> usize {
    match kind {
        TypeKind::Boolean | TypeKind::TinyInt => 1,
        TypeKind::SmallInt => 2,
        TypeKind::Int | TypeKind::Date | TypeKind::Time(_) | TypeKind::Float => 4,
        _ => 8,
    }
}

/// How a type lies in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the slot, or nothing but a null bit.
    Plain,
    /// A decimal with 16 bytes in the variable part, null or not.
    WideDecimal,
    /// A timestamp with 8 bytes in the variable part, null or not.
    WideTimestamp,
}

/// Where values of a type lie. Array elements reserve nothing for nulls, rows do.
pub(super) fn place(data_type: &DataType) -> Place {
    match data_type.kind {
        TypeKind::Decimal(precision, _) if precision > MAX_COMPACT_DECIMAL_PRECISION => Place::WideDecimal,
        TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision)
            if precision > MAX_COMPACT_TIMESTAMP_PRECISION =>
        {
            Place::WideTimestamp
        }
        _ => Place::Plain,
    }
}

/// Where a row or an array lies in the buffer that it is written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// Its first byte.
    base: usize,
    /// The byte with the null bit of field 0.
    nulls: usize,
    /// The slot of field 0.
    slots: usize,
    /// Bytes of a slot.
    width: usize,
    /// Arrays hold one NaN; rows keep its bits.
    is_array: bool,
}

impl Section {
    /// Starts a row at the end of the buffer: fields not null, slots 0.
    pub(super) fn row(buffer: &mut Vec<u8>, arity: usize) -> Self {
        let base = buffer.len();
        let slots = base + row_header_bytes(arity);
        buffer.resize(slots + 8 * arity, 0);
        Self {
            base,
            nulls: base + 1,
            slots,
            width: 8,
            is_array: false,
        }
    }

    /// Starts an array at the end of the buffer.
    pub(super) fn array(buffer: &mut Vec<u8>, size: usize, element: &TypeKind) -> Result<Self, FormatError> {
        let base = buffer.len();
        let slots = base + array_header_bytes(size);
        let width = element_width(element);
        buffer.resize(slots + width * size, 0);
        let section = Self {
            base,
            nulls: base + 4,
            slots,
            width,
            is_array: true,
        };
        section.pad(buffer);
        let size = i32::try_from(size).map_err(|_| too_large())?;
        buffer[base..base + 4].copy_from_slice(&size.to_le_bytes());
        Ok(section)
    }

    /// Marks field `i` as null. Its slot stays 0, unless its type reserves room.
    pub(super) fn put_null(&self, buffer: &mut Vec<u8>, i: usize, place: Place) -> Result<(), FormatError> {
        buffer[self.nulls + i / 8] |= 1 << (i % 8);
        let reserved = match place {
            _ if self.is_array => 0,
            Place::Plain => 0,
            Place::WideDecimal => WIDE_DECIMAL_BYTES,
            Place::WideTimestamp => 8,
        };
        if reserved > 0 {
            let start = buffer.len();
            buffer.resize(start + reserved, 0);
            self.put_position(buffer, i, start, 0)?;
        }
        Ok(())
    }

    /// Little-endian bytes, at most as many as the slot has.
    pub(super) fn put_fixed<const N: usize>(&self, buffer: &mut [u8], i: usize, bytes: [u8; N]) {
        let slot = self.slots + i * self.width;
        buffer[slot..slot + N].copy_from_slice(&bytes);
    }

    pub(super) fn put_f32(&self, buffer: &mut [u8], i: usize, value: f32) {
        let one_nan = self.is_array && value.is_nan();
        let bits = if one_nan { 0x7fc0_0000 } else { value.to_bits() };
        self.put_fixed(buffer, i, bits.to_le_bytes());
    }

    pub(super) fn put_f64(&self, buffer: &mut [u8], i: usize, value: f64) {
        let one_nan = self.is_array && value.is_nan();
        let bits = if one_nan {
            0x7ff8_0000_0000_0000
        } else {
            value.to_bits()
        };
        self.put_fixed(buffer, i, bits.to_le_bytes());
    }

    /// Text or bytes: in the slot when short, else in the variable part.
    pub(super) fn put_bytes(&self, buffer: &mut Vec<u8>, i: usize, bytes: &[u8]) -> Result<(), FormatError> {
        if bytes.len() <= MAX_INLINE_BYTES {
            let mut slot = [0; 8];
            slot[..bytes.len()].copy_from_slice(bytes);
            slot[7] = 0x80 | bytes.len() as u8;
            self.put_fixed(buffer, i, slot);
            return Ok(());
        }
        let start = buffer.len();
        buffer.extend_from_slice(bytes);
        self.end_nested(buffer, i, start)
    }

    pub(super) fn put_decimal(
        &self,
        buffer: &mut Vec<u8>,
        i: usize,
        unscaled: i128,
        place: Place,
    ) -> Result<(), FormatError> {
        if place == Place::Plain {
            let unscaled = i64::try_from(unscaled).map_err(|_| {
                FormatError::invalid(format!(
                    "decimal with unscaled value {unscaled}: more digits than its type has"
                ))
            })?;
            self.put_fixed(buffer, i, unscaled.to_le_bytes());
            return Ok(());
        }
        let bytes = unscaled.to_be_bytes();
        let minimal = &bytes[redundant_sign_bytes(&bytes)..];
        let start = buffer.len();
        buffer.extend_from_slice(minimal);
        buffer.resize(start + WIDE_DECIMAL_BYTES, 0);
        self.put_position(buffer, i, start, minimal.len())
    }

    /// `nanos`: of the millisecond, 0..=999_999; a compact type drops them.
    pub(super) fn put_timestamp(
        &self,
        buffer: &mut Vec<u8>,
        i: usize,
        (millis, nanos): (i64, i32),
        place: Place,
    ) -> Result<(), FormatError> {
        if place == Place::Plain {
            self.put_fixed(buffer, i, millis.to_le_bytes());
            return Ok(());
        }
        let nanos = usize::try_from(nanos)
            .ok()
            .filter(|nanos| *nanos < 1_000_000)
            .ok_or_else(|| {
                FormatError::invalid(format!("timestamp with {nanos} ns of a millisecond: not 0..=999999"))
            })?;
        let start = buffer.len();
        buffer.extend_from_slice(&millis.to_le_bytes());
        self.put_position(buffer, i, start, nanos)
    }

    /// VARIANT: length of the value, value, metadata.
    pub(super) fn put_variant(
        &self,
        buffer: &mut Vec<u8>,
        i: usize,
        value: &[u8],
        metadata: &[u8],
    ) -> Result<(), FormatError> {
        let start = buffer.len();
        let length = i32::try_from(value.len()).map_err(|_| too_large())?;
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(value);
        buffer.extend_from_slice(metadata);
        self.end_nested(buffer, i, start)
    }

    /// Ends what was appended from `start` on as the value of field `i`.
    pub(super) fn end_nested(&self, buffer: &mut Vec<u8>, i: usize, start: usize) -> Result<(), FormatError> {
        let length = buffer.len() - start;
        self.pad(buffer);
        self.put_position(buffer, i, start, length)
    }

    fn pad(&self, buffer: &mut Vec<u8>) {
        buffer.resize(self.base + (buffer.len() - self.base).next_multiple_of(8), 0);
    }

    fn put_position(&self, buffer: &mut [u8], i: usize, start: usize, length: usize) -> Result<(), FormatError> {
        // Java counts both in ints.
        let offset = i32::try_from(start - self.base).map_err(|_| too_large())?;
        let length = i32::try_from(length).map_err(|_| too_large())?;
        let slot = (i64::from(offset) << 32) | i64::from(length);
        self.put_fixed(buffer, i, slot.to_le_bytes());
        Ok(())
    }
}

/// Leading bytes that only repeat the sign; one byte always stays. Java's `BigInteger.toByteArray` leaves them out.
pub(super) fn redundant_sign_bytes(bytes: &[u8; 16]) -> usize {
    let sign = if bytes[0] & 0x80 == 0 { 0x00 } else { 0xff };
    let mut count = 0;
    while count < 15 && bytes[count] == sign && (bytes[count + 1] & 0x80) == (sign & 0x80) {
        count += 1;
    }
    count
}

fn too_large() -> FormatError {
    FormatError::invalid("a row of more than 2 GiB has no binary form")
}

/// Types that have no binary form here.
pub(super) fn unsupported(data_type: &DataType) -> FormatError {
    FormatError::unsupported(format!("{data_type} values in a binary row"))
}
