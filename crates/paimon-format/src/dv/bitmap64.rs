//! Vectors of files with any number of rows.
//!
//! | Bytes | What |
//! |---|---|
//! | 8 | number of bitmaps, little endian |
//! | 4 | for each: the upper 32 bits of its rows, little endian, ascending |
//! | ... | and the lower 32 bits as a Roaring bitmap in its portable form, runs compressed |
//!
//! Java writes an empty bitmap for each key that is left out before the last one, this module leaves them out; both read both. Source:
//! `org.apache.paimon.deletionvectors.OptimizedRoaringBitmap64`.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::DeletionVector;

/// The largest key that Java takes.
const MAX_KEY: u32 = i32::MAX as u32 - 1;

/// The last row that can be deleted.
pub(super) const MAX_ROW: u64 = ((MAX_KEY as u64) << 32) | (1 << 31);

/// Appends a vector whose rows are at most [`MAX_ROW`].
pub(super) fn encode(vector: &DeletionVector, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let mut rows = vector.rows.clone();
    rows.optimize();
    rows.serialize_into(bytes)
}

/// The vector of these bytes, all of which must be its. Errors say what is wrong.
pub(super) fn decode(bytes: &[u8]) -> Result<DeletionVector, String> {
    let (count, mut rest) = bytes.split_first_chunk::<8>().ok_or("no number of bitmaps")?;
    let count = u64::from_le_bytes(*count);
    let mut bitmaps = Vec::new();
    let mut last = None;
    // Every round takes bytes or fails, whatever the count.
    for _ in 0..count {
        let (key, bitmap) = rest
            .split_first_chunk::<4>()
            .ok_or_else(|| format!("{count} bitmaps expected, but the bytes end before"))?;
        let key = u32::from_le_bytes(*key);
        if key > MAX_KEY {
            return Err(format!("key {key} of a bitmap, where at most {MAX_KEY} is possible"));
        }
        if last.is_some_and(|last| last >= key) {
            return Err(format!("key {key} of a bitmap after one that is not smaller"));
        }
        last = Some(key);
        rest = bitmap;
        let rows = RoaringBitmap::deserialize_from(&mut rest).map_err(|error| error.to_string())?;
        if !rows.is_empty() {
            bitmaps.push((key, rows));
        }
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes after the last bitmap", rest.len()));
    }
    Ok(DeletionVector {
        rows: RoaringTreemap::from_bitmaps(bitmaps),
    })
}
