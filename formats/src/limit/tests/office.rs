//! Samples for the limits of office documents.

use super::Sample;
use crate::Type;
use crate::limit::Limit;
use crate::office::outlook::tests::{file, message, short};
use crate::office::tests::{compound, hangul, zipped};

/// What a collected text may lack up to its bound without being cut, in bytes.
const BODY_SLACK: usize = 4;

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let of = |r#type, bytes: Vec<u8>, holds, slack| {
        Some(Sample { r#type, name: "n", bytes, holds, slack })
    };
    let rtf = |text: &str| format!("{{\\rtf1{text}}}").into_bytes();
    let words = "words ".repeat(count);
    match limit {
        Limit::Paragraph => of(Type::Rtf, rtf(&format!(" {words}")), words.len(), BODY_SLACK),
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
    let document = ("word/document.xml", "<w:p/>".to_owned());
    let book = ("xl/workbook.xml", "<workbook/>".to_owned());
    let (r#type, parts, holds, slack) = match limit {
        Limit::Properties | Limit::Property => {
            let words = repeated(&|it| format!("word{it} "));
            let each = repeated(&|it| format!("<dc:subject>{it}</dc:subject>"));
            let (core, holds, slack) = match limit {
                Limit::Properties => (each, count, 0),
                _ => (format!("<dc:title>{words}</dc:title>"), words.len(), BODY_SLACK),
            };
            (
                Type::Word,
                vec![document, ("docProps/core.xml", format!("<a>{core}</a>"))],
                holds,
                slack,
            )
        }
        Limit::Relationships => {
            (Type::Word, vec![document, ("word/_rels/document.xml.rels", related("x"))], count, 0)
        }
        Limit::Part => {
            let text = format!("<w:p><w:t>{}</w:t></w:p>", "words ".repeat(count));
            let holds = text.len();
            (Type::Word, vec![("word/document.xml", text)], holds, 0)
        }
        Limit::Slides => {
            let list = repeated(&|it| format!("<p:sldId r:id=\"r{it}\"/>"));
            let parts = vec![
                ("ppt/presentation.xml", format!("<a>{list}</a>")),
                ("ppt/_rels/presentation.xml.rels", related("slide")),
            ];
            (Type::PowerPoint, parts, count, 0)
        }
        Limit::Sheets => {
            let list = repeated(&|it| format!("<sheet name=\"{it}\" r:id=\"r{it}\"/>"));
            let parts = vec![
                ("xl/workbook.xml", format!("<a>{list}</a>")),
                ("xl/_rels/workbook.xml.rels", related("worksheet")),
            ];
            (Type::Excel, parts, count, 0)
        }
        Limit::Strings | Limit::StringBytes => {
            let list = repeated(&|_| "<si><t>four</t></si>".to_owned());
            let holds = if limit == Limit::Strings { count } else { 4 * count };
            (Type::Excel, vec![book, ("xl/sharedStrings.xml", format!("<a>{list}</a>"))], holds, 0)
        }
        Limit::SheetParts => {
            let sheet = ("xl/worksheets/sheet1.xml", "<a/>".to_owned());
            let beside = ("xl/worksheets/_rels/sheet1.xml.rels", related("comments"));
            (Type::Excel, vec![book, sheet, beside], count, 0)
        }
        Limit::BookParts => {
            let items = repeated(&|it| format!("<item id=\"{it}\" href=\"{it}\"/>"));
            let order = repeated(&|it| format!("<itemref idref=\"{it}\"/>"));
            (Type::Epub, vec![("b.opf", format!("<a>{items}{order}</a>"))], count, 0)
        }
        _ => return None,
    };
    let parts: Vec<(&str, &str)> = parts.iter().map(|(path, it)| (*path, it.as_str())).collect();
    Some(Sample { r#type, name: "n", bytes: zipped(&parts), holds, slack })
}
