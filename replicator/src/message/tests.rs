use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use net::identity::Identity;

use super::*;
use crate::version::{Kind, Name};

fn namespace() -> impl Strategy<Value = Namespace> {
    ("[a-z0-9][a-z0-9._-]{0,39}", any::<u64>()).prop_map(|(name, origin)| Namespace {
        origin: MemberId(origin),
        name: Name::new(&name).unwrap(),
    })
}

fn number() -> impl Strategy<Value = Number> + Clone {
    (any::<u64>(), any::<u64>()).prop_map(|(epoch, sequence)| Number { epoch, sequence })
}

fn hashes() -> impl Strategy<Value = Vec<Hash>> {
    vec(any::<[u8; 32]>().prop_map(Hash), 1..CHUNKS_MAX)
}

fn message() -> impl Strategy<Value = Message> {
    let group = any::<u64>().prop_map(GroupId);
    let bytes = |most| vec(any::<u8>(), 0..=most);
    let route = (any::<u8>(), any::<u64>())
        .prop_map(|(distance, entry)| Route { distance, entry: MemberId(entry) });
    let known =
        btree_map(namespace(), (number(), any::<[u8; 16]>(), prop::option::of(number())), 0..9);
    prop_oneof![
        (group.clone(), bytes(99)).prop_map(|(group, bytes)| Message::Group { group, bytes }),
        (group.clone(), route, bytes(VERSION)).prop_map(|(group, route, version)| {
            Message::Announce(Announcement { group, route, version })
        }),
        (group.clone(), bytes(VERSION), bytes(VERSION))
            .prop_map(|(group, first, second)| Message::Evidence { group, first, second }),
        (group.clone(), any::<[u8; 16]>())
            .prop_map(|(group, digest)| Message::Digest { group, digest }),
        (group, any::<bool>(), known).prop_map(|(group, asks, known)| {
            let known = known
                .into_iter()
                .map(|(namespace, (number, root, contradicted))| VersionSummary {
                    namespace,
                    number,
                    root,
                    contradicted,
                })
                .collect();
            Message::Versions { group, asks, known }
        }),
        (namespace(), number()).prop_map(|(namespace, number)| Message::Held { namespace, number }),
        (namespace(), number(), any::<u8>(), hashes()).prop_map(
            |(namespace, number, priority, chunks)| {
                Message::Request(Request { namespace, number, priority, chunks })
            }
        ),
        hashes().prop_map(Message::Cancel),
        vec(any::<u8>(), 1..999).prop_map(Message::Chunk),
        hashes().prop_map(Message::Gone),
    ]
}

const VERSION: usize = crate::version::VERSION_BYTES_MAX;

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(message in message()) {
        let bytes = message.to_bytes();
        prop_assert_eq!(Message::from_bytes(&bytes), Ok(message));
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in vec(any::<u8>(), 0..400), kind in 0..12_u8) {
        let bytes = [&[kind], &bytes[..]].concat();
        match Message::from_bytes(&bytes) {
            Ok(message) => prop_assert_eq!(message.to_bytes(), bytes),
            Err(error) => prop_assert!(error.at <= bytes.len()),
        }
    }
}

#[test]
fn an_announcement_takes_at_most_200_bytes() {
    let identity = Identity::of(&[1; 32]).unwrap();
    let name = Name::new(&"n".repeat(40)).unwrap();
    let number = Number { epoch: u64::MAX, sequence: u64::MAX };
    let version = Version::sign(&identity, name, Kind::Tree, number, u64::MAX, Hash([255; 32]));
    let route = Route { distance: 255, entry: MemberId(u64::MAX) };
    let message = Message::Announce(Announcement::new(GroupId(u64::MAX), route, &version));
    let framed = 4 + message.to_bytes().len();
    assert!(framed <= 200, "{framed}");
}

#[test]
fn wrong_lengths_and_kinds_are_refused() {
    let hash = [0; 32];
    let cases = [
        vec![9; CHUNK_BYTES_MAX + 2],
        vec![9],
        [&[10][..], &hash.repeat(CHUNKS_MAX + 1)].concat(),
        [&[10][..], &hash[..31]].concat(),
        vec![10],
        [&[1][..], &vec![0; 8 + GROUP_BYTES_MAX + 1]].concat(),
        vec![],
        vec![0],
        vec![11],
    ];
    for bytes in cases {
        assert!(Message::from_bytes(&bytes).is_err(), "{} bytes", bytes.len());
    }
}

#[test]
fn namespaces_out_of_order_or_repeated_are_refused() {
    let known = |name: &str| VersionSummary {
        namespace: Namespace { origin: MemberId(1), name: Name::new(name).unwrap() },
        number: Number::default(),
        root: [0; 16],
        contradicted: None,
    };
    for (names, is_read) in [(["a", "b"], true), (["b", "a"], false), (["a", "a"], false)] {
        let known = names.map(known).to_vec();
        let message = Message::Versions { group: GroupId(1), asks: true, known };
        assert_eq!(Message::from_bytes(&message.to_bytes()).is_ok(), is_read, "{names:?}");
    }
}
