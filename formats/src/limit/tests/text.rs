//! Samples for documents of markup and print, for lists, mail and programs.

use super::Sample;
use crate::Type;
use crate::limit::Limit;
use crate::pdf::tests::{document, paged, stream};
use crate::print::dvi::tests::document as printed;

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    markup(limit, count).or_else(|| other(limit, count)).or_else(|| pages(limit, count))
}

/// Returns a sample of which `holds` is the length, if it is `None`.
fn of(r#type: Type, name: &'static str, text: impl Into<Vec<u8>>, holds: Option<usize>) -> Sample {
    let bytes = text.into();
    Sample { r#type, name, holds: holds.unwrap_or(bytes.len()), bytes, slack: 0 }
}

fn repeated(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

fn markup(limit: Limit, count: usize) -> Option<Sample> {
    let json_ld = |data: &str| format!("<script type='application/ld+json'>{data}</script>");
    Some(match limit {
        Limit::Document => {
            let text = format!("{{\"name\": \"{}\"}}", "word ".repeat(count));
            of(Type::Json, "a.json", text, None)
        }
        Limit::Properties if count % 4 == 2 => {
            let words = vec!["\"word\""; count].join(",");
            of(Type::Json, "a.json", format!("{{\"tags\": [{words}]}}"), Some(count))
        }
        Limit::LinkedData => {
            let data = "{\"@type\": \"Thing\"}";
            let page = repeated(count, |_| json_ld(data));
            of(Type::Html, "a.html", page, Some(count * data.len()))
        }
        Limit::LinkedDataPiece => {
            let data = format!("{{\"name\": \"{}\"}}", "word ".repeat(count));
            of(Type::Html, "a.html", json_ld(&data), Some(data.len()))
        }
        Limit::LinkedThings => {
            let things = repeated(count, |n| format!("{{\"name\": {n}}},"));
            let data = format!("[{}]", things.trim_end_matches(','));
            of(Type::Html, "a.html", json_ld(&data), Some(count))
        }
        Limit::Results => {
            let lines = vec!["\"a result\\n\""; count].join(",");
            let text = format!("{{\"cells\": [{{\"outputs\": [{{\"text\": [{lines}]}}]}}]}}");
            of(Type::Notebook, "a.ipynb", text, Some("a result\n".len() * count))
        }
        Limit::Thing => {
            let text = format!("{{\"@type\": \"Book\", \"name\": \"{}\"}}", "word ".repeat(count));
            of(Type::JsonLd, "a.jsonld", text, None)
        }
        Limit::List => {
            let text = repeated(count, |n| format!("@book{{b{n}, title = {{Title {n}}}}}\n"));
            of(Type::BibTeX, "a.bib", text, None)
        }
        Limit::Entry => {
            let words = "word ".repeat(count);
            let text =
                format!("TY  - JOUR\nZZ  - a tag without a meaning\nTI  - {words}\nER  - \n");
            of(Type::Ris, "a.ris", text, None)
        }
        Limit::EntryValues => {
            // The type is a value, too.
            let words = repeated(count, |n| format!("KW  - word {n}\n"));
            of(Type::Ris, "a.ris", format!("TY  - JOUR\n{words}ER  - \n"), Some(count + 1))
        }
        Limit::MarcFields => {
            let data = repeated(count, |n| format!("650 0\x1fasubject {n}\x1e").split_off(3));
            let entries = repeated(count, |_| "650999999999".to_owned());
            let text = format!("00000nam a2200000 a 4500{entries}\x1e{data}\x1d");
            of(Type::Marc, "a.mrc", text, Some(count))
        }
        _ => return None,
    })
}

fn other(limit: Limit, count: usize) -> Option<Sample> {
    let message = "From: Ann <a@h.example>\nSubject: Reaping\n\n";
    let sentence = "cannot open the file for reading";
    let program = repeated(count, |_| format!("{sentence}\0"));
    Some(match limit {
        Limit::Message => {
            of(Type::Mail, "a.eml", format!("{message}{}", "word ".repeat(count)), None)
        }
        Limit::NestedMessages => {
            let text = format!("{message}{}", "message/rfc822\n".repeat(count));
            of(Type::Mail, "a.eml", text, Some(count))
        }
        Limit::Messages => {
            let text = format!("From a@h.example\n{message}Text.\n\n").repeat(count);
            of(Type::Mailbox, "a.mbox", text, Some(count))
        }
        Limit::Revisions => {
            let text = format!("head 1.1;\n1.1\nlog @@\ntext @{}@\n", "word ".repeat(count));
            of(Type::Rcs, "a.txt,v", text, None)
        }
        Limit::Abbreviations => {
            let text = repeated(count, |n| format!(".ds S{n} text {n}\n"));
            of(Type::ManPage, "a.1", format!(".TH A 1\n{text}"), Some(count))
        }
        Limit::Symbols => {
            let names: Vec<String> = (10..10 + count).map(|n| format!("name{n}")).collect();
            let exports = names.iter().flat_map(|it| [&[6], it.as_bytes(), &[0, 0]].concat());
            let section: Vec<u8> = [u8::try_from(count).ok()?].into_iter().chain(exports).collect();
            let length = u8::try_from(section.len()).ok()?;
            let bytes = [b"\0asm\x01\0\0\0", [7, length].as_slice(), &section].concat();
            of(Type::Object, "a.wasm", bytes, Some(names.join("\n").len()))
        }
        Limit::ProgramText => of(Type::Command, "a", program, Some(count * (sentence.len() + 1))),
        Limit::ProgramScan => of(Type::Command, "a", program, None),
        Limit::Marks => {
            of(Type::Command, "a", repeated(count, |n| format!("@(#)mark {n}\0")), Some(count))
        }
        _ => return None,
    })
}

fn pages(limit: Limit, count: usize) -> Option<Sample> {
    let line = |n: usize| format!("BT /F1 9 Tf (Page {n}) Tj ET").into_bytes();
    let lines: Vec<Vec<u8>> = (0..count).map(line).collect();
    Some(match limit {
        Limit::Pages => {
            let pages: Vec<Vec<u8>> = lines.iter().map(|it| stream("", it)).collect();
            of(Type::Pdf, "a.pdf", paged(&pages), Some(count))
        }
        Limit::PdfContents => {
            let pages: Vec<Vec<u8>> = lines.iter().map(|it| stream("", it)).collect();
            of(Type::Pdf, "a.pdf", paged(&pages), Some(lines.concat().len()))
        }
        Limit::Operations => {
            let page = stream("", "0 0 1 1 re f ".repeat(count).as_bytes());
            of(Type::Pdf, "a.pdf", paged(&[page]), Some(count))
        }
        Limit::Packet => {
            let packet = format!("<title>{}</title>", "word ".repeat(count));
            let objects = [
                b"<</Type/Catalog/Pages 2 0 R/Metadata 3 0 R>>".to_vec(),
                b"<</Type/Pages/Count 0/Kids[]>>".to_vec(),
                stream("/Type/Metadata", packet.as_bytes()),
            ];
            of(Type::Pdf, "a.pdf", document(&objects, ""), Some(packet.len()))
        }
        Limit::Commands => {
            // Besides: the preamble, and the begin and end of the page.
            of(Type::Dvi, "a.dvi", printed(&[vec![b'a'; count]]), Some(count + 3))
        }
        Limit::Fonts => {
            let font = |n| [&[243, n], [0; 12].as_slice(), &[0, 5], b"cmr10"].concat();
            let fonts: Vec<u8> = (0..u8::try_from(count).ok()?).flat_map(font).collect();
            of(Type::Dvi, "a.dvi", printed(&[fonts]), Some(count))
        }
        _ => return None,
    })
}
