//! A strict parser (RFC 8259) over one text.

use std::borrow::Cow;

use super::Json;

/// How deep arrays and objects may lie in each other.
pub const MAX_DEPTH: usize = 128;

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no JSON: {expected} at byte {at}")]
pub struct JsonError {
    /// The byte, counted from 1.
    pub at: usize,
    /// What is wrong or was expected there.
    pub expected: &'static str,
}

/// Reads a text that is one JSON value. Errors: the first byte that is wrong, or that it is deeper than [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Json<'_>, JsonError> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.end()?;
    Ok(value)
}

/// A member's name, and the text of its value.
pub type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of an object as the text of their values, which are checked but not built. `None`: another JSON value.
pub fn members(text: &str) -> Result<Option<Vec<Member<'_>>>, JsonError> {
    let mut parser = Parser { text, at: 0 };
    parser.blanks();
    if parser.peek() != Some(b'{') {
        parser.skip(0)?;
        parser.end()?;
        return Ok(None);
    }
    let mut members = Vec::new();
    parser.each(b'{', b'}', |parser| {
        let name = parser.name()?;
        parser.blanks();
        let start = parser.at;
        parser.skip(1)?;
        members.push((name, parser.between(start, parser.at)));
        Ok(())
    })?;
    parser.end()?;
    Ok(Some(members))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at + 1,
            expected,
        }
    }

    /// The text between two bytes that stand at characters' bounds.
    fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn end(&mut self) -> Result<(), JsonError> {
        self.blanks();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("expected the end of the record")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.blanks();
        self.check_depth(depth)?;
        match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.each(b'{', b'}', |parser| {
                    members.push((parser.name()?, parser.value(depth + 1)?));
                    Ok(())
                })?;
                Ok(Json::Object(members))
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                self.each(b'[', b']', |parser| {
                    elements.push(parser.value(depth + 1)?);
                    Ok(())
                })?;
                Ok(Json::Array(elements))
            }
            Some(b'"') => Ok(Json::String(self.string()?)),
            _ => self.scalar(),
        }
    }

    /// As [`value`](Self::value), building nothing but the texts' bounds.
    fn skip(&mut self, depth: usize) -> Result<(), JsonError> {
        self.blanks();
        self.check_depth(depth)?;
        match self.peek() {
            Some(b'{') => self.each(b'{', b'}', |parser| {
                parser.name()?;
                parser.skip(depth + 1)
            }),
            Some(b'[') => self.each(b'[', b']', |parser| parser.skip(depth + 1)),
            Some(b'"') => self.string().map(drop),
            _ => self.scalar().map(drop),
        }
    }

    fn check_depth(&self, depth: usize) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("arrays and objects nested deeper than 128"));
        }
        Ok(())
    }

    /// Calls `part` at each part of an array or object, which begins here.
    fn each(
        &mut self,
        open: u8,
        close: u8,
        mut part: impl FnMut(&mut Self) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        debug_assert_eq!(self.peek(), Some(open), "the caller looked");
        self.at += 1;
        self.blanks();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            part(self)?;
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => {
                    return Err(self.wrong(if close == b'}' {
                        "expected ',' or '}'"
                    } else {
                        "expected ',' or ']'"
                    }));
                }
            }
        }
    }

    /// A member's name and the colon after it.
    fn name(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.blanks();
        if self.peek() != Some(b'"') {
            return Err(self.wrong("expected a member's name"));
        }
        let name = self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.wrong("expected ':'"));
        }
        self.at += 1;
        Ok(name)
    }

    /// A text; its opening quote is here.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            match self.peek() {
                None => return Err(self.wrong("a text without its closing quote")),
                Some(b'"') => {
                    let rest = self.between(start, self.at);
                    self.at += 1;
                    return Ok(match unescaped {
                        None => Cow::Borrowed(rest),
                        Some(mut text) => {
                            text.push_str(rest);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_with(String::new);
                    text.push_str(self.text.get(start..self.at).unwrap_or_default());
                    self.at += 1;
                    let char = self.escaped()?;
                    text.push(char);
                    start = self.at;
                }
                Some(byte) if byte < b' ' => return Err(self.wrong("a control character in a text")),
                Some(_) => self.at += 1,
            }
        }
    }

    /// What follows a backslash.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let char = match self.peek() {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'u') => {
                self.at += 1;
                return self.code_point();
            }
            _ => return Err(self.wrong("an escape that is none")),
        };
        self.at += 1;
        Ok(char)
    }

    fn code_point(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        let code = if (0xD800..0xDC00).contains(&first) {
            if self.text.get(self.at..self.at + 2) != Some("\\u") {
                return Err(self.wrong("half of a surrogate pair"));
            }
            self.at += 2;
            let second = self.four_digits()?;
            if !(0xDC00..0xE000).contains(&second) {
                return Err(self.wrong("half of a surrogate pair"));
            }
            0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair"))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.wrong("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    /// A number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Result<Json<'a>, JsonError> {
        let rest = self.between(self.at, self.text.len());
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.digits() {
            0 => return Err(self.wrong("expected a value")),
            1 => {}
            _ if self.leads_with_zero(start) => {
                return Err(self.wrong("a number with a leading zero"));
            }
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.wrong("expected a digit"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.wrong("expected a digit"));
            }
        }
        Ok(Json::Number(self.between(start, self.at)))
    }

    fn leads_with_zero(&self, start: usize) -> bool {
        self.between(start, self.at).trim_start_matches('-').starts_with('0')
    }

    /// Passes digits; returns how many.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }
}
