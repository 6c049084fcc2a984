//! Where new data files go when they do not go below the table's root.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::FileLocation;
use super::paths::join;
use crate::FormatError;
use crate::env::FileIds;
use crate::options::Options;

/// The external roots of a table's new data files: `data-file.external-paths` and its strategy.
///
/// Source: `org.apache.paimon.fs.ExternalPathProvider`, `org.apache.paimon.AbstractFileStore#createExternalPaths`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalRoots(Vec<String>);

impl ExternalRoots {
    /// From a table's options; none with the strategy `none`. The strategies that are not built are refused before.
    ///
    /// Errors: `Invalid` naming the option: a path without a scheme, no path, none of the file system that is asked for.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        const PATHS: &str = "data-file.external-paths";
        const FILE_SYSTEM: &str = "data-file.external-paths.specific-fs";
        let strategy = options.string("data-file.external-paths.strategy").unwrap_or_default();
        let paths = options.string(PATHS).unwrap_or_default();
        let only = match strategy.to_lowercase().as_str() {
            "round-robin" => None,
            "specific-fs" => Some(options.string(FILE_SYSTEM).ok_or_else(|| {
                FormatError::invalid(format!(
                    "option '{FILE_SYSTEM}' is missing: the strategy specific-fs needs it"
                ))
            })?),
            _ => return Ok(Self::default()),
        };
        if paths.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut roots = Vec::new();
        for path in paths.split(',').map(str::trim) {
            let Some((scheme, _)) = path.split_once(":/") else {
                return Err(FormatError::invalid(format!(
                    "option '{PATHS}' = '{paths}': expected URLs, found '{path}' without a scheme such as file: or s3:"
                )));
            };
            if only.as_ref().is_none_or(|only| scheme.eq_ignore_ascii_case(only)) {
                roots.push(path.trim_end_matches('/').to_owned());
            }
        }
        if roots.is_empty() {
            return Err(FormatError::invalid(format!(
                "option '{PATHS}' = '{paths}': none of them is of the file system '{}' (option '{FILE_SYSTEM}')",
                only.unwrap_or_default()
            )));
        }
        Ok(Self(roots))
    }
}

/// Deals out the roots in turn, from one that is drawn.
#[derive(Debug)]
pub(super) struct RoundRobin {
    roots: ExternalRoots,
    next: AtomicUsize,
}

impl RoundRobin {
    pub(super) fn new(roots: ExternalRoots, ids: &dyn FileIds) -> Self {
        let first = ids.jitter(roots.0.len() as u64);
        Self {
            roots,
            next: AtomicUsize::new(usize::try_from(first).unwrap_or(0)),
        }
    }

    /// Where the next file of this bucket directory goes.
    pub(super) fn place(&self, directory: &str, name: &str) -> FileLocation {
        let path = join([directory, name]);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let root = number
            .checked_rem(self.roots.0.len())
            .and_then(|at| self.roots.0.get(at));
        match root {
            Some(root) => FileLocation::External(format!("{root}/{path}")),
            None => FileLocation::Table(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::CountingIds;

    fn roots(options: &[(&str, &str)]) -> Result<ExternalRoots, String> {
        let options = options.iter().copied().collect();
        ExternalRoots::from_options(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn files_take_turns() {
        let both = [
            ("data-file.external-paths", "file:///a/, s3://b/c"),
            ("data-file.external-paths.strategy", "round-robin"),
        ];
        let robin = RoundRobin::new(roots(&both).unwrap(), &CountingIds::default());
        let places: Vec<_> = (0..3)
            .map(|file| robin.place("p=1/bucket-0", &format!("f{file}")))
            .collect();
        assert_eq!(
            places,
            [
                FileLocation::External("file:///a/p=1/bucket-0/f0".into()),
                FileLocation::External("s3://b/c/p=1/bucket-0/f1".into()),
                FileLocation::External("file:///a/p=1/bucket-0/f2".into()),
            ]
        );
    }

    #[test]
    fn one_file_system_of_several() {
        let paths = ("data-file.external-paths", "file:///a,s3://b/c");
        let strategy = ("data-file.external-paths.strategy", "specific-fs");
        let only = |name| roots(&[paths, strategy, ("data-file.external-paths.specific-fs", name)]);
        assert_eq!(only("S3").unwrap(), ExternalRoots(vec!["s3://b/c".into()]));
        assert_eq!(
            only("oss").unwrap_err(),
            "option 'data-file.external-paths' = 'file:///a,s3://b/c': none of them is of the file system 'oss' \
             (option 'data-file.external-paths.specific-fs')"
        );
        assert!(roots(&[paths, strategy]).unwrap_err().contains("is missing"));
    }

    #[test]
    fn without_a_strategy_files_stay_in_the_table() {
        let table = FileLocation::Table("bucket-0/f".into());
        for options in [&[][..], &[("data-file.external-paths", "file:///a")]] {
            let robin = RoundRobin::new(roots(options).unwrap(), &CountingIds::default());
            assert_eq!(robin.place("bucket-0", "f"), table);
        }
        let error = roots(&[
            ("data-file.external-paths", "/a"),
            ("data-file.external-paths.strategy", "round-robin"),
        ]);
        assert_eq!(
            error.unwrap_err(),
            "option 'data-file.external-paths' = '/a': expected URLs, found '/a' without a scheme such as file: or s3:"
        );
    }
}
