//! `queries.json`: what is asked through the read API after a step.

use std::fs;
use std::path::Path;

use futures::TryStreamExt;
use paimon::format::predicate::Predicate;
use paimon::{Error, Table};
use serde::Deserialize;
use serde_json::Value;

use crate::golden::columns_of;
use crate::observe::json_row;
use crate::rows::{multiset_difference, values_of};

/// All queries of a scenario.
#[derive(Default, Deserialize)]
pub(crate) struct Queries {
    queries: Vec<Query>,
}

/// A projection, a filter and a limit, with the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Query {
    after_step: usize,
    select: Option<String>,
    r#where: Option<String>,
    limit: Option<usize>,
    /// The answer, in any order.
    rows: Option<Vec<Value>>,
    /// Or so many rows …
    count: Option<usize>,
    /// … out of these.
    rows_from: Option<Vec<Value>>,
    /// Splits of the full scan.
    splits: Option<usize>,
}

impl Queries {
    /// Those beside a scenario; none when there is no file.
    pub(crate) fn load(folder: &Path) -> Result<Self, String> {
        let path = folder.join("queries.json");
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Asks those of a step. Returns what differs.
    pub(crate) async fn ask(&self, table: &Table, step: usize) -> Result<Vec<String>, String> {
        let mut differences = Vec::new();
        for query in self.queries.iter().filter(|query| query.after_step == step) {
            let found = query.ask(table).await?;
            differences.extend(
                found
                    .into_iter()
                    .map(|found| format!("query {}: {found}", query.text())),
            );
        }
        Ok(differences)
    }
}

impl Query {
    fn text(&self) -> String {
        let select = self.select.as_deref().unwrap_or("*");
        let condition = self.r#where.as_ref().map(|text| format!(" where {text}"));
        let limit = self.limit.map(|limit| format!(" limit {limit}"));
        format!(
            "select {select}{}{}",
            condition.unwrap_or_default(),
            limit.unwrap_or_default()
        )
    }

    async fn ask(&self, table: &Table) -> Result<Vec<String>, String> {
        let counts = self.select.as_deref() == Some("count(*)");
        let names: Option<Vec<&str>> = match self.select.as_deref() {
            None => None,
            // A count needs no column; the key is the least that can be read.
            Some("count(*)") => Some(table.schema().primary_keys.iter().map(String::as_str).collect()),
            Some(names) => Some(names.split(',').map(str::trim).collect()),
        };
        let (actual, splits) = self
            .read(table, names.as_deref())
            .await
            .map_err(|error| error.to_string())?;
        let mut differences = Vec::new();
        if let Some(expected) = self.splits
            && expected != splits
        {
            differences.push(format!("{splits} splits, expected {expected}"));
        }
        if counts {
            let wanted = self.rows.as_ref().and_then(|rows| rows.first()).map(|row| &row[0]);
            if wanted != Some(&Value::from(actual.len())) {
                differences.push(format!("{} rows, expected {wanted:?}", actual.len()));
            }
            return Ok(differences);
        }
        let columns = columns_of(table);
        let columns = match &names {
            Some(names) => columns.select(names)?,
            None => columns,
        };
        let actual = columns.multiset(&actual, false)?;
        if let Some(rows) = &self.rows {
            let expected = columns.multiset(rows, false)?;
            differences.extend(multiset_difference("rows", &expected, &actual));
        }
        if let Some(count) = self.count {
            if actual.len() != count {
                differences.push(format!("{} rows, expected {count}", actual.len()));
            }
            if let Some(rows) = &self.rows_from {
                let allowed = columns.multiset(rows, false)?;
                let wrong = actual.iter().filter(|row| !allowed.contains(row));
                differences.extend(wrong.map(|row| format!("{row} should not be there")));
            }
        }
        Ok(differences)
    }

    async fn read(&self, table: &Table, names: Option<&[&str]>) -> Result<(Vec<Value>, usize), Error> {
        let mut read = table.read_builder();
        if let Some(names) = names {
            read = read.projection(names)?;
        }
        if let Some(condition) = &self.r#where {
            read = read.filter(Predicate::parse(condition, &table.schema().fields)?);
        }
        if let Some(limit) = self.limit {
            read = read.limit(limit);
        }
        let plan = read.new_scan().plan().await?;
        let splits = plan.splits.len();
        let fields = read.fields().to_vec();
        let mut batches = read.new_read().stream(plan.splits)?;
        let mut rows = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for row in 0..batch.num_rows() {
                rows.push(Value::Array(json_row(batch.columns(), &fields, row)?));
            }
        }
        debug_assert!(rows.iter().all(|row| values_of(row).is_ok()));
        Ok((rows, splits))
    }
}
