//! Numbers as text and decimals at a scale, by the rules of `java.math.BigDecimal`, `Double.toString` and
//! `org.apache.paimon.utils.BinaryStringUtils`.

use std::fmt::LowerExp;
use std::str::FromStr;

/// The most digits of a DECIMAL.
const MAX_PRECISION: i64 = 38;

/// 10 to the power of `exponent`; `None` above 38.
pub(crate) fn pow10(exponent: u8) -> Option<i128> {
    (i64::from(exponent) <= MAX_PRECISION).then(|| 10_i128.pow(exponent.into()))
}

/// `value` if it has at most `precision` digits.
pub(crate) fn fits(value: i128, precision: u8) -> Option<i128> {
    (value.unsigned_abs() < pow10(precision)?.unsigned_abs()).then_some(value)
}

/// An unscaled value at another scale, halves away from zero; `None` when it needs more than `precision` digits.
pub(crate) fn rescale(value: i128, from_scale: u8, precision: u8, scale: u8) -> Option<i128> {
    let value = if scale >= from_scale {
        value.checked_mul(pow10(scale - from_scale)?)?
    } else {
        let divisor = pow10(from_scale - scale)?;
        let quotient = value / divisor;
        let rounds_up = (value % divisor).unsigned_abs() * 2 >= divisor.unsigned_abs();
        quotient + if rounds_up { value.signum() } else { 0 }
    };
    fits(value, precision)
}

/// `-0.05` of -5 at scale 2.
pub(crate) fn format_decimal(value: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    match digits.split_at_checked(digits.len() - scale) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}{digits}"),
    }
}

/// A decimal that was read from text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedDecimal {
    /// The unscaled value at the scale that was asked for, halves away from zero.
    Value(i128),
    /// A number with more digits than the precision.
    Overflow,
}

/// Reads `12.5`, `+.5`, `1e-3`; `None` when it is no number.
pub(crate) fn parse_decimal(text: &str, precision: u8, scale: u8) -> Option<ParsedDecimal> {
    let (negative, unsigned) = split_sign(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => {
            let (negative, digits) = split_sign(unsigned.get(at + 1..)?);
            if !super::temporal::is_digits(digits) {
                return None;
            }
            let exponent = i64::from(digits.parse::<i32>().ok()?);
            (unsigned.get(..at)?, if negative { -exponent } else { exponent })
        }
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // The value is 0.d1d2d3… times 10^point, leading zeros left out.
    let leading_zeros = digits().take_while(|&b| b == b'0').count();
    let point = whole.len() as i64 - leading_zeros as i64 + exponent;
    let mut significant = digits().skip(leading_zeros).map(|b| i128::from(b - b'0'));
    let kept = point + i64::from(scale);
    if leading_zeros == digits().count() || kept < 0 {
        return Some(ParsedDecimal::Value(0));
    }
    if kept > MAX_PRECISION {
        return Some(ParsedDecimal::Overflow);
    }
    let value = (0..kept).fold(0_i128, |value, _| value * 10 + significant.next().unwrap_or(0));
    let value = value + i128::from(significant.next().unwrap_or(0) >= 5);
    Some(match fits(if negative { -value } else { value }, precision) {
        Some(value) => ParsedDecimal::Value(value),
        None => ParsedDecimal::Overflow,
    })
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The text of Java's `Double.toString` (of JDK 19 and later, which is the shortest): at least one digit after the point, an exponent
/// below 10^-3 and from 10^7.
pub(crate) fn format_f64(value: f64) -> String {
    java_float(value, &java_digits(value.abs()))
}

/// The text of Java's `Float.toString`; see [`format_f64`].
pub(crate) fn format_f32(value: f32) -> String {
    java_float(value.into(), &java_digits(value.abs()))
}

/// The shortest digits as `d.ddde±x`. Where one digit would do, Java takes the nearest number of two digits: 4.9E-324.
fn java_digits<T: LowerExp + FromStr + PartialEq>(positive: T) -> String {
    let shortest = format!("{positive:e}");
    let two_digits = format!("{positive:.1e}");
    let reads_back = || two_digits.parse().is_ok_and(|read: T| read == positive);
    if !shortest.contains('.') && !two_digits.contains(".0e") && reads_back() {
        two_digits
    } else {
        shortest
    }
}

/// The sign of `value` with the digits of `scientific`, unless it is no number or infinite.
fn java_float(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if digits == "0" {
        return format!("{sign}0.0");
    }
    match exponent {
        -3..0 => {
            let zeros = "0".repeat((-exponent - 1).unsigned_abs() as usize);
            format!("{sign}0.{zeros}{digits}")
        }
        0..7 => {
            let whole = exponent.unsigned_abs() as usize + 1;
            let digits = format!("{digits:0<whole$}");
            let (whole, fraction) = digits.split_at_checked(whole).unwrap_or((&digits, ""));
            format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
        }
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            format!("{sign}{first}.{}E{exponent}", if rest.is_empty() { "0" } else { rest })
        }
    }
}

/// Reads what Java's `Double.parseDouble` reads, hexadecimal numbers excepted.
pub(crate) fn parse_f64(text: &str) -> Option<f64> {
    float_text(text)?.parse().ok()
}

/// Reads what Java's `Float.parseFloat` reads, hexadecimal numbers excepted.
pub(crate) fn parse_f32(text: &str) -> Option<f32> {
    float_text(text)?.parse().ok()
}

/// The part of Java's text of a float that Rust reads the same way.
fn float_text(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c| c <= ' ');
    let (_, unsigned) = split_sign(text);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Some(text);
    }
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let (_, unsigned) = split_sign(text);
    let number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    number.then_some(text)
}

/// Reads an integer as Java's cast from strings does: a fraction is allowed and cut off.
pub(crate) fn parse_integer_cast(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match split_sign(whole) {
        // `.5` and `-.5` are 0, but a sign needs something after it.
        (_, "") if text.len() > whole.len() => Some(0),
        _ => whole.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn floats_look_like_java() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.0009, "9.0E-4"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (1.234_567_89e20, "1.23456789E20"),
            (123_456.789, "123456.789"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(format_f64(value), text);
        }
        assert_eq!(format_f32(0.1), "0.1");
        assert_eq!(format_f32(16_777_216.0), "1.6777216E7");
    }

    #[test]
    fn floats_are_read_as_java_does() {
        for (text, value) in [
            (" 1.5 ", 1.5),
            ("1e3", 1000.0),
            ("+.5d", 0.5),
            ("5.", 5.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("2F", 2.0),
        ] {
            assert_eq!(parse_f64(text), Some(value), "{text}");
        }
        assert!(parse_f64("NaN").unwrap().is_nan());
        for text in ["", "inf", "nan", "infinity", "1e", "0x1p3", "d", "1_0", "."] {
            assert_eq!(parse_f64(text), None, "{text}");
        }
    }

    #[test]
    fn integers_are_cast_as_java_does() {
        for (text, value) in [
            ("12", 12),
            ("-12.9", -12),
            ("+3.", 3),
            (".5", 0),
            ("-.5", 0),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(parse_integer_cast(text), Some(value), "{text}");
        }
        for text in ["", "-", "+", " 1", "1e3", "1.5.5", "9223372036854775808", "--1"] {
            assert_eq!(parse_integer_cast(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_read_and_rounded_as_java_does() {
        use ParsedDecimal::{Overflow, Value};
        for (text, precision, scale, expected) in [
            ("1.25", 10, 1, Value(13)),
            ("-1.25", 10, 1, Value(-13)),
            ("1.249", 10, 1, Value(12)),
            ("0.5", 1, 0, Value(1)),
            ("0.05", 1, 0, Value(0)),
            ("0.005", 10, 0, Value(0)),
            ("000123", 3, 0, Value(123)),
            ("12e2", 10, 2, Value(120_000)),
            ("125e-2", 10, 1, Value(13)),
            ("1234", 3, 0, Overflow),
            ("9.99", 2, 1, Overflow),
            ("1e2000000000", 38, 0, Overflow),
            ("0e2000000000", 38, 0, Value(0)),
            ("1e-2000000000", 38, 38, Value(0)),
            (".5", 5, 2, Value(50)),
            ("5.", 5, 2, Value(500)),
            (
                "-99999999999999999999999999999999999999",
                38,
                0,
                Value(1 - 10_i128.pow(38)),
            ),
        ] {
            assert_eq!(parse_decimal(text, precision, scale), Some(expected), "{text}");
        }
        for text in ["", ".", "-", "1 ", "1e", "e5", "1.2.3", "NaN", "0x1", "1e99999999999"] {
            assert_eq!(parse_decimal(text, 38, 10), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn decimals_survive_text(value in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0..=38_u8) {
            let text = format_decimal(value, scale);
            prop_assert_eq!(parse_decimal(&text, 38, scale), Some(ParsedDecimal::Value(value)), "{}", text);
        }

        #[test]
        fn rescaling_is_reading_at_another_scale(value in -10_i128.pow(30)..10_i128.pow(30), from in 0..=38_u8, to in 0..=38_u8, precision in 1..=38_u8) {
            let read = match parse_decimal(&format_decimal(value, from), precision, to) {
                Some(ParsedDecimal::Value(value)) => Some(value),
                _ => None,
            };
            prop_assert_eq!(rescale(value, from, precision, to), read);
        }

        #[test]
        fn floats_survive_text(bits: u64, half: u32) {
            let value = f64::from_bits(bits);
            prop_assert!(value.is_nan() || parse_f64(&format_f64(value)).unwrap().to_bits() == bits);
            let value = f32::from_bits(half);
            prop_assert!(value.is_nan() || parse_f32(&format_f32(value)).unwrap().to_bits() == half);
        }
    }
}
