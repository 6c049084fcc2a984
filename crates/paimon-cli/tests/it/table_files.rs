//! What lies below a table's directory: files that something kept names, and leftovers.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use paimon::format::meta::{FileLocation, PathSettings, TablePaths};
use paimon::format::options::Options;
use paimon::manifest::scan::{FileStoreScan, ScanKind};
use paimon::{Context, Snapshot, Table};

/// Directories whose files are snapshots, under these prefixes.
const SNAPSHOT_DIRS: [(&str, &str); 3] = [("snapshot", "snapshot-"), ("tag", "tag-"), ("changelog", "changelog-")];

/// Files that no snapshot, tag or changelog names: path relative to the table, what its name says that it is, bytes.
pub(crate) struct Leftovers(Vec<(String, &'static str, u64)>);

impl Leftovers {
    /// Looks at a table on local disk without partitions, whose processes have all ended.
    ///
    /// Panics unless every file that something kept names is there and as large as its metadata says, and every other one is of a kind that
    /// writers and compactors make.
    pub(crate) fn of(table: &str) -> Self {
        let there = files_below(Path::new(table));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let named = runtime.block_on(named_files(table, &there));
        for (path, size) in &named {
            let found = there.get(path).unwrap_or_else(|| panic!("{path} is gone"));
            assert!(
                size.is_none_or(|size| size == *found),
                "{path}: {found} bytes, not {size:?}"
            );
        }
        let unnamed = there.into_iter().filter(|(path, _)| !named.contains_key(path));
        Self(
            unnamed
                .map(|(path, size)| {
                    let kind = kind(&path);
                    (path, kind, size)
                })
                .collect(),
        )
    }

    pub(crate) fn remove(self, table: &str) {
        for (path, ..) in self.0 {
            fs::remove_file(Path::new(table).join(path)).unwrap();
        }
    }
}

/// How many there are, and their bytes, kind by kind.
impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (_, kind, size) in &self.0 {
            let (files, bytes) = kinds.entry(kind).or_default();
            (*files, *bytes) = (*files + 1, *bytes + size);
        }
        let bytes: u64 = self.0.iter().map(|(.., size)| size).sum();
        write!(f, "{} leftovers of {bytes} bytes", self.0.len())?;
        for (kind, (files, bytes)) in kinds {
            write!(f, "; {kind}: {files} of {bytes} bytes")?;
        }
        Ok(())
    }
}

/// All files with their sizes, by their paths relative to `root`.
fn files_below(root: &Path) -> BTreeMap<String, u64> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(path, entry.metadata().unwrap().len());
            }
        }
    }
    files
}

/// What a file is that nothing names. Panics for one that no writer and no compactor leaves behind.
fn kind(path: &str) -> &'static str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is = |prefix: &str| name.starts_with(prefix);
    match folder {
        // Of any file, before it had its name.
        _ if is(".") && name.ends_with(".tmp") => "temporary",
        "manifest" if is("manifest-list-") => "manifest list",
        "manifest" if is("manifest-") => "manifest",
        "manifest" if is("index-manifest-") => "index manifest",
        "index" if is("index-") => "index",
        _ if folder.starts_with("bucket-") && name.ends_with(".lookup") => "lookup",
        _ if folder.starts_with("bucket-") && is("data-") => "data",
        _ if folder.starts_with("bucket-") && is("changelog-") => "changelog",
        _ => panic!("what is {path}?"),
    }
}

/// Every file that a schema, snapshot, tag or changelog among `there` is or names, with its size where that is noted.
async fn named_files(location: &str, there: &BTreeMap<String, u64>) -> BTreeMap<String, Option<u64>> {
    let table = Table::open(location, Options::new(), &Context::system().unwrap())
        .await
        .unwrap();
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), table.options()).unwrap());
    let mut named = Named {
        scan: table.file_store_scan().unwrap(),
        paths,
        files: BTreeMap::new(),
    };
    for path in there.keys() {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_schema = folder == "schema" && name.starts_with("schema-");
        let is_snapshot = SNAPSHOT_DIRS
            .iter()
            .any(|(dir, prefix)| folder == *dir && name.starts_with(prefix));
        let is_hint = SNAPSHOT_DIRS.iter().any(|(dir, _)| folder == *dir) && (name == "LATEST" || name == "EARLIEST");
        if is_schema || is_snapshot || is_hint {
            named.files.insert(path.clone(), None);
        }
        if is_snapshot {
            let json = fs::read(Path::new(location).join(path)).unwrap();
            named.add(&Snapshot::from_json(path, &json).unwrap()).await;
        }
    }
    named.files
}

struct Named {
    scan: FileStoreScan,
    paths: TablePaths,
    files: BTreeMap<String, Option<u64>>,
}

impl Named {
    /// Notes the files that a snapshot names.
    async fn add(&mut self, snapshot: &Snapshot) {
        let manifests = self.scan.manifests().clone();
        let lists = [
            (Some(&snapshot.base_manifest_list), snapshot.base_manifest_list_size),
            (Some(&snapshot.delta_manifest_list), snapshot.delta_manifest_list_size),
            (
                snapshot.changelog_manifest_list.as_ref(),
                snapshot.changelog_manifest_list_size,
            ),
        ];
        for (list, size) in lists {
            let Some(list) = list else { continue };
            self.metadata(list, size);
            for manifest in manifests.read_list(list, size).await.unwrap() {
                self.metadata(&manifest.file_name, Some(manifest.file_size));
            }
        }
        for kind in [ScanKind::All, ScanKind::Changelog] {
            for entry in self.scan.entries(snapshot, kind).await.unwrap() {
                let bucket = self.paths.bucket(&entry.partition, entry.bucket).unwrap();
                self.file(bucket.data_file(&entry.file), Some(entry.file.file_size));
                for extra in &entry.file.extra_files {
                    self.file(bucket.extra_file(&entry.file, extra), None);
                }
            }
        }
        if let Some(name) = &snapshot.index_manifest {
            self.metadata(name, None);
            for entry in manifests.read_index(name).await.unwrap() {
                let bucket = self.paths.bucket(&entry.partition, entry.bucket).unwrap();
                self.file(bucket.index_file(&entry.file), Some(entry.file.file_size));
            }
        }
    }

    fn metadata(&mut self, name: &str, size: Option<i64>) {
        self.file(FileLocation::Table(format!("manifest/{name}")), size);
    }

    fn file(&mut self, location: FileLocation, size: Option<i64>) {
        let FileLocation::Table(path) = location else {
            panic!("{location:?} is outside of the table");
        };
        self.files.insert(path, size.map(i64::unsigned_abs));
    }
}
