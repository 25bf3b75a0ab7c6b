//! Compound files, the containers of the old office formats.

const SECTOR: usize = 512;
const NONE: u32 = u32::MAX;
const END: u32 = 0xffff_fffe;

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

/// Returns a compound file of these streams, each in sectors of its own. A stream's path may lead
/// through storages: `storage/stream`.
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
    // Of each entry: its storage, its name, its kind, its first sector, its size.
    let mut entries = vec![(usize::MAX, "Root Entry", 5, END, 0)];
    for (path, bytes) in streams {
        let (mut parent, mut rest) = (0, *path);
        while let Some((name, inner)) = rest.split_once('/') {
            let same = |it: &(usize, &str, u8, u32, usize)| (it.0, it.1) == (parent, name);
            let known = entries.iter().position(same);
            if known.is_none() {
                entries.push((parent, name, 1, 0, 0));
            }
            (parent, rest) = (known.unwrap_or(entries.len() - 1), inner);
        }
        // Streams below 4,096 bytes would be in the mini stream.
        let bytes = [*bytes, &vec![0; 4096_usize.saturating_sub(bytes.len())]].concat();
        entries.push((parent, rest, 2, add(&bytes, END), bytes.len()));
    }
    let next = |parent: usize, from: usize| {
        let after = entries.iter().skip(from).position(|it| it.0 == parent);
        after.map_or(NONE, |at| number(from + at))
    };
    let mut directory = Vec::new();
    for (index, (parent, name, kind, first, size)) in entries.iter().enumerate() {
        let right = if index == 0 { NONE } else { next(*parent, index + 1) };
        directory.extend(entry(name, *kind, (right, next(index, 1)), *first, *size));
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

/// Text as most streams of Outlook have it.
pub(crate) fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A message of Outlook, sent in 1995, with these streams beside its properties.
pub(crate) fn outlook(streams: &[(&str, &[u8])]) -> Vec<u8> {
    // The number and kind of the time of sending, flags, and tenths of microseconds since 1601.
    let sent = [&[0x40, 0, 0x39, 0, 6, 0, 0, 0][..], &124_385_256_000_000_000_u64.to_le_bytes()];
    let properties = [&[0; 32], &sent.concat()[..]].concat();
    compound(&[&[("__properties_version1.0", &properties[..])][..], streams].concat())
}

/// An attribute of an item in `winmail.dat`, whose length is given apart.
pub(crate) fn tnef_attribute(number: u32, length: u32, data: &[u8]) -> Vec<u8> {
    [&[1][..], &number.to_le_bytes(), &length.to_le_bytes(), data, &[0; 2]].concat()
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
