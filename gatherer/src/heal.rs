//! Damage in the collection: what lived in it is gathered again, and nothing else is.

use std::collections::HashSet;

use collection::{Batch, Change, Compacted, Healing, Note, Oid, Stamp};
use net::clock;
use tokio::task::JoinError;

use crate::note::{self, FileNote};
use crate::site::{Site, lock, path_bytes};

/// How much of the log is checked at a time, in bytes.
const SCRUB_BYTES: u64 = 16 << 20;

/// What a note says in the place of a fingerprint of settings when its file is to be published again
/// whatever it has.
const DOUBTED: u64 = 0;

/// What was done for the collection.
#[derive(Debug)]
pub(crate) struct Tidied {
    pub(crate) compacted: Option<Compacted>,
    /// Whether files are to be gathered again, since what they gave was damaged.
    pub(crate) again: bool,
}

impl Site {
    /// Sees to damage, and rewrites the collection without what is superseded, if that is worth it.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
    pub(crate) fn tidy(&self) -> Result<Tidied, collection::Error> {
        let again = self.heal()?;
        Ok(Tidied { compacted: self.collection.compact_if_due(now())?, again })
    }

    /// Looks for damage and sees to what there is; returns whether a pass is due, since files are to
    /// be gathered again. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
    fn heal(&self) -> Result<bool, collection::Error> {
        self.collection.scrub(SCRUB_BYTES)?;
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
        // Without any object it is what was said of a root, and a pass says it again.
        let mut is_due = lost.is_empty();
        let mut lost: HashSet<String> = lost.into_iter().map(|it| it.url).collect();
        for root in self.known_roots()? {
            is_due |= self.doubt(&root, &mut lost)?;
        }
        // No file gives these any more.
        let delete = |url: String| Change::Delete(Oid::new(&self.id, &url));
        let changes = lost.into_iter().map(delete).collect();
        self.collection.commit(Batch { changes, notes: Vec::new() }, now())?;
        Ok(is_due)
    }

    /// Has the files of a root that gave something of what is `lost` gathered again, and takes what
    /// they gave off the list; returns whether there is any that was not doubted before.
    pub(crate) fn doubt(
        &self,
        root: &str,
        lost: &mut HashSet<String>,
    ) -> Result<bool, collection::Error> {
        let tract = self.tract(root)?;
        let mut any = false;
        for entry in self.collection.notes(&note::files_prefix(root)) {
            let (key, value) = entry?;
            let gave = |file: &FileNote| file.records.iter().any(|it| lost.contains(&it.url));
            if !note::from_bytes(&value).is_some_and(|file| gave(&file)) {
                continue;
            }
            let _still = lock(&tract.commit);
            // It may have been gathered anew just now.
            let stored = self.collection.note(&key)?;
            let Some(mut file) = stored.as_deref().and_then(note::from_bytes::<FileNote>) else {
                continue;
            };
            for record in &file.records {
                lost.remove(&record.url);
            }
            if file.settings != DOUBTED {
                any = true;
                file.settings = DOUBTED;
                let value = Some(note::to_bytes(&file));
                if let Some(path) = note::path_of(root, &key) {
                    lock(&tract.known).doubt(path_bytes(&path));
                }
                let notes = vec![Note { key, value }];
                self.collection.commit(Batch { changes: Vec::new(), notes }, now())?;
            }
        }
        Ok(any)
    }
}

/// Logs what came of it, and returns whether files are to be gathered again.
pub(crate) fn report_tidied(tidied: Result<Result<Tidied, collection::Error>, JoinError>) -> bool {
    match tidied {
        Ok(Ok(Tidied { compacted, again })) => {
            if let Some(done) = compacted {
                let (before, after) = done.bytes;
                tracing::info!(before, after, dropped = done.dropped, "collection compacted");
            }
            return again;
        }
        // The log is as it was; the next one tries again.
        Ok(Err(error)) => tracing::warn!(%error, "the collection cannot be tidied"),
        Err(error) => tracing::error!(%error, "a compaction failed"),
    }
    false
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}
