//! Notes: the data that a gatherer stores, by URL, about an object in addition to its records.
//!
//! A note is committed together with its object's records. Its key is printable text, and its value
//! a JSON object, so that an administrator can read both.
//!
//! Sans-I/O.

mod crawled;
mod root;

use std::borrow::Cow;

use essence::fingerprint::fingerprint_of;
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;

pub(crate) use self::crawled::short_links;
pub use self::crawled::{Crawled, Gone};
pub use self::root::{
    REPOSITORY, ROOT, Regather, RepositoryNote, RootNote, repository_key, repository_of, root_key,
    root_of,
};
pub(crate) use self::root::{robots_key, robots_prefix};
use crate::validator::{Stat, Validator};

/// A record of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The record's URL: the object's own, or a member's.
    #[serde(rename = "u")]
    pub url: String,
    /// The `MD5` attribute of the record, if it had one: it shows whether a member has changed.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
    /// Fingerprint of the annotations that were laid over the record; 0 without any.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub annotations: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Note of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectNote {
    /// The part that shows whether the object has changed.
    #[serde(flatten)]
    pub brief: Brief,
    /// MD5 of the bytes read, in hex.
    #[serde(rename = "d")]
    pub md5: String,
    /// Whether time was too short for all of the object.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Its records, in order: its own first, then those of its members.
    #[serde(rename = "r")]
    pub records: Vec<Published>,
    /// What a crawl remembers of it, in addition.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub crawled: Option<Box<Crawled>>,
}

impl ObjectNote {
    /// Returns whether a crawl has found nothing there: the note says only when it looked.
    pub fn is_empty(&self) -> bool {
        let gone = self.crawled.as_ref().and_then(|it| it.gone);
        self.records.is_empty() && gone.is_some()
    }

    /// Returns what stays of the note when the records go: of a page, the answer that says why it has none.
    pub(crate) fn left(mut self) -> Option<Self> {
        let why = self.crawled.as_ref().and_then(|it| it.without.as_ref());
        let is_left = why.is_some() && !self.records.is_empty();
        self.records.clear();
        is_left.then_some(self)
    }

    /// Returns whether a page's records, or its place beside that of its twin, go at `now_ms`: it is gone, and the
    /// grace is over.
    pub(crate) fn is_over(&self, grace_ms: u64, now_ms: u64) -> bool {
        let gone = self.crawled.as_ref().and_then(|it| it.gone);
        let has_any = !self.records.is_empty() || self.is_twin();
        has_any && gone.is_some_and(|it| it.is_over(grace_ms, now_ms))
    }

    /// Returns whether another object's record stands for this one.
    pub fn is_twin(&self) -> bool {
        self.records.is_empty() && self.crawled.as_ref().is_some_and(|it| it.twin_of.is_some())
    }

    /// Returns whether the first record is the object's own, or that of its twin.
    pub(crate) fn has_own(&self, public_url: &str) -> bool {
        self.is_twin() || self.records.first().is_some_and(|it| it.url == public_url)
    }

    /// Returns the note of an object that has no records.
    pub fn without_records(validator: Validator, crawled: Option<Box<Crawled>>) -> Self {
        let brief = Brief { validator, unsure: true, settings: 0, annotations: 0 };
        Self { brief, md5: String::new(), late: false, records: Vec::new(), crawled }
    }

    /// Returns whether the object's content and settings are those of this note; then its records
    /// have not changed.
    pub fn is_of(&self, md5: &Md5, validator: &Validator, settings: u64) -> bool {
        self.brief.settings == settings
            && self.brief.validator.size() == validator.size()
            && self.md5 == md5.to_string()
    }
}

/// The part of an object's note that shows whether the object has changed. Reading only this part
/// lets a gatherer of many files start sooner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    /// Validator when the object was read.
    #[serde(flatten)]
    pub validator: Validator,
    /// Whether the object may have changed while it was read.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// Fingerprint of the settings that its records depend on.
    #[serde(rename = "g")]
    pub settings: u64,
    /// Fingerprint of the annotations about the object and its possible members; 0 without any.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub annotations: u64,
}

impl Brief {
    /// Reads the part from the value of a note; `None` if that is not valid.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        Self::front(bytes).or_else(|| from_bytes(bytes))
    }

    /// Reads the front of a value that [`to_bytes`] wrote for a file: ten times as fast as parsing
    /// the JSON.
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
        // Another text after the last number means that the value has another form.
        let validator = Validator::File(Stat { size, modified, modified_nanos, inode });
        rest.starts_with(b",\"d\":").then_some(Self { validator, unsure, settings, annotations })
    }

    /// Returns the fingerprint of everything that the records depend on besides the object's
    /// content.
    pub fn basis_fingerprint(&self) -> u64 {
        basis_fingerprint(self.settings, self.annotations)
    }

    /// Returns the validator; `None` if it cannot be relied on.
    pub fn sure_validator(&self) -> Option<&Validator> {
        (!self.unsure).then_some(&self.validator)
    }
}

/// Removes `before` and the whole number after it from the front of `rest`. Returns the number.
fn number<T: std::str::FromStr>(rest: &mut &[u8], before: &[u8]) -> Option<T> {
    let text = rest.strip_prefix(before)?;
    let is_part = |it: &u8| it.is_ascii_digit() || *it == b'-';
    let end = text.iter().position(|it| !is_part(it))?;
    let (number, after) = text.split_at_checked(end)?;
    *rest = after;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Beginning of the key of every object's note.
pub const OBJECT: &str = "file ";

/// Beginning of the URLs of files, which keys leave out.
const FILE: &str = "file://";

/// Returns the key of the note of the object at `url` under the root with the URL `root`.
pub fn object_key(root: &str, url: &str) -> Vec<u8> {
    format!("{OBJECT}{root} {}", url.strip_prefix(FILE).unwrap_or(url)).into_bytes()
}

/// Returns the beginning of the keys of all objects' notes of a root.
pub fn objects_prefix(root: &str) -> Vec<u8> {
    format!("{OBJECT}{root} ").into_bytes()
}

/// Returns the beginning of the keys of the notes of objects below `url`.
pub fn below_prefix(root: &str, url: &str) -> Vec<u8> {
    let mut key = object_key(root, url);
    if key.last() != Some(&b'/') {
        key.push(b'/');
    }
    key
}

/// Returns the URL in the key of an object's note under this root.
pub fn url_of(root: &str, key: &[u8]) -> Option<String> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(OBJECT)?;
    let name = rest.strip_prefix(root)?.strip_prefix(' ')?;
    let scheme = if name.starts_with('/') { FILE } else { "" };
    Some([scheme, name].concat())
}

/// Returns a note's value in stored form.
pub fn to_bytes(note: &impl Serialize) -> Vec<u8> {
    // A structure of numbers and texts always has a JSON form.
    serde_json::to_vec(note).unwrap_or_default()
}

/// Reads a note from a stored value. Returns `None` for a damaged note or one of another release:
/// then the object is read again.
pub fn from_bytes<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Differences between an object's new records and its old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// New and changed records.
    pub updated: Vec<Record>,
    /// URLs of records that no longer exist.
    pub deleted: Vec<String>,
    /// Entries for the object's note.
    pub records: Vec<Published>,
}

impl Difference {
    /// Keeps the records of the object at `url`, and of what is in it, that would be deleted: not
    /// all of its new records are known. Returns whether there are any.
    pub fn keep(&mut self, url: &str, old: Option<&ObjectNote>) -> bool {
        let is_of = |it: &String| {
            it.strip_prefix(url).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
        };
        let (kept, deleted): (Vec<String>, _) =
            std::mem::take(&mut self.deleted).into_iter().partition(is_of);
        self.deleted = deleted;
        let kept: std::collections::HashSet<String> = kept.into_iter().collect();
        let before = old.map(|note| note.records.as_slice()).unwrap_or_default();
        self.records.extend(before.iter().filter(|it| kept.contains(&it.url)).cloned());
        !kept.is_empty()
    }
}

/// Conditions under which an object's new records were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Fingerprint of the settings.
    pub settings: u64,
    /// Whether the object's content is the same as in its old note, so that only annotations may
    /// differ.
    pub same_content: bool,
}

/// Compares an object's new records, each with the fingerprint of its annotations, with the records
/// in its old note. A member whose MD5 and annotations are the same is not published again, unless
/// the settings have changed. If the object's content is the same, this holds for its own record
/// and members without MD5, too.
pub fn compare(old: Option<&ObjectNote>, basis: Basis, records: Vec<(Record, u64)>) -> Difference {
    let before = old.map(|note| note.records.as_slice()).unwrap_or_default();
    let same_settings = old.is_some_and(|note| note.brief.settings == basis.settings);
    let by_url: std::collections::HashMap<&str, &Published> =
        before.iter().map(|it| (it.url.as_str(), it)).collect();
    let mut now = std::collections::HashSet::new();
    let (mut updated, mut published) = (Vec::new(), Vec::new());
    for (index, (record, annotations)) in records.into_iter().enumerate() {
        if !now.insert(record.url.clone()) {
            continue;
        }
        let md5 = record.text("MD5").map(Cow::into_owned);
        let it = Published { url: record.url.clone(), md5, annotations };
        // The object's own record comes first: it also depends on the object's modification time.
        let same = same_settings
            && (basis.same_content || 0 < index && it.md5.is_some())
            && by_url.get(it.url.as_str()).is_some_and(|before| **before == it);
        if !same {
            updated.push(record);
        }
        published.push(it);
    }
    let deleted = before.iter().filter(|it| !now.contains(&it.url)).map(|it| it.url.clone());
    Difference { updated, deleted: deleted.collect(), records: published }
}

/// Returns the fingerprint of settings together with annotations (0: there are none).
pub(crate) fn basis_fingerprint(settings: u64, annotations: u64) -> u64 {
    if annotations == 0 {
        return settings;
    }
    fingerprint_of(&[&settings.to_be_bytes(), &annotations.to_be_bytes()])
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

    /// Returns the basis of a changed file, with these settings.
    fn basis(settings: u64) -> Basis {
        Basis { settings, same_content: false }
    }

    fn note(settings: u64, records: &[(&str, &str)]) -> ObjectNote {
        let records: Vec<_> = records.iter().map(|(url, md5)| (record(url, md5), 0)).collect();
        let stat = Stat { size: 1, modified: -2, modified_nanos: 3, inode: 4 };
        let validator = Validator::File(stat);
        ObjectNote {
            brief: Brief { validator, unsure: false, settings, annotations: 0 },
            md5: Md5::of(b"x").to_string(),
            late: false,
            crawled: None,
            records: compare(None, basis(settings), records).records,
        }
    }

    /// Compares records given as pairs of URL and MD5, and checks the URLs updated and deleted.
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
    fn records_that_are_not_known_to_be_gone_are_kept() {
        let old = note(7, &[("f", "1"), ("f#a", "2"), ("f#b", "3"), ("other", "4")]);
        let new = vec![(record("f", "9"), 0), (record("f#c", "5"), 0)];
        let mut difference = compare(Some(&old), basis(7), new);
        assert!(difference.keep("f", Some(&old)));
        assert_eq!(difference.deleted, ["other"]);
        let urls: Vec<_> = difference.records.iter().map(|it| it.url.as_str()).collect();
        assert_eq!(urls, ["f", "f#c", "f#a", "f#b"]);
        assert!(!difference.keep("f", Some(&old)));
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
    fn only_records_with_changed_annotations_are_published() {
        let mut old = note(7, &[("f", "1"), ("f#a", "2"), ("f#b", ""), ("f#c", "3")]);
        old.records[3].annotations = 5;
        let check = |same_content, annotations: [u64; 4], expected: &[&str]| {
            let all = [("f", "1"), ("f#a", "2"), ("f#b", ""), ("f#c", "3")];
            let new = all.iter().zip(annotations).map(|((url, md5), it)| (record(url, md5), it));
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
        assert_eq!(basis_fingerprint(7, 0), 7);
        assert_ne!(basis_fingerprint(7, 1), basis_fingerprint(7, 2));
    }

    proptest! {
        #[test]
        fn the_front_of_a_note_gives_the_same_as_all_of_it(
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
            let validator = Validator::File(Stat { size, modified, modified_nanos, inode });
            let brief = Brief { validator, unsure, settings, annotations };
            let note = ObjectNote { brief, ..note };
            let bytes = to_bytes(&note);
            let brief = Brief::front(&bytes).unwrap();
            prop_assert_eq!(from_bytes::<Brief>(&bytes), Some(brief.clone()));
            prop_assert_eq!(&brief, &note.brief);
            // A note that is cut short gives the same result or none.
            let part = Brief::front(&bytes[..cut.min(bytes.len())]);
            prop_assert!(part.is_none_or(|it| it == brief));
        }
    }

    #[test]
    fn a_note_in_another_order_is_read_too() {
        let stored = br#"{"t":-2,"s":1,"i":4,"g":7,"n":3}"#;
        let brief = Brief::of(stored).unwrap();
        assert_eq!((Brief::front(stored), brief.settings), (None, 7));
        assert_eq!(brief, note(7, &[]).brief);
        assert_eq!(Brief::of(b"{\"s\":1.5,\"t\":2,\"n\":3,\"i\":4,\"g\":7}"), None);
        assert_eq!(Brief::of(b"{\"s\":1,"), None);
    }

    /// The stored form must not change: with another form every gatherer would read everything
    /// again.
    #[test]
    fn the_stored_form_of_notes_does_not_change() {
        let stored = br#"{"s":1,"t":-2,"n":3,"i":4,"g":9223372036854775808,"d":"9dd4e461268c8034f5c8564e155c67a6","r":[{"u":"file:///a","m":"00"}]}"#;
        let note = note(1 << 63, &[("file:///a", "00")]);
        assert_eq!(from_bytes::<ObjectNote>(stored).as_ref(), Some(&note));
        assert_eq!(to_bytes(&note), stored);
        assert!(Brief::front(stored).is_some());
        let key = b"file file:///r /r/a%20b".to_vec();
        assert_eq!(url_of("file:///r", &key).as_deref(), Some("file:///r/a%20b"));
        assert_eq!(object_key("file:///r", "file:///r/a%20b"), key);
    }

    #[test]
    fn notes_and_keys_are_read_back() {
        let mut note = note(1 << 63, &[("file:///a", "00")]);
        assert_eq!(from_bytes::<ObjectNote>(b"{}"), None);
        let file = note.brief.validator.clone();
        let is_of = |note: &ObjectNote, of: &[u8]| note.is_of(&Md5::of(of), &file, 1 << 63);
        assert!(is_of(&note, b"x") && !is_of(&note, b"y"));
        for (etag, last_modified) in [(Some("W/\"1\""), None), (None, Some("then")), (None, None)] {
            note.brief.validator = Validator::Http {
                etag: etag.map(str::to_owned),
                last_modified: last_modified.map(str::to_owned),
                md5: note.md5.clone(),
            };
            let stored = to_bytes(&note);
            assert_eq!(from_bytes::<ObjectNote>(&stored).as_ref(), Some(&note));
            assert_eq!(Brief::of(&stored).as_ref(), Some(&note.brief));
            assert!(!is_of(&note, b"x"), "another kind of object");
        }
        for (root, url) in [
            ("file:///r", "file:///r/a%20b%0A%FF"),
            ("file:///", "file:///a"),
            ("https://h.example/", "https://h.example/a?b"),
        ] {
            let key = object_key(root, url);
            assert!(key.starts_with(&objects_prefix(root)));
            assert!(key.starts_with(&below_prefix(root, root)), "{url}");
            assert_eq!(url_of(root, &key).as_deref(), Some(url));
            assert_eq!(url_of("file:///other", &key), None);
        }
        assert_eq!(root_of(&root_key("file:///r")).unwrap(), "file:///r");
    }
}
