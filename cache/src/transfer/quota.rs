//! The room on the disk that all bodies on their way share.

use std::sync::atomic::{AtomicU64, Ordering};

/// Room for bodies on their way, in bytes. Each takes of it as it grows, and gives it back with its file.
#[derive(Debug)]
pub struct Quota {
    bytes_max: u64,
    taken: AtomicU64,
}

impl Quota {
    /// Returns so many bytes of room.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, taken: AtomicU64::new(0) }
    }

    /// Returns how many bytes are taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes room, unless there is too little. Returns whether it was there.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let more = |it: u64| it.checked_add(bytes).filter(|it| *it <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives back room that was taken.
    pub(super) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}
