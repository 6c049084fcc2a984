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

        let mut commits = ORDERS.split("\n\n");
        let mut identifier = 0;
        let mut feed = async |blocks: usize| -> Result<usize, CliError> {
            let mut changes = 0;
            for block in commits.by_ref().take(blocks) {
                identifier += 1;
                changes += commit(&table, block, identifier).await?;
            }
            Ok(changes)
        };

        let changes = feed(1).await?;
        say(
            session,
            &format!("The orders so far, {changes} of them, written and committed: one file on level 0"),
        )?;
        show(session, &table).await?;

        say(
            session,
            "A full compaction: the file moves to the top level as it is, nothing is rewritten",
        )?;
        compact_once(session, &table, true).await?;

        let changes = feed(2).await?;
        say(session, &format!("The day goes on: 2 commits, {changes} changes"))?;
        show(session, &table).await?;

        say(
            session,
            "One compaction: the new files are merged, the large old one is left alone",
        )?;
        compact_once(session, &table, false).await?;

        let changes = feed(2).await?;
        say(session, &format!("2 more commits, {changes} changes"))?;
        show(session, &table).await?;
        compact_once(session, &table, false).await?;

        let changes = feed(usize::MAX).await?;
        say(
            session,
            &format!("The last commits of the morning, {changes} changes, then a full compaction"),
        )?;
        compact_once(session, &table, true).await?;

        say(session, "What is still under way in Praha and Wien")?;
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
        // Small, so that a few commits show what compaction does.
        .option("num-sorted-run.compaction-trigger", "3")
        .comment("the demo of the paimon command line"))
}

fn say(session: &mut Session<'_>, text: &str) -> Result<(), CliError> {
    session.console.line(format_args!("\n── {text}"))
}

/// Writes a block of lines as one commit. Returns the number of changes.
async fn commit(table: &Table, block: &str, identifier: i64) -> Result<usize, CliError> {
    let settings = InputSettings {
        fields: table.schema().fields.clone(),
        kind_field: Some("op".to_owned()),
        null: String::new(),
        delimiter: b',',
    };
    let builder = table.write_builder();
    let mut writer = builder.new_write()?;
    let mut rows = 0;
    for batch in JsonLines::new("orders.jsonl", block.as_bytes(), settings) {
        let (batch, kinds) = batch?;
        rows += batch.num_rows();
        match kinds {
            Some(kinds) => writer.write_with_kinds(&batch, &kinds).await?,
            None => writer.write(&batch).await?,
        }
    }
    let messages = writer.prepare_commit(true).await?;
    builder.new_commit()?.commit(identifier, messages).await?;
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
    let open = Predicate::parse("city IN ('Praha', 'Wien') AND status IN ('paid', 'packed')", fields)?;
    let builder = table.read_builder().filter(open);
    let plan = builder.new_scan().plan().await?;
    let mut batches = builder.new_read().stream(plan.splits)?;
    let mut rows = Rows::new(RowFormat::Table, fields);
    while let Some(batch) = batches.next().await {
        rows.print(session.console, &encode_batch(&batch?, fields)?)?;
    }
    rows.finish(session.console)
}
