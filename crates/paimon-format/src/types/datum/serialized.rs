//! The parts of a value that formats like JSON cannot hold: as text.

/// Floats, NaN and infinity among them, and integers of more than 64 bits, in decimal.
pub(super) mod decimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::types::datum) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in crate::types::datum) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("{text:?} is no number")))
    }
}

/// Bytes, in hexadecimal.
pub(super) mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::types::datum::hex::{bytes_of_hex, hex_of_bytes};

    pub(in crate::types::datum) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex_of_bytes(bytes))
    }

    pub(in crate::types::datum) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(deserializer)?;
        bytes_of_hex(&digits).ok_or_else(|| D::Error::custom(format!("{digits:?} is not hexadecimal")))
    }
}
