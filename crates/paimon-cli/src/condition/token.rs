//! Text into tokens.

/// A word, a literal or a sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword, as written.
    Word(String),
    /// A name in backquotes or double quotes: never a keyword.
    Quoted(String),
    /// A text in single quotes, `''` being one quote.
    Text(String),
    /// A number, as written.
    Number(String),
    /// `=`, `<>`, `<=`, `(`, `,` …
    Sign(&'static str),
}

/// Cuts a condition into tokens. Errors name the place in characters from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: [&str; 11] = ["<>", "!=", "<=", ">=", "==", "=", "<", ">", "(", ")", ","];
    let mut rest = text;
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let place = || text.chars().count() - rest.chars().count() + 1;
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
        } else if matches!(first, '\'' | '"' | '`') {
            let (inner, after) = quoted(rest, first).ok_or_else(|| format!("place {}: {first} is not closed", place()))?;
            tokens.push(if first == '\'' { Token::Text(inner) } else { Token::Quoted(inner) });
            rest = after;
        } else {
            let end = rest
                .find(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '.' | '-' | '+' | '$')))
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_empty() {
                return Err(format!("place {}: unexpected {first:?}", place()));
            }
            let digits = word.trim_start_matches(['-', '+']);
            tokens.push(if digits.starts_with(|char: char| char.is_ascii_digit()) || digits.starts_with('.') {
                Token::Number(word.to_owned())
            } else {
                Token::Word(word.to_owned())
            });
            rest = after;
        }
    }
}

/// The text between two quotes, a doubled quote being one, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (before, after) = rest.split_once(quote)?;
        inner.push_str(before);
        match after.strip_prefix(quote) {
            Some(more) => {
                inner.push(quote);
                rest = more;
            }
            None => return Some((inner, after)),
        }
    }
}
