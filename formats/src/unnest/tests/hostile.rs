//! Tests of hostile containers: each ends soon, within its limits, with a problem that names the reason.

use std::sync::LazyLock;
use std::time::Duration;

use net::clock;

use super::builders::{ar, deb};
use super::formats::{binhex, cpio, packed, sevenz};
use super::*;

/// Longest time for a hostile container; far more than it takes, since tests share the machine.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Opens `bytes` with the default limits, and renders members and problems.
fn opened(format: Format, bytes: &[u8]) -> Vec<String> {
    let started = clock::monotonic();
    let seen = open(format, bytes, Limits::default());
    assert!(started.elapsed() < TIME_MAX, "{format:?} took {:?}", started.elapsed());
    seen
}

fn unpacked(packing: Packing, bytes: Vec<u8>) -> Opened {
    let started = clock::monotonic();
    let object = Object::whole("http://h.example/a", bytes);
    let budget = Budget::new(Limits::default(), &|| false);
    let opened = unpack(&object, packing, &budget, &|_, _| usize::MAX);
    assert!(started.elapsed() < TIME_MAX, "{packing:?} took {:?}", started.elapsed());
    opened
}

#[track_caller]
fn check_problem(format: Format, bytes: &[u8], expected: &str) {
    let seen = opened(format, bytes);
    assert!(seen.iter().any(|it| it.contains(expected)), "{expected:?} is not in {seen:?}");
}

#[test]
fn a_gigabyte_in_each_compression_is_cut() {
    let mebibyte = vec![0; 1 << 20];
    for packing in Packing::ALL.iter().copied() {
        let bytes = match packing {
            // Each code is one byte longer than the code before it: 2 GiB in 128 KiB.
            Packing::Compress => {
                let codes: Vec<usize> = [0].into_iter().chain(257..65_536).collect();
                lzw::tests::write_codes(&codes, 16)
            }
            // lzma has no members, so this is one stream; the ratio ends it early.
            Packing::Lzma => packed(packing, &mebibyte.repeat(4)),
            _ => packed(packing, &mebibyte).repeat(1024),
        };
        let whole = bytes.len();
        let opened = unpacked(packing, bytes);
        assert!(opened.bytes.len() <= 64 << 20, "{packing:?}");
        let problem = &opened.problems[0];
        assert!(matches!(problem.kind, ProblemKind::Limit(_)), "{packing:?} of {whole}: {problem}");
    }
}

#[test]
fn dictionaries_of_gigabytes_are_refused() {
    let expected = "needs a dictionary of more than 67108864 bytes; not opened";
    let mut xz = packed(Packing::Xz, b"words");
    // The block header: its size, flags, the filter LZMA2 (0x21), one property, the dictionary.
    assert_eq!(xz[14..16], [0x21, 1]);
    xz[16] = 40;
    let size = (usize::from(xz[12]) + 1) * 4;
    let mut sum = flate2::Crc::new();
    sum.update(&xz[12..12 + size - 4]);
    xz[12 + size - 4..12 + size].copy_from_slice(&sum.sum().to_le_bytes());
    let mut lzma = packed(Packing::Lzma, b"words");
    lzma[1..5].copy_from_slice(&[0xff; 4]);
    let mut lzip = packed(Packing::Lzip, b"words");
    lzip[5] = 29;
    let zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 1, 0, 0];
    for (packing, bytes) in
        [(Packing::Xz, xz), (Packing::Lzma, lzma), (Packing::Lzip, lzip), (Packing::Zstd, zstd)]
    {
        let opened = unpacked(packing, bytes);
        let messages: Vec<&str> = opened.problems.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(messages, [expected], "{packing:?}");
    }
}

/// Returns a 7-Zip archive with only a directory.
fn sevenz_directory(size: u64, directory: &[u8]) -> Vec<u8> {
    let mut bytes = b"7z\xbc\xaf\x27\x1c\0\x04\x01\x02\x03\x04".to_vec();
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(directory);
    bytes
}

#[test]
fn seven_zip_cannot_ask_for_too_much_memory() {
    // One stream of 5 bytes; one folder of LZMA with a dictionary; unpacked size.
    let encoded = |dictionary: [u8; 4], size: &[u8]| {
        let front = [0x17, 6, 0, 1, 9, 5, 0, 7, 0x0b, 1, 0, 1, 0x23, 3, 1, 1, 5, 0x5d];
        [&front[..], &dictionary, &[0x0c], size, &[0, 0]].concat()
    };
    for (directory, size, expected) in [
        (encoded([0xff; 4], &[9]), 30, "needs a dictionary of more than"),
        (encoded([0, 0, 1, 0], &[0xf0, 0, 0, 0, 0xf0]), 30, "has a directory of more than 1048576"),
        (encoded([0, 0, 1, 0], &[9]), u64::MAX, "has a directory of more than 1048576"),
        (vec![0x17, 6, 0xff], 3, "7z directory cannot be read"),
        (vec![1; 40], 40, "7z data breaks off"),
    ] {
        check_problem(Format::SevenZip, &sevenz_directory(size, &directory), expected);
    }
    check_problem(Format::SevenZip, &[b"7z\xbc\xaf\x27\x1c".as_slice(), &[0; 90]].concat(), "7z");
    let swells = sevenz(&[("big", &[0; 300_000]), ("after", b"x")]);
    let limits = Limits { bytes_max: 200_000, ..Limits::default() };
    let seen = open(Format::SevenZip, &swells, limits).join("\n");
    assert!(seen.contains("opens to more than 200000 bytes in all"), "{seen}");
}

#[test]
fn wrong_sizes_are_problems() {
    let mut header = ::tar::Header::new_gnu();
    header.set_path("x").unwrap();
    header.set_size(1 << 63);
    header.set_cksum();
    check_problem(Format::Tar, &[header.as_bytes(), &[b'x'; 512][..]].concat(), "breaks off");

    let mut bytes = cpio('n', &[("name", b"one")]);
    bytes[94..102].copy_from_slice(b"ffffffff");
    check_problem(Format::Cpio, &bytes, "cpio data breaks off");
    let mut bytes = cpio('n', &[("name", b"one")]);
    bytes[54..62].copy_from_slice(b"ffffffff");
    check_problem(Format::Cpio, &bytes, "breaks off after");

    let mut bytes = ar(&[("a", b"one"), ("b", b"two")]);
    bytes[56..66].copy_from_slice(b"9999999999");
    check_problem(Format::Ar, &bytes, "breaks off after 68 of 9999999999 bytes");
    let bytes = ar(&[("#1/99999", b"one"), ("/99999", b"two"), ("//", b""), ("/1", b"x")]);
    opened(Format::Ar, &bytes);

    let mut bytes = vec![0; 120];
    bytes[..4].copy_from_slice(b"\xed\xab\xee\xdb");
    bytes[96..104].copy_from_slice(b"\x8e\xad\xe8\x01\0\0\0\0");
    bytes[104..112].copy_from_slice(&[0xff; 8]);
    check_problem(Format::Rpm, &bytes, "rpm header cannot be read");
}

#[test]
fn endless_runs_and_lines_are_bounded() {
    // Two bytes give 255, many times.
    let bytes = binhex("run", &[], &[b"a".as_slice(), &b"\x90\xff".repeat(200_000)].concat());
    assert!(opened(Format::BinHex, &bytes).len() < 4);
    opened(Format::Uuencoded, &b"begin 644 x\n".repeat(50_000));
    opened(Format::Shar, &b"cat << ''\ncat > x << 'EOF'\n".repeat(20_000));
    check_problem(Format::Shar, &b"cat <<EOF >x\nEOF\n".repeat(20_000), "more than 10000 members");
    check_problem(
        Format::Mailbox,
        &b"From a b\nA: b\n\n".repeat(20_000),
        "more than 10000 members",
    );
    let deep = "Content-Type: message/rfc822\n\n".repeat(20_000);
    check_problem(Format::Message, format!("Subject: x\n{deep}").as_bytes(), "not opened");
}

#[test]
fn names_are_data_in_every_format() {
    let names = ["../../etc/passwd", "/etc/passwd", "..\\..\\boot.ini", "a\tb#c?d"];
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (*it, &b"x"[..])).collect();
    let expected = [
        "http://h.example/a#../../etc/passwd 1 x",
        "http://h.example/a#etc/passwd 1 x",
        "http://h.example/a#..%5C..%5Cboot.ini 1 x",
        "http://h.example/a#a%09b%23c%3Fd 1 x",
    ];
    check(Format::Tar, &tarball(&files), &expected);
    check(Format::Cpio, &cpio('o', &files), &expected);
    check(Format::Deb, &deb("Package: x\n", &files), &expected);
    check(Format::SevenZip, &sevenz(&files), &expected);
    check(Format::Zip, &zipped(&files), &expected);
    let shar = b"cat > '../x\0y' << EOF\nEOF\n";
    check(Format::Shar, shar, &["http://h.example/a#../x%00y 0 "]);
}

#[test]
fn known_formats_that_are_not_opened_are_named() {
    for (front, name) in
        [(&b"\x1f\x1e\0\0"[..], "pack"), (b"Rar!\x1a\x07\0", "RAR"), (b"\x04\x22\x4d\x18\0", "LZ4")]
    {
        let object = Object::whole("http://h.example/a", front.to_vec());
        let r#type = if name == "RAR" { Type::Archive } else { Type::Compressed };
        let format = Format::of(&object, r#type).unwrap();
        let expected = format!("is packed by {name}, which is not opened here");
        check_problem(format, front, &expected);
    }
}

/// Containers to damage, built once since packing takes longer than opening.
static WHOLE: LazyLock<Vec<(Format, Vec<u8>)>> = LazyLock::new(|| {
    let files: &[(&str, &[u8])] = &[("a.txt", b"some words"), ("b", b"more")];
    let mut all: Vec<(Format, Vec<u8>)> = vec![
        (Format::Cpio, cpio('n', files)),
        (Format::Cpio, cpio('b', files)),
        (Format::Ar, ar(files)),
        (Format::Deb, deb("Package: x\n", files)),
        (Format::SevenZip, sevenz(files)),
        (Format::BinHex, binhex("x", b"aaaa", b"a\x90\x04")),
        (Format::Uuencoded, b"begin 644 cat.txt\n#0V%T\n`\nend\n".to_vec()),
        (Format::Shar, b"sed 's/^X//' >'d/a.c' <<'END'\nXint x;\nEND\n".to_vec()),
    ];
    let packings = Packing::ALL.iter();
    all.extend(packings.map(|it| (Format::PackedTar(*it), packed(*it, &tarball(files)))));
    all
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn damaged_containers_of_every_format_end(
        which in any::<prop::sample::Index>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (format, mut bytes) = WHOLE[which.index(WHOLE.len())].clone();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        open(format, &bytes, LIMITS);
        bytes.truncate(cut.index(bytes.len()));
        open(format, &bytes, LIMITS);
    }

    #[test]
    fn any_bytes_as_every_format_end(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        for format in Format::ALL {
            open(*format, &bytes, LIMITS);
        }
    }
}
