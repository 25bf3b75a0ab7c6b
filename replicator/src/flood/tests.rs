use net::identity::Identity;

use super::*;
use crate::message::Known;
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

/// A group of these, its tree a chain in this order.
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

/// To whom what is announced goes, by place, with the way it is said to come.
fn told(flood: &mut Flood, members: &[Identity]) -> Vec<(usize, GroupId, u8, usize)> {
    let place = |it| members.iter().position(|member| id(member) == it).unwrap();
    let messages = flood.take_messages();
    let told = messages.into_iter().map(|(to, message)| match message {
        Message::Announce(it) => (place(to), it.group, it.route.distance, place(it.route.entry)),
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[test]
fn news_goes_on_to_all_but_whom_it_came_from() {
    let all = identities(4);
    let members: Vec<&Identity> = all.iter().collect();
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, chain(&members, &[&all[0]]));
    let first = version(&all[0], 1, 1);
    let said = announced(GROUP, 0, &all[0], &first);
    let news = Heard::News(namespace(&all[0]));
    assert_eq!(flood.handle_announcement(id(&all[0]), &said), news);
    assert_eq!(told(&mut flood, &all), [(2, GROUP, 0, 0)]);
    assert_eq!(flood.handle_announcement(id(&all[2]), &said), Heard::Nothing);
    assert_eq!(told(&mut flood, &all), []);
    assert_eq!(flood.sources(&namespace(&all[0])), [id(&all[0]), id(&all[2])]);
    // What is out of date is answered with what is not.
    let second = version(&all[0], 2, 2);
    flood.handle_announcement(id(&all[0]), &announced(GROUP, 0, &all[0], &second));
    told(&mut flood, &all);
    assert_eq!(flood.handle_announcement(id(&all[2]), &said), Heard::Nothing);
    assert_eq!(told(&mut flood, &all), [(2, GROUP, 0, 0)]);
    assert_eq!(flood.newest(&namespace(&all[0])), Some(&second));
}

#[test]
fn what_may_not_be_is_refused() {
    let all = identities(5);
    let members: Vec<&Identity> = all.iter().take(4).collect();
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, chain(&members, &[&all[0]]));
    let real = version(&all[0], 1, 1);
    let mut forged = announced(GROUP, 0, &all[0], &real);
    forged.version[40] ^= 1;
    let mut short = announced(GROUP, 0, &all[0], &real);
    short.version.pop();
    let form = ParseError::Form { bytes: short.version.len() };
    for (from, said, why) in [
        (0, announced(OTHER, 0, &all[0], &real), Refusal::Group),
        (4, announced(GROUP, 0, &all[0], &real), Refusal::Group),
        (0, announced(GROUP, 0, &all[2], &version(&all[2], 1, 1)), Refusal::Namespace),
        (0, announced(GROUP, 0, &all[2], &real), Refusal::Route),
        (0, announced(GROUP, 1, &all[0], &real), Refusal::Route),
        (0, announced(GROUP, 1, &all[4], &real), Refusal::Route),
        (0, announced(GROUP, DISTANCE_MAX + 1, &all[2], &real), Refusal::Route),
        (0, forged, Refusal::Version(ParseError::Forged(id(&all[0])))),
        (0, short, Refusal::Version(form)),
    ] {
        assert_eq!(flood.handle_announcement(id(&all[from]), &said), Heard::Refused(why));
    }
    assert_eq!(flood.newest(&namespace(&all[0])), None);
    assert_eq!(told(&mut flood, &all), []);
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
    let said = announced(GROUP, 0, &all[0], &version(&all[0], 1, 1));
    flood.handle_announcement(id(&all[1]), &said);
    assert_eq!(told(&mut flood, &all), [(1, OTHER, 1, 2), (3, OTHER, 1, 2)]);
    // It comes from the side of the origin, whoever else carries it across.
    assert_eq!(flood.sources(&namespace(&all[0]))[0], id(&all[1]));
}

#[test]
fn all_agree_on_the_nearest_way() {
    let all = identities(5);
    let mut flood = two_groups(&all, 3);
    let first = version(&all[0], 1, 1);
    let name = namespace(&all[0]);
    let nearer = Heard::Nearer(name.clone());
    let hear = |flood: &mut Flood, from: usize, distance, entry: usize| {
        let said = announced(OTHER, distance, &all[entry], &first);
        (flood.handle_announcement(id(&all[from]), &said), flood.sources(&name)[0])
    };
    assert_eq!(hear(&mut flood, 4, 2, 4), (Heard::News(name.clone()), id(&all[4])));
    assert_eq!(told(&mut flood, &all), [(2, OTHER, 2, 4)]);
    assert_eq!(hear(&mut flood, 2, 1, 2), (nearer.clone(), id(&all[2])));
    assert_eq!(told(&mut flood, &all), [(4, OTHER, 1, 2)]);
    // Of two as near as each other, the one with the smaller id.
    assert_eq!(hear(&mut flood, 2, 1, 1), (nearer, id(&all[2])));
    assert_eq!(told(&mut flood, &all), [(4, OTHER, 1, 1)]);
    for (distance, entry) in [(1, 2), (2, 4), (1, 1)] {
        assert_eq!(hear(&mut flood, 4, distance, entry).0, Heard::Nothing);
    }
    assert_eq!(told(&mut flood, &all), []);
}

#[test]
fn what_nobody_has_any_more_is_forgotten() {
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
    let (name, place) = (namespace(&all[0]), chain(&members, &[&all[0]]));
    let mut flood = Flood::new(id(&all[1]));
    flood.set_group(GROUP, place.clone());
    let hear = |flood: &mut Flood, version: &Version| {
        flood.handle_announcement(id(&all[0]), &announced(GROUP, 0, &all[0], version))
    };
    let (one, other) = (version(&all[0], 1, 1), version(&all[0], 1, 2));
    hear(&mut flood, &one);
    assert_eq!(flood.target(&name), Some(&one));
    flood.take_messages();
    assert_eq!(hear(&mut flood, &other), Heard::Contradiction(name.clone()));
    assert_eq!(flood.target(&name), None);
    let evidence = flood.take_messages();
    assert_eq!(evidence.len(), 2, "also whoever sent it knows one of them alone");
    assert_eq!(hear(&mut flood, &other), Heard::Nothing);
    // A later one of that epoch is none to have, one of the next is.
    hear(&mut flood, &version(&all[0], 2, 3));
    assert_eq!(flood.target(&name), None);
    let anew = version(&all[0], 100, 3);
    hear(&mut flood, &anew);
    assert_eq!(flood.target(&name), Some(&anew));
    // It convinces others, and nothing else does.
    let mut third = Flood::new(id(&all[2]));
    third.set_group(GROUP, place);
    let Message::Evidence { group, first, second } = &evidence[1].1 else { panic!() };
    let show = |flood: &mut Flood, first: &[u8], second: &[u8]| {
        flood.handle_evidence(id(&all[1]), *group, first, second)
    };
    let later = version(&all[0], 2, 1).to_bytes();
    for (first, second) in [(first, first), (first, &later)] {
        let refused = Heard::Refused(Refusal::Evidence);
        assert_eq!(show(&mut third, first, second), refused);
    }
    assert_eq!(show(&mut third, first, second), Heard::Contradiction(name));
    assert_eq!(show(&mut third, first, second), Heard::Nothing);
}

/// Hands messages to each other until both are silent; returns how many there were.
fn talk(one: &mut Flood, other: &mut Flood) -> usize {
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
fn who_compares_finds_what_was_lost() {
    let all = identities(2);
    let place = chain(&[&all[0], &all[1]], &[&all[0], &all[1]]);
    let floods = || {
        [0, 1].map(|at: usize| {
            let mut flood = Flood::new(id(&all[at]));
            flood.set_group(GROUP, place.clone());
            flood
        })
    };
    let both = |it: &Flood| {
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
    talk(&mut one, &mut other);
    assert_eq!(both(&one), both(&other));
    assert!(both(&one).contains(&Some(7)) && both(&one).contains(&Some(4)));
    one.compare(other.me);
    assert_eq!(talk(&mut one, &mut other), 1, "what is equal is said in short");
    // Of one number, and different: both see the evidence.
    let [mut one, mut other] = floods();
    one.handle_own(&version(&all[0], 7, 1));
    other.handle_own(&version(&all[0], 7, 2));
    one.take_messages();
    other.take_messages();
    one.compare(other.me);
    talk(&mut one, &mut other);
    let name = namespace(&all[0]);
    assert!(one.contradiction(&name).is_some() && other.contradiction(&name).is_some());
}

#[test]
fn strangers_are_told_nothing() {
    let all = identities(3);
    let mut flood = Flood::new(id(&all[0]));
    flood.set_group(GROUP, chain(&[&all[0], &all[1]], &[&all[0]]));
    flood.handle_own(&version(&all[0], 1, 1));
    flood.take_messages();
    flood.compare(id(&all[2]));
    flood.handle_digest(id(&all[2]), GROUP, [0; 16]);
    flood.handle_versions(id(&all[2]), GROUP, true, &Vec::<Known>::new());
    assert_eq!(flood.take_messages(), []);
}
