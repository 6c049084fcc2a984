//! TIMESTAMP(7..9): INT96, little endian, 8 bytes of nanoseconds of the day, 4 bytes of Julian day.
//!
//! Java divides the milliseconds by the day truncating, so times before 1970 may have negative nanoseconds of a later day
//! (`org.apache.paimon.format.parquet.writer.ParquetRowDataWriter`).

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::data_type::Int96;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::pages::ChunkPages;

/// The Julian day of 1970-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_440_588;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// Bytes of a value.
const WIDTH: usize = 12;

/// Nanoseconds since the epoch, or `None` outside of 1677-09-21 to 2262-04-11, which 64 bits do not hold.
fn nanos_since_epoch(value: [u8; WIDTH]) -> Option<i64> {
    let [n0, n1, n2, n3, n4, n5, n6, n7, d0, d1, d2, d3] = value;
    let nanos = i64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    let day = i64::from(i32::from_le_bytes([d0, d1, d2, d3])) - EPOCH_JULIAN_DAY;
    i64::try_from(i128::from(day) * i128::from(NANOS_PER_DAY) + i128::from(nanos)).ok()
}

/// Java's INT96 of a time in nanoseconds since the epoch.
pub(super) fn int96(nanos_since_epoch: i64) -> Int96 {
    let millis = nanos_since_epoch.div_euclid(1_000_000);
    let below = nanos_since_epoch.rem_euclid(1_000_000);
    let day = millis / 86_400_000 + EPOCH_JULIAN_DAY;
    let nanos = (millis % 86_400_000) * 1_000_000 + below;
    let mut value = Int96::new();
    // The two's complement words, as they are written.
    value.set_data(nanos as u32, (nanos >> 32) as u32, day as u32);
    value
}

/// The pages of an INT96 column, each looked through before it is decoded: the decoder wraps times that nanoseconds do not hold.
pub(super) struct Int96Pages {
    pages: ChunkPages,
    column: ColumnDescPtr,
}

impl Int96Pages {
    pub(super) fn new(pages: ChunkPages, column: ColumnDescPtr) -> Self {
        Self { pages, column }
    }

    fn check(&self, page: &Page) -> Result<()> {
        let values = match page {
            Page::DictionaryPage { buf, .. } => Some(&buf[..]),
            Page::DataPage {
                buf,
                encoding: Encoding::PLAIN,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let mut rest = &buf[..];
                for (levels, encoding) in [
                    (self.column.max_rep_level(), rep_level_encoding),
                    (self.column.max_def_level(), def_level_encoding),
                ] {
                    if levels > 0 {
                        rest = skip_levels(rest, *encoding)?;
                    }
                }
                Some(rest)
            }
            Page::DataPageV2 {
                buf,
                encoding: Encoding::PLAIN,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..),
            // Indices into a dictionary that was looked through.
            _ => return Ok(()),
        };
        let values = values.ok_or_else(|| ParquetError::EOF("a page shorter than its levels".into()))?;
        for value in values.as_chunks::<WIDTH>().0 {
            if nanos_since_epoch(*value).is_none() {
                let day = i32::from_le_bytes([value[8], value[9], value[10], value[11]]);
                return Err(ParquetError::General(format!(
                    "column {}: a timestamp on day {} since 1970-01-01, which is outside of the years 1677 to 2262 that \
                     TIMESTAMP(7..9) is supported for",
                    self.column.path().string(),
                    i64::from(day) - EPOCH_JULIAN_DAY
                )));
            }
        }
        Ok(())
    }
}

/// What follows the levels of a version-1 page.
fn skip_levels(bytes: &[u8], encoding: Encoding) -> Result<&[u8]> {
    let rest = match (encoding, bytes.split_first_chunk::<4>()) {
        (Encoding::RLE, Some((length, rest))) => rest.get(u32::from_le_bytes(*length) as usize..),
        (Encoding::RLE, None) => None,
        (other, _) => return Err(ParquetError::NYI(format!("INT96 pages with {other} levels"))),
    };
    rest.ok_or_else(|| ParquetError::EOF("a page shorter than its levels".into()))
}

impl Iterator for Int96Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Int96Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: &Int96) -> [u8; WIDTH] {
        let mut bytes = [0; WIDTH];
        for (word, chunk) in value.data().iter().zip(bytes.as_chunks_mut::<4>().0) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    #[test]
    fn every_nanosecond_comes_back() {
        for nanos in [
            0,
            1,
            -1,
            -999_999,
            -1_000_000,
            i64::MIN,
            i64::MAX,
            NANOS_PER_DAY,
            -NANOS_PER_DAY - 1,
        ] {
            let value = int96(nanos);
            assert_eq!(nanos_since_epoch(bytes(&value)), Some(nanos));
            assert_eq!(value.to_nanos(), nanos);
        }
    }

    #[test]
    fn times_before_1970_have_negative_nanoseconds_as_in_java() {
        // -1 ns is millisecond -1 and 999999 ns of it; Java: day 0, -1 * 1_000_000 + 999_999.
        assert_eq!(
            bytes(&int96(-1)),
            [255, 255, 255, 255, 255, 255, 255, 255, 0x8c, 0x3d, 0x25, 0]
        );
    }

    #[test]
    fn a_day_too_far_is_no_time() {
        let mut value = Int96::new();
        value.set_data(0, 0, (EPOCH_JULIAN_DAY + 106_752) as u32);
        assert_eq!(nanos_since_epoch(bytes(&value)), None);
    }
}
