//! Files made byte by byte after their formats, for the hostile set, the samples of docs/formats.md
//! and the fuzz targets.

#![allow(dead_code, reason = "each that includes it uses a part of it")]

pub(crate) mod data;
pub(crate) mod office;

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, Crc};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn crc(bytes: &[u8]) -> u32 {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// Returns raw deflate data of `mebibytes` MiB of zeros, a thousandth of their length.
pub(crate) fn deflated_zeros(mebibytes: usize) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let mebibyte = vec![0; 1 << 20];
    // A flush ends at a full byte, and the second piece only refers back to zeros: repeat it.
    encoder.write_all(&mebibyte).unwrap();
    encoder.flush().unwrap();
    let first = encoder.get_ref().len();
    encoder.write_all(&mebibyte).unwrap();
    encoder.flush().unwrap();
    let mut bytes = encoder.get_ref().clone();
    let piece = bytes.split_off(first);
    bytes.extend(piece.repeat(mebibytes.saturating_sub(1)));
    bytes.extend([3, 0]);
    bytes
}

/// Returns `mebibytes` MiB of zeros in the format of zlib.
pub(crate) fn zlib_zeros(mebibytes: usize) -> Vec<u8> {
    let sum = u32::try_from((mebibytes << 20) % 65_521).unwrap() << 16 | 1;
    [&[0x78, 0xda][..], &deflated_zeros(mebibytes), &sum.to_be_bytes()].concat()
}

/// A member of a zip file.
pub(crate) struct Packed<'a> {
    pub(crate) name: &'a [u8],
    /// Stored bytes.
    pub(crate) data: &'a [u8],
    pub(crate) is_deflated: bool,
    pub(crate) sum: u32,
    /// Size when unpacked, in bytes.
    pub(crate) size: u32,
}

fn long(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_le_bytes()
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number & 0xffff).unwrap().to_le_bytes()
}

impl Packed<'_> {
    fn header(&self, signature: &[u8], made_by: &[u8]) -> Vec<u8> {
        let method = if self.is_deflated { 8_u16 } else { 0 };
        [
            signature,
            made_by,
            &[20, 0, 0, 8],
            &method.to_le_bytes(),
            &[0, 0, 0x21, 0x28],
            &self.sum.to_le_bytes(),
            &long(self.data.len()),
            &self.size.to_le_bytes(),
            &short(self.name.len()),
            &[0, 0],
        ]
        .concat()
    }
}

/// A zip file of these members, named `times` times each in its directory.
pub(crate) fn zip_of(members: &[Packed<'_>], times: usize) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let at = bytes.len();
        bytes.extend([&member.header(b"PK\x03\x04", b""), member.name, member.data].concat());
        let entry = member.header(b"PK\x01\x02", &[20, 0]);
        let entry = [&entry, &[0; 10][..], &long(at), member.name].concat();
        directory.extend(entry.repeat(times));
    }
    let (at, count) = (bytes.len(), members.len() * times);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([short(count), short(count)].concat());
    bytes.extend([long(directory.len()), long(at)].concat());
    bytes.extend([0, 0]);
    bytes
}

/// A zip file of these files, not compressed.
pub(crate) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let members = files.iter().map(|(name, data)| Packed {
        name: name.as_bytes(),
        data,
        is_deflated: false,
        sum: crc(data),
        size: u32::try_from(data.len()).unwrap(),
    });
    zip_of(&members.collect::<Vec<_>>(), 1)
}

/// A zip file with one member of `mebibytes` MiB of zeros.
pub(crate) fn zip_of_zeros(name: &str, mebibytes: usize) -> Vec<u8> {
    let size = u32::try_from(mebibytes << 20).unwrap();
    let (name, data) = (name.as_bytes(), &*deflated_zeros(mebibytes));
    zip_of(&[Packed { name, data, is_deflated: true, sum: 0, size }], 1)
}

/// The header of a member of a tar; `kind` is `0` for a file.
pub(crate) fn tar_header(name: &[u8], size: &[u8; 12], kind: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    let name = &name[..name.len().min(100)];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(size);
    header[136..148].copy_from_slice(b"00000250600\0");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    tar_sum(&mut header);
    header
}

pub(crate) fn tar_sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|it| u32::from(*it)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub(crate) fn tar_size(size: usize) -> [u8; 12] {
    format!("{size:011o}\0").into_bytes().try_into().unwrap()
}

pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        bytes.extend(tar_header(name.as_bytes(), &tar_size(content.len()), b'0'));
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// An ar archive with names as they are written in the headers.
pub(crate) fn ar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in files {
        let size = content.len();
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 86_400, 0, 0, 644);
        bytes.extend([header.as_bytes(), content].concat());
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

/// A cpio archive in the format that RPM packages use.
pub(crate) fn cpio(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files.iter().copied().chain([("TRAILER!!!", &b""[..])]) {
        let (size, name_bytes) = (content.len(), name.len() + 1);
        bytes.extend(format!("070701{:08x}{:08x}{:024x}", 1, 0o100_644, 1).bytes());
        bytes.extend(format!("{:08x}{size:08x}{:032x}{name_bytes:08x}{:08x}", 0, 0, 0).bytes());
        bytes.extend([name.as_bytes(), b"\0"].concat());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

pub(crate) fn deb(control: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let control = gzip(&tar(&[("./control", control.as_bytes())]));
    ar(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &control),
        ("data.tar.gz", &gzip(&tar(files))),
    ])
}

/// An RPM package: tags with a text each, then a cpio archive.
pub(crate) fn rpm(tags: &[(u32, &str)], payload: &[u8]) -> Vec<u8> {
    let header = |tags: &[(u32, &str)]| {
        let (mut index, mut values) = (Vec::new(), Vec::new());
        for (tag, value) in tags {
            let offset = u32::try_from(values.len()).unwrap();
            index.extend([*tag, 6, offset, 1].into_iter().flat_map(u32::to_be_bytes));
            values.extend([value.as_bytes(), b"\0"].concat());
        }
        let counts = [tags.len(), values.len()].map(|it| u32::try_from(it).unwrap());
        let counts: Vec<u8> = counts.into_iter().flat_map(u32::to_be_bytes).collect();
        [b"\x8e\xad\xe8\x01\0\0\0\0".as_slice(), &counts, &index, &values].concat()
    };
    let mut bytes = [b"\xed\xab\xee\xdb".as_slice(), &[0; 92], &header(&[(1000, "x")])].concat();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    [bytes, header(tags), payload.to_vec()].concat()
}

/// A file in BinHex 4.0 with the data `packed`; only the checksum of the header is right.
pub(crate) fn binhex(name: &str, size: u32, packed: &[u8]) -> Vec<u8> {
    let name = [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    let header = [&name, &b"\0TEXTttxt\0\0"[..], &size.to_be_bytes(), &[0; 4]].concat();
    let sum = header.iter().chain(&[0, 0]).fold(0, |sum: u32, byte| {
        (0..8).rev().fold(sum, |sum, bit| {
            let sum = sum << 1 | u32::from(byte >> bit & 1);
            if sum & 0x1_0000 == 0 { sum } else { sum ^ 0x1_1021 }
        })
    });
    let sum = u16::try_from(sum & 0xffff).unwrap().to_be_bytes();
    let all = [&header, &sum[..], packed, &[0; 4]].concat();
    let alphabet = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr";
    let mut bytes = b"(This file must be converted with BinHex 4.0)\n\n:".to_vec();
    for (number, three) in all.chunks(3).enumerate() {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for shift in [18, 12, 6, 0].into_iter().take(three.len() + 1) {
            bytes.push(alphabet[usize::try_from(bits >> shift & 63).unwrap()]);
        }
        if number % 16 == 15 {
            bytes.push(b'\n');
        }
    }
    bytes.extend(b":\n");
    bytes
}

/// Writes a PDF of `objects`, numbered from 1; the first is the catalog.
pub(crate) fn pdf(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes
            .extend([format!("{} 0 obj\n", number + 1).as_bytes(), object, b"\nendobj\n"].concat());
    }
    let start = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for offset in offsets {
        bytes.extend(format!("{offset:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    bytes.extend(format!("trailer\n<</Size {size}/Root 1 0 R{trailer}>>\n").bytes());
    bytes.extend(format!("startxref\n{start}\n%%EOF\n").bytes());
    bytes
}

/// An object of a PDF with a stream.
pub(crate) fn pdf_stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let front = format!("<<{dictionary}/Length {}>>\nstream\n", data.len());
    [front.as_bytes(), data, b"\nendstream"].concat()
}

/// A PDF of one page whose content is object 4, with these resources and more objects from 5 on.
pub(crate) fn pdf_page(content: Vec<u8>, resources: &str, more: Vec<Vec<u8>>) -> Vec<u8> {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<{resources}>>>>"
        )
        .into_bytes(),
        content,
    ];
    objects.extend(more);
    pdf(&objects, "")
}

/// A font for [`pdf_page`].
pub(crate) const HELVETICA: &str = "/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>";
