//! Types as SQL text.

use std::fmt;

use crate::types::{DataField, DataType, TypeKind};

/// The length of STRING and BYTES.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// The SQL text of `org.apache.paimon.types.DataType.asSQLString`, in the canonical form that schema files hold.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.nullable {
            f.write_str(" NOT NULL")?;
        }
        Ok(())
    }
}

/// The text without nullability.
impl fmt::Display for TypeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::VarChar(MAX_LENGTH) => f.write_str("STRING"),
            Self::VarChar(length) => write!(f, "VARCHAR({length})"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::VarBinary(MAX_LENGTH) => f.write_str("BYTES"),
            Self::VarBinary(length) => write!(f, "VARBINARY({length})"),
            Self::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::LocalZonedTimestamp(precision) => write!(f, "TIMESTAMP({precision}) WITH LOCAL TIME ZONE"),
            Self::Variant => f.write_str("VARIANT"),
            Self::Blob => f.write_str("BLOB"),
            Self::Vector(element, length) => write!(f, "VECTOR<{element}, {length}>"),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Multiset(element) => write!(f, "MULTISET<{element}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{field}")?;
                }
                f.write_str(">")
            }
        }
    }
}

/// A field of a ROW: its quoted name, type, comment and default. Source: `org.apache.paimon.types.DataField.asSQLString`.
impl fmt::Display for DataField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name.replace('`', "``"), self.data_type)?;
        if let Some(description) = self.description.as_deref().filter(|text| !text.is_empty()) {
            write!(f, " COMMENT '{}'", description.replace('\'', "''"))?;
        }
        if let Some(default) = &self.default_value {
            write!(f, " DEFAULT {default}")?;
        }
        Ok(())
    }
}
