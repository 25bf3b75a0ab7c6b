//! The window of a body that cannot be kept, since it is too long, or the disk is full or broken: its newest
//! bytes, for those who keep up.
//!
//! The writer waits for the slowest reader, so that the window stays small. Where a reader that has all
//! is held up by others, it is so for [`PATIENCE`] in the whole transfer: those who are slower then lose
//! what they have not taken.
//!
//! Sans-I/O.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

/// Bytes that are kept for those who are behind.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// Time for which slow readers may hold up the others, in all.
const PATIENCE: Duration = Duration::from_secs(5);

/// The newest bytes of a body.
#[derive(Debug)]
pub(super) struct Window {
    /// Where the body is not kept any more.
    from: u64,
    /// The bytes that are there, in pieces with their places, and the end of the last one.
    pieces: VecDeque<(u64, Bytes)>,
    end: u64,
    patience: Duration,
}

/// Whether more bytes have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// They have.
    There,
    /// All readers have something to take first.
    Full,
    /// A reader has all and waits for others, who have this time left.
    HeldUp(Duration),
}

impl Window {
    pub(super) fn new(from: u64) -> Self {
        Self { from, pieces: VecDeque::new(), end: from, patience: PATIENCE }
    }

    /// Returns where the body is not kept any more.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Returns the bytes at a place; `None`: they have not come, or are gone.
    pub(super) fn piece(&self, at: u64) -> Option<Bytes> {
        let index = self.pieces.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, piece) = self.pieces.get(index)?;
        let skipped = usize::try_from(at - start).ok()?;
        (skipped < piece.len()).then(|| piece.slice(skipped..))
    }

    /// Returns the place before which bytes are gone; `None`: none are.
    pub(super) fn gone(&self) -> Option<u64> {
        let start = self.pieces.front().map_or(self.end, |(start, _)| *start);
        (self.from < start).then_some(start)
    }

    /// Makes room for more bytes, as far as the readers at these places let it.
    pub(super) fn room(&mut self, count: usize, readers: impl Iterator<Item = u64>) -> Room {
        let (mut slowest, mut fastest) = (u64::MAX, None);
        for it in readers {
            (slowest, fastest) = (slowest.min(it), fastest.max(Some(it)));
        }
        while self.front_end().is_some_and(|it| it <= slowest) {
            self.pieces.pop_front();
        }
        let has_all = fastest.is_some_and(|it| self.end <= it);
        if has_all && self.patience.is_zero() {
            while !self.has_room(count) {
                self.pieces.pop_front();
            }
        }
        match has_all {
            _ if self.has_room(count) => Room::There,
            true => Room::HeldUp(self.patience),
            false => Room::Full,
        }
    }

    /// Returns whether so many more bytes have room; one piece has it always.
    fn has_room(&self, count: usize) -> bool {
        let start = self.pieces.front();
        start.is_none_or(|(start, _)| self.end + count as u64 - start <= BYTES_MAX)
    }

    /// Returns where the first piece ends.
    fn front_end(&self) -> Option<u64> {
        self.pieces.front().map(|(start, piece)| start + piece.len() as u64)
    }

    /// Notes for how long a reader was held up.
    pub(super) fn held_up(&mut self, time: Duration) {
        self.patience = self.patience.saturating_sub(time);
    }

    /// Appends bytes, for which there is room.
    pub(super) fn push(&mut self, bytes: Bytes) {
        let at = self.end;
        self.end += bytes.len() as u64;
        self.pieces.push_back((at, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 256 << 10;

    fn full() -> Window {
        let mut window = Window::new(100);
        for n in 0..4 {
            assert_eq!(window.room(PIECE, [100].into_iter()), Room::There);
            window.push(Bytes::from(vec![n; PIECE]));
        }
        window
    }

    #[test]
    fn what_all_have_taken_makes_room() {
        let (mut window, second) = (full(), 100 + PIECE as u64);
        assert_eq!(window.room(PIECE, [100, second].into_iter()), Room::Full);
        assert_eq!(window.room(PIECE, [second - 1].into_iter()), Room::Full);
        assert_eq!(window.room(PIECE, [second, second + 5].into_iter()), Room::There);
        assert_eq!(window.piece(second - 1), None);
        assert_eq!((window.gone(), full().gone()), (Some(second), None));
        assert_eq!(window.piece(second + 1).unwrap(), vec![1; PIECE - 1]);
        assert_eq!(window.piece(100 + 4 * PIECE as u64), None, "it has not come");
        let end = 100 + 4 * PIECE as u64;
        assert_eq!(window.room(10 * PIECE, [end].into_iter()), Room::There, "one piece has room");
        assert_eq!(full().room(PIECE, std::iter::empty()), Room::There, "nobody wants it");
    }

    #[test]
    fn who_holds_up_others_for_too_long_loses_what_is_old() {
        let mut window = full();
        let readers = [100, 100 + 4 * PIECE as u64];
        assert_eq!(window.room(PIECE, readers.into_iter()), Room::HeldUp(PATIENCE));
        window.held_up(PATIENCE / 2);
        assert_eq!(window.room(PIECE, readers.into_iter()), Room::HeldUp(PATIENCE / 2));
        window.held_up(PATIENCE);
        assert_eq!(window.room(PIECE, readers.into_iter()), Room::There);
        assert_eq!(window.piece(100), None);
        assert!(window.piece(100 + PIECE as u64).is_some(), "no more than has to be");
        window.push(Bytes::from(vec![4; PIECE]));
        assert_eq!(window.room(PIECE, readers.into_iter()), Room::Full, "nobody has the new one");
    }
}
