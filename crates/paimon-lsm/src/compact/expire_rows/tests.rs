use paimon_format::meta::SimpleStats;
use paimon_format::row::BinaryRow;
use paimon_format::types::DataField;

use super::*;
use crate::testing::file;

const HOUR_MS: i64 = 3_600_000;

fn schema(id: i64, time: &str, kind: TypeKind) -> KvSchema {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(TypeKind::Int)),
        DataField::new(1, time, DataType::nullable(kind)),
    ];
    KvSchema::new(id, fields, vec![0], None).unwrap()
}

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().copied().collect()
}

/// Rows of an hour expire.
fn expire(kind: TypeKind) -> RecordLevelExpire {
    let options = options(&[(EXPIRE_TIME, "1 h"), (TIME_FIELD, "t")]);
    let schema = schema(0, "t", kind);
    RecordLevelExpire::from_options(&options, &schema).unwrap().unwrap()
}

/// A file whose statistics cover both columns, the key and the time.
fn oldest(kind: TypeKind, time: Datum) -> DataFileMeta {
    let types = [DataType::not_null(TypeKind::Int), DataType::nullable(kind)];
    DataFileMeta {
        value_stats: SimpleStats {
            min_values: BinaryRow::from_datums(&[Datum::Int32(1), time], &types).unwrap(),
            ..SimpleStats::default()
        },
        ..file("f", 0, 1)
    }
}

#[test]
fn the_limit_is_in_seconds() {
    let expire = expire(TypeKind::Int);
    assert_eq!(
        expire.expired_before(HOUR_MS + 5_999),
        ExpiredBefore { column: 1, seconds: 5 }
    );
    assert_eq!(expire.expired_before(i64::MIN).seconds, i64::MIN / 1000 - 1 - 3600);
}

#[test]
fn a_file_is_expired_when_its_oldest_row_is() {
    let is_expired = |kind: TypeKind, time: Datum| {
        let now_ms = 10_000 * HOUR_MS;
        expire(kind.clone()).is_expire_file(&oldest(kind, time), now_ms)
    };
    let limit = 9_999 * 3600;
    assert!(!is_expired(TypeKind::Int, Datum::Int32(limit)));
    assert!(is_expired(TypeKind::Int, Datum::Int32(limit - 1)));
    let limit = i64::from(limit);
    assert!(!is_expired(TypeKind::BigInt, Datum::Int64(limit)));
    assert!(is_expired(TypeKind::BigInt, Datum::Int64(limit - 1)));
    // Milliseconds: far in the future of this clock.
    assert!(!is_expired(TypeKind::BigInt, Datum::Int64(FIRST_MILLISECONDS)));
    let millis = |millis| Datum::Timestamp { millis, nanos: 0 };
    assert!(!is_expired(TypeKind::Timestamp(3), millis(limit * 1000)));
    assert!(is_expired(TypeKind::Timestamp(3), millis(limit * 1000 - 1)));
    assert!(is_expired(TypeKind::LocalZonedTimestamp(6), millis(limit * 1000 - 1)));
    assert!(!is_expired(TypeKind::Int, Datum::Null));
}

#[test]
fn statistics_may_be_dense_or_of_an_older_schema() {
    let now_ms = 10_000 * HOUR_MS;
    let current = schema(7, "t", TypeKind::Int);
    let settings = options(&[(EXPIRE_TIME, "1 h"), (TIME_FIELD, "t")]);
    let expire = RecordLevelExpire::from_options(&settings, &current).unwrap().unwrap();
    let dense = |columns: &[&str]| DataFileMeta {
        schema_id: 7,
        value_stats_cols: Some(columns.iter().map(|&name| name.to_owned()).collect()),
        ..oldest(TypeKind::Int, Datum::Int32(1))
    };
    assert!(expire.is_expire_file(&dense(&["k", "t"]), now_ms));
    assert!(!expire.is_expire_file(&dense(&["k", "other"]), now_ms));
    // Position out of range: nothing is known.
    assert!(!expire.is_expire_file(&dense(&["a", "b", "t"]), now_ms));
    let mut older = oldest(TypeKind::Int, Datum::Int32(1));
    older.schema_id = 3;
    assert!(!expire.is_expire_file(&older, now_ms));
    let renamed = expire.with_file_schema(&current, &schema(3, "old_name", TypeKind::Int));
    assert!(renamed.is_expire_file(&older, now_ms));
}

#[test]
fn illegal_options_are_named() {
    let error = |pairs: &[(&str, &str)], kind| {
        let schema = schema(0, "t", kind);
        RecordLevelExpire::from_options(&options(pairs), &schema)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(&[(EXPIRE_TIME, "1 h")], TypeKind::Int),
        "record-level.time-field: must be set when record-level.expire-time is"
    );
    assert_eq!(
        error(&[(EXPIRE_TIME, "1 h"), (TIME_FIELD, "x")], TypeKind::Int),
        "record-level.time-field: the table has no column x"
    );
    assert_eq!(
        error(&[(EXPIRE_TIME, "1 h"), (TIME_FIELD, "t")], TypeKind::Boolean),
        "record-level.time-field: column t must be an INT, a BIGINT or a TIMESTAMP"
    );
    assert_eq!(
        RecordLevelExpire::from_options(&Options::new(), &schema(0, "t", TypeKind::Int)).unwrap(),
        None
    );
}
