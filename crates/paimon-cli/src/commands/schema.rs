//! `paimon schema`.

use clap::Args;

use crate::args::TableArgs;
use crate::error::CliError;
use crate::output::Grid;
use crate::session::Session;

/// Show a table's columns, keys and options
#[derive(Debug, Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    table: TableArgs,
    /// The schema with this id instead of the latest
    #[arg(long, value_name = "ID")]
    id: Option<i64>,
}

impl Schema {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table).await?;
        let schema = match self.id {
            Some(id) => table.schema_by_id(id).await?,
            None => std::sync::Arc::clone(table.schema()),
        };
        if session.json {
            let json = serde_json::to_value(schema.as_ref()).map_err(CliError::internal)?;
            return session.console.json(&json);
        }
        let mut columns = Grid::new([">id", "column", "type", "key", "comment"]);
        for field in &schema.fields {
            let mut key = Vec::new();
            if schema.primary_keys.contains(&field.name) {
                key.push("primary");
            }
            if schema.partition_keys.contains(&field.name) {
                key.push("partition");
            }
            columns.row([
                field.id.to_string(),
                field.name.clone(),
                field.data_type.to_string(),
                key.join(", "),
                field.description.clone().unwrap_or_default(),
            ]);
        }
        session.console.line(format_args!("schema {}", schema.id))?;
        session.console.print(columns)?;
        session.console.line("")?;
        let mut options = Grid::new(["option", "value"]);
        for (key, value) in schema.options.iter() {
            options.row([key, value]);
        }
        if options.is_empty() {
            return session.console.line("no options");
        }
        session.console.print(options)
    }
}
