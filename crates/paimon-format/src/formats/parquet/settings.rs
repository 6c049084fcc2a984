//! How Parquet files are written.

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};
use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::options::Options;

/// Rows that are encoded between two looks at the sizes of pages. A divisor of the page row limit, so that pages have all of it.
const WRITE_BATCH_ROWS: usize = 1000;
/// Row groups are held in memory until they end, so they end earlier than `file.block-size` says when that is more.
const MAX_ROW_GROUP_BYTES: u64 = 32 << 20;

/// How Parquet files are written: the options of `org.apache.parquet.hadoop.ParquetOutputFormat` that matter, as the table has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParquetSettings {
    /// `zstd`, `snappy`, `lz4`, `lz4_raw`, `gzip`, `brotli`, `none`: `parquet.compression`, else `file.compression`.
    pub compression: String,
    /// `parquet.compression.codec.zstd.level`, else `file.compression.zstd-level`.
    pub zstd_level: i32,
    /// A row group ends when its encoded bytes reach this: `file.block-size`, `parquet.block.size`, but at most 32 MiB.
    pub row_group_bytes: u64,
    /// `parquet.page.size`
    pub page_bytes: usize,
    /// `parquet.page.row.count.limit`
    pub page_rows: usize,
    /// `parquet.enable.dictionary`
    pub dictionary: Switch,
    /// `parquet.dictionary.page.size`
    pub dictionary_page_bytes: usize,
    /// `parquet.bloom.filter.enabled`
    pub bloom_filter: Switch,
    /// `parquet.bloom.filter.fpp`, for all columns.
    pub bloom_filter_fpp: Option<f64>,
    /// `parquet.bloom.filter.expected.ndv#<column>`
    pub bloom_filter_ndv: Vec<(String, u64)>,
    /// `parquet.columnindex.truncate.length`
    pub column_index_bytes: usize,
}

/// A yes or no for all columns (`option`), with exceptions by column (`option#column`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// For all columns.
    pub default: bool,
    /// For the column of this dotted path.
    pub columns: Vec<(String, bool)>,
}

impl Default for ParquetSettings {
    /// Paimon's defaults.
    fn default() -> Self {
        Self {
            compression: "zstd".to_owned(),
            zstd_level: 1,
            row_group_bytes: MAX_ROW_GROUP_BYTES,
            page_bytes: 1 << 20,
            page_rows: 20_000,
            dictionary: Switch {
                default: true,
                columns: Vec::new(),
            },
            dictionary_page_bytes: 1 << 20,
            bloom_filter: Switch::default(),
            bloom_filter_fpp: None,
            bloom_filter_ndv: Vec::new(),
            column_index_bytes: 64,
        }
    }
}

impl ParquetSettings {
    /// From a table's `parquet.*` options. `compression`, `zstd_level` and `block_bytes` are those of `file.compression`,
    /// `file.compression.zstd-level` and `file.block-size`, which the format's own options override.
    ///
    /// Errors: `Invalid` names the option and its value.
    pub fn from_options(
        options: &Options,
        compression: &str,
        zstd_level: i32,
        block_bytes: Option<u64>,
    ) -> Result<Self, FormatError> {
        let default = Self::default();
        let block = number(options, "parquet.block.size")?
            .or(block_bytes)
            .unwrap_or(MAX_ROW_GROUP_BYTES);
        let settings = Self {
            compression: options.get("parquet.compression").unwrap_or(compression).to_owned(),
            zstd_level: number(options, "parquet.compression.codec.zstd.level")?.unwrap_or(zstd_level),
            row_group_bytes: block.clamp(1, MAX_ROW_GROUP_BYTES),
            page_bytes: number(options, "parquet.page.size")?.unwrap_or(default.page_bytes),
            page_rows: number(options, "parquet.page.row.count.limit")?.unwrap_or(default.page_rows),
            dictionary: Switch::from_options(options, "parquet.enable.dictionary", true)?,
            dictionary_page_bytes: number(options, "parquet.dictionary.page.size")?
                .unwrap_or(default.dictionary_page_bytes),
            bloom_filter: Switch::from_options(options, "parquet.bloom.filter.enabled", false)?,
            bloom_filter_fpp: number(options, "parquet.bloom.filter.fpp")?,
            bloom_filter_ndv: by_column(options, "parquet.bloom.filter.expected.ndv")?,
            column_index_bytes: number(options, "parquet.columnindex.truncate.length")?
                .unwrap_or(default.column_index_bytes),
        };
        for (name, value) in [
            ("parquet.page.size", settings.page_bytes),
            ("parquet.page.row.count.limit", settings.page_rows),
            ("parquet.columnindex.truncate.length", settings.column_index_bytes),
        ] {
            if value == 0 {
                return Err(FormatError::invalid(format!("the option {name} must be more than 0")));
            }
        }
        if settings.bloom_filter_fpp.is_some_and(|fpp| !(fpp > 0.0 && fpp < 1.0)) {
            return Err(FormatError::invalid(
                "the option parquet.bloom.filter.fpp must be between 0 and 1",
            ));
        }
        settings.codec()?;
        Ok(settings)
    }

    /// The writer's properties for a file of this schema; these columns go without a dictionary unless `option#column` asks for one.
    pub(super) fn properties(
        &self,
        schema: &SchemaDescriptor,
        plain: &[&str],
    ) -> Result<WriterProperties, FormatError> {
        let mut builder = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(concat!("paimon-rs version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(self.codec()?)
            .set_write_batch_size(WRITE_BATCH_ROWS)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_dictionary_enabled(self.dictionary.default)
            .set_dictionary_page_size_limit(self.dictionary_page_bytes)
            .set_statistics_enabled(EnabledStatistics::Page)
            // File metadata needs them whole; what is too long is dropped before the footer is written.
            .set_statistics_truncate_length(None)
            .set_column_index_truncate_length(Some(self.column_index_bytes))
            .set_bloom_filter_enabled(self.bloom_filter.default);
        if let Some(fpp) = self.bloom_filter_fpp {
            builder = builder.set_bloom_filter_fpp(fpp);
            if !self.bloom_filter.default {
                builder = builder.set_bloom_filter_enabled(false);
            }
        }
        for column in schema.columns() {
            let path = column.path().string();
            let path = path.as_str();
            let key = || ColumnPath::from(column.path().parts().to_vec());
            let plain = || plain.contains(&path).then_some(false);
            if let Some(enabled) = self.dictionary.exception(path).or_else(plain) {
                builder = builder.set_column_dictionary_enabled(key(), enabled);
            }
            if let Some(enabled) = self.bloom_filter.exception(path) {
                builder = builder.set_column_bloom_filter_enabled(key(), enabled);
            }
            if self.bloom_filter.get(path) {
                if let Some(fpp) = self.bloom_filter_fpp {
                    builder = builder.set_column_bloom_filter_fpp(key(), fpp);
                }
                if let Some((_, ndv)) = self.bloom_filter_ndv.iter().find(|(name, _)| name == path) {
                    builder = builder.set_column_bloom_filter_max_ndv(key(), *ndv);
                }
            }
        }
        Ok(builder.build())
    }

    /// Whether a column may do without a dictionary when its values hardly repeat: no option says that it has one, or none.
    pub(super) fn may_go_plain(&self, column: &str) -> bool {
        self.dictionary.default && self.dictionary.exception(column).is_none()
    }

    fn codec(&self) -> Result<Compression, FormatError> {
        let wrong = |error: &dyn std::fmt::Display| FormatError::invalid(format!("file compression: {error}"));
        Ok(match self.compression.to_ascii_lowercase().as_str() {
            "zstd" => Compression::ZSTD(ZstdLevel::try_new(self.zstd_level).map_err(|error| wrong(&error))?),
            "snappy" => Compression::SNAPPY,
            "lz4" => Compression::LZ4,
            "lz4_raw" => Compression::LZ4_RAW,
            "gzip" => Compression::GZIP(GzipLevel::default()),
            "brotli" => Compression::BROTLI(parquet::basic::BrotliLevel::default()),
            "none" | "uncompressed" => Compression::UNCOMPRESSED,
            other => {
                return Err(FormatError::unsupported(format!(
                    "file compression {other:?} of Parquet files; supported are zstd, snappy, lz4, lz4_raw, gzip, brotli, none"
                )));
            }
        })
    }
}

impl Switch {
    fn from_options(options: &Options, name: &str, default: bool) -> Result<Self, FormatError> {
        Ok(Self {
            default: number(options, name)?.unwrap_or(default),
            columns: by_column(options, name)?,
        })
    }

    fn exception(&self, column: &str) -> Option<bool> {
        self.columns
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, enabled)| *enabled)
    }

    fn get(&self, column: &str) -> bool {
        self.exception(column).unwrap_or(self.default)
    }
}

/// The value of an option, if it is set.
fn number<T: std::str::FromStr>(options: &Options, name: &str) -> Result<Option<T>, FormatError> {
    options.get(name).map(|text| parse(name, text)).transpose()
}

/// The values of `name#column`.
fn by_column<T: std::str::FromStr>(options: &Options, name: &str) -> Result<Vec<(String, T)>, FormatError> {
    let columns = options.iter().filter_map(|(key, text)| {
        let column = key.strip_prefix(name)?.strip_prefix('#')?;
        Some(parse(key, text).map(|value| (column.to_owned(), value)))
    });
    columns.collect()
}

fn parse<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, FormatError> {
    let what = match std::any::type_name::<T>() {
        "bool" => "true or false",
        _ => "a number in its range",
    };
    let parsed = text.trim().parse();
    parsed.map_err(|_| {
        FormatError::invalid(format!(
            "the option {name} has the value {text:?}, where {what} is expected"
        ))
    })
}
