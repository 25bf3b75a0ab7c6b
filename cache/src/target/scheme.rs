//! Schemes other than HTTP's whose objects the cache fetches, and the one form of each of their URLs.
//!
//! Source: RFC 1738 §3.2 (`ftp`), RFC 4266 (`gopher`), RFC 5538 (`news`); TR §9 (lifetimes by scheme).
//!
//! Sans-I/O.

use net::fetch::{escaped, unescaped};
use net::{ftp, gopher};
use url::Url;

use crate::policy::freshness::Guess;

/// Seconds of a day.
const DAY: u32 = 86_400;

/// A scheme other than HTTP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `ftp`.
    Ftp,
    /// `gopher`.
    Gopher,
    /// `news`: a group or an article of the news server.
    News,
}

impl Scheme {
    /// Returns the scheme of a URL; `None`: it is HTTP's, or nothing is fetched by it.
    pub fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "ftp" => Some(Self::Ftp),
            "gopher" => Some(Self::Gopher),
            "news" => Some(Self::News),
            _ => None,
        }
    }

    /// Returns the port that its URLs lead to; `None`: they name no host.
    pub fn port(self, url: &Url) -> Option<u16> {
        match self {
            Self::Ftp => Some(url.port().unwrap_or(ftp::PORT)),
            Self::Gopher => Some(url.port().unwrap_or(gopher::PORT)),
            Self::News => None,
        }
    }

    /// Returns how the lifetime of its objects is guessed unless the settings say it: the protocols have
    /// no words for it.
    pub fn guess(self, url: &Url) -> Guess {
        let always = |it| Guess { min: it, percent: 0, max: it };
        match self {
            Self::Ftp => Guess { min: DAY, percent: 20, max: 7 * DAY },
            Self::Gopher => always(DAY),
            // An article never changes, and a group with each new one.
            Self::News if url.path().contains('@') => always(7 * DAY),
            Self::News => always(300),
        }
    }

    /// Returns a URL in the form in which all URLs of the same object have it.
    pub(super) fn canonical(self, url: Url) -> Option<Url> {
        match self {
            Self::Ftp => of_ftp(url),
            Self::Gopher => of_gopher(&url),
            Self::News => news_url(&news_name(&url)),
        }
    }
}

/// Returns the name of a group, or the message id of an article without its angle brackets.
pub(crate) fn news_name(url: &Url) -> String {
    let name = String::from_utf8_lossy(&unescaped(url.path())).into_owned();
    name.strip_prefix('<').and_then(|it| it.strip_suffix('>')).unwrap_or(&name).to_owned()
}

/// Returns the URL of a group, or of an article by its message id without angle brackets. `None`: it has no name.
pub(crate) fn news_url(name: &str) -> Option<Url> {
    let (local, at, domain) = match name.rsplit_once('@') {
        Some((local, domain)) => (local, "@", domain),
        None => (name, "", ""),
    };
    // Targets of requests may have some signs as they are (RFC 3986 §3.3).
    let sign = |it: u8| match it {
        b'/' => "%2F".to_owned(),
        it if b"!$&'()*+,;=".contains(&it) => char::from(it).to_string(),
        it => escaped(&[it]),
    };
    let text = |part: &str| part.bytes().map(sign).collect::<String>();
    Url::parse(&format!("news:{}{at}{}", text(local), text(domain))).ok()
}

/// Files are sent as they are, whatever type of transfer a URL names; a folder's path ends in a slash.
fn of_ftp(mut url: Url) -> Option<Url> {
    // A question mark is part of the path.
    if let Some(query) = url.query() {
        let path = format!("{}%3F{query}", url.path());
        url.set_query(None);
        url.set_path(&path);
    }
    let typed = url.path().rsplit_once(";type=").map(|(path, kind)| (path.to_owned(), kind));
    match typed {
        Some((path, "a" | "A" | "i" | "I")) => url.set_path(&path),
        Some((path, "d" | "D")) => url.set_path(&format!("{}/", path.trim_end_matches('/'))),
        _ => {}
    }
    if url.path().ends_with("%2F") {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Some(url)
}

/// The host is in lower case, as that of schemes which browsers know; without a type it is a menu.
fn of_gopher(url: &Url) -> Option<Url> {
    let host = url.host_str()?.to_ascii_lowercase();
    let port = url.port().filter(|it| *it != gopher::PORT);
    let port = port.map(|it| format!(":{it}")).unwrap_or_default();
    let path = if ["", "/"].contains(&url.path()) { "/1" } else { url.path() };
    let query = url.query().map(|it| format!("?{it}")).unwrap_or_default();
    Url::parse(&format!("gopher://{host}{port}{path}{query}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        let url = Url::parse(url).unwrap();
        let seen = Scheme::of(&url).unwrap().canonical(url.clone()).unwrap();
        assert_eq!(seen.as_str(), expected, "{url}");
        let again = Scheme::of(&seen).unwrap().canonical(seen.clone()).unwrap();
        assert_eq!(again, seen, "{url}");
    }

    #[test]
    fn urls_of_one_object_have_one_form() {
        check("ftp://H:21/a/../b;type=i", "ftp://h/b");
        check("ftp://h/b;type=D", "ftp://h/b/");
        check("ftp://h/%2F", "ftp://h/%2F/");
        check("ftp://h/a?b;type=a", "ftp://h/a%3Fb");
        check("gopher://H:70", "gopher://h/1");
        check("gopher://h:7070/", "gopher://h:7070/1");
        check("gopher://h/0a?B", "gopher://h/0a?B");
        check("news:comp.lang.c++", "news:comp.lang.c++");
        check("news:%3CA$1@h.example%3E", "news:A$1@h.example");
        check("news:a%2Fb%25+c@h", "news:a%2Fb%25+c@h");
    }
}
