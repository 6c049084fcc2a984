//! What a record says.

use std::fmt::Debug;

use paimon::format::types::{DataType, RowKind};

use crate::error::RecordError;
use crate::json::{Json, parse};
use crate::value::SourceType;

/// One column of a row as the source wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The column's name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a Json<'a>,
    /// What the source says about the column.
    pub source: &'a SourceType,
}

/// A row as the source wrote it. Of a name that comes twice the last one counts; columns that are not there are null.
pub type Image<'a> = Vec<Field<'a>>;

/// A change of one row.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// A row of this kind, alone.
    Row(RowKind, Image<'a>),
    /// A row before and after.
    Update {
        /// Not every source knows it.
        before: Option<Image<'a>>,
        /// The new row.
        after: Image<'a>,
    },
}

/// What else a record turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Changes of rows; all were handed over.
    Changes,
    /// No change of rows: a tombstone, the bounds of a transaction, a statement about something else.
    Nothing,
    /// The table has these columns now, with their types as far as they are known.
    Columns(Vec<(String, DataType)>),
}

/// Turns the records of one stream, in order, into changes of rows.
pub trait ChangeDecoder: Debug + Send {
    /// Reads one record, and hands over what it changes, in order.
    ///
    /// Errors: the record is not what the format demands, or what `changes` said. Some changes may have been handed over before:
    /// who collects them must drop them. The decoder can go on with the next record.
    fn decode(
        &mut self,
        record: &str,
        changes: &mut dyn FnMut(Change<'_>) -> Result<(), RecordError>,
    ) -> Result<Decoded, RecordError>;
}

/// The columns of an object, all of one source type. Errors: what was found instead of an object.
pub(super) fn image<'a>(what: &str, json: &'a Json<'a>, source: &'a SourceType) -> Result<Image<'a>, RecordError> {
    let fields = object(what, json)?.iter();
    Ok(fields.map(|(name, value)| Field { name, value, source }).collect())
}

/// A record that is an object; `None`: it is `null`. Errors: what was found instead.
pub(super) fn message(record: &str) -> Result<Option<Json<'_>>, RecordError> {
    let message = parse(record)?;
    if message == Json::Null {
        return Ok(None);
    }
    object("message", &message)?;
    Ok(Some(message))
}

/// The members of an object. Errors: what was found instead.
pub(super) fn object<'a, 'j>(
    what: &str,
    json: &'a Json<'j>,
) -> Result<&'a [(std::borrow::Cow<'j, str>, Json<'j>)], RecordError> {
    match json {
        Json::Object(members) => Ok(members),
        other => Err(RecordError::new(format!(
            "`{what}`: expected an object, found {}",
            other.what()
        ))),
    }
}

/// A row before an update: the new row with the old values of the columns that changed.
pub(super) fn before<'a>(after: &Image<'a>, old: Image<'a>) -> Image<'a> {
    let mut before: Image<'a> = after.clone();
    for changed in old {
        match before.iter_mut().find(|field| field.name == changed.name) {
            Some(field) => field.value = changed.value,
            None => before.push(changed),
        }
    }
    before
}

/// The text of a member that must be there.
pub(super) fn text_of<'a>(record: &'a Json<'a>, member: &str) -> Result<&'a str, RecordError> {
    match record.get(member) {
        Some(Json::String(text)) => Ok(text),
        Some(other) => Err(RecordError::new(format!(
            "`{member}`: expected a text, found {}",
            other.what()
        ))),
        None => Err(RecordError::new(format!("there is no `{member}`"))),
    }
}
