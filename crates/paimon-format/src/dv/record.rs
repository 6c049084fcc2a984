//! One vector in an index file.
//!
//! | Bytes | What | 32 bits | 64 bits |
//! |---|---|---|---|
//! | 4 | size of magic and bitmap | big endian | big endian |
//! | 4 | magic | 1581511376, big endian | 1681511377, little endian |
//! | ... | bitmap | | |
//! | 4 | CRC-32 of magic and bitmap | big endian | big endian |
//!
//! The metadata's offset is that of the size. Its length is the size for 32 bits, and that of the whole record for 64.

use super::{DeletionVector, bitmap32, bitmap64};
use crate::FormatError;
use crate::options::Options;

const MAGIC_32: [u8; 4] = 1_581_511_376_u32.to_be_bytes();
const MAGIC_64: [u8; 4] = 1_681_511_377_u32.to_le_bytes();

/// The bytes of a record around magic and bitmap.
pub(super) const FRAME_BYTES: u64 = 8;

/// Which of the two forms a vector has on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BitmapKind {
    /// Paimon's own: rows up to 2^31 - 1.
    #[default]
    Bits32,
    /// That of Iceberg: any row.
    Bits64,
}

impl BitmapKind {
    /// That of new vectors: `deletion-vectors.bitmap64`. Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        Ok(match options.bool("deletion-vectors.bitmap64")? {
            Some(true) => Self::Bits64,
            _ => Self::Bits32,
        })
    }

    /// The last row of a file that a vector of this kind can delete.
    pub fn max_row(self) -> u64 {
        match self {
            Self::Bits32 => bitmap32::MAX_ROW,
            Self::Bits64 => bitmap64::MAX_ROW,
        }
    }

    /// Whether a row of this file can be deleted. Errors: `Invalid`, naming the file and the row.
    pub(super) fn check_row(self, file: &str, row: u64) -> Result<(), FormatError> {
        if row <= self.max_row() {
            return Ok(());
        }
        let alternative = match self {
            Self::Bits32 => "; option 'deletion-vectors.bitmap64' = 'true' allows more",
            Self::Bits64 => "",
        };
        Err(FormatError::invalid(format!(
            "{file}: row {row} cannot be deleted: the last possible is {}{alternative}",
            self.max_row()
        )))
    }
}

/// Appends the record of a file's vector; gives the length for the metadata, bytes.
///
/// Errors: `Invalid`, naming the file, when a row is too large for the kind.
pub(super) fn encode(
    kind: BitmapKind,
    file: &str,
    vector: &DeletionVector,
    bytes: &mut Vec<u8>,
) -> Result<usize, FormatError> {
    if let Some(row) = vector.max() {
        kind.check_row(file, row)?;
    }
    let mut body = Vec::new();
    match kind {
        BitmapKind::Bits32 => {
            body.extend(MAGIC_32);
            bitmap32::encode(vector, &mut body)
        }
        BitmapKind::Bits64 => {
            body.extend(MAGIC_64);
            bitmap64::encode(vector, &mut body)
        }
    }
    .map_err(FormatError::internal)?;
    let size = i32::try_from(body.len())
        .map_err(|_| FormatError::invalid(format!("{file}: a deletion vector of {} bytes", body.len())))?;
    bytes.extend(size.to_be_bytes());
    bytes.extend(&body);
    bytes.extend(crc32fast::hash(&body).to_be_bytes());
    Ok(match kind {
        BitmapKind::Bits32 => body.len(),
        BitmapKind::Bits64 => body.len() + FRAME_BYTES as usize,
    })
}

/// The vector of a record that begins these bytes; `length` is that of the metadata. Errors say what is wrong.
pub(super) fn decode(bytes: &[u8], length: u64) -> Result<DeletionVector, String> {
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or("no room for its size")?;
    let size = u64::from(u32::from_be_bytes(*size));
    let magic = rest.first_chunk::<4>().ok_or("no room for its magic number")?;
    let kind = match *magic {
        MAGIC_32 => BitmapKind::Bits32,
        MAGIC_64 => BitmapKind::Bits64,
        other => {
            return Err(format!(
                "magic number {}, expected {} or {}",
                u32::from_be_bytes(other),
                u32::from_be_bytes(MAGIC_32),
                u32::from_be_bytes(MAGIC_64)
            ));
        }
    };
    let expected = match kind {
        BitmapKind::Bits32 => length,
        BitmapKind::Bits64 => length.saturating_sub(FRAME_BYTES),
    };
    if size != expected {
        return Err(format!("size {size}, but the metadata says {expected}"));
    }
    let (body, rest) = usize::try_from(size)
        .ok()
        .and_then(|size| rest.split_at_checked(size))
        .ok_or("the file ends within it")?;
    let crc = rest.first_chunk::<4>().ok_or("the file ends within its checksum")?;
    let (crc, actual) = (u32::from_be_bytes(*crc), crc32fast::hash(body));
    if crc != actual {
        return Err(format!("checksum {crc:08x}, but its bytes have {actual:08x}"));
    }
    let bitmap = body.get(magic.len()..).unwrap_or_default();
    match kind {
        BitmapKind::Bits32 => bitmap32::decode(bitmap),
        BitmapKind::Bits64 => bitmap64::decode(bitmap),
    }
}
