//! `paimon demo`.

use std::path::PathBuf;

use clap::Args;
use futures::StreamExt;
use paimon::format::predicate::Predicate;
use paimon::{SchemaBuilder, Selection, Table, TableSchema, TimeTravel};

use crate::args::OptionArgs;
use crate::commands::{RowFormat, compact, explain, levels};
use crate::error::CliError;
use crate::input::{InputSettings, JsonLines};
use crate::json::encode_batch;
use crate::output::Rows;
use crate::session::Session;

/// The orders of one morning as a database would tell them: every line a change, a blank line where the job commits.
const ORDERS: &str = include_str!("../../../../testdata/demo/orders.jsonl");

/// See it work: make a table, feed it a change stream, compact it step by step
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The folder for the table; a new temporary one when not given
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Demo {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let root = self
            .dir
            .unwrap_or_else(|| session.env.temp.join(format!("paimon-demo-{}", session.env.ids.uuid())));
        let location = root.join("shop.db").join("orders").display().to_string();
        let context = session.context(&OptionArgs::default())?;
        let table = Table::create(&location, schema()?, &context).await?;
        say(session, &format!("A primary-key table of orders, made in {location}"))?;

        let commits: Vec<&str> = ORDERS.split("\n\n").collect();
        let (first, rest) = commits.split_at(commits.len() / 2 + 2);
        let rows = feed(&table, first, 1).await?;
        say(
            session,
            &format!(
                "{} commits of a change stream, {rows} changes: each made one level-0 file",
                first.len()
            ),
        )?;
        show(session, &table).await?;

        say(session, "One compaction: the files that the rule picks, not more")?;
        compact_once(session, &table, false).await?;

        let rows = feed(&table, rest, first.len() + 1).await?;
        say(session, &format!("{} more commits, {rows} changes", rest.len()))?;
        show(session, &table).await?;

        say(session, "A full compaction: one sorted run, no deletes left")?;
        compact_once(session, &table, true).await?;
        show(session, &table).await?;

        say(session, "The orders that are still under way")?;
        print_rows(session, &table).await?;
        say(session, "Look around: the table stays where it is")?;
        for command in ["snapshots", "files", "read"] {
            session.console.line(format_args!("  paimon {command} {location}"))?;
        }
        Ok(())
    }
}

fn schema() -> Result<SchemaBuilder, CliError> {
    let columns = [
        ("order_id", "BIGINT NOT NULL"),
        ("city", "STRING"),
        ("status", "STRING"),
        ("amount", "DECIMAL(10, 2)"),
        ("updated_at", "TIMESTAMP(3)"),
    ];
    let mut schema = TableSchema::builder();
    for (name, data_type) in columns {
        schema = schema.column(name, data_type.parse()?);
    }
    Ok(schema
        .primary_key(["order_id"])
        .option("bucket", "1")
        .option("write-only", "true")
        .comment("the demo of the paimon command line"))
}

fn say(session: &mut Session<'_>, text: &str) -> Result<(), CliError> {
    session.console.line(format_args!("\n── {text}"))
}

/// Writes each block of lines as one commit. Returns the number of changes.
async fn feed(table: &Table, blocks: &[&str], first_identifier: usize) -> Result<usize, CliError> {
    let settings = InputSettings {
        fields: table.schema().fields.clone(),
        kind_field: Some("op".to_owned()),
        null: String::new(),
        delimiter: b',',
    };
    let builder = table.write_builder();
    let mut writer = builder.new_write()?;
    let commit = builder.new_commit()?;
    let mut rows = 0;
    for (number, block) in blocks.iter().enumerate() {
        for batch in JsonLines::new("orders.jsonl", block.as_bytes(), settings.clone()) {
            let (batch, kinds) = batch?;
            rows += batch.num_rows();
            match kinds {
                Some(kinds) => writer.write_with_kinds(&batch, &kinds).await?,
                None => writer.write(&batch).await?,
            }
        }
        let messages = writer.prepare_commit(true).await?;
        let identifier = i64::try_from(first_identifier + number).map_err(CliError::internal)?;
        commit.commit(identifier, messages).await?;
    }
    writer.abort().await;
    Ok(rows)
}

/// The levels, and what would be picked now.
async fn show(session: &mut Session<'_>, table: &Table) -> Result<(), CliError> {
    for bucket in table.buckets(&TimeTravel::Latest, &Selection::all()).await? {
        session.console.print(levels::draw(&bucket)?)?;
        let pick = table.explain(&bucket, false)?;
        session.console.print(explain::text(&pick))?;
    }
    Ok(())
}

async fn compact_once(session: &mut Session<'_>, table: &Table, full: bool) -> Result<(), CliError> {
    let report = table.compact_builder().full(full).run().await?;
    session.console.print(compact::text(&report, false))?;
    for bucket in table.buckets(&TimeTravel::Latest, &Selection::all()).await? {
        session.console.print(levels::draw(&bucket)?)?;
    }
    Ok(())
}

async fn print_rows(session: &mut Session<'_>, table: &Table) -> Result<(), CliError> {
    let fields = &table.schema().fields;
    let open = Predicate::parse("status IN ('placed', 'paid', 'packed', 'shipped')", fields)?;
    let builder = table.read_builder().filter(open);
    let plan = builder.new_scan().plan().await?;
    let mut batches = builder.new_read().stream(plan.splits)?;
    let mut rows = Rows::new(RowFormat::Table, fields);
    while let Some(batch) = batches.next().await {
        rows.print(session.console, &encode_batch(&batch?, fields)?)?;
    }
    rows.finish(session.console)
}
