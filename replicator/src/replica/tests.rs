use net::identity::Identity;

use super::*;
use crate::flood::Refusal;
use crate::message::{Announcement, Route};
use crate::topology::Topology;
use crate::version::{Kind, Name};

const GROUP: GroupId = GroupId(1);
const SECOND: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;

/// A replica (member 1) with two neighbors: the origin of a tree (member 0), and member 2.
struct Neighbors {
    all: [Identity; 3],
    replica: Replica,
}

impl Neighbors {
    /// Makes a replica with links to both others.
    fn new() -> Self {
        let mut world = Self::without_links();
        for other in [0, 2] {
            world.replica.handle_up(world.id(other), Window::DEFAULT, NONE);
        }
        world.actions();
        world
    }

    fn without_links() -> Self {
        let mut all = [1, 2, 3].map(|it| Identity::of(&[it; 32]).unwrap());
        all.sort_by_key(|it| MemberId::of(&it.public()));
        let mut world = Self { replica: Replica::new(MemberId::of(&all[1].public())), all };
        world.replica.set_group(GROUP, world.neighborhood(), NONE);
        world
    }

    fn neighborhood(&self) -> Neighborhood {
        let members: Vec<MemberId> = (0..3).map(|it| self.id(it)).collect();
        let name = Name::new("tree").unwrap();
        let writers =
            self.all.iter().zip(&members).map(|(it, member)| {
                (Namespace { origin: *member, name: name.clone() }, it.public())
            });
        Neighborhood {
            writers: writers.take(2).collect(),
            topology: Topology::from_links(3, &[(0, 1), (1, 2)], &[(0, 2)]).unwrap(),
            members,
        }
    }

    fn id(&self, at: usize) -> MemberId {
        MemberId::of(&self.all[at].public())
    }

    fn tree(&self) -> Namespace {
        Namespace { origin: self.id(0), name: Name::new("tree").unwrap() }
    }

    fn version_of(&self, origin: usize, sequence: u64) -> Version {
        let number = Number { epoch: 0, sequence };
        let name = Name::new("tree").unwrap();
        Version::sign(&self.all[origin], name, Kind::Tree, number, 1, root(sequence))
    }

    fn version(&self, sequence: u64) -> Version {
        self.version_of(0, sequence)
    }

    fn receive(&mut self, from: usize, message: Message, now: Duration) {
        self.replica.handle_message(self.id(from), message, now);
    }

    /// Takes in that the origin announces a version.
    fn announce(&mut self, sequence: u64, now: Duration) {
        let route = Route { distance: 0, entry: self.id(0) };
        let announcement = Announcement::new(GROUP, route, &self.version(sequence));
        self.receive(0, Message::Announce(announcement), now);
    }

    fn hold(&mut self, who: usize, sequence: u64, now: Duration) {
        let number = Number { epoch: 0, sequence };
        let namespace = self.tree();
        self.receive(who, Message::Held { namespace, number }, now);
    }

    /// Requests the root of a version.
    fn want(&mut self, sequence: u64, now: Duration) {
        let tree = self.tree();
        self.replica.want(&tree, &[(root(sequence), 9)], now);
    }

    /// Changes the group's tree to these links.
    fn link(&mut self, tree: &[(u16, u16)], now: Duration) {
        let mut neighborhood = self.neighborhood();
        neighborhood.topology = Topology::from_links(3, tree, &[]).unwrap();
        self.replica.set_group(GROUP, neighborhood, now);
    }

    /// Takes the actions and returns the members that get requests (`true`) and cancels (`false`).
    fn asked(&mut self) -> Vec<(MemberId, bool)> {
        let requests = |it: Action| match it {
            Action::Send { to, message: Message::Request(_) } => Some((to, true)),
            Action::Send { to, message: Message::Cancel(_) } => Some((to, false)),
            _ => None,
        };
        self.actions().into_iter().filter_map(requests).collect()
    }

    /// Takes in that both neighbors refuse the root of a version.
    fn refuse(&mut self, sequence: u64, now: Duration) {
        for from in [0, 2] {
            self.receive(from, Message::Gone(vec![root(sequence)]), now);
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.replica.poll_action()).collect()
    }

    /// Takes the actions and returns the steps of versions and the notices, as text.
    fn steps(&mut self) -> Vec<String> {
        let render = |action: Action| match action {
            Action::Begin(it) => Some(format!("begin {}", it.number.sequence)),
            Action::Stop(_) => Some("stop".to_owned()),
            Action::Switch(it) => Some(format!("switch {}", it.number.sequence)),
            Action::Remember(it) => Some(format!("remember {}", it.number.sequence)),
            Action::Notice(Notice::Missing(_, it)) => Some(format!("missing {}", it.sequence)),
            Action::Notice(Notice::Faulty(_, fault)) => Some(format!("{fault:?}")),
            Action::Notice(Notice::Refused(_, why)) => Some(why.to_string()),
            Action::Notice(Notice::Behind(_, it)) => Some(format!("behind {}", it.sequence)),
            Action::Notice(Notice::Contradiction(_)) => Some("contradiction".to_owned()),
            _ => None,
        };
        self.actions().into_iter().filter_map(render).collect()
    }

    /// Fetches and switches to a version that has been begun.
    fn take(&mut self, sequence: u64, now: Duration) {
        let (tree, number) = (self.tree(), Number { epoch: 0, sequence });
        self.replica.handle_whole(&tree, number, now);
        self.replica.handle_switched(&tree, number, now);
    }

    fn held(&self) -> Option<u64> {
        self.replica.held(&self.tree()).map(|it| it.number.sequence)
    }
}

/// Returns the bytes of a version's root.
fn content(sequence: u64) -> Vec<u8> {
    sequence.to_be_bytes().to_vec()
}

fn root(sequence: u64) -> Hash {
    Hash::of(&content(sequence))
}

#[test]
fn smaller_updates_are_more_urgent() {
    for (bytes, expected) in [
        (0, 0),
        (256 << 10, 0),
        ((256 << 10) + 1, 1),
        (1 << 20, 1),
        (4 << 20, 2),
        (1 << 30, 6),
        (50 << 30, 9),
        (u64::MAX, 15),
    ] {
        assert_eq!(space::priority(bytes), expected, "{bytes}");
    }
}

#[test]
fn a_version_is_announced_fetched_and_switched_to() {
    let mut world = Neighbors::new();
    world.announce(1, NONE);
    assert_eq!(world.steps(), ["remember 1", "begin 1"]);
    world.want(1, NONE);
    let tree = world.tree();
    assert_eq!(world.asked(), [(world.id(0), true)]);
    // Another member requests a chunk that is on its way.
    let number = Number { epoch: 0, sequence: 1 };
    let theirs = Request { namespace: tree.clone(), number, priority: 3, chunks: vec![root(1)] };
    world.receive(2, Message::Request(theirs.clone()), NONE);
    let to = world.id(2);
    assert_eq!(world.actions(), [Action::Lookup { to, request: theirs.clone() }]);
    world.replica.handle_not_here(to, &theirs, &[root(1)], NONE);
    assert_eq!(world.actions(), []);
    world.receive(0, Message::Chunk(content(1)), SECOND);
    let keep = Action::Keep {
        hash: root(1),
        bytes: content(1),
        namespaces: vec![tree.clone()],
        waiting: vec![(to, 3)],
    };
    assert_eq!(world.actions(), [keep]);
    assert_eq!(world.replica.progress(&tree).map(|it| (it.came, it.last)), Some((8, SECOND)));
    world.replica.handle_whole(&tree, number, SECOND);
    world.replica.handle_whole(&tree, number, SECOND);
    assert_eq!(world.steps(), ["switch 1"]);
    assert_eq!(world.held(), None, "readers do not see it yet");
    world.replica.handle_switched(&tree, number, SECOND);
    assert_eq!(world.held(), Some(1));
    let held = Message::Held { namespace: tree, number };
    let announced = [0, 2].map(|it| Action::Send { to: world.id(it), message: held.clone() });
    let mut sent = world.actions();
    assert!(announced.iter().all(|it| sent.contains(it)), "{sent:?}");
    sent.retain(|it| !announced.contains(it));
    assert_eq!(sent, []);
}

#[test]
fn without_a_route_any_linked_member_that_holds_the_version_is_asked() {
    let mut world = Neighbors::new();
    // The topology is in two parts, with no link to the origin.
    world.link(&[(1, 2)], NONE);
    world.announce(1, NONE);
    world.want(1, NONE);
    assert_eq!(world.asked(), [(world.id(2), true)], "it may get the version");
    // A member of other groups does not serve the version.
    let stranger = MemberId(7);
    world.replica.handle_up(stranger, Window::DEFAULT, NONE);
    let held = Message::Held { namespace: world.tree(), number: Number { epoch: 0, sequence: 1 } };
    world.replica.handle_message(stranger, held, NONE);
    assert_eq!(world.asked(), []);
    world.hold(0, 1, SECOND);
    assert_eq!(world.asked(), [(world.id(2), false), (world.id(0), true)], "there is a link");
    world.link(&[(0, 1), (1, 2)], SECOND);
    assert_eq!(world.asked(), []);
}

#[test]
fn a_new_route_is_taken_at_once() {
    let mut world = Neighbors::new();
    world.link(&[(1, 2)], NONE);
    world.announce(1, NONE);
    world.want(1, NONE);
    assert_eq!(world.asked(), [(world.id(2), true)]);
    world.link(&[(0, 1), (1, 2)], SECOND);
    assert_eq!(world.asked(), [(world.id(2), false), (world.id(0), true)]);
}

#[test]
fn a_begun_version_is_finished_before_a_newer_one() {
    let mut world = Neighbors::new();
    world.announce(1, NONE);
    world.announce(2, SECOND);
    world.announce(3, SECOND);
    assert_eq!(world.steps(), ["remember 1", "begin 1", "remember 2", "remember 3"]);
    world.take(1, SECOND);
    assert_eq!(world.steps(), ["switch 1", "begin 3"]);
    world.announce(2, SECOND);
    world.take(3, SECOND);
    assert_eq!((world.steps(), world.held()), (vec!["switch 3".to_owned()], Some(3)));
}

#[test]
fn a_version_without_progress_is_given_up_for_a_newer_one() {
    let mut world = Neighbors::new();
    world.announce(1, NONE);
    world.want(1, NONE);
    let (tree, mut now) = (world.tree(), NONE);
    let mut run = |world: &mut Neighbors, upto: Duration| {
        while world.replica.poll_timeout() <= upto {
            now = now.max(world.replica.poll_timeout());
            world.replica.handle_timeout(now);
        }
        now
    };
    run(&mut world, SECOND * 600);
    assert_eq!(world.replica.progress(&tree).map(|it| it.is_outdated), Some(false));
    world.steps();
    world.announce(2, SECOND * 600);
    // No chunk has come for a long time.
    assert_eq!(world.steps(), ["remember 2", "stop", "begin 2"]);
    world.want(2, SECOND * 600);
    world.announce(3, SECOND * 605);
    assert_eq!(world.steps(), ["remember 3"]);
    let over = run(&mut world, SECOND * 620);
    assert_eq!(over, SECOND * 620);
    assert_eq!(world.steps(), ["stop", "begin 3"]);
}

#[test]
fn a_missing_version_is_tried_again_after_growing_pauses() {
    let mut world = Neighbors::new();
    world.announce(1, NONE);
    world.steps();
    let mut now = NONE;
    for pause in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        world.want(1, now);
        world.refuse(1, now);
        assert_eq!(world.steps(), ["missing 1", "stop"]);
        now += SECOND * pause;
        world.replica.handle_timeout(now - Duration::from_millis(1));
        assert_eq!(world.steps(), Vec::<String>::new(), "{pause}");
        world.replica.handle_timeout(now);
        assert_eq!(world.steps(), ["begin 1"], "{pause}");
    }
    // A newer version does not wait.
    world.want(1, now);
    world.refuse(1, now);
    world.announce(2, now);
    assert_eq!(world.steps(), ["missing 1", "stop", "remember 2", "begin 2"]);
    world.take(2, now);
    assert_eq!(world.held(), Some(2));
}

#[test]
fn a_missing_version_is_tried_at_once_when_a_neighbor_holds_it() {
    let mut world = Neighbors::new();
    world.announce(2, NONE);
    for (sequence, expected) in [(1, vec![]), (2, vec!["begin 2".to_owned()]), (2, vec![])] {
        world.want(2, NONE);
        world.refuse(2, NONE);
        world.steps();
        world.hold(2, sequence, SECOND);
        assert_eq!(world.steps(), expected, "{sequence}");
    }
    // A failure of the disk waits even if a neighbor holds the version.
    let mut world = Neighbors::new();
    world.announce(1, NONE);
    let (tree, number) = (world.tree(), Number { epoch: 0, sequence: 1 });
    world.replica.handle_failed(&tree, number, Failure::Disk, NONE);
    world.steps();
    world.hold(2, 1, SECOND);
    assert_eq!(world.steps(), Vec::<String>::new());
    world.replica.handle_timeout(SECOND * 2);
    assert_eq!(world.steps(), ["begin 1"]);
}

#[test]
fn invalid_content_is_never_tried_again() {
    let mut world = Neighbors::new();
    world.announce(2, NONE);
    let (tree, number) = (world.tree(), Number { epoch: 0, sequence: 2 });
    world.replica.handle_failed(&tree, number, Failure::Content, NONE);
    assert_eq!(world.steps(), ["remember 2", "begin 2", "stop"]);
    world.hold(2, 2, SECOND);
    world.replica.handle_timeout(SECOND * 3_600);
    assert_eq!(world.steps(), Vec::<String>::new());
    world.announce(3, SECOND * 3_600);
    assert_eq!(world.steps(), ["remember 3", "begin 3"]);
}

#[test]
fn a_holder_that_lacks_a_chunk_is_reported() {
    for (held, newest, expected) in [
        (Some(1), 1, vec!["Lacks"]),
        (None, 1, vec![]),
        // The neighbor may have removed version 1 since.
        (Some(2), 2, vec![]),
        (Some(1), 2, vec![]),
    ] {
        let mut world = Neighbors::new();
        world.announce(1, NONE);
        world.want(1, NONE);
        if 1 < newest {
            world.announce(newest, NONE);
        }
        if let Some(held) = held {
            world.hold(0, held, NONE);
        }
        world.steps();
        world.receive(0, Message::Gone(vec![root(1)]), NONE);
        assert_eq!(world.steps(), expected, "{held:?} {newest}");
    }
}

#[test]
fn only_newer_versions_are_published() {
    let mut world = Neighbors::new();
    let number = |sequence| Number { epoch: 0, sequence };
    let tree = world.version_of(1, 1).namespace;
    assert_eq!(world.replica.publish(&world.version_of(1, 2), NONE), Ok(()));
    assert_eq!(world.replica.held(&tree).map(|it| it.number), Some(number(2)));
    assert_eq!(world.steps(), ["remember 2"]);
    for sequence in [1, 2] {
        let old = world.replica.publish(&world.version_of(1, sequence), NONE);
        assert_eq!(old, Err(PublishError::Old(number(2))));
    }
    // Others know a version that this member lost when it was restored from a backup.
    let route = Route { distance: 0, entry: world.id(1) };
    let later = Announcement::new(GROUP, route, &world.version_of(1, 9));
    world.receive(2, Message::Announce(later), NONE);
    assert_eq!(world.steps(), ["remember 9", "behind 9"], "no member fetches its own tree");
    let old = world.replica.publish(&world.version_of(1, 3), NONE);
    assert_eq!(old, Err(PublishError::Old(number(9))));
    let unlisted = world.replica.publish(&world.version_of(2, 1), NONE);
    assert_eq!(unlisted, Err(PublishError::Unlisted));
    world.replica.remove_group(GROUP, NONE);
    let unlisted = world.replica.publish(&world.version_of(1, 10), NONE);
    assert_eq!(unlisted, Err(PublishError::Unlisted));
}

#[test]
fn strangers_get_no_chunks() {
    let mut world = Neighbors::new();
    let (stranger, number) = (MemberId(7), Number { epoch: 0, sequence: 1 });
    let request = Request { namespace: world.tree(), number, priority: 0, chunks: vec![root(1)] };
    world.replica.handle_message(stranger, Message::Request(request), NONE);
    let message = Message::Gone(vec![root(1)]);
    assert_eq!(world.actions(), [Action::Send { to: stranger, message }]);
    let route = Route { distance: 0, entry: world.id(0) };
    let announcement = Announcement::new(GROUP, route, &world.version(1));
    world.replica.handle_message(stranger, Message::Announce(announcement), NONE);
    assert_eq!(world.steps(), [Refusal::Group.to_string()]);
    world.replica.handle_message(stranger, Message::Chunk(vec![1]), NONE);
    assert!(matches!(&world.actions()[..], [Action::Close { member, .. }] if *member == stranger));
}

#[test]
fn versions_known_before_a_restart_are_fetched_after_it() {
    let mut world = Neighbors::without_links();
    world.replica.restore(&world.version(2), false);
    world.replica.restore(&world.version(1), true);
    world.replica.handle_timeout(NONE);
    assert_eq!((world.steps(), world.held()), (vec!["begin 2".to_owned()], Some(1)));
    let to = world.id(0);
    world.replica.handle_up(to, Window::DEFAULT, NONE);
    let message = Message::Held { namespace: world.tree(), number: world.version(1).number };
    assert!(world.actions().contains(&Action::Send { to, message }));
    // Without a group fetching ends; the held version stays.
    world.replica.remove_group(GROUP, NONE);
    assert_eq!((world.steps(), world.held()), (vec!["stop".to_owned()], Some(1)));
}

#[test]
fn reconciliation_takes_the_neighbors_in_turn() {
    let mut world = Neighbors::new();
    let mut compared = Vec::new();
    for _ in 0..4 {
        let now = world.replica.poll_timeout();
        world.replica.handle_timeout(now);
        for action in world.actions() {
            if let Action::Send { to, message: Message::Digest { .. } } = action {
                compared.push((now, to));
            }
        }
    }
    let [first, other] = [world.id(0), world.id(2)];
    let turns = [first, other, first, other];
    let expected: Vec<_> = (0..4).map(|it| COMPARE_INTERVAL * it).zip(turns).collect();
    assert_eq!(compared, expected);
}
