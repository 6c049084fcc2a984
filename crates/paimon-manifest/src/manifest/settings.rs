//! How manifests are written and merged.

use paimon_format::options::Options;

use super::avro::ManifestCodec;
use crate::error::{ManifestError, Result};

const FORMAT: &str = "manifest.format";
const COMPRESSION: &str = "manifest.compression";
const AVRO_CODEC: &str = "avro.codec";
const ZSTD_LEVEL: &str = "file.compression.zstd-level";
const MAX_ZSTD_LEVEL: i32 = 22;

/// The options of manifests.
#[derive(Clone, Debug)]
pub struct ManifestSettings {
    pub(super) codec: ManifestCodec,
    /// `manifest.target-file-size`, bytes.
    pub target_file_size: u64,
    /// `manifest.merge-min-count`
    pub merge_min_count: usize,
    /// `manifest.full-compaction-threshold-size`, bytes.
    pub full_compaction_threshold: u64,
    /// `manifest.delete-file-drop-stats`: entries that remove a file do not repeat its value statistics.
    pub delete_file_drop_stats: bool,
    /// `scan.manifest.parallelism`: how many manifests are read at a time.
    pub read_parallelism: usize,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        Self {
            codec: ManifestCodec::Zstandard { level: 1 },
            target_file_size: 8 << 20,
            merge_min_count: 30,
            full_compaction_threshold: 16 << 20,
            delete_file_drop_stats: false,
            read_parallelism: 8,
        }
    }
}

impl ManifestSettings {
    /// From a table's options.
    ///
    /// Errors: `Invalid` for an illegal value, `Unsupported` for another manifest format or codec; the option is named.
    pub fn from_options(options: &Options) -> Result<Self> {
        if let Some(format) = options.get(FORMAT)
            && !format.eq_ignore_ascii_case("avro")
        {
            return Err(ManifestError::Unsupported(format!("{FORMAT} = {format}: only avro")));
        }
        let default = Self::default();
        let count = |key: &str| -> Result<Option<usize>> {
            match options.int(key)? {
                Some(count) if count < 1 => {
                    Err(ManifestError::invalid(format!("{key} = {count}: at least 1 expected")))
                }
                count => Ok(count.map(|count| count as usize)),
            }
        };
        Ok(Self {
            codec: codec(options)?,
            target_file_size: options
                .memory_size("manifest.target-file-size")?
                .unwrap_or(default.target_file_size),
            merge_min_count: count("manifest.merge-min-count")?.unwrap_or(default.merge_min_count),
            full_compaction_threshold: options
                .memory_size("manifest.full-compaction-threshold-size")?
                .unwrap_or(default.full_compaction_threshold),
            delete_file_drop_stats: options
                .bool("manifest.delete-file-drop-stats")?
                .unwrap_or(default.delete_file_drop_stats),
            read_parallelism: count("scan.manifest.parallelism")?.unwrap_or(default.read_parallelism),
        })
    }
}

/// `avro.codec` goes before `manifest.compression`, as in Java's Avro writer.
fn codec(options: &Options) -> Result<ManifestCodec> {
    let level = options.int(ZSTD_LEVEL)?.unwrap_or(1);
    let zstandard = || match u8::try_from(level) {
        Ok(level) if i32::from(level) <= MAX_ZSTD_LEVEL => Ok(ManifestCodec::Zstandard { level }),
        _ => Err(ManifestError::invalid(format!(
            "{ZSTD_LEVEL} = {level}: a level of 0 to {MAX_ZSTD_LEVEL} expected"
        ))),
    };
    let (key, name) = match (options.get(AVRO_CODEC), options.get(COMPRESSION)) {
        (Some(name), _) => (AVRO_CODEC, name),
        (None, Some(name)) => (COMPRESSION, name),
        (None, None) => return zstandard(),
    };
    match name.to_ascii_lowercase().as_str() {
        "zstd" | "zstandard" => zstandard(),
        "null" => Ok(ManifestCodec::Null),
        "snappy" => Ok(ManifestCodec::Snappy),
        "deflate" => Ok(ManifestCodec::Deflate),
        _ => Err(ManifestError::Unsupported(format!(
            "{key} = {name}: only zstd, snappy, deflate and null"
        ))),
    }
}
