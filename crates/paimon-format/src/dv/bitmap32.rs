//! Vectors of files with at most 2^31 rows.
//!
//! A Roaring bitmap in its portable form, runs compressed. Source: `org.apache.paimon.deletionvectors.BitmapDeletionVector`.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::DeletionVector;

/// The last row that can be deleted.
pub(super) const MAX_ROW: u64 = i32::MAX as u64;

/// Appends a vector whose rows are at most [`MAX_ROW`].
pub(super) fn encode(vector: &DeletionVector, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let rows = vector.rows.bitmaps().find(|(high, _)| *high == 0);
    let mut rows = rows.map_or_else(RoaringBitmap::new, |(_, rows)| rows.clone());
    rows.optimize();
    rows.serialize_into(bytes)
}

/// The vector of these bytes, all of which must be its. Errors say what is wrong.
pub(super) fn decode(bytes: &[u8]) -> Result<DeletionVector, String> {
    let mut rest = bytes;
    let rows = RoaringBitmap::deserialize_from(&mut rest).map_err(|error| error.to_string())?;
    if !rest.is_empty() {
        return Err(format!("{} bytes after the bitmap", rest.len()));
    }
    match rows.max() {
        Some(row) if u64::from(row) > MAX_ROW => Err(format!("row {row}, where at most {MAX_ROW} is possible")),
        None => Ok(DeletionVector::new()),
        Some(_) => Ok(DeletionVector {
            rows: RoaringTreemap::from_bitmaps([(0, rows)]),
        }),
    }
}
