//! Values and keys of options, and what is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;

use super::*;
use crate::ErrorKind;
use crate::bucket::BucketFunctionType;

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().copied().collect()
}

#[rstest]
#[case("4096", 4096)]
#[case("500 b", 500)]
#[case("8kb", 8 << 10)]
#[case(" 64 mb ", 64 << 20)]
#[case("128MB", 128 << 20)]
#[case("1g", 1 << 30)]
#[case("2 tebibytes", 2 << 40)]
#[case("9223372036854775807", i64::MAX as u64)]
fn memory_sizes(#[case] text: &str, #[case] bytes: u64) {
    assert_eq!(parse_memory_size(text), Ok(bytes));
}

#[rstest]
#[case("")]
#[case("mb")]
#[case("-1 mb")]
#[case("1.5 mb")]
#[case("1 pb")]
#[case("8 m b")]
#[case("9223372036854775808")]
#[case("99999999999 gb")]
fn no_memory_sizes(#[case] text: &str) {
    let error = options(&[("target-file-size", text)])
        .memory_size("target-file-size")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "option 'target-file-size' = '{text}': expected a memory size such as '64 mb', \
             with unit b, kb, mb, gb, tb or none (bytes)"
        )
    );
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[rstest]
#[case("10 s", Duration::from_secs(10))]
#[case("1h", Duration::from_secs(3600))]
#[case("1 d", Duration::from_secs(86_400))]
#[case("2 Days", Duration::from_secs(172_800))]
#[case("5min", Duration::from_secs(300))]
#[case("100 ms", Duration::from_millis(100))]
#[case("100", Duration::from_millis(100))]
#[case("1500 ms", Duration::from_millis(1500))]
#[case("7 µs", Duration::from_micros(7))]
#[case("3000000001 ns", Duration::new(3, 1))]
fn durations(#[case] text: &str, #[case] expected: Duration) {
    assert_eq!(parse_duration(text), Ok(expected));
}

#[rstest]
#[case("s")]
#[case("-1 s")]
#[case("PT10S")]
#[case("1 fortnight")]
fn no_durations(#[case] text: &str) {
    let error = options(&[("commit.timeout", text)])
        .duration("commit.timeout")
        .unwrap_err();
    let expected = "expected a time such as '10 s', with unit d, h, min, s, ms, µs, ns or none (ms)";
    assert_eq!(
        error.to_string(),
        format!("option 'commit.timeout' = '{text}': {expected}")
    );
}

#[test]
fn a_duration_that_does_not_fit() {
    let error = options(&[("commit.timeout", "9223372036854775807 d")])
        .duration("commit.timeout")
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("expected a time that 64 bits of seconds can hold"),
        "{error}"
    );
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[rstest]
#[case("0:avro,3:parquet", &[("0", "avro"), ("3", "parquet")])]
#[case(" 0 : avro , 3 : parquet ", &[("0", "avro"), ("3", "parquet")])]
#[case("'''a,b'':c',e:f", &[("a,b", "c"), ("e", "f")])]
#[case("", &[])]
fn maps(#[case] text: &str, #[case] expected: &[(&str, &str)]) {
    assert_eq!(parse_map(text), Ok(map(expected)));
}

#[rstest]
#[case("0")]
#[case("0:avro:x")]
#[case("0:avro,,1:orc")]
#[case("'0:avro")]
#[case("'a:b':c")]
fn no_maps(#[case] text: &str) {
    assert_eq!(parse_map(text), Err("a map such as 'key:value,key2:value2'".to_owned()));
}

#[test]
fn maps_by_prefix() {
    let options = options(&[("file.format.per.level.0", "avro"), ("file.format.per.level.5", "orc")]);
    let expected = map(&[("0", "avro"), ("5", "orc")]);
    assert_eq!(options.map("file.format.per.level").unwrap(), Some(expected));
    assert_eq!(options.map("file.compression.per.level").unwrap(), None);
}

#[test]
fn numbers_booleans_and_enums() {
    let options = options(&[
        ("num-levels", "6"),
        ("target-file-row-num", "9000000000"),
        ("compaction.small-file-ratio", "0.5"),
        ("write-only", "TRUE"),
        ("bucket-function.type", "MOD"),
        ("sequence.field", " a, b "),
    ]);
    assert_eq!(options.int("num-levels").unwrap(), Some(6));
    assert_eq!(options.long("target-file-row-num").unwrap(), Some(9_000_000_000));
    assert_eq!(options.double("compaction.small-file-ratio").unwrap(), Some(0.5));
    assert_eq!(options.bool("write-only").unwrap(), Some(true));
    assert_eq!(
        options.parse_enum("bucket-function.type").unwrap(),
        Some(BucketFunctionType::Mod)
    );
    assert_eq!(
        options.list("sequence.field"),
        Some(vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(options.int("bucket").unwrap(), None);
}

#[rstest]
#[case("write-only", "yes", "true or false")]
#[case("num-levels", "6.0", "a 32-bit integer")]
#[case("bucket-function.type", "md5", "one of default, mod, hive")]
fn illegal_values_are_named(#[case] key: &str, #[case] value: &str, #[case] expected: &str) {
    let error = check_options(&options(&[("bucket", "1"), (key, value)]), TableUse::Write).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("option '{key}' = '{value}': expected {expected}")
    );
}

#[test]
fn older_keys_count_when_the_key_is_not_set() {
    let mut options = options(&[("write.compaction-skip", "true")]);
    assert_eq!(options.bool("write-only").unwrap(), Some(true));
    options.set("write-only", "false");
    assert_eq!(options.bool("write-only").unwrap(), Some(false));

    options.set("deduplicate.ignore-delete", "perhaps");
    let error = options.bool("ignore-delete").unwrap_err();
    assert_eq!(
        error.to_string(),
        "option 'deduplicate.ignore-delete' = 'perhaps': expected true or false"
    );
}

/// What is refused of these options, beside a fixed bucket.
fn refused(table_use: TableUse, pairs: &[(&str, &str)]) -> Option<String> {
    let mut options = options(pairs);
    if options.get("bucket").is_none() {
        options.set("bucket", "4");
    }
    check_options(&options, table_use).err().map(|error| {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        error.to_string()
    })
}

#[rstest]
#[case("file-index.bloom-filter.columns", "a", "write such tables")]
#[case("manifest.format", "orc", "write such tables (accepted: avro)")]
fn writing_is_refused(#[case] key: &str, #[case] value: &str, #[case] expected: &str) {
    let message = refused(TableUse::Write, &[(key, value)]);
    let expected = format!("not supported: option '{key}' = '{value}': this engine does not {expected}");
    assert_eq!(message, Some(expected));
}

#[rstest]
#[case("merge-engine", "first-row")]
#[case("changelog-producer", "lookup")]
#[case("changelog-producer", "full-compaction")]
#[case("deletion-vectors.enabled", "true")]
#[case("force-lookup", "true")]
fn writing_is_accepted(#[case] key: &str, #[case] value: &str) {
    assert_eq!(refused(TableUse::Write, &[(key, value)]), None);
}

#[test]
fn reading_is_possible_where_answers_do_not_depend_on_it() {
    let pairs = [
        ("changelog-producer", "lookup"),
        ("bucket", "-1"),
        ("file-index.bloom-filter.columns", "a"),
        ("force-lookup", "true"),
        ("merge-engine", "first-row"),
        ("deletion-vectors.enabled", "true"),
    ];
    assert_eq!(refused(TableUse::Read, &pairs), None);
    let by_creation = [("scan.mode", "from-creation-timestamp")];
    assert!(refused(TableUse::Read, &by_creation).is_some());
    assert_eq!(refused(TableUse::Write, &by_creation), None);
}

#[test]
fn other_engines_options_are_kept_whatever_they_hold() {
    let options = options(&[
        ("bucket", "1"),
        ("lookup.cache-rows", "many"),
        ("fields.a.aggregate-function", "sum"),
        ("parquet.page.size", "1"),
        ("my.own", "x"),
    ]);
    assert!(check_options(&options, TableUse::Write).is_ok());
    assert_eq!(unknown_options(&options), ["my.own"]);
}

#[test]
fn every_default_has_the_type_it_says() {
    for known in CATALOG.iter().flat_map(|section| section.options) {
        let Some(default) = known.default else { continue };
        let mut options = options(&[("bucket", "1")]);
        options.set(known.key, default);
        let checked = check_options(&options, TableUse::Read);
        assert!(checked.is_ok() || known.key == "bucket", "{}: {checked:?}", known.key);
    }
}

#[rstest]
#[case("fields.a.stats-mode", "fields.<column>.stats-mode")]
#[case("fields.a.b.stats-mode", "fields.<column>.stats-mode")]
#[case("fields.g1,g2.sequence-group", "fields.<columns>.sequence-group")]
#[case("fields.default-aggregate-function", "fields.default-aggregate-function")]
#[case("file-index.bloom-filter.columns", "file-index.<index>.columns")]
#[case("file-index.bloom-filter.a.fpp", "file-index.<index>.<column>.<option>")]
#[case("orc.write.batch-size", "write.batch-size")]
#[case("orc.stripe.size", "orc.*")]
#[case("clustering.columns", "clustering.columns")]
#[case("clustering.strategy", "clustering.*")]
fn keys_find_their_option(#[case] key: &str, #[case] known: &str) {
    assert_eq!(catalog::find(key).map(|known| known.key), Some(known));
}

#[test]
fn keys_are_in_the_catalogue_once() {
    let mut keys: Vec<&str> = CATALOG
        .iter()
        .flat_map(|section| section.options)
        .flat_map(|known| known.fallback_keys.iter().chain([&known.key]))
        .copied()
        .collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all);
}
