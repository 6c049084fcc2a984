//! Which pages are fetched together: windows of rows, in whole batches, whose pages fit into a budget.
//!
//! Each page is in one window, the first that needs it, though the rows of its end may belong to the next: the decoder goes on
//! inside of it.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::decode::OpenFile;
use crate::kv::BatchLimit;

/// Rows whose pages are fetched together.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub(super) row_group: usize,
    /// Rows, counted in the row group.
    pub(super) rows: Range<u64>,
    /// Where the wanted rows of the row group end.
    pub(super) wanted_end: u64,
    /// Rows of a batch; the window ends where a batch does.
    pub(super) batch_rows: u64,
    /// Bytes to fetch, in file order a column.
    pub(super) pages: Vec<PageBytes>,
}

/// A page, or a whole column chunk where page borders are not known.
#[derive(Clone, Debug)]
pub(super) struct PageBytes {
    pub(super) bytes: Range<u64>,
    /// The last row that needs it ends before this one.
    pub(super) end_row: u64,
}

impl Window {
    /// Bytes to fetch.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.bytes.end - page.bytes.start).sum()
    }
}

/// Makes the windows of a file, in row order.
#[derive(Debug)]
pub(super) struct Planner {
    file: Arc<OpenFile>,
    limit: BatchLimit,
    /// Bytes of a window, as far as one batch allows.
    window_bytes: u64,
    /// Row groups not begun, with the rows wanted of them, the next one last.
    row_groups: Vec<(usize, Range<u64>)>,
    current: Option<RowGroupPlan>,
    batch_rows: u64,
}

#[derive(Debug)]
struct RowGroupPlan {
    row_group: usize,
    rows: Range<u64>,
    leaves: Vec<LeafPlan>,
    /// Bytes a row that decoding showed, where the file could not say.
    seen_row_bytes: u64,
}

#[derive(Debug)]
struct LeafPlan {
    dictionary: Option<Range<u64>>,
    pages: Vec<PagePlan>,
    /// The first page that no window has.
    next: usize,
}

#[derive(Debug)]
struct PagePlan {
    rows: Range<u64>,
    bytes: Range<u64>,
    /// Decoded bytes a row, rounded up.
    row_bytes: u64,
}

impl Planner {
    /// For the wanted rows of row groups, in order.
    pub(super) fn new(
        file: Arc<OpenFile>,
        mut row_groups: Vec<(usize, Range<u64>)>,
        limit: BatchLimit,
        window_bytes: usize,
    ) -> Self {
        row_groups.reverse();
        Self {
            file,
            limit,
            // One window is decoded while the next one is fetched; half is left for what comes out.
            window_bytes: window_bytes as u64 / 4,
            row_groups,
            current: None,
            batch_rows: limit.rows.max(1) as u64,
        }
    }

    /// The next window, or `None` after the last.
    pub(super) fn next(&mut self) -> Option<Window> {
        let plan = match &mut self.current {
            Some(plan) if plan.rows.start < plan.rows.end => plan,
            current => {
                let (row_group, rows) = self.row_groups.pop()?;
                current.insert(RowGroupPlan::new(&self.file, row_group, rows))
            }
        };
        self.batch_rows = plan.batch_rows(plan.rows.start, self.limit, self.batch_rows);
        let mut window = Window {
            row_group: plan.row_group,
            rows: plan.rows.start..plan.rows.start,
            wanted_end: plan.rows.end,
            batch_rows: self.batch_rows,
            pages: Vec::new(),
        };
        let mut bytes = 0;
        while plan.rows.start < plan.rows.end {
            let batch_end = plan.rows.end.min(plan.rows.start + self.batch_rows);
            let more = plan.bytes_until(batch_end);
            let first = window.rows.start == plan.rows.start;
            if !first
                && (bytes + more > self.window_bytes
                    || plan.batch_rows(plan.rows.start, self.limit, self.batch_rows) != self.batch_rows)
            {
                break;
            }
            bytes += more;
            plan.take_until(batch_end, &mut window.pages);
            plan.rows.start = batch_end;
        }
        window.rows.end = plan.rows.start;
        Some(window)
    }

    /// Learns the decoded size of a row of a row group.
    pub(super) fn observe(&mut self, row_group: usize, row_bytes: u64) {
        match &mut self.current {
            Some(plan) if plan.row_group == row_group => plan.seen_row_bytes = row_bytes,
            _ => {}
        }
    }
}

impl RowGroupPlan {
    fn new(file: &OpenFile, row_group: usize, rows: Range<u64>) -> Self {
        let leaves = file
            .leaves
            .iter()
            .filter_map(|&leaf| LeafPlan::new(&file.metadata, row_group, leaf, rows.start));
        Self {
            row_group,
            leaves: leaves.collect(),
            rows,
            seen_row_bytes: 0,
        }
    }

    /// Bytes of the pages that rows before `end` need and no window has.
    fn bytes_until(&self, end: u64) -> u64 {
        let leaves = self.leaves.iter().map(|leaf| {
            let pages = leaf.pending(end).map(|page| page.bytes.end - page.bytes.start);
            pages.sum::<u64>() + leaf.dictionary.as_ref().map_or(0, |bytes| bytes.end - bytes.start)
        });
        leaves.sum()
    }

    /// Adds those pages to a window.
    fn take_until(&mut self, end: u64, into: &mut Vec<PageBytes>) {
        let wanted_end = self.rows.end;
        for leaf in &mut self.leaves {
            if let Some(bytes) = leaf.dictionary.take() {
                into.push(PageBytes {
                    bytes,
                    end_row: wanted_end,
                });
            }
            let before = into.len();
            into.extend(leaf.pending(end).map(|page| PageBytes {
                bytes: page.bytes.clone(),
                end_row: page.rows.end,
            }));
            leaf.next += into.len() - before;
        }
    }

    /// Rows of a batch that starts at `row`: `current` while that is right within a factor of four, else what fits the limit.
    fn batch_rows(&self, row: u64, limit: BatchLimit, current: u64) -> u64 {
        let max = limit.rows.max(1) as u64;
        let widest = |rows: u64| {
            let end = self.rows.end.min(row.saturating_add(rows));
            let leaves = self.leaves.iter().map(|leaf| leaf.widest(row..end));
            leaves.sum::<u64>().max(self.seen_row_bytes).max(1)
        };
        let fits = |rows: u64| (limit.bytes as u64 / widest(rows)).clamp(1, max);
        if fits(current) >= current && fits(current.saturating_mul(4).min(max)) < current.saturating_mul(4) {
            return current;
        }
        let mut rows = max;
        while rows > 1 && fits(rows) < rows {
            rows = if rows.is_multiple_of(2) { rows / 2 } else { 1 };
        }
        rows
    }
}

impl LeafPlan {
    /// A leaf's pages from the one that has `first_row`.
    fn new(metadata: &ParquetMetaData, row_group: usize, leaf: usize, first_row: u64) -> Option<Self> {
        let group = metadata.row_groups().get(row_group)?;
        let column = group.columns().get(leaf)?;
        let rows = u64::try_from(group.num_rows()).ok()?;
        let (start, length) = column.byte_range();
        let index = metadata
            .offset_index()
            .and_then(|index| index.get(row_group)?.get(leaf));
        let Some(index) = index.filter(|index| !index.page_locations().is_empty()) else {
            return Some(Self {
                dictionary: None,
                pages: vec![PagePlan {
                    rows: 0..rows,
                    bytes: start..start + length,
                    row_bytes: row_bytes(column, rows, None),
                }],
                next: 0,
            });
        };
        let locations = index.page_locations();
        let ends = locations
            .iter()
            .skip(1)
            .map(|next| next.first_row_index as u64)
            .chain([rows]);
        let pages = locations.iter().zip(ends).enumerate().map(|(i, (location, end))| {
            let page_rows = location.first_row_index as u64..end;
            let unencoded = index
                .unencoded_byte_array_data_bytes()
                .and_then(|bytes| bytes.get(i).copied());
            let offset = location.offset as u64;
            PagePlan {
                row_bytes: row_bytes(column, rows, unencoded.map(|bytes| (bytes, end - page_rows.start))),
                rows: page_rows,
                bytes: offset..offset + location.compressed_page_size as u64,
            }
        });
        let pages: Vec<_> = pages.collect();
        let data_start = pages.first().map_or(start, |page| page.bytes.start);
        Some(Self {
            dictionary: (data_start > start).then_some(start..data_start),
            next: pages.partition_point(|page| page.rows.end <= first_row),
            pages,
        })
    }

    /// Pages that rows before `end` need and no window has.
    fn pending(&self, end: u64) -> impl Iterator<Item = &PagePlan> {
        self.pages
            .iter()
            .skip(self.next)
            .take_while(move |page| page.rows.start < end)
    }

    /// The most bytes a row takes in pages that have some of `rows`.
    fn widest(&self, rows: Range<u64>) -> u64 {
        let first = self.pages.partition_point(|page| page.rows.end <= rows.start);
        let pages = self
            .pages
            .iter()
            .skip(first)
            .take_while(|page| page.rows.start < rows.end);
        pages.map(|page| page.row_bytes).max().unwrap_or(0)
    }
}

/// Decoded bytes a row of a column. Exact for strings when the file has their size (`unencoded`: bytes and rows of a page);
/// otherwise an estimate, which misses what a dictionary saves.
fn row_bytes(column: &ColumnChunkMetaData, rows: u64, unencoded: Option<(i64, u64)>) -> u64 {
    let per_row = |bytes: u64, rows: u64| bytes.div_ceil(rows.max(1));
    let values = u64::try_from(column.num_values()).unwrap_or(0);
    let width = match column.column_type() {
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4,
        PhysicalType::INT64 | PhysicalType::INT96 | PhysicalType::DOUBLE => 8,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => 16,
        // Offsets; the bytes come on top.
        PhysicalType::BYTE_ARRAY => 4,
    };
    let fixed = per_row(values.saturating_mul(width), rows);
    match (column.column_type(), unencoded) {
        (PhysicalType::BYTE_ARRAY, Some((bytes, rows))) => fixed + per_row(u64::try_from(bytes).unwrap_or(0), rows),
        (PhysicalType::BYTE_ARRAY, None) => {
            fixed + per_row(u64::try_from(column.uncompressed_size()).unwrap_or(0), rows)
        }
        _ => fixed,
    }
}
