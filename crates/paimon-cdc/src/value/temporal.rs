//! Dates, times and timestamps: as counts and as text.

use paimon::format::types::{DataType, Datum, TypeKind};

use super::source::{Dialect, Encoding, TimeUnit};
use super::{parse, refuse};
use crate::error::RecordError;
use crate::json::Json;

const DAY_NANOS: i128 = 86_400_000_000_000;

/// A value of DATE, TIME, TIMESTAMP or TIMESTAMP WITH LOCAL TIME ZONE.
pub(super) fn decode(json: &Json<'_>, wanted: &DataType, encoding: &Encoding) -> Result<Datum, RecordError> {
    match json {
        Json::Number(text) => match count(text, wanted, encoding)? {
            Some(nanos) => from_nanos(nanos, wanted),
            None => check(parse(text, wanted)?, wanted),
        },
        Json::String(text) => from_text(text, wanted),
        _ => Err(refuse(json, wanted)),
    }
}

/// Nanoseconds that a number stands for: since the epoch, or since midnight for a TIME. `None`: Paimon's own counts, by precision.
fn count(text: &str, wanted: &DataType, encoding: &Encoding) -> Result<Option<i128>, RecordError> {
    let unit_nanos = match (encoding, &wanted.kind) {
        (Encoding::EpochDays, _) => DAY_NANOS,
        (Encoding::Epoch(unit) | Encoding::TimeOfDay(unit), _) => unit.nanos().into(),
        (_, TypeKind::Date) => DAY_NANOS,
        (
            Encoding::Plain(Dialect::Debezium),
            TypeKind::Time(precision) | TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision),
        ) => {
            let unit = match precision {
                0..=3 => TimeUnit::Milli,
                4..=6 => TimeUnit::Micro,
                _ => TimeUnit::Nano,
            };
            unit.nanos().into()
        }
        _ => return Ok(None),
    };
    let count: i64 = text
        .parse()
        .map_err(|_| RecordError::new(format!("{text} is no count of days or time")))?;
    Ok(Some(i128::from(count) * unit_nanos))
}

fn from_nanos(nanos: i128, wanted: &DataType) -> Result<Datum, RecordError> {
    let beyond = || RecordError::new(format!("a time beyond what {wanted} holds"));
    match &wanted.kind {
        TypeKind::Date => i32::try_from(nanos.div_euclid(DAY_NANOS))
            .map(Datum::Date)
            .map_err(|_| beyond()),
        TypeKind::Time(_) => {
            if !(0..DAY_NANOS).contains(&nanos) {
                return Err(beyond());
            }
            i32::try_from(nanos / 1_000_000).map(Datum::Time).map_err(|_| beyond())
        }
        TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => {
            let unit = 10_i128.pow(u32::from(9_u8.saturating_sub(*precision)));
            let cut = nanos.div_euclid(unit) * unit;
            let millis = i64::try_from(cut.div_euclid(1_000_000)).map_err(|_| beyond())?;
            let nanos = i32::try_from(cut.rem_euclid(1_000_000)).map_err(|_| beyond())?;
            check(Datum::Timestamp { millis, nanos }, wanted)
        }
        _ => Err(RecordError::new(format!("a count of time is no value of {wanted}"))),
    }
}

/// Text as MySQL prints it, or ISO 8601 with `T`, a zone or an offset; a time with a zone is kept in UTC.
fn from_text(text: &str, wanted: &DataType) -> Result<Datum, RecordError> {
    let value = match (&wanted.kind, text.strip_suffix('Z')) {
        (TypeKind::Date | TypeKind::Time(_), Some(local)) => parse(local, wanted)?,
        (TypeKind::Date | TypeKind::Time(_), None) => parse(text, wanted)?,
        (_, local) => match parse(local.unwrap_or(text), wanted) {
            Ok(value) => value,
            Err(error) => {
                let instant: jiff::Timestamp = text.parse().map_err(|_| error)?;
                return from_nanos(instant.as_nanosecond(), wanted);
            }
        },
    };
    check(value, wanted)
}

/// Refuses what the column's files could not hold.
fn check(value: Datum, wanted: &DataType) -> Result<Datum, RecordError> {
    let beyond = || RecordError::new(format!("a time beyond what {wanted} holds"));
    match (&value, &wanted.kind) {
        (Datum::Time(ms), _) if !(0..86_400_000).contains(ms) => Err(beyond()),
        (
            Datum::Timestamp { millis, nanos },
            TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision),
        ) => {
            let per_milli = match precision {
                0..=3 => 1,
                4..=6 => 1_000,
                _ => 1_000_000,
            };
            let units = i128::from(*millis) * per_milli + i128::from(*nanos) * per_milli / 1_000_000;
            i64::try_from(units).map(|_| value).map_err(|_| beyond())
        }
        _ => Ok(value),
    }
}
