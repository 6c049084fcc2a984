//! Avro's binary form, value by value.

use super::schema::AvroType;

/// Bytes being read. Nothing is read beyond their end.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Whether a read wanted more bytes than there were.
    ended: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, ended: false }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn at_end(&self) -> bool {
        self.ended
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        match self.bytes.split_at_checked(length) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => {
                self.ended = true;
                Err(format!("{length} bytes are wanted where {} are left", self.bytes.len()))
            }
        }
    }

    /// A zig-zag number.
    pub(super) fn long(&mut self) -> Result<i64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { break };
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err("a number of more than 64 bits".to_owned())
    }

    pub(super) fn int(&mut self) -> Result<i32, String> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| format!("{value} where an int is expected"))
    }

    /// Bytes behind their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.long()?;
        let length = usize::try_from(length).map_err(|_| format!("a length of {length}"))?;
        self.take(length)
    }

    pub(super) fn boolean(&mut self) -> Result<bool, String> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err(format!("{other:02x?} where a boolean is expected")),
        }
    }

    pub(super) fn float(&mut self) -> Result<f32, String> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes(bytes.try_into().map_err(|_| "a short float")?))
    }

    pub(super) fn double(&mut self) -> Result<f64, String> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().map_err(|_| "a short double")?))
    }

    /// Calls `item` for each item of an array or map.
    pub(super) fn items(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.long()?;
            }
            // An item takes a byte at least: those without any would let a few bytes make endless rows.
            if count.unsigned_abs() > self.bytes.len() as u64 {
                return Err(format!("{} items in {} bytes", count.unsigned_abs(), self.bytes.len()));
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self, avro: &AvroType) -> Result<(), String> {
        match avro {
            AvroType::Null => Ok(()),
            AvroType::Boolean => self.take(1).map(drop),
            AvroType::Int | AvroType::Long | AvroType::Enum => self.long().map(drop),
            AvroType::Float => self.take(4).map(drop),
            AvroType::Double => self.take(8).map(drop),
            AvroType::Bytes | AvroType::String => self.bytes().map(drop),
            AvroType::Fixed(length) => self.take(*length).map(drop),
            AvroType::Union(branches) => {
                let branch = self.branch(branches.len())?;
                branches.get(branch).map_or(Ok(()), |branch| self.skip(branch))
            }
            AvroType::Array(element) => self.items(|cursor| cursor.skip(element)),
            AvroType::Map(value) => self.items(|cursor| {
                cursor.bytes()?;
                cursor.skip(value)
            }),
            AvroType::Record(fields) => fields.iter().try_for_each(|(_, field)| self.skip(field)),
        }
    }

    pub(super) fn branch(&mut self, branches: usize) -> Result<usize, String> {
        let branch = self.long()?;
        let known = usize::try_from(branch).ok().filter(|&branch| branch < branches);
        known.ok_or_else(|| format!("branch {branch} of a union of {branches}"))
    }
}
