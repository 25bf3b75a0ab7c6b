//! What is remembered of a file beside its records: a note in the gatherer's collection.
//!
//! A note is committed with the records it speaks of, so neither can be without the other. Its key is
//! printable text, and its value a JSON object, so that an administrator can read both.
//!
//! Sans-I/O.

mod root;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use essence::print::print_of;
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;

pub use self::root::{
    Regather, RepositoryNote, RootNote, repositories_prefix, repository_key, repository_of,
    root_key, root_of, roots_prefix,
};
use crate::known::Stat;
use crate::spec;

/// One record that a file gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The record's URL: the file's own, or a member's.
    #[serde(rename = "u")]
    pub url: String,
    /// The `MD5` attribute of the record, if it had one: whether a member has changed.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
    /// Fingerprint of the annotations that were laid over it; 0 without any.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub annotations: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is remembered of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// Size in bytes.
    #[serde(rename = "s")]
    pub size: u64,
    /// Modification time in seconds since 1970.
    #[serde(rename = "t")]
    pub modified: i64,
    /// Nanoseconds of the modification time.
    #[serde(rename = "n")]
    pub modified_nanos: u32,
    /// Inode number.
    #[serde(rename = "i")]
    pub inode: u64,
    /// Whether the file may have changed while it was read.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// Fingerprint of the settings that its records depend on.
    #[serde(rename = "g")]
    pub settings: u64,
    /// Fingerprint of the annotations about what it gave or might give; 0 without any.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub annotations: u64,
    /// MD5 of the bytes read, in hex.
    #[serde(rename = "d")]
    pub md5: String,
    /// Whether there was not enough time for all of it.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The records it gave, in order: its own first, then those of its members.
    #[serde(rename = "r")]
    pub records: Vec<Published>,
}

impl FileNote {
    /// Returns the file's metadata when it was read; `None` if that cannot be relied on.
    pub fn stat(&self) -> Option<Stat> {
        (!self.unsure).then_some(Stat {
            size: self.size,
            modified: self.modified,
            modified_nanos: self.modified_nanos,
            inode: self.inode,
        })
    }

    /// Returns a fingerprint of all that its records depend on beside its content.
    pub fn print(&self) -> u64 {
        basis_print(self.settings, self.annotations)
    }

    /// Returns whether the file's content and settings are those of this note, so that its records
    /// are as they were.
    pub fn is_of(&self, md5: &Md5, size: u64, settings: u64) -> bool {
        self.settings == settings && self.size == size && self.md5 == md5.to_string()
    }
}

/// What says of a file's note whether the file has changed: reading no more of it is what lets a
/// gatherer of many files start soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Brief {
    #[serde(rename = "s")]
    size: u64,
    #[serde(rename = "t")]
    modified: i64,
    #[serde(rename = "n")]
    modified_nanos: u32,
    #[serde(rename = "i")]
    inode: u64,
    #[serde(rename = "q", default)]
    unsure: bool,
    #[serde(rename = "g")]
    settings: u64,
    #[serde(rename = "a", default)]
    annotations: u64,
}

impl Brief {
    /// Reads what the value of a note says of it.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        Self::front(bytes).or_else(|| from_bytes(bytes))
    }

    /// Reads the front of a value that [`to_bytes`] wrote: ten times as fast as all of its JSON is.
    fn front(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let size = number(&mut rest, b"{\"s\":")?;
        let modified = number(&mut rest, b",\"t\":")?;
        let modified_nanos = number(&mut rest, b",\"n\":")?;
        let inode = number(&mut rest, b",\"i\":")?;
        let sure = rest.strip_prefix(b",\"q\":true");
        let unsure = sure.is_some();
        rest = sure.unwrap_or(rest);
        let settings = number(&mut rest, b",\"g\":")?;
        let annotated = rest.starts_with(b",\"a\":");
        let annotations = if annotated { number(&mut rest, b",\"a\":")? } else { 0 };
        // A number that goes on is none of ours.
        rest.starts_with(b",\"d\":").then_some(Self {
            size,
            modified,
            modified_nanos,
            inode,
            unsure,
            settings,
            annotations,
        })
    }

    /// As [`FileNote::print`].
    pub fn print(&self) -> u64 {
        basis_print(self.settings, self.annotations)
    }

    /// As [`FileNote::stat`].
    pub fn stat(&self) -> Option<Stat> {
        let Self { size, modified, modified_nanos, inode, .. } = *self;
        (!self.unsure).then_some(Stat { size, modified, modified_nanos, inode })
    }
}

/// Takes `before` and the whole number after it off the front of `rest`.
fn number<T: std::str::FromStr>(rest: &mut &[u8], before: &[u8]) -> Option<T> {
    let text = rest.strip_prefix(before)?;
    let is_part = |it: &u8| it.is_ascii_digit() || *it == b'-';
    let end = text.iter().position(|it| !is_part(it))?;
    let (number, after) = text.split_at_checked(end)?;
    *rest = after;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Begins the key of every file's note.
const FILE: &str = "file ";

/// Returns the key of the note of the file at `path` under the root with this URL.
pub fn file_key(root: &str, path: &Path) -> Vec<u8> {
    format!("{FILE}{root} {}", formats::path::encode(path.as_os_str())).into_bytes()
}

/// Returns what the keys of all files' notes begin with, whatever their root.
pub fn every_file_prefix() -> Vec<u8> {
    FILE.as_bytes().to_vec()
}

/// Returns what the keys of all files' notes of a root begin with.
pub fn files_prefix(root: &str) -> Vec<u8> {
    format!("{FILE}{root} ").into_bytes()
}

/// Returns what the keys of the files below a directory begin with.
pub fn below_prefix(root: &str, directory: &Path) -> Vec<u8> {
    let mut key = file_key(root, directory);
    if key.last() != Some(&b'/') {
        key.push(b'/');
    }
    key
}

/// Returns the path that a file's key under this root names.
pub fn path_of(root: &str, key: &[u8]) -> Option<PathBuf> {
    encoded_path(root, key).map(spec::decode)
}

/// As [`path_of`], as bytes.
pub(crate) fn path_bytes_of<'k>(root: &str, key: &'k [u8]) -> Option<Cow<'k, [u8]>> {
    encoded_path(root, key).map(spec::decode_bytes)
}

fn encoded_path<'k>(root: &str, key: &'k [u8]) -> Option<&'k str> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(FILE)?;
    rest.strip_prefix(root)?.strip_prefix(' ')
}

/// Returns a note's value as stored.
pub fn to_bytes(note: &impl Serialize) -> Vec<u8> {
    // A structure of numbers and texts always has a JSON form.
    serde_json::to_vec(note).unwrap_or_default()
}

/// Returns the note that a stored value holds; `None` for one of another release or a damaged one,
/// which counts as none: the file is read again.
pub fn from_bytes<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// What a file's new records change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Records that are new or have changed.
    pub updated: Vec<Record>,
    /// URLs of records that are no more.
    pub deleted: Vec<String>,
    /// What to remember of the records.
    pub records: Vec<Published>,
}

/// What a file's new records were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Fingerprint of the settings.
    pub settings: u64,
    /// Whether the file itself is as its old note has it, and only what is said of it may differ.
    pub same_content: bool,
}

/// Compares a file's new records, each with the fingerprint of its annotations, with what its old note
/// says it gave. A member whose MD5 and annotations are the same is not published again, unless the
/// settings have changed.
pub fn compare(old: Option<&FileNote>, basis: Basis, records: Vec<(Record, u64)>) -> Difference {
    let before = old.map(|note| note.records.as_slice()).unwrap_or_default();
    let same_settings = old.is_some_and(|note| note.settings == basis.settings);
    let by_url: std::collections::HashMap<&str, &Published> =
        before.iter().map(|it| (it.url.as_str(), it)).collect();
    let mut now = std::collections::HashSet::new();
    let (mut updated, mut published) = (Vec::new(), Vec::new());
    for (place, (record, annotations)) in records.into_iter().enumerate() {
        if !now.insert(record.url.clone()) {
            continue;
        }
        let md5 = record.text("MD5").map(Cow::into_owned);
        let it = Published { url: record.url.clone(), md5, annotations };
        // The file's own record is first: it also says when the file was modified.
        let same = same_settings
            && (basis.same_content || 0 < place && it.md5.is_some())
            && by_url.get(it.url.as_str()).is_some_and(|before| **before == it);
        if !same {
            updated.push(record);
        }
        published.push(it);
    }
    let deleted = before.iter().filter(|it| !now.contains(&it.url)).map(|it| it.url.clone());
    Difference { updated, deleted: deleted.collect(), records: published }
}

/// Returns a fingerprint of settings, and of annotations (0: there are none).
pub(crate) fn basis_print(settings: u64, annotations: u64) -> u64 {
    if annotations == 0 {
        return settings;
    }
    print_of(&[&settings.to_be_bytes(), &annotations.to_be_bytes()])
}

/// Returns a file's name as text; bytes that are not UTF-8 become U+FFFD.
pub fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| {
        String::from_utf8_lossy(OsStr::as_bytes(name)).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(url: &str, md5: &str) -> Record {
        let mut record = Record::new("FILE", url);
        if !md5.is_empty() {
            record.push("MD5", md5);
        }
        record
    }

    /// Of a file that has changed, by these settings.
    fn basis(settings: u64) -> Basis {
        Basis { settings, same_content: false }
    }

    fn note(settings: u64, records: &[(&str, &str)]) -> FileNote {
        let records: Vec<_> = records.iter().map(|(url, md5)| (record(url, md5), 0)).collect();
        FileNote {
            size: 1,
            modified: -2,
            modified_nanos: 3,
            inode: 4,
            unsure: false,
            settings,
            annotations: 0,
            md5: Md5::of(b"x").to_string(),
            late: false,
            records: compare(None, basis(settings), records).records,
        }
    }

    /// Compares as `url md5` pairs; gives what is updated and what is deleted.
    #[track_caller]
    fn check(old: &[(&str, &str)], new: &[(&str, &str)], updated: &[&str], deleted: &[&str]) {
        let new = new.iter().map(|(url, md5)| (record(url, md5), 0)).collect();
        let difference = compare(Some(&note(7, old)), basis(7), new);
        let urls: Vec<_> = difference.updated.iter().map(|it| it.url.as_str()).collect();
        assert_eq!(urls, updated);
        assert_eq!(difference.deleted, deleted);
    }

    #[test]
    fn only_changed_members_are_published_again() {
        check(&[("f", "1")], &[("f", "2")], &["f"], &[]);
        check(
            &[("f", "1"), ("f#a", "2"), ("f#b", "3"), ("f#c", "4")],
            &[("f", "9"), ("f#a", "2"), ("f#b", "8"), ("f#d", "5")],
            &["f", "f#b", "f#d"],
            &["f#c"],
        );
        check(&[("f", "1"), ("f#a", "")], &[("f", "1"), ("f#a", "")], &["f", "f#a"], &[]);
        check(&[("old", "1")], &[("new", "1")], &["new"], &["old"]);
        check(&[], &[("f", "1"), ("f#a", "1"), ("f#a", "2")], &["f", "f#a"], &[]);
    }

    #[test]
    fn other_settings_publish_everything_again() {
        let old = note(7, &[("f", "1"), ("f#a", "2")]);
        let new = || vec![(record("f", "1"), 0), (record("f#a", "2"), 0)];
        assert_eq!(compare(Some(&old), basis(8), new()).updated.len(), 2);
        let same = Basis { settings: 8, same_content: true };
        assert_eq!(compare(Some(&old), same, new()).updated.len(), 2);
    }

    #[test]
    fn what_is_annotated_otherwise_is_published_and_nothing_else() {
        let mut old = note(7, &[("f", "1"), ("f#a", "2"), ("f#b", ""), ("f#c", "3")]);
        old.records[3].annotations = 5;
        let check = |same_content, said: [u64; 4], expected: &[&str]| {
            let all = [("f", "1"), ("f#a", "2"), ("f#b", ""), ("f#c", "3")];
            let new = all.iter().zip(said).map(|((url, md5), said)| (record(url, md5), said));
            let basis = Basis { settings: 7, same_content };
            let difference = compare(Some(&old), basis, new.collect());
            let updated: Vec<_> = difference.updated.iter().map(|it| it.url.as_str()).collect();
            assert_eq!(updated, expected);
            assert!(difference.deleted.is_empty());
        };
        check(true, [0, 0, 0, 5], &[]);
        check(true, [0, 9, 0, 5], &["f#a"]);
        check(true, [9, 0, 0, 0], &["f", "f#c"]);
        check(true, [0, 0, 1, 6], &["f#b", "f#c"]);
        check(false, [0, 0, 0, 5], &["f", "f#b"]);
        assert_eq!(basis_print(7, 0), 7);
        assert_ne!(basis_print(7, 1), basis_print(7, 2));
    }

    proptest! {
        #[test]
        fn the_front_of_a_note_says_what_all_of_it_does(
            size in any::<u64>(),
            modified in any::<i64>(),
            modified_nanos in any::<u32>(),
            (inode, settings, annotations) in any::<(u64, u64, u64)>(),
            annotated in any::<bool>(),
            unsure in any::<bool>(),
            cut in 0_usize..200,
        ) {
            let note = note(settings, &[("file:///a", "00"), ("file:///a#b", "")]);
            let annotations = if annotated { annotations } else { 0 };
            let note =
                FileNote { size, modified, modified_nanos, inode, unsure, annotations, ..note };
            let bytes = to_bytes(&note);
            let brief = Brief::front(&bytes).unwrap();
            prop_assert_eq!(Some(brief), from_bytes::<Brief>(&bytes));
            prop_assert_eq!((brief.stat(), brief.print()), (note.stat(), note.print()));
            // What is cut short says the same or nothing.
            let part = Brief::front(&bytes[..cut.min(bytes.len())]);
            prop_assert!(part.is_none_or(|it| it == brief));
        }
    }

    #[test]
    fn a_note_in_another_order_is_read_too() {
        let said = br#"{"t":-2,"s":1,"i":4,"g":7,"n":3}"#;
        let brief = Brief::of(said).unwrap();
        assert_eq!((Brief::front(said), brief.settings), (None, 7));
        assert_eq!(brief.stat(), note(7, &[]).stat());
        assert_eq!(Brief::of(b"{\"s\":1.5,\"t\":2,\"n\":3,\"i\":4,\"g\":7}"), None);
        assert_eq!(Brief::of(b"{\"s\":1,"), None);
    }

    #[test]
    fn notes_and_keys_are_read_back() {
        let note = note(1 << 63, &[("file:///a", "00")]);
        assert_eq!(from_bytes::<FileNote>(&to_bytes(&note)), Some(note.clone()));
        assert_eq!(from_bytes::<FileNote>(b"{}"), None);
        assert!(note.is_of(&Md5::of(b"x"), 1, 1 << 63) && !note.is_of(&Md5::of(b"y"), 1, 1 << 63));
        let path = Path::new(OsStr::from_bytes(b"/r/a b\n\xff"));
        let key = file_key("file:///r", path);
        assert!(key.starts_with(&files_prefix("file:///r")));
        assert!(key.starts_with(&below_prefix("file:///r", Path::new("/r"))));
        assert!(below_prefix("file:///", Path::new("/")).ends_with(b" /"));
        assert_eq!(path_of("file:///r", &key).unwrap(), path);
        assert_eq!(path_of("file:///other", &key), None);
        assert_eq!(root_of(&root_key("file:///r")).unwrap(), "file:///r");
        assert_eq!(name_of(path), "a b\n\u{fffd}");
    }
}
