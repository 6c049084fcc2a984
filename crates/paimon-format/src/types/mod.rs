//! Paimon's data types, single values and row kinds.

mod arrow_map;
mod cast;
mod conform;
mod data_type;
mod datum;
mod limits;
mod row_kind;

pub(crate) use arrow_map::with_id;
pub use arrow_map::{FIELD_ID_KEY, UTC, arrow_field, arrow_schema, data_fields};
pub use cast::Cast;
pub use conform::conform;
pub use data_type::{DataField, DataType, MAX_LENGTH, TypeKind};
pub(crate) use datum::build_array;
pub(crate) use datum::hex::bytes_of_hex;
pub(crate) use datum::number::rescale;
pub(crate) use datum::temporal;
#[cfg(test)]
pub(crate) use datum::tests as datum_tests;
pub use datum::{Datum, array_from_datums, canonical_nan};
pub use limits::check_limits;
pub use row_kind::RowKind;
