//! Changes of a schema.

use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType};

use super::builder::{assign_ids, validate};
use super::table_schema::TableSchema;
use crate::error::{ManifestError, Result};

const ADD_COLUMN_BEFORE_PARTITION: &str = "add-column-before-partition";
/// Options whose values are names of columns.
const NAME_COLUMNS: [&str; 6] = [
    "bucket-key",
    "changelog-producer.row-deduplicate-ignore-fields",
    "partial-update.remove-record-on-sequence-group",
    "record-level.time-field",
    "rowkind.field",
    "sequence.field",
];

/// One change of a table's schema.
///
/// Source: `org.apache.paimon.schema.SchemaChange`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    /// A new column: the last one, or with `add-column-before-partition` the one before the first partition column. Rows written
    /// before have null in it.
    AddColumn {
        /// Its name.
        name: String,
        /// Its type, which must be nullable. Ids inside of it are given anew.
        data_type: DataType,
        /// Its comment.
        comment: Option<String>,
    },
    /// Another type for a column, which stays nullable or NOT NULL as it is. Files keep their values, which are cast as they are read.
    UpdateColumnType {
        /// The column.
        name: String,
        /// The new type.
        data_type: DataType,
    },
    /// Another name for a column, in the primary key and in options too. Its id stays, so files are read as before.
    RenameColumn {
        /// The column.
        name: String,
        /// Its new name.
        to: String,
    },
    /// A column goes. Files keep its values, which nobody reads any more: a later column of its name is a new one.
    DropColumn {
        /// The column.
        name: String,
    },
    /// A table option. Whether it may change, or has this value, is for its users to say.
    SetOption {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// A table option gets its default back. Whether it may is for its users to say.
    RemoveOption {
        /// Its key.
        key: String,
    },
}

impl TableSchema {
    /// The next version: this one with the changes, in order.
    ///
    /// Errors: `Invalid` naming the column: it exists or does not, has a reserved name, must not be null, or is part of a key.
    ///
    /// Source: `org.apache.paimon.schema.SchemaManager#generateTableSchema`.
    pub fn with_changes(&self, changes: &[SchemaChange], now_ms: i64) -> Result<Self> {
        let mut next = Self {
            version: Self::VERSION,
            id: self.id + 1,
            time_millis: now_ms,
            ..self.clone()
        };
        for change in changes {
            match change {
                SchemaChange::AddColumn {
                    name,
                    data_type,
                    comment,
                } => next.add_column(DataField {
                    description: comment.clone(),
                    ..DataField::new(0, name, data_type.clone())
                })?,
                SchemaChange::UpdateColumnType { name, data_type } => next.update_type(name, data_type)?,
                SchemaChange::RenameColumn { name, to } => next.rename_column(name, to)?,
                SchemaChange::DropColumn { name } => next.drop_column(name)?,
                SchemaChange::SetOption { key, value } => next.options.set(key, value),
                SchemaChange::RemoveOption { key } => {
                    next.options.remove(key);
                }
            }
        }
        validate(&next)?;
        Ok(next)
    }

    fn add_column(&mut self, mut field: DataField) -> Result<()> {
        if self.field(&field.name).is_some() {
            return Err(ManifestError::invalid(format!(
                "there is a column {} already",
                field.name
            )));
        }
        if !field.data_type.nullable {
            return Err(ManifestError::invalid(format!(
                "column {} cannot be added as NOT NULL: the rows that are there have no value for it",
                field.name
            )));
        }
        let mut next_id = self.highest_field_id.saturating_add(1);
        assign_ids(&mut field, &mut next_id)?;
        self.highest_field_id = next_id - 1;
        let before_partition = self.options.bool(ADD_COLUMN_BEFORE_PARTITION)?.unwrap_or(false);
        let partition = self
            .fields
            .iter()
            .position(|field| self.partition_keys.contains(&field.name));
        let position = partition.filter(|_| before_partition).unwrap_or(self.fields.len());
        self.fields.insert(position, field);
        Ok(())
    }

    fn update_type(&mut self, name: &str, data_type: &DataType) -> Result<()> {
        if self.is_key(name) {
            return Err(ManifestError::invalid(format!(
                "the type of column {name} cannot change: it is part of a key"
            )));
        }
        let field = self.field_mut(name)?;
        let to = DataField {
            data_type: DataType {
                nullable: field.data_type.nullable,
                ..data_type.clone()
            },
            ..field.clone()
        };
        // What could not be read any more is refused.
        paimon_format::types::Cast::new(&field.data_type, &to)?;
        *field = to;
        Ok(())
    }

    fn rename_column(&mut self, name: &str, to: &str) -> Result<()> {
        if self.partition_keys.iter().any(|key| key == name) {
            return Err(ManifestError::invalid(format!(
                "column {name} cannot be renamed: directories of partitions bear its name"
            )));
        }
        if self.field(to).is_some() {
            return Err(ManifestError::invalid(format!("there is a column {to} already")));
        }
        to.clone_into(&mut self.field_mut(name)?.name);
        for key in self.primary_keys.iter_mut().filter(|key| *key == name) {
            to.clone_into(key);
        }
        self.options = renamed_in_options(&self.options, name, to);
        Ok(())
    }

    fn drop_column(&mut self, name: &str) -> Result<()> {
        if self.is_key(name) {
            return Err(ManifestError::invalid(format!(
                "column {name} cannot be dropped: it is part of a key"
            )));
        }
        self.field_mut(name)?;
        self.fields.retain(|field| field.name != name);
        Ok(())
    }

    fn is_key(&self, name: &str) -> bool {
        let mut keys = self.primary_keys.iter().chain(&self.partition_keys);
        keys.any(|key| key == name)
    }

    fn field_mut(&mut self, name: &str) -> Result<&mut DataField> {
        let field = self.fields.iter_mut().find(|field| field.name == name);
        field.ok_or_else(|| ManifestError::invalid(format!("there is no column {name}")))
    }
}

/// The options after a column has got another name.
///
/// Source: `org.apache.paimon.schema.SchemaManager#applyRenameColumnsToOptions`, which knows fewer options.
fn renamed_in_options(options: &Options, name: &str, to: &str) -> Options {
    let in_list = |list: &str| {
        let renamed = list.split(',').map(|item| match item.trim() == name {
            true => to,
            false => item,
        });
        renamed.collect::<Vec<_>>().join(",")
    };
    let renamed = |(key, value): (&str, &str)| {
        // fields.<column>.<setting>, or fields.<columns>.sequence-group = <columns>
        let setting = key.strip_prefix("fields.").and_then(|key| key.rsplit_once('.'));
        match setting {
            Some((columns, setting)) => (
                format!("fields.{}.{setting}", in_list(columns)),
                match setting {
                    "sequence-group" => in_list(value),
                    _ => value.to_owned(),
                },
            ),
            None if NAME_COLUMNS.contains(&key) => (key.to_owned(), in_list(value)),
            None => (key.to_owned(), value.to_owned()),
        }
    };
    options.iter().map(renamed).collect()
}
