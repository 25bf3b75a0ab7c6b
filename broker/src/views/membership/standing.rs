//! The standing of an object: the views that have it, and those that had it. It is a note of the collection, of lines:
//! `NAME`, and `!NAME SERIAL` with the serial of the last change of an object that is not in that view any more.
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
    /// The views that had it, each with the serial of its last change.
    pub(super) left: BTreeMap<String, u64>,
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
                    let left =
                        parts.and_then(|(name, it)| Some((name.to_owned(), it.parse().ok()?)));
                    read.left.extend(left);
                }
            }
        }
        read
    }

    /// Returns the note; `None`: nothing has to be noted.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let left = self.left.iter().map(|(name, serial)| format!("{LEFT}{name} {serial}"));
        let lines: Vec<String> = self.within.iter().cloned().chain(left).collect();
        (!lines.is_empty()).then(|| lines.join("\n").into_bytes())
    }

    /// Returns the standing after a change with this serial, since which these views have the object.
    pub(super) fn after(&self, serial: u64, now: BTreeSet<String>) -> Self {
        let before = self.within.iter().chain(self.left.keys());
        let left = before.filter(|it| !now.contains(*it)).map(|it| (it.clone(), serial)).collect();
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
        assert_eq!(one.after(7, names(&[])), Standing::read(b"!a 7\n!b 7"));
        assert_eq!(one.after(7, names(&["a", "b"])), both);
        assert_eq!(Standing::default().after(3, names(&[])).written(), None);
    }
}
