//! Takedown: what is suppressed is gone, stays away whoever brings it, and says so to consumers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use collection::feed::{FeedOptions, FeedServer};
use collection::{
    Author, Batch, Change, Collection, Cursor, Epoch, Error, Notice, Oid, Options, Pulled, Scope,
    Stamp, Subject,
};
use flate2::read::MultiGzDecoder;
use http::StatusCode;
use net::identity::Identity;
use soif::Record;

fn update(gatherer: &str, url: &str) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", gatherer);
    record.push("Title", format!("about {url}"));
    Change::Update(record)
}

fn author(id: &str, secret: u8) -> Author {
    Author { id: id.to_owned(), identity: Identity::of(&[secret; 32]).unwrap() }
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

/// A collection in `dir/collection` with its list beside it.
fn open(dir: &Path) -> Collection {
    let options = Options { suppressed: Some(list(dir)), ..Options::default() };
    Collection::open(&dir.join("collection"), options, Stamp(1)).unwrap().0
}

fn list(dir: &Path) -> PathBuf {
    dir.join("suppressed.soif")
}

fn commit(collection: &Collection, changes: Vec<Change>) {
    collection.commit(Batch { changes, notes: Vec::new() }, Stamp(5)).unwrap();
}

/// Applies what a source brings, after what it brought before.
fn apply(collection: &Collection, source: &str, changes: Vec<Change>) -> collection::Applied {
    let epoch = Epoch(9);
    let before = collection.cursor(source).unwrap().map_or(0, |it| it.serial);
    let changes: Vec<_> = (before + 1..).zip(changes).collect();
    let serial = before + changes.len() as u64;
    let cursor = Cursor { epoch, serial, snapshot: None };
    let source = source.to_owned();
    let pulled = Pulled { source, epoch, changes, cursor, end_of_snapshot: None };
    collection.apply(pulled, Stamp(6)).unwrap()
}

fn urls(collection: &Collection) -> BTreeSet<String> {
    let mut out = Vec::new();
    collection.export(&mut out).unwrap();
    soif::parse(&out).unwrap().into_iter().map(|it| it.url).collect()
}

fn check(collection: &Collection, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(urls(collection), expected);
    assert_eq!(collection.len(), expected.len() as u64);
    assert_eq!(collection.verify().unwrap().problems, []);
}

/// All that the log tells a consumer.
fn told(collection: &Collection) -> Vec<Change> {
    collection.scan(0).unwrap().map(|it| it.unwrap().change).collect()
}

#[test]
fn what_is_suppressed_is_gone_and_stays_away() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    let me = author("g", 1);
    commit(&collection, vec![update("g", "http://h/a/1"), update("g", "http://h/b")]);
    apply(&collection, "s", vec![update("g2", "http://h/a/1"), update("g2", "http://h/a/2")]);
    let done = collection.suppress(&me, subject("http://h/a/*"), "a letter", Stamp(7)).unwrap();
    assert_eq!((done.objects, done.held_by), (3, vec!["s".to_owned()]));
    check(&collection, &["http://h/b"]);
    // From nobody, whoever comes.
    commit(&collection, vec![update("g", "http://h/a/1"), update("g", "http://h/c")]);
    let applied =
        apply(&collection, "t", vec![update("g", "http://h/a/9"), update("g", "http://h/d")]);
    assert_eq!((applied.updated, applied.refused), (1, 1));
    check(&collection, &["http://h/b", "http://h/c", "http://h/d"]);
    let takedowns = collection.takedowns();
    assert_eq!((takedowns.active, takedowns.refused, takedowns.forged), (1, 2, 0));

    drop(collection);
    let collection = open(dir.path());
    assert!(collection.is_suppressed(&Oid::new("g", "http://h/a/1")));
    commit(&collection, vec![update("g", "http://h/a/1")]);
    check(&collection, &["http://h/b", "http://h/c", "http://h/d"]);
    assert!(matches!(
        collection.lift(&me, subject("http://h/a"), Stamp(8)),
        Err(Error::NotSuppressed { .. })
    ));
    collection.lift(&me, subject("http://h/a/*"), Stamp(1)).unwrap();
    assert_eq!(collection.cursor("s").unwrap(), None, "it is to bring all again");
    commit(&collection, vec![update("g", "http://h/a/1")]);
    check(&collection, &["http://h/a/1", "http://h/b", "http://h/c", "http://h/d"]);
    assert_eq!(collection.takedowns().active, 0);
}

fn copy(from: &Path, to: &Path) {
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

#[test]
fn a_folder_put_back_from_a_backup_does_not_bring_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let (live, backup) = (dir.path().join("collection"), dir.path().join("backup"));
    let collection = open(dir.path());
    commit(&collection, vec![update("g", "http://h/a"), update("g", "http://h/b")]);
    drop(collection);
    copy(&live, &backup);
    let collection = open(dir.path());
    collection.suppress(&author("g", 1), subject("http://h/a"), "", Stamp(7)).unwrap();
    drop(collection);
    fs::remove_dir_all(&live).unwrap();
    copy(&backup, &live);
    let collection = open(dir.path());
    check(&collection, &["http://h/b"]);
    assert!(told(&collection).iter().any(|it| matches!(it, Change::Suppress(..))));
    let before = collection.version();
    drop(collection);
    assert_eq!(open(dir.path()).version(), before, "it is done once");
}

/// What a consumer has that pulled `told` from the gatherer `g`, and once had all from another too.
fn consumer(dir: &Path, told: Vec<Change>) -> Collection {
    let consumer = open(dir);
    let all =
        vec![update("g", "http://h/a"), update("g", "http://h/b"), update("g2", "http://h/a")];
    apply(&consumer, "other", all);
    apply(&consumer, "direct", told);
    consumer
}

fn suppressing(secret: u8) -> (tempfile::TempDir, Collection) {
    let dir = tempfile::tempdir().unwrap();
    let source = open(dir.path());
    commit(&source, vec![update("g", "http://h/a"), update("g", "http://h/b")]);
    source.suppress(&author("g", secret), subject("http://h/a"), "asked for", Stamp(7)).unwrap();
    (dir, source)
}

#[test]
fn the_word_of_an_objects_own_gatherer_counts_whoever_holds_it_and_is_passed_on() {
    let (_dir, source) = suppressing(1);
    let dir = tempfile::tempdir().unwrap();
    let first = consumer(dir.path(), told(&source));
    check_with_foreign(&first);
    // Over a broker that never saw the gatherer, and from a compacted log.
    first.compact(Stamp(8)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let second = consumer(dir.path(), told(&first));
    check_with_foreign(&second);
    let notices = |it: &Collection| -> Vec<Notice> {
        it.suppressions().into_iter().map(|it| it.notice).collect()
    };
    assert_eq!(notices(&second), notices(&source), "it is passed on as it was signed");
    assert_eq!(second.suppressions()[0].scope, Scope::Own);
    assert_eq!(second.suppressions()[0].held_by, ["other"]);
    let again = apply(&second, "other", vec![update("g", "http://h/a")]);
    assert_eq!((again.updated, again.refused), (0, 1));
    // And it is lifted over both.
    source.lift(&author("g", 1), subject("http://h/a"), Stamp(9)).unwrap();
    commit(&source, vec![update("g", "http://h/a")]);
    apply(&first, "again", told(&source));
    apply(&second, "again", told(&first));
    assert!(!second.is_suppressed(&Oid::new("g", "http://h/a")));
    assert!(second.get(&Oid::new("g", "http://h/a")).unwrap().is_some());
    // What was said before does not count any more.
    apply(&second, "late", told(&source)[..2].to_vec());
    assert!(second.get(&Oid::new("g", "http://h/a")).unwrap().is_some());
}

/// The other gatherer's object of that URL is its own.
fn check_with_foreign(consumer: &Collection) {
    let lives = |gatherer, url| consumer.get(&Oid::new(gatherer, url)).unwrap().is_some();
    assert!(!lives("g", "http://h/a"));
    assert!(lives("g", "http://h/b") && lives("g2", "http://h/a"));
    assert_eq!(consumer.verify().unwrap().problems, []);
}

#[test]
fn of_others_objects_only_a_trusted_source_can_take_down() {
    let notice = |url| Notice::sign(&author("broker", 3), subject(url), false, "", Stamp(7));
    let take = |it: &Notice| Change::Suppress(Oid::new("g", "http://h/a"), Box::new(it.clone()));
    for (trusted, left) in [(false, 3), (true, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let consumer = consumer(dir.path(), vec![update("g", "http://h/a")]);
        if trusted {
            consumer.trust_takedowns(BTreeSet::from(["direct".to_owned()]));
        }
        apply(&consumer, "direct", vec![take(&notice("http://h/a"))]);
        assert_eq!(consumer.len(), left, "trusted: {trusted}");
        apply(&consumer, "direct", vec![Change::Delete(Oid::new("g", "http://h/b"))]);
        assert_eq!(consumer.len(), if trusted { 1 } else { 3 });
    }
}

#[test]
fn what_is_forged_or_altered_is_a_delete_like_any_other() {
    let (_dir, source) = suppressing(1);
    let alter: [fn(&mut Notice, &mut Oid); 4] = [
        |it, _| it.reason = "another".to_owned(),
        |it, _| it.subject = Subject::parse("http://h/*").unwrap(),
        |it, _| it.signature = "0".repeat(128),
        |_, oid| oid.url = "http://h/b".to_owned(),
    ];
    for (at, alter) in alter.into_iter().enumerate() {
        let altered = told(&source).into_iter().map(|change| match change {
            Change::Suppress(mut oid, mut notice) => {
                alter(&mut notice, &mut oid);
                Change::Suppress(oid, notice)
            }
            other => other,
        });
        let dir = tempfile::tempdir().unwrap();
        let consumer = consumer(dir.path(), altered.collect());
        assert_eq!(consumer.len(), 3, "the other source's hold stands ({at})");
        let takedowns = consumer.takedowns();
        assert_eq!((takedowns.forged, takedowns.active), (1, 0), "{at}");
        assert!(takedowns.last_forged.unwrap().contains("http://h/"), "{at}");
    }
    // Signed well, by another than the gatherer whose key is known.
    let (_dir, forger) = suppressing(2);
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let known = Notice::sign(&author("g", 1), subject("http://other/"), false, "", Stamp(1));
    apply(&consumer, "direct", vec![Change::Suppress(known.carrier(), Box::new(known))]);
    apply(&consumer, "direct", told(&forger));
    assert_eq!((consumer.len(), consumer.takedowns().forged), (3, 1));
}

#[test]
fn a_torn_or_damaged_record_of_the_list_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let me = author("g", 1);
    let collection = open(dir.path());
    let mut ends = vec![0];
    for url in ["http://h/1", "http://h/2", "http://h/3"] {
        collection.suppress(&me, subject(url), "long enough a reason", Stamp(7)).unwrap();
        ends.push(usize::try_from(fs::metadata(list(dir.path())).unwrap().len()).unwrap());
    }
    drop(collection);
    let whole = fs::read(list(dir.path())).unwrap();
    let active = |bytes: &[u8]| -> Vec<String> {
        fs::write(list(dir.path()), bytes).unwrap();
        let collection = open(dir.path());
        let subjects = collection.suppressions().into_iter().map(|it| it.notice.subject.url);
        subjects.collect()
    };
    for cut in (ends[2] + 1..whole.len() - 2).step_by(23) {
        assert_eq!(active(&whole[..cut]).len(), 2, "{cut}");
    }
    for at in (ends[1]..ends[2]).step_by(19) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        let left = active(&bytes);
        assert!(left.starts_with(&["http://h/1".to_owned()]), "{at}: {left:?}");
        assert!(left.contains(&"http://h/3".to_owned()), "{at}: {left:?}");
    }
    // What comes after a torn record is found again.
    fs::write(list(dir.path()), &whole[..whole.len() - 40]).unwrap();
    let collection = open(dir.path());
    collection.suppress(&me, subject("http://h/4"), "", Stamp(8)).unwrap();
    drop(collection);
    let subjects: Vec<_> =
        open(dir.path()).suppressions().into_iter().map(|it| it.notice.subject.url).collect();
    assert_eq!(subjects, ["http://h/1", "http://h/2", "http://h/4"]);
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("collection")).unwrap().map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_some_and(|it| it == "gz")).collect()
}

fn holds(dir: &Path, text: &str) -> bool {
    segments(dir).into_iter().any(|path| {
        let mut plain = Vec::new();
        let bytes = fs::read(path).unwrap();
        // An empty segment is no gzip file.
        let _ = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        plain.windows(text.len()).any(|it| it == text.as_bytes())
    })
}

#[tokio::test]
async fn a_purge_leaves_no_bytes_and_names_who_may_have_copies() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, (0..50).map(|n| update("g", &format!("http://h/{n}"))).collect());
    // Versions of before, too.
    let mut older = Record::new("FILE", "http://h/7");
    older.push("Gatherer-Id", "g");
    older.push("Title", "an older zanzibarite");
    commit(&collection, vec![Change::Update(older), update("g", "http://h/7")]);
    let feed = FeedServer::new(collection.clone(), FeedOptions::default());
    let ask = |path: String, who: &'static str| {
        let request = http::Request::builder().uri(path).header("harvest-consumer", who);
        let feed = &feed;
        async move { feed.respond(request.body(()).unwrap()).await }
    };
    let sent = ask("/feed".to_owned(), "behind").await;
    let snapshot = format!("/{}", sent.headers()["location"].to_str().unwrap());
    assert_eq!(ask(snapshot.clone(), "behind").await.status(), StatusCode::OK);

    let one = subject("http://h/7");
    assert!(matches!(feed.purge(Some(one.clone())).await, Err(Error::NotSuppressed { .. })));
    collection.suppress(&author("g", 1), one.clone(), "", Stamp(9)).unwrap();
    let have = collection.version();
    let path = format!("/feed?since={}&epoch={}", have.serial, have.epoch);
    assert_eq!(ask(path, "caught up").await.status(), StatusCode::OK);
    assert!(holds(dir.path(), "about http://h/7") && holds(dir.path(), "zanzibarite"));
    let report = feed.purge(Some(one)).await.unwrap();
    assert!(!holds(dir.path(), "about http://h/7") && !holds(dir.path(), "zanzibarite"));
    assert!(holds(dir.path(), "about http://h/8"));
    assert_eq!((report.purged.left, &report.purged.still_read), (0, &Vec::new()));
    assert_eq!(report.purged.subjects, ["http://h/7"]);
    let consumers: Vec<_> = report.consumers.into_iter().map(|it| it.name).collect();
    assert_eq!(consumers, ["behind"]);
    assert_eq!(ask(snapshot, "behind").await.status(), StatusCode::GONE);
    let sent = ask("/feed".to_owned(), "behind").await;
    let snapshot = format!("/{}", sent.headers()["location"].to_str().unwrap());
    assert_eq!(ask(snapshot, "behind").await.status(), StatusCode::OK);
    assert_eq!(collection.len(), 49);
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn what_a_reader_still_holds_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, vec![update("g", "http://h/a"), update("g", "http://h/b")]);
    let pinned = collection.pin().unwrap();
    collection.suppress(&author("g", 1), subject("http://h/a"), "", Stamp(9)).unwrap();
    let purged = collection.purge(None, Stamp(9)).unwrap();
    assert_eq!(purged.still_read.len(), 1, "{purged:?}");
    assert!(holds(dir.path(), "about http://h/a"));
    drop(pinned);
    let purged = collection.purge(None, Stamp(9)).unwrap();
    assert_eq!(purged.still_read, Vec::<PathBuf>::new());
    assert!(!holds(dir.path(), "about http://h/a"));
}
