//! Typing by content: magic numbers, and a wider table of signatures.
//!
//! Source: the formats' own definitions; ISO 2709 (1996) for the leader of MARC.
//!
//! Sans-I/O.

use file_format::{FileFormat, Kind};
use formats::code::link::LINK_MARK;
use formats::office::COMPOUND;
use formats::text::is_text;
use formats::{Language, Type, mark_of, marks_of};

/// Signatures at the start of the content that are unmistakable. Of two that match, the later one
/// decides.
const MAGIC: &[(Type, &[&[u8]])] = &[
    (Type::Gzip, &[b"\x1f\x8b"]),
    (Type::Zip, &[b"PK\x03\x04", b"PK\x05\x06"]),
    (Type::Pdf, &[b"%PDF-"]),
    (Type::Image, &[b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"\xff\xd8\xff"]),
    (Type::Image, &[b"II*\0", b"MM\0*", b"8BPS", b"/* XPM */"]),
    (Type::Command, &[b"\x7fELF", b"MZ\x90\0", b"\xcf\xfa\xed\xfe"]),
    (Type::Object, &[b"\xca\xfe\xba\xbe", b"\xde\x12\x04\x95", b"\0asm"]),
    (Type::SymbolicLink, &[LINK_MARK]),
    (Type::Archive, &[b"!<arch>\n"]),
    (Type::Deb, &[b"!<arch>\ndebian-binary"]),
    (Type::Rpm, &[b"\xed\xab\xee\xdb"]),
    (Type::Archive, &[b"070701", b"070702", b"070707"]),
    (Type::Archive, &[b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"]),
    (Type::Compressed, &[b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x1f\x9d"]),
    (Type::Compressed, &[b"\x1f\xa0", b"LZIP", b"\x04\x22\x4d\x18"]),
    (Type::Word, &[COMPOUND]),
    (Type::Rtf, &[b"{\\rtf"]),
    // An item of Outlook in a mail's attachment.
    (Type::Mail, &[b"\x78\x9f\x3e\x22"]),
    // Spoolers put an end-of-transmission character (4) before `%!PS`.
    (Type::PostScript, &[b"%!PS", b"\x04%!PS", b"\xc5\xd0\xd3\xc6"]),
    (Type::Dvi, &[b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b"]),
    (Type::Audio, &[b"OggS", b"fLaC", b"ID3", b"MThd", b".snd"]),
    (Type::Font, &[b"wOFF", b"wOF2", b"OTTO", b"\0\x01\0\0\0", b"ttcf"]),
    (Type::Font, &[b"%!PS-AdobeFont", b"%!FontType1", b"STARTFONT", b"StartFontMetrics"]),
    (Type::Warc, &[b"WARC/0.", b"WARC/1.", b"filedesc://"]),
    (Type::Video, &[b"\x1aE\xdf\xa3"]),
];

/// Length of the front that may contain the header of a PDF, in bytes (PDF reference 1.7, appendix
/// H).
const PDF_START_MAX: usize = 1024;

/// Returns the table's signatures of this type.
pub fn signatures_of(r#type: Type) -> Vec<&'static [u8]> {
    let own = MAGIC.iter().filter(|(it, _)| *it == r#type);
    own.flat_map(|(_, signatures)| signatures.iter().copied()).chain(marks_of(r#type)).collect()
}

/// Returns the type whose magic number `head` carries.
pub(super) fn by_magic(head: &[u8]) -> Option<Type> {
    if head.starts_with(b"#!") {
        return shebang(first_line(head));
    }
    let starts = |signatures: &[&[u8]]| signatures.iter().any(|it| head.starts_with(it));
    if let Some((found, _)) = MAGIC.iter().rev().find(|(_, signatures)| starts(signatures)) {
        return Some(match found {
            // In ELF, e_type 1 is an object file; 3 is a library or an executable: the name
            // decides.
            Type::Command if starts(&[b"\x7fELF"]) && head.get(16) == Some(&1) => Type::Object,
            Type::Compressed if head.starts_with(b"BZh") && !is_bzip2(head) => return None,
            Type::Audio if head.starts_with(b"ID3") && is_text(head) => return None,
            found => *found,
        });
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(Type::Tar);
    }
    // A checksum of five digits. The control characters after it would make the file look binary.
    if head.starts_with(b"\x01h")
        && head.get(2..7).is_some_and(|it| it.iter().all(u8::is_ascii_digit))
        && memchr::memchr(0, head).is_none()
    {
        return Some(Type::Sccs);
    }
    if is_marc(head) {
        return Some(Type::Marc);
    }
    if let Some((found, _)) = mark_of(head) {
        return Some(found);
    }
    if is_mac_binary(head) {
        return Some(Type::MacCompressed);
    }
    if head.trim_ascii_start().starts_with(b"%PDF-") {
        return Some(Type::Pdf);
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

/// Returns whether `head` begins with the leader of a MARC record: its length, five codes, the
/// start of its data, and the fixed map of its directory.
fn is_marc(head: &[u8]) -> bool {
    let Some(leader) = head.get(..24) else { return false };
    let number = |from: usize| {
        let digits = leader.get(from..from + 5).filter(|it| it.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse::<usize>().ok()
    };
    let (Some(length), Some(data)) = (number(0), number(12)) else { return false };
    let ends_directory = head.get(data.saturating_sub(1)).is_none_or(|it| *it == 0x1e);
    leader.get(5).is_some_and(|it| it.is_ascii_lowercase() || *it == b' ')
        && leader.get(10..12) == Some(b"22")
        && leader.get(20..22) == Some(b"45")
        && leader.len() < data
        && data < length
        && ends_directory
}

/// Returns whether `head` begins a MacBinary file: a file name, zeros at fixed places, and the lengths of
/// both forks, one of which has something.
fn is_mac_binary(head: &[u8]) -> bool {
    let Some(header) = head.get(..128) else { return false };
    let is_zero = |at: usize| header.get(at) == Some(&0);
    let name_bytes = usize::from(header.get(1).copied().unwrap_or_default());
    let name = header.get(2..2 + name_bytes).unwrap_or_default();
    let is_kind = header.get(65..73).is_some_and(|it| it.iter().all(u8::is_ascii_graphic));
    let fork = |at: usize| header.get(at).is_some_and(|it| it & 0x80 == 0);
    let forks = header.get(83..91).unwrap_or_default();
    (1..64).contains(&name_bytes)
        && !name.iter().any(u8::is_ascii_control)
        && [0, 74, 82].into_iter().all(is_zero)
        && is_kind
        && fork(83)
        && fork(87)
        && forks.iter().any(|it| *it != 0)
}

/// Returns whether a text is a PDF behind other lines, such as the header of a mail or of HTTP: its mark
/// begins a line, with the version, and a comment of binary bytes or an object follows. Texts may well
/// speak of the mark, unless they are `named` PDF.
pub(super) fn is_pdf_text(head: &[u8], named: bool) -> bool {
    let Some(at) = pdf_mark(head) else { return false };
    let (before, from) = head.split_at(at);
    let mut lines = from.split(|it| b"\r\n".contains(it)).filter(|it| !it.is_empty());
    let [version, next] = [lines.next(), lines.next()].map(Option::unwrap_or_default);
    let has_version = matches!(version.get(5..8), Some([b'1'..=b'9', b'.', b'0'..=b'9']));
    let is_comment = next.first() == Some(&b'%') && !next.is_ascii();
    let is_object = next.first().is_some_and(u8::is_ascii_digit)
        && memchr::memmem::find(next, b" obj").is_some();
    let begins = before.last().is_none_or(|it| b"\r\n".contains(it));
    named || begins && has_version && (is_comment || is_object)
}

/// Returns the position of a PDF's mark.
fn pdf_mark(head: &[u8]) -> Option<usize> {
    let front = head.get(..head.len().min(PDF_START_MAX)).unwrap_or_default();
    memchr::memmem::find(front, b"%PDF-")
}

/// Returns the type of binary data by a wider table of signatures.
pub(super) fn by_signature(head: &[u8]) -> Option<Type> {
    if pdf_mark(head).is_some() {
        return Some(Type::Pdf);
    }
    match FileFormat::from_bytes(head).kind() {
        Kind::Image => Some(Type::Image),
        Kind::Audio => Some(Type::Audio),
        Kind::Video => Some(Type::Video),
        Kind::Font => Some(Type::Font),
        Kind::Archive | Kind::Package | Kind::Disk => Some(Type::Archive),
        Kind::Compressed => Some(Type::Compressed),
        Kind::Executable => Some(Type::Command),
        Kind::Database => Some(Type::Database),
        Kind::Ebook => Some(Type::Ebook),
        Kind::Diagram | Kind::Model => Some(Type::Drawing),
        Kind::Geospatial => Some(Type::ScientificData),
        Kind::Presentation => Some(Type::Presentation),
        Kind::Spreadsheet => Some(Type::Spreadsheet),
        _ => None,
    }
}

/// Returns the type of a script by its first line: `#!/usr/bin/env -S python3 -u` names Python.
fn shebang(line: &[u8]) -> Option<Type> {
    let line = String::from_utf8_lossy(line.get(2..).unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        program = program.rsplit('/').next()?;
    }
    if program == "rnews" {
        return Some(Type::News);
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

    #[test]
    fn the_interpreter_decides_on_a_script() {
        assert_eq!(
            shebang(b"#!/usr/bin/env -S FOO=1 python3.11 -u"),
            Some(Type::Source(Language::Python))
        );
        assert_eq!(shebang(b"#! rnews 1234"), Some(Type::News));
        assert_eq!(shebang(b"#!"), None);
    }

    #[test]
    fn macbinary_is_recognized_by_its_whole_header() {
        let mut header = vec![0; 128];
        header[1..6].copy_from_slice(b"\x04Rope");
        header[65..73].copy_from_slice(b"TEXTttxt");
        header[86] = 9;
        assert!(is_mac_binary(&header));
        assert!(!is_mac_binary(&header[..127]));
        for (at, byte) in [(0, 1), (1, 0), (2, 1), (65, 0), (74, 1), (83, 0x80), (86, 0)] {
            let mut spoiled = header.clone();
            spoiled[at] = byte;
            assert!(!is_mac_binary(&spoiled), "{at}");
        }
    }

    #[test]
    fn texts_about_pdfs_are_no_pdfs() {
        let pdf = |before: &str, after: &[u8]| {
            is_pdf_text(&[before.as_bytes(), b"%PDF-1.4", after].concat(), false)
        };
        assert!(pdf("HTTP/1.0 200 OK\r\nServer: x\r\n\r\n", b"\r\n%\xe2\xe3\xcf\xd3\r\n1 0 obj"));
        assert!(pdf("From: a@b.example\n\n", b"\n1 0 obj\n<<"));
        assert!(pdf("\n\n", b" \r7 0 obj<</Linearized 1>>"));
        assert!(!pdf("const PDF: &[u8] = b\"", b"\n1 0 obj\n<<"));
        assert!(!pdf("A PDF begins with\n", b"\nand goes on."));
        assert!(!pdf("Marks:\n", b"\n%!PS\n"));
        assert!(!is_pdf_text(b"x\n%PDF-x.y\n1 0 obj", false));
        assert!(is_pdf_text(b"x %PDF-x.y", true));
        assert!(!is_pdf_text(&[&[b'x'; 1020][..], b"%PDF-1.4\n1 0 obj"].concat(), true));
    }

    #[test]
    fn leaders_of_marc_are_recognized() {
        // The directory has one entry (12 bytes), so that the data begin at 24 + 12 + 1.
        let record = b"00047nam a2200037 a 4500245000900000\x1e10\x1faTitl\x1e\x1d";
        assert!(is_marc(record));
        assert!(is_marc(&record[..24]));
        assert!(!is_marc(&record[..23]));
        let spoiled = |at: usize, byte: u8| {
            let mut record = record.to_vec();
            record[at] = byte;
            is_marc(&record)
        };
        for (at, byte) in [(0, b'x'), (5, b'0'), (10, b'3'), (20, b'5'), (36, b' ')] {
            assert!(!spoiled(at, byte), "{at}");
        }
    }
}
