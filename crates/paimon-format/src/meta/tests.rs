//! Sample metadata, and the round trips of commit messages.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::row::BinaryRow;
use crate::types::{DataType, Datum, TypeKind};

/// A data file with little in it.
pub(crate) fn data_file(name: &str) -> DataFileMeta {
    DataFileMeta {
        row_count: 3,
        max_sequence_number: 2,
        creation_time_ms: Some(1_704_067_200_000),
        delete_row_count: Some(0),
        file_source: Some(FileSource::Append),
        ..DataFileMeta::new(name, 100)
    }
}

/// An index file with little in it.
pub(crate) fn index_file(name: &str) -> IndexFileMeta {
    IndexFileMeta {
        index_type: "HASH".to_owned(),
        file_name: name.to_owned(),
        file_size: 8,
        row_count: 2,
        dv_ranges: None,
        external_path: None,
        global_index: None,
    }
}

fn key(number: i32, text: &str) -> BinaryRow {
    let types = [
        DataType::nullable(TypeKind::Int),
        DataType::nullable(TypeKind::VarChar(i32::MAX as u32)),
    ];
    BinaryRow::from_datums(&[Datum::Int32(number), Datum::String(text.to_owned())], &types).unwrap()
}

fn sample_file(name: &str, full: bool) -> Arc<DataFileMeta> {
    let stats = SimpleStats {
        min_values: key(1, "a"),
        max_values: key(9, "zzzzzzzzzzzz"),
        null_counts: vec![Some(0), None],
    };
    let file = DataFileMeta {
        file_size: 4711,
        row_count: 10,
        min_key: key(1, "a"),
        max_key: key(9, "z"),
        key_stats: stats.clone(),
        min_sequence_number: 3,
        max_sequence_number: 12,
        schema_id: 2,
        creation_time_ms: Some(1_704_067_200_123),
        delete_row_count: None,
        file_source: None,
        ..data_file(name)
    };
    Arc::new(match full {
        false => file,
        true => DataFileMeta {
            value_stats: stats,
            level: 5,
            extra_files: vec![format!("{name}.index"), "another-sidecar.lookup".to_owned()],
            delete_row_count: Some(4),
            embedded_index: Some(vec![1, 2, 3, 4, 5, 6, 7, 8, 9]),
            file_source: Some(FileSource::Compact),
            value_stats_cols: Some(vec!["k".to_owned(), "v".to_owned()]),
            external_path: Some(format!("s3://far/bucket-1/{name}")),
            first_row_id: Some(77),
            write_cols: Some(vec!["v".to_owned()]),
            ..file
        },
    })
}

fn sample_message() -> CommitMessage {
    let range = |name: &str, offset, length, cardinality| DeletionVectorRange {
        data_file_name: name.to_owned(),
        offset,
        length,
        cardinality,
    };
    let hash = IndexFileMeta {
        external_path: Some("s3://far/index-2".to_owned()),
        ..index_file("index-2")
    };
    let vectors = IndexFileMeta {
        index_type: "DELETION_VECTORS".to_owned(),
        file_size: 100,
        dv_ranges: Some(vec![
            range("data-1.parquet", 1, 22, Some(3)),
            range("data-2.parquet", 31, 40, None),
        ]),
        ..index_file("index-1")
    };
    let global = IndexFileMeta {
        index_type: "btree".to_owned(),
        global_index: Some(GlobalIndexMeta {
            row_range_start: 0,
            row_range_end: 99,
            index_field_id: 7,
            extra_field_ids: Some(vec![8, 9]),
            index_meta: Some(vec![1, 2]),
            source_meta: None,
        }),
        ..index_file("index-3")
    };
    CommitMessage {
        partition: key(20_240_101, "p/q"),
        bucket: 3,
        total_buckets: Some(4),
        increment: CommitIncrement {
            data: DataIncrement {
                new_files: vec![
                    sample_file("data-1.parquet", false),
                    sample_file("data-2.parquet", true),
                ],
                deleted_files: vec![],
                changelog_files: vec![sample_file("changelog-1.parquet", false)],
                new_index_files: vec![hash.clone()],
                deleted_index_files: vec![],
            },
            compact: CompactIncrement {
                compact_before: vec![sample_file("data-0.parquet", false)],
                compact_after: vec![sample_file("data-3.parquet", true)],
                changelog_files: vec![],
                new_index_files: vec![vectors, global],
                deleted_index_files: vec![hash],
                upper_files: None,
            },
        },
    }
}

/// What Java Paimon 1.4.2 made of [`sample_message`].
fn java_bytes() -> Vec<u8> {
    let hex = include_str!("../../../../testdata/meta/commit-message-1.4.2.hex");
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[high, low]| high << 4 | low)
        .collect()
}

#[test]
fn commit_messages_are_java_s_bytes() {
    let message = sample_message();
    assert_eq!(message.to_bytes(11).unwrap(), java_bytes());
    assert_eq!(CommitMessage::from_bytes(11, &java_bytes()).unwrap(), message);
}

#[test]
fn all_versions_read_back() {
    let mut message = sample_message();
    for version in 11..=13 {
        let bytes = message.to_bytes(version).unwrap();
        assert_eq!(CommitMessage::from_bytes(version, &bytes).unwrap(), message);
    }
    message.total_buckets = None;
    if let Some(index) = &mut message.increment.compact.new_index_files[1].global_index {
        index.source_meta = Some(vec![9]);
    }
    let bytes = message.to_bytes(COMMIT_MESSAGE_VERSION).unwrap();
    assert_eq!(
        CommitMessage::from_bytes(COMMIT_MESSAGE_VERSION, &bytes).unwrap(),
        message
    );
    assert_eq!(
        message.to_bytes(11).unwrap_err().to_string(),
        "not supported: the source metadata of index file index-3 in this version of commit messages"
    );
    assert_eq!(
        message.to_bytes(10).unwrap_err().to_string(),
        "not supported: commit messages of version 10: 11 to 13 are known"
    );
}

#[test]
fn every_cut_of_a_message_is_an_error() {
    let bytes = java_bytes();
    for end in 0..bytes.len() {
        let error = CommitMessage::from_bytes(11, &bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{end}: {error}");
    }
    let mut longer = bytes;
    longer.push(0);
    let error = CommitMessage::from_bytes(11, &longer).unwrap_err();
    assert_eq!(error.to_string(), "commit message: corrupt: 1 bytes after its end");
}

#[test]
fn as_json_a_message_reads_back() {
    let message = sample_message();
    let json = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<CommitMessage>(&json).unwrap(), message);
}

#[test]
fn a_data_file_as_json() {
    let json = serde_json::to_string_pretty(&sample_file("data-2.parquet", true)).unwrap();
    insta::assert_snapshot!(json);
}

#[test]
fn three_readings_of_an_unknown_delete_count() {
    let with = |delete_row_count| DataFileMeta {
        delete_row_count,
        ..data_file("data-1.parquet")
    };
    let readings = |file: DataFileMeta| {
        [
            file.may_have_deletes(),
            file.has_known_deletes(),
            file.is_known_without_deletes(),
        ]
    };
    assert_eq!(readings(with(None)), [true, false, false]);
    assert_eq!(readings(with(Some(0))), [false, false, true]);
    assert_eq!(readings(with(Some(1))), [true, true, false]);
}

#[test]
fn an_upgraded_file_is_another_one() {
    let file = sample_file("data-1.parquet", true);
    assert_eq!(file.identity(), sample_file("data-1.parquet", true).identity());
    assert_ne!(file.identity(), file.upgrade(6).identity());
    assert_eq!(file.upgrade(6).upgrade(5), *file);
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = java_bytes();
        for (position, byte) in noise {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        if let Ok(message) = CommitMessage::from_bytes(11, &bytes) {
            // What was read can be written.
            prop_assert!(message.to_bytes(12).is_ok());
        }
    }
}
