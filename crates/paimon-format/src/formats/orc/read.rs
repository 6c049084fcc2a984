//! An ORC file as a stream of batches.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType as ArrowType, SchemaRef, TimeUnit};
use bytes::{Buf, Bytes};
use futures::{StreamExt, stream};
use orc_rust::projection::ProjectionMask;
use orc_rust::reader::ChunkReader;
use orc_rust::{ArrowReader, ArrowReaderBuilder, TimestampPrecision};

use crate::env::Env;
use crate::error::FormatError;
use crate::formats::adapt::{absent, adapt_exact};
use crate::formats::caught::caught;
use crate::formats::fetch::{TAIL_BYTES, fetch, part};
use crate::formats::{FileRows, FileScan, RowsStream};
use crate::storage::Storage;
use crate::types::{TypeKind, arrow_schema};

/// The rows of a file, batch by batch, each made into something else on the CPU pool by `finish` (`None`: nothing of it is wanted).
///
/// Nothing is read before the stream is polled. One stripe is held at a time, whole, whatever `window_bytes` says; batches are limited
/// by rows only. A filter does not save any reading.
///
/// Errors name the file: `NotFound`, `Unavailable`, `Corrupt` (also the column).
pub fn scan<T, F>(storage: Arc<dyn Storage>, env: Env, scan: FileScan, finish: F) -> RowsStream<T>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    let reader = Reader {
        parts: Parts {
            file_size: scan.file_size,
            held: Vec::new(),
            missed: Arc::default(),
        },
        storage,
        env,
        scan,
        finish: Arc::new(finish),
        stripes: None,
        current: None,
        next_row: 0,
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
    finish: Arc<F>,
    /// The end of the file.
    parts: Parts,
    /// Stripes not begun, the next one last.
    stripes: Option<Vec<Range<u64>>>,
    current: Option<Stripe>,
    next_row: u64,
}

/// A stripe being decoded.
struct Stripe {
    /// One for the columns with nanoseconds, one for the others, which may have years that nanoseconds do not reach. Their batches
    /// have the same rows.
    readers: Vec<ArrowReader<Parts>>,
    schema: SchemaRef,
    /// Which columns are CHAR: ORC pads them with blanks, which Java takes off again.
    padded: Vec<bool>,
}

impl Stripe {
    /// The next rows of all columns.
    fn next(&mut self, path: &str) -> Result<Option<Vec<RecordBatch>>, FormatError> {
        let batches = self.readers.iter_mut().filter_map(Iterator::next);
        let batches = batches
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| FormatError::corrupt(path, error))?;
        Ok((!batches.is_empty()).then_some(batches))
    }
}

impl<T, F> Reader<F>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    async fn next(&mut self) -> Result<Option<T>, FormatError> {
        loop {
            if self.current.is_none() && !self.next_stripe().await? {
                return Ok(None);
            }
            let Some(mut stripe) = self.current.take() else {
                continue;
            };
            let (path, finish, first_row) = (self.scan.path.clone(), Arc::clone(&self.finish), self.next_row);
            let work = move || {
                let made = caught("ORC", &path, || {
                    let Some(batches) = stripe.next(&path)? else {
                        return Ok(None);
                    };
                    let columns = wanted(&path, &stripe.schema, &stripe.padded, &batches)?;
                    let rows = columns.num_rows() as u64;
                    Ok(Some((rows, finish(FileRows { first_row, columns })?)))
                });
                (stripe, made)
            };
            let (stripe, made) = self.env.cpu(work).await?;
            if let Some((rows, made)) = made? {
                self.current = Some(stripe);
                self.next_row += rows;
                if let Some(made) = made {
                    return Ok(Some(made));
                }
            }
        }
    }

    /// Opens the next stripe. `false`: there is none.
    async fn next_stripe(&mut self) -> Result<bool, FormatError> {
        if self.stripes.is_none() {
            let start = self.scan.file_size.saturating_sub(TAIL_BYTES);
            let tail = fetch(self.storage.as_ref(), &self.scan.path, start..self.scan.file_size).await?;
            self.parts.held.push((start, tail));
            let mut stripes = Vec::new();
            let builder = self.builder(self.parts.clone()).await?;
            for stripe in builder.file_metadata().stripe_metadatas() {
                let lengths = [stripe.index_length(), stripe.data_length(), stripe.footer_length()];
                let end = lengths
                    .iter()
                    .try_fold(stripe.offset(), |end, &length| end.checked_add(length));
                match end {
                    Some(end) if end <= self.scan.file_size => stripes.push(stripe.offset()..end),
                    _ => return Err(FormatError::corrupt(&self.scan.path, "a stripe is not within the file")),
                }
            }
            stripes.reverse();
            self.stripes = Some(stripes);
        }
        let Some(stripe) = self.stripes.as_mut().and_then(Vec::pop) else {
            return Ok(false);
        };
        let mut parts = self.parts.clone();
        if !parts.has(&stripe) {
            let bytes = fetch(self.storage.as_ref(), &self.scan.path, stripe.clone()).await?;
            parts.held.push((stripe.start, bytes));
        }
        let schema = Arc::new(arrow_schema(&self.scan.fields)?);
        let place = usize::try_from(stripe.start).map_err(|error| FormatError::corrupt(&self.scan.path, error))?;
        let mut readers = Vec::new();
        for (fine, precision) in [
            (false, TimestampPrecision::Microsecond),
            (true, TimestampPrecision::Nanosecond),
        ] {
            let fields = schema
                .fields()
                .iter()
                .filter(|field| has_nanoseconds(field.data_type()) == fine);
            let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let builder = self.builder(parts.clone()).await?;
            let rows = caught("ORC", &self.scan.path, || {
                let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &names);
                Ok(builder
                    .with_projection(mask)
                    .with_batch_size(self.scan.batch.rows.max(1))
                    .with_timestamp_precision(precision)
                    .with_file_byte_range(place..place + 1)
                    .build())
            })?;
            readers.push(rows);
        }
        let padded = self
            .scan
            .fields
            .iter()
            .map(|field| matches!(field.data_type.kind, TypeKind::Char(_)))
            .collect();
        self.current = Some(Stripe {
            readers,
            schema,
            padded,
        });
        Ok(true)
    }

    /// A reader of the file's metadata, with more of the file's end when the footer is long.
    async fn builder(&mut self, mut parts: Parts) -> Result<ArrowReaderBuilder<Parts>, FormatError> {
        loop {
            let opened = caught("ORC", &self.scan.path, || {
                ArrowReaderBuilder::try_new(parts.clone()).map_err(|error| FormatError::corrupt(&self.scan.path, error))
            });
            let missed = parts.missed.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (opened, missed) {
                (Ok(builder), _) => return Ok(builder),
                (Err(_), Some(range)) if !parts.has(&range) => {
                    let bytes = fetch(self.storage.as_ref(), &self.scan.path, range.clone()).await?;
                    parts.held.push((range.start, bytes.clone()));
                    self.parts.held.push((range.start, bytes));
                }
                (Err(error), _) => return Err(error),
            }
        }
    }
}

/// The columns wanted, of the columns read.
fn wanted(path: &str, schema: &SchemaRef, padded: &[bool], read: &[RecordBatch]) -> Result<RecordBatch, FormatError> {
    let rows = read.first().map_or(0, RecordBatch::num_rows);
    let columns = schema.fields().iter().zip(padded).map(|(field, &padded)| {
        let column = match read.iter().find_map(|batch| batch.column_by_name(field.name())) {
            Some(column) if padded => adapt_exact(column, field.data_type()).map(|column| without_padding(&column)),
            Some(column) => adapt_exact(column, field.data_type()),
            None => absent(field, rows),
        };
        column.map_err(|error| FormatError::corrupt(path, format!("column {}: {error}", field.name())))
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| FormatError::corrupt(path, error))
}

fn without_padding(column: &ArrayRef) -> ArrayRef {
    match column.as_string_opt::<i32>() {
        Some(text) => Arc::new(
            text.iter()
                .map(|text| text.map(|text| text.trim_end_matches(' ')))
                .collect::<StringArray>(),
        ),
        None => Arc::clone(column),
    }
}

fn has_nanoseconds(of: &ArrowType) -> bool {
    match of {
        ArrowType::Timestamp(unit, _) => *unit == TimeUnit::Nanosecond,
        ArrowType::List(element) => has_nanoseconds(element.data_type()),
        ArrowType::Map(entries, _) => has_nanoseconds(entries.data_type()),
        ArrowType::Struct(fields) => fields.iter().any(|field| has_nanoseconds(field.data_type())),
        _ => false,
    }
}

/// Parts of a file that were fetched. What is asked for beyond them is noted.
#[derive(Clone)]
struct Parts {
    file_size: u64,
    held: Vec<(u64, Bytes)>,
    missed: Arc<Mutex<Option<Range<u64>>>>,
}

impl Parts {
    fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        self.held.iter().find_map(|(start, bytes)| part(bytes, *start, range))
    }

    fn has(&self, range: &Range<u64>) -> bool {
        self.get(range).is_some()
    }
}

impl ChunkReader for Parts {
    type T = bytes::buf::Reader<Bytes>;

    fn len(&self) -> u64 {
        self.file_size
    }

    fn get_read(&self, offset_from_start: u64) -> io::Result<Self::T> {
        Ok(self
            .get_bytes(offset_from_start, self.file_size.saturating_sub(offset_from_start))?
            .reader())
    }

    fn get_bytes(&self, offset_from_start: u64, length: u64) -> io::Result<Bytes> {
        let end = offset_from_start
            .checked_add(length)
            .filter(|&end| end <= self.file_size);
        let Some(end) = end else {
            return Err(io::Error::other(format!(
                "{length} bytes at {offset_from_start} of a file of {}",
                self.file_size
            )));
        };
        let range = offset_from_start..end;
        self.get(&range).ok_or_else(|| {
            *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = Some(range);
            io::Error::other("not fetched")
        })
    }
}
