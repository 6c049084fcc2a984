//! Sample metadata, and the round trips of commit messages.

use super::*;
use crate::row::BinaryRow;

/// A data file with little in it.
pub(super) fn data_file(name: &str) -> DataFileMeta {
    DataFileMeta {
        file_name: name.to_owned(),
        file_size: 100,
        row_count: 3,
        min_key: BinaryRow::empty(),
        max_key: BinaryRow::empty(),
        key_stats: SimpleStats::default(),
        value_stats: SimpleStats::default(),
        min_sequence_number: 0,
        max_sequence_number: 2,
        schema_id: 0,
        level: 0,
        extra_files: Vec::new(),
        creation_time_ms: Some(1_704_067_200_000),
        delete_row_count: Some(0),
        embedded_index: None,
        file_source: Some(FileSource::Append),
        value_stats_cols: None,
        external_path: None,
        first_row_id: None,
        write_cols: None,
    }
}

/// An index file with little in it.
pub(super) fn index_file(name: &str) -> IndexFileMeta {
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
