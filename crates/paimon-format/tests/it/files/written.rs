//! Files that we write of the same rows as Java: schema and metadata are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use apache_avro::types::Value as Avro;
use paimon_format::kv::{KvFileSettings, KvFiles};
use paimon_format::meta::{DataFileMeta, FileSource, SimpleStats};
use paimon_format::row::BinaryRow;
use paimon_format::storage::{LocalStorage, Storage};
use paimon_format::types::{DataType, TypeKind};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rstest::rstest;

use super::table::{GoldenTable, block_on, env, file_meta, files_in, memory, read, read_all, records};

/// What Java's manifest says about a data file.
struct JavaFile {
    meta: DataFileMeta,
}

#[rstest]
#[case("types_values_parquet", false)]
#[case("types_nested", false)]
#[case("file_thin_mode", true)]
#[case("dedup_basic", false)]
fn our_files_have_the_schema_and_the_metadata_of_java(#[case] scenario: &str, #[case] thin: bool) {
    let table = GoldenTable::open(scenario);
    let schema = table.kv_schema(0);
    let java = Arc::new(LocalStorage::new(&table.root, env()));
    let java = files_in(&java, &schema, KvFileSettings::default());
    let memory = memory();
    let settings = KvFileSettings {
        thin,
        ..KvFileSettings::default()
    };
    let ours = files_in(&memory, &schema, settings);
    let mut seen = 0;
    for JavaFile { meta } in manifest_files(&table) {
        let batches = read(&java, &meta, read_all(&schema)).unwrap();
        let mut sink = ours.data_sink(meta.level, meta.file_source.unwrap());
        for batch in &batches {
            block_on(sink.write(batch)).unwrap();
        }
        let written = block_on(sink.finish()).unwrap();
        let [written] = written.as_slice() else {
            panic!("{} files", written.len())
        };
        assert_eq!(
            records(&read(&ours, written, read_all(&schema)).unwrap()),
            records(&batches)
        );

        let expected = DataFileMeta {
            file_name: written.file_name.clone(),
            file_size: written.file_size,
            creation_time_ms: written.creation_time_ms,
            ..meta.clone()
        };
        let expected = with_binary_bounds_of(&table, written, expected);
        assert_eq!(*written, expected, "{scenario}/{}", meta.file_name);
        let our_bytes = block_on(memory.read_all(&format!("bucket-0/{}", written.file_name))).unwrap();
        let java_bytes = std::fs::read(table.root.join("bucket-0").join(&meta.file_name)).unwrap();
        assert_eq!(written.file_size as usize, our_bytes.len());
        assert_eq!(print_schema(our_bytes), print_schema(java_bytes.into()));
        seen += 1;
    }
    assert!(seen > 0);
}

/// Java 1.4.2, which wrote these files, knows no bounds of binary columns; later releases do.
fn with_binary_bounds_of(table: &GoldenTable, ours: &DataFileMeta, java: DataFileMeta) -> DataFileMeta {
    let fields = table.fields(0);
    let covered = fields.iter().filter(|field| {
        java.value_stats_cols
            .as_ref()
            .is_none_or(|names| names.contains(&field.name))
    });
    let types: Vec<DataType> = covered
        .map(|field| DataType::nullable(field.data_type.kind.clone()))
        .collect();
    let merged = |ours: &BinaryRow, java: &BinaryRow| {
        let (ours, java) = (ours.to_datums(&types).unwrap(), java.to_datums(&types).unwrap());
        let merged = ours
            .into_iter()
            .zip(java)
            .zip(&types)
            .map(|((ours, java), of)| match of.kind {
                TypeKind::Binary(_) | TypeKind::VarBinary(_) => ours,
                _ => java,
            });
        BinaryRow::from_datums(&merged.collect::<Vec<_>>(), &types).unwrap()
    };
    let value_stats = SimpleStats {
        min_values: merged(&ours.value_stats.min_values, &java.value_stats.min_values),
        max_values: merged(&ours.value_stats.max_values, &java.value_stats.max_values),
        null_counts: java.value_stats.null_counts.clone(),
    };
    DataFileMeta { value_stats, ..java }
}

#[rstest]
#[case("types_values_parquet")]
#[case("types_nested")]
fn parquet_schema(#[case] scenario: &str) {
    let table = GoldenTable::open(scenario);
    let java = &manifest_files(&table)[0].meta;
    let bytes = std::fs::read(table.root.join("bucket-0").join(&java.file_name)).unwrap();
    insta::assert_snapshot!(format!("parquet_schema__{scenario}"), print_schema(bytes.into()));
}

pub(crate) fn print_schema(file: bytes::Bytes) -> String {
    let reader = SerializedFileReader::new(file).unwrap();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, reader.metadata().file_metadata().schema());
    String::from_utf8(text).unwrap()
}

/// The files that the manifests add, as they were added first.
fn manifest_files(table: &GoldenTable) -> Vec<JavaFile> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(table.root.join("manifest")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("manifest-list-") || !name.starts_with("manifest-") {
            continue;
        }
        let reader = apache_avro::Reader::new(std::fs::File::open(&path).unwrap()).unwrap();
        for record in reader {
            let record = Record::of(record.unwrap());
            let file = Record::of(record.get("_FILE"));
            let meta = file.meta();
            let on_disk = table.root.join("bucket-0").join(&meta.file_name).exists();
            // An upgrade adds a file again, on another level.
            let written_level = found
                .get(&meta.file_name)
                .is_none_or(|seen: &JavaFile| seen.meta.level > meta.level);
            if record.int("_KIND") == 0 && on_disk && written_level && meta.file_name.starts_with("data-") {
                found.insert(meta.file_name.clone(), JavaFile { meta });
            }
        }
    }
    found.into_values().collect()
}

struct Record(BTreeMap<String, Avro>);

impl Record {
    fn of(value: Avro) -> Self {
        let Avro::Record(fields) = value else {
            panic!("{value:?}")
        };
        let fields = fields.into_iter().map(|(name, value)| match value {
            Avro::Union(_, value) => (name, *value),
            value => (name, value),
        });
        Self(fields.collect())
    }

    fn get(&self, name: &str) -> Avro {
        self.0[name].clone()
    }

    fn int(&self, name: &str) -> i64 {
        self.optional(name).unwrap()
    }

    fn optional(&self, name: &str) -> Option<i64> {
        match &self.0[name] {
            Avro::Int(value) => Some(i64::from(*value)),
            Avro::Long(value) | Avro::TimestampMillis(value) => Some(*value),
            Avro::Null => None,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn row(&self, name: &str) -> BinaryRow {
        let Avro::Bytes(bytes) = self.get(name) else {
            panic!("{name}")
        };
        BinaryRow::from_serialized(bytes).unwrap()
    }

    fn stats(&self, name: &str) -> SimpleStats {
        let stats = Self::of(self.get(name));
        let Avro::Array(counts) = stats.get("_NULL_COUNTS") else {
            panic!("no null counts")
        };
        let counts = counts.into_iter().map(|count| match count {
            Avro::Union(_, value) => match *value {
                Avro::Long(value) => Some(value),
                _ => None,
            },
            _ => None,
        });
        SimpleStats {
            min_values: stats.row("_MIN_VALUES"),
            max_values: stats.row("_MAX_VALUES"),
            null_counts: counts.collect(),
        }
    }

    fn meta(&self) -> DataFileMeta {
        let Avro::String(name) = self.get("_FILE_NAME") else {
            panic!("no name")
        };
        DataFileMeta {
            row_count: self.int("_ROW_COUNT"),
            min_key: self.row("_MIN_KEY"),
            max_key: self.row("_MAX_KEY"),
            key_stats: self.stats("_KEY_STATS"),
            value_stats: self.stats("_VALUE_STATS"),
            min_sequence_number: self.int("_MIN_SEQUENCE_NUMBER"),
            max_sequence_number: self.int("_MAX_SEQUENCE_NUMBER"),
            delete_row_count: self.optional("_DELETE_ROW_COUNT"),
            file_source: Some(match self.int("_FILE_SOURCE") {
                0 => FileSource::Append,
                _ => FileSource::Compact,
            }),
            value_stats_cols: match self.get("_VALUE_STATS_COLS") {
                Avro::Array(names) => Some(
                    names
                        .into_iter()
                        .map(|name| match name {
                            Avro::String(name) => name,
                            other => panic!("{other:?}"),
                        })
                        .collect(),
                ),
                _ => None,
            },
            ..file_meta(
                &name,
                self.int("_FILE_SIZE") as u64,
                self.int("_SCHEMA_ID"),
                self.int("_LEVEL") as i32,
            )
        }
    }
}
