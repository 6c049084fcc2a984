//! A new table's schema.

use std::collections::HashSet;

use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, TypeKind};

use super::table_schema::TableSchema;
use crate::error::{ManifestError, Result};

const PRIMARY_KEY_OPTION: &str = "primary-key";
const PARTITION_OPTION: &str = "partition";
/// Ids from here on belong to system columns.
const SYSTEM_FIELD_IDS: i32 = i32::MAX / 2;
const RESERVED_NAMES: [&str; 5] = ["_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"];
const RESERVED_PREFIX: &str = "_KEY_";

/// Collects what a new table is; [`build`](Self::build) checks it.
///
/// Source: `org.apache.paimon.schema.Schema.Builder`.
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    fields: Vec<DataField>,
    partition_keys: Vec<String>,
    primary_keys: Vec<String>,
    options: Options,
    comment: Option<String>,
}

impl TableSchema {
    /// Starts the schema of a new table.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }
}

impl SchemaBuilder {
    /// Appends a column.
    #[must_use]
    pub fn column(self, name: impl Into<String>, data_type: DataType) -> Self {
        self.field(DataField::new(0, name, data_type))
    }

    /// Appends a column with its comment and default value. Its id, and those inside its type, are given anew.
    #[must_use]
    pub fn field(mut self, field: DataField) -> Self {
        self.fields.push(field);
        self
    }

    /// Names the primary-key columns.
    #[must_use]
    pub fn primary_key<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.primary_keys = names.into_iter().map(Into::into).collect();
        self
    }

    /// Names the partition columns.
    #[must_use]
    pub fn partition_keys<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.partition_keys = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an option. `primary-key` and `partition` name columns, as in SQL without a clause for them.
    #[must_use]
    pub fn option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.set(key, value);
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// The schema of version 0, with field ids given depth first and key columns made NOT NULL.
    ///
    /// Options that concern columns are checked here (`bucket-key`, `sequence.field`); all others belong to who uses them.
    ///
    /// Errors: `Invalid`, naming the column; `Unsupported` for a table without primary key.
    pub fn build(mut self, now_ms: i64) -> Result<TableSchema> {
        take_key_option(&mut self.options, PRIMARY_KEY_OPTION, &mut self.primary_keys)?;
        take_key_option(&mut self.options, PARTITION_OPTION, &mut self.partition_keys)?;
        let mut next_id = 0;
        for field in &mut self.fields {
            assign_ids(field, &mut next_id)?;
            if self.primary_keys.contains(&field.name) {
                field.data_type.nullable = false;
            }
        }
        let schema = TableSchema {
            version: TableSchema::VERSION,
            id: 0,
            fields: self.fields,
            highest_field_id: next_id - 1,
            partition_keys: self.partition_keys,
            primary_keys: self.primary_keys,
            options: self.options,
            comment: self.comment,
            time_millis: now_ms,
        };
        validate(&schema)?;
        Ok(schema)
    }
}

/// `a, b` of an option becomes `["a", "b"]`.
fn take_key_option(options: &mut Options, option: &str, keys: &mut Vec<String>) -> Result<()> {
    let Some(text) = options.remove(option) else {
        return Ok(());
    };
    if !keys.is_empty() {
        return Err(ManifestError::invalid(format!(
            "the option {option} is set although the columns are named already: give only one of them"
        )));
    }
    *keys = text.split(',').map(|name| name.trim().to_string()).collect();
    Ok(())
}

/// A field takes the next id, then the fields inside its type take theirs.
pub(super) fn assign_ids(field: &mut DataField, next_id: &mut i32) -> Result<()> {
    if *next_id >= SYSTEM_FIELD_IDS {
        return Err(ManifestError::invalid(format!(
            "column {}: too many fields",
            field.name
        )));
    }
    field.id = *next_id;
    *next_id += 1;
    assign_nested_ids(&mut field.data_type, next_id)
}

fn assign_nested_ids(data_type: &mut DataType, next_id: &mut i32) -> Result<()> {
    match &mut data_type.kind {
        TypeKind::Array(element) | TypeKind::Multiset(element) => assign_nested_ids(element, next_id),
        TypeKind::Map(key, value) => {
            assign_nested_ids(key, next_id)?;
            assign_nested_ids(value, next_id)
        }
        TypeKind::Row(fields) => fields.iter_mut().try_for_each(|field| assign_ids(field, next_id)),
        _ => Ok(()),
    }
}

/// Every ROW has fields, and no two of the same name.
fn check_rows(path: &str, data_type: &DataType) -> Result<()> {
    match &data_type.kind {
        TypeKind::Array(element) | TypeKind::Multiset(element) => check_rows(path, element),
        TypeKind::Map(key, value) => {
            check_rows(path, key)?;
            check_rows(path, value)
        }
        TypeKind::Row(fields) if fields.is_empty() => Err(ManifestError::invalid(format!(
            "column {path}: a ROW needs at least one field"
        ))),
        TypeKind::Row(fields) => {
            let mut names = HashSet::new();
            fields.iter().try_for_each(|field| {
                let path = format!("{path}.{}", field.name);
                match names.insert(&field.name) {
                    true => check_rows(&path, &field.data_type),
                    false => Err(ManifestError::invalid(format!(
                        "column {path}: two fields have this name"
                    ))),
                }
            })
        }
        _ => Ok(()),
    }
}

/// What every version of a schema must be. Errors: `Invalid`, naming the column; `Unsupported` without a primary key.
pub(super) fn validate(schema: &TableSchema) -> Result<()> {
    if schema.fields.is_empty() {
        return Err(ManifestError::invalid("a table needs at least one column"));
    }
    schema.check_names().map_err(ManifestError::invalid)?;
    for field in &schema.fields {
        if field.name.is_empty() {
            return Err(ManifestError::invalid("a column has an empty name"));
        }
        if RESERVED_NAMES.contains(&field.name.as_str()) || field.name.starts_with(RESERVED_PREFIX) {
            return Err(ManifestError::invalid(format!(
                "the column name {} is reserved",
                field.name
            )));
        }
        check_rows(&field.name, &field.data_type)?;
    }
    for (what, keys) in [
        ("primary key", &schema.primary_keys),
        ("partition key", &schema.partition_keys),
    ] {
        for field in keys.iter().filter_map(|key| schema.field(key)) {
            if !field.data_type.kind.is_flat() {
                return Err(ManifestError::invalid(format!(
                    "the {what} column {} has type {}, but only flat types can be keys",
                    field.name, field.data_type
                )));
            }
        }
    }
    if schema.primary_keys.is_empty() {
        return Err(ManifestError::Unsupported(
            "a table without primary key: name its columns".to_string(),
        ));
    }
    schema.trimmed_primary_key()?;
    schema.bucket_key()?;
    if schema.options.get("bucket-key").is_some() && schema.options.int("bucket")?.unwrap_or(-1) == -1 {
        return Err(ManifestError::invalid(
            "option 'bucket-key': dynamic buckets ('bucket' = '-1') go by the primary key; give a number of buckets, or no 'bucket-key'",
        ));
    }
    schema.kv_schema()?;
    if schema.cross_partition_update() && schema.options.int("bucket")?.unwrap_or(-1) != -1 {
        return Err(ManifestError::invalid(format!(
            "option 'bucket': the primary key ({}) has not all partition columns ({}), so a key may move between partitions: that takes dynamic buckets \
             ('bucket' = '-1')",
            schema.primary_keys.join(", "),
            schema.partition_keys.join(", ")
        )));
    }
    Ok(())
}
