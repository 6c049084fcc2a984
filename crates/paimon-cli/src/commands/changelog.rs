//! `paimon changelog`.

use std::pin::pin;

use clap::{Args, ValueEnum};
use futures::StreamExt;
use futures::future::{self, BoxFuture, Either};
use paimon::format::options::Options;
use paimon::format::predicate::Predicate;
use paimon::format::types::{DataField, DataType, MAX_LENGTH, TypeKind};
use paimon::{Between, ChangelogBatch, ChangelogBuilder, IncrementalMode, StreamPosition, TableStream};

use super::RowFormat;
use crate::args::{PartArgs, TableArgs, instant_ms};
use crate::error::CliError;
use crate::json::encode_batch;
use crate::output::Rows;
use crate::session::Session;
use crate::signals::ctrl_c;

/// Print what changed in a table, each row with its kind
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  paimon changelog ./wh/shop.db/orders --from earliest               every change that is still there
  paimon changelog ./wh/shop.db/orders --follow --consumer billing   all rows, then changes as they come; goes on there next time
  paimon changelog ./wh/shop.db/orders --between 3,7                 the changes of snapshots 4 to 7

What the changes of a table are depends on its changelog-producer: without one they are the rows of new files, as they were written.")]
pub(crate) struct Changelog {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    part: PartArgs,
    /// Where to start: full (all rows of the latest snapshot, then changes), compacted-full, latest (only what comes), earliest,
    /// snapshot=ID, snapshot-full=ID, timestamp=INSTANT; without it what the table's options say, which is full by default
    #[arg(long, value_name = "START")]
    from: Option<String>,
    /// Wait for further changes until interrupted (ctrl-c)
    #[arg(long)]
    follow: bool,
    /// Note progress under this name in the table, and go on there; its snapshots do not expire before they are read
    #[arg(long, value_name = "ID")]
    consumer: Option<String>,
    /// Start at --from, although the consumer has come further
    #[arg(long, requires = "consumer")]
    restart: bool,
    /// Changes after FIRST up to LAST: two snapshot ids, two tags, or two instants such as 2026-03-02T08:00:00Z
    #[arg(long, value_name = "FIRST,LAST", conflicts_with_all = ["from", "follow", "consumer"])]
    between: Option<String>,
    /// How changes between two states are found
    #[arg(long, value_enum, requires = "between")]
    mode: Option<Mode>,
    /// Only these columns, separated by commas, in this order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Only changes for whose row this holds; see paimon read
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// How rows are printed; --json is --output json
    #[arg(long, visible_alias = "format", value_enum, default_value = "table")]
    output: RowFormat,
}

/// How changes between two states are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Tags by diff, snapshots as the table's changelog-producer asks
    Auto,
    /// The rows of new files, as they were written
    Delta,
    /// The changelog files
    Changelog,
    /// Both states, compared row by row
    Diff,
}

impl From<Mode> for IncrementalMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Delta => Self::Delta,
            Mode::Changelog => Self::Changelog,
            Mode::Diff => Self::Diff,
        }
    }
}

impl Changelog {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let mut table = session.open(&self.table).await?;
        if let Some(from) = &self.from {
            table = table.with_options(&start_options(from)?)?;
        }
        let mut builder = table.changelog_builder().select(self.part.selection()?);
        if let Some(columns) = &self.columns {
            builder = builder.projection(columns)?;
        }
        if let Some(text) = &self.condition {
            builder = builder.filter(Predicate::parse(text, &table.schema().fields)?);
        }
        let format = if session.json { RowFormat::Json } else { self.output };
        let kind = DataType::not_null(TypeKind::VarChar(MAX_LENGTH));
        let mut fields = vec![DataField::new(-1, ChangelogBatch::ROW_KIND, kind)];
        fields.extend_from_slice(builder.fields());
        let mut printer = Printer {
            rows: Rows::new(format, &fields),
            fields: &fields,
        };
        match &self.between {
            Some(between) => {
                builder = builder.between(parse_between(between)?);
                if let Some(mode) = self.mode {
                    builder = builder.mode(mode.into());
                }
                let mut batches = builder.read_between()?;
                while let Some(batch) = batches.next().await {
                    printer.print(session, &batch?)?;
                }
            }
            None => self.stream(session, builder, &mut printer).await?,
        }
        printer.rows.finish(session.console)
    }

    /// Prints what is there, and what comes when following.
    async fn stream(
        &self,
        session: &mut Session<'_>,
        mut builder: ChangelogBuilder,
        printer: &mut Printer<'_>,
    ) -> Result<(), CliError> {
        if let Some(id) = &self.consumer {
            builder = builder.consumer(id);
        }
        if self.restart {
            builder = builder.ignore_progress();
        }
        let mut stream = builder.stream().await?;
        let notes = builder.notes_progress();
        // Without --follow an interrupt ends the process, as it does with every command that writes nothing.
        let mut interrupt: BoxFuture<'static, ()> = match self.follow {
            true => ctrl_c(),
            false => Box::pin(future::pending()),
        };
        let mut snapshot = None;
        loop {
            let next = match future::select(&mut interrupt, pin!(stream.next_available())).await {
                Either::Left(_) => return Ok(()),
                Either::Right((next, _)) => next?,
            };
            match next {
                Some(batch) => {
                    let is_next = snapshot.replace(batch.snapshot_id) != Some(batch.snapshot_id);
                    if notes && is_next && !batch.position.full {
                        // All before this snapshot was printed.
                        let before = StreamPosition::changes_of(batch.snapshot_id);
                        printer.note(session, &mut stream, before).await?;
                    }
                    printer.print(session, &batch)?;
                }
                None => {
                    match stream.position() {
                        Some(position) if notes => printer.note(session, &mut stream, position).await?,
                        _ => printer.rows.flush(session.console)?,
                    }
                    if !self.follow || stream.has_ended() {
                        return Ok(());
                    }
                    if let Either::Left(_) = future::select(&mut interrupt, pin!(stream.wait())).await {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Prints changes.
struct Printer<'a> {
    rows: Rows<'a>,
    /// With the kind in front.
    fields: &'a [DataField],
}

impl Printer<'_> {
    fn print(&mut self, session: &mut Session<'_>, batch: &ChangelogBatch) -> Result<(), CliError> {
        self.rows
            .print(session.console, &encode_batch(&batch.audit_log()?, self.fields)?)
    }

    /// Hands all rows so far to the system, and then, so that none is lost, notes that the reader has them.
    async fn note(
        &mut self,
        session: &mut Session<'_>,
        stream: &mut TableStream,
        position: StreamPosition,
    ) -> Result<(), CliError> {
        self.rows.flush(session.console)?;
        stream.commit(&position).await?;
        Ok(())
    }
}

/// The options that say where a stream starts.
fn start_options(from: &str) -> Result<Options, CliError> {
    let wrong = || {
        CliError::usage(format!(
            "--from {from}: expected full, compacted-full, latest, earliest, snapshot=ID, snapshot-full=ID or timestamp=INSTANT"
        ))
    };
    let (name, value) = match from.split_once(['=', ':', ' ']) {
        Some((name, value)) => (name, Some(value.trim())),
        None => (from, None),
    };
    let id = |value: &str| value.parse::<i64>().map(|id| id.to_string()).map_err(|_| wrong());
    let pairs = match (name, value) {
        ("full" | "latest-full", None) => vec![("scan.mode", "latest-full".to_owned())],
        ("latest" | "compacted-full", None) => vec![("scan.mode", name.to_owned())],
        ("earliest", None) => vec![
            ("scan.mode", "from-snapshot".to_owned()),
            ("scan.snapshot-id", "0".to_owned()),
        ],
        ("snapshot", Some(value)) => vec![
            ("scan.mode", "from-snapshot".to_owned()),
            ("scan.snapshot-id", id(value)?),
        ],
        ("snapshot-full", Some(value)) => vec![
            ("scan.mode", "from-snapshot-full".to_owned()),
            ("scan.snapshot-id", id(value)?),
        ],
        ("timestamp", Some(value)) => vec![
            ("scan.mode", "from-timestamp".to_owned()),
            (
                "scan.timestamp-millis",
                instant_ms("--from timestamp", value)?.to_string(),
            ),
        ],
        _ => return Err(wrong()),
    };
    Ok(pairs.into_iter().collect())
}

/// Two snapshot ids or tags, or two instants.
fn parse_between(text: &str) -> Result<Between, CliError> {
    let wrong = || {
        CliError::usage(format!(
            "--between {text}: expected two snapshot ids, two tags or two instants, such as 3,7"
        ))
    };
    let (after, to) = text.split_once(',').ok_or_else(wrong)?;
    let (after, to) = (after.trim(), to.trim());
    if after.is_empty() || to.is_empty() || to.contains(',') {
        return Err(wrong());
    }
    let instants = (after.parse::<jiff::Timestamp>(), to.parse::<jiff::Timestamp>());
    Ok(match instants {
        (Ok(after), Ok(to)) => Between::Timestamps(after.as_millisecond(), to.as_millisecond()),
        _ => Between::Versions(after.to_owned(), to.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_options() {
        let text = |from: &str| {
            let options = start_options(from).unwrap();
            let pairs = options.iter().map(|(key, value)| format!("{key}={value}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text("full"), "scan.mode=latest-full");
        assert_eq!(text("latest"), "scan.mode=latest");
        assert_eq!(text("earliest"), "scan.mode=from-snapshot scan.snapshot-id=0");
        assert_eq!(text("snapshot=7"), "scan.mode=from-snapshot scan.snapshot-id=7");
        assert_eq!(text("snapshot 7"), "scan.mode=from-snapshot scan.snapshot-id=7");
        assert_eq!(
            text("snapshot-full:7"),
            "scan.mode=from-snapshot-full scan.snapshot-id=7"
        );
        assert_eq!(
            text("timestamp=1970-01-01T00:00:01Z"),
            "scan.mode=from-timestamp scan.timestamp-millis=1000"
        );
        for wrong in ["now", "snapshot", "snapshot=x", "latest=3"] {
            let error = start_options(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--from {wrong}: expected")), "{error}");
        }
    }

    #[test]
    fn two_states_are_named_by_ids_tags_or_instants() {
        assert_eq!(parse_between("3, 7").unwrap(), Between::snapshots(3, 7));
        assert_eq!(
            parse_between("1970-01-01T00:00:01Z,1970-01-01T00:00:02Z").unwrap(),
            Between::Timestamps(1000, 2000)
        );
        for wrong in ["3", "3,", "1,2,3"] {
            assert!(parse_between(wrong).is_err(), "{wrong}");
        }
    }
}
