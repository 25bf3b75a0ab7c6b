use net::identity::Identity;

use super::*;
use crate::message::VersionSummary;
use crate::topology::Topology;
use crate::version::{Hash, Kind, Name, Number};

const GROUP: GroupId = GroupId(1);
const OTHER: GroupId = GroupId(2);

/// Members in the order of their ids.
fn identities(count: u8) -> Vec<Identity> {
    let mut all: Vec<Identity> =
        (0..count).map(|it| Identity::of(&[it + 1; 32]).unwrap()).collect();
    all.sort_by_key(id);
    all
}

fn id(of: &Identity) -> MemberId {
    MemberId::of(&of.public())
}

fn namespace(origin: &Identity) -> Namespace {
    Namespace { origin: id(origin), name: Name::new("tree").unwrap() }
}

fn version(origin: &Identity, sequence: u64, root: u8) -> Version {
    let number = Number { epoch: sequence / 100, sequence };
    Version::sign(origin, namespace(origin).name, Kind::Tree, number, 1, Hash([root; 32]))
}

/// Returns a group of these members whose tree is a chain in this order.
fn chain(members: &[&Identity], writers: &[&Identity]) -> Neighborhood {
    let links: Vec<(u16, u16)> =
        (1..u16::try_from(members.len()).unwrap()).map(|it| (it - 1, it)).collect();
    Neighborhood {
        members: members.iter().map(|it| id(it)).collect(),
        topology: Topology::from_links(members.len(), &links, &[]).unwrap(),
        writers: writers.iter().map(|it| (namespace(it), it.public())).collect(),
    }
}

fn announced(group: GroupId, distance: u8, entry: &Identity, version: &Version) -> Announcement {
    Announcement::new(group, Route { distance, entry: id(entry) }, version)
}

/// Takes the announcements to send: receiver, group, distance and entry, members by index.
fn sent(flood: &mut Flood, members: &[Identity]) -> Vec<(usize, GroupId, u8, usize)> {
    let index = |it| members.iter().position(|member| id(member) == it).unwrap();
    let messages = flood.take_messages();
    let sent = messages.into_iter().map(|(to, message)| match message {
        Message::Announce(it) => (index(to), it.group, it.route.distance, index(it.route.entry)),
        other => panic!("{other:?}"),
    });
    sent.collect()
}

#[test]
fn a_new_version_goes_to_all_neighbors_but_its_sender() {
    let all = identities(4);
    let members: Vec<&Identity> = all.iter().collect();
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, chain(&members, &[&all[0]]));
    let first = version(&all[0], 1, 1);
    let message = announced(GROUP, 0, &all[0], &first);
    let news = Outcome::News(namespace(&all[0]));
    assert_eq!(flood.handle_announcement(id(&all[0]), &message), news);
    assert_eq!(sent(&mut flood, &all), [(2, GROUP, 0, 0)]);
    assert_eq!(flood.handle_announcement(id(&all[2]), &message), Outcome::Nothing);
    assert_eq!(sent(&mut flood, &all), []);
    assert_eq!(flood.sources(&namespace(&all[0])), [id(&all[0]), id(&all[2])]);
    // An old version is answered with the newest.
    let second = version(&all[0], 2, 2);
    flood.handle_announcement(id(&all[0]), &announced(GROUP, 0, &all[0], &second));
    sent(&mut flood, &all);
    assert_eq!(flood.handle_announcement(id(&all[2]), &message), Outcome::Nothing);
    assert_eq!(sent(&mut flood, &all), [(2, GROUP, 0, 0)]);
    assert_eq!(flood.newest(&namespace(&all[0])), Some(&second));
}

#[test]
fn invalid_announcements_are_refused() {
    let all = identities(5);
    let members: Vec<&Identity> = all.iter().take(4).collect();
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, chain(&members, &[&all[0]]));
    let real = version(&all[0], 1, 1);
    let mut forged = announced(GROUP, 0, &all[0], &real);
    forged.version[40] ^= 1;
    let mut short = announced(GROUP, 0, &all[0], &real);
    short.version.pop();
    let form = VersionError::Form(short.version.len());
    for (from, message, why) in [
        (0, announced(OTHER, 0, &all[0], &real), Refusal::Group),
        (4, announced(GROUP, 0, &all[0], &real), Refusal::Group),
        (0, announced(GROUP, 0, &all[2], &version(&all[2], 1, 1)), Refusal::Namespace),
        (0, announced(GROUP, 0, &all[2], &real), Refusal::Route),
        (0, announced(GROUP, 1, &all[0], &real), Refusal::Route),
        (0, announced(GROUP, 1, &all[4], &real), Refusal::Route),
        (0, announced(GROUP, DISTANCE_MAX + 1, &all[2], &real), Refusal::Route),
        (0, forged, Refusal::Version(VersionError::Forged(id(&all[0])))),
        (0, short, Refusal::Version(form)),
    ] {
        assert_eq!(flood.handle_announcement(id(&all[from]), &message), Outcome::Refused(why));
    }
    assert_eq!(flood.newest(&namespace(&all[0])), None);
    assert_eq!(sent(&mut flood, &all), []);
}

/// Members 0 to 2 are a group with the origin 0; 1 to 4 are another.
fn two_groups(all: &[Identity], me: usize) -> Flood {
    let mut flood = Flood::new(id(&all[me]));
    let here: Vec<&Identity> = all[..3].iter().collect();
    let there: Vec<&Identity> = all[1..].iter().collect();
    if me < 3 {
        flood.set_group(GROUP, chain(&here, &[&all[0]]));
    }
    if 0 < me {
        flood.set_group(OTHER, chain(&there, &[&all[0]]));
    }
    flood
}

#[test]
fn a_member_of_two_groups_carries_versions_across() {
    let all = identities(5);
    let mut flood = two_groups(&all, 2);
    let message = announced(GROUP, 0, &all[0], &version(&all[0], 1, 1));
    flood.handle_announcement(id(&all[1]), &message);
    assert_eq!(sent(&mut flood, &all), [(1, OTHER, 1, 2), (3, OTHER, 1, 2)]);
    // Content comes from the origin's side, even if others carry the version across.
    assert_eq!(flood.sources(&namespace(&all[0]))[0], id(&all[1]));
}

#[test]
fn all_members_agree_on_the_least_route() {
    let all = identities(5);
    let mut flood = two_groups(&all, 3);
    let first = version(&all[0], 1, 1);
    let name = namespace(&all[0]);
    let nearer = Outcome::Nearer(name.clone());
    let receive = |flood: &mut Flood, from: usize, distance, entry: usize| {
        let message = announced(OTHER, distance, &all[entry], &first);
        (flood.handle_announcement(id(&all[from]), &message), flood.sources(&name)[0])
    };
    assert_eq!(receive(&mut flood, 4, 2, 4), (Outcome::News(name.clone()), id(&all[4])));
    assert_eq!(sent(&mut flood, &all), [(2, OTHER, 2, 4)]);
    assert_eq!(receive(&mut flood, 2, 1, 2), (nearer.clone(), id(&all[2])));
    assert_eq!(sent(&mut flood, &all), [(4, OTHER, 1, 2)]);
    // At equal distance the entry with the smaller id is better.
    assert_eq!(receive(&mut flood, 2, 1, 1), (nearer, id(&all[2])));
    assert_eq!(sent(&mut flood, &all), [(4, OTHER, 1, 1)]);
    for (distance, entry) in [(1, 2), (2, 4), (1, 1)] {
        assert_eq!(receive(&mut flood, 4, distance, entry).0, Outcome::Nothing);
    }
    assert_eq!(sent(&mut flood, &all), []);
}

#[test]
fn a_namespace_that_no_group_has_is_forgotten() {
    let all = identities(5);
    let mut flood = two_groups(&all, 2);
    let name = namespace(&all[0]);
    flood.handle_announcement(id(&all[1]), &announced(GROUP, 0, &all[0], &version(&all[0], 1, 1)));
    flood.remove_group(GROUP);
    assert!(flood.is_listed(&name) && flood.newest(&name).is_some());
    assert!(!flood.serves(id(&all[0]), &name) && flood.serves(id(&all[4]), &name));
    flood.set_group(OTHER, chain(&[&all[1], &all[2]], &[]));
    assert!(!flood.is_listed(&name) && flood.newest(&name).is_none());
}

#[test]
fn two_versions_of_one_number_end_the_epoch() {
    let all = identities(3);
    let members: Vec<&Identity> = all.iter().collect();
    let (name, neighborhood) = (namespace(&all[0]), chain(&members, &[&all[0]]));
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, neighborhood.clone());
    let receive = |flood: &mut Flood, version: &Version| {
        flood.handle_announcement(id(&all[0]), &announced(GROUP, 0, &all[0], version))
    };
    let (one, other) = (version(&all[0], 1, 1), version(&all[0], 1, 2));
    receive(&mut flood, &one);
    assert_eq!(flood.target(&name), Some(&one));
    flood.take_messages();
    assert_eq!(receive(&mut flood, &other), Outcome::Contradiction(name.clone()));
    assert_eq!(flood.target(&name), None);
    let evidence = flood.take_messages();
    assert_eq!(evidence.len(), 2, "the sender knows only one of the two, too");
    assert_eq!(receive(&mut flood, &other), Outcome::Nothing);
    // Later versions of that epoch are not targets; versions of the next epoch are.
    receive(&mut flood, &version(&all[0], 2, 3));
    assert_eq!(flood.target(&name), None);
    let anew = version(&all[0], 100, 3);
    receive(&mut flood, &anew);
    assert_eq!(flood.target(&name), Some(&anew));
    // Only the evidence convinces others.
    let mut third = Flood::new(id(&all[2]));
    third.set_group(GROUP, neighborhood);
    let Message::Evidence { group, first, second } = &evidence[1].1 else { panic!() };
    let show = |flood: &mut Flood, first: &[u8], second: &[u8]| {
        flood.handle_evidence(id(&all[1]), *group, first, second)
    };
    let later = version(&all[0], 2, 1).to_bytes();
    for (first, second) in [(first, first), (first, &later)] {
        let refused = Outcome::Refused(Refusal::Evidence);
        assert_eq!(show(&mut third, first, second), refused);
    }
    assert_eq!(show(&mut third, first, second), Outcome::Contradiction(name));
    assert_eq!(show(&mut third, first, second), Outcome::Nothing);
}

/// Exchanges messages until both are silent. Returns their number.
fn exchange(one: &mut Flood, other: &mut Flood) -> usize {
    let mut count = 0;
    loop {
        let sent = [one.take_messages(), other.take_messages()];
        if sent.iter().all(Vec::is_empty) {
            return count;
        }
        let ids = [one.me, other.me];
        for (messages, (from, to)) in
            sent.into_iter().zip([(ids[0], &mut *other), (ids[1], &mut *one)])
        {
            for (_, message) in messages {
                count += 1;
                match message {
                    Message::Announce(it) => _ = to.handle_announcement(from, &it),
                    Message::Evidence { group, first, second } => {
                        to.handle_evidence(from, group, &first, &second);
                    }
                    Message::Digest { group, digest } => to.handle_digest(from, group, digest),
                    Message::Versions { group, asks, known } => {
                        to.handle_versions(from, group, asks, &known);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn comparing_finds_lost_versions() {
    let all = identities(2);
    let neighborhood = chain(&[&all[0], &all[1]], &[&all[0], &all[1]]);
    let floods = || {
        [0, 1].map(|at: usize| {
            let mut flood = Flood::new(id(&all[at]));
            flood.set_group(GROUP, neighborhood.clone());
            flood
        })
    };
    let sequences = |it: &Flood| {
        let names = it.namespaces();
        names.iter().map(|of| it.newest(of).map(|it| it.number.sequence)).collect::<Vec<_>>()
    };
    let [mut one, mut other] = floods();
    one.handle_own(&version(&all[0], 7, 1));
    one.handle_own(&version(&all[1], 3, 1));
    other.handle_own(&version(&all[1], 4, 1));
    one.take_messages();
    other.take_messages();
    other.compare(one.me);
    exchange(&mut one, &mut other);
    assert_eq!(sequences(&one), sequences(&other));
    assert!(sequences(&one).contains(&Some(7)) && sequences(&one).contains(&Some(4)));
    one.compare(other.me);
    assert_eq!(exchange(&mut one, &mut other), 1, "equal lists need only the digest");
    // If the two differ under one number, both get the evidence.
    let [mut one, mut other] = floods();
    one.handle_own(&version(&all[0], 7, 1));
    other.handle_own(&version(&all[0], 7, 2));
    one.take_messages();
    other.take_messages();
    one.compare(other.me);
    exchange(&mut one, &mut other);
    let name = namespace(&all[0]);
    assert!(one.contradiction(&name).is_some() && other.contradiction(&name).is_some());
}

#[test]
fn strangers_get_no_messages() {
    let all = identities(3);
    let mut flood = Flood::new(id(&all[0]));
    flood.set_group(GROUP, chain(&[&all[0], &all[1]], &[&all[0]]));
    flood.handle_own(&version(&all[0], 1, 1));
    flood.take_messages();
    flood.compare(id(&all[2]));
    flood.handle_digest(id(&all[2]), GROUP, [0; 16]);
    flood.handle_versions(id(&all[2]), GROUP, true, &Vec::<VersionSummary>::new());
    assert_eq!(flood.take_messages(), []);
}
