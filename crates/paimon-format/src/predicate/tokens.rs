//! The words of a filter's text.

use crate::error::FormatError;

/// One word or sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word without quotes: a keyword or a column.
    Word(String),
    /// A column in backticks or double quotes.
    Name(String),
    /// A text in single quotes.
    Text(String),
    /// Hexadecimal digits of `x'…'`.
    Hex(String),
    /// A number as written.
    Number(String),
    /// `=`, `<>`, `<`, `<=`, `>`, `>=`, `(`, `)`, `,`; `!=` is read as `<>`, `==` as `=`.
    Sign(&'static str),
}

/// The words with their positions, in characters.
pub(super) fn tokenize(text: &str) -> Result<Vec<(usize, Token)>, FormatError> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let start = at;
        let next = chars.get(at + 1).copied();
        let token = match (c, next) {
            (c, _) if c.is_whitespace() => {
                at += 1;
                continue;
            }
            ('\'', _) => Token::Text(quoted(text, &chars, &mut at)?),
            ('`' | '"', _) => Token::Name(quoted(text, &chars, &mut at)?),
            ('x' | 'X', Some('\'')) => {
                at += 1;
                Token::Hex(quoted(text, &chars, &mut at)?)
            }
            (c, next)
                if c.is_ascii_digit()
                    || matches!((c, next), ('.' | '-' | '+', Some(next)) if next.is_ascii_digit() || next == '.') =>
            {
                Token::Number(number(&chars, &mut at))
            }
            (c, _) if c.is_alphabetic() || c == '_' => {
                let word = chars
                    .iter()
                    .skip(at)
                    .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
                let word: String = word.collect();
                at += word.chars().count();
                Token::Word(word)
            }
            _ => Token::Sign(
                sign(c, next, &mut at).ok_or_else(|| invalid(text, start, &format!("{c:?} has no meaning")))?,
            ),
        };
        tokens.push((start, token));
    }
    Ok(tokens)
}

/// What stands in quotes from `at` on; the quote itself is written twice.
fn quoted(text: &str, chars: &[char], at: &mut usize) -> Result<String, FormatError> {
    let start = *at;
    let quote = chars.get(start).copied();
    let mut content = String::new();
    *at += 1;
    loop {
        match (chars.get(*at), chars.get(*at + 1)) {
            (Some(&c), next) if Some(c) == quote => {
                *at += 1;
                if next.copied() != quote {
                    return Ok(content);
                }
                content.push(c);
            }
            (Some(&c), _) => content.push(c),
            (None, _) => return Err(invalid(text, start, "a quote without end")),
        }
        *at += 1;
    }
}

/// A number: sign, digits, point, exponent with its sign.
fn number(chars: &[char], at: &mut usize) -> String {
    let mut number = String::new();
    while let Some(&c) = chars.get(*at) {
        let after_exponent = number.ends_with(['e', 'E']);
        let sign = matches!(c, '-' | '+') && (number.is_empty() || after_exponent);
        if !(sign || c.is_ascii_alphanumeric() || c == '.') {
            break;
        }
        number.push(c);
        *at += 1;
    }
    number
}

fn sign(c: char, next: Option<char>, at: &mut usize) -> Option<&'static str> {
    let (sign, length) = match (c, next) {
        ('<', Some('>')) | ('!', Some('=')) => ("<>", 2),
        ('<', Some('=')) => ("<=", 2),
        ('>', Some('=')) => (">=", 2),
        ('=', Some('=')) => ("=", 2),
        ('<', _) => ("<", 1),
        ('>', _) => (">", 1),
        ('=', _) => ("=", 1),
        ('(', _) => ("(", 1),
        (')', _) => (")", 1),
        (',', _) => (",", 1),
        _ => return None,
    };
    *at += length;
    Some(sign)
}

pub(super) fn invalid(text: &str, position: usize, message: &str) -> FormatError {
    FormatError::invalid(format!("the filter {text:?}: {message}, at position {position}"))
}
