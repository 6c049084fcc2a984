//! A Parquet file as a stream of batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::stream;

use super::decode::{Decoder, OpenFile};
use super::footer::{Tail, read_footer};
use super::pages::{PagePart, Pages};
use super::prune::wanted_rows;
use super::window::{PageBytes, Planner, Window};
use crate::env::Env;
use crate::error::FormatError;
use crate::formats::fetch::part;
use crate::formats::{FileRows, FileScan, RowsStream};
use crate::storage::Storage;

/// The rows of a file, batch by batch, each made into something else on the CPU pool by `finish` (`None`: nothing of it is wanted).
///
/// Nothing is read before the stream is polled. Then the footer is read once and pages in windows of a quarter of
/// `window_bytes`: while one is decoded the next one is fetched. More is held only where one batch alone needs it, or where a file
/// has no offset index: then the needed columns of a row group, and of one at a time.
///
/// Errors name the file: `NotFound`, `Unavailable`, `Corrupt` (also the column), `Unsupported` (encrypted).
pub fn scan<T, F>(storage: Arc<dyn Storage>, env: Env, scan: FileScan, finish: F) -> RowsStream<T>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    let finish = Arc::new(finish);
    let rows = async move {
        match Reader::open(storage, env, scan, finish).await {
            Ok(reader) => {
                let rows = stream::try_unfold(reader, |mut reader| async move {
                    Ok(reader.next().await?.map(|made| (made, reader)))
                });
                rows.boxed()
            }
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    };
    stream::once(rows).flatten().boxed()
}

struct Reader<F> {
    storage: Arc<dyn Storage>,
    env: Env,
    file: Arc<OpenFile>,
    tail: Tail,
    pages: Arc<Pages>,
    planner: Planner,
    /// In use by the CPU pool while `None`.
    decoder: Option<Decoder>,
    finish: Arc<F>,
    /// Rows of the window that is decoded.
    current: Window,
    /// The window after it, being fetched.
    next: Option<Fetch>,
    /// Pages that are held, until which row they are needed.
    held: Vec<PageBytes>,
    window_bytes: u64,
}

/// Pages by their place in the file.
type Fetched = Result<Vec<(u64, PagePart)>, FormatError>;

/// A window whose pages are planned, and perhaps on their way.
struct Fetch {
    window: Window,
    started: Option<oneshot::Receiver<Fetched>>,
}

impl<T, F> Reader<F>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    async fn open(storage: Arc<dyn Storage>, env: Env, scan: FileScan, finish: Arc<F>) -> Result<Self, FormatError> {
        let footer = read_footer(storage.as_ref(), &scan.path, scan.file_size).await?;
        let file = Arc::new(OpenFile::new(&scan.path, footer.metadata, &scan.fields)?);
        let pages = Pages::new(scan.file_size);
        let pages = Arc::new(match scan.page_cache {
            Some(cache) => pages.shared(&scan.path, cache, env.clock.now_ms()),
            None => pages,
        });
        let row_groups = wanted_rows(&file, &scan.fields, scan.filter.as_ref(), scan.batch.rows as u64);
        Ok(Self {
            planner: Planner::new(Arc::clone(&file), row_groups, scan.batch, scan.window_bytes),
            decoder: Some(Decoder::new(Arc::clone(&file), Arc::clone(&pages))),
            storage,
            env,
            file,
            tail: footer.tail,
            pages,
            finish,
            current: Window::default(),
            next: None,
            held: Vec::new(),
            window_bytes: scan.window_bytes as u64,
        })
    }

    async fn next(&mut self) -> Result<Option<T>, FormatError> {
        loop {
            if self.current.rows.start == self.current.rows.end && !self.next_window().await? {
                return Ok(None);
            }
            let (row_group, rows) = (self.current.row_group, self.current.rows.start..self.current.wanted_end);
            let batch_rows = self.current.batch_rows;
            let Some(mut decoder) = self.decoder.take() else {
                return Err(FormatError::internal("a read that failed was polled again"));
            };
            let finish = Arc::clone(&self.finish);
            let (before, _) = self.file.row_group(row_group).unwrap_or_default();
            let first_row = before + rows.start;
            let work = move || {
                let columns = decoder.read(row_group, rows, batch_rows);
                let made = columns.and_then(|columns| {
                    let (count, bytes) = (columns.num_rows(), memory_size(&columns));
                    Ok((finish(FileRows { first_row, columns })?, count as u64, bytes))
                });
                (decoder, made)
            };
            let (decoder, made) = self.env.cpu(work).await?;
            let (made, count, bytes) = made?;
            self.decoder = Some(decoder);
            self.planner.observe(row_group, bytes.div_ceil(count.max(1)));
            self.current.rows.start += count;
            if self.current.rows.start == self.current.rows.end {
                self.release_read();
            }
            if let Some(made) = made {
                return Ok(Some(made));
            }
        }
    }

    /// Moves to the next window: its pages are there when this ends. `false`: there is none.
    async fn next_window(&mut self) -> Result<bool, FormatError> {
        let next = match self.next.take() {
            Some(fetch) => Some(fetch),
            None => self.planner.next().map(|window| Fetch { window, started: None }),
        };
        let Some(fetch) = next else { return Ok(false) };
        self.release(&fetch.window);
        let Fetch { window, started } = fetch;
        let started = started.unwrap_or_else(|| self.start(&window));
        let fetched = started
            .await
            .map_err(|_| FormatError::internal("a read ended without a result"))??;
        for (start, part) in fetched {
            self.pages.insert(start, part);
        }
        self.held.extend(window.pages.iter().cloned());
        self.current = window;
        self.next = self.planner.next().map(|window| Fetch {
            started: (window.bytes() + self.current.bytes() <= self.window_bytes).then(|| self.start(&window)),
            window,
        });
        Ok(true)
    }

    /// Lets go of the pages that are read to their end. Whoever merges many files waits long for the next window of one, and a page can be as
    /// large as its widest row.
    fn release_read(&mut self) {
        let (end, pages) = (self.current.rows.end, &self.pages);
        self.held.retain(|page| {
            let needed = page.end_row > end;
            if !needed {
                pages.remove(page.bytes.start);
            }
            needed
        });
    }

    /// Lets go of the pages that `next` does not need.
    fn release(&mut self, next: &Window) {
        let same_group = next.row_group == self.current.row_group;
        let pages = &self.pages;
        self.held.retain(|page| {
            let needed = same_group && page.end_row > next.rows.start;
            if !needed {
                pages.remove(page.bytes.start);
            }
            needed
        });
    }

    /// Starts to fetch a window's pages; neighbours come in one range.
    fn start(&self, window: &Window) -> oneshot::Receiver<Fetched> {
        let (sender, receiver) = oneshot::channel();
        let mut here = Vec::new();
        let mut missing: Vec<PageBytes> = Vec::new();
        for page in &window.pages {
            if let Some(cached) = self.pages.cached(page.bytes.start) {
                here.push((page.bytes.start, PagePart::Decompressed(cached)));
                continue;
            }
            match self.tail.get(&page.bytes) {
                Some(bytes) => here.push((page.bytes.start, PagePart::Stored(bytes))),
                None => missing.push(page.clone()),
            }
        }
        if missing.is_empty() {
            // The receiver is at hand: this cannot fail.
            let _ = sender.send(Ok(here));
            return receiver;
        }
        let storage = Arc::clone(&self.storage);
        let path = self.file.path.clone();
        self.env.runtime.spawn(Box::pin(async move {
            let fetched = fetch(storage.as_ref(), &path, &missing).await.map(|mut fetched| {
                fetched.extend(here);
                fetched
            });
            // The receiver is gone when the stream was dropped.
            let _ = sender.send(fetched);
        }));
        receiver
    }
}

/// The bytes of pages, by their place in the file.
async fn fetch(storage: &dyn Storage, path: &str, pages: &[PageBytes]) -> Fetched {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(last) if last.end == page.bytes.start => last.end = page.bytes.end,
            _ => ranges.push(page.bytes.clone()),
        }
    }
    let fetched = storage.read(path, &ranges).await?;
    let mut fetched = ranges.iter().zip(&fetched);
    let mut current = fetched.next();
    let mut found = Vec::with_capacity(pages.len());
    for page in pages {
        if current.is_some_and(|(range, _)| range.end <= page.bytes.start || page.bytes.start < range.start) {
            current = fetched.next();
        }
        match current.and_then(|(range, bytes)| part(bytes, range.start, &page.bytes)) {
            Some(bytes) => found.push((page.bytes.start, PagePart::Stored(bytes))),
            None => {
                let message = format!("bytes {:?} were asked for, fewer came", page.bytes);
                return Err(FormatError::corrupt(path, message));
            }
        }
    }
    Ok(found)
}

/// Bytes of a batch in memory.
fn memory_size(columns: &RecordBatch) -> u64 {
    columns.get_array_memory_size() as u64
}
