//! A small table whose rows are merged by an engine that its options name.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels, SequenceOrder};
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, Datum, RowKind, TypeKind, array_from_datums};
use paimon_merge::MergeError;
use paimon_merge::engine::{MergeEngine, Registry};
use paimon_merge::plan::PlanOptions;
use paimon_merge::testing::{batches_of, merge_runs};

pub(crate) const STRING: TypeKind = TypeKind::VarChar(i32::MAX as u32);

/// A row with its kind.
pub(crate) type Row = (RowKind, Vec<Datum>);

/// The key `k` INT, and more columns.
pub(crate) struct Table {
    pub(crate) schema: Arc<KvSchema>,
    pub(crate) engine: Arc<dyn MergeEngine>,
}

fn field(id: i32, name: &str, kind: TypeKind) -> DataField {
    // `name!` is NOT NULL.
    match name.strip_suffix('!') {
        Some(name) => DataField::new(id, name, DataType::not_null(kind)),
        None => DataField::new(id, name, DataType::nullable(kind)),
    }
}

pub(crate) fn schema(columns: &[(&str, TypeKind)], options: &Options) -> Arc<KvSchema> {
    let columns = columns.iter().cloned().zip(1..);
    let mut fields = vec![DataField::new(0, "k", DataType::not_null(TypeKind::Int))];
    fields.extend(columns.map(|((name, kind), id)| field(id, name, kind)));
    let sequence = options.get("sequence.field").map(|names| SequenceOrder {
        columns: names
            .split(',')
            .map(|name| fields.iter().position(|field| field.name == name).unwrap())
            .collect(),
        descending: options.get("sequence.field.sort-order") == Some("descending"),
    });
    Arc::new(KvSchema::new(0, fields, vec![0], sequence).unwrap())
}

/// `a=1, b=2`: options; the first is the engine.
pub(crate) fn options(engine: &str, options: &[(&str, &str)]) -> Options {
    let mut all = Options::from_iter(options.iter().copied());
    all.set("merge-engine", engine);
    all
}

/// The error of making a table.
pub(crate) fn refused(engine: &str, columns: &[(&str, TypeKind)], given: &[(&str, &str)]) -> String {
    let options = options(engine, given);
    let schema = schema(columns, &options);
    let error = Registry::default().for_options(&schema, &options).unwrap_err();
    assert_eq!(error.kind(), paimon_format::ErrorKind::Invalid);
    error.to_string()
}

impl Table {
    pub(crate) fn new(engine: &str, columns: &[(&str, TypeKind)], given: &[(&str, &str)]) -> Self {
        let options = options(engine, given);
        let schema = schema(columns, &options);
        let engine = Registry::default().for_options(&schema, &options).unwrap();
        Self { schema, engine }
    }

    /// `+I 1 10 N` per row, rows between `;`.
    pub(crate) fn rows(&self, text: &str) -> Vec<Row> {
        let rows = text.split(';').map(str::trim).filter(|row| !row.is_empty());
        rows.map(|row| {
            let mut words = row.split_whitespace();
            let kind = row_kind(words.next().unwrap());
            let values = self.schema.fields.iter().zip(&mut words);
            let values: Vec<Datum> = values.map(|(field, word)| value(&field.data_type.kind, word)).collect();
            assert_eq!(values.len(), self.schema.fields.len(), "{row}");
            assert_eq!(words.next(), None, "{row}");
            (kind, values)
        })
        .collect()
    }

    /// Rows of key 1 with one further column.
    pub(crate) fn values(values: &[(RowKind, Datum)]) -> Vec<Row> {
        let row = |(kind, value): &(RowKind, Datum)| (*kind, vec![Datum::Int32(1), value.clone()]);
        values.iter().map(row).collect()
    }

    /// One sorted run of rows in the order in which they came; sequence numbers from `sequence`.
    pub(crate) fn run(&self, rows: &[Row], sequence: i64) -> KvBatch {
        let mut numbered: Vec<(i64, &Row)> = (sequence..).zip(rows).collect();
        numbered.sort_by(|(a, (_, left)), (b, (_, right))| {
            let order = left[0].cmp(&right[0]);
            let order = self.schema.sequence.iter().fold(order, |order, sequence| {
                sequence.columns.iter().fold(order, |order, &column| {
                    order.then_with(|| {
                        let (left, right) = (&left[column], &right[column]);
                        let ascending = left.cmp(right);
                        let reverse = sequence.descending && !left.is_null() && !right.is_null();
                        if reverse { ascending.reverse() } else { ascending }
                    })
                })
            });
            order.then(a.cmp(b))
        });
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(numbered.iter().map(|(number, _)| *number))),
            Arc::new(Int8Array::from_iter_values(numbered.iter().map(|(_, row)| row.0 as i8))),
        ];
        for (position, field) in self.schema.fields.iter().enumerate() {
            columns.push(array_from_datums(field, numbered.iter().map(|(_, row)| &row.1[position])).unwrap());
        }
        let columns = RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns).unwrap();
        let codec = KeyCodec::new(&self.schema).unwrap();
        KvBatch::new(&self.schema, columns, &codec, RowLevels::All(0)).unwrap()
    }

    /// Calls the engine even for lone versions. The result does not depend on how blocks are cut.
    pub(crate) fn merge(&self, rows: &[Row]) -> Result<Vec<Row>, MergeError> {
        let run = self.run(rows, 1);
        let merge = |batch_rows, block_keys| -> Result<Vec<Row>, MergeError> {
            let options = PlanOptions {
                block_keys,
                passes: Arc::new(|_| false),
                ..PlanOptions::default()
            };
            let merged = merge_runs(
                self.engine.as_ref(),
                &self.schema,
                vec![batches_of(&run, batch_rows)],
                options,
            )?;
            Ok(records(&merged))
        };
        let merged = merge(100, 100);
        for (batch_rows, block_keys) in [(1, 1), (2, 1), (3, 2)] {
            let cut = merge(batch_rows, block_keys);
            match (&merged, cut) {
                (Ok(merged), Ok(cut)) => assert_eq!(*merged, cut, "in batches of {batch_rows}, blocks of {block_keys}"),
                (Err(error), Err(other)) => assert_eq!(error.to_string(), other.to_string()),
                (merged, cut) => panic!("{merged:?} and {cut:?}"),
            }
        }
        merged
    }

    /// As [`merge`](Self::merge), lone versions passing as they do in compactions and reads.
    pub(crate) fn merge_passing(&self, runs: &[KvBatch]) -> Result<KvBatch, MergeError> {
        let runs = runs.iter().map(|run| batches_of(run, 3)).collect();
        merge_runs(self.engine.as_ref(), &self.schema, runs, PlanOptions::default())
    }

    pub(crate) fn check(&self, rows: &str, expected: &str) {
        let merged = self.merge(&self.rows(rows)).unwrap();
        assert_eq!(merged, self.rows(expected), "{rows}");
    }

    pub(crate) fn fails(&self, rows: &str) -> String {
        self.merge(&self.rows(rows)).unwrap_err().to_string()
    }
}

pub(crate) fn records(batch: &KvBatch) -> Vec<Row> {
    (0..batch.len())
        .map(|row| {
            let values = batch.values().iter();
            let values = values.map(|column| Datum::from_array(column, row).unwrap()).collect();
            (batch.kind(row), values)
        })
        .collect()
}

fn row_kind(text: &str) -> RowKind {
    match text {
        "+I" => RowKind::Insert,
        "-U" => RowKind::UpdateBefore,
        "+U" => RowKind::UpdateAfter,
        "-D" => RowKind::Delete,
        other => panic!("{other}"),
    }
}

/// `N` is null, `_` a blank text, `~` an empty one.
fn value(kind: &TypeKind, word: &str) -> Datum {
    if word == "N" {
        return Datum::Null;
    }
    match kind {
        TypeKind::TinyInt => Datum::Int8(word.parse().unwrap()),
        TypeKind::SmallInt => Datum::Int16(word.parse().unwrap()),
        TypeKind::Int => Datum::Int32(word.parse().unwrap()),
        TypeKind::BigInt => Datum::Int64(word.parse().unwrap()),
        TypeKind::Double => Datum::Float64(word.parse().unwrap()),
        TypeKind::Boolean => Datum::Boolean(word.parse().unwrap()),
        TypeKind::VarChar(_) => Datum::String(match word {
            "_" => " ".to_owned(),
            "~" => String::new(),
            word => word.to_owned(),
        }),
        TypeKind::Decimal(_, scale) => {
            let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
            Datum::Decimal(
                format!("{whole}{fraction:0<width$}", width = usize::from(*scale))
                    .parse()
                    .unwrap(),
            )
        }
        other => panic!("{other}"),
    }
}
