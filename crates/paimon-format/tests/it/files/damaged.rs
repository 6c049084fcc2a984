//! Files that are not what their metadata says: every error names the file.

use bytes::Bytes;
use paimon_format::kv::{KvFileSettings, KvFiles};
use paimon_format::meta::FileSource;
use paimon_format::storage::Storage;
use paimon_format::{ErrorKind, FormatError};
use rstest::rstest;

use super::table::{GoldenTable, block_on, file_meta, files_in, memory, read, read_all};

const NAME: &str = "data-1.parquet";

/// The error of reading these bytes as a file of the table of all types.
fn error_of(bytes: Option<&[u8]>, size: i64) -> FormatError {
    let table = GoldenTable::open("types_values_parquet");
    let schema = table.kv_schema(0);
    let storage = memory();
    if let Some(bytes) = bytes {
        block_on(storage.put(&format!("bucket-0/{NAME}"), Bytes::copy_from_slice(bytes))).unwrap();
    }
    let files = files_in(&storage, &schema, KvFileSettings::default());
    let mut meta = file_meta(NAME, 0, 0, 0);
    meta.file_size = size;
    let error = read(&files, &meta, read_all(&schema)).unwrap_err();
    assert!(error.to_string().contains("bucket-0/data-1.parquet"), "{error}");
    error
}

fn java_file() -> Vec<u8> {
    first_file(&GoldenTable::open("types_values_parquet"))
}

fn first_file(table: &GoldenTable) -> Vec<u8> {
    let files = std::fs::read_dir(table.root.join("bucket-0"))
        .unwrap()
        .map(|file| file.unwrap().path());
    std::fs::read(files.min().unwrap()).unwrap()
}

#[test]
fn errors_name_the_file_and_what_is_wrong() {
    let file = java_file();
    let size = file.len() as i64;
    let mut no_magic = file.clone();
    *no_magic.last_mut().unwrap() = b'X';
    let mut encrypted = file.clone();
    *encrypted.last_mut().unwrap() = b'E';
    let mut long_footer = file.clone();
    let at = file.len() - 8;
    long_footer[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut garbage = file.clone();
    for byte in &mut garbage[at - 200..at] {
        *byte = 0xff;
    }
    let cases: Vec<(&str, FormatError)> = vec![
        ("missing", error_of(None, size)),
        ("negative size", error_of(Some(&file), -1)),
        ("empty", error_of(Some(b""), 0)),
        ("cut", error_of(Some(&file[..file.len() / 2]), size / 2)),
        ("size too large", error_of(Some(&file), size + 10)),
        ("size too small", error_of(Some(&file), size - 10)),
        ("wrong magic", error_of(Some(&no_magic), size)),
        ("encrypted", error_of(Some(&encrypted), size)),
        ("footer longer than the file", error_of(Some(&long_footer), size)),
        ("garbage in the footer", error_of(Some(&garbage), size)),
    ];
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::Corrupt,
        ErrorKind::Corrupt,
        ErrorKind::Corrupt,
        ErrorKind::Corrupt,
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        assert_eq!(cases[i].1.kind(), kind, "{}", cases[i].0);
    }
    let text: Vec<String> = cases.iter().map(|(case, error)| format!("{case}: {error}")).collect();
    insta::assert_snapshot!("damaged_parquet_files", text.join("\n"));
}

/// Any single wrong byte gives rows or an error, never a panic.
#[rstest]
#[case("types_values_parquet", "parquet")]
#[case("types_nested", "parquet")]
#[case("types_values_avro", "avro")]
#[case("types_values_orc", "orc")]
fn wrong_bytes_never_panic(#[case] scenario: &str, #[case] format: &str) {
    let table = GoldenTable::open(scenario);
    let file = first_file(&table);
    let schema = table.kv_schema(0);
    let storage = memory();
    let files = files_in(&storage, &schema, KvFileSettings::default());
    let name = format!("data-1.{format}");
    let meta = file_meta(&name, file.len() as u64, 0, 0);
    let mut failed = 0;
    for at in (0..file.len()).step_by(3) {
        let mut wrong = file.clone();
        wrong[at] ^= 0x55;
        block_on(storage.put(&format!("bucket-0/{name}"), wrong.into())).unwrap();
        if let Err(error) = read(&files, &meta, read_all(&schema)) {
            assert!(error.to_string().contains(&name), "{error}");
            failed += 1;
        }
    }
    assert!(failed > 0);
}

#[rstest]
#[case("types_values_avro", "avro")]
#[case("types_values_orc", "orc")]
fn cut_files_are_errors(#[case] scenario: &str, #[case] format: &str) {
    let table = GoldenTable::open(scenario);
    let file = first_file(&table);
    let schema = table.kv_schema(0);
    let storage = memory();
    let files = files_in(&storage, &schema, KvFileSettings::default());
    let name = format!("data-1.{format}");
    for length in [0, 3, 100, file.len() / 2, file.len() - 1] {
        block_on(storage.put(&format!("bucket-0/{name}"), file[..length].to_vec().into())).unwrap();
        let error = read(&files, &file_meta(&name, length as u64, 0, 0), read_all(&schema)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains(&name),
            "{error}"
        );
    }
}

#[test]
fn formats_that_cannot_hold_a_column_are_refused_before_writing() {
    let table = GoldenTable::open("types_values_parquet");
    let physical = paimon_format::kv::physical_fields(&table.kv_schema(0), false);
    let error = |format: &str| {
        let options = [("file.format", format)].into_iter().collect();
        KvFileSettings::from_options(&options)
            .unwrap()
            .check(&physical)
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(error("avro"), @"not supported: column t9 of type TIMESTAMP(9) in Avro files, which have timestamps of at most microseconds");
    insta::assert_snapshot!(error("orc"), @"not supported: writing column d1 of type DECIMAL(5, 2) into ORC files: only flat types without DECIMAL");
}

#[test]
fn unknown_formats_and_outside_files_are_refused() {
    let table = GoldenTable::open("types_values_parquet");
    let schema = table.kv_schema(0);
    let storage = memory();
    let files = files_in(&storage, &schema, KvFileSettings::default());
    let error = |meta| read(&files, &meta, read_all(&schema)).unwrap_err().to_string();
    insta::assert_snapshot!(error(file_meta("data-1.row", 100, 0, 0)), @r#"not supported: bucket-0/data-1.row: a data file of the format "row""#);
    let mut outside = file_meta("data-1.parquet", 100, 0, 0);
    outside.external_path = Some("s3://other/bucket-0/data-1.parquet".to_owned());
    insta::assert_snapshot!(error(outside), @"not supported: s3://other/bucket-0/data-1.parquet: a file outside of the table's root");
    insta::assert_snapshot!(error(file_meta("data-1.parquet", 100, 7, 0)), @"data-1.parquet: written with schema 7, and there is no source of schemas but 0");
    let gone = file_meta("data-1.parquet", 100, 0, 0);
    block_on(files.delete(&gone)).unwrap();
    assert_eq!(block_on(files.data_sink(0, FileSource::Append).finish()).unwrap(), []);
}
