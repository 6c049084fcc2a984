//! Paimon's logical types. `text` prints their SQL text, `parser` reads it, `json` is their form in schema files.

mod json;
mod parser;
mod text;

pub use text::MAX_LENGTH;

/// A logical type with its nullability.
///
/// Source: `org.apache.paimon.types.DataType`. Text: its `Display` and `FromStr`. JSON: its serde form is that of schema files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataType {
    /// What values it holds.
    pub kind: TypeKind,
    /// Whether a value may be null.
    pub nullable: bool,
}

/// What values a [`DataType`] holds. Lengths are characters or bytes as in SQL; `u32` lengths go to 2147483647.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`
    TinyInt,
    /// `SMALLINT`
    SmallInt,
    /// `INT`
    Int,
    /// `BIGINT`
    BigInt,
    /// `FLOAT`
    Float,
    /// `DOUBLE`
    Double,
    /// `CHAR(n)`
    Char(u32),
    /// `VARCHAR(n)`; `STRING` when n = 2147483647
    VarChar(u32),
    /// `BINARY(n)`
    Binary(u32),
    /// `VARBINARY(n)`; `BYTES` when n = 2147483647
    VarBinary(u32),
    /// `DECIMAL(precision, scale)`, precision 1..=38
    Decimal(u8, u8),
    /// `DATE`
    Date,
    /// `TIME(precision)`: milliseconds of the day
    Time(u8),
    /// `TIMESTAMP(precision)`, precision 0..=9
    Timestamp(u8),
    /// `TIMESTAMP(precision) WITH LOCAL TIME ZONE`, precision 0..=9
    LocalZonedTimestamp(u8),
    /// `VARIANT`: two byte strings, value and metadata
    Variant,
    /// `BLOB`
    Blob,
    /// `VECTOR<element, length>`
    Vector(Box<DataType>, u32),
    /// `ARRAY<element>`
    Array(Box<DataType>),
    /// `MAP<key, value>`
    Map(Box<DataType>, Box<DataType>),
    /// `MULTISET<element>`: a map of element to count
    Multiset(Box<DataType>),
    /// `ROW<fields>`
    Row(Vec<DataField>),
}

/// A named field with the id that identifies it across schema versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataField {
    /// Unique in the table for all time.
    pub id: i32,
    /// Column name, case-sensitive.
    pub name: String,
    /// Type and nullability.
    pub data_type: DataType,
    /// A comment.
    pub description: Option<String>,
    /// The default value as text, applied on write.
    pub default_value: Option<String>,
}

impl TypeKind {
    /// Whether values are single and have an order: keys, sequence fields and partitions need both.
    pub fn is_flat(&self) -> bool {
        !matches!(
            self,
            Self::Variant
                | Self::Blob
                | Self::Vector(..)
                | Self::Array(_)
                | Self::Map(..)
                | Self::Multiset(_)
                | Self::Row(_)
        )
    }
}

impl DataType {
    /// A nullable type.
    pub fn nullable(kind: TypeKind) -> Self {
        Self { kind, nullable: true }
    }

    /// A `NOT NULL` type.
    pub fn not_null(kind: TypeKind) -> Self {
        Self { kind, nullable: false }
    }
}

impl DataField {
    /// A field without comment and default.
    pub fn new(id: i32, name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            id,
            name: name.into(),
            data_type,
            description: None,
            default_value: None,
        }
    }
}
