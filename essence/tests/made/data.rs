//! Data of programs: books for Palm, tables of dBASE, sheets of Lotus, cards of FITS, web archives.

fn be(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

/// Returns a Palm database of this kind, with these records.
pub(crate) fn palm(kind: &[u8; 8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 78];
    bytes[..8].copy_from_slice(b"On_knots");
    bytes[60..68].copy_from_slice(kind);
    bytes[76..78].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
    let mut at = 78 + 8 * records.len();
    for record in records {
        bytes.extend([be(at), [0; 4]].concat());
        at += record.len();
    }
    [bytes, records.concat()].concat()
}

/// Returns the first record of a Mobipocket book with `parts` parts, packed like this; records 2 and 3 have
/// codes and phrases.
pub(crate) fn mobi_head(packing: u16, parts: u16, fields: &[(u32, &str)]) -> Vec<u8> {
    let mut record = vec![0; 16 + 232];
    record[..2].copy_from_slice(&packing.to_be_bytes());
    record[8..10].copy_from_slice(&parts.to_be_bytes());
    record[16..20].copy_from_slice(b"MOBI");
    record[20..24].copy_from_slice(&be(232));
    record[28..32].copy_from_slice(&be(65_001));
    record[112..120].copy_from_slice(&[be(2), be(2)].concat());
    record[128..132].copy_from_slice(&be(0x40));
    let field = |(number, value): &(u32, &str)| {
        [&number.to_be_bytes()[..], &be(value.len() + 8), value.as_bytes()].concat()
    };
    let list = fields.iter().map(field).collect::<Vec<_>>().concat();
    record.extend([&b"EXTH"[..], &be(list.len() + 12), &be(fields.len()), &list].concat());
    record
}

/// Returns records of codes with eight bits each, of which 255 is the first phrase, 254 the second …; a
/// phrase is text or codes.
pub(crate) fn mobi_phrases(phrases: &[(&[u8], bool)]) -> [Vec<u8>; 2] {
    let huff = [&b"HUFF\0\0\0\x18"[..], &be(24), &be(24 + 1024), &[0; 8]].concat();
    let huff = [huff, be(0xff << 8 | 0x80 | 8).repeat(256), vec![0; 256]].concat();
    let (mut offsets, mut list) = (Vec::new(), Vec::new());
    for (bytes, is_text) in phrases {
        offsets.extend(u16::try_from(2 * phrases.len() + list.len()).unwrap().to_be_bytes());
        let flag = if *is_text { 0x8000 } else { 0 };
        list.extend((u16::try_from(bytes.len()).unwrap() | flag).to_be_bytes());
        list.extend(*bytes);
    }
    let head = [&b"CDIC\0\0\0\x10"[..], &be(phrases.len()), &be(8)].concat();
    [huff, [head, offsets, list].concat()]
}

/// Returns a table of dBASE III whose columns, each with a name and a length, are text.
pub(crate) fn dbf(columns: &[(&str, u8)], rows: &[&[&str]]) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[..4].copy_from_slice(&[3, 99, 12, 31]);
    bytes[4..8].copy_from_slice(&u32::try_from(rows.len()).unwrap().to_le_bytes());
    let header = u16::try_from(33 + 32 * columns.len()).unwrap();
    bytes[8..10].copy_from_slice(&header.to_le_bytes());
    let row_bytes = 1 + columns.iter().map(|it| u16::from(it.1)).sum::<u16>();
    bytes[10..12].copy_from_slice(&row_bytes.to_le_bytes());
    for (name, length) in columns {
        let mut column = [0; 32];
        column[..name.len()].copy_from_slice(name.as_bytes());
        column[11] = b'C';
        column[16] = *length;
        bytes.extend(column);
    }
    bytes.push(b'\r');
    for row in rows {
        bytes.push(b' ');
        for (cell, (_, length)) in row.iter().zip(columns) {
            bytes.extend(format!("{cell:<0$}", usize::from(*length)).into_bytes());
        }
    }
    bytes
}

/// Returns a sheet of Lotus 1-2-3 with labels by column and row.
pub(crate) fn lotus(labels: &[(u16, u16, &str)]) -> Vec<u8> {
    let mut bytes = b"\0\0\x02\0\x06\x04".to_vec();
    for (column, row, label) in labels {
        let size = u16::try_from(label.len() + 7).unwrap();
        bytes.extend([&b"\x0f\0"[..], &size.to_le_bytes(), b"\xff"].concat());
        bytes.extend([column.to_le_bytes(), row.to_le_bytes()].concat());
        bytes.extend([b"'", label.as_bytes(), b"\0"].concat());
    }
    [bytes, b"\x01\0\0\0".to_vec()].concat()
}

/// Returns a header of FITS with these cards.
pub(crate) fn fits(cards: &[&str]) -> Vec<u8> {
    let all = ["SIMPLE  =                    T"].iter().chain(cards).chain(&["END"]);
    all.map(|it| format!("{it:<80}")).collect::<String>().into_bytes()
}

/// Returns a WARC record of this type and URL.
pub(crate) fn warc(kind: &str, url: &str, content: &[u8]) -> Vec<u8> {
    let size = content.len();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: 2024-01-02T03:04:05Z\r\nContent-Length: {size}\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n\r\n"].concat()
}
