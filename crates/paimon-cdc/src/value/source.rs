//! How sources write values.

use std::sync::Arc;

use paimon::format::types::{DataType, TypeKind};

/// The conventions of a format for values of which nothing more is known than the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Bytes as base64; times and timestamps that are numbers count milli-, micro- or nanoseconds by the column's precision (up to
    /// 3, 6, 9 digits), as Debezium's adaptive mode writes them.
    Debezium,
    /// Every value is text; bytes as ISO-8859-1 text.
    Canal,
    /// Bytes as base64; a SET as an array of texts.
    Maxwell,
    /// As `paimon read --json` prints: bytes as lower-case hex.
    Paimon,
}

/// What a count of time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 10^-3 seconds.
    Milli,
    /// 10^-6 seconds.
    Micro,
    /// 10^-9 seconds.
    Nano,
}

impl TimeUnit {
    /// Nanoseconds in one.
    pub(super) fn nanos(self) -> i64 {
        match self {
            Self::Milli => 1_000_000,
            Self::Micro => 1_000,
            Self::Nano => 1,
        }
    }

    /// Digits of the second.
    fn precision(self) -> u8 {
        match self {
            Self::Milli => 3,
            Self::Micro => 6,
            Self::Nano => 9,
        }
    }
}

/// How the values of a column are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// By the conventions of the format.
    Plain(Dialect),
    /// Days since 1970-01-01.
    EpochDays,
    /// Units since 1970-01-01 00:00:00, of the local clock or of UTC.
    Epoch(TimeUnit),
    /// Units since midnight.
    TimeOfDay(TimeUnit),
    /// Bytes as base64.
    Base64,
    /// Bits, lowest byte first, as base64.
    Bits,
    /// The unscaled value in big-endian two's complement, as base64.
    Decimal {
        /// Digits behind the point.
        scale: i32,
    },
    /// An object of `scale` and `value`, the latter as [`Encoding::Decimal`].
    VariableDecimal,
    /// An index into these names, from 1.
    Enum(Arc<[String]>),
    /// A bit mask over these names.
    Set(Arc<[String]>),
    /// An array of values written so.
    Array(Box<Encoding>),
}

impl Encoding {
    /// How parts of a nested value are written.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::Array(element) => element.as_ref().clone(),
            Self::Plain(dialect) => Self::Plain(*dialect),
            _ => Self::Plain(Dialect::Debezium),
        }
    }

    /// The Paimon type whose text stands for such a value in a text column.
    pub(super) fn natural_type(&self) -> Option<DataType> {
        let kind = match self {
            Self::EpochDays => TypeKind::Date,
            Self::Epoch(unit) => TypeKind::Timestamp(unit.precision()),
            Self::TimeOfDay(_) => TypeKind::Time(3),
            Self::Decimal { scale } => TypeKind::Decimal(38, u8::try_from(*scale).ok().filter(|scale| *scale <= 38)?),
            _ => return None,
        };
        Some(DataType::nullable(kind))
    }
}

/// What is known of a column of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceType {
    /// How its values are written.
    pub encoding: Encoding,
    /// The Paimon type that holds all its values; `None`: the source does not say.
    pub declared: Option<DataType>,
}

impl SourceType {
    /// Nothing is known but the format.
    pub const fn unknown(dialect: Dialect) -> Self {
        Self {
            encoding: Encoding::Plain(dialect),
            declared: None,
        }
    }
}
