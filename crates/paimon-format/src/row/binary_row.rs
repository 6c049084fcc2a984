//! Java's `BinaryRow`.

use bytes::Bytes;

/// A row in Java's binary form: header, null bits, one 8-byte slot a field, variable part; little endian.
///
/// Equality and hash are those of the bytes, as in Java.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct BinaryRow {
    arity: usize,
    bytes: Bytes,
}

impl BinaryRow {
    /// The number of fields.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The row's bytes, header to end, without a length or arity prefix.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
