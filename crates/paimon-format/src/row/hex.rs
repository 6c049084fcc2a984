//! Bytes as lower-case hex text, for JSON: `#[serde(with = "hex")]`.

use std::fmt::{self, Write};

use serde::{Deserialize, Deserializer, Serializer};

/// Writes bytes as hex.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 0x0f] {
                f.write_char(char::from_digit(u32::from(nibble), 16).unwrap_or('?'))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Hex(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| serde::de::Error::custom("expected bytes as pairs of hex digits"))
}

fn parse(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4) | digit(*low)?))
        .collect()
}

/// For `Option<Vec<u8>>`: `#[serde(with = "hex::optional")]`.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| {
            super::parse(&text).ok_or_else(|| serde::de::Error::custom("expected bytes as pairs of hex digits"))
        })
        .transpose()
    }
}
