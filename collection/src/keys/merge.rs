//! Merging of runs, on a thread of its own, so that no commit waits for it.
//!
//! Eight runs of one level are merged into one of the next, so a key is written once per level, and
//! a look-up reads few files. Once there are three runs, and the newer ones together have more
//! entries than the oldest, all runs are merged into one. So the index takes at most about twice
//! the space of its live entries.
//!
//! Source: O'Neil et al., "The log-structured merge-tree" (1996).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Outcome;
use super::layers::{Layer, Layers};
use super::run::{self, Cursor, Run, Writer};
use super::store::{CHUNK_ENTRIES, Runs, StoreCore};

/// Number of runs of one level that are merged into one run of the next level.
const MERGE_RUNS: usize = 8;
/// Minimum number of runs for a merge of all runs into one.
const RUNS_MIN: usize = 3;
/// Time between two checks of `goes_on` by a waiting thread.
const CHECK_PERIOD: Duration = Duration::from_millis(50);

/// The thread that merges.
#[derive(Debug)]
pub(super) struct Merger {
    control: Arc<MergeControl>,
    thread: Option<JoinHandle<()>>,
}

/// The channel between the merging thread and the store.
#[derive(Debug, Default)]
struct MergeControl {
    requests: Mutex<MergeRequests>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct MergeRequests {
    is_requested: bool,
    is_busy: bool,
    is_ended: bool,
    /// The error of the last merge.
    failed: Option<sled::Error>,
}

impl Merger {
    /// Starts the thread; it ends when the merger is dropped.
    pub(super) fn start(core: Arc<StoreCore>) -> Outcome<Self> {
        let control = Arc::new(MergeControl::default());
        let served = control.clone();
        let thread = thread::Builder::new().name("key runs".to_owned());
        let thread = thread.spawn(move || served.serve(&core))?;
        Ok(Self { control, thread: Some(thread) })
    }

    /// Requests that the thread merge runs if that is due.
    pub(super) fn request(&self) {
        self.control.requests().is_requested = true;
        self.control.changed.notify_all();
    }

    /// Waits until nothing is left to merge, or until `goes_on` returns false.
    pub(super) fn wait(&self, goes_on: &dyn Fn() -> bool) -> Outcome<()> {
        let mut requests = self.control.requests();
        while (requests.is_requested || requests.is_busy) && goes_on() {
            let waited = self.control.changed.wait_timeout(requests, CHECK_PERIOD);
            requests = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        requests.failed.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.control.requests().is_ended = true;
        self.control.changed.notify_all();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!(
                why = panic_message(&*panic),
                "the thread that merges key runs panicked"
            );
        }
    }
}

impl MergeControl {
    fn requests(&self) -> MutexGuard<'_, MergeRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges at each request, until the end.
    fn serve(&self, core: &StoreCore) {
        let mut requests = self.requests();
        while !requests.is_ended {
            if !requests.is_requested {
                requests = self.changed.wait(requests).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            (requests.is_requested, requests.is_busy) = (false, true);
            drop(requests);
            let goes_on = || !self.requests().is_ended;
            // sled panics on some damage.
            let outcome = catch_unwind(AssertUnwindSafe(|| core.merge(&goes_on)));
            let failed = match outcome {
                Ok(outcome) => outcome.err(),
                Err(panic) => Some(sled::Error::ReportableBug(panic_message(&*panic).to_owned())),
            };
            if let Some(error) = &failed {
                tracing::warn!(dir = %core.dir.display(), %error, "key runs not merged: tried again later");
            }
            requests = self.requests();
            (requests.is_busy, requests.failed) = (false, failed);
            self.changed.notify_all();
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().unwrap_or("it panicked")
}

/// Returns how many of the newest runs are worth merging, and the level of the merged run.
fn due(runs: &Runs) -> Option<(usize, u8)> {
    let (level, _) = runs.first()?;
    let (oldest_level, oldest) = runs.last()?;
    let newer: u64 = runs.iter().rev().skip(1).map(|(_, run)| run.entries).sum();
    if RUNS_MIN <= runs.len() && oldest.entries < newer {
        return Some((runs.len(), *oldest_level));
    }
    let count = runs.iter().take_while(|it| it.0 <= *level).count();
    (MERGE_RUNS <= count).then(|| (count, level.saturating_add(1)))
}

impl StoreCore {
    /// Merges runs while there are enough of them.
    pub(super) fn merge(&self, goes_on: &dyn Fn() -> bool) -> Outcome<()> {
        loop {
            let runs = self.runs();
            let Some((count, level)) = due(&runs) else { return Ok(()) };
            let inputs = &runs[..count];
            let is_all = count == runs.len();
            let number = self.allocate();
            let merged = self.merged(number, inputs, is_all, goes_on).inspect_err(|_error| {
                // The unfinished run is useless, and the disk may be full.
                let _ = self.disk.remove_file(&run::path(&self.dir, number));
            });
            let Some(merged) = merged? else { return Ok(()) };
            self.replace(inputs, (level, Arc::new(merged))).inspect_err(|_error| {
                // If the list of runs names it nevertheless, the next opening rebuilds the index.
                let _ = self.disk.remove_file(&run::path(&self.dir, number));
            })?;
            for (_, input) in inputs {
                input.remove(&self.disk)?;
            }
        }
    }

    /// Merges `inputs`, the newest first, into the run `number`; with `is_all` there are no older
    /// runs. Returns `None` if `goes_on` has stopped it.
    fn merged(
        &self,
        number: u64,
        inputs: &[(u8, Arc<Run>)],
        is_all: bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Outcome<Option<Run>> {
        let entries = inputs.iter().map(|(_, run)| run.entries).sum();
        let mut writer = Writer::create(&self.disk, &self.dir, number, entries)?;
        let mut layers = Layers::default();
        for (_, run) in inputs {
            layers.0.push(Layer::Run(Cursor::seek(run.clone(), &[])?));
        }
        let mut count = 0;
        while let Some(at) = layers.least() {
            count += 1;
            if count % CHUNK_ENTRIES == 0 && !goes_on() {
                writer.abandon()?;
                return Ok(None);
            }
            let layer = &layers.0[at];
            // If there are no older runs, a removal has no effect and is left out.
            if let (Some(key), value) = (layer.key(), layer.value())
                && (value.is_some() || !is_all)
            {
                writer.push(key, value)?;
            }
            layers.pass(at)?;
        }
        Ok(Some(writer.finish()?))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;

    use disk::Disk;

    use super::*;
    use crate::keys::layers::Table;
    use crate::keys::store::Store;

    fn key(n: u32) -> Vec<u8> {
        format!("o{n:08}").into_bytes()
    }

    fn write(store: &Store, numbers: std::ops::Range<u32>, value: &[u8]) {
        store.apply(numbers.map(|n| (key(n), Some(value.to_vec()))).collect(), None, 0);
    }

    fn remove(store: &Store, numbers: std::ops::Range<u32>) {
        store.apply(numbers.map(|n| (key(n), None)).collect(), None, 0);
    }

    fn entries(store: &Store) -> Vec<u64> {
        store.core.runs().iter().map(|(_, run)| run.entries).collect()
    }

    fn files(dir: &Path) -> usize {
        let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        names.filter(|it| it.to_str().and_then(run::number).is_some()).count()
    }

    #[test]
    fn runs_stay_few_and_small_and_a_scan_is_complete_during_merges() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Disk::System, dir.path(), 1).unwrap();
        write(&store, 0..5000, b"old");
        let mut scan = store.scan(b"o", b"o");
        let mut seen = 0;
        for round in 0..80 {
            write(&store, round * 10..round * 10 + 5, b"new");
            store.maintain(&|| true).unwrap();
            store.merger.wait(&|| true).unwrap();
            assert!(entries(&store).len() <= 2 * MERGE_RUNS);
            seen += scan.by_ref().take(50).filter(Result::is_ok).count();
        }
        seen += scan.filter(Result::is_ok).count();
        assert_eq!(seen, 5000);
        assert_eq!(files(dir.path()), entries(&store).len());
        for _ in 0..20 {
            write(&store, 0..5000, b"newer");
            store.maintain(&|| true).unwrap();
            store.merger.wait(&|| true).unwrap();
            assert!(entries(&store).iter().sum::<u64>() <= 3 * 5000, "{:?}", entries(&store));
        }
    }

    #[test]
    fn removals_go_with_the_oldest_run() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Disk::System, dir.path(), 1).unwrap();
        write(&store, 0..7000, b"old");
        store.flush().unwrap();
        remove(&store, 0..6999);
        store.flush().unwrap();
        store.apply(Table::from([(b"o1".to_vec(), None)]), None, 0);
        store.flush().unwrap();
        store.merger.wait(&|| true).unwrap();
        assert_eq!(store.scan(b"o", b"o").count(), 1);
        assert_eq!(due(&store.core.runs()), None, "7,000 newer than 7,000");
        remove(&store, 0..1);
        store.maintain(&|| true).unwrap();
        store.merger.wait(&|| true).unwrap();
        assert_eq!(entries(&store), [1]);
        drop(store);
        assert_eq!(Store::open(&Disk::System, dir.path(), 1).unwrap().scan(b"o", b"o").count(), 1);
    }

    #[test]
    fn a_stopped_merge_and_a_failed_one_leave_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Disk::System, dir.path(), 1).unwrap();
        for round in 0..7 {
            write(&store, round * 1000..round * 1000 + 1000, b"old");
            store.core.flush().unwrap();
        }
        let left = Cell::new(1);
        store.core.merge(&|| left.replace(left.get() - 1) > 0).unwrap();
        assert_eq!((entries(&store).len(), files(dir.path())), (7, 7), "it was stopped");
        // A directory has the name of the next file.
        let next = store.core.allocate() + 1;
        fs::create_dir(run::path(dir.path(), next)).unwrap();
        store.merger.request();
        store.merger.wait(&|| true).unwrap_err();
        assert_eq!((entries(&store).len(), store.scan(b"o", b"o").count()), (7, 7000));
        store.merger.request();
        store.merger.wait(&|| true).unwrap();
        assert_eq!((entries(&store), store.scan(b"o", b"o").count()), (vec![7000], 7000));
    }
}
