//! Blocks as they lie in a file: compressed where that pays, with a checksum.
//!
//! Stored: the block, or if compressed, its length as a varint and the codec's bytes; then the trailer: codec (1 byte), CRC-32 of the
//! stored bytes and the codec byte (4 bytes). LZ4 bytes have a header of their own: compressed and original length, 4 bytes each.

use std::io::Read;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::corrupt;
use crate::FormatError;
use crate::row::compacted::{Input, put_varint};

/// Bytes behind every block.
pub(super) const TRAILER_BYTES: usize = 5;
/// LZ4 makes at most so many bytes of one.
const MAX_LZ4_RATIO: usize = 255;
/// Up to this length the output is allocated at once, above as it comes.
const MAX_TRUSTED_BYTES: usize = 16 << 20;

/// How blocks are compressed: `lookup.cache-spill-compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SstCompression {
    /// Not at all.
    None,
    /// Zstandard.
    Zstd,
    /// LZ4.
    Lz4,
}

impl SstCompression {
    /// From an option's text, in any case.
    ///
    /// Errors: `Unsupported` for `lzo`; `Invalid` for anything else.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "zstd" => Ok(Self::Zstd),
            "lz4" => Ok(Self::Lz4),
            "lzo" => Err(lzo()),
            _ => Err(FormatError::invalid(format!(
                "compression '{text}' of lookup files: expected one of none, zstd, lz4"
            ))),
        }
    }

    fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd => 1,
            Self::Lz4 => 2,
        }
    }

    fn of_id(id: u8) -> Result<Self, FormatError> {
        match id {
            0 => Ok(Self::None),
            1 => Ok(Self::Zstd),
            2 => Ok(Self::Lz4),
            3 => Err(lzo()),
            id => Err(corrupt(format_args!("a block of the codec {id}, not 0 to 3"))),
        }
    }

    /// What the codec makes of a block.
    fn compress(self, block: &[u8], zstd_level: i32) -> Result<Option<Vec<u8>>, FormatError> {
        match self {
            Self::None => Ok(None),
            Self::Zstd => zstd::bulk::compress(block, zstd_level)
                .map(Some)
                .map_err(|error| FormatError::internal(format!("zstd level {zstd_level}: {error}"))),
            Self::Lz4 => {
                let bytes = lz4_flex::block::compress(block);
                let mut framed = Vec::with_capacity(8 + bytes.len());
                framed.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                framed.extend_from_slice(&(block.len() as u32).to_le_bytes());
                framed.extend_from_slice(&bytes);
                Ok(Some(framed))
            }
        }
    }

    /// The block of `length` bytes that was compressed.
    fn decompress(self, bytes: &[u8], length: usize) -> Result<Vec<u8>, FormatError> {
        let block = match self {
            Self::None => return Err(FormatError::internal("a block that is not compressed")),
            Self::Zstd if length <= MAX_TRUSTED_BYTES => zstd::bulk::decompress(bytes, length).map_err(corrupt)?,
            Self::Zstd => {
                let mut block = Vec::new();
                let decoder = zstd::Decoder::new(bytes).map_err(corrupt)?;
                // One more than there should be, so that too many are seen.
                decoder
                    .take(length as u64 + 1)
                    .read_to_end(&mut block)
                    .map_err(corrupt)?;
                block
            }
            Self::Lz4 => {
                let mut input = Input::new(bytes);
                let compressed = u32::from_le_bytes(input.fixed().map_err(corrupt)?) as usize;
                let original = u32::from_le_bytes(input.fixed().map_err(corrupt)?) as usize;
                let data = input.rest();
                if compressed != data.len() || original != length || length > data.len().saturating_mul(MAX_LZ4_RATIO) {
                    return Err(corrupt(format_args!(
                        "an LZ4 block of {} bytes that says {compressed} and {original}, where {length} are expected",
                        data.len()
                    )));
                }
                lz4_flex::block::decompress(data, length).map_err(corrupt)?
            }
        };
        if block.len() != length {
            return Err(corrupt(format_args!("a block of {} bytes, not {length}", block.len())));
        }
        Ok(block)
    }
}

/// Appends a block with its trailer; gives the stored length, without the trailer.
pub(super) fn put_block(
    file: &mut Vec<u8>,
    block: &[u8],
    codec: SstCompression,
    zstd_level: i32,
) -> Result<u32, FormatError> {
    let start = file.len();
    let mut used = SstCompression::None;
    if let Some(compressed) = codec.compress(block, zstd_level)? {
        put_varint(file, block.len() as u64);
        file.extend_from_slice(&compressed);
        // Less than an eighth saved is not worth the time of reading it.
        if file.len() - start < block.len() - block.len() / 8 {
            used = codec;
        } else {
            file.truncate(start);
        }
    }
    if used == SstCompression::None {
        file.extend_from_slice(block);
    }
    let stored = file.len() - start;
    let checksum = checksum(&file[start..], used.id());
    file.push(used.id());
    file.extend_from_slice(&checksum.to_le_bytes());
    // Blocks are below 2 GiB: the writer saw to it.
    Ok(stored as u32)
}

/// The block of its stored bytes and their trailer. Errors: `Corrupt`, `Unsupported` (LZO).
pub(super) fn take_block(stored: Bytes) -> Result<Bytes, FormatError> {
    let data = stored.len().checked_sub(TRAILER_BYTES);
    let data = data.ok_or_else(|| corrupt(format_args!("a block of {} bytes with its trailer", stored.len())))?;
    let (block, trailer) = (stored.slice(..data), stored.slice(data..));
    let mut trailer = Input::new(&trailer);
    let [codec] = trailer.fixed()?;
    let expected = u32::from_le_bytes(trailer.fixed()?);
    let found = checksum(&block, codec);
    if found != expected {
        return Err(corrupt(format_args!(
            "a block with the checksum {found:08x}, its trailer says {expected:08x}"
        )));
    }
    match SstCompression::of_id(codec)? {
        SstCompression::None => Ok(block),
        codec => {
            let mut input = Input::new(&block);
            let length = i32::try_from(input.varint()?).map_err(corrupt)?;
            Ok(codec.decompress(input.rest(), length as usize)?.into())
        }
    }
}

/// CRC-32 as in zlib; Java's name for it is crc32c.
fn checksum(block: &[u8], codec: u8) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(block);
    hasher.update(&[codec]);
    hasher.finalize()
}

fn lzo() -> FormatError {
    FormatError::unsupported("lookup files compressed with lzo")
}
