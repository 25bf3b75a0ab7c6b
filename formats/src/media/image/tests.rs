//! Tests of pictures, built byte by byte.

use proptest::prelude::*;

use super::super::xmp;
use super::{iptc, tiff};
use crate::Type;
use crate::cancellable::TimeLimit;
use crate::metadata::{Field, Metadata};
use crate::testing::render;

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("p.img", Type::Image, bytes), expected);
}

#[test]
fn metadata_ends_when_the_time_is_up() {
    let mut about = Metadata::default();
    let mut time = TimeLimit::new(&|| true);
    iptc::records(b"\x1c\x02\x05\0\x05words", &mut about, &mut time);
    iptc::resources(b"8BIM\x04\x22\0\0\0\0\0\0", &mut about, &mut time);
    tiff::read(&exif(), &mut about, &mut time, false);
    xmp::read(b"<dc:title>words</dc:title>", &mut about, &mut time);
    let found = [Field::Title, Field::Description, Field::Date].map(|it| about.lines(it));
    assert_eq!(found, ["", "", ""]);
}

#[test]
fn many_records_in_equal_blocks_are_read_once() {
    let record = |it: u32| format!("\x1c\x02\x19\0\x06{it:06}");
    let records: String = (0..100_000).map(record).collect();
    let block = (33723, 7, records.into_bytes());
    let mut entries = directory(8 + 36, &[block]);
    // The same entry four times.
    let entry = entries.drain(2..14).collect::<Vec<u8>>();
    entries.splice(..2, [&[4, 0][..], &entry, &entry, &entry, &entry].concat());
    let bytes = [b"II*\0\x08\0\0\0", &entries[..]].concat();
    let rendered = render("p.tif", Type::Image, &bytes);
    assert!(rendered.contains("Truncated: properties 1000"), "{rendered}");
}

/// Returns a little-endian TIFF directory of these entries: tag, type, bytes of the value.
fn directory(start: usize, entries: &[(u16, u16, Vec<u8>)]) -> Vec<u8> {
    let mut head = u16::try_from(entries.len()).unwrap().to_le_bytes().to_vec();
    let mut values: Vec<u8> = Vec::new();
    let values_at = start + 2 + 12 * entries.len() + 4;
    for (tag, kind, value) in entries {
        let unit = match kind {
            3 => 2,
            4 => 4,
            5 => 8,
            _ => 1,
        };
        head.extend(tag.to_le_bytes());
        head.extend(kind.to_le_bytes());
        head.extend(u32::try_from(value.len() / unit).unwrap().to_le_bytes());
        if value.len() <= 4 {
            head.extend(value.iter().chain(&[0; 4]).take(4));
        } else {
            head.extend(u32::try_from(values_at + values.len()).unwrap().to_le_bytes());
            values.extend(value);
        }
    }
    head.extend([0; 4]);
    head.extend(values);
    head
}

fn exif() -> Vec<u8> {
    let fraction = |parts: [u32; 6]| parts.iter().flat_map(|it| it.to_le_bytes()).collect();
    let gps: Vec<u8> = directory(
        1000,
        &[
            (1, 2, b"S\0".to_vec()),
            (2, 5, fraction([33, 1, 30, 1, 360, 10])),
            (3, 2, b"E\0".to_vec()),
            (4, 5, fraction([151, 1, 15, 1, 0, 1])),
        ],
    );
    let camera = directory(
        600,
        &[(36867, 2, b"2020:01:02 03:04:05\0".to_vec()), (36881, 2, b"+10:00\0".to_vec())],
    );
    let main = directory(
        8,
        &[
            (256, 4, 7_u32.to_le_bytes().to_vec()),
            (257, 4, 5_u32.to_le_bytes().to_vec()),
            (270, 2, b"A harbour\0".to_vec()),
            (271, 2, b"Canon\0".to_vec()),
            (272, 2, b"Canon EOS 5\0".to_vec()),
            (315, 2, b"Ann Example\0".to_vec()),
            (33432, 2, b"(c) Ann\0".to_vec()),
            (34665, 4, 600_u32.to_le_bytes().to_vec()),
            (34853, 4, 1000_u32.to_le_bytes().to_vec()),
            (40094, 1, "sea;ship".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ],
    );
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    for (start, part) in [(8, main), (600, camera), (1000, gps)] {
        bytes.resize(start, 0);
        bytes.extend(part);
    }
    bytes
}

const EXIF_EXPECTED: &str = "Description: A harbour\n\
     Date: 2020-01-02T03:04:05+10:00\nDate-Source: media metadata\n\
     Subject: sea | ship\n\
     Copyright: (c) Ann\n\
     Camera: Canon EOS 5\n\
     Location: -33.510000, 151.250000\n";

fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
    [&[0xff, marker], len.as_slice(), data].concat()
}

fn jpeg(segments: &[Vec<u8>]) -> Vec<u8> {
    [b"\xff\xd8".as_slice(), &segments.concat(), b"\xff\xda\0\x02"].concat()
}

#[test]
fn a_photograph() {
    let bytes = jpeg(&[
        segment(0xe1, &[b"Exif\0\0".as_slice(), &exif()].concat()),
        segment(0xfe, b"from the bridge"),
        segment(0xc0, b"\x08\x01\xe0\x02\x80\x03"),
    ]);
    let expected = format!(
        "Title: p.img\nAuthor: Ann Example\n{EXIF_EXPECTED}Dimensions: 640x480\n\
         Partial-Text: A harbour | from the bridge"
    );
    check(&bytes, &expected);
}

#[test]
fn a_tiff_file_has_its_size_in_its_directory() {
    let expected = format!(
        "Title: p.img\nAuthor: Ann Example\n{EXIF_EXPECTED}Dimensions: 7x5\nPartial-Text: A harbour"
    );
    check(&exif(), &expected);
}

#[test]
fn metadata_of_a_news_agency() {
    let record = |set: u8, text: &[u8]| {
        [&[0x1c, 2, set, 0], [u8::try_from(text.len()).unwrap()].as_slice(), text].concat()
    };
    let iptc = [
        record(5, b"Harbour"),
        record(25, b"sea"),
        record(25, b"ship"),
        record(55, b"20200102"),
        record(80, b"J\xf6rg"),
        record(120, b"A ship comes in."),
    ]
    .concat();
    let len = u32::try_from(iptc.len()).unwrap().to_be_bytes();
    let resource = [b"Photoshop 3.0\x008BIM\x04\x04\0\0".as_slice(), &len, &iptc].concat();
    let xmp = b"http://ns.adobe.com/xap/1.0/\0<a><dc:rights>(c) agency</dc:rights></a>";
    check(
        &jpeg(&[
            segment(0xed, &resource),
            segment(0xe1, xmp),
            segment(0xc2, b"\x08\0\x10\0\x20\x03"),
        ]),
        "Title: Harbour\nAuthor: Jörg\nDescription: A ship comes in.\nDate: 2020-01-02\nDate-Source: media metadata\n\
         Subject: sea | ship\nCopyright: (c) agency\nDimensions: 32x16\n\
         Partial-Text: A ship comes in.",
    );
}

fn png(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = (b"IHDR", b"\0\0\0\x20\0\0\0\x10\x08\x02\0\0\0".to_vec());
    for (name, data) in std::iter::once(&header).chain(chunks) {
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(*name);
        bytes.extend(data);
        bytes.extend([0; 4]);
    }
    bytes
}

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut packer = flate2::read::ZlibEncoder::new(text, flate2::Compression::best());
    let mut packed = Vec::new();
    std::io::Read::read_to_end(&mut packer, &mut packed).unwrap();
    packed
}

#[test]
fn the_texts_of_a_png() {
    let packed = [b"Description\0\0".as_slice(), &deflated(b"A map of K\xf6ln")].concat();
    let chunks = [
        (b"tEXt", b"Title\0Map".to_vec()),
        (b"tEXt", b"Software\0draw 1.0".to_vec()),
        (b"tEXt", b"date:modify\x002020".to_vec()),
        (b"IDAT", vec![0; 100]),
        (b"zTXt", packed),
        (b"iTXt", "Author\0\0\0de\0Autor\0Jörg".as_bytes().to_vec()),
        (b"IEND", Vec::new()),
    ];
    check(
        &png(&chunks),
        "Title: Map\nAuthor: Jörg\nDescription: A map of Köln\nGenerator: draw 1.0\n\
         Dimensions: 32x16\nPartial-Text: A map of Köln",
    );
}

#[test]
fn exif_in_digits() {
    let digits: String = exif().iter().map(|it| format!("{it:02x}")).collect();
    let packed = deflated(format!("\nexif\n{:8}\n{digits}\n", exif().len()).as_bytes());
    let chunk = [b"Raw profile type exif\0\0".as_slice(), &packed].concat();
    let expected = format!(
        "Title: p.img\nAuthor: Ann Example\n{EXIF_EXPECTED}Dimensions: 32x16\nPartial-Text: A harbour"
    );
    check(&png(&[(b"zTXt", chunk)]), &expected);
}

#[test]
fn gif_comments_and_packets() {
    let mut bytes = b"GIF89a\x20\0\x10\0\x80\0\0aaabbb".to_vec();
    bytes.extend(b"!\xfe\x06A logo\x02 x\0");
    bytes.extend(b"!\xff\x0bXMP DataXMP<a><dc:title>Logo</dc:title></a><?xpacket end='w'?>\x01");
    bytes.extend((0..=255_u8).rev());
    bytes.extend(b"\0,\0\0\0\0\x20\0\x10\0\0\x02\x03abc\0;");
    check(&bytes, "Title: Logo\nDescription: A logo x\nDimensions: 32x16\nPartial-Text: A logo x");
}

#[test]
fn a_webp_with_exif() {
    let chunk = |name: &[u8], data: &[u8]| {
        let len = u32::try_from(data.len()).unwrap().to_le_bytes();
        [name, &len, data, &vec![0; data.len() % 2]].concat()
    };
    let header = chunk(b"VP8X", b"\x0c\0\0\0\x7f\x02\0\xdf\x01\0");
    let chunks = [header, chunk(b"EXIF", &exif())].concat();
    let len = u32::try_from(chunks.len() + 4).unwrap().to_le_bytes();
    let expected = format!(
        "Title: p.img\nAuthor: Ann Example\n{EXIF_EXPECTED}Dimensions: 640x480\nPartial-Text: A harbour"
    );
    check(&[b"RIFF".as_slice(), &len, b"WEBP", &chunks].concat(), &expected);
}

#[test]
fn sizes_of_old_formats() {
    check(
        b"P6\n# CREATOR: GIMP\n# a dog\n32 16\n255\n",
        concat!(
            "Title: p.img\nDescription: a dog\nGenerator: CREATOR: GIMP\nDimensions: 32x16\n",
            "Partial-Text: a dog"
        ),
    );
    check(
        b"/* XPM */\nstatic char *x[] = {\n\"16 8 4 1\",\n\". c red\",\n",
        "Title: p.img\nDimensions: 16x8",
    );
    check(b"#define x_width 16\n#define x_height 8\n", "Title: p.img\nDimensions: 16x8");
    check(b"gimp xcf v011\0\0\0\0\x20\0\0\0\x10", "Title: p.img\nDimensions: 32x16");
}

#[test]
fn hostile_pictures_end() {
    let broken = "Title: p.img\n! broken: is not a whole picture: its size cannot be read";
    check(b"\xff\xd8\xff\xff\xff", broken);
    // A directory that refers to itself.
    let mut cycle = b"II*\0\x08\0\0\0".to_vec();
    cycle.extend(directory(8, &[(34665, 4, vec![8, 0, 0, 0]), (34853, 4, vec![8, 0, 0, 0])]));
    render("p.tif", Type::Image, &cycle);
    // 65,535 entries of 4 GB each.
    let mut greedy = b"MM\0*\0\0\0\x08\xff\xff".to_vec();
    greedy.extend([1, 14, 0, 5, 255, 255, 255, 255, 0, 0, 0, 1].repeat(65_535));
    render("p.tif", Type::Image, &greedy);
    // A text of 32 KB that inflates to 32 MB.
    let bomb = [b"Title\0\0".as_slice(), &deflated(&vec![b'a'; 32 << 20])].concat();
    assert!(render("p.png", Type::Image, &png(&[(b"zTXt", bomb)])).len() < 10_000);
}

#[test]
fn a_picture_out_of_time_is_a_problem() {
    let object = crate::object::Object::whole("http://h.example/p.png", png(&[]));
    let settings = crate::Settings::default();
    let summary = crate::testing::summarize(&object, Type::Image, &settings, &|| true);
    assert_eq!(summary.problems.len(), 1);
}

#[test]
fn metafiles_have_texts() {
    let record = |kind: u32, content: &[u8]| {
        let size = u32::try_from(content.len() + 8).unwrap();
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), content].concat()
    };
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let number = |it: u32| it.to_le_bytes();
    let about = utf16("Draw\0A knot\0\0");
    let mut header = [0; 80];
    header[8..12].copy_from_slice(&number(19));
    header[12..16].copy_from_slice(&number(9));
    header[32..36].copy_from_slice(b" EMF");
    header[52..56].copy_from_slice(&number(13));
    header[56..60].copy_from_slice(&number(88));
    let text =
        |count: u32, bytes: &[u8]| [&[0; 36][..], &number(count), &number(52), bytes].concat();
    let emf = [
        record(1, &[&header[..], &about].concat()),
        record(84, &text(4, &utf16("rope"))),
        record(83, &text(4, b"hold")),
        record(14, &[0; 12]),
    ];
    check(
        &emf.concat(),
        "Title: A knot\nDescription: rope hold\nGenerator: Draw\nDimensions: 20x10\nPartial-Text: rope | hold",
    );
    let record = |kind: u16, content: &[u8]| {
        let size = u32::try_from(content.len() / 2 + 3).unwrap();
        [&size.to_le_bytes()[..], &kind.to_le_bytes(), content].concat()
    };
    let wmf = [
        [&b"\xd7\xcd\xc6\x9a\0\0\0\0\0\0\x14\0\x0a\0"[..], &[0; 8]].concat(),
        [&b"\x01\0\x09\0\0\x03"[..], &[0; 12]].concat(),
        record(0x0521, b"\x04\0rope\0\0\0\0"),
        record(0x0a32, b"\0\0\0\0\x04\0\0\0hold"),
        record(0, b""),
    ];
    check(
        &wmf.concat(),
        "Title: p.img\nDescription: rope hold\nDimensions: 20x10\nPartial-Text: rope | hold",
    );
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        magic in proptest::sample::select(vec![
            b"\xff\xd8\xff\xe1".to_vec(), b"\x89PNG\r\n\x1a\n".to_vec(), b"GIF89a".to_vec(),
            b"RIFF\0\0\0\0WEBPEXIF".to_vec(), b"II*\0\x08\0\0\0".to_vec(), b"8BPS".to_vec(),
            b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec(), b"P6\n".to_vec(), b"BM".to_vec(),
        ]),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        render("p.img", Type::Image, &[magic, rest].concat());
    }

    #[test]
    fn damaged_pictures_give_a_record(at in 0..1200_usize, byte in any::<u8>()) {
        let mut bytes = exif();
        if let Some(it) = bytes.get_mut(at) {
            *it = byte;
        }
        render("p.tif", Type::Image, &bytes);
    }
}
