use proptest::prelude::*;

use super::super::access::Access;
use super::super::access::Rule;
use super::super::invited::{INVITATIONS_MAX, Invited};
use super::super::succession::Refusal;
use super::*;
use crate::id::InvitationId;
use crate::topology::{Bounds, Connectivity, Costs, Topology};
use crate::version::{Kind, Name};

/// Identities of a group's members, the founder's first.
struct Cast(Vec<Identity>);

fn tree(of: &Member) -> GroupTree {
    GroupTree { writer: *of.key(), name: of.site.clone(), kind: Kind::Tree }
}

impl Cast {
    fn new(count: u8) -> Self {
        Self((1..=count).map(|it| Identity::of(&[it; 32]).unwrap()).collect())
    }

    fn keys(&self, places: &[usize]) -> Vec<[u8; 32]> {
        places.iter().map(|it| self.0[*it].public()).collect()
    }

    fn body(&self) -> Body {
        let member = |it: &Identity| {
            let address = Address::new("host.example:4000").unwrap();
            Member::new(it.public(), address, Name::new("here").unwrap(), 1)
        };
        let mut members: Vec<Member> = self.0.iter().map(member).collect();
        members.sort_by_key(Member::id);
        let mut costs = Costs::new(members.len());
        for a in 0..members.len() {
            (0..a).for_each(|b| costs.set(a, b, u32::try_from(a * 7 + b).unwrap()));
        }
        let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
        let mut trees = Vec::new();
        let carried = |writer: u8| GroupTree { writer: [writer; 32], ..tree(&members[0]) };
        for (writer, it) in (100..).zip(&members) {
            let all = [(tree(it), 0), (carried(writer), 1), (carried(99), 2)].into_iter();
            assert!(trees::list(&mut trees, it.id(), all));
        }
        let name = Name::new("group").unwrap();
        let access = Access::default();
        let gone = vec![Former { member: MemberId(7), sequence: 9 }];
        let invited = |key: u8, used_by, is_withdrawn| Invited {
            key: [key; 32],
            made: 1_000,
            ends: 2_000,
            used_by,
            is_withdrawn,
        };
        let used = Some(members[0].id());
        let invitations =
            vec![invited(1, None, false), invited(2, used, false), invited(3, None, true)];
        members[0].invitation = Some(invitations[1].id());
        let connectivity = Connectivity::Two;
        Body { name, connectivity, access, invitations, members, gone, trees, topology }
    }

    /// The founder's charter with these deputies.
    fn founded(&self, deputies: &[usize]) -> Charter {
        let first = Charter::found(&self.0[0], self.body()).unwrap();
        self.amend(&first, 0, (1, 1), deputies)
    }

    fn amend(&self, from: &Charter, by: usize, number: (u64, u64), deputies: &[usize]) -> Charter {
        from.amend(&self.0[by], number, &self.keys(deputies), self.body()).unwrap()
    }
}

fn read(charter: &Charter) -> Result<Charter, CharterError> {
    Charter::from_bytes(&charter.to_bytes(), charter.group(), None)
}

#[test]
fn addresses_are_a_host_and_a_port() {
    for good in ["a:1", "host-1.example.org:65535", "192.0.2.1:4000", "[2001:db8::1]:4000"] {
        assert_eq!(Address::new(good).unwrap().as_str(), good);
    }
    assert_eq!(Address::new("[::1]:4000").unwrap().ip(), Some("::1".parse().unwrap()));
    assert_eq!(Address::new("a:1").unwrap().ip(), None);
    let long = format!("{}:1", "a".repeat(254));
    for wrong in ["", "a", ":1", "a:", "a:0", "a:65536", "a:+1", "a b:1", "2001:db8::1:4000", &long]
    {
        assert!(Address::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_greatest_charter_is_within_its_bound() {
    let address = Address::new(&format!("{}:65535", "a".repeat(249))).unwrap();
    let name = Name::new(&"n".repeat(40)).unwrap();
    let net: Rule = "2001:db8::/32".parse().unwrap();
    let founder = Identity::of(&[1; 32]).unwrap();
    let keys = (0..MEMBERS_MAX).map(|it| {
        let mut key = [9; 32];
        key[..8].copy_from_slice(&(it as u64).to_be_bytes());
        key
    });
    let keys: Vec<[u8; 32]> = keys.skip(1).chain([founder.public()]).collect();
    let mut members: Vec<Member> =
        keys.iter().map(|it| Member::new(*it, address.clone(), name.clone(), 1)).collect();
    for it in &mut members {
        (it.silent, it.invitation) = (Some(1), Some(InvitationId(1)));
    }
    let invited = |it: usize| {
        let mut key = [8; 32];
        key[..8].copy_from_slice(&(it as u64).to_be_bytes());
        Invited { key, made: 1, ends: 2, used_by: Some(MemberId(7)), is_withdrawn: true }
    };
    members.sort_by_key(Member::id);
    let lister = |it: &Member| Lister { member: it.id(), distance: 1 };
    let by: Vec<Lister> = members.iter().take(LISTERS_MAX).map(lister).collect();
    let tree = |it: usize| {
        let name = Name::new(&format!("{it:0>40}")).unwrap();
        let tree = GroupTree { writer: [3; 32], name, kind: Kind::Collection };
        Listed { tree, by: by.clone() }
    };
    let pairs = (0..300_u16).flat_map(|a| (a + 1..300).map(move |b| (a, b))).skip(299);
    let pairs: Vec<(u16, u16)> = pairs.take(LINKS_MAX - 299).collect();
    let tree_links: Vec<(u16, u16)> = (1..300).map(|it| (0, it)).collect();
    let body = Body {
        name,
        connectivity: Connectivity::Three,
        access: Access { allow: vec![net; 512], deny: vec![net; 512] },
        invitations: (0..INVITATIONS_MAX).map(invited).collect(),
        members,
        gone: (0..GONE_MAX as u64)
            .map(|it| Former { member: MemberId(it), sequence: it })
            .collect(),
        trees: (0..TREES_MAX).map(tree).collect(),
        topology: Topology::from_links(300, &tree_links, &pairs).unwrap(),
    };
    let first = Charter::found(&founder, body.clone()).unwrap();
    let deputies = &keys[..DEPUTIES_MAX];
    let charter = first.amend(&founder, (1, 1), deputies, body).unwrap();
    // As if all members that may ever lead had led.
    let longest = charter.to_bytes().len() + (MANDATES_MAX - 1) * (8 * 3 + 32 * 9 + 1 + 64);
    assert!(longest <= CHARTER_BYTES_MAX, "{longest}");
    assert_eq!(read(&charter), Ok(charter));
}

/// An older program signed this charter: its invitations were for anybody, and had no end.
#[test]
fn a_charter_of_format_3_holds_without_its_invitations() {
    let cast = Cast::new(3);
    let bytes = include_bytes!("tests.format-3");
    let group = GroupId::of(&cast.0[0].public(), "group");
    let charter = Charter::from_bytes(bytes, group, None).unwrap();
    assert_eq!((bytes[0], charter.to_bytes().as_ref()), (3, bytes.as_slice()));
    assert_eq!((charter.epoch(), charter.revision()), (1, 1));
    let mut expected = cast.body();
    expected.access.deny = vec!["10.0.0.0/8".parse().unwrap()];
    expected.invitations.clear();
    expected.members.iter_mut().for_each(|it| it.invitation = None);
    expected.members[1].silent = Some(4);
    assert_eq!(charter.body(), &expected);
    // The next charter has the present format, and follows it.
    let next = cast.amend(&charter, 0, (1, 2), &[1]);
    assert_eq!((next.to_bytes()[0], next.succeeds(&charter)), (4, Ok(())));
    let other = cast.amend(&charter, 1, (2, 0), &[]);
    assert_eq!(read(&other).unwrap().succeeds(&charter), Ok(()));
    for at in 0..bytes.len() {
        let mut forged = bytes.to_vec();
        forged[at] ^= 1;
        assert!(Charter::from_bytes(&forged, group, None).is_err(), "{at}");
    }
}

#[test]
fn invalid_charters_are_not_signed() {
    let cast = Cast::new(4);
    let charter = cast.founded(&[1]);
    let body = cast.body();
    let rank = SignError::Rank(MemberId::of(&cast.0[2].public()));
    assert_eq!(charter.amend(&cast.0[2], (2, 0), &[], body.clone()), Err(rank));
    let mut without = cast.body();
    let position = without.position(MemberId::of(&cast.0[0].public())).unwrap();
    without.members.remove(position);
    without.topology = Topology::new(&Costs::new(3), Connectivity::Tree, Bounds::DEFAULT);
    let wrong = SignError::Form { members: 3, trees: 9 };
    assert_eq!(charter.amend(&cast.0[0], (1, 2), &[], without), Err(wrong));
    // A deputy that is no member, one that is the leader, and one twice.
    let outside = [[7; 32]].to_vec();
    for deputies in [outside, cast.keys(&[0]), cast.keys(&[1, 1])] {
        let wrong = SignError::Form { members: 4, trees: 9 };
        assert_eq!(charter.amend(&cast.0[0], (1, 2), &deputies, body.clone()), Err(wrong));
    }
}

#[test]
fn the_last_former_members_stay_on_record() {
    let cast = Cast::new(3);
    let mut body = cast.body();
    let gone = |it: u64| Former { member: MemberId(it), sequence: it + 1 };
    body.gone.clear();
    body.record_former((0..=GONE_MAX as u64).map(gone).collect());
    assert_eq!((body.gone(MemberId(0)), body.gone(MemberId(1))), (None, Some(2)));
    assert!(Charter::found(&cast.0[0], body.clone()).is_ok());
    // An id twice, or of a member.
    for wrong in [MemberId(1), body.members[0].id()] {
        let mut body = body.clone();
        body.gone[7].member = wrong;
        assert!(Charter::found(&cast.0[0], body).is_err());
    }
    // A member that comes back is no longer a former one.
    let back = Member::new([9; 32], body.members[0].address.clone(), body.name.clone(), 1);
    body.gone[7].member = back.id();
    body.put(back.clone());
    assert_eq!((body.gone.len(), body.gone(back.id())), (GONE_MAX - 1, None));
    assert!(body.members.is_sorted_by_key(Member::id) && body.member(back.id()).is_some());
}

#[test]
fn a_group_is_bound_to_its_founders_key() {
    let (cast, charter) = (Cast::new(3), Cast::new(3).founded(&[1]));
    assert_eq!(charter.founder(), cast.0[0].public());
    assert_eq!(charter.group(), GroupId::of(&charter.founder(), "group"));
    // Another founder with the same content.
    let mut other = Cast::new(3);
    other.0.swap(0, 1);
    let other = other.founded(&[1]);
    let foreign = CharterError::Foreign(other.group());
    assert_eq!(Charter::from_bytes(&other.to_bytes(), charter.group(), None), Err(foreign));
    assert_eq!(other.succeeds(&charter), Err(Refusal::Foreign));
}

/// The founder is member 0 and leads in epoch 1. Members 1 and 2 are its deputies, in this order.
#[test]
fn later_charters_succeed_earlier_ones() {
    let cast = Cast::new(6);
    let known = cast.founded(&[1, 2]);
    let next = cast.amend(&known, 0, (1, 2), &[1, 2]);
    let (one, two) = (cast.amend(&known, 1, (2, 0), &[0, 2]), cast.amend(&known, 2, (2, 9), &[0]));
    let later = cast.amend(&two, 0, (3, 0), &[1, 2]);
    // Each succeeds those before it.
    let order = [&known, &next, &two, &one, &later];
    for (position, it) in order.iter().enumerate() {
        assert_eq!(read(it).as_ref(), Ok(*it));
        for (other, known) in order.iter().enumerate() {
            assert_eq!(it.succeeds(known).is_ok(), other < position, "{position} after {other}");
        }
    }
    // A leader that leads again resumes at its first place in the chain.
    assert_eq!((later.chain().len(), one.chain().len()), (1, 2));
    let back = cast.amend(&cast.amend(&one, 2, (3, 0), &[1]), 1, (4, 0), &[]);
    assert_eq!((back.chain().len(), back.leader()), (2, one.leader()));
    assert_eq!(read(&back), Ok(back));
    let far = cast.amend(&known, 1, (2 + EPOCHS, 0), &[]);
    assert_eq!(far.succeeds(&known), Err(Refusal::Epoch));
}

const EPOCHS: u64 = super::super::succession::EPOCHS_MAX;

#[test]
fn a_former_deputy_is_not_followed() {
    let cast = Cast::new(6);
    let old = cast.founded(&[1, 2]);
    let new = cast.amend(&old, 0, (1, 5), &[2]);
    let usurped = cast.amend(&old, 1, (2, 0), &[3]);
    let refusal = Refusal::Revoked(usurped.leader());
    assert_eq!(usurped.succeeds(&new), Err(refusal));
    // Nor are deputies that it named.
    let by_friend = cast.amend(&usurped, 3, (3, 0), &[]);
    assert_eq!(by_friend.succeeds(&new), Err(refusal));
    // Members that do not know of the change follow the former deputy, until the leader answers.
    // Then all follow the answer, and no longer the former deputy.
    assert_eq!(usurped.succeeds(&old), Ok(()));
    let answer = cast.amend(&new, 0, (3, 0), &[2]);
    assert_eq!((answer.succeeds(&usurped), answer.succeeds(&new)), (Ok(()), Ok(())));
    let again = cast.amend(&old, 1, (4, 0), &[3]);
    assert_eq!(again.succeeds(&answer), Err(Refusal::Revoked(again.leader())));
    // A present deputy may have missed the leader's last charter.
    let honest = cast.amend(&old, 2, (2, 0), &[0]);
    assert_eq!(honest.succeeds(&new), Ok(()));
}

#[test]
fn parts_of_two_charters_do_not_make_a_third() {
    let cast = Cast::new(4);
    let (one, two) = (cast.founded(&[1]), cast.founded(&[2]));
    // One's mandate before the other's body, and a deputy's mandate in place of the founder's.
    let swap = cast.amend(&one, 1, (2, 0), &[]);
    let head = two.to_bytes().len() - one.body.to_bytes().len();
    let mut mixed = two.to_bytes()[..head].to_vec();
    let mut body = one.body.clone();
    body.trees.clear();
    mixed.extend(body.to_bytes());
    assert!(matches!(
        Charter::from_bytes(&mixed, one.group(), None),
        Err(CharterError::Form { .. })
    ));
    let mut cut = vec![FORMAT, 1];
    swap.chain[1].write(&mut cut);
    cut.extend(swap.body.to_bytes());
    assert!(Charter::from_bytes(&cut, one.group(), None).is_err());
    // Signatures that the known charter has too are not checked again.
    assert_eq!(Charter::from_bytes(&swap.to_bytes(), one.group(), Some(&one)), Ok(swap));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_charter_with_a_changed_bit_is_rejected(
        at: prop::sample::Index, flip in 1..=255_u8, members in 2..9_u8, is_late: bool,
    ) {
        let cast = Cast::new(members);
        let mut charter = cast.founded(&[1]);
        if is_late {
            charter = cast.amend(&charter, 1, (2, 7), &[0]);
        }
        prop_assert_eq!(read(&charter), Ok(charter.clone()));
        let mut bytes = charter.to_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(Charter::from_bytes(&bytes, charter.group(), None).is_err());
        prop_assert!(Charter::from_bytes(&bytes[..at], charter.group(), None).is_err());
    }

    #[test]
    fn all_orders_of_charters_end_with_the_same_one(order in prop::collection::vec(0..6_usize, 24)) {
        let cast = Cast::new(4);
        let first = cast.founded(&[1, 2]);
        let one = cast.amend(&first, 1, (2, 0), &[0, 2]);
        let all = [
            cast.amend(&first, 0, (1, 4), &[1, 2]),
            cast.amend(&first, 2, (2, 3), &[0, 1]),
            cast.amend(&one, 2, (3, 0), &[1, 0]),
            cast.amend(&one, 0, (3, 1), &[1, 2]),
            one,
            first,
        ];
        let greatest = all.iter().max_by_key(|it| it.standing()).unwrap();
        for skip in 0..3 {
            let mut known = all[5].clone();
            for at in order.iter().skip(skip).chain(&[0, 1, 2, 3, 4]) {
                if all[*at].succeeds(&known).is_ok() {
                    known = all[*at].clone();
                }
            }
            prop_assert_eq!(&known, greatest);
        }
    }
}
