//! Support of the takedown tests: sources, consumers and authors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use collection::{
    Author, Batch, Change, Collection, Cursor, Epoch, Notice, Oid, Options, Pulled, Stamp, Subject,
};
use net::identity::Identity;
use soif::Record;

/// The gatherer whose id is made of the key of secret 1.
pub(crate) const G: &str = "95bbfbb1f0ef8f23";

pub(crate) fn update(gatherer: &str, url: &str) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", gatherer);
    record.push("Title", format!("about {url}"));
    Change::Update(record)
}

pub(crate) fn author(id: &str, secret: u8) -> Author {
    Author { id: id.to_owned(), identity: Identity::of(&[secret; 32]).unwrap() }
}

/// Returns an author whose id is made of its key.
pub(crate) fn owner(secret: u8) -> Author {
    let identity = Identity::of(&[secret; 32]).unwrap();
    Author { id: identity.id(), identity }
}

pub(crate) fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

/// Opens the collection in `dir/collection`, with its takedown list beside it.
pub(crate) fn open(dir: &Path) -> Collection {
    let options = Options { suppressed: Some(list(dir)), ..Options::default() };
    Collection::open(&dir.join("collection"), options, Stamp(1)).unwrap().0
}

pub(crate) fn list(dir: &Path) -> PathBuf {
    dir.join("suppressed.soif")
}

pub(crate) fn commit(collection: &Collection, changes: Vec<Change>) {
    collection.commit(Batch { changes, notes: Vec::new() }, Stamp(5)).unwrap();
}

/// Applies a source's changes, after its earlier ones.
pub(crate) fn apply(
    collection: &Collection,
    source: &str,
    changes: Vec<Change>,
) -> collection::Applied {
    let epoch = Epoch(9);
    let before = collection.cursor(source).unwrap().map_or(0, |it| it.serial);
    let changes: Vec<_> = (before + 1..).zip(changes).collect();
    let serial = before + changes.len() as u64;
    let cursor = Cursor { epoch, serial, snapshot: None, part: None };
    let source = source.to_owned();
    let pulled = Pulled { source, id: None, epoch, changes, cursor, end_of_snapshot: None };
    collection.apply(pulled, Stamp(6)).unwrap()
}

pub(crate) fn urls(collection: &Collection) -> BTreeSet<String> {
    let mut out = Vec::new();
    collection.export(&mut out).unwrap();
    soif::parse(&out).unwrap().into_iter().map(|it| it.url).collect()
}

pub(crate) fn check(collection: &Collection, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(urls(collection), expected);
    assert_eq!(collection.len(), expected.len() as u64);
    assert_eq!(collection.verify().unwrap().problems, []);
}

pub(crate) fn changes_of(collection: &Collection) -> Vec<Change> {
    collection.scan(0).unwrap().map(|it| it.unwrap().change).collect()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the notices that the log still carries, even if parts of it are damaged.
pub(crate) fn carried_anyhow(collection: &Collection) -> Vec<Notice> {
    let one = |serial| collection.pick(vec![serial]).next()?.ok();
    let changes = (1..=collection.version().serial).filter_map(one).map(|it| it.change);
    changes.filter_map(notice_of).collect()
}

/// Makes a consumer with all objects from the source `other`, then `changes` from [`G`].
pub(crate) fn consumer(dir: &Path, changes: Vec<Change>) -> Collection {
    let consumer = open(dir);
    let all = vec![update(G, "http://h/a"), update(G, "http://h/b"), update("g2", "http://h/a")];
    apply(&consumer, "other", all);
    apply(&consumer, "direct", changes);
    consumer
}

/// Makes a tombstone of `url` at [`G`] with the notice.
pub(crate) fn tombstone(url: &str, notice: &Notice) -> Change {
    Change::Suppress(Oid::new(G, url), Box::new(notice.clone()))
}

/// Makes the tombstone that only carries the notice.
pub(crate) fn carrier(notice: &Notice) -> Change {
    Change::Suppress(notice.carrier(), Box::new(notice.clone()))
}

/// Returns the notices that have carriers in the log.
pub(crate) fn carried(collection: &Collection) -> Vec<Notice> {
    changes_of(collection).into_iter().filter_map(notice_of).collect()
}

fn notice_of(change: Change) -> Option<Notice> {
    match change {
        Change::Suppress(oid, notice) if oid == notice.carrier() => Some(*notice),
        _ => None,
    }
}

pub(crate) fn suppressing(secret: u8) -> (tempfile::TempDir, Collection) {
    let dir = tempfile::tempdir().unwrap();
    let source = open(dir.path());
    commit(&source, vec![update(G, "http://h/a"), update(G, "http://h/b")]);
    source.suppress(&author(G, secret), subject("http://h/a"), "asked for", Stamp(7)).unwrap();
    (dir, source)
}
