//! The life of a collection: commits are found, survive a restart, and are merged from sources.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use bytes::Bytes;
use collection::feed::{FeedOptions, FeedServer};
use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{
    Batch, Change, Collection, Cursor, Epoch, Error, Note, Oid, Options, Progress, Pulled, Stamp,
    Swept, Version,
};
use http::StatusCode;
use http_body_util::BodyExt;
use soif::Record;
use soif::digest::Md5;

const DAY: u64 = 86_400_000;

fn record(gatherer: &str, url: &str, text: &str) -> Record {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", gatherer);
    record.push("Gatherer-Root", "http://root/");
    record.push("Title", text);
    record.push("MD5", Md5::of(text.as_bytes()).to_string());
    record
}

fn update(url: &str, text: &str) -> Change {
    Change::Update(record("g", url, text))
}

fn oid(url: &str) -> Oid {
    Oid::new("g", url)
}

fn changes(changes: Vec<Change>) -> Batch {
    Batch { changes, notes: Vec::new() }
}

fn open(dir: &tempfile::TempDir) -> Collection {
    let (collection, recovery) =
        Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
    assert_eq!(recovery.cut, []);
    assert_eq!(recovery.keys_rebuilt, None);
    collection
}

fn title(collection: &Collection, url: &str) -> Option<String> {
    let stored = collection.get(&oid(url)).unwrap()?;
    Some(stored.record.text("Title").unwrap().into_owned())
}

#[test]
fn commits_are_found_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let versions = collection.watch();
    let version = collection
        .commit(changes(vec![update("http://a", "one"), update("http://b c", "two")]), Stamp(50))
        .unwrap();
    assert_eq!(version.serial, 2);
    assert!(versions.has_changed().unwrap());
    collection.commit(changes(vec![update("http://a", "three")]), Stamp(40)).unwrap();
    collection.commit(changes(vec![Change::Delete(oid("http://b c"))]), Stamp(60)).unwrap();
    let note = Note { key: b"k".to_vec(), value: Some(b"v".to_vec()) };
    collection.commit(Batch { changes: vec![], notes: vec![note] }, Stamp(61)).unwrap();
    assert_eq!(collection.version().serial, 4, "notes take no serials");
    drop(collection);

    let collection = open(&dir);
    assert_eq!(collection.version(), Version { serial: 4, ..version });
    assert_eq!(collection.len(), 1);
    assert_eq!(title(&collection, "http://a").as_deref(), Some("three"));
    assert_eq!(title(&collection, "http://b c"), None);
    assert_eq!(collection.note(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(collection.notes(b"").count(), 1);
    assert_eq!(collection.oids_with_md5(&Md5::of(b"three")).unwrap(), [oid("http://a")]);
    assert_eq!(collection.oids_with_md5(&Md5::of(b"one")).unwrap(), []);
    let seen: Vec<_> = collection
        .scan(1)
        .unwrap()
        .map(|it| it.unwrap())
        .map(|it| (it.serial, it.stamp.0))
        .collect();
    assert_eq!(seen, [(2, 50), (3, 50), (4, 60)], "stamps never go back");
    let mut plain = Vec::new();
    assert_eq!(collection.export(&mut plain).unwrap(), 1);
    assert_eq!(soif::parse(&plain).unwrap()[0].url, "http://a");
}

#[test]
fn a_change_that_cannot_be_stored_is_refused_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let nameless = Change::Update(Record::new("FILE", "http://x"));
    let long = record("g", &"u".repeat(70 << 10), "t");
    let mut huge = record("g", "http://x", "t");
    huge.push("Body", vec![0; 40 << 20]);
    for bad in [nameless, Change::Update(long), Change::Update(huge), Change::Delete(oid(""))] {
        let error =
            collection.commit(changes(vec![update("http://a", "one"), bad]), Stamp(1)).unwrap_err();
        assert!(matches!(error, Error::Refused { position: 1, .. }), "{error}");
    }
    assert_eq!(collection.version().serial, 0);
    assert_eq!(collection.commit(Batch::default(), Stamp(1)).unwrap().serial, 0);
}

#[test]
fn a_directory_is_open_in_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let _collection = open(&dir);
    let error = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap_err();
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
}

/// Returns what the feed sends after a serial; `None` if it sends a snapshot.
fn sent(collection: &Collection, since: u64) -> Option<Bytes> {
    let feed = FeedServer::new(collection.clone(), FeedOptions::default());
    let path = format!("/feed?since={since}&epoch={}", collection.version().epoch);
    let asking = async {
        let response = feed.respond(http::Request::get(path).body(()).unwrap()).await;
        if response.status() == StatusCode::SEE_OTHER {
            return None;
        }
        assert_eq!(response.status(), StatusCode::OK);
        Some(response.into_body().collect().await.unwrap().to_bytes())
    };
    tokio::runtime::Runtime::new().unwrap().block_on(asking)
}

/// Returns the serials that a feed would send before its end mark.
fn served(collection: &Collection, since: u64) -> Vec<u64> {
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&sent(collection, since).unwrap());
    let mut serials = Vec::new();
    let mut ended = false;
    while let Some(member) = decoder.next_member().unwrap() {
        assert!(!member.header.local && !ended);
        ended = member.header.end_mark;
        serials.extend(member.changes().unwrap().into_iter().map(|it| it.serial));
    }
    assert!(ended);
    decoder.finish().unwrap();
    serials
}

#[test]
fn a_feed_is_a_range_of_the_files_without_notes() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    assert_eq!(served(&collection, 0), [0; 0]);
    for n in 0..5 {
        let notes = vec![Note { key: vec![n + 1], value: Some(vec![n]) }];
        let changes = vec![update(&format!("http://{n}"), "x")];
        collection.commit(Batch { changes, notes }, Stamp(1)).unwrap();
    }
    assert_eq!(served(&collection, 0), [1, 2, 3, 4, 5]);
    assert_eq!(served(&collection, 3), [4, 5]);
    assert_eq!(served(&collection, 5), [0; 0]);
    assert_eq!(sent(&collection, 6), None);
}

fn pulled(source: &str, serial: u64, list: Vec<(u64, Change)>) -> Pulled {
    let epoch = Epoch(9);
    let cursor = Cursor { epoch, serial, snapshot: None, part: None };
    Pulled {
        source: source.to_owned(),
        id: None,
        epoch,
        changes: list,
        cursor,
        end_of_snapshot: None,
    }
}

#[test]
fn an_object_goes_with_its_last_holder() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let one = collection.apply(pulled("a", 1, vec![(1, update("u", "one"))]), Stamp(1)).unwrap();
    assert_eq!((one.updated, one.deleted, one.ignored), (1, 0, 0));
    // The same version through another source, then a newer one, then an older one.
    let mut passed_on = record("g", "u", "one");
    passed_on.push("Origin-Version", "0000000000000009-1");
    let list = vec![(70, Change::Update(passed_on))];
    assert_eq!(collection.apply(pulled("b", 70, list), Stamp(1)).unwrap().ignored, 1);
    let list = vec![(5, update("u", "five"))];
    assert_eq!(collection.apply(pulled("a", 5, list), Stamp(1)).unwrap().updated, 1);
    assert_eq!(title(&collection, "u").as_deref(), Some("five"));
    // A repeated pull changes nothing.
    let list = vec![(5, update("u", "five"))];
    assert_eq!(collection.apply(pulled("a", 5, list), Stamp(1)).unwrap().ignored, 1);
    let counts: Vec<_> =
        collection.sources().unwrap().into_iter().map(|it| (it.source, it.objects)).collect();
    assert_eq!(counts, [("a".to_owned(), 1), ("b".to_owned(), 1)]);

    let gone = vec![(6, Change::Delete(oid("u")))];
    assert_eq!(collection.apply(pulled("a", 6, gone), Stamp(1)).unwrap().deleted, 0);
    assert_eq!(collection.len(), 1);
    assert_eq!(collection.remove_source("b", Stamp(1)).unwrap().deleted, 1);
    assert_eq!(collection.len(), 0);
    assert_eq!(collection.cursor("a").unwrap().unwrap().serial, 6);
    assert_eq!(collection.cursor("b").unwrap(), None);
    assert_eq!(collection.sources().unwrap().len(), 1);
}

#[test]
fn a_cursor_never_runs_ahead_of_the_version() {
    const COMMITS: u64 = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=COMMITS {
                let list = vec![(n, update("x", &n.to_string()))];
                collection.apply(pulled("a", n, list), Stamp(1)).unwrap();
            }
        });
        let mut seen = 0;
        while seen < COMMITS {
            seen = collection.cursor("a").unwrap().map_or(0, |it| it.serial);
            assert!(seen <= collection.committed().serial);
            assert!(seen <= collection.version().serial);
        }
    });
}

#[test]
fn a_change_that_cannot_be_stored_does_not_block_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let mut huge = record("g", "huge", "h");
    huge.push("Body", vec![b'x'; Options::default().record_bytes_max]);
    let nameless = Change::Update(Record::new("FILE", "http://x"));
    let no_root = Change::Confirm { gatherer: String::new(), root: "r".into(), at: Stamp(1) };
    // The log's own templates are allowed in records.
    let mut note = record("g", "u", "u");
    note.template = "NOTE".to_owned();
    let list =
        vec![(1, Change::Update(huge)), (2, nameless), (3, no_root), (4, Change::Update(note))];
    let applied = collection.apply(pulled("a", 4, list), Stamp(1)).unwrap();
    assert_eq!((applied.updated, applied.ignored, applied.oversized), (1, 2, 1));
    assert_eq!(collection.cursor("a").unwrap().unwrap().serial, 4);
    assert_eq!(collection.get(&oid("u")).unwrap().unwrap().record.template, "NOTE");
}

#[test]
fn a_snapshot_releases_what_it_does_not_name() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let list = ["x", "y", "z"].iter().zip(1..).map(|(url, n)| (n, update(url, "1"))).collect();
    collection.apply(pulled("a", 3, list), Stamp(1)).unwrap();
    let progress = Progress { id: "s".to_owned(), offset: 10, to: 20, generation: 7 };
    let mut first = pulled("a", 0, vec![(1, update("x", "1"))]);
    first.cursor.snapshot = Some(progress.clone());
    collection.apply(first.clone(), Stamp(2)).unwrap();
    assert_eq!(collection.cursor("a").unwrap().unwrap(), first.cursor);
    // A delete of an older version, a changed object, and the end.
    let list = vec![
        (1, Change::Delete(oid("y"))),
        (18, update("y", "2")),
        (19, Change::Confirm { gatherer: "g".into(), root: "http://root/".into(), at: Stamp(2) }),
    ];
    let mut last = pulled("a", 20, list);
    last.end_of_snapshot = Some(7);
    let applied = collection.apply(last, Stamp(3)).unwrap();
    assert_eq!((applied.updated, applied.refreshed, applied.deleted), (1, 1, 1));
    assert_eq!(title(&collection, "x").as_deref(), Some("1"));
    assert_eq!(title(&collection, "y").as_deref(), Some("2"));
    assert_eq!(title(&collection, "z"), None);
    assert_eq!(collection.cursor("a").unwrap().unwrap().snapshot, None);
}

/// As after a restore of a source: no commit has more than 4,096 changes.
#[test]
fn a_snapshot_that_names_little_releases_the_rest_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let objects: u64 = 2 * 4096 + 10;
    let list = (1..=objects).map(|n| (n, update(&n.to_string(), "1"))).collect();
    collection.apply(pulled("a", objects, list), Stamp(1)).unwrap();
    let before = collection.version().serial;
    let list = vec![(1, update("1", "2")), (2, Change::Delete(oid("2"))), (3, update("new", "1"))];
    let mut last = pulled("a", 3, list);
    (last.epoch, last.cursor.epoch) = (Epoch(10), Epoch(10));
    last.end_of_snapshot = Some(7);
    let applied = collection.apply(last, Stamp(2)).unwrap();
    assert_eq!((applied.updated, applied.deleted), (2, objects - 1));
    assert_eq!(collection.len(), 2);
    assert_eq!(collection.sources().unwrap()[0].objects, 2);
    assert_eq!(collection.cursor("a").unwrap().unwrap().epoch, Epoch(10));
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&sent(&collection, before).unwrap());
    let mut commits = std::collections::BTreeMap::new();
    while let Some(member) = decoder.next_member().unwrap() {
        *commits.entry(member.header.commit).or_insert(0) += member.header.entries.len();
    }
    assert_eq!(commits.values().copied().max(), Some(4096));
    assert_eq!(commits.values().sum::<usize>() as u64, objects + 1);
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn unconfirmed_objects_expire_unless_they_are_too_many() {
    let dir = tempfile::tempdir().unwrap();
    let ttl_default = Duration::from_millis(30 * DAY);
    let options = Options { ttl_default, ..Options::default() };
    let (collection, _) = Collection::open(dir.path(), options, Stamp(0)).unwrap();
    let mut brief = record("g", "brief", "b");
    brief.push("Time-to-Live", "86400");
    let mut elsewhere = record("g", "elsewhere", "e");
    elsewhere.set("Gatherer-Root", "http://other/");
    let list =
        vec![update("a", "a"), update("b", "b"), Change::Update(brief), Change::Update(elsewhere)];
    collection.commit(changes(list), Stamp(0)).unwrap();
    // Only time with frequent sweeps counts towards expiry; with the share 0 they delete nothing.
    let sweep_often = |days: std::ops::Range<u64>| {
        for at in (days.start * DAY..days.end * DAY).step_by(6 * 3_600_000) {
            collection.sweep(Stamp(at), 0.0).unwrap();
        }
    };
    sweep_often(0..1);
    assert_eq!(collection.sweep(Stamp(DAY - 1), 0.1).unwrap(), Swept::Done { expired: 0 });
    let held = Swept::Held { would_expire: 1, of: 4 };
    assert_eq!(collection.sweep(Stamp(DAY), 0.1).unwrap(), held);
    assert_eq!(collection.sweep(Stamp(DAY), 0.25).unwrap(), Swept::Done { expired: 1 });
    let confirm =
        Change::Confirm { gatherer: "g".into(), root: "http://root/".into(), at: Stamp(9 * DAY) };
    collection.commit(changes(vec![confirm]), Stamp(10 * DAY)).unwrap();
    sweep_often(1..31);
    assert_eq!(collection.sweep(Stamp(31 * DAY), 0.5).unwrap(), Swept::Done { expired: 1 });
    assert_eq!(collection.get(&oid("elsewhere")).unwrap(), None);
    collection.commit(changes(vec![Change::Refresh(oid("a"), None)]), Stamp(32 * DAY)).unwrap();
    assert_eq!(collection.sweep(Stamp(39 * DAY), 1.0).unwrap(), Swept::Done { expired: 1 });
    assert_eq!(title(&collection, "a").as_deref(), Some("a"));
    assert_eq!(collection.len(), 1);
}

#[test]
fn a_new_epoch_makes_consumers_start_over() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(&dir);
    let before = collection.commit(changes(vec![update("a", "a")]), Stamp(1)).unwrap();
    let after = collection.new_epoch(Stamp(1)).unwrap();
    assert!(before.epoch < after.epoch && before.serial == after.serial);
    drop(collection);
    let collection = open(&dir);
    assert_eq!(collection.version(), after);
    assert_eq!(title(&collection, "a").as_deref(), Some("a"));
}
