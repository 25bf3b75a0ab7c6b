//! The smallest pieces of a query: words with their escapes and endings, names, slashes.
//!
//! Sans-I/O.

use super::{Bound, Value, number, period};

/// A word as typed, escapes resolved but remembered.
#[derive(Debug)]
pub(super) struct Typed {
    /// The characters: where in the text, which, and whether a backslash made it an ordinary one.
    chars: Vec<(usize, char, bool)>,
    /// How much of the text the word takes, in bytes.
    pub(super) len: usize,
}

impl Typed {
    /// Reads the word that `text` begins with.
    pub(super) fn read(text: &str) -> Self {
        let mut read = Self { chars: Vec::new(), len: text.len() };
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => read.chars.push((at, escaped, true)),
                    None => read.chars.push((at, '\\', true)),
                },
                '"' | '(' | ')' => return read.end(at),
                c if c.is_whitespace() => return read.end(at),
                c => read.chars.push((at, c, false)),
            }
        }
        read
    }

    fn end(mut self, at: usize) -> Self {
        self.len = at;
        self
    }

    /// The word without its escapes.
    pub(super) fn text(&self) -> String {
        self.chars.iter().map(|(_, c, _)| c).collect()
    }

    /// Whether it is `*`.
    pub(super) fn is_star(&self) -> bool {
        matches!(self.chars[..], [(_, '*', false)])
    }

    /// Reads it as `a..b`, `a..` or `..b`; `None` when it is rather a word. `ordered` says that
    /// the attribute holds numbers or dates; else the bounds have to look like such.
    pub(super) fn dots(&self, ordered: bool) -> Option<Value> {
        let at = self
            .chars
            .windows(2)
            .position(|pair| matches!(pair, [(_, '.', false), (_, '.', false)]))?;
        let text =
            |chars: &[(usize, char, bool)]| -> String { chars.iter().map(|(_, c, _)| c).collect() };
        let (low, high) = (text(self.chars.get(..at)?), text(self.chars.get(at + 2..)?));
        let looks_ordered =
            |text: &str| text.is_empty() || number(text).is_some() || period(text).is_some();
        if !(ordered || looks_ordered(&low) && looks_ordered(&high))
            || low.is_empty() && high.is_empty()
        {
            return None;
        }
        let bound = |text: String| {
            if text.is_empty() || text == "*" { Bound::Open } else { Bound::Inclusive(text) }
        };
        Some(Value::Range(bound(low), bound(high)))
    }

    /// Reads it as a word, a prefix or a fuzzy word.
    ///
    /// An error is where in the word, how long, in bytes, and what is wrong.
    pub(super) fn value(&self) -> Result<Value, (usize, usize, String)> {
        let text =
            |chars: &[(usize, char, bool)]| -> String { chars.iter().map(|(_, c, _)| c).collect() };
        let (body, ending) = self.split_ending();
        if let Some((at, ..)) = body.iter().find(|(_, c, escaped)| *c == '*' && !escaped) {
            let message =
                "a * stands for any ending, so only at the end of a word; write /…/ for more";
            return Err((*at, 1, message.to_owned()));
        }
        match ending {
            Ending::None => Ok(Value::Word(text(body))),
            Ending::Star => Ok(Value::Prefix(text(body))),
            Ending::Tilde(at, digits) => match digits.as_str() {
                "" | "1" => Ok(Value::Fuzzy(text(body), 1)),
                "2" => Ok(Value::Fuzzy(text(body), 2)),
                _ => Err((at, 1 + digits.len(), "expected ~1 or ~2: one edit or two".to_owned())),
            },
        }
    }

    /// Cuts off a `*` or a `~` with digits that has a word before it.
    fn split_ending(&self) -> (&[(usize, char, bool)], Ending) {
        let chars = &self.chars[..];
        if let [body @ .., (_, '*', false)] = chars
            && !body.is_empty()
        {
            return (body, Ending::Star);
        }
        let digits =
            chars.iter().rev().take_while(|(_, c, escaped)| c.is_ascii_digit() && !escaped).count();
        if let Some((before, digits)) = chars.split_at_checked(chars.len() - digits)
            && let [body @ .., (at, '~', false)] = before
            && !body.is_empty()
        {
            return (body, Ending::Tilde(*at, digits.iter().map(|(_, c, _)| c).collect()));
        }
        (chars, Ending::None)
    }
}

/// What a word ends in.
enum Ending {
    None,
    Star,
    /// Where the tilde is, in bytes from the word's start, and the digits after it.
    Tilde(usize, String),
}

/// Returns the attribute name when `text` begins with `name:`.
///
/// A name is a letter, then letters, digits, `-` and `_`. What has another colon or two slashes
/// after the colon is no name: `std::io`, `http://…`.
pub(super) fn field_name(text: &str) -> Option<&str> {
    let len = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        .count();
    let (name, rest) = text.split_at_checked(len)?;
    let after = rest.strip_prefix(':')?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && !after.starts_with(':') && !after.starts_with("//")).then_some(name)
}

/// What begins with a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slashed {
    /// `/pattern/`; the pattern has its escaped slashes resolved; `len` is in bytes, slashes included.
    Regex { pattern: String, len: usize },
    /// A regular expression, to judge by its characters, that does not end; its length in bytes.
    Open(usize),
    /// A path.
    Path,
}

/// Tells `/pattern/` from `/a/path`: a pattern's second slash ends it, before a space or a parenthesis.
pub(super) fn regex(text: &str) -> Slashed {
    let mut pattern = String::new();
    let mut chars = text.char_indices().skip(1);
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, '/')) => pattern.push('/'),
                Some((_, other)) => pattern.extend(['\\', other]),
                None => pattern.push('\\'),
            },
            '/' => {
                let after = text.get(at + 1..).and_then(|rest| rest.chars().next());
                let ends = after.is_none_or(|c| c.is_whitespace() || c == ')');
                if ends && !pattern.is_empty() {
                    return Slashed::Regex { pattern, len: at + 1 };
                }
                return Slashed::Path;
            }
            c if c.is_whitespace() => {
                end = at;
                break;
            }
            c => pattern.push(c),
        }
    }
    let special = pattern.contains(['[', '{', '|', '^', '$', '\\', '?'])
        || pattern.contains(".*")
        || pattern.contains(".+");
    if special { Slashed::Open(end) } else { Slashed::Path }
}
