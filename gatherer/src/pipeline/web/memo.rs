//! The links that a crawl has taken: nearly every page of a site has many of them, and to look one up here takes a
//! tenth of the time that the frontier takes to see that it has it.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use url::{Position, Url};

/// Maximum number of links that are remembered.
const LINKS_MAX: usize = 1_000_000;

/// Links, by their hash, with the depth at which they were taken.
#[derive(Debug, Default)]
pub(super) struct Memo {
    hasher: RandomState,
    depths: HashMap<u64, u16>,
}

impl Memo {
    /// Returns whether a link of the page at `base`, which may be a path, was not taken at this depth or at a
    /// smaller one.
    pub(super) fn is_news(&mut self, base: &Url, link: &str, depth: u16) -> bool {
        let origin = if link.starts_with('/') { &base[..Position::BeforePath] } else { "" };
        let hash = self.hasher.hash_one((origin, link));
        if let Some(before) = self.depths.get_mut(&hash) {
            let is_nearer = depth < *before;
            *before = depth.min(*before);
            return is_nearer;
        }
        if self.depths.len() < LINKS_MAX {
            self.depths.insert(hash, depth);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_news_once_and_when_it_is_nearer() {
        let [one, other] = ["http://h/a/b", "http://i/"].map(|it| Url::parse(it).unwrap());
        let mut memo = Memo::default();
        assert!(memo.is_news(&one, "/c", 3) && !memo.is_news(&one, "/c", 3));
        assert!(memo.is_news(&other, "/c", 3), "another host");
        assert!(!memo.is_news(&one, "/c", 4));
        assert!(memo.is_news(&one, "/c", 2) && !memo.is_news(&one, "/c", 3));
        assert!(memo.is_news(&one, "ftp://f/", 1) && !memo.is_news(&other, "ftp://f/", 1));
    }
}
