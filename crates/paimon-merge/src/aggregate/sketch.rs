//! `theta_sketch` and `hll_sketch`: the sketches of Apache DataSketches.

use datasketches::error::Error;
use datasketches::hll::{HllSketch, HllType, HllUnion};
use datasketches::theta::{CompactThetaSketch, ThetaUnion, ThetaUnionBuilder};

use super::union::BinarySet;

fn reason(error: Error) -> String {
    error.to_string()
}

/// `theta_sketch`: Theta sketches, whose union keeps 4096 hashes; the result is compact and ordered.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldThetaSketchAgg`; <https://datasketches.apache.org/docs/Theta/ThetaSketches.html>.
#[derive(Debug)]
pub(super) enum Theta {
    One(CompactThetaSketch),
    Several(ThetaUnion),
}

impl BinarySet for Theta {
    const FUNCTION: &'static str = "theta_sketch";
    const FORM: &'static str = "Theta sketch";

    fn read(bytes: &[u8]) -> Result<Self, String> {
        CompactThetaSketch::deserialize(bytes).map(Self::One).map_err(reason)
    }

    // The hashes that stay, the smallest ones, do not depend on the order.
    fn union(self, newer: Self) -> Result<Self, String> {
        let (mut union, added) = match (self, newer) {
            (Self::Several(union), added) | (added, Self::Several(union)) => (union, added),
            (one, added) => {
                let mut union = ThetaUnionBuilder::default().build().map_err(reason)?;
                union.update(one.sketch().as_view()).map_err(reason)?;
                (union, added)
            }
        };
        union.update(added.sketch().as_view()).map_err(reason)?;
        Ok(Self::Several(union))
    }

    fn write(self) -> Result<Vec<u8>, String> {
        Ok(self.sketch().serialize())
    }
}

impl Theta {
    fn sketch(self) -> CompactThetaSketch {
        match self {
            Self::One(sketch) => sketch,
            Self::Several(union) => union.to_sketch(true),
        }
    }
}

/// `hll_sketch`: HyperLogLog sketches; the result has the precision of the newest one, or less where an older one has less, and four bits a
/// register.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldHllSketchAgg`; <https://datasketches.apache.org/docs/HLL/HllSketches.html>.
#[derive(Debug)]
pub(super) enum Hll {
    One(HllSketch),
    Several(HllUnion),
}

impl BinarySet for Hll {
    const FUNCTION: &'static str = "hll_sketch";
    const FORM: &'static str = "HLL sketch";

    fn read(bytes: &[u8]) -> Result<Self, String> {
        HllSketch::deserialize(bytes).map(Self::One).map_err(reason)
    }

    fn union(self, newer: Self) -> Result<Self, String> {
        match (self, newer) {
            // Of one precision: registers take their maximum, whichever is first.
            (Self::Several(mut union), Self::One(sketch)) | (Self::One(sketch), Self::Several(mut union))
                if union.lg_config_k() == sketch.lg_config_k() && union.lg_max_k() == sketch.lg_config_k() =>
            {
                union.update(&sketch);
                Ok(Self::Several(union))
            }
            (older, newer) => {
                let (older, newer) = (older.sketch(), newer.sketch());
                let mut union = HllUnion::new(newer.lg_config_k()).map_err(reason)?;
                union.update(&newer);
                union.update(&older);
                Ok(Self::Several(union))
            }
        }
    }

    fn write(self) -> Result<Vec<u8>, String> {
        Ok(self.sketch().serialize())
    }
}

impl Hll {
    fn sketch(self) -> HllSketch {
        match self {
            Self::One(sketch) => sketch,
            Self::Several(union) => union.to_sketch(HllType::Hll4),
        }
    }
}
