//! Type recognition: the type of an object from its URL, its name and the front of its content.
//!
//! Source: TR §4 ("how object types are recognized, typically by examining file naming conventions
//! and contents"), and the list of Essence types in the user's manual, whose names are kept.
//!
//! The steps, in this order:
//!
//! 1. The site's own rules, by URL, name and content, in the order of its rule files; the first
//!    rule that matches decides. They are part of [`Recognizer`]; the following steps are built in.
//! 2. Unmistakable content: signatures at the start. Where several types share a signature (zip,
//!    OLE, gzip, ELF, `#!`), the name decides, or else the first entries of the container; in OLE
//!    files the entries take precedence over the name, wherever they lie.
//! 3. The name, unless it promises text and the content is binary, or the other way around. For
//!    vague names (`.txt`, `.xml`, `.json`, `.eml`, `.1`, dot files), the look of the text takes
//!    precedence.
//! 4. The look of the text, or of markup with a few zeros or bytes behind its end; for binary data, a wider table of signatures and then the media type
//!    registered for the extension.
//! 5. `Text` or `Binary`; `Unknown` for an empty object.
//!
//! # Differences from the paper
//!
//! * Content takes precedence over the name where the two contradict each other: a PDF named `.txt`
//!   is a PDF.
//! * Types that did not exist then have new names (`Markdown`, `Rust`, `JSON` …).
//! * A file of rules may have all three kinds of conditions; the original had one file for each
//!   kind.
//!
//! Sans-I/O.

mod content;
mod looks;
mod names;
mod packed;
mod rules;
mod tables;

use std::fmt;

use formats::office::{self, Inside};
use formats::text::is_text;
use formats::{HEAD_BYTES, Language, Type};

pub use content::signatures_of;
pub use names::names_of;
pub(crate) use rules::expression_mistake;
pub use rules::{DecidedBy, Decision, Recognizer};

/// Reason for a decision of the built-in recognition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A signature that only this type has.
    Signature,
    /// A signature that several types have, distinguished by the name.
    SignatureAndName,
    /// A signature that several types have, distinguished by the entries of the container.
    SignatureAndInside,
    /// The name.
    Name,
    /// The look of the text.
    Look,
    /// The wider table of signatures.
    Table,
    /// The media type that is registered for the extension.
    MediaType,
    /// The content is text, and nothing else is known.
    Text,
    /// The content is not text, and nothing else is known.
    Binary,
    /// The object is empty.
    Empty,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "its content begins as only this type does",
            Self::SignatureAndName => "its content begins as several types do, its name says which",
            Self::SignatureAndInside => {
                "its content begins as several types do, what it holds says which"
            }
            Self::Name => "its name",
            Self::Look => "what its text looks like",
            Self::Table => "its content begins as files of this kind do",
            Self::MediaType => "the media type registered for its extension",
            Self::Text => "it is text, and nothing says what of",
            Self::Binary => "it is not text, and nothing says what it is",
            Self::Empty => "it is empty, and its name says nothing",
        })
    }
}

/// Returns the type of an object by the built-in rules alone. `name` is its file name without
/// directories; `head` is the first [`formats::HEAD_BYTES`] of its content, or all of it.
pub fn recognize(name: &str, head: &[u8]) -> Type {
    decide(name, head).0
}

fn decide(name: &str, head: &[u8]) -> (Type, Reason) {
    let by_name = names::by_name(name);
    if let Some(found) = content::by_magic(head) {
        return refine(found, by_name, name, head);
    }
    if head.is_empty() {
        return by_name.map_or((Type::Unknown, Reason::Empty), |it| (it, Reason::Name));
    }
    if is_text(head) {
        if content::is_pdf_text(head, by_name == Some(Type::Pdf)) {
            return (Type::Pdf, Reason::Signature);
        }
        return of_text(by_name, head);
    }
    if let Some(look) = looks::spoiled(head) {
        return (look, Reason::Look);
    }
    if let Some(named) = by_name.filter(|it| !it.is_text()) {
        return (named, Reason::Name);
    }
    let found = content::by_signature(head).map(|it| (it, Reason::Table));
    found
        .or_else(|| names::by_media(name).map(|it| (it, Reason::MediaType)))
        .unwrap_or((Type::Binary, Reason::Binary))
}

/// Weighs the type that the name of a text promises against the look of the text.
fn of_text(by_name: Option<Type>, head: &[u8]) -> (Type, Reason) {
    let look = match by_name {
        // These names are vague: the look of the text may be more exact.
        Some(Type::Text | Type::DotFile | Type::Xml | Type::Sgml) | None => looks::by_look(head),
        Some(Type::Json) => looks::json(head.trim_ascii_start()),
        Some(Type::Mail | Type::Mailbox) => looks::mail(head),
        // `.mm` is Objective-C++, or a paper in troff with the macros mm ("memorandum").
        Some(Type::Source(Language::Other)) => looks::by_look(head).filter(|it| *it == Type::Troff),
        Some(Type::ManPage) => match looks::by_look(head) {
            // Some programs write a page of definitions before the first characteristic macro.
            Some(Type::ManPage | Type::Troff) => None,
            // Names like `libfoo-1.2` and `report.3` end like those of manual pages.
            look => return look.map_or((Type::Text, Reason::Text), |it| (it, Reason::Look)),
        },
        // Pictures and fonts may be text (XPM, BDF, AFM); packed files may not.
        Some(Type::Image) if looks::is_picture(head) => None,
        Some(Type::Font | Type::Audio | Type::Video | Type::Backup) => None,
        Some(named) if named.is_text() => None,
        Some(_) => {
            let look = looks::by_look(head);
            return look.map_or((Type::Text, Reason::Text), |it| (it, Reason::Look));
        }
    };
    match (look, by_name) {
        (Some(found), named) if named != Some(found) => (found, Reason::Look),
        (_, Some(named)) => (named, Reason::Name),
        (_, None) => (Type::Text, Reason::Text),
    }
}

/// Chooses among the types that share a magic number.
fn refine(found: Type, by_name: Option<Type>, name: &str, head: &[u8]) -> (Type, Reason) {
    let by = |it| (it, Reason::SignatureAndName);
    match (found, by_name) {
        (Type::Gzip, Some(Type::Crate)) => by(Type::Crate),
        (Type::Gzip, _) if names::is_packed_tar(name) => by(Type::GzipTar),
        (Type::Compressed, _) if names::is_packed_tar(name) => by(Type::CompressedTar),
        // Office documents, books and Java archives are zip files with prescribed entries.
        (Type::Zip, Some(named)) if may_be_zip(named) => by(named),
        (Type::Zip, _) => packed::in_zip(head)
            .map_or((Type::Zip, Reason::Signature), |it| (it, Reason::SignatureAndInside)),
        // The old office formats share their container with many other formats.
        (Type::Word, named) => in_compound(named, head),
        // For a file named `.py` or `.pl`, the name is more exact than the `#!` line.
        (Type::Source(_), Some(named @ Type::Source(_))) => by(named),
        (Type::Command, Some(named @ (Type::Object | Type::Font))) => by(named),
        _ => (found, Reason::Signature),
    }
}

/// Chooses among the types of compound files: by what is inside, else by the name.
fn in_compound(named: Option<Type>, head: &[u8]) -> (Type, Reason) {
    let inside = office::inside(head);
    let found = match inside {
        Inside::Known(found, _) => Some(found),
        Inside::Other => None,
        Inside::Unseen => packed::in_ole(head),
    };
    match (found, named) {
        (Some(found), _) => (found, Reason::SignatureAndInside),
        // Windows keeps small pictures in compound files named `.db`.
        (None, Some(named))
            if (!named.is_text() || named == Type::Mail) && named != Type::Database =>
        {
            (named, Reason::SignatureAndName)
        }
        (None, None) if inside == Inside::Unseen => (Type::Word, Reason::Signature),
        (None, _) => (Type::Binary, Reason::Binary),
    }
}

/// Returns what of an object's content its type is recognized by: the front; all of a compound file, since
/// its directory may lie anywhere.
pub fn head_of(bytes: &[u8]) -> &[u8] {
    let front = bytes.get(..bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    if front.starts_with(office::COMPOUND) { bytes } else { front }
}

/// Returns whether objects of this type may be zip files.
fn may_be_zip(r#type: Type) -> bool {
    use Type::*;
    matches!(
        r#type,
        Word | Excel
            | PowerPoint
            | OpenDocument
            | Epub
            | WordProcessor
            | Spreadsheet
            | Presentation
            | PageLayout
            | Drawing
            | Wheel
            | Jar
            | Archive
            | Zip
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(name: &str, head: &[u8], expected: &str) {
        assert_eq!(recognize(name, head).name(), expected, "{name:?} with {head:?}");
    }

    #[test]
    fn text_is_typed_by_its_name() {
        for (name, expected) in [
            ("notes.txt", "Text"),
            ("INDEX.HTM", "HTML"),
            ("README", "README"),
            ("README.Debian", "README"),
            ("readme.txt", "README"),
            ("README.md", "Markdown"),
            ("README.html", "HTML"),
            ("FAQ", "FAQ"),
            ("perl-faq.txt", "FAQ"),
            ("Makefile", "Makefile"),
            ("GNUmakefile", "Makefile"),
            ("rules.mk", "Makefile"),
            ("Makefile.am", "Makefile"),
            ("ChangeLog", "ChangeLog"),
            ("changelog.Debian", "ChangeLog"),
            ("NEWS", "ChangeLog"),
            ("copyright", "Text"),
            ("rfc2616.txt", "RFC"),
            ("draft-ietf-http-01.txt", "Internet-Draft"),
            ("main.c", "C"),
            ("main.h", "CHeader"),
            ("main.cc", "C++"),
            ("lib.rs", "Rust"),
            ("run.sh", "ShellScript"),
            ("x.f90", "OtherCode"),
            ("refs.bib", "BibTeX"),
            ("fix.patch", "Patch"),
            (".bashrc", "DotFile"),
            ("Cargo.toml", "Configuration"),
            ("libfoo-1.2", "Text"),
            ("no-extension", "Text"),
            ("logo.svg", "SVG"),
            ("fyi1.txt", "FYI"),
            ("index.rst", "reStructuredText"),
            ("guide.adoc", "AsciiDoc"),
            ("refs.ris", "RIS"),
            ("old.mbox", "Mailbox"),
            ("run.ipynb", "Notebook"),
            ("table.tsv", "CSV"),
            ("x.soif", "SOIF"),
        ] {
            check(name, b"some words\nin lines\n", expected);
        }
    }

    #[test]
    fn content_beats_a_name_that_contradicts_it() {
        check("paper.txt", b"%PDF-1.4\n", "PDF");
        check("paper.txt", b"Subject: x\n\n%PDF-1.4\n1 0 obj\n", "PDF");
        check("paper.pdf", b"some junk%PDF-1.4\n", "PDF");
        check("paper.pdf", b"some words\n", "Text");
        check("data.gz", b"plain words\n", "Text");
        check("data.txt", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "GNUCompressed");
        check("words.txt", b"ab\0cd\0\0\x01\x02", "Binary");
        check("page.txt", b"<!DOCTYPE html>\n<title>x</title>", "HTML");
        check("picture.html", b"\x89PNG\r\n\x1a\n\0\0", "Image");
    }

    #[test]
    fn text_without_a_telling_name_is_typed_by_its_look() {
        check("x", b"#!/usr/bin/env python3\nprint()\n", "Python");
        check("x", b"#! /bin/sh -e\n", "ShellScript");
        check("x.pl", b"#!/bin/sh\n# perl\n", "Perl");
        check("x", b"\xef\xbb\xbf<html lang=en>", "HTML");
        check("x", b"<?xml version=\"1.0\"?>\n<html xmlns=\"h\">", "HTML");
        check("x", b"<?xml version=\"1.0\"?>\n<feed/>", "XML");
        check("x", b"From: a@b.example\nTo: c@d.example\nSubject: x\n\nhello\n", "Mail");
        check("inbox", b"From a@b.example Mon Jan  1 00:00:00 2024\nSubject: x\n\n", "Mailbox");
        check("x", b"From the beginning\nit was so.\n", "Text");
        check("x", b"\\documentclass{article}\n", "Tex");
        check("x", b"%!PS-Adobe-3.0\n", "PostScript");
        check("x", b"diff -u a b\n--- a\n+++ b\n@@ -1 +1 @@\n", "Patch");
        check("x", b"% refs\n@article{key,\n title={x}}\n", "BibTeX");
        check("ls.1", b".\\\" DO NOT MODIFY\n.TH LS \"1\"\n.SH NAME\n", "ManPage");
        check("x.3pm", b".TH X 3pm\n", "ManPage");
        check("x.3pm", b".\\\" made by pod2man\n.\\\"\n.de Sp\n..\n", "ManPage");
        check("x", b"{\\rtf1\\ansi", "RTF");
        check("x", b"{\n  \"key\": 1\n}\n", "JSON");
    }

    #[test]
    fn packed_files_are_typed_by_signature_and_name() {
        check("a.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0", "GNUCompressedTar");
        check("a.tgz", b"\x1f\x8b\x08\0\0\0\0\0", "GNUCompressedTar");
        check("a.zip", b"PK\x03\x04\0\0", "PCCompressed");
        check("a.docx", b"PK\x03\x04\0\0", "Word");
        check("a.jar", b"PK\x03\x04\0\0", "Jar");
        check("a.whl", b"PK\x03\x04\0\0", "Wheel");
        check("a.apk", b"PK\x03\x04\0\0", "Archive");
        check("a.crate", b"\x1f\x8b\x08\0\0\0\0\0", "Crate");
        check("a", b"!<arch>\ndebian-binary   ", "Debian-Package");
        check("liba.a", b"!<arch>\na.o/ ", "Archive");
        check("a.pdf", b"!<symlink>../papers/a.pdf", "SymbolicLink");
        check("a", b"\xed\xab\xee\xdb\x03\0", "RPM");
        // The name is no evidence of source code, but the content may be.
        check("foo-1.2.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0", "GNUCompressedTar");
        check("a.tar.xz", b"\xfd7zXZ\0\0", "CompressedTar");
        check("a.bz2", b"BZh91AY&SY", "Compressed");
        check("a.hqx", b"(This file must be converted with BinHex 4.0)\n\n:", "MacCompressed");
        check("s.a.c", b"\x01h12345\n\x01s 1/1/1\n\x01d D 1.1\n\x01e\n", "SCCS");
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        check("x", &tar, "Tar");
    }

    #[test]
    fn what_is_not_what_it_seems() {
        // Documents of Debian's doc-base have lines like those of patches.
        let document =
            b"Document: bc\nTitle: bc\nSection: Math\n\nFormat: HTML\nIndex: /a.html\nFiles: /a\n";
        check("bc.bc", document, "Text");
        check("fix", b"Index: a.c\n========\n--- a.c\n+++ a.c\n", "Patch");
        check("firmware.bin", b"\x12\0\x01\x02", "Binary");
        let mut macintosh = vec![0; 128];
        macintosh[1..6].copy_from_slice(b"\x04Rope");
        macintosh[65..73].copy_from_slice(b"TEXTttxt");
        macintosh[86] = 9;
        check("rope.bin", &macintosh, "MacCompressed");
        check("rope", &macintosh, "MacCompressed");
        check("scan.hdr", b"ENVI\nsamples = 3\nlines = 4\n", "Text");
        check("sky.hdr", b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n", "Image");
        check("icon.xpm", b"/* XPM */\nstatic char *x[] = {\n", "Image");
        check("icon.png", b"<!DOCTYPE html><title>Not found</title>", "HTML");
        check("page.html", b"<html><title>a\0b</title><p>words and words</p>", "HTML");
        check("page.html", b"<html><p>words</p></html>\0\0\x01\x02\0\0", "HTML");
        check("MANIFEST.MF", b"Manifest-Version: 1.0\n", "Text");
        check("page.pub", b"ssh-ed25519 AAAA ann@h.example\n", "Text");
    }

    #[test]
    fn data_of_programs_are_typed_by_their_marks() {
        let at = |offset: usize, mark: &[u8]| [&vec![0; offset][..], mark, &[0; 16]].concat();
        let table = [
            &b"\x03\x63\x0c\x1f\x01\0\0\0\x41\0\x0b\0"[..],
            &[0; 20],
            b"NAME\0\0\0\0\0\0\0C",
            &[0; 4],
            &[10, 0],
            &[0; 14],
            b"\r",
        ]
        .concat();
        for (bytes, expected) in [
            (at(60, b"BOOKMOBI"), "Ebook"),
            (at(0, b"ITOLITLS"), "Ebook"),
            (at(0, b"SQLite format 3\0"), "Database"),
            (at(0, b"\0\x01\0\0Standard Jet DB\0"), "Database"),
            (table, "Database"),
            (at(0, b"\x89HDF\r\n\x1a\n"), "ScientificData"),
            (at(0, b"CDF\x01"), "ScientificData"),
            (at(0, b"GRIB\0\0\0\x01"), "ScientificData"),
            (at(0, b"AC1015"), "Drawing"),
            (at(0, b"\0\0\x02\0\x06\x04\x06\0"), "Spreadsheet"),
            (at(0, b"\0\0\x02\0\x20\x51"), "Spreadsheet"),
            (at(0, b"\xffWPC\x10\0\0\0\x01\x0a\x02\x01\0\0"), "WordProcessor"),
            (at(0, b"\xffWPC\x10\0\0\0\x01\x16\x01\0\0\0"), "Image"),
            (at(0, b"ITSF\x03\0\0\0"), "Help"),
            (at(0, b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3"), "OneNote"),
            (at(0, b"<MIFFile 7.00>"), "PageLayout"),
            (at(0, b"WARC/1.0\r\n"), "WARC"),
            (at(0, b"bplist00"), "Binary"),
        ] {
            check("x", &bytes, expected);
            check("x.txt", &bytes, expected);
        }
        check("a.vsd", &at(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "Drawing");
        check("grib.txt", b"GRIB is a format\n", "Text");
        check("a.vsdx", b"PK\x03\x04\0\0", "Drawing");
        check("a.dxf", b"  0\nSECTION\n  2\nHEADER\n", "Drawing");
    }

    #[test]
    fn vague_names_yield_to_looks() {
        check("a.json", b"{\"@context\": \"https://schema.org\"}", "JSON-LD");
        check("a.json", b"{\"a\": 1}", "JSON");
        check("a.xml", b"<?xml version='1.0'?><svg/>", "SVG");
        check("a.eml", b"Newsgroups: a\nFrom: b\nSubject: c\n\n", "News");
        check("a.eml", b"From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\n", "Mailbox");
        check("a.mbox", b"words", "Mailbox");
        check("a.txt", b"TY  - JOUR\nER  - \n", "RIS");
        check("cat.1", &b"N\x08NA\x08AM\x08ME\x08ES\x08S\n".repeat(2), "FormattedText");
        check("a.dat", b"00047nam a2200037 a 4500245000900000\x1e10\x1faTitl\x1e\x1d", "MARC");
        check("README", b"TY  - JOUR\n", "README");
        check("memo.mm", b".TL\nx\n.AU y\n.PP\nz\n.SH\n", "Troff");
        check("code.mm", b"#import <x.h>\n", "OtherCode");
    }

    #[test]
    fn containers_are_typed_by_their_entries() {
        let docx = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0word/";
        check("letter", docx, "Word");
        check("letter.txt", docx, "Word");
        check("letter.zip", docx, "PCCompressed");
        let mut ole = vec![0; 1024];
        ole[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
        check("old.xls", &ole, "Excel");
        check("Thumbs.db", &ole, "Binary");
        check("a.msi", &ole, "Archive");
        check("outlook.msg", &ole, "Mail");
        check("letter", &ole, "Word");
        ole[512..520].copy_from_slice(b"\x09\x08\x10\0\0\x06\x05\0");
        check("old.doc", &ole, "Excel");
    }

    #[test]
    fn compound_files_are_typed_wherever_their_directory_lies() {
        let streams = vec![b'x'; 9_000];
        for (stream, expected) in [
            ("__properties_version1.0", "Mail"),
            ("WordDocument", "Word"),
            ("WORKBOOK", "Excel"),
            ("Other", "Binary"),
        ] {
            let file = crate::compound_files::compound(&[("First", &streams[..]), (stream, b"x")]);
            assert_eq!(head_of(&file).len(), file.len());
            check("a", head_of(&file), expected);
            check("a.txt", head_of(&file), expected);
            check("a", file.get(..HEAD_BYTES).unwrap(), "Word");
        }
        let file = crate::compound_files::compound(&[("Other", b"x")]);
        check("a.msi", &file, "Archive");
        check("winmail.dat", b"\x78\x9f\x3e\x22\x01\0", "Mail");
        assert_eq!(head_of(&[b'x'; 9_000]).len(), HEAD_BYTES);
    }

    #[test]
    fn every_decision_has_its_reason() {
        for (name, head, expected) in [
            ("a", &b"%PDF-1.4"[..], Reason::Signature),
            ("a.docx", b"PK\x03\x04", Reason::SignatureAndName),
            ("a.md", b"x", Reason::Name),
            ("a.txt", b"x", Reason::Name),
            ("a", b"<html>", Reason::Look),
            ("a.3", b"x", Reason::Text),
            ("a", b"x", Reason::Text),
            ("a", b"\0\x01\x02", Reason::Binary),
            ("a", b"gimp xcf v011\0\0\0\x01\0", Reason::Table),
            ("a", b"", Reason::Empty),
        ] {
            assert_eq!(decide(name, head).1, expected, "{name} {head:?}");
            assert!(!expected.to_string().is_empty());
        }
    }

    #[test]
    fn binaries_and_empty_objects_have_types() {
        check("a.o", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0", "Object");
        check("ls", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", "Command");
        check("libc.so.6", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", "Object");
        check("a.dvi", b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0", "Dvi");
        check("a.xyz", b"\0\x01\x02\x03", "Binary");
        check("a.ttf", b"\0\x01\0\0\0\x0f", "Font");
        check("", b"", "Unknown");
        check("empty.txt", b"", "Text");
        // MacBinary has 128 bytes before the file.
        check("paper", &[&[0; 128][..], b"%PDF-1.4\n"].concat(), "PDF");
        check("utf16.txt", b"\xff\xfeh\0i\0", "Text");
    }

    proptest! {
        #[test]
        fn any_name_and_bytes_have_a_type(
            name in "([a-zA-Z0-9~#,._-]{0,6}|\\PC{0,4})([.](gz|tar|tgz|html|py|zip|PDF|1|c|xz|md|so[.]2))?",
            magic in proptest::sample::select(vec!["", "%PDF-", "\u{1f}", "PK\u{3}\u{4}", "#!/bin/sh\n", "<html", "BZh9", "\u{7f}ELF"]),
            rest in proptest::collection::vec(prop_oneof![any::<u8>(), 32..127_u8], 0..300),
        ) {
            let head = [magic.as_bytes(), rest.as_slice()].concat();
            let found = recognize(&name, &head);
            prop_assert!(!found.name().is_empty());
            prop_assert_eq!(recognize(&name.to_ascii_uppercase(), &head), found);
            let texts: [&[u8]; 3] = [b"#!", b"%!PS", b"<html"];
            let is_text_by_magic = texts.iter().any(|it| head.starts_with(it));
            let has_mark = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
            if head.contains(&0) && !is_text_by_magic && !has_mark {
                prop_assert!(!found.is_text(), "{name:?} is {found:?}");
            }
            if !head.is_empty() && head.iter().all(|it| (b' '..=b'~').contains(it)) && magic != "BZh9" {
                let packed = [Type::Gzip, Type::GzipTar, Type::Zip, Type::Compressed];
                prop_assert!(!packed.contains(&found), "{name:?} is {found:?}");
            }
        }
    }
}
