//! Tests of the index: a small log instead of a collection, real indexes on disk.

mod answers;
pub(crate) mod disk;
mod failing;
mod follow;
mod kill;
mod languages;
pub(crate) mod model;
mod names;
mod power;
mod queries;
mod related;
mod truth;

use std::cell::RefCell;

use collection::{Change, Epoch, Stamp};
use soif::Record;

use super::*;
use crate::answer::{Matching, Sort};
use query::parse;

const GATHERER: &str = "0123456789abcdef";

/// A change log in memory, and an index of it on disk.
struct Site {
    epoch: Epoch,
    log: RefCell<Vec<Change>>,
    dir: tempfile::TempDir,
    index: Option<Index>,
}

impl Site {
    fn new() -> Self {
        Self::with(IndexOptions { threads: 1, heap_bytes: 16 << 20, ..IndexOptions::default() })
    }

    fn with(options: IndexOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let index = Some(Index::open(dir.path(), options).unwrap());
        Self { epoch: Epoch(1), log: RefCell::new(Vec::new()), dir, index }
    }

    fn index(&self) -> &Index {
        self.index.as_ref().unwrap()
    }

    fn put(&self, url: &str, attributes: &[(&str, &str)]) {
        self.put_from(GATHERER, url, attributes);
    }

    fn put_from(&self, gatherer: &str, url: &str, attributes: &[(&str, &str)]) {
        self.log.borrow_mut().push(Change::Update(record(gatherer, url, attributes)));
    }

    fn delete(&self, url: &str) {
        let oid = Oid { gatherer: GATHERER.to_owned(), url: url.to_owned() };
        self.log.borrow_mut().push(Change::Delete(oid));
    }

    fn apply(&self) -> Version {
        apply_to(self.index(), self.epoch, &self.log.borrow(), &|| false)
    }

    fn ask(&self, query: &str, change: impl FnOnce(&mut SearchRequest)) -> Answer {
        let mut request = SearchRequest::new(parse(query).unwrap(), query);
        (request.limit, request.matching) = (1_000, Matching::All);
        change(&mut request);
        self.index().search(&request).unwrap()
    }

    /// Checks which objects match `query`, in any order, by the last part of their URLs.
    fn check(&self, query: &str, expected: &str) {
        let answer = self.ask(query, |_| ());
        let mut seen = names(&answer);
        seen.sort_unstable();
        assert_eq!(seen.join(" "), expected, "{query}");
        assert_eq!(answer.total, seen.len() as u64, "{query}");
    }

    /// Checks which objects match, in order.
    fn check_order(&self, query: &str, sort: Sort, expected: &str) {
        let answer = self.ask(query, |request| request.sort = sort);
        assert_eq!(names(&answer).join(" "), expected, "{query} by {sort:?}");
    }
}

fn record(gatherer: &str, url: &str, attributes: &[(&str, &str)]) -> Record {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", gatherer);
    for (name, value) in attributes {
        record.push(*name, *value);
    }
    record
}

fn apply_to(index: &Index, epoch: Epoch, log: &[Change], cancelled: &dyn Fn() -> bool) -> Version {
    let target = Version { epoch, serial: log.len() as u64 };
    try_apply_to(index, target, log, cancelled).unwrap()
}

fn try_apply_to(
    index: &Index,
    target: Version,
    log: &[Change],
    cancelled: &dyn Fn() -> bool,
) -> Result<Version, Error> {
    let get = |oid: &Oid| {
        let found = (1..).zip(log).filter(|it| it.1.oid().as_ref() == Some(oid)).last();
        found.and_then(|(serial, change)| match change {
            Change::Update(record) => Some((record.clone(), serial)),
            _ => None,
        })
    };
    let scan = |since: u64| {
        let changes = (1..).zip(log.iter().cloned());
        Ok(changes
            .map(|(serial, change)| Ok(Scanned { serial, stamp: Stamp(0), change }))
            .skip(usize::try_from(since).unwrap()))
    };
    index.apply_log((0, target), &scan, &get, cancelled)
}

fn names(answer: &Answer) -> Vec<String> {
    answer.hits.iter().map(|hit| document::title_of(&hit.url)).collect()
}

fn corpus() -> Site {
    let site = Site::new();
    site.put(
        "http://a.org/one",
        &[
            ("Title", "Gathering data"),
            ("Author", "Peter Danzig"),
            ("Keywords", "indexing\nharvest"),
            ("Partial-Text", "A gatherer summarizes foo_bar files; see /usr/share/doc/readme.txt."),
            ("Type", "HTML"),
            ("File-Size", "500"),
            ("Last-Modification-Time", "1710000000"),
            ("Gatherer-Name", "Alpha"),
            ("Summarizer-Version", "1998"),
        ],
    );
    site.put(
        "http://b.org/docs/two",
        &[
            ("Title", "Brokers"),
            ("Description", "How a broker collects, indexes and answers"),
            ("Partial-Text", "The change log. A log of every change is kept by the harvest café."),
            ("Type", "PDF"),
            ("File-Size", "20000"),
            ("Last-Modification-Time", "1600000000"),
            ("Gatherer-Name", "Beta"),
            ("Publisher", "University of Colorado"),
        ],
    );
    site.put(
        "file:///srv/three",
        &[
            ("Full-Text", "Authentication by 日本語 keys; foo-bar, to be or not to be"),
            ("Type", "Text"),
            ("MD5", "0cc175b9c0f1b6a831c399e269772661"),
            ("File-Size", "3000"),
        ],
    );
    site.apply();
    site
}
