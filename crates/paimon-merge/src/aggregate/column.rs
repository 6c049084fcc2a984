//! The column that an aggregate function is for.

use arrow_schema::{DataType as ArrowType, Field};
use paimon_format::options::{Options, parse_bool};
use paimon_format::types::{DataField, DataType, TypeKind, arrow_field};

use crate::MergeError;

/// A column with the options `fields.<column>.*` of its aggregate function.
#[derive(Clone, Copy, Debug)]
pub struct AggregatedColumn<'a> {
    /// The column.
    pub field: &'a DataField,
    /// All options of the table.
    pub options: &'a Options,
    /// The name that the function was asked for by.
    pub function: &'a str,
}

impl<'a> AggregatedColumn<'a> {
    /// The text of `fields.<column>.<suffix>`.
    pub fn option(&self, suffix: &str) -> Option<&'a str> {
        self.options.get(&self.key(suffix))
    }

    /// `fields.<column>.<suffix>` as `true` or `false`; `false` when it is not set.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn flag(&self, suffix: &str) -> Result<bool, MergeError> {
        self.option(suffix).map_or(Ok(false), |text| {
            parse_bool(text).map_err(|expected| self.illegal(suffix, text, &expected))
        })
    }

    /// `fields.<column>.<suffix>` as names between commas; empty when it is not set.
    pub fn names(&self, suffix: &str) -> Vec<&'a str> {
        let text = self.option(suffix).unwrap_or_default();
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
    }

    /// The full key of an option of this column.
    pub fn key(&self, suffix: &str) -> String {
        format!("fields.{}.{suffix}", self.field.name)
    }

    /// An option with a value that is none.
    pub fn illegal(&self, suffix: &str, value: &str, expected: &str) -> MergeError {
        MergeError::Invalid(format!(
            "option '{}' = '{value}': expected {expected}",
            self.key(suffix)
        ))
    }

    /// The function is not for columns of this type.
    pub fn wrong_type(&self, expected: &str) -> MergeError {
        MergeError::Invalid(format!(
            "column {}: aggregate function {} is for {expected}, not for {}",
            self.field.name, self.function, self.field.data_type.kind
        ))
    }

    /// The names of the error cases of this column's values.
    pub(super) fn site(&self) -> Result<Site, MergeError> {
        Ok(Site {
            column: self.field.name.clone(),
            function: self.function.to_owned(),
            data_type: self.field.data_type.kind.to_string(),
            field: DataField {
                data_type: DataType::nullable(self.field.data_type.kind.clone()),
                ..self.field.clone()
            },
            arrow: arrow_field(self.field)?.data_type().clone(),
        })
    }

    /// The fields of the rows that the column's arrays hold.
    ///
    /// Errors: `Invalid` for a column of another type.
    pub(super) fn rows_of_array(&self) -> Result<&'a [DataField], MergeError> {
        match &self.field.data_type.kind {
            TypeKind::Array(element) => match &element.kind {
                TypeKind::Row(fields) => Ok(fields),
                _ => Err(self.wrong_type("ARRAY<ROW>")),
            },
            _ => Err(self.wrong_type("ARRAY<ROW>")),
        }
    }

    /// The positions of fields that an option names.
    ///
    /// Errors: `Invalid`, naming the option and the field.
    pub(super) fn positions(&self, suffix: &str, fields: &[DataField]) -> Result<Vec<usize>, MergeError> {
        let position = |name: &str| {
            fields.iter().position(|field| field.name == name).ok_or_else(|| {
                let available: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                MergeError::Invalid(format!(
                    "option '{}': there is no field {name} in the rows of column {}; available are: {}",
                    self.key(suffix),
                    self.field.name,
                    available.join(", ")
                ))
            })
        };
        self.names(suffix).into_iter().map(position).collect()
    }
}

/// What a function says about itself in errors, and the type of what it makes.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) column: String,
    pub(super) function: String,
    data_type: String,
    /// The column, nullable.
    pub(super) field: DataField,
    pub(super) arrow: ArrowType,
}

impl Site {
    pub(super) fn overflow(&self) -> MergeError {
        MergeError::Overflow {
            column: self.column.clone(),
            function: self.function.clone(),
            data_type: self.data_type.clone(),
        }
    }

    pub(super) fn unretractable(&self) -> MergeError {
        MergeError::Unretractable {
            column: self.column.clone(),
            function: self.function.clone(),
        }
    }

    pub(super) fn value(&self, reason: impl Into<String>) -> MergeError {
        MergeError::Value {
            column: self.column.clone(),
            reason: reason.into(),
        }
    }

    /// An array of another type than the column's.
    pub(super) fn wrong_array(&self, found: &ArrowType) -> MergeError {
        let expected = Field::new(&self.column, self.arrow.clone(), true);
        MergeError::internal(format!("values of {expected:?} as {found}"))
    }
}
