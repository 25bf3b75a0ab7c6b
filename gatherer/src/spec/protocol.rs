//! Protocols of roots elsewhere, and the addresses at which they begin.
//!
//! Source: RFC 1738 §3.2 (FTP), RFC 4266 (Gopher), RFC 5538 (News).
//!
//! Sans-I/O.

use url::Url;

/// The protocol by which the objects of a root elsewhere are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, with or without TLS.
    Web,
    /// FTP, with or without TLS.
    Ftp,
    /// Gopher.
    Gopher,
    /// News, with or without TLS.
    News,
}

impl Protocol {
    /// Returns the protocol of a URL; `None` if it is another.
    pub fn of(url: &Url) -> Option<Self> {
        Self::of_scheme(url.scheme())
    }

    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        Some(match scheme {
            "http" | "https" => Self::Web,
            "ftp" | "ftps" => Self::Ftp,
            "gopher" => Self::Gopher,
            "news" | "snews" => Self::News,
            _ => return None,
        })
    }

    /// Returns its schemes.
    pub(crate) fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Web => &["http", "https"],
            Self::Ftp => &["ftp", "ftps"],
            Self::Gopher => &["gopher"],
            Self::News => &["news", "snews"],
        }
    }

    /// Returns whether its servers list what they have, so that what they do not list is not there.
    pub(crate) fn lists_all(self) -> bool {
        matches!(self, Self::Ftp | Self::News)
    }
}

/// Returns the URL at which a root begins. A newsgroup without a server (`news:comp.answers`) is at `server`: a
/// name, with its port if it has another, or `snews://NAME` for TLS.
///
/// # Errors
///
/// The fault, for people: it is no address, or not of these protocols, or there is no server.
pub fn start(text: &str, server: Option<&str>) -> Result<Url, String> {
    let found = Url::parse(text).map_err(|error| format!("{text:?} is no address: {error}"))?;
    let group = match found.scheme() {
        "news" | "nntp" if !found.has_host() => Some(found.path().trim_start_matches('/')),
        _ => None,
    };
    let mut url = match (group, server) {
        // The usual name of the protocol means the same.
        (None, None) if found.scheme() == "nntp" => {
            return start(&text.replacen("nntp", "news", 1), None);
        }
        (None, None) => found,
        (None, Some(_)) => return Err("`server` is for news:GROUP without a server".to_owned()),
        (Some(group), None) => {
            return Err(format!(
                "{group:?} is at no server: name one, as in news://news.example.org/{group}"
            ));
        }
        (Some(group), Some(server)) => {
            let base =
                if server.contains("://") { server.to_owned() } else { format!("news://{server}") };
            let base = base.trim_end_matches('/').replacen("nntp", "news", 1);
            let wrong = |error| format!("{server:?} is no news server: {error}");
            Url::parse(&format!("{base}/{group}")).map_err(wrong)?
        }
    };
    url.set_fragment(None);
    // A host is as DNS knows it, whatever the scheme; the parser sees to that for the web's alone.
    let host = url.host_str().filter(|it| !it.is_empty()).map(url::Host::parse);
    let Some(Ok(host)) = host else { return Err(format!("{text:?} names no host")) };
    let renamed = host.to_string();
    if url.host_str() != Some(&renamed) && url.set_host(Some(&renamed)).is_err() {
        return Err(format!("{text:?} names no host"));
    }
    match Protocol::of(&url) {
        None => Err(format!(
            "{text:?} is of none of the schemes http, https, ftp, ftps, gopher, news and snews"
        )),
        Some(_) if !url.username().is_empty() || url.password().is_some() => {
            // The password is for nobody's eyes.
            let host = url.host_str().unwrap_or_default();
            Err(format!(
                "that of {host} has a name or password in it, which would be published: leave it out"
            ))
        }
        Some(Protocol::News) if !is_group(&url) => Err(format!(
            "{text:?} names no newsgroup, such as news://news.example.org/comp.answers"
        )),
        Some(_) => Ok(url),
    }
}

/// Returns whether a news URL is that of a group, not of an article.
pub(crate) fn is_group(url: &Url) -> bool {
    let name = url.path().trim_start_matches('/');
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "+-_.".contains(it);
    !name.is_empty() && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, server: Option<&str>, expected: Result<&str, &str>) {
        match (start(text, server), expected) {
            (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn roots_begin_at_hosts_of_four_protocols() {
        check("https://h.example/docs/#top", None, Ok("https://h.example/docs/"));
        check("FTP://H.example/pub/", None, Ok("ftp://h.example/pub/"));
        check("gopher://H.example:7070/1/x", None, Ok("gopher://h.example:7070/1/x"));
        check("news://n.example/comp.answers", None, Ok("news://n.example/comp.answers"));
        check("nntp://n.example/comp.answers", None, Ok("news://n.example/comp.answers"));
        check("mailto:a@b.example", None, Err("names no host"));
        check("telnet://h.example/", None, Err("none of the schemes"));
        check("docs", None, Err("no address"));
        check("ftp://u:p@h.example/", None, Err("would be published"));
        check("http://h.example/", Some("n.example"), Err("for news:GROUP"));
    }

    #[test]
    fn a_newsgroup_is_at_its_server() {
        let group = "news:comp.answers";
        check(group, Some("n.example"), Ok("news://n.example/comp.answers"));
        check(group, Some("n.example:1119"), Ok("news://n.example:1119/comp.answers"));
        check(group, Some("snews://n.example/"), Ok("snews://n.example/comp.answers"));
        check(group, Some("nntp://n.example"), Ok("news://n.example/comp.answers"));
        check(group, None, Err("name one, as in news:"));
        check("news:1@h.example", Some("n.example"), Err("names no newsgroup"));
        check("news://n.example/", None, Err("names no newsgroup"));
    }
}
