//! The note of a source: its schedule and history, kept in the collection over restarts.
//!
//! A note is JSON, so that an administrator can read it. An unreadable note counts as empty.
//!
//! Sans-I/O.

use collection::{Cursor, Version};
use freshness::history::History;
use serde::{Deserialize, Serialize};

use crate::schedule::SourceNote;
use crate::status::LastPull;

/// Beginning of a note's key; the source's name follows.
const PREFIX: &str = "schedule/";

/// Content of a source's note.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) schedule: SourceNote,
    /// The last pull, for status.
    pub(crate) last_pull: Option<LastPull>,
    #[serde(default)]
    pub(crate) history: History,
    /// The collection that this note is about; `None` in notes of older releases.
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// Version of the source at its last pull, as in its cursor; `None` in notes of older releases.
    #[serde(default)]
    pub(crate) reached: Option<SourceVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceVersion {
    /// The epoch, 16 hex digits.
    pub(crate) epoch: String,
    pub(crate) serial: u64,
}

impl From<Version> for SourceVersion {
    fn from(version: Version) -> Self {
        Self { epoch: version.epoch.to_string(), serial: version.serial }
    }
}

impl From<&Cursor> for SourceVersion {
    fn from(cursor: &Cursor) -> Self {
        Version { epoch: cursor.epoch, serial: cursor.serial }.into()
    }
}

/// A collection and its URL. A collection that moved, or was set up anew at its URL, is expected to
/// change at the same rate as before. Another collection at another URL is not, even if the source
/// has the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) url: String,
    /// The collection's epoch, 16 hex digits.
    pub(crate) epoch: String,
}

impl Origin {
    /// Returns whether `now` is a different collection at a different URL.
    pub(crate) fn is_other(&self, now: &Self) -> bool {
        self.url != now.url && self.epoch != now.epoch
    }
}

impl Memory {
    /// Reads a note. A note in the format of another release counts as empty: the source is then
    /// pulled at once, and its rate is estimated anew.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Returns the state of the schedule for a source with the given cursor. Notes are written
    /// every few seconds, cursors with every pull: after a crash the note may be older than the
    /// cursor, and the next sample of the rate would miss the changes pulled in between.
    pub(crate) fn schedule_at(&self, cursor: Option<&Cursor>) -> SourceNote {
        match (&self.reached, cursor.map(SourceVersion::from)) {
            (Some(reached), Some(now)) if *reached != now => self.schedule.read_further(),
            _ => self.schedule,
        }
    }

    pub(crate) fn written(&self) -> Vec<u8> {
        // Numbers and texts can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

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
    fn a_written_note_reads_back_equal() {
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
        let reached = Some(SourceVersion { epoch: "0".repeat(16), serial: 7 });
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
    fn a_note_of_the_previous_release_is_read() {
        let last_pull = r#"{"at_ms":5,"kind":"delta","changes":3,"bytes":200,"took_seconds":0.25}"#;
        let schedule = serde_json::to_string(&SourceNote::default()).unwrap();
        let note = format!(r#"{{"schedule":{schedule},"last_pull":{last_pull}}}"#);
        assert_eq!(Memory::read(note.as_bytes()).last_pull.unwrap().bytes, 200);
    }

    #[test]
    fn an_origin_differs_if_both_url_and_epoch_differ() {
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

    /// After a kill the cursor of a source may be newer than its note.
    #[test]
    fn a_note_older_than_the_cursor_gives_no_sample_of_the_rate() {
        let known: SourceNote =
            serde_json::from_str(r#"{"last_ms":5,"watched_secs":100.0}"#).unwrap();
        let cursor = |serial| Cursor {
            epoch: collection::Epoch::default(),
            serial,
            snapshot: None,
            part: None,
        };
        let reached = Some(SourceVersion::from(&cursor(7)));
        let memory = Memory { schedule: known, reached, ..Memory::default() };
        assert_eq!(memory.schedule_at(Some(&cursor(7))), known);
        assert_eq!(memory.schedule_at(Some(&cursor(9))), known.read_further());
        assert_eq!(Memory { reached: None, ..memory }.schedule_at(Some(&cursor(9))), known);
    }

    #[test]
    fn an_unreadable_note_is_empty() {
        assert_eq!(Memory::read(b"{\"schedule\": 7}"), Memory::default());
        assert_eq!(Memory::read(b""), Memory::default());
    }
}
