//! Crawled objects: what a crawl remembers of each.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};
use url::{Position, Url};

/// What a crawl remembers of an object, so that nothing is asked for twice in a pass, and what is
/// discovered cannot disagree with what is done: both are in one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crawled {
    /// Time of the last answer, in Unix milliseconds.
    #[serde(rename = "c")]
    pub answered_ms: u64,
    /// Number of links from the root's URL.
    #[serde(rename = "p")]
    pub depth: u16,
    /// Where the object leads, in order; within the object's own origin only the path.
    #[serde(rename = "k", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Whether the content as last read asks for no record.
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// The answer that has left it without a record, in words.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// The URL that the page calls its own, if it is another.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// The page whose record stands for this one, which has none.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<String>,
    /// Other pages for which this one's record stands, as far as it names them.
    #[serde(rename = "z", default, skip_serializing_if = "Vec::is_empty")]
    pub twins: Vec<String>,
    /// Number of changes in a row of volatile parts alone.
    #[serde(rename = "v", default, skip_serializing_if = "is_zero")]
    pub in_a_row: u8,
    /// Time of the first answer, in Unix milliseconds; 0 if it was not noted.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub since_ms: u64,
    /// Number of answers after the first.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub visits: u32,
    /// Number of those that brought a change.
    #[serde(rename = "y", default, skip_serializing_if = "is_zero")]
    pub changes: u32,
    /// Since when it seems to be gone, if it does.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Gone>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// An object that seems to be gone; its records stay until that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// Time of the first answer that said so, in Unix milliseconds.
    #[serde(rename = "s")]
    pub since_ms: u64,
    /// Number of answers in a row that said so.
    #[serde(rename = "n")]
    pub times: u32,
    /// Whether one of them left no doubt.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_certain: bool,
}

impl Gone {
    /// Returns whether the object is gone at `now_ms`: it was gone twice, or certainly, and the
    /// grace is over.
    pub fn is_over(&self, grace_ms: u64, now_ms: u64) -> bool {
        (self.is_certain || 2 <= self.times) && grace_ms <= now_ms.saturating_sub(self.since_ms)
    }
}

impl Crawled {
    /// Returns since when the object is gone, counting one more answer that says so.
    pub(crate) fn once_more(&self, at_ms: u64, is_certain: bool) -> Gone {
        let before = self.gone.unwrap_or(Gone { since_ms: at_ms, times: 0, is_certain: false });
        Gone {
            times: before.times.saturating_add(1),
            is_certain: before.is_certain || is_certain,
            ..before
        }
    }

    /// Takes over what `before` says of the past of the object; `is_answered` says whether there was an object,
    /// again or for the first time.
    pub(crate) fn follow(&mut self, before: Option<&Self>, is_answered: bool) {
        if let Some(before) = before {
            self.twin_of.clone_from(&before.twin_of);
            self.twins.clone_from(&before.twins);
        }
        let Some(before) = before.filter(|it| it.since_ms != 0) else {
            self.since_ms = if is_answered { self.answered_ms } else { 0 };
            return;
        };
        self.since_ms = before.since_ms;
        self.visits = before.visits.saturating_add(u32::from(is_answered));
        self.changes = before.changes;
    }

    /// Returns the links of the object at `url`, in order.
    pub fn links<'a>(&'a self, url: &'a Url) -> impl Iterator<Item = Url> + 'a {
        self.links.iter().filter_map(|it| url.join(it).ok())
    }
}

/// Returns links of the object at `url` in short form.
pub(crate) fn short_links<'a>(url: &Url, links: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let origin = &url[..Position::BeforePath];
    let short = |link: &'a str| match link.strip_prefix(origin) {
        Some(path) if path.starts_with('/') && !path.starts_with("//") => path.to_owned(),
        _ => link.to_owned(),
    };
    links.into_iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;

    #[test]
    fn links_are_short_within_their_origin_and_whole_elsewhere() {
        let url = Url::parse("https://h.example/a/b?c=d").unwrap();
        let links =
            ["https://h.example/x?y", "https://h.example//z", "http://h.example/", "ftp://f/"];
        let mut crawled = Crawled { answered_ms: 7, depth: 2, ..Crawled::default() };
        crawled.links = short_links(&url, links);
        assert_eq!(
            crawled.links,
            ["/x?y", "https://h.example//z", "http://h.example/", "ftp://f/"]
        );
        let stored: Crawled = from_bytes(&to_bytes(&crawled)).unwrap();
        assert_eq!(stored, crawled);
        let found: Vec<String> = stored.links(&url).map(String::from).collect();
        assert_eq!(found, links);
    }

    #[test]
    fn an_object_is_gone_when_that_is_certain_and_the_grace_is_over() {
        let gone = |times, is_certain| Gone { since_ms: 1_000, times, is_certain };
        assert!(!gone(1, false).is_over(0, 9_000));
        assert!(gone(2, false).is_over(0, 9_000) && gone(1, true).is_over(8_000, 9_000));
        assert!(!gone(5, true).is_over(8_001, 9_000));
    }
}
