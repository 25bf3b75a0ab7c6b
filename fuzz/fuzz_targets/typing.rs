//! Fuzzing of typing: any name (up to the first NUL) and any content after it. The type has a name,
//! does not depend on the case of the file's name, and follows unmistakable content.

#![no_main]

use essence::typing::recognize;
use formats::Type;
use libfuzzer_sys::fuzz_target;

/// Magic numbers of text types, which hold for any bytes after them.
const TEXT: &[&[u8]] = &[
    b"#!",
    b"%!PS",
    b"\x04%!PS",
    b"{\\rtf",
    b"\xc5\xd0\xd3\xc6",
    b"\xff\xfe",
    b"\xfe\xff",
    b"!<symlink>",
];

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(split);
    let head = rest.get(1..).unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let kind = recognize(&name, head);
    assert!(!kind.name().is_empty() && !kind.name().contains(char::is_whitespace));
    assert_eq!(recognize(&name.to_ascii_uppercase(), head), kind, "{name:?}");
    if head.is_empty() {
        return;
    }
    let starts = |magic: &[u8]| head.starts_with(magic);
    match kind {
        _ if starts(b"%PDF-") => assert_eq!(kind, Type::Pdf),
        _ if starts(b"\x1f\x8b") => {
            assert!(matches!(kind, Type::Gzip | Type::GzipTar | Type::Crate));
        }
        // What Outlook attaches is binary.
        _ if starts(b"\x78\x9f\x3e\x22") && kind == Type::Mail => {}
        // A message of Outlook is a compound file.
        _ if starts(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") && kind == Type::Mail => {}
        // Pages with a NUL are read by browsers, too.
        _ if head.trim_ascii_start().starts_with(b"<") && kind == Type::Html => {}
        // Binary content has no text type, with any name.
        _ if head.contains(&0) && !TEXT.iter().any(|it| starts(it)) => {
            assert!(!kind.is_text(), "{name:?} is {kind:?}");
        }
        _ => {}
    }
    // Printable content is never typed as packed by its name alone.
    if head.iter().all(|it| (b' '..=b'~').contains(it)) && !starts(b"BZh") && !starts(b"LZIP") {
        assert!(!matches!(kind, Type::Gzip | Type::GzipTar | Type::Zip | Type::Compressed));
    }
});
