//! Values of an old schema's column as values of the new one.

mod value;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as ArrowType, FieldRef};

use crate::error::FormatError;
use crate::types::datum::build_array;
use crate::types::{DataField, DataType, Datum, TypeKind, arrow_field};

/// How the values of a column become values of another type, as `org.apache.paimon.casting.CastExecutors` does when a file is older
/// than the schema: integers wrap, floats saturate, decimals round half up and become null when they overflow, strings are cut or padded.
///
/// Fields of a ROW are matched by id, missing ones are null. Time zones are UTC; Java takes the time zone of its process.
#[derive(Clone, Debug)]
pub struct Cast {
    from: DataType,
    to: DataField,
    arrow: FieldRef,
    plan: Plan,
}

/// What is to be done with an array.
#[derive(Clone, Debug)]
enum Plan {
    /// Nothing.
    Keep,
    /// Arrow's kernel gives what Java gives: no value of the old type can overflow or round.
    Widen,
    /// Value by value, between these types.
    Values(DataType, DataType),
    /// The elements.
    Array(Box<Plan>),
    /// Keys and values.
    Map(Box<Plan>, Box<Plan>),
    /// For each new field, the position of the old one.
    Row(Vec<Option<(usize, Plan)>>),
}

impl Cast {
    /// The cast of a column of type `from` to the column `to`.
    ///
    /// Errors: `Unsupported` names the column and both types.
    pub fn new(from: &DataType, to: &DataField) -> Result<Self, FormatError> {
        Ok(Self {
            from: from.clone(),
            arrow: Arc::new(arrow_field(to)?),
            plan: plan(from, &to.data_type, &to.name)?,
            to: to.clone(),
        })
    }

    /// Whether a smaller value never becomes a greater one, nor a value null. Only then may the old column's minimum and maximum, cast,
    /// stand for those of the cast column.
    pub fn keeps_order(&self) -> bool {
        keeps_order(&self.from.kind, &self.to.data_type.kind)
    }

    /// The values of a column of the old type as a column of the new Arrow type. Nothing is copied when both are the same.
    ///
    /// Errors: `Invalid` names the column: text that is no value of the new type, a timestamp that the new unit cannot hold, a null in a
    /// NOT NULL column; `Internal` when the array does not have the old type.
    pub fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, FormatError> {
        apply(&self.plan, array, &self.arrow, &self.to.name)
    }

    /// As [`apply`](Self::apply), for one value.
    pub fn apply_to_datum(&self, value: &Datum) -> Result<Datum, FormatError> {
        match &self.plan {
            Plan::Keep => Ok(value.clone()),
            Plan::Widen | Plan::Values(..) => value::cast(value, &self.from, &self.to.data_type, &self.to.name),
            Plan::Array(_) | Plan::Map(..) | Plan::Row(_) => {
                let from = DataField {
                    data_type: self.from.clone(),
                    ..self.to.clone()
                };
                let array = self.apply(&build_array(&Arc::new(arrow_field(&from)?), vec![value], &from.name)?)?;
                Datum::from_array(&array, 0)
            }
        }
    }
}

fn plan(from: &DataType, to: &DataType, column: &str) -> Result<Plan, FormatError> {
    Ok(match (&from.kind, &to.kind) {
        (TypeKind::Array(from), TypeKind::Array(to)) => Plan::Array(Box::new(plan(from, to, column)?)),
        (TypeKind::Multiset(from), TypeKind::Multiset(to)) => {
            Plan::Map(Box::new(plan(from, to, column)?), Box::new(Plan::Keep))
        }
        (TypeKind::Map(from_key, from_value), TypeKind::Map(to_key, to_value)) => Plan::Map(
            Box::new(plan(from_key, to_key, column)?),
            Box::new(plan(from_value, to_value, column)?),
        ),
        (TypeKind::Row(from), TypeKind::Row(to)) => {
            let fields = to.iter().map(|to| match from.iter().position(|from| from.id == to.id) {
                Some(position) => {
                    let from = from.get(position).map_or(&to.data_type, |from| &from.data_type);
                    Ok(Some((position, plan(from, &to.data_type, column)?)))
                }
                None => Ok(None),
            });
            Plan::Row(fields.collect::<Result<_, FormatError>>()?)
        }
        (from, to) if keeps_bytes(from, to) => Plan::Keep,
        (from, to) if widens(from, to) => Plan::Widen,
        (from_kind, to_kind) if value::supported(from_kind, to_kind) => Plan::Values(from.clone(), to.clone()),
        _ => {
            return Err(FormatError::unsupported(format!(
                "column {column}: a cast from {from} to {to}"
            )));
        }
    })
}

/// Whether all values stay what they are, in the same Arrow type.
fn keeps_bytes(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind::{Binary, Char, LocalZonedTimestamp, Time, Timestamp, VarBinary, VarChar};
    match (from, to) {
        (Char(from) | VarChar(from), VarChar(to)) | (Binary(from) | VarBinary(from), VarBinary(to)) => from <= to,
        (Time(_), Time(_)) => true,
        (Timestamp(from), Timestamp(to)) | (LocalZonedTimestamp(from), LocalZonedTimestamp(to)) => {
            from <= to && super::arrow_map::time_unit(*from) == super::arrow_map::time_unit(*to)
        }
        (from, to) => from == to,
    }
}

/// Whether every value of `from` is a value of `to`, or the nearest one, and Arrow's kernel finds it.
fn widens(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind::{Decimal, Double, Float, LocalZonedTimestamp, Timestamp};
    match (from, to) {
        (Float, Double) => true,
        (from, Float | Double) if integer_digits(from).is_some() => true,
        (Decimal(from_precision, from_scale), Decimal(precision, scale)) => {
            from_scale <= scale && from_precision.saturating_sub(*from_scale) <= precision.saturating_sub(*scale)
        }
        (from, Decimal(precision, scale)) => {
            integer_digits(from).is_some_and(|digits| digits <= precision.saturating_sub(*scale))
        }
        (Timestamp(from), Timestamp(to)) | (LocalZonedTimestamp(from), LocalZonedTimestamp(to)) => from <= to,
        (from, to) => integer_digits(from).is_some() && integer_digits(from) < integer_digits(to),
    }
}

/// The digits of the largest value of an integer type.
fn integer_digits(kind: &TypeKind) -> Option<u8> {
    match kind {
        TypeKind::TinyInt => Some(3),
        TypeKind::SmallInt => Some(5),
        TypeKind::Int => Some(10),
        TypeKind::BigInt => Some(19),
        _ => None,
    }
}

fn keeps_order(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind::{Date, Double, Float, LocalZonedTimestamp, Timestamp};
    keeps_bytes(from, to)
        || widens(from, to)
        || matches!(
            (from, to),
            (Double, Float)
                | (
                    Timestamp(_) | LocalZonedTimestamp(_),
                    Timestamp(_) | LocalZonedTimestamp(_) | Date
                )
                | (Date, Timestamp(_) | LocalZonedTimestamp(_))
        )
}

fn apply(plan: &Plan, array: &ArrayRef, field: &FieldRef, path: &str) -> Result<ArrayRef, FormatError> {
    let wanted = field.data_type();
    if matches!(plan, Plan::Keep) && array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let wrong = || {
        FormatError::internal(format!(
            "column {path} has the Arrow type {}, to be made {wanted}",
            array.data_type()
        ))
    };
    let invalid = |error| FormatError::invalid(format!("column {path}: {error}"));
    match (plan, wanted) {
        (Plan::Keep, _) => Err(wrong()),
        (Plan::Widen, _) => {
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            cast_with_options(array, wanted, &options).map_err(invalid)
        }
        (Plan::Values(from, to), _) => {
            let values = (0..array.len()).map(|row| value::cast(&Datum::from_array(array, row)?, from, to, path));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            build_array(field, values.iter().collect(), path)
        }
        (Plan::Array(plan), ArrowType::List(element)) => {
            let list = array.as_list_opt::<i32>().ok_or_else(wrong)?;
            let values = apply(plan, list.values(), element, path)?;
            let list = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            );
            Ok(Arc::new(list.map_err(invalid)?))
        }
        (Plan::Map(key_plan, value_plan), ArrowType::Map(entries, sorted)) => {
            let map = array.as_map_opt().ok_or_else(wrong)?;
            let ArrowType::Struct(fields) = entries.data_type() else {
                return Err(wrong());
            };
            let [key, value] = fields.as_ref() else {
                return Err(wrong());
            };
            let columns = vec![
                apply(key_plan, map.keys(), key, path)?,
                apply(value_plan, map.values(), value, path)?,
            ];
            let values = StructArray::try_new(fields.clone(), columns, None).map_err(invalid)?;
            let nulls = map.nulls().cloned();
            let map = MapArray::try_new(Arc::clone(entries), map.offsets().clone(), values, nulls, *sorted);
            Ok(Arc::new(map.map_err(invalid)?))
        }
        (Plan::Row(plans), ArrowType::Struct(fields)) => {
            let row = array.as_struct_opt().ok_or_else(wrong)?;
            let columns = plans.iter().zip(fields).map(|(plan, field)| match plan {
                Some((position, plan)) => apply(plan, row.columns().get(*position).ok_or_else(wrong)?, field, path),
                None => Ok(new_null_array(field.data_type(), row.len())),
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let row = StructArray::try_new_with_length(fields.clone(), columns, row.nulls().cloned(), row.len());
            Ok(Arc::new(row.map_err(invalid)?))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
