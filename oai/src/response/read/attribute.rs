//! The attributes of a start tag, as XML has them.
//!
//! Source: XML 1.0 §2.3 (names), §3.1 (start tags).
//!
//! # Differences from the standard
//!
//! * Of names, characters beyond ASCII all pass: no name is served that was not received.

use super::walk::referred;

/// Most attributes of an element.
pub const ATTRIBUTES_MAX: usize = 128;

/// Goes through the attributes of a tag: name, and value as it is written.
///
/// A mistake ends it: a value that is not quoted, an attribute that is there twice, no space between two,
/// `<` or a reference to nothing in a value, or too many of them.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    raw: &'a str,
    rest: &'a str,
    first: usize,
    count: usize,
}

impl<'a> Attributes<'a> {
    /// Of what is between `<` and `>`, behind its name.
    pub(super) fn new(raw: &'a str, name_bytes: usize) -> Self {
        Self { raw, rest: raw.get(name_bytes..).unwrap_or_default(), first: name_bytes, count: 0 }
    }

    fn read(&mut self) -> Result<Option<(&'a str, &'a str)>, &'static str> {
        let trimmed = self.rest.trim_ascii_start();
        if trimmed.is_empty() {
            return Ok(None);
        }
        if trimmed.len() == self.rest.len() {
            return Err("no space between attributes");
        }
        let (name, rest) = trimmed.split_once('=').ok_or("an attribute without a value")?;
        let name = name.trim_ascii_end();
        let rest = rest.trim_ascii_start();
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''));
        let quote = quote.ok_or("an attribute's value without quotes")?;
        let (value, rest) = rest
            .get(1..)
            .and_then(|it| it.split_once(quote))
            .ok_or("a quote that is not closed")?;
        if !is_name(name) {
            return Err("the name of an attribute is none");
        }
        if value.contains('<') {
            return Err("< in an attribute");
        }
        if value.contains('&') && !are_references_sound(value) {
            return Err("a reference in an attribute that stands for nothing");
        }
        self.count += 1;
        if ATTRIBUTES_MAX < self.count {
            return Err("too many attributes");
        }
        if 1 < self.count && self.is_repeated(name) {
            return Err("an attribute that is there twice");
        }
        self.rest = rest;
        Ok(Some((name, value)))
    }

    /// Whether one of that name came before; those have been checked.
    fn is_repeated(&self, name: &str) -> bool {
        let mut rest = self.raw.get(self.first..).unwrap_or_default();
        for _ in 1..self.count {
            let Some((other, behind)) = rest.split_once('=') else { return false };
            if other.trim_ascii() == name {
                return true;
            }
            let behind = behind.trim_ascii_start();
            let quote = if behind.starts_with('"') { '"' } else { '\'' };
            let value = behind.get(1..).unwrap_or_default();
            rest = value.split_once(quote).map_or("", |(_, rest)| rest);
        }
        false
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(&'a str, &'a str), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.rest = "";
        }
        read.transpose()
    }
}

/// Whether a text can be the name of an element or attribute, with at most one prefix.
pub(super) fn is_name(name: &str) -> bool {
    let first = |it: u8| it.is_ascii_alphabetic() || it == b'_' || 0x80 <= it;
    let part = |it: &str| {
        let mut bytes = it.bytes();
        bytes.next().is_some_and(first)
            && bytes.all(|it| first(it) || it.is_ascii_digit() || matches!(it, b'.' | b'-'))
    };
    match name.split_once(':') {
        Some((prefix, local)) => part(prefix) && part(local),
        None => part(name),
    }
}

fn are_references_sound(value: &str) -> bool {
    value
        .split('&')
        .skip(1)
        .all(|it| it.split_once(';').is_some_and(|(reference, _)| referred(reference).is_some()))
}

/// A value with what its references stand for.
pub(super) fn unescaped(value: &str) -> String {
    let mut pieces = value.split('&');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (reference, rest) = piece.split_once(';').unwrap_or((piece, ""));
        text.extend(referred(reference));
        text.push_str(rest);
    }
    text
}
