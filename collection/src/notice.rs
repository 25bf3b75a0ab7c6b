//! Notices: signed orders of an administrator that suppress objects, or that lift such a
//! suppression.
//!
//! A notice is about a *subject*: objects by their URL (which may be a pattern) and, if given,
//! their gatherer. It travels in the attributes of a tombstone, so an older reader takes it for a
//! plain delete. Its signature covers only the notice, so brokers can pass it on unchanged, and
//! cannot change it.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::fmt;

use net::identity::{self, Identity};
use serde::{Deserialize, Serialize};
use soif::{Record, RecordRef, plain_url};
use xxhash_rust::xxh3::xxh3_64;

use crate::change::{Oid, Stamp};
use crate::error::Error;

/// Maximum length of a reason, in bytes.
pub const REASON_BYTES_MAX: usize = 1_000;
/// Maximum length of a subject's URL, and of an id, in bytes.
const SUBJECT_BYTES_MAX: usize = 4_096;
/// Prefix of the identifiers of carriers: tombstones that have no object and only carry a notice.
const CARRIER: &str = "harvest-notice:";
/// Template of the text that is signed.
const TEMPLATE: &str = "SUPPRESSION";

const PATTERN: &str = "Suppressed-Pattern";
const OF: &str = "Suppressed-Gatherer";
const STATE: &str = "Suppressed-State";
const REASON: &str = "Suppressed-Reason";
const TIME: &str = "Suppressed-Time";
const BY: &str = "Suppressed-By";
const KEY: &str = "Suppressed-Key";
const SIGNATURE: &str = "Suppressed-Signature";

/// The objects that a notice is about.
///
/// Written `URL`, or `URL GATHERER` for the objects of one gatherer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The objects' URL; `*` matches any number of any characters.
    pub url: String,
    /// The id of the objects' gatherer; empty for any.
    pub gatherer: String,
}

impl Subject {
    /// Reads a URL, a pattern, or an object identifier: `URL GATHERER` or `URL (GATHERER)`.
    ///
    /// # Errors
    ///
    /// [`Error::Subject`]: correct the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |reason| Error::Subject { text: text.to_owned(), reason };
        // Other white space may be part of a URL.
        let mut words = text.split_ascii_whitespace();
        let url = words.next().ok_or_else(|| wrong("it is empty"))?;
        let gatherer = words.next().unwrap_or_default();
        let bare = gatherer.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        let gatherer = bare.unwrap_or(gatherer);
        if words.next().is_some() {
            return Err(wrong("it is more than a URL and a gatherer's id"));
        }
        if SUBJECT_BYTES_MAX < url.len() || SUBJECT_BYTES_MAX < gatherer.len() {
            return Err(wrong("it is too long"));
        }
        if url.bytes().all(|it| it == b'*') {
            return Err(wrong("it would suppress everything: name at least a host"));
        }
        Ok(Self { url: plain_url(url).into_owned(), gatherer: gatherer.to_owned() })
    }

    /// Returns the subject that consists of one object.
    #[must_use]
    pub fn object(oid: &Oid) -> Self {
        Self { url: oid.url.clone(), gatherer: oid.gatherer.clone() }
    }

    /// Returns whether the URL is a pattern.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.url.contains('*')
    }

    /// Returns whether the subject includes the object.
    #[must_use]
    pub fn covers(&self, oid: &Oid) -> bool {
        (self.gatherer.is_empty() || self.gatherer == oid.gatherer) && matches(&self.url, &oid.url)
    }

    /// Returns the text before the first `*` of the URL.
    pub(crate) fn beginning(&self) -> &str {
        self.url.split('*').next().unwrap_or_default()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gatherer.as_str() {
            "" => f.write_str(&self.url),
            gatherer => write!(f, "{} {gatherer}", self.url),
        }
    }
}

/// Returns whether `text` matches `pattern`. The text between two `*` is searched once, from the
/// left, so the time is at most proportional to the sum of the lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The signer of a notice: the owner of a collection.
#[derive(Debug)]
pub struct Author {
    /// The id of the gatherer or broker.
    pub id: String,
    /// Its key.
    pub identity: Identity,
}

/// A signed order that suppresses objects, or that lifts a suppression. A value of this type is not
/// necessarily verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The objects that the notice is about.
    pub subject: Subject,
    /// Whether the notice lifts a suppression.
    pub lifted: bool,
    /// The reason, for people.
    pub reason: String,
    /// The time of signing. Of two notices by the same signer on the same subject, the later one
    /// counts.
    pub at: Stamp,
    /// The signer's id.
    pub by: String,
    /// The signer's public key: 64 hex digits.
    pub key: String,
    /// The signature: 128 hex digits.
    pub signature: String,
}

impl Default for Subject {
    fn default() -> Self {
        Self { url: soif::NO_URL.to_owned(), gatherer: String::new() }
    }
}

impl Notice {
    /// Makes and signs a notice.
    #[must_use]
    pub fn sign(author: &Author, subject: Subject, lifted: bool, reason: &str, at: Stamp) -> Self {
        let mut notice = Self {
            subject,
            lifted,
            reason: reason.to_owned(),
            at,
            by: author.id.clone(),
            key: author.identity.key().to_owned(),
            signature: String::new(),
        };
        notice.signature = author.identity.sign(&notice.text());
        notice
    }

    /// Returns whether the key's owner has signed exactly this notice, and its texts are not too
    /// long. [`is_of_signer`](Self::is_of_signer) says whether the key belongs to the signer's id.
    #[must_use]
    pub fn is_genuine(&self) -> bool {
        let length = self.reason.len() <= REASON_BYTES_MAX
            && self.by.len().max(self.subject.gatherer.len()) <= SUBJECT_BYTES_MAX
            && self.subject.url.len() <= SUBJECT_BYTES_MAX;
        length && identity::verify(&self.key, &self.text(), &self.signature)
    }

    /// Returns whether the signer's id is derived from the key.
    #[must_use]
    pub fn is_of_signer(&self) -> bool {
        identity::id_of(&self.key) == self.by
    }

    /// Returns the bytes that are signed: the notice as a record, without the signature.
    fn text(&self) -> Vec<u8> {
        let mut record = Record::new(TEMPLATE, soif::NO_URL);
        self.describe(&mut record);
        let mut text = Vec::new();
        soif::write_record(&mut text, &record);
        text
    }

    fn describe(&self, record: &mut Record) {
        record.push(PATTERN, self.subject.url.as_str());
        record.push(OF, self.subject.gatherer.as_str());
        record.push(STATE, if self.lifted { "lifted" } else { "suppressed" });
        record.push(REASON, self.reason.as_str());
        record.push(TIME, self.at.0.to_string());
        record.push(BY, self.by.as_str());
        record.push(KEY, self.key.as_str());
    }

    pub(crate) fn write(&self, record: &mut Record) {
        self.describe(record);
        record.push(SIGNATURE, self.signature.as_str());
    }

    /// Reads the notice of a record; `None` if it has none. A notice with missing or malformed
    /// attributes is read as one that is not genuine.
    pub(crate) fn read(record: &RecordRef<'_>) -> Option<Self> {
        let text = |name| record.text(name).unwrap_or_default().into_owned();
        Some(Self {
            signature: record.text(SIGNATURE)?.into_owned(),
            subject: Subject { url: text(PATTERN), gatherer: text(OF) },
            lifted: text(STATE) == "lifted",
            reason: text(REASON),
            at: Stamp(record.number(TIME).unwrap_or(0)),
            by: text(BY),
            key: text(KEY),
        })
    }

    /// Returns the identifier of the notice's carrier: a tombstone without an object.
    #[must_use]
    pub fn carrier(&self) -> Oid {
        let by = if self.by.is_empty() { "-" } else { self.by.as_str() };
        Oid::new(by, &format!("{CARRIER}{:016x}", xxh3_64(self.signature.as_bytes())))
    }

    /// Returns whether a tombstone of `oid` may carry the notice: `oid` is the carrier or, unless
    /// the notice lifts a suppression, is in the subject.
    #[must_use]
    pub fn fits_tombstone(&self, oid: &Oid) -> bool {
        *oid == self.carrier() || (!self.lifted && self.subject.covers(oid))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::change::{Change, Scanned};
    use crate::member::content::{self, Draft};

    fn author() -> Author {
        Author { id: "00000000000000aa".to_owned(), identity: Identity::of(&[7; 32]).unwrap() }
    }

    fn check(subject: &str, oid: (&str, &str), expected: bool) {
        let subject = Subject::parse(subject).unwrap();
        assert_eq!(subject.covers(&Oid::new(oid.0, oid.1)), expected, "{subject} {oid:?}");
        assert_eq!(Subject::parse(&subject.to_string()).unwrap(), subject);
    }

    #[test]
    fn a_subject_is_a_url_or_a_pattern_and_may_name_a_gatherer() {
        check("http://h/a", ("g", "http://h/a"), true);
        check("http://h/a", ("g", "http://h/ab"), false);
        check("http://h/a g", ("g", "http://h/a"), true);
        check("http://h/a (g)", ("g", "http://h/a"), true);
        check("http://h/a other", ("g", "http://h/a"), false);
        check("http://h/*", ("g", "http://h/"), true);
        check("http://h/*/b*", ("g", "http://h/a/c/b/d"), true);
        check("http://h/*/b", ("g", "http://h/a/b/c"), false);
        check("*.pdf g", ("g", "http://h/a.pdf"), true);
        check("*a*ab", ("g", "aaaab"), true);
        check("a*a", ("g", "a"), false);
        check("http://h/\u{a0}a g", ("g", "http://h/\u{a0}a"), true);
        for wrong in ["", " ", "*", "** g", "http://h/a g h"] {
            assert!(matches!(Subject::parse(wrong), Err(Error::Subject { .. })), "{wrong}");
        }
    }

    #[test]
    fn an_altered_notice_is_not_genuine() {
        let subject = Subject::parse("http://h/*").unwrap();
        let notice = Notice::sign(&author(), subject, false, "asked by its author", Stamp(5));
        assert!(notice.is_genuine());
        let alter: [fn(&mut Notice); 7] = [
            |it| it.subject.url.push('x'),
            |it| it.subject.gatherer.push('x'),
            |it| it.lifted = true,
            |it| it.reason.push('x'),
            |it| it.at.0 += 1,
            |it| it.by.push('x'),
            |it| it.key = Identity::of(&[8; 32]).unwrap().key().to_owned(),
        ];
        for alter in alter {
            let mut altered = notice.clone();
            alter(&mut altered);
            assert!(!altered.is_genuine(), "{altered:?}");
        }
        assert!(!Notice::default().is_genuine());
    }

    #[test]
    fn a_notice_fits_its_objects_and_its_carrier() {
        let subject = Subject::parse("http://h/*").unwrap();
        let notice = Notice::sign(&author(), subject.clone(), false, "", Stamp(5));
        assert!(notice.fits_tombstone(&Oid::new("g", "http://h/a")));
        assert!(!notice.fits_tombstone(&Oid::new("g", "http://other/a")));
        assert!(notice.fits_tombstone(&notice.carrier()));
        let lift = Notice::sign(&author(), subject, true, "", Stamp(6));
        assert!(!lift.fits_tombstone(&Oid::new("g", "http://h/a")), "it would delete it");
        assert!(lift.fits_tombstone(&lift.carrier()) && !lift.fits_tombstone(&notice.carrier()));
    }

    /// A matcher that tries every position again for every `*` would take years for this pattern.
    #[test]
    fn a_pattern_made_to_be_slow_is_matched_quickly() {
        let text = "a".repeat(64 << 10);
        let pattern = format!("*{}b*", "a".repeat(4_000));
        for _ in 0..1_000 {
            assert!(!matches(&pattern, &text));
        }
    }

    /// Writes changes to members and reads them back.
    fn round_trip(changes: &[Change]) -> Vec<Change> {
        let mut found = Vec::new();
        let mut read = |draft: Draft| {
            let entries: Vec<_> = (1..=draft.len() as u64).map(|it| (it, Stamp(1))).collect();
            let read = content::changes(&draft.plain, &entries, 0..usize::MAX).unwrap();
            found.extend(read.into_iter().map(|Scanned { change, .. }| change));
        };
        let pass_on = |drafts: Vec<Draft>| drafts.into_iter().for_each(&mut read);
        content::drafts(changes, &[], (1 << 16, 1 << 20), pass_on).unwrap();
        found
    }

    proptest! {
        /// A notice that changed on the way would not verify at the next broker.
        #[test]
        fn a_notice_survives_the_way_through_a_member(
            url in "[a-z*:/@}\u{e4}]{1,40}", gatherer in "[0-9a-f]{0,16}", reason in "\\PC{0,60}\n?",
            at: u64, lifted: bool,
        ) {
            let subject = Subject { url: plain_url(&url).into_owned(), gatherer };
            let notice = Notice::sign(&author(), subject, lifted, &reason, Stamp(at));
            let oid = notice.carrier();
            let other = Change::Delete(Oid::new("g", "http://h/plain"));
            let changes = [Change::Suppress(oid, Box::new(notice.clone())), other];
            prop_assert_eq!(round_trip(&changes), changes);
            prop_assert!(notice.is_genuine());
        }

        /// Whatever values the attributes have, the tombstone is read, but the notice is not
        /// genuine.
        #[test]
        fn nonsense_is_a_notice_that_is_not_genuine(parts in prop::array::uniform6("\\PC{0,20}")) {
            let [url, gatherer, reason, by, key, signature] = parts;
            let subject = Subject { url, gatherer };
            let notice = Notice { subject, reason, by, key, signature, ..Notice::default() };
            let change = Change::Suppress(Oid::new("g", "u"), Box::new(notice.clone()));
            prop_assert_eq!(round_trip(std::slice::from_ref(&change)), [change]);
            prop_assert!(!notice.is_genuine());
        }

        #[test]
        fn a_pattern_matches_what_a_regular_expression_would(
            pattern in "[ab*]{0,8}", text in "[ab]{0,10}",
        ) {
            prop_assert_eq!(matches(&pattern, &text), slowly(&pattern, &text));
        }
    }

    fn slowly(pattern: &str, text: &str) -> bool {
        match pattern.split_at_checked(1) {
            None => text.is_empty(),
            Some(("*", rest)) => {
                (0..=text.len()).any(|at| text.get(at..).is_some_and(|it| slowly(rest, it)))
            }
            Some((letter, rest)) => text.strip_prefix(letter).is_some_and(|it| slowly(rest, it)),
        }
    }
}
