//! The store of the key index: a table in memory, sorted runs on disk, other keys in sled.
//!
//! Writes go to the table. Once it is full (or the log that a restart would have to replay is
//! long), it is *spilled*. Then the keys that are as many as objects are written to a new run, and
//! the few others to sled in one batch, together with the list of runs and the watermark. Up to
//! that watermark the store is durable; later commits are replayed from the log. Runs are merged in
//! the background (see [`merge`](super::merge)).
//!
//! Source: docs/collection.md, "The key index"; O'Neil et al., "The log-structured
//! merge-tree" (1996).
//!
//! # Differences from what sled offers
//!
//! With a key for every object, sled 0.34 took 2.5 kB of memory and 3 kB of disk for each key, and
//! most of the time of a commit. Its `flush` does not sync the file (after a power cut, batches are
//! missing), so we sync it; sled's own flush timer is off.

mod scan;

use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use disk::{Disk, File};
use sled::{Batch, Db};

use super::layers::Table;
use super::merge::Merger;
use super::run::{self, Run, Writer};
use super::{Outcome, Watermark};
use crate::member::{get, put};
use scan::Scan;

/// Memory of sled's cache, in bytes.
const SLED_CACHE_BYTES: u64 = 4 << 20;
/// A spill is due when a replay of the log would read this many plain bytes.
const REPLAY_BYTES_MAX: u64 = 256 << 20;
/// Largest size of a table that cannot be spilled, as a multiple of its limit.
const OVERFULL: usize = 4;
/// Memory of a table entry beyond its key and value, in bytes.
const ENTRY_BYTES: usize = 96;
/// Number of runs at which writers wait until runs have been merged.
const RUNS_MAX: usize = 48;
/// Number of entries that a scan reads at once, and a merge between two checks of `goes_on`.
pub(super) const CHUNK_ENTRIES: usize = 1024;

/// Maximum number of further attempts to open sled while its lock is not released yet.
const LOCK_TRIES: u32 = 2_000;
/// Pause between two of these attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Keys that begin with at most this byte are as many as objects, and are stored in runs. The
/// others are few, and are stored in sled.
const MANY_MAX: u8 = b'o';
const WATERMARK: &[u8] = b"w";
/// The key in sled under which the list of runs is stored.
const RUNS: &[u8] = b"x";

pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// Runs with their levels.
pub(super) type Runs = Vec<(u8, Arc<Run>)>;

/// The contents of a store, as readers see them.
#[derive(Debug, Default)]
struct StoreState {
    table: Table,
    /// Approximate size of `table`, in bytes.
    table_bytes: usize,
    /// Plain bytes of the log that a start would have to replay.
    replay_bytes: u64,
    /// The table that is being spilled.
    frozen: Arc<Table>,
    /// Approximate size of `frozen`, in bytes.
    frozen_bytes: usize,
    /// The newest first.
    runs: Arc<Runs>,
    watermark: Option<Watermark>,
}

/// Keys and values of one directory.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) core: Arc<StoreCore>,
    pub(super) merger: Merger,
    table_bytes_max: usize,
}

/// The state of a store, shared with the merging thread.
#[derive(Debug)]
pub(super) struct StoreCore {
    pub(super) disk: Disk,
    pub(super) dir: PathBuf,
    /// The directory and sled's file. They stay open, so that a sync needs no file descriptor.
    files: [File; 2],
    db: Db,
    state: Arc<RwLock<StoreState>>,
    /// The watermark up to which everything is durable. Locked while the list of runs changes.
    durable: Mutex<Option<Watermark>>,
    next: AtomicU64,
    /// Set after a failed sync of sled's file: later syncs do not write those bytes, so the file
    /// may have gaps.
    holed: AtomicBool,
}

impl Store {
    /// Opens the store in `dir`, in the state of its last spill.
    pub(super) fn open(disk: &Disk, dir: &Path, table_bytes_max: usize) -> Outcome<Self> {
        let db = open_sled(dir)?;
        let watermark = db.get(WATERMARK)?.and_then(|it| Watermark::decode(&it));
        let mut runs = Vec::new();
        if let Some(list) = db.get(RUNS)? {
            let list = decode_runs(&list).ok_or_else(|| damaged("the list of runs"))?;
            for (level, number) in list {
                runs.push((level, Arc::new(Run::open(disk, dir, number)?)));
            }
        }
        let known = |number| runs.iter().any(|(_, run)| run.number == number);
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(run::number);
            if number.is_some_and(|it| !known(it)) {
                disk.remove_file(&entry.path())?;
            }
        }
        let next = runs.iter().map(|(_, run)| run.number + 1).max().unwrap_or(0);
        let state = StoreState { runs: Arc::new(runs), watermark, ..StoreState::default() };
        let core = Arc::new(StoreCore {
            disk: disk.clone(),
            dir: dir.to_owned(),
            files: [disk.open_to_read(dir)?, disk.open_to_read(&dir.join("db"))?],
            db,
            state: Arc::new(RwLock::new(state)),
            durable: Mutex::new(watermark),
            next: AtomicU64::new(next),
            holed: AtomicBool::new(false),
        });
        let merger = Merger::start(core.clone())?;
        Ok(Self { core, merger, table_bytes_max })
    }

    /// Returns the approximate number of bytes still to be written to the disk.
    pub(super) fn unwritten_bytes(&self) -> u64 {
        let state = self.core.state();
        (state.table_bytes + state.frozen_bytes) as u64
    }

    pub(super) fn watermark(&self) -> Option<Watermark> {
        self.core.state().watermark
    }

    pub(super) fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let runs = {
            let state = self.core.state();
            if let Some(value) = state.table.get(key).or_else(|| state.frozen.get(key)) {
                return Ok(value.clone());
            }
            if is_many(key) { state.runs.clone() } else { Arc::default() }
        };
        if !is_many(key) {
            return Ok(self.core.db.get(key)?.map(|it| it.to_vec()));
        }
        for (_, run) in runs.iter() {
            if let Some(value) = run.get(key)? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// Returns the entries whose keys start with `prefix`, from the key `from` on, in order; for
    /// kinds of keys that are many. Later writes may or may not be among them.
    pub(super) fn scan(&self, prefix: &[u8], from: &[u8]) -> Scan {
        Scan {
            state: self.core.state.clone(),
            prefix: prefix.to_vec(),
            from: Some(from.max(prefix).to_vec()),
            chunk: Vec::new().into_iter(),
        }
    }

    /// Returns the entries whose keys start with `prefix`, in order; for kinds of keys that are
    /// few.
    pub(super) fn few(&self, prefix: &[u8]) -> Outcome<Vec<Entry>> {
        // The tables come first: an entry that is spilled meanwhile is read twice, not missed.
        let mut found = Table::new();
        {
            let state = self.core.state();
            for table in [&*state.frozen, &state.table] {
                let newer = table.range(prefix.to_vec()..);
                let newer = newer.take_while(|(key, _)| key.starts_with(prefix));
                let newer = newer.filter(|(key, _)| !is_many(key));
                found.extend(newer.map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        for item in self.core.db.scan_prefix(prefix) {
            let (key, value) = item?;
            if key != WATERMARK && key != RUNS {
                found.entry(key.to_vec()).or_insert_with(|| Some(value.to_vec()));
            }
        }
        Ok(found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
    }

    /// Writes all entries at once. `watermark` is the new version of the index, if it changes;
    /// `replay_bytes` is the size of the part of the log that the entries come from.
    pub(super) fn apply(&self, entries: Table, watermark: Option<Watermark>, replay_bytes: u64) {
        let mut state = self.core.state_mut();
        for (key, value) in entries {
            state.table_bytes += entry_bytes(&key, value.as_ref());
            state.table.insert(key, value);
        }
        state.replay_bytes += replay_bytes;
        state.watermark = watermark.or(state.watermark);
    }

    /// Spills the table if that is due, and starts a merge. If there are far too many runs, waits
    /// for the merge until `goes_on` returns false. A failed spill is tried again at the next call,
    /// and is an error only once the table has grown to four times its limit. A failed merge is an
    /// error only while there are too many runs.
    pub(super) fn maintain(&self, goes_on: &dyn Fn() -> bool) -> Outcome<()> {
        let (bytes, replay_bytes) = {
            let state = self.core.state();
            (state.table_bytes, state.replay_bytes)
        };
        if bytes < self.table_bytes_max && replay_bytes < REPLAY_BYTES_MAX {
            return Ok(());
        }
        match self.flush() {
            Err(error) if bytes < self.table_bytes_max.saturating_mul(OVERFULL) => {
                tracing::warn!(dir = %self.core.dir.display(), %error, "keys not written: tried again later");
            }
            outcome => outcome?,
        }
        if RUNS_MAX <= self.core.runs().len() {
            self.merger.wait(goes_on)?;
        }
        Ok(())
    }

    pub(super) fn flush(&self) -> Outcome<()> {
        self.core.flush()?;
        self.merger.request();
        Ok(())
    }
}

impl StoreCore {
    fn state(&self) -> RwLockReadGuard<'_, StoreState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, StoreState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the runs, the newest first, each with its level.
    pub(super) fn runs(&self) -> Arc<Runs> {
        self.state().runs.clone()
    }

    fn durable(&self) -> MutexGuard<'_, Option<Watermark>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn allocate(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn flush(&self) -> Outcome<()> {
        let mut durable = self.durable();
        let (frozen, watermark, bytes, replay_bytes) = {
            let mut state = self.state_mut();
            if state.table.is_empty() && state.watermark == *durable {
                return Ok(());
            }
            state.frozen = Arc::new(mem::take(&mut state.table));
            let bytes = mem::take(&mut state.table_bytes);
            state.frozen_bytes = bytes;
            let replay_bytes = mem::take(&mut state.replay_bytes);
            (state.frozen.clone(), state.watermark, bytes, replay_bytes)
        };
        let number = self.allocate();
        let spilled = self.spill(number, &frozen, watermark);
        drop(frozen);
        let mut state = self.state_mut();
        state.frozen_bytes = 0;
        match spilled {
            Ok(run) => {
                state.frozen = Arc::default();
                let newest = run.map(|it| (0, Arc::new(it)));
                state.runs =
                    Arc::new(newest.into_iter().chain(state.runs.iter().cloned()).collect());
                *durable = watermark;
                Ok(())
            }
            Err(error) => {
                // The unfinished run is useless; the rest is unchanged.
                let _ = self.disk.remove_file(&run::path(&self.dir, number));
                let frozen = mem::take(&mut state.frozen);
                let frozen = Arc::try_unwrap(frozen).unwrap_or_else(|shared| (*shared).clone());
                for (key, value) in frozen {
                    state.table.entry(key).or_insert(value);
                }
                state.table_bytes += bytes;
                state.replay_bytes += replay_bytes;
                Err(error)
            }
        }
    }

    /// Makes a table durable; returns the new run, if the table has keys of kinds that are many.
    fn spill(
        &self,
        number: u64,
        table: &Table,
        watermark: Option<Watermark>,
    ) -> Outcome<Option<Run>> {
        let mut batch = Batch::default();
        let many = table.keys().filter(|key| is_many(key)).count() as u64;
        let mut writer = match many {
            0 => None,
            _ => Some(Writer::create(&self.disk, &self.dir, number, many)?),
        };
        for (key, value) in table {
            match (&mut writer, value) {
                (Some(writer), value) if is_many(key) => writer.push(key, value.as_deref())?,
                (_, Some(value)) => batch.insert(key.as_slice(), value.as_slice()),
                (_, None) => batch.remove(key.as_slice()),
            }
        }
        let run = writer.map(Writer::finish).transpose()?;
        if let Some(run) = &run {
            let known = self.runs();
            let list =
                [(0, run.number)].into_iter().chain(known.iter().map(|it| (it.0, it.1.number)));
            batch.insert(RUNS, encode_runs(list));
        }
        if let Some(watermark) = watermark {
            batch.insert(WATERMARK, watermark.encode());
        }
        self.commit(batch)?;
        Ok(run)
    }

    /// Writes a batch to sled, and makes it durable with the runs that it names.
    fn commit(&self, batch: Batch) -> Outcome<()> {
        let [dir, db] = &self.files;
        if self.is_incomplete() {
            return Err(io::Error::other("an earlier sync of this file failed").into());
        }
        dir.sync_all()?;
        self.db.apply_batch(batch)?;
        self.db.flush()?;
        let synced = db.sync_all();
        self.holed.fetch_or(synced.is_err(), Ordering::Relaxed);
        Ok(synced?)
    }

    /// Returns whether the files may lack entries although everything was written.
    pub(super) fn is_incomplete(&self) -> bool {
        self.holed.load(Ordering::Relaxed)
    }

    /// Replaces `inputs` by the run that they were merged into.
    pub(super) fn replace(&self, inputs: &[(u8, Arc<Run>)], merged: (u8, Arc<Run>)) -> Outcome<()> {
        let _alone = self.durable();
        let is_input = |number| inputs.iter().any(|(_, run)| run.number == number);
        let mut merged = Some(merged);
        let mut runs = Vec::new();
        // Runs that were spilled meanwhile come before the inputs, which are adjacent.
        for (level, run) in self.runs().iter() {
            if !is_input(run.number) {
                runs.push((*level, run.clone()));
            } else if let Some(merged) = merged.take() {
                runs.push(merged);
            }
        }
        let mut batch = Batch::default();
        batch.insert(RUNS, encode_runs(runs.iter().map(|it| (it.0, it.1.number))));
        self.commit(batch)?;
        self.state_mut().runs = Arc::new(runs);
        Ok(())
    }
}

/// Opens sled. Its threads release its lock a moment after its last handle is gone. No other
/// process can have that lock, since we have the collection's.
fn open_sled(dir: &Path) -> Outcome<Db> {
    let mut tries = 0;
    loop {
        let config = sled::Config::new().path(dir).cache_capacity(SLED_CACHE_BYTES);
        match config.flush_every_ms(None).open() {
            Err(sled::Error::Io(error))
                if tries < LOCK_TRIES && error.to_string().contains("acquire lock") =>
            {
                tries += 1;
                thread::park_timeout(LOCK_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn is_many(key: &[u8]) -> bool {
    key.first().is_some_and(|it| *it <= MANY_MAX)
}

fn entry_bytes(key: &[u8], value: Option<&Vec<u8>>) -> usize {
    ENTRY_BYTES + key.len() + value.map_or(0, Vec::len)
}

fn encode_runs(runs: impl Iterator<Item = (u8, u64)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (level, number) in runs {
        out.push(level);
        put(&mut out, number);
    }
    out
}

fn decode_runs(mut bytes: &[u8]) -> Option<Vec<(u8, u64)>> {
    let mut runs = Vec::new();
    while let Some((level, rest)) = bytes.split_first() {
        bytes = rest;
        runs.push((*level, get(&mut bytes)?));
    }
    Some(runs)
}

fn damaged(what: &str) -> sled::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is damaged")).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        /// Writes several keys at once; each value has the given length.
        Write(Vec<(bool, u8, Option<u16>)>),
        Flush,
        Maintain,
        /// Reopens the store as after a crash: entries that were not spilled are gone.
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        let write = (any::<bool>(), 0..40_u8, prop::option::of(0..300_u16));
        prop_oneof![
            6 => prop::collection::vec(write, 1..20).prop_map(Step::Write),
            3 => Just(Step::Flush),
            3 => Just(Step::Maintain),
            1 => Just(Step::Reopen),
        ]
    }

    fn key(is_many: bool, number: u8) -> Vec<u8> {
        vec![if is_many { b'o' } else { b's' }, b'-', number / 10, number % 10]
    }

    fn listed(store: &Store) -> (Vec<Entry>, Vec<Entry>) {
        let many = store.scan(&[], &[]).collect::<Outcome<_>>().unwrap();
        (many, store.few(&[]).unwrap())
    }

    fn check(store: &Store, model: &Model) {
        let (many, few) = model.clone().into_iter().partition(|(key, _)| is_many(key));
        assert_eq!(listed(store), (many, few));
        for number in 0..40 {
            for key in [key(true, number), key(false, number)] {
                assert_eq!(store.get(&key).unwrap().as_ref(), model.get(&key));
            }
        }
        let part: Vec<Entry> = store.scan(b"o-\x01", b"o-\x01\x05").map(Result::unwrap).collect();
        let end = vec![b'o', b'-', 2];
        let expected = model.range(b"o-\x01\x05".to_vec()..end);
        assert!(part.iter().map(|(key, value)| (key, value)).eq(expected));
    }

    fn watermark(commit: u64) -> Watermark {
        Watermark { commit, ..Watermark::default() }
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map_that_keeps_spilled_entries(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let open = || Store::open(&Disk::System, dir.path(), 2048).unwrap();
            let mut store = open();
            let (mut model, mut commit) = (Model::new(), 0);
            let mut spilled = (Model::new(), None);
            for step in steps {
                match step {
                    Step::Write(writes) => {
                        commit += 1;
                        let writes = writes.into_iter().map(|(is_many, number, length)| {
                            let value = length.map(|it| vec![number; usize::from(it)]);
                            (key(is_many, number), value)
                        });
                        let writes: Table = writes.collect();
                        for (key, value) in &writes {
                            match value {
                                Some(value) => model.insert(key.clone(), value.clone()),
                                None => model.remove(key),
                            };
                        }
                        store.apply(writes, Some(watermark(commit)), 1);
                    }
                    Step::Flush => {
                        store.flush().unwrap();
                        spilled = (model.clone(), store.watermark());
                    }
                    Step::Maintain => store.maintain(&|| true).unwrap(),
                    Step::Reopen => {
                        drop(store);
                        store = open();
                        if store.watermark() != spilled.1 {
                            // `maintain` may have spilled after the last flush.
                            prop_assert!(spilled.1 < store.watermark());
                        }
                        let kept = listed(&store);
                        model = kept.0.into_iter().chain(kept.1).collect();
                        if store.watermark() == spilled.1 {
                            prop_assert_eq!(&model, &spilled.0);
                        }
                        spilled = (model.clone(), store.watermark());
                    }
                }
                check(&store, &model);
            }
        }
    }

    fn write(store: &Store, numbers: std::ops::Range<u32>, value: &[u8]) {
        let entry = |n: u32| (format!("o{n:08}").into_bytes(), Some(value.to_vec()));
        store.apply(numbers.map(entry).collect(), Some(watermark(1)), 0);
    }

    #[test]
    fn entries_that_cannot_be_spilled_stay() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Disk::System, dir.path(), 1000).unwrap();
        write(&store, 0..10, b"one");
        // Directories have the names of the next files.
        (0..2).for_each(|number| fs::create_dir(run::path(dir.path(), number)).unwrap());
        store.maintain(&|| true).unwrap();
        assert_eq!(store.core.runs().len(), 0);
        write(&store, 5..15, b"two");
        write(&store, 5..45, b"two");
        store.maintain(&|| true).unwrap_err();
        assert_eq!(store.get(b"o00000004").unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(store.get(b"o00000005").unwrap().as_deref(), Some(&b"two"[..]));
        (0..2).for_each(|number| fs::remove_dir(run::path(dir.path(), number)).unwrap());
        store.maintain(&|| true).unwrap();
        drop(store);
        let store = Store::open(&Disk::System, dir.path(), 1).unwrap();
        assert_eq!(store.scan(b"o", b"o").count(), 45);
        assert_eq!(store.watermark(), Some(watermark(1)));
    }
}
