//! Selectors: the part of a Gopher URL that the server is sent, and the types of objects.
//!
//! Source: RFC 4266 §2.1, RFC 1436 §3.8. A query in a URL belongs to the selector, as servers with
//! programs expect.
//!
//! Sans-I/O.

use url::Url;

use crate::fetch::unescaped;

/// Port of servers whose URLs name none.
pub const PORT: u16 = 70;

/// Longest selector, in bytes (RFC 1436, appendix).
const SELECTOR_BYTES_MAX: usize = 255;

/// Type of an object (RFC 1436 §3.8, and those in use since).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `0`: text.
    Text,
    /// `1`: a menu.
    Menu,
    /// `3`: an error, in menus only.
    Error,
    /// `7`: a search, which answers with a menu.
    Search,
    /// `i`: words in a menu, which lead nowhere.
    Info,
    /// `h`: HTML, or a URL of another protocol.
    Html,
    /// `2`, `8`, `T`: a phone book or a terminal session, which cannot be fetched.
    Session(u8),
    /// Anything else: a file, sent up to the end of the connection.
    File(u8),
}

/// The way in which an object is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Lines up to a lone dot.
    Lines,
    /// Bytes up to the end of the connection.
    Bytes,
}

impl Kind {
    /// Returns the type that a character stands for.
    pub fn of(character: u8) -> Self {
        match character {
            b'0' => Self::Text,
            b'1' => Self::Menu,
            b'3' => Self::Error,
            b'7' => Self::Search,
            b'i' => Self::Info,
            b'h' => Self::Html,
            b'2' | b'8' | b'T' => Self::Session(character),
            other => Self::File(other),
        }
    }

    /// Returns the character that stands for the type.
    pub fn character(self) -> u8 {
        match self {
            Self::Text => b'0',
            Self::Menu => b'1',
            Self::Error => b'3',
            Self::Search => b'7',
            Self::Info => b'i',
            Self::Html => b'h',
            Self::Session(other) | Self::File(other) => other,
        }
    }

    /// Returns how an object of this type is sent; `None` if it cannot be fetched.
    pub fn transfer(self) -> Option<Transfer> {
        match self {
            Self::Text | Self::Menu | Self::Search => Some(Transfer::Lines),
            Self::Html | Self::File(_) => Some(Transfer::Bytes),
            Self::Error | Self::Info | Self::Session(_) => None,
        }
    }
}

/// The object that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Its type; a menu if the URL has none.
    pub kind: Kind,
    /// The string by which the server knows it; has no CR, LF, TAB or NUL.
    pub text: Vec<u8>,
}

impl Selector {
    /// Returns the selector of a `gopher` URL.
    ///
    /// # Errors
    ///
    /// The fault: another scheme, a name or password, a type that cannot be fetched, or a selector
    /// that is too long or has CR, LF, TAB or NUL.
    pub fn of(url: &Url) -> Result<Self, String> {
        if url.scheme() != "gopher" {
            return Err(format!("{} is another scheme than gopher", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("Gopher has no names and passwords".to_owned());
        }
        let mut path = url.path().strip_prefix('/').unwrap_or_default().to_owned();
        if let Some(query) = url.query() {
            path = format!("{path}?{query}");
        }
        let path = unescaped(&path);
        let (kind, text) = match path.split_first() {
            None => (Kind::Menu, Vec::new()),
            Some((first, text)) => (Kind::of(*first), text.to_vec()),
        };
        if kind.transfer().is_none() {
            let character = char::from(kind.character());
            return Err(format!("an object of type {character:?} cannot be fetched"));
        }
        if !is_sendable(&text) {
            return Err("the selector has CR, LF, TAB or NUL, or more than 255 bytes".to_owned());
        }
        Ok(Self { kind, text })
    }

    /// Returns the request for the object.
    pub fn request(&self) -> Vec<u8> {
        [self.text.as_slice(), b"\r\n"].concat()
    }
}

/// Returns whether a selector can be sent as it is.
fn is_sendable(text: &[u8]) -> bool {
    text.len() <= SELECTOR_BYTES_MAX
        && !text.iter().any(|it| matches!(it, b'\r' | b'\n' | b'\t' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<(Kind, &[u8]), &str>) {
        let found = Selector::of(&Url::parse(url).unwrap());
        match (found, expected) {
            (Ok(found), Ok((kind, text))) => {
                assert_eq!((found.kind, found.text.as_slice()), (kind, text), "{url}");
            }
            (Err(message), Err(part)) => assert!(message.contains(part), "{url}: {message}"),
            (found, _) => panic!("{url}: {found:?}"),
        }
    }

    #[test]
    fn urls_name_type_and_selector() {
        check("gopher://h", Ok((Kind::Menu, b"")));
        check("gopher://h:7070/", Ok((Kind::Menu, b"")));
        check("gopher://h/1/a", Ok((Kind::Menu, b"/a")));
        check("gopher://h/0a%20b/%e9", Ok((Kind::Text, b"a b/\xe9")));
        check("gopher://h/9x?y", Ok((Kind::File(b'9'), b"x?y")));
        check("gopher://h//x", Ok((Kind::File(b'/'), b"x")));
    }

    #[test]
    fn what_would_be_another_request_is_refused() {
        for bad in ["0a%0d%0ab", "0a%0A", "7a%09query", "0%00"] {
            check(&format!("gopher://h/{bad}"), Err("CR, LF, TAB or NUL"));
        }
        check(&format!("gopher://h/0{}", "a".repeat(256)), Err("255 bytes"));
        check("gopher://h/8x", Err("type '8' cannot be fetched"));
        check("gopher://u:p@h/1", Err("no names and passwords"));
        check("http://h/1", Err("another scheme"));
    }
}
