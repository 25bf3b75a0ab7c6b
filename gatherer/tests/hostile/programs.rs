//! Hostile programs, libraries and object files.

use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("tables.elf", "", || elf(u64::MAX / 2, 0xffff, &[])),
    case("sections.elf", "", || {
        // Each section covers the whole file, as symbols, strings, libraries or notes.
        let kinds = [2_u32, 3, 6, 11, 7];
        let section = |it: usize| {
            let link = u32::try_from(it % 64).unwrap().to_le_bytes();
            [
                &[0; 4][..],
                &kinds[it % 5].to_le_bytes(),
                &[0; 16],
                &[0; 8],
                &(4_u64 << 20).to_le_bytes(),
                &link,
                &[1, 0, 0, 0],
                &[0; 8],
                &24_u64.to_le_bytes(),
            ]
            .concat()
        };
        let sections: Vec<u8> = (0..30_000).flat_map(section).collect();
        elf(64, 30_000, &[sections, vec![b'x'; 4 * MIB]].concat())
    }),
    case("notes.elf", "", || {
        elf(64, 1, &b"\x07\0\0\0\x07\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff".repeat(MIB))
    }),
    case("strings.elf", "", || {
        elf(64, 0, &b"version 1.2.3 Copyright (c) 2001 x\0".repeat(800_000))
    }),
    case("relocatable.o", "", || elf(64, 0xff00, &vec![0xff; 8 * MIB])),
    case("header.exe", "", || {
        let mut bytes = [&b"MZ\x90\0"[..], &[0xff; 56], &[0x40, 0, 0, 0], b"PE\0\0"].concat();
        bytes.extend(vec![0xff; MIB]);
        bytes
    }),
    case("circle.dll", "", || [&b"MZ\x90\0"[..], &[0; 56], &[0, 0, 0, 0], &[0; 4096]].concat()),
    case("fat.dylib", "", || {
        [&b"\xca\xfe\xba\xbe\xff\xff\xff\xff"[..], &[0; 20].repeat(100_000)].concat()
    }),
    case("commands.macho", "", || {
        [&b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x02\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0"[..], &b"\x0c\0\0\0\x08\0\0\0".repeat(MIB)].concat()
    }),
    case("pool.class", "", || {
        [&b"\xca\xfe\xba\xbe\0\0\0\x34\xff\xff"[..], &b"\x07\0\x01\x08\0\x02".repeat(MIB)].concat()
    }),
    case("utf8.class", "", || {
        [
            &b"\xca\xfe\xba\xbe\0\0\0\x34\xff\xff"[..],
            &[&b"\x01\xff\xff"[..], &[b'x'; 65_535]].concat().repeat(400),
        ]
        .concat()
    }),
    case("sections.wasm", "", || {
        [&b"\0asm\x01\0\0\0"[..], &b"\0\xff\xff\xff\xff\x0f".repeat(MIB)].concat()
    }),
    case("imports.wasm", "", || {
        [
            &b"\0asm\x01\0\0\0\x02\xff\xff\xff\x0e\xff\xff\xff\xff\x0f"[..],
            &b"\x01a\x01b\0\0".repeat(4 * MIB),
        ]
        .concat()
    }),
    case("names.wasm", "", || {
        [&b"\0asm\x01\0\0\0"[..], &b"\0\x05\x04name".repeat(4 * MIB)].concat()
    }),
    case("catalog.mo", "", || {
        [&b"\xde\x12\x04\x95\0\0\0\0\xff\xff\xff\xff\x1c\0\0\0\x1c\0\0\0"[..], &[0xff; 4096]]
            .concat()
    }),
    case("strings.bin", "", || [&b"\0\x01\x02"[..], &vec![b'x'; 31 * MIB]].concat()),
    case("words.bin", "", || b"word\0\xff".repeat(5 * MIB)),
    case("wide.bin", "", || [&b"\0\x01\0\0"[..], &b"w\0o\0r\0d\0\0\0".repeat(3 * MIB)].concat()),
    case("database.sqlite", "", || [&b"SQLite format 3\0"[..], &[0xff; 1 << 16]].concat()),
    case("nothing", "", Vec::new),
    case("zeros.o", "", || vec![0; 32 * MIB]),
    case("hole.dat", "", || vec![0; 100 * MIB]),
];

/// Returns a 64-bit ELF file with `count` sections, whose table is at `sections_at`.
fn elf(sections_at: u64, count: u16, rest: &[u8]) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    header.extend([0; 16]);
    header.extend(sections_at.to_le_bytes());
    header.extend([0, 0, 0, 0, 64, 0, 56, 0, 0xff, 0xff, 64, 0]);
    header.extend(count.to_le_bytes());
    header.extend(count.saturating_sub(1).to_le_bytes());
    [&header, rest].concat()
}
