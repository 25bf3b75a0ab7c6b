//! Sources of a version: the neighbors that have it or will get it.
//!
//! Sans-I/O.

use std::time::Duration;

use super::Replica;
use crate::fetch::{Fault, Sources};
use crate::id::MemberId;
use crate::version::{Hash, Namespace, Number};

impl Replica {
    pub(super) fn set_sources(&mut self, namespace: &Namespace, now: Duration) {
        if let Some(number) = self.progress(namespace).map(|it| it.version.number) {
            let sources = self.sources(namespace, number);
            self.fetch.set_sources(namespace, sources, now);
        }
    }

    /// Returns the sources of a version. Sure are the neighbors toward its entry into a group, and
    /// those that hold it. If there are none, linked members of its groups that hold it are sure,
    /// until the topology has a route. Meanwhile a part of a group that was cut off may fetch a
    /// chunk more than once. That lasts some seconds; if the writer is silent and not in the
    /// topology, it lasts as long as such links.
    pub(super) fn sources(&self, namespace: &Namespace, number: Number) -> Sources {
        let ways = self.flood.ways(namespace);
        let holds = |it: &MemberId| self.held_by(*it, namespace) >= Some(number);
        let all = self.flood.sources(namespace).into_iter();
        let (mut sure, possible): (Vec<_>, Vec<_>) =
            all.partition(|it| ways.contains(it) || holds(it));
        if let Some((_, others)) = sure.split_first_mut() {
            others.sort_by_key(|it| !holds(it));
        }
        // Parts of the topology may just have met again, so that no neighbor has any chunk.
        if sure.is_empty() {
            let serves = |it: &MemberId| self.flood.serves(*it, namespace) && holds(it);
            sure = self.up.keys().copied().filter(serves).collect();
        }
        Sources { sure, possible }
    }

    /// Takes in that a neighbor holds a version.
    pub(super) fn handle_held(
        &mut self,
        from: MemberId,
        namespace: &Namespace,
        number: Number,
        now: Duration,
    ) {
        let Some(held) = self.up.get_mut(&from).filter(|_| self.flood.is_listed(namespace)) else {
            return;
        };
        let before = held.get(namespace).copied();
        if Some(number) <= before {
            return;
        }
        held.insert(namespace.clone(), number);
        self.set_sources(namespace, now);
        let fetching = self.progress(namespace).map(|it| it.version.number);
        if fetching.is_some_and(|it| before < Some(it) && it <= number) {
            self.fetch.handle_held(from, namespace, now);
        }
        self.space(namespace).handle_held(number);
    }

    /// Takes in that a neighbor has none of these chunks.
    pub(super) fn handle_gone(&mut self, from: MemberId, chunks: &[Hash], now: Duration) {
        for namespace in self.fetch.handle_gone(from, chunks, now) {
            let fetching = self.progress(&namespace).map(|it| it.version.number);
            let newest = self.flood.newest(&namespace).map(|it| it.number);
            // Only the newest version counts: the neighbor may have removed an older one.
            if fetching == newest && self.held_by(from, &namespace) == fetching {
                self.fetch.shun(from, Fault::Lacks, now);
            }
        }
    }
}
