//! Any name (up to the first NUL) and any content after it: a type with a name, the same whatever the
//! case of the file's name, and content that cannot be mistaken decides.

#![no_main]

use essence::typing::recognize;
use formats::Type;
use libfuzzer_sys::fuzz_target;

/// How text begins that a magic number makes text whatever follows.
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
    let found = recognize(&name, head);
    assert!(!found.name().is_empty() && !found.name().contains(char::is_whitespace));
    assert_eq!(recognize(&name.to_ascii_uppercase(), head), found, "{name:?}");
    if head.is_empty() {
        return;
    }
    let starts = |magic: &[u8]| head.starts_with(magic);
    match found {
        _ if starts(b"%PDF-") => assert_eq!(found, Type::Pdf),
        _ if starts(b"\x1f\x8b") => {
            assert!(matches!(found, Type::Gzip | Type::GzipTar | Type::Crate));
        }
        // What is not text has no type of text, whatever it is called.
        _ if head.contains(&0) && !TEXT.iter().any(|it| starts(it)) => {
            assert!(!found.is_text(), "{name:?} is {found:?}");
        }
        _ => {}
    }
    // What is all printable is never taken for something packed because of its name.
    if head.iter().all(|it| (b' '..=b'~').contains(it)) && !starts(b"BZh") && !starts(b"LZIP") {
        assert!(!matches!(found, Type::Gzip | Type::GzipTar | Type::Zip | Type::Compressed));
    }
});
