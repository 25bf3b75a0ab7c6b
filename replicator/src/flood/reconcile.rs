//! Finds what flooding lost: two neighbors compare what they know, when their link comes up and now and then.
//!
//! Source: anti-entropy, as TR §8 cites it of Clearinghouse (Demers et al. 1987).
//!
//! One says a digest of all it knows of a group; if the other's differs, it says all that it knows, asks for the
//! same in return, and each announces what the other lacks.
//!
//! Sans-I/O.

use super::Flood;
use crate::id::{GroupId, MemberId};
use crate::message::{Known, Message};
use crate::version::Namespace;

impl Flood {
    /// What is known of a group's namespaces, in order.
    pub fn known(&self, group: GroupId) -> Vec<Known> {
        let writers = self.groups.get(&group).into_iter().flat_map(|it| it.writers.keys());
        writers
            .filter_map(|namespace| {
                let space = self.spaces.get(namespace)?;
                let newest = space.newest.as_ref()?;
                Some(Known {
                    namespace: namespace.clone(),
                    number: newest.number,
                    root: newest.root.half(),
                    contradicted: space.contradiction.as_ref().map(|it| it.0.number),
                })
            })
            .collect()
    }

    fn digest(&self, group: GroupId) -> [u8; 16] {
        let known = Message::Versions { group, asks: false, known: self.known(group) };
        let mut digest = [0; 16];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&known.to_bytes());
        hasher.finalize_xof().fill(&mut digest);
        digest
    }

    /// Compares with a neighbor: in all groups that one shares with it.
    pub fn compare(&mut self, with: MemberId) {
        let shared = self.groups.iter().filter(|(_, it)| it.place(with).is_some());
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

    /// Takes in what a neighbor knows, and says what it lacks.
    pub fn handle_versions(
        &mut self,
        from: MemberId,
        group: GroupId,
        asks: bool,
        theirs: &[Known],
    ) {
        if !self.shares(from, group) {
            return;
        }
        let mine = self.known(group);
        for known in &mine {
            let at = theirs.binary_search_by(|it| it.namespace.cmp(&known.namespace));
            let theirs = at.ok().and_then(|at| theirs.get(at));
            let lacks = |it: &Known| {
                it.number < known.number || it.number == known.number && it.root != known.root
            };
            if theirs.is_none_or(lacks) {
                self.tell(from, group, &known.namespace);
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
        self.groups.get(&group).is_some_and(|it| it.place(with).is_some())
    }

    /// The namespaces of all groups, in order.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut all: Vec<Namespace> =
            self.groups.values().flat_map(|it| it.writers.keys().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
