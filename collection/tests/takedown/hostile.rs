//! Tests of hostile sources: forged notices, and too many notices.

use std::collections::BTreeSet;

use collection::{Author, Change, Collection, Error, Notice, Oid, Scope, Stamp, Subject};
use net::identity::Identity;

use crate::support::*;

/// Trusts the takedowns of `source`, whose key is that of `author`, for all objects.
fn trust(consumer: &Collection, source: &str, author: &Author) {
    consumer.trust_takedowns(BTreeSet::from([source.to_owned()]));
    consumer.source_key(source, author.identity.key());
}

#[test]
fn only_a_trusted_source_can_take_down_objects_of_others() {
    let broker = owner(3);
    let notice = Notice::sign(&broker, subject("http://h/a"), false, "", Stamp(7));
    for (trusted, left) in [(false, 3), (true, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let consumer = consumer(dir.path(), vec![update(G, "http://h/a")]);
        if trusted {
            trust(&consumer, "direct", &broker);
        }
        apply(&consumer, "direct", vec![tombstone("http://h/a", &notice)]);
        assert_eq!(consumer.len(), left, "trusted: {trusted}");
        apply(&consumer, "direct", vec![Change::Delete(Oid::new(G, "http://h/b"))]);
        assert_eq!(consumer.len(), if trusted { 1 } else { 3 });
    }
}

#[test]
fn a_forged_or_altered_notice_is_a_plain_delete() {
    let (_dir, source) = suppressing(1);
    let alter: [fn(&mut Notice, &mut Oid); 4] = [
        |it, _| it.reason = "another".to_owned(),
        |it, _| it.subject = Subject::parse("http://h/*").unwrap(),
        |it, _| it.signature = "0".repeat(128),
        |_, oid| oid.url = "http://h/b".to_owned(),
    ];
    for (at, alter) in alter.into_iter().enumerate() {
        let altered = changes_of(&source).into_iter().map(|change| match change {
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
        assert_eq!((takedowns.forged, takedowns.active), (2, 0), "{at}");
        assert!(takedowns.last_forged.unwrap().contains(": it"), "{at}");
    }
    // Correctly signed, but not by the gatherer whose key is known.
    let (_dir, forger) = suppressing(2);
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let known = Notice::sign(&author(G, 1), subject("http://other/"), false, "", Stamp(1));
    apply(&consumer, "direct", vec![Change::Suppress(known.carrier(), Box::new(known))]);
    apply(&consumer, "direct", changes_of(&forger));
    assert_eq!((consumer.len(), consumer.takedowns().forged), (3, 2));
}

#[test]
fn a_listed_notice_keeps_its_scope() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let notice = Notice::sign(&owner(3), subject("http*"), false, "", Stamp(7));
    apply(&consumer, "hostile", vec![carrier(&notice)]);
    assert_eq!(consumer.suppressions()[0].scope, Scope::Own);
    for url in ["http://h/a", "http://h/b"] {
        apply(&consumer, "hostile", vec![tombstone(url, &notice)]);
    }
    assert_eq!(consumer.len(), 3);
    assert_eq!(
        carried(&consumer),
        std::slice::from_ref(&notice),
        "no other tombstone passes it on"
    );
    assert!(!changes_of(&consumer).contains(&tombstone("http://h/a", &notice)));
}

#[test]
fn the_first_key_under_a_gatherers_name_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let squatter = Author { id: G.to_owned(), identity: Identity::of(&[2; 32]).unwrap() };
    let wrong = Notice::sign(&squatter, subject("http://h/*"), false, "", Stamp(7));
    apply(&consumer, "hostile", vec![carrier(&wrong), tombstone("http://h/b", &wrong)]);
    assert_eq!((consumer.len(), consumer.takedowns().forged), (3, 2));
    // The gatherer was never seen, and its notice counts all the same.
    let right = Notice::sign(&owner(1), subject("http://h/a"), false, "", Stamp(7));
    apply(&consumer, "broker", vec![tombstone("http://h/a", &right)]);
    assert_eq!((consumer.len(), consumer.takedowns().active), (2, 1));
    assert_eq!(carried(&consumer), [right]);
}

#[test]
fn a_trusted_sources_notice_is_not_narrowed_by_an_earlier_source() {
    let trusted = owner(3);
    let notice = |at| Notice::sign(&trusted, subject("http://h/a"), false, "", Stamp(at));
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    apply(&consumer, "hostile", vec![carrier(&notice(7))]);
    assert_eq!((consumer.len(), consumer.suppressions()[0].scope), (3, Scope::Own));
    trust(&consumer, "trusted", &trusted);
    apply(&consumer, "trusted", vec![carrier(&notice(7))]);
    assert_eq!((consumer.len(), consumer.suppressions()[0].scope), (1, Scope::All));
    // A later notice keeps the scope, even after a restart before the source is seen again.
    drop(consumer);
    let consumer = open(dir.path());
    apply(&consumer, "hostile", vec![carrier(&notice(8))]);
    assert_eq!(consumer.suppressions()[0].scope, Scope::All);
    assert_eq!(apply(&consumer, "other", vec![update("g2", "http://h/a")]).refused, 1);
    // Signed with its key, a notice counts from any source.
    trust(&consumer, "trusted", &trusted);
    let other = Notice::sign(&trusted, subject("http://h/b"), false, "", Stamp(7));
    apply(&consumer, "hostile", vec![carrier(&other)]);
    assert_eq!(consumer.len(), 0);
}

#[test]
fn a_trusted_source_does_not_widen_the_notices_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    trust(&consumer, "trusted", &owner(3));
    let others = Notice::sign(&owner(4), subject("http*"), false, "", Stamp(7));
    apply(&consumer, "trusted", vec![carrier(&others)]);
    assert_eq!((consumer.len(), consumer.suppressions()[0].scope), (3, Scope::Own));
}

#[test]
fn own_notices_that_come_back_count_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let me = owner(9);
    consumer.own_key(me.identity.key());
    // The list was restored from before this notice.
    let lost = Notice::sign(&me, subject("http://h/a"), false, "", Stamp(7));
    apply(&consumer, "cascade", vec![carrier(&lost)]);
    assert_eq!((consumer.len(), consumer.suppressions()[0].scope), (1, Scope::All));
}

#[test]
fn a_lift_of_a_notice_for_all_has_sources_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let trusted = owner(3);
    trust(&consumer, "trusted", &trusted);
    let notice = |lifted, at| Notice::sign(&trusted, subject("http://h/a"), lifted, "", Stamp(at));
    apply(&consumer, "trusted", vec![carrier(&notice(false, 7))]);
    assert!(consumer.cursor("other").unwrap().is_some());
    apply(&consumer, "trusted", vec![carrier(&notice(true, 8))]);
    assert_eq!(consumer.cursor("other").unwrap(), None);
    apply(&consumer, "other", vec![update("g2", "http://h/a")]);
    assert_eq!(consumer.len(), 2);
}

#[test]
fn a_date_far_ahead_does_not_hinder_an_administrator() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let hostile = owner(3);
    for at in [Stamp(u64::MAX), Stamp(7 + 86_400_000)] {
        let ahead = Notice::sign(&hostile, subject("http://h/a"), false, "", at);
        apply(&consumer, "hostile", vec![carrier(&ahead)]);
    }
    let takedowns = consumer.takedowns();
    assert_eq!((takedowns.forged, takedowns.active), (2, 0));
    assert!(takedowns.last_forged.unwrap().contains("ahead"));
    // A foreign date does not affect a local notice.
    let later = Notice::sign(&hostile, subject("http://h/a"), false, "", Stamp(1_000));
    apply(&consumer, "hostile", vec![carrier(&later)]);
    let me = author("me", 9);
    let done = consumer.suppress(&me, subject("http://h/a"), "", Stamp(8)).unwrap();
    assert_eq!((done.objects, done.notice.at), (2, Stamp(8)));
    // A local notice with a date of a wrong clock is reported.
    let end = Stamp(u64::MAX);
    consumer.suppress(&me, subject("http://h/b"), "", end).unwrap();
    let error = consumer.lift(&me, subject("http://h/b"), Stamp(9)).unwrap_err();
    assert!(matches!(error, Error::Outdated { .. }), "{error}");
    assert!(consumer.is_suppressed(&Oid::new(G, "http://h/b")));
}

#[test]
fn a_source_cannot_exceed_its_share_of_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let consumer = consumer(dir.path(), Vec::new());
    let hostile = owner(3);
    let pattern =
        |n: u32| Notice::sign(&hostile, subject(&format!("http://x/{n}*")), false, "", Stamp(7));
    let many = (0..150).map(|n| carrier(&pattern(n))).collect();
    apply(&consumer, "hostile", many);
    let takedowns = consumer.takedowns();
    assert_eq!((takedowns.active, takedowns.surplus), (100, 50));
    assert!(takedowns.last_surplus.unwrap().contains("source hostile: too many patterns"));
    for url in
        [format!("http://x/{}*", "y".repeat(1_000)), "http://x/*a*b*c*d*e*f*g*h*i".to_owned()]
    {
        let wrong = Notice::sign(&owner(4), subject(&url), false, "", Stamp(7));
        apply(&consumer, "another", vec![carrier(&wrong)]);
    }
    assert_eq!(consumer.takedowns().surplus, 52);
    // Lifts, other sources' notices, and local notices are still taken.
    let lift = Notice::sign(&hostile, subject("http://x/5*"), true, "", Stamp(8));
    apply(&consumer, "hostile", vec![carrier(&lift)]);
    assert_eq!(consumer.takedowns().active, 99);
    let own = Notice::sign(&owner(1), subject("http://h/*"), false, "", Stamp(7));
    apply(&consumer, "another", vec![carrier(&own)]);
    assert_eq!(consumer.len(), 1);
    consumer.suppress(&author("me", 9), subject("*h/a"), "", Stamp(8)).unwrap();
    assert_eq!(consumer.len(), 0);
    // The number of notices checked in an hour is limited; the next hour begins anew.
    let many = (0..200).map(|n| carrier(&pattern(n + 1_000))).collect();
    apply(&consumer, "hostile", many);
    assert!(consumer.takedowns().last_surplus.unwrap().contains("in an hour"));
}
