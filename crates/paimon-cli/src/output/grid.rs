//! Text in aligned columns.

use std::fmt;

/// Rows of text under a header, columns padded to their widest cell. Numbers stand on the right.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    header: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A grid with these column titles; a title that starts with `>` makes its column stand on the right.
    pub(crate) fn new<T: AsRef<str>>(titles: impl IntoIterator<Item = T>) -> Self {
        let mut grid = Self::default();
        for title in titles {
            let title = title.as_ref();
            grid.right.push(title.starts_with('>'));
            grid.header.push(title.trim_start_matches('>').to_owned());
        }
        grid
    }

    /// Appends a row: one cell a column.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        // A cell is one line: a value with a line feed in it must not break the grid.
        self.rows
            .push(cells.into_iter().map(|cell| one_line(cell.into())).collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn one_line(text: String) -> String {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            std::iter::once(&self.header)
                .chain(&self.rows)
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                if *right {
                    line.push_str(&format!("{cell:>width$}  "));
                } else {
                    line.push_str(&format!("{cell:<width$}  "));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_cells_stay_on_one_line() {
        let mut grid = Grid::new(["name", ">rows"]);
        grid.row(["a", "5"]);
        grid.row(["bé\nc", "1000"]);
        assert_eq!(grid.to_string(), "name   rows\na         5\nbé\\nc  1000\n");
    }
}
