//! `paimon read`.

use clap::{Args, ValueEnum};
use futures::StreamExt;
use paimon::format::predicate::Predicate;
use paimon::format::types::DataField;

use crate::args::ViewArgs;
use crate::error::CliError;
use crate::json::encode_batch;
use crate::output::Rows;
use crate::session::Session;

/// Read the rows of a table
#[derive(Debug, Args)]
#[command(
    after_help = "Example: paimon read ./wh/shop.db/orders --columns id,city --where \"city IN ('Wien','Praha') AND amount >= 10\" --limit 5"
)]
pub(crate) struct Read {
    #[command(flatten)]
    view: ViewArgs,
    /// Only these columns, separated by commas, in this order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Only rows for which this holds: =, <>, <, <=, >, >=, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR, NOT
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// At most so many rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How rows are printed; --json is --output json
    #[arg(long, value_enum, default_value = "table")]
    output: RowFormat,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// Aligned columns
    Table,
    /// One object a line
    Json,
    /// Comma-separated values with a header
    Csv,
}

impl Read {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.view.table).await?;
        let mut builder = table.read_builder().select(self.view.part.selection()?);
        if let Some(travel) = self.view.travel.time_travel()? {
            builder = builder.time_travel(travel);
        }
        if let Some(columns) = &self.columns {
            builder = builder.projection(columns)?;
        }
        if let Some(text) = &self.condition {
            builder = builder.filter(Predicate::parse(text, &table.schema().fields)?);
        }
        if let Some(limit) = self.limit {
            builder = builder.limit(limit);
        }
        let fields: Vec<DataField> = builder.fields().to_vec();
        let plan = builder.new_scan().plan().await?;
        let mut batches = builder.new_read().stream(plan.splits)?;
        let format = if session.json { RowFormat::Json } else { self.output };
        let mut rows = Rows::new(format, &fields);
        while let Some(batch) = batches.next().await {
            rows.print(session.console, &encode_batch(&batch?, &fields)?)?;
        }
        rows.finish(session.console)
    }
}
