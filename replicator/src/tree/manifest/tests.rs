use proptest::prelude::*;

use super::*;
use crate::tree::path::fold;
use crate::version::Hash;

fn path(text: &str) -> EntryPath {
    EntryPath::new(text).unwrap()
}

fn file(at: &str, bytes: u64) -> Entry {
    let kind = EntryKind::File { mode: Mode::PLAIN, bytes, modified: 1_700_000_000 };
    Entry { path: path(at), kind }
}

fn link(at: &str, target: &str) -> Entry {
    Entry { path: path(at), kind: EntryKind::Link { target: target.into() } }
}

fn directory(at: &str) -> Entry {
    Entry { path: path(at), kind: EntryKind::Directory { mode: Mode::EXECUTABLE } }
}

fn extent(bytes: u32) -> Extent {
    Extent { bytes, hash: Hash::of(&bytes.to_le_bytes()) }
}

/// Format 2; everybody may read the tree's own folder.
const TWO: Format = Format::Two(Mode::EXECUTABLE);

fn mode(bits: u16) -> Mode {
    Mode::from_bits(bits).unwrap()
}

fn encode(items: &[Item]) -> Result<(Vec<u8>, Totals), Fault> {
    encode_as(Format::One, items)
}

fn encode_as(format: Format, items: &[Item]) -> Result<(Vec<u8>, Totals), Fault> {
    let mut encoder = Encoder::new(format);
    let mut out = Vec::new();
    for item in items {
        match item {
            Item::Entry(entry) => encoder.entry(entry, &mut out)?,
            Item::Extent(extent) => encoder.extent(*extent, &mut out)?,
        }
    }
    let totals = encoder.finish(&mut out)?;
    Ok((out, totals))
}

fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<Item>, Totals), ParseError> {
    decode_as(bytes, piece).map(|it| (it.1, it.2))
}

fn decode_as(bytes: &[u8], piece: usize) -> Result<(Format, Vec<Item>, Totals), ParseError> {
    let mut decoder = Decoder::default();
    let mut items = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        decoder.feed(piece);
        while let Some(item) = decoder.next_item()? {
            items.push(item);
        }
    }
    Ok((decoder.format(), items, decoder.finish()?))
}

fn sample() -> Vec<Item> {
    vec![
        Item::Entry(file("a/b", 70_000)),
        Item::Extent(extent(65_536)),
        Item::Extent(extent(4464)),
        Item::Entry(directory("a/empty")),
        Item::Entry(link("a/l", "../ü")),
        Item::Entry(file("ü", 0)),
    ]
}

#[test]
fn a_manifest_of_format_1_has_the_documented_bytes() {
    let (bytes, totals) = encode(&sample()).unwrap();
    assert_eq!(totals, Totals { entries: 4, bytes: 70_000 });
    let mut expected = vec![1, 1, 3, 0];
    expected.extend(b"a/b");
    expected.extend(70_000_u64.to_le_bytes());
    expected.extend(1_700_000_000_i64.to_le_bytes());
    for length in [65_536_u32, 4464] {
        expected.extend(length.to_le_bytes());
        expected.extend(Hash::of(&length.to_le_bytes()).0);
    }
    expected.extend(b"\x03\x07\0a/empty\x04\x03\0a/l\x05\0../\xc3\xbc\x01\x02\0\xc3\xbc");
    expected.extend(0_u64.to_le_bytes());
    expected.extend(1_700_000_000_i64.to_le_bytes());
    expected.push(0);
    expected.extend(4_u64.to_le_bytes());
    expected.extend(70_000_u64.to_le_bytes());
    assert_eq!(bytes, expected);
    assert_eq!(decode(&bytes, 1), Ok((sample(), totals)));
    assert_eq!(encode(&[]).unwrap().0.len(), 18);
}

#[test]
fn the_fuzzing_seeds_are_manifests_of_each_format() {
    let seeds: [(&[u8], Format); 2] = [
        (include_bytes!("../../../../fuzz/seeds/replicator_manifest/manifest"), Format::One),
        (
            include_bytes!("../../../../fuzz/seeds/replicator_manifest/modes"),
            Format::Two(mode(0o550)),
        ),
    ];
    for (bytes, format) in seeds {
        assert_eq!(decode_as(bytes, 7).unwrap().0, format);
    }
}

fn check_refused(items: &[Entry], expected: &Fault) {
    let items: Vec<Item> = items.iter().cloned().map(Item::Entry).collect();
    assert_eq!(encode(&items).as_ref(), Err(expected));
}

#[test]
fn invalid_items_are_not_written() {
    let clash = Clash::Order(path("a"), path("b"));
    check_refused(&[directory("b"), directory("a")], &Fault::Clash(clash));
    let clash = Clash::Below(path("a/b"), path("a"));
    check_refused(&[link("a", "b"), file("a/b", 0)], &Fault::Clash(clash));
    check_refused(&[file("A", 0), file("a", 0)], &Fault::Clash(Clash::Folds(path("a"))));
    check_refused(&[file("a", 1), file("b", 0)], &Fault::Missing(1));
    check_refused(&[file("a", 9)], &Fault::Missing(9));
    let error = PathError::Target("..".into());
    check_refused(&[link("a", "..")], &Fault::Target(path("a"), error));
    let late = i64::MAX;
    let kind = EntryKind::File { mode: Mode::EXECUTABLE, bytes: 0, modified: late };
    check_refused(&[Entry { path: path("a"), kind }], &Fault::Modified(late));
    let all = |bytes, extents: &[u32]| {
        let mut items = vec![Item::Entry(file("a", bytes))];
        items.extend(extents.iter().map(|it| Item::Extent(extent(*it))));
        encode(&items).map(drop)
    };
    assert_eq!(all(5000, &[4999]), Err(Fault::Missing(1)));
    assert_eq!(all(5000, &[4999, 1]), Ok(()));
    for (bytes, extents) in [(5000, [5001]), (5000, [0]), (5000, [4095]), (70_000, [65_537])] {
        let refused = Fault::Extent { bytes: extents[0], left: bytes };
        assert_eq!(all(bytes, &extents), Err(refused));
    }
    assert_eq!(all(0, &[1]), Err(Fault::Extent { bytes: 1, left: 0 }));
    let whole = [Item::Entry(file("a", 0)), Item::Entry(file("b", u64::MAX))];
    assert_eq!(encode(&whole), Err(Fault::Missing(u64::MAX)));
}

#[test]
fn a_manifest_of_format_2_has_the_documented_bytes() {
    let items = [
        Item::Entry(Entry { kind: EntryKind::Directory { mode: mode(0o500) }, ..directory("a") }),
        Item::Entry(Entry {
            kind: EntryKind::File { mode: mode(0o440), bytes: 5, modified: -1 },
            ..file("a/b", 0)
        }),
        Item::Extent(extent(5)),
        Item::Entry(link("a/l", "b")),
    ];
    let (bytes, totals) = encode_as(Format::Two(mode(0o550)), &items).unwrap();
    assert_eq!(totals, Totals { entries: 3, bytes: 5 });
    let mut expected = b"\x02\x68\x01\x03\x01\0a\x40\x01\x01\x03\0a/b\x20\x01".to_vec();
    expected.extend(5_u64.to_le_bytes());
    expected.extend((-1_i64).to_le_bytes());
    expected.extend(5_u32.to_le_bytes());
    expected.extend(extent(5).hash.0);
    expected.extend(b"\x04\x03\0a/l\x01\0b\0");
    expected.extend(3_u64.to_le_bytes());
    expected.extend(5_u64.to_le_bytes());
    assert_eq!(bytes, expected);
    assert_eq!(decode_as(&bytes, 1), Ok((Format::Two(mode(0o550)), items.to_vec(), totals)));
    for piece in [1, 2, 3, 99] {
        let mut decoder = Decoder::default();
        let items = bytes.chunks(piece).flat_map(|it| {
            decoder.feed(it);
            let mut found = Vec::new();
            while let Some(item) = decoder.next_item().unwrap() {
                let Item::Entry(entry) = item else { continue };
                let format = decoder.format();
                found.push(decoder.offset() - entry.encoded_bytes(format));
            }
            found
        });
        assert_eq!(items.collect::<Vec<_>>(), [3, 9, 69], "where entries begin");
    }
    assert_eq!(encode_as(TWO, &[]).unwrap().0.len(), 20);
}

#[test]
fn modes_and_folders_depend_on_the_format() {
    let private = EntryKind::File { mode: mode(0o400), bytes: 0, modified: 0 };
    let private = Item::Entry(Entry { path: path("a"), kind: private });
    let folder = Item::Entry(directory("a"));
    let below = Item::Entry(file("a/b", 0));
    assert_eq!(encode(std::slice::from_ref(&private)), Err(Fault::Mode(0o400)));
    assert!(encode_as(TWO, &[private]).is_ok());
    let clash = Clash::Below(path("a/b"), path("a"));
    assert_eq!(encode(&[folder.clone(), below.clone()]), Err(Fault::Clash(clash)));
    assert!(encode_as(TWO, &[folder, below.clone()]).is_ok());
    assert!(encode(std::slice::from_ref(&below)).is_ok());
    let clash = Clash::Unlisted(path("a/b"));
    assert_eq!(encode_as(TWO, &[below]), Err(Fault::Clash(clash)));
    // Write and set-user bits are refused.
    check_bytes(&[2, 0o200, 0], 0, &Fault::Mode(0o200));
    check_bytes(&[2, 0, 8], 0, &Fault::Mode(0o4000));
    check_bytes(&[2, 0x6d, 1, 3, 1, 0, b'a', 2, 0], 3, &Fault::Mode(2));
    // An executable file of format 1.
    check_bytes(&[2, 0x6d, 1, 2, 1, 0, b'a'], 3, &Fault::Tag(2));
    check_bytes(&[2, 0x6d], 0, &Fault::Truncated);
}

#[test]
fn a_refused_item_does_not_change_the_encoder() {
    let mut encoder = Encoder::default();
    let mut out = Vec::new();
    encoder.entry(&directory("b"), &mut out).unwrap();
    for refused in [directory("a"), directory("B"), link("c", "/etc"), directory("b/c")] {
        encoder.entry(&refused, &mut out).unwrap_err();
    }
    encoder.extent(extent(1), &mut out).unwrap_err();
    encoder.entry(&directory("c"), &mut out).unwrap();
    encoder.finish(&mut out).unwrap();
    let (expected, _) =
        encode(&[Item::Entry(directory("b")), Item::Entry(directory("c"))]).unwrap();
    assert_eq!(out, expected);
}

fn check_bytes(bytes: &[u8], offset: u64, fault: &Fault) {
    let expected = ParseError { offset, fault: fault.clone() };
    for piece in [1, 7, bytes.len()] {
        assert_eq!(decode(bytes, piece).as_ref(), Err(&expected));
    }
}

#[test]
fn invalid_bytes_are_refused_at_their_position() {
    let (good, _) = encode(&sample()).unwrap();
    check_bytes(&[], 0, &Fault::Truncated);
    check_bytes(&[3], 0, &Fault::Format(3));
    check_bytes(&[1, 5], 1, &Fault::Tag(5));
    check_bytes(&[1, 3, 1, 16], 1, &Fault::Path(PathError::Length(4097)));
    check_bytes(&[1, 3, 0, 0], 1, &Fault::Path(PathError::Length(0)));
    check_bytes(&[1, 3, 1, 0, 255], 1, &Fault::Path(PathError::Utf8("\\xff".into())));
    check_bytes(&[good.as_slice(), &[0]].concat(), good.len() as u64, &Fault::Trailing);
    let mut other = good.clone();
    *other.last_mut().unwrap() = 1;
    check_bytes(&other, good.len() as u64 - 17, &Fault::Totals);
    let clash = Fault::Clash(Clash::Order(path("a"), path("a")));
    check_bytes(&[1, 3, 1, 0, b'a', 3, 1, 0, b'a'], 5, &clash);
    for end in 0..good.len() {
        let error = decode(&good[..end], 9).unwrap_err();
        assert_eq!(error.fault, Fault::Truncated, "{end}");
    }
}

/// Valid entries with chunks, in order.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let kind = (0u8..5, 0u64..200_000, MODIFIED);
    let paths = prop::collection::btree_map("[a-eX-Zé]{1,3}(/[a-e!]{1,2}){0,3}", kind, 0..20);
    paths.prop_map(|paths| {
        let mut all: Vec<(EntryPath, (u8, u64, i64))> =
            paths.into_iter().map(|(text, kind)| (path(&text), kind)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let mut order = Order::default();
        let mut items = Vec::new();
        for (path, (tag, bytes, modified)) in all {
            if order.accept(&path).is_err() {
                continue;
            }
            let kind = match tag {
                0 => EntryKind::Directory { mode: Mode::EXECUTABLE },
                1 => EntryKind::Link { target: fold(path.components().next().unwrap()).into() },
                2 => EntryKind::File { mode: Mode::EXECUTABLE, bytes, modified },
                _ => EntryKind::File { mode: Mode::PLAIN, bytes, modified },
            };
            let mut left = if tag < 2 { 0 } else { bytes };
            items.push(Item::Entry(Entry { path, kind }));
            while left != 0 {
                let next = left.min(4096 + left % 61_441);
                left -= next;
                items.push(Item::Extent(extent(u32::try_from(next).unwrap())));
            }
        }
        items
    })
}

/// Returns the same entries for format 2: with all folders, and modes.
fn with_folders(items: Vec<Item>, modes: u16) -> Vec<Item> {
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for item in items {
        let Item::Entry(mut entry) = item else {
            all.push(item);
            continue;
        };
        let names: Vec<String> = entry.path.components().map(str::to_owned).collect();
        let common = open.iter().zip(&names).take_while(|(a, b)| a == b).count();
        for depth in common + 1..names.len() {
            all.push(Item::Entry(directory(&names[..depth].join("/"))));
        }
        open = names[..names.len() - 1].to_vec();
        match &mut entry.kind {
            EntryKind::File { mode, .. } | EntryKind::Directory { mode } => {
                *mode = Mode::of(u32::from(mode.bits() & modes));
            }
            EntryKind::Link { .. } => {}
        }
        all.push(Item::Entry(entry));
    }
    all
}

proptest! {
    #[test]
    fn manifests_of_format_2_are_read_as_they_were_written(
        items in items(), modes in 0u16..0o1000, piece in 1usize..5000
    ) {
        let (format, items) = (Format::Two(Mode::of(modes.into())), with_folders(items, modes));
        let (bytes, totals) = encode_as(format, &items).unwrap();
        prop_assert_eq!(decode_as(&bytes, piece), Ok((format, items, totals)));
    }

    #[test]
    fn manifests_are_read_as_they_were_written(items in items(), piece in 1usize..5000) {
        let (bytes, totals) = encode(&items).unwrap();
        prop_assert_eq!(decode(&bytes, piece), Ok((items, totals)));
    }

    /// Checks that the form is canonical.
    #[test]
    fn every_readable_manifest_is_written_again_with_the_same_bytes(
        items in items(), at in any::<prop::sample::Index>(), with in any::<u8>(), piece in 1usize..5000,
        has_modes: bool
    ) {
        let (mut bytes, _) = match has_modes {
            false => encode(&items).unwrap(),
            true => encode_as(TWO, &with_folders(items, 0o777)).unwrap(),
        };
        let at = at.index(bytes.len());
        bytes[at] = with;
        match decode_as(&bytes, piece) {
            Ok((format, items, _)) => {
                prop_assert_eq!(encode_as(format, &items).unwrap().0, bytes);
            }
            Err(error) => prop_assert!(error.offset <= bytes.len() as u64),
        }
    }

    #[test]
    fn noise_gives_the_same_result_in_any_pieces(bytes in prop::collection::vec(0u8..6, 0..200), piece in 1usize..50) {
        let bytes = [&[1], bytes.as_slice()].concat();
        prop_assert_eq!(decode(&bytes, piece), decode(&bytes, bytes.len()));
    }
}

/// Checks that encoder and decoder hold no more than an item and the names of one directory. The
/// manifest has `HARVEST_TREE_ENTRIES` entries (default 20,000), and a file of
/// `HARVEST_TREE_FILE_GB` gigabytes (default 1).
#[test]
fn manifests_of_any_size_are_written_and_read_in_bounded_memory() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let entries = number("HARVEST_TREE_ENTRIES").unwrap_or(20_000);
    let large = number("HARVEST_TREE_FILE_GB").unwrap_or(1) << 30;
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let (mut out, mut most, mut read) = (Vec::new(), 0, 0);
    let mut pass = |out: &mut Vec<u8>| {
        decoder.feed(out);
        most = most.max(decoder.buffer.capacity()).max(decoder.rules.order.names);
        out.clear();
        while decoder.next_item().unwrap().is_some() {
            read += 1;
        }
    };
    encoder.entry(&file("0", large), &mut out).unwrap();
    for _ in 0..large / 65_536 {
        encoder.extent(extent(65_536), &mut out).unwrap();
        pass(&mut out);
    }
    for n in 1..entries {
        encoder.entry(&file(&format!("d{:06}/{n:08}", n / 1000), 3), &mut out).unwrap();
        encoder.extent(extent(3), &mut out).unwrap();
        pass(&mut out);
    }
    let totals = encoder.finish(&mut out).unwrap();
    pass(&mut out);
    assert_eq!(read, large / 65_536 + 2 * entries - 1);
    assert_eq!(decoder.finish().unwrap(), totals);
    assert!(most < 20_000, "{most}");
}
