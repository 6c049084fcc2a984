//! Which files of a bucket must be merged with one another, and in how few sorted runs they fit.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::meta::DataFileMeta;
use crate::row::BinaryRow;

/// Files in key order whose `[min_key, max_key]` intervals do not touch.
pub type SortedRunFiles = Vec<Arc<DataFileMeta>>;

/// Cuts files into sections, ascending and disjoint in keys, and each section into the fewest possible sorted runs.
///
/// Files that share even one key land in one section. The order of the runs inside a section means nothing, and the level of a
/// file plays no part. `compare` orders trimmed primary keys. Cost: O(n log n) comparisons.
///
/// Source: `org.apache.paimon.mergetree.compact.IntervalPartition`.
pub fn sections(
    files: &[Arc<DataFileMeta>],
    compare: impl Fn(&BinaryRow, &BinaryRow) -> Ordering,
) -> Vec<Vec<SortedRunFiles>> {
    let mut sorted: Vec<&Arc<DataFileMeta>> = files.iter().collect();
    sorted.sort_by(|a, b| compare(&a.min_key, &b.min_key).then_with(|| compare(&a.max_key, &b.max_key)));
    let mut sections = Vec::new();
    let mut open: Vec<&Arc<DataFileMeta>> = Vec::new();
    let mut bound: Option<&BinaryRow> = None;
    for file in sorted {
        if bound.is_some_and(|bound| compare(&file.min_key, bound).is_gt()) {
            sections.push(fewest_runs(&open, &compare));
            open.clear();
            bound = None;
        }
        if bound.is_none_or(|bound| compare(&file.max_key, bound).is_gt()) {
            bound = Some(&file.max_key);
        }
        open.push(file);
    }
    if !open.is_empty() {
        sections.push(fewest_runs(&open, &compare));
    }
    sections
}

/// Appends each file, in order of min key, to the run that ends first if it ends before the file, else opens a run.
fn fewest_runs(
    files: &[&Arc<DataFileMeta>],
    compare: &impl Fn(&BinaryRow, &BinaryRow) -> Ordering,
) -> Vec<SortedRunFiles> {
    let mut runs: Vec<SortedRunFiles> = Vec::new();
    // The heap holds plain ranks of max keys, so that it needs no comparator of its own.
    let mut ends: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for (file, rank) in files.iter().zip(ranks_by_max_key(files, compare)) {
        let fits = ends.peek().and_then(|Reverse((_, run))| {
            let last = runs.get(*run)?.last()?;
            compare(&file.min_key, &last.max_key).is_gt().then_some(*run)
        });
        let run = match fits {
            Some(run) => {
                ends.pop();
                run
            }
            None => {
                runs.push(Vec::new());
                runs.len() - 1
            }
        };
        if let Some(files) = runs.get_mut(run) {
            files.push(Arc::clone(file));
        }
        ends.push(Reverse((rank, run)));
    }
    runs
}

fn ranks_by_max_key(
    files: &[&Arc<DataFileMeta>],
    compare: &impl Fn(&BinaryRow, &BinaryRow) -> Ordering,
) -> impl Iterator<Item = usize> {
    let mut order: Vec<(usize, &Arc<DataFileMeta>)> = files.iter().copied().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| compare(&a.max_key, &b.max_key));
    let mut ranks: Vec<(usize, usize)> = order.iter().enumerate().map(|(rank, (file, _))| (*file, rank)).collect();
    ranks.sort_unstable();
    ranks.into_iter().map(|(_, rank)| rank)
}
