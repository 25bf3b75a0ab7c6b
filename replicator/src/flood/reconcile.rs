//! Reconciliation: two neighbors compare the versions that they know, when their link comes up and
//! now and then, to find announcements that a flood lost.
//!
//! Source: anti-entropy, as TR §8 cites it of Clearinghouse (Demers et al. 1987).
//!
//! One neighbor sends a digest of its list for a group. If the other's digest differs, the other
//! sends its list and asks for the first one's. Each announces the versions that the other lacks.
//!
//! Sans-I/O.

use super::Flood;
use crate::id::{GroupId, MemberId};
use crate::message::{Message, VersionSummary};
use crate::version::{Hash, Namespace};

impl Flood {
    /// Returns the newest version of each of a group's namespaces, in order.
    pub fn known(&self, group: GroupId) -> Vec<VersionSummary> {
        let writers = self.groups.get(&group).into_iter().flat_map(|it| it.writers.keys());
        writers
            .filter_map(|namespace| {
                let space = self.spaces.get(namespace)?;
                let newest = space.newest.as_ref()?;
                Some(VersionSummary {
                    namespace: namespace.clone(),
                    number: newest.number,
                    root: newest.root.first(),
                    contradicted: space.contradiction.as_ref().map(|it| it.0.number),
                })
            })
            .collect()
    }

    fn digest(&self, group: GroupId) -> [u8; 16] {
        let known = Message::Versions { group, asks: false, known: self.known(group) };
        Hash::of(&known.to_bytes()).first()
    }

    /// Begins the comparison with a neighbor, in all groups shared with it.
    pub fn compare(&mut self, with: MemberId) {
        let shared = self.groups.iter().filter(|(_, it)| it.position(with).is_some());
        let groups: Vec<GroupId> = shared.map(|(group, _)| *group).collect();
        for group in groups {
            let digest = self.digest(group);
            self.out.push((with, Message::Digest { group, digest }));
        }
    }

    /// Takes in a neighbor's digest.
    pub fn handle_digest(&mut self, from: MemberId, group: GroupId, digest: [u8; 16]) {
        if self.shares(from, group) && digest != self.digest(group) {
            let known = self.known(group);
            self.out.push((from, Message::Versions { group, asks: true, known }));
        }
    }

    /// Takes in a neighbor's list of versions, and sends the versions and evidence that it lacks.
    pub fn handle_versions(
        &mut self,
        from: MemberId,
        group: GroupId,
        asks: bool,
        theirs: &[VersionSummary],
    ) {
        if !self.shares(from, group) {
            return;
        }
        let mine = self.known(group);
        for known in &mine {
            let at = theirs.binary_search_by(|it| it.namespace.cmp(&known.namespace));
            let theirs = at.ok().and_then(|at| theirs.get(at));
            let lacks = |it: &VersionSummary| {
                it.number < known.number || it.number == known.number && it.root != known.root
            };
            if theirs.is_none_or(lacks) {
                self.announce_to(from, group, &known.namespace);
            }
            if theirs.is_none_or(|it| it.contradicted < known.contradicted) {
                self.show_evidence(from, group, &known.namespace);
            }
        }
        if asks {
            self.out.push((from, Message::Versions { group, asks: false, known: mine }));
        }
    }

    fn shares(&self, with: MemberId, group: GroupId) -> bool {
        self.groups.get(&group).is_some_and(|it| it.position(with).is_some())
    }

    /// Returns the namespaces of all groups, in order.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut all: Vec<Namespace> =
            self.groups.values().flat_map(|it| it.writers.keys().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
