use proptest::prelude::*;

use super::*;

fn identity(seed: u8) -> Identity {
    Identity::of(&[seed; 32]).unwrap()
}

fn version(name: &str, number: Number, root: Hash) -> Version {
    Version::sign(&identity(1), Name::new(name).unwrap(), Kind::Tree, number, 9, root)
}

#[test]
fn names_may_stand_in_paths() {
    for good in ["a", "0", "debian-12_x.y", &"a".repeat(40)] {
        assert_eq!(Name::new(good).unwrap().as_str(), good);
    }
    for wrong in ["", ".", "..", "-a", ".a", "A", "a/b", "a b", "é", &"a".repeat(41)] {
        assert_eq!(Name::new(wrong), Err(ParseNameError), "{wrong}");
    }
}

proptest! {
    #[test]
    fn versions_are_read_as_they_were_signed(
        name in "[a-z0-9][a-z0-9._-]{0,39}", epoch: u64, sequence: u64, bytes: u64,
        root: [u8; 32], is_tree: bool, at: prop::sample::Index, flip in 1..=255_u8,
    ) {
        let kind = if is_tree { Kind::Tree } else { Kind::Collection };
        let number = Number { epoch, sequence };
        let name = Name::new(&name).unwrap();
        let version = Version::sign(&identity(1), name, kind, number, bytes, Hash(root));
        let mut wire = version.to_bytes();
        let key = identity(1).public();
        prop_assert!(wire.len() <= VERSION_BYTES_MAX);
        prop_assert_eq!(Version::from_bytes(&wire, &key), Ok(version.clone()));
        prop_assert_eq!(Version::namespace_of(&wire), Some(version.namespace));
        // A version with any changed bit is refused.
        let at = at.index(wire.len());
        wire[at] ^= flip;
        prop_assert!(Version::from_bytes(&wire, &key).is_err());
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Version::from_bytes(&bytes, &identity(1).public()).is_err());
    }
}

#[test]
fn a_version_with_another_key_or_length_is_refused() {
    let version = version("a", Number::default(), Hash([0; 32]));
    let refused = Version::from_bytes(&version.to_bytes(), &identity(2).public());
    assert_eq!(refused, Err(VersionError::Forged(version.namespace.origin)));
    let mut long = version.to_bytes();
    long.push(0);
    assert_eq!(
        Version::from_bytes(&long, &identity(1).public()),
        Err(VersionError::Form(long.len()))
    );
}

#[test]
fn two_versions_of_one_number_are_a_contradiction() {
    let one = Number { epoch: 1, sequence: 1 };
    let two = Number { epoch: 1, sequence: 2 };
    let (a, b) = (Hash([1; 32]), Hash([2; 32]));
    assert!(version("x", one, a).contradicts(&version("x", one, b)));
    assert!(!version("x", one, a).contradicts(&version("x", one, a)));
    assert!(!version("x", one, a).contradicts(&version("x", two, b)));
    assert!(!version("x", one, a).contradicts(&version("y", one, b)));
}
