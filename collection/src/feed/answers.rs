//! The cache of answers: checked bytes in memory, sent by the kernel.
//!
//! A commit wakes all followers of a source, and each requests the same bytes. The first request
//! reads and checks them; the others cost no more than a file at a file server.
//!
//! Source: TR §4 (the gatherer caches its most common answer).

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use net::sendfile::{Memory, MemoryFile};
use tokio::sync::Mutex as AsyncMutex;

use crate::change::Version;
use crate::log::served;
use crate::log::{SegmentRange, View};

/// Largest answer that is cached, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Smallest answer that is cached, in bytes: a smaller file in memory costs more than it saves.
const ANSWER_BYTES_MIN: u64 = 16 << 10;
/// Largest total size of all cached answers, in bytes.
const BYTES_MAX: u64 = 16 << 20;
/// Largest total size of all cached answers and of those that slow readers still use, in bytes.
/// Beyond it an answer is read from the disk for each reader, piece by piece.
const LIVE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of cached answers.
const ANSWERS_MAX: usize = 64;

/// The state of a log: its version, and the commit up to which it has been compacted.
type LogState = (Version, u64);

/// Cache of the answers that end at the present state of the log.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache {
    cached: Mutex<CachedAnswers>,
    /// The memory of answers in the cache and of those that slow readers still use.
    memory: Memory,
    /// Locked while an answer is made, since other requests may need the same one.
    turn: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct CachedAnswers {
    state: LogState,
    /// Answers with the serial before their changes; the one used last is at the end.
    files: Vec<(u64, MemoryFile)>,
}

impl AnswerCache {
    /// Waits until no other answer is being made. The caller then looks in the cache again.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Returns the cached answer with the changes after `since`; `None` if there is none.
    pub(crate) fn find(&self, view: &View, since: u64) -> Option<MemoryFile> {
        let mut cached = self.cached();
        if cached.state != state(view) {
            return None;
        }
        let at = cached.files.iter().position(|(known, _)| *known == since)?;
        let found = cached.files.remove(at);
        let file = found.1.clone();
        cached.files.push(found);
        Some(file)
    }

    /// Returns the parts and the tail as a file in memory, and caches it; `None` if their size is
    /// outside of the limits, or no file can be made. Blocks.
    pub(crate) fn make(
        &self,
        view: &View,
        since: u64,
        parts: &[SegmentRange],
        tail: &Bytes,
    ) -> io::Result<Option<MemoryFile>> {
        if let Some(file) = self.find(view, since) {
            return Ok(Some(file));
        }
        self.leave_behind(view);
        let file = in_memory(&self.memory, parts, tail)?;
        if let Some(file) = &file {
            drop(self.keep(view, since, file.clone()));
        }
        Ok(file)
    }

    /// Caches an answer if it ends at the present state of the log. Returns the answers that are
    /// not cached any more, or this one. Dropping them takes time, so the caller does it, without
    /// the lock.
    fn keep(&self, view: &View, since: u64, file: MemoryFile) -> Vec<(u64, MemoryFile)> {
        let mut cached = self.cached();
        if cached.state != state(view) {
            return vec![(since, file)];
        }
        let files = &mut cached.files;
        let mut gone = Vec::new();
        files.push((since, file));
        let mut bytes: u64 = files.iter().map(|(_, file)| file.len()).sum();
        while BYTES_MAX < bytes || ANSWERS_MAX < files.len() {
            let first = files.remove(0);
            bytes -= first.1.len();
            gone.push(first);
        }
        gone
    }

    pub(crate) fn clear(&self) {
        // An answer that is being made now will find another state in the cache, and is not cached.
        let all = std::mem::take(&mut *self.cached());
        drop(all);
    }

    /// Drops answers that end at an older state of the log, since nobody requests them any more.
    fn leave_behind(&self, view: &View) {
        let mut cached = self.cached();
        if cached.state != state(view) {
            let fresh = CachedAnswers { state: state(view), files: Vec::new() };
            let stale = std::mem::replace(&mut *cached, fresh);
            drop(cached);
            drop(stale);
        }
    }

    fn cached(&self) -> MutexGuard<'_, CachedAnswers> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the parts and the tail as a file in memory; `None` if their size is outside of the limits, or no file can
/// be made. Blocks.
pub(super) fn in_memory(
    memory: &Memory,
    parts: &[SegmentRange],
    tail: &Bytes,
) -> io::Result<Option<MemoryFile>> {
    let len = served::bytes_of(parts) + tail.len() as u64;
    if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&len)
        || LIVE_BYTES_MAX < memory.bytes() + len
    {
        return Ok(None);
    }
    let mut misread = false;
    let mut pieces = served::pieces(parts, tail, 0, len);
    match MemoryFile::of(memory, || pieces().inspect_err(|_error| misread = true)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if misread => Err(error),
        // No file descriptor is free, or the system lacks the call: the answer is sent in another way.
        Err(_) => Ok(None),
    }
}

fn state(view: &View) -> LogState {
    (view.version, view.compacted)
}

#[cfg(test)]
mod tests {
    use http::{Request, header};
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Stamp};
    use crate::collection::Collection;
    use crate::feed::{FeedOptions, FeedServer};
    use crate::options::Options;

    fn filled(dir: &std::path::Path) -> Collection {
        let (collection, _) = Collection::open(dir, Options::default(), Stamp(1)).unwrap();
        for n in 0..100_u64 {
            let mut record = Record::new("FILE", format!("http://h/{n}"));
            record.push(GATHERER_ID, "g");
            let noise = (0..2500_u64).map(|it| (it * n + it).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            record.push("Noise", noise.flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
            let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
            collection.commit(batch, Stamp(2)).unwrap();
        }
        collection
    }

    fn ask(
        cache: &AnswerCache,
        collection: &Collection,
        since: u64,
    ) -> io::Result<Option<MemoryFile>> {
        let view = collection.inner.log.view();
        if let Some(found) = cache.find(&view, since) {
            return Ok(Some(found));
        }
        cache.make(&view, since, &view.parts(since), &Bytes::from_static(b"end"))
    }

    #[test]
    fn repeated_answers_are_cached_within_the_limits() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let view = || collection.inner.log.view();
        let cache = AnswerCache::default();
        assert!(ask(&cache, &collection, 100).unwrap().is_none(), "too small");
        let first = ask(&cache, &collection, 80).unwrap().unwrap();
        let again = ask(&cache, &collection, 80).unwrap().unwrap();
        assert!(first.is_same(&again));
        for since in 0..97 {
            ask(&cache, &collection, since).unwrap();
        }
        let cached = std::mem::take(&mut cache.cached().files);
        let bytes: u64 = cached.iter().map(|(_, file)| file.len()).sum();
        assert!(bytes <= BYTES_MAX && cached.len() <= ANSWERS_MAX, "{bytes} bytes");
        ask(&cache, &collection, 80).unwrap();
        collection.compact(Stamp(3)).unwrap();
        assert!(cache.find(&view(), 80).is_none(), "answers from before a compaction are dropped");
    }

    #[tokio::test]
    async fn an_answer_for_many_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let epoch = collection.version().epoch;
        let server = FeedServer::new(collection, FeedOptions::default());
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let server = server.clone();
            let request = Request::get(format!("/feed?since=10&epoch={epoch}")).body(()).unwrap();
            asked.spawn(async move { server.respond(request).await });
        }
        // All answers are kept until the last one has come.
        let answers = asked.join_all().await;
        let len = answers[0].headers()[header::CONTENT_LENGTH].to_str().unwrap();
        assert_eq!(server.shared.answers.memory.bytes(), len.parse::<u64>().unwrap());
        assert_eq!(answers.len(), 50);
    }

    #[test]
    fn the_memory_of_slow_readers_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let cache = AnswerCache::default();
        let mut held = Vec::new();
        while let Some(file) = ask(&cache, &collection, held.len() as u64 % 90).unwrap() {
            // No other request finds the answer.
            cache.clear();
            held.push(file);
        }
        assert!(LIVE_BYTES_MAX - ANSWER_BYTES_MAX <= cache.memory.bytes());
        assert!(cache.memory.bytes() <= LIVE_BYTES_MAX);
        drop(held);
        assert_eq!(cache.memory.bytes(), 0);
        assert!(ask(&cache, &collection, 0).unwrap().is_some());
    }

    #[test]
    fn damaged_answers_are_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let file = dir.path().join("segment-00000001.gz");
        let mut bytes = std::fs::read(&file).unwrap();
        let end = bytes.len() - 100;
        bytes[end] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let cache = AnswerCache::default();
        ask(&cache, &collection, 50).unwrap_err();
        assert!(cache.find(&collection.inner.log.view(), 50).is_none());
    }
}
