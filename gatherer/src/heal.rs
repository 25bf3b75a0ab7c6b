//! Damage in the collection: what lived in it is gathered again, and nothing else is.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use collection::{Batch, Change, Compacted, Healing, Note, Oid, Stamp};
use net::clock;
use tokio::task::JoinError;

use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::progress::Hold;
use crate::site::Site;

/// How much of the log is checked at a time, in bytes.
const SCRUB_BYTES: u64 = 16 << 20;

/// What a note says in the place of a fingerprint of settings when its file is to be published again
/// whatever it has.
const DOUBTED: u64 = 0;

/// What was done for the collection.
#[derive(Debug)]
pub(crate) struct Tidied {
    compacted: Option<Compacted>,
    /// Whether files are to be gathered again, since what they gave was damaged.
    again: bool,
    /// Why not all of it could be done.
    failed: Vec<collection::Error>,
}

impl Site {
    /// Sees to damage, and rewrites the collection without what is superseded, if that is worth it:
    /// each whatever becomes of the others, since a full disk needs just what gives space back. Blocks.
    pub(crate) fn tidy(&self) -> Tidied {
        let mut failed = Vec::new();
        let mut done = |outcome: Result<bool, collection::Error>| {
            outcome.unwrap_or_else(|error| {
                failed.push(error);
                false
            })
        };
        done(self.collection.scrub(SCRUB_BYTES).map(|()| false));
        // What is damaged stays until the aftermath is over.
        let again = done(self.face_aftermath()) | done(self.heal());
        let compacted = self.collection.compact_if_due(now());
        let compacted = compacted.map_err(|error| failed.push(error)).ok().flatten();
        Tidied { compacted, again, failed }
    }

    /// Sees to what follows from lost records: every root is published again, and once that is done,
    /// what no file has given is deleted. Returns whether a pass is due. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
    pub(crate) fn face_aftermath(&self) -> Result<bool, collection::Error> {
        let Some(loss) = self.collection.aftermath()? else { return Ok(false) };
        let known = *lock(&self.distrusted) == Some(loss);
        let mut is_whole = true;
        for url in self.known_roots()? {
            let tract = self.tract(&url)?;
            let _still = lock(&tract.finish);
            let mut note = lock(&tract.note);
            if !known && !note.regather {
                note.regather = true;
                self.remember_root(&url, &note)?;
            }
            // What is no longer in the settings is gathered no more.
            is_whole &= !note.regather || note.hold == Some(Hold::Removed);
        }
        if !known {
            self.repositories.doubt(&self.collection)?;
        }
        *lock(&self.distrusted) = Some(loss);
        if known && is_whole {
            let look = || {
                let given = self.given()?;
                let is_known =
                    move |oid: &Oid| oid.gatherer != self.id || given.contains(&print(&oid.url));
                Ok(move |oid: &Oid| Ok(is_known(oid)))
            };
            self.collection.end_aftermath(look, now())?;
        }
        Ok(!known)
    }

    /// Returns the prints of all URLs that files have given.
    fn given(&self) -> Result<HashSet<u64>, collection::Error> {
        let mut given = HashSet::new();
        for entry in self.collection.notes(&note::every_object_prefix()) {
            let (_key, value) = entry?;
            let file: Option<ObjectNote> = note::from_bytes(&value);
            given.extend(file.iter().flat_map(|it| &it.records).map(|it| print(&it.url)));
        }
        Ok(given)
    }

    /// Sees to what is known to be damaged; returns whether a pass is due, since files are to be
    /// gathered again. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
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
        // Without any object it is what was said of a root, and a pass says it again.
        let mut is_due = lost.is_empty();
        if lost.iter().any(|it| it.gatherer != self.id) {
            self.repositories.doubt(&self.collection)?;
        }
        let own = lost.into_iter().filter(|it| it.gatherer == self.id);
        let mut lost: HashSet<String> = own.map(|it| it.url).collect();
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
        for entry in self.collection.notes(&note::objects_prefix(root)) {
            let (key, value) = entry?;
            let gave = |file: &ObjectNote| file.records.iter().any(|it| lost.contains(&it.url));
            if !note::from_bytes(&value).is_some_and(|file| gave(&file)) {
                continue;
            }
            let _still = lock(&tract.commit);
            // It may have been gathered anew just now.
            let stored = self.collection.note(&key)?;
            let Some(mut file) = stored.as_deref().and_then(note::from_bytes::<ObjectNote>) else {
                continue;
            };
            for record in &file.records {
                lost.remove(&record.url);
            }
            if file.settings != DOUBTED {
                any = true;
                file.settings = DOUBTED;
                let value = Some(note::to_bytes(&file));
                if let Some(url) = note::url_of(root, &key) {
                    lock(&tract.known).doubt(&url);
                }
                let notes = vec![Note { key, value }];
                self.collection.commit(Batch { changes: Vec::new(), notes }, now())?;
            }
        }
        Ok(any)
    }
}

/// Logs what came of it, and returns whether files are to be gathered again.
pub(crate) fn report_tidied(tidied: Result<Tidied, JoinError>) -> bool {
    match tidied {
        Ok(Tidied { compacted, again, failed }) => {
            if let Some(done) = compacted {
                let (before, after) = done.bytes;
                tracing::info!(before, after, dropped = done.dropped, "collection compacted");
            }
            // What is not done is tried again the next time.
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

/// A short form of a URL. Two that have the same are taken for one, which is rare and does no harm.
fn print(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}
