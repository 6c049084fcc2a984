//! What is said of a compaction that was lost.

use paimon::Table;

/// What became of the rows that were to be committed with it. Errors: those of the table's options.
pub(crate) fn rows_without_compaction(table: &Table) -> Result<&'static str, paimon::Error> {
    Ok(match table.reads_see_level0()? {
        true => "the rows are in the table, and the next compaction does it again",
        false => "the rows are committed, and reads see them after the next compaction",
    })
}
