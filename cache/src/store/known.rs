//! The known part of the log: what readers share of it.

use std::collections::HashMap;
use std::sync::Arc;

use disk::File;

use super::index::{Index, Place};

/// What readers know of a log: the index, and the files of the segments. It is locked for moments
/// alone, never while the disk works.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) index: Index,
    pub(super) files: HashMap<u32, Arc<File>>,
    /// Hashes of URLs of which a removal waits to be done, with how many: till then nothing is theirs.
    gone: HashMap<u64, u32>,
    /// Hashes of URLs of which objects wait to be written, with how many.
    waiting: HashMap<u64, u32>,
}

impl Known {
    /// Returns whether anything of a URL is stored, or waits to be.
    pub(super) fn has(&self, hash: u64) -> bool {
        self.waiting.contains_key(&hash) || self.index.has_any(hash)
    }

    /// Notes that an object of a URL waits to be written.
    pub(super) fn waits(&mut self, hash: u64) {
        *self.waiting.entry(hash).or_default() += 1;
    }

    /// Notes that it waits no more.
    pub(super) fn waits_no_more(&mut self, hash: u64) {
        count_down(&mut self.waiting, hash);
    }

    /// Removes all records of a URL, and what still waits to be written, until [`gone`](Self::gone) is
    /// called. Returns how many there were.
    pub(super) fn remove(&mut self, hash: u64) -> usize {
        *self.gone.entry(hash).or_default() += 1;
        self.index.take_all(hash)
    }

    /// Ends a removal, of what was written before it.
    pub(super) fn gone(&mut self, hash: u64) {
        self.index.take_all(hash);
        count_down(&mut self.gone, hash);
    }

    /// Returns whether a removal of a URL's records waits to be written.
    pub(super) fn is_gone(&self, hash: u64) -> bool {
        self.gone.contains_key(&hash)
    }

    /// Returns the file of a segment; `None`: it has made room.
    pub(super) fn file(&self, segment: u32) -> Option<Arc<File>> {
        self.files.get(&segment).cloned()
    }

    /// Returns the places and files of a URL's records, and notes that they are used.
    pub(super) fn used(&mut self, hash: u64) -> Vec<(Place, Arc<File>)> {
        if self.is_gone(hash) {
            return Vec::new();
        }
        let places = self.index.used(hash).into_iter();
        places.filter_map(|it| Some((it, Arc::clone(self.files.get(&it.segment)?)))).collect()
    }
}

fn count_down(counts: &mut HashMap<u64, u32>, hash: u64) {
    if let Some(count) = counts.get_mut(&hash) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&hash);
        }
    }
}
