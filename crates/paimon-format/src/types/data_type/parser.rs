//! Types from SQL text.

use std::str::FromStr;

use crate::error::FormatError;
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
        text,
        tokens: tokenize(text)?,
        next: 0,
        rows,
        next_id: 0,
    };
    let data_type = parser.data_type(0)?;
    match parser.peek() {
        None => Ok(data_type),
        Some(_) => Err(parser.expected("the end")),
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    /// An unquoted word, its case as written.
    Word(String),
    /// `…` in backticks.
    Name(String),
    /// '…' in single quotes.
    Text(String),
    /// Digits.
    Number(String),
    /// One of `<>(),.`.
    Symbol(char),
}

fn tokenize(text: &str) -> Result<Vec<(usize, Token)>, FormatError> {
    let is_symbol = |c: char| matches!(c, '<' | '>' | '(' | ')' | ',' | '.');
    let mut tokens = Vec::new();
    let mut chars = text.chars().enumerate().peekable();
    while let Some((position, c)) = chars.next() {
        let token = match c {
            c if c.is_whitespace() => continue,
            c if is_symbol(c) => Token::Symbol(c),
            '\'' | '`' => {
                let mut content = String::new();
                loop {
                    match chars.next() {
                        Some((_, next)) if next == c => match chars.next_if(|(_, after)| *after == c) {
                            Some(_) => content.push(c),
                            None => break,
                        },
                        Some((_, next)) => content.push(next),
                        None => return Err(invalid(text, position, &format!("no closing {c}"))),
                    }
                }
                if c == '`' {
                    Token::Name(content)
                } else {
                    Token::Text(content)
                }
            }
            c => {
                let digits = c.is_ascii_digit();
                let goes_on = |c: char| match digits {
                    true => c.is_ascii_digit(),
                    false => !c.is_whitespace() && !is_symbol(c),
                };
                let mut word = String::from(c);
                while let Some((_, next)) = chars.next_if(|(_, next)| goes_on(*next)) {
                    word.push(next);
                }
                if digits { Token::Number(word) } else { Token::Word(word) }
            }
        };
        tokens.push((position, token));
    }
    Ok(tokens)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    rows: bool,
    next_id: i32,
}

impl Parser<'_> {
    /// A type, its nullability, and `ARRAY` or `MULTISET` after it.
    fn data_type(&mut self, depth: usize) -> Result<DataType, FormatError> {
        if depth > MAX_DEPTH {
            return Err(invalid(self.text, self.position(), "types nested too deep"));
        }
        let kind = self.kind(depth)?;
        let data_type = self.with_nullability(kind)?;
        let kind = if self.accept("ARRAY") {
            TypeKind::Array(Box::new(data_type))
        } else if self.accept("MULTISET") {
            TypeKind::Multiset(Box::new(data_type))
        } else {
            return Ok(data_type);
        };
        self.with_nullability(kind)
    }

    fn with_nullability(&mut self, kind: TypeKind) -> Result<DataType, FormatError> {
        let nullable = if self.accept("NOT") {
            self.demand("NULL")?;
            false
        } else {
            self.accept("NULL");
            true
        };
        Ok(DataType { kind, nullable })
    }

    fn kind(&mut self, depth: usize) -> Result<TypeKind, FormatError> {
        let start = self.position();
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.expected("a type"));
        };
        let word = word.to_uppercase();
        self.next += 1;
        Ok(match word.as_str() {
            "BOOLEAN" => TypeKind::Boolean,
            "TINYINT" => TypeKind::TinyInt,
            "SMALLINT" => TypeKind::SmallInt,
            "INT" | "INTEGER" => TypeKind::Int,
            "BIGINT" => TypeKind::BigInt,
            "FLOAT" => TypeKind::Float,
            "DOUBLE" => {
                self.accept("PRECISION");
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
                if self.accept("WITHOUT") {
                    self.demand("TIME")?;
                    self.demand("ZONE")?;
                }
                TypeKind::Time(precision)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => TypeKind::LocalZonedTimestamp(self.precision(6)?),
            "VARIANT" => TypeKind::Variant,
            "BLOB" => TypeKind::Blob,
            "VECTOR" => {
                self.symbol('<')?;
                let element = self.data_type(depth + 1)?;
                self.symbol(',')?;
                let length = self.number(1, MAX_LENGTH)?;
                self.symbol('>')?;
                TypeKind::Vector(Box::new(element), length)
            }
            "ARRAY" | "MULTISET" => {
                self.symbol('<')?;
                let element = Box::new(self.data_type(depth + 1)?);
                self.symbol('>')?;
                if word == "ARRAY" {
                    TypeKind::Array(element)
                } else {
                    TypeKind::Multiset(element)
                }
            }
            "MAP" => {
                self.symbol('<')?;
                let key = self.data_type(depth + 1)?;
                self.symbol(',')?;
                let value = self.data_type(depth + 1)?;
                self.symbol('>')?;
                TypeKind::Map(Box::new(key), Box::new(value))
            }
            "ROW" if self.rows => self.row(depth)?,
            _ => {
                return Err(FormatError::unsupported(format!(
                    "the type {word} at position {start} of {:?}",
                    self.text
                )));
            }
        })
    }

    fn length(&mut self) -> Result<u32, FormatError> {
        if !self.accept_symbol('(') {
            return Ok(1);
        }
        let length = self.number(1, MAX_LENGTH)?;
        self.symbol(')')?;
        Ok(length)
    }

    fn precision(&mut self, default: u8) -> Result<u8, FormatError> {
        if !self.accept_symbol('(') {
            return Ok(default);
        }
        let precision = self.number(0, 9)?;
        self.symbol(')')?;
        Ok(precision as u8)
    }

    fn decimal(&mut self) -> Result<TypeKind, FormatError> {
        if !self.accept_symbol('(') {
            return Ok(TypeKind::Decimal(10, 0));
        }
        let precision = self.number(1, 38)?;
        let scale = match self.accept_symbol(',') {
            true => self.number(0, precision)?,
            false => 0,
        };
        self.symbol(')')?;
        Ok(TypeKind::Decimal(precision as u8, scale as u8))
    }

    fn timestamp(&mut self) -> Result<TypeKind, FormatError> {
        let precision = self.precision(6)?;
        let local = if self.accept("WITHOUT") {
            false
        } else if self.accept("WITH") {
            self.demand("LOCAL")?;
            true
        } else {
            return Ok(TypeKind::Timestamp(precision));
        };
        self.demand("TIME")?;
        self.demand("ZONE")?;
        Ok(match local {
            true => TypeKind::LocalZonedTimestamp(precision),
            false => TypeKind::Timestamp(precision),
        })
    }

    fn row(&mut self, depth: usize) -> Result<TypeKind, FormatError> {
        let mut fields = Vec::new();
        self.symbol('<')?;
        while !self.accept_symbol('>') {
            if !fields.is_empty() {
                self.symbol(',')?;
            }
            let name = match self.peek() {
                Some(Token::Name(name) | Token::Word(name)) => name.clone(),
                _ => return Err(self.expected("a field name")),
            };
            self.next += 1;
            let id = self.next_id;
            self.next_id += 1;
            let mut field = DataField::new(id, name, self.data_type(depth + 1)?);
            if self.accept("COMMENT") {
                let Some(Token::Text(comment)) = self.peek() else {
                    return Err(self.expected("a comment in single quotes"));
                };
                field.description = Some(comment.clone());
                self.next += 1;
            }
            fields.push(field);
        }
        Ok(TypeKind::Row(fields))
    }

    fn number(&mut self, min: u32, max: u32) -> Result<u32, FormatError> {
        let number = match self.peek() {
            Some(Token::Number(digits)) => digits.parse().ok().filter(|number| (min..=max).contains(number)),
            _ => None,
        };
        match number {
            Some(number) => {
                self.next += 1;
                Ok(number)
            }
            None => Err(self.expected(&format!("a number from {min} to {max}"))),
        }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), FormatError> {
        match self.accept_symbol(symbol) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{symbol}'"))),
        }
    }

    fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.next += usize::from(found);
        found
    }

    fn demand(&mut self, keyword: &str) -> Result<(), FormatError> {
        match self.accept(keyword) {
            true => Ok(()),
            false => Err(self.expected(keyword)),
        }
    }

    fn accept(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn position(&self) -> usize {
        match self.tokens.get(self.next) {
            Some((position, _)) => *position,
            None => self.text.chars().count(),
        }
    }

    fn expected(&self, what: &str) -> FormatError {
        invalid(self.text, self.position(), &format!("expected {what}"))
    }
}

fn invalid(text: &str, position: usize, message: &str) -> FormatError {
    FormatError::invalid(format!("{message} at position {position} of the type {text:?}"))
}

#[cfg(test)]
mod tests;
