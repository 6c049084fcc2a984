//! The container around the rows: header, compressed blocks, sync markers.

use apache_avro::{Codec, DeflateSettings, ZstandardSettings};
use paimon_format::env::FileIds;

use super::cursor::Cursor;
use super::encode::Encoder;
use super::error::{AvroError, Result};
use super::shape::Shape;
use super::value::Value;

const MAGIC: &[u8] = b"Obj\x01";
/// Avro's default in Java.
const BLOCK_BYTES: usize = 64_000;
const MARKER_BYTES: usize = 16;

/// How blocks of new manifests are compressed: `manifest.compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestCodec {
    Null,
    Snappy,
    Deflate,
    Zstandard { level: u8 },
}

impl ManifestCodec {
    /// The value of `avro.codec`.
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Snappy => "snappy",
            Self::Deflate => "deflate",
            Self::Zstandard { .. } => "zstandard",
        }
    }

    fn from_name(name: &str) -> Result<Self> {
        match name {
            "null" => Ok(Self::Null),
            "snappy" => Ok(Self::Snappy),
            "deflate" => Ok(Self::Deflate),
            "zstandard" => Ok(Self::Zstandard { level: 1 }),
            other => Err(AvroError::new(format!("avro.codec {other} is not supported"))),
        }
    }

    fn codec(self) -> Codec {
        match self {
            Self::Null => Codec::Null,
            Self::Snappy => Codec::Snappy,
            Self::Deflate => Codec::Deflate(DeflateSettings::default()),
            Self::Zstandard { level } => Codec::Zstandard(ZstandardSettings::new(level)),
        }
    }
}

/// Decodes all rows of a container file. The error says where in the file and what was expected.
pub(crate) fn read_container<T>(file: &[u8], mut read: impl FnMut(Value<'_, '_, '_>) -> Result<T>) -> Result<Vec<T>> {
    let mut cursor = Cursor::new(file);
    let header = read_header(&mut cursor).map_err(|error| format!("header: {error}"))?;
    let mut rows = Vec::new();
    for block in 0.. {
        if cursor.remaining() == 0 {
            break;
        }
        let at = |error: AvroError| format!("block {block} at byte {}: {error}", file.len() - cursor.remaining());
        let mut rest = cursor.clone();
        let (count, bytes) = read_block(&mut rest, &header).map_err(at)?;
        let mut values = Cursor::new(&bytes);
        for row in 0..count {
            let value = Value::new(&header.shape, &mut values);
            rows.push(read(value).map_err(|error| format!("block {block}, row {row}: {error}"))?);
        }
        if values.remaining() != 0 {
            return Err(AvroError::new(format!(
                "block {block}: {} bytes behind its last row",
                values.remaining()
            )));
        }
        cursor = rest;
    }
    Ok(rows)
}

struct Header {
    shape: Shape,
    codec: ManifestCodec,
    marker: [u8; MARKER_BYTES],
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<Header> {
    if cursor.take(MAGIC.len()) != Ok(MAGIC) {
        return Err(AvroError::new("not an Avro file (it does not start with Obj 1)"));
    }
    let (mut shape, mut codec) = (None, ManifestCodec::Null);
    loop {
        let count = cursor.block_count()?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let key = cursor.string()?;
            let value = cursor.bytes()?;
            match key {
                "avro.schema" => shape = Some(Shape::parse(value)?),
                "avro.codec" => codec = ManifestCodec::from_name(&String::from_utf8_lossy(value))?,
                _ => {}
            }
        }
    }
    let marker = cursor.take(MARKER_BYTES)?;
    Ok(Header {
        shape: shape.ok_or("no avro.schema")?,
        codec,
        marker: marker.try_into().map_err(|_| "no sync marker")?,
    })
}

fn read_block(cursor: &mut Cursor<'_>, header: &Header) -> Result<(usize, Vec<u8>)> {
    let count = cursor.long()?;
    let mut bytes = cursor.bytes()?.to_vec();
    if cursor.take(MARKER_BYTES)? != header.marker {
        return Err(AvroError::new("wrong sync marker at its end"));
    }
    header
        .codec
        .codec()
        .decompress(&mut bytes)
        .map_err(|error| format!("{} data cannot be decompressed: {error}", header.codec.name()))?;
    let count = usize::try_from(count).map_err(|_| format!("{count} rows"))?;
    // Every row of a manifest takes some bytes.
    if count > bytes.len() {
        return Err(AvroError::new(format!("{count} rows in {} bytes", bytes.len())));
    }
    Ok((count, bytes))
}

/// Makes a container file in memory; manifests end at some megabytes.
pub(crate) struct ContainerWriter {
    file: Vec<u8>,
    block: Encoder,
    block_rows: i64,
    codec: ManifestCodec,
    marker: [u8; MARKER_BYTES],
}

impl ContainerWriter {
    /// Starts a file: `schema` goes into the header as it is.
    pub(crate) fn new(schema: &str, codec: ManifestCodec, ids: &dyn FileIds) -> Self {
        let mut header = Encoder::default();
        header.array(
            &[("avro.schema", schema), ("avro.codec", codec.name())],
            |header, (key, value)| {
                header.string(key);
                header.string(value);
            },
        );
        let marker = marker(ids);
        let mut file = MAGIC.to_vec();
        file.extend(header.take());
        file.extend(marker);
        Self {
            file,
            block: Encoder::default(),
            block_rows: 0,
            codec,
            marker,
        }
    }

    /// Appends a row.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Encoder)) -> Result<()> {
        write(&mut self.block);
        self.block_rows += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    /// Bytes so far, without the block that is still open.
    pub(crate) fn len(&self) -> usize {
        self.file.len()
    }

    /// The bytes of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        self.end_block()?;
        Ok(self.file)
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block_rows == 0 {
            return Ok(());
        }
        let mut bytes = self.block.take();
        self.codec
            .codec()
            .compress(&mut bytes)
            .map_err(|error| format!("{} compression failed: {error}", self.codec.name()))?;
        let mut head = Encoder::default();
        head.long(self.block_rows);
        head.bytes(&bytes);
        self.file.extend(head.take());
        self.file.extend(self.marker);
        self.block_rows = 0;
        Ok(())
    }
}

/// 16 bytes that are unlikely in data. Drawn from the environment, so that a test run writes the same bytes every time.
fn marker(ids: &dyn FileIds) -> [u8; MARKER_BYTES] {
    let mut marker = [0; MARKER_BYTES];
    let text = ids.uuid();
    let digits = text.bytes().filter(u8::is_ascii_hexdigit);
    for (index, digit) in digits.take(2 * MARKER_BYTES).enumerate() {
        if let Some(byte) = marker.get_mut(index / 2) {
            *byte = *byte << 4 | (digit as char).to_digit(16).unwrap_or_default() as u8;
        }
    }
    marker
}
