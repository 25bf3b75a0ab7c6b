//! Tests of all container formats, on containers built by each format's definition.

use std::io::Cursor;

use lzma_rust2::{LzipOptions, LzipWriter, LzmaOptions, LzmaWriter, XzOptions, XzWriter};

use super::builders::{ar, deb};
use super::*;

/// Compresses `bytes` as one stream.
pub(crate) fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::Gzip => gzip(bytes),
        Packing::Compress => lzw::tests::compress(bytes, 16),
        Packing::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Packing::Xz => {
            let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        Packing::Lzma => {
            let options = LzmaOptions::with_preset(0);
            let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, None).unwrap();
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        Packing::Lzip => {
            let mut writer = LzipWriter::new(Vec::new(), LzipOptions::with_preset(0));
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        Packing::Zstd => zstd::stream::encode_all(bytes, 1).unwrap(),
    }
}

/// Returns a cpio archive: `c` for newc with a sum, `n` without, `o` for odc, `b` for old binary.
pub(crate) fn cpio(kind: char, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files.iter().copied().chain([("TRAILER!!!", &b""[..])]) {
        let (names, size) = (name.len() + 1, bytes.len());
        let sum: u32 = bytes.iter().map(|it| u32::from(*it)).sum();
        let align = match kind {
            'c' | 'n' => {
                let (magic, sum) = if kind == 'c' { (2, sum) } else { (1, 0) };
                let mode = 0o100_644;
                let front = format!("07070{magic}{:08x}{mode:08x}{:08x}{:08x}{:08x}", 1, 0, 0, 1);
                let rest = format!("{:08x}{size:08x}{:032x}{names:08x}{sum:08x}", 86_400, 0);
                out.extend(format!("{front}{rest}").into_bytes());
                4
            }
            'o' => {
                let front = format!("070707{:06o}{:06o}{:06o}", 0, 1, 0o100_644);
                let rest = format!("{:018o}{:06o}{:011o}{names:06o}{size:011o}", 1, 0, 86_400);
                out.extend(format!("{front}{rest}").into_bytes());
                1
            }
            _ => {
                let mut words = vec![0o070_707, 0, 1, 0o100_644, 0, 0, 1, 0];
                words.extend([1, 86_400 & 0xffff, names, size >> 16, size & 0xffff]);
                for word in words {
                    out.extend(u16::try_from(word).unwrap().to_le_bytes());
                }
                2
            }
        };
        out.extend(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(align), 0);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(align), 0);
    }
    out
}

/// Returns an RPM package.
pub(crate) fn rpm(tags: &[(u32, &str)], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 96];
    out[..4].copy_from_slice(b"\xed\xab\xee\xdb");
    let header = |tags: &[(u32, &str)]| {
        let (mut index, mut values) = (Vec::new(), Vec::new());
        for (tag, value) in tags {
            for number in [*tag, 6, u32::try_from(values.len()).unwrap(), 1] {
                index.extend(number.to_be_bytes());
            }
            values.extend(value.as_bytes());
            values.push(0);
        }
        let mut out = b"\x8e\xad\xe8\x01\0\0\0\0".to_vec();
        out.extend(u32::try_from(tags.len()).unwrap().to_be_bytes());
        out.extend(u32::try_from(values.len()).unwrap().to_be_bytes());
        out.extend(index);
        out.extend(values);
        out
    };
    out.extend(header(&[(1000, "x")]));
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend(header(tags));
    out.extend(payload);
    out
}

pub(crate) fn sevenz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    for (name, bytes) in files {
        let entry = sevenz_rust2::ArchiveEntry::new_file(name);
        writer.push_archive_entry(entry, Some(*bytes)).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns a file in BinHex 4.0 with a resource fork; `packed_data` is `data` with its runs packed.
pub(crate) fn binhex(name: &str, data: &[u8], packed_data: &[u8]) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        // The long division of the RFC: the CRC of the bytes and two zeros.
        let mut sum = 0_u32;
        for byte in bytes.iter().chain(&[0, 0]) {
            for bit in (0..8).rev() {
                sum = sum << 1 | u32::from(byte >> bit & 1);
                if sum & 0x1_0000 != 0 {
                    sum ^= 0x1_1021;
                }
            }
        }
        u16::try_from(sum & 0xffff).unwrap().to_be_bytes()
    };
    let mut header = vec![u8::try_from(name.len()).unwrap()];
    header.extend(name.as_bytes());
    header.extend(b"\0TEXTttxt\0\0");
    header.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    header.extend(2_u32.to_be_bytes());
    let header = [header.as_slice(), &sum(&header)].concat();
    let all = [&header, packed_data, &sum(data), b"rs", &sum(b"rs")].concat();
    let alphabet = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr";
    let bits: Vec<u8> =
        all.iter().flat_map(|it| (0..8).rev().map(move |at| it >> at & 1)).collect();
    let mut out = b"From: x\n\n(This file must be converted with BinHex 4.0)\n\n:".to_vec();
    for (number, six) in bits.chunks(6).enumerate() {
        let value = (0..6).fold(0, |value, at| value << 1 | six.get(at).copied().unwrap_or(0));
        out.push(alphabet[usize::from(value)]);
        if number % 64 == 62 {
            out.push(b'\n');
        }
    }
    out.extend(b":\n");
    out
}

#[test]
fn every_compression_is_recognized_and_opened() {
    let text = "the quick brown fox ".repeat(500);
    for packing in Packing::ALL.iter().copied() {
        let bytes = packed(packing, text.as_bytes());
        let twice = match packing {
            // These two formats have no members.
            Packing::Compress | Packing::Lzma => bytes.clone(),
            _ => bytes.repeat(2),
        };
        let object = Object::whole("http://h.example/words.txt.x", twice);
        assert_eq!(Format::of(&object, Type::Compressed), Some(Format::Stream(packing)));
        assert_eq!(Format::of(&object, Type::CompressedTar), Some(Format::PackedTar(packing)));
        let opened = unpack(&object, packing, &Budget::new(LIMITS, &|| false), &|_, _| usize::MAX);
        assert_eq!(opened.problems, [], "{packing:?}");
        let times = opened.bytes.len() / text.len();
        assert_eq!(times, if object.bytes.len() == bytes.len() { 1 } else { 2 }, "{packing:?}");
        assert!(opened.bytes.starts_with(text.as_bytes()) && !opened.truncated, "{packing:?}");

        let cut = Object::whole("http://h.example/x", bytes[..bytes.len() / 2].to_vec());
        let opened = unpack(&cut, packing, &Budget::new(LIMITS, &|| false), &|_, _| usize::MAX);
        // compress data has no end mark.
        assert_eq!(opened.problems.len(), usize::from(packing != Packing::Compress), "{packing:?}");

        let tar = packed(packing, &tarball(&[("a", b"one")]));
        check(Format::PackedTar(packing), &tar, &["http://h.example/a#a 3 one"]);
    }
}

#[test]
fn cpio_in_all_its_formats() {
    for kind in ['c', 'n', 'o', 'b'] {
        let bytes = cpio(kind, &[("./a", b"one"), ("d/b.txt", b"seven")]);
        let object = Object::whole("http://h.example/a", bytes.clone());
        assert_eq!(Format::of(&object, Type::Archive), Some(Format::Cpio), "{kind}");
        check(
            Format::Cpio,
            &bytes,
            &["http://h.example/a#a 3 one", "http://h.example/a#d/b.txt 5 seven"],
        );
    }
    let mut bytes = cpio('c', &[("a", b"one")]);
    let at = memchr::memmem::find(&bytes, b"one").unwrap();
    bytes[at] = b'O';
    check(
        Format::Cpio,
        &bytes,
        &[
            "http://h.example/a#a 3 One",
            "! broken: http://h.example/a#a: has another sum than it should",
        ],
    );
}

#[test]
fn a_cpio_file_with_several_names_is_one_member() {
    // Names with contents and the numbers of their files.
    let names: &[(&str, &[u8], u8)] =
        &[("a", b"", 1), ("b", b"", 1), ("x", b"", 2), ("y", b"one", 2), ("z", b"", 2)];
    let mut bytes = Vec::new();
    for (name, content, file) in names {
        let mut one = cpio('n', &[(name, content)]);
        let end = memchr::memmem::rfind(&one, b"070701").unwrap();
        one[13] = b'0' + file;
        one[45] = b'2';
        bytes.extend(&one[..end]);
    }
    bytes.extend(cpio('n', &[]));
    check(Format::Cpio, &bytes, &["http://h.example/a#y 3 one", "http://h.example/a#b 0 "]);
}

#[test]
fn ar_has_long_names_of_gnu_and_bsd() {
    let bytes = ar(&[
        ("/", b"\0\0\0\0"),
        ("//", b"a-rather-long-name.o/\nanother-one.o/\n"),
        ("short.o/", b"one"),
        ("/22", b"two"),
        ("#1/20", b"name-of-the-bsds.o\0\0three"),
    ]);
    let object = Object::whole("http://h.example/a", bytes.clone());
    assert_eq!(Format::of(&object, Type::Archive), Some(Format::Ar));
    check(
        Format::Ar,
        &bytes,
        &[
            "http://h.example/a#short.o 3 one",
            "http://h.example/a#another-one.o 3 two",
            "http://h.example/a#name-of-the-bsds.o 5 three",
        ],
    );
}

const CONTROL: &str = "Package: hello\nVersion: 2.10-3\nArchitecture: amd64\n\
    Maintainer: Ann <ann@h.example>\nHomepage: https://hello.example/\n\
    Description: example package\n A longer text.\n .\n Its second paragraph.\n";

#[test]
fn a_debian_package_has_files_and_metadata() {
    let bytes = deb(CONTROL, &[("./usr/share/doc/hello/README", b"Read me")]);
    check(Format::Deb, &bytes, &["http://h.example/a#usr/share/doc/hello/README 7 Read me"]);
    let object = Object::whole("http://h.example/a", bytes);
    assert_eq!(Format::of(&object, Type::Deb), Some(Format::Deb));
    let about = members(&object, Format::Deb, &Budget::new(LIMITS, &|| false), &mut |_| {}).about;
    let about = about.unwrap();
    assert_eq!((about.title.as_str(), about.description.as_str()), ("hello", "example package"));
    assert_eq!(about.r#abstract, "A longer text.\n\nIts second paragraph.");
    assert_eq!(about.authors, ["Ann <ann@h.example>"]);
    assert_eq!(about.references, ["https://hello.example/"]);
    let others = [("Package", "hello"), ("Version", "2.10-3"), ("Architecture", "amd64")];
    assert_eq!(about.others, others.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn an_rpm_package_has_files_and_metadata() {
    let tags = [(1000, "hello"), (1001, "2.10"), (1002, "3"), (1004, "Greets"), (1014, "GPL-3.0")];
    let payload = cpio('n', &[("./usr/bin/hello", b"#!")]);
    for payload in [
        payload.clone(),
        gzip(&payload),
        packed(Packing::Zstd, &payload),
        packed(Packing::Xz, &payload),
    ] {
        let bytes = rpm(&tags, &payload);
        check(Format::Rpm, &bytes, &["http://h.example/a#usr/bin/hello 2 #!"]);
        let object = Object::whole("http://h.example/a", bytes);
        let budget = Budget::new(LIMITS, &|| false);
        let about = members(&object, Format::Rpm, &budget, &mut |_| {}).about.unwrap();
        assert_eq!((about.title.as_str(), about.description.as_str()), ("hello", "Greets"));
        let others = [("Package", "hello"), ("Version", "2.10-3"), ("License", "GPL-3.0")];
        assert_eq!(about.others, others.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

#[test]
fn seven_zip() {
    let bytes = sevenz(&[("d/a.txt", b"one"), ("empty", b""), ("b", b"two two")]);
    check(
        Format::SevenZip,
        &bytes,
        &[
            "http://h.example/a#d/a.txt 3 one",
            "http://h.example/a#b 7 two two",
            "http://h.example/a#empty 0 ",
        ],
    );
}

#[test]
fn uuencoded_and_base64() {
    check(
        Format::Uuencoded,
        b"Some words.\nbegin 644 cat.txt\n#0V%T\n`\nend\nmore\nbegin-base64 644 d/x\nQ2F0cw==\n====\n",
        &["http://h.example/a#cat.txt 3 Cat", "http://h.example/a#d/x 4 Cats"],
    );
    check(
        Format::Uuencoded,
        b"begin 644 cat.txt\n#0V%T\n",
        &[
            "http://h.example/a#cat.txt 3 Cat",
            "! broken: http://h.example/a#cat.txt: breaks off before its end",
        ],
    );
    check(
        Format::Uuencoded,
        b"begin reading 644 pages\n",
        &["! broken: http://h.example/a: holds no uuencoded file"],
    );
}

#[test]
fn shell_archives_are_read_and_not_run() {
    let kind = |text: &'static [u8]| {
        let shell = Type::Source(crate::Language::Shell);
        Format::of(&Object::whole("http://h.example/a", text), shell)
    };
    assert_eq!(kind(b"#! /bin/sh\n# This is a shell archive.\n"), Some(Format::Shar));
    assert_eq!(kind(b"#! /bin/sh\ncat << EOF > x\nEOF\n"), None);
    check(
        Format::Shar,
        b"#! /bin/sh\n# This is a shell archive.\n\
          if test -f a; then echo x; fi\n\
          sed 's/^X//' >'d/a.c' <<'END_OF_FILE'\nXint x;\nX  y\nEND_OF_FILE\n\
          cat << \\SHAR_EOF > 'b'\n$(rm -rf /)\nSHAR_EOF\n\
          cat << \\SHAR_EOF >> 'b'\nmore\nSHAR_EOF\n\
          sed 's/^X//' << 'SHAR_EOF' | uudecode &&\nXbegin 644 cat.txt\nX#0V%T\nX`\nXend\nSHAR_EOF\n\
          sed 's/^X//' > cut << 'SHAR_EOF'\nXend",
        &[
            "http://h.example/a#d/a.c 11 int x;\n  y\n",
            "http://h.example/a#b 17 $(rm -rf /)\nmore\n",
            "http://h.example/a#cat.txt 3 Cat",
            "http://h.example/a#cut 4 end\n",
            "! broken: http://h.example/a#cut: breaks off before its end",
        ],
    );
}

#[test]
fn binhex_with_runs() {
    let data = b"aaaaaa\x90b";
    let packed = b"a\x90\x06\x90\0b";
    let bytes = binhex("My file", data, packed);
    let object = Object::whole("http://h.example/a", bytes.clone());
    assert_eq!(Format::of(&object, Type::MacCompressed), Some(Format::BinHex));
    check(Format::BinHex, &bytes, &["http://h.example/a#My%20file 8 aaaaaa\u{fffd}b"]);
    check(
        Format::BinHex,
        &binhex("My file", data, b"a\x90\x06\x90\0c"),
        &[
            "http://h.example/a#My%20file 8 aaaaaa\u{fffd}c",
            "! broken: http://h.example/a#My%20file: has another sum than it should",
        ],
    );
}

#[test]
fn attachments_of_a_message() {
    let inner = "From: c@c.example\nSubject: inner\n\ninner words\n";
    let mail = format!(
        "From: a@a.example\nTo: b@b.example\nSubject: s\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nHello\n\
         --B\nContent-Type: application/pdf; name=\"p.pdf\"\nContent-Transfer-Encoding: base64\n\n\
         JVBERi0=\n--B\nContent-Type: application/x-y; name=\"p.pdf\"\n\nagain\n\
         --B\nContent-Type: message/rfc822\n\n{inner}\n--B--\n"
    );
    let seen = open(Format::Message, mail.as_bytes(), LIMITS);
    assert_eq!(seen[0], "http://h.example/a#p.pdf 5 %PDF-");
    assert!(seen[1].starts_with("http://h.example/a#2/p.pdf 5 again"), "{seen:?}");
    assert!(seen[2].starts_with("http://h.example/a#3.eml "), "{seen:?}");
    assert!(seen[2].ends_with("From: c@c.example\nSu"), "{seen:?}");
    let kind =
        |text: &str| Format::of(&Object::whole("http://h.example/a", text.to_owned()), Type::Mail);
    assert_eq!(kind(&mail), Some(Format::Message));
    assert_eq!(kind("From: a@a.example\nSubject: s\n\nand/or\n"), None);
}

#[test]
fn messages_of_a_mailbox() {
    check(
        Format::Mailbox,
        b"From a@a Mon Jan  1 00:00:00 2024\nSubject: one\nMessage-ID:\n <1@a.example>\n\nFirst\n\
          From here on\n>From there\n>>From nowhere\n\n\
          From b@b Mon Jan  1 00:00:00 2024\nSubject: two\n\nSecond\n\n\
          From me.\nNo field\n",
        &[
            "http://h.example/a#1%40a.example 86 Subject: one\nMessage",
            "http://h.example/a#2 40 Subject: two\n\nSecond",
        ],
    );
    let object =
        Object::whole("http://h.example/a", &b"From a@a x\nA: b\n\n>From c\n>>From d\n"[..]);
    let mut texts = Vec::new();
    members(&object, Format::Mailbox, &Budget::new(LIMITS, &|| false), &mut |it| {
        texts.push((it.object.name, it.object.bytes));
    });
    assert_eq!(texts, [("1.eml".to_owned(), b"A: b\n\nFrom c\n>From d\n".to_vec().into())]);
}

#[test]
fn packages_have_metadata() {
    let about = |format: Format, bytes: Vec<u8>| {
        let object = Object::whole("http://h.example/a", bytes);
        let about = members(&object, format, &Budget::new(LIMITS, &|| false), &mut |_| {}).about;
        let about = about.unwrap();
        let others = about.others.iter().map(|(name, value)| format!("{name}: {value}"));
        let others = others.collect::<Vec<_>>().join("; ");
        let authors = about.authors.join("; ");
        format!(
            "{} | {} | {authors} | {others} | {}",
            about.title,
            about.description,
            about.references.join(" ")
        )
    };
    let metadata = b"Metadata-Version: 2.1\nName: pip\nVersion: 24.0\nSummary: Installs\n\
        Author-email: Ann <a@a.example>\nLicense: MIT\nProject-URL: Source, https://p.example/\n\npip\n===\n";
    assert_eq!(
        about(Format::Zip, zipped(&[("pip/a.py", b""), ("pip-24.0.dist-info/METADATA", metadata)])),
        "pip | Installs | Ann <a@a.example> | Package: pip; Version: 24.0; License: MIT | \
         https://p.example/"
    );
    let manifest = b"[package]\nname = \"c\"\nversion = \"1.2.3\"\nauthors = [\"A\"]\n\
        description = \"d\"\nlicense = \"MIT\"\nrepository = \"https://r.example\"\n";
    assert_eq!(
        about(
            Format::PackedTar(Packing::Gzip),
            gzip(&tarball(&[("c-1.2.3/Cargo.toml", manifest)]))
        ),
        "c | d | A | Package: c; Version: 1.2.3; License: MIT | https://r.example"
    );
    let manifest =
        b"Manifest-Version: 1.0\r\nCreated-By: 17\r\nBundle-Name: A long\r\n er name\r\n\
        Bundle-SymbolicName: org.x;singleton:=true\r\nBundle-Version: 1.0\r\n\r\n";
    assert_eq!(
        about(Format::Zip, zipped(&[("META-INF/MANIFEST.MF", manifest)])),
        "A longer name |  |  | Package: org.x; Version: 1.0; Generator: 17 | "
    );
}
