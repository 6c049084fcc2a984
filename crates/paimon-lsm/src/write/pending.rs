//! What a writer has done since its last commit.

use std::sync::Arc;

use paimon_format::dv::WrittenDeletionVectors;
use paimon_format::meta::{CommitIncrement, CompactIncrement, DataFileMeta, IndexFileMeta};

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

/// What an earlier compaction of a commit made and a later one took the place of: no commit will ever name it.
#[derive(Debug, Default)]
pub(super) struct Superseded {
    /// With all of their sidecars.
    pub(super) files: Vec<Arc<DataFileMeta>>,
    /// Of files that were only moved.
    pub(super) sidecars: Vec<NewSidecars>,
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

    /// A compaction ended. What it supersedes is to be deleted.
    ///
    /// Source: `org.apache.paimon.mergetree.MergeTreeWriter#updateCompactResult`.
    pub(super) fn add_compacted(&mut self, result: CompactResult) -> Superseded {
        let CompactIncrement {
            compact_before,
            compact_after,
            changelog_files,
            ..
        } = &mut self.increment.compact;
        let mut superseded = Superseded::default();
        for file in result.before {
            if let Some(position) = compact_after.iter().position(|made| *made == file) {
                // An earlier compaction of this commit made it. It is needed still if it is upgraded once more now; if not, its bytes
                // are only if it is an upgraded older file, which had not the sidecars that it got then.
                compact_after.remove(position);
                if named(&result.after, &file).is_none() {
                    match named(compact_before, &file) {
                        Some(older) => superseded.sidecars.extend(NewSidecars::of(older, &file)),
                        None => superseded.files.push(file),
                    }
                }
            } else if named(compact_before, &file).is_none() {
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

    /// Hands everything out and starts anew.
    pub(super) fn drain(&mut self) -> CommitIncrement {
        std::mem::take(&mut self.increment)
    }
}

/// The file of the same name, on whatever level.
fn named<'a>(files: &'a [Arc<DataFileMeta>], file: &DataFileMeta) -> Option<&'a Arc<DataFileMeta>> {
    files.iter().find(|other| other.file_name == file.file_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::file;

    /// `a@0 b@0 -> c@4`; `a@0 -> a@4+s`: it got the sidecar `s`.
    fn result(text: &str) -> CompactResult {
        let (before, after) = text.split_once("->").unwrap();
        let files = |text: &str| -> Vec<Arc<DataFileMeta>> {
            text.split_whitespace()
                .map(|word| {
                    let (name, level) = word.split_once('@').unwrap();
                    let mut parts = level.split('+');
                    let level = parts.next().unwrap().parse().unwrap();
                    Arc::new(DataFileMeta {
                        extra_files: parts.map(str::to_owned).collect(),
                        ..file(name, level, 1)
                    })
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

    /// Before, after, and the files and sidecars deleted by the last compaction.
    fn collapse(compactions: &[&str]) -> (String, String, String) {
        let mut pending = PendingIncrement::default();
        let mut deleted = Superseded::default();
        for text in compactions {
            deleted = pending.add_compacted(result(text));
        }
        let increment = pending.drain();
        assert!(pending.drain().is_empty());
        let sidecars = deleted.sidecars.iter();
        let sidecars: Vec<_> = sidecars
            .map(|new| format!("{}: {}", new.file.file_name, new.names.join(" ")))
            .collect();
        (
            print(&increment.compact.compact_before),
            print(&increment.compact.compact_after),
            print(&deleted.files) + &sidecars.concat(),
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
    fn sidecars_of_a_moved_file_go_when_it_is_merged() {
        check(&["a@0 -> a@4+s", "a@4+s d@0 -> e@5"], "a@0 d@0", "e@5", "a: s");
        check(&["a@0+i -> a@4+i+s", "a@4+i+s d@0 -> e@5"], "a@0 d@0", "e@5", "a: s");
        check(&["a@0 -> a@4+s", "a@4+s -> a@5+s+t"], "a@0", "a@5", "");
        check(
            &["a@0 -> a@4+s", "a@4+s -> a@5+s+t", "a@5+s+t d@0 -> e@5"],
            "a@0 d@0",
            "e@5",
            "a: s t",
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
}
