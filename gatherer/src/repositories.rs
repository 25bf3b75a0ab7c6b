//! What is known of the repositories that are harvested: a note of each in the collection, beside the
//! checkpoint of its harvest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use collection::{Batch, Collection, Note, Stamp};
use net::clock;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::fetch::oai::{Ended, HARVEST_PROBLEM};
use crate::known::LOST_FILES_MAX;
use crate::note;
use crate::progress::{Hold, RootStatus};
use crate::rounds::Requests;
use crate::site::{Site, lock};

/// Begins the key of every repository's note.
const REPOSITORY: &str = "repository ";

/// Whether everything is to be harvested again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Regather {
    /// No.
    #[default]
    No,
    /// The next harvest is to begin anew.
    Asked,
    /// The harvest under way has begun anew, and goes on from its checkpoint.
    UnderWay,
}

/// What is remembered of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RepositoryNote {
    /// When its last finished harvest ended, in Unix milliseconds.
    pub(crate) confirmed: Option<u64>,
    /// Fingerprint of the settings that its records depend on.
    pub(crate) settings: u64,
    /// Whether the collection has lost records of it.
    #[serde(default)]
    pub(crate) regather: Regather,
    /// Why deletions are held.
    pub(crate) hold: Option<Hold>,
    /// How many records were gone when they were.
    pub(crate) held: u64,
}

/// The repositories of a running gatherer.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// Wakes their schedule when something has been asked for.
    pub(crate) asked: Notify,
    pub(crate) requests: Mutex<Requests>,
    /// By base URL.
    notes: Mutex<BTreeMap<String, RepositoryNote>>,
    /// Held while a note is changed, in the collection and here, so that no change is lost to another.
    changing: Mutex<()>,
    /// Harvests that somebody waits for: the first one of each repository, and those that were confirmed.
    due: AtomicU64,
}

impl Repositories {
    /// Reads what the collection says of them; `wanted` are those in the settings. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub(crate) fn load(
        &self,
        collection: &Collection,
        wanted: usize,
    ) -> Result<(), collection::Error> {
        let mut notes = lock(&self.notes);
        for entry in collection.notes(REPOSITORY.as_bytes()) {
            let (key, value) = entry?;
            let url = std::str::from_utf8(&key).ok().and_then(|it| it.strip_prefix(REPOSITORY));
            if let Some(url) = url {
                notes.insert(url.to_owned(), note::from_bytes(&value).unwrap_or_default());
            }
        }
        self.due.store(wanted as u64, Relaxed);
        Ok(())
    }

    /// How many harvests have yet to end, whatever comes of them: the first one of each repository since the
    /// start, and those that were confirmed.
    pub(crate) fn due(&self) -> u64 {
        self.due.load(Relaxed)
    }

    /// Counts harvests that have ended.
    pub(crate) fn ended(&self, count: u64) {
        self.due.fetch_sub(count, Relaxed);
    }

    /// Asks for harvests that may delete what is held.
    pub(crate) fn confirm(&self, urls: Vec<String>) {
        self.ask(|it| {
            // One harvest is for all who have asked for it until the schedule sees that.
            let asked = it.confirm.len();
            it.confirm.extend(urls);
            self.due.fetch_add((it.confirm.len() - asked) as u64, Relaxed);
        });
    }

    /// The base URLs of all that the collection knows.
    pub(crate) fn known(&self) -> Vec<String> {
        lock(&self.notes).keys().cloned().collect()
    }

    /// The base URLs of those that are to be harvested in full.
    pub(crate) fn doubted(&self) -> BTreeSet<String> {
        let notes = lock(&self.notes);
        let is_doubted = |note: &RepositoryNote| note.regather == Regather::Asked;
        notes.iter().filter(|(_, note)| is_doubted(note)).map(|(url, _)| url.clone()).collect()
    }

    /// What is remembered of one.
    pub(crate) fn note(&self, url: &str) -> RepositoryNote {
        lock(&self.notes).get(url).cloned().unwrap_or_default()
    }

    /// Takes what an administrator asks for, and wakes the schedule.
    pub(crate) fn ask(&self, change: impl FnOnce(&mut Requests)) {
        change(&mut lock(&self.requests));
        self.asked.notify_one();
    }
}

impl Site {
    /// Changes a repository's note, and commits it if that made a difference. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) fn change_repository(
        &self,
        url: &str,
        change: impl FnOnce(&mut RepositoryNote),
    ) -> Result<(), collection::Error> {
        let _changing = lock(&self.repositories.changing);
        let known = lock(&self.repositories.notes).get(url).cloned();
        let mut note = known.clone().unwrap_or_default();
        change(&mut note);
        if known.as_ref() == Some(&note) {
            return Ok(());
        }
        let stored = Note { key: key(url), value: Some(note::to_bytes(&note)) };
        let batch = Batch { changes: Vec::new(), notes: vec![stored] };
        self.collection.commit(batch, Stamp(clock::now_ms()))?;
        lock(&self.repositories.notes).insert(url.to_owned(), note);
        Ok(())
    }

    /// Has every repository harvested in full: records of some have been lost. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) fn doubt_repositories(&self) -> Result<(), collection::Error> {
        for url in self.repositories.known() {
            self.change_repository(&url, |it| {
                if it.regather == Regather::No {
                    it.regather = Regather::Asked;
                }
            })?;
        }
        self.repositories.asked.notify_one();
        Ok(())
    }

    /// Deletes what a repository brought that is no longer in the settings; much of it only once
    /// confirmed. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
    pub(crate) fn forget_repository(
        &self,
        url: &str,
        confirmed: bool,
    ) -> Result<Ended, collection::Error> {
        let objects = self.held_of(url)?;
        if LOST_FILES_MAX < objects && !confirmed {
            self.change_repository(url, |it| {
                if it.hold != Some(Hold::Removed) {
                    (it.hold, it.held) = (Some(Hold::Removed), objects);
                }
            })?;
            let message = format!(
                "the root is no longer in the settings: its {objects} records are kept until it is \
                 back or POST /confirm?root={url} says that it is gone"
            );
            self.problem(url.to_owned(), "held", message);
            return Ok(Ended::Held);
        }
        let applied = self.collection.remove_source(url, Stamp(clock::now_ms()))?;
        self.metrics.deleted.fetch_add(applied.deleted, Relaxed);
        self.counts.deleted.fetch_add(applied.deleted, Relaxed);
        let notes = vec![Note { key: key(url), value: None }];
        let batch = Batch { changes: Vec::new(), notes };
        let changing = lock(&self.repositories.changing);
        self.collection.commit(batch, Stamp(clock::now_ms()))?;
        lock(&self.repositories.notes).remove(url);
        drop(changing);
        let mut problems = lock(&self.problems);
        ["held", HARVEST_PROBLEM].iter().for_each(|kind| problems.cure(url, kind));
        Ok(Ended::Forgotten)
    }

    /// How many objects a repository has brought that live.
    fn held_of(&self, url: &str) -> Result<u64, collection::Error> {
        let sources = self.collection.sources()?;
        Ok(sources.into_iter().find(|it| it.source == url).map_or(0, |it| it.objects))
    }

    /// Returns the status of the repositories, those in `order` first.
    pub(crate) fn repository_roots(&self, order: &[String]) -> Vec<RootStatus> {
        let known = self.repositories.known();
        let others = known.iter().filter(|url| !order.contains(url));
        let status = |url: &String| {
            let note = self.repositories.note(url);
            RootStatus {
                url: url.clone(),
                files: self.held_of(url).unwrap_or_default(),
                confirmed: note.confirmed.map(|ms| ms / 1_000),
                hold: note.hold,
                held: note.held,
            }
        };
        order.iter().chain(others).map(status).collect()
    }
}

fn key(url: &str) -> Vec<u8> {
    format!("{REPOSITORY}{url}").into_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use collection::Options;

    use super::*;

    /// What one task has noted does not disappear under what another has read before and writes after.
    #[test]
    fn a_note_is_changed_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(dir.path(), Options::default(), stamp).unwrap();
        let site = Site::new("00000000000000aa".to_owned(), collection, (None, None));
        let url = "http://a/oai";
        site.change_repository(url, |it| it.settings = 1).unwrap();
        let before = site.collection.version();
        site.change_repository(url, |it| it.settings = 1).unwrap();
        assert_eq!(site.collection.version(), before, "nothing has changed");
        let (doubt, doubts) = mpsc::channel();
        std::thread::scope(|scope| {
            let site = &site;
            scope.spawn(move || {
                let () = doubts.recv().unwrap();
                site.doubt_repositories().unwrap();
            });
            let finish = |it: &mut RepositoryNote| {
                assert!(site.repositories.changing.try_lock().is_err(), "nobody else changes it");
                doubt.send(()).unwrap();
                it.confirmed = Some(7);
            };
            site.change_repository(url, finish).unwrap();
        });
        let note = site.repositories.note(url);
        assert_eq!((note.confirmed, note.regather), (Some(7), Regather::Asked));
    }

    #[test]
    fn a_harvest_that_is_asked_for_twice_is_awaited_once() {
        let repositories = Repositories::default();
        let url = || vec!["http://a/oai".to_owned()];
        repositories.confirm(url());
        repositories.confirm(url());
        assert_eq!(repositories.due(), 1);
        // The schedule sees it; what is asked from here on is another one.
        let seen = std::mem::take(&mut *lock(&repositories.requests)).confirm;
        assert_eq!(seen.len(), 1);
        repositories.confirm(url());
        assert_eq!(repositories.due(), 2);
        repositories.ended(2);
        assert_eq!(repositories.due(), 0);
    }
}
