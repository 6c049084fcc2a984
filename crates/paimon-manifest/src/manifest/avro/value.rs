//! One value of a row, read along the file's own schema.

use super::cursor::Cursor;
use super::error::{AvroError, Result};
use super::shape::Shape;

/// A value that has not been read yet. It must be read or skipped; both move the cursor behind it.
pub(crate) struct Value<'s, 'c, 'b> {
    shape: &'s Shape,
    cursor: &'c mut Cursor<'b>,
}

impl<'s, 'c, 'b> Value<'s, 'c, 'b> {
    pub(super) fn new(shape: &'s Shape, cursor: &'c mut Cursor<'b>) -> Self {
        Self { shape, cursor }
    }

    /// `None` for null. A field may be nullable in the file or not, whatever Java's own schema says.
    pub(crate) fn optional<T>(self, read: impl FnOnce(Self) -> Result<T>) -> Result<Option<T>> {
        let value = self.branch()?;
        match value.shape {
            Shape::Null => Ok(None),
            _ => read(value).map(Some),
        }
    }

    /// An int or a long that fits 32 bits.
    pub(crate) fn int(self) -> Result<i32> {
        let value = self.branch()?;
        match value.shape {
            Shape::Int | Shape::Long => Ok(value.cursor.int()?),
            other => Err(unexpected("int", other)),
        }
    }

    /// An int or a long.
    pub(crate) fn long(self) -> Result<i64> {
        let value = self.branch()?;
        match value.shape {
            Shape::Int | Shape::Long => Ok(value.cursor.long()?),
            other => Err(unexpected("long", other)),
        }
    }

    /// Bytes.
    pub(crate) fn bytes(self) -> Result<&'b [u8]> {
        let value = self.branch()?;
        match value.shape {
            Shape::Bytes => Ok(value.cursor.bytes()?),
            other => Err(unexpected("bytes", other)),
        }
    }

    /// Text.
    pub(crate) fn string(self) -> Result<String> {
        let value = self.branch()?;
        match value.shape {
            Shape::String => Ok(value.cursor.string()?.to_string()),
            other => Err(unexpected("string", other)),
        }
    }

    /// An array, item by item.
    pub(crate) fn array<T>(self, mut read: impl FnMut(Value<'_, '_, 'b>) -> Result<T>) -> Result<Vec<T>> {
        let value = self.branch()?;
        let Shape::Array(item) = value.shape else {
            return Err(unexpected("array", value.shape));
        };
        let mut items = Vec::new();
        loop {
            let count = value.cursor.block_count()?;
            if count == 0 {
                return Ok(items);
            }
            for _ in 0..count {
                items.push(read(Value::new(item, value.cursor))?);
            }
        }
    }

    /// A record, field by field in the file's order. The callback reads or skips each.
    pub(crate) fn record(self, mut read: impl FnMut(&str, Value<'_, '_, 'b>) -> Result<()>) -> Result<()> {
        let value = self.branch()?;
        let Shape::Record(fields) = value.shape else {
            return Err(unexpected("record", value.shape));
        };
        for (name, shape) in fields {
            read(name, Value::new(shape, value.cursor)).map_err(|error| error.within(name))?;
        }
        Ok(())
    }

    /// Moves behind it.
    pub(crate) fn skip(self) -> Result<()> {
        skip(self.shape, self.cursor)
    }

    /// Follows unions to the branch that the file took.
    fn branch(mut self) -> Result<Self> {
        while let Shape::Union(branches) = self.shape {
            let index = self.cursor.long()?;
            self.shape = usize::try_from(index)
                .ok()
                .and_then(|index| branches.get(index))
                .ok_or_else(|| AvroError::new(format!("branch {index} of a union of {}", branches.len())))?;
        }
        Ok(self)
    }
}

fn skip(shape: &Shape, cursor: &mut Cursor<'_>) -> Result<()> {
    match shape {
        Shape::Null => {}
        Shape::Boolean => {
            cursor.take(1)?;
        }
        Shape::Int | Shape::Long => {
            cursor.long()?;
        }
        Shape::Float => {
            cursor.take(4)?;
        }
        Shape::Double => {
            cursor.take(8)?;
        }
        Shape::Bytes | Shape::String => {
            cursor.bytes()?;
        }
        Shape::Fixed(size) => {
            cursor.take(*size)?;
        }
        Shape::Array(item) => skip_blocks(cursor, |cursor| skip(item, cursor))?,
        Shape::Map(value) => skip_blocks(cursor, |cursor| {
            cursor.bytes()?;
            skip(value, cursor)
        })?,
        Shape::Union(_) => {
            let value = Value::new(shape, cursor).branch()?;
            skip(value.shape, value.cursor)?;
        }
        Shape::Record(fields) => fields.iter().try_for_each(|(_, field)| skip(field, cursor))?,
    }
    Ok(())
}

fn skip_blocks<'b>(cursor: &mut Cursor<'b>, mut item: impl FnMut(&mut Cursor<'b>) -> Result<()>) -> Result<()> {
    loop {
        let count = cursor.block_count()?;
        if count == 0 {
            return Ok(());
        }
        (0..count).try_for_each(|_| item(cursor))?;
    }
}

fn unexpected(wanted: &str, found: &Shape) -> AvroError {
    AvroError::new(match found {
        Shape::Null => format!("null, but a value of type {wanted} is required"),
        found => format!("type {wanted} expected, found {}", found.name()),
    })
}

/// The value of a field that must be there.
pub(crate) fn required<T>(value: Option<T>, name: &str) -> Result<T> {
    value.ok_or_else(|| AvroError::new(format!("the required field {name} is missing")))
}
