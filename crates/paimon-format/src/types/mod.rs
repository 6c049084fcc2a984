//! Paimon's data types, single values and row kinds.

mod data_type;
mod datum;
mod row_kind;

pub use data_type::{DataField, DataType, TypeKind};
pub use datum::Datum;
pub use row_kind::RowKind;
