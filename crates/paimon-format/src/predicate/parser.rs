//! A filter from text.

use crate::error::FormatError;
use crate::predicate::tokens::tokenize;
use crate::predicate::{Predicate, Test};
use crate::tokens::{Token, Tokens};
use crate::types::{DataField, DataType, Datum, TypeKind, bytes_of_hex};

/// How deep brackets and `NOT` may nest.
const MAX_DEPTH: usize = 64;

impl Predicate {
    /// Reads SQL's condition: columns (in backticks or double quotes if need be) tested by `=`, `<>`, `<`, `<=`, `>`, `>=`, `IN`, `BETWEEN`, `LIKE`,
    /// `IS NULL`, each with `NOT`, joined by `AND`, `OR`, `NOT` and brackets, and `TRUE` and `FALSE`. Literals are numbers, texts in single quotes,
    /// `x'…'`, TRUE, FALSE and NULL; the column's type decides what they mean, so that dates and times are texts (`DATE '…'` is
    /// accepted).
    ///
    /// Errors: `Invalid` with text and position (in characters): what was expected, the column that is unknown, the literal that is no exact
    /// value of the column's type.
    pub fn parse(text: &str, fields: &[DataField]) -> Result<Self, FormatError> {
        let tokens = tokenize(text)?;
        let mut parser = Parser { tokens, fields };
        let predicate = parser.any_of(0)?;
        parser.tokens.demand_end("AND, OR or the end")?;
        Ok(predicate)
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    fields: &'a [DataField],
}

impl Parser<'_> {
    fn any_of(&mut self, depth: usize) -> Result<Predicate, FormatError> {
        let mut parts = vec![self.all_of(depth)?];
        while self.tokens.accept("OR") {
            parts.push(self.all_of(depth)?);
        }
        Ok(one_or(parts, Predicate::Or))
    }

    fn all_of(&mut self, depth: usize) -> Result<Predicate, FormatError> {
        let mut parts = vec![self.single(depth)?];
        while self.tokens.accept("AND") {
            parts.push(self.single(depth)?);
        }
        Ok(one_or(parts, Predicate::And))
    }

    fn single(&mut self, depth: usize) -> Result<Predicate, FormatError> {
        if depth > MAX_DEPTH {
            return Err(self.tokens.error("brackets nested too deep"));
        }
        if self.tokens.accept("NOT") {
            return Ok(Predicate::Not(Box::new(self.single(depth + 1)?)));
        }
        if self.tokens.accept_sign("(") {
            let inner = self.any_of(depth + 1)?;
            self.tokens.demand_sign(")")?;
            return Ok(inner);
        }
        if !self.at_column() {
            if self.tokens.accept("TRUE") {
                return Ok(Predicate::And(vec![]));
            }
            if self.tokens.accept("FALSE") {
                return Ok(Predicate::Or(vec![]));
            }
        }
        let field = self.column()?;
        let (negated, test) = self.test(&field)?;
        let predicate = Predicate::column(field.name, test);
        Ok(if negated {
            Predicate::Not(Box::new(predicate))
        } else {
            predicate
        })
    }

    /// Whether the next word is a column, though it may be a keyword too.
    fn at_column(&self) -> bool {
        match self.tokens.peek() {
            Some(Token::Word(word)) => self.fields.iter().any(|field| field.name == *word),
            _ => false,
        }
    }

    fn column(&mut self) -> Result<DataField, FormatError> {
        let name = match self.tokens.peek() {
            Some(Token::Word(name) | Token::Name(name)) => name.clone(),
            _ => return Err(self.tokens.expected("a column")),
        };
        match self.fields.iter().find(|field| field.name == name) {
            Some(field) => {
                self.tokens.skip();
                Ok(field.clone())
            }
            None => Err(self.tokens.error(&format!("there is no column {name}"))),
        }
    }

    /// What follows a column, and whether it is negated.
    fn test(&mut self, field: &DataField) -> Result<(bool, Test), FormatError> {
        if let Some(Token::Sign(sign @ ("=" | "<>" | "<" | "<=" | ">" | ">="))) = self.tokens.peek() {
            let sign = *sign;
            self.tokens.skip();
            let literal = self.literal(field)?;
            let test = match sign {
                "=" => Test::Equal(literal),
                "<>" => Test::NotEqual(literal),
                "<" => Test::Less(literal),
                "<=" => Test::LessOrEqual(literal),
                ">" => Test::Greater(literal),
                _ => Test::GreaterOrEqual(literal),
            };
            return Ok((false, test));
        }
        if self.tokens.accept("IS") {
            let test = if self.tokens.accept("NOT") {
                Test::IsNotNull
            } else {
                Test::IsNull
            };
            self.tokens.demand("NULL")?;
            return Ok((false, test));
        }
        let negated = self.tokens.accept("NOT");
        if self.tokens.accept("IN") {
            self.tokens.demand_sign("(")?;
            let mut literals = vec![self.literal(field)?];
            while self.tokens.accept_sign(",") {
                literals.push(self.literal(field)?);
            }
            self.tokens.demand_sign(")")?;
            let test = if negated {
                Test::NotIn(literals)
            } else {
                Test::In(literals)
            };
            return Ok((false, test));
        }
        if self.tokens.accept("BETWEEN") {
            let low = self.literal(field)?;
            self.tokens.demand("AND")?;
            let high = self.literal(field)?;
            return Ok((negated, Test::Between(low, high)));
        }
        if self.tokens.accept("LIKE") {
            if !matches!(field.data_type.kind, TypeKind::Char(_) | TypeKind::VarChar(_)) {
                return Err(self.tokens.error(&format!(
                    "LIKE needs a string, but {} is {}",
                    field.name, field.data_type
                )));
            }
            let Some(Token::Text(pattern)) = self.tokens.peek() else {
                return Err(self.tokens.expected("a pattern in single quotes"));
            };
            let test = Test::like(pattern).map_err(|error| self.tokens.error(&error.to_string()))?;
            self.tokens.skip();
            return Ok((negated, test));
        }
        Err(self.tokens.expected(match negated {
            true => "IN, BETWEEN or LIKE",
            false => "=, <>, <, <=, >, >=, IS, IN, BETWEEN, LIKE or NOT",
        }))
    }

    fn literal(&mut self, field: &DataField) -> Result<Datum, FormatError> {
        if self.tokens.accept("NULL") {
            return Ok(Datum::Null);
        }
        // The type is the column's; these words say only what is known.
        if let Some(Token::Text(_)) = self.tokens.peek_at(1) {
            let _ = self.tokens.accept("DATE") || self.tokens.accept("TIMESTAMP") || self.tokens.accept("TIME");
        }
        let literal = match self.tokens.peek() {
            Some(Token::Number(text)) => self.number(text, field),
            Some(Token::Text(text)) => exact(text, &field.data_type),
            Some(Token::Hex(digits)) => match field.data_type.kind {
                TypeKind::Binary(_) | TypeKind::VarBinary(_) => bytes_of_hex(digits).map(Datum::Bytes),
                _ => None,
            },
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") => {
                match field.data_type.kind {
                    TypeKind::Boolean => Some(Datum::Boolean(word.eq_ignore_ascii_case("true"))),
                    _ => None,
                }
            }
            _ => return Err(self.tokens.expected("a literal")),
        };
        match literal {
            Some(literal) => {
                self.tokens.skip();
                Ok(literal)
            }
            None => Err(self.tokens.error(&format!(
                "no exact value of {}, which is {}",
                field.name, field.data_type
            ))),
        }
    }

    /// A number without quotes is no string and no date.
    fn number(&self, text: &str, field: &DataField) -> Option<Datum> {
        let is_number = matches!(
            field.data_type.kind,
            TypeKind::TinyInt
                | TypeKind::SmallInt
                | TypeKind::Int
                | TypeKind::BigInt
                | TypeKind::Float
                | TypeKind::Double
                | TypeKind::Decimal(..)
        );
        if is_number { exact(text, &field.data_type) } else { None }
    }
}

fn one_or(mut parts: Vec<Predicate>, many: impl Fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match parts.len() {
        1 => parts.pop().unwrap_or_else(|| many(vec![])),
        _ => many(parts),
    }
}

/// A literal that says no more than the type can hold: `1.005` is no DECIMAL(5, 2), a rounded bound would pass the wrong rows.
fn exact(text: &str, data_type: &DataType) -> Option<Datum> {
    let value = Datum::parse(text, data_type).ok()?;
    let finer = match data_type.kind {
        TypeKind::Decimal(precision, scale) => TypeKind::Decimal(38, 38 - (precision - scale)),
        // A count of units is what it is; only a text with a fraction may have been cut.
        TypeKind::Timestamp(_) if text.contains('-') => TypeKind::Timestamp(9),
        TypeKind::LocalZonedTimestamp(_) => TypeKind::LocalZonedTimestamp(9),
        _ => return Some(value),
    };
    let precise = Datum::parse(text, &DataType::nullable(finer.clone())).ok()?;
    let same = match (&value, &precise, &data_type.kind, finer) {
        (Datum::Decimal(value), Datum::Decimal(precise), TypeKind::Decimal(_, scale), TypeKind::Decimal(_, finer)) => {
            crate::types::rescale(*value, *scale, 38, finer) == Some(*precise)
        }
        (value, precise, _, _) => value == precise,
    };
    same.then_some(value)
}
