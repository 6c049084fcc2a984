//! How a table's columns follow those of the source.

use paimon::SchemaChange;
use paimon::TableSchema;
use paimon::format::types::{DataType, TypeKind};

/// What may happen to a table's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evolution {
    /// A column that the table does not have is added: of the type that the source declares, or as STRING.
    pub add_columns: bool,
    /// A column whose declared type holds more values than the table's gets that type. Key columns stay.
    pub widen_columns: bool,
}

impl Evolution {
    /// What must change before rows with these columns can be written.
    pub(crate) fn changes(self, schema: &TableSchema, columns: &[(String, DataType)]) -> Vec<SchemaChange> {
        let change = |(name, declared): &(String, DataType)| match schema.field(name) {
            None if self.add_columns => Some(SchemaChange::AddColumn {
                name: name.clone(),
                data_type: declared.clone(),
                comment: None,
            }),
            Some(field) if self.widen_columns && !is_key(schema, name) && is_wider(declared, &field.data_type) => {
                Some(SchemaChange::UpdateColumnType {
                    name: name.clone(),
                    data_type: declared.clone(),
                })
            }
            _ => None,
        };
        columns.iter().filter_map(change).collect()
    }
}

fn is_key(schema: &TableSchema, name: &str) -> bool {
    schema
        .primary_keys
        .iter()
        .chain(&schema.partition_keys)
        .any(|key| key == name)
}

/// Whether `new` holds all values of `old`, and more, within one family of types.
///
/// Source: `org.apache.paimon.flink.sink.cdc.UpdatedDataFieldsProcessFunctionBase#canConvert`; unlike there, a decimal keeps all
/// its digits on both sides of the point.
pub(crate) fn is_wider(new: &DataType, old: &DataType) -> bool {
    use TypeKind::{Binary, Char, Decimal, Double, Float, Time, Timestamp, VarBinary, VarChar};
    let (old, new) = (&old.kind, &new.kind);
    if old == new {
        return false;
    }
    match (old, new) {
        (Char(old) | VarChar(old), VarChar(new)) | (Binary(old) | VarBinary(old), VarBinary(new)) => old <= new,
        (Char(old), Char(new)) | (Binary(old), Binary(new)) => old < new,
        (Float, Double) => true,
        (Decimal(old, old_scale), Decimal(new, new_scale)) => {
            old_scale <= new_scale && old.saturating_sub(*old_scale) <= new.saturating_sub(*new_scale)
        }
        (Time(old), Time(new)) | (Timestamp(old), Timestamp(new)) => old < new,
        _ => integer_bytes(old)
            .zip(integer_bytes(new))
            .is_some_and(|(old, new)| old < new),
    }
}

fn integer_bytes(kind: &TypeKind) -> Option<u8> {
    match kind {
        TypeKind::TinyInt => Some(1),
        TypeKind::SmallInt => Some(2),
        TypeKind::Int => Some(4),
        TypeKind::BigInt => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_type_holds_every_value() {
        for (old, new, wider) in [
            ("INT", "BIGINT", true),
            ("BIGINT", "INT", false),
            ("INT", "INT NOT NULL", false),
            ("FLOAT", "DOUBLE", true),
            ("INT", "DOUBLE", false),
            ("INT", "STRING", false),
            ("VARCHAR(3)", "STRING", true),
            ("CHAR(5)", "VARCHAR(4)", false),
            ("CHAR(5)", "VARCHAR(5)", true),
            ("DECIMAL(10, 2)", "DECIMAL(12, 4)", true),
            ("DECIMAL(20, 0)", "DECIMAL(10, 2)", false),
            ("TIMESTAMP(3)", "TIMESTAMP(6)", true),
            ("TIMESTAMP(6)", "TIMESTAMP(3)", false),
            ("TIME(0)", "TIME(3)", true),
            ("VARBINARY(4)", "BYTES", true),
        ] {
            let (parsed_old, parsed_new): (DataType, DataType) = (old.parse().unwrap(), new.parse().unwrap());
            assert_eq!(is_wider(&parsed_new, &parsed_old), wider, "{old} to {new}");
        }
    }
}
