//! The column types of MySQL.

use std::sync::Arc;

use paimon::format::types::{DataType, MAX_LENGTH, TypeKind};

use crate::value::{Dialect, Encoding, SourceType};

/// A column type of MySQL: `bigint(20) unsigned`, `enum('a','b')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MySqlType {
    /// In upper case, without what stands in brackets.
    name: String,
    /// What stands first in brackets: digits, characters or bytes.
    length: Option<u32>,
    scale: Option<u32>,
    /// The members of an ENUM or SET.
    names: Vec<String>,
}

impl MySqlType {
    pub(super) fn new(name: &str, length: Option<u32>, scale: Option<u32>, names: Vec<String>) -> Self {
        Self {
            name: name.to_ascii_uppercase(),
            length,
            scale,
            names,
        }
    }

    /// Reads the text of a type. What is in brackets and is no number is ignored.
    pub(super) fn parse(text: &str) -> Self {
        let Some((name, rest)) = text.split_once('(') else {
            return Self::new(text.trim(), None, None, Vec::new());
        };
        let (inside, after) = rest.rsplit_once(')').unwrap_or((rest, ""));
        let name = format!("{} {}", name.trim(), after.trim());
        let name = name.trim();
        if name.eq_ignore_ascii_case("enum") || name.eq_ignore_ascii_case("set") {
            return Self::new(name, None, None, quoted_names(inside));
        }
        let mut numbers = inside.split(',').map(|number| number.trim().parse().ok());
        Self::new(name, numbers.next().flatten(), numbers.next().flatten(), Vec::new())
    }

    /// The Paimon type that holds all its values; `None`: not known.
    ///
    /// Source: `org.apache.paimon.flink.action.cdc.mysql.MySqlTypeUtils#toDataType`.
    pub(super) fn paimon_type(&self) -> Option<DataType> {
        let string = || TypeKind::VarChar(MAX_LENGTH);
        let name = self.name.strip_suffix(" ZEROFILL").unwrap_or(&self.name);
        let (base, unsigned) = match name.strip_suffix(" UNSIGNED") {
            Some(base) => (base, true),
            None => (name, false),
        };
        let kind = match (base, unsigned) {
            ("BIT", _) if self.length.unwrap_or(1) == 1 => TypeKind::Boolean,
            ("BIT", _) => TypeKind::Binary(self.length.unwrap_or(1).div_ceil(8)),
            ("BOOLEAN" | "BOOL", _) => TypeKind::Boolean,
            ("TINYINT", false) if self.length == Some(1) => TypeKind::Boolean,
            ("TINYINT", false) => TypeKind::TinyInt,
            ("TINYINT", true) | ("SMALLINT", false) => TypeKind::SmallInt,
            ("SMALLINT", true) | ("INT" | "INTEGER" | "MEDIUMINT", false) | ("YEAR", _) => TypeKind::Int,
            ("INT" | "INTEGER" | "MEDIUMINT", true) | ("BIGINT" | "LONG", false) => TypeKind::BigInt,
            ("BIGINT", true) | ("SERIAL", _) => TypeKind::Decimal(20, 0),
            ("FLOAT", _) => TypeKind::Float,
            ("REAL" | "DOUBLE" | "DOUBLE PRECISION", _) => TypeKind::Double,
            ("NUMERIC" | "FIXED" | "DECIMAL", _) => self.decimal(),
            ("DATE", _) => TypeKind::Date,
            ("TIME", _) => TypeKind::Time(0),
            ("DATETIME" | "TIMESTAMP", _) => {
                TypeKind::Timestamp(u8::try_from(self.length.unwrap_or(0)).ok().filter(|p| *p <= 9)?)
            }
            ("CHAR", _) => self
                .length
                .filter(|length| *length > 0)
                .map_or_else(string, TypeKind::Char),
            ("VARCHAR", _) => self
                .length
                .filter(|length| *length > 0)
                .map_or_else(string, TypeKind::VarChar),
            ("TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" | "JSON" | "ENUM", _) => string(),
            ("BINARY" | "VARBINARY", _) => {
                TypeKind::VarBinary(self.length.filter(|length| *length > 0).unwrap_or(MAX_LENGTH))
            }
            ("TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB", _) => TypeKind::VarBinary(MAX_LENGTH),
            ("SET", _) => TypeKind::Array(Box::new(DataType::nullable(string()))),
            _ => return None,
        };
        Some(DataType::nullable(kind))
    }

    /// Without digits in brackets the source did not say how many there are: as many as there can be.
    fn decimal(&self) -> TypeKind {
        let precision = self.length.unwrap_or(38);
        let scale = self.scale.unwrap_or(if self.length.is_some() { 0 } else { 18 });
        match (u8::try_from(precision), u8::try_from(scale)) {
            (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => TypeKind::Decimal(precision, scale),
            _ => TypeKind::VarChar(MAX_LENGTH),
        }
    }

    /// How Canal writes its values, and what holds them.
    pub(super) fn canal_source(&self) -> SourceType {
        let encoding = match self.name.as_str() {
            "ENUM" => Encoding::Enum(Arc::from(self.names.as_slice())),
            "SET" => Encoding::Set(Arc::from(self.names.as_slice())),
            _ => Encoding::Plain(Dialect::Canal),
        };
        SourceType {
            encoding,
            declared: self.paimon_type(),
        }
    }
}

/// `'a','it''s'`.
fn quoted_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\'' {
            continue;
        }
        let mut name = String::new();
        while let Some(char) = chars.next() {
            match char {
                '\'' if chars.peek() == Some(&'\'') => name.extend(chars.next()),
                '\'' => break,
                '\\' => name.extend(chars.next()),
                other => name.push(other),
            }
        }
        names.push(name);
    }
    names
}
