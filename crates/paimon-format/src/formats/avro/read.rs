//! An Avro file as a stream of batches.

use std::sync::Arc;

use apache_avro::Codec;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use futures::{StreamExt, stream};

use super::container::{Block, MARKER, read_block, read_header};
use super::cursor::Cursor;
use super::decode::RowDecoder;
use super::schema::AvroType;
use crate::env::Env;
use crate::error::FormatError;
use crate::formats::adapt::absent;
use crate::formats::fetch::fetch;
use crate::formats::{FileRows, FileScan, RowsStream};
use crate::kv::BatchLimit;
use crate::storage::Storage;
use crate::types::arrow_schema;

/// Bytes fetched at once, at least.
const MIN_FETCH_BYTES: u64 = 64 << 10;

/// The rows of a file, batch by batch, each made into something else on the CPU pool by `finish` (`None`: nothing of it is wanted).
///
/// Nothing is read before the stream is polled. Bytes are fetched by a quarter of `window_bytes`, more only where one block is
/// larger; Avro has no statistics, so a filter does not save any.
///
/// Errors name the file: `NotFound`, `Unavailable`, `Corrupt` (also an unknown codec, and a column of another type).
pub fn scan<T, F>(storage: Arc<dyn Storage>, env: Env, scan: FileScan, finish: F) -> RowsStream<T>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    let reader = Reader {
        storage,
        env,
        fetched: 0,
        decoder: Some(FileDecoder::new(&scan)),
        scan,
        finish: Arc::new(finish),
    };
    let rows = stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next().await?.map(|made| (made, reader)))
    });
    rows.boxed()
}

struct Reader<F> {
    storage: Arc<dyn Storage>,
    env: Env,
    scan: FileScan,
    fetched: u64,
    /// In use by the CPU pool while `None`.
    decoder: Option<FileDecoder>,
    finish: Arc<F>,
}

impl<T, F> Reader<F>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    async fn next(&mut self) -> Result<Option<T>, FormatError> {
        loop {
            let mut decoder = self
                .decoder
                .take()
                .ok_or_else(|| FormatError::internal("a failed read was polled again"))?;
            let finish = Arc::clone(&self.finish);
            let path = self.scan.path.clone();
            let work = move || {
                let step = decoder.step().map_err(|error| FormatError::corrupt(&path, error));
                let step = step.and_then(|step| {
                    Ok(match step {
                        Step::Rows(rows) => Made::Rows(finish(rows)?),
                        Step::NeedsData(bytes) => Made::NeedsData(bytes),
                        Step::End => Made::End,
                    })
                });
                (decoder, step)
            };
            let (decoder, step) = self.env.cpu(work).await?;
            let step = step?;
            let decoder = self.decoder.insert(decoder);
            match step {
                Made::Rows(Some(made)) => return Ok(Some(made)),
                Made::Rows(None) => {}
                Made::End => return Ok(None),
                Made::NeedsData(bytes) => {
                    let window = (self.scan.window_bytes as u64 / 4).max(MIN_FETCH_BYTES).max(bytes);
                    let end = self.scan.file_size.min(self.fetched.saturating_add(window));
                    decoder.push(&fetch(self.storage.as_ref(), &self.scan.path, self.fetched..end).await?);
                    self.fetched = end;
                }
            }
        }
    }
}

enum Made<T> {
    Rows(Option<T>),
    NeedsData(u64),
    End,
}

enum Step {
    Rows(FileRows),
    /// So many bytes at least.
    NeedsData(u64),
    End,
}

/// Decodes a file from its bytes in order. Errors do not name the file.
struct FileDecoder {
    limit: BatchLimit,
    wanted: Vec<crate::types::DataField>,
    /// Bytes that are here and not decoded.
    bytes: Vec<u8>,
    /// Bytes of the file from the start of `bytes`.
    left: u64,
    open: Option<Open>,
}

/// What the header told.
struct Open {
    codec: Codec,
    marker: [u8; MARKER],
    schema: SchemaRef,
    decoder: RowDecoder,
    /// For each column wanted, its place among the decoder's.
    places: Vec<Option<usize>>,
    /// The block being decoded: its rows, where the next one starts, how many are left.
    block: Vec<u8>,
    block_at: usize,
    block_rows: u64,
    /// Bytes of the rows that wait for their batch.
    batch_bytes: usize,
    next_row: u64,
}

impl FileDecoder {
    fn new(scan: &FileScan) -> Self {
        Self {
            limit: scan.batch,
            wanted: scan.fields.clone(),
            bytes: Vec::new(),
            left: scan.file_size,
            open: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn step(&mut self) -> Result<Step, String> {
        let missing = self.left.saturating_sub(self.bytes.len() as u64);
        if self.open.is_none() {
            match read_header(&self.bytes)? {
                Some(header) => {
                    let file = AvroType::parse(&header.schema)?;
                    let schema = arrow_schema(&self.wanted).map_err(|error| error.to_string())?;
                    let (decoder, places) = RowDecoder::new(&file, schema.fields())?;
                    self.open = Some(Open {
                        codec: header.codec,
                        marker: header.marker,
                        schema: Arc::new(schema),
                        decoder,
                        places,
                        block: Vec::new(),
                        block_at: 0,
                        block_rows: 0,
                        batch_bytes: 0,
                        next_row: 0,
                    });
                    self.drop_front(header.length);
                }
                None if missing == 0 => return Err("its header is cut off".to_owned()),
                None => return Ok(Step::NeedsData(1)),
            }
        }
        loop {
            let Some(open) = &mut self.open else {
                return Ok(Step::End);
            };
            if open.decode_rows(self.limit)? {
                return open.batch().map(Step::Rows);
            }
            if self.left == 0 {
                let last = open.decoder.rows() > 0;
                return if last {
                    open.batch().map(Step::Rows)
                } else {
                    Ok(Step::End)
                };
            }
            let Some(Block { rows, start, end }) = read_block(&self.bytes, self.left)? else {
                return Ok(Step::NeedsData(1));
            };
            let Some(compressed) = self.bytes.get(start..end) else {
                return Ok(Step::NeedsData((end + MARKER - self.bytes.len()) as u64));
            };
            let Some(marker) = self.bytes.get(end..end + MARKER) else {
                return Ok(Step::NeedsData((end + MARKER - self.bytes.len()) as u64));
            };
            if marker != open.marker {
                return Err("a block does not end with the file's marker".to_owned());
            }
            let mut block = compressed.to_vec();
            open.codec
                .decompress(&mut block)
                .map_err(|error| format!("a block cannot be decompressed: {error}"))?;
            (open.block, open.block_at, open.block_rows) = (block, 0, rows);
            self.drop_front(end + MARKER);
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
        self.left = self.left.saturating_sub(count as u64);
    }
}

impl Open {
    /// Decodes rows of the block. `true`: a batch is full.
    fn decode_rows(&mut self, limit: BatchLimit) -> Result<bool, String> {
        let mut cursor = Cursor::new(self.block.get(self.block_at..).unwrap_or_default());
        while self.block_rows > 0 {
            let before = cursor.remaining();
            self.decoder
                .row(&mut cursor)
                .map_err(|error| format!("row {}: {error}", self.next_row + self.decoder.rows() as u64))?;
            self.block_rows -= 1;
            self.batch_bytes += before - cursor.remaining();
            self.block_at = self.block.len() - cursor.remaining();
            if self.decoder.rows() >= limit.rows.max(1) || self.batch_bytes >= limit.bytes {
                return Ok(true);
            }
        }
        match cursor.remaining() {
            0 => Ok(false),
            bytes => Err(format!("a block has {bytes} bytes behind its last row")),
        }
    }

    fn batch(&mut self) -> Result<FileRows, String> {
        let rows = self.decoder.rows();
        let found = self.decoder.finish()?;
        self.batch_bytes = 0;
        let columns = self.schema.fields().iter().zip(&self.places).map(|(field, place)| {
            let found = place.and_then(|place| found.get(place)).map(Arc::clone);
            found.map_or_else(|| absent(field, rows), Ok)
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let first_row = self.next_row;
        self.next_row += rows as u64;
        Ok(FileRows {
            first_row,
            columns: columns.map_err(|error| error.to_string())?,
        })
    }
}
