//! Hostile sounds, videos and fonts.

use crate::made::zlib_zeros;
use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("chunks.wav", "", || {
        [
            &b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
            &b"LIST\x04\0\0\0INFO".repeat(2 * MIB),
        ]
        .concat()
    }),
    case("length.wav", "", || {
        b"RIFF\xff\xff\xff\xffWAVELIST\xff\xff\xff\xffINFOINAM\xff\xff\xff\xffx".to_vec()
    }),
    case("tag.mp3", "", || {
        [&b"ID3\x04\0\0\x7f\x7f\x7f\x7f"[..], &b"TIT2\0\0\0\x05\0\0\x03a\0b\0".repeat(MIB)].concat()
    }),
    case("frames.mp3", "", || {
        [&b"ID3\x03\0\0\0\0\0\0"[..], &b"\xff\xfb\x90\0".repeat(4 * MIB)].concat()
    }),
    case("synchronized.mp3", "", || {
        [&b"ID3\x03\x80\0\x7f\x7f\x7f\x7fUSLT\x7f\x7f\x7f\x7f\0\0"[..], &vec![0xff; 20 * MIB]]
            .concat()
    }),
    case("packed.mp3", "", || {
        let frame = [&b"\x40\0\0\0"[..], &zlib_zeros(1024)].concat();
        let size = u32::try_from(frame.len()).unwrap().to_be_bytes();
        [&b"ID3\x03\0\0\x01\x7f\x7f\x7fTXXX"[..], &size, b"\0\x80", &frame].concat()
    }),
    case("blocks.flac", "", || {
        [&b"fLaC\0\0\0\x22"[..], &[0; 34], &b"\x04\0\0\x08\0\0\0\0\xff\xff\xff\xff".repeat(MIB)]
            .concat()
    }),
    case("comments.flac", "", || {
        [
            &b"fLaC\0\0\0\x22"[..],
            &[0; 34],
            b"\x84\xff\xff\xff\0\0\0\0\xff\xff\xff\xff",
            &b"\x01\0\0\0x".repeat(MIB),
        ]
        .concat()
    }),
    case("picture.flac", "", || {
        [&b"fLaC\0\0\0\x22"[..], &[0; 34], b"\x86\xff\xff\xff\0\0\0\x03\xff\xff\xff\xff"].concat()
    }),
    case("pages.ogg", "", || {
        [&b"OggS\0\x02"[..], &[0; 20], b"\xff", &[0xff; 255], &vec![1; 255 * 255]]
            .concat()
            .repeat(200)
    }),
    case("empty.ogg", "", || [&b"OggS\0\0"[..], &[0; 21]].concat().repeat(MIB)),
    case("tracks.mid", "", || {
        [&b"MThd\0\0\0\x06\0\x01\xff\xff\0\x60"[..], &b"MTrk\0\0\0\x04\0\xff\x2f\0".repeat(2 * MIB)]
            .concat()
    }),
    case("events.mid", "", || {
        [
            &b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\xff\xff\xff\xff"[..],
            &b"\xff\xff\xff\x7f\xff\x01\x01x".repeat(3 * MIB),
        ]
        .concat()
    }),
    case("patterns.xm", "", || [&b"Extended Module: "[..], &[0xff; 1 << 16]].concat()),
    case("lists.m3u", "", || b"#EXTM3U\n#EXTINF:1,x\nhttp://h.example/x\n".repeat(700_000)),
    case("boxes.mp4", "", || {
        [&b"\0\0\0\x10ftypisom\0\0\0\0"[..], &b"\0\0\0\x08moov".repeat(3 * MIB)].concat()
    }),
    case("deep.mp4", "", || {
        let inner =
            (0..20_000_u32).map(|it| [(8 * (20_000 - it)).to_be_bytes(), *b"moov"].concat());
        [b"\0\0\0\x10ftypisom\0\0\0\0".to_vec(), inner.flatten().collect()].concat()
    }),
    case("sizes.m4a", "", || {
        b"\0\0\0\x10ftypM4A \0\0\0\0\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0udta"
            .to_vec()
    }),
    case("table.mov", "", || {
        [&b"\0\0\0\x10ftypqt  \0\0\0\0\0\0\0\x30moov\0\0\0\x28trak\0\0\0\x20stsz\0\0\0\0\0\0\0\0\xff\xff\xff\xff"[..], &[0xff; 64]].concat()
    }),
    case("deep.mkv", "", || {
        b"\x1a\x45\xdf\xa3\x01\xff\xff\xff\xff\xff\xff\xff\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff".repeat(MIB)
    }),
    case("tags.mkv", "", || {
        [&b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x12\x54\xc3\x67\x01\xff\xff\xff\xff\xff\xff\xff"[..], &b"\x73\x73\x80\x67\xc8\x80".repeat(2 * MIB)].concat()
    }),
    case("lists.avi", "", || {
        [&b"RIFF\xff\xff\xff\xffAVI "[..], &b"LIST\xff\xff\xff\xffhdrl".repeat(2 * MIB)].concat()
    }),
    case("objects.asf", "", || {
        [
            &b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c"[..],
            &[0xff; 8],
            b"\xff\xff\xff\xff\x01\x02",
            &[0; 1 << 20],
        ]
        .concat()
    }),
    case("script.flv", "", || {
        [
            &b"FLV\x01\x05\0\0\0\x09\0\0\0\0\x12\xff\xff\xff"[..],
            &b"\x03\0\x01a\x08\xff\xff\xff\xff".repeat(MIB),
        ]
        .concat()
    }),
    case("composites.ttf", "", composites),
    case("names.ttf", "limit", || {
        let record = b"\0\x03\0\x01\x04\x09\0\x04\xff\xff\0\0";
        let table = [&b"\0\0\xff\xff\0\x06"[..], &record.repeat(65_535), &[b'x'; 65_535]].concat();
        sfnt(&[(b"name", table)])
    }),
    case("tables.otf", "", || {
        [&b"OTTO\xff\xff\0\0\0\0\0\0"[..], &b"name\0\0\0\0\0\0\0\0\xff\xff\xff\xff".repeat(65_535)]
            .concat()
    }),
    case("fonts.ttc", "", || {
        [&b"ttcf\0\x01\0\0\xff\xff\xff\xff"[..], &[0; 4].repeat(MIB)].concat()
    }),
    case("packed.woff", "", || {
        let data = zlib_zeros(1024);
        let size = u32::try_from(data.len()).unwrap().to_be_bytes();
        [
            &b"wOFF\0\x01\0\0"[..],
            &[0; 4],
            b"\0\x01",
            &[0; 30],
            b"name\0\0\0\x40",
            &size,
            b"\x3f\xff\xff\xff\0\0\0\0",
            &data,
        ]
        .concat()
    }),
    case("sizes.woff2", "", || {
        [
            &b"wOF2\0\x01\0\0\xff\xff\xff\xff\xff\xff\0\0\xff\xff\xff\xff\xff\xff\xff\xff"[..],
            &[0xff; 1 << 16],
        ]
        .concat()
    }),
    case("properties.bdf", "", || {
        [&b"STARTFONT 2.1\nSTARTPROPERTIES 99999999999\n"[..], &b"FAMILY_NAME \"x\n".repeat(MIB)]
            .concat()
    }),
    case("comments.afm", "", || {
        [&b"StartFontMetrics 2.0\n"[..], &b"Comment (c) x\n".repeat(2 * MIB)].concat()
    }),
    case("strings.pfa", "", || {
        [&b"%!PS-AdobeFont-1.0: X\n/FontInfo 9 dict\n/Notice "[..], &b"(".repeat(20 * MIB)].concat()
    }),
    case("segments.pfb", "", || {
        [
            &b"\x80\x01\xff\xff\xff\xff%!PS-AdobeFont-1.0: X\n"[..],
            &b"\x80\x01\0\0\0\0".repeat(3 * MIB),
        ]
        .concat()
    }),
    case("characters.tfm", "", || [0xff; 24].repeat(10_000)),
    case("tables.pcf", "", || {
        [
            &b"\x01fcp\xff\xff\xff\xff"[..],
            &[1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 8, 0, 0, 0].repeat(100_000),
        ]
        .concat()
    }),
];

/// A font file of these tables.
fn sfnt(tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = u16::try_from(tables.len()).unwrap();
    let mut directory = [&b"\0\x01\0\0"[..], &count.to_be_bytes(), &[0; 6]].concat();
    let mut data = Vec::new();
    for (name, table) in tables {
        let at = u32::try_from(12 + 16 * tables.len() + data.len()).unwrap();
        let size = u32::try_from(table.len()).unwrap();
        directory.extend([&name[..], &[0; 4], &at.to_be_bytes(), &size.to_be_bytes()].concat());
        data.extend(table);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    [directory, data].concat()
}

/// Returns a font in which each of two glyphs is composed of both, many times.
pub(crate) fn composites() -> Vec<u8> {
    let part = |glyph: u8, more: u8| [0, 2 | more, 0, glyph, 0, 0];
    let parts: Vec<u8> = (0..40).flat_map(|it| part(it & 1, 0x20)).chain(part(0, 0)).collect();
    let glyph = [&[0xff, 0xff, 0, 0, 0, 0, 0x10, 0, 0x10, 0][..], &parts, &[0; 4]].concat();
    let half = u16::try_from(glyph.len() / 2).unwrap();
    let places: Vec<u8> = [0, half, half * 2].into_iter().flat_map(u16::to_be_bytes).collect();
    let mut head = vec![0; 54];
    head[..4].copy_from_slice(b"\0\x01\0\0");
    head[12..16].copy_from_slice(b"\x5f\x0f\x3c\xf5");
    head[18..20].copy_from_slice(&1000_u16.to_be_bytes());
    let mut hhea = vec![0; 36];
    hhea[35] = 1;
    let map = [&b"\0\0\0\x01\0\x01\0\0\0\0\0\x0c\0\0\x01\x06\0\0"[..], &[1; 256]].concat();
    sfnt(&[
        (b"OS/2", vec![0; 96]),
        (b"cmap", map),
        (b"glyf", [glyph.clone(), glyph].concat()),
        (b"head", head),
        (b"hhea", hhea),
        (b"hmtx", vec![1; 8]),
        (b"loca", places),
        (b"maxp", [&b"\0\x01\0\0\0\x02"[..], &[0xff; 26]].concat()),
        (b"name", b"\0\0\0\0\0\x06".to_vec()),
    ])
}
