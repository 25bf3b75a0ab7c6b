use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::tree::chunk::Extent;
use crate::tree::chunk::tests::noise;
use crate::tree::manifest::{Encoder, Entry, EntryKind};
use crate::tree::mode::Mode;
use crate::tree::path::EntryPath;

type Chunks = HashMap<Hash, Vec<u8>>;

fn build(stream: &[u8], piece: usize) -> (Hash, Vec<Piece>) {
    let mut builder = Builder::new(Kind::Tree);
    let mut pieces = Vec::new();
    for piece in stream.chunks(piece.max(1)) {
        builder.feed(piece);
        pieces.extend(std::iter::from_fn(|| builder.next_piece()));
    }
    let (root, rest) = builder.finish().unwrap();
    pieces.extend(rest);
    assert_eq!(pieces.last().unwrap().hash, root);
    (root, pieces)
}

fn chunks(pieces: &[Piece]) -> Chunks {
    pieces.iter().map(|it| (it.hash, it.bytes.clone())).collect()
}

/// Reads a stream, choosing the next chunk of each window by `pick`. Returns the stream and the
/// maximum number of slots held.
fn walk(
    root: &Hash,
    chunks: &Chunks,
    pick: impl Fn(usize) -> usize,
) -> Result<(Vec<u8>, usize), WalkError> {
    let mut walk = Walk::new(Kind::Tree, root, &chunks[root])?;
    let (mut stream, mut most) = (Vec::new(), 0);
    while !walk.is_done() {
        most = most.max(walk.slots.len());
        while let Some(bytes) = walk.next_bytes() {
            stream.extend(bytes);
        }
        let wanted: Vec<Wanted> = walk.wanted().collect();
        assert!(wanted.len() <= LOOK_AHEAD_CHUNKS);
        if let Some(one) = wanted.get(pick(wanted.len())) {
            assert!(walk.take(&one.hash, &chunks[&one.hash])?.is_some());
            assert_eq!(walk.take(&Hash([0; 32]), &[]), Ok(None));
        }
    }
    Ok((stream, most))
}

fn level(root: &[u8]) -> u8 {
    root[2]
}

#[test]
fn longer_streams_have_more_levels() {
    for (bytes, levels) in [(0, 0), (4096, 0), (4097, 1), (500_000, 1), (3_000_000, 2)] {
        let stream = noise(bytes, 1);
        let (root, pieces) = build(&stream, 5000);
        let chunks = chunks(&pieces);
        assert_eq!(level(&chunks[&root]), levels, "{bytes}");
        assert!(chunks.values().all(|it| it.len() <= NODE_BYTES_MAX));
        let leaves: Vec<u8> =
            pieces.iter().filter(|it| it.is_leaf).flat_map(|it| it.bytes.clone()).collect();
        assert_eq!(if levels == 0 { vec![] } else { stream.clone() }, leaves);
        for pick in [|_| 0, |all: usize| all.saturating_sub(1), |all: usize| all / 2] {
            assert_eq!(walk(&root, &chunks, pick).unwrap().0, stream, "{bytes}");
        }
    }
}

/// Writes a manifest of this many files; the file `changed` has other content.
fn manifest(files: usize, changed: Option<usize>) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::default(), Vec::new());
    for n in 0..files {
        let path = EntryPath::new(&format!("dir{:04}/file{n:07}.txt", n / 100)).unwrap();
        let kind = EntryKind::File { mode: Mode::PLAIN, bytes: 900, modified: 1_700_000_000 };
        encoder.entry(&Entry { path, kind }, &mut out).unwrap();
        let seed = if changed == Some(n) { usize::MAX } else { n };
        let hash = Hash::of(&seed.to_le_bytes());
        encoder.extent(Extent { hash, bytes: 900 }, &mut out).unwrap();
    }
    encoder.finish(&mut out).unwrap();
    out
}

#[test]
fn a_change_of_one_file_in_100_000_changes_two_chunks_of_each_level_at_most() {
    let (_, old) = build(&manifest(100_000, None), 1 << 20);
    let old = chunks(&old);
    for changed in [0, 12_345, 99_999] {
        let (root, new) = build(&manifest(100_000, Some(changed)), 1 << 20);
        let new = chunks(&new);
        let fresh: Vec<&Vec<u8>> =
            new.iter().filter(|(hash, _)| !old.contains_key(hash)).map(|(_, it)| it).collect();
        let levels = usize::from(level(&new[&root]));
        let bytes: usize = fresh.iter().map(|it| it.len()).sum();
        println!(
            "{changed}: {} of {} chunks, {bytes} bytes, {levels} levels",
            fresh.len(),
            new.len()
        );
        assert!(fresh.len() <= 2 * (levels + 1), "{}", fresh.len());
        assert!(bytes < 64 << 10, "{bytes}");
    }
}

#[test]
fn slots_are_bounded_in_any_order_of_chunks() {
    let stream = noise(12_000_000, 3);
    let (root, pieces) = build(&stream, 1 << 20);
    let (_, most) = walk(&root, &chunks(&pieces), |all| all.saturating_sub(1)).unwrap();
    assert!(most <= (LOOK_AHEAD_NODES + 1) * NODE_RECORDS_MAX, "{most}");
}

fn root(levels: u8, stream_bytes: u64, list: &[Record]) -> Vec<u8> {
    let mut bytes = vec![FORMAT, 0, levels];
    bytes.extend(stream_bytes.to_le_bytes());
    list.iter().for_each(|it| it.put(&mut bytes));
    bytes
}

fn record(bytes: u32, stream_bytes: u64) -> Record {
    Record { hash: Hash([7; 32]), bytes, stream_bytes }
}

fn check_root(bytes: &[u8], expected: Option<WalkError>) {
    let found = Walk::new(Kind::Tree, &Hash::of(bytes), bytes);
    assert_eq!(found.err(), expected, "{bytes:?}");
}

#[test]
fn an_invalid_root_is_refused() {
    check_root(&root(1, 9, &[record(4, 4), record(5, 5)]), None);
    check_root(&root(8, 1 << 30, &[record(9, 1 << 30)]), None);
    let form = Some(WalkError::Form);
    check_root(&[], form);
    check_root(&root(9, 9, &[record(4, 9)]), form);
    check_root(&root(1, 0, &[]), form);
    check_root(&root(1, 10, &[record(4, 4), record(5, 5)]), form);
    check_root(&root(1, 5, &[record(4, 5)]), form);
    check_root(&root(1, 16_385, &[record(16_385, 16_385)]), form);
    check_root(&root(2, 5, &[record(0, 5)]), form);
    check_root(&root(2, 5, &[record(44, 5), record(44, 0)]), form);
    check_root(&root(2, 5, &[record(1 << 20, 5)]), form);
    check_root(&root(2, 4, &[record(44, 5), record(44, u64::MAX)]), form);
    check_root(&root(2, STREAM_BYTES_MAX + 1, &[record(44, STREAM_BYTES_MAX + 1)]), form);
    check_root(&[&root(1, 4, &[record(4, 4)])[..], &[1]].concat(), form);
    check_root(&[&root(0, 2, &[])[..], &[1]].concat(), form);
    let mut other = root(0, 0, &[]);
    check_root(&other, None);
    other[1] = 1;
    check_root(&other, form);
    let long = root(1, 1025, &[record(1, 1); 1025]);
    check_root(&long, Some(WalkError::Root(Hash::of(&long))));
    let good = root(0, 0, &[]);
    let found = Walk::new(Kind::Tree, &Hash([0; 32]), &good);
    assert_eq!(found.err(), Some(WalkError::Root(Hash([0; 32]))));
}

#[test]
fn a_node_that_does_not_match_its_record_is_refused() {
    let mut node = Vec::new();
    record(4, 4).put(&mut node);
    for (bytes, stream_bytes, is_good) in [(44, 4, true), (44, 5, false), (43, 4, false)] {
        let hash = Hash::of(&node);
        let root = root(2, stream_bytes, &[Record { hash, bytes, stream_bytes }]);
        let mut walk = Walk::new(Kind::Tree, &Hash::of(&root), &root).unwrap();
        let taken = walk.take(&hash, &node);
        assert_eq!(taken, if is_good { Ok(Some(Role::Node)) } else { Err(WalkError::Node(hash)) });
    }
}

proptest! {
    #[test]
    fn a_stream_is_read_as_it_was_cut(bytes in 0usize..300_000, seed in 0u64..9, piece in 1usize..9000, pick in any::<usize>()) {
        let stream = noise(bytes, seed);
        let (root, pieces) = build(&stream, piece);
        prop_assert_eq!(root, build(&stream, usize::MAX).0);
        let (found, _) = walk(&root, &chunks(&pieces), |all| pick % all.max(1)).unwrap();
        prop_assert_eq!(found, stream);
    }

    #[test]
    fn any_bytes_as_a_root_do_no_harm(head in prop::collection::vec(0u8..3, 0..12), rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [head, rest].concat();
        if let Ok(walk) = Walk::new(Kind::Tree, &Hash::of(&bytes), &bytes) {
            prop_assert!(walk.wanted().count() <= LOOK_AHEAD_CHUNKS);
        }
    }
}
