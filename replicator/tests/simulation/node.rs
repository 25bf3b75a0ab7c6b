//! A member of the simulated world: the real state machine, and a disk that may lose writes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

use net::identity::Identity;
use replicator::fetch::{Fault, Window};
use replicator::flood::Neighborhood;
use replicator::id::{GroupId, MemberId};
use replicator::message::{Message, Request};
use replicator::replica::{Action, Failure, Notice, Replica};
use replicator::topology::Link;
use replicator::version::{Hash, Kind, Name, Namespace, Number, Version};

/// Bytes of a chunk's line in the root: hash and length.
const LINE_BYTES: usize = 36;
/// Default number of versions whose chunks a member keeps.
const KEPT: usize = 2;

/// The chunks on all members' disks, each stored once.
pub(crate) type Pool = Rc<RefCell<HashMap<Hash, Rc<[u8]>>>>;

/// A member's disk, which survives a crash.
#[derive(Default)]
pub(crate) struct Disk {
    known: BTreeMap<Namespace, Version>,
    held: BTreeMap<Namespace, Version>,
    kept: BTreeMap<Namespace, Vec<Version>>,
    chunks: BTreeMap<Hash, Rc<[u8]>>,
    /// Chunks that a crash may lose.
    unsynced: BTreeSet<Hash>,
}

pub(crate) struct Node {
    pub identity: Identity,
    pub id: MemberId,
    pub replica: Replica,
    pub disk: Disk,
    pub pool: Pool,
    groups: BTreeMap<GroupId, Neighborhood>,
    walking: BTreeMap<Namespace, Version>,
    switching: BTreeMap<Namespace, Version>,
    pub sent: Vec<(MemberId, Message)>,
    /// Versions to switch to, some time later.
    pub switches: Vec<Version>,
    /// How often each chunk has come.
    pub came: BTreeMap<Hash, usize>,
    pub contradictions: BTreeSet<Namespace>,
    /// Faults of others that it has reported.
    pub faults: BTreeSet<(MemberId, Fault)>,
    pub is_up: bool,
    /// Number of versions whose chunks it keeps.
    pub versions_kept: usize,
    pub is_full: bool,
    /// The length that it assumes for wanted chunks, in bytes.
    pub length: u32,
}

impl Node {
    pub(crate) fn new(number: u64) -> Self {
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&number.to_le_bytes());
        let identity = Identity::of(&secret).unwrap();
        let id = MemberId::of(&identity.public());
        Self {
            replica: Replica::new(id),
            identity,
            id,
            disk: Disk::default(),
            pool: Pool::default(),
            groups: BTreeMap::new(),
            walking: BTreeMap::new(),
            switching: BTreeMap::new(),
            sent: Vec::new(),
            switches: Vec::new(),
            came: BTreeMap::new(),
            contradictions: BTreeSet::new(),
            faults: BTreeSet::new(),
            is_up: true,
            versions_kept: KEPT,
            is_full: false,
            length: 64,
        }
    }

    pub(crate) fn set_group(&mut self, group: GroupId, neighborhood: Neighborhood, now: Duration) {
        self.groups.insert(group, neighborhood.clone());
        self.replica.set_group(group, neighborhood, now);
        self.act(now);
    }

    pub(crate) fn neighbors(&self) -> BTreeSet<MemberId> {
        self.groups.values().flat_map(|it| it.neighbors(self.id)).collect()
    }

    /// Returns its neighbors in the trees of its groups.
    pub(crate) fn tree(&self) -> Vec<MemberId> {
        let ends = |neighborhood: &Neighborhood| {
            let me = neighborhood.members.binary_search(&self.id).unwrap();
            let other = |it: &Link| match (it.a() == me, it.b() == me) {
                (true, _) => Some(neighborhood.members[it.b()]),
                (_, true) => Some(neighborhood.members[it.a()]),
                _ => None,
            };
            neighborhood.topology.tree().iter().filter_map(other).collect::<Vec<_>>()
        };
        self.groups.values().flat_map(ends).collect()
    }

    pub(crate) fn held(&self, namespace: &Namespace) -> Option<&Version> {
        self.disk.held.get(namespace)
    }

    /// Loses unsynced chunks and all memory.
    pub(crate) fn crash(&mut self, dice: &mut fastrand::Rng) {
        self.is_up = false;
        for hash in std::mem::take(&mut self.disk.unsynced) {
            if dice.bool() {
                self.disk.chunks.remove(&hash);
            }
        }
        self.walking.clear();
        self.switching.clear();
        self.switches.clear();
        self.sent.clear();
        self.replica = Replica::new(self.id);
    }

    pub(crate) fn restart(&mut self, now: Duration) {
        self.is_up = true;
        for (group, neighborhood) in &self.groups {
            self.replica.set_group(*group, neighborhood.clone(), now);
        }
        for version in self.disk.known.values() {
            self.replica.restore(version, false);
        }
        for version in self.disk.held.values() {
            self.replica.restore(version, true);
        }
        self.replica.handle_timeout(now);
        self.act(now);
    }

    fn put(&mut self, hash: Hash, bytes: &[u8]) {
        let shared = self.pool.borrow_mut().entry(hash).or_insert_with(|| bytes.into()).clone();
        self.disk.chunks.insert(hash, shared);
    }

    /// Makes a version of these chunks, without publishing it.
    pub(crate) fn make(&mut self, name: &Name, number: Number, chunks: &[Vec<u8>]) -> Version {
        let mut root = Vec::new();
        for chunk in chunks {
            let hash = Hash::of(chunk);
            root.extend(hash.0);
            root.extend(u32::try_from(chunk.len()).unwrap().to_le_bytes());
            self.put(hash, chunk);
        }
        root.push(0);
        let hash = Hash::of(&root);
        self.put(hash, &root);
        let bytes = chunks.iter().map(|it| it.len() as u64).sum();
        Version::sign(&self.identity, name.clone(), Kind::Tree, number, bytes, hash)
    }

    pub(crate) fn publish(&mut self, version: &Version, now: Duration) {
        self.replica.publish(version, now).unwrap();
        self.see(version);
        self.act(now);
    }

    /// Makes a version visible to readers, and removes the chunks of old versions.
    fn see(&mut self, version: &Version) {
        let namespace = &version.namespace;
        self.disk.unsynced.clear();
        self.disk.held.insert(namespace.clone(), version.clone());
        let kept = self.disk.kept.entry(namespace.clone()).or_default();
        kept.push(version.clone());
        if self.versions_kept < kept.len() {
            kept.remove(0);
            let roots: Vec<Hash> = self.disk.kept.values().flatten().map(|it| it.root).collect();
            let mut stay: BTreeSet<Hash> = roots.iter().copied().collect();
            for root in roots {
                stay.extend(self.disk.chunks.get(&root).map(|it| lines(it)).unwrap_or_default());
            }
            // Chunks of versions being fetched stay too.
            for it in self.walking.values().chain(self.switching.values()) {
                stay.insert(it.root);
                stay.extend(self.disk.chunks.get(&it.root).map(|it| lines(it)).unwrap_or_default());
            }
            self.disk.chunks.retain(|hash, _| stay.contains(hash));
        }
    }

    pub(crate) fn finish_switch(&mut self, version: &Version, now: Duration) {
        let before = self.disk.held.get(&version.namespace);
        assert!(before.is_none_or(|it| it.number < version.number), "held versions regress");
        let root = self.disk.chunks.get(&version.root).expect("a root that is here");
        for hash in lines(root) {
            let chunk = self.disk.chunks.get(&hash).expect("all chunks are here");
            assert_eq!(Hash::of(chunk), hash, "every chunk has its hash");
        }
        self.switching.remove(&version.namespace);
        self.see(version);
        self.replica.handle_switched(&version.namespace, version.number, now);
        self.act(now);
    }

    pub(crate) fn handle_up(&mut self, member: MemberId, window: Window, now: Duration) {
        self.replica.handle_up(member, window, now);
        self.act(now);
    }

    pub(crate) fn handle_down(&mut self, member: MemberId, now: Duration) {
        self.replica.handle_down(member, now);
        self.act(now);
    }

    pub(crate) fn handle_message(&mut self, from: MemberId, message: Message, now: Duration) {
        if let Message::Chunk(bytes) = &message {
            *self.came.entry(Hash::of(bytes)).or_default() += 1;
        }
        self.replica.handle_message(from, message, now);
        self.act(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        self.replica.handle_timeout(now);
        self.act(now);
    }

    fn act(&mut self, now: Duration) {
        while let Some(action) = self.replica.poll_action() {
            match action {
                Action::Send { to, message } => self.sent.push((to, message)),
                Action::Lookup { to, request } => self.look_up(to, &request, now),
                Action::Unsend { .. } | Action::Close { .. } => {}
                Action::Keep { hash, bytes, namespaces, waiting } => {
                    for (to, _) in waiting {
                        self.sent.push((to, Message::Chunk(bytes.clone())));
                    }
                    if self.is_full {
                        self.fail(&namespaces, now);
                        continue;
                    }
                    self.put(hash, &bytes);
                    self.disk.unsynced.insert(hash);
                    for namespace in namespaces {
                        self.walk(&namespace, now);
                    }
                }
                Action::Remember(version) => {
                    self.disk.known.insert(version.namespace.clone(), version);
                }
                Action::Begin(version) => {
                    let namespace = version.namespace.clone();
                    self.walking.insert(namespace.clone(), version);
                    self.walk(&namespace, now);
                }
                Action::Stop(namespace) => {
                    self.walking.remove(&namespace);
                    self.switching.remove(&namespace);
                }
                Action::Switch(version) => self.switches.push(version),
                Action::Notice(Notice::Contradiction(namespace)) => {
                    self.contradictions.insert(namespace);
                }
                Action::Notice(Notice::Faulty(member, fault)) => {
                    self.faults.insert((member, fault));
                }
                Action::Notice(_) => {}
            }
        }
    }

    fn fail(&mut self, namespaces: &[Namespace], now: Duration) {
        for namespace in namespaces {
            if let Some(version) = self.walking.remove(namespace) {
                self.replica.handle_failed(namespace, version.number, Failure::Disk, now);
            }
        }
    }

    fn look_up(&mut self, to: MemberId, request: &Request, now: Duration) {
        let mut others = Vec::new();
        for hash in &request.chunks {
            match self.disk.chunks.get(hash) {
                Some(bytes) => self.sent.push((to, Message::Chunk(bytes.to_vec()))),
                None => others.push(*hash),
            }
        }
        if !others.is_empty() {
            self.replica.handle_not_here(to, request, &others, now);
        }
    }

    /// Requests the missing chunks of a version.
    fn walk(&mut self, namespace: &Namespace, now: Duration) {
        let Some(version) = self.walking.get(namespace).cloned() else { return };
        let Some(root) = self.disk.chunks.get(&version.root) else {
            self.replica.want(namespace, &[(version.root, self.length)], now);
            return;
        };
        if root.len() % LINE_BYTES != 1 {
            self.walking.remove(namespace);
            self.replica.handle_failed(namespace, version.number, Failure::Content, now);
            return;
        }
        let lacking: Vec<(Hash, u32)> = lines(root)
            .into_iter()
            .filter(|it| !self.disk.chunks.contains_key(it))
            .map(|it| (it, self.length))
            .collect();
        if lacking.is_empty() {
            // Its chunks are kept until readers see them.
            self.switching.insert(namespace.clone(), version.clone());
            self.walking.remove(namespace);
            self.replica.handle_whole(namespace, version.number, now);
        } else {
            self.replica.want(namespace, &lacking, now);
        }
    }
}

/// Returns the chunks that a root names.
fn lines(root: &[u8]) -> Vec<Hash> {
    let hashes = root.chunks_exact(LINE_BYTES).map(|line| *line.first_chunk::<32>().unwrap());
    hashes.map(Hash).collect()
}
