//! Model test of deletes in graphs of brokers: whatever way they pull each other, with loops, replicas, cuts,
//! restarts, compactions and filters, in the end each has what it can reach of what lives at its gatherer, and nothing
//! else.
//!
//! `HARVEST_GRAPH_SEEDS` is the number of worlds (default 40); `HARVEST_GRAPH_SEED` repeats one of them.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod expiry;
mod filters;
mod owners;
mod world;

use std::collections::BTreeMap;

use collection::{
    Change, Collection, Cursor, Epoch, GATHERER_ID, ORIGIN_PATH, ORIGIN_VERSION, Oid, Options,
    Owner, Pulled, Stamp, Version,
};
use soif::Record;
use tempfile::TempDir;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// A gatherer or a broker.
struct Node {
    id: String,
    folder: TempDir,
    /// `None` while it is being started again.
    collection: Option<Collection>,
}

impl Node {
    fn new(id: String) -> Self {
        let mut node = Self { id, folder: tempfile::tempdir().unwrap(), collection: None };
        node.restart();
        node
    }

    fn restart(&mut self) {
        if let Some(before) = self.collection.take() {
            before.close();
        }
        let options = Options { own_id: Some(self.id.clone()), ..Options::default() };
        let (collection, _) = Collection::open(self.folder.path(), options, Stamp(1)).unwrap();
        self.collection = Some(collection);
    }

    fn collection(&self) -> &Collection {
        self.collection.as_ref().unwrap()
    }

    /// Returns the changes after `since`, or all objects; each with its serial.
    fn changes(&self, since: Option<u64>) -> Vec<(u64, Change)> {
        let feed = self.collection();
        let scan = feed.scan(since.unwrap_or_default()).unwrap().map(Result::unwrap);
        let sent = scan.filter_map(|scanned| {
            let change = match scanned.change {
                Change::Update(record) => {
                    let live = feed.serial(&Oid::of(&record).unwrap()).unwrap();
                    let is_sent = since.is_some() || live == Some(scanned.serial);
                    is_sent.then_some(Change::Update(record))?
                }
                _ if since.is_none() => return None,
                Change::Refresh(oid, None) => Change::Refresh(oid, Some(scanned.stamp)),
                other => other,
            };
            Some((scanned.serial, change))
        });
        sent.collect()
    }

    /// Returns the live objects, each with its content.
    fn objects(&self) -> BTreeMap<String, String> {
        let live = self.collection().scan(0).unwrap().map(Result::unwrap).filter_map(|it| {
            let Change::Update(record) = it.change else { return None };
            let oid = Oid::of(&record).unwrap();
            let is_live = self.collection().serial(&oid).unwrap() == Some(it.serial);
            is_live.then(|| (record.url.clone(), record.text("Title").unwrap().into_owned()))
        });
        live.collect()
    }
}

/// Returns the object's record, as the source says that it came.
fn update(serial: u64, path: &str) -> Change {
    let mut record = Record::new("FILE", "http://h/a");
    record.push(GATHERER_ID, "g");
    record.push("Title", serial.to_string());
    record.push(ORIGIN_VERSION, version(serial).to_string());
    record.push(ORIGIN_PATH, path);
    Change::Update(record)
}

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(9), serial }
}

fn oid() -> Oid {
    Oid::new("g", "http://h/a")
}

/// Applies a change from a source, whose name is its id.
fn apply(node: &Node, source: &str, serial: u64, change: Change) {
    let owner = Owner { id: source.to_owned(), is_shown: false };
    apply_of(node, source, owner, (serial, Some(change)));
}

/// Applies a change from a source of this owner, or the end of a snapshot that names nothing.
fn apply_of(node: &Node, source: &str, owner: Owner, (serial, change): (u64, Option<Change>)) {
    let epoch = Epoch(9);
    let end_of_snapshot = change.is_none().then_some(serial);
    let pulled = Pulled {
        source: source.to_owned(),
        id: Some(owner),
        epoch,
        changes: change.into_iter().map(|it| (serial, it)).collect(),
        cursor: Cursor { epoch, serial, snapshot: None, part: None },
        end_of_snapshot,
    };
    node.collection().apply(pulled, Stamp(serial)).unwrap();
}

/// Returns the title and the path of the object, if it is there.
fn stored(node: &Node) -> Option<(String, String)> {
    let record = node.collection().get(&oid()).unwrap()?.record;
    let text = |name| record.text(name).unwrap_or_default().into_owned();
    Some((text("Title"), text(ORIGIN_PATH)))
}

/// Returns the last change of the object.
fn last(node: &Node) -> Change {
    let changes = node.collection().scan(0).unwrap().map(|it| it.unwrap().change);
    changes.last().unwrap()
}

#[test]
fn what_its_gatherer_has_deleted_goes_with_all_holds() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, "a"));
    apply(&node, "c", 12, update(1, "a d"));
    // Who never had it deletes nothing.
    apply(&node, "x", 13, Change::Withdraw(oid(), version(99)));
    assert_eq!(stored(&node), Some(("1".to_owned(), "a b".to_owned())));
    apply(&node, "b", 14, Change::Withdraw(oid(), version(2)));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(2))));
    // It is not brought back by who has not heard of it, but by what was made anew.
    apply(&node, "c", 15, update(1, "a d"));
    apply(&node, "c", 16, update(2, "a d"));
    assert_eq!(stored(&node), None);
    apply(&node, "c", 17, update(3, "a d"));
    assert_eq!(stored(&node), Some(("3".to_owned(), "a d c".to_owned())));
    apply(&node, "b", 18, Change::Withdraw(oid(), version(2)));
    assert!(stored(&node).is_some(), "it is newer");
}

#[test]
fn the_gatherers_own_feed_is_believed_before_others() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "g", 1, update(1, "forged"));
    assert_eq!(stored(&node), Some(("1".to_owned(), String::new())));
    apply(&node, "b", 12, Change::Withdraw(oid(), version(5)));
    assert!(stored(&node).is_some());
    apply(&node, "c", 13, update(1, "b"));
    apply(&node, "g", 7, Change::Delete(oid()));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(7))));
    apply(&node, "c", 14, update(6, "b"));
    assert_eq!(stored(&node), None);
    apply(&node, "g", 8, update(8, ""));
    assert!(stored(&node).is_some());
}

#[test]
fn a_release_is_of_one_source_and_the_next_path_is_published() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "c", 12, update(1, "a d"));
    assert_eq!(stored(&node), Some(("1".to_owned(), "b".to_owned())));
    apply(&node, "b", 13, Change::Delete(oid()));
    assert_eq!(stored(&node), Some(("1".to_owned(), "a d c".to_owned())));
    // It is the same version, whichever way it came.
    let record = node.collection().get(&oid()).unwrap().unwrap().record;
    assert_eq!(record.text(ORIGIN_VERSION).unwrap(), version(1).to_string());
    apply(&node, "c", 14, Change::Delete(oid()));
    assert_eq!((stored(&node), last(&node)), (None, Change::Delete(oid())));
    apply(&node, "c", 15, update(1, "a d"));
    assert!(stored(&node).is_some(), "a release forbids nothing");
}

#[test]
fn the_end_of_the_gatherers_snapshot_is_a_delete_at_its_version() {
    let node = Node::new("me".to_owned());
    let gatherer = || Owner { id: oid().gatherer, is_shown: false };
    apply(&node, "g", 3, update(3, ""));
    apply(&node, "c", 12, update(3, "b"));
    apply_of(&node, "g", gatherer(), (9, None));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(9))));
    apply(&node, "c", 13, update(8, "b"));
    assert_eq!(stored(&node), None);
}

#[test]
fn what_came_through_us_is_not_held() {
    let node = Node::new("me".to_owned());
    for (path, is_held) in [
        ("a", true),
        ("a me", false),
        (["a"; 15].join(" ").as_str(), true),
        (["a"; 16].join(" ").as_str(), false),
    ] {
        apply(&node, "b", 1, update(1, ""));
        apply(&node, "b", 2, update(1, path));
        assert_eq!(stored(&node).is_some(), is_held, "{path}");
        apply(&node, "b", 3, Change::Delete(oid()));
    }
}

#[test]
fn a_version_that_nobody_can_have_keeps_nothing_out() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "c", 12, update(1, ""));
    let two_days = Epoch((2 * 86_400_000) << 20);
    apply(&node, "b", 13, Change::Withdraw(oid(), Version { epoch: two_days, serial: 1 }));
    // It was let go by that source.
    assert_eq!(stored(&node), Some(("1".to_owned(), "c".to_owned())));
    apply(&node, "b", 14, update(2, ""));
    assert_eq!(stored(&node), Some(("2".to_owned(), "b".to_owned())));
}

#[test]
fn a_delete_is_remembered_until_the_horizon() {
    let mut node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "b", 12, Change::Withdraw(oid(), version(2)));
    node.restart();
    let day = 86_400_000;
    for (days, is_refused) in [(59, true), (61, false)] {
        node.collection().compact(Stamp(days * day)).unwrap();
        apply(&node, "c", 13 + days, update(1, ""));
        assert_eq!(stored(&node).is_none(), is_refused, "after {days} days");
    }
}
