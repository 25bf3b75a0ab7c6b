//! Typing of formats that share a container: zip files with agreed entries, and OLE compound files.
//!
//! Source: APPNOTE.TXT (zip, 4.3.7); ECMA-376 part 2 (OOXML packages); ODF 1.2 part 3 and EPUB OCF
//! 3.3 (the first member `mimetype`); MS-CFB (compound files, 2.2 and 2.6.1).
//!
//! Sans-I/O.

use std::io::Read;

use flate2::read::DeflateDecoder;
use formats::Type;

/// Maximum number of zip members whose names are read; members beyond the head are not seen.
const MEMBERS_MAX: usize = 64;

/// Maximum number of bytes of a package's list of content types that are unpacked.
const CONTENT_TYPES_BYTES: u64 = 16 * 1024;

/// Maximum number of directory entries of a compound file that are read, all within the head.
const ENTRIES_MAX: usize = 64;

/// Offset of a member's name from the start of its header, in bytes.
const NAME: usize = 30;

type Beginnings = &'static [(&'static [u8], Type)];

/// Folders in zip files that decide on the type.
const FOLDERS: Beginnings = &[
    (b"word/", Type::Word),
    (b"xl/", Type::Excel),
    (b"ppt/", Type::PowerPoint),
    (b"EGG-INFO/", Type::Wheel),
    (b"visio/", Type::Drawing),
    (b"FixedDocSeq.fdseq", Type::PageLayout),
    (b"FixedDocumentSequence.fdseq", Type::PageLayout),
    (b"index.apxl", Type::Presentation),
    (b"Index/Presentation.iwa", Type::Presentation),
    (b"Index/Slide", Type::Presentation),
    (b"Index/CalculationEngine", Type::Spreadsheet),
    (b"Index/Document.iwa", Type::WordProcessor),
];

/// Media types in the member `mimetype`.
const MEDIA_TYPES: Beginnings = &[
    (b"application/epub+zip", Type::Epub),
    (b"application/vnd.oasis.opendocument.", Type::OpenDocument),
    (b"application/vnd.sun.xml.", Type::OpenDocument),
    (b"application/x-ibooks+zip", Type::Epub),
    (b"application/hwp+zip", Type::WordProcessor),
    (b"application/vnd.adobe.indesign-idml-package", Type::PageLayout),
];

/// Beginnings of the first stream of compound files.
const STREAMS: Beginnings = &[
    (b"\xec\xa5", Type::Word),
    (b"\x09\x08\x10\0\0\x06\x05\0", Type::Excel),
    (b"\x00\x6e\x1e\xf0", Type::PowerPoint),
    (b"\x0f\x00\xe8\x03", Type::PowerPoint),
    (b"\xa0\x46\x1d\xf0", Type::PowerPoint),
];

fn by_beginning(bytes: &[u8], table: Beginnings) -> Option<Type> {
    table.iter().find(|(beginning, _)| bytes.starts_with(beginning)).map(|(_, found)| *found)
}

/// A member of a zip file whose header is in the head.
struct Member<'a> {
    name: &'a [u8],
    is_packed: bool,
    /// Bytes from the end of the header to the end of the head.
    rest: &'a [u8],
}

/// Returns the type of a zip file by the names of its first members.
pub(super) fn in_zip(head: &[u8]) -> Option<Type> {
    let members = || memchr::memmem::find_iter(head, b"PK\x03\x04").take(MEMBERS_MAX);
    let mut types = None;
    for (number, at) in members().enumerate() {
        let Some(member) = head.get(at..).and_then(member) else { continue };
        let by_folder = by_beginning(member.name, FOLDERS);
        match member.name {
            b"mimetype" if number == 0 && !member.is_packed => {
                return by_beginning(member.rest, MEDIA_TYPES);
            }
            b"[Content_Types].xml" => types = Some(member),
            b"META-INF/MANIFEST.MF" => return Some(Type::Jar),
            _ if by_folder.is_some() => return by_folder,
            name if memchr::memmem::find(name, b".dist-info/").is_some() => {
                return Some(Type::Wheel);
            }
            _ => {}
        }
    }
    types.and_then(|it| by_content_types(&it))
}

fn member(header: &[u8]) -> Option<Member<'_>> {
    let number = |at: usize| {
        let bytes = header.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(bytes)))
    };
    let (method, length, extra) = (number(8)?, number(26)?, number(28)?);
    let name = header.get(NAME..NAME + length)?;
    let rest = header.get(NAME + length + extra..).unwrap_or_default();
    Some(Member { name, is_packed: method != 0, rest })
}

/// Returns the type of a package by its list of content types, which names the main part.
fn by_content_types(member: &Member<'_>) -> Option<Type> {
    let mut list = Vec::new();
    let outcome = if member.is_packed {
        DeflateDecoder::new(member.rest).take(CONTENT_TYPES_BYTES).read_to_end(&mut list)
    } else {
        member.rest.take(CONTENT_TYPES_BYTES).read_to_end(&mut list)
    };
    // The head may end within the list: the bytes unpacked so far are used.
    let (Ok(_) | Err(_)) = outcome;
    let parts: [(&[u8], Type); 5] = [
        (b"\"/word/", Type::Word),
        (b"\"/xl/workbook", Type::Excel),
        (b"\"/ppt/", Type::PowerPoint),
        (b"\"/visio/", Type::Drawing),
        (b"xps-fixeddocumentsequence", Type::PageLayout),
    ];
    let has = |part: &[u8]| memchr::memmem::find(&list, part).is_some();
    parts.into_iter().find(|(part, _)| has(part)).map(|(_, found)| found)
}

/// Returns the type of a compound file by the names in its directory. If the directory is not in
/// the head, the beginning of the first stream decides.
pub(super) fn in_ole(head: &[u8]) -> Option<Type> {
    in_directory(head).or_else(|| by_beginning(head.get(512..)?, STREAMS))
}

fn in_directory(head: &[u8]) -> Option<Type> {
    let shift = u16::from_le_bytes(head.get(0x1e..0x20)?.try_into().ok()?);
    // Sectors have 512 or 4,096 bytes; the header takes the place of one.
    let sector_bytes: u64 = if shift == 12 { 4_096 } else { 512 };
    let sector = u32::from_le_bytes(head.get(0x30..0x34)?.try_into().ok()?);
    let start = usize::try_from((u64::from(sector) + 1) * sector_bytes).ok()?;
    let entries = head.get(start..)?.chunks_exact(128).take(ENTRIES_MAX);
    let mut names = entries.map(|entry| {
        let name = entry.get(..64).unwrap_or_default();
        let units = name.chunks_exact(2).take_while(|it| *it != [0, 0]);
        // All names that are searched for are ASCII.
        units
            .map(|it| if it.get(1) == Some(&0) { it.first().copied() } else { None })
            .collect::<Option<Vec<u8>>>()
            .unwrap_or_default()
    });
    names.find_map(|name| match name.as_slice() {
        b"WordDocument" => Some(Type::Word),
        b"Workbook" | b"Book" => Some(Type::Excel),
        b"PowerPoint Document" => Some(Type::PowerPoint),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// Returns the start of a zip file with these members: name, content, whether packed.
    fn zip(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let mut file = Vec::new();
        for (name, content, packed) in members {
            let mut encoder =
                flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).unwrap();
            let data = if *packed { encoder.finish().unwrap() } else { content.to_vec() };
            file.extend(b"PK\x03\x04\x14\0\0\0");
            file.extend([if *packed { 8 } else { 0 }, 0]);
            file.extend([0; 16]);
            file.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
            file.extend([0; 2]);
            file.extend(name.as_bytes());
            file.extend(data);
        }
        file
    }

    #[test]
    fn zip_files_go_by_their_first_members() {
        let check = |members: &[(&str, &[u8], bool)], expected: Option<Type>| {
            assert_eq!(in_zip(&zip(members)), expected, "{members:?}");
        };
        let types = ("[Content_Types].xml", &b"<Types/>"[..], true);
        check(&[types, ("word/document.xml", b"x", true)], Some(Type::Word));
        check(
            &[types, ("_rels/.rels", b"x", true), ("xl/workbook.xml", b"", true)],
            Some(Type::Excel),
        );
        check(&[types, ("ppt/presentation.xml", b"x", true)], Some(Type::PowerPoint));
        for packed in [true, false] {
            let list = b"<Override PartName=\"/xl/workbook.xml\"/>";
            check(&[("[Content_Types].xml", list, packed)], Some(Type::Excel));
        }
        check(&[types], None);
        let odt = b"application/vnd.oasis.opendocument.text";
        check(&[("mimetype", odt, false)], Some(Type::OpenDocument));
        check(&[("mimetype", b"application/epub+zip", false)], Some(Type::Epub));
        check(&[("mimetype", b"text/plain", false)], None);
        check(&[("META-INF/", b"", false), ("META-INF/MANIFEST.MF", b"", true)], Some(Type::Jar));
        check(
            &[("a/__init__.py", b"", false), ("a-1.dist-info/WHEEL", b"", true)],
            Some(Type::Wheel),
        );
        check(&[("a.txt", b"word/", true)], None);
    }

    /// Returns a compound file whose directory is in sector `sector`.
    fn ole(sector: u32, names: &[&str]) -> Vec<u8> {
        let mut file = vec![0; 512 * (sector as usize + 2)];
        file[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
        file[0x1e] = 9;
        file[0x30..0x34].copy_from_slice(&sector.to_le_bytes());
        for (number, name) in names.iter().enumerate() {
            let at = 512 * (sector as usize + 1) + 128 * number;
            for (index, unit) in name.encode_utf16().enumerate() {
                file[at + 2 * index..at + 2 * index + 2].copy_from_slice(&unit.to_le_bytes());
            }
        }
        file
    }

    #[test]
    fn compound_files_go_by_their_directory_or_first_stream() {
        assert_eq!(in_ole(&ole(1, &["Root Entry", "WordDocument"])), Some(Type::Word));
        assert_eq!(in_ole(&ole(0, &["Root Entry", "Workbook"])), Some(Type::Excel));
        assert_eq!(in_ole(&ole(2, &["Root Entry", "PowerPoint Document"])), Some(Type::PowerPoint));
        assert_eq!(in_ole(&ole(2, &["Root Entry", "\u{5}SummaryInformation"])), None);
        let mut far = ole(3, &[]);
        far[0x30..0x34].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(in_ole(&far), None);
        far[512..514].copy_from_slice(b"\xec\xa5");
        assert_eq!(in_ole(&far), Some(Type::Word));
        assert_eq!(in_ole(b"\xd0\xcf"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end_quickly(bytes in proptest::collection::vec(any::<u8>(), 0..600), at in 0..600_usize) {
            let mut bytes = bytes;
            let at = at.min(bytes.len());
            bytes.splice(at..at, *b"PK\x03\x04");
            in_zip(&bytes);
            in_ole(&bytes);
        }
    }
}
