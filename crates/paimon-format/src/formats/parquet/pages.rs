//! The pages that were fetched, as the page decoder sees them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

use super::int96::Int96Pages;
use crate::kv::PageCache;

/// Fetched byte ranges of one file, by their place in it. Filled ahead of the decoder, emptied behind it.
///
/// Pages that another read has left in a [`PageCache`] are here, too, in place of their bytes.
#[derive(Debug)]
pub(super) struct Pages {
    file_size: u64,
    ranges: Mutex<BTreeMap<u64, Bytes>>,
    cache: Option<(Arc<str>, PageCache)>,
    held: Mutex<HashMap<u64, Arc<Page>>>,
}

/// A part of a file that is at hand.
pub(super) enum PagePart {
    /// As it lies in the file.
    Stored(Bytes),
    /// Of a [`PageCache`].
    Decompressed(Arc<Page>),
}

impl Pages {
    pub(super) fn new(file_size: u64) -> Self {
        Self {
            file_size,
            ranges: Mutex::default(),
            cache: None,
            held: Mutex::default(),
        }
    }

    /// Shares decompressed pages with other reads of the file.
    pub(super) fn shared(self, path: &str, cache: PageCache, now_ms: i64) -> Self {
        let path: Arc<str> = path.into();
        cache.touch(&path, now_ms);
        Self {
            cache: Some((path, cache)),
            ..self
        }
    }

    /// The page at this place, if the cache has it. `None`: its bytes are needed.
    pub(super) fn cached(&self, start: u64) -> Option<Arc<Page>> {
        let (path, cache) = self.cache.as_ref()?;
        cache.get(path, start)
    }

    fn held(&self, start: u64) -> Option<Page> {
        lock(&self.held).get(&start).map(|page| page.as_ref().clone())
    }

    /// Leaves a page for other reads.
    fn keep(&self, start: u64, page: &Page) {
        // Pages of version 2 may be parts of what was fetched, which is much more.
        if let (Some((path, cache)), Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. }) =
            (&self.cache, page)
        {
            let bytes = buf.len() + size_of::<Page>();
            cache.put(path, start, page.clone(), bytes as u64);
        }
    }

    pub(super) fn insert(&self, start: u64, part: PagePart) {
        match part {
            PagePart::Stored(bytes) => {
                lock(&self.ranges).insert(start, bytes);
            }
            PagePart::Decompressed(page) => {
                lock(&self.held).insert(start, page);
            }
        }
    }

    pub(super) fn remove(&self, start: u64) {
        lock(&self.ranges).remove(&start);
        lock(&self.held).remove(&start);
    }

    /// From `start` to the end of the range that was fetched with it.
    fn from(&self, start: u64) -> Result<Bytes> {
        let ranges = lock(&self.ranges);
        let found = ranges.range(..=start).next_back();
        let found = found.and_then(|(at, bytes)| {
            let skipped = usize::try_from(start - at).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        });
        found.ok_or_else(|| ParquetError::General(format!("byte {start} was not fetched")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let pages = ChunkPages::new(Arc::clone(&self.pages), column, self.rows, locations)?;
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

/// The pages of one column chunk: those that are held, and those that have to be decompressed.
pub(super) struct ChunkPages {
    pages: Arc<Pages>,
    reader: SerializedPageReader<Pages>,
    /// Where the next ones begin, if that is known and pages are shared.
    starts: VecDeque<u64>,
}

impl ChunkPages {
    fn new(
        pages: Arc<Pages>,
        column: &ColumnChunkMetaData,
        rows: usize,
        locations: Option<Vec<PageLocation>>,
    ) -> Result<Self> {
        let mut starts = VecDeque::new();
        if pages.cache.is_some() && column.compression() != Compression::UNCOMPRESSED {
            let data = locations.iter().flatten().map(|page| page.offset as u64);
            starts.extend(data);
            // What lies before the first page of data is a dictionary.
            let (start, _) = column.byte_range();
            if starts.front().is_some_and(|&first| first != start) {
                starts.push_front(start);
            }
        }
        Ok(Self {
            reader: SerializedPageReader::new(Arc::clone(&pages), column, rows, locations)?,
            pages,
            starts,
        })
    }
}

impl Iterator for ChunkPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ChunkPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(start) = self.starts.pop_front() else {
            return self.reader.get_next_page();
        };
        if let Some(page) = self.pages.held(start) {
            self.reader.skip_next_page()?;
            return Ok(Some(page));
        }
        let page = self.reader.get_next_page()?;
        if let Some(page) = &page {
            self.pages.keep(start, page);
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.reader.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.starts.pop_front();
        self.reader.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.reader.at_record_boundary()
    }
}

/// The one column chunk of a row group.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}
