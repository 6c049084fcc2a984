//! Folders with a `rows.json`: tables that Spark wrote, with what it read. A `rows-ours.json` beside it goes first: right answers where
//! Spark's differ, with the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use paimon::format::options::Options;
use paimon::format::types::{DataField, DataType, Datum, MAX_LENGTH, TypeKind};
use paimon::{Context, Error, ErrorKind, Table, TimeTravel};
use parquet_variant::Variant;
use parquet_variant_json::VariantToJson;
use serde::Deserialize;
use serde_json::Value;

use crate::expectation::Comparison;
use crate::golden::columns_of;
use crate::observe::Observer;
use crate::tally::{Outcome, Tally};

#[derive(Deserialize)]
struct Recorded {
    tables: BTreeMap<String, RecordedTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedTable {
    rows: Vec<Value>,
    /// Why these rows are not what Spark read.
    deviation: Option<String>,
    #[serde(default)]
    snapshots: BTreeMap<i64, Vec<Value>>,
    /// What a stream read of each snapshot.
    #[serde(default)]
    changelog: BTreeMap<i64, Vec<Value>>,
    /// By snapshot, where its schema was another.
    #[serde(default)]
    snapshot_columns: BTreeMap<i64, Value>,
}

/// Compares all tables of a folder.
pub(crate) async fn run(folder: &Path, context: &Context, tally: &mut Tally) -> Result<(), String> {
    let ours = folder.join("rows-ours.json");
    let path = if ours.exists() { ours } else { folder.join("rows.json") };
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let recorded: Recorded = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let group = folder.file_name().unwrap_or_default().to_string_lossy();
    for (name, table) in &recorded.tables {
        let (database, short) = name.split_once('.').unwrap_or(("default", name));
        let location = folder.join(format!("warehouse/{database}.db/{short}"));
        let location = fs::canonicalize(&location).map_err(|error| format!("{}: {error}", location.display()))?;
        let outcome = match compare(&location, table, context).await {
            Ok(differences) if differences.is_empty() => match &table.deviation {
                Some(why) => Outcome::Deviated(why.clone()),
                None => Outcome::Passed,
            },
            Ok(differences) => Outcome::Failed(differences),
            Err(error) if error.kind() == ErrorKind::Unsupported => Outcome::Skipped(error.to_string()),
            Err(error) => Outcome::Failed(vec![error.to_string()]),
        };
        tally.add(&format!("{group}/{short}"), outcome);
    }
    Ok(())
}

async fn compare(location: &Path, recorded: &RecordedTable, context: &Context) -> Result<Vec<String>, Error> {
    let table = Table::open(&location.to_string_lossy(), Options::new(), context).await?;
    let observer = Observer::new(&table)?;
    // Spark shows a VARIANT as its JSON text.
    let columns = columns_of(&table).with_types(|data_type| match data_type.kind {
        TypeKind::Variant => DataType::nullable(TypeKind::VarChar(MAX_LENGTH)),
        _ => data_type.clone(),
    });
    let comparison = Comparison {
        columns: &columns,
        partition: &[],
        key: &[],
        layout: false,
        changelog: false,
    };
    let mut differences = Vec::new();
    let mut check = |what: String, expected: &[Value], actual: Vec<Value>| match variants_as_text(
        &table.schema().fields,
        expected,
        actual,
    )
    .and_then(|(expected, actual)| comparison.rows(&Value::Array(expected), &Value::Array(actual)))
    {
        Ok(None) => {}
        Ok(Some(difference)) | Err(difference) => differences.push(format!("{what}: {difference}")),
    };
    check("now".to_owned(), &recorded.rows, observer.rows(None).await?);
    for (&id, rows) in &recorded.snapshots {
        if !recorded.snapshot_columns.contains_key(&id) {
            check(
                format!("snapshot {id}"),
                rows,
                observer.rows(Some(TimeTravel::SnapshotId(id))).await?,
            );
        }
    }
    for (&id, changes) in &recorded.changelog {
        if !recorded.snapshot_columns.contains_key(&id) {
            let found = observer.changes(id).await?;
            match comparison.unordered_changelog(&Value::Array(changes.clone()), &Value::Array(found)) {
                Ok(None) => {}
                Ok(Some(difference)) | Err(difference) => differences.push(format!("snapshot {id}: {difference}")),
            }
        }
    }
    Ok(differences)
}

/// Rows with a kind in front, each VARIANT as JSON text in one form: expected ones are text already, read ones in binary form.
fn variants_as_text(
    fields: &[DataField],
    expected: &[Value],
    mut actual: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), String> {
    let mut expected = expected.to_vec();
    let variants = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.data_type.kind == TypeKind::Variant);
    for (position, field) in variants {
        for row in &mut actual {
            let Some(value) = row.get_mut(position + 1) else {
                return Err(format!("a row without column {}", field.name));
            };
            let datum = Datum::from_json(value, &field.data_type).map_err(|error| error.to_string())?;
            if let Datum::Variant { value: bytes, metadata } = datum {
                let variant = Variant::try_new(&metadata, &bytes).map_err(|error| error.to_string())?;
                *value = Value::from(variant.to_json_string().map_err(|error| error.to_string())?);
            }
        }
        let rows = expected.iter_mut().chain(&mut actual);
        for value in rows.filter_map(|row| row.get_mut(position + 1)) {
            // Escapes differ. A lone number keeps its text: it may have more digits than a float.
            if let Some(Ok(json)) = value.as_str().map(serde_json::from_str::<Value>)
                && !json.is_number()
            {
                *value = Value::from(json.to_string());
            }
        }
    }
    Ok((expected, actual))
}
