//! Stages run on small runs of rows, old rows being looked up in others.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use paimon_format::kv::{KeyCodec, KvBatch, RowLevels};
use paimon_format::types::{Datum, RowKind, array_from_datums};
use paimon_merge::MergeError;
use paimon_merge::changelog::{Hit, Hits, LookupNeed, MergeStage, StageOutput};
use paimon_merge::plan::{Block, KeyGroups, MergePlan, PlanOptions, RowRef, Span, Step};
use paimon_merge::testing::batches_of;

use crate::table::Table;

/// A stored row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) kind: RowKind,
    pub(crate) sequence: i64,
    pub(crate) values: Vec<Datum>,
}

impl Record {
    pub(crate) fn key(&self) -> &Datum {
        &self.values[0]
    }
}

/// What a stage made of its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Played {
    pub(crate) rows: Vec<Record>,
    pub(crate) changes: Vec<Record>,
    /// Keys that were looked up.
    pub(crate) asked: Vec<Datum>,
}

/// `+I 1 a | +I 2 b`: kinds and values.
pub(crate) fn text(records: &[Record]) -> String {
    let records = records.iter().map(|record| {
        let values: Vec<String> = record.values.iter().map(word).collect();
        format!("{} {}", record.kind, values.join(" "))
    });
    records.collect::<Vec<_>>().join("; ")
}

fn word(value: &Datum) -> String {
    match value {
        Datum::Null => "N".to_owned(),
        Datum::String(text) => text.clone(),
        Datum::Int32(number) => number.to_string(),
        Datum::Int64(number) => number.to_string(),
        Datum::Float64(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The rows of a text as a run of a level; sequence numbers ascend from `sequence`.
pub(crate) fn run(table: &Table, level: i32, sequence: i64, rows: &str) -> KvBatch {
    let mut run = table.run(&table.rows(rows), sequence);
    run.levels = RowLevels::All(level);
    run
}

/// Records, sorted by key and version, as a run of a level.
pub(crate) fn batch(table: &Table, level: i32, records: &[Record]) -> KvBatch {
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(
            records.iter().map(|record| record.sequence),
        )),
        Arc::new(Int8Array::from_iter_values(
            records.iter().map(|record| record.kind as i8),
        )),
    ];
    for (position, field) in table.schema.fields.iter().enumerate() {
        let values = records.iter().map(|record| &record.values[position]);
        columns.push(array_from_datums(field, values).unwrap());
    }
    let columns = RecordBatch::try_new(Arc::clone(&table.schema.arrow), columns).unwrap();
    let codec = KeyCodec::new(&table.schema).unwrap();
    KvBatch::new(&table.schema, columns, &codec, RowLevels::All(level)).unwrap()
}

/// The records of a batch.
pub(crate) fn records(batch: &KvBatch) -> Vec<Record> {
    (0..batch.len()).map(|row| record(&batch.columns, row, None)).collect()
}

fn record(columns: &RecordBatch, row: usize, kind: Option<RowKind>) -> Record {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int8Type, Int64Type};
    let stored = columns.column(1).as_primitive::<Int8Type>().value(row);
    let values = columns.columns()[2..].iter();
    Record {
        kind: kind.unwrap_or_else(|| RowKind::from_byte(stored).unwrap()),
        sequence: columns.column(0).as_primitive::<Int64Type>().value(row),
        values: values.map(|column| Datum::from_array(column, row).unwrap()).collect(),
    }
}

/// How a stage is run.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) batch_rows: usize,
    pub(crate) block_keys: usize,
    pub(crate) need: LookupNeed,
}

impl Default for Cut {
    fn default() -> Self {
        Self {
            batch_rows: 100,
            block_keys: 100,
            need: LookupNeed::Value,
        }
    }
}

/// Runs a stage over `runs`, oldest first; old rows are looked up in `below`, from the lowest level up.
pub(crate) fn play(
    table: &Table,
    stage: &mut dyn MergeStage,
    runs: &[KvBatch],
    below: &[KvBatch],
    cut: Cut,
) -> Result<Played, MergeError> {
    let passes: BTreeMap<i32, bool> = (-1..10).map(|level| (level, stage.passes(level))).collect();
    let options = PlanOptions {
        block_keys: cut.block_keys,
        cut_keys: !stage.whole_keys(),
        passes: Arc::new(move |level| passes[&level]),
        ..PlanOptions::default()
    };
    let mut plan = MergePlan::new(runs.len(), &table.schema, options)?;
    let mut runs: Vec<_> = runs
        .iter()
        .map(|run| batches_of(run, cut.batch_rows).into_iter())
        .collect();
    let mut played = Played::default();
    let mut out = StageOutput::default();
    loop {
        match plan.step()? {
            Step::NeedInput(run) => match runs[run].next() {
                Some(batch) => plan.push(run, batch)?,
                None => plan.end(run)?,
            },
            Step::Done => return Ok(played),
            Step::Block(block) => {
                let groups = block.groups();
                let hits = look_up(
                    table,
                    &groups,
                    &stage.missing(&groups),
                    below,
                    cut.need,
                    &mut played.asked,
                );
                out.clear();
                stage.merge(&groups, &hits, &mut out)?;
                collect(&block, &hits, &out, &mut played);
            }
        }
    }
}

fn look_up(
    table: &Table,
    groups: &KeyGroups<'_>,
    missing: &[u32],
    below: &[KvBatch],
    need: LookupNeed,
    asked: &mut Vec<Datum>,
) -> Hits {
    let mut hits = Hits {
        files: vec![Arc::from("a file")],
        ..Hits::none()
    };
    let (mut found, mut levels) = (Vec::new(), Vec::new());
    for &group in missing {
        let at = groups.rows[groups.start(group as usize)];
        let key = record(&groups.sources[at.batch as usize].columns, at.row as usize, None).values[0].clone();
        let place = below.iter().find_map(|run| {
            let row = records(run).iter().position(|record| *record.key() == key)?;
            Some((run, row))
        });
        asked.push(key);
        hits.found.push(place.map(|(run, row)| {
            let hit = Hit {
                row: need.value().then_some(found.len() as u32),
                position: need.position().then_some((0, row as u64)),
            };
            if need.value() {
                found.push(record(&run.columns, row, None));
                levels.push(run.levels.get(row));
            }
            hit
        }));
    }
    if !found.is_empty() {
        // In no particular order: the last that was found comes first.
        found.reverse();
        levels.reverse();
        let last = found.len() as u32 - 1;
        for hit in hits.found.iter_mut().flatten() {
            hit.row = hit.row.map(|row| last - row);
        }
        let mut rows = batch(table, 0, &found);
        rows.levels = RowLevels::Each(levels.into());
        hits.rows = Some(rows);
    }
    hits
}

/// Reads positions.
fn collect(block: &Block, hits: &Hits, out: &StageOutput, played: &mut Played) {
    let sources = block.sources.len();
    let resolve = |row: RowRef, kind: RowKind| {
        let columns = match row.batch as usize {
            batch if batch < sources => &block.sources[batch].columns,
            batch if batch == sources => out.merged.made.as_ref().unwrap(),
            _ => &hits.rows.as_ref().unwrap().columns,
        };
        record(columns, row.row as usize, Some(kind))
    };
    let merged = &out.merged;
    let (mut groups, mut next) = (0, 0);
    for span in &block.spans {
        match span {
            Span::Pass { batch, rows } => {
                let columns = &block.sources[*batch as usize].columns;
                played
                    .rows
                    .extend(rows.clone().map(|row| record(columns, row as usize, None)));
            }
            Span::Groups(more) => {
                groups += more;
                while next < merged.groups.len() && merged.groups[next] < groups {
                    played.rows.push(resolve(merged.rows[next], merged.kinds[next]));
                    next += 1;
                }
            }
        }
    }
    assert_eq!(next, merged.groups.len());
    let changes = out.changelog.rows.iter().zip(&out.changelog.kinds);
    played.changes.extend(changes.map(|(&row, &kind)| resolve(row, kind)));
}
