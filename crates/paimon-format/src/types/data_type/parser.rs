//! Types from SQL text.

use std::str::FromStr;

use crate::error::FormatError;
use crate::tokens::{Lexer, Token, Tokens};
use crate::types::arrow_map::MAX_DEPTH;
use crate::types::{DataField, DataType, MAX_LENGTH, TypeKind};

/// Reads a type's SQL text: all that `org.apache.paimon.types.DataTypeJsonParser` accepts, and the forms with `<…>` that
/// [`DataType`]'s `Display` prints. Fields of a ROW get the ids 0, 1, … depth first; creating a table gives them their own.
///
/// Errors: `Invalid` with the text and the position (in characters); `Unsupported` for a type that Paimon or this engine does not
/// have.
impl FromStr for DataType {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        parse(text, true)
    }
}

/// Reads the text of a type in a schema file, where every ROW field needs an id and so cannot stand in the text.
pub(super) fn parse_atomic(text: &str) -> Result<DataType, FormatError> {
    parse(text, false)
}

fn parse(text: &str, rows: bool) -> Result<DataType, FormatError> {
    let mut parser = Parser {
        tokens: Tokens::new("type", text, token)?,
        rows,
        next_id: 0,
    };
    let data_type = parser.data_type(0)?;
    parser.tokens.demand_end("the end")?;
    Ok(data_type)
}

const SIGNS: [(&str, &str); 6] = [("<", "<"), (">", ">"), ("(", "("), (")", ")"), (",", ","), (".", ".")];

fn token(lexer: &mut Lexer<'_>) -> Result<Token, FormatError> {
    let is_sign = |c: char| matches!(c, '<' | '>' | '(' | ')' | ',' | '.');
    Ok(match lexer.peek(0).unwrap_or_default() {
        c if is_sign(c) => lexer.sign(&SIGNS)?,
        '\'' => Token::Text(lexer.quoted()?),
        '`' => Token::Name(lexer.quoted()?),
        c if c.is_ascii_digit() => Token::Number(lexer.take_while(|_, c| c.is_ascii_digit())),
        _ => Token::Word(lexer.take_while(|_, c| !c.is_whitespace() && !is_sign(c))),
    })
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    rows: bool,
    next_id: i32,
}

impl Parser<'_> {
    /// A type, its nullability, and `ARRAY` or `MULTISET` after it.
    fn data_type(&mut self, depth: usize) -> Result<DataType, FormatError> {
        if depth > MAX_DEPTH {
            return Err(self.tokens.error("types nested too deep"));
        }
        let kind = self.kind(depth)?;
        let data_type = self.with_nullability(kind)?;
        let kind = if self.tokens.accept("ARRAY") {
            TypeKind::Array(Box::new(data_type))
        } else if self.tokens.accept("MULTISET") {
            TypeKind::Multiset(Box::new(data_type))
        } else {
            return Ok(data_type);
        };
        self.with_nullability(kind)
    }

    fn with_nullability(&mut self, kind: TypeKind) -> Result<DataType, FormatError> {
        let nullable = if self.tokens.accept("NOT") {
            self.tokens.demand("NULL")?;
            false
        } else {
            self.tokens.accept("NULL");
            true
        };
        Ok(DataType { kind, nullable })
    }

    fn kind(&mut self, depth: usize) -> Result<TypeKind, FormatError> {
        let start = self.tokens.position();
        let Some(Token::Word(word)) = self.tokens.peek() else {
            return Err(self.tokens.expected("a type"));
        };
        let word = word.to_uppercase();
        self.tokens.skip();
        Ok(match word.as_str() {
            "BOOLEAN" => TypeKind::Boolean,
            "TINYINT" => TypeKind::TinyInt,
            "SMALLINT" => TypeKind::SmallInt,
            "INT" | "INTEGER" => TypeKind::Int,
            "BIGINT" => TypeKind::BigInt,
            "FLOAT" => TypeKind::Float,
            "DOUBLE" => {
                self.tokens.accept("PRECISION");
                TypeKind::Double
            }
            "CHAR" => TypeKind::Char(self.length()?),
            "VARCHAR" => TypeKind::VarChar(self.length()?),
            "STRING" => TypeKind::VarChar(MAX_LENGTH),
            "BINARY" => TypeKind::Binary(self.length()?),
            "VARBINARY" => TypeKind::VarBinary(self.length()?),
            "BYTES" => TypeKind::VarBinary(MAX_LENGTH),
            "DECIMAL" | "NUMERIC" | "DEC" => self.decimal()?,
            "DATE" => TypeKind::Date,
            "TIME" => {
                let precision = self.precision(0)?;
                if self.tokens.accept("WITHOUT") {
                    self.tokens.demand("TIME")?;
                    self.tokens.demand("ZONE")?;
                }
                TypeKind::Time(precision)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => TypeKind::LocalZonedTimestamp(self.precision(6)?),
            "VARIANT" => TypeKind::Variant,
            "BLOB" => TypeKind::Blob,
            "VECTOR" => {
                self.tokens.demand_sign("<")?;
                let element = self.data_type(depth + 1)?;
                self.tokens.demand_sign(",")?;
                let length = self.number(1, MAX_LENGTH)?;
                self.tokens.demand_sign(">")?;
                TypeKind::Vector(Box::new(element), length)
            }
            "ARRAY" | "MULTISET" => {
                self.tokens.demand_sign("<")?;
                let element = Box::new(self.data_type(depth + 1)?);
                self.tokens.demand_sign(">")?;
                if word == "ARRAY" {
                    TypeKind::Array(element)
                } else {
                    TypeKind::Multiset(element)
                }
            }
            "MAP" => {
                self.tokens.demand_sign("<")?;
                let key = self.data_type(depth + 1)?;
                self.tokens.demand_sign(",")?;
                let value = self.data_type(depth + 1)?;
                self.tokens.demand_sign(">")?;
                TypeKind::Map(Box::new(key), Box::new(value))
            }
            "ROW" if self.rows => self.row(depth)?,
            _ => {
                return Err(FormatError::unsupported(format!(
                    "the type {word} at position {start} of {:?}",
                    self.tokens.text()
                )));
            }
        })
    }

    fn length(&mut self) -> Result<u32, FormatError> {
        if !self.tokens.accept_sign("(") {
            return Ok(1);
        }
        let length = self.number(1, MAX_LENGTH)?;
        self.tokens.demand_sign(")")?;
        Ok(length)
    }

    fn precision(&mut self, default: u8) -> Result<u8, FormatError> {
        if !self.tokens.accept_sign("(") {
            return Ok(default);
        }
        let precision = self.number(0, 9)?;
        self.tokens.demand_sign(")")?;
        Ok(precision as u8)
    }

    fn decimal(&mut self) -> Result<TypeKind, FormatError> {
        if !self.tokens.accept_sign("(") {
            return Ok(TypeKind::Decimal(10, 0));
        }
        let precision = self.number(1, 38)?;
        let scale = match self.tokens.accept_sign(",") {
            true => self.number(0, precision)?,
            false => 0,
        };
        self.tokens.demand_sign(")")?;
        Ok(TypeKind::Decimal(precision as u8, scale as u8))
    }

    fn timestamp(&mut self) -> Result<TypeKind, FormatError> {
        let precision = self.precision(6)?;
        let local = if self.tokens.accept("WITHOUT") {
            false
        } else if self.tokens.accept("WITH") {
            self.tokens.demand("LOCAL")?;
            true
        } else {
            return Ok(TypeKind::Timestamp(precision));
        };
        self.tokens.demand("TIME")?;
        self.tokens.demand("ZONE")?;
        Ok(match local {
            true => TypeKind::LocalZonedTimestamp(precision),
            false => TypeKind::Timestamp(precision),
        })
    }

    fn row(&mut self, depth: usize) -> Result<TypeKind, FormatError> {
        let mut fields = Vec::new();
        self.tokens.demand_sign("<")?;
        loop {
            let name = match self.tokens.peek() {
                Some(Token::Name(name) | Token::Word(name)) => name.clone(),
                _ => return Err(self.tokens.expected("a field name")),
            };
            if fields.iter().any(|field: &DataField| field.name == name) {
                return Err(self.tokens.error(&format!("a second field {name}")));
            }
            self.tokens.skip();
            let id = self.next_id;
            self.next_id += 1;
            let mut field = DataField::new(id, name, self.data_type(depth + 1)?);
            if self.tokens.accept("COMMENT") {
                let Some(Token::Text(comment)) = self.tokens.peek() else {
                    return Err(self.tokens.expected("a comment in single quotes"));
                };
                field.description = Some(comment.clone());
                self.tokens.skip();
            }
            fields.push(field);
            if self.tokens.accept_sign(">") {
                return Ok(TypeKind::Row(fields));
            }
            self.tokens.demand_sign(",")?;
        }
    }

    fn number(&mut self, min: u32, max: u32) -> Result<u32, FormatError> {
        let number = match self.tokens.peek() {
            Some(Token::Number(digits)) => digits.parse().ok().filter(|number| (min..=max).contains(number)),
            _ => None,
        };
        match number {
            Some(number) => {
                self.tokens.skip();
                Ok(number)
            }
            None => Err(self.tokens.expected(&format!("a number from {min} to {max}"))),
        }
    }
}

#[cfg(test)]
mod tests;
