//! Fuzzing of a group's messages. Any bytes as a charter, a row, a request to join, a refusal, a
//! stored group and an invitation are not believed, and nothing panics. A signed request to join
//! with any trees is granted with as many as there is room for, and refused if one byte is changed.
//! A member's signed holdings are accepted, and refused if one byte is changed.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use net::identity::Identity;
use replicator::flood::DISTANCE_MAX;
use replicator::group::access::{Access, Rule};
use replicator::group::charter::{Address, Carried, Charter, GroupTree};
use replicator::group::held::Tag;
use replicator::group::join::{CARRIED_MAX, Invitation, MEMBER_TREES_MAX};
use replicator::group::{Action, Group, Message, Settings};
use replicator::id::MemberId;
use replicator::version::{Kind, Name, Namespace, Number};

const NOW: Duration = Duration::from_secs(10);

fn identity(seed: u8) -> Arc<Identity> {
    Arc::new(Identity::of(&[seed; 32]).expect("any seed is a key"))
}

fn id(seed: u8) -> MemberId {
    MemberId::of(&identity(seed).public())
}

fn settings(access: Option<Access>) -> Settings {
    Settings {
        address: Address::new("host:1").expect("an address"),
        site: Name::new("site").expect("a name"),
        trees: Vec::new(),
        carried: Vec::new(),
        connectivity: None,
        deputies: Vec::new(),
        access,
    }
}

fn founded(settings: Settings) -> Group {
    let name = Name::new("group").expect("a name");
    Group::found(identity(1), name, settings, Duration::ZERO).expect("a short access list")
}

/// Makes a tree from three bytes: writer, name and kind.
fn tree(bytes: &[u8; 3]) -> GroupTree {
    let name = Name::new(&format!("{:02x}", bytes[1])).expect("a name");
    let kind = if bytes[2] % 2 == 0 { Kind::Tree } else { Kind::Collection };
    GroupTree { writer: [bytes[0]; 32], name, kind }
}

/// Returns the messages of one kind that a group sends.
fn sent<T>(group: &mut Group, wanted: impl Fn(Message) -> Option<T>) -> Vec<T> {
    let actions = std::iter::from_fn(|| group.poll_action());
    let messages = actions.filter_map(|it| match it {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    messages.filter_map(wanted).collect()
}

fn check_any(bytes: &[u8]) {
    let mut group = founded(settings(None));
    let (from, now) = (MemberId(7), Duration::from_secs(1));
    let before = group.charter().map(|it| it.to_bytes());
    group.handle_link_up(from, now);
    group.handle_charter(from, bytes, now);
    group.handle_row(from, bytes, now);
    group.handle_join(from, None, bytes, now);
    group.handle_refused(from, bytes, now);
    while group.poll_action().is_some() {}
    assert_eq!(group.charter().map(|it| it.to_bytes()), before);
    let _ = Group::open(identity(1), settings(None), Some(bytes), None, Duration::ZERO);
    if let Some(invitation) = std::str::from_utf8(bytes).ok().and_then(|it| it.parse().ok()) {
        let again: Invitation = invitation;
        assert_eq!(again.to_string().parse(), Ok(again));
    }
}

fn check_trees(flip: &[u8; 3], trees: &[[u8; 3]]) {
    let access = Access { allow: vec![Rule::Member(id(2))], ..Access::default() };
    let mut leader = founded(settings(Some(access)));
    let invitation = leader.invitation(None);
    let mut wish = settings(None);
    let (own, carried): (Vec<_>, Vec<_>) =
        trees.iter().map(tree).partition(|it| it.writer == [0; 32]);
    wish.trees = own.into_iter().map(|it| (it.name, it.kind)).collect();
    let distance = flip[2] % 18;
    wish.carried = carried.into_iter().map(|tree| Carried { tree, distance }).collect();
    let joiner = Group::open(identity(2), wish.clone(), None, invitation, Duration::ZERO);
    let mut joiner = joiner.expect("an invitation is enough");
    joiner.handle_link_up(id(1), NOW);
    leader.handle_link_up(id(2), NOW);
    joiner.handle_timeout(NOW);
    let joins = sent(&mut joiner, |it| match it {
        Message::Join(bytes) => Some(bytes),
        _ => None,
    });
    let join = joins.first().expect("it asks its neighbor");
    // The first two bytes say how the request came.
    let at = 2 + (usize::from(flip[0]) << 8 | usize::from(flip[1])) % (join.len() - 2);
    let mut forged = join.to_vec();
    forged[at] ^= flip[2].max(1);
    leader.handle_join(id(2), None, &forged, NOW);
    leader.handle_timeout(NOW + NOW);
    assert!(leader.charter().is_some_and(|it| it.body().member(id(2)).is_none()));
    leader.handle_join(id(2), None, join, NOW + NOW);
    leader.handle_timeout(NOW * 3);
    let charter = leader.charter().expect("it leads");
    let body = charter.body();
    assert!(body.member(id(2)).is_some());
    let read = Charter::from_bytes(&charter.to_bytes(), charter.group(), None);
    assert_eq!(read.as_ref(), Ok(&**charter));
    assert!(body.trees.len() <= MEMBER_TREES_MAX + CARRIED_MAX);
    let names = |it: &GroupTree| (it.writer, it.name.clone());
    let is_listed = |it: &Carried| {
        let is_it = |listed: &GroupTree| names(listed) == names(&it.tree);
        body.trees.iter().any(|it| is_it(&it.tree)) == (1..=DISTANCE_MAX).contains(&it.distance)
    };
    assert!(CARRIED_MAX < wish.carried.len() || wish.carried.iter().all(is_listed));
    joiner.handle_charter(id(1), &charter.to_bytes(), NOW * 3);
    check_held(flip, &mut leader, &mut joiner);
}

/// Checks that a member's signed holdings are accepted, and refused if one byte is changed.
fn check_held(flip: &[u8; 3], leader: &mut Group, joiner: &mut Group) {
    let number = |sequence| Number { epoch: flip[0].into(), sequence };
    let trees: Vec<Namespace> = leader.trees().map(GroupTree::namespace).collect();
    let held: Vec<(&Namespace, Number)> =
        trees.iter().zip(1..).map(|(it, sequence)| (it, number(sequence))).collect();
    joiner.handle_held(held.iter().copied(), NOW * 3);
    joiner.handle_timeout(NOW * 3);
    let rows = sent(joiner, |it| match it {
        Message::Row(bytes) => Some(bytes).filter(|it| it.first() == Some(&4)),
        _ => None,
    });
    let row = rows.first().expect("a new member reports its holdings");
    let at = 1 + (usize::from(flip[0]) << 8 | usize::from(flip[1])) % (row.len() - 1);
    let mut forged = row.to_vec();
    forged[at] ^= flip[2].max(1);
    leader.handle_row(id(2), &forged, NOW * 3);
    assert!(leader.held_by(id(2)).is_none());
    leader.handle_row(id(2), row, NOW * 3);
    let holdings = leader.held_by(id(2)).expect("it is signed");
    assert!(held.iter().all(|(tree, number)| holdings.number(Tag::of(tree)) == Some(*number)));
}

fuzz_target!(|bytes: &[u8]| {
    check_any(bytes);
    if let Some((flip, rest)) = bytes.split_first_chunk() {
        check_trees(flip, rest.as_chunks().0);
    }
});
