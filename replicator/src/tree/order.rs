//! The order of paths: a check that they can be in one tree on every member's file system.
//!
//! All paths below a directory come together. So it is enough to remember the names in the
//! directories that lead to the last path, each as 16 bytes of the hash of its folded form.
//!
//! Sans-I/O.

use std::collections::HashSet;

use super::path::{EntryPath, fold};
use crate::version::Hash;

/// Maximum number of names in one directory, together with those in the directories above it. They
/// take about 35 MB.
pub const SIBLINGS_MAX: usize = 1 << 20;

/// The reason why a path cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Clash {
    /// The path comes before the last one, or is equal to it.
    #[error("{0:?} does not come after {1:?}")]
    Order(EntryPath, EntryPath),
    /// The path is below an entry that is not a directory, or that was listed as an empty
    /// directory.
    #[error("{0:?} is below {1:?}, which is an entry of its own")]
    Below(EntryPath, EntryPath),
    /// The folder of the path is not listed before it.
    #[error("{0:?} is in a folder that is not listed before it")]
    Unlisted(EntryPath),
    /// The name of the path, or of a directory above it, is the same as another name on some
    /// systems.
    #[error(
        "{0:?} has a name that differs from another in its directory by case or composition alone: rename one"
    )]
    Folds(EntryPath),
    /// There are more than [`SIBLINGS_MAX`] names to remember.
    #[error("{0:?} is one of more than {SIBLINGS_MAX} names in its directory and those above")]
    TooMany(EntryPath),
}

/// Checks paths in the order in which they are listed.
#[derive(Debug, Default)]
pub struct Order {
    last: Option<EntryPath>,
    /// Whether the last path is a folder whose entries may follow.
    is_open: bool,
    /// The names in each directory that leads to the last path, from the top down.
    open: Vec<HashSet<u128>>,
    pub(super) names: usize,
}

impl Order {
    /// Takes the next path of a list that names only empty folders.
    ///
    /// # Errors
    ///
    /// The path cannot follow the paths before it. Nothing has changed, and another path may be
    /// tried.
    pub fn accept(&mut self, path: &EntryPath) -> Result<(), Clash> {
        self.take(path, false)
    }

    /// Takes the next path of a list that names each folder before its entries.
    pub fn accept_listed(&mut self, path: &EntryPath, is_folder: bool) -> Result<(), Clash> {
        self.take(path, true)?;
        self.is_open = is_folder;
        Ok(())
    }

    fn take(&mut self, path: &EntryPath, is_listed: bool) -> Result<(), Clash> {
        let mut common = 0;
        if let Some(last) = &self.last {
            if path <= last {
                return Err(Clash::Order(path.clone(), last.clone()));
            }
            if last.is_above(path) && !self.is_open {
                return Err(Clash::Below(path.clone(), last.clone()));
            }
            common = path.components().zip(last.components()).take_while(|(a, b)| a == b).count();
        }
        let fresh: Vec<u128> = path.components().skip(common).map(key).collect();
        // All folders above the path have been listed if only its last name is new.
        if is_listed && 1 < fresh.len() {
            return Err(Clash::Unlisted(path.clone()));
        }
        let is_taken = |names: &HashSet<u128>| fresh.first().is_some_and(|it| names.contains(it));
        if self.open.get(common).is_some_and(is_taken) {
            return Err(Clash::Folds(path.clone()));
        }
        let closed: usize = self.open.iter().skip(common + 1).map(HashSet::len).sum();
        let names = self.names - closed + fresh.len();
        if SIBLINGS_MAX < names {
            return Err(Clash::TooMany(path.clone()));
        }
        self.names = names;
        self.open.truncate(common + 1);
        for (depth, name) in (common..).zip(fresh) {
            match self.open.get_mut(depth) {
                Some(names) => {
                    names.insert(name);
                }
                None => self.open.push(HashSet::from([name])),
            }
        }
        self.last = Some(path.clone());
        Ok(())
    }
}

fn key(name: &str) -> u128 {
    u128::from_le_bytes(Hash::of(fold(name).as_bytes()).first())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> EntryPath {
        EntryPath::new(text).unwrap()
    }

    fn check(paths: &[&str], expected: &Result<(), Clash>) {
        let mut order = Order::default();
        let (last, before) = paths.split_last().unwrap();
        before.iter().for_each(|it| order.accept(&path(it)).unwrap());
        assert_eq!(&order.accept(&path(last)), expected, "{paths:?}");
    }

    #[test]
    fn paths_that_clash_are_refused() {
        check(&["a", "b"], &Ok(()));
        check(&["A/x", "b/X"], &Ok(()));
        check(&["a/b", "a/c/d", "ab"], &Ok(()));
        check(&["a", "a"], &Err(Clash::Order(path("a"), path("a"))));
        check(&["b", "a/c"], &Err(Clash::Order(path("a/c"), path("b"))));
        check(&["a!", "a/b"], &Err(Clash::Order(path("a/b"), path("a!"))));
        check(&["a", "a/b"], &Err(Clash::Below(path("a/b"), path("a"))));
        check(&["a", "a/b/c"], &Err(Clash::Below(path("a/b/c"), path("a"))));
        check(&["A", "a"], &Err(Clash::Folds(path("a"))));
        check(&["A/x", "a/y"], &Err(Clash::Folds(path("a/y"))));
        check(&["d/R/x/y", "d/R/z", "d/b", "d/r"], &Err(Clash::Folds(path("d/r"))));
        check(&["e\u{301}", "x", "é"], &Err(Clash::Folds(path("é"))));
    }

    #[test]
    fn listed_folders_come_before_their_entries() {
        let check = |paths: &[&str], expected: &Result<(), Clash>| {
            let mut order = Order::default();
            let mut take = |it: &str| {
                let name = it.trim_end_matches('/');
                order.accept_listed(&path(name), it != name)
            };
            let (last, before) = paths.split_last().unwrap();
            before.iter().for_each(|it| take(it).unwrap());
            assert_eq!(&take(last), expected, "{paths:?}");
        };
        check(&["a/", "a/b", "a/c/", "a/c/d", "e"], &Ok(()));
        check(&["a/", "b"], &Ok(()));
        check(&["a", "a/b"], &Err(Clash::Below(path("a/b"), path("a"))));
        check(&["a/b"], &Err(Clash::Unlisted(path("a/b"))));
        check(&["a/", "a/b/c"], &Err(Clash::Unlisted(path("a/b/c"))));
        check(&["a/", "a/b", "c/d"], &Err(Clash::Unlisted(path("c/d"))));
        check(&["A/", "A/x", "a/"], &Err(Clash::Folds(path("a"))));
    }

    #[test]
    fn a_path_that_is_refused_changes_nothing() {
        let mut order = Order::default();
        order.accept(&path("A/b")).unwrap();
        assert!(order.accept(&path("a/x/y")).is_err());
        order.accept(&path("A/c")).unwrap();
        assert!(order.accept(&path("A/C/d")).is_err() || order.accept(&path("A/c/d")).is_err());
        assert_eq!(order.names, 3);
    }

    #[test]
    fn names_are_remembered_up_to_a_bound() {
        let mut order = Order::default();
        order.accept(&path("d/a")).unwrap();
        // Pretend that there is room for one more name.
        order.names = SIBLINGS_MAX - 1;
        order.accept(&path("d/b")).unwrap();
        assert_eq!(order.accept(&path("d/c")), Err(Clash::TooMany(path("d/c"))));
        order.names = 3;
        // The names of a finished directory are forgotten.
        order.accept(&path("e/f")).unwrap();
        assert_eq!(order.names, 3);
    }

    proptest! {
        #[test]
        fn the_streamed_check_agrees_with_a_check_of_the_whole_set(
            paths in prop::collection::btree_set("[aAbé]{1,2}(/[aAbE]{1,2}){0,2}", 1..12)
        ) {
            let paths: BTreeSet<EntryPath> = paths.iter().map(|it| path(it)).collect();
            let mut order = Order::default();
            let streamed = paths.iter().try_for_each(|it| order.accept(it)).is_ok();
            // Names clash unless there are as many folded forms as names.
            let heads = |it: &EntryPath| -> Vec<Vec<String>> {
                let all: Vec<String> = it.components().map(str::to_owned).collect();
                (1..=all.len()).map(|n| all[..n].to_vec()).collect()
            };
            let plain: BTreeSet<Vec<String>> = paths.iter().flat_map(heads).collect();
            let folded: BTreeSet<Vec<String>> =
                plain.iter().map(|it| it.iter().map(|name| fold(name)).collect()).collect();
            let is_nested = paths.iter().any(|it| paths.iter().any(|other| it.is_above(other)));
            prop_assert_eq!(streamed, plain.len() == folded.len() && !is_nested);
        }
    }
}
