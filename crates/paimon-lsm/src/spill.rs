//! Sorted records on local disk: what does not fit into memory for a while.
//!
//! A file is an Arrow IPC stream, zstd level 1: the columns of a [`KvBatch`], then `_LEVEL` (Int32). It lives as long as its
//! [`SpillFile`] and belongs to this process.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, stream};
use paimon_format::FormatError;
use paimon_format::env::{Env, Reservation};
use paimon_format::kv::{KeyCodec, KvBatch, KvSchemaRef, KvStream, RowLevels};
use paimon_format::storage::StorageError;

const ZSTD_LEVEL: i32 = 1;

/// Writes one file of sorted records. Dropped before [`finish`](Self::finish), it leaves no file.
pub(crate) struct SpillWriter {
    env: Env,
    /// Away while a call writes; a call that failed or was dropped leaves nothing to go on with.
    output: Option<Output>,
}

/// A finished file. Deleted on drop; open readers keep it.
#[derive(Debug)]
pub(crate) struct SpillFile {
    path: PathBuf,
    rows: u64,
    bytes: u64,
    /// Given back to the disk budget on drop.
    disk: Vec<Reservation>,
}

impl SpillWriter {
    /// Opens a new file in `env.temp` for records of this schema.
    ///
    /// Errors: `Unavailable`, naming the file.
    pub(crate) async fn create(env: &Env, schema: &KvSchemaRef) -> Result<Self, FormatError> {
        let path = env.temp.join(format!("paimon-spill-{}.arrow", env.ids.uuid()));
        let schema = with_level(&schema.arrow);
        let output = env.blocking(move || Output::create(path, schema)).await??;
        Ok(Self {
            env: env.clone(),
            output: Some(output),
        })
    }

    /// Appends records.
    ///
    /// Errors: `Unavailable`, naming the file; `Invalid` when the disk budget is used up. The writer is spent then.
    pub(crate) async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        let mut output = self.take()?;
        let levels: Int32Array = (0..batch.len()).map(|row| Some(batch.levels.get(row))).collect();
        let mut columns = batch.columns.columns().to_vec();
        columns.push(Arc::new(levels));
        let disk = self.env.disk.clone();
        let output = self
            .env
            .blocking(move || {
                output.write(columns)?;
                let more = output.bytes().saturating_sub(output.reserved());
                let reservation = disk.try_reserve(more).ok_or_else(|| {
                    FormatError::invalid(format!(
                        "the disk budget of {} bytes for temporary files is used up",
                        disk.total()
                    ))
                })?;
                output.file.disk.push(reservation);
                Ok::<_, FormatError>(output)
            })
            .await??;
        self.output = Some(output);
        Ok(())
    }

    /// Ends the file.
    ///
    /// Errors: `Unavailable`, naming the file.
    pub(crate) async fn finish(mut self) -> Result<SpillFile, FormatError> {
        let output = self.take()?;
        self.env.blocking(move || output.finish()).await?
    }

    fn take(&mut self) -> Result<Output, FormatError> {
        self.output
            .take()
            .ok_or_else(|| FormatError::internal("a spill file is used after it failed"))
    }
}

impl SpillFile {
    /// Size on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Records.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads it from the start: the batches that were written. Nothing is opened before the stream is polled.
    ///
    /// Errors (in the stream): `Unavailable` or `Corrupt`, naming the file.
    pub(crate) fn open(self: Arc<Self>, env: &Env, schema: &KvSchemaRef, codec: &KeyCodec) -> KvStream {
        enum State {
            Closed,
            Open(Box<StreamReader<BufReader<File>>>),
        }
        let (env, schema, codec) = (env.clone(), Arc::clone(schema), codec.clone());
        stream::try_unfold(State::Closed, move |state| {
            let (file, schema, codec) = (Arc::clone(&self), Arc::clone(&schema), codec.clone());
            let env = env.clone();
            async move {
                env.blocking(move || {
                    let mut reader = match state {
                        State::Open(reader) => reader,
                        State::Closed => {
                            let input = File::open(&file.path).map_err(|error| failed(&file.path, &error))?;
                            let reader = StreamReader::try_new(BufReader::new(input), None);
                            Box::new(reader.map_err(|error| corrupt(&file.path, &error))?)
                        }
                    };
                    match reader.next() {
                        None => Ok(None),
                        Some(batch) => {
                            let batch = batch.map_err(|error| corrupt(&file.path, &error))?;
                            Ok(Some((without_level(&schema, &batch, &codec)?, State::Open(reader))))
                        }
                    }
                })
                .await?
            }
        })
        .boxed()
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a temporary file stays behind");
        }
    }
}

/// The open file; all its calls block.
struct Output {
    file: SpillFile,
    schema: SchemaRef,
    writer: StreamWriter<Counted<BufWriter<File>>>,
}

impl Output {
    fn create(path: PathBuf, schema: SchemaRef) -> Result<Self, FormatError> {
        let output = File::create_new(&path).map_err(|error| failed(&path, &error))?;
        let file = SpillFile {
            path,
            rows: 0,
            bytes: 0,
            disk: Vec::new(),
        };
        let counted = Counted {
            inner: BufWriter::new(output),
            bytes: 0,
        };
        let writer = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| options.try_with_compression_level(Some(ZSTD_LEVEL)))
            .and_then(|options| StreamWriter::try_new_with_options(counted, &schema, options))
            .map_err(|error| failed(&file.path, &error))?;
        Ok(Self { file, schema, writer })
    }

    fn write(&mut self, columns: Vec<arrow_array::ArrayRef>) -> Result<(), FormatError> {
        let written = RecordBatch::try_new(Arc::clone(&self.schema), columns).and_then(|batch| {
            self.writer.write(&batch)?;
            Ok(batch.num_rows())
        });
        self.file.rows += written.map_err(|error| failed(&self.file.path, &error))? as u64;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.writer.get_ref().bytes
    }

    fn reserved(&self) -> u64 {
        self.file.disk.iter().map(Reservation::bytes).sum()
    }

    fn finish(self) -> Result<SpillFile, FormatError> {
        let Self {
            mut file, mut writer, ..
        } = self;
        writer.finish().map_err(|error| failed(&file.path, &error))?;
        let mut counted = writer.into_inner().map_err(|error| failed(&file.path, &error))?;
        counted.flush().map_err(|error| failed(&file.path, &error))?;
        file.bytes = counted.bytes;
        Ok(file)
    }
}

/// Counts what passes.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn with_level(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<_> = schema.fields().iter().map(Arc::clone).collect();
    fields.push(Arc::new(Field::new("_LEVEL", DataType::Int32, false)));
    Arc::new(Schema::new(fields))
}

fn without_level(schema: &KvSchemaRef, batch: &RecordBatch, codec: &KeyCodec) -> Result<KvBatch, FormatError> {
    let wrong = |error: &ArrowError| FormatError::internal(format!("a spilled batch: {error}"));
    let Some((levels, columns)) = batch.columns().split_last() else {
        return Err(FormatError::internal("a spilled batch without columns"));
    };
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns.to_vec()).map_err(|error| wrong(&error))?;
    let levels = levels.as_primitive::<Int32Type>().values();
    let levels = match levels.first() {
        Some(&first) if levels.iter().all(|&level| level == first) => RowLevels::All(first),
        _ => RowLevels::Each(Arc::from(&levels[..])),
    };
    KvBatch::new(schema, columns, codec, levels)
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> FormatError {
    FormatError::Storage(StorageError::Unavailable {
        path: path.display().to_string(),
        message: error.to_string(),
    })
}

fn corrupt(path: &Path, error: &dyn std::fmt::Display) -> FormatError {
    FormatError::corrupt(path.display().to_string(), error)
}
