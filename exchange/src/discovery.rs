//! Discovery without a registry: servers name others, which name others. A name is a candidate; what counts is what
//! answers.
//!
//! A repository of OAI-PMH names its friends in `Identify`; each gatherer and broker is one.
//!
//! Source: the OAI-PMH guidelines for optional containers, "friends".
//!
//! Sans-I/O.

use std::collections::{BTreeSet, VecDeque};

use url::Url;

/// A candidate, and how many servers lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its address.
    pub url: Url,
    /// 0 for those that the walk began with.
    pub depth: u32,
}

/// A walk from server to server: those that it began with first, then those that these name.
#[derive(Debug)]
pub struct Walk {
    waiting: VecDeque<Candidate>,
    known: BTreeSet<String>,
    depth_max: u32,
    servers_max: usize,
}

impl Walk {
    /// Returns a walk that goes as deep as this, and to as many servers.
    pub fn new(starts: impl IntoIterator<Item = Url>, depth_max: u32, servers_max: usize) -> Self {
        let (waiting, known) = (VecDeque::new(), BTreeSet::new());
        let mut walk = Self { waiting, known, depth_max, servers_max };
        starts.into_iter().for_each(|it| walk.add(it, 0));
        walk
    }

    /// Takes the next candidate: probe it, and [`hear`](Self::hear) whom it names.
    pub fn take(&mut self) -> Option<Candidate> {
        self.waiting.pop_front()
    }

    /// Takes the addresses that a server has named; those that are none of the Web say nothing.
    pub fn hear<'a>(&mut self, from: &Candidate, names: impl IntoIterator<Item = &'a str>) {
        if self.depth_max <= from.depth {
            return;
        }
        for url in names.into_iter().filter_map(|it| Url::parse(it.trim()).ok()) {
            self.add(url, from.depth + 1);
        }
    }

    fn add(&mut self, mut url: Url, depth: u32) {
        url.set_fragment(None);
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        let key = url.as_str().trim_end_matches('/').to_owned();
        if is_web && self.known.len() < self.servers_max && self.known.insert(key) {
            self.waiting.push_back(Candidate { url, depth });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_probed_once_as_far_as_the_walk_goes() {
        let start = Url::parse("http://a/").unwrap();
        let mut walk = Walk::new([start.clone(), start], 2, 5);
        let mut probed = Vec::new();
        while let Some(it) = walk.take() {
            // Everybody names the next one, and all before.
            let next = format!("{}x", it.url.as_str().trim_end_matches('/'));
            walk.hear(&it, [&*next, "http://a", "ftp://b/", "no address", "http://c/oai#part"]);
            probed.push((it.url.to_string(), it.depth));
        }
        let expected = [
            ("http://a/", 0),
            ("http://ax/", 1),
            ("http://c/oai", 1),
            ("http://axx/", 2),
            ("http://c/oaix", 2),
        ];
        assert_eq!(probed, expected.map(|(url, depth)| (url.to_owned(), depth)));
    }

    #[test]
    fn a_walk_has_an_end() {
        let mut walk = Walk::new([Url::parse("http://a/").unwrap()], 9, 3);
        let mut count = 0;
        while let Some(it) = walk.take() {
            count += 1;
            let names: Vec<String> = (0..100).map(|n| format!("http://h{n}/")).collect();
            walk.hear(&it, names.iter().map(String::as_str));
        }
        assert_eq!(count, 3);
    }
}
