//! Tests of films, built byte by byte.

use proptest::prelude::*;

use crate::Type;
use crate::object::Object;
use crate::testing::{cut, render, render_object};

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("f.vid", Type::Video, bytes), expected);
}

fn boxed(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len() + 8).unwrap().to_be_bytes();
    [len.as_slice(), name, content].concat()
}

/// Returns a film of 90.5 s, 640 by 480 pixels, of 2020-01-02.
fn movie(metadata: &[u8]) -> Vec<u8> {
    let created = (1_577_923_445_u32 + 2_082_844_800).to_be_bytes();
    let mut header = vec![0; 100];
    header[4..8].copy_from_slice(&created);
    header[12..16].copy_from_slice(&1_000_u32.to_be_bytes());
    header[16..20].copy_from_slice(&90_500_u32.to_be_bytes());
    let mut track = vec![0; 84];
    track[76..78].copy_from_slice(&640_u16.to_be_bytes());
    track[80..82].copy_from_slice(&480_u16.to_be_bytes());
    let parts =
        [boxed(b"mvhd", &header), boxed(b"trak", &boxed(b"tkhd", &track)), metadata.to_vec()];
    [boxed(b"ftyp", b"isom\0\0\0\0"), boxed(b"mdat", &[0; 100]), boxed(b"moov", &parts.concat())]
        .concat()
}

#[test]
fn an_mp4_with_an_item_list() {
    let item = |name: &[u8; 4], text: &[u8]| {
        boxed(name, &boxed(b"data", &[b"\0\0\0\x01\0\0\0\0", text].concat()))
    };
    let items = [item(b"\xa9nam", b"Sea"), item(b"\xa9ART", b"Ann"), item(b"\xa9cmt", b"At home")];
    let list = boxed(b"ilst", &items.concat());
    let handler = boxed(b"hdlr", &[0; 25]);
    let metadata = boxed(b"udta", &boxed(b"meta", &[[0; 4].as_slice(), &handler, &list].concat()));
    check(
        &movie(&metadata),
        "Title: Sea\nAuthor: Ann\nDescription: At home\nDate: 2020-01-02T00:04:05Z\nDate-Source: media metadata\n\
         Dimensions: 640x480\nDuration: 90.5\nPartial-Text: At home",
    );
}

#[test]
fn the_box_about_a_long_film_may_be_its_last() {
    let film = Object::whole("http://h.example/d/f.mp4", movie(&[]));
    let expected = render_object(&film, Type::Video);
    assert!(expected.contains("Duration: 90.5"), "{expected}");
    for front in 12..film.bytes.len() {
        assert_eq!(render_object(&cut(&film, front), Type::Video), expected, "{front}");
    }
}

#[test]
fn a_quicktime_film_with_keys() {
    let keys = boxed(
        b"keys",
        &[b"\0\0\0\0\0\0\0\x01".as_slice(), &boxed(b"mdta", b"com.apple.quicktime.title")].concat(),
    );
    let item = boxed(b"\0\0\0\x01", &boxed(b"data", b"\0\0\0\x01\0\0\0\0Walk"));
    let handler = boxed(b"hdlr", &[0; 25]);
    let metadata = boxed(b"meta", &[handler, keys, boxed(b"ilst", &item)].concat());
    let user = boxed(b"udta", &boxed(b"\xa9cpy", b"\0\x03\0\0Ann"));
    check(
        &movie(&[metadata, user].concat()),
        "Title: Walk\nDate: 2020-01-02T00:04:05Z\nDate-Source: media metadata\nCopyright: Ann\nDimensions: 640x480\n\
         Duration: 90.5",
    );
}

fn element(id: &[u8], content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap() | 0x1000_0000;
    [id, &len.to_be_bytes(), content].concat()
}

#[test]
fn a_matroska_film() {
    let info = [
        element(b"\x2a\xd7\xb1", &[0x0f, 0x42, 0x40]),
        element(b"\x44\x89", &90_500_f32.to_be_bytes()),
        element(b"\x7b\xa9", b"Sea"),
        element(b"\x57\x41", b"cutter 1.0"),
        element(b"\x44\x61", &(599_616_245_i64 * 1_000_000_000).to_be_bytes()),
    ];
    let size = [element(b"\xb0", &[2, 128]), element(b"\xba", &[1, 224])].concat();
    let tracks = element(b"\xae", &element(b"\xe0", &size));
    let tag = [element(b"\x45\xa3", b"ARTIST"), element(b"\x44\x87", b"Ann")].concat();
    let tags = element(b"\x73\x73", &element(b"\x67\xc8", &tag));
    let segment = [
        element(b"\x15\x49\xa9\x66", &info.concat()),
        element(b"\x16\x54\xae\x6b", &tracks),
        element(b"\x1f\x43\xb6\x75", &[0; 300]),
        element(b"\x12\x54\xc3\x67", &tags),
    ];
    let bytes = [
        element(b"\x1a\x45\xdf\xa3", b"\x42\x82\x84webm"),
        [b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff".as_slice(), &segment.concat()]
            .concat(),
    ];
    check(
        &bytes.concat(),
        "Title: Sea\nAuthor: Ann\nDate: 2020-01-02T00:04:05Z\nDate-Source: media metadata\nGenerator: cutter 1.0\n\
         Dimensions: 640x480\nDuration: 90.5",
    );
}

#[test]
fn an_avi() {
    let chunk = |name: &[u8], data: &[u8]| {
        let len = u32::try_from(data.len()).unwrap().to_le_bytes();
        [name, &len, data, &vec![0; data.len() % 2]].concat()
    };
    let mut header = [0_u8; 56];
    for (at, number) in [(0, 40_000_u32), (16, 250), (32, 640), (36, 480)] {
        header[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let headers = chunk(b"LIST", &[b"hdrl".as_slice(), &chunk(b"avih", &header)].concat());
    let infos = [b"INFO".as_slice(), &chunk(b"INAM", b"Sea\0"), &chunk(b"IART", b"Ann")].concat();
    let frames = chunk(b"LIST", b"movi00dc\xff\xff\xff\xff");
    let parts = [b"AVI ".as_slice(), &headers, &frames, &chunk(b"LIST", &infos)].concat();
    check(&chunk(b"RIFF", &parts), "Title: Sea\nAuthor: Ann\nDimensions: 640x480\nDuration: 10");
}

#[test]
fn an_ogg_with_theora() {
    let text = |text: &str| {
        [u32::try_from(text.len()).unwrap().to_le_bytes().as_slice(), text.as_bytes()].concat()
    };
    let header = [b"\x80theora\x03\x02\x01\0\x28\0\x1e\0\x02\x80\0\x01\xe0".as_slice(), &[0; 30]];
    let comments = [text("coder"), vec![2, 0, 0, 0], text("TITLE=Sea"), text("artist=Ann")];
    check(
        &[b"OggS".as_slice(), &header.concat(), b"OggS\x81theora", &comments.concat()].concat(),
        "Title: Sea\nAuthor: Ann\nDimensions: 640x480",
    );
}

#[test]
fn hostile_films_end() {
    let cut = "Title: f.vid\n! broken: is cut off: a piece is longer than what is there";
    check(b"\0\0\0\x08ftyp\0\0\xff\xffmoov", cut);
    // Nested boxes, each as long as the rest: too deep for the stack without a limit.
    let mut nested = Vec::new();
    for _ in 0..20_000 {
        nested.extend(b"\0\0\0\0udta");
    }
    render("f.mp4", Type::Video, &[b"\0\0\0\x08ftyp".as_slice(), &nested].concat());
    let nested = b"\x18\x53\x80\x67\xff".repeat(20_000);
    render("f.mkv", Type::Video, &[b"\x1a\x45\xdf\xa3\x80".as_slice(), &nested].concat());
    // Many empty pieces, and a piece of length zero.
    render("f.mp4", Type::Video, &b"\0\0\0\x08ftyp".repeat(500_000));
    render("f.mp4", Type::Video, b"\0\0\0\x08ftyp\0\0\0\x01moov\0\0\0\0\0\0\0\0");
    render("f.avi", Type::Video, &b"RIFF\xff\xff\xff\xffLIST".repeat(10_000));
}

#[test]
fn a_film_out_of_time_is_a_problem() {
    let bytes = b"\0\0\0\x08ftyp".repeat(5_000);
    let object = Object::whole("http://h.example/f.mp4", bytes);
    let settings = crate::Settings::default();
    let summary = crate::testing::summarize(&object, Type::Video, &settings, &|| true);
    assert_eq!(summary.problems.len(), 1);
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        magic in proptest::sample::select(vec![
            movie(b""), b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff".to_vec(),
            b"RIFF\xff\0\0\0AVI LIST".to_vec(), b"OggS\0\x02".to_vec(),
            b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c\xff\xff\0\0\0\0\0\0".to_vec(),
        ]),
        cut in 0..300_usize,
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        render("f.vid", Type::Video, &[&magic[..cut.min(magic.len())], &rest].concat());
    }
}
