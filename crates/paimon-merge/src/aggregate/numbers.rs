//! `sum` and `product` of numbers.

use std::fmt::Debug;

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use paimon_format::types::TypeKind;

use super::column::Site;
use super::decimals::DecimalMath;
use super::natives::{NativeFunction, Natives};
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory};
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

/// An operation with the arithmetic of a type.
#[derive(Debug)]
struct Arithmetic<M> {
    operation: Operation,
    math: M,
}

impl<N, M: Math<N>> NativeFunction<N> for Arithmetic<M> {
    type Error = MathError;

    #[inline]
    fn combine(&self, acc: N, value: N) -> Result<N, MathError> {
        match self.operation {
            Operation::Sum => self.math.add(acc, value),
            Operation::Product => self.math.multiply(acc, value),
        }
    }

    fn accepts_retract(&self) -> bool {
        true
    }

    fn take_back(&self, acc: Option<N>, value: Option<N>) -> Result<Option<N>, MathError> {
        match (self.operation, acc, value) {
            (_, acc, None) => Ok(acc),
            (Operation::Sum, None, Some(value)) => self.math.negate(value).map(Some),
            (Operation::Sum, Some(acc), Some(value)) => self.math.subtract(acc, value).map(Some),
            (Operation::Product, None, Some(_)) => Ok(None),
            (Operation::Product, Some(acc), Some(value)) => self.math.divide(acc, value).map(Some),
        }
    }

    fn failed(site: &Site, error: MathError) -> MergeError {
        match error {
            MathError::Overflow => site.overflow(),
            MathError::Undefined(reason) => site.value(format!("{}: {reason}", site.function)),
        }
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
        Box::new(Natives::<T, _>::new(Arithmetic { operation, math }, site))
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
