//! `golden`: scenarios played on this engine, compared with what was recorded.

use std::fs;
use std::path::{Path, PathBuf};

use paimon::format::options::Options;
use paimon::{Context, Error, ErrorKind, Table};
use serde_json::{Map, Value};

use crate::expectation::{Comparison, Expectation, ExpectedError, ExpectedStep};
use crate::observe::Observer;
use crate::player::Player;
use crate::queries::Queries;
use crate::rows::Columns;
use crate::scenario::{Scenario, Step};
use crate::tally::{Outcome, Tally};

/// Plays every scenario below the folders.
pub(crate) async fn run(folders: &[PathBuf], keep: Option<&Path>, tally: &mut Tally) -> Result<(), String> {
    let context = Context::system().map_err(|error| error.to_string())?;
    let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = keep.unwrap_or(temp.path());
    for folder in find(folders, "scenario.json")? {
        let path = folder.join("scenario.json");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = match serde_json::from_str::<Scenario>(&text) {
            Err(error) => Outcome::Failed(vec![format!("scenario.json: {error}")]),
            Ok(scenario) => {
                let warehouse = root.join(&scenario.name);
                let outcome = play(&folder, &scenario, &warehouse, &context).await;
                outcome.unwrap_or_else(|error| Outcome::Failed(vec![error]))
            }
        };
        tally.add(&name, outcome);
    }
    Ok(())
}

/// Folders at or below these that hold a file of this name, sorted.
pub(crate) fn find(folders: &[PathBuf], file: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in folders {
        let mut open = vec![folder.clone()];
        while let Some(folder) = open.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            if folder.join(file).is_file() {
                found.push(folder);
                continue;
            }
            for entry in entries {
                let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Why this engine cannot play a scenario yet.
fn not_built(scenario: &Scenario) -> Option<String> {
    scenario
        .steps
        .iter()
        .find_map(Step::not_built)
        .map(|step| format!("step {step} comes later"))
}

async fn play(folder: &Path, scenario: &Scenario, warehouse: &Path, context: &Context) -> Result<Outcome, String> {
    let expectation = Expectation::load(folder)?;
    if let Some(why) = not_built(scenario) {
        return Ok(Outcome::Skipped(why));
    }
    let mut differences = Vec::new();
    let created = Player::create(scenario, warehouse, context).await;
    let refused = expectation.steps.first().filter(|step| step.op == "create");
    let mut player = match (created, refused) {
        (Err(error), Some(step)) if step.error.is_some() => {
            differences.extend(wrong_error("create", step.error.as_ref(), &error));
            // What is not built yet is refused by name, whatever else is wrong with the table.
            if error.kind() == ErrorKind::Unsupported && !differences.is_empty() {
                return Ok(Outcome::Skipped(error.to_string()));
            }
            return Ok(outcome(&expectation, differences));
        }
        (Err(error), None) if error.kind() == ErrorKind::Unsupported => return Ok(Outcome::Skipped(error.to_string())),
        (Err(error), _) => return Err(format!("create: {error}")),
        (Ok(_), Some(step)) if step.error.is_some() => return Err("create: was not refused".to_owned()),
        (Ok(player), _) => player,
    };
    if expectation.steps.len() != scenario.steps.len() {
        return Err("expectation and scenario have different steps".to_owned());
    }
    let queries = Queries::load(folder)?;
    let mut seen = 0;
    for (number, (step, expected)) in scenario.steps.iter().zip(&expectation.steps).enumerate() {
        let name = format!("step {number} {}", expected.op);
        let result = match step {
            Step::Read { options } => {
                read(
                    player.table(),
                    options.iter().collect(),
                    expected,
                    &mut differences,
                    &name,
                )
                .await
            }
            step => player.step(step).await,
        };
        match (&result, &expected.error) {
            (Err(error), Some(_)) => differences.extend(wrong_error(&name, expected.error.as_ref(), error)),
            (Err(_), None) if expected.may_fail => {}
            (Err(error), None) => differences.push(format!("{name}: {error}")),
            (Ok(()), Some(_)) => differences.push(format!("{name}: did not fail")),
            (Ok(()), None) => {}
        }
        if result.is_err() {
            player
                .reopen()
                .await
                .map_err(|error| format!("{name}: reopen: {error}"))?;
        }
        let table = player.table();
        let found = observe(table, &mut seen, expected, &expectation).await;
        differences.extend(
            found
                .unwrap_or_else(|error| vec![error])
                .into_iter()
                .map(|found| format!("{name}: {found}")),
        );
        let answers = queries
            .ask(table, number)
            .await
            .map_err(|error| format!("{name}: {error}"))?;
        differences.extend(answers.into_iter().map(|found| format!("{name}: {found}")));
    }
    Ok(outcome(&expectation, differences))
}

fn outcome(expectation: &Expectation, differences: Vec<String>) -> Outcome {
    if !differences.is_empty() {
        return Outcome::Failed(differences);
    }
    match &expectation.deviation {
        Some(why) => Outcome::Deviated(why.clone()),
        None => Outcome::Passed,
    }
}

/// The columns that rows of a table are compared by.
pub(crate) fn columns_of(table: &Table) -> Columns {
    let schema = table.schema();
    Columns::new(&schema.fields, &schema.primary_keys, table.options().iter())
}

async fn read(
    table: &Table,
    options: Options,
    expected: &ExpectedStep,
    differences: &mut Vec<String>,
    name: &str,
) -> Result<(), Error> {
    let table = table.with_options(&options)?;
    let rows = Observer::new(&table)?.rows(None).await?;
    let Some(wanted) = &expected.rows else {
        return Ok(());
    };
    let columns = columns_of(&table);
    let comparison = Comparison {
        columns: &columns,
        partition: &[],
        key: &[],
        layout: false,
        changelog: false,
    };
    match comparison.rows(&Value::Array(wanted.clone()), &Value::Array(rows)) {
        Ok(None) => {}
        Ok(Some(difference)) | Err(difference) => differences.push(format!("{name}: {difference}")),
    }
    Ok(())
}

/// Compares all snapshots that are new since `seen`.
async fn observe(
    table: &Table,
    seen: &mut i64,
    expected: &ExpectedStep,
    expectation: &Expectation,
) -> Result<Vec<String>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let observer = Observer::new(table).map_err(|error| text(&error))?;
    let columns = columns_of(table);
    let comparison = Comparison {
        columns: &columns,
        partition: &observer.partition,
        key: &observer.key,
        layout: !expectation.size_sensitive,
        changelog: true,
    };
    let store = table.snapshot_store();
    let latest = store.latest_id().await.map_err(|error| text(&error))?.unwrap_or(0);
    let mut actual: Vec<Map<String, Value>> = Vec::new();
    let mut differences = Vec::new();
    for id in *seen + 1..=latest {
        let snapshot = store.get(id).await.map_err(|error| text(&error))?;
        match observer.snapshot(&snapshot).await {
            Ok(found) => actual.push(found),
            Err(error) => {
                let wanted = expected.snapshots.get(actual.len());
                match wanted.and_then(|wanted| wanted.get("readError")) {
                    Some(read_error) => {
                        let read_error = ExpectedError {
                            kind: read_error["kind"].as_str().map(str::to_owned),
                        };
                        differences.extend(wrong_error("read", Some(&read_error), &error));
                        actual.push(Map::from_iter([("id".to_owned(), Value::from(id))]));
                        continue;
                    }
                    None => return Err(format!("snapshot {id}: {error}")),
                }
            }
        }
    }
    *seen = latest;
    if expectation.size_sensitive {
        differences.extend(last_rows(&comparison, &expected.snapshots, &actual));
        return Ok(differences);
    }
    if actual.len() != expected.snapshots.len() {
        let kinds = |snapshots: &[Map<String, Value>]| -> Vec<String> {
            snapshots
                .iter()
                .map(|s| s.get("commitKind").map_or("?".to_owned(), Value::to_string))
                .collect()
        };
        differences.push(format!(
            "made snapshots {:?}, expected {:?}",
            kinds(&actual),
            kinds(&expected.snapshots)
        ));
        differences.extend(last_rows(&comparison, &expected.snapshots, &actual));
        return Ok(differences);
    }
    for (expected, actual) in expected.snapshots.iter().zip(&actual) {
        if actual.len() > 1 {
            if expected.contains_key("readError") {
                differences.push(format!("snapshot {}: reading did not fail", actual["id"]));
            }
            differences.extend(comparison.snapshot(expected, actual));
        }
    }
    Ok(differences)
}

/// Where the number of snapshots may differ, the rows after the step may not.
fn last_rows(
    comparison: &Comparison<'_>,
    expected: &[Map<String, Value>],
    actual: &[Map<String, Value>],
) -> Option<String> {
    let (expected, actual) = (
        expected.last()?.get("rows")?,
        actual.last().and_then(|last| last.get("rows")),
    );
    match comparison.rows(expected, actual.unwrap_or(&Value::Array(Vec::new()))) {
        Ok(difference) => difference,
        Err(error) => Some(error),
    }
}

/// Whether an error is another one than expected.
fn wrong_error(place: &str, expected: Option<&ExpectedError>, actual: &Error) -> Option<String> {
    let kind = expected?.kind.as_deref()?;
    let fits = match kind {
        "overflow" => actual.to_string().contains("overflow"),
        "invalid-options" => actual.kind() == ErrorKind::Invalid,
        _ => false,
    };
    (!fits).then(|| format!("{place}: the error is not of kind {kind}: {actual}"))
}
