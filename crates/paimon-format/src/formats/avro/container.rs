//! The object container: a header with schema, codec and sync marker, then blocks.
//!
//! ```text
//! "Obj" 1 | map of string to bytes: avro.schema, avro.codec | marker (16)
//! block*: rows (long) | length (long) | compressed rows | marker (16)
//! ```

use apache_avro::{Codec, DeflateSettings, ZstandardSettings};

use super::cursor::Cursor;

pub(super) const MAGIC: &[u8] = b"Obj\x01";
/// Bytes of a sync marker.
pub(super) const MARKER: usize = 16;

/// What a file starts with.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) schema: String,
    pub(super) codec: Codec,
    pub(super) marker: [u8; MARKER],
    /// Bytes of the header itself.
    pub(super) length: usize,
}

/// A block's place in bytes that start with it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) rows: u64,
    /// Where its compressed rows start.
    pub(super) start: usize,
    /// Where its marker starts.
    pub(super) end: usize,
}

/// The header, or `None` when more bytes are needed. The error says what is wrong.
pub(super) fn read_header(bytes: &[u8]) -> Result<Option<Header>, String> {
    let seen = bytes.len().min(MAGIC.len());
    if bytes.get(..seen) != MAGIC.get(..seen) {
        return Err(format!(
            "no Avro file: it starts with {:02x?}, not with \"Obj\" 1",
            &bytes[..seen]
        ));
    }
    let mut cursor = Cursor::new(bytes);
    match header(&mut cursor) {
        Ok((schema, codec, marker)) => {
            let schema = String::from_utf8(schema.to_vec()).map_err(|_| "its schema is no UTF-8")?;
            let codec = codec.map_or(Ok(Codec::Null), |name| codec_by_name(&String::from_utf8_lossy(name)))?;
            Ok(Some(Header {
                schema,
                codec,
                marker,
                length: bytes.len() - cursor.remaining(),
            }))
        }
        Err(error) if cursor.at_end() => {
            let _ = error;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

type HeaderParts<'a> = (&'a [u8], Option<&'a [u8]>, [u8; MARKER]);

fn header<'a>(cursor: &mut Cursor<'a>) -> Result<HeaderParts<'a>, String> {
    cursor.take(MAGIC.len())?;
    let (mut schema, mut codec) = (None, None);
    loop {
        let count = cursor.long()?;
        if count == 0 {
            break;
        }
        if count < 0 {
            cursor.long()?;
        }
        for _ in 0..count.unsigned_abs() {
            let key = cursor.bytes()?;
            let value = cursor.bytes()?;
            match key {
                b"avro.schema" => schema = Some(value),
                b"avro.codec" => codec = Some(value),
                _ => {}
            }
        }
    }
    let marker = cursor.take(MARKER)?;
    let marker = marker.try_into().map_err(|_| "a short marker")?;
    Ok((schema.ok_or("its header has no avro.schema")?, codec, marker))
}

/// The block at the start of `bytes`, or `None` when more bytes are needed to find its end. `left`: bytes of the file from there.
pub(super) fn read_block(bytes: &[u8], left: u64) -> Result<Option<Block>, String> {
    let mut cursor = Cursor::new(bytes);
    let lengths = cursor.long().and_then(|rows| Ok((rows, cursor.long()?)));
    let (rows, length) = match lengths {
        Ok(lengths) => lengths,
        Err(error) if !cursor.at_end() => return Err(error),
        Err(_) if bytes.len() as u64 >= left => return Err("its last block is cut off".to_owned()),
        Err(_) => return Ok(None),
    };
    let start = bytes.len() - cursor.remaining();
    let (Ok(rows), Ok(length)) = (u64::try_from(rows), usize::try_from(length)) else {
        return Err(format!("a block of {rows} rows and {length} bytes"));
    };
    let end = start
        .checked_add(length)
        .filter(|&end| (end as u64).saturating_add(MARKER as u64) <= left);
    match end {
        Some(end) => Ok(Some(Block { rows, start, end })),
        None => Err(format!("a block of {length} bytes, where the file has {left} left")),
    }
}

/// A codec by its name in Avro files.
pub(super) fn codec_by_name(name: &str) -> Result<Codec, String> {
    match name {
        "null" => Ok(Codec::Null),
        "deflate" => Ok(Codec::Deflate(DeflateSettings::default())),
        "snappy" => Ok(Codec::Snappy),
        "zstandard" => Ok(Codec::Zstandard(ZstandardSettings::default())),
        other => Err(format!(
            "its blocks are compressed by {other:?}; supported are null, deflate, snappy, zstandard"
        )),
    }
}
