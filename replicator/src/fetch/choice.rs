//! The choice of a source for each chunk, and the sources that are passed over.
//!
//! A source that stalls rests for a while, and one that lies is shunned for longer. Neither is
//! excluded, because it may be the only one with a chunk. Requests to such a source stay until
//! there is a better source, so that a source that waits itself is not asked again and again. If
//! two wait for each other, both keep waiting: the first that gets the chunk sends it to the other.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use super::wants::Want;
use super::{Fault, Fetch};
use crate::id::MemberId;
use crate::version::{Hash, Namespace};

/// Time for which a liar is shunned; it doubles each time, up to [`SHUN_MAX`].
pub(super) const SHUN: Duration = Duration::from_mins(2);
/// The longest time for which a liar is shunned. It is remembered for this time afterwards.
pub(super) const SHUN_MAX: Duration = Duration::from_hours(1);

/// The rank of a source for a chunk, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SourceRank {
    Ready,
    /// It stalled a short time ago.
    Resting,
    /// It lied.
    Shunned,
    /// It waits for the chunk from this member.
    Waiting,
}

/// The shunning of a liar.
#[derive(Debug)]
pub(super) struct Shun {
    until: Duration,
    times: u32,
}

impl Fetch {
    fn rank(&self, hash: &Hash, want: &Want, source: MemberId) -> Option<SourceRank> {
        let peer = self.peers.get(&source)?;
        if want.refused.contains(&source) {
            return None;
        }
        let waits =
            || self.waiting.get(hash).is_some_and(|all| all.iter().any(|it| it.who == source));
        Some(if want.avoided.contains(&source) || waits() {
            SourceRank::Waiting
        } else if peer.is_shunned() {
            SourceRank::Shunned
        } else if peer.rests() {
            SourceRank::Resting
        } else {
            SourceRank::Ready
        })
    }

    /// Returns the sources of a chunk, namespace by namespace.
    fn sources<'a>(&'a self, want: &'a Want) -> impl Iterator<Item = MemberId> + 'a {
        let jobs = want.namespaces.iter().filter_map(|it| self.jobs.get(it));
        jobs.flat_map(|it| it.sources.iter())
    }

    /// Returns whether a member is the best source of a namespace.
    pub(super) fn is_first(&self, source: MemberId, namespace: &Namespace) -> bool {
        self.jobs.get(namespace).is_some_and(|it| it.sources.sure.first() == Some(&source))
    }

    fn best(&self, hash: &Hash) -> Option<(SourceRank, MemberId)> {
        let want = self.wants.get(hash)?;
        let all = self.sources(want);
        let all = all.filter_map(|source| Some((self.rank(hash, want, source)?, source)));
        all.min_by_key(|(rank, _)| *rank)
    }

    /// Assigns a source to a chunk that has none.
    pub(super) fn assign(&mut self, hash: Hash) {
        let best = self.best(&hash);
        let Some(want) = self.wants.get(&hash) else { return };
        match best {
            Some((_, source)) => {
                if let Some(peer) = self.peers.get_mut(&source) {
                    peer.queue(hash, want);
                    self.wants.assign(&hash, source);
                }
            }
            None if self.sources(want).any(|it| self.peers.contains_key(&it)) => {
                let namespaces = want.namespaces.clone();
                self.missing.extend(namespaces);
            }
            None => {}
        }
    }

    /// Assigns a source to chunks without one, or whose source is not ready while another is.
    pub(super) fn improve(&mut self, mut hashes: Vec<Hash>) {
        hashes.retain(|hash| {
            let Some(want) = self.wants.get(hash) else { return false };
            let current = want.assigned.and_then(|it| self.rank(hash, want, it));
            let best = self.best(hash).map(|it| it.0);
            want.assigned.is_none()
                || current != Some(SourceRank::Ready) && best == Some(SourceRank::Ready)
        });
        self.reassign(hashes);
    }

    /// Cancels the requests for chunks, and assigns the best sources anew.
    pub(super) fn reassign(&mut self, hashes: Vec<Hash>) {
        let mut cancels: BTreeMap<MemberId, Vec<Hash>> = BTreeMap::new();
        for hash in hashes {
            if let Some(member) = self.wants.unassign(&hash)
                && self.peers.get_mut(&member).is_some_and(|it| it.cancel(&hash))
            {
                cancels.entry(member).or_default().push(hash);
            }
            self.assign(hash);
        }
        for (member, hashes) in cancels {
            self.cancel(member, &hashes);
        }
    }

    /// Takes in that a neighbor now holds the fetched version or a later one: asks it again.
    pub fn handle_held(&mut self, member: MemberId, namespace: &Namespace, now: Duration) {
        if let Some(peer) = self.peers.get_mut(&member)
            && !peer.is_shunned()
        {
            peer.wake(now);
        }
        let all = self.wants.of(namespace);
        for hash in &all {
            self.wants.forgive(hash, member);
        }
        self.improve(all);
        self.ask(now);
    }

    /// Shuns a neighbor that lied, for longer each time. Its faults meanwhile are not reported.
    pub fn shun(&mut self, member: MemberId, why: Fault, now: Duration) {
        if self.shunned_until(member, now).is_some() {
            return;
        }
        self.shunned.retain(|_, it| now < it.until + SHUN_MAX);
        let shun = self.shunned.entry(member).or_insert(Shun { until: now, times: 0 });
        shun.until = now + SHUN.saturating_mul(2_u32.saturating_pow(shun.times)).min(SHUN_MAX);
        shun.times = shun.times.saturating_add(1);
        let until = shun.until;
        self.faults.push((member, why));
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.shun(until);
            let chunks = peer.chunks();
            self.improve(chunks);
            self.ask(now);
        }
    }

    /// Returns the time until which a neighbor is shunned.
    pub(super) fn shunned_until(&self, member: MemberId, now: Duration) -> Option<Duration> {
        self.shunned.get(&member).map(|it| it.until).filter(|it| now < *it)
    }

    /// Returns the time for the next call of [`Fetch::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.peers.values().filter_map(super::Peer::timeout).min()
    }

    /// Has stalled neighbors rest, and asks neighbors again whose rest has ended.
    pub fn handle_timeout(&mut self, now: Duration) {
        let is_due = |it: &super::Peer| it.timeout().is_some_and(|it| it <= now);
        let due = self.peers.iter().filter(|(_, peer)| is_due(peer));
        let due: Vec<MemberId> = due.map(|(member, _)| *member).collect();
        let mut has_rested = false;
        for member in due {
            let Some(peer) = self.peers.get_mut(&member) else { continue };
            if peer.rests() {
                // Its old requests may be lost: they are sent again.
                peer.wake(now);
                let chunks = peer.chunks();
                self.reassign(chunks);
                has_rested = true;
                continue;
            }
            peer.stall(now);
            let chunks = peer.chunks();
            self.faults.push((member, Fault::Stalls));
            // Neighbors that refused may have the chunks by now.
            for hash in &chunks {
                self.wants.forgive_all(hash);
            }
            self.improve(chunks);
        }
        if has_rested {
            self.improve(self.wants.hashes());
        }
        self.ask(now);
    }
}
