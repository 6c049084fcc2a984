//! Plays a scenario on this engine: one writer stays open over all steps, as in a streaming job.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch};
use paimon::format::options::Options;
use paimon::format::row::BinaryRow;
use paimon::format::types::{Datum, RowKind, array_from_datums, arrow_schema};
use paimon::lsm::pick::PickRule;
use paimon::manifest::scan::ScanKind;
use paimon::{Context, Error, SchemaBuilder, SchemaChange, Table, TableCommit, TableSchema, TableWrite};
use serde_json::Value;

use crate::rows::{canonical_values, values_of};
use crate::scenario::{Scenario, Step};

/// The commit user of all scenarios.
const USER: &str = "oracle";

/// A table with its open writer.
pub(crate) struct Player {
    location: String,
    context: Context,
    table: Table,
    write: TableWrite,
    commit: TableCommit,
    /// Options of the last reopening.
    dynamic: Options,
    /// Buckets that this writer wrote to.
    touched: BTreeMap<(Vec<u8>, i32), BinaryRow>,
    identifier: i64,
}

impl Player {
    /// Makes the scenario's table below a folder and opens a writer. Errors: what refuses the creation.
    pub(crate) async fn create(scenario: &Scenario, warehouse: &Path, context: &Context) -> Result<Self, Error> {
        let mut schema: SchemaBuilder = TableSchema::builder();
        for column in &scenario.columns {
            schema = schema.column(&column.name, column.data_type.clone());
        }
        schema = schema
            .primary_key(&scenario.primary_keys)
            .partition_keys(&scenario.partition_keys);
        for (key, value) in &scenario.options {
            schema = schema.option(key, value);
        }
        let location = warehouse.join("default.db").join("t").to_string_lossy().into_owned();
        let table = Table::create(&location, schema, context).await?;
        let (write, commit) = writer(&table)?;
        Ok(Self {
            location,
            context: context.clone(),
            table,
            write,
            commit,
            dynamic: Options::new(),
            touched: BTreeMap::new(),
            identifier: 0,
        })
    }

    /// The table as it is open.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Takes a step. After an error the writer is a new one, and rows that were not committed are lost.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Write { rows } => self.write_rows(rows).await,
            Step::Commit { wait } => self.commit(*wait).await,
            Step::Compact {
                full,
                commit,
                partition,
                bucket,
            } => {
                self.compact(*full, partition.as_deref(), *bucket).await?;
                if *commit { self.commit(true).await } else { Ok(()) }
            }
            Step::Reopen { options } => {
                self.dynamic = options.iter().collect();
                self.reopen().await
            }
            Step::Alter { changes } => {
                let changes: Vec<SchemaChange> = changes.iter().map(SchemaChange::from).collect();
                self.table.alter(&changes).await?;
                self.reopen().await
            }
            Step::Read { .. } | Step::Expire {} | Step::Tag {} | Step::DeleteTag {} | Step::Rollback {} => Ok(()),
        }
    }

    /// A new writer on the latest schema, with the options of the last reopening.
    pub(crate) async fn reopen(&mut self) -> Result<(), Error> {
        self.table = Table::open(&self.location, self.dynamic.clone(), &self.context).await?;
        let (write, commit) = writer(&self.table)?;
        let old = std::mem::replace(&mut self.write, write);
        old.abort().await;
        self.commit = commit;
        self.touched.clear();
        Ok(())
    }

    async fn write_rows(&mut self, rows: &[Vec<Value>]) -> Result<(), Error> {
        let fields = &self.table.schema().fields;
        let mut kinds = Vec::with_capacity(rows.len());
        let mut columns: Vec<Vec<Datum>> = vec![Vec::with_capacity(rows.len()); fields.len()];
        for row in rows {
            let [kind, values @ ..] = row.as_slice() else {
                return Err(Error::Invalid("a row without kind".to_owned()));
            };
            let kind = kind.as_str().and_then(RowKind::from_short_string);
            kinds.push(kind.ok_or_else(|| Error::Invalid("a row with another kind".to_owned()))? as i8);
            for ((column, field), value) in columns.iter_mut().zip(fields).zip(values) {
                column.push(Datum::from_json(value, &field.data_type)?);
            }
        }
        let arrays = columns.iter().zip(fields);
        let arrays = arrays
            .map(|(column, field)| array_from_datums(field, column))
            .collect::<Result<Vec<ArrayRef>, _>>()?;
        let batch = RecordBatch::try_new(Arc::new(arrow_schema(fields)?), arrays)?;
        self.write.write_with_kinds(&batch, &Int8Array::from(kinds)).await?;
        for (partition, bucket) in self.write.open_buckets() {
            self.touched.insert((partition.as_bytes().to_vec(), bucket), partition);
        }
        Ok(())
    }

    async fn commit(&mut self, wait: bool) -> Result<(), Error> {
        let identifier = self.identifier;
        self.identifier += 1;
        let messages = self.write.prepare_commit(wait).await?;
        self.commit.commit(identifier, messages).await?;
        Ok(())
    }

    /// All buckets of the latest snapshot and of this writer, or those that are named.
    async fn compact(&mut self, full: bool, partition: Option<&[Value]>, bucket: Option<i32>) -> Result<(), Error> {
        let mut targets = self.touched.clone();
        if let Some(snapshot) = self.table.snapshot_store().latest().await? {
            let scan = self.table.file_store_scan()?;
            for entry in scan.entries(&snapshot, ScanKind::All).await? {
                targets.insert((entry.partition.as_bytes().to_vec(), entry.bucket), entry.partition);
            }
        }
        let types = self.table.schema().partition_types();
        for ((_, number), row) in targets {
            let wanted = match partition {
                None => true,
                Some(values) => {
                    let there = row.to_datums(&types)?;
                    let there: Value = there
                        .iter()
                        .zip(&types)
                        .map(|(value, kind)| value.to_json(kind))
                        .collect();
                    canonical_values(values, &types) == canonical_values(values_of(&there).unwrap_or_default(), &types)
                }
            };
            if wanted && bucket.is_none_or(|bucket| bucket == number) {
                self.write.compact(&row, number, full).await?;
            }
        }
        Ok(())
    }
}

/// Scenarios were recorded with the picker of release 1.4.2, and by a committer that makes a snapshot for an empty commit.
fn writer(table: &Table) -> Result<(TableWrite, TableCommit), Error> {
    let builder = table.write_builder().commit_user(USER).pick_rule(PickRule::Release1_4);
    Ok((builder.new_write()?, builder.new_commit()?.with_empty_commits()))
}
