//! Names of data files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::FileLocation;
use super::external::RoundRobin;
use super::paths::PathSettings;
use crate::FormatError;
use crate::env::FileIds;

/// Extensions of compressed text files, by codec.
const COMPRESSION_EXTENSIONS: [(&str, &str); 6] = [
    ("gzip", "gz"),
    ("bzip2", "bz2"),
    ("deflate", "deflate"),
    ("snappy", "snappy"),
    ("lz4", "lz4"),
    ("zstd", "zst"),
];

/// Names of the new files of one writer: `<prefix><uuid>-<n>.<extension>`. Data and changelog files share the counter.
#[derive(Debug)]
pub struct DataFileNames {
    data_prefix: String,
    changelog_prefix: String,
    uuid: String,
    count: AtomicU64,
    suffix_includes_compression: bool,
    directory: String,
    places: RoundRobin,
}

impl DataFileNames {
    pub(super) fn new(settings: &PathSettings, directory: &str, ids: &dyn FileIds) -> Self {
        Self {
            directory: directory.to_owned(),
            places: RoundRobin::new(settings.external_roots.clone(), ids),
            data_prefix: settings.data_file_prefix.clone(),
            changelog_prefix: settings.changelog_file_prefix.clone(),
            uuid: ids.uuid(),
            count: AtomicU64::new(0),
            suffix_includes_compression: settings.suffix_includes_compression,
        }
    }

    /// The next data file's name, for a format (`parquet`) and a codec (`zstd`).
    pub fn data_file(&self, format: &str, compression: &str) -> String {
        self.next(&self.data_prefix, format, compression)
    }

    /// The next changelog file's name.
    pub fn changelog_file(&self, format: &str, compression: &str) -> String {
        self.next(&self.changelog_prefix, format, compression)
    }

    /// Where a new file of this name goes: below the table's root, or to the next of its external ones.
    pub fn place(&self, name: &str) -> FileLocation {
        self.places.place(&self.directory, name)
    }

    fn next(&self, prefix: &str, format: &str, compression: &str) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let extension = extension(format, compression, self.suffix_includes_compression);
        format!("{prefix}{}-{number}.{extension}", self.uuid)
    }
}

/// Names of the new index files of one writer: `index-<uuid>-<n>`.
#[derive(Debug)]
pub struct IndexFileNames {
    ids: Arc<dyn FileIds>,
    uuid: OnceLock<String>,
    count: AtomicU64,
}

impl IndexFileNames {
    /// The UUID is drawn with the first name: readers need none.
    pub fn new(ids: Arc<dyn FileIds>) -> Self {
        Self {
            ids,
            uuid: OnceLock::new(),
            count: AtomicU64::new(0),
        }
    }

    /// The next name.
    pub fn next_name(&self) -> String {
        let uuid = self.uuid.get_or_init(|| self.ids.uuid());
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        format!("index-{uuid}-{number}")
    }
}

fn extension(format: &str, compression: &str, include_compression: bool) -> String {
    let codec = COMPRESSION_EXTENSIONS
        .iter()
        .find(|(codec, _)| codec.eq_ignore_ascii_case(compression))
        .map_or(compression, |(_, extension)| extension);
    let is_text = format.eq_ignore_ascii_case("json") || format.eq_ignore_ascii_case("csv");
    // Java knows a codec "none" without an extension.
    if codec.is_empty() || codec.eq_ignore_ascii_case("none") {
        format.to_owned()
    } else if is_text {
        format!("{format}.{codec}")
    } else if include_compression {
        format!("{codec}.{format}")
    } else {
        format.to_owned()
    }
}

/// The format of a file, from its name: the last extension, or the one before a compressed text file's. `Invalid` without one.
///
/// Source: `org.apache.paimon.io.DataFilePathFactory#formatIdentifier`.
pub fn format_of_file(name: &str) -> Result<&str, FormatError> {
    let no_format = || FormatError::invalid(format!("{name}: no file format in this name"));
    let (stem, extension) = name.rsplit_once('.').ok_or_else(no_format)?;
    let is_compression = COMPRESSION_EXTENSIONS
        .iter()
        .any(|(_, compressed)| compressed.eq_ignore_ascii_case(extension));
    if !is_compression {
        return Ok(extension);
    }
    stem.rsplit_once('.').map(|(_, format)| format).ok_or_else(no_format)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::options::Options;

    #[derive(Debug)]
    struct OneId;

    impl FileIds for OneId {
        fn uuid(&self) -> String {
            "2f6c".to_owned()
        }

        fn jitter(&self, _bound: u64) -> u64 {
            0
        }
    }

    fn names(options: &[(&str, &str)]) -> DataFileNames {
        let options: Options = options.iter().copied().collect();
        DataFileNames::new(
            &PathSettings::from_options(Vec::new(), &options).unwrap(),
            "bucket-0",
            &OneId,
        )
    }

    #[test]
    fn data_and_changelog_files_share_a_counter() {
        let names = names(&[]);
        assert_eq!(names.data_file("parquet", "zstd"), "data-2f6c-0.parquet");
        assert_eq!(names.changelog_file("parquet", "zstd"), "changelog-2f6c-1.parquet");
        assert_eq!(names.data_file("avro", "zstd"), "data-2f6c-2.avro");
    }

    #[test]
    fn prefixes_are_the_tables() {
        let names = names(&[("data-file.prefix", "d_"), ("changelog-file.prefix", "c_")]);
        assert_eq!(names.data_file("parquet", "zstd"), "d_2f6c-0.parquet");
        assert_eq!(names.changelog_file("parquet", "zstd"), "c_2f6c-1.parquet");
    }

    #[test]
    fn index_files_count_by_themselves() {
        let names = IndexFileNames::new(Arc::new(OneId));
        assert_eq!(names.next_name(), "index-2f6c-0");
        assert_eq!(names.next_name(), "index-2f6c-1");
    }

    #[rstest]
    #[case("parquet", "zstd", "data-2f6c-0.zst.parquet")]
    #[case("orc", "LZ4", "data-2f6c-0.lz4.orc")]
    #[case("parquet", "uncompressed", "data-2f6c-0.uncompressed.parquet")]
    #[case("parquet", "none", "data-2f6c-0.parquet")]
    #[case("csv", "gzip", "data-2f6c-0.csv.gz")]
    fn compression_in_the_name(#[case] format: &str, #[case] compression: &str, #[case] name: &str) {
        let names = names(&[("file.suffix.include.compression", "true")]);
        assert_eq!(names.data_file(format, compression), name);
    }

    #[rstest]
    #[case("data-1-0.parquet", "parquet")]
    #[case("data-1-0.zst.parquet", "parquet")]
    #[case("data-1-0.csv.gz", "csv")]
    #[case("data-1-0.ORC", "ORC")]
    fn format_from_the_name(#[case] name: &str, #[case] format: &str) {
        assert_eq!(format_of_file(name).unwrap(), format);
    }

    #[rstest]
    #[case("data")]
    #[case("data.gz")]
    fn no_format_in_the_name(#[case] name: &str) {
        let error = format_of_file(name).unwrap_err().to_string();
        assert_eq!(error, format!("{name}: no file format in this name"));
    }
}
