//! Bombs: files that unpack to far more than their size, or to themselves.

use std::io::Write as _;

use lzma_rust2::{LzipOptions, LzipWriter, XzOptions, XzWriter};

use crate::made::{Packed, ar, deflated_zeros, gzip, rpm, tar, tar_header, tar_size};
use crate::made::{zip, zip_of, zip_of_zeros};
use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("gigabyte.gz", "", || gigabyte(gzip)),
    case("gigabyte.tar.gz", "limit", || tarred(gzip)),
    case("gigabyte.bz2", "", || gigabyte(bzip2)),
    case("gigabyte.tar.bz2", "limit", || tarred(bzip2)),
    case("gigabyte.xz", "", || gigabyte(xz)),
    case("gigabyte.tar.xz", "limit", || tarred(xz)),
    case("gigabyte.lz", "", || gigabyte(lzip)),
    case("gigabyte.zst", "", || gigabyte(zstd)),
    case("gigabyte.tar.zst", "limit", || tarred(zstd)),
    case("gigabyte.lzma", "", || lzma(1 << 30)),
    // Zeros are the end of a tar.
    case("gigabyte.tar.lzma", "", || lzma(1 << 30)),
    case("gigabyte.7z", "limit", || sevenz(1 << 30)),
    case("gigabyte.zip", "limit", || zip_of_zeros("zeros.tar", 1024)),
    case("gigabyte.Z", "", growing_codes),
    case("gigabyte.tar.Z", "", growing_codes),
    case("gigabyte.deb", "broken|limit", || {
        ar(&[("debian-binary", b"2.0\n"), ("data.tar.gz", &tarred(gzip))])
    }),
    case("gigabyte.rpm", "broken|limit", || rpm(&[(1000, "x")], &gigabyte(gzip))),
    case("text.zip", "limit", || {
        let text = gzip(&b"many words\n".repeat(MIB / 11)).repeat(300);
        zip(&[("words.txt.gz", &text), ("more.tar.gz", &tarred(gzip))])
    }),
    case("quine.gz", "limit", quine),
    case("quine.zip", "limit|broken", || zip(&[("quine.gz", &quine())])),
    case("itself.zip", "limit|broken", itself),
    case("forty-two.zip", "limit", || nested(5, "zeros.tar", &vec![0; 10 * MIB])),
    case("nested16x5.zip", "limit", || nested(4, "words.txt", &distinct_words())),
    case("matryoshka.zip", "limit", || {
        // Each layer holds nearly all of the object.
        (0..7).fold(vec![b' '; 30 * MIB], |inner, _| zip(&[("x.zip", &inner)]))
    }),
    case("overlapping.zip", "limit", || {
        let data = &*deflated_zeros(10);
        let (size, sum) = (u32::try_from(10 * MIB).unwrap(), 0);
        zip_of(&[Packed { name: b"kernel", data, is_deflated: true, sum, size }], 60_000)
    }),
    case("deep.gz", "limit", || (0..40).fold(b"kernel".to_vec(), |inner, _| gzip(&inner))),
    case("deep.tar.gz", "limit", || {
        let layer = |inner: Vec<u8>, number: usize| match number % 3 {
            0 => zip(&[("x.tar.gz", &inner), ("words.txt", b"some words")]),
            1 => tar(&[("x.zip", &inner)]),
            _ => gzip(&inner),
        };
        (0..60).fold(b"kernel".to_vec(), layer)
    }),
    case("million.tar.gz", "limit", || {
        let header = tar_header(b"member", &tar_size(0), b'0');
        gzip(&header.repeat(1024)).repeat(1024)
    }),
    case("names.tar.gz", "limit", || {
        let long = [tar_header(b"././@LongLink", &tar_size(4 * MIB), b'L'), vec![b'n'; 4 * MIB]];
        let member = [long.concat(), tar_header(b"x", &tar_size(0), b'0')].concat();
        gzip(&member).repeat(200)
    }),
];

/// Returns 1,024 MiB of zeros, each packed for itself.
fn gigabyte(pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    pack(&vec![0; MIB]).repeat(1024)
}

/// Returns a packed tar with a member of 1,024 MiB of zeros.
fn tarred(pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let header = tar_header(b"zeros", &tar_size(1 << 30), b'0');
    [pack(&header), gigabyte(pack)].concat()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn lzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = LzipWriter::new(Vec::new(), LzipOptions::with_preset(0));
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

/// Returns LZW codes, each for one byte more than the code before it: 2 GiB in 128 KiB.
fn growing_codes() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x9d, 0x90];
    let (mut width, mut group): (usize, Vec<usize>) = (9, Vec::new());
    let codes: Vec<usize> = [0].into_iter().chain(257..65_536).collect();
    // Each code read, except the first, defines one more. Eight codes in a group have one width.
    for (known, code) in codes.into_iter().enumerate() {
        let known = 257 + known.saturating_sub(1);
        if (1 << width <= known && width < 16) || group.len() == 8 {
            bytes.extend(packed_codes(&group, width, 8));
            group.clear();
        }
        while 1 << width <= known && width < 16 {
            width += 1;
        }
        group.push(code);
    }
    bytes.extend(packed_codes(&group, width, group.len()));
    bytes
}

fn packed_codes(group: &[usize], width: usize, places: usize) -> Vec<u8> {
    let places = if group.is_empty() { 0 } else { places };
    let mut bytes = vec![0; (places * width).div_ceil(8)];
    for (number, code) in group.iter().enumerate() {
        for bit in (0..width).filter(|bit| code >> bit & 1 == 1) {
            let at = number * width + bit;
            bytes[at / 8] |= 1 << (at % 8);
        }
    }
    bytes
}

/// Range coder for the few symbols of zeros.
struct Coder {
    low: u64,
    range: u32,
    cache: u8,
    pending: u64,
    bytes: Vec<u8>,
}

impl Coder {
    fn shift(&mut self) {
        if self.low < 0xff00_0000 || 0xffff_ffff < self.low {
            let carry = u8::try_from(self.low >> 32).unwrap();
            let mut next = self.cache;
            while 0 < self.pending {
                self.bytes.push(next.wrapping_add(carry));
                next = 0xff;
                self.pending -= 1;
            }
            self.cache = u8::try_from(self.low >> 24 & 0xff).unwrap();
        }
        self.pending += 1;
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// Codes a bit by the likelihood of a zero, in 2048ths, and updates the likelihood.
    fn bit(&mut self, likely: &mut u32, bit: bool) {
        let bound = (self.range >> 11) * *likely;
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
            *likely -= *likely >> 5;
        } else {
            self.range = bound;
            *likely += (2048 - *likely) >> 5;
        }
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
    }
}

/// Returns raw LZMA of `count` zeros: a literal, then maximal matches with the byte before.
fn lzma_zeros(count: u64) -> Vec<u8> {
    let mut coder = Coder { low: 0, range: u32::MAX, cache: 0, pending: 1, bytes: Vec::new() };
    let fresh = || 1024_u32;
    // Indexed by the state and the two lowest bits of the position (settings byte 0x5d).
    let mut is_match = [fresh(); 12 * 4];
    let (mut is_rep, mut is_rep0) = ([fresh(); 12], [fresh(); 12]);
    let mut is_long = [fresh(); 12 * 4];
    let (mut is_middle, mut is_high, mut high) = (fresh(), fresh(), [fresh(); 256]);
    coder.bit(&mut is_match[0], false);
    for _ in 0..8 {
        coder.bit(&mut fresh(), false);
    }
    let (mut at, mut state) = (1, 0);
    // The rest is shorter than one match; [`whole`] leaves it out.
    for _ in 0..(count - 1) / 273 {
        let low_bits = usize::try_from(at & 3).unwrap();
        coder.bit(&mut is_match[state * 4 + low_bits], true);
        coder.bit(&mut is_rep[state], true);
        coder.bit(&mut is_rep0[state], false);
        coder.bit(&mut is_long[state * 4 + low_bits], true);
        coder.bit(&mut is_middle, true);
        coder.bit(&mut is_high, true);
        let mut node = 1;
        for _ in 0..8 {
            coder.bit(&mut high[node], true);
            node = node << 1 | 1;
        }
        state = if state < 7 { 8 } else { 11 };
        at += 273;
    }
    for _ in 0..5 {
        coder.shift();
    }
    coder.bytes
}

/// Returns how many of `count` zeros [`lzma_zeros`] contains.
fn whole(count: u64) -> u64 {
    1 + (count - 1) / 273 * 273
}

fn lzma(count: u64) -> Vec<u8> {
    let front = [&[0x5d, 0, 0, 0x10, 0], &whole(count).to_le_bytes()[..]].concat();
    [front, lzma_zeros(count)].concat()
}

/// A 7-Zip archive of one file of zeros.
fn sevenz(count: u64) -> Vec<u8> {
    let data = lzma_zeros(count);
    let number = |it: u64| [&[0xff], &it.to_le_bytes()[..]].concat();
    let size = number(whole(count));
    let name: Vec<u8> = "zeros.tar\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let header = [
        // Streams: one, packed, from the start.
        &[1, 4, 6, 0, 1, 9][..],
        &number(data.len() as u64),
        // One folder of one coder: LZMA, with its five bytes of settings.
        &[0, 7, 0x0b, 1, 0, 1, 0x23, 3, 1, 1, 5, 0x5d, 0, 0, 0x10, 0, 0x0c],
        &size,
        // One file, with its name.
        &[0, 8, 0, 0, 5, 1, 0x11],
        &[u8::try_from(name.len() + 1).unwrap(), 0],
        &name,
        &[0, 0],
    ]
    .concat();
    let places = [data.len() as u64, header.len() as u64].map(u64::to_le_bytes).concat();
    let start = [&places[..], &crate::made::crc(&header).to_le_bytes()].concat();
    let sum = crate::made::crc(&start).to_le_bytes();
    [b"7z\xbc\xaf\x27\x1c\0\x04", &sum[..], &start, &data, &header].concat()
}

/// Returns gzip that unpacks to itself (Cox, "Zip files all the way down", 2010): stored pieces,
/// and commands to repeat the last twenty bytes, in units of five bytes. The name in the header
/// makes every repeated part four units long. The checksum is wrong, which shows only at the end.
fn quine() -> Vec<u8> {
    let front: &[u8] = b"\x1f\x8b\x08\x08\0\0\0\0\x02\xffq.gz\0";
    let (one, four): (&[u8], &[u8]) = (b"\0\x05\0\xfa\xff", b"\0\x14\0\xeb\xff");
    let again: &[u8] = b"\x42\x88\x21\xc4\0";
    // Two empty blocks fill up to the length of the header; the last block is empty, too.
    let end: &[u8] = b"\x02\x08\x10\0\0\xff\xff\0\0\0\0\0\0\0\0";
    let bytes = [
        front, four, front, four, again, one, again, one, one, four, again, one, one, four, again,
        four, again, four, again, four, again, four, again, end, again, end,
    ]
    .concat();
    let mut opened = Vec::new();
    let mut reader = flate2::read::DeflateDecoder::new(&bytes[front.len()..]);
    std::io::Read::read_to_end(&mut reader, &mut opened).unwrap();
    assert_eq!(opened, bytes, "it opens to itself");
    bytes
}

/// Returns a zip whose member is all bytes after its own header: the zip again, without the header.
fn itself() -> Vec<u8> {
    let stored = |data| Packed { name: b"a.zip", data, is_deflated: false, sum: 0, size: 0 };
    let bare = zip_of(&[stored(b"")], 1);
    let mut bytes = [bare.clone(), bare.clone()].concat();
    let (header, size) = (35, u32::try_from(bytes.len() - 35).unwrap().to_le_bytes());
    for directory in [header, bare.len() + header] {
        for at in [directory + 20, directory + 24] {
            bytes[at..at + 4].copy_from_slice(&size);
        }
    }
    bytes[18..22].copy_from_slice(&size);
    bytes[22..26].copy_from_slice(&size);
    bytes
}

/// Returns layers of sixteen zips each, which share their bytes, around zips of sixteen files.
fn nested(layers: usize, name: &str, content: &[u8]) -> Vec<u8> {
    let of_sixteen = |inner: &[u8], ending: &str| {
        let (size, sum) = (u32::try_from(inner.len()).unwrap(), crate::made::crc(inner));
        let data = crate::made::deflate(inner);
        let names: Vec<String> = (0..16).map(|it| format!("{it:x}{ending}")).collect();
        let member = |name| Packed { name, data: &data, is_deflated: true, sum, size };
        zip_of(&names.iter().map(|it| member(it.as_bytes())).collect::<Vec<_>>(), 1)
    };
    (0..layers).fold(of_sixteen(content, name), |inner, _| of_sixteen(&inner, ".zip"))
}

/// Returns 24 KiB of words that are all different, and so are in the record.
fn distinct_words() -> Vec<u8> {
    (0..4_000).map(|it| format!("w{:x} ", it * 7_919)).collect::<String>().into_bytes()
}
