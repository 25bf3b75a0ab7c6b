//! Tests of sources that copy a gatherer's key: they get no power over what the gatherer holds.

use collection::{Change, Owner};

use super::{Node, apply, apply_of, last, oid, stored, update, version};

/// Applies a change from a source that names the gatherer's key; `None`: the end of a snapshot.
fn apply_named(node: &Node, source: &str, serial: u64, change: impl Into<Option<Change>>) {
    let owner = Owner { id: oid().gatherer, is_shown: false };
    apply_of(node, source, owner, (serial, change.into()));
}

/// Applies a change from the gatherer, which has shown itself.
fn apply_shown(node: &Node, serial: u64, change: Change) {
    let owner = Owner { id: oid().gatherer, is_shown: true };
    apply_of(node, "gatherer", owner, (serial, Some(change)));
}

#[test]
fn who_copies_a_key_deletes_nothing_that_the_gatherer_holds() {
    for (first, second) in [("gatherer", "poser"), ("poser", "gatherer")] {
        let mut node = Node::new("me".to_owned());
        apply_named(&node, first, 1, update(1, ""));
        apply_named(&node, second, 1, update(1, ""));
        apply(&node, "b", 11, update(1, "a"));
        node.restart();
        let lies = [Some(Change::Delete(oid())), Some(Change::Withdraw(oid(), version(99))), None];
        for (serial, lie) in (20..).step_by(2).zip(lies) {
            apply_named(&node, "poser", serial, lie);
            assert_eq!(stored(&node), Some(("1".to_owned(), String::new())), "{first} {serial}");
            apply_named(&node, "poser", serial + 1, update(1, ""));
        }
        // Neither has shown itself: each ends its own hold, and the last one has deleted it.
        apply_named(&node, "gatherer", 30, Change::Delete(oid()));
        assert!(stored(&node).is_some());
        apply_named(&node, "poser", 31, Change::Delete(oid()));
        let withdrawn = Change::Withdraw(oid(), version(31));
        assert_eq!((stored(&node), last(&node)), (None, withdrawn));
    }
}

#[test]
fn what_was_deleted_in_a_gatherers_name_comes_back_with_it() {
    let mut node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, "a"));
    apply_named(&node, "poser", 12, update(1, ""));
    // As long as nobody else names the key, its word counts.
    apply_named(&node, "poser", 13, Change::Delete(oid()));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(13))));
    apply(&node, "b", 14, update(1, "a"));
    assert_eq!(stored(&node), None);
    node.restart();
    apply_named(&node, "gatherer", 2, update(1, ""));
    assert_eq!(stored(&node), Some(("1".to_owned(), String::new())));
    apply_named(&node, "poser", 15, update(1, ""));
    apply_named(&node, "poser", 16, Change::Delete(oid()));
    assert_eq!(stored(&node), Some(("1".to_owned(), String::new())));
}

#[test]
fn who_has_shown_itself_decides() {
    for is_first in [true, false] {
        let mut node = Node::new("me".to_owned());
        apply(&node, "b", 11, update(1, "a"));
        if is_first {
            apply_shown(&node, 1, update(1, ""));
        }
        apply_named(&node, "poser", 12, update(1, ""));
        if !is_first {
            apply_shown(&node, 1, update(1, ""));
        }
        apply_named(&node, "poser", 13, Change::Delete(oid()));
        assert!(stored(&node).is_some());
        apply_named(&node, "poser", 14, update(1, ""));
        node.restart();
        apply_shown(&node, 15, Change::Delete(oid()));
        assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(15))));
        // Who only names its key does not bring back what it has deleted, and it does itself.
        node.restart();
        apply_named(&node, "poser", 16, update(1, ""));
        apply(&node, "b", 17, update(1, "a"));
        assert_eq!(stored(&node), None);
        apply_shown(&node, 18, update(1, ""));
        assert_eq!(stored(&node), Some(("1".to_owned(), String::new())));
    }
}
