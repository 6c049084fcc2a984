//! Bytes in text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paimon::format::types::{DataType, Datum, TypeKind};

use super::source::{Dialect, Encoding};
use crate::error::RecordError;
use crate::json::Json;

/// The bytes that a text stands for.
pub(super) fn decode(json: &Json<'_>, encoding: &Encoding) -> Result<Vec<u8>, RecordError> {
    let Some(text) = json.as_str() else {
        return Err(RecordError::new(format!(
            "expected bytes as text, found {}",
            json.what()
        )));
    };
    match encoding {
        Encoding::Bits => {
            let mut bytes = base64(text)?;
            bytes.reverse();
            Ok(bytes)
        }
        Encoding::Plain(Dialect::Canal) => latin1(text),
        Encoding::Plain(Dialect::Paimon) => hex(text),
        _ => base64(text),
    }
}

fn base64(text: &str) -> Result<Vec<u8>, RecordError> {
    STANDARD
        .decode(text)
        .map_err(|error| RecordError::new(format!("no base64: {error}")))
}

/// A byte a character.
fn latin1(text: &str) -> Result<Vec<u8>, RecordError> {
    let bytes = text.chars().map(|char| {
        u8::try_from(u32::from(char)).map_err(|_| RecordError::new(format!("{char:?} is no byte of ISO-8859-1 text")))
    });
    bytes.collect()
}

fn hex(text: &str) -> Result<Vec<u8>, RecordError> {
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes = text
        .as_bytes()
        .chunks(2)
        .map(|chunk| (chunk.len() == 2).then(|| pair(chunk)).flatten());
    bytes
        .collect::<Option<_>>()
        .ok_or_else(|| RecordError::new("expected bytes as pairs of hexadecimal digits"))
}

/// The digits of a number that is big-endian two's complement in base64.
pub(super) fn decimal(text: &str, scale: i32) -> Result<String, RecordError> {
    let bytes = base64(text)?;
    let Some(first) = bytes.first() else {
        return Err(RecordError::new("a decimal without bytes"));
    };
    let fill = if *first >= 0x80 { u8::MAX } else { 0 };
    let mut wide = [fill; 16];
    let (extra, bytes) = bytes.split_at(bytes.len().saturating_sub(wide.len()));
    if extra.iter().any(|byte| *byte != fill)
        || bytes
            .first()
            .is_some_and(|byte| !extra.is_empty() && (*byte ^ fill) >= 0x80)
    {
        return Err(RecordError::new("a decimal of more than 38 digits"));
    }
    for (wide, byte) in wide.iter_mut().rev().zip(bytes.iter().rev()) {
        *wide = *byte;
    }
    let unscaled = i128::from_be_bytes(wide);
    match u8::try_from(scale) {
        Ok(scale @ 0..=38) => Ok(Datum::Decimal(unscaled).to_text(&DataType::nullable(TypeKind::Decimal(38, scale)))),
        _ => Ok(format!("{unscaled}e{}", -i64::from(scale))),
    }
}
