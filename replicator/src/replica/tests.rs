use net::identity::Identity;

use super::*;
use crate::flood::Refusal;
use crate::message::{Announcement, Route};
use crate::topology::Topology;
use crate::version::{Kind, Name};

const GROUP: GroupId = GroupId(1);
const SECOND: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;

/// The origin of a tree, one that fetches it, and another; all are neighbors.
struct World {
    all: [Identity; 3],
    replica: Replica,
}

impl World {
    /// With links to both others.
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

    fn hear(&mut self, from: usize, message: Message, now: Duration) {
        self.replica.handle_message(self.id(from), message, now);
    }

    /// A version is announced by its origin.
    fn announce(&mut self, sequence: u64, now: Duration) {
        let route = Route { distance: 0, entry: self.id(0) };
        let said = Announcement::new(GROUP, route, &self.version(sequence));
        self.hear(0, Message::Announce(said), now);
    }

    fn hold(&mut self, who: usize, sequence: u64, now: Duration) {
        let number = Number { epoch: 0, sequence };
        let namespace = self.tree();
        self.hear(who, Message::Held { namespace, number }, now);
    }

    /// The root of a version is not here.
    fn want(&mut self, sequence: u64, now: Duration) {
        let tree = self.tree();
        self.replica.want(&tree, &[(root(sequence), 9)], now);
    }

    /// The group gets these links.
    fn link(&mut self, tree: &[(u16, u16)], now: Duration) {
        let mut neighborhood = self.neighborhood();
        neighborhood.topology = Topology::from_links(3, tree, &[]).unwrap();
        self.replica.set_group(GROUP, neighborhood, now);
    }

    /// Who is asked for chunks, and of whom that is taken back.
    fn asked(&mut self) -> Vec<(MemberId, bool)> {
        let say = |it: Action| match it {
            Action::Send { to, message: Message::Request(_) } => Some((to, true)),
            Action::Send { to, message: Message::Cancel(_) } => Some((to, false)),
            _ => None,
        };
        self.actions().into_iter().filter_map(say).collect()
    }

    /// Nobody has the root of a version.
    fn refuse(&mut self, sequence: u64, now: Duration) {
        for from in [0, 2] {
            self.hear(from, Message::Gone(vec![root(sequence)]), now);
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.replica.poll_action()).collect()
    }

    /// What is begun, stopped, switched to and noticed, in short.
    fn steps(&mut self) -> Vec<String> {
        let say = |action: Action| match action {
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
        self.actions().into_iter().filter_map(say).collect()
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

/// What the root of a version holds.
fn content(sequence: u64) -> Vec<u8> {
    sequence.to_be_bytes().to_vec()
}

fn root(sequence: u64) -> Hash {
    Hash::of(&content(sequence))
}

#[test]
fn the_fewer_bytes_the_more_urgent() {
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
    let mut world = World::new();
    world.announce(1, NONE);
    assert_eq!(world.steps(), ["remember 1", "begin 1"]);
    world.want(1, NONE);
    let tree = world.tree();
    assert_eq!(world.asked(), [(world.id(0), true)]);
    // Another asks for what is on its way.
    let number = Number { epoch: 0, sequence: 1 };
    let theirs = Request { namespace: tree.clone(), number, priority: 3, chunks: vec![root(1)] };
    world.hear(2, Message::Request(theirs.clone()), NONE);
    let to = world.id(2);
    assert_eq!(world.actions(), [Action::Lookup { to, request: theirs.clone() }]);
    world.replica.handle_not_here(to, &theirs, &[root(1)], NONE);
    assert_eq!(world.actions(), []);
    world.hear(0, Message::Chunk(content(1)), SECOND);
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
    let told = [0, 2].map(|it| Action::Send { to: world.id(it), message: held.clone() });
    let mut sent = world.actions();
    assert!(told.iter().all(|it| sent.contains(it)), "{sent:?}");
    sent.retain(|it| !told.contains(it));
    assert_eq!(sent, []);
}

#[test]
fn where_there_is_no_way_whoever_has_it_is_asked() {
    let mut world = World::new();
    // The topology is in two parts, with no link to the origin.
    world.link(&[(1, 2)], NONE);
    world.announce(1, NONE);
    world.want(1, NONE);
    assert_eq!(world.asked(), [(world.id(2), true)], "it may come to have it");
    // A member of other groups alone would not serve it.
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
fn a_way_that_comes_to_be_is_taken_at_once() {
    let mut world = World::new();
    world.link(&[(1, 2)], NONE);
    world.announce(1, NONE);
    world.want(1, NONE);
    assert_eq!(world.asked(), [(world.id(2), true)]);
    world.link(&[(0, 1), (1, 2)], SECOND);
    assert_eq!(world.asked(), [(world.id(2), false), (world.id(0), true)]);
}

#[test]
fn what_is_begun_is_finished_before_what_is_newer() {
    let mut world = World::new();
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
fn what_nothing_comes_of_is_given_up_for_what_is_newer() {
    let mut world = World::new();
    world.announce(1, NONE);
    world.want(1, NONE);
    let (tree, mut now) = (world.tree(), NONE);
    let mut run = |world: &mut World, upto: Duration| {
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
    // Nothing has come of it for long.
    assert_eq!(world.steps(), ["remember 2", "stop", "begin 2"]);
    world.want(2, SECOND * 600);
    world.announce(3, SECOND * 605);
    assert_eq!(world.steps(), ["remember 3"]);
    let over = run(&mut world, SECOND * 620);
    assert_eq!(over, SECOND * 620);
    assert_eq!(world.steps(), ["stop", "begin 3"]);
}

#[test]
fn what_nobody_has_is_tried_again_later_and_later() {
    let mut world = World::new();
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
    // What is newer need not wait.
    world.want(1, now);
    world.refuse(1, now);
    world.announce(2, now);
    assert_eq!(world.steps(), ["missing 1", "stop", "remember 2", "begin 2"]);
    world.take(2, now);
    assert_eq!(world.held(), Some(2));
}

#[test]
fn what_somebody_holds_by_now_is_tried_at_once() {
    let mut world = World::new();
    world.announce(2, NONE);
    for (sequence, expected) in [(1, vec![]), (2, vec!["begin 2".to_owned()]), (2, vec![])] {
        world.want(2, NONE);
        world.refuse(2, NONE);
        world.steps();
        world.hold(2, sequence, SECOND);
        assert_eq!(world.steps(), expected, "{sequence}");
    }
    // A disk that is full is so whoever holds it.
    let mut world = World::new();
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
fn what_may_not_be_replicated_is_never_tried_again() {
    let mut world = World::new();
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
fn who_lacks_what_it_holds_is_named() {
    for (held, newest, expected) in [
        (Some(1), 1, vec!["Lacks"]),
        (None, 1, vec![]),
        // It may have removed it since.
        (Some(2), 2, vec![]),
        (Some(1), 2, vec![]),
    ] {
        let mut world = World::new();
        world.announce(1, NONE);
        world.want(1, NONE);
        if 1 < newest {
            world.announce(newest, NONE);
        }
        if let Some(held) = held {
            world.hold(0, held, NONE);
        }
        world.steps();
        world.hear(0, Message::Gone(vec![root(1)]), NONE);
        assert_eq!(world.steps(), expected, "{held:?} {newest}");
    }
}

#[test]
fn one_publishes_only_what_is_newer() {
    let mut world = World::new();
    let number = |sequence| Number { epoch: 0, sequence };
    let tree = world.version_of(1, 1).namespace;
    assert_eq!(world.replica.publish(&world.version_of(1, 2), NONE), Ok(()));
    assert_eq!(world.replica.held(&tree).map(|it| it.number), Some(number(2)));
    assert_eq!(world.steps(), ["remember 2"]);
    for sequence in [1, 2] {
        let old = world.replica.publish(&world.version_of(1, sequence), NONE);
        assert_eq!(old, Err(PublishError::Old(number(2))));
    }
    // Others know a version from before it was restored from a backup.
    let route = Route { distance: 0, entry: world.id(1) };
    let later = Announcement::new(GROUP, route, &world.version_of(1, 9));
    world.hear(2, Message::Announce(later), NONE);
    assert_eq!(world.steps(), ["remember 9", "behind 9"], "nobody fetches what is its own");
    let old = world.replica.publish(&world.version_of(1, 3), NONE);
    assert_eq!(old, Err(PublishError::Old(number(9))));
    let unlisted = world.replica.publish(&world.version_of(2, 1), NONE);
    assert_eq!(unlisted, Err(PublishError::Unlisted));
    world.replica.remove_group(GROUP, NONE);
    let unlisted = world.replica.publish(&world.version_of(1, 10), NONE);
    assert_eq!(unlisted, Err(PublishError::Unlisted));
}

#[test]
fn strangers_get_nothing() {
    let mut world = World::new();
    let (stranger, number) = (MemberId(7), Number { epoch: 0, sequence: 1 });
    let request = Request { namespace: world.tree(), number, priority: 0, chunks: vec![root(1)] };
    world.replica.handle_message(stranger, Message::Request(request), NONE);
    let message = Message::Gone(vec![root(1)]);
    assert_eq!(world.actions(), [Action::Send { to: stranger, message }]);
    let route = Route { distance: 0, entry: world.id(0) };
    let said = Announcement::new(GROUP, route, &world.version(1));
    world.replica.handle_message(stranger, Message::Announce(said), NONE);
    assert_eq!(world.steps(), [Refusal::Group.to_string()]);
    world.replica.handle_message(stranger, Message::Chunk(vec![1]), NONE);
    assert!(matches!(&world.actions()[..], [Action::Close { member, .. }] if *member == stranger));
}

#[test]
fn what_was_known_before_a_restart_goes_on() {
    let mut world = World::without_links();
    world.replica.restore(&world.version(2), false);
    world.replica.restore(&world.version(1), true);
    world.replica.handle_timeout(NONE);
    assert_eq!((world.steps(), world.held()), (vec!["begin 2".to_owned()], Some(1)));
    let to = world.id(0);
    world.replica.handle_up(to, Window::DEFAULT, NONE);
    let message = Message::Held { namespace: world.tree(), number: world.version(1).number };
    assert!(world.actions().contains(&Action::Send { to, message }));
    // What no group has any more is given up; what is held stays.
    world.replica.remove_group(GROUP, NONE);
    assert_eq!((world.steps(), world.held()), (vec!["stop".to_owned()], Some(1)));
}

#[test]
fn neighbors_are_compared_with_in_turn() {
    let mut world = World::new();
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
    let expected: Vec<_> = (0..4).map(|it| COMPARE * it).zip(turns).collect();
    assert_eq!(compared, expected);
}
