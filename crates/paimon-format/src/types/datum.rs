//! One value of any Paimon type.

/// One owned value: partition values, key bounds, literals, and rows of the row-wise merge functions.
///
/// The variant follows the type's physical form, not its SQL name: CHAR, VARCHAR are `String`; BINARY, VARBINARY are `Bytes`.
/// `PartialEq` is Java's: NaN equals NaN, and -0.0 differs from 0.0.
#[derive(Clone, Debug)]
pub enum Datum {
    /// SQL NULL.
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// TINYINT
    Int8(i8),
    /// SMALLINT
    Int16(i16),
    /// INT
    Int32(i32),
    /// BIGINT
    Int64(i64),
    /// FLOAT
    Float32(f32),
    /// DOUBLE
    Float64(f64),
    /// CHAR, VARCHAR
    String(String),
    /// BINARY, VARBINARY
    Bytes(Vec<u8>),
    /// DECIMAL: the unscaled value; precision and scale are the type's
    Decimal(i128),
    /// DATE: days since the epoch
    Date(i32),
    /// TIME: milliseconds of the day
    Time(i32),
    /// TIMESTAMP with or without local time zone: `millis` since the epoch (floored), plus 0..=999_999 nanoseconds
    Timestamp {
        /// Milliseconds since the epoch.
        millis: i64,
        /// Nanoseconds within the millisecond.
        nanos: i32,
    },
    /// VARIANT
    Variant {
        /// The value bytes.
        value: Vec<u8>,
        /// The metadata bytes.
        metadata: Vec<u8>,
    },
    /// ARRAY
    Array(Vec<Datum>),
    /// MAP, and MULTISET as element to count
    Map(Vec<(Datum, Datum)>),
    /// ROW
    Row(Vec<Datum>),
}
