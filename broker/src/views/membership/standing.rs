//! The standing of an object: the views that have it, and those that had it. It is a note of the collection, of lines:
//! `NAME`, and `!NAME LAST` or `!NAME LAST BY` with the serials of the last change of an object that is not in that view any
//! more, and of the change by which it left, if that is another one.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};

/// Begins the line of a view that has the object no more.
const LEFT: char = '!';

/// The standing of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The views that have it.
    pub(super) within: BTreeSet<String>,
    /// The views that had it.
    pub(super) left: BTreeMap<String, Left>,
}

/// By what an object left a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// Serial of its last change.
    pub(super) last: u64,
    /// Serial of the change by which it left.
    pub(super) by: u64,
}

impl Left {
    fn read(text: &str) -> Option<Self> {
        let (last, by) = text.split_once(' ').unwrap_or((text, text));
        Some(Self { last: last.parse().ok()?, by: by.parse().ok()? })
    }
}

impl Standing {
    /// Reads a note; leaves out what it does not understand.
    pub(super) fn read(note: &[u8]) -> Self {
        let mut read = Self::default();
        for line in std::str::from_utf8(note).unwrap_or_default().lines() {
            match line.strip_prefix(LEFT) {
                None => drop(read.within.insert(line.to_owned())),
                Some(line) => {
                    let parts = line.split_once(' ');
                    read.left.extend(
                        parts.and_then(|(name, it)| Some((name.to_owned(), Left::read(it)?))),
                    );
                }
            }
        }
        read
    }

    /// Returns the note; `None`: nothing has to be noted.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let left = self.left.iter().map(|(name, Left { last, by })| match last == by {
            true => format!("{LEFT}{name} {last}"),
            false => format!("{LEFT}{name} {last} {by}"),
        });
        let lines: Vec<String> = self.within.iter().cloned().chain(left).collect();
        (!lines.is_empty()).then(|| lines.join("\n").into_bytes())
    }

    /// Returns the standing after a change with this serial, since which these views have the object.
    pub(super) fn after(&self, serial: u64, now: BTreeSet<String>) -> Self {
        let leaves = self.within.iter().map(|it| (it, serial));
        let before = self.left.iter().map(|(name, it)| (name, it.by)).chain(leaves);
        let left = before.filter(|it| !now.contains(it.0));
        let left = left.map(|(name, by)| (name.clone(), Left { last: serial, by })).collect();
        Self { within: now, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_left_is_known_until_it_comes_again() {
        let names = |them: &[&str]| them.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
        let both = Standing::default().after(3, names(&["a", "b"]));
        assert_eq!(both, Standing::read(b"a\nb"));
        let one = both.after(4, names(&["b"]));
        assert_eq!(one.written().unwrap(), b"b\n!a 4");
        assert_eq!(Standing::read(b"b\n!a 4\n!c\n!d x"), one);
        let none = one.after(7, names(&[]));
        assert_eq!(none.written().unwrap(), b"!a 7 4\n!b 7");
        assert_eq!(none, Standing::read(b"!a 7 4\n!b 7\n!c 7 x"));
        assert_eq!(none.after(9, names(&["a"])), Standing::read(b"a\n!b 9 7"));
        assert_eq!(one.after(7, names(&["a", "b"])), both);
        assert_eq!(Standing::default().after(3, names(&[])).written(), None);
    }
}
