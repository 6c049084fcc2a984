//! Rows that are too old to keep.

use std::collections::BTreeMap;

use paimon_format::kv::{ExpiredBefore, KvSchema};
use paimon_format::meta::DataFileMeta;
use paimon_format::options::Options;
use paimon_format::types::{DataType, Datum, TypeKind};
use serde::{Deserialize, Serialize};

use crate::LsmError;

const TIME_FIELD: &str = "record-level.time-field";
const EXPIRE_TIME: &str = "record-level.expire-time";
/// A BIGINT time of this or more is in milliseconds.
const FIRST_MILLISECONDS: i64 = 1_000_000_000_000;

/// Record-level expire: compactions drop rows whose time field is too far back. Readers do not look at it, and no delete is written.
/// Times are whole seconds since the epoch.
///
/// Source: `org.apache.paimon.io.RecordLevelExpire`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLevelExpire {
    /// Position of the time field among the value columns.
    column: usize,
    /// How old a row may become.
    seconds: i64,
    /// Where the time field's bounds are in a file's statistics, by the file's schema.
    files: BTreeMap<i64, TimeColumn>,
}

/// The time field in one version of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TimeColumn {
    name: String,
    position: usize,
    unit: TimeUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum TimeUnit {
    Int,
    BigInt,
    Timestamp(u8),
    LocalZonedTimestamp(u8),
}

impl TimeUnit {
    fn of(kind: &TypeKind) -> Option<Self> {
        match kind {
            TypeKind::Int => Some(Self::Int),
            TypeKind::BigInt => Some(Self::BigInt),
            TypeKind::Timestamp(precision) => Some(Self::Timestamp(*precision)),
            TypeKind::LocalZonedTimestamp(precision) => Some(Self::LocalZonedTimestamp(*precision)),
            _ => None,
        }
    }

    fn data_type(self) -> DataType {
        DataType::nullable(match self {
            Self::Int => TypeKind::Int,
            Self::BigInt => TypeKind::BigInt,
            Self::Timestamp(precision) => TypeKind::Timestamp(precision),
            Self::LocalZonedTimestamp(precision) => TypeKind::LocalZonedTimestamp(precision),
        })
    }
}

impl RecordLevelExpire {
    /// From the options of a table whose current schema this is; `None`: rows do not expire.
    ///
    /// Errors: `Invalid`, naming the option, when the time field is missing, unknown or of another type than INT, BIGINT or TIMESTAMP.
    pub fn from_options(options: &Options, schema: &KvSchema) -> Result<Option<Self>, LsmError> {
        let Some(expire_time) = options.duration(EXPIRE_TIME)? else {
            return Ok(None);
        };
        let name = options
            .string(TIME_FIELD)
            .ok_or_else(|| LsmError::Invalid(format!("{TIME_FIELD}: must be set when {EXPIRE_TIME} is")))?;
        let column = schema
            .position(&name)
            .ok_or_else(|| LsmError::Invalid(format!("{TIME_FIELD}: the table has no column {name}")))?;
        let expire = Self {
            column,
            seconds: i64::try_from(expire_time.as_secs()).unwrap_or(i64::MAX),
            files: BTreeMap::new(),
        };
        let field = schema.fields.get(column);
        match field.and_then(|field| TimeUnit::of(&field.data_type.kind)) {
            Some(_) => Ok(Some(expire.with_file_schema(schema, schema))),
            None => Err(LsmError::Invalid(format!(
                "{TIME_FIELD}: column {name} must be an INT, a BIGINT or a TIMESTAMP"
            ))),
        }
    }

    /// Makes the statistics of files of an older schema readable. Without it such files are not known to hold expired rows; when they
    /// are rewritten, their rows expire like all others.
    pub fn with_file_schema(mut self, current: &KvSchema, older: &KvSchema) -> Self {
        let time = current.fields.get(self.column);
        let found = time.and_then(|time| {
            let position = older.fields.iter().position(|field| field.id == time.id)?;
            let field = older.fields.get(position)?;
            Some(TimeColumn {
                name: field.name.clone(),
                position,
                unit: TimeUnit::of(&field.data_type.kind)?,
            })
        });
        if let Some(found) = found {
            self.files.insert(older.schema_id, found);
        }
        self
    }

    /// What a reader drops at `now_ms`, milliseconds since the epoch: a row is kept until its age is more than the limit.
    pub fn expired_before(&self, now_ms: i64) -> ExpiredBefore {
        ExpiredBefore {
            column: self.column,
            seconds: now_ms.div_euclid(1000).saturating_sub(self.seconds),
        }
    }

    /// Whether the statistics say that some row of the file has expired at `now_ms`. Unknown bounds say nothing.
    pub fn is_expire_file(&self, file: &DataFileMeta, now_ms: i64) -> bool {
        self.oldest_row(file)
            .is_some_and(|oldest| self.expired_before(now_ms).seconds > oldest)
    }

    /// Seconds since the epoch.
    fn oldest_row(&self, file: &DataFileMeta) -> Option<i64> {
        let time = self.files.get(&file.schema_id)?;
        let position = match &file.value_stats_cols {
            None => time.position,
            Some(columns) => columns.iter().position(|column| *column == time.name)?,
        };
        let bounds = &file.value_stats.min_values;
        if position >= bounds.arity() {
            return None;
        }
        match bounds.get(position, &time.unit.data_type()).ok()? {
            Datum::Int32(seconds) => Some(i64::from(seconds)),
            Datum::Int64(time) if time >= FIRST_MILLISECONDS => Some(time / 1000),
            Datum::Int64(seconds) => Some(seconds),
            Datum::Timestamp { millis, .. } => Some(millis.div_euclid(1000)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
