//! Hostile PDF, PostScript, DVI, office documents and books.

use crate::made::data::{dbf, fits, lotus, mobi_head, mobi_phrases, palm, warc};
use crate::made::office::{cell_record, compound, outlook, slide_record, tnef_attribute, word};
use crate::made::{HELVETICA, Packed, deflate, deflated_zeros, pdf, pdf_page, pdf_stream};
use crate::made::{zip, zip_of, zlib, zlib_zeros};
use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("gigabyte.pdf", "limit", || {
        pdf_page(pdf_stream("/Filter/FlateDecode", &zlib_zeros(1024)), HELVETICA, vec![])
    }),
    case("twice.pdf", "limit", || {
        pdf_page(
            pdf_stream("/Filter[/FlateDecode/FlateDecode]", &zlib(&zlib_zeros(1024))),
            HELVETICA,
            vec![],
        )
    }),
    case("many.pdf", "limit", || {
        let streams = vec![pdf_stream("/Filter/FlateDecode", &zlib_zeros(30)); 40];
        pdf_page(pdf_stream("", b"BT (x) Tj ET"), HELVETICA, streams)
    }),
    // Longer than what is read of a file at first, and with its table of objects at its end.
    case("long.pdf", "", || {
        let words = pdf_stream("", b"BT /F1 9 Tf (some words) Tj ET");
        pdf_page(words, HELVETICA, vec![pdf_stream("", &vec![0x90; 94 * MIB])])
    }),
    case("runs.pdf", "limit", || {
        pdf_page(
            pdf_stream("/Filter/RunLengthDecode", &b"\x81 ".repeat(8 * MIB)),
            HELVETICA,
            vec![],
        )
    }),
    case("lzw.pdf", "", || {
        pdf_page(pdf_stream("/Filter/LZWDecode", &vec![0x80; 200_000]), HELVETICA, vec![])
    }),
    case("predictor.pdf", "", || {
        let parameters = "/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647/Colors 32/BitsPerComponent 32>>";
        pdf_page(pdf_stream(parameters, &zlib(b"BT (x) Tj ET")), HELVETICA, vec![])
    }),
    case("pages.pdf", "", || {
        pdf(
            &[
                b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
                b"<</Type/Pages/Count 2147483647/Kids[2 0 R 2 0 R 3 0 R]>>".to_vec(),
                b"<</Type/Pages/Kids[2 0 R 3 0 R]/Parent 3 0 R>>".to_vec(),
            ],
            "",
        )
    }),
    case("same-page.pdf", "", || {
        let kids = "3 0 R ".repeat(300_000);
        pdf(&[
            b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
            format!("<</Type/Pages/Count 300000/Kids[{kids}]>>").into_bytes(),
            format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<<{HELVETICA}>>>>").into_bytes(),
            pdf_stream("", &b"BT /F1 9 Tf (many words ) Tj ET ".repeat(10_000)),
        ], "")
    }),
    case("contents.pdf", "", || {
        let parts = "4 0 R ".repeat(400_000);
        pdf(&[
            b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
            format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents[{parts}]/Resources<<{HELVETICA}>>>>").into_bytes(),
            pdf_stream("", &b"BT /F1 9 Tf (many words ) Tj ET ".repeat(100)),
        ], "")
    }),
    case("xref.pdf", "", || {
        let mut bytes = pdf_page(pdf_stream("", b"BT (x) Tj ET"), HELVETICA, vec![]);
        let at = bytes.len();
        bytes.extend(format!("xref\n0 1\n0000000000 65535 f \ntrailer\n<</Root 1 0 R/Prev {at}/XRefStm {at}>>\nstartxref\n{at}\n%%EOF\n").bytes());
        bytes
    }),
    case("sections.pdf", "", || {
        let mut bytes = pdf_page(pdf_stream("", b"BT (x) Tj ET"), HELVETICA, vec![]);
        bytes.extend(b"xref\n0 4294967295\n0000000000 65535 f \ntrailer\n<</Size 4294967295/Root 1 0 R>>\nstartxref\n9\n%%EOF\n");
        bytes
    }),
    case("object-streams.pdf", "", || {
        let inner = "/Type/ObjStm/N 100000000/First 10/Extends 1 0 R";
        let table = "/Type/XRef/Size 2147483647/W[8 8 8]/Index[0 2147483647]/Root 1 0 R/Prev 9";
        [
            b"%PDF-1.5\n1 0 obj\n".to_vec(),
            pdf_stream(inner, b"1 0 2 0 3 0 "),
            b"\nendobj\n2 0 obj\n".to_vec(),
            pdf_stream(table, &[1; 4096]),
            b"\nendobj\nstartxref\n80\n%%EOF".to_vec(),
        ]
        .concat()
    }),
    case("length.pdf", "", || {
        pdf(
            &[
                b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
                b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
                b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/MediaBox 5 0 R>>".to_vec(),
                b"<</Length 4 0 R>>\nstream\nBT (x) Tj ET\nendstream".to_vec(),
                b"5 0 R".to_vec(),
            ],
            "/Info 5 0 R",
        )
    }),
    case("forms.pdf", "limit|time|broken", forms),
    case("itself.pdf", "", || {
        let form = "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>";
        pdf_page(
            pdf_stream("", b"/X Do"),
            "/XObject<</X 5 0 R>>",
            vec![pdf_stream(form, &b"/X Do ".repeat(100))],
        )
    }),
    case("operators.pdf", "", || {
        pdf_page(
            pdf_stream("", &b"q 1 0 0 1 0 0 cm 0 0 m 9 9 l S Q ".repeat(MIB / 2)),
            HELVETICA,
            vec![],
        )
    }),
    case("saves.pdf", "", || pdf_page(pdf_stream("", &b"q ".repeat(8 * MIB)), HELVETICA, vec![])),
    case("paths.pdf", "", || {
        pdf_page(
            pdf_stream("", &[&b"0 0 m "[..], &b"1 1 2 2 3 3 c ".repeat(MIB), b"W n f"].concat()),
            HELVETICA,
            vec![],
        )
    }),
    case("operands.pdf", "", || {
        pdf_page(pdf_stream("", &b"[[<< 1 ".repeat(2 * MIB)), HELVETICA, vec![])
    }),
    case("numbers.pdf", "", || {
        pdf_page(pdf_stream("", &b"BT /F1 1e38 Tf 99999999999999999999 0 0 -1e-38 0 nan Tm (x) Tj 1 0 0 0 0 0 cm ET ".repeat(50_000)), HELVETICA, vec![])
    }),
    case("inline.pdf", "", || {
        pdf_page(
            pdf_stream("", &b"BI /W 2147483647 /H 2147483647 /BPC 32 ID x EI ".repeat(200_000)),
            HELVETICA,
            vec![],
        )
    }),
    case("deep.pdf", "", || {
        let deep = |open: &str, close: &str| open.repeat(2 * MIB) + &close.repeat(2 * MIB);
        pdf_page(
            pdf_stream("", b"BT (x) Tj ET"),
            HELVETICA,
            vec![
                deep("[", "]").into_bytes(),
                deep("<</A", ">>").into_bytes(),
                deep("(", ")").into_bytes(),
            ],
        )
    }),
    case("characters.pdf", "", || {
        let map = format!(
            "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange {} endcmap",
            "1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange ".repeat(2000)
        );
        let fonts = "/Font<</F1<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 5 0 R/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/X/W[0 4294967295 500]/DW 2147483647>>]>>>>";
        pdf_page(
            pdf_stream("", b"BT /F1 9 Tf <0041004200430044> Tj ET"),
            fonts,
            vec![pdf_stream("", map.as_bytes())],
        )
    }),
    case("font.pdf", "", || {
        let fonts = "/Font<</F1<</Type/Font/Subtype/TrueType/BaseFont/X/FontDescriptor<</Type/FontDescriptor/FontName/X/Flags 4/FontFile2 5 0 R>>>>>>";
        pdf_page(
            pdf_stream("", b"BT /F1 9 Tf (words) Tj ET"),
            fonts,
            vec![pdf_stream("", &super::binaries::composites())],
        )
    }),
    case("type3.pdf", "", || {
        let fonts = "/Font<</F1 5 0 R>>";
        let font = b"<</Type/Font/Subtype/Type3/FontBBox[0 0 1 1]/FontMatrix[1 0 0 1 0 0]/FirstChar 0/LastChar 255/Encoding<</Differences[0/a/b]>>/CharProcs<</a 6 0 R/b 6 0 R>>/Resources<</Font<</F1 5 0 R>>>>>>";
        pdf_page(
            pdf_stream("", b"BT /F1 9 Tf (\\000\\001) Tj ET"),
            fonts,
            vec![
                font.to_vec(),
                pdf_stream("", &b"BT /F1 9 Tf (\\000\\001\\000\\001) Tj ET ".repeat(20)),
            ],
        )
    }),
    case("functions.pdf", "", || {
        let resources = "/Shading<</S<</ShadingType 1/ColorSpace/DeviceRGB/Function 5 0 R>>>>/Pattern<</P<</PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep .00001/YStep .00001/Resources<<>>>>>>";
        pdf_page(
            pdf_stream("", b"/S sh /Pattern cs /P scn 0 0 600 800 re f"),
            resources,
            vec![pdf_stream(
                "/FunctionType 4/Domain[0 1 0 1]/Range[0 1 0 1 0 1]",
                &b"{".repeat(100_000),
            )],
        )
    }),
    case("outline.pdf", "", || {
        pdf(&[b"<</Type/Catalog/Pages 2 0 R/Outlines 3 0 R/Names<</Dests 4 0 R>>/AcroForm<</Fields[4 0 R]>>>>".to_vec(), b"<</Type/Pages/Count 0/Kids[]>>".to_vec(), b"<</First 3 0 R/Last 3 0 R/Next 3 0 R/Title(x)/Count 2147483647>>".to_vec(), b"<</Kids[4 0 R 4 0 R]/Parent 4 0 R/T(x)>>".to_vec()], "")
    }),
    case("locked.pdf", "locked|broken", || {
        pdf(
            &[
                b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
                b"<</Type/Pages/Count 0/Kids[]>>".to_vec(),
            ],
            "/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -1/O(01234567890123456789012345678901)/U(01234567890123456789012345678901)>>/ID[(0123456789012345)(0123456789012345)]",
        )
    }),
    case("objects.pdf", "", || {
        (0..500_000)
            .map(|it| format!("{it} 0 obj\n<<>>\nendobj\n"))
            .fold(String::from("%PDF-1.4\n"), |all, it| all + &it)
            .into_bytes()
    }),
    case("streams.pdf", "", || {
        [&b"%PDF-1.4\n"[..], &b"1 0 obj<</Filter/FlateDecode>>stream\nx\x9c".repeat(400_000)]
            .concat()
    }),
    case("loop.ps", "", || {
        b"%!\n{ (many words) show } loop\n/a { a a } def a 0 1 1e38 { pop } for 999999999 array\n"
            .repeat(100_000)
    }),
    case("parentheses.ps", "", || [&b"%!\n"[..], &vec![b'('; 30 * MIB]].concat()),
    case("procedures.ps", "", || [&b"%!\n"[..], &b"{[<<".repeat(5 * MIB)].concat()),
    case("digits.ps", "", || [&b"%!\n<"[..], &b"f ".repeat(10 * MIB)].concat()),
    case("data.ps", "", || {
        b"%!PS-Adobe-3.0\n%%BeginData: 18446744073709551615 Binary Bytes\n%%BeginBinary: -1\n(a) show".to_vec()
    }),
    case("dvips.ps", "", || {
        [&b"%!PS-Adobe-2.0\n%%Creator: dvips\n%%Pages: 999999999\n%%EndProlog\n%%Page: 1 1\n"[..], &b"0 0 bop Fa(word)-30 500 y Fb eop\n".repeat(500_000)].concat()
    }),
    case("preview.eps", "", || [&b"\xc5\xd0\xd3\xc6"[..], &[0xff; 26], b"%!PS\n(x) show"].concat()),
    case("pushes.dvi", "broken", || dvi(&vec![141; 20 * MIB])),
    case("fonts.dvi", "broken", || {
        dvi(&[&[243][..], &[255; 13], &[255, 255], &[b'x'; 100]].concat().repeat(100_000))
    }),
    case("special.dvi", "broken", || dvi(&[242, 0xff, 0xff, 0xff, 0xff, b'x'])),
    case("moves.dvi", "broken", || {
        dvi(&[160, 0x7f, 0xff, 0xff, 0xff, 146, 0x7f, 0xff, 0xff, 0xff, b'a', 140, 139].repeat(MIB))
    }),
    case("laughs.docx", "", || {
        let entity =
            |it: usize| format!("<!ENTITY l{} \"{}\">", it + 1, format!("&l{it};").repeat(10));
        let entities: String = (0..10).map(entity).collect();
        let document = format!(
            "<!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}]><w:document><w:body><w:p><w:r><w:t>&l10;</w:t></w:r></w:p></w:body></w:document>"
        );
        zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", document.as_bytes())])
    }),
    case("gigabyte.docx", "limit|broken", || swollen("word/document.xml")),
    case("gigabyte.xlsx", "limit|broken", || swollen("xl/sharedStrings.xml")),
    case("gigabyte.odt", "limit|broken", || swollen("content.xml")),
    case("gigabyte.epub", "limit|broken", || swollen("META-INF/container.xml")),
    case("deep.docx", "", || zip(&[("word/document.xml", &b"<w:tbl><w:tc>".repeat(MIB))])),
    case("text.docx", "", || {
        packed(
            "word/document.xml",
            &b"<w:p><w:r><w:t>words and words</w:t></w:r></w:p>".repeat(MIB),
        )
    }),
    case("strings.xlsx", "", || {
        let shared =
            [&b"<sst count=\"4294967295\">"[..], &b"<si><t>x</t></si>".repeat(MIB)].concat();
        zip(&[
            (
                "xl/workbook.xml",
                b"<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>",
            ),
            ("xl/sharedStrings.xml", &shared),
            (
                "xl/worksheets/sheet1.xml",
                &b"<row r=\"4294967295\"><c r=\"XFD1048576\" t=\"s\"><v>99999999999</v></c></row>"
                    .repeat(100_000),
            ),
        ])
    }),
    case("slides.pptx", "", || {
        let slides: String =
            (0..200_000).map(|it| format!("<p:sldId id=\"{it}\" r:id=\"r1\"/>")).collect();
        zip(&[("ppt/presentation.xml", format!("<p:presentation><p:sldIdLst>{slides}").as_bytes()), ("ppt/_rels/presentation.xml.rels", b"<Relationships><Relationship Id=\"r1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/></Relationships>"), ("ppt/slides/slide1.xml", b"<p:sld><a:t>words</a:t></p:sld>")])
    }),
    case("repeated.ods", "", || {
        let cell = "<table:table-row table:number-rows-repeated=\"2147483647\"><table:table-cell table:number-columns-repeated=\"2147483647\"><text:p>x<text:s text:c=\"2147483647\"/></text:p></table:table-cell></table:table-row>";
        zip(&[
            ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
            (
                "content.xml",
                format!("<office:spreadsheet><table:table>{}", cell.repeat(50_000)).as_bytes(),
            ),
        ])
    }),
    case("chapters.epub", "", || {
        let spine = format!(
            "<package><manifest><item id=\"a\" href=\"a\"/></manifest><spine>{}</spine></package>",
            "<itemref idref=\"a\"/>".repeat(200_000)
        );
        zip(&[("mimetype", b"application/epub+zip"), ("META-INF/container.xml", b"<container><rootfiles><rootfile full-path=\"../../b.opf\"/></rootfiles></container>"), ("b.opf", spine.as_bytes()), ("a", &b"<p>some words</p>".repeat(20_000))])
    }),
    case("circle.doc", "", || {
        let (main, table) = word(b"words\r");
        let mut bytes = compound(&[("WordDocument", &main), ("1Table", &table)]);
        // The table says that every sector is followed by itself.
        let at = table_at(&bytes);
        for (number, next) in bytes[at..at + 512].chunks_exact_mut(4).enumerate() {
            next.copy_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
        }
        bytes
    }),
    case("tables.doc", "", || {
        let (main, table) = word(b"words\r");
        let mut bytes = compound(&[("WordDocument", &main), ("1Table", &table)]);
        bytes[0x2c..0x30].fill(0x7f);
        bytes[0x44..0x4c].fill(0);
        bytes
    }),
    case("pieces.doc", "", || {
        let (mut main, mut table) = word(b"words\r");
        main[0x1a2..0x1aa].fill(0xff);
        table[1..5].fill(0x7f);
        compound(&[("WordDocument", &main), ("1Table", &table)])
    }),
    case("records.xls", "", || {
        let strings = [&[255; 8][..], &[255, 255, 1], &[b'x'; 100]].concat();
        let book = [
            cell_record(0x809, &[0, 6, 5, 0]),
            cell_record(0xfc, &strings),
            cell_record(0x3c, &[1; 2000]).repeat(20),
        ];
        compound(&[("Workbook", &book.concat())])
    }),
    case("phrases.mobi", "broken", || {
        // Phrases that double, thirty times.
        let codes: Vec<[u8; 64]> = (0..30).map(|it| [254 - it; 64]).collect();
        let mut phrases: Vec<(&[u8], bool)> = codes.iter().map(|it| (&it[..], false)).collect();
        phrases.push((&[b'x'; 4096], true));
        let [huff, cdic] = mobi_phrases(&phrases);
        palm(b"BOOKMOBI", &[mobi_head(17480, 1, &[]), vec![0xff; 65_536], huff, cdic])
    }),
    case("copies.mobi", "limit", || {
        let part = [&b"x"[..], &b"\x80\x0f".repeat(30_000)].concat();
        let parts = vec![part; 100];
        palm(b"BOOKMOBI", &[vec![mobi_head(2, 100, &[])], parts].concat())
    }),
    case("rows.dbf", "broken", || {
        let mut table = dbf(&[("A", 200)], &[&["words"]]);
        table[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        table
    }),
    case("short-rows.dbf", "broken", || {
        let mut table = dbf(&[("A", 1)], &[]);
        table[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        [table, vec![b' '; 16 * MIB]].concat()
    }),
    case("names.warc", "", || {
        let record = |number: usize| warc("resource", &format!("../../{number}"), b"words");
        (0..100).flat_map(record).collect()
    }),
    case("records.warc", "limit", || {
        warc("resource", "http://h.example/", b"words").repeat(200_000)
    }),
    case("chunks.warc", "", || {
        let answer = [
            &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
            &b"1\r\nx\r\n".repeat(2 * MIB),
        ];
        warc("response", "http://h.example/", &answer.concat())
    }),
    case("head.warc", "broken", || b"WARC/1.0\r\n".repeat(3 * MIB)),
    case("labels.wk1", "", || lotus(&vec![(0, 0, "words"); 100_000])),
    case("cards.fits", "limit", || fits(&vec!["COMMENT words"; 200_000])),
    case("list.nc", "broken", || {
        [b"CDF\x05\0\0\0\0\0\0\0\0".to_vec(), vec![0xff; 16 * MIB]].concat()
    }),
    case("deep.ppt", "", || {
        let inner = (0..3_000)
            .fold(slide_record(0, 4008, b"x"), |inner, _| slide_record(0xf, 1000, &inner));
        compound(&[("PowerPoint Document", &inner)])
    }),
    case("circle.msg", "", || {
        let mut bytes = outlook(&[(INNER, b"x"), ("__attach_version1.0_#00000000/a", b"x")]);
        // Every entry leads back to the first storages.
        for entry in entries(&mut bytes) {
            for (at, number) in [(68, 1_u32), (72, 2), (76, 1)] {
                entry[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }),
    case("overlap.msg", "broken", || {
        let inner: Vec<String> = (0..10).map(|it| format!("{INNER}{it}")).collect();
        let streams: Vec<(&str, &[u8])> = inner.iter().map(|it| (&**it, &b"x"[..])).collect();
        let mut bytes = outlook(&streams);
        for entry in entries(&mut bytes).filter(|it| it[66] == 2) {
            entry[116..120].fill(0);
            entry[120..124].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        }
        let at = table_at(&bytes);
        for (number, next) in bytes[at..at + 512].chunks_exact_mut(4).enumerate() {
            // The directory stays as it is: it is behind all streams.
            if u32::from_le_bytes(next.try_into().unwrap()) == 0xffff_fffe && number < 80 {
                next.copy_from_slice(&u32::try_from(number + 1).unwrap().to_le_bytes());
            }
        }
        bytes
    }),
    case("counts.tnef", "broken", || {
        let properties = [&u32::MAX.to_le_bytes()[..], &[0x1f, 0x10, 1, 0x30], &[0xff; 64]];
        tnef(&[
            tnef_attribute(0x0006_9003, 72, &properties.concat()),
            tnef_attribute(0x0006_9004, 72, &properties.concat()),
            tnef_attribute(0x0002_800c, u32::MAX, b"words"),
        ])
    }),
    case("attachments.tnef", "limit", || {
        tnef(&vec![tnef_attribute(0x0006_9002, 0, b""); 1_000_000])
    }),
    case("packed.tnef", "limit", || {
        // Every two bytes give 16, never at the place of writing: 64 MiB.
        let packed = [&[0xff][..], &[0xc0, 0x0e].repeat(8)].concat().repeat(MIB / 2);
        let header = [&[0; 4][..], &[0xff; 4], b"LZFu", &[0; 4]].concat();
        let size = u32::try_from(packed.len() + 16).unwrap().to_le_bytes();
        let front =
            [&[1, 0, 0, 0, 2, 1, 9, 0x10, 1, 0, 0, 0][..], &size, &header, &packed].concat();
        tnef(&[tnef_attribute(0x0006_9003, u32::try_from(front.len()).unwrap(), &front)])
    }),
    case("deep.tnef", "limit", || {
        (0..100).fold(tnef(&[]), |inner, _| {
            let interface = b"\x07\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
            let size = u32::try_from(inner.len() + 16).unwrap().to_le_bytes();
            let front = [1, 0, 0, 0, 0x0d, 0, 1, 0x37, 1, 0, 0, 0];
            let mut data = [&front[..], &size, interface, &inner].concat();
            data.resize(data.len().next_multiple_of(4), 0);
            let begin = tnef_attribute(0x0006_9002, 0, b"");
            tnef(&[begin, tnef_attribute(0x0006_9005, u32::try_from(data.len()).unwrap(), &data)])
        })
    }),
];

/// The path of what is within an item in another one.
const INNER: &str = "__attach_version1.0_#00000000/__substg1.0_3701000D/__properties_version1.0";

/// Returns an item in an attachment of mail, with these attributes.
fn tnef(attributes: &[Vec<u8>]) -> Vec<u8> {
    [&b"\x78\x9f\x3e\x22\x01\0"[..], &attributes.concat()].concat()
}

/// Returns where the table of a compound file is.
fn table_at(bytes: &[u8]) -> usize {
    let sector = u32::from_le_bytes(bytes[0x4c..0x50].try_into().unwrap());
    (usize::try_from(sector).unwrap() + 1) * 512
}

/// Returns the entries of the directory of a compound file, which is before its table.
fn entries(bytes: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    let first = u32::from_le_bytes(bytes[0x30..0x34].try_into().unwrap());
    let (start, end) = ((usize::try_from(first).unwrap() + 1) * 512, table_at(bytes));
    bytes[start..end].chunks_exact_mut(128)
}

/// Returns a PDF of twelve forms, each of which draws the next one ten times: 10¹² drawings.
fn forms() -> Vec<u8> {
    let form = |next: usize| {
        let about = format!(
            "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {next} 0 R>>>>"
        );
        pdf_stream(&about, "/X Do ".repeat(10).as_bytes())
    };
    let mut more: Vec<Vec<u8>> = (6..=17).map(form).collect();
    more.push(pdf_stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"0 0 1 1 re f"));
    pdf_page(pdf_stream("", b"/X Do"), "/XObject<</X 5 0 R>>", more)
}

fn dvi(commands: &[u8]) -> Vec<u8> {
    let front = b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0\0\0\x03\xe8\0";
    [&front[..], &[139], &[0; 44], commands].concat()
}

/// Returns a package with a part that unpacks to a gigabyte.
fn swollen(part: &str) -> Vec<u8> {
    let data = &*deflated_zeros(1024);
    let kind: &[u8] = match part {
        "META-INF/container.xml" => b"application/epub+zip",
        "content.xml" => b"application/vnd.oasis.opendocument.text",
        _ => b"",
    };
    let member = |name, data, is_deflated, size| Packed { name, data, is_deflated, sum: 0, size };
    let whole = u32::try_from(kind.len()).unwrap();
    let first = Packed { sum: crate::made::crc(kind), ..member(b"mimetype", kind, false, whole) };
    zip_of(&[first, member(part.as_bytes(), data, true, 1 << 30)], 1)
}

fn packed(part: &str, content: &[u8]) -> Vec<u8> {
    let data = &*deflate(content);
    let size = u32::try_from(content.len()).unwrap();
    let sum = crate::made::crc(content);
    zip_of(&[Packed { name: part.as_bytes(), data, is_deflated: true, sum, size }], 1)
}
