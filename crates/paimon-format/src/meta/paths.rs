//! Where a table's files lie, relative to the table's root.
//!
//! Paths are made, never parsed: partition values come from manifests. Sources: `org.apache.paimon.utils.FileStorePathFactory`,
//! `PartitionPathUtils`, `org.apache.paimon.io.DataFilePathFactory`.

use std::sync::Arc;

use super::external::ExternalRoots;
use super::names::DataFileNames;
use super::text::{partition_text, without_text};
use super::{DataFileMeta, IndexFileMeta};
use crate::FormatError;
use crate::env::FileIds;
use crate::options::Options;
use crate::row::BinaryRow;
use crate::types::{DataField, DataType};

/// The bucket, and the bucket count, of rows that have no bucket yet; also what the option `bucket` says of such tables.
///
/// Source: `org.apache.paimon.table.BucketMode#POSTPONE_BUCKET`.
pub const POSTPONE_BUCKET: i32 = -2;

/// What the paths of a table depend on.
#[derive(Clone, Debug)]
pub struct PathSettings {
    /// The partition columns, in partition-key order.
    pub partition_fields: Vec<DataField>,
    /// `partition.default-name`: the text of null and blank values.
    pub default_partition_name: String,
    /// `partition.legacy-name`: values as Java's `toString` prints them.
    pub legacy_partition_name: bool,
    /// `data-file.path-directory`: the directory below the root that holds partitions and buckets.
    pub data_directory: Option<String>,
    /// `data-file.prefix`
    pub data_file_prefix: String,
    /// `changelog-file.prefix`
    pub changelog_file_prefix: String,
    /// `file.suffix.include.compression`
    pub suffix_includes_compression: bool,
    /// `index-file-in-data-file-dir`
    pub index_in_data_directory: bool,
    /// `data-file.external-paths`: where new data files go.
    pub external_roots: ExternalRoots,
}

/// Where one file lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileLocation {
    /// Below the table's root: a path relative to it.
    Table(String),
    /// Elsewhere: a complete path or URL, as the metadata has it.
    External(String),
}

/// Makes the paths of a table.
#[derive(Clone, Debug)]
pub struct TablePaths {
    settings: Arc<PathSettings>,
    types: Arc<[DataType]>,
}

/// Makes the paths and names of one bucket.
#[derive(Clone, Debug)]
pub struct BucketPaths {
    directory: String,
    index_directory: String,
    settings: Arc<PathSettings>,
}

impl PathSettings {
    /// From a table's partition columns and options. `Invalid` when an option has no legal value.
    pub fn from_options(partition_fields: Vec<DataField>, options: &Options) -> Result<Self, FormatError> {
        let data_directory = options.string("data-file.path-directory");
        Ok(Self {
            partition_fields,
            default_partition_name: options
                .string("partition.default-name")
                .unwrap_or_else(|| "__DEFAULT_PARTITION__".to_owned()),
            legacy_partition_name: options.bool("partition.legacy-name")?.unwrap_or(true),
            data_directory: data_directory
                .map(|directory| check_directory(&directory))
                .transpose()?,
            data_file_prefix: prefix(options, "data-file.prefix", "data-")?,
            changelog_file_prefix: prefix(options, "changelog-file.prefix", "changelog-")?,
            suffix_includes_compression: options.bool("file.suffix.include.compression")?.unwrap_or(false),
            index_in_data_directory: options.bool("index-file-in-data-file-dir")?.unwrap_or(false),
            external_roots: ExternalRoots::from_options(options)?,
        })
    }
}

fn prefix(options: &Options, key: &str, default: &str) -> Result<String, FormatError> {
    let prefix = options.string(key).unwrap_or_else(|| default.to_owned());
    if prefix.contains('/') {
        return Err(FormatError::invalid(format!(
            "option '{key}' = '{prefix}': expected the beginning of a file name, without '/'"
        )));
    }
    Ok(prefix)
}

fn check_directory(directory: &str) -> Result<String, FormatError> {
    let trimmed = directory.trim_matches('/');
    let leaves_the_table = trimmed.split('/').any(|part| matches!(part, "" | "." | ".."));
    if leaves_the_table {
        return Err(FormatError::invalid(format!(
            "option 'data-file.path-directory' = '{directory}': expected a directory below the table"
        )));
    }
    Ok(trimmed.to_owned())
}

impl TablePaths {
    /// For a table with these settings.
    pub fn new(settings: PathSettings) -> Self {
        let types = settings
            .partition_fields
            .iter()
            .map(|field| field.data_type.clone())
            .collect();
        Self {
            settings: Arc::new(settings),
            types,
        }
    }

    /// Whether every partition value of the table's types has a directory name.
    ///
    /// Errors: `Unsupported`, naming the column.
    pub fn check_partition_columns(&self) -> Result<(), FormatError> {
        let settings = &self.settings;
        for field in &settings.partition_fields {
            if let Some(why) = without_text(&field.data_type, settings.legacy_partition_name) {
                return Err(FormatError::unsupported(format!(
                    "partition column '{}': {why}",
                    field.name
                )));
            }
        }
        Ok(())
    }

    /// `k1=v1/k2=v2`, escaped; empty for a table without partitions.
    ///
    /// Errors: `Corrupt` or `Invalid` when the row is no partition of the table, `Unsupported` or `Invalid` when a value has no text.
    pub fn partition(&self, partition: &BinaryRow) -> Result<String, FormatError> {
        let settings = &self.settings;
        let values = partition.to_datums(&self.types)?;
        let mut path = String::new();
        for (field, value) in settings.partition_fields.iter().zip(&values) {
            let text = partition_text(value, &field.data_type, settings.legacy_partition_name)
                .map_err(|error| FormatError::invalid(format!("partition column '{}': {error}", field.name)))?;
            let text = text
                .filter(|text| !is_blank(text))
                .unwrap_or_else(|| settings.default_partition_name.clone());
            if text.is_empty() || field.name.is_empty() {
                return Err(FormatError::invalid(format!(
                    "partition column '{}': an empty directory name; is option 'partition.default-name' empty?",
                    field.name
                )));
            }
            if !path.is_empty() {
                path.push('/');
            }
            escape_into(&mut path, &field.name);
            path.push('=');
            escape_into(&mut path, &text);
        }
        Ok(path)
    }

    /// The directory of a partition's buckets, which is the table's root for a table without partitions (then empty).
    /// Errors as [`partition`](Self::partition).
    pub fn partition_directory(&self, partition: &BinaryRow) -> Result<String, FormatError> {
        let partition = self.partition(partition)?;
        let parts = [self.settings.data_directory.as_deref().unwrap_or(""), &partition];
        Ok(join(parts))
    }

    /// The paths of one bucket. Errors as [`partition`](Self::partition).
    pub fn bucket(&self, partition: &BinaryRow, bucket: i32) -> Result<BucketPaths, FormatError> {
        let name = match bucket {
            POSTPONE_BUCKET => "bucket-postpone".to_owned(),
            bucket => format!("bucket-{bucket}"),
        };
        let directory = join([&self.partition_directory(partition)?, &name]);
        let index_directory = if self.settings.index_in_data_directory {
            directory.clone()
        } else {
            "index".to_owned()
        };
        Ok(BucketPaths {
            directory,
            index_directory,
            settings: Arc::clone(&self.settings),
        })
    }
}

impl BucketPaths {
    /// The bucket's directory.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Where a data file or changelog file lies.
    pub fn data_file(&self, file: &DataFileMeta) -> FileLocation {
        match &file.external_path {
            Some(path) => FileLocation::External(path.clone()),
            None => FileLocation::Table(join([&self.directory, &file.file_name])),
        }
    }

    /// Where a sidecar of a data file lies: beside it.
    pub fn extra_file(&self, file: &DataFileMeta, name: &str) -> FileLocation {
        match &file.external_path {
            Some(path) => {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                FileLocation::External(format!("{directory}/{name}"))
            }
            None => FileLocation::Table(join([&self.directory, name])),
        }
    }

    /// Where an index file lies.
    pub fn index_file(&self, file: &IndexFileMeta) -> FileLocation {
        match &file.external_path {
            Some(path) => FileLocation::External(path.clone()),
            None => FileLocation::Table(join([&self.index_directory, &file.file_name])),
        }
    }

    /// Names and places for the new files of one writer: one UUID is drawn here.
    pub fn new_names(&self, ids: &dyn FileIds) -> DataFileNames {
        DataFileNames::new(&self.settings, &self.directory, ids)
    }
}

pub(super) fn join<const N: usize>(parts: [&str; N]) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// Java's `Character.isWhitespace` for each character: without the no-break spaces, with the separators U+001C to U+001F.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| match c {
        '\u{1c}'..='\u{1f}' => true,
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        c => c.is_whitespace(),
    })
}

fn escape_into(path: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\0'..='\x1f'
            | '\x7f'
            | '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '}'
            | '['
            | ']'
            | '^' => path.push_str(&format!("%{:02X}", u32::from(c))),
            c => path.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::types::{Datum, TypeKind};

    const STRING: TypeKind = TypeKind::VarChar(i32::MAX as u32);

    fn paths(kinds: &[TypeKind], options: &[(&str, &str)]) -> TablePaths {
        let names = ["dt", "a b", "c"];
        let fields = kinds
            .iter()
            .zip(names)
            .zip(0..)
            .map(|((kind, name), id)| DataField::new(id, name, DataType::nullable(kind.clone())))
            .collect();
        let options = options.iter().copied().collect();
        TablePaths::new(PathSettings::from_options(fields, &options).unwrap())
    }

    fn text_partition(value: Datum) -> String {
        let types = [DataType::nullable(STRING)];
        let row = BinaryRow::from_datums(&[value], &types).unwrap();
        paths(&[STRING], &[]).partition(&row).unwrap()
    }

    #[rstest]
    #[case("2024-01-01 10:00", "dt=2024-01-01 10%3A00")]
    #[case("x/y%z", "dt=x%2Fy%25z")]
    #[case("..", "dt=..")]
    #[case("../../etc", "dt=..%2F..%2Fetc")]
    #[case("a=b", "dt=a%3Db")]
    #[case("", "dt=__DEFAULT_PARTITION__")]
    #[case(" \t\u{1f}\u{3000}", "dt=__DEFAULT_PARTITION__")]
    #[case("\u{a0}", "dt=\u{a0}")]
    #[case(" a ", "dt= a ")]
    #[case("日é😀", "dt=日é😀")]
    #[case("+&;<>|,~`", "dt=+&;<>|,~`")]
    #[case("\0\n\x7f", "dt=%00%0A%7F")]
    #[case("\"#'*?\\{}[]^", "dt=%22%23%27%2A%3F%5C%7B%7D%5B%5D%5E")]
    fn text_is_escaped(#[case] value: &str, #[case] path: &str) {
        assert_eq!(text_partition(Datum::String(value.to_owned())), path);
    }

    #[test]
    fn null_has_the_default_name() {
        assert_eq!(text_partition(Datum::Null), "dt=__DEFAULT_PARTITION__");
    }

    #[test]
    fn several_columns_and_directories() {
        let kinds = [TypeKind::Date, STRING];
        let types: Vec<_> = kinds.iter().cloned().map(DataType::nullable).collect();
        let values = [Datum::Date(19723), Datum::String("x".to_owned())];
        let row = BinaryRow::from_datums(&values, &types).unwrap();

        let legacy = paths(&kinds, &[]);
        let bucket = legacy.bucket(&row, 3).unwrap();
        assert_eq!(bucket.directory(), "dt=19723/a b=x/bucket-3");
        assert_eq!(
            legacy.bucket(&row, -2).unwrap().directory(),
            "dt=19723/a b=x/bucket-postpone"
        );

        let named = paths(
            &kinds,
            &[
                ("partition.legacy-name", "false"),
                ("data-file.path-directory", "/data/"),
            ],
        );
        let bucket = named.bucket(&row, 0).unwrap();
        assert_eq!(bucket.directory(), "data/dt=2024-01-01/a b=x/bucket-0");
        assert_eq!(named.partition_directory(&row).unwrap(), "data/dt=2024-01-01/a b=x");
    }

    #[test]
    fn a_table_without_partitions_has_its_buckets_in_the_root() {
        let bucket = paths(&[], &[]).bucket(&BinaryRow::empty(), 0).unwrap();
        assert_eq!(bucket.directory(), "bucket-0");
    }

    #[test]
    fn files_lie_in_the_bucket_or_where_the_metadata_says() {
        let bucket = paths(&[], &[]).bucket(&BinaryRow::empty(), 1).unwrap();
        let mut file = crate::meta::tests::data_file("data-1.parquet");
        assert_eq!(
            bucket.data_file(&file),
            FileLocation::Table("bucket-1/data-1.parquet".to_owned())
        );
        assert_eq!(
            bucket.extra_file(&file, "data-1.parquet.index"),
            FileLocation::Table("bucket-1/data-1.parquet.index".to_owned())
        );
        file.external_path = Some("s3://far/bucket-1/data-1.parquet".to_owned());
        assert_eq!(
            bucket.data_file(&file),
            FileLocation::External("s3://far/bucket-1/data-1.parquet".to_owned())
        );
        assert_eq!(
            bucket.extra_file(&file, "data-1.parquet.index"),
            FileLocation::External("s3://far/bucket-1/data-1.parquet.index".to_owned())
        );
    }

    #[test]
    fn index_files_lie_in_one_directory_or_in_the_bucket() {
        let file = crate::meta::tests::index_file("index-1");
        let bucket = paths(&[], &[]).bucket(&BinaryRow::empty(), 1).unwrap();
        assert_eq!(
            bucket.index_file(&file),
            FileLocation::Table("index/index-1".to_owned())
        );
        let bucket = paths(&[], &[("index-file-in-data-file-dir", "true")])
            .bucket(&BinaryRow::empty(), 1)
            .unwrap();
        assert_eq!(
            bucket.index_file(&file),
            FileLocation::Table("bucket-1/index-1".to_owned())
        );
    }

    #[rstest]
    #[case("data-file.path-directory", "../elsewhere", "expected a directory below the table")]
    #[case("data-file.path-directory", "/", "expected a directory below the table")]
    #[case("data-file.prefix", "a/b", "expected the beginning of a file name, without '/'")]
    fn paths_stay_in_the_table(#[case] key: &str, #[case] value: &str, #[case] expected: &str) {
        let options = [(key, value)].into_iter().collect();
        let error = PathSettings::from_options(Vec::new(), &options).unwrap_err();
        assert_eq!(error.to_string(), format!("option '{key}' = '{value}': {expected}"));
    }

    #[test]
    fn a_row_of_another_table_is_refused() {
        let error = paths(&[STRING], &[]).partition(&BinaryRow::empty()).unwrap_err();
        assert_eq!(error.to_string(), "a binary row of 0 fields read with 1 types");
    }
}
