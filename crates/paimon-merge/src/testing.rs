//! Checks that any merge engine can run, and the pieces they are made of (feature `test-util`).

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, Datum, RowKind, TypeKind, array_from_datums};

use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::engine::{MergeEngine, MergeEngineFactory};
use crate::kernel::{AssembleOptions, Assembler, MergeFunction, MergeKernel, MergedRows, RowKernel};
use crate::plan::{MergePlan, PlanOptions, Step, VersionOrder};

/// Numbers that look random and are the same on every run (splitmix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 when that is empty.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}

/// A value of a type, from few enough that equal ones occur; null now and then where the type allows it.
pub fn any_value(numbers: &mut Numbers, data_type: &DataType) -> Datum {
    if data_type.nullable && numbers.below(5) == 0 {
        return Datum::Null;
    }
    let small = numbers.below(40) as i32 - 8;
    match &data_type.kind {
        TypeKind::Boolean => Datum::Boolean(small % 2 == 0),
        TypeKind::TinyInt => Datum::Int8(small as i8),
        TypeKind::SmallInt => Datum::Int16(small as i16),
        TypeKind::Int => Datum::Int32(small),
        TypeKind::BigInt => Datum::Int64(small.into()),
        TypeKind::Float => Datum::Float32(small as f32),
        TypeKind::Double => Datum::Float64(small.into()),
        TypeKind::Char(length) | TypeKind::VarChar(length) => {
            let text = format!("{small:03}-{}", "x".repeat(small.unsigned_abs() as usize));
            Datum::String(text.chars().take(*length as usize).collect())
        }
        TypeKind::Binary(length) | TypeKind::VarBinary(length) => {
            Datum::Bytes(small.to_be_bytes().into_iter().take(*length as usize).collect())
        }
        TypeKind::Decimal(..) => Datum::Decimal(i128::from(small % 10)),
        TypeKind::Date => Datum::Date(small),
        TypeKind::Time(_) => Datum::Time(small.abs()),
        TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => Datum::Timestamp {
            millis: i64::from(small) * 1000,
            nanos: 0,
        },
        TypeKind::Array(element) | TypeKind::Vector(element, _) => {
            Datum::Array((0..numbers.below(4)).map(|_| any_value(numbers, element)).collect())
        }
        TypeKind::Map(key, value) => Datum::Map(vec![(not_null_value(numbers, key), any_value(numbers, value))]),
        TypeKind::Multiset(element) => Datum::Map(vec![(not_null_value(numbers, element), Datum::Int32(1))]),
        TypeKind::Row(fields) => Datum::Row(
            fields
                .iter()
                .map(|field| any_value(numbers, &field.data_type))
                .collect(),
        ),
        TypeKind::Variant | TypeKind::Blob => Datum::Null,
    }
}

fn not_null_value(numbers: &mut Numbers, data_type: &DataType) -> Datum {
    any_value(numbers, &DataType::not_null(data_type.kind.clone()))
}

/// Records in key and version order, with sequence numbers that ascend with the version order, and the run (0 is the oldest) that
/// each record is in: runs are adjacent stretches of a key's versions.
#[derive(Clone, Debug)]
pub struct SampleRuns {
    all: KvBatch,
    runs: Vec<usize>,
}

/// What random records are made of.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    /// The kinds, as often as they stand here.
    pub kinds: &'a [RowKind],
    /// A value of a column.
    pub value: &'a dyn Fn(&mut Numbers, &DataField) -> Datum,
}

impl Samples<'_> {
    /// Any values, and every kind that an engine takes.
    pub fn for_engine(engine: &dyn MergeEngine) -> Self {
        use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
        Self {
            kinds: match engine.promises().accepts_retract {
                true => &[Insert, Insert, UpdateAfter, UpdateAfter, UpdateBefore, Delete],
                false => &[Insert, UpdateAfter],
            },
            value: &|numbers, field| any_value(numbers, &field.data_type),
        }
    }
}

impl SampleRuns {
    /// About `rows` records, spread over `runs` runs.
    ///
    /// Errors: for schemas whose columns have no Arrow form.
    pub fn new(
        schema: &Arc<KvSchema>,
        seed: u64,
        rows: usize,
        runs: usize,
        samples: &Samples<'_>,
    ) -> Result<Self, MergeError> {
        let mut numbers = Numbers::new(seed);
        let kind = |numbers: &mut Numbers| {
            let kinds = samples.kinds;
            kinds
                .get(numbers.below(kinds.len() as u64) as usize)
                .copied()
                .unwrap_or(RowKind::Insert)
        };
        let sequence: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(rows)));
        let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values((0..rows).map(|_| kind(&mut numbers) as i8)));
        let mut columns = vec![Arc::clone(&sequence), kinds];
        for field in &schema.fields {
            let values: Vec<Datum> = (0..rows).map(|_| (samples.value)(&mut numbers, field)).collect();
            columns.push(array_from_datums(field, &values)?);
        }
        let columns = record_batch(schema, columns)?;
        let codec = KeyCodec::new(schema)?;
        let unsorted = KvBatch::new(schema, columns, &codec, RowLevels::All(0))?;
        let versions = VersionOrder::new(schema)?.prepare(&unsorted)?;
        let mut order: Vec<u32> = (0..).take(rows).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            unsorted
                .keys
                .compare(a, &unsorted.keys, b)
                .then_with(|| versions.compare(a, &versions, b))
        });
        let sorted = take_record_batch(&unsorted.columns, &UInt32Array::from(order)).map_err(arrow_error)?;
        let mut columns = sorted.columns().to_vec();
        columns[0] = sequence;
        let all = KvBatch::new(schema, record_batch(schema, columns)?, &codec, RowLevels::All(0))?;
        let mut run_of = Vec::with_capacity(rows);
        for row in 0..rows {
            let lowest = match row.checked_sub(1) {
                Some(before) if all.keys.equal(before, &all.keys, row) => run_of[before],
                _ => 0,
            };
            // Most versions of a key lie in runs of their own, as in a table.
            run_of.push((lowest + numbers.below(3) as usize).min(runs - 1));
        }
        Ok(Self { all, runs: run_of })
    }

    /// All records.
    pub fn all(&self) -> &KvBatch {
        &self.all
    }

    /// The records of some adjacent runs, as one run.
    pub fn run(&self, runs: std::ops::Range<usize>) -> Result<KvBatch, MergeError> {
        let rows: UInt32Array = (0..)
            .zip(&self.runs)
            .filter(|(_, run)| runs.contains(run))
            .map(|(row, _)| Some(row))
            .collect();
        let columns = take_record_batch(&self.all.columns, &rows).map_err(arrow_error)?;
        let codec = KeyCodec::new(&self.all.schema)?;
        Ok(KvBatch::new(&self.all.schema, columns, &codec, RowLevels::All(0))?)
    }
}

/// Cuts a run into batches.
pub fn batches_of(run: &KvBatch, rows: usize) -> Vec<KvBatch> {
    let rows = rows.max(1);
    (0..run.len())
        .step_by(rows)
        .map(|start| run.slice(start, rows.min(run.len() - start)))
        .collect()
}

/// Merges whole runs, oldest first, with an engine; all merged records as one batch.
pub fn merge_runs(
    engine: &dyn MergeEngine,
    schema: &Arc<KvSchema>,
    runs: Vec<Vec<KvBatch>>,
    options: PlanOptions,
) -> Result<KvBatch, MergeError> {
    merge_with(engine.kernel(schema)?.as_mut(), schema, runs, options)
}

/// As [`merge_runs`], with a kernel.
pub fn merge_with(
    kernel: &mut dyn MergeKernel,
    schema: &Arc<KvSchema>,
    runs: Vec<Vec<KvBatch>>,
    options: PlanOptions,
) -> Result<KvBatch, MergeError> {
    let mut plan = MergePlan::new(runs.len(), schema, options)?;
    let mut runs: Vec<_> = runs.into_iter().map(Vec::into_iter).collect();
    let mut assembler = Assembler::new(Arc::clone(schema), AssembleOptions::default())?;
    let mut merged = MergedRows::default();
    let mut batches = Vec::new();
    loop {
        match plan.step()? {
            Step::NeedInput(run) => match runs.get_mut(run).and_then(Iterator::next) {
                Some(batch) => plan.push(run, batch)?,
                None => plan.end(run)?,
            },
            Step::Block(block) => {
                merged.clear();
                kernel.merge(&block.groups(), &mut merged)?;
                let extras = assembler.extras(merged.made.as_ref(), None)?;
                assembler.add_merged(&block, &merged, &extras)?;
            }
            Step::Done => break,
        }
        batches.extend(std::iter::from_fn(|| assembler.next_batch()));
    }
    assembler.finish()?;
    batches.extend(std::iter::from_fn(|| assembler.next_batch()));
    let columns = concat_batches(&schema.arrow, batches.iter().map(|batch| &batch.columns)).map_err(arrow_error)?;
    Ok(KvBatch::new(
        schema,
        columns,
        &KeyCodec::new(schema)?,
        RowLevels::All(-1),
    )?)
}

/// Checks the contract of a merge engine on many small random histories of `schema`: merging is associative over adjacent runs of versions,
/// and does not depend on how runs are cut into batches, blocks and open groups.
///
/// Errors: the first law that was broken, in words.
pub fn check_engine(factory: &dyn MergeEngineFactory, schema: &Arc<KvSchema>, options: &Options) -> Result<(), String> {
    let engine = factory
        .create(schema, options, &Aggregators::default())
        .map_err(|error| error.to_string())?;
    check_created(engine.as_ref(), schema)
}

/// As [`check_engine`], for an engine that a registry made: with aggregate functions of one's own, for example.
pub fn check_created(engine: &dyn MergeEngine, schema: &Arc<KvSchema>) -> Result<(), String> {
    check_created_on(engine, schema, &Samples::for_engine(engine))
}

/// As [`check_created`], on records of one's own making.
pub fn check_created_on(engine: &dyn MergeEngine, schema: &Arc<KvSchema>, samples: &Samples<'_>) -> Result<(), String> {
    for seed in 0..40 {
        let sample = SampleRuns::new(schema, seed, 60, 3, samples).map_err(|error| error.to_string())?;
        let run = |runs| sample.run(runs).map_err(|error| error.to_string());
        let merge = |runs: Vec<KvBatch>, batch_rows, block_keys| {
            let runs = runs.iter().map(|run| batches_of(run, batch_rows)).collect();
            let options = PlanOptions {
                block_keys,
                ..PlanOptions::default()
            };
            merge_runs(engine, schema, runs, options).map_err(|error| error.to_string())
        };
        let (a, b, c) = (run(0..1)?, run(1..2)?, run(2..3)?);
        // Runs of files hold a key once: what each run's own versions become.
        let (a, b, c) = (
            merge(vec![a], 100, 100)?,
            merge(vec![b], 100, 100)?,
            merge(vec![c], 100, 100)?,
        );
        let all = merge(vec![a.clone(), b.clone(), c.clone()], 100, 100)?;
        let at_once = merge(vec![sample.all().clone()], 100, 100)?;
        same("three runs and one run with all versions", seed, &all, &at_once)?;
        let newer = merge(vec![b.clone(), c.clone()], 100, 100)?;
        same(
            "a, b, c and a, (b, c)",
            seed,
            &all,
            &merge(vec![a.clone(), newer], 100, 100)?,
        )?;
        let older = merge(vec![a.clone(), b.clone()], 100, 100)?;
        same(
            "a, b, c and (a, b), c",
            seed,
            &all,
            &merge(vec![older, c.clone()], 100, 100)?,
        )?;
        for (batch_rows, block_keys) in [(1, 1), (1, 1000), (3, 2), (7, 5), (1000, 1)] {
            let what = format!("batches of 100 rows and of {batch_rows} rows with blocks of {block_keys} keys");
            let cut = merge(vec![a.clone(), b.clone(), c.clone()], batch_rows, block_keys)?;
            same(&what, seed, &all, &cut)?;
            let cut = merge(vec![sample.all().clone()], batch_rows, block_keys)?;
            same(&format!("{what}, one run"), seed, &at_once, &cut)?;
        }
    }
    Ok(())
}

/// Checks that an engine's kernel does what a merge function says, record by record: keys, kinds and values.
///
/// Errors: the first difference, in words.
pub fn check_kernel(
    engine: &dyn MergeEngine,
    schema: &Arc<KvSchema>,
    function: impl Fn() -> Box<dyn MergeFunction>,
) -> Result<(), String> {
    check_kernel_on(engine, schema, &Samples::for_engine(engine), function)
}

/// As [`check_kernel`], on records of one's own making.
pub fn check_kernel_on(
    engine: &dyn MergeEngine,
    schema: &Arc<KvSchema>,
    samples: &Samples<'_>,
    function: impl Fn() -> Box<dyn MergeFunction>,
) -> Result<(), String> {
    let text = |error: MergeError| error.to_string();
    for seed in 0..5 {
        let sample = SampleRuns::new(schema, seed, 60, 3, samples).map_err(text)?;
        let run = |run: usize| Ok(batches_of(&sample.run(run..run + 1)?, 10));
        let runs = (0..3).map(run).collect::<Result<Vec<_>, MergeError>>().map_err(text)?;
        let mut reference = RowKernel::new("reference".to_owned(), function(), Arc::clone(schema)).map_err(text)?;
        let expected = merge_with(&mut reference, schema, runs.clone(), PlanOptions::default()).map_err(text)?;
        for block_keys in [1, 3, 1000] {
            let options = PlanOptions {
                block_keys,
                ..PlanOptions::default()
            };
            let found = merge_runs(engine, schema, runs.clone(), options).map_err(text)?;
            if let Some((at, expected, found)) = first_difference(&expected, &found, false) {
                return Err(format!(
                    "seed {seed}, blocks of {block_keys} keys: record {at} is {found}, not {expected}"
                ));
            }
        }
    }
    Ok(())
}

/// Compares merged records: keys, values, sequence numbers, and whether they are there; +I and +U are the same.
fn same(what: &str, seed: u64, left: &KvBatch, right: &KvBatch) -> Result<(), String> {
    let is_add = |batch: &KvBatch| -> Vec<bool> { (0..batch.len()).map(|row| batch.kind(row).is_add()).collect() };
    let equal = left.columns.column(0) == right.columns.column(0)
        && left.values() == right.values()
        && is_add(left) == is_add(right);
    match first_difference(left, right, true).filter(|_| !equal) {
        None => Ok(()),
        Some((at, left, right)) => Err(format!(
            "{what} differ (seed {seed}): record {at} is {left} and {right}"
        )),
    }
}

/// The first record that differs, with both forms of it. Values are compared as Java does: every NaN is the same.
fn first_difference(left: &KvBatch, right: &KvBatch, with_sequence: bool) -> Option<(usize, String, String)> {
    let record = |batch: &KvBatch, row: usize| {
        let sequence = batch.sequence_numbers().get(row)?;
        let values = batch.values().iter().map(|column| Datum::from_array(column, row));
        let values = values.collect::<Result<Vec<Datum>, _>>().unwrap_or_default();
        Some((batch.kind(row), values, with_sequence.then_some(*sequence)))
    };
    let text = |record: Option<_>| record.map_or("nothing".to_owned(), |record| format!("{record:?}"));
    (0..left.len().max(right.len())).find_map(|at| {
        let (left, right) = (record(left, at), record(right, at));
        (left != right).then(|| (at, text(left), text(right)))
    })
}

fn record_batch(schema: &KvSchema, columns: Vec<ArrayRef>) -> Result<RecordBatch, MergeError> {
    RecordBatch::try_new(Arc::clone(&schema.arrow), columns).map_err(arrow_error)
}

fn arrow_error(error: arrow_schema::ArrowError) -> MergeError {
    FormatError::internal(error).into()
}
