//! Codec of Gopher answers: bytes in, one object out.
//!
//! Text and menus end in a lone dot, or with the connection where the dot is missing. Some servers
//! add no dots to lines that begin with one. A text with such a line is taken as it came.
//!
//! Source: RFC 1436 §3.6 and §3.8.
//!
//! Sans-I/O.

use super::menu::Menu;
use super::selector::{Kind, Transfer};
use crate::fetch::{Dots, shown};

/// Longest answer that may be a server's error, in bytes.
const ERROR_BYTES_MAX: usize = 1_024;

/// Beginning of errors in plain text.
const PLAIN_ERROR: &[u8] = b"Error: ";

/// A fetched object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its type.
    pub kind: Kind,
    /// Its content. Of text and menus, without the final dot; line ends are as they came.
    pub bytes: Vec<u8>,
    /// Whether it is larger than allowed, so that only its beginning is here.
    pub truncated: bool,
}

/// Reader of one answer.
#[derive(Debug)]
pub struct Codec {
    fetched: Fetched,
    bytes_max: usize,
    /// The end of text and menus.
    dots: Option<Dots>,
}

impl Codec {
    /// Returns a reader of an object of this type, of which up to `bytes_max` bytes are kept.
    pub fn new(kind: Kind, bytes_max: usize) -> Self {
        let dots = (kind.transfer() == Some(Transfer::Lines)).then(Dots::keeping);
        let fetched = Fetched { kind, bytes: Vec::new(), truncated: false };
        Self { fetched, bytes_max, dots }
    }

    /// Takes the next bytes; returns whether the object is complete, or as large as allowed.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        let content = &mut self.fetched.bytes;
        let ended = match &mut self.dots {
            Some(dots) => dots.feed(bytes, content).is_some(),
            None => {
                content.extend_from_slice(bytes);
                false
            }
        };
        if self.bytes_max < content.len() {
            content.truncate(self.bytes_max);
            self.fetched.truncated = true;
        }
        ended || self.fetched.truncated
    }

    /// Returns the object, at its end or that of the connection.
    ///
    /// # Errors
    ///
    /// The server's words, if the answer is an error: a menu of nothing else, or a short line
    /// `Error: …`, as gophernicus sends for objects of all types.
    pub fn finish(self) -> Result<Fetched, String> {
        let mut fetched = self.fetched;
        if let Some(error) = error(fetched.kind, &fetched.bytes) {
            return Err(error);
        }
        if fetched.kind == Kind::Text {
            fetched.bytes = without_added_dots(fetched.bytes);
        }
        Ok(fetched)
    }
}

/// Returns the server's words if an answer is an error.
fn error(kind: Kind, bytes: &[u8]) -> Option<String> {
    if ERROR_BYTES_MAX < bytes.len() {
        return None;
    }
    let bytes = bytes.strip_suffix(b".\r\n").unwrap_or(bytes);
    let mut lines = bytes.split(|it| *it == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.next()?;
    let is_line = lines.all(is_footer);
    if is_line && first.starts_with(PLAIN_ERROR) {
        return Some(shown(first));
    }
    // Where a file is expected, only an item that leads nowhere is an error.
    let is_menu = matches!(kind, Kind::Menu | Kind::Search);
    let is_nowhere = || {
        [&b"\terror.host\t"[..], b"\tnull.host\t", b"\t\t"]
            .iter()
            .any(|it| bytes.windows(it.len()).any(|window| window == *it))
    };
    if !bytes.starts_with(b"3") || !(is_menu || is_line && is_nowhere()) {
        return None;
    }
    let items = Menu::parse(bytes).items;
    let item = items.first()?;
    let only_errors = items.iter().all(|it| matches!(it.kind, Kind::Error | Kind::Info));
    (only_errors && item.kind == Kind::Error).then(|| shown(item.title.as_bytes()))
}

/// Returns whether a line belongs to what gophernicus adds below: a rule, and its name.
fn is_footer(line: &[u8]) -> bool {
    line.iter().all(|it| *it == b'_') || line.starts_with(b"Gophered by ")
}

/// Takes away the dots that the server has added, if it adds any.
fn without_added_dots(text: Vec<u8>) -> Vec<u8> {
    let lines = || text.split_inclusive(|it| *it == b'\n');
    if lines().any(|it| it.starts_with(b".") && !it.starts_with(b"..")) {
        return text;
    }
    lines().flat_map(|it| it.strip_prefix(b".").unwrap_or(it)).copied().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(kind: Kind, bytes: &[u8], piece: usize, bytes_max: usize) -> Result<Fetched, String> {
        let mut codec = Codec::new(kind, bytes_max);
        for part in bytes.chunks(piece) {
            if codec.feed(part) {
                break;
            }
        }
        codec.finish()
    }

    #[track_caller]
    fn check(kind: Kind, bytes: &[u8], expected: Result<&[u8], &str>) {
        for piece in 1..=bytes.len() {
            let found = read(kind, bytes, piece, 1 << 20).map(|it| it.bytes);
            let expected = expected.map(<[u8]>::to_vec).map_err(str::to_owned);
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn text_ends_in_a_dot_or_with_the_connection() {
        check(Kind::Text, b"a\r\n..b\r\n.\r\n", Ok(b"a\r\n.b\r\n"));
        check(Kind::Text, b"a\r\n..b", Ok(b"a\r\n.b"));
        check(Kind::Text, b"..a\r\n.b\r\n.\r\n", Ok(b"..a\r\n.b\r\n"));
        check(Kind::File(b'9'), b"..a\r\n.\r\nb", Ok(b"..a\r\n.\r\nb"));
    }

    #[test]
    fn errors_in_place_of_an_object_are_recognized() {
        let plain = b"Error: File or directory not found!\r\n";
        for kind in [Kind::Text, Kind::Menu, Kind::File(b'9')] {
            check(kind, plain, Err("Error: File or directory not found!"));
            check(kind, b"3not here\t\terror.host\t1\r\n.\r\n", Err("not here"));
        }
        let with_footer = b"Error: no (null)\r\n____\r\n     Gophered by Gophernicus/3.1.1\r\n";
        check(Kind::Text, with_footer, Err("Error: no (null)"));
        check(Kind::Text, b"Error: a\r\nError: b\r\n.\r\n", Ok(b"Error: a\r\nError: b\r\n"));
        check(Kind::Text, b"3 apples\r\n", Ok(b"3 apples\r\n"));
        let mixed = b"3broken\t\th\t1\r\n0a\ta\th\t70\r\n";
        check(Kind::Menu, mixed, Ok(mixed));
    }

    #[test]
    fn a_large_object_is_cut() {
        let read = read(Kind::File(b'9'), &[7; 100], 9, 10).unwrap();
        assert_eq!((read.bytes, read.truncated), (vec![7; 10], true));
    }

    proptest! {
        #[test]
        fn a_text_is_read_as_it_was_before_dots_were_added(
            lines in prop::collection::vec("[.a-c]{0,4}", 0..9),
            piece in 1_usize..9,
        ) {
            let text: String = lines.iter().map(|it| format!("{it}\r\n")).collect();
            let dotted: String = lines
                .iter()
                .map(|it| if it.starts_with('.') { format!(".{it}\r\n") } else { format!("{it}\r\n") })
                .collect();
            let sent = format!("{dotted}.\r\n");
            let fetched = read(Kind::Text, sent.as_bytes(), piece, 1 << 20).unwrap();
            prop_assert_eq!(fetched.bytes, text.into_bytes());
        }
    }
}
