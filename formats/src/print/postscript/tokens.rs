//! The PostScript tokenizer.
//!
//! Source: PostScript Language Reference, third edition, §3.2 (syntax); DSC 3.0 §6 (`%%BeginData`).

use memchr::{memchr, memchr2, memmem};

/// Longest name or number, in bytes.
const WORD_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PsToken<'a> {
    /// `/name`.
    Literal(&'a [u8]),
    /// `name`.
    Name(&'a [u8]),
    Number(f64),
    /// `(text)` or `<74657874>`, decoded.
    String(Vec<u8>),
    OpenArray,
    CloseArray,
    OpenProcedure,
    CloseProcedure,
    /// A comment, with its `%`, without the end of its line.
    Comment(&'a [u8]),
}

pub(super) struct PsTokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0 | 12)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

impl<'a> PsTokens<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<PsToken<'a>> {
        loop {
            let space = self.rest().iter().position(|it| !is_space(*it))?;
            self.at += space;
            let first = *self.rest().first()?;
            self.at += 1;
            return Some(match first {
                b'%' => self.comment(),
                b'(' => PsToken::String(self.string()),
                b'<' if self.rest().first() == Some(&b'<') => {
                    self.at += 1;
                    continue;
                }
                b'<' => PsToken::String(self.hexadecimal()),
                b'[' => PsToken::OpenArray,
                b']' => PsToken::CloseArray,
                b'{' => PsToken::OpenProcedure,
                b'}' => PsToken::CloseProcedure,
                b'>' | b')' => continue,
                b'/' => {
                    self.at += usize::from(self.rest().first() == Some(&b'/'));
                    PsToken::Literal(self.word())
                }
                _ => {
                    self.at -= 1;
                    let word = self.word();
                    if word == b"eexec" {
                        self.skip_past(b"cleartomark");
                        continue;
                    }
                    number(word).map_or(PsToken::Name(word), PsToken::Number)
                }
            });
        }
    }

    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|it| is_space(*it) || is_delimiter(*it));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        word.get(..word.len().min(WORD_BYTES_MAX)).unwrap_or_default()
    }

    fn comment(&mut self) -> PsToken<'a> {
        let rest = self.bytes.get(self.at - 1..).unwrap_or_default();
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let comment = rest.get(..end).unwrap_or_default();
        self.at += end.saturating_sub(1);
        for mark in [b"%%BeginData:".as_slice(), b"%%BeginBinary:"] {
            let Some(count) = comment.strip_prefix(mark) else { continue };
            let count = String::from_utf8_lossy(count);
            // Data counted in lines is text, and harmless.
            let bytes = !count.contains("Lines");
            let count = count.split_whitespace().next().and_then(|it| it.parse::<usize>().ok());
            if let (true, Some(count)) = (bytes, count) {
                self.at = self.at.saturating_add(count).min(self.bytes.len());
            }
        }
        PsToken::Comment(comment)
    }

    fn skip_past(&mut self, mark: &[u8]) {
        let offset = memmem::find(self.rest(), mark);
        self.at = offset.map_or(self.bytes.len(), |it| self.at + it + mark.len());
    }

    /// Decodes a string after its opening parenthesis.
    fn string(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 1_usize;
        while let Some(byte) = self.rest().first().copied() {
            self.at += 1;
            let byte = match byte {
                b'(' => {
                    depth += 1;
                    byte
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    byte
                }
                b'\\' => match self.escape() {
                    Some(byte) => byte,
                    None => continue,
                },
                _ => byte,
            };
            text.push(byte);
        }
        text
    }

    fn escape(&mut self) -> Option<u8> {
        let byte = *self.rest().first()?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'0'..=b'7' => {
                let mut code = u16::from(byte - b'0');
                for _ in 0..2 {
                    let Some(next @ b'0'..=b'7') = self.rest().first() else { break };
                    code = code * 8 + u16::from(next - b'0');
                    self.at += 1;
                }
                code.to_be_bytes()[1]
            }
            b'\r' => {
                self.at += usize::from(self.rest().first() == Some(&b'\n'));
                return None;
            }
            b'\n' => return None,
            other => other,
        })
    }

    /// Decodes a string of hexadecimal digits; returns an empty one for base 85.
    fn hexadecimal(&mut self) -> Vec<u8> {
        let rest = self.rest();
        let end = memchr(b'>', rest).unwrap_or(rest.len());
        self.at += end + 1;
        let digits = rest.get(..end).unwrap_or_default();
        if digits.starts_with(b"~") {
            return Vec::new();
        }
        let mut digits = digits.iter().filter_map(|it| char::from(*it).to_digit(16));
        let mut text = Vec::new();
        while let Some(high) = digits.next() {
            let byte = high * 16 + digits.next().unwrap_or_default();
            text.extend(u8::try_from(byte));
        }
        text
    }
}

fn number(word: &[u8]) -> Option<f64> {
    let first = *word.first()?;
    if !matches!(first, b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok().filter(|it: &f64| it.is_finite())
}
