//! What is known of each file of a root, what a walk has seen, and what may therefore be deleted.
//!
//! A file is not read again while its fingerprint (size, modification time, inode, and the settings
//! that its record depends on) stays the same. A file that a finished pass has not seen has vanished,
//! unless the root is *held*: an empty mount point must not delete a collection.
//!
//! # Differences from the original
//!
//! The original ran from nothing each time and let records expire; here a deletion is published at
//! once, which is why it needs the hold.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use crate::progress::Hold;

/// A pass that loses no more files than this is never held for it.
pub const LOST_FILES_MAX: u64 = 100;

/// Share of a root's files, in percent, above which a loss is held.
pub const LOST_PERCENT_MAX: u64 = 30;

/// Identifies one walk over a root or a part of it; later walks have higher numbers.
pub type Walk = u32;

/// What one look at a file's metadata says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stat {
    /// Size in bytes.
    pub size: u64,
    /// Modification time: seconds since 1970, may be negative.
    pub modified: i64,
    /// Modification time: nanoseconds within the second.
    pub modified_nanos: u32,
    /// Inode number.
    pub inode: u64,
}

/// What is known of a file: 16 bytes beside its hashed path, so that ten million fit in memory.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Fingerprint of the file as last committed; [`UNSURE`] never matches.
    print: u64,
    /// The last walk that has seen it.
    seen: Walk,
    /// The walk by which it was committed.
    committed: Walk,
}

/// The fingerprint of a file that is to be read again whatever its metadata says.
const UNSURE: u64 = 0;

/// The files of one root as last committed.
///
/// Two walks may be under way at once: a pass, and a look at what a watcher has named. The later one
/// has the higher number and looked later, so what it has committed is not overtaken by the earlier.
#[derive(Debug, Default)]
pub struct Known {
    files: HashMap<Key, Mark, BuildHasherDefault<Half>>,
    /// Files deleted, and by which walk, since [`Known::handle_quiet`].
    gone: HashMap<Key, Walk>,
    prints: Prints,
}

/// A path, hashed with two random keys: names cannot be made to collide.
type Key = u128;

/// Hashes a [`Key`], which is random already, to half of itself.
#[derive(Debug, Default)]
struct Half(u64);

impl Hasher for Half {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| (sum << 8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64;
    }
}

/// Hashes paths and metadata for one [`Known`], with random keys of its own.
#[derive(Clone, Debug, Default)]
pub struct Prints {
    low: RandomState,
    high: RandomState,
}

/// A file that a walk has found, hashed.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    key: Key,
    print: u64,
}

impl Prints {
    /// Returns what a [`Known`] needs of the file at `path`.
    pub fn found(&self, path: &[u8], stat: Stat, settings: u64) -> Found {
        Found { key: self.key(path), print: self.print(stat, settings) }
    }

    fn key(&self, path: &[u8]) -> Key {
        (Key::from(self.high.hash_one(path)) << 64) | Key::from(self.low.hash_one(path))
    }

    fn print(&self, stat: Stat, settings: u64) -> u64 {
        self.low.hash_one((stat, settings)).max(UNSURE + 1)
    }
}

impl Known {
    /// Returns the number of files known.
    pub fn len(&self) -> u64 {
        self.files.len() as u64
    }

    /// Returns whether no file is known.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Notes that the file at `path` was committed as it was at `stat` (`None`: it may have changed
    /// while it was read, so the next walk shall read it again), seen by `walk`.
    pub fn learn(&mut self, path: &[u8], stat: Option<Stat>, settings: u64, walk: Walk) {
        let print = stat.map_or(UNSURE, |stat| self.prints.print(stat, settings));
        let key = self.key(path);
        let seen = self.files.get(&key).map_or(walk, |mark| mark.seen.max(walk));
        self.files.insert(key, Mark { print, seen, committed: walk });
    }

    /// Has the next walk read a file again.
    pub fn doubt(&mut self, path: &[u8]) {
        let key = self.key(path);
        if let Some(mark) = self.files.get_mut(&key) {
            mark.print = UNSURE;
        }
    }

    /// Returns whether a later walk than `walk` has committed the file at `path`, or its deletion.
    pub fn is_overtaken(&self, path: &[u8], walk: Walk) -> bool {
        let key = self.key(path);
        self.files.get(&key).is_some_and(|mark| walk < mark.committed)
            || self.gone.get(&key).is_some_and(|gone| walk < *gone)
    }

    /// Returns the walk by which the file at `path` was committed; `None` when it is not known.
    pub fn committed(&self, path: &[u8]) -> Option<Walk> {
        self.files.get(&self.key(path)).map(|mark| mark.committed)
    }

    /// Notes that no walk is under way.
    pub fn handle_quiet(&mut self) {
        self.gone = HashMap::new();
    }

    /// Returns what hashes for this: most of the work on a file, which many threads can do at once.
    pub fn prints(&self) -> Prints {
        self.prints.clone()
    }

    /// Takes a file that `walk` has found, and returns whether it is to be read.
    pub fn handle_file(&mut self, found: Found, walk: Walk) -> bool {
        match self.files.get_mut(&found.key) {
            None => true,
            Some(mark) => {
                mark.seen = mark.seen.max(walk);
                mark.print != found.print
            }
        }
    }

    /// Forgets a file whose deletion `walk` has committed.
    pub fn forget(&mut self, path: &[u8], walk: Walk) {
        let key = self.key(path);
        self.files.remove(&key);
        self.gone.insert(key, walk);
    }

    /// Returns how many known files neither `walk` nor a later one has seen.
    pub fn unseen(&self, walk: Walk) -> u64 {
        self.files.values().filter(|mark| mark.seen < walk).count() as u64
    }

    /// Returns whether the file at `path` is known, and seen neither by `walk` nor by a later one.
    pub fn is_unseen(&self, path: &[u8], walk: Walk) -> bool {
        self.files.get(&self.key(path)).is_some_and(|mark| mark.seen < walk)
    }

    /// Counts a known file as seen although the walk could not look: what lies below a directory
    /// that cannot be read is not gone.
    pub fn spare(&mut self, path: &[u8], walk: Walk) {
        let key = self.key(path);
        if let Some(mark) = self.files.get_mut(&key) {
            mark.seen = mark.seen.max(walk);
        }
    }

    fn key(&self, path: &[u8]) -> Key {
        self.prints.key(path)
    }
}

/// What a walk found at a root's top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// Nothing, or nothing that can be read.
    Missing,
    /// It is there.
    Present {
        /// The number of the device that it is on.
        device: u64,
        /// Whether a walk over the whole of it has found no file.
        is_empty: bool,
    },
}

/// The losses that a deletion would make, and what they are measured against.
#[derive(Clone, Debug)]
pub struct Losses<'a> {
    /// What the walk found.
    pub top: Top,
    /// The device of earlier passes, if there were any.
    pub device: Option<u64>,
    /// Most files that were known since the end of the last pass, at the end of an order.
    pub of: u64,
    /// Files lost since then, those of now among them.
    pub lost: u64,
    /// Files to be deleted now.
    pub now: u64,
    /// The hold that is in force.
    pub held: Option<&'a Hold>,
    /// Whether an administrator has released it.
    pub confirmed: bool,
}

/// Decides whether the losses are to be held.
///
/// Once held, a root stays held until nothing is missing any more or an administrator confirms: a
/// loss in slices is a loss too.
pub fn hold(losses: &Losses<'_>) -> Option<Hold> {
    if losses.now == 0 || losses.confirmed {
        return None;
    }
    let lost = losses.lost;
    match losses.top {
        Top::Missing => Some(Hold::Missing),
        Top::Present { is_empty: true, .. } => Some(Hold::Empty),
        Top::Present { device, .. } if losses.device.is_some_and(|before| before != device) => {
            Some(Hold::OtherDevice)
        }
        Top::Present { .. }
            if LOST_FILES_MAX < lost && losses.of * LOST_PERCENT_MAX < lost * 100 =>
        {
            Some(Hold::Lost { lost, of: losses.of })
        }
        Top::Present { .. } => losses.held.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: Stat = Stat { size: 1, modified: 2, modified_nanos: 3, inode: 4 };

    fn handle(known: &mut Known, path: &[u8], stat: Stat, settings: u64, walk: Walk) -> bool {
        known.handle_file(known.prints().found(path, stat, settings), walk)
    }

    #[test]
    fn a_file_is_read_when_any_part_of_its_fingerprint_changes() {
        let mut known = Known::default();
        assert!(handle(&mut known, b"/a", STAT, 7, 1));
        known.learn(b"/a", Some(STAT), 7, 1);
        assert!(!handle(&mut known, b"/a", STAT, 7, 2));
        for other in [
            Stat { size: 9, ..STAT },
            Stat { modified: 9, ..STAT },
            Stat { modified_nanos: 9, ..STAT },
            Stat { inode: 9, ..STAT },
        ] {
            assert!(handle(&mut known, b"/a", other, 7, 2), "{other:?}");
        }
        assert!(handle(&mut known, b"/a", STAT, 8, 2), "other settings");
        known.learn(b"/a", None, 7, 2);
        assert!(handle(&mut known, b"/a", STAT, 7, 3), "changed while it was read");
    }

    #[test]
    fn what_a_walk_has_not_seen_is_unseen() {
        let mut known = Known::default();
        for path in [b"/a", b"/b", b"/c"] {
            known.learn(path, Some(STAT), 0, 1);
        }
        handle(&mut known, b"/a", STAT, 0, 2);
        known.spare(b"/b", 2);
        assert_eq!(known.unseen(2), 1);
        assert!(known.is_unseen(b"/c", 2) && !known.is_unseen(b"/a", 2));
        assert!(!known.is_unseen(b"/never", 2));
        known.forget(b"/c", 2);
        assert_eq!((known.unseen(2), known.len()), (0, 2));
    }

    #[test]
    fn a_later_walk_is_not_overtaken_by_an_earlier_one() {
        let mut known = Known::default();
        known.learn(b"/a", Some(STAT), 0, 2);
        known.learn(b"/b", Some(STAT), 0, 1);
        known.forget(b"/c", 2);
        let overtaken = |known: &Known, path| known.is_overtaken(path, 1);
        assert!(overtaken(&known, b"/a") && overtaken(&known, b"/c"));
        assert!(!overtaken(&known, b"/b") && !overtaken(&known, b"/d"));
        assert!(!known.is_overtaken(b"/a", 2));
        assert_eq!(known.unseen(1), 0, "what a later walk has brought is not gone");
        known.handle_quiet();
        assert!(!overtaken(&known, b"/c"));
    }

    #[track_caller]
    fn check(losses: &Losses<'_>, expected: Option<Hold>) {
        assert_eq!(hold(losses), expected, "{losses:?}");
    }

    #[test]
    fn a_mass_deletion_is_held() {
        let plain = Losses {
            top: Top::Present { device: 1, is_empty: false },
            device: Some(1),
            of: 1_000,
            lost: 300,
            now: 300,
            held: None,
            confirmed: false,
        };
        let lost = |lost| Some(Hold::Lost { lost, of: 1_000 });
        check(&plain, None);
        check(&Losses { lost: 301, ..plain.clone() }, lost(301));
        check(&Losses { lost: 301, confirmed: true, ..plain.clone() }, None);
        // In slices it is a loss too, and what came in for what went is none.
        check(&Losses { lost: 301, now: 1, ..plain.clone() }, lost(301));
        check(&Losses { lost: 0, ..plain.clone() }, None);
        check(&Losses { of: 110, lost: 100, ..plain.clone() }, None);
        check(
            &Losses { of: 110, lost: 101, ..plain.clone() },
            Some(Hold::Lost { lost: 101, of: 110 }),
        );
        check(&Losses { device: Some(2), now: 1, ..plain.clone() }, Some(Hold::OtherDevice));
        check(&Losses { device: Some(2), now: 0, ..plain.clone() }, None);
        check(&Losses { top: Top::Missing, now: 1, ..plain.clone() }, Some(Hold::Missing));
        let empty = Top::Present { device: 1, is_empty: true };
        check(&Losses { top: empty, now: 1, ..plain.clone() }, Some(Hold::Empty));
        check(&Losses { top: empty, now: 0, ..plain.clone() }, None);
    }

    #[test]
    fn a_hold_lasts_until_nothing_is_missing() {
        let losses = Losses {
            top: Top::Present { device: 1, is_empty: false },
            device: Some(1),
            of: 1_000,
            lost: 1,
            now: 1,
            held: Some(&Hold::Empty),
            confirmed: false,
        };
        check(&losses, Some(Hold::Empty));
        check(&Losses { now: 0, ..losses.clone() }, None);
    }
}
