//! `paimon create`.

use clap::Args;
use paimon::format::types::{DataField, DataType};
use paimon::{SchemaBuilder, Table, TableSchema};
use serde_json::json;

use crate::args::TableArgs;
use crate::error::CliError;
use crate::session::Session;

/// Make a new table
#[derive(Debug, Args)]
#[command(
    after_help = "Example: paimon create ./wh/shop.db/orders --column 'id BIGINT' --column 'city STRING' --primary-key id -D bucket=2"
)]
pub(crate) struct Create {
    #[command(flatten)]
    table: TableArgs,
    /// A column: its name, then its type in SQL; may be repeated, in order
    #[arg(long, value_name = "NAME TYPE", required_unless_present = "like")]
    column: Vec<String>,
    /// Columns, keys and options of a schema file (`schema/schema-0` of another table)
    #[arg(long, value_name = "FILE", conflicts_with = "column")]
    like: Option<std::path::PathBuf>,
    /// Columns of the primary key, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    primary_key: Vec<String>,
    /// Columns of the partition, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    partition_by: Vec<String>,
    /// A comment on the table
    #[arg(long)]
    comment: Option<String>,
    /// Succeed without a change when there is a table already
    #[arg(long)]
    if_not_exists: bool,
}

impl Create {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let context = session.context(&self.table.options)?;
        let schema = self.schema()?;
        if self.if_not_exists && Table::exists(&self.table.table, &context).await? {
            return report(session, &self.table.table, false);
        }
        Table::create(&self.table.table, schema, &context).await?;
        report(session, &self.table.table, true)
    }

    fn schema(&self) -> Result<SchemaBuilder, CliError> {
        let mut schema = match &self.like {
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read(path).map_err(|error| CliError::file(&name, error))?;
                like(TableSchema::from_json(&name, &text).map_err(paimon::Error::from)?)
            }
            None => {
                let mut schema = TableSchema::builder();
                for column in &self.column {
                    schema = schema.field(parse_column(column)?);
                }
                schema
            }
        };
        if !self.primary_key.is_empty() {
            schema = schema.primary_key(&self.primary_key);
        }
        if !self.partition_by.is_empty() {
            schema = schema.partition_keys(&self.partition_by);
        }
        if let Some(comment) = &self.comment {
            schema = schema.comment(comment);
        }
        for (key, value) in paimon::options::table_options(&self.table.options.options()?).iter() {
            schema = schema.option(key, value);
        }
        Ok(schema)
    }
}

/// A new table of the same columns, keys and options.
fn like(schema: TableSchema) -> SchemaBuilder {
    let mut builder = TableSchema::builder()
        .primary_key(schema.primary_keys)
        .partition_keys(schema.partition_keys);
    for field in schema.fields {
        builder = builder.field(field);
    }
    for (key, value) in schema.options.iter() {
        builder = builder.option(key, value);
    }
    match schema.comment {
        Some(comment) => builder.comment(comment),
        None => builder,
    }
}

fn report(session: &mut Session<'_>, table: &str, created: bool) -> Result<(), CliError> {
    if session.json {
        session.console.json(&json!({"table": table, "created": created}))
    } else if created {
        session.console.line(format_args!("created {table}"))
    } else {
        session
            .console
            .line(format_args!("{table} is there already: nothing to do"))
    }
}

/// `name TYPE`; a name with blanks stands in backquotes. Ids are given by the schema.
fn parse_column(text: &str) -> Result<DataField, CliError> {
    let text = text.trim();
    let parts = match text.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`'),
        None => text.split_once(char::is_whitespace),
    };
    let Some((name, data_type)) = parts.filter(|(name, data_type)| !name.is_empty() && !data_type.trim().is_empty())
    else {
        return Err(CliError::usage(format!(
            "--column {text}: expected a name and a type, for example 'id BIGINT'"
        )));
    };
    let data_type = data_type
        .trim()
        .parse::<DataType>()
        .map_err(|error| CliError::usage(format!("--column {name}: {error}")))?;
    Ok(DataField::new(0, name, data_type))
}
