//! Which files of a bucket must be merged with one another, and in how few sorted runs they fit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::error::FormatError;
use crate::meta::DataFileMeta;
use crate::row::KeyComparator;
use crate::types::Datum;

/// Files in key order whose `[min_key, max_key]` intervals do not touch.
pub type SortedRunFiles = Vec<Arc<DataFileMeta>>;

/// Cuts files into sections, ascending and disjoint in keys, and each section into the fewest possible sorted runs.
///
/// Files that share even one key land in one section. The order of the runs inside a section means nothing, and the level of a
/// file plays no part. Cost: decodes each key once; O(n log n) comparisons.
///
/// Errors: `Corrupt` when a file's key is no key of the table. Source: `org.apache.paimon.mergetree.compact.IntervalPartition`.
pub fn sections(files: &[Arc<DataFileMeta>], keys: &KeyComparator) -> Result<Vec<Vec<SortedRunFiles>>, FormatError> {
    let mut intervals = files
        .iter()
        .map(|file| {
            Ok(Interval {
                min: keys.key(&file.min_key)?,
                max: keys.key(&file.max_key)?,
                file,
            })
        })
        .collect::<Result<Vec<_>, FormatError>>()?;
    intervals.sort_by(|a, b| (&a.min, &a.max).cmp(&(&b.min, &b.max)));
    let mut sections = Vec::new();
    let mut rest = intervals.as_slice();
    while let Some((first, others)) = rest.split_first() {
        let mut bound = &first.max;
        let more = others.iter().take_while(|next| {
            let inside = next.min <= *bound;
            if inside {
                bound = bound.max(&next.max);
            }
            inside
        });
        let (section, after) = rest.split_at(1 + more.count());
        sections.push(fewest_runs(section));
        rest = after;
    }
    Ok(sections)
}

struct Interval<'a> {
    min: Vec<Datum>,
    max: Vec<Datum>,
    file: &'a Arc<DataFileMeta>,
}

/// Appends each file, in order of min key, to the run that ends first if it ends before the file, else opens a run.
fn fewest_runs(section: &[Interval<'_>]) -> Vec<SortedRunFiles> {
    let mut runs: Vec<SortedRunFiles> = Vec::new();
    let mut ends: BinaryHeap<Reverse<(&[Datum], usize)>> = BinaryHeap::new();
    for interval in section {
        let fits = ends.peek().filter(|Reverse((end, _))| interval.min.as_slice() > *end);
        let run = match fits {
            Some(&Reverse((_, run))) => {
                ends.pop();
                run
            }
            None => {
                runs.push(Vec::new());
                runs.len() - 1
            }
        };
        if let Some(files) = runs.get_mut(run) {
            files.push(Arc::clone(interval.file));
        }
        ends.push(Reverse((&interval.max, run)));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::BinaryRow;
    use crate::types::{DataType, TypeKind};

    fn types() -> Vec<DataType> {
        vec![DataType::not_null(TypeKind::Int)]
    }

    fn file(min: i32, max: i32) -> Arc<DataFileMeta> {
        let key = |value| BinaryRow::from_datums(&[Datum::Int32(value)], &types()).unwrap();
        Arc::new(DataFileMeta {
            row_count: 1,
            min_key: key(min),
            max_key: key(max),
            ..DataFileMeta::new(format!("{min}-{max}"), 1)
        })
    }

    /// Sections on lines, runs between braces.
    fn shown(intervals: &[(i32, i32)]) -> Vec<String> {
        let files: Vec<_> = intervals.iter().map(|&(min, max)| file(min, max)).collect();
        let keys = KeyComparator::new(types()).unwrap();
        let show_run = |run: SortedRunFiles| {
            run.iter()
                .map(|file| file.file_name.clone())
                .collect::<Vec<_>>()
                .join(" ")
        };
        sections(&files, &keys)
            .unwrap()
            .into_iter()
            .map(|section| {
                section
                    .into_iter()
                    .map(|run| format!("{{{}}}", show_run(run)))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn touching_files_share_a_section() {
        assert_eq!(
            shown(&[(0, 9), (5, 7), (9, 15), (16, 22), (16, 28), (24, 32)]),
            ["{0-9}{5-7 9-15}", "{16-22 24-32}{16-28}"]
        );
    }

    #[test]
    fn nested_files_need_a_run_each() {
        assert_eq!(
            shown(&[(400, 500), (100, 500), (300, 500), (200, 500)]),
            ["{100-500}{200-500}{300-500}{400-500}"]
        );
    }

    #[test]
    fn a_run_takes_every_file_that_fits_behind_it() {
        assert_eq!(
            shown(&[(1, 10), (5, 20), (11, 15), (16, 30), (31, 40), (40, 50)]),
            ["{1-10 11-15 16-30}{5-20}", "{31-40}{40-50}"]
        );
        assert_eq!(
            shown(&[(1, 100), (1, 3), (4, 6), (7, 9), (10, 20), (101, 110), (110, 120)]),
            ["{1-3 4-6 7-9 10-20}{1-100}", "{101-110}{110-120}"]
        );
    }

    #[test]
    fn no_files_no_sections() {
        assert_eq!(shown(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_key_of_another_table_is_an_error() {
        let keys = KeyComparator::new([types(), types()].concat()).unwrap();
        let error = sections(&[file(1, 2)], &keys).unwrap_err();
        insta::assert_snapshot!(error, @"a binary row of 1 fields read with 2 types");
    }
}
