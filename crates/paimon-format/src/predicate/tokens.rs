//! The words of a filter's text.

use crate::error::FormatError;
use crate::tokens::{Lexer, Token, Tokens};

/// Longer ones before those that they begin with.
const SIGNS: [(&str, &str); 11] = [
    ("<>", "<>"),
    ("!=", "<>"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "="),
    ("<", "<"),
    (">", ">"),
    ("=", "="),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// The words, names in backticks or double quotes.
pub(super) fn tokenize(text: &str) -> Result<Tokens<'_>, FormatError> {
    Tokens::new("filter", text, token)
}

fn token(lexer: &mut Lexer<'_>) -> Result<Token, FormatError> {
    Ok(match (lexer.peek(0).unwrap_or_default(), lexer.peek(1)) {
        ('\'', _) => Token::Text(lexer.quoted()?),
        ('`' | '"', _) => Token::Name(lexer.quoted()?),
        ('x' | 'X', Some('\'')) => {
            lexer.skip();
            Token::Hex(lexer.quoted()?)
        }
        (c, next)
            if c.is_ascii_digit()
                || matches!((c, next), ('.' | '-' | '+', Some(next)) if next.is_ascii_digit() || next == '.') =>
        {
            Token::Number(lexer.take_while(in_number))
        }
        (c, _) if c.is_alphabetic() || c == '_' => {
            Token::Word(lexer.take_while(|_, c| c.is_alphanumeric() || matches!(c, '_' | '$')))
        }
        _ => lexer.sign(&SIGNS)?,
    })
}

/// Whether a number goes on: sign, digits, point, exponent with its sign.
fn in_number(number: &str, c: char) -> bool {
    let sign = matches!(c, '-' | '+') && (number.is_empty() || number.ends_with(['e', 'E']));
    sign || c.is_ascii_alphanumeric() || c == '.'
}
