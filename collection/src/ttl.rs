//! Expiry: objects that nobody has confirmed for longer than their time-to-live are deleted.
//!
//! An object's time-to-live counts from its last update or refresh, or from the last confirmation
//! of its root if that is later. The expiry queue knows only the former; what comes up for expiry
//! too early because of the latter is moved on in the queue.
//!
//! Source: TR §3 (Time-to-Live); DESIGN.md, "Life" and "Restraint".

use crate::change::{Change, Note, Oid, Stamp};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::Holders;
use crate::report::Swept;

/// Objects deleted in one commit.
const DELETES_MAX: usize = 4096;

impl Collection {
    /// Deletes the objects whose time-to-live has run out, unless more than `max_share` (0 to 1) of
    /// all have.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn sweep(&self, now: Stamp, max_share: f64) -> Result<Swept, Error> {
        let mut tail = self.inner.tail();
        self.inner.go_on()?;
        let expired = self.inner.read_keys(|keys| keys.expired(now.0))?;
        let (would_expire, of) = (expired.len() as u64, self.len());
        if !is_within(would_expire, of, max_share) {
            return Ok(Swept::Held { would_expire, of });
        }
        for oids in expired.chunks(DELETES_MAX) {
            self.inner.go_on()?;
            let changes: Vec<Change> = oids.iter().cloned().map(Change::Delete).collect();
            let notes = self.holders_of(oids)?;
            self.inner.commit(&mut tail, &changes, &notes, now)?;
        }
        Ok(Swept::Done { expired: would_expire })
    }

    /// Returns the notes that remove what is known of these objects' holders.
    fn holders_of(&self, oids: &[Oid]) -> Result<Vec<Note>, Error> {
        let mut notes = Vec::new();
        for oid in oids {
            let key = Holders::note_key(oid);
            if self.inner.read_keys(|keys| keys.note(&key))?.is_some() {
                notes.push(Note { key, value: None });
            }
        }
        Ok(notes)
    }
}

/// Whether `part` of `of` is at most `share`.
fn is_within(part: u64, of: u64, share: f64) -> bool {
    part == 0 || part as f64 <= share * of as f64
}
