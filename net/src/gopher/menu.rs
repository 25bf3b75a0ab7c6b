//! Gopher menus: lines of type, title, selector, host and port.
//!
//! Source: RFC 1436 §2 and §3.8, RFC 4266 §2.1. Titles are in UTF-8 or else Latin-1. A menu may end
//! without its dot; lines that are no items are counted and left out.
//!
//! Sans-I/O.

use url::Url;

use super::selector::{Kind, PORT, Selector};
use crate::fetch::{decode, escaped};

/// Longest line of a menu that is read, in bytes.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Maximum number of items of a menu that are read.
const ITEMS_MAX: usize = 100_000;

/// Beginning of the selector of an item that names a URL of another protocol.
const URL_PREFIXES: [&[u8]; 2] = [b"URL:", b"/URL:"];

/// A menu.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Menu {
    /// Its items, in their order; 100,000 at most.
    pub items: Vec<Item>,
    /// Number of lines that were left out: too long, no items, or too many.
    pub left_out: usize,
}

/// An item of a menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Type of the object that it leads to.
    pub kind: Kind,
    /// The words that a reader sees.
    pub title: String,
    /// The selector of the object.
    pub selector: Vec<u8>,
    /// The host that has it.
    pub host: String,
    /// The port of that host.
    pub port: u16,
}

impl Menu {
    /// Reads a menu.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut menu = Self::default();
        for line in bytes.split(|it| *it == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match line {
                b"" => {}
                b"." => break,
                line => match Item::parse(line) {
                    Some(item) if menu.items.len() < ITEMS_MAX => menu.items.push(item),
                    _ => menu.left_out += 1,
                },
            }
        }
        menu
    }
}

impl Item {
    fn parse(line: &[u8]) -> Option<Self> {
        if LINE_BYTES_MAX < line.len() {
            return None;
        }
        let (first, rest) = line.split_first()?;
        let kind = Kind::of(*first);
        // Gopher+ adds fields after the port.
        let mut fields = rest.split(|it| *it == b'\t');
        let title = decode(fields.next()?);
        if kind == Kind::Info {
            return Some(Self { kind, title, selector: Vec::new(), host: String::new(), port: 0 });
        }
        let selector = fields.next()?.to_vec();
        let host = decode(fields.next()?).trim().to_owned();
        let port = fields.next().map(decode).unwrap_or_default();
        let port = if port.trim().is_empty() { PORT } else { port.trim().parse().ok()? };
        Some(Self { kind, title, selector, host, port })
    }

    /// Returns the URL that the item leads to; `None` if it leads nowhere.
    pub fn url(&self) -> Option<Url> {
        for prefix in URL_PREFIXES {
            if let Some(url) =
                self.selector.strip_prefix(prefix).filter(|_| self.kind == Kind::Html)
            {
                return Url::parse(str::from_utf8(url).ok()?).ok();
            }
        }
        self.kind.transfer()?;
        if self.host.is_empty() {
            return None;
        }
        let mut url = Url::parse("gopher://h/").ok()?;
        url.set_host(Some(&self.host)).ok()?;
        url.set_port((self.port != PORT).then_some(self.port)).ok()?;
        let kind = escaped(&[self.kind.character()]);
        url.set_path(&format!("/{kind}{}", escaped(&self.selector)));
        // A path loses parts such as `/../`, and then names another object.
        let selector = Selector::of(&url).ok()?;
        (selector.kind == self.kind && selector.text == self.selector).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gopher::Selector;

    #[test]
    fn menus_are_read_as_servers_write_them() {
        let long = format!("0{}\ta\th\t70\r\n", "x".repeat(LINE_BYTES_MAX));
        let mut text = b"iWelcome\t\tnull.host\t1\r\ni caf\xe9\r\n1Sub dir\t/sub/\th\t7070\r\n\
            0\xc3\xa4\ta b\texample.org\t70\t+\n9x\tx\th\t99999\nno tabs\n7Find\t/s\th\t\n\
            hWeb\tURL:http://w.example/?a\th\t70\r\n8Login\t\th\t23\r\n"
            .to_vec();
        text.extend_from_slice(long.as_bytes());
        text.extend_from_slice(b"1Last\t\th\t70\n.\r\n1After\t\th\t70\r\n");
        let menu = Menu::parse(&text);
        assert_eq!(menu.left_out, 3);
        let items = menu.items.iter().map(|it| {
            format!("{} {}", it.title, it.url().map(|it| it.to_string()).unwrap_or_default())
        });
        let expected = [
            "Welcome ",
            " café ",
            "Sub dir gopher://h:7070/1/sub/",
            "ä gopher://example.org/0a%20b",
            "Find gopher://h/7/s",
            "Web http://w.example/?a",
            "Login ",
            "Last gopher://h/1",
        ];
        assert_eq!(items.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_would_be_another_request_has_no_url() {
        let item = |selector: &[u8], host: &str| Item {
            kind: Kind::Text,
            title: String::new(),
            selector: selector.to_vec(),
            host: host.to_owned(),
            port: 70,
        };
        assert!(item(b"a", "h").url().is_some());
        assert_eq!(item(b"a\rb", "h").url(), None);
        assert_eq!(item(b"a", "h/../x y").url(), None);
        assert_eq!(item(b"/../a", "h").url(), None);
        assert_eq!(item(b"a", "").url(), None);
    }

    proptest! {
        #[test]
        fn an_items_url_names_its_selector(
            selector in prop::collection::vec(1_u8..=255, 0..20),
            kind in 33_u8..127,
        ) {
            let kind = Kind::of(kind);
            let item = Item { kind, title: String::new(), selector, host: "h".to_owned(), port: 70 };
            if let Some(url) = item.url().filter(|it| it.scheme() == "gopher") {
                let url = Url::parse(url.as_str()).unwrap();
                let selector = Selector { kind, text: item.selector };
                prop_assert_eq!(Selector::of(&url), Ok(selector), "{}", url);
            }
        }
    }
}
