//! A neighbor as a source of chunks, and the number of chunks for which it waits here.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::wants::{Want, Wants};
use super::{PACE_BYTES, REST, STALL};
use crate::message::CHUNKS_MAX;
use crate::version::{Hash, Namespace};

/// Number of priorities, from 0; smaller ones go first.
pub const PRIORITIES: u8 = 16;
/// Maximum number of times that a rest is doubled.
const DOUBLINGS_MAX: u32 = 2;
/// Maximum number of canceled requests that are remembered: as many chunks as can be on their way.
const CANCELED_MAX: usize = 2 * Window::MAX.chunks;
/// A request waits until an eighth of the window is free, so that it asks for several chunks.
const FREE_SHARE: u64 = 8;

/// Maximum numbers of bytes and chunks that may be requested from a neighbor at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes.
    pub bytes: u64,
    /// Chunks.
    pub chunks: usize,
}

impl Window {
    /// The window of a link that is not measured.
    pub const DEFAULT: Self = Self { bytes: 1 << 20, chunks: 512 };
    /// The greatest window.
    pub const MAX: Self = Self { bytes: 8 << 20, chunks: 1_024 };

    /// Returns the window that fills a link of this many bytes a second for two round trips and one
    /// second, at least 128 KiB. The second lets requests reach a source before the chunks do.
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

/// The state of a request to a neighbor.
#[derive(Clone, Copy, Debug)]
enum RequestState {
    Queued { priority: u8, order: u64 },
    Asked { priority: u8, bytes: u32 },
}

#[derive(Debug)]
pub(super) struct Peer {
    window: Window,
    /// Chunks to request, the most urgent first.
    queue: BTreeMap<(u8, u64), Hash>,
    chunks: BTreeMap<Hash, RequestState>,
    /// Requested chunks and bytes, by priority.
    asked: [(usize, u64); PRIORITIES as usize],
    /// Time from which its pace is measured: when it last completed [`PACE_BYTES`] or all requests,
    /// or got the first request after that.
    mark: Duration,
    /// Bytes sent since the mark.
    came: u64,
    rests_until: Option<Duration>,
    is_shunned: bool,
    stalls: u32,
    /// Number of chunks that it waits for here.
    pub(super) waiting: usize,
    /// Chunks whose request was canceled, and which may be on their way.
    canceled: VecDeque<Hash>,
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
            canceled: VecDeque::new(),
            unasked: 0,
        }
    }

    pub(super) fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Returns the requested chunks, then the queued ones.
    pub(super) fn chunks(&self) -> Vec<Hash> {
        let asked = self.chunks.iter().filter(|(_, it)| matches!(it, RequestState::Asked { .. }));
        asked.map(|(hash, _)| *hash).chain(self.queue.values().copied()).collect()
    }

    pub(super) fn rests(&self) -> bool {
        self.rests_until.is_some()
    }

    pub(super) fn is_shunned(&self) -> bool {
        self.is_shunned
    }

    pub(super) fn is_asked(&self, hash: &Hash) -> bool {
        matches!(self.chunks.get(hash), Some(RequestState::Asked { .. }))
    }

    fn all_asked(&self) -> usize {
        self.asked.iter().map(|it| it.0).sum()
    }

    pub(super) fn queue(&mut self, hash: Hash, want: &Want) {
        let Want { priority, order, .. } = *want;
        self.queue.insert((priority, order), hash);
        self.chunks.insert(hash, RequestState::Queued { priority, order });
    }

    /// Removes a chunk. Returns whether it was requested.
    fn remove(&mut self, hash: &Hash) -> bool {
        match self.chunks.remove(hash) {
            Some(RequestState::Queued { priority, order }) => {
                self.queue.remove(&(priority, order));
                false
            }
            Some(RequestState::Asked { priority, bytes }) => {
                if let Some((chunks, all)) = self.asked.get_mut(usize::from(priority)) {
                    *chunks = chunks.saturating_sub(1);
                    *all = all.saturating_sub(u64::from(bytes));
                }
                true
            }
            None => false,
        }
    }

    /// Removes a chunk, which may be on its way. Returns whether it was requested: send a cancel.
    pub(super) fn cancel(&mut self, hash: &Hash) -> bool {
        let was_asked = self.remove(hash);
        if was_asked {
            if CANCELED_MAX <= self.canceled.len() {
                self.canceled.pop_front();
            }
            self.canceled.push_back(*hash);
        }
        was_asked
    }

    /// Returns the next chunks to request, if the window has room.
    pub(super) fn next_batch(&mut self, wants: &Wants, now: Duration) -> Option<Batch> {
        let (&(priority, _), first) = self.queue.first_key_value()?;
        let namespace = wants.get(first)?.namespaces.first()?.clone();
        // Only requests of this or a more urgent priority fill the window.
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
            self.chunks.insert(hash, RequestState::Asked { priority, bytes: want.bytes });
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

    /// Takes in that it sent a chunk. Returns whether the chunk was requested.
    pub(super) fn handle_chunk(&mut self, hash: &Hash, now: Duration) -> bool {
        let Some(RequestState::Asked { bytes, .. }) = self.chunks.get(hash) else { return false };
        self.came = self.came.saturating_add(u64::from(*bytes));
        self.remove(hash);
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
        self.remove(hash);
        if self.all_asked() == 0 {
            self.set_mark(now);
        }
    }

    /// Takes in a chunk that is not requested now. Returns the number of such chunks so far, or
    /// `None` if the request for this one was canceled.
    pub(super) fn count_unasked(&mut self, hash: &Hash) -> Option<u32> {
        if let Some(at) = self.canceled.iter().position(|it| it == hash) {
            self.canceled.remove(at);
            return None;
        }
        self.unasked = self.unasked.saturating_add(1);
        Some(self.unasked)
    }

    /// Returns the time at which it stalls, or at which its rest ends.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let stalls_at = (0 < self.all_asked()).then_some(self.mark + STALL);
        self.rests_until.or(stalls_at)
    }

    /// Notes that it stalls, and begins its rest.
    pub(super) fn stall(&mut self, now: Duration) {
        self.rests_until = Some(now + REST * 2_u32.pow(self.stalls.min(DOUBLINGS_MAX)));
        self.stalls = self.stalls.saturating_add(1);
    }

    /// Notes that it lied; it rests until this time.
    pub(super) fn shun(&mut self, until: Duration) {
        self.rests_until = Some(until);
        self.is_shunned = true;
    }

    pub(super) fn wake(&mut self, now: Duration) {
        self.rests_until = None;
        self.is_shunned = false;
        self.set_mark(now);
    }
}
