//! Trees in short notation: `0:10 0:10 3:100` is two level-0 runs of 10 bytes and a level-3 run of 100, newest first.

use std::sync::Arc;

use paimon_format::kv::KvSchema;
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, DataType, Datum, TypeKind};

use crate::LsmError;
use crate::levels::{KeyOrder, LevelSortedRun, SortedRun};

/// A data file of which only name, level and size (bytes) matter.
pub fn file(name: impl Into<String>, level: i32, size: i64) -> DataFileMeta {
    DataFileMeta {
        row_count: 1,
        level,
        delete_row_count: Some(0),
        file_source: Some(if level == 0 {
            FileSource::Append
        } else {
            FileSource::Compact
        }),
        ..DataFileMeta::new(name, size)
    }
}

/// Runs of one file each, from `level:size` words.
///
/// Errors: the first word that is not `level:size`.
pub fn parse_runs(text: &str) -> Result<Vec<LevelSortedRun>, String> {
    text.split_whitespace()
        .enumerate()
        .map(|(index, word)| {
            let (level, size) = word
                .split_once(':')
                .and_then(|(level, size)| Some((level.parse().ok()?, size.parse().ok()?)))
                .ok_or_else(|| format!("{word:?} is not level:size"))?;
            Ok(run(index, level, size))
        })
        .collect()
}

/// One run of one file.
pub(super) fn run(index: usize, level: i32, size: i64) -> LevelSortedRun {
    LevelSortedRun {
        level,
        run: SortedRun::from_single(Arc::new(file(format!("run-{index}"), level, size))),
    }
}

/// The notation that [`parse_runs`] reads.
pub fn print_runs(runs: &[LevelSortedRun]) -> String {
    let words: Vec<_> = runs
        .iter()
        .map(|run| format!("{}:{}", run.level, run.run.total_size()))
        .collect();
    words.join(" ")
}

/// A data file of an INT key from `min` to `max`.
pub fn keyed_file(name: impl Into<String>, level: i32, (min, max): (i32, i32), size: i64) -> DataFileMeta {
    let key = |value| {
        let types = [DataType::not_null(TypeKind::Int)];
        // One INT always fits its type.
        BinaryRow::from_datums(&[Datum::Int32(value)], &types).unwrap_or_default()
    };
    DataFileMeta {
        min_key: key(min),
        max_key: key(max),
        ..file(name, level, size)
    }
}

/// The order of an INT key.
pub fn int_keys() -> Result<KeyOrder, LsmError> {
    let id = DataField::new(0, "id", DataType::not_null(TypeKind::Int));
    KeyOrder::new(&KvSchema::new(0, vec![id], vec![0], None)?)
}
