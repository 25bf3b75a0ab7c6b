//! The tokens of a query: words with their escapes and endings, attribute names, slashes.
//!
//! Sans-I/O.

use super::{Bound, Value, number, period};

/// A word as typed: escapes are resolved but remembered.
#[derive(Debug)]
pub(super) struct TypedWord {
    chars: Vec<TypedChar>,
    /// Length of the word in the text, in bytes.
    pub(super) len: usize,
}

impl TypedWord {
    /// Reads the word at the start of `text`.
    pub(super) fn read(text: &str) -> Self {
        let mut read = Self { chars: Vec::new(), len: text.len() };
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => read.chars.push((at, escaped, true)),
                    None => read.chars.push((at, '\\', true)),
                },
                '(' if !read.chars.is_empty() && chars.as_str().starts_with(')') => {
                    chars.next();
                    read.chars.extend([(at, '(', false), (at + 1, ')', false)]);
                }
                c if c.is_whitespace() || matches!(c, '"' | '(' | ')') => {
                    read.len = at;
                    break;
                }
                c => read.chars.push((at, c, false)),
            }
        }
        read
    }

    /// Returns the word without its escapes.
    pub(super) fn text(&self) -> String {
        text(&self.chars)
    }

    pub(super) fn is_star(&self) -> bool {
        matches!(self.chars[..], [(_, '*', false)])
    }

    /// Reads the word as `a..b`, `a..` or `..b`; `None` if it is no range. `ordered` says that the
    /// attribute holds numbers or dates; otherwise the bounds must look like them.
    pub(super) fn dots(&self, ordered: bool) -> Option<Value> {
        let at = self
            .chars
            .windows(2)
            .position(|pair| matches!(pair, [(_, '.', false), (_, '.', false)]))?;
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

    /// Returns the value: a plain word, a prefix (`word*`) or a fuzzy word (`word~`, `word~2`).
    ///
    /// An error is the mistake's offset in the word and its length, both in bytes, and a message.
    pub(super) fn value(&self) -> Result<Value, (usize, usize, String)> {
        let chars = &self.chars[..];
        if let [body @ .., (_, '*', false)] = chars
            && !body.is_empty()
        {
            return Ok(Value::Prefix(plain(body)?));
        }
        let digits =
            chars.iter().rev().take_while(|(_, c, escaped)| c.is_ascii_digit() && !escaped).count();
        if let Some((before, digits)) = chars.split_at_checked(chars.len() - digits)
            && let [body @ .., (at, '~', false)] = before
            && !body.is_empty()
        {
            let body = plain(body)?;
            return match text(digits).as_str() {
                "" | "1" => Ok(Value::Fuzzy(body, 1)),
                "2" => Ok(Value::Fuzzy(body, 2)),
                typed => {
                    Err((*at, 1 + typed.len(), "expected ~1 or ~2: one edit or two".to_owned()))
                }
            };
        }
        Ok(Value::Word(plain(chars)?))
    }
}

/// A character as typed: its offset in the text, and whether a backslash escaped it.
type TypedChar = (usize, char, bool);

fn text(chars: &[TypedChar]) -> String {
    chars.iter().map(|(_, c, _)| c).collect()
}

/// Returns the text of a word without its `*` or `~`; an error is as in [`TypedWord::value`].
fn plain(chars: &[TypedChar]) -> Result<String, (usize, usize, String)> {
    let Some((at, ..)) = chars.iter().find(|(_, c, escaped)| *c == '*' && !escaped) else {
        return Ok(text(chars));
    };
    let message = "a * stands for any ending, so only at the end of a word; write /…/ for more";
    Err((*at, 1, message.to_owned()))
}

/// Returns whether `text` begins with a program's option, such as `--no-ff`.
pub(super) fn is_option(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|it| it.starts_with(char::is_alphanumeric))
}

/// Returns the attribute name when `text` begins with `name:`.
///
/// A name is a letter, then letters, digits, `-` and `_`. Text with another colon or two slashes
/// after the colon has no name: `std::io`, `http://…`.
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

/// Kinds of text that begins with a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlashToken {
    /// `/pattern/`; escaped slashes are resolved. `len` is in bytes and includes the slashes.
    Regex {
        pattern: String,
        len: usize,
    },
    /// Probably a regular expression, by its characters, but without an end; its length in bytes.
    Open(usize),
    Path,
}

/// Distinguishes `/pattern/` from `/a/path`: after the second slash of a pattern comes a space, `)`
/// or the end. Without a second slash, signs such as `[` and `.*` make the text an open pattern.
pub(super) fn regex(text: &str) -> SlashToken {
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
                    return SlashToken::Regex { pattern, len: at + 1 };
                }
                return SlashToken::Path;
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
    if special { SlashToken::Open(end) } else { SlashToken::Path }
}
