//! Text split into words and signs, and walked through: what the parsers of filters and of types share.

use crate::error::FormatError;

/// One word or sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word without quotes, its case as written.
    Word(String),
    /// A name in the quotes of names.
    Name(String),
    /// A text in single quotes.
    Text(String),
    /// Hexadecimal digits of `x'…'`.
    Hex(String),
    /// A number as written.
    Number(String),
    /// A sign; of several spellings the first.
    Sign(&'static str),
}

/// Characters being split.
pub(crate) struct Lexer<'a> {
    /// What the text is, for messages: `filter`, `type`.
    what: &'static str,
    text: &'a str,
    chars: Vec<char>,
    at: usize,
}

impl Lexer<'_> {
    pub(crate) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }

    /// The characters from here on for which this holds, given what was taken before.
    pub(crate) fn take_while(&mut self, holds: impl Fn(&str, char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek(0).filter(|c| holds(&taken, *c)) {
            taken.push(c);
            self.skip();
        }
        taken
    }

    /// What stands in the quotes that begin here; the quote itself is written twice.
    pub(crate) fn quoted(&mut self) -> Result<String, FormatError> {
        let start = self.at;
        let quote = self.peek(0);
        let mut content = String::new();
        self.skip();
        while let Some(c) = self.peek(0) {
            self.skip();
            if Some(c) == quote {
                if self.peek(0) != quote {
                    return Ok(content);
                }
                self.skip();
            }
            content.push(c);
        }
        Err(invalid(self.what, self.text, start, "a quote without end"))
    }

    /// The first of these signs, each a spelling with what it means, that stands here.
    pub(crate) fn sign(&mut self, signs: &[(&str, &'static str)]) -> Result<Token, FormatError> {
        let stands_here = |spelling: &str| spelling.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c));
        match signs.iter().find(|(spelling, _)| stands_here(spelling)) {
            Some((spelling, sign)) => {
                self.at += spelling.chars().count();
                Ok(Token::Sign(sign))
            }
            None => {
                let message = format!("{:?} has no meaning", self.peek(0).unwrap_or_default());
                Err(invalid(self.what, self.text, self.at, &message))
            }
        }
    }
}

/// The tokens of a text, and which one is next.
pub(crate) struct Tokens<'a> {
    what: &'static str,
    text: &'a str,
    /// With their positions, in characters.
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl<'a> Tokens<'a> {
    /// Splits a text by `token`, which takes the token that begins at the lexer's place, no white space.
    ///
    /// Errors: `Invalid` with the text and the position.
    pub(crate) fn new(
        what: &'static str,
        text: &'a str,
        token: impl Fn(&mut Lexer<'a>) -> Result<Token, FormatError>,
    ) -> Result<Self, FormatError> {
        let chars = text.chars().collect();
        let mut lexer = Lexer {
            what,
            text,
            chars,
            at: 0,
        };
        let mut tokens = Vec::new();
        while let Some(c) = lexer.peek(0) {
            if c.is_whitespace() {
                lexer.skip();
            } else {
                tokens.push((lexer.at, token(&mut lexer)?));
            }
        }
        Ok(Self {
            what,
            text,
            tokens,
            next: 0,
        })
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.next + ahead).map(|(_, token)| token)
    }

    pub(crate) fn skip(&mut self) {
        self.next += 1;
    }

    /// Passes over a keyword, in any case, if it is next.
    pub(crate) fn accept(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    pub(crate) fn demand(&mut self, keyword: &str) -> Result<(), FormatError> {
        match self.accept(keyword) {
            true => Ok(()),
            false => Err(self.expected(keyword)),
        }
    }

    pub(crate) fn accept_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.next += usize::from(found);
        found
    }

    pub(crate) fn demand_sign(&mut self, sign: &str) -> Result<(), FormatError> {
        match self.accept_sign(sign) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{sign}'"))),
        }
    }

    pub(crate) fn demand_end(&self, expected: &str) -> Result<(), FormatError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected(expected)),
        }
    }

    /// Where the next token is, in characters.
    pub(crate) fn position(&self) -> usize {
        match self.tokens.get(self.next) {
            Some((position, _)) => *position,
            None => self.text.chars().count(),
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn expected(&self, what: &str) -> FormatError {
        self.error(&format!("expected {what}"))
    }

    /// About the next token.
    pub(crate) fn error(&self, message: &str) -> FormatError {
        invalid(self.what, self.text, self.position(), message)
    }
}

fn invalid(what: &str, text: &str, position: usize, message: &str) -> FormatError {
    FormatError::invalid(format!("the {what} {text:?}: {message}, at position {position}"))
}
