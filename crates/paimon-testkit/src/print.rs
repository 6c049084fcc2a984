//! Rows and compactions as text that a person can review.

use std::fmt::Write;

use paimon_format::types::{DataField, Datum, RowKind};

/// Where sequence numbers stand, characters from the left, in lines that are not longer.
const SEQUENCE_COLUMN: usize = 32;

/// A stored row: `-U | id=1 | total=10      seq 4`. `values` are in the order of `fields`.
pub fn record(kind: RowKind, fields: &[DataField], values: &[Datum], sequence_number: i64) -> String {
    let mut line = kind.to_string();
    for (field, value) in fields.iter().zip(values) {
        // Writing to a String does not fail.
        let _ = write!(line, " | {}={}", field.name, value.to_text(&field.data_type));
    }
    format!("{line:<SEQUENCE_COLUMN$} seq {sequence_number}")
}

/// A row of a table: `id=1 total=10`.
pub fn row(fields: &[DataField], values: &[Datum]) -> String {
    let values = fields.iter().zip(values);
    let values: Vec<String> = values
        .map(|(field, value)| format!("{}={}", field.name, value.to_text(&field.data_type)))
        .collect();
    values.join(" ")
}

/// What a compaction did to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionLine {
    /// The levels of the files that went, one a file.
    pub before: Vec<i32>,
    /// The levels of the files that came, one a file.
    pub after: Vec<i32>,
    /// The level changes of files that are the same as before.
    pub moved: Vec<(i32, i32)>,
    /// Changelog files.
    pub changelog: usize,
}

impl CompactionLine {
    /// `compact L0+L5 → L4   before: 2 files   after: 1   changelog: 1`, and `move L0 → L4` for files that only changed their level.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if !(self.before.is_empty() && self.after.is_empty()) {
            let (before, after) = (levels(&self.before), levels(&self.after));
            let (gone, came) = (self.before.len(), self.after.len());
            let after = if after.is_empty() { "nothing".to_owned() } else { after };
            parts.push(format!("compact {before} → {after}   before: {gone}   after: {came}"));
        }
        parts.extend(self.moved.iter().map(|(from, to)| format!("move L{from} → L{to}")));
        if self.changelog > 0 {
            parts.push(format!("changelog: {}", self.changelog));
        }
        parts.join("   ")
    }
}

/// `L0+L5`, each level once.
fn levels(files: &[i32]) -> String {
    let mut levels = files.to_vec();
    levels.sort_unstable();
    levels.dedup();
    let levels: Vec<String> = levels.iter().map(|level| format!("L{level}")).collect();
    levels.join("+")
}

#[cfg(test)]
mod tests {
    use paimon_format::types::{DataType, TypeKind};

    use super::*;

    #[test]
    fn rows_and_compactions_are_lines() {
        let fields = [
            DataField::new(0, "id", DataType::not_null(TypeKind::Int)),
            DataField::new(1, "total", DataType::nullable(TypeKind::Int)),
        ];
        let values = [Datum::Int32(1), Datum::Null];
        assert_eq!(
            record(RowKind::UpdateBefore, &fields, &values, 4),
            "-U | id=1 | total=null           seq 4"
        );
        assert_eq!(row(&fields, &values), "id=1 total=null");
        let line = CompactionLine {
            before: vec![5, 0, 0],
            after: vec![4],
            moved: vec![(0, 4)],
            changelog: 1,
        };
        assert_eq!(
            line.text(),
            "compact L0+L5 → L4   before: 3   after: 1   move L0 → L4   changelog: 1"
        );
        assert_eq!(CompactionLine::default().text(), "");
    }
}
