//! Readiness of a member, for `/readyz`.
//!
//! A member that is behind is ready: readers see a complete version, the old or the next. A member
//! that hears nothing of others is ready too. A member that cannot take a version is not ready: it
//! stays behind until an administrator acts.
//!
//! Sans-I/O.

use daemon::health::{Check, Readiness};

use crate::status::{GroupStatus, TreeStatus};

/// Maximum number of trees and groups that are named.
const NAMED_MAX: usize = 10;

/// Returns the readiness by the member's status.
pub(crate) fn readiness(groups: &[GroupStatus], trees: &[TreeStatus]) -> Readiness {
    let joining = groups.iter().filter(|it| !it.is_member).map(|it| it.name.clone());
    let listed = || trees.iter().filter(|it| it.is_listed);
    let broken = listed().filter_map(|it| Some(format!("{}: {}", label(it), missing(it)?)));
    let untaken = listed().filter_map(|it| Some(format!("{} {}", label(it), it.failure.as_ref()?)));
    let unpublished = trees.iter().filter(|it| it.is_mine).filter_map(|it| {
        let watched = it.watch.as_ref().and_then(|it| it.unpublished.as_ref());
        let followed = it.collection.as_ref().and_then(|it| it.problem.as_ref());
        Some(format!("{}: {}", label(it), watched.or(followed)?))
    });
    Readiness::new([
        Check::new(
            "in-groups",
            "it is not in all of its groups yet, and asks to join",
            joined(joining),
        ),
        Check::new(
            "replica-whole",
            "some trees or collections have no version here, or damaged files: they are fetched from others",
            joined(broken),
        ),
        Check::new(
            "takes-changes",
            "some versions could not be taken, mostly because the disk is full: readers keep the old ones",
            joined(untaken),
        ),
        Check::new(
            "publishes",
            "some trees or collections of this member's own cannot be published: readers keep the old ones",
            joined(unpublished),
        ),
    ])
}

/// Returns the readiness of a member that has stopped.
pub(crate) fn stopped() -> Readiness {
    let stopped = Some("it has stopped".to_owned());
    Readiness::new([Check::new("replica-whole", "the member is stopping: start it anew", stopped)])
}

fn label(tree: &TreeStatus) -> String {
    format!("{}@{}", tree.name, tree.writer)
}

/// Returns why readers of a tree lack data; `None` if they do not.
fn missing(tree: &TreeStatus) -> Option<String> {
    if tree.is_contradicted {
        return Some(
            "its writer contradicts itself: was its data directory put back, or copied?".to_owned(),
        );
    }
    if tree.held.is_none() {
        // Nobody misses a version that was never published.
        return tree.newest.as_ref().map(|_| "no version is here whole".to_owned());
    }
    let first = tree.damaged.first()?;
    let count = tree.damaged.len();
    Some(format!("{count} damaged, {first} the first; `harvest replicator verify` mends it"))
}

/// Joins all texts to one line; returns `None` if there are none.
fn joined(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let mut text = all.get(..all.len().min(NAMED_MAX))?.join("; ");
    if 0 < more {
        text.push_str(&format!("; and {more} more"));
    }
    Some(text).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{CollectionStatus, WatchStatus};

    fn whole() -> TreeStatus {
        TreeStatus {
            name: "t".to_owned(),
            writer: "w".to_owned(),
            held: Some("1.1".to_owned()),
            newest: Some("1.2".to_owned()),
            is_listed: true,
            is_mine: true,
            ..TreeStatus::default()
        }
    }

    fn check(tree: TreeStatus, is_member: bool, expected: &[(&str, &str)]) {
        let group = GroupStatus { name: "g".to_owned(), is_member, ..GroupStatus::default() };
        let found = readiness(&[group], &[tree]);
        let failed = found.checks.iter().filter_map(|it| Some((&*it.name, it.detail.as_deref()?)));
        assert_eq!(failed.collect::<Vec<_>>(), expected);
        assert_eq!(found.ready, expected.is_empty());
        let json = serde_json::to_string(&found.for_anybody()).unwrap();
        assert!(!json.contains("t@w"), "{json}");
    }

    #[test]
    fn each_problem_is_named() {
        check(whole(), true, &[]);
        check(whole(), false, &[("in-groups", "g")]);
        let text = "t@w: 1 damaged, a/b the first; `harvest replicator verify` mends it";
        let damaged = vec!["a/b".to_owned()];
        check(TreeStatus { damaged, ..whole() }, true, &[("replica-whole", text)]);
        let text = "t@w: no version is here whole";
        check(TreeStatus { held: None, ..whole() }, true, &[("replica-whole", text)]);
        let failure = Some("1.2: no room".to_owned());
        let untaken = TreeStatus { failure, ..whole() };
        check(untaken.clone(), true, &[("takes-changes", "t@w 1.2: no room")]);
        check(TreeStatus { is_listed: false, ..untaken }, true, &[]);
        let unpublished = TreeStatus { held: None, newest: None, ..whole() };
        check(unpublished.clone(), true, &[]);
        check(TreeStatus { is_mine: false, ..unpublished }, true, &[]);
        let unlisted = TreeStatus { held: None, is_listed: false, ..whole() };
        check(unlisted, true, &[]);
        let watch =
            Some(WatchStatus { unpublished: Some("no room".to_owned()), ..WatchStatus::default() });
        check(TreeStatus { watch, ..whole() }, true, &[("publishes", "t@w: no room")]);
        let problem = Some("no answer".to_owned());
        let collection = Some(CollectionStatus { problem, ..CollectionStatus::default() });
        check(TreeStatus { collection, ..whole() }, true, &[("publishes", "t@w: no answer")]);
    }

    #[test]
    fn many_are_counted() {
        let all = (0..12).map(|it| it.to_string());
        assert_eq!(joined(all).unwrap(), "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 2 more");
        assert_eq!(joined(std::iter::empty()), None);
    }
}
