//! Hive's hash, column by column. Sources: `org.apache.paimon.bucket.HiveBucketFunction`, `org.apache.paimon.utils.HiveHasher`.

use arrow_array::ArrayRef;

use crate::FormatError;
use crate::row::columns::{Column, Values, columns_of};
use crate::types::{DataType, TypeKind};

/// Types that have a hash.
pub(super) fn is_supported(kind: &TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Boolean
            | TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::Int
            | TypeKind::BigInt
            | TypeKind::Float
            | TypeKind::Double
            | TypeKind::Char(_)
            | TypeKind::VarChar(_)
            | TypeKind::Binary(_)
            | TypeKind::VarBinary(_)
            | TypeKind::Decimal(..)
            | TypeKind::Date
            | TypeKind::Time(_)
    )
}

/// The hash of each row; nulls hash to 0.
pub(super) fn hashes(key: &[ArrayRef], types: &[DataType]) -> Result<Vec<i32>, FormatError> {
    let (columns, rows) = columns_of(key, types)?;
    let mut hashes = vec![0_i32; rows];
    for (column, data_type) in columns.iter().zip(types) {
        add_column(&mut hashes, column, data_type)?;
    }
    Ok(hashes)
}

fn add_column(hashes: &mut [i32], column: &Column<'_>, data_type: &DataType) -> Result<(), FormatError> {
    match &column.values {
        Values::Boolean(values) => add(hashes, column, |row| i32::from(values.value(row))),
        Values::Int8(values) => add(hashes, column, |row| i32::from(values[row])),
        Values::Int16(values) => add(hashes, column, |row| i32::from(values[row])),
        Values::Int32(values) => add(hashes, column, |row| values[row]),
        Values::Int64(values) => add(hashes, column, |row| hash_long(values[row])),
        Values::Float32(values) => add(hashes, column, |row| hash_float(values[row])),
        Values::Float64(values) => add(hashes, column, |row| hash_double(values[row])),
        Values::Bytes(values) => add(hashes, column, |row| hash_bytes(values.value(row))),
        Values::Decimal(values) => {
            let TypeKind::Decimal(_, scale) = data_type.kind else {
                return Err(unsupported(data_type));
            };
            add(hashes, column, |row| hash_decimal(values[row], scale));
        }
        _ => return Err(unsupported(data_type)),
    }
    Ok(())
}

fn unsupported(data_type: &DataType) -> FormatError {
    FormatError::internal(format!("a Hive hash of {data_type}"))
}

fn add(hashes: &mut [i32], column: &Column<'_>, hash: impl Fn(usize) -> i32) {
    for (row, total) in hashes.iter_mut().enumerate() {
        let value = if column.is_null(row) { 0 } else { hash(row) };
        *total = total.wrapping_mul(31).wrapping_add(value);
    }
}

fn hash_long(value: i64) -> i32 {
    (value ^ ((value as u64) >> 32) as i64) as i32
}

fn hash_float(value: f32) -> i32 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        0x7fc0_0000
    } else {
        value.to_bits() as i32
    }
}

fn hash_double(value: f64) -> i32 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        hash_long(0x7ff8_0000_0000_0000)
    } else {
        hash_long(value.to_bits() as i64)
    }
}

fn hash_bytes(bytes: &[u8]) -> i32 {
    bytes.iter().fold(0, |hash: i32, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte as i8))
    })
}

/// `BigDecimal.hashCode` of the value without zeros at its end.
fn hash_decimal(mut unscaled: i128, mut scale: u8) -> i32 {
    if unscaled == 0 {
        return 0;
    }
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    let magnitude = unscaled.unsigned_abs();
    // Big-endian words without leading zeros; a leading zero word would leave the hash 0 as well.
    let hash = [96, 64, 32, 0]
        .map(|shift| (magnitude >> shift) as u32)
        .iter()
        .fold(0_u32, |hash, &word| hash.wrapping_mul(31).wrapping_add(word)) as i32;
    let hash = if unscaled < 0 { hash.wrapping_neg() } else { hash };
    hash.wrapping_mul(31).wrapping_add(i32::from(scale))
}
