//! The roots to gather, and the maps that give files public URLs.
//!
//! Source: TR §3 and the manual's RootNodes (`URL Access=types Delay=seconds …`).
//!
//! # Differences from the original
//!
//! * `Access` names one way to reach a root, and each way has its own settings.
//!
//! Sans-I/O.

mod enumeration;
mod filter;
mod login;
mod protocol;
mod proxy;
mod realm;
mod repository;
mod tree;
mod urls;
mod web;

use std::time::Duration;

use settings::Table;
use url::Url;

pub use self::enumeration::Enumeration;
pub(crate) use self::filter::{UrlFilter, is_same_site};
pub(crate) use self::protocol::is_group;
pub use self::protocol::{Protocol, start};
pub use self::realm::{Proof, Realm};
pub use self::repository::{INTERVAL, Repository};
pub use self::tree::{Symlinks, Tree};
pub use self::urls::{Map, file_path, file_url, path_of, public_url};
pub(crate) use self::urls::{mapped_path, upwards};
pub use self::web::{URLS_MAX, Web};

/// Root whose objects are gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// Files, to be walked.
    Tree(Tree),
    /// The records of an OAI-PMH repository, to be harvested.
    Repository(Repository),
    /// A web site, FTP folder, Gopher hole or newsgroup, to be crawled.
    Web(Web),
}

impl Root {
    /// Returns the root's URL, which is its name in notes, confirmations and status.
    pub fn url(&self) -> String {
        match self {
            Self::Tree(tree) => tree.url(),
            Self::Repository(repository) => repository.url().to_owned(),
            Self::Web(web) => web.url().to_owned(),
        }
    }

    fn web(&self) -> Option<&Web> {
        match self {
            Self::Web(web) => Some(web),
            Self::Tree(_) | Self::Repository(_) => None,
        }
    }

    /// Reads a `[[root]]`, and records its mistakes. Confirmed records live for `ttl`.
    pub(crate) fn read(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Option<Self> {
        match access(table).as_str() {
            "oai" => Repository::read(table, interval_max, ttl).map(Self::Repository),
            "web" => Web::read(table, interval_max, ttl).map(Self::Web),
            "file" => Tree::read(table).map(Self::Tree),
            other => {
                let expected = "\"file\", \"web\" or \"oai\"";
                table.mistake("access", format!("{other:?} is none"), expected);
                None
            }
        }
    }
}

/// Returns the way to the objects of a `[[root]]`: as it is named, or as its URL says.
fn access(table: &Table<'_>) -> String {
    let named = table.string("access").map(|it| it.to_ascii_lowercase());
    let is_elsewhere = || {
        let url = Url::parse(&table.string("url").unwrap_or_default());
        url.is_ok_and(|it| it.scheme() == "nntp" || Protocol::of(&it).is_some())
    };
    named.unwrap_or_else(|| if is_elsewhere() { "web".to_owned() } else { "file".to_owned() })
}

/// Least bandwidth, in bytes a second.
const BANDWIDTH_MIN: u64 = 1_024;

/// Reads `bandwidth`, in bytes a second.
pub(crate) fn bandwidth(table: &Table<'_>) -> Option<u64> {
    let found = table.bytes("bandwidth");
    if found.is_some_and(|it| it < BANDWIDTH_MIN) {
        table.mistake(
            "bandwidth",
            "with that little, nothing comes".to_owned(),
            "at least \"1 KiB\"",
        );
    }
    found
}

/// Returns whether a `[[root]]` is not on this machine.
pub(crate) fn is_remote(table: &Table<'_>) -> bool {
    access(table) != "file"
}

/// Returns whether `url`, that of a root, is not on this machine.
pub(crate) fn is_remote_url(url: &str) -> bool {
    !url.starts_with("file:")
}

/// Returns a message for each conflict: a tree inside another tree, which would be gathered twice
/// under one URL, or two maps with one prefix or one directory.
pub fn conflicts(roots: &[Root], maps: &[Map]) -> Vec<String> {
    let trees: Vec<&Tree> = trees(roots).collect();
    let mut found = Vec::new();
    for (n, tree) in trees.iter().enumerate() {
        for (m, other) in trees.iter().enumerate() {
            let is_inside = n != m && tree.directory.starts_with(&other.directory);
            // Of two equal trees, one message is enough.
            if is_inside && (n < m || tree.directory != other.directory) {
                found.push(format!("root {} lies inside root {}", tree.url(), other.url()));
            }
        }
    }
    let webs: Vec<&Web> = roots.iter().filter_map(Root::web).collect();
    for (n, web) in webs.iter().enumerate() {
        for (m, other) in webs.iter().enumerate() {
            if n != m && other.holds(&web.url) && (n < m || !web.holds(&other.url)) {
                found.push(format!("root {} lies inside root {}", web.url, other.url));
            }
            // Of two lists that have it, one message is enough.
            let twice = |it: &&Url| other.holds(it) && (n < m || other.leaves.is_empty());
            if n != m
                && let Some(leaf) = web.leaves.iter().find(twice)
            {
                found.push(format!("{leaf} of {} is gathered by {}, too", web.url, other.url));
            }
        }
    }
    for (n, map) in maps.iter().enumerate() {
        for other in maps.iter().skip(n + 1) {
            if map.url_prefix == other.url_prefix {
                found.push(format!("two maps have the url_prefix {}", map.url_prefix));
            }
            if map.directory == other.directory {
                found.push(format!("two maps have the directory {}", map.directory.display()));
            }
        }
    }
    found
}

pub(crate) fn trees(roots: &[Root]) -> impl Iterator<Item = &Tree> {
    roots.iter().filter_map(|it| match it {
        Root::Tree(tree) => Some(tree),
        Root::Repository(_) | Root::Web(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_inside_trees_are_conflicts() {
        let roots = ["/a", "/a/b", "/ab", "/a"].map(|it| Root::Tree(Tree::new(it)));
        let shown = conflicts(&roots, &[]);
        assert_eq!(shown.len(), 3, "{shown:?}");
        let map = |url_prefix: &str, directory: &str| Map {
            url_prefix: Url::parse(url_prefix).unwrap(),
            directory: directory.into(),
        };
        let maps = [map("http://a/", "/a"), map("http://a/", "/b"), map("http://c/", "/a")];
        assert_eq!(conflicts(&[], &maps).len(), 2);
        let webs = ["http://h/", "https://h/docs/", "http://h/docs", "http://h:81/", "http://i/"];
        let webs = webs.map(|it| Root::Web(Web::new(Url::parse(it).unwrap())));
        let shown = conflicts(&webs, &[]);
        // The folder of the third is that of the first.
        assert_eq!(shown.len(), 3, "{shown:?}");
    }
}
