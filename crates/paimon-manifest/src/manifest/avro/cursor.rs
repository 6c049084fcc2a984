//! Avro's primitive values, read from bytes.

/// Bytes not read yet. Errors say what is wrong; the caller knows where.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| format!("the data ends early: {length} bytes wanted, {} left", self.rest.len()))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A zigzag varint of up to 64 bits.
    pub(super) fn long(&mut self) -> Result<i64, String> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or("the data ends early inside a number")?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err("a number has more than 64 bits".to_string())
    }

    pub(super) fn int(&mut self) -> Result<i32, String> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| format!("{value} does not fit 32 bits"))
    }

    /// Length-prefixed bytes; the length is checked against what is left before anything is allocated.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], String> {
        let length = self.long()?;
        let length = usize::try_from(length).map_err(|_| format!("negative length {length}"))?;
        self.take(length)
    }

    pub(super) fn string(&mut self) -> Result<&'b str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|error| format!("text is not UTF-8: {error}"))
    }

    /// The number of items in the next block of an array or a map; 0 ends it. Every item takes at least a byte, so a count
    /// beyond the bytes left is refused.
    pub(super) fn block_count(&mut self) -> Result<usize, String> {
        let count = self.long()?;
        if count < 0 {
            self.long()?; // the block's size in bytes, which only skipping needs
        }
        let items = usize::try_from(count.unsigned_abs()).map_err(|_| format!("{count} items in an array"))?;
        if items > self.remaining() {
            return Err(format!(
                "{items} items announced, but only {} bytes left",
                self.remaining()
            ));
        }
        Ok(items)
    }
}
