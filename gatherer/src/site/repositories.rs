//! The notes on harvested repositories, which the collection stores with their checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use collection::Collection;
use tokio::sync::{Notify, watch};

use super::commit_note;
use crate::lock::lock;
use crate::note::{self, Regather, RepositoryNote};
use crate::requests::Requests;

#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// Wakes the schedule of harvests after a request.
    pub(crate) requested: Notify,
    pub(crate) requests: Mutex<Requests>,
    /// The notes, by base URL.
    notes: Mutex<BTreeMap<String, RepositoryNote>>,
    /// Locked while a note is changed, in the collection and in `notes`, so that no change
    /// overwrites another.
    changing: Mutex<()>,
    /// What the harvests under way do, by base URL.
    activities: Mutex<BTreeMap<String, watch::Receiver<String>>>,
    /// Number of awaited harvests that have not ended yet; see [`crate::Progress::harvests_due`].
    pub(crate) due: AtomicU64,
}

impl Repositories {
    /// Reads the notes from the collection; `wanted` is the number of repositories in the settings.
    /// Blocks.
    pub(crate) fn load(
        &self,
        collection: &Collection,
        wanted: usize,
    ) -> Result<(), collection::Error> {
        let mut notes = lock(&self.notes);
        for entry in collection.notes(note::REPOSITORY.as_bytes()) {
            let (key, value) = entry?;
            if let Some(url) = note::repository_of(&key) {
                notes.insert(url, note::from_bytes(&value).unwrap_or_default());
            }
        }
        self.due.store(wanted as u64, Relaxed);
        Ok(())
    }

    /// Notes that `count` of the harvests that were due have ended.
    pub(crate) fn ended(&self, count: u64) {
        self.due.fetch_sub(count, Relaxed);
    }

    /// Requests harvests that may delete the held records.
    pub(crate) fn confirm(&self, urls: Vec<String>) {
        self.request(|it| {
            // Until the schedule takes the requests, one harvest serves all of them.
            let before = it.confirm.len();
            it.confirm.extend(urls);
            self.due.fetch_add((it.confirm.len() - before) as u64, Relaxed);
        });
    }

    /// Returns the base URLs of all repositories in the collection.
    pub(crate) fn known(&self) -> Vec<String> {
        lock(&self.notes).keys().cloned().collect()
    }

    /// Returns the base URLs of the repositories that have to be harvested in full.
    pub(crate) fn doubted(&self) -> BTreeSet<String> {
        let notes = lock(&self.notes);
        let is_doubted = |note: &RepositoryNote| note.regather == Regather::Asked;
        notes.iter().filter(|(_, note)| is_doubted(note)).map(|(url, _)| url.clone()).collect()
    }

    pub(crate) fn note(&self, url: &str) -> RepositoryNote {
        lock(&self.notes).get(url).cloned().unwrap_or_default()
    }

    /// Shows what a harvest does, until it ends; `None` if it has ended.
    pub(crate) fn show(&self, url: &str, activity: Option<watch::Receiver<String>>) {
        let mut activities = lock(&self.activities);
        match activity {
            Some(activity) => activities.insert(url.to_owned(), activity),
            None => activities.remove(url),
        };
    }

    /// Returns what the harvest under way does.
    pub(crate) fn activity(&self, url: &str) -> Option<String> {
        let activity = lock(&self.activities).get(url).map(|it| it.borrow().clone());
        activity.filter(|it| !it.is_empty())
    }

    /// Adds an administrator's requests, and wakes the schedule.
    pub(crate) fn request(&self, change: impl FnOnce(&mut Requests)) {
        change(&mut lock(&self.requests));
        self.requested.notify_one();
    }

    /// Changes a repository's note, and commits the note if it has become different. Blocks.
    pub(crate) fn change(
        &self,
        collection: &Collection,
        url: &str,
        change: impl FnOnce(&mut RepositoryNote),
    ) -> Result<(), collection::Error> {
        let _changing = lock(&self.changing);
        let known = lock(&self.notes).get(url).cloned();
        let mut note = known.clone().unwrap_or_default();
        change(&mut note);
        if known.as_ref() == Some(&note) {
            return Ok(());
        }
        commit_note(collection, note::repository_key(url), Some(note::to_bytes(&note)))?;
        lock(&self.notes).insert(url.to_owned(), note);
        Ok(())
    }

    /// Forgets a repository that has no records. Blocks.
    pub(crate) fn forget(
        &self,
        collection: &Collection,
        url: &str,
    ) -> Result<(), collection::Error> {
        let _changing = lock(&self.changing);
        commit_note(collection, note::repository_key(url), None)?;
        lock(&self.notes).remove(url);
        Ok(())
    }

    /// Marks every repository to be harvested in full, since records were lost. Blocks.
    pub(crate) fn doubt(&self, collection: &Collection) -> Result<(), collection::Error> {
        for url in self.known() {
            self.change(collection, &url, |it| {
                if it.regather == Regather::No {
                    it.regather = Regather::Asked;
                }
            })?;
        }
        self.requested.notify_one();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use collection::{Options, Stamp};
    use net::clock;

    use super::*;

    /// A change by one task is not overwritten by another task that has read the note earlier.
    #[test]
    fn a_note_is_changed_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(dir.path(), Options::default(), stamp).unwrap();
        let (collection, repositories) = (&collection, &Repositories::default());
        let url = "http://a/oai";
        repositories.change(collection, url, |it| it.settings = 1).unwrap();
        let before = collection.version();
        repositories.change(collection, url, |it| it.settings = 1).unwrap();
        assert_eq!(collection.version(), before, "nothing has changed");
        let (doubt, doubts) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let () = doubts.recv().unwrap();
                repositories.doubt(collection).unwrap();
            });
            let finish = |it: &mut RepositoryNote| {
                assert!(repositories.changing.try_lock().is_err(), "nobody else changes it");
                doubt.send(()).unwrap();
                it.confirmed = Some(7);
            };
            repositories.change(collection, url, finish).unwrap();
        });
        let note = repositories.note(url);
        assert_eq!((note.confirmed, note.regather), (Some(7), Regather::Asked));
    }

    #[test]
    fn a_harvest_that_is_asked_for_twice_is_awaited_once() {
        let repositories = Repositories::default();
        let url = || vec!["http://a/oai".to_owned()];
        repositories.confirm(url());
        repositories.confirm(url());
        assert_eq!(repositories.due.load(Relaxed), 1);
        // The schedule takes the request; later requests are for another harvest.
        let seen = std::mem::take(&mut *lock(&repositories.requests)).confirm;
        assert_eq!(seen.len(), 1);
        repositories.confirm(url());
        assert_eq!(repositories.due.load(Relaxed), 2);
        repositories.ended(2);
        assert_eq!(repositories.due.load(Relaxed), 0);
    }
}
