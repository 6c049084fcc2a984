//! Dates, times and timestamps as text, by the rules of `org.apache.paimon.utils.DateTimeUtils`.

use std::fmt::Write as _;

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// The days since the epoch of a date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a count of days since the epoch.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `2024-02-29`.
pub(crate) fn format_date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `10:30:00`, with a point and at least one digit for precisions above 0: zeros at the end are dropped.
pub(crate) fn format_time(ms_of_day: i32, precision: u8) -> String {
    let ms = i64::from(ms_of_day).rem_euclid(DAY_MS);
    let mut text = format!("{:02}:{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    if precision > 0 {
        let digits = format!("{:03}", ms % 1000);
        let shown = digits.trim_end_matches('0').len().max(1).min(precision.into());
        text.push('.');
        text.push_str(digits.get(..shown).unwrap_or(&digits));
    }
    text
}

/// `2024-02-29 10:30:00.120`: at least `precision` digits of the second, more only if they are not zero.
pub(crate) fn format_timestamp(millis: i64, nanos: i32, precision: u8) -> String {
    let days = millis.div_euclid(DAY_MS);
    let ms = millis.rem_euclid(DAY_MS);
    let mut text = format_date(days);
    // Writing to a String does not fail.
    let _ = write!(
        text,
        " {:02}:{:02}:{:02}",
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1000 % 60
    );
    let digits = format!("{:03}{nanos:06}", ms % 1000);
    let shown = digits.trim_end_matches('0').len().max(precision.into());
    if shown > 0 {
        text.push('.');
        text.push_str(digits.get(..shown).unwrap_or(&digits));
    }
    text
}

/// Days since the epoch of `2024-2-9`, `2024-02`, `2024`, of the date part of a timestamp, or of a count of days that is all digits.
/// Years go from 0 to 9999.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    if is_digits(text) {
        return text.parse().ok();
    }
    let date = match text.find(' ') {
        Some(space) if space > 0 => text.get(..space)?,
        _ => text,
    };
    let mut parts = date.splitn(3, '-').map(number);
    let year = parts.next()??;
    let month = parts.next().unwrap_or(Some(1))?;
    let day = parts.next().unwrap_or(Some(1))?;
    if year > 9999 || !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    i32::try_from(days_from_civil(year, month, day)).ok()
}

/// Milliseconds of the day of `10:30:00.125`, `10:30`, `10`, with an offset `+2` or `-02:30` after it if need be, or of a count of
/// milliseconds that is all digits. Fractions are rounded at the third digit.
pub(crate) fn parse_time(text: &str) -> Option<i32> {
    if is_digits(text) {
        return text.parse().ok();
    }
    // A `-` is looked for first, as in Java.
    let (time, offset) = match text.find('-').or_else(|| text.find('+')) {
        Some(sign) => {
            let mut parts = text.get(sign + 1..)?.splitn(2, ':').map(number);
            let minutes = parts.next()?? * 60 + parts.next().unwrap_or(Some(0))?;
            (
                text.get(..sign)?,
                if text.get(sign..)?.starts_with('-') {
                    -minutes
                } else {
                    minutes
                },
            )
        }
        None => (text, 0),
    };
    let mut parts = time.splitn(3, ':');
    let hour = number(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), number)?;
    let (second, milli) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (number(seconds)?, 0),
            Some((seconds, fraction)) => (number(seconds)?, milliseconds(fraction.trim())),
        },
    };
    let minutes = hour.checked_mul(60)?.checked_add(minute)?.checked_add(offset)?;
    let ms = minutes
        .checked_mul(60)?
        .checked_add(second)?
        .checked_mul(1000)?
        .checked_add(milli)?;
    i32::try_from(ms).ok()
}

/// [`parse_time`] within a day: Java takes 24:00:00 and more too, which no reader shows as it was.
pub(crate) fn time_of_day(text: &str) -> Option<i32> {
    parse_time(text).filter(|&ms| (0..DAY_MS).contains(&ms.into()))
}

/// The milliseconds of a fraction's digits, rounded at the third; what is no digit counts as zero.
fn milliseconds(fraction: &str) -> i64 {
    let mut digits = fraction.chars().map(|c| c.to_digit(10).unwrap_or(0).into());
    let mut next = || digits.next().unwrap_or(0_i64);
    let whole = next() * 100 + next() * 10 + next();
    whole + i64::from(next() >= 5)
}

/// Milliseconds since the epoch and nanoseconds below them of `2024-02-29`, `2024-2-9 10:30:00.125` or `2024-02-29T10:30`, cut to
/// `precision` digits. A day after the month's last is the last, as Java's default resolver has it.
pub(crate) fn parse_timestamp(text: &str, precision: u8) -> Option<(i64, i32)> {
    let date_end = text.find([' ', 'T']).unwrap_or(text.len());
    let (date, rest) = text.split_at_checked(date_end)?;
    let mut parts = date.split('-');
    let year = match parts.next()? {
        year if year.len() == 4 => number(year)?,
        year => match year.strip_prefix('+') {
            Some(year) if (5..=9).contains(&year.len()) => number(year)?,
            _ => return None,
        },
    };
    let month = short_number(parts.next()?, 12)?;
    let day = short_number(parts.next()?, 31)?.min(days_of_month(year, month));
    if parts.next().is_some() || year < 1 || month < 1 || day < 1 {
        return None;
    }
    let mut seconds = days_from_civil(year, month, day) * 86_400;
    let mut nanos = 0;
    if !rest.is_empty() {
        let time = rest.get(1..)?;
        let mut parts = time.split(':');
        let hour = short_number(parts.next()?, 24)?;
        let minute = short_number(parts.next()?, 59)?;
        let mut second = 0;
        match parts.next() {
            // Only `T` goes without seconds.
            None if rest.starts_with(' ') => return None,
            None => {}
            Some(part) => {
                let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
                second = short_number(whole, 59)?;
                nanos = nanoseconds(fraction, precision)?;
            }
        }
        // 24:00 is the end of the day.
        if parts.next().is_some() || (hour == 24 && (minute, second, nanos) != (0, 0, 0)) {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second;
    }
    Some((seconds * 1000 + nanos / 1_000_000, (nanos % 1_000_000) as i32))
}

/// The nanoseconds of up to nine digits of a second, those after `precision` made zero.
fn nanoseconds(fraction: &str, precision: u8) -> Option<i64> {
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let kept = fraction.get(..usize::from(precision)).unwrap_or(fraction);
    format!("{kept:0<9}").parse().ok()
}

/// One or two digits, at most `max`.
fn short_number(text: &str, max: i64) -> Option<i64> {
    number(text).filter(|number| text.len() <= 2 && *number <= max && is_digits(text))
}

/// Digits, blanks around them allowed.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    if is_digits(text) {
        text.parse::<i32>().ok().map(i64::from)
    } else {
        None
    }
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_read_as_java_does() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2024-2-29", 19_782),
            ("2024-02-29 10:11:12", 19_782),
            ("2024-03", 19_783),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
            ("19782", 19_782),
        ] {
            assert_eq!(parse_date(text), Some(days), "{text}");
        }
        for text in [
            "",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "10000-01-01",
            "-1-01-01",
            "2024-01-01T00:00",
            "x",
            "99999999999",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!(format_date(-719_528), "0000-01-01");
        assert_eq!(format_date(19_782), "2024-02-29");
    }

    #[test]
    fn times_are_read_and_shown_as_java_does() {
        for (text, ms) in [
            ("10:30:00", 37_800_000),
            ("10:30", 37_800_000),
            ("00:00:00.1236", 124),
            ("00:00:00.5", 500),
            ("10:00+2", 43_200_000),
            ("10:00:00-02:30", 27_000_000),
            ("1234", 1234),
        ] {
            assert_eq!(parse_time(text), Some(ms), "{text}");
        }
        for text in ["", "a:b", "1:2:x", "::"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(format_time(37_800_000, 0), "10:30:00");
        assert_eq!(format_time(37_800_000, 3), "10:30:00.0");
        assert_eq!(format_time(37_800_120, 3), "10:30:00.12");
        assert_eq!(format_time(37_800_123, 2), "10:30:00.12");
        assert_eq!(format_time(-1, 3), "23:59:59.999");
    }

    #[test]
    fn timestamps_are_read_and_shown_as_java_does() {
        for (text, precision, expected) in [
            ("1970-01-01", 6, (0, 0)),
            ("1970-01-01 00:00:01", 3, (1000, 0)),
            ("1970-1-1 0:0:1.123456789", 9, (1123, 456_789)),
            ("1970-01-01 00:00:01.123456789", 4, (1123, 400_000)),
            ("1970-01-01T00:01", 3, (60_000, 0)),
            ("1970-01-01T00:01:01.5", 0, (61_000, 0)),
            ("1969-12-31 23:59:59.999999999", 9, (-1, 999_999)),
            ("2023-02-31", 0, (1_677_542_400_000, 0)),
            ("2024-01-01 24:00:00", 3, (1_704_153_600_000, 0)),
            ("+12024-01-01", 3, (317_273_587_200_000, 0)),
            ("2024-01-01 1:2:3.", 3, (1_704_070_923_000, 0)),
        ] {
            assert_eq!(parse_timestamp(text, precision), Some(expected), "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-01-01 10:00",
            "2024-01-01 24:00:01",
            "0000-01-01",
            "24-01-01",
            "2024-01-01 1:2:3.1234567890",
            "2024-01-01 1:2:3Z",
        ] {
            assert_eq!(parse_timestamp(text, 6), None, "{text}");
        }
        assert_eq!(format_timestamp(0, 0, 0), "1970-01-01 00:00:00");
        assert_eq!(format_timestamp(120, 0, 0), "1970-01-01 00:00:00.12");
        assert_eq!(format_timestamp(120, 0, 6), "1970-01-01 00:00:00.120000");
        assert_eq!(format_timestamp(-1, 999_999, 9), "1969-12-31 23:59:59.999999999");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(days in -719_528_i32..=2_932_896, ms in 0..DAY_MS as i32, nanos in 0..1_000_000) {
            prop_assert_eq!(parse_date(&format_date(days.into())), Some(days));
            prop_assert_eq!(parse_time(&format_time(ms, 3)), Some(ms));
            if days > -719_163 {
                let millis = i64::from(days) * DAY_MS + i64::from(ms);
                prop_assert_eq!(parse_timestamp(&format_timestamp(millis, nanos, 9), 9), Some((millis, nanos)));
            }
        }
    }
}
