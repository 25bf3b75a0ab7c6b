//! Tests of slides from before 2007, in records made here.

use super::check;
use super::compound::compound;
use crate::office::compound::ROOT;
use crate::office::compound::tree::Tree;

/// Returns a record of this version and instance, and kind.
fn record(head: u16, kind: u16, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&head.to_le_bytes()[..], &kind.to_le_bytes(), &size, content].concat()
}

fn header(kind: u8) -> Vec<u8> {
    record(0, 3999, &[kind, 0, 0, 0])
}

fn wide_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn wide(text: &str) -> Vec<u8> {
    record(0, 4000, &wide_bytes(text))
}

fn narrow(text: &[u8]) -> Vec<u8> {
    record(0, 4008, text)
}

/// Returns a shape with a text, perhaps one that stands for what is put in its place.
fn shape(placeholder: Option<u8>, text: &[u8]) -> Vec<u8> {
    let place = placeholder.map(|it| record(0, 3011, &[0, 0, 0, 0, it, 0, 0, 0]));
    let text = record(0xf, 0xf00d, &[header(4), narrow(text)].concat());
    record(0xf, 0xf004, &[place.unwrap_or_default(), text].concat())
}

#[test]
fn slides_of_powerpoint() {
    let slides = [
        record(3, 1011, &[0; 20]),
        header(0),
        wide("Hello\u{b}you"),
        header(1),
        narrow(b"one\rtw\xf6"),
        record(3, 1011, &[0; 20]),
        header(6),
        narrow(b"Second"),
    ];
    let master = [record(3, 1011, &[0; 20]), header(0), narrow(b"Click to edit")];
    let document = [
        record(0x1f, 4080, &master.concat()),
        record(0xf, 4080, &slides.concat()),
        record(0x2f, 4080, &record(3, 1011, &[0; 20])),
    ];
    let stream = [
        record(0xf, 1016, &shape(Some(1), b"Click to edit")),
        record(0xf, 1000, &document.concat()),
        record(0xf, 1006, &[header(4), narrow(b"in a box"), header(4), narrow(b"*")].concat()),
    ];
    check(
        "n.ppt",
        &compound(&[("PowerPoint Document", &stream.concat())]),
        "Title: Hello you\nSlides: 2\nHeadings: Hello you | Second\n\
         Partial-Text: Hello you | one | twö | Second | in a box",
    );
}

#[test]
fn slides_after_what_is_no_record() {
    // A container with a zip file, whose first bytes would be a record that is longer than all.
    let theme = record(0xf, 1064, b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0");
    let document =
        record(0xf, 1000, &[theme, record(0xf, 4080, &record(3, 1011, &[0; 20]))].concat());
    let slide = record(0xf, 1006, &shape(None, b"first"));
    let other = record(0xf, 1006, &shape(None, b"second"));
    let directory = record(0, 6002, &[1; 8]);
    // Zeros that align what follows.
    let stream = [&document[..], &slide, &[0; 487], &other, &[0; 13], &directory, &slide].concat();
    check(
        "n.ppt",
        &compound(&[("PowerPoint Document", &stream)]),
        "Title: n.ppt\nSlides: 1\nPartial-Text: first | second | first",
    );
}

#[test]
fn texts_on_masters() {
    let shapes = [shape(Some(1), b"Click to edit"), shape(None, b"Our institute")].concat();
    let stream = [
        record(0xf, 1016, &shapes),
        record(0xf, 1006, &[shape(Some(3), b"Click to edit"), shape(Some(13), b"Hi")].concat()),
        record(0xf, 1008, &shape(Some(6), b"Click to edit")),
    ];
    check(
        "n.ppt",
        &compound(&[("PowerPoint Document", &stream.concat())]),
        "Title: n.ppt\nPartial-Text: Our institute | Hi",
    );
}

#[test]
fn word_art_on_slides() {
    let text = wide_bytes("Happy day\0");
    let size = u32::try_from(text.len()).unwrap().to_le_bytes();
    let properties =
        [&[0x80, 0, 9, 0, 0, 0, 0x81, 0xc1, 3, 0, 0, 0, 0xc0, 0x80][..], &size, b"abc", &text];
    let shape = |content: &[u8]| {
        let stream = record(0xf, 1006, &record(0xf, 0xf004, &record(0x33, 0xf00b, content)));
        compound(&[("PowerPoint Document", &stream)])
    };
    let all = properties.concat();
    check("n.ppt", &shape(&all), "Title: n.ppt\nPartial-Text: Happy day");
    check("n.ppt", &shape(&all[..all.len() - 1]), "Title: n.ppt");
    check("n.ppt", &shape(&all[..10]), "Title: n.ppt");
}

#[test]
fn slides_in_two_forms_and_locked_ones() {
    let slide = |text: &[u8]| record(0xf, 1006, &shape(None, text));
    let mut tree = Tree::new();
    tree.add(ROOT, "PowerPoint Document", Some(slide(b"of 95")));
    let storage = tree.add(ROOT, "PP97_DUALSTORAGE", None);
    tree.add(storage, "PowerPoint Document", Some(slide(b"of 97")));
    check("n.ppt", &tree.into_bytes(), "Title: n.ppt\nPartial-Text: of 97");
    let user = [&[0; 12][..], &0xf3d1_c4df_u32.to_le_bytes()].concat();
    check(
        "n.ppt",
        &compound(&[("PowerPoint Document", &slide(b"\xff")), ("Current User", &user)]),
        "Title: n.ppt\n! locked: is locked by a password",
    );
}
