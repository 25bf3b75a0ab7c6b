//! What is remembered of a source over a restart, as a note of the collection.
//!
//! JSON, so that a curious admin can read it; what cannot be read counts as nothing.
//!
//! Sans-I/O.

use collection::{Cursor, Version};
use freshness::history::History;
use serde::{Deserialize, Serialize};

use crate::schedule::Known;
use crate::status::LastPull;

/// What starts a note's key; the source's name follows.
const PREFIX: &str = "schedule/";

/// What is remembered of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// What the schedule knows.
    pub(crate) schedule: Known,
    /// What status shows.
    pub(crate) last_pull: Option<LastPull>,
    /// How the source changes.
    #[serde(default)]
    pub(crate) history: History,
    /// Whose all of this is; nobody's in notes of before.
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// Up to which version of the source this reaches, as the cursor has it; not known in notes of before.
    #[serde(default)]
    pub(crate) reached: Option<Reached>,
}

/// A version of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// The epoch, 16 hex digits.
    pub(crate) epoch: String,
    /// The serial.
    pub(crate) serial: u64,
}

impl From<Version> for Reached {
    fn from(version: Version) -> Self {
        Self { epoch: version.epoch.to_string(), serial: version.serial }
    }
}

impl From<&Cursor> for Reached {
    fn from(cursor: &Cursor) -> Self {
        Version { epoch: cursor.epoch, serial: cursor.serial }.into()
    }
}

/// Which collection was read, and where. A source that moves and stays the same collection, or is set up
/// anew where it was, is taken to change as it did; another collection at another address is not,
/// whatever its name in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The address.
    pub(crate) url: String,
    /// The collection's epoch, 16 hex digits.
    pub(crate) epoch: String,
}

impl Origin {
    /// Whether what `now` is read has nothing to do with this.
    pub(crate) fn is_other(&self, now: &Self) -> bool {
        self.url != now.url && self.epoch != now.epoch
    }
}

impl Memory {
    /// Reads a note. One that another release wrote otherwise reads as nothing: the source is then
    /// pulled at once, and its rate estimated anew.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// What the schedule may go by when the source's cursor is there. Notes are written every few
    /// seconds, cursors with every pull: after a crash the one may be behind the other, and what was
    /// pulled in between would be missing from the next sample of the rate.
    pub(crate) fn known_at(&self, cursor: Option<&Cursor>) -> Known {
        match (&self.reached, cursor.map(Reached::from)) {
            (Some(reached), Some(now)) if *reached != now => self.schedule.read_further(),
            _ => self.schedule,
        }
    }

    /// Writes a note.
    pub(crate) fn written(&self) -> Vec<u8> {
        // Numbers and texts always make JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Returns the key of a source's note.
pub(crate) fn key(name: &str) -> Vec<u8> {
    format!("{PREFIX}{name}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(memory: &Memory) {
        assert_eq!(Memory::read(&memory.written()), *memory);
    }

    #[test]
    fn what_is_written_is_read() {
        let last_pull = LastPull {
            at_ms: 5,
            kind: "delta".to_owned(),
            changes: 3,
            bytes: 200,
            took_seconds: 0.25,
        };
        let mut history = History::default();
        for (at_secs, records) in [(7, 90), (10, 3), (12, 0), (31, 1)] {
            history.handle(at_secs, records, freshness::history::Settings::default());
        }
        let origin = Some(Origin { url: "http://a/".to_owned(), epoch: "0".repeat(16) });
        let reached = Some(Reached { epoch: "0".repeat(16), serial: 7 });
        check(&Memory {
            last_pull: Some(last_pull),
            history,
            origin,
            reached,
            ..Memory::default()
        });
        check(&Memory::default());
    }

    #[test]
    fn a_note_of_the_release_before_is_read() {
        let last_pull = r#"{"at_ms":5,"kind":"delta","changes":3,"bytes":200,"took_seconds":0.25}"#;
        let schedule = serde_json::to_string(&Known::default()).unwrap();
        let note = format!(r#"{{"schedule":{schedule},"last_pull":{last_pull}}}"#);
        assert_eq!(Memory::read(note.as_bytes()).last_pull.unwrap().bytes, 200);
    }

    #[test]
    fn only_another_collection_at_another_address_is_another() {
        let origin =
            |url: &str, epoch: &str| Origin { url: url.to_owned(), epoch: epoch.to_owned() };
        let before = origin("http://a/", "1");
        for (url, epoch, expected) in [
            ("http://a/", "1", false),
            ("http://a/", "2", false),
            ("http://b/", "1", false),
            ("http://b/", "2", true),
        ] {
            assert_eq!(before.is_other(&origin(url, epoch)), expected, "{url} {epoch}");
        }
    }

    /// After a kill the collection may have more of a source than its note knows of.
    #[test]
    fn a_note_that_is_behind_is_no_clock() {
        let known: Known = serde_json::from_str(r#"{"last_ms":5,"watched_secs":100.0}"#).unwrap();
        let cursor =
            |serial| Cursor { epoch: collection::Epoch::default(), serial, snapshot: None };
        let reached = Some(Reached::from(&cursor(7)));
        let memory = Memory { schedule: known, reached, ..Memory::default() };
        assert_eq!(memory.known_at(Some(&cursor(7))), known);
        assert_eq!(memory.known_at(Some(&cursor(9))), known.read_further());
        assert_eq!(Memory { reached: None, ..memory }.known_at(Some(&cursor(9))), known);
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        assert_eq!(Memory::read(b"{\"schedule\": 7}"), Memory::default());
        assert_eq!(Memory::read(b""), Memory::default());
    }
}
