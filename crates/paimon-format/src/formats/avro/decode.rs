//! Avro records into columns.

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use super::column::Column;
use super::cursor::Cursor;
use super::schema::AvroType;

/// Decodes records into columns.
pub(super) struct RowDecoder {
    /// One a field of the file's record.
    fields: Vec<FieldDecoder>,
    columns: Vec<Column>,
    rows: usize,
}

enum FieldDecoder {
    Column(usize),
    Skip(AvroType),
}

impl RowDecoder {
    /// For the wanted columns, found by name among the file's. Also tells which of them the file has. The error says what is wrong.
    pub(super) fn new(file: &AvroType, wanted: &[FieldRef]) -> Result<(Self, Vec<Option<usize>>), String> {
        let AvroType::Record(file) = file else {
            return Err("its schema is no record".to_owned());
        };
        let mut columns = Vec::new();
        let mut places = vec![None; wanted.len()];
        let fields = file.iter().map(
            |(name, avro)| match wanted.iter().position(|field| field.name() == name) {
                Some(i) => {
                    let field = wanted.get(i).ok_or("no such column")?;
                    columns
                        .push(Column::new(avro, field.data_type()).map_err(|error| format!("column {name}: {error}"))?);
                    if let Some(place) = places.get_mut(i) {
                        *place = Some(columns.len() - 1);
                    }
                    Ok(FieldDecoder::Column(columns.len() - 1))
                }
                None => Ok(FieldDecoder::Skip(avro.clone())),
            },
        );
        let fields = fields.collect::<Result<_, String>>()?;
        let decoder = Self {
            fields,
            columns,
            rows: 0,
        };
        Ok((decoder, places))
    }

    /// Appends one record.
    pub(super) fn row(&mut self, cursor: &mut Cursor<'_>) -> Result<(), String> {
        for field in &self.fields {
            match field {
                FieldDecoder::Column(i) => match self.columns.get_mut(*i) {
                    Some(column) => column.value(cursor)?,
                    None => return Err("no such column".to_owned()),
                },
                FieldDecoder::Skip(avro) => cursor.skip(avro)?,
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Records since the last [`finish`](Self::finish).
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The columns found, in the file's order, of the types wanted; the next record starts new ones.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>, String> {
        self.rows = 0;
        self.columns.iter_mut().map(Column::finish).collect()
    }
}
