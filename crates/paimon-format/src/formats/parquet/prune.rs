//! Which rows can be wanted, by the statistics of row groups and pages.

use std::collections::BTreeMap;
use std::ops::Range;

use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::bounds::{chunk_bounds, page_bounds};
use super::decode::OpenFile;
use crate::predicate::{ColumnStatistics, Predicate};
use crate::types::{DataField, Datum, TypeKind};

/// The rows that may pass the filter: ranges of rows of row groups, in file order. Ranges that are less than `gap` rows apart are one.
pub(super) fn wanted_rows(
    file: &OpenFile,
    fields: &[DataField],
    filter: Option<&Predicate>,
    gap: u64,
) -> Vec<(usize, Range<u64>)> {
    // `NOT` stands before single columns only.
    let filter = filter.map(|filter| Predicate::And(filter.conjuncts()));
    let pruner = filter.as_ref().map(|filter| Pruner::new(file, fields, filter));
    let groups = (0..file.metadata.num_row_groups()).filter_map(|i| Some((i, file.row_group(i)?.1)));
    let wanted = groups.flat_map(|(i, rows)| {
        let ranges = match &pruner {
            Some(pruner) => pruner.wanted(i, rows, gap),
            None => whole(rows),
        };
        ranges.into_iter().map(move |range| (i, range))
    });
    wanted.filter(|(_, rows)| rows.start < rows.end).collect()
}

/// A filter, and where the statistics of its columns are.
struct Pruner<'a> {
    file: &'a OpenFile,
    filter: &'a Predicate,
    leaves: BTreeMap<&'a str, Leaf<'a>>,
}

/// A flat column whose statistics are about values of its field's type.
struct Leaf<'a> {
    column: usize,
    kind: &'a TypeKind,
}

impl<'a> Pruner<'a> {
    fn new(file: &'a OpenFile, fields: &'a [DataField], filter: &'a Predicate) -> Self {
        let descriptor = file.metadata.file_metadata().schema_descr();
        let leaves = filter.columns().into_iter().filter_map(|name| {
            let field = fields.iter().find(|field| field.name == name)?;
            let column = (0..descriptor.num_columns()).find(|&leaf| {
                let root = descriptor.get_column_root(leaf);
                root.is_primitive() && root.name() == name
            })?;
            let kind = &field.data_type.kind;
            file.holds(field).then_some((name, Leaf { column, kind }))
        });
        Self {
            file,
            filter,
            leaves: leaves.collect(),
        }
    }

    /// The rows of a row group that may pass.
    fn wanted(&self, row_group: usize, rows: u64, gap: u64) -> Vec<Range<u64>> {
        let leaves = self.leaves.iter();
        let known: BTreeMap<&str, ColumnStatistics> = leaves
            .filter_map(|(name, leaf)| Some((*name, self.of_chunk(row_group, leaf)?)))
            .collect();
        if !self.filter.may_match(rows, &|name| known.get(name)) {
            return Vec::new();
        }
        joined(self.of_pages(row_group, rows, self.filter), gap)
    }

    /// The rows of a row group whose pages do not refute a part of the filter.
    fn of_pages(&self, row_group: usize, rows: u64, part: &Predicate) -> Vec<Range<u64>> {
        let parts = |all: &[Predicate]| {
            all.iter()
                .map(|part| self.of_pages(row_group, rows, part))
                .collect::<Vec<_>>()
        };
        match part {
            Predicate::And(all) => parts(all)
                .iter()
                .fold(whole(rows), |wanted, part| intersection(&wanted, part)),
            Predicate::Or(all) => union(parts(all).concat()),
            Predicate::Not(_) | Predicate::Column { .. } => {
                let leaf = part.columns().first().and_then(|name| self.leaves.get(name));
                let pages = leaf.and_then(|leaf| self.pages(row_group, rows, leaf, part));
                pages.unwrap_or_else(|| whole(rows))
            }
        }
    }

    fn of_chunk(&self, row_group: usize, leaf: &Leaf<'_>) -> Option<ColumnStatistics> {
        let group = self.file.metadata.row_groups().get(row_group)?;
        let chunk = group.columns().get(leaf.column)?.statistics()?;
        let bounds = match is_ordered(chunk) {
            true => chunk_bounds(leaf.kind, chunk),
            false => None,
        };
        Some(statistics(bounds, chunk.null_count_opt()))
    }

    /// The rows of the pages of a column that may pass a filter about it; `None`: its pages are not known.
    fn pages(&self, row_group: usize, rows: u64, leaf: &Leaf<'_>, part: &Predicate) -> Option<Vec<Range<u64>>> {
        let metadata = &self.file.metadata;
        let index = metadata.column_index()?.get(row_group)?.get(leaf.column)?;
        let locations = metadata
            .offset_index()?
            .get(row_group)?
            .get(leaf.column)?
            .page_locations();
        // A column without an index (its type has no order, or a page has no bounds) has no pages to ask for either.
        if matches!(index, ColumnIndexMetaData::NONE) || index.num_pages() != locations.len() as u64 {
            return None;
        }
        let first_row = |page: usize| {
            let location = locations.get(page);
            location.map_or(Some(rows), |location| u64::try_from(location.first_row_index).ok())
        };
        let mut wanted = Vec::new();
        for page in 0..locations.len() {
            let range = first_row(page)?..first_row(page + 1)?;
            let nulls = index.null_count(page).and_then(|count| u64::try_from(count).ok());
            let known = statistics(page_bounds(leaf.kind, index, page), nulls);
            if part.may_match(range.end.saturating_sub(range.start), &|_| Some(&known)) {
                wanted.push(range);
            }
        }
        Some(wanted)
    }
}

/// Old files have bounds by an order that was wrong for texts and decimals.
fn is_ordered(chunk: &Statistics) -> bool {
    !chunk.is_min_max_deprecated()
}

fn statistics(bounds: Option<(Datum, Datum)>, null_count: Option<u64>) -> ColumnStatistics {
    let (min, max) = bounds.unzip();
    ColumnStatistics {
        min: min.map(lowest_zero),
        max,
        null_count,
    }
}

/// A smallest value of 0.0 may stand for -0.0 too, which Java puts below it.
fn lowest_zero(min: Datum) -> Datum {
    match min {
        Datum::Float32(0.0) => Datum::Float32(-0.0),
        Datum::Float64(0.0) => Datum::Float64(-0.0),
        min => min,
    }
}

/// All rows.
fn whole(rows: u64) -> Vec<Range<u64>> {
    std::iter::once(0..rows).collect()
}

/// The rows that are in both; ranges ascend.
fn intersection(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut both = Vec::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        let range = one.start.max(other.start)..one.end.min(other.end);
        if one.end <= other.end {
            a.next();
        } else {
            b.next();
        }
        if range.start < range.end {
            both.push(range);
        }
    }
    both
}

/// The rows that are in one of these ranges.
fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    joined(ranges, 0)
}

/// Ascending ranges, those made one that overlap, touch, or are less than `gap` apart.
fn joined(ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end || range.start - last.end < gap => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet_and_join() {
        let a = [0..10, 20..30, 40..50];
        assert_eq!(intersection(&a, &[5..25, 28..29, 50..60]), [5..10, 20..25, 28..29]);
        assert_eq!(intersection(&a, &[]), []);
        assert_eq!(joined(a.to_vec(), 10), [0..10, 20..30, 40..50]);
        assert_eq!(joined(a.to_vec(), 11), [0..50]);
        assert_eq!(joined(vec![0..5, 5..9], 0), [0..9]);
        assert_eq!(union(vec![30..40, 0..10, 5..7, 10..12]), [0..12, 30..40]);
    }
}
