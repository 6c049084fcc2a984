//! `rbm32`.

use roaring::RoaringBitmap;

use super::union::BinarySet;

/// `rbm32`: 32-bit Roaring bitmaps in their portable format.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldRoaringBitmap32Agg`; <https://github.com/RoaringBitmap/RoaringFormatSpec>.
#[derive(Debug)]
pub(super) struct Bitmap32(RoaringBitmap);

impl BinarySet for Bitmap32 {
    const FUNCTION: &'static str = "rbm32";
    const FORM: &'static str = "32-bit Roaring bitmap";

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let bitmap = RoaringBitmap::deserialize_from(bytes);
        bitmap.map(Self).map_err(|error| error.to_string())
    }

    fn union(mut self, newer: Self) -> Result<Self, String> {
        self.0 |= newer.0;
        Ok(self)
    }

    fn write(mut self) -> Result<Vec<u8>, String> {
        self.0.optimize();
        let mut bytes = Vec::with_capacity(self.0.serialized_size());
        let written = self.0.serialize_into(&mut bytes);
        written.map(|()| bytes).map_err(|error| error.to_string())
    }
}
