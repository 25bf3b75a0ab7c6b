//! Fetching of chunks: requests to neighbors, and neighbors that wait for chunks here.
//!
//! Each wanted chunk is requested from one neighbor at a time: the best source of its namespace
//! that is up and does not stall. A neighbor waits if it requests a chunk that has not come here
//! yet, and gets it once its hash is verified (*cut-through*). So an update is on all links of the
//! tree at once.
//!
//! A window for each neighbor bounds the requested chunks that have not come. Urgent chunks do not
//! wait for a window that less urgent chunks fill.
//!
//! # Differences from the paper
//!
//! mirror-d runs one transfer at a time, from one neighbor, and passes on only whole files.
//!
//! Sans-I/O.

mod choice;
mod peer;
mod wants;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use choice::Shun;
use peer::Peer;
pub use peer::{PRIORITIES, Window};
use wants::Wants;

use crate::id::MemberId;
use crate::message::{Message, Request};
use crate::version::{Hash, Namespace, Number};

/// A neighbor stalls if it sends neither [`PACE_BYTES`] nor all requested chunks in this time.
pub const STALL: Duration = Duration::from_secs(10);
/// Number of bytes that a neighbor has to send in [`STALL`].
pub const PACE_BYTES: u64 = 8 << 10;
/// The first rest of a stalled neighbor. It doubles each time, up to four times this.
pub const REST: Duration = Duration::from_secs(30);
/// Maximum number of chunks wanted at once, of all namespaces.
pub const WANTED_MAX: usize = 8_192;
/// Maximum number of chunks for which one neighbor waits here.
pub const WAITING_MAX: usize = 2_048;
/// A neighbor is shunned after this many chunks that were never requested from it. Chunks that
/// cross with a cancel do not count.
const UNASKED_SHUNNED: u32 = 3;
/// After more than this many, the link to the neighbor is closed.
const UNASKED_MAX: u32 = 256;

/// Neighbors that may have the chunks of a namespace, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Neighbors that have the chunks, or are on the way to their origin.
    pub sure: Vec<MemberId>,
    /// Neighbors that may get the chunks. Some of these may wait for each other in a circle.
    pub possible: Vec<MemberId>,
}

impl Sources {
    fn iter(&self) -> impl Iterator<Item = MemberId> {
        self.sure.iter().chain(&self.possible).copied()
    }
}

#[derive(Clone, Debug)]
struct Job {
    number: Number,
    priority: u8,
    sources: Sources,
}

/// The result of taking in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The chunk is wanted: keep it, and send it to the neighbors that wait for it.
    Wanted {
        /// The namespaces that want it.
        namespaces: Vec<Namespace>,
        /// The neighbors that wait, with their priorities.
        waiting: Vec<(MemberId, u8)>,
    },
    /// Nobody wants it, or not any more.
    Unwanted,
    /// The neighbor keeps sending chunks that nobody requested: close the link.
    Flooded,
}

/// A neighbor's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// It is slow, or waits itself, or never means to send.
    #[error("it does not send what it was asked for")]
    Stalls,
    /// It is faulty or lies. A chunk that was changed on its way has a hash that nobody requested.
    #[error("it sends chunks that it was not asked for")]
    Unasked,
    /// Its disk is damaged, or it lies.
    #[error("it lacks a chunk of a version that it says it holds")]
    Lacks,
}

/// The chunks on their way to this member, and through it.
#[derive(Debug, Default)]
pub struct Fetch {
    jobs: BTreeMap<Namespace, Job>,
    wants: Wants,
    peers: BTreeMap<MemberId, Peer>,
    /// The neighbors that wait for each chunk.
    waiting: BTreeMap<Hash, Vec<Waiting>>,
    out: Vec<(MemberId, Message)>,
    /// Namespaces with a chunk that all sources have refused.
    missing: BTreeSet<Namespace>,
    shunned: BTreeMap<MemberId, Shun>,
    faults: Vec<(MemberId, Fault)>,
}

#[derive(Clone, Debug)]
struct Waiting {
    who: MemberId,
    priority: u8,
    namespace: Namespace,
    number: Number,
}

impl Fetch {
    /// Takes the messages to send now.
    pub fn take_messages(&mut self) -> Vec<(MemberId, Message)> {
        std::mem::take(&mut self.out)
    }

    /// Takes in that the link to a neighbor is up: it gets requests within this window.
    pub fn handle_up(&mut self, member: MemberId, window: Window, now: Duration) {
        let without_source: Vec<(Namespace, Vec<MemberId>)> = self
            .jobs
            .iter()
            .filter(|(_, it)| it.sources.sure.contains(&member) && self.lacks_source(&it.sources))
            .map(|(namespace, it)| (namespace.clone(), it.sources.possible.clone()))
            .collect();
        let mut peer = Peer::new(window, now);
        if let Some(until) = self.shunned_until(member, now) {
            peer.shun(until);
        }
        self.peers.insert(member, peer);
        for (namespace, possible) in without_source {
            self.choose_again(&namespace, &possible);
        }
        let all = self.wants.hashes();
        for hash in &all {
            self.wants.forgive(hash, member);
        }
        self.improve(all);
        self.ask(now);
    }

    /// Changes the window of a neighbor.
    pub fn set_window(&mut self, member: MemberId, window: Window) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.set_window(window);
        }
    }

    /// Takes in that the link to a neighbor is down: it gets no requests, and waits for nothing.
    pub fn handle_down(&mut self, member: MemberId, now: Duration) {
        self.waiting.retain(|_, all| {
            all.retain(|it| it.who != member);
            !all.is_empty()
        });
        if let Some(peer) = self.peers.remove(&member) {
            for hash in peer.chunks() {
                self.wants.unassign(&hash);
                self.assign(hash);
            }
        }
        self.ask(now);
    }

    /// Begins to fetch a version from these sources. An older version is not fetched any more.
    pub fn begin(&mut self, namespace: &Namespace, number: Number, sources: Sources, priority: u8) {
        self.end(namespace);
        let priority = priority.min(PRIORITIES - 1);
        self.jobs.insert(namespace.clone(), Job { number, priority, sources });
    }

    /// Replaces the sources of a namespace. Chunks that are not requested yet follow the new order.
    /// If a sure source can be asked now and none could before, so do chunks requested from
    /// possible sources.
    pub fn set_sources(&mut self, namespace: &Namespace, sources: Sources, now: Duration) {
        let Some(job) = self.jobs.get_mut(namespace).filter(|it| it.sources != sources) else {
            return;
        };
        let before = std::mem::replace(&mut job.sources, sources.clone());
        let mut possible = before.possible.clone();
        possible.retain(|it| !sources.sure.contains(it));
        if !self.lacks_source(&before) || self.lacks_source(&sources) {
            possible.clear();
        }
        self.choose_again(namespace, &possible);
        self.ask(now);
    }

    /// Returns whether all sure sources are down, rest or are shunned.
    fn lacks_source(&self, sources: &Sources) -> bool {
        let mut peers = sources.sure.iter().filter_map(|it| self.peers.get(it));
        peers.all(|it| it.rests() || it.is_shunned())
    }

    /// Assigns chunks anew that are not requested yet, or are requested from one of `possible`.
    fn choose_again(&mut self, namespace: &Namespace, possible: &[MemberId]) {
        let mut all = self.wants.of(namespace);
        all.retain(|hash| {
            let assigned = self.wants.assigned(hash);
            let asked =
                assigned.filter(|it| self.peers.get(it).is_some_and(|it| it.is_asked(hash)));
            asked.is_none_or(|it| possible.contains(&it))
        });
        self.reassign(all);
        self.improve(self.wants.of(namespace));
    }

    /// Sets the priority of the chunks that a namespace will want.
    pub fn set_priority(&mut self, namespace: &Namespace, priority: u8) {
        if let Some(job) = self.jobs.get_mut(namespace) {
            job.priority = priority.min(PRIORITIES - 1);
        }
    }

    /// Ends the fetching of a namespace.
    pub fn end(&mut self, namespace: &Namespace) {
        self.missing.remove(namespace);
        if self.jobs.remove(namespace).is_none() {
            return;
        }
        let mut cancels: BTreeMap<MemberId, Vec<Hash>> = BTreeMap::new();
        for hash in self.wants.of(namespace) {
            let Some(assigned) = self.wants.remove_for(&hash, namespace) else { continue };
            let Some(member) = assigned else { continue };
            let Some(peer) = self.peers.get_mut(&member) else { continue };
            if peer.cancel(&hash) {
                cancels.entry(member).or_default().push(hash);
            }
        }
        for (member, hashes) in cancels {
            self.cancel(member, &hashes);
        }
    }

    fn cancel(&mut self, member: MemberId, hashes: &[Hash]) {
        for part in hashes.chunks(crate::message::CHUNKS_MAX) {
            self.out.push((member, Message::Cancel(part.to_vec())));
        }
    }

    /// Returns how many more chunks may be wanted now.
    pub fn room(&self) -> usize {
        WANTED_MAX.saturating_sub(self.wants.len())
    }

    /// Requests chunks of a namespace, given with their lengths in bytes in the order of need.
    /// Chunks beyond [`Fetch::room`] are ignored: pass them again when some have come.
    pub fn want(&mut self, namespace: &Namespace, chunks: &[(Hash, u32)], now: Duration) {
        let Some(job) = self.jobs.get(namespace) else { return };
        let priority = job.priority;
        for (hash, bytes) in chunks {
            if self.room() == 0 {
                break;
            }
            if self.wants.insert(*hash, *bytes, priority, namespace) {
                self.assign(*hash);
            }
        }
        self.ask(now);
    }

    /// Takes the namespaces with a chunk that all sources that are up have refused since the last
    /// call: nobody has those versions any more.
    pub fn take_missing(&mut self) -> BTreeSet<Namespace> {
        std::mem::take(&mut self.missing)
    }

    /// Takes the faults of neighbors since the last call.
    pub fn take_faults(&mut self) -> Vec<(MemberId, Fault)> {
        std::mem::take(&mut self.faults)
    }

    /// Sends each neighbor the requests that fit into its window.
    fn ask(&mut self, now: Duration) {
        for (member, peer) in &mut self.peers {
            while let Some(batch) = peer.next_batch(&self.wants, now) {
                let Some(job) = self.jobs.get(&batch.namespace) else { break };
                self.out.push((
                    *member,
                    Message::Request(Request {
                        namespace: batch.namespace,
                        number: job.number,
                        priority: batch.priority,
                        chunks: batch.chunks,
                    }),
                ));
            }
        }
    }

    /// Takes in a chunk with this hash. A wanted chunk is accepted from any neighbor.
    pub fn handle_chunk(&mut self, from: MemberId, hash: &Hash, now: Duration) -> Arrival {
        let peer = self.peers.get_mut(&from);
        let was_asked = peer.is_some_and(|it| it.handle_chunk(hash, now));
        let Some((namespaces, assigned)) = self.wants.remove(hash) else {
            return if was_asked {
                Arrival::Unwanted
            } else {
                self.handle_unasked(from, hash, now)
            };
        };
        if let Some(other) = assigned.filter(|it| *it != from)
            && let Some(peer) = self.peers.get_mut(&other)
            && peer.cancel(hash)
        {
            self.cancel(other, &[*hash]);
        }
        let mut waiting = Vec::new();
        for it in self.waiting.remove(hash).unwrap_or_default() {
            if let Some(peer) = self.peers.get_mut(&it.who) {
                peer.waiting = peer.waiting.saturating_sub(1);
            }
            waiting.push((it.who, it.priority));
        }
        self.ask(now);
        Arrival::Wanted { namespaces, waiting }
    }

    fn handle_unasked(&mut self, from: MemberId, hash: &Hash, now: Duration) -> Arrival {
        let Some(peer) = self.peers.get_mut(&from) else { return Arrival::Flooded };
        let Some(count) = peer.count_unasked(hash) else { return Arrival::Unwanted };
        if UNASKED_SHUNNED <= count {
            self.shun(from, Fault::Unasked, now);
        }
        if UNASKED_MAX < count { Arrival::Flooded } else { Arrival::Unwanted }
    }

    /// Takes in that a neighbor lacks chunks. Returns the namespaces that wanted them from it.
    pub fn handle_gone(
        &mut self,
        from: MemberId,
        hashes: &[Hash],
        now: Duration,
    ) -> BTreeSet<Namespace> {
        let mut asked = BTreeSet::new();
        for hash in hashes {
            let Some(peer) = self.peers.get_mut(&from) else { break };
            peer.handle_gone(hash, now);
            if self.wants.refuse(hash, from) {
                let namespaces = self.wants.get(hash).into_iter().flat_map(|it| &it.namespaces);
                asked.extend(namespaces.cloned());
                self.assign(*hash);
            }
        }
        self.ask(now);
        asked
    }

    /// Takes in a request for a chunk that is not here. Returns whether the neighbor may wait for
    /// it; if not, answer that it is gone. `is_expected`: this member will fetch that version.
    pub fn wait(
        &mut self,
        who: MemberId,
        hash: Hash,
        priority: u8,
        of: (&Namespace, Number),
        is_expected: bool,
        now: Duration,
    ) -> bool {
        let (namespace, number) = of;
        let is_coming = is_expected || self.wants.get(&hash).is_some();
        // Otherwise both would wait: in a flood, each may have chosen the route through the other.
        // A neighbor that is still the best source here has to choose another itself.
        if self.wants.assigned(&hash) == Some(who) && !self.is_first(who, namespace) {
            self.wants.avoid(&hash, who);
            self.improve(vec![hash]);
            self.ask(now);
        }
        let Some(peer) = self.peers.get_mut(&who).filter(|_| is_coming) else { return false };
        let all = self.waiting.entry(hash).or_default();
        if all.iter().any(|it| it.who == who) {
            return true;
        }
        if WAITING_MAX <= peer.waiting {
            if all.is_empty() {
                self.waiting.remove(&hash);
            }
            return false;
        }
        peer.waiting += 1;
        all.push(Waiting { who, priority, namespace: namespace.clone(), number });
        true
    }

    /// Takes in that a neighbor does not need these chunks any more.
    pub fn handle_cancel(&mut self, from: MemberId, hashes: &[Hash]) {
        for hash in hashes {
            if let Some(all) = self.waiting.get_mut(hash) {
                all.retain(|it| it.who != from);
                if all.is_empty() {
                    self.waiting.remove(hash);
                }
            }
        }
        self.count_waiting();
    }

    /// Takes out the neighbors that wait for chunks of a namespace up to this version, because no
    /// more of them will come: look the chunks up once more, and answer that the others are gone.
    pub fn take_waiting(
        &mut self,
        namespace: &Namespace,
        upto: Number,
    ) -> Vec<(MemberId, Hash, u8)> {
        let mut taken = Vec::new();
        self.waiting.retain(|hash, all| {
            all.retain(|it| {
                let is_over = it.namespace == *namespace && it.number <= upto;
                if is_over {
                    taken.push((it.who, *hash, it.priority));
                }
                !is_over
            });
            !all.is_empty()
        });
        self.count_waiting();
        taken
    }

    fn count_waiting(&mut self) {
        let mut counts: BTreeMap<MemberId, usize> = BTreeMap::new();
        for it in self.waiting.values().flatten() {
            *counts.entry(it.who).or_default() += 1;
        }
        for (member, peer) in &mut self.peers {
            peer.waiting = counts.get(member).copied().unwrap_or_default();
        }
    }
}
