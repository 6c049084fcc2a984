//! Values as Java prints them: the text of partition directories.
//!
//! Sources: `InternalRowPartitionComputer`, `toString` of Java's types (legacy names), `org.apache.paimon.casting` and
//! `DateTimeUtils` (the others).

use crate::FormatError;
use crate::types::{DataType, Datum, TypeKind};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The text of a partition value; `None` for null. `legacy` is `partition.legacy-name`.
///
/// Errors: `Unsupported` for types whose text depends on the process that wrote it, `Invalid` for values without text.
pub(super) fn partition_text(value: &Datum, data_type: &DataType, legacy: bool) -> Result<Option<String>, FormatError> {
    let text = match (value, &data_type.kind) {
        (Datum::Null, _) => return Ok(None),
        (Datum::Boolean(value), _) => value.to_string(),
        (Datum::Int8(value), _) => value.to_string(),
        (Datum::Int16(value), _) => value.to_string(),
        (Datum::Int32(value), _) => value.to_string(),
        (Datum::Int64(value), _) => value.to_string(),
        (Datum::Float32(value), _) => float_text(*value),
        (Datum::Float64(value), _) => double_text(*value),
        (Datum::String(text), _) => text.clone(),
        (Datum::Decimal(unscaled), TypeKind::Decimal(_, scale)) => decimal_text(*unscaled, *scale),
        (Datum::Date(days), _) if legacy => days.to_string(),
        (Datum::Date(days), _) => sql_date(*days)?,
        (Datum::Time(millis), _) if legacy => millis.to_string(),
        (Datum::Time(millis), TypeKind::Time(precision)) => sql_time(*millis, *precision),
        (Datum::Timestamp { millis, nanos }, _) if legacy => iso_timestamp(*millis, *nanos),
        (Datum::Timestamp { millis, nanos }, TypeKind::Timestamp(precision)) => {
            sql_timestamp(*millis, *nanos, *precision)?
        }
        (Datum::Timestamp { .. }, TypeKind::LocalZonedTimestamp(_)) => {
            return Err(FormatError::unsupported(
                "TIMESTAMP WITH LOCAL TIME ZONE as a partition column with partition.legacy-name = false: \
                 the directory's name depends on the time zone of the job that writes it",
            ));
        }
        (Datum::Bytes(_), _) if legacy => {
            return Err(FormatError::unsupported(
                "BINARY as a partition column with partition.legacy-name = true: \
                 the directory's name is the identity of a Java object",
            ));
        }
        (Datum::Bytes(bytes), _) => String::from_utf8(bytes.clone())
            .map_err(|_| FormatError::invalid("a BINARY partition value that is not UTF-8 has no directory name"))?,
        (value, _) => {
            return Err(FormatError::unsupported(format!(
                "{value:?} as a partition value of type {:?}",
                data_type.kind
            )));
        }
    };
    Ok(Some(text))
}

/// `Float.toString` of Java 19 and later (the shortest digits that read back as the same number).
fn float_text(value: f32) -> String {
    java_text(
        f64::from(value),
        &format!("{value:e}"),
        &format!("{value:.1e}"),
        |two_digits| two_digits.parse::<f32>().is_ok_and(|parsed| parsed == value),
    )
}

/// `Double.toString` of Java 19 and later.
fn double_text(value: f64) -> String {
    java_text(value, &format!("{value:e}"), &format!("{value:.1e}"), |two_digits| {
        two_digits.parse::<f64>().is_ok_and(|parsed| parsed == value)
    })
}

/// `shortest` and `two_digits` are in scientific notation. Where one digit would do Java takes the nearest number of two digits.
fn java_text(value: f64, shortest: &str, two_digits: &str, reads_back: impl Fn(&str) -> bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = if !shortest.contains('.') && reads_back(two_digits) {
        two_digits
    } else {
        shortest
    };
    let (sign, scientific) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    if !(-3..7).contains(&exponent) {
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    let digits = format!("{first}{rest}");
    let digits = digits.trim_end_matches('0');
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    match digits.split_at_checked(whole) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}{digits:0<whole$}.0"),
    }
}

/// `BigDecimal.toPlainString`.
fn decimal_text(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// `LocalDateTime.toString`: seconds left out when zero, fraction in groups of three digits.
fn iso_timestamp(millis: i64, nanos: i32) -> String {
    let (year, month, day) = civil(millis.div_euclid(MILLIS_PER_DAY));
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let nano = of_day % 1000 * 1_000_000 + i64::from(nanos);
    let year = match year {
        ..=-1 => format!("-{:04}", -year),
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
    };
    let mut text = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}");
    if second > 0 || nano > 0 {
        text += &format!(":{second:02}");
    }
    if nano > 0 {
        text += &match (nano % 1_000_000, nano % 1000) {
            (0, _) => format!(".{:03}", nano / 1_000_000),
            (_, 0) => format!(".{:06}", nano / 1000),
            _ => format!(".{nano:09}"),
        };
    }
    text
}

fn sql_date(days: i32) -> Result<String, FormatError> {
    let (year, month, day) = civil(i64::from(days));
    if !(0..=9999).contains(&year) {
        return Err(FormatError::invalid(format!(
            "a partition of year {year}: its directory name has four digits"
        )));
    }
    Ok(format!("{year:04}-{month:02}-{day:02}"))
}

/// The fraction has at least `precision` digits, and as many as it takes.
fn sql_timestamp(millis: i64, nanos: i32, precision: u8) -> Result<String, FormatError> {
    let days = i32::try_from(millis.div_euclid(MILLIS_PER_DAY))
        .map_err(|_| FormatError::invalid(format!("a partition at {millis} ms since the epoch: no such date")))?;
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let mut text = format!("{} {hour:02}:{minute:02}:{second:02}", sql_date(days)?);
    let fraction = format!("{:09}", of_day % 1000 * 1_000_000 + i64::from(nanos));
    let length = fraction.trim_end_matches('0').len().max(usize::from(precision));
    if let Some(fraction) = fraction.get(..length).filter(|fraction| !fraction.is_empty()) {
        text.push('.');
        text += fraction;
    }
    Ok(text)
}

/// At most `precision` digits of fraction, zeros at the end left out but for the first.
fn sql_time(millis: i32, precision: u8) -> String {
    let of_day = i64::from(millis).rem_euclid(MILLIS_PER_DAY);
    let of_day = if millis < 0 { of_day } else { i64::from(millis) };
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    if precision > 0 {
        let fraction = format!("{:03}", of_day % 1000);
        let kept = fraction.get(..usize::from(precision)).unwrap_or(&fraction);
        let kept = kept.trim_end_matches('0');
        text.push('.');
        text += if kept.is_empty() { "0" } else { kept };
    }
    text
}

/// Year, month and day of a day since the epoch, proleptic Gregorian.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years start in March here, so that the leap day is the last of its year; 719468 days lie between 0000-03-01 and the epoch.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_java_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e10, "1.0E10"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (1_234_567.0, "1234567.0"),
            (1_234_500.0, "1234500.0"),
            (100.25, "100.25"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.0001, "1.0E-4"),
            (1.5e-7, "1.5E-7"),
            (-123.456, "-123.456"),
            (2e23, "2.0E23"),
            (f64::MIN_POSITIVE * f64::EPSILON, "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double_text(value), text);
        }
        assert_eq!(float_text(1.1), "1.1");
        assert_eq!(float_text(1.4e-45), "1.4E-45");
        assert_eq!(float_text(16_777_216.0), "1.6777216E7");
    }

    #[test]
    fn decimals_keep_their_scale() {
        assert_eq!(decimal_text(-5, 2), "-0.05");
        assert_eq!(decimal_text(12345, 2), "123.45");
        assert_eq!(decimal_text(7, 0), "7");
        assert_eq!(decimal_text(0, 3), "0.000");
    }

    #[test]
    fn iso_timestamps_leave_zero_seconds_out() {
        assert_eq!(iso_timestamp(1_704_067_200_000, 0), "2024-01-01T00:00");
        assert_eq!(iso_timestamp(1_704_067_201_000, 0), "2024-01-01T00:00:01");
        assert_eq!(iso_timestamp(1_704_067_200_123, 0), "2024-01-01T00:00:00.123");
        assert_eq!(iso_timestamp(1_704_067_200_123, 456_000), "2024-01-01T00:00:00.123456");
        assert_eq!(iso_timestamp(-1, 999_999), "1969-12-31T23:59:59.999999999");
        assert_eq!(iso_timestamp(253_402_300_800_000, 0), "+10000-01-01T00:00");
        assert_eq!(iso_timestamp(-62_198_755_200_000, 0), "-0001-01-01T00:00");
    }

    #[test]
    fn sql_texts_follow_the_precision() {
        assert_eq!(sql_date(19723).unwrap(), "2024-01-01");
        assert_eq!(sql_date(-1).unwrap(), "1969-12-31");
        assert_eq!(sql_timestamp(1_704_103_200_000, 0, 0).unwrap(), "2024-01-01 10:00:00");
        assert_eq!(
            sql_timestamp(1_704_103_200_120, 0, 3).unwrap(),
            "2024-01-01 10:00:00.120"
        );
        assert_eq!(
            sql_timestamp(1_704_103_200_120, 0, 0).unwrap(),
            "2024-01-01 10:00:00.12"
        );
        assert_eq!(sql_time(36_000_120, 3), "10:00:00.12");
        assert_eq!(sql_time(36_000_000, 3), "10:00:00.0");
        assert_eq!(sql_time(36_000_123, 1), "10:00:00.1");
        assert_eq!(sql_time(36_000_123, 0), "10:00:00");
        assert_eq!(
            sql_date(i32::MAX).unwrap_err().to_string(),
            "a partition of year 5881580: its directory name has four digits"
        );
    }

    #[test]
    fn texts_that_depend_on_the_process_are_refused() {
        let zoned = DataType::nullable(TypeKind::LocalZonedTimestamp(3));
        let value = Datum::Timestamp { millis: 0, nanos: 0 };
        assert!(partition_text(&value, &zoned, false).is_err());
        let text = partition_text(&value, &zoned, true).unwrap();
        assert_eq!(text.as_deref(), Some("1970-01-01T00:00"));
        let binary = DataType::nullable(TypeKind::VarBinary(9));
        assert!(partition_text(&Datum::Bytes(vec![65]), &binary, true).is_err());
        let text = partition_text(&Datum::Bytes(vec![65]), &binary, false).unwrap();
        assert_eq!(text.as_deref(), Some("A"));
    }
}
