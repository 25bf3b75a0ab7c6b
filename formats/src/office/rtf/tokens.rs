//! The RTF tokenizer: groups, control words and text.
//!
//! Source: Microsoft's Rich Text Format Specification 1.9.1, "RTF Syntax".

/// Longest control word, in bytes.
const WORD_BYTES_MAX: usize = 32;
/// Longest number of a control word, in digits.
const DIGITS_MAX: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RtfToken<'t> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `\*`: a reader that does not know the group's word may skip the group.
    Optional,
    /// A control word with its number, or a control sign.
    Word(&'t str, Option<i64>),
    /// `\'e4`, and escaped characters.
    Byte(u8),
    /// Text, without line breaks.
    Text(&'t [u8]),
}

#[derive(Debug)]
pub(super) struct RtfTokens<'t> {
    rest: &'t [u8],
}

impl<'t> RtfTokens<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Self {
        Self { rest: bytes }
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Reads a control word or sign after a backslash; returns `None` at the end.
    fn control(&mut self) -> Option<RtfToken<'t>> {
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
            // Binary data, which may have braces in it.
            self.skip(number.and_then(|it| usize::try_from(it).ok()).unwrap_or(0));
        }
        Some(RtfToken::Word(word, number))
    }

    fn sign(&mut self) -> Option<RtfToken<'t>> {
        let sign = *self.rest.first()?;
        self.skip(1);
        Some(match sign {
            b'\'' => {
                let digits = self.rest.get(..2).and_then(|it| std::str::from_utf8(it).ok());
                match digits.and_then(|it| u8::from_str_radix(it, 16).ok()) {
                    Some(byte) => {
                        self.skip(2);
                        RtfToken::Byte(byte)
                    }
                    None => RtfToken::Byte(b'\''),
                }
            }
            b'*' => RtfToken::Optional,
            b'\n' | b'\r' => RtfToken::Word("par", None),
            b'\t' => RtfToken::Word("tab", None),
            b'~' => RtfToken::Word("~", None),
            b'_' => RtfToken::Word("_", None),
            b'{' | b'}' | b'\\' => RtfToken::Byte(sign),
            // Optional hyphens, and signs for indexes.
            _ => RtfToken::Word("", None),
        })
    }
}

impl<'t> Iterator for RtfTokens<'t> {
    type Item = RtfToken<'t>;

    fn next(&mut self) -> Option<RtfToken<'t>> {
        loop {
            let first = *self.rest.first()?;
            match first {
                b'{' | b'}' => {
                    self.skip(1);
                    return Some(if first == b'{' { RtfToken::Open } else { RtfToken::Close });
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
                return Some(RtfToken::Text(text));
            }
        }
    }
}
