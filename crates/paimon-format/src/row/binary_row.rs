//! Java's `BinaryRow`.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hex;
use super::reader::{RowReader, corrupt};
use super::section::row_header_bytes;
use super::{BinaryRowWriter, murmur};
use crate::FormatError;
use crate::types::{DataType, Datum};

/// A row in Java's binary form: header, null bits, one 8-byte slot a field, variable part; little endian.
///
/// Equality and hash are those of the bytes, as in Java. As serde data it is the hex text of [`to_serialized`](Self::to_serialized).
/// Source: `org.apache.paimon.data.BinaryRow`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BinaryRow {
    arity: usize,
    bytes: Bytes,
}

impl BinaryRow {
    /// The row without fields: partition of unpartitioned tables, empty statistics.
    pub const fn empty() -> Self {
        Self {
            arity: 0,
            bytes: Bytes::from_static(&[0; 8]),
        }
    }

    /// A row of these values. Errors as [`BinaryRowWriter::write`].
    pub fn from_datums(values: &[Datum], types: &[DataType]) -> Result<Self, FormatError> {
        BinaryRowWriter::new(types).write(values)
    }

    /// A row whose bytes this crate has just written.
    pub(super) fn from_valid(arity: usize, bytes: Bytes) -> Self {
        Self { arity, bytes }
    }

    /// A row from its bytes without the arity. `Corrupt` when they are shorter than the fixed part of so many fields.
    ///
    /// The values are checked when they are read.
    pub fn from_bytes(arity: usize, bytes: Bytes) -> Result<Self, FormatError> {
        // No file can hold more fields than 2^31; the sum cannot overflow then.
        let fixed = i32::try_from(arity)
            .map(|_| row_header_bytes(arity) as u64 + 8 * arity as u64)
            .map_err(|_| corrupt(format!("{arity} fields")))?;
        if (bytes.len() as u64) < fixed {
            return Err(corrupt(format!(
                "{} bytes, but {arity} fields take at least {fixed}",
                bytes.len()
            )));
        }
        Ok(Self { arity, bytes })
    }

    /// From the form in manifests: the arity as a big-endian `i32`, then the row. `Corrupt` when too short.
    ///
    /// Source: `org.apache.paimon.utils.SerializationUtils#deserializeBinaryRow`.
    pub fn from_serialized(bytes: impl Into<Bytes>) -> Result<Self, FormatError> {
        let bytes: Bytes = bytes.into();
        let arity = bytes
            .first_chunk::<4>()
            .map(|prefix| i32::from_be_bytes(*prefix))
            .ok_or_else(|| corrupt(format!("{} bytes, expected an arity of 4", bytes.len())))?;
        let arity = usize::try_from(arity).map_err(|_| corrupt(format!("arity {arity}")))?;
        Self::from_bytes(arity, bytes.slice(4..))
    }

    /// The form in manifests; see [`from_serialized`](Self::from_serialized).
    pub fn to_serialized(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.bytes.len());
        bytes.extend_from_slice(&(self.arity as i32).to_be_bytes());
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// The number of fields.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The row's bytes, header to end, without a length or arity prefix.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Java's `hashCode`: Murmur over all bytes of the row.
    pub fn hash_code(&self) -> i32 {
        murmur::hash_bytes(&self.bytes)
    }

    /// Whether field `i` is null. `Invalid` when there is no such field.
    pub fn is_null(&self, i: usize) -> Result<bool, FormatError> {
        self.check_field(i)?;
        RowReader::row(&self.bytes, self.arity)?.is_null(i)
    }

    /// The value of field `i`. `Invalid` when there is no such field, `Corrupt` when the bytes are no value of the type.
    pub fn get(&self, i: usize, data_type: &DataType) -> Result<Datum, FormatError> {
        self.check_field(i)?;
        RowReader::row(&self.bytes, self.arity)?.value(i, data_type)
    }

    /// All values. `Invalid` when there are not as many types as fields, `Corrupt` as [`get`](Self::get).
    pub fn to_datums(&self, types: &[DataType]) -> Result<Vec<Datum>, FormatError> {
        if types.len() != self.arity {
            return Err(FormatError::invalid(format!(
                "a binary row of {} fields read with {} types",
                self.arity,
                types.len()
            )));
        }
        let reader = RowReader::row(&self.bytes, self.arity)?;
        types
            .iter()
            .enumerate()
            .map(|(i, data_type)| reader.value(i, data_type))
            .collect()
    }

    fn check_field(&self, i: usize) -> Result<(), FormatError> {
        if i < self.arity {
            return Ok(());
        }
        Err(FormatError::invalid(format!(
            "field {i} of a binary row of {} fields",
            self.arity
        )))
    }
}

impl Default for BinaryRow {
    fn default() -> Self {
        Self::empty()
    }
}

impl Serialize for BinaryRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::serialize(&self.to_serialized(), serializer)
    }
}

impl<'de> Deserialize<'de> for BinaryRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_serialized(hex::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
