//! What a primary-key table must hold: row by row, in a map, straight from the rules of the merge engines.
//!
//! It knows no files, levels and batches, and shares no code with `paimon-merge`: it is what that is measured by. It has no sketches (`theta_sketch`,
//! `hll_sketch`): what is in them cannot be said in a line, and they are tested by laws and against Java beside their code.
//!
//! | File | What it holds |
//! |---|---|
//! | `functions`, `nested`, `bitmaps` | the aggregate functions |
//! | `aggregation`, `partial` | the engines that need more than a line |

mod aggregation;
mod bitmaps;
mod functions;
mod nested;
mod partial;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use paimon_format::options::Options;
use paimon_format::types::{DataField, Datum, RowKind};

use aggregation::Aggregation;
pub use bitmaps::Bitmap;
use partial::PartialUpdate;

/// A row with its kind: a value for each column.
pub type Row = (RowKind, Vec<Datum>);

/// The merge rules of a table.
#[derive(Debug)]
pub struct Model {
    key: Vec<usize>,
    sequence: Vec<usize>,
    descending: bool,
    ignore_delete: bool,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Deduplicate,
    FirstRow,
    Aggregation(Aggregation),
    PartialUpdate(PartialUpdate),
}

impl Model {
    /// The rules that options give to a table of these columns; `key` are the positions of its primary key.
    ///
    /// Errors: an option or function that the model does not know.
    pub fn new(fields: &[DataField], key: &[usize], options: &Options) -> Result<Self, String> {
        let sequence = positions(fields, options.get("sequence.field").unwrap_or_default())?;
        let is_set = |option: &str| options.get(option) == Some("true");
        Ok(Self {
            engine: match options.get("merge-engine").unwrap_or("deduplicate") {
                "deduplicate" => Engine::Deduplicate,
                "first-row" => Engine::FirstRow,
                "aggregation" => Engine::Aggregation(Aggregation::new(fields, key, &sequence, options)?),
                "partial-update" => Engine::PartialUpdate(PartialUpdate::new(fields, key, options)?),
                other => return Err(format!("merge engine {other}")),
            },
            key: key.to_vec(),
            sequence,
            descending: options.get("sequence.field.sort-order") == Some("descending"),
            ignore_delete: is_set("ignore-delete"),
        })
    }

    /// What the versions of one key, in the order in which they were written, become; one alone stays as it is.
    ///
    /// Errors: as the engine or a function refuses them.
    pub fn merge(&self, versions: &[Row]) -> Result<Option<Row>, String> {
        let mut versions: Vec<&Row> = versions.iter().collect();
        versions.sort_by(|a, b| self.sequence_order(&a.1, &b.1));
        let newest = match versions.as_slice() {
            [] => return Ok(None),
            [alone] => return Ok(Some((*alone).clone())),
            [.., newest] => *newest,
        };
        let mut adds = versions.iter().filter(|(kind, _)| kind.is_add());
        match &self.engine {
            Engine::Deduplicate if self.ignore_delete => Ok(adds.next_back().map(|row| (*row).clone())),
            Engine::Deduplicate => Ok(Some(newest.clone())),
            Engine::FirstRow if self.ignore_delete || versions.iter().all(|(kind, _)| kind.is_add()) => Ok(versions
                .iter()
                .find(|(kind, _)| kind.is_add())
                .map(|row| (*row).clone())),
            Engine::FirstRow => Err("first-row takes no retracts".to_owned()),
            Engine::Aggregation(engine) => engine.merge(&versions).map(Some),
            Engine::PartialUpdate(engine) => engine.merge(&versions).map(Some),
        }
    }

    /// The rows of a table after all writes: what a read shows, in key order.
    ///
    /// Errors: as [`merge`](Self::merge).
    pub fn table<'a>(&self, written: impl IntoIterator<Item = &'a Row>) -> Result<Vec<Vec<Datum>>, String> {
        let mut keys: BTreeMap<Vec<&Datum>, Vec<Row>> = BTreeMap::new();
        for row in written {
            let key = self.key.iter().filter_map(|&column| row.1.get(column)).collect();
            keys.entry(key).or_default().push(row.clone());
        }
        let mut rows = Vec::new();
        for versions in keys.values() {
            rows.extend(
                self.merge(versions)?
                    .filter(|(kind, _)| kind.is_add())
                    .map(|(_, row)| row),
            );
        }
        Ok(rows)
    }

    /// By the sequence fields; null is the oldest in both directions.
    fn sequence_order(&self, a: &[Datum], b: &[Datum]) -> Ordering {
        let compare = |&column: &usize| {
            let (Some(a), Some(b)) = (a.get(column), b.get(column)) else {
                return Ordering::Equal;
            };
            match self.descending && !a.is_null() && !b.is_null() {
                true => b.cmp(a),
                false => a.cmp(b),
            }
        };
        let orders = self.sequence.iter().map(compare);
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

/// The positions of columns that are named between commas.
fn positions(fields: &[DataField], names: &str) -> Result<Vec<usize>, String> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let position = |name: &str| {
        let position = fields.iter().position(|field| field.name == name);
        position.ok_or_else(|| format!("no column {name}"))
    };
    names.map(position).collect()
}
