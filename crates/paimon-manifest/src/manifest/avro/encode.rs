//! Avro's primitive values, written.

/// Appends the values of one row, in the order of the schema.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// A long; ints have the same form.
    pub(crate) fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest > 0x7f {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// An int.
    pub(crate) fn int(&mut self, value: i32) {
        self.long(i64::from(value));
    }

    /// Bytes.
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.long(value.len() as i64);
        self.bytes.extend_from_slice(value);
    }

    /// Text.
    pub(crate) fn string(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// A union `["null", T]`.
    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.long(0),
            Some(value) => {
                self.long(1);
                write(self, value);
            }
        }
    }

    /// An array, in one block.
    pub(crate) fn array<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        if !items.is_empty() {
            self.long(items.len() as i64);
            items.iter().for_each(|item| write(self, item));
        }
        self.long(0);
    }
}
