//! Of whom a chunk is asked, and who is passed over.
//!
//! A source that stalls rests for a while, and one that lies is shunned for longer; neither is excluded, because
//! nobody else may have a chunk. What such a source was asked for stays asked until there is a better one, so that
//! who merely waits itself is not asked again and again. Two that wait for each other both stay: whoever gets the
//! chunk first sends it to the other.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use super::wants::Want;
use super::{Fault, Fetch};
use crate::id::MemberId;
use crate::version::{Hash, Namespace};

/// For so long a liar is passed over the first time, and twice as long each time after.
pub(super) const SHUN: Duration = Duration::from_mins(2);
/// The longest time for which a liar is passed over, and for which it is remembered afterwards.
pub(super) const SHUN_MAX: Duration = Duration::from_hours(1);

/// How promising a source is for a chunk, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Ready,
    /// It stalled not long ago.
    Resting,
    /// It lied.
    Shunned,
    /// It waits for the chunk itself, here.
    Waiting,
}

/// A liar.
#[derive(Debug)]
pub(super) struct Shun {
    until: Duration,
    times: u32,
}

impl Fetch {
    fn standing(&self, hash: &Hash, want: &Want, source: MemberId) -> Option<Standing> {
        let peer = self.peers.get(&source)?;
        if want.refused.contains(&source) {
            return None;
        }
        let waits =
            || self.waiting.get(hash).is_some_and(|all| all.iter().any(|it| it.who == source));
        Some(if want.avoided.contains(&source) || waits() {
            Standing::Waiting
        } else if peer.is_shunned() {
            Standing::Shunned
        } else if peer.rests() {
            Standing::Resting
        } else {
            Standing::Ready
        })
    }

    /// The sources of a chunk, those of one namespace after those of the other.
    fn sources<'a>(&'a self, want: &'a Want) -> impl Iterator<Item = MemberId> + 'a {
        let jobs = want.namespaces.iter().filter_map(|it| self.jobs.get(it));
        jobs.flat_map(|it| it.sources.iter())
    }

    /// Whether it is the best source of a namespace.
    pub(super) fn is_first(&self, source: MemberId, namespace: &Namespace) -> bool {
        self.jobs.get(namespace).is_some_and(|it| it.sources.sure.first() == Some(&source))
    }

    fn best(&self, hash: &Hash) -> Option<(Standing, MemberId)> {
        let want = self.wants.get(hash)?;
        let all = self.sources(want);
        let all = all.filter_map(|source| Some((self.standing(hash, want, source)?, source)));
        all.min_by_key(|(standing, _)| *standing)
    }

    /// Finds a source for a chunk that has none.
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

    /// Asks others for those of these chunks whose source does not send, where there is a better one.
    pub(super) fn improve(&mut self, mut hashes: Vec<Hash>) {
        hashes.retain(|hash| {
            let Some(want) = self.wants.get(hash) else { return false };
            let current = want.assigned.and_then(|it| self.standing(hash, want, it));
            let best = self.best(hash).map(|it| it.0);
            want.assigned.is_none()
                || current != Some(Standing::Ready) && best == Some(Standing::Ready)
        });
        self.reassign(hashes);
    }

    /// Takes requests back, and asks whoever is the best to ask now.
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

    /// A neighbor has a version, or a later one, whole: it is worth being asked again.
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

    /// A neighbor lied: it is passed over, for longer each time. While it is, nothing more is said of it.
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

    /// Until when a neighbor is passed over because it lied.
    pub(super) fn shunned_until(&self, member: MemberId, now: Duration) -> Option<Duration> {
        self.shunned.get(&member).map(|it| it.until).filter(|it| now < *it)
    }

    /// When [`Fetch::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.peers.values().filter_map(super::Peer::timeout).min()
    }

    /// Passes over neighbors that stall, and tries those again that have rested.
    pub fn handle_timeout(&mut self, now: Duration) {
        let is_due = |it: &super::Peer| it.timeout().is_some_and(|it| it <= now);
        let due = self.peers.iter().filter(|(_, peer)| is_due(peer));
        let due: Vec<MemberId> = due.map(|(member, _)| *member).collect();
        let mut has_rested = false;
        for member in due {
            let Some(peer) = self.peers.get_mut(&member) else { continue };
            if peer.rests() {
                // Whatever has become of what it was asked for before: it is asked again.
                peer.wake(now);
                let chunks = peer.chunks();
                self.reassign(chunks);
                has_rested = true;
                continue;
            }
            peer.stall(now);
            let chunks = peer.chunks();
            self.faults.push((member, Fault::Stalls));
            // Whoever had none may have some by now.
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
