//! The spool of a crawl: what was fetched and is not committed yet, on the disk. So a crawl that was ended by force
//! fetches nothing again but what was under way.
//!
//! An answer is written before its request counts as ended. That is enough for the end of a process; several times a
//! second what was written is synced, with the names of new segments, so that a power cut costs no more than that. A
//! segment, one file of many answers, is deleted once nothing in it is of use: all its answers are committed, or led to
//! nothing that is.
//!
//! An answer on the disk is the lengths of its head and of its body and their CRC-32 (each a number of four bytes,
//! little-endian), the head as JSON, and the body. The first that is not whole ends a segment.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufReader, Read as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use disk::{Disk, File};
use flate2::Crc;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::lock::lock;
use crate::validator::Validator;

/// Usual length from which on a segment takes no more answers, in bytes.
const SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Length of all segments from which on no answer is kept, in bytes: more than may wait for the commit.
const SPOOL_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Maximum length of a head, in bytes.
const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// Length of the numbers before a head, in bytes.
const NUMBERS_BYTES: usize = 12;

/// Modes of the folder and of its files, which are for this program alone.
const MODES: (u32, u32) = (0o700, 0o600);

/// What is known of an answer beside its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) url: String,
    /// Time of the answer, in milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) kind: Kind,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A page of the web, or that it has not changed, is elsewhere, or is not there.
    Page {
        status: u16,
        headers: Vec<(String, String)>,
        is_cut: bool,
        sent_bytes: u64,
        address: Option<IpAddr>,
    },
    /// An object of another server.
    Object {
        name: String,
        modified: Option<u64>,
        size: u64,
        is_cut: bool,
        validator: Validator,
        is_sure: bool,
    },
}

/// A file of answers.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
}

/// Keeps an answer in the spool as long as somebody has this.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Its only use is to be counted.
    _segment: Arc<Segment>,
}

/// An answer that an earlier process has written.
#[derive(Debug)]
struct Place {
    segment: Arc<Segment>,
    at: u64,
    head_bytes: usize,
    body_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    /// All segments with their lengths; the last one takes answers if it is open.
    segments: Vec<(Arc<Segment>, u64)>,
    is_open: bool,
    /// Segments that were written to since the last sync.
    unsynced: Vec<Arc<Segment>>,
    /// Whether there are new segments among them.
    has_new: bool,
    /// Whether the disk has failed: then no more is kept.
    has_failed: bool,
    /// Number of the next segment.
    next: u64,
    /// Answers of an earlier process that were not taken yet, by URL.
    left: HashMap<String, Place>,
}

/// The spool of one root.
#[derive(Debug)]
pub(crate) struct Spool {
    disk: Disk,
    folder: PathBuf,
    /// Length from which on a segment takes no more answers, in bytes.
    segment_bytes: u64,
    state: Mutex<State>,
}

impl Spool {
    /// Returns the spool in `folder`, which need not exist.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self::on(Disk::System, folder, SEGMENT_BYTES)
    }

    fn on(disk: Disk, folder: PathBuf, segment_bytes: u64) -> Self {
        Self { disk, folder, segment_bytes, state: Mutex::default() }
    }

    /// Finds the answers that an earlier process has left and that `is_wanted`. Of a spool that cannot be read,
    /// nothing is left. Blocks.
    pub(super) fn recover(&self, is_wanted: impl Fn(&Head) -> bool) {
        let mut state = lock(&self.state);
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number = |name: &str| name.strip_suffix(".spool")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> =
            entries.filter_map(|it| number(it.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        for number in numbers {
            state.next = number + 1;
            let path = self.path(number);
            let Ok(file) = self.disk.open_to_read(&path) else { continue };
            let segment = Arc::new(Segment { path, file });
            let mut at = 0;
            let mut reader = BufReader::new(&**segment.file.real());
            while let Some((head, head_bytes, body_bytes)) = read_one(&mut reader) {
                let place = Place { segment: segment.clone(), at, head_bytes, body_bytes };
                at += (NUMBERS_BYTES + head_bytes + body_bytes) as u64;
                if is_wanted(&head) {
                    state.left.insert(head.url, place);
                }
            }
            // That process may have been killed before it synced this.
            state.unsynced.push(segment.clone());
            state.has_new = true;
            state.segments.push((segment, at));
        }
    }

    /// Returns the answer for a URL that an earlier process has left, once. Blocks.
    pub(super) fn take(&self, url: &Url) -> Option<(Head, Bytes, Kept)> {
        let place = lock(&self.state).left.remove(url.as_str())?;
        let mut bytes = vec![0; place.head_bytes + place.body_bytes];
        place.segment.file.read_exact_at(&mut bytes, place.at + NUMBERS_BYTES as u64).ok()?;
        let body = Bytes::from(bytes.split_off(place.head_bytes));
        let head = serde_json::from_slice(&bytes).ok()?;
        Some((head, body, Kept { _segment: place.segment }))
    }

    /// Keeps an answer until what is returned is dropped, and that was swept. Returns `None` if it cannot be kept.
    /// Blocks.
    pub(super) fn keep(&self, head: &Head, body: &[u8]) -> Option<Kept> {
        let bytes = to_bytes(head, body)?;
        let mut state = lock(&self.state);
        match self.write(&mut state, &bytes) {
            Ok(segment) => segment.map(|it| Kept { _segment: it }),
            Err(error) => {
                // Its last answer may be there in part.
                (state.is_open, state.has_failed) = (false, true);
                let folder = self.folder.display();
                tracing::warn!(%error, "cannot write to {folder}: after a crash more is fetched again");
                None
            }
        }
    }

    fn write(&self, state: &mut State, bytes: &[u8]) -> io::Result<Option<Arc<Segment>>> {
        let length: u64 = state.segments.iter().map(|it| it.1).sum();
        if state.has_failed || SPOOL_BYTES_MAX < length {
            return Ok(None);
        }
        if !state.is_open {
            self.disk.make_directories(&self.folder, Some(MODES.0))?;
            let path = self.path(state.next);
            let file = self.disk.create_new(&path, MODES.1)?;
            state.next += 1;
            (state.is_open, state.has_new) = (true, true);
            state.segments.push((Arc::new(Segment { path, file }), 0));
        }
        let Some((segment, length)) = state.segments.last_mut() else { return Ok(None) };
        segment.file.write_all_at(bytes, *length)?;
        *length += bytes.len() as u64;
        let (segment, is_full) = (segment.clone(), self.segment_bytes <= *length);
        if is_full {
            state.is_open = false;
        }
        if state.unsynced.last().is_none_or(|it| !Arc::ptr_eq(it, &segment)) {
            state.unsynced.push(segment.clone());
        }
        Ok(Some(segment))
    }

    /// Syncs what was written since the last call. Blocks.
    pub(super) fn sync(&self) {
        let mut state = lock(&self.state);
        let (unsynced, has_new) =
            (std::mem::take(&mut state.unsynced), std::mem::take(&mut state.has_new));
        drop(state);
        for segment in unsynced {
            if let Err(error) = segment.file.sync_data() {
                tracing::warn!(%error, "cannot sync {}", segment.path.display());
            }
        }
        if has_new && let Err(error) = self.disk.sync(&self.folder) {
            tracing::warn!(%error, "cannot sync {}", self.folder.display());
        }
    }

    /// Deletes the segments of which nothing is kept any more, unless `is_stopped`: then what was dropped may be
    /// wanted by the next process. Blocks.
    pub(in super::super) fn sweep(&self, is_stopped: &dyn Fn() -> bool) {
        let mut state = lock(&self.state);
        let last = state.segments.len().saturating_sub(usize::from(state.is_open));
        let is_free = |it: &(Arc<Segment>, u64)| Arc::strong_count(&it.0) == 1;
        let free: Vec<bool> =
            state.segments.iter().enumerate().map(|(at, it)| at < last && is_free(it)).collect();
        // Looked at afterwards: what a stop has dropped was dropped after its begin.
        if is_stopped() {
            return;
        }
        let mut free = free.into_iter();
        state.segments.retain(|(segment, _)| {
            let is_free = free.next().unwrap_or_default();
            if is_free && let Err(error) = self.disk.remove_file(&segment.path) {
                tracing::warn!(%error, "cannot delete {}", segment.path.display());
            }
            !is_free
        });
    }

    /// Deletes all that is there: the pass is over. Blocks.
    pub(crate) fn clear(&self) {
        *lock(&self.state) = State::default();
        if let Err(error) = self.disk.remove_tree(&self.folder) {
            tracing::warn!(%error, "cannot delete {}", self.folder.display());
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.spool"))
    }
}

/// Returns an answer as it is on the disk; `None` if it is too long for that.
fn to_bytes(head: &Head, body: &[u8]) -> Option<Vec<u8>> {
    let head = serde_json::to_vec(head).ok().filter(|it| it.len() <= HEAD_BYTES_MAX)?;
    let mut crc = Crc::new();
    crc.update(&head);
    crc.update(body);
    let lengths = [u32::try_from(head.len()).ok()?, u32::try_from(body.len()).ok()?];
    let mut bytes = Vec::with_capacity(NUMBERS_BYTES + head.len() + body.len());
    for number in [lengths[0], lengths[1], crc.sum()] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(body);
    Some(bytes)
}

/// Reads the head of the next answer, and the lengths of head and body; `None` if it is not whole.
fn read_one(reader: &mut BufReader<&fs::File>) -> Option<(Head, usize, usize)> {
    let mut number = || {
        let mut bytes = [0; 4];
        reader.read_exact(&mut bytes).ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let [head_bytes, body_bytes, sum] = [number()?, number()?, number()?];
    let [head_bytes, body_bytes] = [head_bytes, body_bytes].map(|it| it as usize);
    if HEAD_BYTES_MAX < head_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    let all = (head_bytes + body_bytes) as u64;
    let read = reader.take(all).read_to_end(&mut bytes).ok()?;
    let mut crc = Crc::new();
    crc.update(&bytes);
    if (read as u64) < all || crc.sum() != sum {
        return None;
    }
    let head = serde_json::from_slice(bytes.get(..head_bytes)?).ok()?;
    Some((head, head_bytes, body_bytes))
}

#[cfg(test)]
mod power_cut;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn head(path: &str, at_ms: u64) -> Head {
        let kind = Kind::Page {
            status: 200,
            headers: vec![("etag".to_owned(), "\"x\"".to_owned())],
            is_cut: false,
            sent_bytes: 3,
            address: Some(IpAddr::from([127, 0, 0, 1])),
        };
        Head { url: format!("http://h.example/{path}"), at_ms, kind }
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).map_or(0, Iterator::count)
    }

    fn taken(spool: &Spool, path: &str) -> Option<(Head, Bytes)> {
        let url = Url::parse(&format!("http://h.example/{path}")).unwrap();
        spool.take(&url).map(|(head, body, _)| (head, body))
    }

    #[test]
    fn what_was_written_is_left_to_the_next_process_once() {
        let data = tempfile::tempdir().unwrap();
        let spool = Spool::new(data.path().join("s"));
        assert_eq!(taken(&spool, "a"), None);
        for (path, at_ms, body) in [("a", 1, "old"), ("b", 2, ""), ("a", 3, "new"), ("c", 4, "c")] {
            spool.keep(&head(path, at_ms), body.as_bytes()).unwrap();
        }
        // As a kill leaves it.
        drop(spool);
        let next = Spool::new(data.path().join("s"));
        next.recover(|it| it.at_ms != 4);
        assert_eq!(taken(&next, "a"), Some((head("a", 3), Bytes::from("new"))));
        assert_eq!(taken(&next, "a"), None, "once");
        assert_eq!(taken(&next, "b"), Some((head("b", 2), Bytes::new())));
        assert_eq!(taken(&next, "c"), None, "is not wanted");
        next.clear();
        assert!(!data.path().join("s").exists());
    }

    #[test]
    fn a_segment_is_read_up_to_the_first_answer_that_is_not_whole() {
        let data = tempfile::tempdir().unwrap();
        let spool = Spool::new(data.path().to_owned());
        for path in ["a", "b", "c"] {
            spool.keep(&head(path, 1), b"body").unwrap();
        }
        drop(spool);
        let file = data.path().join("0.spool");
        let whole = fs::read(&file).unwrap();
        let one = whole.len() / 3;
        let count = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let spool = Spool::new(data.path().to_owned());
            spool.recover(|_| true);
            lock(&spool.state).left.len()
        };
        for length in 0..=whole.len() {
            assert_eq!(count(&whole[..length]), length / one, "{length}");
        }
        for at in one..2 * one {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(count(&damaged), 1, "{at}");
        }
    }

    #[test]
    fn segments_go_once_nothing_of_them_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let spool = Spool::new(data.path().to_owned());
        let body = vec![b'x'; usize::try_from(SEGMENT_BYTES / 2).unwrap()];
        let kept: Vec<Kept> =
            (0..5).map(|it| spool.keep(&head(&it.to_string(), it), &body).unwrap()).collect();
        assert_eq!(files(data.path()), 3);
        let mut kept = kept.into_iter();
        drop((kept.next(), kept.next()));
        spool.sync();
        spool.sweep(&|| true);
        assert_eq!(files(data.path()), 3, "after a stop all stays");
        spool.sweep(&|| false);
        assert_eq!(files(data.path()), 2);
        drop(kept);
        spool.sweep(&|| false);
        assert_eq!(files(data.path()), 1, "the open one stays");

        // What an earlier process has left is of use until it was taken, and that is of no use any more.
        drop(spool);
        let next = Spool::new(data.path().to_owned());
        next.recover(|_| true);
        next.sync();
        next.sweep(&|| false);
        assert_eq!(files(data.path()), 1);
        let url = Url::parse("http://h.example/4").unwrap();
        let taken = next.take(&url).unwrap();
        next.sweep(&|| false);
        assert_eq!(files(data.path()), 1);
        drop(taken);
        next.sweep(&|| false);
        assert_eq!(files(data.path()), 0);
        assert!(next.keep(&head("5", 5), b"").is_some() && data.path().join("3.spool").exists());
    }

    #[test]
    fn the_spool_is_bounded_and_a_disk_that_fails_ends_it() {
        let data = tempfile::tempdir().unwrap();
        let spool = Spool::new(data.path().to_owned());
        lock(&spool.state).segments.push((
            Arc::new(Segment {
                path: data.path().join("x"),
                file: Disk::System.create(&data.path().join("x")).unwrap(),
            }),
            SPOOL_BYTES_MAX + 1,
        ));
        assert!(spool.keep(&head("a", 1), b"a").is_none());
        let file = data.path().join("file");
        fs::write(&file, "").unwrap();
        let nowhere = Spool::new(file.join("s"));
        assert!(nowhere.keep(&head("a", 1), b"a").is_none());
        assert!(lock(&nowhere.state).has_failed);
    }
}
