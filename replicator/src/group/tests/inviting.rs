//! Invitations: who comes by one, and who does not.

use super::*;
use crate::group::charter::Member;
use crate::group::invited::{INVITATIONS_MAX, InviteError, Invited, VALID};
use crate::id::InvitationId;

fn secret(seed: u8) -> [u8; 32] {
    [seed.wrapping_add(100); 32]
}

fn key(seed: u8) -> [u8; 32] {
    Identity::of(&secret(seed)).unwrap().public()
}

impl World {
    /// Has a member's admin make an invitation; the seed stands for its secret.
    fn invite(&mut self, by: u8, seed: u8, valid: Duration) -> Result<Invited, InviteError> {
        let now = self.now;
        let made = self.groups.get_mut(&id(by)).unwrap().invite(key(seed), valid, now);
        self.act(id(by));
        made
    }

    /// Starts a member with an invitation, as somebody hands it out.
    fn come(&mut self, member: u8, by: u8, seed: u8) {
        let line = self.groups[&id(by)].invitation(Some(secret(seed)));
        let new = Group::open(identity(member), settings(member, None), None, line, self.now);
        self.groups.insert(id(member), new.unwrap());
    }

    fn has_member(&self, member: u8) -> bool {
        self.charter().body().member(id(member)).is_some()
    }

    fn invited(&self, seed: u8) -> Invited {
        let charter = self.charter();
        charter.body().invitations.iter().find(|it| it.key == key(seed)).unwrap().clone()
    }

    fn reasons(&self, member: u8) -> Vec<Reason> {
        let mut all: Vec<Reason> =
            self.refused.iter().filter(|it| it.0 == id(member)).map(|it| it.1).collect();
        all.dedup();
        all
    }
}

#[test]
fn an_invitation_is_for_one_member_and_the_charter_says_for_whom() {
    let mut world = World::new(3);
    world.run(2 * MINUTE);
    world.invite(1, 7, VALID).unwrap();
    world.come(7, 1, 7);
    world.run(MINUTE);
    assert!(world.has_member(7));
    let charter = world.charter();
    assert_eq!(charter.body().member(id(7)).unwrap().invitation, Some(InvitationId::of(&key(7))));
    assert_eq!(world.invited(7).used_by, Some(id(7)));
    world.come(8, 1, 7);
    world.run(MINUTE);
    assert!(!world.has_member(8));
    assert_eq!(world.reasons(8), [Reason::Used]);
    assert!(Reason::Used.to_string().contains("ask for a new one"));
}

#[test]
fn of_two_that_come_at_once_one_is_let_in() {
    let mut world = World::new(2);
    world.run(2 * MINUTE);
    world.invite(1, 7, VALID).unwrap();
    world.come(7, 1, 7);
    world.come(8, 1, 7);
    world.run(MINUTE);
    let came: Vec<u8> = [7, 8].into_iter().filter(|it| world.has_member(*it)).collect();
    let [came] = came[..] else { panic!("{came:?} came") };
    assert_eq!((world.reasons(15 - came), world.reasons(came)), (vec![Reason::Used], vec![]));
}

/// The answer is lost, and so is all that the member had but its key: it asks once more.
#[test]
fn who_asks_again_by_its_own_invitation_is_in() {
    let mut world = World::new(2);
    world.run(2 * MINUTE);
    world.invite(1, 7, VALID).unwrap();
    world.come(7, 1, 7);
    world.run(MINUTE / 12);
    world.kill(id(7));
    world.come(7, 1, 7);
    world.run(2 * MINUTE);
    assert!(world.groups[&id(7)].is_member() && world.has_member(7));
    assert_eq!(world.reasons(7), []);
    assert_eq!(world.invited(7).used_by, Some(id(7)));
    // Another charter forgets that it came: it is let in again, since nobody else came by it.
    let now = world.now;
    let founder = world.groups.get_mut(&id(1)).unwrap();
    let charter = founder.charter.clone().unwrap();
    let mut body = charter.body().clone();
    body.members.retain(|it| it.id() != id(7));
    body.trees.retain(|it| it.tree.writer != identity(7).public());
    body.topology = Topology::from_links(2, &[(0, 1)], &[]).unwrap();
    let number = (charter.epoch(), charter.revision() + 1);
    let without = charter.amend(&founder.identity, number, &[], body).unwrap();
    founder.adopt(without, None, now);
    world.run(2 * MINUTE);
    assert!(world.has_member(7));
    assert_eq!(world.invited(7).used_by, Some(id(7)));
}

#[test]
fn an_invitation_that_has_ended_or_was_withdrawn_lets_nobody_in() {
    let mut world = World::new(2);
    world.run(2 * MINUTE);
    world.invite(1, 7, MINUTE).unwrap();
    let withdrawn = world.invite(1, 8, VALID).unwrap().id();
    let now = world.now;
    world.groups.get_mut(&id(1)).unwrap().revoke(withdrawn, now).unwrap();
    let unknown = InvitationId(5);
    let refused = world.groups.get_mut(&id(1)).unwrap().revoke(unknown, now);
    assert_eq!(refused, Err(InviteError::Unknown(unknown)));
    world.run(MINUTE);
    for member in 7..=9 {
        world.come(member, 1, member);
    }
    world.run(MINUTE);
    assert!((7..=9).all(|it| !world.has_member(it)));
    let reasons = [7, 8, 9].map(|it| world.reasons(it));
    assert_eq!(reasons, [vec![Reason::Ended], vec![Reason::Withdrawn], vec![Reason::Withdrawn]]);
    // Whoever a rule lets in needs none.
    let founder = world.groups.get_mut(&id(1)).unwrap();
    let mut settings = founder.settings.clone();
    settings.access.as_mut().unwrap().allow.push(Rule::Member(id(9)));
    founder.handle_settings(settings, world.now);
    world.run(6 * MINUTE);
    let charter = world.charter();
    assert_eq!(charter.body().member(id(9)).map(|it| it.invitation), Some(None));
}

#[test]
fn a_time_of_day_that_is_set_back_does_not_keep_an_invitation() {
    let mut world = World::new(2);
    world.run(2 * MINUTE);
    let set = |world: &mut World, unix: u64| {
        let now = world.now;
        world.groups.get_mut(&id(1)).unwrap().handle_clock(unix, now);
    };
    set(&mut world, 1_000_000);
    let made = world.invite(1, 7, 2 * MINUTE).unwrap();
    assert_eq!((made.made, made.ends), (1_000_000, 1_000_120));
    for _ in 0..3 {
        world.run(MINUTE);
        set(&mut world, 1_000_000);
    }
    world.come(7, 1, 7);
    world.run(MINUTE);
    assert_eq!(world.reasons(7), [Reason::Ended]);
}

#[test]
fn denying_a_member_withdraws_what_it_came_by_and_closes_its_links() {
    let mut world = World::new(4);
    world.run(2 * MINUTE);
    world.invite(1, 7, VALID).unwrap();
    world.come(7, 1, 7);
    world.run(2 * MINUTE);
    let linked = |world: &World| -> Vec<MemberId> {
        let ends = |it: &&(MemberId, MemberId)| it.0 == id(7) || it.1 == id(7);
        let others =
            world.links.iter().filter(ends).map(|it| if it.0 == id(7) { it.1 } else { it.0 });
        others.collect()
    };
    let neighbors = linked(&world);
    assert!(2 <= neighbors.len() && world.parted.is_empty());
    let mut access = world.charter().body().access.clone();
    access.deny.push(Rule::Member(id(7)));
    world.settle(1, |it| it.access = Some(access));
    // As soon as charters may follow one another.
    world.run(Duration::from_secs(2));
    let mut parted: Vec<MemberId> = world.parted.iter().map(|it| it.0).collect();
    parted.sort_unstable();
    parted.dedup();
    assert!(neighbors.iter().all(|it| parted.contains(it)), "{parted:?} of {neighbors:?}");
    assert!(world.parted.iter().all(|it| it.1 == id(7)));
    world.kill(id(7));
    assert!(!world.has_member(7) && world.invited(7).is_withdrawn);
    // What comes later of the group closes no link that it may have for another.
    let count = world.parted.len();
    world.come(7, 1, 7);
    world.run(MINUTE);
    world.settle(1, |it| it.connectivity = Some(Connectivity::Three));
    world.run(MINUTE);
    assert_eq!((world.parted.len(), world.has_member(7)), (count, false));
    world.kill(id(7));
    // Under another key it is nobody that was invited.
    world.come(8, 1, 7);
    world.run(MINUTE);
    assert!(!world.has_member(8));
    assert_eq!(world.reasons(8), [Reason::Used]);
    // And by a new one it comes.
    world.invite(1, 9, VALID).unwrap();
    world.come(9, 1, 9);
    world.run(MINUTE);
    assert!(world.has_member(9));
}

#[test]
fn who_takes_over_knows_which_invitations_are_open_and_used() {
    let mut world = World::new(4);
    world.run(3 * MINUTE);
    for seed in [7, 8] {
        world.invite(1, seed, VALID).unwrap();
    }
    world.come(7, 1, 7);
    world.run(2 * MINUTE);
    let elsewhere = InviteError::Elsewhere(id(1));
    let deputy = MemberId::of(&world.charter().deputies()[0]);
    let seed = (2..=7).find(|it| id(*it) == deputy).unwrap();
    assert_eq!(world.invite(seed, 9, VALID), Err(elsewhere));
    world.kill(id(1));
    world.run(4 * MINUTE);
    assert_eq!(world.charter().leader(), deputy);
    world.come(8, seed, 8);
    world.come(9, seed, 7);
    world.run(MINUTE);
    assert!(world.has_member(8) && !world.has_member(9));
    assert_eq!((world.reasons(8), world.reasons(9)), (vec![], vec![Reason::Used]));
    world.invite(seed, 10, VALID).unwrap();
    world.come(10, seed, 10);
    world.run(MINUTE);
    assert!(world.has_member(10));
    let came: Vec<u8> = (7..=10)
        .filter(|it| world.charter().body().member(id(*it)).is_some_and(is_invited))
        .collect();
    assert_eq!(came, [7, 8, 10]);
}

fn is_invited(member: &Member) -> bool {
    member.invitation.is_some()
}

#[test]
fn of_too_many_invitations_those_go_that_are_not_open() {
    let mut world = World::new(1);
    world.run(MINUTE);
    let long = |seed: u16| {
        let mut secret = [3; 32];
        secret[..2].copy_from_slice(&seed.to_be_bytes());
        Identity::of(&secret).unwrap().public()
    };
    let now = world.now;
    let founder = world.groups.get_mut(&id(1)).unwrap();
    let count = u16::try_from(INVITATIONS_MAX).unwrap();
    for seed in 0..count {
        founder.invite(long(seed), VALID, now).unwrap();
    }
    assert_eq!(founder.invite(long(count), VALID, now), Err(InviteError::Full));
    founder.revoke(InvitationId::of(&long(5)), now).unwrap();
    founder.invite(long(count), VALID, now).unwrap();
    let body = founder.charter().unwrap().body();
    assert_eq!(body.invitations.len(), INVITATIONS_MAX);
    assert!(body.invitations.iter().all(|it| it.key != long(5)));
    founder.invite(long(5), VALID, now).unwrap_err();
    founder.invite(long(5), VALID, now + VALID).unwrap();
}

const TICK: Duration = Duration::from_millis(500);

/// It is granted between two charters, and denied before the second.
#[test]
fn an_invitation_is_not_used_by_who_was_denied_before_it_was_in() {
    let mut world = World::new(2);
    world.run(2 * MINUTE);
    world.invite(1, 7, VALID).unwrap();
    world.settle(1, |it| it.connectivity = Some(Connectivity::Three));
    world.run(TICK);
    world.come(8, 1, 7);
    let is_granted =
        |world: &World| world.groups[&id(1)].lead.has_granted(world.invited(7).id(), id(1));
    for _ in 0..3 {
        world.run(TICK);
    }
    assert!(is_granted(&world) && !world.has_member(8));
    world.settle(1, |it| it.access.as_mut().unwrap().deny.push(Rule::Member(id(8))));
    world.run(MINUTE);
    assert!(!is_granted(&world) && !world.has_member(8));
    world.come(9, 1, 7);
    world.run(MINUTE);
    assert!(world.has_member(9));
    assert_eq!(world.reasons(9), []);
}

/// It is a member without an invitation, and asks for another address just before it is denied.
#[test]
fn who_was_denied_is_not_let_in_by_what_it_asked_before() {
    let mut world = World::new(3);
    world.run(2 * MINUTE);
    world.settle(1, |it| it.access.as_mut().unwrap().allow.clear());
    world.run(TICK);
    world.settle(3, |it| it.address = Address::new("elsewhere:4000").unwrap());
    world.run(TICK);
    world.settle(1, |it| it.access.as_mut().unwrap().deny.push(Rule::Member(id(3))));
    world.run(TICK);
    world.kill(id(3));
    world.run(MINUTE);
    assert!(!world.has_member(3));
    world.settle(1, |it| it.access.as_mut().unwrap().deny.clear());
    world.run(MINUTE);
    assert!(!world.has_member(3));
}
