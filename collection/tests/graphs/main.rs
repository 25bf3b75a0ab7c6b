//! Model test of deletes in graphs of brokers: whatever way they pull each other, with loops, replicas, cuts,
//! restarts and compactions, in the end each has what it can reach of what lives at its gatherer, and nothing else.
//!
//! `HARVEST_GRAPH_SEEDS` is the number of worlds (default 40); `HARVEST_GRAPH_SEED` repeats one of them.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod expiry;
mod owners;

use std::collections::{BTreeMap, BTreeSet};

use collection::{
    Batch, Change, Collection, Cursor, Epoch, GATHERER_ID, ORIGIN_PATH, ORIGIN_VERSION, Oid,
    Options, Owner, Pulled, Stamp, Version,
};
use soif::Record;
use tempfile::TempDir;

/// Number of objects of a gatherer.
const OBJECTS: usize = 6;

/// Number of pulls of each source in which the graph comes to rest, for each broker that there is.
const ROUNDS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// A gatherer or a broker.
struct Node {
    id: String,
    folder: TempDir,
    /// `None` while it is being started again.
    collection: Option<Collection>,
}

impl Node {
    fn new(id: String) -> Self {
        let mut node = Self { id, folder: tempfile::tempdir().unwrap(), collection: None };
        node.restart();
        node
    }

    fn restart(&mut self) {
        if let Some(before) = self.collection.take() {
            before.close();
        }
        let options = Options { own_id: Some(self.id.clone()), ..Options::default() };
        let (collection, _) = Collection::open(self.folder.path(), options, Stamp(1)).unwrap();
        self.collection = Some(collection);
    }

    fn collection(&self) -> &Collection {
        self.collection.as_ref().unwrap()
    }

    /// Returns the live objects, each with its content.
    fn objects(&self) -> BTreeMap<String, String> {
        let live = self.collection().scan(0).unwrap().map(Result::unwrap).filter_map(|it| {
            let Change::Update(record) = it.change else { return None };
            let oid = Oid::of(&record).unwrap();
            let is_live = self.collection().serial(&oid).unwrap() == Some(it.serial);
            is_live.then(|| (record.url.clone(), record.text("Title").unwrap().into_owned()))
        });
        live.collect()
    }
}

struct World {
    random: Random,
    /// Gatherers come first.
    nodes: Vec<Node>,
    gatherers: usize,
    /// Who pulls which source. There are two of each node: its feed, and a replica of it.
    edges: BTreeSet<(usize, usize)>,
    now: u64,
    generation: u64,
    /// Number of changes that were sent.
    sent: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        let (gatherers, brokers) = (1 + random.below(3), 1 + random.below(8));
        let nodes = (0..gatherers + brokers).map(|n| Node::new(format!("{n:016x}"))).collect();
        Self { random, nodes, gatherers, edges: BTreeSet::new(), now: 1, generation: 1, sent: 0 }
    }

    fn broker(&mut self) -> usize {
        self.gatherers + self.random.below(self.nodes.len() - self.gatherers)
    }

    /// Returns the node whose changes a source has.
    fn node_of(&self, source: usize) -> usize {
        source % self.nodes.len()
    }

    fn step(&mut self) {
        self.now += 1_000;
        match self.random.below(20) {
            0..6 => self.change(),
            6..9 => {
                let (to, from) = (self.broker(), self.random.below(2 * self.nodes.len()));
                if to != self.node_of(from) {
                    self.edges.insert((to, from));
                }
            }
            9 => {
                if let Some(edge) = self.edge() {
                    self.edges.remove(&edge);
                    let (to, from) = edge;
                    let stamp = Stamp(self.now);
                    self.nodes[to].collection().remove_source(&from.to_string(), stamp).unwrap();
                }
            }
            10 => {
                let node = self.random.below(self.nodes.len());
                self.nodes[node].restart();
            }
            11 => {
                let node = self.random.below(self.nodes.len());
                self.nodes[node].collection().compact(Stamp(self.now)).unwrap();
            }
            12 => {
                if let Some(edge) = self.edge() {
                    self.pull(edge, true);
                }
            }
            _ => {
                if let Some(edge) = self.edge() {
                    self.pull(edge, false);
                }
            }
        }
    }

    fn edge(&mut self) -> Option<(usize, usize)> {
        if self.edges.is_empty() {
            return None;
        }
        let at = self.random.below(self.edges.len());
        self.edges.iter().nth(at).copied()
    }

    /// Has a gatherer make, change, confirm or delete an object.
    fn change(&mut self) {
        let gatherer = self.random.below(self.gatherers);
        let url = format!("http://h{gatherer}/{}", self.random.below(OBJECTS));
        let node = &self.nodes[gatherer];
        let oid = Oid::new(&node.id, &url);
        let change = if self.random.below(2) == 0 {
            let mut record = Record::new("FILE", url);
            record.push(GATHERER_ID, node.id.as_str());
            record.push("Title", self.now.to_string());
            Change::Update(record)
        } else if node.collection().serial(&oid).unwrap().is_none() {
            return;
        } else if self.random.below(2) == 0 {
            Change::Refresh(oid, None)
        } else {
            Change::Delete(oid)
        };
        let batch = Batch { changes: vec![change], notes: Vec::new() };
        self.nodes[gatherer].collection().commit(batch, Stamp(self.now)).unwrap();
    }

    /// Pulls what is new, or everything as a snapshot.
    fn pull(&mut self, (to, from): (usize, usize), is_snapshot: bool) {
        let source = from.to_string();
        let known = self.nodes[to].collection().cursor(&source).unwrap();
        let (reader, node) = (self.nodes[to].collection(), &self.nodes[self.node_of(from)]);
        let feed = node.collection();
        let version = feed.version();
        let is_snapshot = is_snapshot || known.as_ref().is_none_or(|it| it.epoch != version.epoch);
        let since = if is_snapshot { 0 } else { known.unwrap().serial };
        let mut changes = Vec::new();
        for scanned in feed.scan(since).unwrap().map(Result::unwrap) {
            let is_live = |record: &Record| {
                let oid = Oid::of(record).unwrap();
                feed.serial(&oid).unwrap() == Some(scanned.serial)
            };
            let is_sent = match &scanned.change {
                Change::Update(record) => !is_snapshot || is_live(record),
                _ => !is_snapshot,
            };
            let change = match scanned.change {
                Change::Refresh(oid, None) => Change::Refresh(oid, Some(scanned.stamp)),
                other => other,
            };
            if is_sent {
                changes.push((scanned.serial, change));
            }
        }
        self.sent += changes.len();
        self.generation += 1;
        let pulled = Pulled {
            source,
            // Some nodes show whose feed they are, and no replica does.
            id: Some(Owner {
                id: node.id.clone(),
                is_shown: from < self.nodes.len() && from.is_multiple_of(2),
            }),
            epoch: version.epoch,
            changes,
            cursor: Cursor {
                epoch: version.epoch,
                serial: version.serial,
                snapshot: None,
                part: None,
            },
            end_of_snapshot: is_snapshot.then_some(self.generation),
        };
        reader.apply(pulled, Stamp(self.now)).unwrap();
    }

    /// Pulls all sources until nothing changes any more; returns the number of rounds.
    fn settle(&mut self) -> usize {
        for round in 0.. {
            let versions =
                |it: &Self| it.nodes.iter().map(|it| it.collection().version()).collect::<Vec<_>>();
            let before = versions(self);
            for edge in self.edges.clone() {
                self.now += 1;
                self.pull(edge, false);
            }
            if before == versions(self) {
                return round;
            }
            assert!(round < ROUNDS * self.nodes.len(), "it does not come to rest");
        }
        unreachable!("the rounds are bounded")
    }

    /// Returns the gatherers that a broker reaches.
    fn reached(&self, broker: usize) -> BTreeSet<usize> {
        let (mut seen, mut open) = (BTreeSet::from([broker]), vec![broker]);
        while let Some(node) = open.pop() {
            for (_, from) in self.edges.iter().filter(|it| it.0 == node) {
                let from = self.node_of(*from);
                if seen.insert(from) {
                    open.push(from);
                }
            }
        }
        seen.into_iter().filter(|it| *it < self.gatherers).collect()
    }

    fn check(&self) {
        for broker in self.gatherers..self.nodes.len() {
            let node = &self.nodes[broker];
            let reached = self.reached(broker).into_iter();
            let expected: BTreeMap<_, _> =
                reached.flat_map(|it| self.nodes[it].objects()).collect();
            assert_eq!(node.objects(), expected, "broker {broker} of {:?}", self.edges);
            for url in expected.keys() {
                self.check_path(broker, url);
            }
        }
    }

    /// Checks that the path which a broker tells of an object is a way by which it came.
    fn check_path(&self, broker: usize, url: &str) {
        let node = &self.nodes[broker];
        let gatherer =
            (0..self.gatherers).find(|it| url.starts_with(&format!("http://h{it}/"))).unwrap();
        let stored =
            node.collection().get(&Oid::new(&self.nodes[gatherer].id, url)).unwrap().unwrap();
        assert!(stored.record.text(ORIGIN_VERSION).is_some());
        let path = stored.record.text(ORIGIN_PATH).unwrap_or_default().into_owned();
        let ids = path.split(' ').filter(|it| !it.is_empty());
        let mut way: Vec<usize> =
            ids.map(|id| self.nodes.iter().position(|it| it.id == id).unwrap()).collect();
        way.insert(0, gatherer);
        way.push(broker);
        let is_edge = |it: &[usize]| {
            let mut sources = [it[0], it[0] + self.nodes.len()].into_iter();
            sources.any(|from| self.edges.contains(&(it[1], from)))
        };
        assert!(way.windows(2).all(is_edge), "{way:?} of {:?}", self.edges);
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    let steps = 20 + world.random.below(120);
    for _ in 0..steps {
        world.step();
    }
    let before = world.sent;
    world.settle();
    world.check();
    // Each object is told of a few times at most by each who is pulled.
    let objects = world.gatherers * OBJECTS;
    let most = objects * world.edges.len() * world.nodes.len();
    assert!(world.sent - before <= most, "{} changes were sent", world.sent - before);
    // What all gatherers delete is gone everywhere, whatever loops there are.
    for gatherer in 0..world.gatherers {
        let node = &world.nodes[gatherer];
        let oids = node.objects().into_keys().map(|url| Oid::new(&node.id, &url));
        let changes = oids.map(Change::Delete).collect();
        world.now += 1;
        node.collection().commit(Batch { changes, notes: Vec::new() }, Stamp(world.now)).unwrap();
    }
    world.settle();
    world.check();
    assert!(world.nodes.iter().all(|it| it.collection().is_empty()));
}

/// Returns the object's record, as the source says that it came.
fn update(serial: u64, path: &str) -> Change {
    let mut record = Record::new("FILE", "http://h/a");
    record.push(GATHERER_ID, "g");
    record.push("Title", serial.to_string());
    record.push(ORIGIN_VERSION, version(serial).to_string());
    record.push(ORIGIN_PATH, path);
    Change::Update(record)
}

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(9), serial }
}

fn oid() -> Oid {
    Oid::new("g", "http://h/a")
}

/// Applies a change from a source, whose name is its id.
fn apply(node: &Node, source: &str, serial: u64, change: Change) {
    let owner = Owner { id: source.to_owned(), is_shown: false };
    apply_of(node, source, owner, (serial, Some(change)));
}

/// Applies a change from a source of this owner, or the end of a snapshot that names nothing.
fn apply_of(node: &Node, source: &str, owner: Owner, (serial, change): (u64, Option<Change>)) {
    let epoch = Epoch(9);
    let end_of_snapshot = change.is_none().then_some(serial);
    let pulled = Pulled {
        source: source.to_owned(),
        id: Some(owner),
        epoch,
        changes: change.into_iter().map(|it| (serial, it)).collect(),
        cursor: Cursor { epoch, serial, snapshot: None, part: None },
        end_of_snapshot,
    };
    node.collection().apply(pulled, Stamp(serial)).unwrap();
}

/// Returns the title and the path of the object, if it is there.
fn stored(node: &Node) -> Option<(String, String)> {
    let record = node.collection().get(&oid()).unwrap()?.record;
    let text = |name| record.text(name).unwrap_or_default().into_owned();
    Some((text("Title"), text(ORIGIN_PATH)))
}

/// Returns the last change of the object.
fn last(node: &Node) -> Change {
    let changes = node.collection().scan(0).unwrap().map(|it| it.unwrap().change);
    changes.last().unwrap()
}

#[test]
fn what_its_gatherer_has_deleted_goes_with_all_holds() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, "a"));
    apply(&node, "c", 12, update(1, "a d"));
    // Who never had it deletes nothing.
    apply(&node, "x", 13, Change::Withdraw(oid(), version(99)));
    assert_eq!(stored(&node), Some(("1".to_owned(), "a b".to_owned())));
    apply(&node, "b", 14, Change::Withdraw(oid(), version(2)));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(2))));
    // It is not brought back by who has not heard of it, but by what was made anew.
    apply(&node, "c", 15, update(1, "a d"));
    apply(&node, "c", 16, update(2, "a d"));
    assert_eq!(stored(&node), None);
    apply(&node, "c", 17, update(3, "a d"));
    assert_eq!(stored(&node), Some(("3".to_owned(), "a d c".to_owned())));
    apply(&node, "b", 18, Change::Withdraw(oid(), version(2)));
    assert!(stored(&node).is_some(), "it is newer");
}

#[test]
fn the_gatherers_own_feed_is_believed_before_others() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "g", 1, update(1, "forged"));
    assert_eq!(stored(&node), Some(("1".to_owned(), String::new())));
    apply(&node, "b", 12, Change::Withdraw(oid(), version(5)));
    assert!(stored(&node).is_some());
    apply(&node, "c", 13, update(1, "b"));
    apply(&node, "g", 7, Change::Delete(oid()));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(7))));
    apply(&node, "c", 14, update(6, "b"));
    assert_eq!(stored(&node), None);
    apply(&node, "g", 8, update(8, ""));
    assert!(stored(&node).is_some());
}

#[test]
fn a_release_is_of_one_source_and_the_next_path_is_published() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "c", 12, update(1, "a d"));
    assert_eq!(stored(&node), Some(("1".to_owned(), "b".to_owned())));
    apply(&node, "b", 13, Change::Delete(oid()));
    assert_eq!(stored(&node), Some(("1".to_owned(), "a d c".to_owned())));
    // It is the same version, whichever way it came.
    let record = node.collection().get(&oid()).unwrap().unwrap().record;
    assert_eq!(record.text(ORIGIN_VERSION).unwrap(), version(1).to_string());
    apply(&node, "c", 14, Change::Delete(oid()));
    assert_eq!((stored(&node), last(&node)), (None, Change::Delete(oid())));
    apply(&node, "c", 15, update(1, "a d"));
    assert!(stored(&node).is_some(), "a release forbids nothing");
}

#[test]
fn the_end_of_the_gatherers_snapshot_is_a_delete_at_its_version() {
    let node = Node::new("me".to_owned());
    let gatherer = || Owner { id: oid().gatherer, is_shown: false };
    apply(&node, "g", 3, update(3, ""));
    apply(&node, "c", 12, update(3, "b"));
    apply_of(&node, "g", gatherer(), (9, None));
    assert_eq!((stored(&node), last(&node)), (None, Change::Withdraw(oid(), version(9))));
    apply(&node, "c", 13, update(8, "b"));
    assert_eq!(stored(&node), None);
}

#[test]
fn what_came_through_us_is_not_held() {
    let node = Node::new("me".to_owned());
    for (path, is_held) in [
        ("a", true),
        ("a me", false),
        (["a"; 15].join(" ").as_str(), true),
        (["a"; 16].join(" ").as_str(), false),
    ] {
        apply(&node, "b", 1, update(1, ""));
        apply(&node, "b", 2, update(1, path));
        assert_eq!(stored(&node).is_some(), is_held, "{path}");
        apply(&node, "b", 3, Change::Delete(oid()));
    }
}

#[test]
fn a_version_that_nobody_can_have_keeps_nothing_out() {
    let node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "c", 12, update(1, ""));
    let two_days = Epoch((2 * 86_400_000) << 20);
    apply(&node, "b", 13, Change::Withdraw(oid(), Version { epoch: two_days, serial: 1 }));
    // It was let go by that source.
    assert_eq!(stored(&node), Some(("1".to_owned(), "c".to_owned())));
    apply(&node, "b", 14, update(2, ""));
    assert_eq!(stored(&node), Some(("2".to_owned(), "b".to_owned())));
}

#[test]
fn a_delete_is_remembered_until_the_horizon() {
    let mut node = Node::new("me".to_owned());
    apply(&node, "b", 11, update(1, ""));
    apply(&node, "b", 12, Change::Withdraw(oid(), version(2)));
    node.restart();
    let day = 86_400_000;
    for (days, is_refused) in [(59, true), (61, false)] {
        node.collection().compact(Stamp(days * day)).unwrap();
        apply(&node, "c", 13 + days, update(1, ""));
        assert_eq!(stored(&node).is_none(), is_refused, "after {days} days");
    }
}

#[test]
fn every_broker_has_what_it_reaches_of_what_lives() {
    let read = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seeds = match read("HARVEST_GRAPH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("HARVEST_GRAPH_SEEDS").unwrap_or(40),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "HARVEST_GRAPH_SEED={seed} repeats it");
    }
}
