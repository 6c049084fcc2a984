//! The options of look-ups.

use std::time::Duration;

use paimon_format::FormatError;
use paimon_format::options::Options;
use paimon_format::sst::{SstCompression, SstSettings};
use serde::{Deserialize, Serialize};

/// How old values are looked up. Names are those of the table's options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookupSettings {
    /// How lookup files are written: `lookup.cache-spill-compression`, `spill-compression.zstd-level`,
    /// `lookup.cache.bloom.filter.enabled`, `lookup.cache.bloom.filter.fpp`, `cache-page-size`.
    pub files: SstSettings,
    /// `lookup.cache-file-retention`: a local file that nobody asked for so long is deleted.
    pub file_retention: Duration,
    /// `lookup.cache-max-disk-size`: local files together, bytes.
    pub max_disk_bytes: u64,
    /// `lookup.cache-max-memory-size`: blocks, indexes, filters and pages of data files in memory together, bytes.
    pub max_memory_bytes: u64,
    /// `lookup.cache.high-priority-pool-ratio`: the share of it that is kept for indexes and filters.
    pub high_priority_ratio: f64,
    /// `lookup.remote-file.enabled`
    pub remote_files: bool,
    /// `lookup.remote-file.level-threshold`: files below this level get no remote lookup file.
    pub remote_level_threshold: i32,
    /// When a data file is scanned again and again, a lookup file is built of it once the rows read in vain are this many times its
    /// own; 0: at the first look-up, as Java does. No option.
    pub build_after: u32,
}

impl Default for LookupSettings {
    fn default() -> Self {
        Self {
            files: SstSettings::default(),
            file_retention: Duration::from_secs(3600),
            max_disk_bytes: i64::MAX as u64,
            max_memory_bytes: 256 << 20,
            high_priority_ratio: 0.25,
            remote_files: false,
            remote_level_threshold: i32::MIN,
            build_after: 3,
        }
    }
}

impl LookupSettings {
    /// From a table's options.
    ///
    /// Errors: `Invalid`, naming the option; `Unsupported` for the codec lzo.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        let default = Self::default();
        let compression = match options.lookup("lookup.cache-spill-compression") {
            Some((key, text)) => SstCompression::parse(text).map_err(|error| named(key, text, error))?,
            None => default.files.compression,
        };
        let bloom = options.bool("lookup.cache.bloom.filter.enabled")?.unwrap_or(true);
        let fpp = ratio(options, "lookup.cache.bloom.filter.fpp", 0.05, |fpp| {
            fpp > 0.0 && fpp < 1.0
        })?;
        let high_priority = "lookup.cache.high-priority-pool-ratio";
        Ok(Self {
            files: SstSettings {
                block_bytes: options
                    .memory_size("cache-page-size")?
                    .map_or(default.files.block_bytes, |bytes| {
                        usize::try_from(bytes).unwrap_or(usize::MAX)
                    }),
                compression,
                zstd_level: options
                    .int("spill-compression.zstd-level")?
                    .unwrap_or(default.files.zstd_level),
                bloom_fpp: bloom.then_some(fpp),
            },
            file_retention: options
                .duration("lookup.cache-file-retention")?
                .unwrap_or(default.file_retention),
            max_disk_bytes: options
                .memory_size("lookup.cache-max-disk-size")?
                .unwrap_or(default.max_disk_bytes),
            max_memory_bytes: options
                .memory_size("lookup.cache-max-memory-size")?
                .unwrap_or(default.max_memory_bytes),
            high_priority_ratio: ratio(options, high_priority, default.high_priority_ratio, |ratio| {
                (0.0..1.0).contains(&ratio)
            })?,
            remote_files: options.bool("lookup.remote-file.enabled")?.unwrap_or(false),
            remote_level_threshold: options
                .int("lookup.remote-file.level-threshold")?
                .unwrap_or(default.remote_level_threshold),
            build_after: default.build_after,
        })
    }
}

fn named(key: &str, text: &str, error: FormatError) -> FormatError {
    match error {
        FormatError::Unsupported(message) => FormatError::unsupported(format!("option '{key}' = '{text}': {message}")),
        _ => FormatError::invalid(format!("option '{key}' = '{text}': expected one of none, zstd, lz4")),
    }
}

fn ratio(options: &Options, key: &str, default: f64, is_legal: impl Fn(f64) -> bool) -> Result<f64, FormatError> {
    let ratio = options.double(key)?.unwrap_or(default);
    if is_legal(ratio) {
        return Ok(ratio);
    }
    Err(FormatError::invalid(format!(
        "option '{key}' = '{ratio}': expected a number between 0 and 1"
    )))
}

#[cfg(test)]
mod tests {
    use paimon_format::ErrorKind;

    use super::*;

    #[test]
    fn defaults_are_those_of_paimon() {
        let settings = LookupSettings::from_options(&Options::new()).unwrap();
        assert_eq!(settings, LookupSettings::default());
    }

    #[test]
    fn options_one_by_one() {
        let options: Options = [
            ("lookup.cache-spill-compression", "lz4"),
            ("spill-compression.zstd-level", "3"),
            ("lookup.cache.bloom.filter.enabled", "false"),
            ("cache-page-size", "1 kb"),
            ("lookup.cache-file-retention", "5 min"),
            ("lookup.cache-max-disk-size", "1 gb"),
            ("lookup.cache-max-memory-size", "8 mb"),
            ("lookup.cache.high-priority-pool-ratio", "0.5"),
            ("lookup.remote-file.enabled", "true"),
            ("lookup.remote-file.level-threshold", "4"),
        ]
        .into_iter()
        .collect();
        let expected = LookupSettings {
            files: SstSettings {
                block_bytes: 1024,
                compression: SstCompression::Lz4,
                zstd_level: 3,
                bloom_fpp: None,
            },
            file_retention: Duration::from_secs(300),
            max_disk_bytes: 1 << 30,
            max_memory_bytes: 8 << 20,
            high_priority_ratio: 0.5,
            remote_files: true,
            remote_level_threshold: 4,
            build_after: 3,
        };
        assert_eq!(LookupSettings::from_options(&options).unwrap(), expected);
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        let error = |key: &str, value: &str| {
            let options = [(key, value)].into_iter().collect();
            LookupSettings::from_options(&options).unwrap_err()
        };
        assert_eq!(
            error("lookup.cache.bloom.filter.fpp", "1").to_string(),
            "option 'lookup.cache.bloom.filter.fpp' = '1': expected a number between 0 and 1"
        );
        assert_eq!(
            error("lookup.cache-spill-compression", "lzo").kind(),
            ErrorKind::Unsupported
        );
        assert_eq!(error("lookup.cache-file-retention", "soon").kind(), ErrorKind::Invalid);
    }
}
