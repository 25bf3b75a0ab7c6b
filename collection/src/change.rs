//! The types of the change log: stamps, epochs, versions, object identifiers, changes and notes.
//!
//! Source: ARCHITECTURE.md, "The one idea"; TR §3 for the contents of an update stream
//! (`@UPDATE`, `@REFRESH`, `@DELETE`).
//!
//! # Differences from the TR
//!
//! The TR orders its stream by wall-clock time. Ours is ordered by (epoch, serial): two changes
//! never tie, and a restored collection differs from the original. `Confirm` (all live objects of
//! one root still exist) replaces one `@REFRESH` per object.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use soif::{Record, plain_url};

use crate::error::Error;
use crate::notice::Notice;

/// The attribute that names the gatherer an object came from.
pub const GATHERER_ID: &str = "Gatherer-Id";
/// The attribute that names the root of an object.
pub const GATHERER_ROOT: &str = "Gatherer-Root";
/// The attribute with an object's (epoch, serial) at its gatherer: `EPOCH-SERIAL`.
pub const ORIGIN_VERSION: &str = "Origin-Version";
/// The attribute with the ids of those through whom a record came, from the object's gatherer on: it is not
/// part of what the record says of its object.
pub const ORIGIN_PATH: &str = "Origin-Path";

/// How far ahead of our clock another's may be, in milliseconds.
const AHEAD_MS_MAX: u64 = 24 * 3_600 * 1_000;

/// A moment: Unix time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp(pub u64);

/// One life of a log: serials can be compared only within one epoch. A newer epoch has a larger
/// number.
///
/// Shown as 16 lower-case hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Makes the epoch that starts at `now`. The low 20 bits of `random` distinguish it from other
    /// epochs of the same millisecond.
    #[must_use]
    pub fn new(now: Stamp, random: u64) -> Self {
        Self((now.0 << 20) | (random & 0xf_ffff))
    }

    /// Returns whether it starts more than a day after `now`: no clock is as wrong.
    pub(crate) fn is_ahead_of(self, now: Stamp) -> bool {
        now.0.saturating_add(AHEAD_MS_MAX) < self.0 >> 20
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Epoch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.len() == 16 && text.bytes().all(|it| it.is_ascii_hexdigit());
        digits
            .then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .map(Self)
            .ok_or_else(|| Error::Epoch { text: text.to_owned() })
    }
}

/// The progress of a collection: its epoch and the serial of its last change (0: none yet).
///
/// Ordered by epoch, then serial. Shown as `EPOCH-SERIAL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The epoch to which the serial belongs.
    pub epoch: Epoch,
    /// The serial of the last change.
    pub serial: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.serial)
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Epoch { text: text.to_owned() };
        let (epoch, serial) = text.trim().split_once('-').ok_or_else(wrong)?;
        Ok(Self { epoch: epoch.parse()?, serial: serial.parse().map_err(|_error| wrong())? })
    }
}

/// Object identifier: the gatherer's id and the object's URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid {
    /// The id of the gatherer (16 hex digits; any text without NUL is accepted).
    pub gatherer: String,
    /// The object's URL, without white space (it is percent-encoded).
    pub url: String,
}

impl Oid {
    /// Makes the identifier of `url` at `gatherer`. White space in the URL is percent-encoded.
    #[must_use]
    pub fn new(gatherer: &str, url: &str) -> Self {
        Self { gatherer: gatherer.to_owned(), url: plain_url(url).into_owned() }
    }

    /// Returns the identifier of `record`; `None` if its URL or its `Gatherer-Id` is missing.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let gatherer = record.text(GATHERER_ID)?;
        let oid = Self::new(gatherer.trim(), &record.url);
        oid.is_valid().then_some(oid)
    }

    /// Returns the bytes that sort identifiers by URL, then gatherer: `url NUL gatherer`.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.url.len() + 1 + self.gatherer.len());
        key.extend_from_slice(self.url.as_bytes());
        key.push(0);
        key.extend_from_slice(self.gatherer.as_bytes());
        key
    }

    /// Reads the bytes that [`key`](Self::key) returns; `None` if they are malformed.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let (url, gatherer) = std::str::from_utf8(key).ok()?.split_once('\0')?;
        Some(Self { gatherer: gatherer.to_owned(), url: url.to_owned() })
    }

    /// Returns whether the URL and the gatherer can be written to a stream and to a key.
    pub(crate) fn is_valid(&self) -> bool {
        !self.url.is_empty()
            && self.url != "-"
            && !self.gatherer.is_empty()
            && !self.gatherer.contains(char::is_control)
            && plain_url(&self.url) == self.url.as_str()
    }
}

/// Shown as `URL (GATHERER)`.
impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.url, self.gatherer)
    }
}

/// One entry of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is new or has changed; the record is complete. Its time-to-live starts again.
    Update(Record),
    /// The object is unchanged: its time-to-live starts again. Its gatherer has seen that at this time; `None`: when the
    /// change was committed. Full-text indexes ignore it.
    Refresh(Oid, Option<Stamp>),
    /// Every live object of `gatherer` under `root` still existed at `at`.
    Confirm {
        /// The id of the gatherer.
        gatherer: String,
        /// The URL of the root, as in the objects' `Gatherer-Root`.
        root: String,
        /// The end of the pass over the root.
        at: Stamp,
    },
    /// The object is gone here: its gatherer has deleted it, if this is the gatherer's own log; or else the
    /// log's owner does not hold it any more.
    Delete(Oid),
    /// The object's gatherer has deleted it, at this version of its log. An older reader sees a
    /// [`Change::Delete`].
    Withdraw(Oid, Version),
    /// An administrator has taken the object down, with this notice; or there is no object, only a
    /// [carrier](Notice::carrier) of the notice. An older reader sees a [`Change::Delete`].
    Suppress(Oid, Box<Notice>),
}

impl Change {
    /// Returns the object that the change is about; `None` for a [`Change::Confirm`] (and for an
    /// update without an identifier, which no log contains).
    #[must_use]
    pub fn oid(&self) -> Option<Oid> {
        match self {
            Self::Update(record) => Oid::of(record),
            Self::Refresh(oid, _)
            | Self::Delete(oid)
            | Self::Withdraw(oid, _)
            | Self::Suppress(oid, _) => Some(oid.clone()),
            Self::Confirm { .. } => None,
        }
    }
}

/// Local state that is committed atomically with changes and never served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The key: any bytes, not empty.
    pub key: Vec<u8>,
    /// The value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// The contents of one commit: changes in the order of their future serials, and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The changes.
    pub changes: Vec<Change>,
    /// The notes; if several have the same key, the last one counts.
    pub notes: Vec<Note>,
}

impl Batch {
    /// Returns whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.notes.is_empty()
    }
}

/// One change in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Its serial, from 1.
    pub serial: u64,
    /// The time of its commit; stamps never fall from one serial to the next.
    pub stamp: Stamp,
    /// The change.
    pub change: Change,
}

/// A live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The object's record.
    pub record: Record,
    /// The serial of its last update.
    pub serial: u64,
    /// The time of that update's commit.
    pub stamp: Stamp,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<(u64, u64)>) {
        let version = text.parse::<Version>().ok();
        assert_eq!(version.map(|it| (it.epoch.0, it.serial)), expected, "{text}");
        if let Some(version) = version {
            assert_eq!(version.to_string(), text.trim());
        }
    }

    #[test]
    fn a_version_is_an_epoch_and_a_serial() {
        check("00000000000000ff-12", Some((255, 12)));
        check(" ffffffffffffffff-18446744073709551615\n", Some((u64::MAX, u64::MAX)));
        for wrong in
            ["", "-", "ff-12", "00000000000000ff", "00000000000000ff-", "+0000000000000ff-1"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn a_newer_epoch_is_larger() {
        assert!(Epoch::new(Stamp(1000), u64::MAX) < Epoch::new(Stamp(1001), 0));
        let old = Version { epoch: Epoch(1), serial: 99 };
        assert!(old < Version { epoch: Epoch(2), serial: 1 });
    }

    #[test]
    fn an_identifier_needs_a_url_and_a_gatherer() {
        let mut record = Record::new("FILE", "http://a b");
        assert_eq!(Oid::of(&record), None);
        record.push(GATHERER_ID, " id\n");
        assert_eq!(Oid::of(&record), Some(Oid::new("id", "http://a%20b")));
        record.url = "-".to_owned();
        assert_eq!(Oid::of(&record), None);
    }

    proptest! {
        /// If this failed, an object would change its identifier on the way through a file.
        #[test]
        fn an_identifier_survives_a_round_trip(url in "\\PC{1,20}[\\x00-\\x7f\u{a0}\u{3000}]{0,8}") {
            let mut record = Record::new("FILE", url);
            record.push(GATHERER_ID, "g");
            let mut plain = Vec::new();
            soif::write_record(&mut plain, &record);
            let read = soif::parse(&plain).unwrap();
            prop_assert_eq!(Oid::of(&record), Oid::of(&read[0]));
            if let Some(oid) = Oid::of(&record) {
                prop_assert_eq!(Oid::from_key(&oid.key()), Some(oid));
            }
        }
    }
}
