//! Tests of items of Outlook, made here in both forms.

mod tnef;

use proptest::prelude::*;
use tnef::winmail;
pub(crate) use tnef::{attribute, properties, tnef};

use super::tnef::MAGIC;
use crate::object::Object;
use crate::office::compound::tree::Tree;
use crate::office::compound::{Compound, ROOT};
use crate::office::{Inside, inside};
use crate::testing::render;
use crate::unnest::{Budget, Format, Limits, Member, members};
use crate::{HEAD_BYTES, Type};

/// 2024-01-01T10:00:00Z, as Microsoft counts.
const TIME: u64 = 133_485_768_000_000_000;

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a stream of short properties: numbers, kinds and values.
pub(crate) fn short(header_bytes: usize, properties: &[(u16, u16, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; header_bytes];
    for (number, kind, value) in properties {
        bytes.extend([kind.to_le_bytes(), number.to_le_bytes()].concat());
        bytes.extend(6_u32.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// Returns a compound file of these streams; their paths may lead through storages.
pub(crate) fn file(streams: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut tree = Tree::new();
    let mut storages = vec![(String::new(), ROOT)];
    for (path, content) in streams {
        let (mut parent, mut at) = (ROOT, 0);
        while let Some(end) = path[at..].find('/') {
            let storage = &path[..at + end];
            let known = storages.iter().find(|(it, _)| it == storage).map(|(_, number)| *number);
            parent = known.unwrap_or_else(|| {
                let number = tree.add(parent, &path[at..at + end], None);
                storages.push((storage.to_owned(), number));
                number
            });
            at += end + 1;
        }
        tree.add(parent, &path[at..], Some(content.clone()));
    }
    tree.into_bytes()
}

fn long(number: &str) -> String {
    format!("__substg1.0_{number}")
}

/// Returns a message with these texts by the numbers and kinds of their properties.
pub(crate) fn message(texts: &[(&str, &[u8])]) -> Vec<u8> {
    let names: Vec<String> = texts.iter().map(|(number, _)| long(number)).collect();
    let mut streams: Vec<(&str, Vec<u8>)> =
        names.iter().zip(texts).map(|(name, (_, text))| (&**name, text.to_vec())).collect();
    let properties = short(32, &[(0x39, 0x40, TIME), (0x3fde, 3, 1252)]);
    streams.push(("__properties_version1.0", properties));
    file(&streams)
}

#[track_caller]
fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("m.msg", Type::Mail, bytes), expected);
}

fn opened(bytes: &[u8]) -> Vec<Object> {
    let object = Object::whole("http://h.example/m.msg", bytes.to_vec());
    let budget = Budget::new(Limits::default(), &|| false);
    let mut found = Vec::new();
    let format = Format::of(&object, Type::Mail).unwrap();
    members(&object, format, &budget, &mut |it: Member| found.push(it.object));
    found
}

/// A message with two recipients, a file, a message with a file of its own, and a document.
fn full() -> Vec<u8> {
    let recipient = |kind| short(8, &[(0x0c15, 3, kind)]);
    let inner = "__attach_version1.0_#00000001/__substg1.0_3701000D";
    let document = "__attach_version1.0_#00000002/__substg1.0_3701000D";
    let at = |storage: &str, name: &str| format!("{storage}/{name}");
    let to = "__recip_version1.0_#00000000";
    let cc = "__recip_version1.0_#00000001";
    let first = "__attach_version1.0_#00000000";
    let second = "__attach_version1.0_#00000001";
    let deep = at(inner, "__attach_version1.0_#00000000");
    let streams = [
        ("__properties_version1.0".to_owned(), short(32, &[(0x39, 0x40, TIME)])),
        (long("001A001F"), wide("IPM.Note")),
        (long("0037001F"), wide("Grüße")),
        (long("1000001F"), wide("Hello,\r\nhere it is.\0")),
        (long("0042001F"), wide("Ann Smith")),
        (long("0065001F"), wide("/O=ORG/CN=ANN@ORG")),
        (long("0C1F001F"), wide("other@a.example")),
        (long("5D02001F"), wide("ann@a.example")),
        (long("1035001F"), wide("<1@a.example>")),
        (long("1042001F"), wide("<0@a.example>")),
        (at(to, "__properties_version1.0"), recipient(1)),
        (at(to, &long("3001001F")), wide("Bob")),
        (at(to, &long("3003001E")), b"bob@b.example".to_vec()),
        (at(cc, "__properties_version1.0"), recipient(2)),
        (at(cc, &long("3001001F")), wide("'c@c.example'")),
        (at(cc, &long("39FE001F")), wide("c@c.example")),
        (at(first, &long("3704001F")), wide("PAPER~1.TXT")),
        (at(first, &long("3707001F")), wide("paper one.txt")),
        (at(first, &long("37010102")), b"words ".repeat(1000)),
        (at(second, &long("3001001F")), wide("Fwd: knots")),
        (at(inner, "__properties_version1.0"), short(24, &[(0x39, 0x40, TIME)])),
        (at(inner, &long("0037001F")), wide("Inner")),
        (at(inner, &long("8000001F")), wide("Room 1")),
        (at(&deep, &long("3707001F")), wide("deep.txt")),
        (at(&deep, &long("37010102")), b"deep words".to_vec()),
        (at(document, "WordDocument"), b"x".to_vec()),
        ("__nameid_version1.0/__substg1.0_00020102".to_owned(), set(0x0006_2002)),
        ("__nameid_version1.0/__substg1.0_00030102".to_owned(), name(0x8208, 0)),
    ];
    let streams: Vec<(&str, Vec<u8>)> =
        streams.iter().map(|(name, content)| (&**name, content.clone())).collect();
    file(&streams)
}

fn set(first: u32) -> Vec<u8> {
    [&first.to_le_bytes()[..], &[0; 12]].concat()
}

/// Returns the entry of a named property of the first own set.
fn name(number: u32, place: u16) -> Vec<u8> {
    [&number.to_le_bytes()[..], &6_u16.to_le_bytes(), &place.to_le_bytes()].concat()
}

#[test]
fn a_message() {
    check(
        &full(),
        "Title: Grüße\n\
         Author: Ann Smith <ann@a.example>\n\
         Description: Hello, here it is.\n\
         From: Ann Smith <ann@a.example>\n\
         To: Bob <bob@b.example>\n\
         Cc: c@c.example\n\
         Date: 2024-01-01T10:00:00Z\nDate-Source: mail header\n\
         Identifier: mid:1@a.example\n\
         Message-Id: 1@a.example\n\
         In-Reply-To: 0@a.example\n\
         Attachments: paper one.txt | Fwd: knots\n\
         Partial-Text: Hello, | here it is.",
    );
}

#[test]
fn what_is_attached_becomes_files() {
    let found = opened(&full());
    let seen: Vec<(&str, usize)> = found.iter().map(|it| (&*it.url, it.bytes.len())).collect();
    assert_eq!(seen[0], ("http://h.example/m.msg#paper%20one.txt", 6000));
    assert_eq!(seen[1].0, "http://h.example/m.msg#Fwd%3A%20knots");
    assert_eq!(seen[2].0, "http://h.example/m.msg#3");
    // The message in the message is a file like those of Outlook.
    check(
        &found[1].bytes,
        "Title: Inner\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\nAttachments: deep.txt\nLocation: Room 1",
    );
    let inner = opened(&found[1].bytes);
    assert_eq!(inner[0].url, "http://h.example/m.msg#deep.txt");
    assert_eq!(&*inner[0].bytes, b"deep words");
    assert_eq!(inside(&found[2].bytes), Inside::Known(Type::Word, "Word document"));
    assert!(matches!(inside(&full()), Inside::Known(Type::Mail, _)));
    assert_eq!(inside(&full()[..HEAD_BYTES]), Inside::Unseen);
}

#[test]
fn what_is_signed_is_mail() {
    let attachment = "__attach_version1.0_#00000000";
    let kind = format!("{attachment}/{}", long("370E001F"));
    let content = format!("{attachment}/{}", long("37010102"));
    let found = opened(&file(&[
        ("__properties_version1.0", short(32, &[])),
        (&*kind, wide("multipart/signed")),
        (&*content, b"MIME-Version: 1.0\n".to_vec()),
    ]));
    assert_eq!(found[0].url, "http://h.example/m.msg#1.eml");
}

#[test]
fn the_header_of_the_net_comes_first() {
    check(
        &message(&[
            ("007D001E", b"Microsoft Mail Internet Headers Version 2.0\r\nFrom: =?utf-8?q?=C3=89va?= <eva@e.example>\r\n\
                 Date: Mon, 1 Jan 2024 11:00:00 +0100\r\nMessage-ID: <9@e.example>\r\nList-Id: L <l.example>\r\n\r\n"),
            ("0037001E", b"Subject"),
            ("0C1A001E", b"Other"),
            ("0E04001E", b"Bob; Carl"),
            ("1000001E", "Größe".as_bytes()),
        ]),
        "Title: Subject\nAuthor: Éva <eva@e.example>\nDescription: Größe\n\
         From: Éva <eva@e.example>\nTo: Bob | Carl\nDate: 2024-01-01T11:00:00+01:00\nDate-Source: mail header\nList-Id: L <l.example>\n\
         Identifier: mid:9@e.example\nMessage-Id: 9@e.example\nPartial-Text: Größe",
    );
}

#[test]
fn pages_and_rtf_are_text() {
    let page = "<html><p>One &amp; <b>tw\u{f6}</b> <a href='http://w.example/'>link</a></p>";
    let narrow: Vec<u8> = page.chars().map(|it| u8::try_from(it).unwrap()).collect();
    let expected = "Title: s\nDescription: One & twö link\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\n\
                    URL-References: http://w.example/\nPartial-Text: One & twö link";
    check(&message(&[("0037001F", &wide("s")), ("10130102", &narrow)]), expected);
    check(&message(&[("0037001F", &wide("s")), ("1013001F", &wide(page))]), expected);
    let rtf = |text: &str| {
        let raw = u32::try_from(text.len()).unwrap().to_le_bytes();
        [&[0; 4], &raw[..], b"MELA", &[0; 4], text.as_bytes()].concat()
    };
    let plain = rtf("{\\rtf1\\ansi words\\par more}");
    check(
        &message(&[("0037001F", &wide("s")), ("10090102", &plain)]),
        "Title: s\nDescription: words more\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\nPartial-Text: words | more",
    );
    let page = rtf(
        "{\\rtf1\\ansi\\ansicpg1252\\fromhtml1 {\\fonttbl{\\f0 Arial;}}\\htmlrtf hidden\\plain no\\htmlrtf0\
         {\\*\\htmltag64 <p>}One {\\*\\htmltag84 &amp;}\\htmlrtf &\\htmlrtf0  \\'74w\\'f6\
         {\\*\\htmltag84 <a href=\"http://w.example/\">}\\htmlrtf {\\field{\\*\\fldinst{HYPERLINK x}}{\\fldrslt\\htmlrtf0  link\
         \\htmlrtf }}\\htmlrtf0{\\*\\htmltag92 </a>}{\\*\\mhtmltag64 <p>no}\\par}",
    );
    check(&message(&[("0037001F", &wide("s")), ("10090102", &page)]), expected);
    check(
        &message(&[("0037001F", &wide("s")), ("10090102", b"damaged and long enough")]),
        "Title: s\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\n! broken: has a text in RTF that cannot be unpacked",
    );
}

#[test]
fn charsets_are_those_that_the_item_names() {
    let streams = [
        ("__properties_version1.0", short(32, &[(0x3ffd, 3, 1251)])),
        ("__substg1.0_0037001E", b"\xcf\xf0\xe8\xe2\xe5\xf2".to_vec()),
    ];
    check(&file(&streams), "Title: Привет");
}

#[test]
fn appointments_and_contacts() {
    let item =
        |class: &str, names: &[(u32, u32)], texts: &[(&str, &str)], times: &[(u16, u16, u64)]| {
            let sets: Vec<u8> = names.iter().flat_map(|(first, _)| set(*first)).collect();
            let entry = |place: usize| {
                let place = u16::try_from(place).unwrap();
                let kind = (place + 3) * 2;
                [
                    &names[usize::from(place)].1.to_le_bytes()[..],
                    &kind.to_le_bytes(),
                    &place.to_le_bytes(),
                ]
                .concat()
            };
            let entries: Vec<u8> = (0..names.len()).flat_map(entry).collect();
            let texts = [&[("001A001F", class)][..], texts].concat();
            let texts: Vec<(String, Vec<u8>)> =
                texts.iter().map(|(it, text)| (long(it), wide(text))).collect();
            let mut streams = vec![
                ("__properties_version1.0", short(32, times)),
                ("__nameid_version1.0/__substg1.0_00020102", sets),
                ("__nameid_version1.0/__substg1.0_00030102", entries),
            ];
            streams.extend(texts.iter().map(|(name, text)| (&**name, text.clone())));
            file(&streams)
        };
    let appointment = item(
        "IPM.Appointment",
        &[(0x0006_2002, 0x8208), (0x0006_2002, 0x820d), (0x0006_2004, 0x8208)],
        &[
            ("0037001F", "Lunch"),
            ("8000001F", "Harbour"),
            ("8002001F", "no"),
            ("1000001F", "Bring rope."),
        ],
        &[(0x8001, 0x40, TIME)],
    );
    check(
        &appointment,
        "Title: Lunch\nDescription: Bring rope.\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\nLocation: Harbour\n\
         Partial-Text: Bring rope.",
    );
    let contact = item(
        "IPM.Contact",
        &[(0x0006_2004, 0x8083)],
        &[
            ("3001001F", "Ann"),
            ("3A16001F", "Ropes Ltd."),
            ("3A08001F", "123"),
            ("8000001F", "ann@a.example"),
        ],
        &[],
    );
    check(
        &contact,
        "Title: Ann\nDescription: Ropes Ltd. 123 ann@a.example\n\
         Partial-Text: Ropes Ltd. | 123 | ann@a.example",
    );
}

#[test]
fn items_that_lie_end() {
    check(
        &[super::COMPOUND, &[0; 600]].concat(),
        "Title: m.msg\n! broken: has no directory that can be read",
    );
    check(
        &file(&[("Other", b"x".to_vec())]),
        "Title: m.msg\n! broken: has no properties of a message of Outlook",
    );
    // Every number of the directory leads everywhere in turn, also to itself and to what is above it.
    let good = full();
    let directory = u32::from_le_bytes(good[0x30..0x34].try_into().unwrap());
    let directory = (usize::try_from(directory).unwrap() + 1) * 4096;
    for entry in (directory..good.len() - 4096).step_by(128) {
        let fields = [64, 68, 72, 76, 116, 120].into_iter();
        let values = [0_u32, 1, 2, 7, u32::MAX];
        for (field, value) in fields.flat_map(|field| values.map(|value| (field, value))) {
            let (mut bytes, at) = (good.clone(), entry + field);
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(render("m.msg", Type::Mail, &bytes).starts_with("Title: "));
            opened(&bytes);
        }
    }
    // Counts and lengths of items in attachments.
    let good = winmail();
    for at in 0..good.len() - 4 {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        render("winmail.dat", Type::Mail, &bytes);
        if bytes.starts_with(MAGIC) {
            opened(&bytes);
        }
    }
}

#[test]
fn streams_that_overlap_are_not_copied() {
    let inner = "__attach_version1.0_#00000000/__substg1.0_3701000D";
    let mut streams = vec![(format!("{inner}/__properties_version1.0"), short(24, &[]))];
    streams.extend((0..40).map(|it| (format!("{inner}/{it}"), vec![b'x'; 5_000 + it])));
    let streams: Vec<_> = streams.iter().map(|(name, it)| (&**name, it.clone())).collect();
    let mut bytes = file(&streams);
    // All have the first sectors, and are as long as all.
    let directory = bytes.len() / 4096 - 3;
    let whole = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    for entry in bytes[directory * 4096..(directory + 2) * 4096].chunks_exact_mut(128) {
        if entry[66] == 2 && entry[120..124] != [24, 0, 0, 0] {
            entry[116..120].copy_from_slice(&[0; 4]);
            entry[120..124].copy_from_slice(&whole);
        }
    }
    // A table in which each sector leads to the next.
    let table = bytes.len() - 4096;
    for (number, next) in bytes[table..].chunks_exact_mut(4).enumerate() {
        next.copy_from_slice(&u32::try_from(number + 1).unwrap().to_le_bytes());
    }
    for object in opened(&bytes) {
        assert!(object.bytes.len() <= bytes.len());
    }
}

proptest! {
    #[test]
    fn trees_are_read_as_they_are_written(
        sizes in proptest::collection::btree_map("[a-c]{1,2}(/[a-d]{3,9}){0,2}", prop_oneof![0..200_usize, 4000..9000_usize], 0..12),
    ) {
        let streams: Vec<(String, Vec<u8>)> =
            sizes.into_iter().map(|(path, size)| (path.clone(), path.bytes().cycle().take(size).collect())).collect();
        let named: Vec<(&str, Vec<u8>)> = streams.iter().map(|(it, content)| (&**it, content.clone())).collect();
        let bytes = file(&named);
        let read = Compound::open(&bytes).unwrap();
        for (path, content) in &streams {
            let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
            let folders = folders.split('/').filter(|it| !it.is_empty());
            // A stream may have the name of a storage.
            let storage = folders.fold(ROOT, |parent, name| {
                let storage = read.children(parent).find(|it| it.is_storage && it.name == name);
                storage.unwrap().number
            });
            let stream = read.children(storage).find(|it| !it.is_storage && it.name == name).unwrap();
            prop_assert_eq!(&read.content(stream.number).unwrap(), content);
        }
        prop_assert!(read.cut().is_none());
    }

    #[test]
    fn any_item_gives_a_record(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<proptest::sample::Index>(),
        is_tnef in any::<bool>(),
    ) {
        let mut bytes = if is_tnef { winmail() } else { full() };
        let whole = bytes.len();
        for (at, value) in changes {
            bytes[8 + at.index(whole - 8)] = value;
        }
        bytes.truncate(8 + cut.index(whole).max(whole / 2));
        prop_assert!(render("m.msg", Type::Mail, &bytes).starts_with("Title: "));
        opened(&bytes);
    }

    #[test]
    fn any_bytes_are_an_item(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..4_u8], 0..300)) {
        render("m.msg", Type::Mail, &[MAGIC, &bytes].concat());
        render("m.msg", Type::Mail, &message(&[("10090102", &bytes), ("10130102", &bytes), ("007D0102", &bytes)]));
    }
}
