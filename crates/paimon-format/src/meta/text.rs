//! The text of partition values in directory names.
//!
//! Source: `org.apache.paimon.utils.InternalRowPartitionComputer`: Java's `toString` (legacy names), or casts to STRING.

use crate::FormatError;
use crate::types::temporal::format_timestamp;
use crate::types::{DataType, Datum, TypeKind};

/// Why values of a type have no text as partition columns; `None`: they have. `legacy` is `partition.legacy-name`.
pub(super) fn without_text(data_type: &DataType, legacy: bool) -> Option<String> {
    match &data_type.kind {
        kind if !kind.is_flat() => Some(format!("a partition column of type {data_type}")),
        TypeKind::Binary(_) | TypeKind::VarBinary(_) if legacy => Some(
            "BINARY as a partition column with partition.legacy-name = true: \
             the directory's name is the identity of a Java object"
                .to_owned(),
        ),
        TypeKind::LocalZonedTimestamp(_) if !legacy => Some(
            "TIMESTAMP WITH LOCAL TIME ZONE as a partition column with partition.legacy-name = false: \
             the directory's name depends on the time zone of the job that writes it"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The text of a partition value; `None` for null. `legacy` is `partition.legacy-name`.
///
/// Errors: `Unsupported` for types whose text depends on the process that wrote it, `Invalid` for values without text.
pub(super) fn partition_text(value: &Datum, data_type: &DataType, legacy: bool) -> Result<Option<String>, FormatError> {
    if *value == Datum::Null {
        return Ok(None);
    }
    if let Some(why) = without_text(data_type, legacy) {
        return Err(FormatError::unsupported(why));
    }
    let text = match (value, &data_type.kind) {
        (Datum::Date(days), _) if legacy => days.to_string(),
        (Datum::Time(millis), _) if legacy => millis.to_string(),
        (Datum::Timestamp { millis, nanos }, _) if legacy => iso_timestamp(*millis, *nanos)?,
        (Datum::Bytes(bytes), _) => String::from_utf8(bytes.clone())
            .map_err(|_| FormatError::invalid("a BINARY partition value that is not UTF-8 has no directory name"))?,
        (Datum::Date(_) | Datum::Timestamp { .. }, _) => {
            let text = value.to_text(data_type);
            if text.find('-') != Some(4) {
                return Err(no_year(&text));
            }
            text
        }
        _ => value.to_text(data_type),
    };
    Ok(Some(text))
}

/// `LocalDateTime.toString`: seconds left out when zero, fraction in groups of three digits.
fn iso_timestamp(millis: i64, nanos: i32) -> Result<String, FormatError> {
    let groups = match (millis.rem_euclid(1000), nanos) {
        (_, nanos) if nanos % 1000 != 0 => 3,
        (_, nanos) if nanos != 0 => 2,
        (0, _) => 0,
        _ => 1,
    };
    let text = format_timestamp(millis, nanos, 3 * groups).replacen(' ', "T", 1);
    let text = match text.strip_suffix(":00") {
        Some(minutes) if groups == 0 => minutes,
        _ => &text,
    };
    match text.find('-') {
        Some(4) => Ok(text.to_owned()),
        Some(5..) => Ok(format!("+{text}")),
        _ => Err(no_year(text)),
    }
}

fn no_year(text: &str) -> FormatError {
    FormatError::invalid(format!(
        "a partition of {text}: the year in its directory name has four digits"
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1_704_067_200_000, 0, "2024-01-01T00:00")]
    #[case(1_704_067_201_000, 0, "2024-01-01T00:00:01")]
    #[case(1_704_067_200_123, 0, "2024-01-01T00:00:00.123")]
    #[case(1_704_067_200_100, 0, "2024-01-01T00:00:00.100")]
    #[case(1_704_067_200_123, 456_000, "2024-01-01T00:00:00.123456")]
    #[case(1_704_067_200_000, 1_000, "2024-01-01T00:00:00.000001")]
    #[case(-1, 999_999, "1969-12-31T23:59:59.999999999")]
    #[case(253_402_300_800_000, 0, "+10000-01-01T00:00")]
    fn iso_timestamps_leave_zero_seconds_out(#[case] millis: i64, #[case] nanos: i32, #[case] text: &str) {
        assert_eq!(iso_timestamp(millis, nanos).unwrap(), text);
    }

    fn texts(value: Datum, kind: TypeKind) -> [Result<String, String>; 2] {
        [true, false].map(|legacy| {
            let text = partition_text(&value, &DataType::nullable(kind.clone()), legacy);
            text.map(|text| text.unwrap_or_default())
                .map_err(|error| error.to_string())
        })
    }

    #[rstest]
    #[case(Datum::Date(19723), TypeKind::Date, "19723", "2024-01-01")]
    #[case(Datum::Time(36_000_120), TypeKind::Time(3), "36000120", "10:00:00.12")]
    #[case(
        Datum::Timestamp { millis: 1_704_103_200_120, nanos: 0 },
        TypeKind::Timestamp(3),
        "2024-01-01T10:00:00.120",
        "2024-01-01 10:00:00.120"
    )]
    #[case(Datum::Boolean(true), TypeKind::Boolean, "true", "true")]
    #[case(Datum::Int8(-5), TypeKind::TinyInt, "-5", "-5")]
    #[case(Datum::Decimal(-5), TypeKind::Decimal(20, 2), "-0.05", "-0.05")]
    #[case(Datum::Float32(1.0), TypeKind::Float, "1.0", "1.0")]
    #[case(Datum::Float64(1e10), TypeKind::Double, "1.0E10", "1.0E10")]
    #[case(Datum::Float64(f64::from_bits(1)), TypeKind::Double, "4.9E-324", "4.9E-324")]
    fn legacy_and_other_names(#[case] value: Datum, #[case] kind: TypeKind, #[case] legacy: &str, #[case] other: &str) {
        assert_eq!(texts(value, kind), [Ok(legacy.to_owned()), Ok(other.to_owned())]);
    }

    #[test]
    fn texts_that_depend_on_the_process_are_refused() {
        let value = Datum::Timestamp { millis: 0, nanos: 0 };
        let [legacy, other] = texts(value, TypeKind::LocalZonedTimestamp(3));
        assert_eq!(legacy.as_deref(), Ok("1970-01-01T00:00"));
        assert!(other.is_err_and(|message| message.contains("depends on the time zone")));

        let [legacy, other] = texts(Datum::Bytes(vec![65]), TypeKind::VarBinary(9));
        assert!(legacy.is_err_and(|message| message.contains("identity of a Java object")));
        assert_eq!(other.as_deref(), Ok("A"));
    }

    #[test]
    fn values_without_text_are_refused() {
        let [_, other] = texts(Datum::Date(i32::MAX), TypeKind::Date);
        let expected = "a partition of 5881580-07-11: the year in its directory name has four digits";
        assert_eq!(other, Err(expected.to_owned()));
        let [_, other] = texts(Datum::Bytes(vec![0xff]), TypeKind::VarBinary(9));
        assert_eq!(
            other,
            Err("a BINARY partition value that is not UTF-8 has no directory name".to_owned())
        );
        let [legacy, _] = texts(
            Datum::Array(vec![]),
            TypeKind::Array(Box::new(DataType::nullable(TypeKind::Int))),
        );
        assert_eq!(
            legacy,
            Err("not supported: a partition column of type ARRAY<INT>".to_owned())
        );
    }
}
