//! Answers that are asked for again: kept in memory as they were checked, and sent by the kernel.
//!
//! A commit wakes all who follow a source, and each then asks for the same bytes. The first has
//! them read and checked; the others cost no more than a file does a file server.
//!
//! Source: TR §4 (the gatherer caches the answer to its commonest question).

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use net::sendfile::MemoryFile;

use crate::change::Version;
use crate::log::View;
use crate::served::{self, Part};

/// Largest answer kept, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Smallest answer kept, in bytes: what it saves is then worth a file.
const ANSWER_BYTES_MIN: u64 = 16 << 10;
/// Most bytes of all answers kept.
const BYTES_MAX: u64 = 16 << 20;
/// Most answers kept.
const ANSWERS_MAX: usize = 64;

/// The state of a log: its version, and up to which commit it has been compacted.
type State = (Version, u64);

/// Answers that lead to the present state of the log.
#[derive(Debug, Default)]
pub(crate) struct Hot {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    state: State,
    /// By the serial that they follow; the last used at the end.
    files: Vec<(u64, MemoryFile)>,
}

impl Hot {
    /// Returns the answer to whoever has come to `since`.
    pub(crate) fn find(&self, view: &View, since: u64) -> Option<MemoryFile> {
        let files = &mut self.kept(view).files;
        let at = files.iter().position(|(known, _)| *known == since)?;
        let found = files.remove(at);
        let file = found.1.clone();
        files.push(found);
        Some(file)
    }

    /// Returns the parts and the tail as a file in memory, to be found from now on; `None` if they
    /// are not worth one, or there can be none.
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
        let len = served::bytes_of(parts) + tail.len() as u64;
        if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&len) {
            return Ok(None);
        }
        let mut misread = false;
        let mut pieces = served::pieces(parts, tail, 0, len);
        match MemoryFile::of(|| pieces().inspect_err(|_error| misread = true)) {
            Ok(file) => {
                let files = &mut self.kept(view).files;
                files.retain(|(known, _)| *known != since);
                files.push((since, file.clone()));
                let mut bytes: u64 = files.iter().map(|(_, file)| file.len()).sum();
                while BYTES_MAX < bytes || ANSWERS_MAX < files.len() {
                    bytes -= files.remove(0).1.len();
                }
                Ok(Some(file))
            }
            Err(error) if misread => Err(error),
            // No file descriptor, or no such call: the bytes go in another way.
            Err(_) => Ok(None),
        }
    }

    /// Lets go of all: it has what is to be purged.
    pub(crate) fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).files.clear();
    }

    /// Forgets what leads to another state: nobody is given that any more.
    fn kept(&self, view: &View) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let state = (view.version, view.compacted);
        if kept.state != state {
            *kept = Kept { state, files: Vec::new() };
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Stamp};
    use crate::collection::Collection;
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
        let kept = std::mem::take(&mut hot.kept(&view()).files);
        let bytes: u64 = kept.iter().map(|(_, file)| file.len()).sum();
        assert!(bytes <= BYTES_MAX && kept.len() <= ANSWERS_MAX, "{bytes} bytes");
        ask(&hot, &collection, 80).unwrap();
        collection.compact(Stamp(3)).unwrap();
        assert!(hot.find(&view(), 80).is_none(), "what was compacted away is not to be kept");
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
