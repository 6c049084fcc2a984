//! What a compaction made.

use std::collections::HashMap;
use std::sync::Arc;

use super::DataFileMeta;

/// What the files after a compaction have that those before it had not: what has to go if nothing comes of it.
#[derive(Debug, Default)]
pub struct MadeFiles<'a> {
    /// Files that were written.
    pub written: Vec<&'a Arc<DataFileMeta>>,
    /// Sidecars that files got which were only moved to another level, with those files. The files themselves are older.
    pub sidecars: Vec<(&'a Arc<DataFileMeta>, &'a String)>,
}

impl<'a> MadeFiles<'a> {
    /// Compares by names.
    pub fn of(before: &'a [Arc<DataFileMeta>], after: &'a [Arc<DataFileMeta>]) -> Self {
        let before: HashMap<&str, _> = before.iter().map(|file| (file.file_name.as_str(), file)).collect();
        let mut made = Self::default();
        for file in after {
            match before.get(file.file_name.as_str()) {
                None => made.written.push(file),
                Some(before) => {
                    let new = file.new_extra_files(before);
                    made.sidecars.extend(new.map(|name| (file, name)));
                }
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::tests::data_file;

    #[test]
    fn moved_files_are_older_than_their_new_sidecars() {
        let with = |name: &str, level, extra: &[&str]| {
            let extra_files = extra.iter().map(|name| (*name).to_owned()).collect();
            Arc::new(DataFileMeta {
                level,
                extra_files,
                ..data_file(name)
            })
        };
        let before = [with("a", 0, &["a.index"]), with("b", 0, &[]), with("c", 0, &[])];
        let after = [
            with("a", 5, &["a.index", "a.lookup"]),
            with("b", 5, &[]),
            with("d", 5, &["d.lookup"]),
        ];
        let made = MadeFiles::of(&before, &after);
        assert_eq!(made.written, [&after[2]]);
        assert_eq!(made.sidecars, [(&after[0], &"a.lookup".to_owned())]);
    }
}
