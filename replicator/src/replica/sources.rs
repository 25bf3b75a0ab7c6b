//! Who has a version, and who says so and has not.
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

    /// Whom to ask for a version: first whoever is on the way to where it came from, then those that hold it. Where
    /// there are none among the neighbors, whoever else of its groups there is a link to, until the topology has a
    /// way: a part of a group that was cut off asks across more than once then. That is for some seconds; where the
    /// writer is silent, and has no place in the topology, for as long as such links last.
    pub(super) fn sources(&self, namespace: &Namespace, number: Number) -> Sources {
        let ways = self.flood.ways(namespace);
        let holds = |it: &MemberId| self.held_by(*it, namespace) >= Some(number);
        let all = self.flood.sources(namespace).into_iter();
        let (mut sure, hopes): (Vec<_>, Vec<_>) =
            all.partition(|it| ways.contains(it) || holds(it));
        if let Some((_, others)) = sure.split_first_mut() {
            others.sort_by_key(|it| !holds(it));
        }
        // The topology may be in parts that have met again, and no neighbor have anything.
        if sure.is_empty() {
            let serves = |it: &MemberId| self.flood.serves(*it, namespace) && holds(it);
            sure = self.up.keys().copied().filter(serves).collect();
        }
        Sources { sure, hopes }
    }

    /// A neighbor says that it holds a version.
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

    /// A neighbor says that it has none of these chunks.
    pub(super) fn handle_gone(&mut self, from: MemberId, chunks: &[Hash], now: Duration) {
        for namespace in self.fetch.handle_gone(from, chunks, now) {
            let fetching = self.progress(&namespace).map(|it| it.version.number);
            let newest = self.flood.newest(&namespace).map(|it| it.number);
            // It may have removed a version after a later one came: of that it would have said so before.
            if fetching == newest && self.held_by(from, &namespace) == fetching {
                self.fetch.shun(from, Fault::Lacks, now);
            }
        }
    }
}
