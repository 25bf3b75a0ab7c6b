//! Discovery: the hub of a page, and the URL of the page as a topic of that hub.
//!
//! Source: WebSub §4 (`rel="hub"`, `rel="self"`), RFC 8288 §3 (the `Link` header).
//!
//! # Differences from the standard
//!
//! * Only headers are read. Links within a page are not, because feeds and ListRecords responses
//!   have none.
//! * A daemon that does not know its public address sends relative links, which refer to the
//!   requested host.
//!
//! Sans-I/O.

use url::Url;

/// Maximum length of a `Link` header that is read, in bytes, all lines together.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of links that are read in a line.
const LINKS_MAX: usize = 64;

/// Returns the header value that names a hub and a topic, each a URL or a relative reference.
pub fn header_value(hub: &str, topic: &str) -> String {
    format!("<{}>; rel=\"hub\", <{}>; rel=\"self\"", plain(hub), plain(topic))
}

/// Removes the characters that would end a reference or a header.
fn plain(reference: &str) -> String {
    reference.chars().filter(|it| it.is_ascii_graphic() && !matches!(it, '<' | '>')).collect()
}

/// The hub and topic that a page's links name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The first hub.
    pub hub: Option<Url>,
    /// The topic to subscribe to.
    pub topic: Option<Url>,
}

/// Reads the lines of the `Link` header of the page at `base`.
pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>, base: &Url) -> Discovery {
    let mut found = Discovery::default();
    let mut bytes = 0;
    for line in lines {
        bytes += line.len();
        if HEADER_BYTES_MAX < bytes {
            break;
        }
        for (target, rels) in links(line).take(LINKS_MAX) {
            let Some(url) = base.join(target).ok().filter(is_web) else { continue };
            for rel in rels.split_ascii_whitespace() {
                if rel.eq_ignore_ascii_case("hub") {
                    found.hub.get_or_insert_with(|| url.clone());
                } else if rel.eq_ignore_ascii_case("self") {
                    found.topic.get_or_insert_with(|| url.clone());
                }
            }
        }
    }
    found
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Returns the links of a line: target and relations of each.
fn links(mut line: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (_before, rest) = line.split_once('<')?;
        let (target, rest) = rest.split_once('>')?;
        let (parameters, rest) = rest.split_at(end_of_link(rest));
        line = rest;
        Some((target.trim(), rel(parameters).unwrap_or_default()))
    })
}

/// Returns the position of the comma that ends a link, outside of quotes.
fn end_of_link(text: &str) -> usize {
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns the value of the first `rel` parameter; `None` if there is none.
fn rel(parameters: &str) -> Option<&str> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("rel").then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[&str], hub: &str, topic: &str) {
        let base = Url::parse("http://h:8500/a/feed?since=1").unwrap();
        let found = read(lines.iter().copied(), &base);
        let shown = |url: Option<Url>| url.map(String::from).unwrap_or_default();
        assert_eq!((shown(found.hub).as_str(), shown(found.topic).as_str()), (hub, topic));
    }

    #[test]
    fn hub_and_topic_are_found() {
        let (hub, topic) = ("https://hub.example/", "http://h/feed");
        check(&["<https://hub.example/>; rel=\"hub\", <http://h/feed>; rel=\"self\""], hub, topic);
        check(&["<https://hub.example/>;rel=hub", "<http://h/feed>;REL=\"x Self\""], hub, topic);
        check(
            &[
                "<a,b>; title=\"one, two\"; rel=next, <https://hub.example/>; rel=hub; title=\"<x>\"",
                "<http://h/feed>; rel=self, <http://other/>; rel=\"hub self\"",
            ],
            hub,
            topic,
        );
        check(&["<hub>; rel=hub, <feed>; rel=self"], "http://h:8500/a/hub", "http://h:8500/a/feed");
    }

    #[test]
    fn invalid_links_are_ignored() {
        for line in ["", "hub", "<", "<x", "<x>", "<x>; rel", "<mailto:x>; rel=hub", ">x<; rel=hub"]
        {
            check(&[line], "", "");
        }
        let long = "x".repeat(HEADER_BYTES_MAX);
        check(&[&long, "<hub>; rel=hub"], "", "");
    }

    #[test]
    fn no_reference_breaks_out_of_the_header() {
        let line = header_value("http://h/>; rel=self\r\nX: y", "feed");
        assert_eq!(line, "<http://h/;rel=selfX:y>; rel=\"hub\", <feed>; rel=\"self\"");
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(hub in "https?://[a-z]{1,9}/[a-z0-9,;=?&%\"]{0,20}",
                                   topic in "https?://[a-z]{1,9}/[a-z0-9,;=?&%]{0,20}") {
            let (hub, topic) = (Url::parse(&hub).unwrap(), Url::parse(&topic).unwrap());
            let line = header_value(hub.as_str(), topic.as_str());
            let found = read([line.as_str()], &Url::parse("http://its.own/").unwrap());
            prop_assert_eq!(found, Discovery { hub: Some(hub), topic: Some(topic) });
        }

        #[test]
        fn any_line_is_read(line in "[<>;,=\" a-z]{0,80}|\\PC{0,80}") {
            let _ = read([line.as_str()], &Url::parse("http://x/").unwrap());
        }
    }
}
