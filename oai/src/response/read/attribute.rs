//! The attributes of a start tag.
//!
//! Source: XML 1.0 §2.3 (names), §3.1 (start tags).
//!
//! # Differences from the standard
//!
//! * All non-ASCII characters are accepted in names, because we serve only names that we have
//!   received.

use super::walk::referred;

/// Maximum number of attributes of an element.
pub const ATTRIBUTES_MAX: usize = 128;

/// Iterator over the attributes of a tag: name, and raw value.
///
/// It ends with an error in these cases: a value without quotes, a repeated attribute, no space
/// between two attributes, `<` or an invalid reference in a value, or too many attributes.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    raw: &'a str,
    rest: &'a str,
    first: usize,
    count: usize,
}

impl<'a> Attributes<'a> {
    /// Iterates over the attributes of `raw`, the text between `<` and `>`, after a name of
    /// `name_bytes`.
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
            return Err("an attribute with an invalid name");
        }
        if memchr::memchr(b'<', value.as_bytes()).is_some() {
            return Err("< in an attribute");
        }
        if memchr::memchr(b'&', value.as_bytes()).is_some() && !are_references_sound(value) {
            return Err("an unknown reference in an attribute");
        }
        self.count += 1;
        if ATTRIBUTES_MAX < self.count {
            return Err("too many attributes");
        }
        if 1 < self.count && self.is_repeated(name) {
            return Err("a repeated attribute");
        }
        self.rest = rest;
        Ok(Some((name, value)))
    }

    /// Returns whether an earlier attribute has that name; earlier ones have been checked.
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

/// Role of a byte that cannot be in a name.
const NONE: u8 = 0;
/// Role of a byte that can be in a name, but not begin it.
const LATER: u8 = 1;
/// Role of a byte that can begin a name.
const FIRST: u8 = 2;
/// Role of the colon, which ends a prefix.
const COLON: u8 = 3;

const IN_NAMES: [u8; 256] = {
    let mut table = [NONE; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => FIRST,
            b'0'..=b'9' | b'.' | b'-' => LATER,
            b':' => COLON,
            _ => NONE,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};

/// Returns whether a text is a valid name of an element or attribute, with at most one prefix.
pub(super) fn is_name(name: &str) -> bool {
    let (mut begins, mut colons) = (true, 0);
    for byte in name.bytes() {
        match IN_NAMES[usize::from(byte)] {
            FIRST => begins = false,
            LATER if !begins => {}
            COLON if !begins && colons == 0 => (begins, colons) = (true, 1),
            _ => return false,
        }
    }
    !begins
}

fn are_references_sound(value: &str) -> bool {
    value
        .split('&')
        .skip(1)
        .all(|it| it.split_once(';').is_some_and(|(reference, _)| referred(reference).is_some()))
}

/// Returns a value with its references replaced.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: Result<&[(&str, &str)], &str>) {
        let name = raw.find([' ', '\n']).unwrap_or(raw.len());
        let found: Result<Vec<_>, _> = Attributes::new(raw, name).collect();
        assert_eq!(found.as_deref().map_err(|it| *it), expected, "{raw}");
    }

    #[test]
    fn attributes_follow_xml() {
        check("a", Ok(&[]));
        check("a ", Ok(&[]));
        check("a b='1'\n c:d = \"&lt;'\" ", Ok(&[("b", "1"), ("c:d", "&lt;'")]));
        check("a b='1'c='2'", Err("no space between attributes"));
        check("a b", Err("an attribute without a value"));
        check("a b=1", Err("an attribute's value without quotes"));
        check("a b='1", Err("a quote that is not closed"));
        check("a b='<'", Err("< in an attribute"));
        check("a b='&x;'", Err("an unknown reference in an attribute"));
        check("a b='&amp'", Err("an unknown reference in an attribute"));
        check("a b='=' c='' b=''", Err("a repeated attribute"));
        check("a 1='2'", Err("an attribute with an invalid name"));
        let many: String = (0..=ATTRIBUTES_MAX).map(|nth| format!(" a{nth}=''")).collect();
        check(&format!("a{many}"), Err("too many attributes"));
    }

    #[test]
    fn names_have_one_prefix_at_most() {
        for name in ["a", "_", "a-b.c1", "a:b", "é:ü"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "1", "-a", "a:", ":a", "a:1", "a:b:c", "a b", "a/"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
