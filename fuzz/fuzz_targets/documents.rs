//! Fuzzing of parts, put into whole documents: the content of a PDF page, a part of an office
//! document or book, a stream of a compound file or an item of Outlook, the directory of a container.

#![no_main]

mod bounds;
#[path = "../../essence/tests/made/mod.rs"]
mod made;

use essence::extract::{EssenceSettings, extract};
use formats::object::Object;
use libfuzzer_sys::fuzz_target;

const PARTS: &[(&str, &str)] = &[
    ("a.docx", "word/document.xml"),
    ("a.docx", "word/styles.xml"),
    ("a.docx", "docProps/core.xml"),
    ("a.xlsx", "xl/workbook.xml"),
    ("a.xlsx", "xl/sharedStrings.xml"),
    ("a.xlsx", "xl/worksheets/sheet1.xml"),
    ("a.pptx", "ppt/presentation.xml"),
    ("a.pptx", "ppt/slides/slide1.xml"),
    ("a.odt", "content.xml"),
    ("a.odt", "meta.xml"),
    ("a.epub", "META-INF/container.xml"),
    ("a.epub", "b.opf"),
    ("a.epub", "c.xhtml"),
    ("a.jar", "META-INF/MANIFEST.MF"),
    ("a.whl", "a-1.dist-info/METADATA"),
];
const STREAMS: &[&str] =
    &["WordDocument", "1Table", "Workbook", "PowerPoint Document", "\u{5}SummaryInformation"];
/// Streams of an item of Outlook.
const ITEM: &[&str] = &[
    "__properties_version1.0",
    "__substg1.0_007D001E",
    "__substg1.0_10090102",
    "__substg1.0_10130102",
    "__nameid_version1.0/__substg1.0_00030102",
    "__attach_version1.0_#00000000/__substg1.0_37010102",
    "__attach_version1.0_#00000000/__substg1.0_3701000D/__properties_version1.0",
];

fuzz_target!(|bytes: &[u8]| {
    bounds::print_panics();
    let Some((which, content)) = bytes.split_first() else { return };
    let Some((name, bytes)) = document(usize::from(*which), content) else { return };
    let url = format!("http://h.example/d/{name}");
    let summaries = extract(Object::whole(&url, bytes), &EssenceSettings::default(), &|| false);
    assert!(!summaries.is_empty());
    summaries.iter().for_each(|it| bounds::check(&url, it));
});

fn document(which: usize, content: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    if let Some((name, part)) = PARTS.get(which) {
        return Some((name, package(part, content)));
    }
    let which = which - PARTS.len();
    if let Some(stream) = STREAMS.get(which) {
        let content = content.get(..4096).unwrap_or(content);
        let (main, table) = made::office::word(b"words\r");
        let main = if *stream == "WordDocument" { content } else { &main };
        let table = if *stream == "1Table" { content } else { &table };
        let mut streams = vec![("WordDocument", main), ("1Table", table)];
        if which > 1 {
            streams.insert(0, (stream, content));
        }
        return Some(("a.doc", made::office::compound(&streams)));
    }
    let page =
        |content: &[u8]| made::pdf_page(made::pdf_stream("", content), made::HELVETICA, Vec::new());
    Some(match which - STREAMS.len() {
        0..40 => ("a.pdf", page(content)),
        40..50 => {
            ("a.pdf", made::pdf(&[b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), content.to_vec()], ""))
        }
        50..60 => {
            let map = made::pdf_stream("", content);
            let fonts = "/Font<</F1<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 5 0 R>>>>";
            (
                "a.pdf",
                made::pdf_page(
                    made::pdf_stream("", b"BT /F1 9 Tf <00410042> Tj ET"),
                    fonts,
                    vec![map],
                ),
            )
        }
        60..70 => ("a.deb", made::deb(&String::from_utf8_lossy(content), &[("a", b"one")])),
        70..80 => ("a.rpm", made::rpm(&[(1000, &String::from_utf8_lossy(content))], content)),
        80..90 => {
            let start = [
                &[0; 8][..],
                &(content.len() as u64).to_le_bytes(),
                &made::crc(content).to_le_bytes(),
            ];
            let start = start.concat();
            (
                "a.7z",
                [
                    b"7z\xbc\xaf\x27\x1c\0\x04",
                    &made::crc(&start).to_le_bytes()[..],
                    &start,
                    content,
                ]
                .concat(),
            )
        }
        90..100 => {
            let front = b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0\0\0\x03\xe8\0\x8b";
            ("a.dvi", [&front[..], &[0; 44], content].concat())
        }
        100..110 => ("a.tgz", made::gzip(content)),
        110..120 => ("a.hqx", made::binhex("x", content.len() as u32, content)),
        120..125 => ("a.tnef", [b"\x78\x9f\x3e\x22\x01\0", content].concat()),
        125..130 => ("a.xls", [&[0x09, 0x04, 6, 0, 0, 4, 0x10, 0, 0, 0][..], content].concat()),
        which @ 130..170 => of_other_program(which, content),
        which @ 170.. => {
            let content = content.get(..4096).unwrap_or(content);
            ("a.msg", made::office::outlook(&[(ITEM.get(which - 170)?, content)]))
        }
    })
}

/// Returns the data of another program that hold `content`.
fn of_other_program(which: usize, content: &[u8]) -> (&'static str, Vec<u8>) {
    match which {
        130..140 => ("a.warc", made::data::warc("response", "http://h.example/", content)),
        140..150 => {
            let [huff, cdic] = made::data::mobi_phrases(&[
                (b"ab", true),
                (content.get(..999).unwrap_or(content), false),
            ]);
            let head = made::data::mobi_head(17480, 1, &[(503, "x")]);
            ("a.mobi", made::data::palm(b"BOOKMOBI", &[head, content.to_vec(), huff, cdic]))
        }
        150..155 => (
            "a.mobi",
            made::data::palm(b"BOOKMOBI", &[made::data::mobi_head(2, 1, &[]), content.to_vec()]),
        ),
        155..160 => {
            let parts = ["workbook", "styles", "sharedStrings", "worksheets/sheet1"];
            let names = parts.map(|it| format!("xl/{it}.bin"));
            ("a.xlsb", made::zip(&names.each_ref().map(|it| (it.as_str(), content))))
        }
        160..165 => (
            "a.vsdx",
            made::zip(&[("visio/document.xml", b""), ("visio/pages/page1.xml", content)]),
        ),
        _ => ("a.xps", made::zip(&[("FixedDocSeq.fdseq", b""), ("1.fpage", content)])),
    }
}

/// Returns a package with this part, and the parts that lead to it.
fn package(part: &str, content: &[u8]) -> Vec<u8> {
    let others: [(&str, &[u8]); 9] = [
        ("word/document.xml", b"<w:p><w:t>x</w:t></w:p>"),
        ("xl/workbook.xml", b"<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>"),
        ("xl/worksheets/sheet1.xml", b"<row><c t=\"s\"><v>0</v></c></row>"),
        ("ppt/presentation.xml", b"<p:presentation><p:sldIdLst><p:sldId r:id=\"r1\"/></p:sldIdLst></p:presentation>"),
        ("ppt/_rels/presentation.xml.rels", b"<Relationships><Relationship Id=\"r1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/></Relationships>"),
        ("content.xml", b"<office:text/>"),
        ("META-INF/container.xml", b"<container><rootfiles><rootfile full-path=\"b.opf\"/></rootfiles></container>"),
        ("b.opf", b"<package><manifest><item id=\"c\" href=\"c.xhtml\"/></manifest><spine><itemref idref=\"c\"/></spine></package>"),
        ("c.xhtml", b"<p>words</p>"),
    ];
    let folder = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let is_epub = part.starts_with("META-INF/c") || matches!(part, "b.opf" | "c.xhtml");
    let belongs = |name: &str| {
        let epub = matches!(name, "META-INF/container.xml" | "b.opf" | "c.xhtml");
        if is_epub { epub } else { folder(name) == folder(part) && !epub }
    };
    let mut parts = vec![(part, content)];
    parts.extend(others.into_iter().filter(|(name, _)| *name != part && belongs(name)));
    made::zip(&parts)
}
