//! The limit, in bytes, on the values that wait between two stages. A queue that is bounded only by
//! number may hold sixty small files or sixty archives.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock::lock;

/// Time between two checks of whether to stop waiting.
const POLL_TIME: Duration = Duration::from_millis(50);

/// Number of bytes that wait, and their maximum.
#[derive(Debug)]
pub(crate) struct Room {
    taken_bytes: Mutex<usize>,
    news: Condvar,
    bytes_max: usize,
}

impl Room {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { taken_bytes: Mutex::default(), news: Condvar::new(), bytes_max }
    }

    /// Waits until there is room for `bytes`, or the room is empty (a value larger than the room
    /// gets all of it), or `is_stopped` returns true. Takes the bytes in each of these cases.
    pub(crate) fn enter(&self, bytes: usize, is_stopped: &dyn Fn() -> bool) {
        let mut taken = lock(&self.taken_bytes);
        while 0 < *taken && self.bytes_max < taken.saturating_add(bytes) && !is_stopped() {
            let waited = self.news.wait_timeout(taken, POLL_TIME);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = taken.saturating_add(bytes);
    }

    /// Waits until the room is empty, or `is_stopped` returns true.
    pub(crate) fn wait_until_empty(&self, is_stopped: &dyn Fn() -> bool) {
        let mut taken = lock(&self.taken_bytes);
        while 0 < *taken && !is_stopped() {
            let waited = self.news.wait_timeout(taken, POLL_TIME);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives back bytes that were taken.
    pub(crate) fn leave(&self, bytes: usize) {
        let mut taken = lock(&self.taken_bytes);
        *taken = taken.saturating_sub(bytes);
        self.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn waiting_values_never_exceed_the_room() {
        let (room, inside, most) = (Room::new(10), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for n in 0..60 {
                let (room, inside, most) = (&room, &inside, &most);
                scope.spawn(move || {
                    let bytes = n % 6 + 1;
                    room.enter(bytes, &|| false);
                    most.fetch_max(inside.fetch_add(bytes, SeqCst) + bytes, SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(bytes, SeqCst);
                    room.leave(bytes);
                });
            }
        });
        assert!(most.load(SeqCst) <= 10, "{most:?}");
        assert_eq!(*lock(&room.taken_bytes), 0);
    }

    #[test]
    fn a_larger_value_has_the_room_for_itself_and_a_stop_ends_the_wait() {
        let room = Room::new(10);
        room.enter(1_000, &|| false);
        room.enter(1, &|| true);
        room.leave(1_000);
        assert_eq!(*lock(&room.taken_bytes), 1);
        room.wait_until_empty(&|| true);
        thread::scope(|scope| {
            scope.spawn(|| room.leave(1));
            room.wait_until_empty(&|| false);
        });
        assert_eq!(*lock(&room.taken_bytes), 0);
    }
}
