//! What a writer has done since its last commit.

use std::sync::Arc;

use paimon_format::dv::WrittenDeletionVectors;
use paimon_format::meta::{CommitIncrement, CompactIncrement, DataFileMeta, DataIncrement, IndexFileMeta};

use crate::compact::{CompactResult, NewSidecars};

/// Files of a bucket that no commit knows yet.
///
/// Compactions within one commit are collapsed: a file that was made and consumed between two commits is in no increment. Changelog
/// files stay, all of them.
///
/// Source: the fields of `org.apache.paimon.mergetree.MergeTreeWriter`.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingIncrement {
    increment: CommitIncrement,
}

impl PendingIncrement {
    /// Goes on from what another writer had not committed.
    pub(super) fn new(increment: CommitIncrement) -> Self {
        Self { increment }
    }

    /// A flush made these files, and these changelog files.
    pub(super) fn add_flushed(&mut self, files: &[Arc<DataFileMeta>], changelog: Vec<DataFileMeta>) {
        let data = &mut self.increment.data;
        data.new_files.extend(files.iter().map(Arc::clone));
        data.changelog_files.extend(changelog.into_iter().map(Arc::new));
    }

    /// A compaction ended. Returns the files that no commit will ever name: they are to be deleted.
    ///
    /// Source: `org.apache.paimon.mergetree.MergeTreeWriter#updateCompactResult`.
    pub(super) fn add_compacted(&mut self, result: CompactResult) -> Vec<Arc<DataFileMeta>> {
        let CompactIncrement {
            compact_before,
            compact_after,
            changelog_files,
            ..
        } = &mut self.increment.compact;
        let mut superseded = Vec::new();
        for file in result.before {
            if let Some(position) = compact_after.iter().position(|made| *made == file) {
                // An earlier compaction of this commit made it. Its bytes are needed only if it is an upgraded older file, or is
                // upgraded once more now.
                compact_after.remove(position);
                if !has_name(compact_before, &file) && !has_name(&result.after, &file) {
                    superseded.push(file);
                }
            } else if !has_name(compact_before, &file) {
                compact_before.push(file);
            }
        }
        compact_after.extend(result.after);
        changelog_files.extend(result.changelog);
        superseded
    }

    /// The deletion vectors of the bucket are in a new index file. Returns those that it takes the place of and no commit has got: they
    /// are to be deleted.
    pub(super) fn set_deletion_vectors(&mut self, written: WrittenDeletionVectors) -> Vec<IndexFileMeta> {
        let CompactIncrement {
            new_index_files,
            deleted_index_files,
            ..
        } = &mut self.increment.compact;
        let superseded: Vec<_> = new_index_files
            .extract_if(.., |file| written.replaced.contains(file))
            .collect();
        let committed = written.replaced.into_iter().filter(|file| !superseded.contains(file));
        deleted_index_files.extend(committed);
        new_index_files.push(written.file);
        superseded
    }

    /// Index files that only this writer knows.
    pub(super) fn index_files(&self) -> &[IndexFileMeta] {
        &self.increment.compact.new_index_files
    }

    /// Hands everything out and starts anew.
    pub(super) fn drain(&mut self) -> CommitIncrement {
        std::mem::take(&mut self.increment)
    }

    /// Sidecars that files got when their level changed, for a writer that ends without a commit.
    pub(super) fn uncommitted_sidecars(&self) -> Vec<NewSidecars> {
        let compact = &self.increment.compact;
        let moved = compact.compact_after.iter().filter_map(|after| {
            let before = compact.compact_before.iter();
            let before = before.into_iter().find(|before| before.file_name == after.file_name)?;
            NewSidecars::of(before, after)
        });
        moved.collect()
    }

    /// Files that only this writer knows, for a writer that ends without a commit. An upgraded file shares its bytes with one that
    /// may be committed: it stays.
    pub(super) fn into_uncommitted_files(self) -> Vec<Arc<DataFileMeta>> {
        let CommitIncrement { data, compact } = self.increment;
        let DataIncrement {
            new_files,
            changelog_files,
            ..
        } = data;
        let made = compact
            .compact_after
            .into_iter()
            .filter(|file| !has_name(&compact.compact_before, file));
        let mut files: Vec<_> = new_files.into_iter().chain(changelog_files).collect();
        files.extend(made.collect::<Vec<_>>());
        files.extend(compact.changelog_files);
        files
    }
}

fn has_name(files: &[Arc<DataFileMeta>], file: &DataFileMeta) -> bool {
    files.iter().any(|other| other.file_name == file.file_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::file;

    /// `a@0 b@0 -> c@4`.
    fn result(text: &str) -> CompactResult {
        let (before, after) = text.split_once("->").unwrap();
        let files = |text: &str| -> Vec<Arc<DataFileMeta>> {
            text.split_whitespace()
                .map(|word| {
                    let (name, level) = word.split_once('@').unwrap();
                    Arc::new(file(name, level.parse().unwrap(), 1))
                })
                .collect()
        };
        CompactResult {
            before: files(before),
            after: files(after),
            ..CompactResult::default()
        }
    }

    fn print(files: &[Arc<DataFileMeta>]) -> String {
        let words: Vec<_> = files.iter().map(|f| format!("{}@{}", f.file_name, f.level)).collect();
        words.join(" ")
    }

    /// Before, after, and the files deleted by the last compaction.
    fn collapse(compactions: &[&str]) -> (String, String, String) {
        let mut pending = PendingIncrement::default();
        let mut deleted = Vec::new();
        for text in compactions {
            deleted = pending.add_compacted(result(text));
        }
        let increment = pending.drain();
        assert!(pending.drain().is_empty());
        (
            print(&increment.compact.compact_before),
            print(&increment.compact.compact_after),
            print(&deleted),
        )
    }

    #[track_caller]
    fn check(compactions: &[&str], before: &str, after: &str, deleted: &str) {
        assert_eq!(
            collapse(compactions),
            (before.into(), after.into(), deleted.into()),
            "{compactions:?}"
        );
    }

    #[test]
    fn compactions_of_one_commit_collapse() {
        check(&["a@0 b@0 -> c@4"], "a@0 b@0", "c@4", "");
        check(&["a@0 b@0 -> c@4", "c@4 d@0 -> e@5"], "a@0 b@0 d@0", "e@5", "c@4");
        check(&["a@0 -> a@4"], "a@0", "a@4", "");
        check(&["a@0 -> a@4", "a@4 -> a@5"], "a@0", "a@5", "");
        check(&["a@0 -> a@4", "a@4 d@0 -> e@5"], "a@0 d@0", "e@5", "");
        check(
            &["a@0 b@0 -> c@4", "c@4 -> c@5", "c@5 d@0 -> e@5"],
            "a@0 b@0 d@0",
            "e@5",
            "c@5",
        );
    }

    #[test]
    fn deletion_vectors_take_the_place_of_those_before() {
        let index = |name: &str| IndexFileMeta {
            index_type: "DELETION_VECTORS".to_owned(),
            file_name: name.to_owned(),
            file_size: 1,
            row_count: 0,
            dv_ranges: None,
            external_path: None,
            global_index: None,
        };
        let written = |file: &str, replaced: &str| WrittenDeletionVectors {
            file: index(file),
            replaced: replaced.split_whitespace().map(index).collect(),
        };
        let mut pending = PendingIncrement::default();
        assert_eq!(pending.set_deletion_vectors(written("b", "a")), []);
        assert_eq!(pending.set_deletion_vectors(written("c", "b")), [index("b")]);
        let compact = pending.drain().compact;
        assert_eq!(
            (compact.deleted_index_files, compact.new_index_files),
            (vec![index("a")], vec![index("c")])
        );
        assert_eq!(pending.set_deletion_vectors(written("d", "c")), []);
        let compact = pending.drain().compact;
        assert_eq!(
            (compact.deleted_index_files, compact.new_index_files),
            (vec![index("c")], vec![index("d")])
        );
    }

    #[test]
    fn a_writer_that_ends_leaves_upgraded_files() {
        let mut pending = PendingIncrement::default();
        pending.add_flushed(&[Arc::new(file("flushed", 0, 1))], vec![file("input", 0, 1)]);
        pending.add_compacted(result("a@0 -> a@4"));
        pending.add_compacted(result("b@0 c@0 -> d@4"));
        assert_eq!(print(&pending.into_uncommitted_files()), "flushed@0 input@0 d@4");
    }
}
