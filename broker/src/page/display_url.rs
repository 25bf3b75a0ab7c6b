//! URLs on a page: only URLs that a browser may follow safely become links.
//!
//! A URL comes from a foreign collection. `javascript:`, `data:` and all other schemes that are not
//! in [`SCHEMES`] are shown as text.
//!
//! Sans-I/O.

use percent_encoding::percent_decode_str;
use serde::Serialize;
use url::Url;
use web::foreign::visible;

const SCHEMES: [&str; 8] = ["http", "https", "ftp", "ftps", "gopher", "news", "nntp", "file"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DisplayUrl {
    /// The URL to link to; `None` if it must not be a link.
    pub(crate) href: Option<String>,
    /// Text to show: the path of a `file:` URL, otherwise the URL.
    pub(crate) text: String,
    /// Whether this is the URL of a local file; browsers do not open local files from a page.
    #[serde(skip)]
    pub(crate) local: bool,
}

impl DisplayUrl {
    pub(crate) fn of(address: &str) -> Self {
        let parsed = Url::parse(address).ok().filter(|url| SCHEMES.contains(&url.scheme()));
        let Some(url) = parsed else {
            return Self { href: None, text: visible(address), local: false };
        };
        let local = url.scheme() == "file";
        let text = if local { path(&url) } else { visible(address) };
        Self { href: Some(url.into()), text, local }
    }

    /// Returns the URL that people can open; `None` for a file, which a browser would not open.
    pub(crate) fn openable(&self) -> Option<&str> {
        self.href.as_deref().filter(|_| !self.local)
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

    fn check(address: &str, href: Option<&str>, text: &str, openable: bool) {
        let place = DisplayUrl::of(address);
        assert_eq!(place.href.as_deref(), href, "{address}");
        assert_eq!(place.text, text, "{address}");
        assert_eq!(place.openable().is_some(), openable, "{address}");
    }

    #[test]
    fn web_addresses_are_links() {
        check("http://h/a%20b?c#d", Some("http://h/a%20b?c#d"), "http://h/a%20b?c#d", true);
        check("ftp://h/x", Some("ftp://h/x"), "ftp://h/x", true);
    }

    #[test]
    fn files_are_shown_as_paths() {
        check(
            "file:///srv/a%20b/%C3%A4.txt",
            Some("file:///srv/a%20b/%C3%A4.txt"),
            "/srv/a b/ä.txt",
            false,
        );
        check(
            "file:///x.tar#member/a%20b",
            Some("file:///x.tar#member/a%20b"),
            "/x.tar#member/a b",
            false,
        );
        check("file:///a%FFb", Some("file:///a%FFb"), "/a%FFb", false);
        check(
            "file:///a%0Ab%E2%80%AEc",
            Some("file:///a%0Ab%E2%80%AEc"),
            "/a\u{fffd}b\u{fffd}c",
            false,
        );
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
