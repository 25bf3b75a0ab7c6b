//! Groups, control words and text of RTF.
//!
//! Source: Microsoft's Rich Text Format Specification 1.9.1, "RTF Syntax".
//!
//! Sans-I/O.

/// Longest control word, in bytes.
const WORD_BYTES_MAX: usize = 32;
/// Longest number of one, in digits.
const DIGITS_MAX: usize = 10;

/// One piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `\*`: what cannot make sense of the group may leave it out.
    Optional,
    /// A control word with its number, or a control sign.
    Word(&'t str, Option<i64>),
    /// `\'e4`, and signs that are escaped.
    Byte(u8),
    /// Text, without line breaks.
    Text(&'t [u8]),
}

/// The pieces of a document.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    rest: &'t [u8],
}

impl<'t> Tokens<'t> {
    /// Returns the pieces of `bytes`.
    pub(super) fn new(bytes: &'t [u8]) -> Self {
        Self { rest: bytes }
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Reads what follows a backslash; nothing if it is the last.
    fn control(&mut self) -> Option<Token<'t>> {
        let rest = self.rest;
        let letters = rest.iter().take(WORD_BYTES_MAX).take_while(|it| it.is_ascii_alphabetic());
        let count = letters.count();
        if count == 0 {
            return self.sign();
        }
        let word = rest.get(..count).and_then(|it| std::str::from_utf8(it).ok())?;
        self.skip(count);
        let minus = usize::from(self.rest.first() == Some(&b'-'));
        let digits = self.rest.iter().skip(minus).take(DIGITS_MAX);
        let digits = digits.take_while(|it| it.is_ascii_digit()).count();
        let mut number = None;
        if 0 < digits {
            let written =
                self.rest.get(..minus + digits).and_then(|it| std::str::from_utf8(it).ok());
            number = written.and_then(|it| it.parse().ok());
            self.skip(minus + digits);
        }
        if self.rest.first() == Some(&b' ') {
            self.skip(1);
        }
        if word == "bin" {
            // Bytes of any kind, a brace among them.
            self.skip(number.and_then(|it| usize::try_from(it).ok()).unwrap_or(0));
        }
        Some(Token::Word(word, number))
    }

    fn sign(&mut self) -> Option<Token<'t>> {
        let sign = *self.rest.first()?;
        self.skip(1);
        Some(match sign {
            b'\'' => {
                let digits = self.rest.get(..2).and_then(|it| std::str::from_utf8(it).ok());
                match digits.and_then(|it| u8::from_str_radix(it, 16).ok()) {
                    Some(byte) => {
                        self.skip(2);
                        Token::Byte(byte)
                    }
                    None => Token::Byte(b'\''),
                }
            }
            b'*' => Token::Optional,
            b'\n' | b'\r' => Token::Word("par", None),
            b'\t' => Token::Word("tab", None),
            b'~' => Token::Word("~", None),
            b'_' => Token::Word("_", None),
            b'{' | b'}' | b'\\' => Token::Byte(sign),
            // Optional hyphens, and signs of indexes.
            _ => Token::Word("", None),
        })
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let first = *self.rest.first()?;
            match first {
                b'{' | b'}' => {
                    self.skip(1);
                    return Some(if first == b'{' { Token::Open } else { Token::Close });
                }
                b'\\' => {
                    self.skip(1);
                    return self.control();
                }
                b'\r' | b'\n' | 0 => self.skip(1),
                _ => {}
            }
            let is_sign = |it: &u8| matches!(it, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
            let end = self.rest.iter().position(is_sign).unwrap_or(self.rest.len());
            if 0 < end {
                let text = self.rest.get(..end).unwrap_or_default();
                self.skip(end);
                return Some(Token::Text(text));
            }
        }
    }
}
