//! A neighbor, as one who sends chunks and as one who waits for some.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::wants::{Want, Wants};
use super::{PACE_BYTES, REST, STALL, WAITING_MAX};
use crate::message::CHUNKS_MAX;
use crate::version::{Hash, Namespace};

/// Priorities are below this; the smaller ones go first.
pub const PRIORITIES: u8 = 16;
/// A rest is doubled so often at most.
const DOUBLINGS_MAX: u32 = 2;
/// Most requests that are remembered after they were taken back: as much as can be on its way.
const CROSSING_MAX: usize = 2 * Window::MAX.chunks;
/// It is asked for more once as much of the window is free, so that one message asks for several.
const FREE_SHARE: u64 = 8;

/// How much a neighbor may be asked for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// In bytes.
    pub bytes: u64,
    /// In chunks.
    pub chunks: usize,
}

impl Window {
    /// For a link of which nothing is known.
    pub const DEFAULT: Self = Self { bytes: 1 << 20, chunks: 512 };
    /// The widest.
    pub const MAX: Self = Self { bytes: 8 << 20, chunks: 1_024 };

    /// What fills a link for two round trips and a second more, so that a source which gets the chunks itself
    /// just then finds them asked for.
    pub fn of(round_trip: Duration, bandwidth: u64) -> Self {
        let millis = 2 * round_trip.as_millis() + 1_000;
        let bytes = u128::from(bandwidth) * millis / 1_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let bytes = bytes.clamp(128 << 10, Self::MAX.bytes);
        Self { bytes, chunks: Self::MAX.chunks }
    }
}

/// Chunks to ask for at once.
pub(super) struct Batch {
    pub namespace: Namespace,
    pub priority: u8,
    pub chunks: Vec<Hash>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Queued { priority: u8, order: u64 },
    Asked { priority: u8, bytes: u32 },
}

#[derive(Debug)]
pub(super) struct Peer {
    window: Window,
    /// What is to be asked of it, the most urgent first.
    queue: BTreeMap<(u8, u64), Hash>,
    chunks: BTreeMap<Hash, Place>,
    /// What it was asked for, by priority: chunks and bytes.
    asked: [(usize, u64); PRIORITIES as usize],
    /// When it last had sent [`PACE_BYTES`] more or all that it was asked for, or was asked after that.
    mark: Duration,
    /// Bytes that it has sent since.
    came: u64,
    rests_until: Option<Duration>,
    is_shunned: bool,
    stalls: u32,
    /// For how many chunks it waits here.
    waiting: usize,
    /// What it was asked for until that was taken back: it may be on its way.
    crossing: VecDeque<Hash>,
    unasked: u32,
}

impl Peer {
    pub(super) fn new(window: Window, now: Duration) -> Self {
        Self {
            window,
            queue: BTreeMap::new(),
            chunks: BTreeMap::new(),
            asked: Default::default(),
            mark: now,
            came: 0,
            rests_until: None,
            is_shunned: false,
            stalls: 0,
            waiting: 0,
            crossing: VecDeque::new(),
            unasked: 0,
        }
    }

    pub(super) fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// What it has been asked for, and what it is to be asked for.
    pub(super) fn chunks(&self) -> Vec<Hash> {
        let asked = self.chunks.iter().filter(|(_, it)| matches!(it, Place::Asked { .. }));
        asked.map(|(hash, _)| *hash).chain(self.queue.values().copied()).collect()
    }

    pub(super) fn rests(&self) -> bool {
        self.rests_until.is_some()
    }

    pub(super) fn is_shunned(&self) -> bool {
        self.is_shunned
    }

    pub(super) fn is_asked(&self, hash: &Hash) -> bool {
        matches!(self.chunks.get(hash), Some(Place::Asked { .. }))
    }

    fn all_asked(&self) -> usize {
        self.asked.iter().map(|it| it.0).sum()
    }

    pub(super) fn queue(&mut self, hash: Hash, want: &Want) {
        let Want { priority, order, .. } = *want;
        self.queue.insert((priority, order), hash);
        self.chunks.insert(hash, Place::Queued { priority, order });
    }

    /// It is not to send this one any more; returns whether it had been asked for it.
    fn take_back(&mut self, hash: &Hash) -> bool {
        match self.chunks.remove(hash) {
            Some(Place::Queued { priority, order }) => {
                self.queue.remove(&(priority, order));
                false
            }
            Some(Place::Asked { priority, bytes }) => {
                if let Some((chunks, all)) = self.asked.get_mut(usize::from(priority)) {
                    *chunks = chunks.saturating_sub(1);
                    *all = all.saturating_sub(u64::from(bytes));
                }
                true
            }
            None => false,
        }
    }

    /// As [`Peer::take_back`], and it is told so: the chunk may be on its way.
    pub(super) fn cancel(&mut self, hash: &Hash) -> bool {
        let was_asked = self.take_back(hash);
        if was_asked {
            if CROSSING_MAX <= self.crossing.len() {
                self.crossing.pop_front();
            }
            self.crossing.push_back(*hash);
        }
        was_asked
    }

    /// What may be asked of it now, if anything.
    pub(super) fn next_batch(&mut self, wants: &Wants, now: Duration) -> Option<Batch> {
        let (&(priority, _), first) = self.queue.first_key_value()?;
        let namespace = wants.get(first)?.namespaces.first()?.clone();
        // What is less urgent does not count.
        let urgent = self.asked.iter().take(usize::from(priority) + 1);
        let (mut chunks, mut bytes) = urgent.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let is_filled = |free: u64, of: u64| 0 < of && free < of.div_ceil(FREE_SHARE);
        if is_filled(self.window.bytes.saturating_sub(bytes), self.window.bytes)
            || self.window.chunks <= chunks
        {
            return None;
        }
        let mut batch = Batch { namespace, priority, chunks: Vec::new() };
        if self.all_asked() == 0 {
            self.set_mark(now);
        }
        while let Some((&key, &hash)) = self.queue.first_key_value() {
            let Some(want) = wants.get(&hash) else { break };
            let fits = key.0 == priority
                && want.namespaces.first() == Some(&batch.namespace)
                && batch.chunks.len() < CHUNKS_MAX
                && chunks < self.window.chunks
                && bytes < self.window.bytes;
            if !fits {
                break;
            }
            self.queue.remove(&key);
            self.chunks.insert(hash, Place::Asked { priority, bytes: want.bytes });
            (chunks, bytes) = (chunks + 1, bytes + u64::from(want.bytes));
            if let Some(asked) = self.asked.get_mut(usize::from(priority)) {
                *asked = (asked.0 + 1, asked.1 + u64::from(want.bytes));
            }
            batch.chunks.push(hash);
        }
        Some(batch)
    }

    fn set_mark(&mut self, now: Duration) {
        self.mark = now;
        self.came = 0;
    }

    /// It sent this; returns whether it had been asked for it.
    pub(super) fn handle_chunk(&mut self, hash: &Hash, now: Duration) -> bool {
        let Some(Place::Asked { bytes, .. }) = self.chunks.get(hash) else { return false };
        self.came = self.came.saturating_add(u64::from(*bytes));
        self.take_back(hash);
        if PACE_BYTES <= self.came || self.all_asked() == 0 {
            self.stalls = 0;
            if !self.is_shunned {
                self.rests_until = None;
            }
            self.set_mark(now);
        }
        true
    }

    pub(super) fn handle_gone(&mut self, hash: &Hash, now: Duration) {
        self.take_back(hash);
        if self.all_asked() == 0 {
            self.set_mark(now);
        }
    }

    /// It sent what it is not asked for now; if it never was, returns how often it did so.
    pub(super) fn count_unasked(&mut self, hash: &Hash) -> Option<u32> {
        if let Some(at) = self.crossing.iter().position(|it| it == hash) {
            self.crossing.remove(at);
            return None;
        }
        self.unasked = self.unasked.saturating_add(1);
        Some(self.unasked)
    }

    /// When it counts as stalled, or has rested.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let stalls_at = (0 < self.all_asked()).then_some(self.mark + STALL);
        self.rests_until.or(stalls_at)
    }

    /// It stalls, and rests from now on.
    pub(super) fn stall(&mut self, now: Duration) {
        self.rests_until = Some(now + REST * 2_u32.pow(self.stalls.min(DOUBLINGS_MAX)));
        self.stalls = self.stalls.saturating_add(1);
    }

    /// It lied, and is passed over until then.
    pub(super) fn shun(&mut self, until: Duration) {
        self.rests_until = Some(until);
        self.is_shunned = true;
    }

    /// It has rested.
    pub(super) fn wake(&mut self, now: Duration) {
        self.rests_until = None;
        self.is_shunned = false;
        self.set_mark(now);
    }

    /// Whether it may wait for one more chunk; counts it.
    pub(super) fn may_wait(&mut self) -> bool {
        let may = self.waiting < WAITING_MAX;
        self.waiting += usize::from(may);
        may
    }

    pub(super) fn waits_no_more(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    pub(super) fn set_waiting(&mut self, chunks: usize) {
        self.waiting = chunks;
    }
}
