//! Aggregate functions, value by value.

use paimon_format::options::Options;
use paimon_format::types::{DataField, Datum, TypeKind};

use super::bitmaps::Bitmap;
use super::nested::Nested;

/// A function with its options.
#[derive(Debug)]
pub(super) struct Function {
    kind: Kind,
    ignore_retract: bool,
}

/// What a function knows of a key.
#[derive(Clone, Debug)]
pub(super) struct Accumulator {
    pub(super) value: Datum,
    /// `first_*` have their value.
    decided: bool,
}

impl Default for Accumulator {
    fn default() -> Self {
        Self {
            value: Datum::Null,
            decided: false,
        }
    }
}

#[derive(Debug)]
enum Kind {
    PrimaryKey,
    Sum(TypeKind),
    Product(TypeKind),
    Min,
    Max,
    LastValue,
    LastNonNull,
    FirstValue,
    FirstNonNull,
    BoolAnd,
    BoolOr,
    ListAgg { delimiter: String, distinct: bool },
    Collect { distinct: bool },
    MergeMap,
    MergeMapWithKeyTime { time: usize },
    NestedUpdate(Nested),
    NestedPartialUpdate(Nested),
    Union(Bitmap),
}

impl Function {
    pub(super) fn new(name: &str, field: &DataField, options: &Options) -> Result<Self, String> {
        let option = |suffix: &str| options.get(&format!("fields.{}.{suffix}", field.name));
        let is_set = |suffix: &str| option(suffix) == Some("true");
        let kind = match name {
            "primary-key" => Kind::PrimaryKey,
            "sum" => Kind::Sum(field.data_type.kind.clone()),
            "product" => Kind::Product(field.data_type.kind.clone()),
            "min" => Kind::Min,
            "max" => Kind::Max,
            "last_value" => Kind::LastValue,
            "last_non_null_value" => Kind::LastNonNull,
            "first_value" => Kind::FirstValue,
            "first_non_null_value" | "first_not_null_value" => Kind::FirstNonNull,
            "bool_and" => Kind::BoolAnd,
            "bool_or" => Kind::BoolOr,
            "listagg" => Kind::ListAgg {
                delimiter: option("list-agg-delimiter").unwrap_or(",").to_owned(),
                distinct: is_set("distinct"),
            },
            "collect" => Kind::Collect {
                distinct: is_set("distinct"),
            },
            "rbm32" => Kind::Union(Bitmap::Portable32),
            "rbm64" => Kind::Union(Bitmap::Tree64),
            "merge_map" => Kind::MergeMap,
            "merge_map_with_keytime" => Kind::MergeMapWithKeyTime {
                time: match (&field.data_type.kind, option("ts-field")) {
                    (TypeKind::Map(_, value), time) => match (&value.kind, time) {
                        (TypeKind::Row(fields), Some(time)) => super::positions(fields, time)?[0],
                        (TypeKind::Row(fields), None) => fields.len() - 1,
                        _ => return Err("a map without rows".to_owned()),
                    },
                    _ => return Err("no map".to_owned()),
                },
            },
            "nested_update" | "nested_partial_update" => {
                let fields = match &field.data_type.kind {
                    TypeKind::Array(element) => match &element.kind {
                        TypeKind::Row(fields) => fields,
                        _ => return Err("an array without rows".to_owned()),
                    },
                    _ => return Err("no array".to_owned()),
                };
                let nested = Nested {
                    key: super::positions(fields, option("nested-key").unwrap_or_default())?,
                    sequence: super::positions(fields, option("nested-sequence-field").unwrap_or_default())?,
                    limit: option("count-limit")
                        .map_or(Ok(usize::MAX), str::parse)
                        .map_err(|error| error.to_string())?,
                    nulls: option("nested-key-null-strategy").unwrap_or("merge").to_owned(),
                };
                match name {
                    "nested_update" => Kind::NestedUpdate(nested),
                    _ => Kind::NestedPartialUpdate(nested),
                }
            }
            other => return Err(format!("aggregate function {other}")),
        };
        Ok(Self {
            kind,
            ignore_retract: is_set("ignore-retract"),
        })
    }

    /// `acc = agg(acc, value)`
    pub(super) fn add(&self, acc: &mut Accumulator, value: &Datum) -> Result<(), String> {
        let held = std::mem::replace(&mut acc.value, Datum::Null);
        acc.value = self.aggregate(&mut acc.decided, held, value.clone())?;
        Ok(())
    }

    /// `acc = agg(value, acc)`: the value is an older one.
    pub(super) fn add_late(&self, acc: &mut Accumulator, value: &Datum) -> Result<(), String> {
        let held = std::mem::replace(&mut acc.value, Datum::Null);
        acc.value = match self.kind {
            Kind::Collect { .. } => self.aggregate(&mut acc.decided, held, value.clone())?,
            _ => self.aggregate(&mut acc.decided, value.clone(), held)?,
        };
        Ok(())
    }

    fn aggregate(&self, decided: &mut bool, acc: Datum, value: Datum) -> Result<Datum, String> {
        Ok(match &self.kind {
            Kind::PrimaryKey | Kind::LastValue => value,
            Kind::LastNonNull => {
                if value.is_null() {
                    acc
                } else {
                    value
                }
            }
            Kind::FirstValue => {
                if std::mem::replace(decided, true) {
                    acc
                } else {
                    value
                }
            }
            Kind::FirstNonNull => {
                if !*decided && !value.is_null() {
                    *decided = true;
                    value
                } else {
                    acc
                }
            }
            Kind::Collect { distinct } => collect(*distinct, acc, value),
            Kind::NestedUpdate(nested) => nested.update(acc, value)?,
            Kind::NestedPartialUpdate(nested) => nested.partial_update(acc, value)?,
            _ if value.is_null() => acc,
            Kind::ListAgg { delimiter, distinct } => list(delimiter, *distinct, acc, value),
            _ if acc.is_null() => value,
            Kind::Sum(kind) => number(kind, &acc, &value, Operation::Add)?,
            Kind::Product(kind) => number(kind, &acc, &value, Operation::Multiply)?,
            Kind::Min => {
                if value < acc {
                    value
                } else {
                    acc
                }
            }
            Kind::Max => {
                if value > acc {
                    value
                } else {
                    acc
                }
            }
            Kind::Union(bitmap) => bitmap.union(&acc, &value)?,
            Kind::BoolAnd => Datum::Boolean(acc == Datum::Boolean(true) && value == Datum::Boolean(true)),
            Kind::BoolOr => Datum::Boolean(acc == Datum::Boolean(true) || value == Datum::Boolean(true)),
            Kind::MergeMap => {
                let mut all = entries(acc);
                for (key, value) in entries(value) {
                    put(&mut all, key, value);
                }
                Datum::Map(all)
            }
            Kind::MergeMapWithKeyTime { time } => {
                let time_of = |value: &Datum| match value {
                    Datum::Row(fields) => fields[*time].clone(),
                    _ => Datum::Null,
                };
                let mut all = entries(acc);
                for (key, value) in entries(value) {
                    if value.is_null() {
                        all.retain(|(held, _)| *held != key);
                        continue;
                    }
                    let held = all.iter().find(|(held, _)| *held == key);
                    let held_time = held.map_or(Datum::Null, |(_, value)| time_of(value));
                    let new_time = time_of(&value);
                    if !new_time.is_null() && (held_time.is_null() || new_time > held_time) {
                        put(&mut all, key, value);
                    }
                }
                Datum::Map(all)
            }
        })
    }

    /// `acc = retract(acc, value)`
    pub(super) fn retract(&self, acc: &mut Accumulator, value: &Datum) -> Result<(), String> {
        if self.ignore_retract {
            return Ok(());
        }
        let held = std::mem::replace(&mut acc.value, Datum::Null);
        acc.value = match &self.kind {
            Kind::PrimaryKey => value.clone(),
            Kind::LastValue => Datum::Null,
            Kind::LastNonNull => {
                if value.is_null() {
                    held
                } else {
                    Datum::Null
                }
            }
            Kind::Sum(_) if value.is_null() => held,
            Kind::Sum(kind) if held.is_null() => number(kind, &zero(value), value, Operation::Subtract)?,
            Kind::Sum(kind) => number(kind, &held, value, Operation::Subtract)?,
            Kind::Product(_) if value.is_null() || held.is_null() => held,
            Kind::Product(kind) => number(kind, &held, value, Operation::Divide)?,
            Kind::Collect { .. } if value.is_null() || held.is_null() => held,
            Kind::Collect { .. } => {
                let mut gone = elements(value.clone());
                let mut all = elements(held);
                all.retain(|element| match gone.iter().position(|gone| gone == element) {
                    Some(at) => {
                        gone.remove(at);
                        false
                    }
                    None => true,
                });
                Datum::Array(all)
            }
            Kind::MergeMap if value.is_null() || held.is_null() => held,
            Kind::MergeMap => {
                let gone = entries(value.clone());
                let mut all = entries(held);
                all.retain(|(key, _)| gone.iter().all(|(gone, _)| gone != key));
                Datum::Map(all)
            }
            Kind::NestedUpdate(_) if value.is_null() || held.is_null() => held,
            Kind::NestedUpdate(nested) => nested.retract(held, value.clone())?,
            other => return Err(format!("{other:?} does not support retraction")),
        };
        Ok(())
    }
}

enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

fn zero(like: &Datum) -> Datum {
    match like {
        Datum::Int8(_) => Datum::Int8(0),
        Datum::Int16(_) => Datum::Int16(0),
        Datum::Int32(_) => Datum::Int32(0),
        Datum::Int64(_) => Datum::Int64(0),
        Datum::Float32(_) => Datum::Float32(-0.0),
        Datum::Float64(_) => Datum::Float64(-0.0),
        _ => Datum::Decimal(0),
    }
}

/// Exact numbers as i128, with the type's range; floats as they are.
fn number(kind: &TypeKind, left: &Datum, right: &Datum, operation: Operation) -> Result<Datum, String> {
    let float = |a: f64, b: f64| match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide => a / b,
    };
    let (a, b) = match (left, right) {
        (Datum::Float64(a), Datum::Float64(b)) => return Ok(Datum::Float64(float(*a, *b))),
        // Twice the digits are enough for the one rounding of a float's result.
        (Datum::Float32(a), Datum::Float32(b)) => return Ok(Datum::Float32(float((*a).into(), (*b).into()) as f32)),
        (Datum::Int8(a), Datum::Int8(b)) => (i128::from(*a), i128::from(*b)),
        (Datum::Int16(a), Datum::Int16(b)) => (i128::from(*a), i128::from(*b)),
        (Datum::Int32(a), Datum::Int32(b)) => (i128::from(*a), i128::from(*b)),
        (Datum::Int64(a), Datum::Int64(b)) => (i128::from(*a), i128::from(*b)),
        (Datum::Decimal(a), Datum::Decimal(b)) => (*a, *b),
        other => return Err(format!("numbers {other:?}")),
    };
    let one = match kind {
        TypeKind::Decimal(_, scale) => 10_i128.pow((*scale).into()),
        _ => 1,
    };
    let half_up = |value: i128, by: i128| {
        let (value, by) = if by < 0 { (-value, -by) } else { (value, by) };
        (value.abs() * 2 + by) / (by * 2) * value.signum()
    };
    let overflow = || "overflow".to_owned();
    let result = match operation {
        Operation::Add => a.checked_add(b).ok_or_else(overflow)?,
        Operation::Subtract => a.checked_sub(b).ok_or_else(overflow)?,
        Operation::Multiply if one == 1 => a.checked_mul(b).ok_or_else(overflow)?,
        Operation::Multiply => half_up(a.checked_mul(b).ok_or_else(overflow)?, one),
        Operation::Divide if b == 0 => return Err("division by zero".to_owned()),
        Operation::Divide if matches!(kind, TypeKind::Decimal(..)) => {
            // A quotient that ends has no more digits than twice the divisor's bits.
            let mut rest = (a * one).rem_euclid(b.abs());
            for _ in 0..80 {
                rest = rest * 10 % b.abs();
            }
            match rest {
                0 => half_up(a * one, b),
                _ => return Err("a quotient without end".to_owned()),
            }
        }
        Operation::Divide => a / b,
    };
    let fits = |datum: Option<Datum>| datum.ok_or_else(overflow);
    match kind {
        TypeKind::TinyInt => fits(result.try_into().ok().map(Datum::Int8)),
        TypeKind::SmallInt => fits(result.try_into().ok().map(Datum::Int16)),
        TypeKind::Int => fits(result.try_into().ok().map(Datum::Int32)),
        TypeKind::BigInt => fits(result.try_into().ok().map(Datum::Int64)),
        TypeKind::Decimal(precision, _) => {
            fits((result.abs() < 10_i128.pow((*precision).into())).then_some(Datum::Decimal(result)))
        }
        other => Err(format!("numbers of {other}")),
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

fn list(delimiter: &str, distinct: bool, acc: Datum, value: Datum) -> Datum {
    let Datum::String(text) = &value else { return acc };
    if is_blank(text) {
        return acc;
    }
    let Datum::String(mut all) = acc else { return value };
    if is_blank(&all) {
        return value;
    }
    if !distinct {
        return Datum::String(format!("{all}{delimiter}{text}"));
    }
    for token in text.split(delimiter) {
        let is_there = all.split(delimiter).any(|held| held == token);
        if !is_blank(token) && !is_there {
            all = format!("{all}{delimiter}{token}");
        }
    }
    Datum::String(all)
}

pub(super) fn elements(array: Datum) -> Vec<Datum> {
    match array {
        Datum::Array(elements) => elements,
        _ => Vec::new(),
    }
}

fn entries(map: Datum) -> Vec<(Datum, Datum)> {
    match map {
        Datum::Map(entries) => entries,
        _ => Vec::new(),
    }
}

/// Puts an entry where its key is, or at the end.
fn put(all: &mut Vec<(Datum, Datum)>, key: Datum, value: Datum) {
    match all.iter_mut().find(|(held, _)| *held == key) {
        Some(entry) => entry.1 = value,
        None => all.push((key, value)),
    }
}

fn collect(distinct: bool, acc: Datum, value: Datum) -> Datum {
    if acc.is_null() && value.is_null() {
        return Datum::Null;
    }
    let mut all: Vec<Datum> = Vec::new();
    for element in elements(acc).into_iter().chain(elements(value)) {
        if !distinct || !all.contains(&element) {
            all.push(element);
        }
    }
    Datum::Array(all)
}
