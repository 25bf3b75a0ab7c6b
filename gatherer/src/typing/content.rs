//! Typing by content: magic numbers, whether it is text at all, and what text looks like.
//!
//! Sans-I/O.

use file_format::{FileFormat, Kind};

use super::{Language, Type};

/// Signatures at the start that nothing else has.
const MAGIC: &[(&[u8], Type)] = &[
    (b"\x1f\x8b", Type::Gzip),
    (b"PK\x03\x04", Type::Zip),
    (b"PK\x05\x06", Type::Zip),
    (b"%PDF-", Type::Pdf),
    (b"\x89PNG\r\n\x1a\n", Type::Image),
    (b"GIF87a", Type::Image),
    (b"GIF89a", Type::Image),
    (b"\xff\xd8\xff", Type::Image),
    (b"II*\0", Type::Image),
    (b"MM\0*", Type::Image),
    (b"8BPS", Type::Image),
    (b"/* XPM */", Type::Image),
    (b"\x7fELF", Type::Command),
    (b"MZ\x90\0", Type::Command),
    (b"\xca\xfe\xba\xbe", Type::Object),
    (b"\xcf\xfa\xed\xfe", Type::Command),
    (b"\xde\x12\x04\x95", Type::Object),
    (b"\0asm", Type::Object),
    (b"!<arch>\n", Type::Archive),
    (b"\xed\xab\xee\xdb", Type::Archive),
    (b"07070", Type::Archive),
    (b"7z\xbc\xaf\x27\x1c", Type::Archive),
    (b"Rar!\x1a\x07", Type::Archive),
    (b"BZh", Type::Compressed),
    (b"\xfd7zXZ\0", Type::Compressed),
    (b"\x28\xb5\x2f\xfd", Type::Compressed),
    (b"\x1f\x9d", Type::Compressed),
    (b"\x1f\xa0", Type::Compressed),
    (b"LZIP", Type::Compressed),
    (b"\x04\x22\x4d\x18", Type::Compressed),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Type::Word),
    (b"{\\rtf", Type::Rtf),
    (b"%!PS", Type::PostScript),
    (b"\xc5\xd0\xd3\xc6", Type::PostScript),
    (b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b", Type::Dvi),
    (b"OggS", Type::Audio),
    (b"fLaC", Type::Audio),
    (b"ID3", Type::Audio),
    (b"MThd", Type::Audio),
    (b".snd", Type::Audio),
    (b"wOFF", Type::Font),
    (b"wOF2", Type::Font),
    (b"OTTO", Type::Font),
    (b"\0\x01\0\0\0", Type::Font),
    (b"ttcf", Type::Font),
    (b"%!PS-AdobeFont", Type::Font),
    (b"%!FontType1", Type::Font),
    (b"STARTFONT", Type::Font),
    (b"StartFontMetrics", Type::Font),
    (b"SQLite format 3\0", Type::Binary),
    (b"\x1aE\xdf\xa3", Type::Video),
];

/// Lines that a mail message's head is made of.
const MAIL_FIELDS: &[&[u8]] = &[
    b"from:",
    b"to:",
    b"subject:",
    b"date:",
    b"message-id:",
    b"received:",
    b"return-path:",
    b"mime-version:",
    b"delivered-to:",
    b"reply-to:",
    b"newsgroups:",
    b"path:",
    b"x-mailer:",
    b"in-reply-to:",
    b"cc:",
    b"sender:",
];

/// Lines looked at to see what text is.
const LOOK_LINES: usize = 60;

/// Returns the type whose magic number `head` carries.
pub(super) fn by_magic(head: &[u8]) -> Option<Type> {
    if head.starts_with(b"#!") {
        return shebang(first_line(head));
    }
    if let Some((_, found)) = MAGIC.iter().rev().find(|(magic, _)| head.starts_with(magic)) {
        return Some(match found {
            // e_type 3 is both a library and most executables: the name decides.
            Type::Command if head.starts_with(b"\x7fELF") && head.get(16) == Some(&1) => {
                Type::Object
            }
            Type::Compressed if head.starts_with(b"BZh") && !is_bzip2(head) => return None,
            Type::Audio if head.starts_with(b"ID3") && is_text(head) => return None,
            found => *found,
        });
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(Type::Tar);
    }
    match (head.get(..4), head.get(8..12)) {
        (Some(b"RIFF"), Some(b"WAVE")) => Some(Type::Audio),
        (Some(b"RIFF"), Some(b"WEBP")) => Some(Type::Image),
        (Some(b"RIFF"), Some(b"AVI ")) => Some(Type::Video),
        (Some(b"FORM"), Some(b"AIFF" | b"AIFC")) => Some(Type::Audio),
        _ if head.get(4..8) == Some(b"ftyp") => Some(match head.get(8..12) {
            Some(b"M4A " | b"M4B ") => Type::Audio,
            Some(b"avif" | b"heic" | b"heix" | b"mif1") => Type::Image,
            _ => Type::Video,
        }),
        _ => None,
    }
}

fn is_bzip2(head: &[u8]) -> bool {
    head.get(3).is_some_and(u8::is_ascii_digit)
        && head.get(4..10).is_none_or(|it| it == b"1AY&SY" || it == b"\x17rE8P\x90")
}

/// Returns what a wider table of signatures says about binary data.
pub(super) fn by_signature(head: &[u8]) -> Option<Type> {
    match FileFormat::from_bytes(head).kind() {
        Kind::Image => Some(Type::Image),
        Kind::Audio => Some(Type::Audio),
        Kind::Video => Some(Type::Video),
        Kind::Font => Some(Type::Font),
        Kind::Archive | Kind::Package | Kind::Disk => Some(Type::Archive),
        Kind::Compressed => Some(Type::Compressed),
        Kind::Executable => Some(Type::Command),
        _ => None,
    }
}

/// Returns whether `head` reads as text in some charset: no NUL (but for UTF-16 with a byte order
/// mark), and few control characters.
pub(super) fn is_text(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    if memchr::memchr(0, head).is_some() {
        return false;
    }
    // Back spaces (overstruck text), form feeds and escapes occur in text.
    let control =
        head.iter().filter(|byte| **byte < 0x20 && !matches!(**byte, 8..=13 | 0x1a | 0x1b)).count();
    control * 20 <= head.len()
}

/// Returns what text looks like, or `None` when it looks like no more than text.
pub(super) fn by_look(head: &[u8]) -> Option<Type> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let front = head.trim_ascii_start();
    markup(front)
        .or_else(|| mail(head))
        .or_else(|| by_lines(head))
        .or_else(|| json(front).then_some(Type::Json))
}

fn markup(front: &[u8]) -> Option<Type> {
    if front.first() != Some(&b'<') {
        return None;
    }
    let lower = front.get(..front.len().min(1024)).unwrap_or_default().to_ascii_lowercase();
    let has = |needle: &[u8]| memchr::memmem::find(&lower, needle).is_some();
    if lower.starts_with(b"<!doctype html")
        || lower.starts_with(b"<html")
        || lower.starts_with(b"<head")
        || lower.starts_with(b"<title")
        || lower.starts_with(b"<body")
        || has(b"<html")
    {
        return Some(Type::Html);
    }
    if lower.starts_with(b"<?xml") {
        return Some(if has(b"<svg") { Type::Image } else { Type::Xml });
    }
    if lower.starts_with(b"<svg") {
        return Some(Type::Image);
    }
    if lower.starts_with(b"<!doctype") || lower.starts_with(b"<!--") && has(b"<!doctype") {
        return Some(Type::Sgml);
    }
    None
}

/// A mailbox, or at least three mail fields before the first empty line.
fn mail(head: &[u8]) -> Option<Type> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if first.starts_with(b"From ") {
        // `From address day month …`, not a sentence.
        let words = first.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).count();
        let field = lines.next().is_some_and(is_field);
        return (6 <= words && field).then_some(Type::Mail);
    }
    let mut known = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOK_LINES) {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            break;
        }
        if line.first().is_some_and(u8::is_ascii_whitespace) {
            continue;
        }
        if !is_field(line) {
            return None;
        }
        let lower = line.get(..line.len().min(16)).unwrap_or_default().to_ascii_lowercase();
        known += usize::from(MAIL_FIELDS.iter().any(|field| lower.starts_with(field)));
    }
    (3 <= known).then_some(Type::Mail)
}

fn is_field(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line.get(..colon).unwrap_or_default();
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn by_lines(head: &[u8]) -> Option<Type> {
    let mut troff = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOK_LINES) {
        if line.starts_with(b".TH ") || line.starts_with(b".Dd ") || line.starts_with(b".so man") {
            return Some(Type::ManPage);
        }
        troff += usize::from(line.starts_with(b".\\\"") || line.starts_with(b"'\\\""));
        if line.starts_with(b"\\documentclass")
            || line.starts_with(b"\\documentstyle")
            || line.starts_with(b"\\begin{document}")
        {
            return Some(Type::Tex);
        }
        if line.starts_with(b"\\input texinfo") {
            return Some(Type::Texinfo);
        }
        if line.starts_with(b"diff -") || line.starts_with(b"Index: ") || line.starts_with(b"@@ -")
        {
            return Some(Type::Patch);
        }
        if line.starts_with(b"begin 6") && line.split(|byte| *byte == b' ').count() == 3 {
            return Some(Type::Uuencoded);
        }
        if line.starts_with(b"# This is a shell archive") {
            return Some(Type::ShellArchive);
        }
        if is_entry(line) {
            return Some(Type::BibTeX);
        }
    }
    (2 <= troff).then_some(Type::Troff)
}

/// `@article{key,`
fn is_entry(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"@") else { return false };
    let Some(brace) = memchr::memchr(b'{', rest) else { return false };
    let kind = rest.get(..brace).unwrap_or_default().trim_ascii_end().to_ascii_lowercase();
    matches!(
        kind.as_slice(),
        b"article"
            | b"book"
            | b"inproceedings"
            | b"incollection"
            | b"inbook"
            | b"techreport"
            | b"phdthesis"
            | b"mastersthesis"
            | b"misc"
            | b"manual"
            | b"proceedings"
            | b"unpublished"
            | b"booklet"
            | b"conference"
            | b"online"
    )
}

/// An object or array whose first thing is a JSON token.
fn json(front: &[u8]) -> bool {
    match front.split_first() {
        Some((b'{', rest)) => matches!(rest.trim_ascii_start(), [b'"' | b'}', ..]),
        Some((b'[', rest)) => match rest.trim_ascii_start() {
            [b'{' | b'"', ..] => memchr::memchr(b':', rest).is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// `#!/usr/bin/env -S python3 -u` names Python.
fn shebang(line: &[u8]) -> Option<Type> {
    let line = String::from_utf8_lossy(line.get(2..).unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        program = program.rsplit('/').next()?;
    }
    let program = program.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    let language = match program {
        "sh" | "bash" | "dash" | "ksh" | "zsh" | "csh" | "tcsh" | "fish" | "ash" => Language::Shell,
        "perl" => Language::Perl,
        "python" | "pypy" => Language::Python,
        "node" | "nodejs" | "deno" | "bun" => Language::JavaScript,
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        "tclsh" | "wish" | "expect" => Language::Tcl,
        "make" => return Some(Type::Makefile),
        "rust-script" => Language::Rust,
        _ => Language::Other,
    };
    Some(Type::Source(language))
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], expected: Option<Type>) {
        assert_eq!(by_look(head), expected, "{}", String::from_utf8_lossy(head));
    }

    #[test]
    fn looks() {
        check(b"Package: x\nVersion: 1\nSection: y\n\n", None);
        check(b"Date: x\nFrom: y\nSubject: z\n folded\n\n", Some(Type::Mail));
        check(b"Notes: see below\nand more\n", None);
        check(b"[1] Smith\n", None);
        check(b"@startuml{x\n", None);
        check(b"<!-- c -->\n<html>", Some(Type::Html));
    }

    #[test]
    fn shebangs() {
        assert_eq!(
            shebang(b"#!/usr/bin/env -S FOO=1 python3.11 -u"),
            Some(Type::Source(Language::Python))
        );
        assert_eq!(shebang(b"#!"), None);
    }
}
