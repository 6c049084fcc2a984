//! The benchmark table: rows are a function of (run, i), the same as in the Java program (`Bench.java` of the oracle).

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray, make_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::types::{DataField, DataType, TypeKind};

/// The columns `k` BIGINT (the key), `a` `b` `c` INT, `d` `e` BIGINT, `f` DOUBLE, `s` STRING of 32 bytes, `t` TIMESTAMP(3).
///
/// Errors: never, as long as these types exist.
pub fn schema() -> Result<Arc<KvSchema>, FormatError> {
    let kinds = [
        ("k", TypeKind::BigInt),
        ("a", TypeKind::Int),
        ("b", TypeKind::Int),
        ("c", TypeKind::Int),
        ("d", TypeKind::BigInt),
        ("e", TypeKind::BigInt),
        ("f", TypeKind::Double),
        ("s", TypeKind::VarChar(i32::MAX as u32)),
        ("t", TypeKind::Timestamp(3)),
    ];
    let field = |(id, (name, kind)): (i32, (&str, TypeKind))| {
        let nullable = name != "k";
        DataField::new(id, name, DataType { kind, nullable })
    };
    let fields = (0..).zip(kinds).map(field).collect();
    Ok(Arc::new(KvSchema::new(0, fields, vec![0], None)?))
}

/// Splitmix64's output function.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The keys of one run with their sequence numbers, sorted, the last of equal ones kept: what a flush leaves. `rows` is the number of rows
/// of all runs; keys are uniform over half as many.
pub fn run_keys(run: u64, runs: u64, rows: u64) -> Vec<(i64, i64)> {
    let per_run = rows / runs.max(1);
    let key = |i: u64| (mix(run << 32 | i) % (rows / 2).max(1)) as i64;
    let mut keys: Vec<(i64, i64)> = (0..per_run).map(|i| (key(i), (run * per_run + i) as i64)).collect();
    keys.sort_unstable();
    let mut last: Vec<(i64, i64)> = Vec::with_capacity(keys.len());
    for (key, sequence) in keys {
        match last.last_mut() {
            Some(before) if before.0 == key => before.1 = sequence,
            _ => last.push((key, sequence)),
        }
    }
    last
}

/// The records of some keys of a run, with their sequence numbers; with `nulls` half of all values but keys are null.
///
/// Errors: `Internal` when `schema` is not the one made here.
pub fn batch(
    schema: &Arc<KvSchema>,
    codec: &KeyCodec,
    run: u64,
    keys: &[(i64, i64)],
    nulls: bool,
) -> Result<KvBatch, FormatError> {
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| key.1))),
        Arc::new(Int8Array::from(vec![0; keys.len()])),
    ];
    let keys: Vec<i64> = keys.iter().map(|key| key.0).collect();
    columns.extend(columns_of(&keys, run, nulls)?);
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).map_err(FormatError::internal)?;
    KvBatch::new(schema, columns, codec, RowLevels::All(0))
}

/// The rows of some keys, as a table takes them.
///
/// Errors: never, as long as these types exist.
pub fn rows(keys: &[i64], salt: u64) -> Result<RecordBatch, FormatError> {
    let names = ["k", "a", "b", "c", "d", "e", "f", "s", "t"];
    let columns = names.into_iter().zip(columns_of(keys, salt, false)?);
    RecordBatch::try_from_iter(columns).map_err(FormatError::internal)
}

/// The columns of the rows with these keys: `Bench.row` of the oracle.
fn columns_of(keys: &[i64], salt: u64, nulls: bool) -> Result<Vec<ArrayRef>, FormatError> {
    let hash: Vec<i64> = keys
        .iter()
        .map(|&key| mix((key as u64).wrapping_mul(31).wrapping_add(salt)) as i64)
        .collect();
    let unsigned = |bits: u32| hash.iter().map(move |&h| ((h as u64) >> bits) as i64);
    let text = hash.iter().map(|&h| {
        let words: Vec<u64> = (0..4).map(|word| mix((h as u64).wrapping_add(word))).collect();
        let letter = |i: usize| char::from(b'a' + (words[i / 8] >> (i % 8 * 8) & 15) as u8);
        (0..32).map(letter).collect::<String>()
    });
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(keys.iter().copied())),
        Arc::new(Int32Array::from_iter_values(hash.iter().map(|h| (h % 1000) as i32))),
        Arc::new(Int32Array::from_iter_values(unsigned(33).map(|h| h as i32))),
        Arc::new(Int32Array::from_iter_values(keys.iter().map(|_| (salt % 100) as i32))),
        Arc::new(Int64Array::from_iter_values(unsigned(8))),
        Arc::new(Int64Array::from_iter_values(
            keys.iter().map(|key| key * 7 + salt as i64),
        )),
        Arc::new(Float64Array::from_iter_values(
            unsigned(11).map(|h| h as f64 * (-53f64).exp2()),
        )),
        Arc::new(StringArray::from_iter_values(text)),
        Arc::new(TimestampMillisecondArray::from_iter_values(
            unsigned(40).map(|h| 1_700_000_000_000 + h),
        )),
    ];
    if nulls {
        for (bit, column) in (21..).zip(columns.iter_mut().skip(1)) {
            let valid: BooleanBuffer = hash.iter().map(|&h| (h as u64) >> bit & 1 == 1).collect();
            let data = column.to_data().into_builder().nulls(Some(NullBuffer::new(valid)));
            *column = make_array(data.build().map_err(FormatError::internal)?);
        }
    }
    Ok(columns)
}
