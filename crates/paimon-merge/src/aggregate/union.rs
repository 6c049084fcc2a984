//! Functions whose values are sets in binary form: the result is their union.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use paimon_format::types::TypeKind;

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, ValueCheck, fold_groups, step_of};
use crate::MergeError;

/// A set that has a binary form. Reasons of errors are what is wrong with the bytes.
pub(super) trait BinarySet: Debug + Send + Sized + 'static {
    /// The name of the aggregate function.
    const FUNCTION: &'static str;
    /// What the bytes should be.
    const FORM: &'static str;

    fn read(bytes: &[u8]) -> Result<Self, String>;

    /// The union with a newer set.
    fn union(self, newer: Self) -> Result<Self, String>;

    fn write(self) -> Result<Vec<u8>, String>;
}

/// Makes the function of one kind of set. Values are VARBINARY; a value that meets no other stays as it was written. Nothing can be
/// taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnionFactory<S>(PhantomData<fn() -> S>);

impl<S> UnionFactory<S> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<S: BinarySet> AggregatorFactory for UnionFactory<S> {
    fn name(&self) -> &str {
        S::FUNCTION
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        match column.field.data_type.kind {
            TypeKind::VarBinary(_) => Ok(Aggregation::Compute(Box::new(Unions::<S> {
                site: column.site()?,
                kept: None,
            }))),
            _ => Err(column.wrong_type("VARBINARY")),
        }
    }
}

/// A union so far.
#[derive(Debug)]
enum Union<S> {
    /// One value, as it was written.
    Bytes(Vec<u8>),
    /// Several.
    Set(S),
}

impl<S: BinarySet> Union<S> {
    fn into_set(self, site: &Site) -> Result<S, MergeError> {
        match self {
            Self::Set(set) => Ok(set),
            Self::Bytes(bytes) => read(site, &bytes),
        }
    }
}

fn read<S: BinarySet>(site: &Site, bytes: &[u8]) -> Result<S, MergeError> {
    S::read(bytes).map_err(|reason| site.value(format!("{} bytes are no {}: {reason}", bytes.len(), S::FORM)))
}

#[derive(Debug)]
struct Unions<S> {
    site: Site,
    /// An open group's union.
    kept: Option<Union<S>>,
}

impl<S: BinarySet> Unions<S> {
    fn add(site: &Site, held: Option<Union<S>>, value: &[u8], is_late: bool) -> Result<Union<S>, MergeError> {
        let Some(held) = held else {
            return Ok(Union::Bytes(value.to_vec()));
        };
        let (held, value) = (held.into_set(site)?, read(site, value)?);
        let (older, newer) = if is_late { (value, held) } else { (held, value) };
        let union = older.union(newer);
        union
            .map(Union::Set)
            .map_err(|reason| site.value(format!("two values have no union: {reason}")))
    }
}

impl<S: BinarySet> Aggregator for Unions<S> {
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
                    (step @ (Step::Add | Step::Late), Some(value)) => {
                        *held = Some(Self::add(site, held.take(), value, step == Step::Late)?);
                    }
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
                Some(Union::Set(set)) => {
                    let bytes = set.write();
                    results.append_value(
                        bytes.map_err(|reason| site.value(format!("a union that cannot be written: {reason}")))?,
                    );
                }
            }
        }
        Ok(Arc::new(results.finish()))
    }

    fn reset(&mut self) {
        self.kept = None;
    }

    fn value_check(&self) -> Option<Arc<dyn ValueCheck>> {
        let (site, form) = (self.site.clone(), PhantomData);
        Some(Arc::new(Readable::<S> { site, form }))
    }
}

/// Values are sets.
#[derive(Debug)]
struct Readable<S> {
    site: Site,
    form: PhantomData<fn() -> S>,
}

impl<S: BinarySet> ValueCheck for Readable<S> {
    fn check(&self, values: &ArrayRef, row: usize) -> Result<(), MergeError> {
        let Some(values) = values.as_binary_opt::<i32>() else {
            return Err(self.site.wrong_array(values.data_type()));
        };
        match values.is_valid(row) {
            true => read::<S>(&self.site, values.value(row)).map(drop),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
