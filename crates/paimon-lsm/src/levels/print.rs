//! The tree as text.

use std::fmt;

use super::LevelsView;

/// One line a run, newest first: its level, its bytes, then its files in key order, each with its rows (`-n`: of which deletes)
/// and sequence numbers.
impl fmt::Display for LevelsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs().is_empty() {
            return writeln!(f, "empty");
        }
        for run in self.runs() {
            write!(f, "L{} {:>8} B", run.level, run.run.total_size())?;
            for file in run.run.files() {
                write!(f, "  {} ({}", file.file_name, file.row_count)?;
                match file.delete_row_count {
                    None => write!(f, "-?")?,
                    Some(0) => {}
                    Some(deletes) => write!(f, "-{deletes}")?,
                }
                write!(f, ", seq {}..{})", file.min_sequence_number, file.max_sequence_number)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
