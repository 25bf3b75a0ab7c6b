//! Tests of invitations: whom they admit, and whom they do not.

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

impl TestNet {
    /// Makes an invitation at a member; the seed stands for its secret.
    fn invite(&mut self, by: u8, seed: u8, valid: Duration) -> Result<Invited, InviteError> {
        let now = self.now;
        let made = self.groups.get_mut(&id(by)).unwrap().invite(key(seed), valid, now);
        self.act(id(by));
        made
    }

    /// Starts a member with an invitation.
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
fn an_invitation_admits_one_member_and_the_charter_names_it() {
    let mut net = TestNet::new(3);
    net.run(2 * MINUTE);
    net.invite(1, 7, VALID).unwrap();
    net.come(7, 1, 7);
    net.run(MINUTE);
    assert!(net.has_member(7));
    let charter = net.charter();
    assert_eq!(charter.body().member(id(7)).unwrap().invitation, Some(InvitationId::of(&key(7))));
    assert_eq!(net.invited(7).used_by, Some(id(7)));
    net.come(8, 1, 7);
    net.run(MINUTE);
    assert!(!net.has_member(8));
    assert_eq!(net.reasons(8), [Reason::Used]);
    assert!(Reason::Used.to_string().contains("ask for a new one"));
}

#[test]
fn of_two_simultaneous_requests_by_one_invitation_one_is_granted() {
    let mut net = TestNet::new(2);
    net.run(2 * MINUTE);
    net.invite(1, 7, VALID).unwrap();
    net.come(7, 1, 7);
    net.come(8, 1, 7);
    net.run(MINUTE);
    let came: Vec<u8> = [7, 8].into_iter().filter(|it| net.has_member(*it)).collect();
    let [came] = came[..] else { panic!("{came:?} came") };
    assert_eq!((net.reasons(15 - came), net.reasons(came)), (vec![Reason::Used], vec![]));
}

/// The answer is lost, and so is all the member's data except its key: it asks once more.
#[test]
fn a_member_that_asks_again_by_its_own_invitation_is_admitted() {
    let mut net = TestNet::new(2);
    net.run(2 * MINUTE);
    net.invite(1, 7, VALID).unwrap();
    net.come(7, 1, 7);
    net.run(MINUTE / 12);
    net.kill(id(7));
    net.come(7, 1, 7);
    net.run(2 * MINUTE);
    assert!(net.groups[&id(7)].is_member() && net.has_member(7));
    assert_eq!(net.reasons(7), []);
    assert_eq!(net.invited(7).used_by, Some(id(7)));
    // A charter forgets the member. It is admitted again: nobody else has used its invitation.
    let now = net.now;
    let founder = net.groups.get_mut(&id(1)).unwrap();
    let charter = founder.charter.clone().unwrap();
    let mut body = charter.body().clone();
    body.members.retain(|it| it.id() != id(7));
    body.trees.retain(|it| it.tree.writer != identity(7).public());
    body.topology = Topology::from_links(2, &[(0, 1)], &[]).unwrap();
    let number = (charter.epoch(), charter.revision() + 1);
    let without = charter.amend(&founder.identity, number, &[], body).unwrap();
    founder.adopt(without, None, now);
    net.run(2 * MINUTE);
    assert!(net.has_member(7));
    assert_eq!(net.invited(7).used_by, Some(id(7)));
}

#[test]
fn an_invitation_that_has_ended_or_was_withdrawn_admits_nobody() {
    let mut net = TestNet::new(2);
    net.run(2 * MINUTE);
    net.invite(1, 7, MINUTE).unwrap();
    let withdrawn = net.invite(1, 8, VALID).unwrap().id();
    let now = net.now;
    net.groups.get_mut(&id(1)).unwrap().revoke(withdrawn, now).unwrap();
    let unknown = InvitationId(5);
    let refused = net.groups.get_mut(&id(1)).unwrap().revoke(unknown, now);
    assert_eq!(refused, Err(InviteError::Unknown(unknown)));
    net.run(MINUTE);
    for member in 7..=9 {
        net.come(member, 1, member);
    }
    net.run(MINUTE);
    assert!((7..=9).all(|it| !net.has_member(it)));
    let reasons = [7, 8, 9].map(|it| net.reasons(it));
    assert_eq!(reasons, [vec![Reason::Ended], vec![Reason::Withdrawn], vec![Reason::Withdrawn]]);
    // A member that a rule admits needs none.
    let founder = net.groups.get_mut(&id(1)).unwrap();
    let mut settings = founder.settings.clone();
    settings.access.as_mut().unwrap().allow.push(Rule::Member(id(9)));
    founder.handle_settings(settings, net.now);
    net.run(6 * MINUTE);
    let charter = net.charter();
    assert_eq!(charter.body().member(id(9)).map(|it| it.invitation), Some(None));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_an_invitation() {
    let mut net = TestNet::new(2);
    net.run(2 * MINUTE);
    let set = |net: &mut TestNet, unix: u64| {
        let now = net.now;
        net.groups.get_mut(&id(1)).unwrap().handle_clock(unix, now);
    };
    set(&mut net, 1_000_000);
    let made = net.invite(1, 7, 2 * MINUTE).unwrap();
    assert_eq!((made.made, made.ends), (1_000_000, 1_000_120));
    for _ in 0..3 {
        net.run(MINUTE);
        set(&mut net, 1_000_000);
    }
    net.come(7, 1, 7);
    net.run(MINUTE);
    assert_eq!(net.reasons(7), [Reason::Ended]);
}

#[test]
fn denying_a_member_withdraws_its_invitation_and_closes_its_links() {
    let mut net = TestNet::new(4);
    net.run(2 * MINUTE);
    net.invite(1, 7, VALID).unwrap();
    net.come(7, 1, 7);
    net.run(2 * MINUTE);
    let linked = |net: &TestNet| -> Vec<MemberId> {
        let ends = |it: &&(MemberId, MemberId)| it.0 == id(7) || it.1 == id(7);
        let others =
            net.links.iter().filter(ends).map(|it| if it.0 == id(7) { it.1 } else { it.0 });
        others.collect()
    };
    let neighbors = linked(&net);
    assert!(2 <= neighbors.len() && net.parted.is_empty());
    let mut access = net.charter().body().access.clone();
    access.deny.push(Rule::Member(id(7)));
    net.settle(1, |it| it.access = Some(access));
    // One pause between charters.
    net.run(Duration::from_secs(2));
    let mut parted: Vec<MemberId> = net.parted.iter().map(|it| it.0).collect();
    parted.sort_unstable();
    parted.dedup();
    assert!(neighbors.iter().all(|it| parted.contains(it)), "{parted:?} of {neighbors:?}");
    assert!(net.parted.iter().all(|it| it.1 == id(7)));
    net.kill(id(7));
    assert!(!net.has_member(7) && net.invited(7).is_withdrawn);
    // Later charters do not close a link that the denied member may have for another group.
    let count = net.parted.len();
    net.come(7, 1, 7);
    net.run(MINUTE);
    net.settle(1, |it| it.connectivity = Some(Connectivity::Three));
    net.run(MINUTE);
    assert_eq!((net.parted.len(), net.has_member(7)), (count, false));
    net.kill(id(7));
    // Under another key it is not invited.
    net.come(8, 1, 7);
    net.run(MINUTE);
    assert!(!net.has_member(8));
    assert_eq!(net.reasons(8), [Reason::Used]);
    // A new invitation admits it.
    net.invite(1, 9, VALID).unwrap();
    net.come(9, 1, 9);
    net.run(MINUTE);
    assert!(net.has_member(9));
}

#[test]
fn a_new_leader_knows_which_invitations_are_open_and_used() {
    let mut net = TestNet::new(4);
    net.run(3 * MINUTE);
    for seed in [7, 8] {
        net.invite(1, seed, VALID).unwrap();
    }
    net.come(7, 1, 7);
    net.run(2 * MINUTE);
    let elsewhere = InviteError::Elsewhere(id(1));
    let deputy = MemberId::of(&net.charter().deputies()[0]);
    let seed = (2..=7).find(|it| id(*it) == deputy).unwrap();
    assert_eq!(net.invite(seed, 9, VALID), Err(elsewhere));
    net.kill(id(1));
    net.run(4 * MINUTE);
    assert_eq!(net.charter().leader(), deputy);
    net.come(8, seed, 8);
    net.come(9, seed, 7);
    net.run(MINUTE);
    assert!(net.has_member(8) && !net.has_member(9));
    assert_eq!((net.reasons(8), net.reasons(9)), (vec![], vec![Reason::Used]));
    net.invite(seed, 10, VALID).unwrap();
    net.come(10, seed, 10);
    net.run(MINUTE);
    assert!(net.has_member(10));
    let came: Vec<u8> = (7..=10)
        .filter(|it| net.charter().body().member(id(*it)).is_some_and(is_invited))
        .collect();
    assert_eq!(came, [7, 8, 10]);
}

fn is_invited(member: &Member) -> bool {
    member.invitation.is_some()
}

#[test]
fn of_too_many_invitations_closed_ones_are_dropped() {
    let mut net = TestNet::new(1);
    net.run(MINUTE);
    let long = |seed: u16| {
        let mut secret = [3; 32];
        secret[..2].copy_from_slice(&seed.to_be_bytes());
        Identity::of(&secret).unwrap().public()
    };
    let now = net.now;
    let founder = net.groups.get_mut(&id(1)).unwrap();
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

/// The member's request is granted after one charter, and the member is denied before the next.
#[test]
fn an_invitation_is_not_used_up_by_a_member_denied_before_its_entry() {
    let mut net = TestNet::new(2);
    net.run(2 * MINUTE);
    net.invite(1, 7, VALID).unwrap();
    net.settle(1, |it| it.connectivity = Some(Connectivity::Three));
    net.run(TICK);
    net.come(8, 1, 7);
    let is_granted =
        |net: &TestNet| net.groups[&id(1)].lead.has_granted(net.invited(7).id(), id(1));
    for _ in 0..3 {
        net.run(TICK);
    }
    assert!(is_granted(&net) && !net.has_member(8));
    net.settle(1, |it| it.access.as_mut().unwrap().deny.push(Rule::Member(id(8))));
    net.run(MINUTE);
    assert!(!is_granted(&net) && !net.has_member(8));
    net.come(9, 1, 7);
    net.run(MINUTE);
    assert!(net.has_member(9));
    assert_eq!(net.reasons(9), []);
}

/// A member without an invitation asks for another address just before it is denied.
#[test]
fn a_denied_member_is_not_admitted_by_its_earlier_request() {
    let mut net = TestNet::new(3);
    net.run(2 * MINUTE);
    net.settle(1, |it| it.access.as_mut().unwrap().allow.clear());
    net.run(TICK);
    net.settle(3, |it| it.address = Address::new("elsewhere:4000").unwrap());
    net.run(TICK);
    net.settle(1, |it| it.access.as_mut().unwrap().deny.push(Rule::Member(id(3))));
    net.run(TICK);
    net.kill(id(3));
    net.run(MINUTE);
    assert!(!net.has_member(3));
    net.settle(1, |it| it.access.as_mut().unwrap().deny.clear());
    net.run(MINUTE);
    assert!(!net.has_member(3));
}
