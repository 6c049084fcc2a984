//! Random types and values.

use proptest::prelude::*;

use crate::types::{DataField, DataType, Datum, TypeKind};

/// A type without inner types; a legal key.
pub(in crate::row) fn flat_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(TypeKind::Boolean),
        Just(TypeKind::TinyInt),
        Just(TypeKind::SmallInt),
        Just(TypeKind::Int),
        Just(TypeKind::BigInt),
        Just(TypeKind::Float),
        Just(TypeKind::Double),
        Just(TypeKind::Char(20)),
        Just(TypeKind::VarChar(i32::MAX as u32)),
        Just(TypeKind::VarBinary(20)),
        (1_u8..=38).prop_map(|precision| TypeKind::Decimal(precision, precision / 2)),
        Just(TypeKind::Date),
        Just(TypeKind::Time(3)),
        (0_u8..=9).prop_map(TypeKind::Timestamp),
        (0_u8..=9).prop_map(TypeKind::LocalZonedTimestamp),
    ]
    .prop_map(DataType::nullable)
}

fn any_type() -> impl Strategy<Value = DataType> {
    prop_oneof![9 => flat_type(), 1 => Just(DataType::nullable(TypeKind::Variant))].prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| TypeKind::Array(Box::new(element))),
            (flat_type(), inner.clone())
                .prop_map(|(key, value)| TypeKind::Map(Box::new(not_null(key)), Box::new(value))),
            flat_type().prop_map(|element| TypeKind::Multiset(Box::new(not_null(element)))),
            prop::collection::vec(inner, 1..3).prop_map(|types| {
                let fields = types.into_iter().zip(0..);
                TypeKind::Row(
                    fields
                        .map(|(data_type, id)| DataField::new(id, format!("f{id}"), data_type))
                        .collect(),
                )
            }),
        ]
        .prop_map(DataType::nullable)
    })
}

fn not_null(data_type: DataType) -> DataType {
    DataType::not_null(data_type.kind)
}

/// Types of a row, and values of them.
pub(in crate::row) fn row_of_types() -> impl Strategy<Value = (Vec<DataType>, Vec<Datum>)> {
    (prop::collection::vec(any_type(), 1..6), any::<u64>()).prop_map(|(types, seed)| {
        let mut random = Random(seed);
        let values = types.iter().map(|data_type| random.value(data_type)).collect();
        (types, values)
    })
}

pub(in crate::row) fn value_from_seed(data_type: &DataType, seed: u64) -> Datum {
    Random(seed).value(data_type)
}

/// A small generator of its own: values follow from the seed alone, so a failing case shrinks by type and by seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 << 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 7) % bound
    }

    fn value(&mut self, data_type: &DataType) -> Datum {
        if data_type.nullable && self.below(4) == 0 {
            return Datum::Null;
        }
        let number = self.next();
        match &data_type.kind {
            TypeKind::Boolean => Datum::Boolean(number & 1 == 1),
            TypeKind::TinyInt => Datum::Int8(number as i8),
            TypeKind::SmallInt => Datum::Int16(number as i16),
            TypeKind::Int => Datum::Int32(number as i32),
            TypeKind::BigInt => Datum::Int64(number as i64),
            TypeKind::Float => Datum::Float32([0.0, -0.0, 1.5, -2.25, f32::NAN, f32::INFINITY][(number % 6) as usize]),
            TypeKind::Double => Datum::Float64([0.0, -0.0, 1.5, -2.25, f64::NAN, f64::INFINITY][(number % 6) as usize]),
            TypeKind::Char(_) | TypeKind::VarChar(_) => {
                let length = self.below(12);
                Datum::String(
                    (0..length)
                        .map(|_| ['a', 'é', '日', '😀', '\0'][self.below(5) as usize])
                        .collect(),
                )
            }
            TypeKind::Binary(_) | TypeKind::VarBinary(_) => Datum::Bytes(self.bytes()),
            TypeKind::Decimal(precision, _) => {
                let digits = 10_i128.pow(u32::from(*precision));
                let wide = (i128::from(number as i64) << 64) | i128::from(self.next());
                Datum::Decimal(wide % digits)
            }
            TypeKind::Date => Datum::Date(number as i32),
            TypeKind::Time(_) => Datum::Time((number % 86_400_000) as i32),
            TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => Datum::Timestamp {
                // What nanoseconds in 64 bits can hold.
                millis: number as i64 % 9_000_000_000_000,
                nanos: match precision {
                    0..=3 => 0,
                    4..=6 => (self.below(1000) * 1000) as i32,
                    _ => self.below(1_000_000) as i32,
                },
            },
            TypeKind::Variant => Datum::Variant {
                value: self.bytes(),
                metadata: self.bytes(),
            },
            TypeKind::Array(element) => Datum::Array((0..self.below(5)).map(|_| self.value(element)).collect()),
            TypeKind::Map(key, value) => Datum::Map(
                (0..self.below(4))
                    .map(|_| (self.value(key), self.value(value)))
                    .collect(),
            ),
            TypeKind::Multiset(element) => Datum::Map(
                (0..self.below(4))
                    .map(|_| (self.value(element), Datum::Int32(2)))
                    .collect(),
            ),
            TypeKind::Row(fields) => Datum::Row(fields.iter().map(|field| self.value(&field.data_type)).collect()),
            kind => unreachable!("{kind:?} is not generated"),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(12)).map(|_| self.next() as u8).collect()
    }
}
