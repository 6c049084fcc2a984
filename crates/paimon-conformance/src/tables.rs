//! `tables`: tables that other engines wrote, read and compared snapshot by snapshot.

use std::fs;
use std::path::{Path, PathBuf};

use paimon::format::options::Options;
use paimon::{Context, ErrorKind, Table};

use crate::expectation::{Comparison, Expectation};
use crate::foreign;
use crate::golden::{columns_of, find};
use crate::observe::Observer;
use crate::tally::{Outcome, Tally};

/// Compares the warehouses beside scenarios, and the tables of folders with a `rows.json`.
pub(crate) async fn run(folders: &[PathBuf], tally: &mut Tally) -> Result<(), String> {
    let context = Context::system().map_err(|error| error.to_string())?;
    for folder in find(folders, "scenario.json")? {
        let location = folder.join("warehouse/default.db/t");
        if location.is_dir() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let outcome = compare(&folder, &location, &context).await;
            tally.add(&name, outcome.unwrap_or_else(|error| Outcome::Failed(vec![error])));
        }
    }
    for folder in find(folders, "rows.json")? {
        foreign::run(&folder, &context, tally).await?;
    }
    Ok(())
}

async fn compare(folder: &Path, location: &Path, context: &Context) -> Result<Outcome, String> {
    let expectation = Expectation::load(folder)?;
    let location = fs::canonicalize(location).map_err(|error| error.to_string())?;
    let table = Table::open(&location.to_string_lossy(), Options::new(), context).await;
    let table = table.map_err(|error| error.to_string())?;
    let observer = Observer::new(&table).map_err(|error| error.to_string())?;
    let columns = columns_of(&table);
    let comparison = Comparison {
        columns: &columns,
        partition: &observer.partition,
        key: &observer.key,
        layout: true,
        changelog: true,
    };
    let mut differences = Vec::new();
    let mut compared = 0;
    let latest = table.schema().id;
    for expected in expectation.steps.iter().flat_map(|step| &step.snapshots) {
        let id = expected
            .get("id")
            .and_then(serde_json::Value::as_i64)
            .ok_or("a snapshot without id")?;
        let Some(snapshot) = table
            .snapshot_store()
            .find(id)
            .await
            .map_err(|error| error.to_string())?
        else {
            // It expired in a later step.
            continue;
        };
        // Rows of an older schema were recorded with its columns.
        let expected = if snapshot.schema_id == latest {
            expected.clone()
        } else {
            let mut without = expected.clone();
            without.retain(|name, _| !["rows", "changelog", "buckets"].contains(&name.as_str()));
            without
        };
        match observer.snapshot(&snapshot).await {
            Ok(actual) => differences.extend(comparison.snapshot(&expected, &actual)),
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Outcome::Skipped(error.to_string())),
            Err(error) => differences.push(format!("snapshot {id}: {error}")),
        }
        compared += 1;
    }
    if compared == 0 {
        differences.push("no snapshot was compared".to_owned());
    }
    Ok(if differences.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(differences)
    })
}
