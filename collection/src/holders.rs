//! Holders and cursors: the sources that hold each object, and the progress of each source.
//!
//! Several sources may send the same object. A holder is a source together with the origin's
//! version of the object. The origin's newest version wins, whatever the order of arrival. A delete
//! removes one holder; when the last holder is removed, the object is deleted. That its gatherer has
//! deleted it removes all of them, and is noted as long as deletes are remembered.
//!
//! Each holder has its *path*: the ids of those through whom its record came. It is only their word, and
//! decides nothing but whether a record comes from ourselves: such a hold does not count, so that no two
//! collections keep each other's objects.
//!
//! All are notes: one for the holders of each object, one for the cursor of each source.
//!
//! Source: ARCHITECTURE.md, "Invariants".
//!
//! Sans-I/O.

use crate::change::{Change, Epoch, Oid, Stamp, Version};
use crate::member::{get, put};

/// First byte of the key of an object's holders.
pub(crate) const HOLDERS: u8 = b'h';
/// First byte of the key of the version at which an object was deleted by its gatherer.
pub(crate) const WITHDRAWN: u8 = b'w';
/// First byte of the key of a source's cursor.
pub(crate) const CURSOR: u8 = b'c';
/// Key of the note with the progress of the takedown list.
pub(crate) const SUPPRESSED: u8 = b's';
/// Key of the note of a loss of acknowledged changes, with the version at which it was found.
pub(crate) const AFTERMATH: u8 = b'd';
/// First byte of the key of a caller's note.
pub(crate) const USER: u8 = b'u';

/// Returns a note's key: its kind and its name.
pub(crate) fn note_key(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(kind);
    key.extend_from_slice(name);
    key
}

/// The progress of a snapshot's transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The snapshot's id at its server.
    pub id: String,
    /// Number of its bytes that were applied: the start of the next member. The two largest values
    /// mean that the snapshot has ended: `IN_PART` and `TAKEN`.
    pub offset: u64,
    /// The serial that the snapshot reaches.
    pub to: u64,
    /// The number that marks the objects named by this snapshot; not 0, and new for each snapshot.
    pub generation: u64,
}

impl Progress {
    /// The offset of a snapshot that ended, but lacked changes that are damaged at its source: a
    /// whole snapshot must still be fetched.
    pub(crate) const IN_PART: u64 = u64::MAX;

    /// The offset of a whole snapshot that ended. It may be older than earlier pulls. So only the
    /// changes after it, up to the source's present version, complete the list of objects that the
    /// source still has.
    pub(crate) const TAKEN: u64 = u64::MAX - 1;

    pub(crate) fn is_in_part(&self) -> bool {
        self.offset == Self::IN_PART
    }
}

/// The progress of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The source's epoch.
    pub epoch: Epoch,
    /// The last serial applied.
    pub serial: u64,
    /// The snapshot that is being applied, or whose objects are not settled yet; otherwise `None`.
    pub snapshot: Option<Progress>,
    /// The part of the source that is pulled; `None`: all of it.
    pub part: Option<Part>,
}

/// A part of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What was asked for; empty: all, but the source gives us no more than this.
    pub asked: String,
    /// The source's name for it.
    pub name: String,
    /// Whether other objects were asked for before, and those that this part leaves out are still held: the
    /// administrator here wants them to go.
    pub is_new: bool,
}

impl Cursor {
    /// Returns the version of the source that was applied.
    pub(crate) fn version(&self) -> Version {
        Version { epoch: self.epoch, serial: self.serial }
    }

    /// Returns the snapshot in progress; `None` if there is none.
    pub(crate) fn fetching(&self) -> Option<&Progress> {
        self.snapshot.as_ref().filter(|it| it.offset < Progress::TAKEN)
    }

    /// Returns the snapshot that has ended, but whose unnamed objects are not released yet.
    pub(crate) fn taken(&self) -> Option<&Progress> {
        self.snapshot.as_ref().filter(|it| it.offset == Progress::TAKEN)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.epoch.0);
        put(&mut out, self.serial);
        if let Some(Part { asked, name, is_new }) = &self.part {
            put(&mut out, OF_A_PART);
            put(&mut out, u64::from(*is_new));
            for text in [asked, name] {
                put(&mut out, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
        }
        if let Some(progress) = &self.snapshot {
            put(&mut out, progress.offset);
            put(&mut out, progress.to);
            put(&mut out, progress.generation);
            out.extend_from_slice(progress.id.as_bytes());
        }
        out
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let (epoch, serial) = (Epoch(get(rest)?), get(rest)?);
        let mut cursor = Self { epoch, serial, snapshot: None, part: None };
        if rest.is_empty() {
            return Some(cursor);
        }
        let mut first = get(rest)?;
        if first == OF_A_PART {
            let is_new = get(rest)? != 0;
            let mut text = || {
                let length = get(rest)?;
                get_text(rest, length)
            };
            cursor.part = Some(Part { asked: text()?, name: text()?, is_new });
            if rest.is_empty() {
                return Some(cursor);
            }
            first = get(rest)?;
        }
        let (offset, to, generation) = (first, get(rest)?, get(rest)?);
        let id = String::from_utf8(rest.to_vec()).ok()?;
        cursor.snapshot = Some(Progress { id, offset, to, generation });
        Some(cursor)
    }
}

/// In place of a snapshot's offset: the cursor is of a part.
const OF_A_PART: u64 = u64::MAX - 2;

/// Changes from a source, to be applied in one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// The source's name.
    pub source: String,
    /// Whose feed the source is; `None` if it names no key.
    pub id: Option<Owner>,
    /// The epoch to which the serials belong.
    pub epoch: Epoch,
    /// The changes with their serials at the source, in ascending order.
    pub changes: Vec<(u64, Change)>,
    /// The cursor after the changes have been applied.
    pub cursor: Cursor,
    /// The generation of the snapshot that ends with these changes, if one does: the source's
    /// objects of other generations are released.
    pub end_of_snapshot: Option<u64>,
}

/// Whose feed a source is, by the key that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The id, which is made of the key.
    pub id: String,
    /// Whether it is shown that the key's owner serves there. Otherwise it is the source's word.
    pub is_shown: bool,
}

/// A source's hold on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) source: String,
    /// The origin's version of the object, as last sent by this source.
    pub(crate) version: Version,
    /// The generation of the snapshot that last named the object; 0 if a delta did.
    pub(crate) generation: u64,
    /// The ids of those through whom the record came; the source is the last.
    pub(crate) path: Vec<String>,
    /// Whether the source is the object's own gatherer, shown or by its word.
    pub(crate) is_own: bool,
}

/// Longest path, in ids.
pub(crate) const PATH_MAX: usize = 16;
/// Longest id in a path, in bytes.
const ID_BYTES_MAX: usize = 64;

/// Reads a path, as a record carries it. `None`: it is longer than a path may be, or none.
pub(crate) fn read_path(text: &str) -> Option<Vec<String>> {
    let ids = text.split_ascii_whitespace().take(PATH_MAX + 1).map(str::to_owned);
    let ids: Vec<String> = ids.collect();
    let is_path = ids.len() <= PATH_MAX && ids.iter().all(|it| it.len() <= ID_BYTES_MAX);
    is_path.then_some(ids)
}

/// In place of a name's length: the entry has a path, too. Entries of before have none.
const WITH_PATH: u64 = 1 << 32;

/// All holds on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holders {
    /// The origin's version of the stored record.
    pub(crate) version: Version,
    /// The holders; each source occurs once.
    pub(crate) list: Vec<Holder>,
}

impl Holders {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_version(&mut out, self.version);
        for holder in &self.list {
            put(&mut out, holder.source.len() as u64 | WITH_PATH);
            out.extend_from_slice(holder.source.as_bytes());
            put_version(&mut out, holder.version);
            put(&mut out, holder.generation);
            put(&mut out, (holder.path.len() as u64) << 1 | u64::from(holder.is_own));
            for id in &holder.path {
                put(&mut out, id.len() as u64);
                out.extend_from_slice(id.as_bytes());
            }
        }
        out
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let mut holders = Self { version: get_version(rest)?, list: Vec::new() };
        while !rest.is_empty() {
            let length = get(rest)?;
            let mut holder = Holder {
                source: get_text(rest, length & !WITH_PATH)?,
                version: get_version(rest)?,
                generation: get(rest)?,
                path: Vec::new(),
                is_own: false,
            };
            if length & WITH_PATH != 0 {
                let count = get(rest)?;
                holder.is_own = count & 1 == 1;
                for _ in 0..count >> 1 {
                    let length = get(rest)?;
                    holder.path.push(get_text(rest, length)?);
                }
            }
            holders.list.push(holder);
        }
        Some(holders)
    }

    /// Sets a hold, and returns whether its version is newer than the stored one.
    pub(crate) fn hold(&mut self, holder: Holder) -> bool {
        let version = holder.version;
        match self.list.iter_mut().find(|it| it.source == holder.source) {
            Some(old) => *old = holder,
            None => self.list.push(holder),
        }
        let newer = self.version < version;
        self.version = self.version.max(version);
        newer
    }

    /// Returns the path that is published: the shortest of all, of several the first by the ids.
    pub(crate) fn path(&self) -> &[String] {
        let shortest = self.list.iter().map(|it| &it.path).min_by_key(|it| (it.len(), *it));
        shortest.map_or(&[], Vec::as_slice)
    }

    /// Removes the hold of `source`, and returns whether it had one.
    pub(crate) fn release(&mut self, source: &str) -> bool {
        let before = self.list.len();
        self.list.retain(|it| it.source != source);
        self.list.len() < before
    }

    pub(crate) fn note_key(oid: &Oid) -> Vec<u8> {
        note_key(HOLDERS, &oid.key())
    }
}

/// The version at which an object was deleted by its gatherer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    pub(crate) version: Version,
    /// When that was learned.
    pub(crate) at: Stamp,
    /// Whether it was learned from the gatherer itself, which has shown that.
    pub(crate) is_shown: bool,
}

impl Withdrawn {
    pub(crate) fn note_key(oid: &Oid) -> Vec<u8> {
        note_key(WITHDRAWN, &oid.key())
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_version(&mut out, self.version);
        put(&mut out, self.at.0);
        put(&mut out, u64::from(self.is_shown));
        out
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let (version, at) = (get_version(rest)?, Stamp(get(rest)?));
        // Those of before end here.
        Some(Self { version, at, is_shown: get(rest) == Some(1) })
    }
}

fn get_text(rest: &mut &[u8], length: u64) -> Option<String> {
    let (text, tail) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = tail;
    String::from_utf8(text.to_vec()).ok()
}

fn put_version(out: &mut Vec<u8>, version: Version) {
    put(out, version.epoch.0);
    put(out, version.serial);
}

fn get_version(rest: &mut &[u8]) -> Option<Version> {
    Some(Version { epoch: Epoch(get(rest)?), serial: get(rest)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holder(source: &str, version: Version, path: &[&str]) -> Holder {
        let path = path.iter().map(|it| (*it).to_owned()).collect();
        Holder { source: source.to_owned(), version, generation: 0, path, is_own: false }
    }

    /// Sets holds of sources with serials, or releases them (`None`); compares the holders.
    fn check(steps: &[(&str, Option<u64>)], expected: &str) {
        let mut holders = Holders::default();
        for (source, serial) in steps {
            match serial {
                Some(serial) => {
                    let version = Version { epoch: Epoch(1), serial: *serial };
                    let newer = holders.version < version;
                    assert_eq!(holders.hold(holder(source, version, &[])), newer);
                }
                None => drop(holders.release(source)),
            }
        }
        let list: Vec<_> =
            holders.list.iter().map(|it| format!("{}:{}", it.source, it.version.serial)).collect();
        assert_eq!(format!("{} {}", holders.version.serial, list.join(",")), expected);
        assert_eq!(Holders::decode(&holders.encode()), Some(holders));
    }

    #[test]
    fn the_newest_version_wins_in_any_order() {
        check(&[("a", Some(1)), ("b", Some(3)), ("a", Some(2))], "3 a:2,b:3");
        check(&[("b", Some(3)), ("a", Some(1)), ("a", Some(2))], "3 b:3,a:2");
    }

    #[test]
    fn a_release_leaves_the_others() {
        check(&[("a", Some(1)), ("b", Some(3)), ("b", None), ("c", None)], "3 a:1");
        check(&[("a", Some(1)), ("a", None)], "1 ");
    }

    #[test]
    fn the_shortest_path_is_published_and_the_next_when_its_holder_goes() {
        let mut holders = Holders::default();
        let version = Version { epoch: Epoch(1), serial: 1 };
        for (source, path) in [("b", &["g", "a", "b"][..]), ("d", &["g", "d"]), ("c", &["g", "c"])]
        {
            holders.hold(holder(source, version, path));
        }
        assert_eq!(holders.path(), ["g", "c"]);
        for (gone, then) in [("c", &["g", "d"][..]), ("d", &["g", "a", "b"]), ("b", &[])] {
            assert_eq!(Holders::decode(&holders.encode()).as_ref(), Some(&holders));
            holders.release(gone);
            assert_eq!(holders.path(), then);
        }
    }

    #[test]
    fn holders_of_before_have_no_path() {
        let mut old = Vec::new();
        put_version(&mut old, Version { epoch: Epoch(3), serial: 9 });
        put(&mut old, 1);
        old.push(b's');
        put_version(&mut old, Version { epoch: Epoch(3), serial: 9 });
        put(&mut old, 5);
        let holders = Holders::decode(&old).unwrap();
        let version = Version { epoch: Epoch(3), serial: 9 };
        let expected = Holder { generation: 5, ..holder("s", version, &[]) };
        assert_eq!(holders.list, [expected]);
    }

    #[test]
    fn what_was_withdrawn_before_was_learned_from_anybody() {
        let version = Version { epoch: Epoch(3), serial: 9 };
        let withdrawn = Withdrawn { version, at: Stamp(7), is_shown: true };
        let bytes = withdrawn.encode();
        assert_eq!(Withdrawn::decode(&bytes), Some(withdrawn));
        let of_before = bytes.get(..bytes.len() - 1).and_then(Withdrawn::decode);
        assert_eq!(of_before, Some(Withdrawn { is_shown: false, ..withdrawn }));
    }

    #[test]
    fn a_path_is_bounded() {
        assert_eq!(read_path(" a  b\n"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(read_path(&"a ".repeat(PATH_MAX)).map(|it| it.len()), Some(PATH_MAX));
        assert_eq!(read_path(&"a ".repeat(PATH_MAX + 1)), None);
        assert_eq!(read_path(&"a".repeat(ID_BYTES_MAX + 1)), None);
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back(
            epoch: u64,
            serial: u64,
            snapshot: Option<(String, u64, u64, u64)>,
            part: Option<(String, String, bool)>,
        ) {
            let snapshot = snapshot
                .map(|(id, offset, to, generation)| Progress { id, offset, to, generation });
            let part = part.map(|(asked, name, is_new)| Part { asked, name, is_new });
            let cursor = Cursor { epoch: Epoch(epoch), serial, snapshot, part };
            prop_assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        }

        #[test]
        fn noise_is_refused_or_read(noise: Vec<u8>) {
            let _ = (Cursor::decode(&noise), Holders::decode(&noise), Withdrawn::decode(&noise));
        }
    }
}
