use paimon_format::env::FileIds;
use proptest::prelude::*;

use super::*;

#[derive(Debug)]
struct FixedIds;

impl FileIds for FixedIds {
    fn uuid(&self) -> String {
        "00112233-4455-4677-8899-aabbccddeeff".to_string()
    }

    fn jitter(&self, _bound: u64) -> u64 {
        0
    }
}

const SCHEMA: &str = r#"{"type":"record","name":"record","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","string"],"default":null}]}"#;

type Row = (i32, Option<String>);

fn encode(schema: &str, codec: ManifestCodec, rows: &[Row]) -> Vec<u8> {
    let mut writer = ContainerWriter::new(schema, codec, &FixedIds);
    for (a, b) in rows {
        writer
            .append(|row| {
                row.int(*a);
                row.optional(b.as_deref(), Encoder::string);
            })
            .unwrap();
    }
    writer.finish().unwrap()
}

fn decode(file: &[u8]) -> AvroResult<Vec<Row>> {
    read_container(file, |row| {
        let (mut a, mut b) = (None, None);
        row.record(|name, value| {
            match name {
                "a" => a = Some(value.int()?),
                "b" => b = value.optional(Value::string)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        Ok((required(a, "a")?, b))
    })
}

fn rows(count: i32) -> Vec<Row> {
    (0..count)
        .map(|i| {
            (
                i.wrapping_mul(1_000_003),
                (i % 3 != 0).then(|| format!("text of row {i}")),
            )
        })
        .collect()
}

#[test]
fn every_codec_reads_back() {
    for codec in [
        ManifestCodec::Null,
        ManifestCodec::Snappy,
        ManifestCodec::Deflate,
        ManifestCodec::Zstandard { level: 1 },
        ManifestCodec::Zstandard { level: 9 },
    ] {
        let file = encode(SCHEMA, codec, &rows(10_000));
        assert_eq!(decode(&file).unwrap(), rows(10_000), "{codec:?}");
    }
}

#[test]
fn apache_avro_reads_what_is_written() {
    let file = encode(SCHEMA, ManifestCodec::Zstandard { level: 1 }, &rows(5_000));
    let reader = apache_avro::Reader::new(file.as_slice()).unwrap();
    let found: Vec<_> = reader
        .map(|value| apache_avro::from_value::<Row2>(&value.unwrap()).unwrap())
        .collect();
    let expected: Vec<_> = rows(5_000).into_iter().map(|(a, b)| Row2 { a, b }).collect();
    assert_eq!(found, expected);
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Row2 {
    a: i32,
    b: Option<String>,
}

#[test]
fn the_file_decides_about_order_nullability_and_further_fields() {
    let schema = r#"["null",{"type":"record","name":"x","fields":[
        {"name":"later","type":["null",{"type":"record","name":"y","fields":[{"name":"z","type":{"type":"map","values":"double"}}]}]},
        {"name":"again","type":"y"},
        {"name":"b","type":"string"},
        {"name":"a","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}]}]"#;
    let mut writer = ContainerWriter::new(schema, ManifestCodec::Null, &FixedIds);
    writer
        .append(|row| {
            row.long(1); // the record
            row.long(1); // later is there
            // The encoder writes no doubles; a text of seven bytes and its length takes as many.
            row.array(&["k"], |row, key| {
                row.string(key);
                row.string("1234567");
            });
            row.long(0); // again: an empty map
            row.string("text");
            row.long(1);
            row.long(-7);
        })
        .unwrap();
    assert_eq!(
        decode(&writer.finish().unwrap()).unwrap(),
        [(-7, Some("text".to_string()))]
    );
}

#[test]
fn faults_are_told_with_their_place() {
    let good = encode(SCHEMA, ManifestCodec::Null, &rows(3));
    let error = |file: &[u8]| decode(file).unwrap_err().to_string();
    insta::assert_snapshot!(error(b""), @"header: not an Avro file (it does not start with Obj 1)");
    insta::assert_snapshot!(error(b"PAR1 and more"), @"header: not an Avro file (it does not start with Obj 1)");
    insta::assert_snapshot!(error(&good[..20]), @"header: the data ends early: 123 bytes wanted, 1 left");
    insta::assert_snapshot!(error(&good[..good.len() - 5]), @"block 0 at byte 175: the data ends early: 16 bytes wanted, 11 left");
    let mut marker = good.clone();
    *marker.last_mut().unwrap() ^= 1;
    insta::assert_snapshot!(error(&marker), @"block 0 at byte 175: wrong sync marker at its end");
    let other = SCHEMA.replace(r#""name":"a","type":"int""#, r#""name":"a","type":"string""#);
    insta::assert_snapshot!(error(&encode(&other, ManifestCodec::Null, &rows(1))), @"block 0, row 0: a: type int expected, found string");
    let missing = SCHEMA.replace(r#""name":"a""#, r#""name":"c""#);
    insta::assert_snapshot!(error(&encode(&missing, ManifestCodec::Null, &rows(1))), @"block 0, row 0: the required field a is missing");
    let unknown = SCHEMA.replace(r#""type":"int""#, r#""type":"integer""#);
    insta::assert_snapshot!(error(&encode(&unknown, ManifestCodec::Null, &rows(1))), @"header: avro.schema: unknown type integer");
}

#[test]
fn announced_sizes_are_not_believed() {
    // A block of 2^40 rows in no bytes, and a string of 2^60 bytes.
    let mut file = encode(SCHEMA, ManifestCodec::Null, &[]);
    let mut block = Encoder::default();
    block.long(1 << 40);
    block.bytes(&[]);
    let marker = file[file.len() - 16..].to_vec();
    file.extend(block.take());
    file.extend(marker);
    insta::assert_snapshot!(decode(&file).unwrap_err(), @"block 0 at byte 175: 1099511627776 rows in 0 bytes");
    let mut cursor = Encoder::default();
    cursor.long(1 << 60);
    let bytes = cursor.take();
    insta::assert_snapshot!(cursor::Cursor::new(&bytes).bytes().unwrap_err(), @"the data ends early: 1152921504606846976 bytes wanted, 0 left");
}

proptest! {
    #[test]
    fn damaged_files_give_errors_not_panics(position in 0_usize..1000, flip in 1_u8..=255, cut in 0_usize..1000) {
        for codec in [ManifestCodec::Null, ManifestCodec::Snappy, ManifestCodec::Zstandard { level: 1 }] {
            let mut file = encode(SCHEMA, codec, &rows(20));
            let position = position % file.len();
            file[position] ^= flip;
            let _ = decode(&file);
            file.truncate(cut % file.len());
            let _ = decode(&file);
        }
    }

    #[test]
    fn numbers_read_back(value in any::<i64>()) {
        let mut encoder = Encoder::default();
        encoder.long(value);
        let bytes = encoder.take();
        let mut cursor = cursor::Cursor::new(&bytes);
        prop_assert_eq!(cursor.long().unwrap(), value);
        prop_assert_eq!(cursor.remaining(), 0);
    }
}
