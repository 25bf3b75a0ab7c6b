//! Samples for the limits of office documents.

use super::Sample;
use crate::Type;
use crate::limit::Limit;
use crate::office::outlook::tests::{attribute, file, message, properties, short, tnef};
use crate::office::tests::{compound, hangul, record, zipped};

/// What a collected text may lack up to its bound without being cut, in bytes.
const BODY_SLACK: usize = 4;

/// Makes a sample; with the count, the format changes.
pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let is_old = count.is_multiple_of(2);
    let of = |r#type, bytes: Vec<u8>, holds, slack| {
        Some(Sample { r#type, name: "n", bytes, holds, slack })
    };
    let rtf = |text: &str| format!("{{\\rtf1{text}}}").into_bytes();
    let words = "words ".repeat(count);
    match limit {
        Limit::Paragraph if is_old => {
            of(Type::Rtf, rtf(&format!(" {words}")), words.len(), BODY_SLACK)
        }
        Limit::RtfPage => {
            of(Type::Rtf, rtf(&format!("\\fromhtml1 {words}")), words.len() + 1, BODY_SLACK)
        }
        Limit::PageTexts => {
            let bytes = rtf(&format!("{{\\header {words}}} One"));
            of(Type::Rtf, bytes, words.len(), BODY_SLACK)
        }
        Limit::Groups => {
            let groups = ["{a".repeat(count), "}".repeat(count)].concat();
            of(Type::Rtf, rtf(&groups), count + 1, 0)
        }
        Limit::Recipients if is_old => {
            let recipients = properties(&[(0x3001, 0x1e, b"Bob\0")]).repeat(count);
            let number = u32::try_from(count).unwrap().to_le_bytes();
            let list = attribute(0x0006_9004, &[&number[..], &recipients].concat());
            of(Type::Mail, tnef(&[list]), count, 0)
        }
        Limit::Attachments if is_old => {
            of(Type::Mail, tnef(&vec![attribute(0x0006_9002, &[0; 14]); count]), count, 0)
        }
        Limit::Recipients => of(Type::Mail, item("recip", count), count, 0),
        Limit::Attachments => of(Type::Mail, item("attach", count), count, 0),
        Limit::OutlookText => {
            let text = rtf(&words);
            let size = u32::try_from(text.len()).unwrap().to_le_bytes();
            let stored = [&[0; 4], &size[..], b"MELA", &[0; 4], &text].concat();
            of(Type::Mail, message(&[("10090102", &stored)]), text.len(), 0)
        }
        Limit::Sections => of(Type::WordProcessor, hangul(0, &vec![&[0; 4][..]; count]), count, 0),
        Limit::Stream => {
            let stream = vec![0; 4096 + 100 * count];
            of(Type::Excel, compound(&[("Workbook", &stream)]), stream.len(), 0)
        }
        Limit::Streams => {
            let streams: Vec<(&str, &[u8])> = vec![("Workbook", b""); count];
            of(Type::Excel, compound(&streams), count, 0)
        }
        Limit::Strings | Limit::StringBytes if is_old => {
            let list = [&[0; 8][..], &b"\x04\0\0four".repeat(count)].concat();
            let book = [record(0x809, &[0, 6, 5, 0]), record(0xfc, &list)].concat();
            let holds = if limit == Limit::Strings { count } else { 4 * count };
            of(Type::Excel, book, holds, 0)
        }
        Limit::Sheets if is_old => {
            let name = |it| record(0x85, &[0, 0, 0, 0, 0, 0, 1, 0, b'a' + it]);
            let names = (0..u8::try_from(count).unwrap()).flat_map(name);
            of(
                Type::Excel,
                record(0x809, &[0, 6, 5, 0]).into_iter().chain(names).collect(),
                count,
                0,
            )
        }
        Limit::Property if count % 4 == 2 => {
            let title = format!("<title-info><book-title>{words}</book-title></title-info>");
            let book = format!("<FictionBook><description>{title}</description></FictionBook>");
            of(Type::Ebook, book.into_bytes(), words.len(), BODY_SLACK)
        }
        _ => packaged(limit, count),
    }
}

/// Returns an item of Outlook with as many storages of this kind.
fn item(kind: &str, count: usize) -> Vec<u8> {
    let name = |it| format!("__{kind}_version1.0_#{it:08}/__properties_version1.0");
    let names: Vec<String> = (0..count).map(name).collect();
    let mut streams = vec![("__properties_version1.0", short(32, &[]))];
    streams.extend(names.iter().map(|it| (it.as_str(), short(8, &[]))));
    file(&streams)
}

fn packaged(limit: Limit, count: usize) -> Option<Sample> {
    let repeated = |make: &dyn Fn(usize) -> String| (0..count).map(make).collect::<String>();
    let related = |kind: &str| {
        let one =
            |it| format!("<Relationship Id=\"r{it}\" Type=\"x/{kind}\" Target=\"{it}.xml\"/>");
        format!("<Relationships>{}</Relationships>", repeated(&one))
    };
    let book = ("xl/workbook.xml", "<workbook/>".to_owned());
    let (r#type, parts, holds) = match limit {
        Limit::Relationships => {
            (Type::Word, vec![document(), ("word/_rels/document.xml.rels", related("x"))], count)
        }
        Limit::Part => {
            let text = format!("<w:p><w:t>{}</w:t></w:p>", "words ".repeat(count));
            let holds = text.len();
            (Type::Word, vec![("word/document.xml", text)], holds)
        }
        Limit::Slides => {
            let list = repeated(&|it| format!("<p:sldId r:id=\"r{it}\"/>"));
            let parts = vec![
                ("ppt/presentation.xml", format!("<a>{list}</a>")),
                ("ppt/_rels/presentation.xml.rels", related("slide")),
            ];
            (Type::PowerPoint, parts, count)
        }
        Limit::Sheets => {
            let list = repeated(&|it| format!("<sheet name=\"{it}\" r:id=\"r{it}\"/>"));
            let parts = vec![
                ("xl/workbook.xml", format!("<a>{list}</a>")),
                ("xl/_rels/workbook.xml.rels", related("worksheet")),
            ];
            (Type::Excel, parts, count)
        }
        Limit::Strings | Limit::StringBytes => {
            let list = repeated(&|_| "<si><t>four</t></si>".to_owned());
            let holds = if limit == Limit::Strings { count } else { 4 * count };
            (Type::Excel, vec![book, ("xl/sharedStrings.xml", format!("<a>{list}</a>"))], holds)
        }
        Limit::SheetParts => {
            let sheet = ("xl/worksheets/sheet1.xml", "<a/>".to_owned());
            let beside = ("xl/worksheets/_rels/sheet1.xml.rels", related("comments"));
            (Type::Excel, vec![book, sheet, beside], count)
        }
        Limit::BookParts => {
            let items = repeated(&|it| format!("<item id=\"{it}\" href=\"{it}\"/>"));
            let order = repeated(&|it| format!("<itemref idref=\"{it}\"/>"));
            (Type::Epub, vec![("b.opf", format!("<a>{items}{order}</a>"))], count)
        }
        _ => return words(limit, count),
    };
    Some(Sample { r#type, name: "n", bytes: zip_of(&parts), holds, slack: 0 })
}

fn document() -> (&'static str, String) {
    ("word/document.xml", "<w:p/>".to_owned())
}

fn zip_of(parts: &[(&str, String)]) -> Vec<u8> {
    let parts: Vec<(&str, &str)> = parts.iter().map(|(path, it)| (*path, it.as_str())).collect();
    zipped(&parts)
}

/// Makes a sample for the limits of properties and paragraphs.
fn words(limit: Limit, count: usize) -> Option<Sample> {
    let is_first = count % 4 == 1;
    let words = "words ".repeat(count);
    let (values, holds, slack) = match limit {
        // The others are pictures, fonts and JSON.
        Limit::Properties | Limit::Property if count.is_multiple_of(2) => return None,
        Limit::Properties => ("<dc:subject>words</dc:subject>".repeat(count), count, 0),
        Limit::Property => (format!("<dc:title>{words}</dc:title>"), words.len(), BODY_SLACK),
        Limit::Paragraph => (String::new(), words.len(), BODY_SLACK),
        _ => return None,
    };
    let values = format!("<a><metadata>{values}</metadata></a>");
    let (r#type, parts) = match limit {
        Limit::Paragraph if is_first => {
            (Type::Word, vec![("word/document.xml", format!("<w:t>{words}</w:t>"))])
        }
        Limit::Paragraph => {
            let sheet = format!("<row><c t=\"str\"><v>{words}</v></c></row>");
            let book = ("xl/workbook.xml", "<workbook/>".to_owned());
            (Type::Excel, vec![book, ("xl/worksheets/sheet1.xml", sheet)])
        }
        _ if is_first => (Type::Epub, vec![("b.opf", values)]),
        _ => (Type::Word, vec![document(), ("docProps/core.xml", values)]),
    };
    Some(Sample { r#type, name: "n", bytes: zip_of(&parts), holds, slack })
}
