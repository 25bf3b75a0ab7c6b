//! Hostile pictures: huge sizes, directories in circles, texts that unpack to much more.

use crate::made::{zlib, zlib_zeros};
use crate::{Case, case};

const MIB: usize = 1 << 20;
const HUGE: &[u8] = b"\x7f\xff\xff\xff";

pub(crate) const CASES: &[Case] = &[
    case("huge.png", "", || png(&[(b"IDAT", zlib_zeros(64))])),
    case("length.png", "", || [png(&[]), b"\xff\xff\xff\xfftEXtTitle\0x".to_vec()].concat()),
    case("text.png", "", || png(&[(b"zTXt", [&b"Title\0\0"[..], &zlib_zeros(1024)].concat())])),
    case("profile.png", "", || {
        png(&[
            (b"iCCP", [&b"x\0\0"[..], &zlib_zeros(1024)].concat()),
            (b"iTXt", [&b"XML:com.adobe.xmp\0\x01\0\0\0"[..], &zlib_zeros(512)].concat()),
        ])
    }),
    case("digits.png", "", || {
        png(&[(
            b"zTXt",
            [
                &b"Raw profile type exif\0\0"[..],
                &zlib(&[&b"\nexif\n99999999\n"[..], &b"4d4d".repeat(MIB)].concat()),
            ]
            .concat(),
        )])
    }),
    case("texts.png", "", || png(&vec![(b"tEXt", b"Comment\0words".to_vec()); 500_000])),
    case("empty.png", "", || png(&vec![(b"IDAT", Vec::new()); MIB])),
    case("segments.jpg", "limit", || {
        [b"\xff\xd8".to_vec(), b"\xff\xe1\0\x08Exif\0\0".repeat(2 * MIB)].concat()
    }),
    case("fill.jpg", "broken", || [b"\xff\xd8".to_vec(), vec![0xff; 30 * MIB]].concat()),
    case("huge.jpg", "", || {
        b"\xff\xd8\xff\xc0\0\x0b\x08\xff\xff\xff\xff\x03\x01\x11\0\xff\xda\0\x02".to_vec()
    }),
    case("loop.jpg", "", || {
        let exif = [&b"Exif\0\0"[..], &circle()].concat();
        let size = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
        [
            &b"\xff\xd8\xff\xe1"[..],
            &size,
            &exif,
            b"\xff\xc0\0\x0b\x08\0\x10\0\x10\x03\x01\x11\0\xff\xda\0\x02",
        ]
        .concat()
    }),
    case("resources.jpg", "", || {
        let resource = b"8BIM\x04\x04\0\0\xff\xff\xff\xff\x1c\x02\x78\xff\xff";
        let block = [&b"Photoshop 3.0\0"[..], &resource.repeat(3000)].concat();
        let size = u16::try_from(block.len() + 2).unwrap().to_be_bytes();
        let segment = [&b"\xff\xed"[..], &size, &block].concat();
        [
            b"\xff\xd8".to_vec(),
            segment.repeat(300),
            b"\xff\xc0\0\x0b\x08\0\x10\0\x10\x03\x01\x11\0".to_vec(),
        ]
        .concat()
    }),
    case("circle.tif", "", circle),
    case("chain.tif", "", || {
        // Hundreds of thousands of directories with one entry, each of which refers to the next.
        let mut bytes = b"II*\0\x08\0\0\0".to_vec();
        for number in 1..400_000_u32 {
            bytes.extend(b"\x01\0\x00\x01\x04\0\x01\0\0\0\xff\xff\xff\x7f");
            bytes.extend((8 + 18 * number).to_le_bytes());
        }
        bytes
    }),
    case("greedy.tif", "", || {
        let entry = [1, 14, 0, 5, 255, 255, 255, 255, 0, 0, 0, 1];
        [&b"MM\0*\0\0\0\x08\xff\xff"[..], &entry.repeat(65_535)].concat()
    }),
    case("beyond.tif", "", || b"MM\0*\xff\xff\xff\xff".to_vec()),
    case("big.tif", "", || b"II+\0\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()),
    case("blocks.gif", "", || {
        [&b"GIF89a\xff\xff\xff\xff\x80\0\0aaabbb"[..], &b"!\xfe\x01x\0".repeat(4 * MIB)].concat()
    }),
    case("comment.gif", "", || {
        [
            &b"GIF89a\x01\0\x01\0\0\0\0!\xfe"[..],
            &[&[255][..], &[b'x'; 255]].concat().repeat(100_000),
        ]
        .concat()
    }),
    case("chunks.webp", "", || {
        [
            &b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\0\0\0\x0c\0\0\0\xff\xff\xff\xff\xff\xff"[..],
            &b"EXIF\0\0\0\0".repeat(2 * MIB),
        ]
        .concat()
    }),
    case("length.webp", "", || b"RIFF\0\0\0\0WEBPEXIF\xff\xff\xff\xffII*\0".to_vec()),
    case("digits.ppm", "", || {
        [&b"P6\n#"[..], &b"9".repeat(20 * MIB), b"\n99999999999 99999999999 1\n"].concat()
    }),
    case("lines.xpm", "", || {
        [
            &b"/* XPM */\nstatic char *x[] = {\n\"99999999999 99999999999 99999999 99\",\n"[..],
            &b"\"a c red\",\n".repeat(2 * MIB),
        ]
        .concat()
    }),
    case("huge.bmp", "", || {
        [
            &b"BM\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\x28\0\0\0\xff\xff\xff\x7f\0\0\0\x80"[..],
            &[0; 100],
        ]
        .concat()
    }),
    case("layers.psd", "", || {
        [
            &b"8BPS\0\x01\0\0\0\0\0\0\0\x03\x7f\xff\xff\xff\x7f\xff\xff\xff\0\x08\0\x03"[..],
            &[0xff; 64],
        ]
        .concat()
    }),
    case("resources.psd", "", || {
        [&b"8BPS\0\x01\0\0\0\0\0\0\0\x03\0\0\0\x10\0\0\0\x10\0\x08\0\x03\0\0\0\0\x7f\xff\xff\xff"[..], &b"8BIM\x04\x04\0\0\0\0\0\0".repeat(MIB)].concat()
    }),
    case("many.ico", "", || [&b"\0\0\x01\0\xff\xff"[..], &[0xff; 16].repeat(65_535)].concat()),
    case("boxes.heic", "", || {
        [&b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..], &b"\0\0\0\x0cmeta\0\0\0\0".repeat(MIB)]
            .concat()
    }),
    case("items.avif", "", || {
        [&b"\0\0\0\x14ftypavif\0\0\0\0avif\0\0\x40\0meta\0\0\0\0\0\0\x30\0iloc\x02\0\0\0\xff\xff\xff\xff\xff\xff"[..], &[0xff; 1 << 16]].concat()
    }),
    case("packet.svg", "", || {
        [
            &b"<svg><metadata><?xpacket begin='x'?>"[..],
            &b"<x:xmpmeta><rdf:Bag><rdf:li>".repeat(MIB / 2),
        ]
        .concat()
    }),
    case("boxes.jp2", "", || {
        [&b"\0\0\0\x0cjP  \r\n\x87\n"[..], &b"\0\0\0\x01jp2h\0\0\0\0\0\0\0\x10".repeat(MIB)]
            .concat()
    }),
    case("chunks.djvu", "", || {
        [&b"AT&TFORM\xff\xff\xff\xffDJVM"[..], &b"FORM\0\0\0\0".repeat(MIB)].concat()
    }),
    case("header.fits", "", || {
        b"SIMPLE  =                    T                                                  "
            .repeat(400_000)
    }),
    case("sequence.dcm", "", || {
        [
            vec![0; 128],
            b"DICM".to_vec(),
            b"\x08\0\x05\0SQ\0\0\xff\xff\xff\xff\xfe\xff\0\xe0\xff\xff\xff\xff".repeat(MIB),
        ]
        .concat()
    }),
];

fn png(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let header = [HUGE, HUGE, b"\x10\x06\0\0\0"].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in std::iter::once(&(b"IHDR", header)).chain(chunks) {
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(*name);
        bytes.extend(data);
        bytes.extend([0; 4]);
    }
    bytes
}

/// Returns a TIFF with a directory that refers to itself, in each of the possible ways.
fn circle() -> Vec<u8> {
    let entry = |tag: u16| [&tag.to_le_bytes()[..], &[4, 0, 1, 0, 0, 0, 8, 0, 0, 0]].concat();
    let entries: Vec<u8> = [330, 34665, 34853, 40965].into_iter().flat_map(entry).collect();
    [&b"II*\0\x08\0\0\0\x04\0"[..], &entries, &[8, 0, 0, 0]].concat()
}
