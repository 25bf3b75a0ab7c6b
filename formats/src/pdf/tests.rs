//! Tests of PDF summaries, on small documents made here.

mod annotations;
mod composite;
mod titles;

use crate::limit::Limit;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::super::testing::{cut, render, render_object};
use super::*;
use crate::object::Object;
use crate::{Settings, Type, testing};

/// Writes a document of `objects`, numbered from 1; the first is the catalog.
pub(crate) fn document(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes.extend(format!("{} 0 obj\n", number + 1).bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let start = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for offset in offsets {
        bytes.extend(format!("{offset:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    bytes.extend(format!("trailer\n<</Size {size}/Root 1 0 R{trailer}>>\n").bytes());
    bytes.extend(format!("startxref\n{start}\n%%EOF\n").bytes());
    bytes
}

pub(crate) fn stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("<<{dictionary}/Length {}>>\nstream\n", data.len()).into_bytes();
    bytes.extend(data);
    bytes.extend(b"\nendstream");
    bytes
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Returns a document with one page for each content stream, in Helvetica.
pub(crate) fn paged(contents: &[Vec<u8>]) -> Vec<u8> {
    let first = 5;
    let kids: Vec<String> =
        (0..contents.len()).map(|it| format!("{} 0 R", first + 2 * it)).collect();
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        format!("<</Type/Pages/Count {}/Kids[{}]>>", kids.len(), kids.join(" ")).into_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
        b"<</Title(The \\374ber title)/Author(A. Writer)/Subject(What it is)/Keywords(one, two)\
          /CreationDate(D:20240102030405Z)>>"
            .to_vec(),
    ];
    for (number, content) in contents.iter().enumerate() {
        let content_number = first + 2 * number + 1;
        objects.push(
            format!(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {content_number} 0 R\
                 /Resources<</Font<</F1 3 0 R>>>>>>"
            )
            .into_bytes(),
        );
        objects.push(content.clone());
    }
    document(&objects, "/Info 4 0 R")
}

fn check(pdf: &[u8], expected: &str) {
    assert_eq!(render("p.pdf", Type::Pdf, pdf), expected);
}

const DECLARED: &str = "Title: The über title\nAuthor: A. Writer\nDescription: What it is\n\
    Subject: What it is\nDeclared-Keywords: one, two\nCreation-Date: 2024-01-02\n";

#[test]
fn the_language_is_an_attribute() {
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R/Lang(de-AT)>>".to_vec(),
        b"<</Type/Pages/Count 0/Kids[]>>".to_vec(),
    ];
    let seen = render("p.pdf", Type::Pdf, &document(&objects, ""));
    assert!(seen.contains("\nLanguage: de-AT\n"), "{seen}");
}

#[test]
fn text_in_lines_and_words() {
    let content = b"BT /F1 12 Tf 50 700 Td (Hello) Tj 40 0 Td (world) Tj 0 -14 Td [(sec)-20(ond)-600(line)] TJ \
        0 -14 Td (hyphen-) Tj 0 -14 Td (ated) Tj ET";
    let pages = [
        stream("/Filter/FlateDecode", &deflated(content)),
        stream("", b"BT /F1 9 Tf (Page two) Tj ET"),
    ];
    check(
        &paged(&pages),
        &format!(
            "{DECLARED}Pages: 2\nDocument-Class: other\nDate: 2024-01-02\nDate-Source: PDF metadata\nPartial-Text: Hello world | second line | hyphenated | Page two"
        ),
    );
}

#[test]
fn a_paper_is_read_by_its_layout() {
    let content = b"BT /F1 20 Tf 200 700 Td (On the Digging) Tj 0 -26 Td (of Wells) Tj ET \
        BT /F1 12 Tf 220 640 Td (Ada Digger and Bob Miner) Tj 0 -16 Td (University of Wells) Tj \
        0 -16 Td (3 May 1995) Tj ET \
        BT /F1 10 Tf 260 560 Td (Abstract) Tj -160 -14 Td (We dig a deep well here and then we mea-) Tj \
        0 -12 Td (sure how much water stands in it.) Tj ET \
        BT /F1 10 Tf 100 480 Td (1 Introduction) Tj 0 -20 Td (Wells are dug, see doi:10.1000/182.) Tj ET";
    let record = render("p.pdf", Type::Pdf, &paged(&[stream("", content)]));
    let expected = "Title: On the Digging of Wells\nAuthor: Ada Digger | Bob Miner\n\
        Description: What it is\n\
        Abstract: We dig a deep well here and then we measure how much water stands in it.\n\
        Subject: What it is\nDeclared-Keywords: one, two\nCreation-Date: 2024-01-02\nPages: 1\n\
        Document-Class: paper\nAffiliation: University of Wells\nDate: 1995-05-03\nDate-Source: first page\n\
        Identifier: doi:10.1000/182\nLanguage: en\nLanguage-Source: detected\n";
    assert_eq!(record.split("Partial-Text").next(), Some(expected));
}

/// Checks title and authors of a page of lines: size, position from the left and the bottom, and text.
fn check_front(lines: &[(u32, u32, u32, &str)], title: &str, authors: &str) {
    let mut content = String::new();
    for (size, left, bottom, text) in lines {
        content.push_str(&format!("BT /F1 {size} Tf {left} {bottom} Td ({text}) Tj ET\n"));
    }
    // The text below determines the body's size.
    for line in 0..12 {
        let bottom = 300 - 12 * line;
        content.push_str(&format!("BT /F1 10 Tf 60 {bottom} Td (words that fill a line from the left to the right of it, and so on for a while) Tj ET\n"));
    }
    let record = render("p.pdf", Type::Pdf, &paged(&[stream("", content.as_bytes())]));
    let value =
        |name: &str| record.lines().find_map(|it| it.strip_prefix(name)).unwrap_or_default();
    assert_eq!((value("Title: "), value("Author: ")), (title, authors), "{record}");
}

#[test]
fn labels_of_covers_are_neither_title_nor_author() {
    check_front(
        &[
            (24, 220, 740, "UNIVERSITY OF WELLS"),
            (26, 250, 680, "Master's Thesis"),
            (20, 200, 600, "On the Digging of Wells"),
            (12, 250, 540, "Faculty of Water"),
            (12, 260, 500, "submitted by"),
            (12, 265, 480, "Ada Digger"),
            (12, 220, 440, "Supervisor: Prof. Bob Miner"),
            (12, 265, 420, "Carl Other"),
        ],
        "On the Digging of Wells",
        "Ada Digger",
    );
    check_front(
        &[
            (90, 150, 650, "Image"),
            (16, 230, 560, "Wells of Wells"),
            (12, 240, 500, "Author: Ada Digger"),
        ],
        "Wells of Wells",
        "Ada Digger",
    );
    check_front(
        &[
            (18, 200, 700, "Wells without Water"),
            (12, 265, 640, "Ada Digger"),
            (12, 250, 610, "Options Sum-"),
        ],
        "Wells without Water",
        "Ada Digger",
    );
    // A line that speaks of an institution is no list of authors.
    check_front(
        &[
            (18, 240, 700, "The wells class"),
            (12, 180, 660, "A class for wells with Wells Scientific Publishing"),
            (12, 265, 620, "Ada Digger"),
        ],
        "The wells class",
        "Ada Digger",
    );
}

#[test]
fn subtitles_belong_to_titles() {
    check_front(
        &[
            (18, 250, 700, "Wells of Wells"),
            (14, 240, 678, "Digging for beginners"),
            (12, 265, 640, "Ada Digger"),
        ],
        "Wells of Wells Digging for beginners",
        "Ada Digger",
    );
    check_front(
        &[
            (16, 280, 722, "wells:"),
            (18, 225, 700, "A package for wells"),
            (12, 265, 650, "Ada Digger"),
            (12, 265, 635, "Bob Miner"),
        ],
        "wells: A package for wells",
        "Ada Digger | Bob Miner",
    );
}

#[test]
fn a_sites_own_class_is_recognized_and_read_by_its_rules() {
    let recipe = r#"
class = "recipe"
like = "other"

[[evidence]]
weight = 50.0
when = [{ text = "front", matches = '(?m)^Ingredients' }, { number = "pages", max = 2.0 }]

[[field]]
name = "Author"
take = "match"
matches = '(?m)^Cooked by (.+)$'

[[field]]
name = "Ingredient"
take = "section"
matches = '^Ingredients:'
split = ","
"#;
    let content = b"BT /F1 20 Tf 200 700 Td (Soup of Wells) Tj ET \
        BT /F1 12 Tf 100 640 Td (Cooked by Bob Miner) Tj 0 -40 Td (Ingredients:) Tj \
        0 -14 Td (Water, Salt) Tj ET";
    let object = Object::whole("http://h.example/p.pdf", paged(&[stream("", content)]));
    let record = |templates: Templates| {
        let settings = Settings { templates, ..Settings::default() };
        testing::summarize(&object, Type::Pdf, &settings, &|| false).record
    };
    let own = Templates::read(&[("recipe.toml".into(), recipe.to_owned())]).unwrap();
    // As it is sent to a worker.
    let own = serde_json::from_str(&serde_json::to_string(&own).unwrap()).unwrap();
    let recipe = record(own);
    let text = |name: &str| recipe.text(name).map(|it| it.into_owned());
    assert_eq!(text("Document-Class").as_deref(), Some("recipe"));
    assert_eq!(text("Author").as_deref(), Some("Bob Miner"));
    assert_eq!(text("Ingredient").as_deref(), Some("Water\nSalt"));
    assert_eq!(text("Title").as_deref(), Some("Soup of Wells"), "from the class that it is like");
    let plain = record(Templates::default());
    assert_ne!(plain.text("Document-Class").as_deref(), Some("recipe"));
    assert_eq!(plain.get("Ingredient"), None);
}

#[test]
fn accents_are_put_onto_their_letters() {
    // The accent first, then a step back by most of its width, and the letter under it.
    let content = b"BT /F1 12 Tf 50 700 Td [(Frau M\\310) 445 (uller)] TJ ET";
    let record = render("p.pdf", Type::Pdf, &paged(&[stream("", content)]));
    assert!(record.ends_with("Partial-Text: Frau M\u{fc}ller"), "{record}");
}

#[test]
fn broken_documents_are_named() {
    check(b"%PDF-1.4\nnothing", "Title: p.pdf\n! broken: cannot be read as PDF: it is damaged");
    let object =
        Object { truncated: true, ..Object::whole("http://h.example/p.pdf", &b"%PDF-1.4\n"[..]) };
    let settings = Settings::default();
    let cut =
        Input { object: &object, r#type: Type::Pdf, settings: &settings, cancelled: &|| false };
    let message =
        "only its first 9 bytes were read, not the rest; raise `read_max` to read all of it";
    assert_eq!(summarize(&cut).problems, [(Limit::Read.kind_at(9), message.to_owned())]);
    let mut pdf = paged(&[stream("", b"BT /F1 9 Tf (kept) Tj ET")]);
    // A document without its table of offsets is rebuilt from its objects.
    let end = pdf.len() - 60;
    pdf.truncate(end);
    assert!(render("p.pdf", Type::Pdf, &pdf).contains("kept"));
}

#[test]
fn locked_documents_are_named() {
    let locked = "/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -1\
        /O(01234567890123456789012345678901)/U(01234567890123456789012345678901)>>\
        /ID[(0123456789012345)(0123456789012345)]";
    let mut objects = vec![b"<</Type/Catalog/Pages 2 0 R>>".to_vec()];
    objects.push(b"<</Type/Pages/Count 0/Kids[]>>".to_vec());
    check(
        &document(&objects, locked),
        "Title: p.pdf\n! locked: is locked by a password; only its name is known",
    );
}

#[test]
fn a_stream_bomb_is_refused() {
    let bomb = deflated(&vec![b' '; 2_000_000]);
    assert!(bomb.len() < 2_500);
    let limits = measure::Limits {
        stream_bytes_max: 1_500_000,
        small_bytes: 1_000,
        streams_bytes_max: 3_000_000,
    };
    let check = |contents: &[Vec<u8>], expected: &str| match measure::measure(
        &paged(contents),
        limits,
        &|| false,
    ) {
        Err(measure::Refusal::Size(_, message)) => {
            assert!(message.contains(expected), "{message}");
        }
        other => panic!("{other:?} for {expected}"),
    };
    let swells = "opens to more than 1500000 bytes";
    check(&[stream("/Filter/FlateDecode", &bomb)], swells);
    // Dictionaries with false or hidden values.
    check(&[stream("/Filter/FlateDecode/A(/Subtype/Image)", &bomb)], swells);
    check(&[stream("/Filter/FlateDecode/A( obj)", &bomb)], swells);
    check(&[stream(&format!("/Filter/FlateDecode/A({})", " ".repeat(9000)), &bomb)], swells);
    let part = deflated(&noise(1_200_000));
    let parts = vec![stream("/Filter/FlateDecode", &part); 3];
    check(&parts, "opens to more than 3000000 bytes");
    let twice = stream("/Filter[/FlateDecode/FlateDecode]", &deflated(&bomb));
    check(&[twice], "whose size cannot be told");
    check(&[stream("/Filter 9 0 R", &deflated(&bomb))], "whose size cannot be told");
}

/// Returns bytes that compress so little that their stream is not small.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut bytes = vec![b' '; count];
    for byte in bytes.iter_mut().step_by(100) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    bytes
}

#[test]
fn drawing_without_end_is_stopped() {
    // Forms that draw the next one ten times each: 10^12 drawings.
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>"
            .to_vec(),
        stream("", b"/X Do"),
    ];
    for next in 6..=17 {
        let form = format!(
            "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {next} 0 R>>>>"
        );
        objects.push(stream(&form, "/X Do ".repeat(10).as_bytes()));
    }
    objects.push(stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"0 0 1 1 re f"));
    let polls = std::cell::Cell::new(0);
    let object = Object::whole("http://h.example/p.pdf", document(&objects, ""));
    let summary = testing::summarize(&object, Type::Pdf, &Settings::default(), &|| {
        polls.set(polls.get() + 1);
        20 < polls.get()
    });
    assert_eq!(summary.problems.len(), 1, "{:?}", summary.problems);
    assert_eq!(summary.problems[0].kind, ProblemKind::Time);
}

#[test]
fn text_is_bounded() {
    let content = format!("BT /F1 9 Tf {} ET", "(many words ) Tj ".repeat(2_000));
    let pages = vec![stream("/Filter/FlateDecode", &deflated(content.as_bytes())); 2];
    let object = Object::whole("http://h.example/p.pdf", paged(&pages));
    let summary = testing::summarize(&object, Type::Pdf, &Settings::default(), &|| false);
    assert_eq!(summary.problems, []);
    assert!(summary.record.get("Partial-Text").unwrap().len() <= 16 * 1024);
}

/// A document of 1,200 words as text, as a page, as RTF, and as a PDF with headers, numbers of pages and hyphens.
#[test]
fn twins_in_other_formats_have_nearly_the_same_print() {
    let words: Vec<String> =
        (0..1_200_u32).map(|it| format!("word{}", it * it * 7 % 9_973)).collect();
    let text = words.join(" ");
    let page = |(number, words): (usize, &[String])| {
        let mut content =
            format!("BT /F1 12 Tf 50 780 Td (Digging wells) Tj 0 -24 Td ({}) Tj", number + 17);
        for line in words.chunks(8) {
            // The first word of a line was begun on the line before.
            let (first, rest) = line.split_first().unwrap();
            let (one, two) = first.split_at(2);
            content += &format!(" ({one}-) Tj 0 -14 Td ({two} {} ) Tj", rest.join(" "));
        }
        stream("", (content + " ET").as_bytes())
    };
    let pages: Vec<Vec<u8>> = words.chunks(400).enumerate().map(page).collect();
    let print = |r#type: Type, bytes: &[u8]| {
        let object = Object::whole("http://h.example/d", bytes.to_vec());
        let record = testing::summarize(&object, r#type, &Settings::default(), &|| false).record;
        record.text("Text-Print").unwrap().into_owned()
    };
    let plain = print(Type::Text, text.as_bytes());
    for (kind, bytes, least) in [
        (
            Type::Html,
            format!(
                "<title>T</title><h1>T</h1><p>{}</p>",
                text.replace(" word1", "</p>\n<p>word1")
            ),
            0.99,
        ),
        (Type::Rtf, format!("{{\\rtf1\\ansi {}}}", text.replace(" word1", "\\par word1")), 0.99),
    ] {
        let found = crate::text::similarity(&plain, &print(kind, bytes.as_bytes())).unwrap();
        assert!(least <= found, "{kind:?} {found}");
    }
    let found = crate::text::similarity(&plain, &print(Type::Pdf, &paged(&pages))).unwrap();
    assert!(0.8 <= found, "{found}");
}

#[test]
fn deep_objects_do_not_overflow() {
    for (open, close) in [("[", "]"), ("<</A", ">>"), ("(", ")")] {
        let deep = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        let objects = vec![
            format!("<</Type/Catalog/Pages 2 0 R/Deep {deep}>>").into_bytes(),
            format!("<</Type/Pages/Count 0/Kids {deep}>>").into_bytes(),
        ];
        render("p.pdf", Type::Pdf, &document(&objects, ""));
        render("p.pdf", Type::Pdf, format!("%PDF-1.4\n1 0 obj\n{deep}").as_bytes());
    }
}

#[test]
fn bytes_before_the_mark_are_passed_over() {
    let pdf =
        paged(&[stream("/Filter/FlateDecode", &deflated(b"BT /F1 12 Tf (some words) Tj ET"))]);
    let expected = render("p.pdf", Type::Pdf, &pdf);
    assert!(expected.ends_with("Partial-Text: some words"), "{expected}");
    let mut mac = vec![0; 128];
    mac[1..7].copy_from_slice(b"\x05p.pdf");
    mac[65..73].copy_from_slice(b"PDF CARO");
    let fronts = [
        b"\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n".to_vec(),
        b"From: a@b.example\nSubject: see the stream\n\n".to_vec(),
        mac,
        vec![b'j'; 999],
        (0..=u8::MAX).cycle().step_by(7).take(1000).collect(),
    ];
    for front in fronts {
        // Offsets from the mark, as most programs write them.
        check(&[&front[..], &pdf].concat(), &expected);
        // Offsets from the file's start.
        let shift = |line: &str| match line.split_once(" 00000 n ") {
            Some((offset, _)) => {
                format!("{:010} 00000 n ", offset.parse::<usize>().unwrap() + front.len())
            }
            None => line.to_owned(),
        };
        let at = pdf.windows(5).rposition(|it| it == b"xref\n").unwrap();
        let table = pdf[..at].windows(5).rposition(|it| it == b"xref\n").unwrap();
        let lines = str::from_utf8(&pdf[table..]).unwrap().lines().map(shift);
        let lines: Vec<String> = lines.collect();
        let start = format!("startxref\n{}", table + front.len());
        let tail = lines.join("\n").replace(&format!("startxref\n{table}"), &start);
        check(&[&front[..], &pdf[..table], tail.as_bytes()].concat(), &expected);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_documents_never_escape(flips in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()), 1..20)) {
        let mut pdf = paged(&[stream("/Filter/FlateDecode", &deflated(b"BT /F1 12 Tf (some words) Tj ET"))]);
        for (index, byte) in flips {
            let at = index.index(pdf.len());
            pdf[at] = byte;
        }
        render("p.pdf", Type::Pdf, &pdf);
    }
}

#[test]
fn a_long_document_is_read_whole_up_to_a_bound() {
    let page = stream("", b"BT /F1 12 Tf 100 700 Td (Some words) Tj ET");
    let whole = Object::whole("http://h.example/d/p.pdf", paged(&[page]));
    let expected = render_object(&whole, Type::Pdf);
    assert!(expected.contains("Some words") && !expected.contains('!'), "{expected}");
    assert_eq!(render_object(&cut(&whole, 300), Type::Pdf), expected);
    let front = Object { rest: None, ..cut(&whole, 300) };
    let long = Object { size: WHOLE_BYTES_MAX + 1, ..cut(&whole, 300) };
    let expected = "! limit: only its first 300 bytes were read, not the rest; raise `read_max` to read all of it";
    for object in [front, long] {
        let found = render_object(&object, Type::Pdf);
        assert!(found.contains(expected) && !found.contains("! broken"), "{found}");
    }
}
