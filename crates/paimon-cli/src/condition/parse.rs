//! Tokens into a tree. Precedence: OR, AND, NOT, comparison.

use super::token::{Token, tokens};

/// How a column is compared with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A condition on the columns of a table; literals are still text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Compare(String, Compare, String),
    In(String, Vec<String>),
    IsNull(String),
    StartsWith(String, String),
}

/// Parses a condition. Errors say what was expected.
pub(super) fn parse(text: &str) -> Result<Condition, String> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0 };
    let condition = parser.or()?;
    match parser.peek() {
        None => Ok(condition),
        Some(token) => Err(format!("expected AND, OR or the end, found {}", show(Some(token)))),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.next += 1;
        token
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<Condition, String> {
        let mut left = self.and()?;
        while self.keyword("or") {
            left = Condition::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Condition, String> {
        let mut left = self.not()?;
        while self.keyword("and") {
            left = Condition::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Condition, String> {
        if self.keyword("not") {
            return Ok(Condition::Not(Box::new(self.not()?)));
        }
        if self.sign("(") {
            let inner = self.or()?;
            return if self.sign(")") { Ok(inner) } else { Err(format!("expected ), found {}", show(self.peek()))) };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let column = match self.take() {
            Some(Token::Word(name) | Token::Quoted(name)) => name,
            other => return Err(format!("expected a column, found {}", show(other.as_ref()))),
        };
        if self.keyword("is") {
            let negated = self.keyword("not");
            if !self.keyword("null") {
                return Err(format!("expected NULL, found {}", show(self.peek())));
            }
            return Ok(negate(negated, Condition::IsNull(column)));
        }
        let negated = self.keyword("not");
        if self.keyword("in") {
            return Ok(negate(negated, Condition::In(column, self.list()?)));
        }
        if self.keyword("between") {
            let low = self.literal()?;
            if !self.keyword("and") {
                return Err(format!("expected AND, found {}", show(self.peek())));
            }
            let high = self.literal()?;
            let low = Condition::Compare(column.clone(), Compare::GreaterOrEqual, low);
            let high = Condition::Compare(column, Compare::LessOrEqual, high);
            return Ok(negate(negated, Condition::And(Box::new(low), Box::new(high))));
        }
        if self.keyword("like") {
            let pattern = self.literal()?;
            return Ok(negate(negated, like(column, &pattern)?));
        }
        if negated {
            return Err(format!("expected IN, BETWEEN or LIKE after NOT, found {}", show(self.peek())));
        }
        let compare = match self.take() {
            Some(Token::Sign("=" | "==")) => Compare::Equal,
            Some(Token::Sign("<>" | "!=")) => Compare::NotEqual,
            Some(Token::Sign("<")) => Compare::Less,
            Some(Token::Sign("<=")) => Compare::LessOrEqual,
            Some(Token::Sign(">")) => Compare::Greater,
            Some(Token::Sign(">=")) => Compare::GreaterOrEqual,
            other => {
                return Err(format!(
                    "expected =, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS after {column}, found {}",
                    show(other.as_ref())
                ));
            }
        };
        Ok(Condition::Compare(column, compare, self.literal()?))
    }

    fn list(&mut self) -> Result<Vec<String>, String> {
        if !self.sign("(") {
            return Err(format!("expected ( after IN, found {}", show(self.peek())));
        }
        let mut literals = vec![self.literal()?];
        while self.sign(",") {
            literals.push(self.literal()?);
        }
        if self.sign(")") { Ok(literals) } else { Err(format!("expected , or ), found {}", show(self.peek()))) }
    }

    fn literal(&mut self) -> Result<String, String> {
        match self.take() {
            Some(Token::Text(text) | Token::Number(text)) => Ok(text),
            Some(Token::Word(word)) if ["true", "false"].iter().any(|bool| word.eq_ignore_ascii_case(bool)) => {
                Ok(word.to_ascii_lowercase())
            }
            other => Err(format!(
                "expected a number, a text in single quotes, TRUE or FALSE, found {}",
                show(other.as_ref())
            )),
        }
    }
}

fn negate(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}

fn like(column: String, pattern: &str) -> Result<Condition, String> {
    match pattern.strip_suffix('%') {
        Some(prefix) if !prefix.contains(['%', '_']) => Ok(Condition::StartsWith(column, prefix.to_owned())),
        None if !pattern.contains('_') && !pattern.contains('%') => {
            Ok(Condition::Compare(column, Compare::Equal, pattern.to_owned()))
        }
        _ => Err(format!("LIKE '{pattern}': only a prefix followed by one % is supported")),
    }
}

fn show(token: Option<&Token>) -> String {
    match token {
        None => "the end".to_owned(),
        Some(Token::Word(text) | Token::Number(text)) => text.clone(),
        Some(Token::Quoted(text)) => format!("`{text}`"),
        Some(Token::Text(text)) => format!("'{text}'"),
        Some(Token::Sign(sign)) => (*sign).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn and_binds_closer_than_or() {
        let compare = |column: &str| Box::new(Condition::Compare(column.to_owned(), Compare::Equal, "1".to_owned()));
        let expected = Condition::Or(
            compare("a"),
            Box::new(Condition::And(compare("b"), Box::new(Condition::Not(compare("c d"))))),
        );
        assert_eq!(parse("a = 1 or b=1 AND not `c d` == 1"), Ok(expected));
    }

    #[test]
    fn between_in_like_and_null() {
        assert_eq!(
            parse("a between -1 and 2.5"),
            Ok(Condition::And(
                Box::new(Condition::Compare("a".to_owned(), Compare::GreaterOrEqual, "-1".to_owned())),
                Box::new(Condition::Compare("a".to_owned(), Compare::LessOrEqual, "2.5".to_owned())),
            ))
        );
        assert_eq!(
            parse("a not in ('it''s', 'b')"),
            Ok(Condition::Not(Box::new(Condition::In("a".to_owned(), vec!["it's".to_owned(), "b".to_owned()]))))
        );
        assert_eq!(parse("a like 'x%'"), Ok(Condition::StartsWith("a".to_owned(), "x".to_owned())));
        assert_eq!(
            parse("(a is not null)"),
            Ok(Condition::Not(Box::new(Condition::IsNull("a".to_owned()))))
        );
    }

    #[test]
    fn errors_say_what_was_expected() {
        let errors: Vec<String> = ["", "a", "a = ", "a = 1 b", "a in 1", "(a = 1", "a = 'x", "a like '%x'", "a ~ 1", "a not 1"]
            .into_iter()
            .map(|text| parse(text).unwrap_err())
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @"");
    }
}
