//! The known set of a root: its objects' fingerprints, the walks that saw them, and the hold on
//! deletions.
//!
//! An object is not read again while its fingerprint (of its validator, and of the settings that
//! its record depends on) stays the same. An object that a finished pass has not seen has vanished,
//! unless the root is *held*: an empty mount point must not delete a collection.
//!
//! # Differences from the original
//!
//! The original started from scratch each time and let records expire. Here a deletion is published
//! immediately, and therefore the hold is needed.
//!
//! Sans-I/O.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use crate::progress::Hold;
use crate::validator::Validator;

/// Maximum number of files that may be lost without a hold, whatever their share.
pub const LOST_FILES_MAX: u64 = 100;

/// Maximum share of a root's files, in percent, that may be lost without a hold, however many.
pub const LOST_PERCENT_MAX: u64 = 30;

/// Number of a walk over a root or a part of it; later walks have higher numbers.
pub type Walk = u32;

/// Entry for an object: 16 bytes in addition to its hashed URL, so that ten million fit in memory.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Fingerprint of the object as last committed; [`UNSURE`] never matches.
    fingerprint: u64,
    /// The last walk that saw the object.
    seen: Walk,
    /// The walk that committed the object.
    committed: Walk,
}

/// Fingerprint of an object that has to be read again, whatever its validator.
const UNSURE: u64 = 0;

/// Objects of one root as they were last committed.
///
/// Two walks may be under way at once: a pass, and a look at paths from a watcher. The later one
/// has the higher number and newer data, so the earlier one must not replace what the later one
/// committed.
#[derive(Debug, Default)]
pub struct KnownSet {
    objects: HashMap<Key, Mark, BuildHasherDefault<KeyHasher>>,
    /// Deleted objects, each with the walk that deleted it, since the last
    /// [`KnownSet::handle_quiet`].
    gone: HashMap<Key, Walk>,
    /// The latest walk that was begun.
    latest: Walk,
    hasher: ObjectHasher,
}

/// URL hashed with two random keys, so that nobody can cause collisions.
type Key = u128;

/// Hasher of a [`Key`], which is already random: returns half of it.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
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

/// Hasher of URLs and validators for one [`KnownSet`], with its own random keys.
#[derive(Clone, Debug, Default)]
pub struct ObjectHasher {
    low: RandomState,
    high: RandomState,
}

/// Hashed URL and fingerprint of an object.
#[derive(Clone, Copy, Debug)]
pub struct HashedObject {
    key: Key,
    fingerprint: u64,
}

impl ObjectHasher {
    /// Hashes the object at `url` for [`KnownSet::handle_object`].
    pub fn hash(&self, url: &str, validator: &Validator, settings: u64) -> HashedObject {
        HashedObject { key: self.key(url), fingerprint: self.fingerprint(validator, settings) }
    }

    fn key(&self, url: &str) -> Key {
        (Key::from(self.high.hash_one(url)) << 64) | Key::from(self.low.hash_one(url))
    }

    fn fingerprint(&self, validator: &Validator, settings: u64) -> u64 {
        self.low.hash_one((validator, settings)).max(UNSURE + 1)
    }
}

impl KnownSet {
    /// Returns the number of known objects.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Returns whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Notes that `walk` begins.
    pub fn begin(&mut self, walk: Walk) {
        self.latest = self.latest.max(walk);
    }

    /// Notes that `walk` committed the object at `url` with this validator. `None` means that the
    /// object may have changed while it was read: the next walk reads it again.
    ///
    /// The object counts as seen by all walks under way: a later one may have seen it before it was
    /// known, and then had nothing to commit.
    pub fn learn(&mut self, url: &str, validator: Option<&Validator>, settings: u64, walk: Walk) {
        let fingerprint = validator.map_or(UNSURE, |it| self.hasher.fingerprint(it, settings));
        let key = self.key(url);
        let seen = walk.max(self.latest);
        self.objects.insert(key, Mark { fingerprint, seen, committed: walk });
    }

    /// Makes the next walk read an object again.
    pub fn doubt(&mut self, url: &str) {
        let key = self.key(url);
        if let Some(mark) = self.objects.get_mut(&key) {
            mark.fingerprint = UNSURE;
        }
    }

    /// Returns whether a walk later than `walk` has committed the object at `url`, or its deletion.
    pub fn is_overtaken(&self, url: &str, walk: Walk) -> bool {
        let key = self.key(url);
        self.objects.get(&key).is_some_and(|mark| walk < mark.committed)
            || self.gone.get(&key).is_some_and(|gone| walk < *gone)
    }

    /// Returns the walk that committed the object at `url`; `None` if it is not known.
    pub fn committed(&self, url: &str) -> Option<Walk> {
        self.objects.get(&self.key(url)).map(|mark| mark.committed)
    }

    /// Notes that no walk is under way.
    pub fn handle_quiet(&mut self) {
        self.gone = HashMap::new();
    }

    /// Returns the hasher of this set. Hashing is most of the work on an object; with copies of the
    /// hasher, threads hash without a lock.
    pub fn hasher(&self) -> ObjectHasher {
        self.hasher.clone()
    }

    /// Notes that `walk` has seen an object. Returns whether the object has to be read.
    pub fn handle_object(&mut self, object: HashedObject, walk: Walk) -> bool {
        match self.objects.get_mut(&object.key) {
            None => true,
            Some(mark) => {
                mark.seen = mark.seen.max(walk);
                mark.fingerprint != object.fingerprint
            }
        }
    }

    /// Forgets an object whose deletion `walk` has committed.
    pub fn forget(&mut self, url: &str, walk: Walk) {
        let key = self.key(url);
        self.objects.remove(&key);
        self.gone.insert(key, walk);
    }

    /// Returns the number of known objects that neither `walk` nor a later one has seen.
    pub fn unseen(&self, walk: Walk) -> u64 {
        self.objects.values().filter(|mark| mark.seen < walk).count() as u64
    }

    /// Returns whether the object at `url` is known, but neither `walk` nor a later walk has seen
    /// it.
    pub fn is_unseen(&self, url: &str, walk: Walk) -> bool {
        self.objects.get(&self.key(url)).is_some_and(|mark| mark.seen < walk)
    }

    /// Marks all known objects as seen by `walk`, but those at `gone` as not seen: of a crawl, which
    /// knows what is gone and never takes anything for gone because it was not found.
    pub fn settle<'a>(&mut self, gone: impl IntoIterator<Item = &'a String>, walk: Walk) {
        let gone: HashSet<Key> = gone.into_iter().map(|url| self.key(url)).collect();
        for (key, mark) in &mut self.objects {
            mark.seen = if gone.contains(key) { 0 } else { mark.seen.max(walk) };
        }
    }

    /// Returns whether an object is known and need not be read.
    pub fn is_same(&self, object: HashedObject) -> bool {
        self.objects.get(&object.key).is_some_and(|mark| mark.fingerprint == object.fingerprint)
    }

    /// Marks a known object as seen although the walk could not check it: objects below an
    /// unreadable directory are not gone.
    pub fn spare(&mut self, url: &str, walk: Walk) {
        let key = self.key(url);
        if let Some(mark) = self.objects.get_mut(&key) {
            mark.seen = mark.seen.max(walk);
        }
    }

    fn key(&self, url: &str) -> Key {
        self.hasher.key(url)
    }
}

/// State of a root's top, as a walk found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// It does not exist, or cannot be read.
    Missing,
    /// It exists.
    Present {
        /// The number of the device that it is on.
        device: u64,
        /// Whether a walk over the whole root has found no file.
        is_empty: bool,
    },
}

/// Losses by a deletion, and the numbers with which they are compared.
#[derive(Clone, Debug)]
pub struct Losses<'a> {
    /// State of the root's top.
    pub top: Top,
    /// The device of earlier passes, if there were any.
    pub device: Option<u64>,
    /// Maximum number of known files since the end of the last pass without a hold.
    pub of: u64,
    /// Number of files lost since that time, including `now`.
    pub lost: u64,
    /// Number of files to delete now.
    pub now: u64,
    /// The hold that is in force.
    pub held: Option<&'a Hold>,
    /// Whether an administrator has released this hold.
    pub confirmed: bool,
}

/// Decides whether the losses are held. Returns the reason; `None` if they are not held.
///
/// A held root stays held until nothing is missing any more or an administrator confirms the loss.
/// Losses in several steps add up.
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
    use crate::validator::Stat;

    const STAT: Stat = Stat { size: 1, modified: 2, modified_nanos: 3, inode: 4 };
    const FILE: Validator = Validator::File(STAT);

    fn handle(known: &mut KnownSet, url: &str, stat: Stat, settings: u64, walk: Walk) -> bool {
        known.handle_object(known.hasher().hash(url, &Validator::File(stat), settings), walk)
    }

    #[test]
    fn a_file_is_read_when_any_part_of_its_fingerprint_changes() {
        let mut known = KnownSet::default();
        assert!(handle(&mut known, "file:///a", STAT, 7, 1));
        known.learn("file:///a", Some(&FILE), 7, 1);
        assert!(!handle(&mut known, "file:///a", STAT, 7, 2));
        for other in [
            Stat { size: 9, ..STAT },
            Stat { modified: 9, ..STAT },
            Stat { modified_nanos: 9, ..STAT },
            Stat { inode: 9, ..STAT },
        ] {
            assert!(handle(&mut known, "file:///a", other, 7, 2), "{other:?}");
        }
        assert!(handle(&mut known, "file:///a", STAT, 8, 2), "other settings");
        known.learn("file:///a", None, 7, 2);
        assert!(handle(&mut known, "file:///a", STAT, 7, 3), "changed while it was read");
    }

    #[test]
    fn a_page_is_read_when_any_part_of_its_validator_changes() {
        let page = |etag: &str, last_modified: &str, md5: &str| Validator::Http {
            etag: Some(etag.to_owned()),
            last_modified: Some(last_modified.to_owned()),
            md5: md5.to_owned(),
        };
        let (mut known, url) = (KnownSet::default(), "https://a.example/");
        known.learn(url, Some(&page("\"1\"", "now", "00")), 7, 1);
        let mut is_read = |it| known.handle_object(known.hasher().hash(url, &it, 7), 2);
        assert!(!is_read(page("\"1\"", "now", "00")));
        assert!(is_read(page("\"2\"", "now", "00")));
        assert!(is_read(page("\"1\"", "then", "00")));
        assert!(is_read(page("\"1\"", "now", "11")));
    }

    #[test]
    fn objects_that_a_walk_did_not_see_are_unseen() {
        let mut known = KnownSet::default();
        for url in ["file:///a", "file:///b", "file:///c"] {
            known.learn(url, Some(&FILE), 0, 1);
        }
        handle(&mut known, "file:///a", STAT, 0, 2);
        known.spare("file:///b", 2);
        assert_eq!(known.unseen(2), 1);
        assert!(known.is_unseen("file:///c", 2) && !known.is_unseen("file:///a", 2));
        assert!(!known.is_unseen("file:///never", 2));
        known.forget("file:///c", 2);
        assert_eq!((known.unseen(2), known.len()), (0, 2));
    }

    #[test]
    fn an_object_that_an_earlier_walk_commits_meanwhile_has_not_vanished() {
        let mut known = KnownSet::default();
        let is_seen_by = |known: &mut KnownSet, walk| {
            known.begin(walk);
            handle(known, "file:///a", STAT, 0, walk)
        };
        assert!(is_seen_by(&mut known, 1) && is_seen_by(&mut known, 2));
        known.learn("file:///a", Some(&FILE), 0, 1);
        assert!(!known.is_unseen("file:///a", 2) && known.unseen(2) == 0);
        known.begin(3);
        assert!(known.is_unseen("file:///a", 3));
    }

    #[test]
    fn a_later_walk_is_not_overtaken_by_an_earlier_one() {
        let mut known = KnownSet::default();
        known.learn("file:///a", Some(&FILE), 0, 2);
        known.learn("file:///b", Some(&FILE), 0, 1);
        known.forget("file:///c", 2);
        let overtaken = |known: &KnownSet, url| known.is_overtaken(url, 1);
        assert!(overtaken(&known, "file:///a") && overtaken(&known, "file:///c"));
        assert!(!overtaken(&known, "file:///b") && !overtaken(&known, "file:///d"));
        assert!(!known.is_overtaken("file:///a", 2));
        assert_eq!(known.unseen(1), 0, "what a later walk has brought is not gone");
        known.handle_quiet();
        assert!(!overtaken(&known, "file:///c"));
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
        // Losses in several steps add up; replaced files are not lost.
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
