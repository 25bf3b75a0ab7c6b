//! Tests of takedowns: objects are deleted and refused, and the notice is passed on.

use std::fs;

use collection::{Change, Collection, Error, Healing, Notice, Oid, Scope, Stamp};

use crate::support::*;

#[test]
fn suppressed_objects_are_deleted_and_refused() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    let me = author(G, 1);
    commit(&collection, vec![update(G, "http://h/a/1"), update(G, "http://h/b")]);
    apply(&collection, "s", vec![update("g2", "http://h/a/1"), update("g2", "http://h/a/2")]);
    let done = collection.suppress(&me, subject("http://h/a/*"), "a letter", Stamp(7)).unwrap();
    assert_eq!((done.objects, done.held_by), (3, vec!["s".to_owned()]));
    check(&collection, &["http://h/b"]);
    // Updates are refused from any source.
    commit(&collection, vec![update(G, "http://h/a/1"), update(G, "http://h/c")]);
    let applied = apply(&collection, "t", vec![update(G, "http://h/a/9"), update(G, "http://h/d")]);
    assert_eq!((applied.updated, applied.refused), (1, 1));
    check(&collection, &["http://h/b", "http://h/c", "http://h/d"]);
    let takedowns = collection.takedowns();
    assert_eq!((takedowns.active, takedowns.refused, takedowns.forged), (1, 2, 0));

    drop(collection);
    let collection = open(dir.path());
    assert!(collection.is_suppressed(&Oid::new(G, "http://h/a/1")));
    commit(&collection, vec![update(G, "http://h/a/1")]);
    check(&collection, &["http://h/b", "http://h/c", "http://h/d"]);
    assert!(matches!(
        collection.lift(&me, subject("http://h/a"), Stamp(8)),
        Err(Error::NotSuppressed { .. })
    ));
    collection.lift(&me, subject("http://h/a/*"), Stamp(1)).unwrap();
    assert_eq!(collection.cursor("s").unwrap(), None, "it is read from the start");
    commit(&collection, vec![update(G, "http://h/a/1")]);
    check(&collection, &["http://h/a/1", "http://h/b", "http://h/c", "http://h/d"]);
    assert_eq!(collection.takedowns().active, 0);
}

#[test]
fn a_folder_restored_from_a_backup_does_not_restore_the_object() {
    let dir = tempfile::tempdir().unwrap();
    let (live, backup) = (dir.path().join("collection"), dir.path().join("backup"));
    let collection = open(dir.path());
    commit(&collection, vec![update(G, "http://h/a"), update(G, "http://h/b")]);
    drop(collection);
    copy(&live, &backup);
    let collection = open(dir.path());
    collection.suppress(&author(G, 1), subject("http://h/a"), "", Stamp(7)).unwrap();
    drop(collection);
    fs::remove_dir_all(&live).unwrap();
    copy(&backup, &live);
    let collection = open(dir.path());
    check(&collection, &["http://h/b"]);
    assert!(changes_of(&collection).iter().any(|it| matches!(it, Change::Suppress(..))));
    let before = collection.version();
    drop(collection);
    assert_eq!(open(dir.path()).version(), before, "it is done once");
}

#[test]
fn a_lost_byte_anywhere_does_not_restore_the_object() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, vec![update(G, "http://h/a"), update(G, "http://h/b")]);
    collection.suppress(&author(G, 1), subject("http://h/a"), "", Stamp(7)).unwrap();
    commit(&collection, vec![update(G, "http://h/c")]);
    drop(collection);
    let segment = "collection/segment-00000001.gz";
    let whole = fs::read(dir.path().join(segment)).unwrap();
    for at in (0..whole.len()).step_by(37) {
        let place = tempfile::tempdir().unwrap();
        copy(dir.path(), place.path());
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(place.path().join(segment), bytes).unwrap();
        let collection = open(place.path());
        assert!(collection.get(&Oid::new(G, "http://h/a")).unwrap().is_none(), "byte {at}");
        assert_ne!(carried_anyhow(&collection), [], "byte {at}: consumers get the notice");
    }
}

#[test]
fn a_lost_byte_at_run_time_does_not_lose_the_notice() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, vec![update(G, "http://h/a"), update(G, "http://h/b")]);
    let notice = collection.suppress(&author(G, 1), subject("http://h/a"), "", Stamp(7)).unwrap();
    drop(collection);
    let segment = "collection/segment-00000001.gz";
    let whole = fs::read(dir.path().join(segment)).unwrap();
    let mut healed = 0;
    for at in (0..whole.len()).step_by(101) {
        let place = tempfile::tempdir().unwrap();
        copy(dir.path(), place.path());
        let collection = open(place.path());
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(place.path().join(segment), bytes).unwrap();
        collection.scrub(u64::MAX).unwrap();
        if let Some(Healing::Done { .. }) = collection.heal(Stamp(8)).unwrap() {
            healed += 1;
            collection.compact(Stamp(9)).unwrap();
            assert_eq!(carried(&collection), std::slice::from_ref(&notice.notice), "byte {at}");
        }
    }
    assert!(2 < healed, "{healed}");
}

#[test]
fn one_tombstone_of_each_notice_is_kept_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    let many = |it| update(G, &format!("http://h/a/{it}"));
    commit(&collection, (0..20).map(many).chain([update(G, "http://h/b")]).collect());
    let me = author(G, 1);
    let first = collection.suppress(&me, subject("http://h/a/*"), "", Stamp(7)).unwrap().notice;
    collection.suppress(&me, subject("http://h/none"), "superseded", Stamp(7)).unwrap();
    let other = collection.suppress(&me, subject("http://h/none"), "", Stamp(8)).unwrap().notice;
    collection.compact(Stamp(9)).unwrap();
    assert!(changes_of(&collection).contains(&tombstone("http://h/a/7", &first)));
    collection.compact(Stamp(200 * 86_400_000)).unwrap();
    assert_eq!(
        changes_of(&collection),
        [update(G, "http://h/b"), carrier(&first), carrier(&other)]
    );
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn a_notice_of_the_objects_own_gatherer_counts_for_all_holders_and_is_passed_on() {
    let (_dir, source) = suppressing(1);
    let dir = tempfile::tempdir().unwrap();
    let first = consumer(dir.path(), changes_of(&source));
    check_with_foreign(&first);
    // Through a broker that never saw the gatherer, and from a compacted log.
    first.compact(Stamp(8)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let second = consumer(dir.path(), changes_of(&first));
    check_with_foreign(&second);
    let notices = |it: &Collection| -> Vec<Notice> {
        it.suppressions().into_iter().map(|it| it.notice).collect()
    };
    assert_eq!(notices(&second), notices(&source), "it is passed on as it was signed");
    assert_eq!(second.suppressions()[0].scope, Scope::Own);
    assert_eq!(second.suppressions()[0].held_by, ["other"]);
    let again = apply(&second, "other", vec![update(G, "http://h/a")]);
    assert_eq!((again.updated, again.refused), (0, 1));
    // The lift passes through both.
    source.lift(&author(G, 1), subject("http://h/a"), Stamp(9)).unwrap();
    commit(&source, vec![update(G, "http://h/a")]);
    apply(&first, "again", changes_of(&source));
    apply(&second, "again", changes_of(&first));
    assert!(!second.is_suppressed(&Oid::new(G, "http://h/a")));
    assert!(second.get(&Oid::new(G, "http://h/a")).unwrap().is_some());
    // An earlier notice does not count any more.
    apply(&second, "late", changes_of(&source)[..2].to_vec());
    assert!(second.get(&Oid::new(G, "http://h/a")).unwrap().is_some());
}

/// Checks that the object is gone, but not another gatherer's object with the same URL.
fn check_with_foreign(consumer: &Collection) {
    let lives = |gatherer, url| consumer.get(&Oid::new(gatherer, url)).unwrap().is_some();
    assert!(!lives(G, "http://h/a"));
    assert!(lives(G, "http://h/b") && lives("g2", "http://h/a"));
    assert_eq!(consumer.verify().unwrap().problems, []);
}

#[test]
fn a_torn_or_damaged_record_of_the_list_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let me = author(G, 1);
    let collection = open(dir.path());
    let mut ends = vec![0];
    for url in ["http://h/1", "http://h/2", "http://h/3"] {
        collection.suppress(&me, subject(url), "long enough a reason", Stamp(7)).unwrap();
        ends.push(usize::try_from(fs::metadata(list(dir.path())).unwrap().len()).unwrap());
    }
    drop(collection);
    let whole = fs::read(list(dir.path())).unwrap();
    // Writes the list, and removes its copy.
    let leave = |bytes: &[u8]| {
        fs::write(list(dir.path()), bytes).unwrap();
        let copy = list(dir.path()).with_extension("soif.copy");
        if copy.exists() {
            fs::remove_file(copy).unwrap();
        }
    };
    let active = |bytes: &[u8]| -> Vec<String> {
        leave(bytes);
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
    // Notices after a torn record are found again.
    leave(&whole[..whole.len() - 40]);
    let collection = open(dir.path());
    collection.suppress(&me, subject("http://h/4"), "", Stamp(8)).unwrap();
    drop(collection);
    let subjects: Vec<_> =
        open(dir.path()).suppressions().into_iter().map(|it| it.notice.subject.url).collect();
    assert_eq!(subjects, ["http://h/1", "http://h/2", "http://h/4"]);
}
