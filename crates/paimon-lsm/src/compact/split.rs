//! A compaction in parts, for several processes.

use std::collections::HashSet;
use std::sync::Arc;

use paimon_format::meta::DataFileMeta;
use paimon_format::row::BinaryRow;

use super::{CompactStep, CompactTask, KeyBounds};
use crate::LsmError;
use crate::levels::{KeyOrder, Section, SortedRun, file_bytes, total_bytes};

/// Cuts a task whose steps are these into parts of about so many bytes, in key order. Together they do what the task does: no two have a key in
/// common.
///
/// A part has files of its own where it can: steps, and sections of a step, are shared out whole. A section that is more than half too
/// large is cut at the smallest keys of its files; its parts share files, and read only what is between their bounds. One whose
/// files all begin at one key is not cut.
///
/// Errors: `Corrupt` when a file's key bounds cannot be read.
pub(super) fn split(
    task: &CompactTask,
    steps: Vec<CompactStep>,
    keys: &KeyOrder,
    part_bytes: u64,
) -> Result<Vec<CompactTask>, LsmError> {
    let part_bytes = part_bytes.max(1);
    let mut parts = Parts {
        task,
        part_bytes,
        done: Vec::new(),
        open: Vec::new(),
        open_bytes: 0,
    };
    for step in steps {
        match step {
            CompactStep::Upgrade { file, .. } => parts.add(vec![file]),
            CompactStep::Rewrite { sections, .. } => {
                for section in sections {
                    parts.add_section(section, keys)?;
                }
            }
        }
    }
    parts.close();
    Ok(parts.done)
}

struct Parts<'a> {
    task: &'a CompactTask,
    part_bytes: u64,
    done: Vec<CompactTask>,
    /// Files of the part that is being filled.
    open: Vec<Arc<DataFileMeta>>,
    open_bytes: u64,
}

impl Parts<'_> {
    /// Files that stay together.
    fn add(&mut self, files: Vec<Arc<DataFileMeta>>) {
        let bytes = total_bytes(&files);
        if self.open_bytes.saturating_add(bytes) > self.part_bytes {
            self.close();
        }
        self.open.extend(files);
        self.open_bytes = self.open_bytes.saturating_add(bytes);
    }

    fn add_section(&mut self, section: Section, keys: &KeyOrder) -> Result<(), LsmError> {
        let files: Vec<_> = section.iter().flat_map(SortedRun::files).map(Arc::clone).collect();
        if total_bytes(&files) > self.part_bytes.saturating_add(self.part_bytes / 2) {
            let ranges = cut(&files, keys, self.part_bytes)?;
            if ranges.len() > 1 {
                self.close();
                for (bounds, files) in ranges {
                    let part = self.part(&files, bounds);
                    self.done.push(part);
                }
                return Ok(());
            }
        }
        self.add(files);
        Ok(())
    }

    fn close(&mut self) {
        let files = std::mem::take(&mut self.open);
        self.open_bytes = 0;
        if !files.is_empty() {
            let part = self.part(&files, KeyBounds::default());
            self.done.push(part);
        }
    }

    /// The task with some of its files, in their order.
    fn part(&self, files: &[Arc<DataFileMeta>], keys: KeyBounds) -> CompactTask {
        let names: HashSet<&str> = files.iter().map(|file| file.file_name.as_str()).collect();
        let files = self.task.files.iter();
        CompactTask {
            files: files
                .filter(|file| names.contains(file.file_name.as_str()))
                .map(Arc::clone)
                .collect(),
            keys,
            ..self.task.clone()
        }
    }
}

/// A range of keys, and the files that reach into it.
type Range = (KeyBounds, Vec<Arc<DataFileMeta>>);

/// Ranges of about so many bytes, each with the files that reach into it. A file's bytes count evenly for the smallest keys of files
/// that it spans: nothing is read to find out.
fn cut(files: &[Arc<DataFileMeta>], keys: &KeyOrder, part_bytes: u64) -> Result<Vec<Range>, LsmError> {
    let starts = keys.distinct_starts(files)?;
    let mut weights = vec![0u64; starts.len()];
    let mut spans = Vec::with_capacity(files.len());
    for file in files {
        let first = keys.starts_up_to(&starts, &file.min_key)?.saturating_sub(1);
        let end = keys.starts_up_to(&starts, &file.max_key)?.max(first + 1);
        let share = file_bytes(file) / u64::try_from(end - first).unwrap_or(1).max(1);
        for weight in weights.iter_mut().take(end).skip(first) {
            *weight = weight.saturating_add(share);
        }
        spans.push((first, end));
    }
    // Where parts begin, as positions in `starts`.
    let mut begins = vec![0];
    let mut bytes = 0u64;
    for (position, weight) in weights.iter().enumerate() {
        if bytes > 0 && bytes.saturating_add(weight / 2) > part_bytes {
            begins.push(position);
            bytes = 0;
        }
        bytes = bytes.saturating_add(*weight);
    }
    let ends = begins.iter().skip(1).copied().chain([starts.len()]);
    let parts = begins.iter().copied().zip(ends).map(|(begin, end)| {
        let bound = |position: usize| -> Option<BinaryRow> {
            let inner = position > 0 && position < starts.len();
            inner.then(|| starts.get(position).cloned()).flatten()
        };
        let bounds = KeyBounds {
            from: bound(begin),
            to: bound(end),
        };
        let reaches = |span: &(usize, usize)| span.0 < end && span.1 > begin;
        let files = files.iter().zip(&spans).filter(|(_, span)| reaches(span));
        (bounds, files.map(|(file, _)| Arc::clone(file)).collect())
    });
    Ok(parts.collect())
}

#[cfg(test)]
mod tests {
    use paimon_format::types::{DataType, Datum, TypeKind};

    use super::*;
    use crate::pick::{CompactUnit, PickReason};
    use crate::testing::{int_keys, keyed_file};

    /// The parts of a task that rewrites these files (level, keys, bytes) in one step: `[from..to) files`.
    fn parts(files: &[(i32, (i32, i32), i64)], part_bytes: u64) -> Vec<String> {
        let files: Vec<_> = (0..)
            .zip(files)
            .map(|(number, &(level, range, size))| Arc::new(keyed_file(number.to_string(), level, range, size)))
            .collect();
        let keys = int_keys().unwrap();
        let unit = CompactUnit {
            output_level: 5,
            runs: files.len(),
            files,
            rewrite_each: false,
            reason: PickReason::Full,
        };
        let task = CompactTask::new(unit, 6, true);
        let step = CompactStep::Rewrite {
            sections: keys.sections(&task.files).unwrap(),
            drop_delete: true,
            changelog: false,
        };
        let parts = split(&task, vec![step], &keys, part_bytes).unwrap();
        parts.iter().map(text).collect()
    }

    fn text(part: &CompactTask) -> String {
        let bound = |key: &Option<BinaryRow>| match key {
            None => String::new(),
            Some(key) => match key.get(0, &DataType::not_null(TypeKind::Int)).unwrap() {
                Datum::Int32(key) => key.to_string(),
                other => panic!("{other:?}"),
            },
        };
        let files: Vec<&str> = part.files.iter().map(|file| file.file_name.as_str()).collect();
        format!(
            "[{}..{}) {}",
            bound(&part.keys.from),
            bound(&part.keys.to),
            files.join(" ")
        )
    }

    #[test]
    fn sections_are_shared_out_whole() {
        let files = [
            (0, (0, 9), 10),
            (5, (0, 9), 10),
            (0, (10, 19), 20),
            (5, (20, 29), 5),
            (5, (30, 39), 30),
        ];
        assert_eq!(parts(&files, 20), ["[..) 0 1", "[..) 2", "[..) 3", "[..) 4"]);
        assert_eq!(parts(&files, 25), ["[..) 0 1", "[..) 2 3", "[..) 4"]);
        assert_eq!(parts(&files, 1000), ["[..) 0 1 2 3 4"]);
    }

    #[test]
    fn a_large_section_is_cut_at_the_smallest_keys_of_its_files() {
        // One file on level 0 across four of level 5.
        let files = [
            (0, (0, 39), 40),
            (5, (0, 9), 100),
            (5, (10, 19), 100),
            (5, (20, 29), 100),
            (5, (30, 39), 100),
        ];
        assert_eq!(
            parts(&files, 110),
            ["[..10) 0 1", "[10..20) 0 2", "[20..30) 0 3", "[30..) 0 4"]
        );
        assert_eq!(parts(&files, 220), ["[..20) 0 1 2", "[20..) 0 3 4"]);
        // It is not more than half too large.
        assert_eq!(parts(&files, 300), ["[..) 0 1 2 3 4"]);
    }

    #[test]
    fn files_that_begin_at_one_key_are_not_cut() {
        let files = [(0, (0, 39), 100), (0, (0, 30), 100), (0, (0, 35), 100)];
        assert_eq!(parts(&files, 10), ["[..) 0 1 2"]);
    }

    #[test]
    fn every_key_of_every_file_is_in_one_part() {
        let files: Vec<_> = (0..40)
            .map(|number| {
                let min = number * 37 % 100;
                (0, (min, min + number * 13 % 60), 10 + i64::from(number))
            })
            .collect();
        for part_bytes in [1, 50, 200, 1000] {
            let texts = parts(&files, part_bytes);
            for (number, &(_, (min, max), _)) in files.iter().enumerate() {
                for key in [min, (min + max) / 2, max] {
                    let holds = |text: &&String| {
                        let (bounds, names) = text.split_once(") ").unwrap();
                        let (from, to) = bounds[1..].split_once("..").unwrap();
                        from.parse().map_or(true, |from: i32| key >= from)
                            && to.parse().map_or(true, |to: i32| key < to)
                            && names.split(' ').any(|name| name == number.to_string())
                    };
                    assert_eq!(
                        texts.iter().filter(holds).count(),
                        1,
                        "{key} of file {number}: {texts:?}"
                    );
                }
            }
        }
    }
}
