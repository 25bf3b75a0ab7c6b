//! The store: objects on disk, which are there again after any stop.
//!
//! Objects wait in memory to be written by one thread, so that no answer waits for the disk. What a
//! power cut takes is what waited and the last five seconds; a killed process loses what waited.
//! A disk that is full or fails costs nothing but what it would have stored: nothing is written for
//! a minute, and then it is tried again.

mod index;
mod known;
mod list;
mod log;
mod look;
pub mod record;
mod source;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use bytes::Bytes;
use disk::{Disk, File};
use net::clock;
use tokio::task::{JoinHandle, spawn_blocking};
use xxhash_rust::xxh3::xxh3_64;

use crate::content::{Blocks, Content};
use crate::memory::Object;
use crate::policy::freshness::Rules;
use crate::policy::storing::Head;
use crate::transfer::Quota;
use index::{Place, UNIT};
use known::Known;
use log::Log;
use record::{BLOCK_BYTES, FRONT_BYTES, Front, Ids, Kind};
use source::Source;

/// Longest time between two waits for the disk.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// Time without writing after a failure.
const REST: Duration = Duration::from_secs(60);

/// Least time from a batch of objects to the next: a thread that is woken for each object costs more than what
/// it writes.
const COLLECTING: Duration = Duration::from_millis(10);

/// Bytes of objects that may wait to be written; further ones are not stored.
const WAITING_BYTES_MAX: u64 = 32 << 20;

/// Objects on disk. Clones share them.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

struct Shared {
    known: Arc<Mutex<Known>>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    state: Arc<State>,
    body_bytes_max: u64,
    quota: Arc<Quota>,
}

/// The file of a segment, if that is still there. It keeps no file open.
#[derive(Clone, Debug)]
pub struct Files {
    known: Arc<Mutex<Known>>,
    segment: u32,
}

impl Files {
    /// Returns the file; `None`: the segment has made room.
    pub(crate) fn file(&self) -> Option<Arc<File>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).file(self.segment)
    }
}

/// What the writer says of itself.
#[derive(Debug, Default)]
struct State {
    /// Bytes of objects that wait to be written.
    waiting: AtomicU64,
    /// Bytes of all segments.
    bytes: AtomicU64,
    problem: Mutex<Option<String>>,
}

enum Job {
    Put {
        url: String,
        object: Arc<Object>,
        /// The head of its record, without the checksums of blocks.
        head: Vec<u8>,
        variant: u32,
        done: Done,
    },
    Remove {
        url: String,
    },
    /// Tells when all that came before is written.
    Tell(mpsc::Sender<()>),
}

/// Called when a long body is on disk, with the object whose body is there; or is not, and is lost.
type Done = Box<dyn FnOnce(Option<Arc<Object>>) + Send>;

/// An object that was read, and where it was.
#[derive(Debug)]
pub struct Read {
    /// The object.
    pub object: Arc<Object>,
    place: Place,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("state", &self.0.state).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in a folder, or begins one there; it takes about `bytes_max` bytes. Blocks, and
    /// must be called on a runtime.
    ///
    /// # Errors
    ///
    /// The folder or a file in it cannot be read or written.
    pub fn open(disk: Disk, folder: &Path, bytes_max: u64) -> io::Result<Self> {
        let log = Log::open(disk, folder, bytes_max)?;
        let (known, state) = (log.shared(), Arc::<State>::default());
        let (body_bytes_max, quota) = (log.body_bytes_max(), log.quota());
        state.bytes.store(log.bytes(), Ordering::Relaxed);
        let (jobs, receiver) = mpsc::channel();
        let writer = Writer {
            known: Arc::clone(&known),
            log,
            state: Arc::clone(&state),
            rests_until: None,
            late: VecDeque::new(),
        };
        let writer = spawn_blocking(move || writer.run(&receiver));
        let (jobs, writer) = (Mutex::new(Some(jobs)), Mutex::new(Some(writer)));
        Ok(Self(Arc::new(Shared { known, jobs, writer, state, body_bytes_max, quota })))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, job: Job) {
        let jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = jobs.as_ref() {
            // It fails only when the writer has ended, and then nothing is written any more.
            let _ = jobs.send(job);
        }
    }

    /// Returns whether there may be something of a URL.
    pub fn may_have(&self, url: &str) -> bool {
        !self.known().used(hash_of(url)).is_empty()
    }

    /// Notes that what is stored of a URL is used, unless somebody else is at it.
    pub fn touch(&self, url: &str) {
        if let Ok(mut known) = self.0.known.try_lock() {
            known.used(hash_of(url));
        }
    }

    /// Reads the objects of a URL, of those to the same requests the newest. Damaged ones are gone.
    /// Blocks.
    pub fn read(&self, url: &str, rules: impl Fn(&str) -> Rules) -> Vec<Read> {
        let hash = hash_of(url);
        let places = self.known().used(hash);
        let mut found: Vec<(u64, Read)> = Vec::new();
        for (place, file) in places {
            match self.read_at(&file, place, &rules) {
                // Another URL may have the same hash.
                Ok((named, sequence, object)) if named == url => {
                    found.push((sequence, Read { object: Arc::new(object), place }));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(url, %error, "a stored object is damaged, and is not used");
                    self.known().index.take(hash, place);
                }
            }
        }
        found.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        let mut newest: Vec<Read> = Vec::new();
        for (_, it) in found {
            if newest.iter().all(|newer| !newer.object.is_alike(&it.object)) {
                newest.push(it);
            } else {
                self.known().index.take(hash, it.place);
            }
        }
        newest
    }

    /// Reads the object at a place. Returns it with its URL and sequence. Blocks.
    fn read_at(
        &self,
        file: &Arc<File>,
        place: Place,
        rules: impl FnOnce(&str) -> Rules,
    ) -> io::Result<(String, u64, Object)> {
        let damaged = || io::Error::other("its checksum is wrong");
        let at = u64::from(place.at) * UNIT;
        let mut front = [0; FRONT_BYTES];
        file.read_exact_at(&mut front, at)?;
        let front = Front::read(&front).ok_or_else(damaged)?;
        let begun = FRONT_BYTES as u64 + u64::from(front.head_bytes);
        let count = if front.has_blocks() { begun } else { front.record_bytes() };
        if u64::from(place.length) * UNIT < count {
            return Err(damaged());
        }
        let mut bytes = vec![0; usize::try_from(count).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, at)?;
        let whole = record::read(&Bytes::from(bytes), rules).ok_or_else(damaged)?;
        let body = if front.has_blocks() {
            let files = Files { known: Arc::clone(&self.0.known), segment: place.segment };
            let (at, length) = (at + begun, front.body_bytes);
            Content::Disk(Box::new(Blocks { files, at, length, sums: whole.sums.into() }))
        } else {
            Content::Memory(whole.body)
        };
        Ok((whole.url, front.sequence, Object::new(&whole.head, body)))
    }

    /// Returns whether an object that was read has not been removed since.
    pub fn still_has(&self, url: &str, read: &Read) -> bool {
        self.known().index.has(hash_of(url), read.place)
    }

    /// Stores an object with this head, soon; not if too much waits already. If its body is still that of a
    /// transfer, `done` gets an object whose body is on disk, or nothing.
    pub fn put(
        &self,
        url: &str,
        (object, head): (&Arc<Object>, &Head),
        done: impl FnOnce(Option<Arc<Object>>) + Send + 'static,
    ) {
        let bytes = object.body.weight() as u64;
        if self.0.state.waiting.load(Ordering::Relaxed) + bytes <= WAITING_BYTES_MAX {
            self.0.state.waiting.fetch_add(bytes, Ordering::Relaxed);
            self.known().waits(hash_of(url));
            let (variant, head) = (head.vary.hash(), record::write_head(url, head, &[]));
            let (url, object) = (url.to_owned(), Arc::clone(object));
            self.send(Job::Put { url, object, head, variant, done: Box::new(done) });
        } else {
            // What it would replace is old.
            self.remove(url);
            done(None);
        }
    }

    /// Returns the length of the longest body that is stored, in bytes.
    pub fn body_bytes_max(&self) -> u64 {
        self.0.body_bytes_max
    }

    /// Returns the room that bodies on their way have beside the objects; as they take it, objects make room.
    pub fn quota(&self) -> Arc<Quota> {
        Arc::clone(&self.0.quota)
    }

    /// Removes all objects of a URL: nobody finds them from now on. Returns how many there were.
    pub fn remove(&self, url: &str) -> usize {
        let hash = hash_of(url);
        let mut known = self.known();
        // Most URLs have nothing here, and need no note that it is gone.
        if !known.has(hash) {
            return 0;
        }
        let count = known.remove(hash);
        drop(known);
        self.send(Job::Remove { url: url.to_owned() });
        count
    }

    /// Returns how many bytes of objects wait to be written.
    pub fn waiting(&self) -> u64 {
        self.0.state.waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of objects, and the bytes that they take.
    pub fn figures(&self) -> (u64, u64) {
        (self.known().index.len() as u64, self.0.state.bytes.load(Ordering::Relaxed))
    }

    /// Returns what keeps objects from being stored; `None`: nothing.
    pub fn problem(&self) -> Option<String> {
        self.0.state.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what waits, makes it durable, and ends the writer.
    pub async fn close(&self) {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.await.is_err()
        {
            tracing::error!("the writer of stored objects has failed");
        }
    }
}

/// The thread that writes.
struct Writer {
    log: Log,
    known: Arc<Mutex<Known>>,
    state: Arc<State>,
    rests_until: Option<Instant>,
    /// Removals that could not be written.
    late: VecDeque<String>,
}

impl Writer {
    /// Writes until nobody can send any more.
    fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        let (mut synced, mut is_dirty) = (clock::monotonic(), false);
        loop {
            match jobs.recv_timeout(SYNC_EVERY) {
                Ok(job) => {
                    is_dirty = true;
                    let begun = clock::monotonic();
                    self.take(job);
                    while begun.elapsed() < COLLECTING {
                        match jobs.try_recv() {
                            Ok(job) => self.take(job),
                            Err(_) => rest(COLLECTING.saturating_sub(begun.elapsed())),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = clock::monotonic();
            // Bodies on their way have perhaps grown.
            if self.rests_until.is_none_or(|it| it <= now) {
                let has_rested = self.rests_until.take().is_some();
                let outcome = self.log.make_room(0);
                if has_rested || outcome.is_err() {
                    self.note(outcome);
                }
            }
            if is_dirty && SYNC_EVERY <= now.duration_since(synced) {
                (synced, is_dirty) = (now, false);
                let outcome = self.log.sync();
                self.note(outcome);
            }
            self.state.bytes.store(self.log.bytes(), Ordering::Relaxed);
        }
        self.rests_until = None;
        self.remove_late();
        let outcome = self.log.close();
        self.note(outcome);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, job: Job) {
        let rests = self.rests_until.is_some_and(|it| clock::monotonic() < it);
        match job {
            Job::Put { url, object, head, variant, done } => {
                let (mut written, mut is_written) = (None, false);
                if !rests {
                    self.remove_late();
                    let outcome = self.put(&url, &object, (head, variant)).map(|it| written = it);
                    is_written = outcome.is_ok();
                    self.note(outcome);
                }
                let hash = hash_of(&url);
                self.known().waits_no_more(hash);
                // What it would have replaced is old.
                if !is_written && self.known().index.has_any(hash) {
                    self.known().remove(hash);
                    self.late.push_back(url);
                }
                self.state.waiting.fetch_sub(object.body.weight() as u64, Ordering::Relaxed);
                if matches!(object.body, Content::Transfer(_)) {
                    done(written.map(Arc::new));
                }
            }
            // Who asked may have left.
            Job::Tell(written) => drop(written.send(())),
            Job::Remove { url } => {
                self.known().index.take_all(hash_of(&url));
                self.late.push_back(url);
                if !rests {
                    self.remove_late();
                }
            }
        }
    }

    /// Writes an object. Returns it with its body on disk, if that is long.
    fn put(
        &mut self,
        url: &str,
        object: &Object,
        (mut head, variant): (Vec<u8>, u32),
    ) -> io::Result<Option<Object>> {
        let body = match &object.body {
            Content::Memory(bytes) => Source::Bytes(bytes),
            // It is there already.
            Content::Disk(_) => return Ok(None),
            Content::Transfer(transfer) => Source::Transfer(transfer),
        };
        let (hash, length) = (hash_of(url), body.bytes());
        let (sum, sums) = match body {
            Source::Bytes(bytes) => (xxh3_64(bytes), Vec::new()),
            _ => (0, sums(&body)?),
        };
        record::add_sums(&mut head, &sums);
        // What moves for it is older than it, and must be so after a start, too: so room is made first.
        self.log.make_room((FRONT_BYTES + head.len()) as u64 + length)?;
        let ids = Ids { sequence: self.log.next(), hash, variant };
        let Some(begun) = record::begin(Kind::Object, ids, &head, (length, sum)) else {
            return Ok(None);
        };
        let place = self.log.append_object(&begun, &body, hash)?;
        let at = u64::from(place.at) * UNIT + begun.len() as u64;
        let files = Files { known: self.log.shared(), segment: place.segment };
        let body = Content::Disk(Box::new(Blocks { files, at, length, sums: sums.into() }));
        let is_long = !matches!(object.body, Content::Memory(_));
        Ok(is_long.then(|| object.with_body(body)))
    }

    /// Writes the removals that wait, in order.
    fn remove_late(&mut self) {
        while let Some(url) = self.late.front() {
            let hash = hash_of(url);
            let head = record::write_removal(url);
            let sequence = self.log.next();
            let ids = Ids { sequence, hash, variant: 0 };
            let record = record::write(Kind::Removal, ids, &head, &[]);
            let outcome = record.map_or(Ok(()), |it| self.log.append_removal(&it));
            let is_written = outcome.is_ok();
            self.note(outcome);
            if !is_written {
                return;
            }
            self.late.pop_front();
            self.known().gone(hash);
        }
    }

    fn note(&mut self, outcome: io::Result<()>) {
        let mut problem = self.state.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            // What succeeds meanwhile does not end the rest.
            Ok(()) if self.rests_until.is_some_and(|it| clock::monotonic() < it) => {}
            Ok(()) => *problem = None,
            Err(error) => {
                tracing::warn!(%error, "objects are not stored on disk; tried again in a minute");
                *problem = Some(error.to_string());
                self.rests_until = Some(clock::monotonic() + REST);
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this thread only writes, and has nothing to do meanwhile"
)]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

/// Returns the checksums of the blocks of a body.
fn sums(body: &Source<'_>) -> io::Result<Vec<u64>> {
    let (mut sums, mut at, mut block) = (Vec::new(), 0, vec![0; BLOCK_BYTES]);
    while at < body.bytes() {
        let left = usize::try_from(body.bytes() - at).unwrap_or(BLOCK_BYTES);
        let block = block.get_mut(..left.min(BLOCK_BYTES)).unwrap_or_default();
        body.read(at, block)?;
        sums.push(xxh3_64(block));
        at += block.len() as u64;
    }
    Ok(sums)
}

fn hash_of(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

#[cfg(test)]
mod power_cut;
#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, StatusCode};

    use super::*;
    use crate::policy::freshness::Times;
    use crate::policy::storing::{Ask, keep};

    pub(super) fn object(x: &str, body: &str) -> Arc<Object> {
        let value = |it: &str| HeaderValue::from_str(it).unwrap();
        let request = HeaderMap::from_iter([("x".parse().unwrap(), value(x))]);
        let lines = [("vary", "x"), ("cache-control", "max-age=9")];
        let answer = lines.map(|(name, it)| (name.parse().unwrap(), value(it)));
        let (answer, ask) =
            (HeaderMap::from_iter(answer), Ask { method: &Method::GET, headers: &request });
        let head = keep(ask, StatusCode::OK, &answer, Times::default(), &Rules::default()).unwrap();
        Arc::new(Object::new(&head, Content::Memory(Bytes::from(body.to_owned()))))
    }

    pub(super) fn put(store: &Store, url: &str, object: &Arc<Object>) {
        store.put(url, (object, &object.head()), |_| ());
    }

    fn bodies(store: &Store, url: &str) -> Vec<Bytes> {
        let read = store.read(url, |_| Rules::default());
        assert!(read.iter().all(|it| store.still_has(url, it)));
        let bytes = read.iter().map(|it| match &it.object.body {
            Content::Memory(bytes) => bytes.clone(),
            other => panic!("{other:?} is not in memory"),
        });
        bytes.collect()
    }

    #[tokio::test]
    async fn the_newest_object_to_such_requests_is_there_after_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Disk::Hasty, folder.path(), 1 << 30).unwrap();
        let store = open();
        put(&store, "u", &object("1", "one"));
        put(&store, "u", &object("2", "two"));
        put(&store, "u", &object("1", "three"));
        put(&store, "v", &object("1", "gone"));
        store.remove("v");
        store.close().await;
        for _ in 0..2 {
            let store = open();
            assert_eq!(bodies(&store, "u"), ["three", "two"]);
            assert!(bodies(&store, "v").is_empty() && !store.may_have("v"));
            store.close().await;
        }
        let store = open();
        assert_eq!((store.remove("u"), bodies(&store, "u").len()), (2, 0), "at once");
        store.close().await;
        assert!(!open().may_have("u"));
    }

    #[tokio::test]
    async fn what_is_replaced_is_older_after_a_start_even_if_its_successor_has_it_moved() {
        let filler = "x".repeat(10_000);
        let second = format!("two {filler}");
        // One of these counts leaves so little room that the second object has the first one's segment go.
        for count in 85..115 {
            let folder = tempfile::tempdir().unwrap();
            let open = || Store::open(Disk::Hasty, folder.path(), 1 << 20).unwrap();
            let store = open();
            put(&store, "u", &object("1", "one"));
            // It is used, and so moves.
            while !store.may_have("u") {
                tokio::task::yield_now().await;
            }
            for n in 0..count {
                put(&store, &n.to_string(), &object("1", &filler));
            }
            put(&store, "u", &object("1", &second));
            store.close().await;
            assert!(bodies(&open(), "u") == [second.as_str()], "after {count}");
        }
    }

    #[tokio::test]
    async fn what_is_stored_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let objects = folder.path().join("objects");
        let store = Store::open(Disk::Hasty, &objects, 1 << 30).unwrap();
        assert_eq!(std::fs::metadata(&objects).unwrap().permissions().mode() & 0o777, 0o700);
        store.close().await;
    }

    #[tokio::test]
    async fn a_damaged_body_is_never_used() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Disk::Hasty, folder.path(), 1 << 30).unwrap();
        put(&store, "u", &object("1", "the body"));
        store.close().await;
        let path = folder.path().join("young-00000001");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(8).position(|it| it == b"the body").unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let store = Store::open(Disk::Hasty, folder.path(), 1 << 30).unwrap();
        assert!(store.may_have("u") && bodies(&store, "u").is_empty());
        assert!(!store.may_have("u"));
    }

    #[tokio::test]
    async fn a_full_disk_costs_what_it_would_have_stored_alone() {
        let folder = tempfile::tempdir().unwrap();
        let faulty = disk::faulty::Faulty::new(folder.path(), 1);
        let store = Store::open(Disk::Faulty(Arc::clone(&faulty)), folder.path(), 1 << 30).unwrap();
        put(&store, "u", &object("1", "one"));
        while bodies(&store, "u").is_empty() {
            tokio::task::yield_now().await;
        }
        faulty.leave_free(Some(10));
        put(&store, "v", &object("1", "two"));
        while store.problem().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!((bodies(&store, "u").len(), bodies(&store, "v").len()), (1, 0));
        // What is removed is gone for all, even if that cannot be written yet.
        store.remove("u");
        assert!(bodies(&store, "u").is_empty());
        faulty.leave_free(None);
        store.close().await;
        let store = Store::open(Disk::Faulty(faulty), folder.path(), 1 << 30).unwrap();
        assert!(!store.may_have("u") && store.problem().is_none());
    }

    #[tokio::test]
    async fn a_long_body_is_read_in_blocks_and_cut_off_before_a_damaged_one() {
        use crate::policy::range::Part;
        use crate::transfer::{End, Transfer};
        use http_body_util::BodyExt as _;

        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Disk::Hasty, folder.path(), 1 << 30).unwrap();
        let whole: Vec<u8> = (0..3_000_000_u32).map(|it| u8::try_from(it % 251).unwrap()).collect();
        let quota = Arc::new(Quota::new(u64::MAX));
        let transfer = Transfer::new(folder.path().to_owned(), quota);
        for piece in whole.chunks(100_000) {
            transfer.append(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        transfer.end(End::Whole);
        let head = object("1", "").head();
        let (store, long) = (open(), Arc::new(Object::new(&head, Content::Transfer(transfer))));
        let (done, written) = tokio::sync::oneshot::channel();
        store.put("u", (&long, &head), move |it| drop(done.send(it)));
        let written = written.await.unwrap().unwrap();
        let read = async |object: &Object, start, end| {
            let body = object.body.part(Part { start, end });
            body.collect().await.map(|it| it.to_bytes())
        };
        assert_eq!(read(&written, 0, 3_000_000).await.unwrap(), whole);
        store.close().await;
        let store = open();
        let found = store.read("u", |_| Rules::default());
        let [Read { object, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!(read(object, 300_000, 900_001).await.unwrap(), whole[300_000..900_001]);
        let path = folder.path().join("young-00000001");
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let at = std::fs::metadata(&path).unwrap().len() - 1_500_000;
        std::os::unix::fs::FileExt::write_all_at(&file, b"?", at).unwrap();
        assert!(read(object, 0, 3_000_000).await.is_err());
        assert_eq!(read(object, 0, 1_000_000).await.unwrap(), whole[..1_000_000]);
        store.close().await;
    }
}
