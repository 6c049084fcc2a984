//! How a table's data files are written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::formats::{FileEncoder, StatsMode};
use crate::kv::FileFormat;
use crate::options::{Options, SequenceSettings};
use crate::types::DataField;

/// Java's length of statistics of key and system columns.
const SYSTEM_STATS: StatsMode = StatsMode::Truncate(128);

/// How data and changelog files are written: formats, codecs, statistics and sizes, by level.
///
/// Source: `org.apache.paimon.io.KeyValueFileWriterFactory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvFileSettings {
    /// `file.format`
    pub format: FileFormat,
    /// `file.format.per.level`
    pub format_per_level: BTreeMap<i32, FileFormat>,
    /// `file.compression`
    pub compression: String,
    /// `file.compression.per.level`
    pub compression_per_level: BTreeMap<i32, String>,
    /// `file.compression.zstd-level`
    pub zstd_level: i32,
    /// `file.block-size`, bytes.
    pub block_bytes: Option<u64>,
    /// `target-file-size`, bytes.
    pub target_file_bytes: u64,
    /// `target-file-row-num`: for flushed files only.
    pub target_file_rows: Option<u64>,
    /// `sequence.snapshot-ordering`: the records of flushed files have the sequence number of their metadata, the id of their snapshot.
    pub snapshot_ordering: bool,
    /// `data-file.thin-mode`: no `_KEY_` columns.
    pub thin: bool,
    /// Statistics in the file metadata.
    pub stats: StatsSettings,
    /// Exceptions for changelog files.
    pub changelog: ChangelogSettings,
    /// The table's options of the formats themselves: `parquet.*`, `orc.*`, `avro.*`.
    pub format_options: Options,
}

/// Which statistics are kept of which column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsSettings {
    /// `metadata.stats-mode`
    pub mode: StatsMode,
    /// `metadata.stats-mode.per.level`
    pub mode_per_level: BTreeMap<i32, StatsMode>,
    /// `fields.<column>.stats-mode`
    pub columns: BTreeMap<String, StatsMode>,
    /// `metadata.stats-keep-first-n-columns`: columns after so many have none.
    pub keep_first_columns: Option<usize>,
    /// `metadata.stats-dense-store`: columns without statistics are left out.
    pub dense: bool,
}

/// What is different for changelog files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangelogSettings {
    /// `changelog-file.format`
    pub format: Option<FileFormat>,
    /// `changelog-file.compression`
    pub compression: Option<String>,
    /// `changelog-file.stats-mode`
    pub stats_mode: Option<StatsMode>,
}

impl Default for KvFileSettings {
    /// Paimon's defaults.
    fn default() -> Self {
        Self {
            format: FileFormat::Parquet,
            format_per_level: BTreeMap::new(),
            compression: "zstd".to_owned(),
            compression_per_level: BTreeMap::new(),
            zstd_level: 1,
            block_bytes: None,
            target_file_bytes: 128 << 20,
            target_file_rows: None,
            snapshot_ordering: false,
            thin: false,
            stats: StatsSettings {
                mode: StatsMode::Truncate(16),
                mode_per_level: BTreeMap::new(),
                columns: BTreeMap::new(),
                keep_first_columns: None,
                dense: true,
            },
            changelog: ChangelogSettings::default(),
            format_options: Options::new(),
        }
    }
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileUse {
    Data,
    Changelog,
}

impl KvFileSettings {
    /// From a table's options.
    ///
    /// Errors: `Invalid` names the option and its value; `Unsupported` names a format or codec that is not written.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        let default = Self::default();
        let format = |key: &str| options.get(key).map(|text| file_format(key, text)).transpose();
        let mode = |key: &str| options.get(key).map(|text| stats_mode(key, text)).transpose();
        let target_rows = options.long("target-file-row-num")?;
        let keep_first = options.int("metadata.stats-keep-first-n-columns")?;
        let mut columns = BTreeMap::new();
        for (key, text) in options.iter() {
            let column = key
                .strip_prefix("fields.")
                .and_then(|rest| rest.strip_suffix(".stats-mode"));
            if let Some(column) = column {
                columns.insert(column.to_owned(), stats_mode(key, text)?);
            }
        }
        let of_format = |key: &str| {
            ["parquet.", "orc.", "avro."]
                .iter()
                .any(|prefix| key.starts_with(prefix))
        };
        let settings = Self {
            format: format("file.format")?.unwrap_or(default.format),
            format_per_level: per_level(options, "file.format.per.level", file_format)?,
            compression: options
                .get("file.compression")
                .unwrap_or(&default.compression)
                .to_owned(),
            compression_per_level: per_level(options, "file.compression.per.level", |_, text| Ok(text.to_owned()))?,
            zstd_level: options
                .int("file.compression.zstd-level")?
                .unwrap_or(default.zstd_level),
            block_bytes: options.memory_size("file.block-size")?,
            target_file_bytes: options
                .memory_size("target-file-size")?
                .unwrap_or(default.target_file_bytes),
            target_file_rows: target_rows
                .and_then(|rows| u64::try_from(rows).ok())
                .filter(|&rows| rows > 0),
            snapshot_ordering: SequenceSettings::from_options(options)?.snapshot_ordering,
            thin: options.bool("data-file.thin-mode")?.unwrap_or(default.thin),
            stats: StatsSettings {
                mode: mode("metadata.stats-mode")?.unwrap_or(default.stats.mode),
                mode_per_level: per_level(options, "metadata.stats-mode.per.level", stats_mode)?,
                columns,
                keep_first_columns: keep_first.and_then(|columns| usize::try_from(columns).ok()),
                dense: options
                    .bool("metadata.stats-dense-store")?
                    .unwrap_or(default.stats.dense),
            },
            changelog: ChangelogSettings {
                format: format("changelog-file.format")?,
                compression: options.get("changelog-file.compression").map(str::to_owned),
                stats_mode: mode("changelog-file.stats-mode")?,
            },
            format_options: options.iter().filter(|(key, _)| of_format(key)).collect(),
        };
        Ok(settings)
    }

    /// The format of data files on a level.
    pub fn format(&self, level: i32) -> FileFormat {
        self.format_per_level.get(&level).copied().unwrap_or(self.format)
    }

    /// Looks for trouble before the first row is written: every format and codec that a file may get must be able to hold `fields`,
    /// the physical columns.
    ///
    /// Errors: `Unsupported` or `Invalid` names the format and the column or option.
    pub fn check(&self, fields: &[DataField]) -> Result<(), FormatError> {
        let levels = self
            .format_per_level
            .keys()
            .chain(self.compression_per_level.keys())
            .copied();
        for level in levels.chain([i32::MAX]) {
            for file_use in [FileUse::Data, FileUse::Changelog] {
                self.encoder(file_use, level, fields, || [0; 16])?;
            }
        }
        Ok(())
    }

    pub(super) fn file_format(&self, file_use: FileUse, level: i32) -> FileFormat {
        match (file_use, self.changelog.format) {
            (FileUse::Changelog, Some(format)) => format,
            _ => self.format(level),
        }
    }

    pub(super) fn file_compression(&self, file_use: FileUse, level: i32) -> &str {
        match (file_use, &self.changelog.compression) {
            (FileUse::Changelog, Some(compression)) => compression,
            _ => self.compression_per_level.get(&level).unwrap_or(&self.compression),
        }
    }

    /// A new file with these physical columns. `marker` draws 16 random bytes, for the format that wants them.
    pub(super) fn encoder(
        &self,
        file_use: FileUse,
        level: i32,
        fields: &[DataField],
        marker: impl Fn() -> [u8; 16],
    ) -> Result<Box<dyn FileEncoder>, FormatError> {
        let compression = self.file_compression(file_use, level);
        match self.file_format(file_use, level) {
            #[cfg(feature = "parquet")]
            FileFormat::Parquet => {
                use crate::formats::parquet::{ParquetEncoder, ParquetSettings};
                let settings = ParquetSettings::from_options(
                    &self.format_options,
                    compression,
                    self.zstd_level,
                    self.block_bytes,
                )?;
                Ok(Box::new(ParquetEncoder::new(fields, &settings)?))
            }
            #[cfg(feature = "avro")]
            FileFormat::Avro => {
                use crate::formats::avro::{AvroEncoder, AvroSettings};
                let settings = AvroSettings::from_options(&self.format_options, compression, self.zstd_level)?;
                Ok(Box::new(AvroEncoder::new(fields, &settings, marker())?))
            }
            #[cfg(feature = "orc")]
            FileFormat::Orc => {
                use crate::formats::orc::{OrcEncoder, OrcSettings};
                let settings = OrcSettings::from_options(&self.format_options, compression)?;
                Ok(Box::new(OrcEncoder::new(fields, &settings)?))
            }
            #[cfg(not(all(feature = "parquet", feature = "avro", feature = "orc")))]
            other => {
                let _ = (compression, fields, marker);
                Err(FormatError::unsupported(format!(
                    "writing {other} files: built without that format"
                )))
            }
        }
    }

    /// The statistics kept of each physical column. In thin files the key columns stand for the `_KEY_` columns too.
    pub(super) fn stats_modes(
        &self,
        file_use: FileUse,
        level: i32,
        fields: &[DataField],
        is_key: impl Fn(&DataField) -> bool,
    ) -> Vec<StatsMode> {
        let of_level = self
            .stats
            .mode_per_level
            .get(&level)
            .copied()
            .unwrap_or(self.stats.mode);
        let mode = match (file_use, self.changelog.stats_mode) {
            (FileUse::Changelog, Some(mode)) => mode,
            _ => of_level,
        };
        // Java collects those of Avro files itself, without a rule for key and system columns.
        let by_reader = self.file_format(file_use, level) == FileFormat::Avro;
        let mut seen = 0;
        let modes = fields.iter().map(|field| {
            let own = self.stats.columns.get(&field.name).copied();
            if own.is_none() && !by_reader && (is_system(&field.name) || (self.thin && is_key(field))) {
                return SYSTEM_STATS;
            }
            let beyond = self.stats.keep_first_columns.is_some_and(|first| seen >= first);
            seen += 1;
            own.unwrap_or(if beyond { StatsMode::None } else { mode })
        });
        modes.collect()
    }
}

/// `org.apache.paimon.table.SpecialFields#isSystemField`.
fn is_system(name: &str) -> bool {
    name.starts_with(super::KEY_PREFIX)
        || [super::SEQUENCE_NUMBER, super::VALUE_KIND, "_LEVEL", "rowkind"].contains(&name)
}

fn file_format(key: &str, text: &str) -> Result<FileFormat, FormatError> {
    FileFormat::parse(text).ok_or_else(|| {
        FormatError::unsupported(format!(
            "file format {text:?} in the option {key}; supported are parquet, avro, orc"
        ))
    })
}

fn stats_mode(key: &str, text: &str) -> Result<StatsMode, FormatError> {
    StatsMode::parse(text).map_err(|error| FormatError::invalid(format!("the option {key}: {error}")))
}

/// A map of level to value.
fn per_level<T>(
    options: &Options,
    key: &str,
    parse: impl Fn(&str, &str) -> Result<T, FormatError>,
) -> Result<BTreeMap<i32, T>, FormatError> {
    let entries = options.map(key)?.unwrap_or_default();
    let entries = entries.iter().map(|(level, text)| match level.trim().parse() {
        Ok(level) => Ok((level, parse(key, text.trim())?)),
        Err(_) => Err(FormatError::invalid(format!(
            "the option {key} has {level:?} where a level is expected"
        ))),
    });
    entries.collect()
}
