//! `rbm32`.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use paimon_format::types::TypeKind;
use roaring::RoaringBitmap;

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, step_of};
use crate::MergeError;

/// `rbm32`: the union of 32-bit Roaring bitmaps in their portable format.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldRoaringBitmap32Agg`; <https://github.com/RoaringBitmap/RoaringFormatSpec>.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoaringFactory;

impl AggregatorFactory for RoaringFactory {
    fn name(&self) -> &str {
        "rbm32"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        match column.field.data_type.kind {
            TypeKind::VarBinary(_) => Ok(Aggregation::Compute(Box::new(Roaring {
                site: column.site()?,
                kept: None,
            }))),
            _ => Err(column.wrong_type("VARBINARY")),
        }
    }
}

/// A union so far.
#[derive(Debug)]
enum Union {
    /// One value, as it was written.
    Bytes(Vec<u8>),
    /// Several.
    Bitmap(RoaringBitmap),
}

#[derive(Debug)]
struct Roaring {
    site: Site,
    /// An open group's union.
    kept: Option<Union>,
}

fn bitmap(site: &Site, bytes: &[u8]) -> Result<RoaringBitmap, MergeError> {
    RoaringBitmap::deserialize_from(bytes)
        .map_err(|error| site.value(format!("{} bytes are no 32-bit Roaring bitmap: {error}", bytes.len())))
}

fn union(site: &Site, held: Option<Union>, value: &[u8]) -> Result<Union, MergeError> {
    let mut all = match held {
        None => return Ok(Union::Bytes(value.to_vec())),
        Some(Union::Bytes(bytes)) => bitmap(site, &bytes)?,
        Some(Union::Bitmap(all)) => all,
    };
    all |= bitmap(site, value)?;
    Ok(Union::Bitmap(all))
}

impl Aggregator for Roaring {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let site = &self.site;
        let Some(values) = values.as_binary_opt::<i32>() else {
            return Err(site.wrong_array(values.data_type()));
        };
        let mut unions = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |held, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                match (step_of(steps, row), value) {
                    (Step::Retract, _) => return Err(site.unretractable()),
                    (Step::Start, value) => *held = value.map(|value| Union::Bytes(value.to_vec())),
                    (Step::Add | Step::Late, Some(value)) => *held = Some(union(site, held.take(), value)?),
                    (Step::Add | Step::Late, None) => {}
                }
                Ok(())
            },
            |held| unions.push(held),
        )?;
        let mut results = BinaryBuilder::with_capacity(unions.len(), values.value_data().len());
        for union in unions {
            match union {
                None => results.append_null(),
                Some(Union::Bytes(bytes)) => results.append_value(bytes),
                Some(Union::Bitmap(mut all)) => {
                    all.optimize();
                    let mut bytes = Vec::with_capacity(all.serialized_size());
                    all.serialize_into(&mut bytes)
                        .map_err(|error| site.value(format!("a bitmap that cannot be written: {error}")))?;
                    results.append_value(bytes);
                }
            }
        }
        Ok(Arc::new(results.finish()))
    }

    fn reset(&mut self) {
        self.kept = None;
    }
}
