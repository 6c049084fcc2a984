//! From pages to columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema_by_columns};
use parquet::file::metadata::ParquetMetaData;

use super::footer::footer_of;
use super::pages::{PagePart, PagedRowGroup, Pages};
use crate::error::FormatError;
use crate::formats::adapt::{absent, adapt};
use crate::formats::caught::caught;
use crate::types::{DataField, arrow_schema};

/// A file whose footer is read, and what is wanted of it.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) path: String,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// Leaf columns to read, in file order.
    pub(super) leaves: Vec<usize>,
    levels: FieldLevels,
    /// For each column wanted, its place among the columns read, if the file has it.
    columns: Vec<Option<usize>>,
    schema: SchemaRef,
}

impl OpenFile {
    /// Finds the columns by name.
    pub(super) fn new(path: &str, metadata: Arc<ParquetMetaData>, fields: &[DataField]) -> Result<Self, FormatError> {
        let descriptor = metadata.file_metadata().schema_descr();
        let roots = descriptor.root_schema().get_fields();
        let found = fields
            .iter()
            .map(|field| roots.iter().position(|root| root.name() == field.name));
        let found: Vec<Option<usize>> = found.collect();
        let mut read: Vec<usize> = found.iter().flatten().copied().collect();
        read.sort_unstable();
        read.dedup();
        let columns = found
            .iter()
            .map(|found| found.and_then(|root| read.binary_search(&root).ok()))
            .collect();
        let leaves = (0..descriptor.num_columns()).filter(|&leaf| read.contains(&descriptor.get_column_root_idx(leaf)));
        let leaves = leaves.collect();
        let mask = ProjectionMask::roots(descriptor, read);
        let levels = caught("Parquet", path, || {
            parquet_to_arrow_field_levels(descriptor, mask, None)
                .map_err(|error| FormatError::corrupt(path, format!("Parquet schema: {error}")))
        })?;
        Ok(Self {
            path: path.to_owned(),
            leaves,
            levels,
            columns,
            schema: Arc::new(arrow_schema(fields)?),
            metadata,
        })
    }

    /// The rows of a row group, and the position in the file of its first one.
    pub(super) fn row_group(&self, row_group: usize) -> Option<(u64, u64)> {
        let groups = self.metadata.row_groups();
        let rows = groups.get(row_group)?.num_rows();
        let before: i64 = groups.iter().take(row_group).map(|group| group.num_rows()).sum();
        Some((u64::try_from(before).ok()?, u64::try_from(rows).ok()?))
    }

    /// Whether the file's column has the very type of the field, so that its statistics compare with the field's values.
    pub(super) fn holds(&self, field: &DataField) -> bool {
        let descriptor = self.metadata.file_metadata().schema_descr();
        let read = caught("Parquet", &self.path, || {
            let mask = ProjectionMask::columns(descriptor, [field.name.as_str()]);
            parquet_to_arrow_schema_by_columns(descriptor, mask, None)
                .map_err(|error| FormatError::corrupt(&self.path, error))
        });
        let wanted = self.schema.field_with_name(&field.name);
        matches!((read, wanted), (Ok(read), Ok(wanted)) if read.fields().iter().any(|field| field.data_type() == wanted.data_type()))
    }

    /// The columns wanted, of the columns read.
    fn wanted(&self, read: &RecordBatch) -> Result<RecordBatch, FormatError> {
        let columns = self.schema.fields().iter().zip(&self.columns).map(|(field, place)| {
            let column = match place.and_then(|place| read.columns().get(place)) {
                Some(column) => adapt(column, field.data_type()),
                None => absent(field, read.num_rows()),
            };
            column.map_err(|error| FormatError::corrupt(&self.path, format!("column {}: {error}", field.name())))
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| FormatError::corrupt(&self.path, error))
    }
}

/// Decodes one row group after the other. Plain CPU work: the pages must be there.
pub(super) struct Decoder {
    file: Arc<OpenFile>,
    pages: Arc<Pages>,
    active: Option<Active>,
}

/// A decoder in the middle of a row group.
struct Active {
    reader: ParquetRecordBatchReader,
    row_group: usize,
    next_row: u64,
    wanted_end: u64,
    batch_rows: u64,
}

impl Decoder {
    pub(super) fn new(file: Arc<OpenFile>, pages: Arc<Pages>) -> Self {
        Self {
            file,
            pages,
            active: None,
        }
    }

    /// The batch that starts at the first of `rows` (of a row group) and has `batch_rows`, or fewer at the end.
    ///
    /// Going on where the last batch ended costs nothing; any other start, or another batch size, decodes from the start of the
    /// pages that have the first row.
    pub(super) fn read(
        &mut self,
        row_group: usize,
        rows: Range<u64>,
        batch_rows: u64,
    ) -> Result<RecordBatch, FormatError> {
        let path = Arc::clone(&self.file);
        caught("Parquet", &path.path, || {
            self.read_unguarded(row_group, rows, batch_rows)
        })
    }

    fn read_unguarded(
        &mut self,
        row_group: usize,
        rows: Range<u64>,
        batch_rows: u64,
    ) -> Result<RecordBatch, FormatError> {
        let wrong = |error: &dyn std::fmt::Display| {
            FormatError::corrupt(&self.file.path, format!("Parquet row group {row_group}: {error}"))
        };
        let mut active = match self.active.take() {
            Some(active)
                if active.row_group == row_group
                    && active.next_row == rows.start
                    && active.wanted_end == rows.end
                    && active.batch_rows == batch_rows =>
            {
                active
            }
            _ => Active {
                reader: self
                    .reader(row_group, &rows, batch_rows)
                    .map_err(|error| wrong(&error))?,
                row_group,
                next_row: rows.start,
                wanted_end: rows.end,
                batch_rows,
            },
        };
        let expected = batch_rows.min(rows.end - rows.start);
        let batch = match active.reader.next() {
            Some(batch) => batch.map_err(|error| wrong(&error))?,
            None => return Err(wrong(&format!("no rows where {expected} were expected"))),
        };
        if batch.num_rows() as u64 != expected {
            return Err(wrong(&format!(
                "{} rows where {expected} were expected",
                batch.num_rows()
            )));
        }
        active.next_row += expected;
        self.active = (active.next_row < rows.end).then_some(active);
        self.file.wanted(&batch)
    }

    fn reader(
        &self,
        row_group: usize,
        rows: &Range<u64>,
        batch_rows: u64,
    ) -> Result<ParquetRecordBatchReader, parquet::errors::ParquetError> {
        let (_, all) = self.file.row_group(row_group).unwrap_or_default();
        let all = usize::try_from(all)?;
        let (start, end) = (usize::try_from(rows.start)?, usize::try_from(rows.end)?);
        let group = PagedRowGroup {
            metadata: Arc::clone(&self.file.metadata),
            row_group,
            rows: all,
            pages: Arc::clone(&self.pages),
        };
        let selection =
            (start > 0 || end < all).then(|| RowSelection::from_consecutive_ranges(std::iter::once(start..end), all));
        ParquetRecordBatchReader::try_new_with_row_groups(
            &self.file.levels,
            &group,
            usize::try_from(batch_rows)?,
            selection,
        )
    }
}

/// Decodes a file that is in memory, as [`scan`](super::scan) does but on this thread: the columns of `fields`, found by name, in
/// batches of `batch_rows`.
///
/// Errors: as those of [`scan`](super::scan), with `memory` for the path.
pub fn decode(
    file: Bytes,
    fields: &[DataField],
    batch_rows: usize,
) -> Result<impl Iterator<Item = Result<RecordBatch, FormatError>> + use<>, FormatError> {
    let path = "memory";
    let footer = footer_of(path, &file)?;
    let open = Arc::new(OpenFile::new(path, footer.metadata, fields)?);
    let pages = Arc::new(Pages::new(file.len() as u64));
    pages.insert(0, PagePart::Stored(file));
    let groups = (0..open.metadata.num_row_groups()).filter_map(|i| Some((i, open.row_group(i)?.1)));
    let groups: Vec<_> = groups.filter(|(_, rows)| *rows > 0).collect();
    let batch_rows = batch_rows.max(1) as u64;
    let starts = groups.into_iter().flat_map(move |(row_group, rows)| {
        let batches = rows.div_ceil(batch_rows);
        (0..batches).map(move |batch| (row_group, batch * batch_rows..rows))
    });
    let mut decoder = Decoder::new(open, pages);
    Ok(starts.map(move |(row_group, rows)| decoder.read(row_group, rows, batch_rows)))
}
