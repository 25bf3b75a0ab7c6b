//! Which chunk is asked of whom, and who waits for it here.
//!
//! Each chunk that is wanted is asked of one neighbor at a time: the best source of its namespace that is up and
//! does not stall. Whoever asks here for a chunk that is still on its way waits, and is sent it as soon as its
//! hash holds (*cut-through*), so that an update is on all links of the tree at once.
//!
//! What is asked for and has not come is bounded by a window for each neighbor, and what is more urgent does not
//! wait for the window that less urgent chunks fill.
//!
//! # Differences from the paper
//!
//! mirror-d runs one transfer at a time, from one neighbor, and passes on what it has whole.
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

/// A neighbor that has sent neither [`PACE_BYTES`] nor all that it was asked for after so long is passed over.
pub const STALL: Duration = Duration::from_secs(10);
/// See [`STALL`].
pub const PACE_BYTES: u64 = 8 << 10;
/// For so long it is passed over the first time, and twice as long each time after, up to four times.
pub const REST: Duration = Duration::from_secs(30);
/// Most chunks that are wanted at once, of all namespaces.
pub const WANTED_MAX: usize = 8_192;
/// Most chunks for which one neighbor waits here.
pub const WAITING_MAX: usize = 2_048;
/// After so many chunks that were never asked of it a neighbor is passed over. What crosses with a message that takes
/// the request back does not count.
const UNASKED_SHUNNED: u32 = 3;
/// After so many the link to it is closed.
const UNASKED_MAX: u32 = 256;

/// Who may have what is wanted of a namespace, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Who has it, or will: whoever is on the way to where it comes from.
    pub sure: Vec<MemberId>,
    /// Who may come to have it. Some of these may wait for each other in a circle.
    pub hopes: Vec<MemberId>,
}

impl Sources {
    fn iter(&self) -> impl Iterator<Item = MemberId> {
        self.sure.iter().chain(&self.hopes).copied()
    }
}

/// What is wanted of a namespace, and who may have it.
#[derive(Clone, Debug)]
struct Job {
    number: Number,
    priority: u8,
    sources: Sources,
}

/// What happened to a chunk that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It is wanted for these namespaces: keep it. These neighbors wait for it: send it to them.
    Wanted {
        /// For which.
        namespaces: Vec<Namespace>,
        /// To whom it goes on, and how urgent it is to them.
        waiting: Vec<(MemberId, u8)>,
    },
    /// Nobody wants it, or not any more.
    Unwanted,
    /// The neighbor sends and sends what nobody asked for: close the link.
    Flooded,
}

/// What a neighbor does that it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// It may be slow, or wait itself, or mean never to send.
    #[error("it does not send what it was asked for")]
    Stalls,
    /// An honest member does not: a chunk that was changed is none that was asked for.
    #[error("it sends chunks that it was not asked for")]
    Unasked,
    /// Its disk is broken, or it lies.
    #[error("it lacks a chunk of a version that it says it holds")]
    Lacks,
}

/// The chunks that are on their way to here, and through here.
#[derive(Debug, Default)]
pub struct Fetch {
    jobs: BTreeMap<Namespace, Job>,
    wants: Wants,
    peers: BTreeMap<MemberId, Peer>,
    /// Who waits for what.
    waiting: BTreeMap<Hash, Vec<Waiting>>,
    out: Vec<(MemberId, Message)>,
    /// Of which all sources have refused a chunk.
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
    /// Takes what is to be sent now.
    pub fn take_messages(&mut self) -> Vec<(MemberId, Message)> {
        std::mem::take(&mut self.out)
    }

    /// A neighbor can be asked from now on, within this window.
    pub fn handle_up(&mut self, member: MemberId, window: Window, now: Duration) {
        let blind: Vec<(Namespace, Vec<MemberId>)> = self
            .jobs
            .iter()
            .filter(|(_, it)| it.sources.sure.contains(&member) && self.is_blind(&it.sources))
            .map(|(namespace, it)| (namespace.clone(), it.sources.hopes.clone()))
            .collect();
        let mut peer = Peer::new(window, now);
        if let Some(until) = self.shunned_until(member, now) {
            peer.shun(until);
        }
        self.peers.insert(member, peer);
        for (namespace, hopes) in blind {
            self.choose_again(&namespace, &hopes);
        }
        let all = self.wants.hashes();
        for hash in &all {
            self.wants.forgive(hash, member);
        }
        self.improve(all);
        self.ask(now);
    }

    /// Of a neighbor more or less may be on its way from now on.
    pub fn set_window(&mut self, member: MemberId, window: Window) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.set_window(window);
        }
    }

    /// A neighbor cannot be asked any more, nor does it wait for anything.
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

    /// Begins to fetch a version from these; what was wanted of an older one is wanted no more.
    pub fn begin(&mut self, namespace: &Namespace, number: Number, sources: Sources, priority: u8) {
        self.end(namespace);
        let priority = priority.min(PRIORITIES - 1);
        self.jobs.insert(namespace.clone(), Job { number, priority, sources });
    }

    /// There are other sources, or they are in another order: what is not asked for yet goes by them. So does what was
    /// asked of those that only may come to have it, as nobody was there who has it.
    pub fn set_sources(&mut self, namespace: &Namespace, sources: Sources, now: Duration) {
        let Some(job) = self.jobs.get_mut(namespace).filter(|it| it.sources != sources) else {
            return;
        };
        let before = std::mem::replace(&mut job.sources, sources.clone());
        let mut hopes = before.hopes.clone();
        hopes.retain(|it| !sources.sure.contains(it));
        if !self.is_blind(&before) || self.is_blind(&sources) {
            hopes.clear();
        }
        self.choose_again(namespace, &hopes);
        self.ask(now);
    }

    /// Whether nobody can be asked who has it.
    fn is_blind(&self, sources: &Sources) -> bool {
        let mut peers = sources.sure.iter().filter_map(|it| self.peers.get(it));
        peers.all(|it| it.rests() || it.is_shunned())
    }

    /// What is not asked for yet, or asked of one of these, is asked of whoever is the best to ask now.
    fn choose_again(&mut self, namespace: &Namespace, hopes: &[MemberId]) {
        let mut all = self.wants.of(namespace);
        all.retain(|hash| {
            let assigned = self.wants.assigned(hash);
            let asked =
                assigned.filter(|it| self.peers.get(it).is_some_and(|it| it.is_asked(hash)));
            asked.is_none_or(|it| hopes.contains(&it))
        });
        self.reassign(all);
        self.improve(self.wants.of(namespace));
    }

    /// How urgent the chunks of a namespace are from now on.
    pub fn set_priority(&mut self, namespace: &Namespace, priority: u8) {
        if let Some(job) = self.jobs.get_mut(namespace) {
            job.priority = priority.min(PRIORITIES - 1);
        }
    }

    /// Nothing more is wanted of a namespace.
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

    /// How many more chunks may be wanted now.
    pub fn room(&self) -> usize {
        WANTED_MAX.saturating_sub(self.wants.len())
    }

    /// Chunks of a namespace, with their lengths in bytes, are needed next, in this order. Beyond [`Fetch::room`]
    /// they are ignored: say them again when some have come.
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

    /// Whether all that was wanted of a namespace has come.
    pub fn is_done(&self, namespace: &Namespace) -> bool {
        self.wants.is_empty(namespace)
    }

    /// Takes the namespaces of which all sources that are up refused a chunk since this was asked last: nobody has
    /// those versions any more.
    pub fn take_missing(&mut self) -> BTreeSet<Namespace> {
        std::mem::take(&mut self.missing)
    }

    /// Takes what neighbors did that they should not since this was asked last.
    pub fn take_faults(&mut self) -> Vec<(MemberId, Fault)> {
        std::mem::take(&mut self.faults)
    }

    /// Asks each neighbor for as much as its window lets it.
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

    /// A chunk came, and its hash is this: one that fits what was asked for is taken from whoever sends it.
    pub fn handle_chunk(&mut self, from: MemberId, hash: &Hash, now: Duration) -> Came {
        let peer = self.peers.get_mut(&from);
        let was_asked = peer.is_some_and(|it| it.handle_chunk(hash, now));
        let Some((namespaces, assigned)) = self.wants.remove(hash) else {
            return if was_asked { Came::Unwanted } else { self.handle_unasked(from, hash, now) };
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
                peer.waits_no_more();
            }
            waiting.push((it.who, it.priority));
        }
        self.ask(now);
        Came::Wanted { namespaces, waiting }
    }

    fn handle_unasked(&mut self, from: MemberId, hash: &Hash, now: Duration) -> Came {
        let Some(peer) = self.peers.get_mut(&from) else { return Came::Flooded };
        let Some(count) = peer.count_unasked(hash) else { return Came::Unwanted };
        if UNASKED_SHUNNED <= count {
            self.shun(from, Fault::Unasked, now);
        }
        if UNASKED_MAX < count { Came::Flooded } else { Came::Unwanted }
    }

    /// A neighbor has none of these. Returns the namespaces for which it was asked for them.
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

    /// Somebody asks for a chunk that is not here. Returns whether it may wait for it; otherwise it is to be told
    /// that the chunk is gone. `is_expected`: whether that version will be fetched from here on.
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
        // Both would wait for the other: while news spread, each may have taken the other's way. If it is still the
        // best way from here, it is not from there.
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
        if !peer.may_wait() {
            if all.is_empty() {
                self.waiting.remove(&hash);
            }
            return false;
        }
        all.push(Waiting { who, priority, namespace: namespace.clone(), number });
        true
    }

    /// Somebody needs these no more.
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

    /// Takes out all who wait for chunks of a namespace up to this version, since nothing more will come of it:
    /// look whether the chunks are here after all, and otherwise say that they are gone.
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
            peer.set_waiting(counts.get(member).copied().unwrap_or_default());
        }
    }
}
