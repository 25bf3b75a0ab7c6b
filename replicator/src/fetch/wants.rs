//! The wanted chunks, by hash and by namespace.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use crate::id::MemberId;
use crate::version::{Hash, Namespace};

#[derive(Debug)]
pub(super) struct Want {
    /// Number of the chunk; smaller ones go first.
    pub order: u64,
    pub bytes: u32,
    pub priority: u8,
    /// The namespaces that want it, at least one.
    pub namespaces: Vec<Namespace>,
    /// The neighbor that is or will be asked for it.
    pub assigned: Option<MemberId>,
    /// The neighbors that do not have it.
    pub refused: Vec<MemberId>,
    /// The neighbors that were asked for it while they waited for it here.
    pub avoided: Vec<MemberId>,
}

#[derive(Debug, Default)]
pub(super) struct Wants {
    all: BTreeMap<Hash, Want>,
    by_namespace: BTreeMap<Namespace, BTreeMap<u64, Hash>>,
    orders: u64,
}

impl Wants {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, hash: &Hash) -> Option<&Want> {
        self.all.get(hash)
    }

    /// Returns the chunks of a namespace, in order.
    pub(super) fn of(&self, namespace: &Namespace) -> Vec<Hash> {
        self.by_namespace.get(namespace).into_iter().flat_map(|it| it.values().copied()).collect()
    }

    /// Returns all chunks, in order.
    pub(super) fn hashes(&self) -> Vec<Hash> {
        let mut all: Vec<(u64, Hash)> =
            self.all.iter().map(|(hash, it)| (it.order, *hash)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, hash)| hash).collect()
    }

    /// Adds a chunk. Returns whether no namespace wanted it before.
    pub(super) fn insert(
        &mut self,
        hash: Hash,
        bytes: u32,
        priority: u8,
        namespace: &Namespace,
    ) -> bool {
        let mut is_new = false;
        let want = self.all.entry(hash).or_insert_with(|| {
            is_new = true;
            self.orders += 1;
            Want {
                order: self.orders,
                bytes,
                priority,
                namespaces: Vec::new(),
                assigned: None,
                refused: Vec::new(),
                avoided: Vec::new(),
            }
        });
        if !want.namespaces.contains(namespace) {
            want.namespaces.push(namespace.clone());
            self.by_namespace.entry(namespace.clone()).or_default().insert(want.order, hash);
        }
        is_new
    }

    /// Removes a chunk. Returns its namespaces and its assigned neighbor.
    pub(super) fn remove(&mut self, hash: &Hash) -> Option<(Vec<Namespace>, Option<MemberId>)> {
        let want = self.all.remove(hash)?;
        for namespace in &want.namespaces {
            self.strike(namespace, want.order);
        }
        Some((want.namespaces, want.assigned))
    }

    /// Removes a namespace from a chunk. After the last one, removes the chunk and returns its
    /// assigned neighbor.
    pub(super) fn remove_for(
        &mut self,
        hash: &Hash,
        namespace: &Namespace,
    ) -> Option<Option<MemberId>> {
        let want = self.all.get_mut(hash)?;
        want.namespaces.retain(|it| it != namespace);
        let (order, is_last) = (want.order, want.namespaces.is_empty());
        self.strike(namespace, order);
        if is_last { self.all.remove(hash).map(|it| it.assigned) } else { None }
    }

    fn strike(&mut self, namespace: &Namespace, order: u64) {
        if let Some(all) = self.by_namespace.get_mut(namespace) {
            all.remove(&order);
            if all.is_empty() {
                self.by_namespace.remove(namespace);
            }
        }
    }

    pub(super) fn assigned(&self, hash: &Hash) -> Option<MemberId> {
        self.all.get(hash)?.assigned
    }

    pub(super) fn assign(&mut self, hash: &Hash, to: MemberId) {
        if let Some(want) = self.all.get_mut(hash) {
            want.assigned = Some(to);
        }
    }

    /// Takes a chunk from the neighbor to which it was assigned, and returns that neighbor.
    pub(super) fn unassign(&mut self, hash: &Hash) -> Option<MemberId> {
        self.all.get_mut(hash)?.assigned.take()
    }

    /// Notes that a neighbor is the last choice for a chunk.
    pub(super) fn avoid(&mut self, hash: &Hash, source: MemberId) {
        if let Some(want) = self.all.get_mut(hash)
            && !want.avoided.contains(&source)
        {
            want.avoided.push(source);
        }
    }

    /// Notes that a neighbor may have a chunk after all.
    pub(super) fn forgive(&mut self, hash: &Hash, source: MemberId) {
        if let Some(want) = self.all.get_mut(hash) {
            want.avoided.retain(|it| *it != source);
            want.refused.retain(|it| *it != source);
        }
    }

    /// Notes that all neighbors may have a chunk after all.
    pub(super) fn forgive_all(&mut self, hash: &Hash) {
        if let Some(want) = self.all.get_mut(hash) {
            want.avoided.clear();
            want.refused.clear();
        }
    }

    /// Notes that a neighbor lacks a chunk. Returns whether the chunk was assigned to it.
    pub(super) fn refuse(&mut self, hash: &Hash, by: MemberId) -> bool {
        let Some(want) = self.all.get_mut(hash) else { return false };
        if !want.refused.contains(&by) {
            want.refused.push(by);
        }
        want.assigned.take_if(|it| *it == by).is_some()
    }
}
