//! Tests of the index over a real collection: it follows commits, deletes and epochs, and agrees
//! with the collection after a kill.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use broker::answer::{Answer, Matching, SearchRequest, Sort};
use broker::index::{Index, IndexOptions};
use collection::{Batch, Change, Collection, Oid, Options, Stamp};
use query::parse;
use soif::Record;

const GATHERER: &str = "0123456789abcdef";
const NOW: Stamp = Stamp(1_700_000_000_000);

struct Broker {
    collection: Collection,
    index: Index,
}

impl Broker {
    fn open(dir: &Path) -> Self {
        let (collection, _recovery) =
            Collection::open(&dir.join("collection"), Options::default(), NOW).unwrap();
        let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, ..IndexOptions::default() };
        let index = Index::open(&dir.join("index"), options).unwrap();
        Self { collection, index }
    }

    fn commit(&self, changes: Vec<Change>) {
        self.collection.commit(Batch { changes, notes: Vec::new() }, NOW).unwrap();
    }

    fn apply(&self) {
        let version = self.index.apply(&self.collection, &|| false).unwrap();
        assert_eq!(version, self.collection.version());
        assert_eq!(self.index.covered(), Some(version));
    }

    fn ask(&self, query: &str, duplicates: bool) -> Answer {
        let mut request = SearchRequest::new(parse(query).unwrap(), query);
        (request.limit, request.sort, request.duplicates) = (1_000, Sort::Url, duplicates);
        request.matching = Matching::All;
        self.index.search(&request).unwrap()
    }

    fn check(&self, query: &str, expected: &[&str]) {
        let answer = self.ask(query, false);
        let seen: Vec<&str> = answer.hits.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(seen, expected, "{query}");
    }

    /// Checks that the index has exactly the objects of the collection.
    fn agree(&self) {
        let mut live = BTreeMap::new();
        for scanned in self.collection.scan(0).unwrap() {
            match scanned.unwrap().change {
                Change::Update(record) => {
                    let text = record.text("Description").unwrap().into_owned();
                    live.insert(record.url.clone(), text);
                }
                Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                    drop(live.remove(&oid.url));
                }
                Change::Refresh(..) | Change::Confirm { .. } => {}
            }
        }
        let answer = self.ask("*", true);
        let seen: BTreeMap<String, String> =
            answer.hits.into_iter().map(|hit| (hit.url, hit.description)).collect();
        assert_eq!(seen, live);
        assert_eq!(answer.total, self.collection.len());
        // One object represents each content.
        let contents: std::collections::BTreeSet<&str> =
            live.values().map(|text| content(text)).collect();
        assert_eq!(self.ask("*", false).total, contents.len() as u64);
    }
}

fn oid(url: &str) -> Oid {
    Oid { gatherer: GATHERER.to_owned(), url: url.to_owned() }
}

/// Returns the content of an object with this text.
fn content(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn update(url: &str, text: &str) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", GATHERER);
    record.push("Description", text);
    record.push("MD5", soif::digest::Md5::of(content(text).as_bytes()).to_string());
    record.push("File-Size", "9");
    Change::Update(record)
}

#[test]
fn the_index_follows_the_collection() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(dir.path());
    broker.apply();
    broker.check("*", &[]);
    broker
        .commit(vec![update("http://a/1", "one gatherer"), update("http://a/2", "two gatherers")]);
    broker.apply();
    broker.check("gather", &["http://a/1", "http://a/2"]);
    broker.commit(vec![
        update("http://a/2", "two brokers"),
        Change::Refresh(oid("http://a/1"), None),
        Change::Confirm { gatherer: GATHERER.to_owned(), root: "http://a/".to_owned(), at: NOW },
    ]);
    broker.commit(vec![update("http://a/3", "one gatherer again"), update("http://a/4", "four")]);
    broker.apply();
    broker.check("gather", &["http://a/1"]);
    broker.check("broker", &["http://a/2"]);
    assert_eq!(broker.ask("gather", false).hits[0].duplicates[0].url, "http://a/3");
    broker.commit(vec![Change::Delete(oid("http://a/1"))]);
    broker.apply();
    broker.check("gather", &["http://a/3"]);
    broker.agree();
}

#[test]
fn a_new_epoch_builds_the_index_anew_and_a_restart_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(dir.path());
    broker.commit(vec![update("http://a/1", "one"), update("http://a/2", "two")]);
    broker.apply();
    broker.collection.new_epoch(NOW).unwrap();
    assert_ne!(broker.index.covered().unwrap().epoch, broker.collection.version().epoch);
    broker.apply();
    broker.agree();
    let covered = broker.index.covered();
    drop(broker);
    let broker = Broker::open(dir.path());
    assert_eq!(broker.index.covered(), covered);
    broker.commit(vec![update("http://a/3", "three")]);
    broker.apply();
    broker.agree();
}

/// Returns the changes that the child of the next test commits in round `round`.
fn round(round: usize) -> Vec<Change> {
    (0..20)
        .map(|n| {
            let url = format!("http://a/{}", (round * 7 + n * 3) % 90);
            match (round + n) % 9 {
                0 => Change::Delete(oid(&url)),
                some => update(&url, &format!("content{some} version{round}")),
            }
        })
        .collect()
}

#[test]
fn after_a_kill_index_and_collection_agree() {
    const DIR: &str = "HARVEST_TEST_KILLED_INDEX";
    if let Ok(dir) = std::env::var(DIR) {
        // The child process commits and applies until it is killed, and prints each start.
        let broker = Broker::open(Path::new(&dir));
        for number in 0.. {
            println!("\nbegins");
            broker.commit(round(number));
            broker.index.apply(&broker.collection, &|| false).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for rounds in [1, 3, 8] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["index::after_a_kill_index_and_collection_agree", "--exact", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = lines.map_while(Result::ok).filter(|line| line == "begins").take(rounds);
        assert_eq!(seen.count(), rounds);
        child.kill().unwrap();
        child.wait().unwrap();

        let broker = Broker::open(dir.path());
        if let Some(covered) = broker.index.covered() {
            assert!(covered <= broker.collection.version());
        }
        broker.apply();
        broker.agree();
    }
}
