//! `sum` and `product` of numbers.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use paimon_format::types::TypeKind;

use super::column::Site;
use super::decimals::DecimalMath;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, plain_groups, step_of};
use crate::MergeError;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MathError {
    /// It does not fit the type.
    Overflow,
    /// It is no number of the type, and why.
    Undefined(&'static str),
}

/// Arithmetic that never wraps.
pub(super) trait Math<N>: Debug + Send {
    fn negate(&self, value: N) -> Result<N, MathError>;
    fn add(&self, left: N, right: N) -> Result<N, MathError>;
    fn subtract(&self, left: N, right: N) -> Result<N, MathError>;
    fn multiply(&self, left: N, right: N) -> Result<N, MathError>;
    fn divide(&self, left: N, right: N) -> Result<N, MathError>;
}

/// Integers, truncating on division.
#[derive(Debug)]
struct Integers;

/// IEEE: infinities and NaN are results.
#[derive(Debug)]
struct Floats;

macro_rules! integers {
    ($($native:ty),+) => {$(
        impl Math<$native> for Integers {
            fn negate(&self, value: $native) -> Result<$native, MathError> {
                value.checked_neg().ok_or(MathError::Overflow)
            }
            fn add(&self, left: $native, right: $native) -> Result<$native, MathError> {
                left.checked_add(right).ok_or(MathError::Overflow)
            }
            fn subtract(&self, left: $native, right: $native) -> Result<$native, MathError> {
                left.checked_sub(right).ok_or(MathError::Overflow)
            }
            fn multiply(&self, left: $native, right: $native) -> Result<$native, MathError> {
                left.checked_mul(right).ok_or(MathError::Overflow)
            }
            fn divide(&self, left: $native, right: $native) -> Result<$native, MathError> {
                match right {
                    0 => Err(MathError::Undefined("division by zero")),
                    _ => left.checked_div(right).ok_or(MathError::Overflow),
                }
            }
        }
    )+};
}

macro_rules! floats {
    ($($native:ty),+) => {$(
        impl Math<$native> for Floats {
            fn negate(&self, value: $native) -> Result<$native, MathError> {
                Ok(-value)
            }
            fn add(&self, left: $native, right: $native) -> Result<$native, MathError> {
                Ok(left + right)
            }
            fn subtract(&self, left: $native, right: $native) -> Result<$native, MathError> {
                Ok(left - right)
            }
            fn multiply(&self, left: $native, right: $native) -> Result<$native, MathError> {
                Ok(left * right)
            }
            fn divide(&self, left: $native, right: $native) -> Result<$native, MathError> {
                Ok(left / right)
            }
        }
    )+};
}

integers!(i8, i16, i32, i64);
floats!(f32, f64);

/// Which of the two functions.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Sum,
    Product,
}

impl Operation {
    /// `agg(acc, value)` of two values.
    #[inline]
    fn combine<N>(self, math: &impl Math<N>, left: N, right: N) -> Result<N, MathError> {
        match self {
            Self::Sum => math.add(left, right),
            Self::Product => math.multiply(left, right),
        }
    }

    /// `retract(acc, value)`.
    fn take_back<N>(self, math: &impl Math<N>, acc: Option<N>, value: Option<N>) -> Result<Option<N>, MathError> {
        match (self, acc, value) {
            (_, acc, None) => Ok(acc),
            (Self::Sum, None, Some(value)) => math.negate(value).map(Some),
            (Self::Sum, Some(acc), Some(value)) => math.subtract(acc, value).map(Some),
            (Self::Product, None, Some(_)) => Ok(None),
            (Self::Product, Some(acc), Some(value)) => math.divide(acc, value).map(Some),
        }
    }
}

/// Folds one primitive type.
#[derive(Debug)]
struct Arithmetic<T: ArrowPrimitiveType, M> {
    operation: Operation,
    math: M,
    site: Site,
    /// An open group's accumulator.
    kept: Option<T::Native>,
}

impl<T: ArrowPrimitiveType + Debug, M: Math<T::Native>> Aggregator for Arithmetic<T, M> {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (operation, math, site) = (self.operation, &self.math, &self.site);
        let Some(values) = values.as_primitive_opt::<T>() else {
            return Err(site.wrong_array(values.data_type()));
        };
        let failed = |error| match error {
            MathError::Overflow => site.overflow(),
            MathError::Undefined(reason) => site.value(format!("{}: {reason}", site.function)),
        };
        if self.kept.is_none()
            && let Some(groups) = plain_groups(values.null_count(), steps, ends, open)
        {
            let natives = values.values();
            let fold = |group: Range<usize>| {
                let mut all = natives.get(group).unwrap_or_default().iter().copied();
                let first = all.next().unwrap_or_default();
                all.try_fold(first, |acc, value| operation.combine(math, acc, value))
            };
            let results = groups
                .map(fold)
                .collect::<Result<Vec<T::Native>, _>>()
                .map_err(failed)?;
            let results = PrimitiveArray::<T>::new(results.into(), None);
            return Ok(Arc::new(results.with_data_type(site.arrow.clone())));
        }
        let mut results: Vec<Option<T::Native>> = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |acc, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                let result = match step_of(steps, row) {
                    // Both are commutative.
                    Step::Add | Step::Late => match (*acc, value) {
                        (Some(left), Some(right)) => operation.combine(math, left, right).map(Some),
                        (left, right) => Ok(left.or(right)),
                    },
                    Step::Retract => operation.take_back(math, *acc, value),
                    Step::Start => Ok(value),
                };
                *acc = result.map_err(failed)?;
                Ok(())
            },
            |acc| results.push(acc),
        )?;
        let results: PrimitiveArray<T> = results.into_iter().collect();
        Ok(Arc::new(results.with_data_type(site.arrow.clone())))
    }

    fn reset(&mut self) {
        self.kept = None;
    }

    fn accepts_retract(&self) -> bool {
        true
    }
}

/// `sum`: nulls count as nothing. A result that does not fit the column's type is an error.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldSumAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumFactory;

/// `product`: nulls count as nothing; taking back divides, truncating for integers.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldProductAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProductFactory;

impl AggregatorFactory for SumFactory {
    fn name(&self) -> &str {
        "sum"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        arithmetic(Operation::Sum, column)
    }
}

impl AggregatorFactory for ProductFactory {
    fn name(&self) -> &str {
        "product"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        arithmetic(Operation::Product, column)
    }
}

fn arithmetic(operation: Operation, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
    fn typed<T: ArrowPrimitiveType + Debug, M: Math<T::Native> + 'static>(
        operation: Operation,
        math: M,
        site: Site,
    ) -> Box<dyn Aggregator> {
        Box::new(Arithmetic::<T, M> {
            operation,
            math,
            site,
            kept: None,
        })
    }
    let site = column.site()?;
    Ok(Aggregation::Compute(match column.field.data_type.kind {
        TypeKind::TinyInt => typed::<Int8Type, _>(operation, Integers, site),
        TypeKind::SmallInt => typed::<Int16Type, _>(operation, Integers, site),
        TypeKind::Int => typed::<Int32Type, _>(operation, Integers, site),
        TypeKind::BigInt => typed::<Int64Type, _>(operation, Integers, site),
        TypeKind::Float => typed::<Float32Type, _>(operation, Floats, site),
        TypeKind::Double => typed::<Float64Type, _>(operation, Floats, site),
        TypeKind::Decimal(precision, scale) => {
            typed::<Decimal128Type, _>(operation, DecimalMath { precision, scale }, site)
        }
        _ => return Err(column.wrong_type("numbers")),
    }))
}
