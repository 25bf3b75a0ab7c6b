//! Samples that are not text.

use formats::Type;

use super::{Sample, sample};
use crate::made::data::{dbf, fits, lotus, mobi_head, palm, warc};
use crate::made::{self, cpio, deb, gzip, rpm, tar, zip};

/// A sample for each type that is no text.
pub(crate) fn all() -> Vec<Sample> {
    [documents(), stored(), packed(), media(), programs()].into_iter().flatten().collect()
}

const FILES: &[(&str, &[u8])] =
    &[("knots/a.txt", b"They hold.\n"), ("knots/b.txt", b"Two ropes.\n")];

fn documents() -> Vec<Sample> {
    let content = b"BT /F1 20 Tf 200 700 Td (On the Digging of Wells) Tj ET BT /F1 12 Tf 220 640 Td (Ada Digger) Tj ET \
        BT /F1 10 Tf 260 560 Td (Abstract) Tj -160 -14 Td (We dig a deep well here and then we measure it.) Tj ET";
    let document = b"<w:document><w:body><w:p><w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr><w:r><w:t>Bends</w:t></w:r></w:p><w:p><w:r><w:t>Two ropes.</w:t></w:r></w:p></w:body></w:document>";
    let core: (&str, &[u8]) = ("docProps/core.xml", b"<cp:coreProperties><dc:title>On knots</dc:title><dc:creator>Ann Other</dc:creator><dcterms:created>2024-01-02T03:04:05Z</dcterms:created></cp:coreProperties>");
    let book = b"<package><metadata><dc:title>On knots</dc:title><dc:creator>Ann Other</dc:creator><dc:language>en</dc:language><dc:identifier>urn:isbn:9780000000002</dc:identifier></metadata>\
        <manifest><item id=\"c\" href=\"c.xhtml\"/></manifest><spine><itemref idref=\"c\"/></spine></package>";
    let container =
        b"<container><rootfiles><rootfile full-path=\"b.opf\"/></rootfiles></container>";
    let slide = b"<p:sld><p:sp><p:nvSpPr><p:nvPr><p:ph type=\"title\"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>Bends</a:t></a:r></a:p></p:txBody></p:sp></p:sld>";
    let open = b"<office:text><text:h text:outline-level=\"1\">Bends</text:h><text:p>Two ropes.</text:p></office:text>";
    vec![
        sample(Type::Pdf, "wells.pdf", made::pdf_page(made::pdf_stream("", content), made::HELVETICA, Vec::new())),
        sample(Type::Dvi, "knots.dvi", dvi()),
        sample(Type::Word, "knots.docx", zip(&[core, ("word/document.xml", document)])),
        sample(
            Type::Excel,
            "towns.xlsx",
            zip(&[
                ("xl/workbook.xml", b"<workbook><sheets><sheet name=\"Towns\" r:id=\"r1\"/></sheets></workbook>"),
                ("xl/_rels/workbook.xml.rels", b"<Relationships><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"),
                ("xl/worksheets/sheet1.xml", b"<worksheet><row><c t=\"str\"><v>Town</v></c><c t=\"str\"><v>Since</v></c></row><row><c t=\"str\"><v>Ulm</v></c><c><v>854</v></c></row></worksheet>"),
            ]),
        ),
        sample(
            Type::PowerPoint,
            "knots.pptx",
            zip(&[
                ("ppt/presentation.xml", b"<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"r1\"/></p:sldIdLst></p:presentation>"),
                ("ppt/_rels/presentation.xml.rels", b"<Relationships><Relationship Id=\"r1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/></Relationships>"),
                ("ppt/slides/slide1.xml", slide),
            ]),
        ),
        sample(Type::OpenDocument, "knots.odt", zip(&[("mimetype", b"application/vnd.oasis.opendocument.text"), ("content.xml", open)])),
        sample(
            Type::Epub,
            "knots.epub",
            zip(&[("mimetype", b"application/epub+zip"), ("META-INF/container.xml", container), ("b.opf", book), ("c.xhtml", b"<html><body><h1>Bends</h1><p>Two ropes.</p></body></html>")]),
        ),
        sample(Type::Binary, "ropes.x", &b"\0\x01\x02of no known kind\0"[..]),
    ]
}

/// The data of programs that are none of the common ones.
fn stored() -> Vec<Sample> {
    let book = mobi_head(1, 1, &[(100, "Ann Other"), (104, "9780000000002"), (503, "On knots")]);
    let notes: Vec<u8> = "Two ropes hold.\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let section = b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3\0\0";
    let letter = b"\xffWPC\x10\0\0\0\x01\x0a\x02\x01\0\0\0\0Bends\xccTwo\x80ropes.";
    let page = b"<!DOCTYPE html><title>Knots</title><p>They hold.";
    let answer = [&b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"[..], page].concat();
    vec![
        sample(
            Type::Ebook,
            "knots.mobi",
            palm(b"BOOKMOBI", &[book, b"<h1>Bends</h1><p>Two ropes.".to_vec()]),
        ),
        sample(Type::WordProcessor, "knots.wpd", &letter[..]),
        sample(
            Type::Spreadsheet,
            "towns.wk1",
            lotus(&[(0, 0, "Town"), (1, 0, "People"), (0, 1, "Ulm"), (1, 1, "many")]),
        ),
        sample(
            Type::Presentation,
            "knots.keynote",
            zip(&[(
                "index.apxl",
                b"<key:presentation><sf:p>Bends</sf:p><sf:p>Two ropes.</sf:p></key:presentation>",
            )]),
        ),
        sample(
            Type::PageLayout,
            "knots.mif",
            "<MIFFile 7.00>\n<Para\n <ParaLine\n  <String `Bends'>\n >\n>\n<Para\n <ParaLine\n  <String `Two ropes.'>\n >\n>\n",
        ),
        sample(Type::OneNote, "knots.one", [&section[..], &notes].concat()),
        sample(Type::Help, "knots.hlp", &b"\x3f\x5f\x03\0\x10\0\0\0how to tie two ropes\0"[..]),
        sample(
            Type::Drawing,
            "knot.dxf",
            "  0\nSECTION\n  2\nENTITIES\n  0\nTEXT\n  1\nOne rope\n  0\nENDSEC\n  0\nEOF\n",
        ),
        sample(
            Type::Database,
            "towns.dbf",
            dbf(&[("TOWN", 10), ("RIVER", 10)], &[&["Ulm", "Danube"], &["Bonn", "Rhine"]]),
        ),
        sample(
            Type::ScientificData,
            "sky.fits",
            fits(&[
                "NAXIS   =                    0",
                "OBJECT  = 'M 31    '",
                "OBSERVER= 'Ann Other'",
                "DATE-OBS= '2024-01-02'",
                "COMMENT Seen from Ulm.",
            ]),
        ),
        sample(Type::Warc, "knots.warc", warc("response", "http://w.example/knots", &answer)),
    ]
}

/// Returns a DVI file with the word `Knots` on one page.
fn dvi() -> Vec<u8> {
    let font = [
        &[243, 0, 0, 0, 0, 0][..],
        &655_360_i32.to_be_bytes(),
        &655_360_i32.to_be_bytes(),
        &[0, 5],
        b"cmr10",
    ]
    .concat();
    let page = [&[139][..], &[0; 44], &font, &[171], b"Knots", &[140]].concat();
    let front = b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0\0\0\x03\xe8\0";
    let end = u32::try_from(front.len() + page.len()).unwrap().to_be_bytes();
    [&front[..], &page, &[248], &[0; 26], &[0, 1, 249], &end, &[2, 223, 223, 223, 223]].concat()
}

fn packed() -> Vec<Sample> {
    let tarball = tar(FILES);
    let sources: &[(&str, &[u8])] = &[
        ("sort-1.2/README", b"Sort\n\nSorts lines.\n"),
        ("sort-1.2/Makefile", b"all: sort\n"),
        ("sort-1.2/configure", b"#!/bin/sh\n"),
        ("sort-1.2/sort.c", b"int main()\n{\n}\n"),
        ("sort-1.2/sort.1", b".TH SORT 1\n.SH NAME\nsort \\- sort lines\n"),
    ];
    let metadata =
        b"Metadata-Version: 2.1\nName: knots\nVersion: 1.2\nSummary: Ties knots\nLicense: MIT\n";
    let cargo = b"[package]\nname = \"knots\"\nversion = \"1.2.0\"\ndescription = \"Ties knots\"\nlicense = \"MIT\"\n";
    vec![
        sample(Type::Gzip, "knots.txt.gz", gzip(b"On knots\n\nThey hold.\n")),
        sample(Type::GzipTar, "knots.tar.gz", gzip(&tarball)),
        sample(Type::Tar, "knots.tar", tarball.clone()),
        sample(Type::Zip, "knots.zip", zip(FILES)),
        sample(Type::Compressed, "knots.txt.zst", zstd::stream::encode_all(&b"On knots\n\nThey hold.\n"[..], 1).unwrap()),
        sample(Type::CompressedTar, "knots.tar.zst", zstd::stream::encode_all(&*tarball, 1).unwrap()),
        sample(Type::Archive, "knots.cpio", cpio(FILES)),
        sample(Type::Deb, "knots_1.2_all.deb", deb("Package: knots\nVersion: 1.2\nArchitecture: all\nMaintainer: Ann Other <a@h.example>\nDescription: ties knots\n Of rope.\n", FILES)),
        sample(Type::Rpm, "knots-1.2.noarch.rpm", rpm(&[(1000, "knots"), (1001, "1.2"), (1004, "Ties knots"), (1014, "MIT")], &cpio(FILES))),
        sample(Type::Wheel, "knots-1.2-py3-none-any.whl", zip(&[("knots/__init__.py", b"\"\"\"Ties knots.\"\"\"\n"), ("knots-1.2.dist-info/METADATA", metadata)])),
        sample(Type::Crate, "knots-1.2.0.crate", gzip(&tar(&[("knots-1.2.0/Cargo.toml", cargo)]))),
        sample(Type::Jar, "knots.jar", zip(&[("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\nImplementation-Title: Knots\nImplementation-Version: 1.2\n")])),
        sample(Type::SourceDistribution, "sort-1.2.tar.gz", gzip(&tar(sources))),
        sample(Type::Backup, "knots.txt~", &b"On knots, as it was\n"[..]),
        sample(Type::Unknown, "nothing", Vec::new()),
    ]
}

fn media() -> Vec<Sample> {
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], name, data, &[0; 4]].concat()
    };
    let picture = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", b"\0\0\0\x20\0\0\0\x10\x08\x02\0\0\0"),
        chunk(b"tEXt", b"Title\0A knot"),
        chunk(b"tEXt", b"Author\0Ann Other"),
        chunk(b"IEND", b""),
    ];
    let mut track =
        b"\0\xff\x03\x05Dance\0\xff\x02\x07(c) Ann\0\x90\x40\x40\x83\0\xff\x2f\0".to_vec();
    track = [
        &b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk"[..],
        &u32::try_from(track.len()).unwrap().to_be_bytes(),
        &track,
    ]
    .concat();
    let boxed = |name: &[u8; 4], content: &[u8]| {
        [&u32::try_from(content.len() + 8).unwrap().to_be_bytes()[..], name, content].concat()
    };
    let mut header = vec![0; 100];
    header[12..16].copy_from_slice(&1_000_u32.to_be_bytes());
    header[16..20].copy_from_slice(&90_500_u32.to_be_bytes());
    let film = [boxed(b"ftyp", b"isom\0\0\0\0"), boxed(b"moov", &boxed(b"mvhd", &header))];
    let font = "STARTFONT 2.1\nCOMMENT For signs\nSTARTPROPERTIES 3\nFAMILY_NAME \"Example\"\nWEIGHT_NAME \"Bold\"\nPIXEL_SIZE 12\nENDPROPERTIES\nCHARS 1\n";
    vec![
        sample(Type::Image, "knot.png", picture.concat()),
        sample(Type::Audio, "dance.mid", track),
        sample(Type::Video, "knot.mp4", film.concat()),
        sample(Type::Font, "example.bdf", font),
    ]
}

fn programs() -> Vec<Sample> {
    let strings = b"\0libsea.so.1\0libc.so.6\0sail\0".to_vec();
    let symbol = [&23_u32.to_le_bytes()[..], &[0x12, 0, 5, 0], &[0; 16]].concat();
    let dynamic = |entries: &[[u64; 2]]| -> Vec<u8> {
        entries.iter().flatten().flat_map(|it| it.to_le_bytes()).collect()
    };
    let info = b"license=GPL\0description=Sea level driver\0author=Ann Other\0".to_vec();
    let sections = [
        (".dynstr", 3, strings, 0, 0),
        (".dynsym", 11, [vec![0; 24], symbol].concat(), 1, 24),
        (".dynamic", 6, dynamic(&[[1, 13], [14, 1], [0, 0]]), 1, 16),
        (".comment", 1, b"\0GCC: (Debian 12.2.0-14) 12.2.0\0".to_vec(), 0, 0),
        (".rodata", 1, b"sea version 1.2\0no wind to sail with\0".to_vec(), 0, 0),
    ];
    vec![
        sample(Type::Object, "sea.ko", elf(1, &[(".modinfo", 1, info, 0, 0)])),
        sample(Type::Command, "sea", elf(3, &sections)),
    ]
}

/// A 64-bit ELF file of x86-64 with sections, each as name, type, content, link and entry size.
fn elf(kind: u8, sections: &[(&str, u32, Vec<u8>, u32, u64)]) -> Vec<u8> {
    let (mut names, mut data, mut headers) = (vec![0_u8], vec![0; 64], vec![0; 64]);
    let own = (".shstrtab", 3, Vec::new(), 0, 0);
    for (name, section, content, link, entry) in sections.iter().chain([&own]) {
        let name_at = u32::try_from(names.len()).unwrap();
        names.extend(name.bytes().chain([0]));
        let content = if *name == ".shstrtab" { &names } else { content };
        let (at, len) = (data.len() as u64, content.len() as u64);
        headers.extend([name_at.to_le_bytes(), section.to_le_bytes()].concat());
        headers.extend([0; 16]);
        headers.extend([at.to_le_bytes(), len.to_le_bytes()].concat());
        headers.extend([link.to_le_bytes(), [1, 0, 0, 0]].concat());
        headers.extend([1_u64.to_le_bytes(), entry.to_le_bytes()].concat());
        data.extend(content);
        data.resize(data.len().next_multiple_of(8), 0);
    }
    let count = u16::try_from(sections.len() + 2).unwrap();
    let at = data.len() as u64;
    data[..20].copy_from_slice(
        &[&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[kind, 0, 62, 0]].concat(),
    );
    data[20] = 1;
    data[40..48].copy_from_slice(&at.to_le_bytes());
    data[52..54].copy_from_slice(&64_u16.to_le_bytes());
    data[58..60].copy_from_slice(&64_u16.to_le_bytes());
    data[60..62].copy_from_slice(&count.to_le_bytes());
    data[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    [data, headers].concat()
}
