//! Tests of items in attachments of mail.

use super::{TIME, opened, set, wide};
use crate::Type;
use crate::office::outlook::tnef::MAGIC;
use crate::testing::render;

/// Returns an attribute of TNEF.
pub(crate) fn attribute(number: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&[1][..], &number.to_le_bytes(), &length.to_le_bytes(), data, &[0; 2]].concat()
}

/// Returns properties as TNEF has them; the values are padded here.
pub(crate) fn properties(all: &[(u16, u16, &[u8])]) -> Vec<u8> {
    let mut bytes = u32::try_from(all.len()).unwrap().to_le_bytes().to_vec();
    for (number, kind, value) in all {
        bytes.extend([kind.to_le_bytes(), number.to_le_bytes()].concat());
        if matches!(kind, 0x0d | 0x1e | 0x1f | 0x102) {
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
        }
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

pub(crate) fn tnef(attributes: &[Vec<u8>]) -> Vec<u8> {
    [MAGIC, &[1, 0], &attributes.concat()].concat()
}

/// An item with a file and another item.
pub(super) fn winmail() -> Vec<u8> {
    let inner = tnef(&[attribute(0x0001_8004, b"Deep\0")]);
    let object = [&b"\x07\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46"[..], &inner].concat();
    let recipient = properties(&[
        (0x3001, 0x1f, &wide("Bob")),
        (0x3003, 0x1e, b"bob@b.example\0"),
        (0x0c15, 3, &1_u32.to_le_bytes()),
    ]);
    // Two names of properties: one of a text, one of a place.
    let named = [
        &[0x1f, 0, 0, 0x80][..],
        &[9; 16],
        &1_u32.to_le_bytes(),
        &6_u32.to_le_bytes(),
        &wide("abc"),
        &[0; 2],
        &1_u32.to_le_bytes(),
        &2_u32.to_le_bytes(),
        &wide("x"),
        &[0; 2],
        &[0x1f, 0, 1, 0x80],
        &set(0x0006_2002),
        &0_u32.to_le_bytes(),
        &0x8208_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &8_u32.to_le_bytes(),
        &wide("Pier"),
    ]
    .concat();
    let own = properties(&[
        (0x1000, 0x1f, &wide("Hello.")),
        (0x1035, 0x1e, b"<1@a.example>\0"),
        (0x0e06, 0x40, &TIME.to_le_bytes()),
        (0x0017, 0x1003, &[2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]),
    ]);
    let own = [&6_u32.to_le_bytes()[..], &own[4..], &named].concat();
    tnef(&[
        attribute(0x0006_9007, &1252_u32.to_le_bytes()),
        attribute(0x0000_8000, b"\0\0\x0a\0\x04\0\x11\0Ann\0SMTP:a@a.example\0"),
        attribute(0x0001_8004, b"Gr\xfc\xdfe\0"),
        attribute(0x0006_9003, &own),
        attribute(0x0006_9004, &[&1_u32.to_le_bytes()[..], &recipient].concat()),
        attribute(0x0006_9002, &[0; 14]),
        attribute(0x0001_8010, b"PAPER.TXT\0"),
        attribute(0x0006_800f, b"words"),
        attribute(0x0006_9005, &properties(&[(0x3707, 0x1e, b"paper one.txt\0")])),
        attribute(0x0006_9002, &[0; 14]),
        attribute(0x0006_9005, &properties(&[(0x3701, 0x0d, &object)])),
    ])
}

#[test]
fn an_item_in_an_attachment_of_mail() {
    let winmail = winmail();
    let expected = "Title: Grüße\nAuthor: Ann <a@a.example>\nDescription: Hello.\n\
         From: Ann <a@a.example>\nTo: Bob <bob@b.example>\nDate: 2024-01-01T10:00:00Z\nDate-Source: mail header\n\
         Identifier: mid:1@a.example\nMessage-Id: 1@a.example\nAttachments: paper one.txt\n\
         Location: Pier\nPartial-Text: Hello.";
    assert_eq!(render("winmail.dat", Type::Mail, &winmail), expected);
    let found = opened(&winmail);
    let seen: Vec<_> = found.iter().map(|it| (&*it.url, it.bytes.len())).collect();
    assert_eq!(seen[0], ("http://h.example/m.msg#paper%20one.txt", 5));
    assert_eq!(seen[1].0, "http://h.example/m.msg#Deep");
    assert_eq!(render("Deep", Type::Mail, &found[1].bytes), "Title: Deep");
    let cut = &winmail[..winmail.len() - 20];
    let broken = "! broken: breaks off in an attribute of Outlook";
    assert!(render("winmail.dat", Type::Mail, cut).ends_with(broken));
    // Mail that has no other text has that of the item.
    let mail = [
        &b"From: a@a.example\nSubject: s\nMIME-Version: 1.0\nContent-Type: application/ms-tnef; name=winmail.dat\n\
           Content-Transfer-Encoding: binary\n\n"[..],
        &winmail,
    ];
    assert_eq!(
        render("m.eml", Type::Mail, &mail.concat()),
        "Title: s\nAuthor: a@a.example\nDescription: Hello.\nFrom: a@a.example\n\
         Attachments: winmail.dat\nPartial-Text: Hello."
    );
}

#[test]
fn an_old_item_has_its_own_date() {
    let date: Vec<u8> =
        [1999_u16, 12, 31, 23, 59, 58, 5].into_iter().flat_map(u16::to_le_bytes).collect();
    let item = tnef(&[attribute(0x0003_8005, &date), attribute(0x0002_800c, b"words\0")]);
    assert_eq!(
        render("winmail.dat", Type::Mail, &item),
        "Title: winmail.dat\nDescription: words\nDate: 1999-12-31T23:59:58\nDate-Source: mail header\nPartial-Text: words"
    );
}
