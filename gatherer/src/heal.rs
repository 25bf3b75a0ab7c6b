//! The repair of damage in the collection: only the objects with damaged records are gathered
//! again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use collection::{Batch, Change, Compacted, Healing, Oid, Stamp};
use net::clock;
use tokio::task::JoinError;

use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::progress::Hold;
use crate::site::{Site, commit_note};

/// Number of bytes of the log that are checked at a time.
const SCRUB_BYTES: u64 = 16 << 20;

/// Fingerprint of settings in the note of a file that has to be published again, whatever its
/// content.
const DOUBTED: u64 = 0;

/// Outcome of the maintenance of the collection.
#[derive(Debug)]
pub(crate) struct TidyOutcome {
    compacted: Option<Compacted>,
    /// Whether files have to be gathered again, since their records were damaged.
    again: bool,
    /// Errors of the steps that failed.
    failed: Vec<collection::Error>,
}

impl Site {
    /// Repairs damage, and compacts the collection if that is worthwhile. A failed step does not
    /// stop the others: if the disk is full, it is the compaction that frees space. Blocks.
    pub(crate) fn tidy(&self) -> TidyOutcome {
        let mut failed = Vec::new();
        let mut done = |outcome: Result<bool, collection::Error>| {
            outcome.unwrap_or_else(|error| {
                failed.push(error);
                false
            })
        };
        done(self.collection.scrub(SCRUB_BYTES).map(|()| false));
        // Damaged members are kept until the aftermath has been handled.
        let again = done(self.handle_aftermath()) | done(self.heal());
        let compacted = self.collection.compact_if_due(now());
        let compacted = compacted.map_err(|error| failed.push(error)).ok().flatten();
        TidyOutcome { compacted, again, failed }
    }

    /// Handles the loss of records: every root is published again; then records that come from no
    /// file are deleted. Returns whether a pass is due. Blocks.
    pub(crate) fn handle_aftermath(&self) -> Result<bool, collection::Error> {
        let Some(loss) = self.collection.aftermath()? else { return Ok(false) };
        let known = *lock(&self.distrusted) == Some(loss);
        let mut is_whole = true;
        for url in self.known_roots()? {
            let root_state = self.root_state(&url)?;
            let _finish = lock(&root_state.finish);
            let mut note = lock(&root_state.note);
            if !known && !note.regather {
                note.regather = true;
                self.remember_root(&url, &note)?;
            }
            // A root that is no longer in the settings is not gathered any more.
            is_whole &= !note.regather || note.hold == Some(Hold::Removed);
        }
        if !known {
            self.repositories.doubt(&self.collection)?;
        }
        *lock(&self.distrusted) = Some(loss);
        if known && is_whole {
            let look = || {
                let published = self.published()?;
                let is_known = move |oid: &Oid| {
                    oid.gatherer != self.id || published.contains(&url_hash(&oid.url))
                };
                Ok(move |oid: &Oid| Ok(is_known(oid)))
            };
            self.collection.end_aftermath(look, now())?;
        }
        Ok(!known)
    }

    fn published(&self) -> Result<HashSet<u64>, collection::Error> {
        let mut published = HashSet::new();
        for entry in self.collection.notes(note::OBJECT.as_bytes()) {
            let (_key, value) = entry?;
            let file: Option<ObjectNote> = note::from_bytes(&value);
            published.extend(file.iter().flat_map(|it| &it.records).map(|it| url_hash(&it.url)));
        }
        Ok(published)
    }

    /// Repairs known damage. Returns whether a pass is due because files have to be gathered again.
    /// Blocks.
    pub(crate) fn heal(&self) -> Result<bool, collection::Error> {
        let lost = match self.collection.heal(now())? {
            None => return Ok(false),
            Some(Healing::Done { .. }) => {
                lock(&self.problems).cure("-", "damaged");
                return Ok(false);
            }
            Some(Healing::Waiting { lost, .. }) => lost,
        };
        let damaged = self.collection.health().damaged;
        if let Some(first) = damaged.first() {
            let message = format!("{first}; {} objects are gathered again", lost.len());
            tracing::warn!("{message}");
            self.problem("-".to_owned(), "damaged", message);
        }
        // If no object was lost, the damage is in a root's confirmation, which a pass repeats.
        let mut is_due = lost.is_empty();
        if lost.iter().any(|it| it.gatherer != self.id) {
            self.repositories.doubt(&self.collection)?;
        }
        let own = lost.into_iter().filter(|it| it.gatherer == self.id);
        let mut lost: HashSet<String> = own.map(|it| it.url).collect();
        for root in self.known_roots()? {
            is_due |= self.doubt(&root, &mut lost)?;
        }
        // These records no longer belong to any file.
        let delete = |url: String| Change::Delete(Oid::new(&self.id, &url));
        let changes = lost.into_iter().map(delete).collect();
        self.collection.commit(Batch { changes, notes: Vec::new() }, now())?;
        Ok(is_due)
    }

    /// Marks those files of a root that have records in `lost` to be gathered again, and removes
    /// all records of these files from `lost`. Returns whether any of the files had not been marked
    /// before.
    pub(crate) fn doubt(
        &self,
        root: &str,
        lost: &mut HashSet<String>,
    ) -> Result<bool, collection::Error> {
        let root_state = self.root_state(root)?;
        let mut any = false;
        for entry in self.collection.notes(&note::objects_prefix(root)) {
            let (key, value) = entry?;
            let has_lost = |file: &ObjectNote| file.records.iter().any(|it| lost.contains(&it.url));
            if !note::from_bytes(&value).is_some_and(|file| has_lost(&file)) {
                continue;
            }
            let _commit = lock(&root_state.commit);
            // The file may have been gathered again in the meantime.
            let stored = self.collection.note(&key)?;
            let Some(mut file) = stored.as_deref().and_then(note::from_bytes::<ObjectNote>) else {
                continue;
            };
            for record in &file.records {
                lost.remove(&record.url);
            }
            if file.brief.settings != DOUBTED {
                any = true;
                file.brief.settings = DOUBTED;
                if let Some(url) = note::url_of(root, &key) {
                    lock(&root_state.known).doubt(&url);
                }
                commit_note(&self.collection, key, Some(note::to_bytes(&file)))?;
            }
        }
        Ok(any)
    }
}

/// Logs the outcome, and returns whether files have to be gathered again.
pub(crate) fn report_tidied(outcome: Result<TidyOutcome, JoinError>) -> bool {
    match outcome {
        Ok(TidyOutcome { compacted, again, failed }) => {
            if let Some(done) = compacted {
                let (before, after) = done.bytes;
                tracing::info!(before, after, dropped = done.dropped, "collection compacted");
            }
            // The next maintenance tries failed steps again.
            for error in failed {
                tracing::warn!(%error, "the collection cannot be tidied");
            }
            again
        }
        Err(error) => {
            tracing::error!(%error, "a compaction failed");
            false
        }
    }
}

/// Returns a hash of a URL. Two URLs with the same hash are treated as one, which is rare and
/// harmless.
fn url_hash(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}
