//! Deletion vectors in task descriptions: hex text of the portable 64-bit Roaring format.

use roaring::RoaringTreemap;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DeletionVector;
use crate::row::hex;

impl Serialize for DeletionVector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: RoaringTreemap = self.iter().collect();
        let mut bytes = Vec::with_capacity(rows.serialized_size());
        rows.serialize_into(&mut bytes).map_err(S::Error::custom)?;
        hex::serialize(&bytes, serializer)
    }
}

impl<'de> Deserialize<'de> for DeletionVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = hex::deserialize(deserializer)?;
        let rows = RoaringTreemap::deserialize_from(bytes.as_slice()).map_err(D::Error::custom)?;
        Ok(rows.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let rows = DeletionVector::from([0, 7, 1 << 40]);
        let text = serde_json::to_string(&rows).unwrap();
        assert_eq!(serde_json::from_str::<DeletionVector>(&text).unwrap(), rows);
        assert!(serde_json::from_str::<DeletionVector>("\"00ff\"").is_err());
    }
}
