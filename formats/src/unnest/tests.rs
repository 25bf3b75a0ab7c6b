//! Tests of unnesting: generated containers, well-formed and hostile.

pub(crate) mod builders;
pub(crate) mod formats;
mod hostile;
mod rest;
mod web;

use std::io::Write;

use flate2::Compression;
use proptest::prelude::*;

pub(crate) use builders::{bomb, gzip, tarball, zipped};

use super::*;
use crate::{HEAD_BYTES, Type};

const LIMITS: Limits = Limits {
    bytes_max: 4_000_000,
    member_bytes_max: 100_000,
    ratio_max: 1000,
    ratio_from_bytes: 1_000_000,
    depth_max: 8,
    members_max: 100,
    names_bytes_max: 1_000_000,
    records_bytes_max: 4_000_000,
    held_bytes_max: 4_000_000,
};

/// Opens `bytes` as `container` and renders its members and problems.
fn check(container: Format, bytes: &[u8], expected: &[&str]) {
    assert_eq!(open(container, bytes, LIMITS), expected);
}

fn open(container: Format, bytes: &[u8], limits: Limits) -> Vec<String> {
    let object = Object::whole("http://h.example/a", bytes.to_vec());
    open_object(container, &object, &Budget::new(limits, &|| false))
}

fn open_object(container: Format, object: &Object, budget: &Budget<'_>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut visit = |it: Member| {
        let front = String::from_utf8_lossy(&it.object.bytes[..it.object.bytes.len().min(20)]);
        seen.push(format!("{} {} {front}", it.object.url, it.object.size));
        seen.extend(it.problems.iter().map(|it| format!("! {}: {}", it.kind, it)));
    };
    let problems = members(object, container, budget, &mut visit).problems;
    seen.extend(problems.iter().map(|it| format!("! {}: {}", it.kind, it)));
    seen
}

#[test]
fn tar_members_in_order_with_any_name() {
    let long = format!("{}/end.txt", "d".repeat(150));
    let tar = tarball(&[
        ("./a b.txt", b"one"),
        ("../../etc/passwd", b"two"),
        ("/abs#x", b""),
        (&long, b"four"),
    ]);
    let long = format!("http://h.example/a#{long} 4 four");
    let expected = [
        "http://h.example/a#a%20b.txt 3 one",
        "http://h.example/a#../../etc/passwd 3 two",
        "http://h.example/a#abs%23x 0 ",
        &long,
    ];
    check(Format::Tar, &tar, &expected);
    check(Format::PackedTar(Packing::Gzip), &gzip(&tar), &expected);
}

#[test]
fn sparse_files_of_tars_give_only_their_names() {
    let mut header = ::tar::Header::new_gnu();
    header.set_size(3);
    header.set_entry_type(::tar::EntryType::GNUSparse);
    header.as_mut_bytes()[..5].copy_from_slice(b"holes");
    header.as_mut_bytes()[483..495].copy_from_slice(b"00000000012\0");
    header.set_cksum();
    let holes = [header.as_bytes().to_vec(), b"end".to_vec(), vec![0; 509]].concat();
    let sparse = [
        "http://h.example/a#holes 10 ",
        "! limit: http://h.example/a#holes: is sparse; only its name was read",
    ];
    let next = "http://h.example/a#b 3 two";
    let tar = [holes, tarball(&[("b", b"two")])].concat();
    check(Format::Tar, &tar, &[sparse[0], sparse[1], next]);
    header.as_mut_bytes()[482] = 1;
    header.set_cksum();
    let tar = [header.as_bytes(), &tar[512..]].concat();
    let rest = "! limit: http://h.example/a: has a sparse file in many pieces; members after it were not read (last member: holes)";
    check(Format::Tar, &tar, &[sparse[0], sparse[1], rest]);
}

#[test]
fn zip_members() {
    let zip = zipped(&[("d/a.txt", b"one"), ("b!.txt", b"two two two")]);
    check(
        Format::Zip,
        &zip,
        &["http://h.example/a#d/a.txt 3 one", "http://h.example/a#b%21.txt 11 two two two"],
    );
    // A name in code page 437.
    let mut zip = zipped(&[("M_nchen.txt", b"one")]);
    let positions: Vec<usize> = memchr::memmem::find_iter(&zip, b"M_nchen").collect();
    positions.iter().for_each(|at| zip[at + 1] = 0x81);
    check(Format::Zip, &zip, &["http://h.example/a#M%C3%BCnchen.txt 3 one"]);
    check(
        Format::Zip,
        b"PK\x03\x04 not really",
        &["! broken: http://h.example/a: zip directory cannot be read: \
           invalid Zip archive: Could not find EOCD"],
    );
}

#[test]
fn damage_is_a_problem_and_good_members_are_kept() {
    let tar = tarball(&[("a", b"one"), ("b", &[b'x'; 2000])]);
    check(
        Format::Tar,
        &tar[..2000],
        &[
            "http://h.example/a#a 3 one",
            "http://h.example/a#b 2000 xxxxxxxxxxxxxxxxxxxx",
            "! broken: http://h.example/a#b: breaks off after 464 of 2000 bytes",
            "! broken: http://h.example/a: tar data breaks off: unexpected EOF during skip \
             (last member: b)",
        ],
    );
    let object = Object::whole("http://h.example/x.gz", gzip(&[b'x'; 50_000])[..40].to_vec());
    let budget = Budget::new(LIMITS, &|| false);
    let opened = unpack(&object, Packing::Gzip, &budget, &|_, _| usize::MAX);
    assert_eq!(opened.problems.len(), 1, "{:?}", opened.problems);
    assert!(opened.truncated);
}

#[test]
fn gzip_of_many_members_is_one_content() {
    let bytes = [gzip(b"one "), gzip(b"two"), vec![0; 512]].concat();
    let object = Object::whole("http://h.example/ls.1.gz", bytes);
    let budget = Budget::new(LIMITS, &|| false);
    let opened = unpack(&object, Packing::Gzip, &budget, &|_, _| usize::MAX);
    assert_eq!((opened.name.as_str(), &opened.bytes[..]), ("ls.1", &b"one two"[..]));
    assert_eq!((opened.truncated, opened.problems.len()), (false, 0));
}

#[test]
fn gzip_keeps_the_wanted_bytes_and_the_name_in_its_header() {
    let mut encoder =
        flate2::GzBuilder::new().filename("dir/inner.txt").write(Vec::new(), Compression::fast());
    encoder.write_all(&[b'x'; 90_000]).unwrap();
    let object = Object::whole("http://h.example/x", encoder.finish().unwrap());
    let budget = Budget::new(LIMITS, &|| false);
    let opened = unpack(&object, Packing::Gzip, &budget, &|name, head| {
        assert_eq!((name, head.len()), ("inner.txt", HEAD_BYTES));
        10_000
    });
    assert_eq!((opened.bytes.len(), opened.truncated), (10_000, true));
    assert_eq!(opened.problems, []);
}

#[test]
fn bombs_are_cut() {
    let zeros = bomb(64);
    assert!(zeros.len() < 70_000);
    let object = Object::whole("http://h.example/bomb.gz", zeros);
    let budget = Budget::new(Limits { member_bytes_max: 1 << 30, ..LIMITS }, &|| false);
    let opened = unpack(&object, Packing::Gzip, &budget, &|_, _| usize::MAX);
    assert!(opened.bytes.len() < 5_000_000);
    assert!(matches!(opened.problems[0].kind, ProblemKind::Limit(_)));

    // Members share one budget of bytes.
    let noise: Vec<u8> =
        (0..90_000_u32).flat_map(|it| it.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let noise = &noise[..90_000];
    let zip = zipped(&[("1", noise), ("2", noise), ("3", noise), ("4", noise)]);
    let seen = open(Format::Zip, &zip, Limits { bytes_max: 200_000, ..LIMITS });
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert!(seen[4].contains("opens to more than 200000 bytes in all"), "{seen:?}");

    // A member over the ratio does not affect the others.
    let zip = zipped(&[("bomb", &vec![0; 1_500_000]), ("good", b"good")]);
    let limits = Limits { ratio_max: 500, member_bytes_max: 1 << 30, ..LIMITS };
    let seen = open(Format::Zip, &zip, limits);
    assert_eq!(seen.last().unwrap(), "http://h.example/a#good 4 good");
    assert!(seen[1].contains("opens to more than 500 times its size"), "{seen:?}");
}

#[test]
fn members_and_their_sizes_are_bounded() {
    let names: Vec<String> = (0..150).map(|it| format!("f{it}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &b"x"[..])).collect();
    for (container, bytes) in [(Format::Tar, tarball(&files)), (Format::Zip, zipped(&files))] {
        let seen = open(container, &bytes, LIMITS);
        assert_eq!(seen.len(), 101);
        assert!(seen[100].contains("more than 100 members"), "{}", seen[100]);
    }
    let tar = tarball(&[("big", &[b'x'; 100_001]), ("next", b"n")]);
    let seen = open(Format::Tar, &tar, LIMITS);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen[1].contains("longer than 100000 bytes"), "{seen:?}");
}

#[test]
fn a_long_name_that_is_a_bomb_is_bounded() {
    let mut header = ::tar::Header::new_gnu();
    header.set_entry_type(::tar::EntryType::GNULongName);
    header.set_size(3_000_000);
    header.set_cksum();
    let mut tar = header.as_bytes().to_vec();
    tar.extend(vec![b'n'; 3_000_000]);
    tar.resize(tar.len().next_multiple_of(512), 0);
    tar.extend(tarball(&[("x", b"after")]));
    let seen = open(Format::Tar, &tar, LIMITS);
    assert_eq!(seen.len(), 2);
    assert!(seen[1].contains("has a path of more than 4096 bytes"), "{}", seen[1]);
    assert!(seen[0].len() < 2 * Limit::Path.bound(), "{}", seen[0].len());
    assert!(seen[0].ends_with(" 5 after"));
}

#[test]
fn a_container_out_of_time_is_a_problem() {
    let object = Object::whole("http://h.example/a.tgz", gzip(&tarball(&[("a", b"one")])));
    let budget = Budget::new(LIMITS, &|| true);
    let problems =
        members(&object, Format::PackedTar(Packing::Gzip), &budget, &mut |_| {}).problems;
    assert_eq!(problems[0].kind, ProblemKind::Time);
}

proptest! {
    #[test]
    fn any_bytes_are_opened_within_bounds(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        which in 0..3_usize,
    ) {
        let files: &[(&str, &[u8])] = &[("a.txt", b"some words"), ("b", &bytes)];
        let (container, mut damaged) = match which {
            0 => (Format::Tar, tarball(files)),
            1 => (Format::PackedTar(Packing::Gzip), gzip(&tarball(files))),
            _ => (Format::Zip, zipped(files)),
        };
        for (index, byte) in flips {
            let at = index.index(damaged.len());
            damaged[at] = byte;
        }
        open(container, &damaged, LIMITS);
        open(container, &bytes, LIMITS);
        let object = Object::whole("http://h.example/a", bytes);
        unpack(&object, Packing::Gzip, &Budget::new(LIMITS, &|| false), &|_, _| usize::MAX);
    }
}
