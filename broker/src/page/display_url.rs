//! URLs on a page: only URLs that a browser may follow safely become links.
//!
//! A URL comes from a foreign collection. `javascript:`, `data:` and all other schemes that are not
//! in [`SCHEMES`] are shown as text. So are local files: browsers do not open them from a page, and
//! to a visitor from another machine they mean nothing.
//!
//! Sans-I/O.

use percent_encoding::percent_decode_str;
use serde::Serialize;
use url::Url;
use web::foreign::visible;

const SCHEMES: [&str; 7] = ["http", "https", "ftp", "ftps", "gopher", "news", "nntp"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DisplayUrl {
    /// The URL to link to, which people can open; `None` if it must not be a link.
    pub(crate) href: Option<String>,
    /// Text to show: the path of a `file:` URL, otherwise the URL.
    pub(crate) text: String,
    /// Whether this is the URL of a local file.
    #[serde(skip)]
    pub(crate) local: bool,
}

impl DisplayUrl {
    pub(crate) fn of(address: &str) -> Self {
        match Url::parse(address).ok() {
            Some(url) if url.scheme() == "file" => {
                Self { href: None, text: path(&url), local: true }
            }
            url => {
                let url = url.filter(|it| SCHEMES.contains(&it.scheme()));
                Self { href: url.map(Into::into), text: visible(address), local: false }
            }
        }
    }
}

/// Returns the path of a `file:` URL without percent-encoding, with the member of a container after
/// `#`.
fn path(url: &Url) -> String {
    let decoded = |encoded: &str| match percent_decode_str(encoded).decode_utf8() {
        Ok(text) => visible(&text),
        // Bytes that are not UTF-8 stay percent-encoded.
        Err(_) => encoded.to_owned(),
    };
    let path = decoded(url.path());
    match url.fragment() {
        Some(member) => format!("{path}#{}", decoded(member)),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, href: Option<&str>, text: &str) {
        let place = DisplayUrl::of(address);
        assert_eq!(place.href.as_deref(), href, "{address}");
        assert_eq!(place.text, text, "{address}");
        assert_eq!(place.local, address.starts_with("file:"), "{address}");
    }

    #[test]
    fn web_addresses_are_links() {
        check("http://h/a%20b?c#d", Some("http://h/a%20b?c#d"), "http://h/a%20b?c#d");
        check("ftp://h/x", Some("ftp://h/x"), "ftp://h/x");
    }

    #[test]
    fn files_are_shown_as_paths_and_are_no_links() {
        check("file:///srv/a%20b/%C3%A4.txt", None, "/srv/a b/ä.txt");
        check("file:///x.tar#member/a%20b", None, "/x.tar#member/a b");
        check("file:///a%FFb", None, "/a%FFb");
        check("file:///a%0Ab%E2%80%AEc", None, "/a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_url_that_could_run_is_no_link() {
        for address in [
            "javascript:alert(1)",
            " JaVaScRiPt:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "vbscript:x",
            "blob:http://h/x",
            "//h/x",
            "no address",
            "",
        ] {
            assert_eq!(DisplayUrl::of(address).href, None, "{address}");
        }
    }
}
