//! Compound files, the containers of the old office formats.

const SECTOR: usize = 512;
const NONE: u32 = u32::MAX;
const END: u32 = 0xffff_fffe;

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

/// Returns a compound file of these streams, each in sectors of its own.
pub(crate) fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut sectors: Vec<u8> = Vec::new();
    let mut table: Vec<u32> = Vec::new();
    let mut add = |bytes: &[u8], mark: u32| -> u32 {
        let first = number(table.len());
        let count = number(bytes.len().div_ceil(SECTOR).max(1));
        table.extend((first + 1..first + count).chain([mark]));
        sectors.extend_from_slice(bytes);
        sectors.resize(table.len() * SECTOR, 0);
        first
    };
    let mut directory = entry("Root Entry", 5, (NONE, 1), END, 0);
    for (index, (name, bytes)) in streams.iter().enumerate() {
        // Streams below 4,096 bytes would be in the mini stream.
        let bytes = [*bytes, &vec![0; 4096_usize.saturating_sub(bytes.len())]].concat();
        let first = add(&bytes, END);
        let right = if index + 1 == streams.len() { NONE } else { number(index) + 2 };
        directory.extend(entry(name, 2, (right, NONE), first, bytes.len()));
    }
    let directory_first = add(&directory, END);
    let table_first = add(&[0; SECTOR], 0xffff_fffd);
    assert!(table.len() <= SECTOR / 4, "there is one sector for the table");
    table.resize(SECTOR / 4, NONE);
    let table: Vec<u8> = table.into_iter().flat_map(u32::to_le_bytes).collect();
    let at = usize::try_from(table_first).unwrap() * SECTOR;
    sectors[at..at + SECTOR].copy_from_slice(&table);
    let mut header = vec![0; SECTOR];
    header[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
    header[0x1e..0x20].copy_from_slice(&9_u16.to_le_bytes());
    header[0x20..0x22].copy_from_slice(&6_u16.to_le_bytes());
    header[0x30..0x34].copy_from_slice(&directory_first.to_le_bytes());
    for offset in [0x3c, 0x44] {
        header[offset..offset + 4].copy_from_slice(&END.to_le_bytes());
    }
    header[0x4c..].fill(0xff);
    header[0x4c..0x50].copy_from_slice(&table_first.to_le_bytes());
    [header, sectors].concat()
}

fn entry(name: &str, kind: u8, (right, child): (u32, u32), first: u32, size: usize) -> Vec<u8> {
    let mut entry = vec![0; 128];
    let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    entry[..units.len()].copy_from_slice(&units);
    entry[64] = u8::try_from(units.len() + 2).unwrap();
    entry[66] = kind;
    for (at, value) in [(68, NONE), (72, right), (76, child), (116, first), (120, number(size))] {
        entry[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    entry
}

/// A text for Word in one piece of 8-bit characters: the streams `WordDocument` and `1Table`.
pub(crate) fn word(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut main = vec![0; 0x400];
    main[..4].copy_from_slice(&[0xec, 0xa5, 0xc1, 0]);
    main[0x0b] = 2;
    main.extend(text);
    let mut pieces = Vec::new();
    for position in [0, number(text.len())] {
        pieces.extend(position.to_le_bytes());
    }
    pieces.extend([0, 0]);
    pieces.extend(((0x400 * 2) | 0x4000_0000_u32).to_le_bytes());
    pieces.extend([0, 0]);
    let table = [&[2], &number(pieces.len()).to_le_bytes()[..], &pieces].concat();
    main[0x1a6..0x1aa].copy_from_slice(&number(table.len()).to_le_bytes());
    (main, table)
}

/// A record of a spreadsheet.
pub(crate) fn cell_record(kind: u16, content: &[u8]) -> Vec<u8> {
    let size = u16::try_from(content.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &size, content].concat()
}

/// A record of slides.
pub(crate) fn slide_record(head: u16, kind: u16, content: &[u8]) -> Vec<u8> {
    let size = number(content.len()).to_le_bytes();
    [&head.to_le_bytes()[..], &kind.to_le_bytes(), &size, content].concat()
}
