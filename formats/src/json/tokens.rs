//! The JSON tokenizer: keys, values and brackets, in order.
//!
//! Source: RFC 8259 §2 to §7.
//!
//! # Differences from the specification
//!
//! * Commas and the kinds of brackets are not checked. So documents that are cut off, have comments or are
//!   several values in one file (JSON lines) are read as far as they make sense.

use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonToken<'t> {
    /// `{` or `[`.
    Open,
    /// `}` or `]`.
    Close,
    /// The name of a member.
    Key(Cow<'t, str>),
    String(Cow<'t, str>),
    /// A number, `true`, `false` or `null`.
    Scalar(&'t str),
}

#[derive(Debug)]
pub(crate) struct JsonTokens<'t> {
    rest: &'t str,
}

impl<'t> JsonTokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// Reads the text after an opening quote.
    fn string(&mut self, quoted: &'t str) -> JsonToken<'t> {
        let end = string_end(quoted.as_bytes(), 0);
        let inner = quoted.get(..end).unwrap_or_default();
        let is_escaped = memchr::memchr(b'\\', inner.as_bytes()).is_some();
        let inner = if is_escaped { Cow::Owned(unescaped(inner)) } else { Cow::Borrowed(inner) };
        self.rest = quoted.get(end + 1..).unwrap_or_default().trim_start();
        match self.rest.strip_prefix(':') {
            Some(value) => {
                self.rest = value;
                JsonToken::Key(inner)
            }
            None => JsonToken::String(inner),
        }
    }
}

impl<'t> Iterator for JsonTokens<'t> {
    type Item = JsonToken<'t>;

    fn next(&mut self) -> Option<JsonToken<'t>> {
        loop {
            self.rest = self.rest.trim_start_matches(|it: char| {
                it.is_whitespace() || matches!(it, ',' | ':' | '\u{feff}' | '\u{1e}')
            });
            let first = self.rest.chars().next()?;
            let after = self.rest.get(first.len_utf8()..).unwrap_or_default();
            match first {
                '{' | '[' | '}' | ']' => {
                    self.rest = after;
                    return Some(if matches!(first, '{' | '[') {
                        JsonToken::Open
                    } else {
                        JsonToken::Close
                    });
                }
                '"' => return Some(self.string(after)),
                _ => {}
            }
            let ends = |it: char| it.is_whitespace() || "{}[],:\"".contains(it);
            let end = self.rest.find(ends).unwrap_or(self.rest.len());
            let (scalar, rest) = self.rest.split_at(end);
            self.rest = rest;
            if first == '/' {
                // A comment: JSON has none, but some programs write them.
                self.rest = rest.split_once('\n').map_or("", |(_, after)| after);
                continue;
            }
            return Some(JsonToken::Scalar(scalar));
        }
    }
}

/// Returns the position of the closing quote of the string around `start`; else the end.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if bytes.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

fn unescaped(inner: &str) -> String {
    let mut plain = String::with_capacity(inner.len());
    let mut rest = inner;
    // The first half of a surrogate pair.
    let mut high = None;
    while let Some((before, escaped)) = rest.split_once('\\') {
        if !before.is_empty() {
            high = None;
        }
        plain.push_str(before);
        let mut characters = escaped.chars();
        let kind = characters.next();
        rest = characters.as_str();
        match kind {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('b' | 'f') => plain.push(' '),
            Some('u') => {
                let code = rest.get(..4).and_then(|it| u32::from_str_radix(it, 16).ok());
                let Some(code) = code else { continue };
                rest = rest.get(4..).unwrap_or_default();
                match (high.take(), code) {
                    (_, 0xd800..0xdc00) => high = Some(code),
                    (Some(high), 0xdc00..0xe000) => {
                        let code = 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00);
                        plain.extend(char::from_u32(code));
                    }
                    _ => plain.push(char::from_u32(code).unwrap_or('\u{fffd}')),
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let tokens = JsonTokens::new(text).map(|token| match token {
            JsonToken::Open => "(".to_owned(),
            JsonToken::Close => ")".to_owned(),
            JsonToken::Key(key) => format!("{key}:"),
            JsonToken::String(value) => format!("{value:?}"),
            JsonToken::Scalar(value) => value.to_owned(),
        });
        assert_eq!(tokens.collect::<Vec<_>>().join(" "), expected, "{text}");
    }

    #[test]
    fn documents() {
        check(
            r#"{"a": [1, "b", {"c" : null}], "d": -1.5e3}"#,
            r#"( a: ( 1 "b" ( c: null ) ) d: -1.5e3 )"#,
        );
        check(r#""\u00e4\ud83d\ude00\"\\\/\n""#, r#""ä😀\"\\/\n""#);
        check("{\"a\":1}\n{\"a\":2}\n", "( a: 1 ) ( a: 2 )");
        check("[1, // one\n2]", "( 1 2 )");
    }

    #[test]
    fn broken_documents_are_read_as_far_as_possible() {
        check(r#"{"a": "cut o"#, r#"( a: "cut o""#);
        check(r#""\ud800x\udc00\u12""#, "\"x\u{fffd}12\"");
        check("\"a\\", "\"a\"");
        check("]]}:,", ") ) )");
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "([\\[\\]{}\",:\\\\u0-9a-f/ \n]|\\PC){0,80}") {
            prop_assert!(JsonTokens::new(&text).count() <= text.len());
        }

        #[test]
        fn strings_are_read_as_they_were_written(text in "\\PC{0,40}") {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(JsonTokens::new(&written).collect::<Vec<_>>(), [JsonToken::String(text.into())]);
        }
    }
}
