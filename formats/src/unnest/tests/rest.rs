//! Tests of containers of which only the front is in memory.

use std::cell::Cell;
use std::sync::Arc;

use super::builders::{ar, deb};
use super::formats::{cpio, packed, rpm, sevenz};
use super::*;
use crate::limit::Limit;
use crate::object::{PIECE_BYTES, Rest};
use crate::testing::{Opened, cut};

/// Returns bytes that cannot be packed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

fn whole(bytes: Vec<u8>) -> Object {
    Object::whole("http://h.example/a", bytes)
}

/// Opens the object with the default limits, and renders members and problems.
fn opened(format: Format, object: &Object) -> Vec<String> {
    open_object(format, object, &Budget::new(Limits::default(), &|| false))
}

/// Returns the container with `front` bytes in memory, whose other reads fail from `bad_from` on.
fn failing(bytes: &[u8], front: usize, bad_from: usize) -> Object {
    let opened = Opened { bytes: bytes.to_vec(), bad_from: bad_from as u64 };
    let rest = Some(Rest::new(Arc::new(opened)));
    let front = bytes[..front].to_vec();
    Object { truncated: true, rest, size: bytes.len() as u64, ..whole(front) }
}

#[test]
fn a_directory_that_claims_to_be_longer_than_its_archive_is_read_the_same() {
    let mut bytes = zipped(&[("a", b"one")]);
    let size_at = bytes.len() - 10;
    bytes[size_at..size_at + 4].copy_from_slice(&0x6473_6542_u32.to_le_bytes());
    let object = whole(bytes);
    let front = object.bytes.len() / 2;
    assert_eq!(opened(Format::Zip, &cut(&object, front)), opened(Format::Zip, &object));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn members_are_the_same_however_much_is_in_memory(
        sizes in proptest::collection::vec(0..150_000_usize, 1..5),
        front in any::<proptest::sample::Index>(),
        which in 0..8,
    ) {
        let contents: Vec<Vec<u8>> = (1..).zip(&sizes).map(|(at, it)| noise(at, *it)).collect();
        let names: Vec<String> = (0..sizes.len()).map(|it| format!("d/{it}")).collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)).collect();
        let (format, bytes) = match which {
            0 | 1 => (Format::Zip, zipped(&files)),
            2 => (Format::SevenZip, sevenz(&files)),
            3 => (Format::Tar, tarball(&files)),
            4 => (Format::PackedTar(Packing::Xz), packed(Packing::Xz, &tarball(&files))),
            5 => (Format::Cpio, cpio('n', &files)),
            6 => (Format::Deb, deb("Package: p\n", &files)),
            _ => (Format::Rpm, rpm(&[(1000, "p")], &gzip(&cpio('n', &files)))),
        };
        let object = whole(bytes);
        // The front has the head by which the format is recognized, and the head of a package.
        let at = (HEAD_BYTES + front.index(object.bytes.len())).min(object.bytes.len());
        prop_assert_eq!(opened(format, &cut(&object, at)), opened(format, &object));
    }

    #[test]
    fn any_rest_is_opened_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        which in 0..4_usize,
        front in any::<proptest::sample::Index>(),
        at in any::<proptest::sample::Index>(),
    ) {
        let format = [Format::Zip, Format::SevenZip, Format::Tar, Format::Deb][which];
        let good = zipped(&[("a.txt", b"some words"), ("b", b"two")]);
        bytes.splice(..0, good[at.index(good.len())..].iter().copied());
        let object = whole(bytes);
        opened(format, &cut(&object, front.index(object.bytes.len())));
    }
}

#[test]
fn streams_are_read_beyond_the_front() {
    let text = noise(7, 200_000);
    for packing in Packing::ALL {
        let object = whole(packed(*packing, &text));
        let budget = Budget::new(Limits::default(), &|| false);
        let opened = |object| unpack(object, *packing, &budget, &|_, _| usize::MAX);
        let found = opened(&cut(&object, 5_000));
        let messages: Vec<&str> = found.problems.iter().map(|it| it.message.as_str()).collect();
        if *packing == Packing::Lzip {
            let advice = "not the rest; raise `read_max` to read all of it";
            assert_eq!(messages, [format!("only its first 5000 bytes were read, {advice}")]);
        } else {
            assert_eq!((messages.len(), found.bytes == text), (0, true), "{packing:?}");
        }
    }
}

#[test]
fn a_front_alone_is_our_limit_and_not_the_fault_of_the_file() {
    let files: &[(&str, &[u8])] = &[("a", &noise(1, 3_000)), ("b", &noise(2, 3_000))];
    let ends = "not its directory, which stands at its end; raise `read_max` to read all of it";
    let rest = "not the rest; raise `read_max` to read all of it";
    for (format, bytes, expected) in [
        (Format::Zip, zipped(files), ends),
        (Format::SevenZip, sevenz(files), ends),
        (Format::Tar, tarball(files), rest),
        (Format::PackedTar(Packing::Gzip), gzip(&tarball(files)), rest),
        (Format::Cpio, cpio('n', files), rest),
        (Format::Ar, ar(files), rest),
    ] {
        let object = Object { rest: None, ..cut(&whole(bytes), 2_000) };
        let seen = opened(format, &object);
        let own =
            format!("! limit: http://h.example/a: only its first 2000 bytes were read, {expected}");
        assert!(seen.last().unwrap().starts_with(&own), "{format:?}: {seen:?}");
        assert!(!seen.iter().any(|it| it.starts_with("! broken")), "{format:?}: {seen:?}");
    }
    // What follows the first members of a library is not looked for.
    let seen = opened(Format::Ar, &cut(&whole(ar(files)), 4_000));
    assert!(seen.last().unwrap().contains(rest), "{seen:?}");
}

#[test]
fn a_rest_that_cannot_be_read_costs_the_members_in_it() {
    let (first, second) = (noise(1, 100_000), noise(2, 100_000));
    let zip = zipped(&[("a", &first), ("b", &second)]);
    // The directory is in the front of the file, so that only the second member is out of reach.
    let moved = failing(&zip, zip.len(), 0);
    assert_eq!(opened(Format::Zip, &moved).len(), 2);
    let seen = opened(Format::Zip, &failing(&zip, 10_000, 150_000));
    let unread = "cannot be read behind its front: bad disk";
    assert_eq!(seen, [format!("! broken: http://h.example/a: {unread}")]);
    let tar = tarball(&[("a", &first), ("b", &second)]);
    let seen = opened(Format::Tar, &failing(&tar, 50_000, 150_000));
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen[0].starts_with("http://h.example/a#a 100000 "), "{seen:?}");
    assert!(seen[1].starts_with("http://h.example/a#b 100000 "), "{seen:?}");
    assert_eq!(seen[2], format!("! broken: http://h.example/a#b: {unread}"));
    assert_eq!(seen[3], format!("! broken: http://h.example/a: {unread} (last member: b)"));
}

#[test]
fn a_file_that_shrinks_is_named() {
    let tar = tarball(&[("a", &noise(1, 300_000))]);
    let mut object = failing(&tar[..200_000], 50_000, usize::MAX);
    object.size = tar.len() as u64;
    let seen = opened(Format::Tar, &object);
    let expected = "! broken: http://h.example/a#a: became shorter while it was read";
    assert_eq!(seen[1], expected, "{seen:?}");
    assert!(opened(Format::Zip, &object)[0].contains("became shorter"));
}

#[test]
fn reads_of_the_rest_are_bounded_in_bytes_and_time() {
    let tar = tarball(&[("a", &noise(1, 300_000))]);
    let object = cut(&whole(tar), 50_000);
    let looks = Cell::new(0);
    let late = || 6 <= looks.replace(looks.get() + 1);
    let seen = open_object(Format::Tar, &object, &Budget::new(Limits::default(), &late));
    assert!(seen[1].starts_with("! time: http://h.example/a#a: ran out of time"), "{seen:?}");
    let rest = object.rest.clone().unwrap();
    assert!(rest.read_at(0, &mut [0; PIECE_BYTES + 1]).is_err());
    let mut piece = [0; PIECE_BYTES];
    // Behind the end, reads are fast.
    let reads = (1..).take_while(|_| rest.read_at(1 << 20, &mut piece).is_ok()).count();
    assert_eq!(reads as u64, (Limit::Rest.bound() / PIECE_BYTES) as u64);
    let seen = opened(Format::Tar, &object);
    let expected = "takes reading more than 536870912 bytes behind its first 50000 (`read_max`); \
                    the rest was left out";
    assert_eq!(seen[1], format!("! limit: http://h.example/a#a: {expected}"));
    assert_eq!(seen[2], format!("! limit: http://h.example/a: {expected} (last member: a)"));
}

#[test]
fn a_long_directory_is_refused() {
    let names: Vec<String> = (0..600).map(|it| format!("{it:060000}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &b""[..])).collect();
    let seen = opened(Format::Zip, &cut(&whole(zipped(&files)), 10_000));
    let message = "has a directory of more than 33554432 bytes; not opened";
    assert_eq!(seen, [format!("! limit: http://h.example/a: {message}")]);
}

#[test]
fn entries_are_counted_by_the_end_of_the_directory() {
    // The 64-bit end, its locator, and the end that refers to them.
    let end = |entries: u64, at: u64| {
        let mut end = b"PK\x06\x06".to_vec();
        end.extend(44_u64.to_le_bytes());
        end.extend([0; 12]);
        for number in [entries, entries, entries * 46, 0] {
            end.extend(number.to_le_bytes());
        }
        end.extend(b"PK\x06\x07\0\0\0\0");
        end.extend(at.to_le_bytes());
        end.extend(1_u32.to_le_bytes());
        end.extend(b"PK\x05\x06\0\0\0\0");
        end.extend([0xff; 12]);
        end.extend([0; 2]);
        end
    };
    let front = vec![b'x'; 5_000_000];
    for entries in [100_001, u64::MAX / 46] {
        for at in [5_000_000, 0] {
            let zip = [&front[..], &end(entries, at)].concat();
            for object in [whole(zip.clone()), cut(&whole(zip), 10_000)] {
                let seen = opened(Format::Zip, &object);
                let message = "has more than 100000 directory entries; not opened";
                assert_eq!(seen, [format!("! limit: http://h.example/a: {message}")]);
            }
        }
    }
}

#[test]
fn a_zip_need_not_begin_or_end_where_the_file_does() {
    let zip = zipped(&[("a.txt", b"one"), ("b.txt", b"two")]);
    let expected = ["http://h.example/a#a.txt 3 one", "http://h.example/a#b.txt 3 two"];
    let directory = memchr::memmem::find(&zip, b"PK\x01\x02").unwrap();
    let mut wrong = zip.clone();
    let size_at = zip.len() - 10;
    wrong[size_at..size_at + 4].copy_from_slice(&7_u32.to_le_bytes());
    let stub = b"#!/bin/sh\n".repeat(20_000);
    let mut commented = zip.clone();
    let length_at = zip.len() - 2;
    commented[length_at..].copy_from_slice(&4_u16.to_le_bytes());
    commented.extend(b"PK\x05\x06");
    let between = [&zip[..zip.len() - 22], b"signature", &zip[zip.len() - 22..]].concat();
    assert!(directory < zip.len());
    for (what, bytes) in [
        ("plain", zip.clone()),
        ("behind a program", [&stub[..], &zip].concat()),
        ("a wrong size", wrong.clone()),
        ("a wrong size behind a program", [&stub[..], &wrong].concat()),
        ("a comment that looks like the end", commented),
        ("bytes behind the directory", between),
    ] {
        for object in [whole(bytes.clone()), cut(&whole(bytes), 50)] {
            assert_eq!(opened(Format::Zip, &object), expected, "{what}");
        }
    }
}
