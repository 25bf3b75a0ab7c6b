//! Type recognition: what an object is, from its name and the front of its content.
//!
//! Source: TR §4 ("how object types are recognized, typically by examining file naming conventions
//! and contents") and the list of Essence types in the user's manual, whose names are kept.
//!
//! Content that cannot be mistaken (magic numbers) decides first; then the name, as long as it does
//! not promise text where the content is binary or the other way around; then what text looks like.
//!
//! # Differences from the paper
//!
//! * Content beats the name where the two contradict each other: a PDF named `.txt` is a PDF.
//! * Types that did not exist then have names of our own (`Markdown`, `Rust`, `JSON` …).
//!
//! Sans-I/O.

mod content;
mod kinds;
mod names;

pub use kinds::{Language, Type};
pub use names::stem;

/// How much of the front of an object typing looks at, in bytes; more does no harm.
pub const HEAD_BYTES: usize = 4 * 1024;

/// Returns the type of an object called `name` (a file name without directories) whose content
/// starts with `head` (the first [`HEAD_BYTES`], or all of it).
pub fn recognize(name: &str, head: &[u8]) -> Type {
    let by_name = names::by_name(name);
    if let Some(found) = content::by_magic(head) {
        return refine(found, by_name, name);
    }
    if head.is_empty() {
        return by_name.unwrap_or(Type::Unknown);
    }
    if !content::is_text(head) {
        return match by_name {
            Some(named) if !named.is_text() => named,
            _ => content::by_signature(head)
                .or_else(|| names::by_media(name))
                .unwrap_or(Type::Binary),
        };
    }
    match by_name {
        // These say little: what the text looks like may say more.
        Some(Type::Text | Type::DotFile | Type::Xml | Type::Sgml) | None => {
            content::by_look(head).or(by_name).unwrap_or(Type::Text)
        }
        Some(Type::ManPage) => match content::by_look(head) {
            // Some programs write a page of definitions before the first telling macro.
            Some(Type::ManPage | Type::Troff) => Type::ManPage,
            // `libfoo-1.2` and `report.3` end like manual pages.
            look => look.unwrap_or(Type::Text),
        },
        // Pictures, fonts and tables may be text (SVG, XPM, BDF, AFM); packed things may not.
        Some(named @ (Type::Image | Type::Font | Type::Audio | Type::Video | Type::Backup)) => {
            named
        }
        Some(named) if named.is_text() => named,
        Some(_) => content::by_look(head).unwrap_or(Type::Text),
    }
}

/// Lets the name say which of several things with the same magic number this is.
fn refine(found: Type, by_name: Option<Type>, name: &str) -> Type {
    match (found, by_name) {
        (Type::Gzip, _) if names::is_packed_tar(name) => Type::GzipTar,
        (Type::Compressed, _) if names::is_packed_tar(name) => Type::CompressedTar,
        // Office documents, books and Java archives are zip files with an agreed content.
        (
            Type::Zip,
            Some(
                named @ (Type::Word
                | Type::Excel
                | Type::PowerPoint
                | Type::OpenDocument
                | Type::Epub
                | Type::Archive),
            ),
        ) => named,
        // The old office formats share one container.
        (Type::Word, Some(named @ (Type::Excel | Type::PowerPoint))) => named,
        // A `#!` line in a file that is called `.py` or `.pl`: the name knows better.
        (Type::Source(_), Some(named @ Type::Source(_))) => named,
        (Type::Command, Some(named @ (Type::Object | Type::Font))) => named,
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(name: &str, head: &[u8], expected: &str) {
        assert_eq!(recognize(name, head).name(), expected, "{name:?} with {head:?}");
    }

    #[test]
    fn names_of_text() {
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
            ("ChangeLog", "Text"),
            ("changelog.Debian", "Text"),
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
            ("logo.svg", "Image"),
        ] {
            check(name, b"some words\nin lines\n", expected);
        }
    }

    #[test]
    fn content_beats_a_name_that_contradicts_it() {
        check("paper.txt", b"%PDF-1.4\n", "PDF");
        check("data.gz", b"plain words\n", "Text");
        check("data.txt", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "GNUCompressed");
        check("words.txt", b"ab\0cd\0\0\x01\x02", "Binary");
        check("page.txt", b"<!DOCTYPE html>\n<title>x</title>", "HTML");
        check("picture.html", b"\x89PNG\r\n\x1a\n\0\0", "Image");
    }

    #[test]
    fn looks_of_text_without_a_name() {
        check("x", b"#!/usr/bin/env python3\nprint()\n", "Python");
        check("x", b"#! /bin/sh -e\n", "ShellScript");
        check("x.pl", b"#!/bin/sh\n# perl\n", "Perl");
        check("x", b"\xef\xbb\xbf<html lang=en>", "HTML");
        check("x", b"<?xml version=\"1.0\"?>\n<html xmlns=\"h\">", "HTML");
        check("x", b"<?xml version=\"1.0\"?>\n<feed/>", "XML");
        check("x", b"From: a@b.example\nTo: c@d.example\nSubject: x\n\nhello\n", "Mail");
        check("inbox", b"From a@b.example Mon Jan  1 00:00:00 2024\nSubject: x\n\n", "Mail");
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
    fn packed_things() {
        check("a.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0", "GNUCompressedTar");
        check("a.tgz", b"\x1f\x8b\x08\0\0\0\0\0", "GNUCompressedTar");
        check("a.zip", b"PK\x03\x04\0\0", "PCCompressed");
        check("a.docx", b"PK\x03\x04\0\0", "Word");
        check("a.jar", b"PK\x03\x04\0\0", "Archive");
        check("a.tar.xz", b"\xfd7zXZ\0\0", "CompressedTar");
        check("a.bz2", b"BZh91AY&SY", "Compressed");
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        check("x", &tar, "Tar");
    }

    #[test]
    fn binaries() {
        check("a.o", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0", "Object");
        check("ls", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", "Command");
        check("libc.so.6", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", "Object");
        check("a.dvi", b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0", "Dvi");
        check("a.xyz", b"\0\x01\x02\x03", "Binary");
        check("a.ttf", b"\0\x01\0\0\0\x0f", "Font");
        check("", b"", "Unknown");
        check("empty.txt", b"", "Text");
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
            let is_text_by_magic = head.starts_with(b"#!") || head.starts_with(b"%!PS");
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
