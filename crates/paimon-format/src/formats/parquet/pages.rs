//! The pages that were fetched, as the page decoder sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Type as PhysicalType;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

use super::int96::Int96Pages;

/// Fetched byte ranges of one file, by their place in it. Filled ahead of the decoder, emptied behind it.
#[derive(Debug)]
pub(super) struct Pages {
    file_size: u64,
    ranges: Mutex<BTreeMap<u64, Bytes>>,
}

impl Pages {
    pub(super) fn new(file_size: u64) -> Self {
        Self {
            file_size,
            ranges: Mutex::default(),
        }
    }

    pub(super) fn insert(&self, start: u64, bytes: Bytes) {
        self.ranges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(start, bytes);
    }

    pub(super) fn remove(&self, start: u64) {
        self.ranges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&start);
    }

    /// From `start` to the end of the range that was fetched with it.
    fn from(&self, start: u64) -> Result<Bytes> {
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let found = ranges.range(..=start).next_back();
        let found = found.and_then(|(at, bytes)| {
            let skipped = usize::try_from(start - at).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        });
        found.ok_or_else(|| ParquetError::General(format!("byte {start} was not fetched")))
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file_size
    }
}

impl ChunkReader for Pages {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start}, of which {} are there",
                bytes.len()
            )));
        }
        Ok(bytes.slice(..length))
    }
}

/// One row group of a file whose pages come and go.
pub(super) struct PagedRowGroup {
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) row_group: usize,
    pub(super) rows: usize,
    pub(super) pages: Arc<Pages>,
}

impl RowGroups for PagedRowGroup {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let missing = || ParquetError::General(format!("no row group {} with a column {leaf}", self.row_group));
        let group = self.metadata.row_groups().get(self.row_group).ok_or_else(missing)?;
        let column = group.columns().get(leaf).ok_or_else(missing)?;
        let index = self
            .metadata
            .offset_index()
            .and_then(|index| index.get(self.row_group)?.get(leaf));
        let locations = index
            .map(|index| index.page_locations().clone())
            .filter(|pages| !pages.is_empty());
        let pages = SerializedPageReader::new(Arc::clone(&self.pages), column, self.rows, locations)?;
        let reader: Box<dyn PageReader> = match column.column_type() {
            PhysicalType::INT96 => Box::new(Int96Pages::new(pages, column.column_descr_ptr())),
            _ => Box::new(pages),
        };
        Ok(Box::new(OneChunk(Some(reader))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().get(self.row_group).into_iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of one column chunk.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}
