//! Answers that are asked for again: kept in memory as they were checked, and sent by the kernel.
//!
//! A commit wakes all who follow a source, and each then asks for the same bytes. The first has
//! them read and checked; the others cost no more than a file does a file server.
//!
//! Source: TR §4 (the gatherer caches the answer to its commonest question).

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use net::sendfile::{Memory, MemoryFile};
use tokio::sync::Mutex as AsyncMutex;

use crate::change::Version;
use crate::log::served;
use crate::log::{Part, View};

/// Largest answer kept, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Smallest answer kept, in bytes: what it saves is then worth a file.
const ANSWER_BYTES_MIN: u64 = 16 << 10;
/// Most bytes of all answers kept.
const BYTES_MAX: u64 = 16 << 20;
/// Most bytes of all answers kept and of those that slow readers still hold. Beyond that an answer is
/// read anew for each reader, piece by piece as it takes them.
const LIVE_BYTES_MAX: u64 = 64 << 20;
/// Most answers kept.
const ANSWERS_MAX: usize = 64;

/// The state of a log: its version, and up to which commit it has been compacted.
type State = (Version, u64);

/// Answers that lead to the present state of the log.
#[derive(Debug, Default)]
pub(crate) struct Hot {
    kept: Mutex<Kept>,
    /// What is kept, and what is still on its way to slow readers.
    memory: Memory,
    /// One answer is put together at a time: the others may want the same.
    turn: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    state: State,
    /// By the serial that they follow; the last used at the end.
    files: Vec<(u64, MemoryFile)>,
}

impl Hot {
    /// Waits until nobody else puts an answer together. What was not found before may be by then.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Returns the answer to whoever has come to `since`.
    pub(crate) fn find(&self, view: &View, since: u64) -> Option<MemoryFile> {
        let mut kept = self.kept();
        if kept.state != state(view) {
            return None;
        }
        let at = kept.files.iter().position(|(known, _)| *known == since)?;
        let found = kept.files.remove(at);
        let file = found.1.clone();
        kept.files.push(found);
        Some(file)
    }

    /// Returns the parts and the tail as a file in memory, to be found from now on, if it is not there
    /// already; `None` if they are not worth one, or there can be none. Blocks.
    ///
    /// # Errors
    ///
    /// The parts cannot be read, or are damaged.
    pub(crate) fn make(
        &self,
        view: &View,
        since: u64,
        parts: &[Part],
        tail: &Bytes,
    ) -> io::Result<Option<MemoryFile>> {
        if let Some(file) = self.find(view, since) {
            return Ok(Some(file));
        }
        self.leave_behind(view);
        let len = served::bytes_of(parts) + tail.len() as u64;
        if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&len)
            || LIVE_BYTES_MAX < self.memory.bytes() + len
        {
            return Ok(None);
        }
        let mut misread = false;
        let mut pieces = served::pieces(parts, tail, 0, len);
        match MemoryFile::of(&self.memory, || pieces().inspect_err(|_error| misread = true)) {
            Ok(file) => {
                drop(self.keep(view, since, file.clone()));
                Ok(Some(file))
            }
            Err(error) if misread => Err(error),
            // No file descriptor, or no such call: the bytes go in another way.
            Err(_) => Ok(None),
        }
    }

    /// Keeps an answer, if it is one to the present state; returns those that have to go for it. To
    /// let go of them takes time: not under the lock.
    fn keep(&self, view: &View, since: u64, file: MemoryFile) -> Vec<(u64, MemoryFile)> {
        let mut kept = self.kept();
        if kept.state != state(view) {
            return vec![(since, file)];
        }
        let files = &mut kept.files;
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

    /// Lets go of all: it has what is to be purged.
    pub(crate) fn clear(&self) {
        // Whoever puts one together now finds another state here, and it is not kept.
        let all = std::mem::take(&mut *self.kept());
        drop(all);
    }

    /// Forgets what leads to another state: nobody is given that any more.
    fn leave_behind(&self, view: &View) {
        let mut kept = self.kept();
        if kept.state != state(view) {
            let fresh = Kept { state: state(view), files: Vec::new() };
            let stale = std::mem::replace(&mut *kept, fresh);
            drop(kept);
            drop(stale);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(view: &View) -> State {
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

    fn ask(hot: &Hot, collection: &Collection, since: u64) -> io::Result<Option<MemoryFile>> {
        let view = collection.inner.log.view();
        if let Some(found) = hot.find(&view, since) {
            return Ok(Some(found));
        }
        hot.make(&view, since, &view.parts(since).0, &Bytes::from_static(b"end"))
    }

    #[test]
    fn what_is_asked_again_is_kept_and_the_rest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let view = || collection.inner.log.view();
        let hot = Hot::default();
        assert!(ask(&hot, &collection, 100).unwrap().is_none(), "too small");
        let first = ask(&hot, &collection, 80).unwrap().unwrap();
        let again = ask(&hot, &collection, 80).unwrap().unwrap();
        assert!(first.is_same(&again));
        for since in 0..97 {
            ask(&hot, &collection, since).unwrap();
        }
        let kept = std::mem::take(&mut hot.kept().files);
        let bytes: u64 = kept.iter().map(|(_, file)| file.len()).sum();
        assert!(bytes <= BYTES_MAX && kept.len() <= ANSWERS_MAX, "{bytes} bytes");
        ask(&hot, &collection, 80).unwrap();
        collection.compact(Stamp(3)).unwrap();
        assert!(hot.find(&view(), 80).is_none(), "what was compacted away is not to be kept");
    }

    #[tokio::test]
    async fn what_many_want_at_once_is_put_together_once() {
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
        // The answers are kept until all are there.
        let answers = asked.join_all().await;
        let len = answers[0].headers()[header::CONTENT_LENGTH].to_str().unwrap();
        assert_eq!(server.shared.hot.memory.bytes(), len.parse::<u64>().unwrap());
        assert_eq!(answers.len(), 50);
    }

    #[test]
    fn what_slow_readers_hold_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let hot = Hot::default();
        let mut held = Vec::new();
        while let Some(file) = ask(&hot, &collection, held.len() as u64 % 90).unwrap() {
            // Nobody else finds it.
            hot.clear();
            held.push(file);
        }
        assert!(LIVE_BYTES_MAX - ANSWER_BYTES_MAX <= hot.memory.bytes());
        assert!(hot.memory.bytes() <= LIVE_BYTES_MAX);
        drop(held);
        assert_eq!(hot.memory.bytes(), 0);
        assert!(ask(&hot, &collection, 0).unwrap().is_some());
    }

    #[test]
    fn what_is_damaged_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let file = dir.path().join("segment-00000001.gz");
        let mut bytes = std::fs::read(&file).unwrap();
        let end = bytes.len() - 100;
        bytes[end] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let hot = Hot::default();
        ask(&hot, &collection, 50).unwrap_err();
        assert!(hot.find(&collection.inner.log.view(), 50).is_none());
    }
}
