//! Published expectations about robots.txt: what each of 400 questions must be answered.
//!
//! Source: the robots.txt specification test of google/robotstxt-spec-test (files, products, URLs
//! and outcomes only). The table has files after `= name`, with `\r`, `\xNN` and `\c` (no line end
//! here), and below each its questions: `+` or `-`, product, URL.

use url::Url;

use crate::robots::Rules;

const TABLE: &str = include_str!("expectations.txt");

/// Questions that are answered otherwise here, with the reason.
const DIFFERENCES: [(&str, &str); 4] = [
    (
        "+ foobot http://foo.com/allowed-slash/",
        "only Google takes a rule for index.html for one of its folder",
    ),
    (
        "- FooBot http://foo.bar/foo/bar/ツ",
        "RFC 9309 §2.2.2 encodes the URL before comparing; one that is not encoded is no URL",
    ),
    ("- FooBot http://foo.bar/foo/bar/ツ", "the same, with the pattern encoded"),
    (
        "- FooBot http://foo.bar/foo/bar/baz",
        "RFC 9309 §2.2.2 decodes unreserved characters before comparing",
    ),
];

#[test]
fn all_but_four_of_400_are_answered_as_published() {
    let mut file = Vec::new();
    let (mut count, mut others) = (0, Vec::new());
    for line in TABLE.lines() {
        if line.starts_with("= ") {
            file.clear();
        } else if let Some(question) =
            line.strip_prefix(['+', '-']).and_then(|it| it.strip_prefix(' '))
        {
            count += 1;
            if is_allowed(&file, question) != line.starts_with('+') {
                others.push(line);
            }
        } else {
            file.extend(unescape(line));
        }
    }
    assert_eq!(count, 400);
    assert_eq!(others, DIFFERENCES.map(|it| it.0));
}

fn is_allowed(file: &[u8], question: &str) -> bool {
    let (product, url) = match question.strip_prefix('"').and_then(|it| it.split_once("\" ")) {
        Some(quoted) => quoted,
        None => question.split_once(' ').unwrap(),
    };
    // No URL stands for the top of the host.
    let url = Url::parse(url).unwrap_or_else(|_| Url::parse("http://foo.bar/").unwrap());
    Rules::parse(file, product).rule(&url).is_none_or(|it| it.allow)
}

fn unescape(line: &str) -> Vec<u8> {
    let (line, end) = match line.strip_suffix("\\c") {
        Some(line) => (line, ""),
        None => (line, "\n"),
    };
    let mut bytes = Vec::new();
    let mut parts = line.split('\\');
    bytes.extend(parts.next().unwrap().bytes());
    for part in parts {
        let (byte, rest) = match part.strip_prefix('x') {
            Some(hex) => (u8::from_str_radix(&hex[..2], 16).unwrap(), &hex[2..]),
            None => (b'\r', part.strip_prefix('r').unwrap()),
        };
        bytes.push(byte);
        bytes.extend(rest.bytes());
    }
    bytes.extend(end.bytes());
    bytes
}
