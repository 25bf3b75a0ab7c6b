//! Tests of the readers that share a driver: each on bytes made by its definition.

use proptest::prelude::*;

use super::{chm, lotus, mark_of, netcdf, wordperfect};
use crate::Type;
use crate::testing::render;

#[track_caller]
fn check(r#type: Type, bytes: &[u8], expected: &str) {
    assert_eq!(render("n", r#type, bytes), expected);
}

/// A column of a table: name, type, length and decimals.
type Column<'a> = (&'a str, u8, u8, u8);

fn dbf(version: u8, mark: u8, columns: &[Column<'_>], rows: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![version, 124, 2, 29];
    bytes.extend(u32::try_from(rows.len()).unwrap().to_le_bytes());
    bytes.extend(u16::try_from(33 + 32 * columns.len()).unwrap().to_le_bytes());
    let row_bytes = 1 + columns.iter().map(|it| u16::from(it.2)).sum::<u16>();
    bytes.extend(row_bytes.to_le_bytes());
    bytes.resize(32, 0);
    bytes[29] = mark;
    for (name, kind, length, decimals) in columns {
        let mut column = [0; 32];
        column[..name.len()].copy_from_slice(name.as_bytes());
        (column[11], column[16], column[17]) = (*kind, *length, *decimals);
        bytes.extend(column);
    }
    bytes.push(b'\r');
    [bytes, rows.concat()].concat()
}

#[test]
fn a_table_of_dbase() {
    let columns = [("TOWN", b'C', 6, 0), ("PEOPLE", b'N', 7, 0), ("SINCE", b'D', 8, 0)];
    let table =
        dbf(3, 0x65, &columns, &[b" \x93\xab\xec    12679008540722", b"*Bonn   33646500000101"]);
    check(
        Type::Database,
        &table,
        "Title: n\nDate: 2024-02-29\nDate-Source: header\nColumns: 3\nHeadings: TOWN | PEOPLE | SINCE\nRows: 1\n\
         Kind: dBASE III table\nPartial-Text: TOWN PEOPLE SINCE | \u{423}\u{43b}\u{44c} 126790 0854-07-22",
    );
    let cut = table.get(..table.len() - 1).unwrap();
    assert!(render("n", Type::Database, cut).ends_with("! broken: breaks off after 1 rows"));
}

#[test]
fn a_table_of_foxpro() {
    let columns = [
        ("N", b'I', 4, 0),
        ("X", b'B', 8, 2),
        ("Y", b'Y', 8, 4),
        ("T", b'T', 8, 0),
        ("M", b'M', 4, 0),
    ];
    let row = [
        &b" "[..],
        &(-7_i32).to_le_bytes(),
        &1.5_f64.to_le_bytes(),
        &12_500_i64.to_le_bytes(),
        &[2_440_589_u32.to_le_bytes(), 3_600_000_u32.to_le_bytes()].concat(),
        &[1, 0, 0, 0],
    ]
    .concat();
    check(
        Type::Database,
        &dbf(0x30, 3, &columns, &[&row]),
        "Title: n\nDate: 2024-02-29\nDate-Source: header\nColumns: 5\nHeadings: N | X | Y | T | M\nRows: 1\n\
         Kind: Visual FoxPro table\nPartial-Text: N X Y T M | -7 1.50 1.2500 1970-01-02T01:00:00Z\n\
         Truncated: beside 0\n\
         ! limit: has memos in another file (.dbt or .fpt); they are left out",
    );
}

/// Returns a database whose schema has one row.
fn sqlite(kind: &str, name: &str, statement: &str) -> Vec<u8> {
    let number =
        |it: usize| [u8::try_from(0x80 | it >> 7).unwrap(), u8::try_from(it & 0x7f).unwrap()];
    let size = |text: &str| number(13 + 2 * text.len());
    let head =
        [[0x80, 12], size(kind), size(name), size(name), number(1), size(statement)].concat();
    let text = [kind, name, name].concat();
    let record = [&head, text.as_bytes(), &[2], statement.as_bytes()].concat();
    let local = match 39 + record.len().saturating_sub(39) % 508 {
        _ if record.len() <= 477 => record.len(),
        local if local <= 477 => local,
        _ => 39,
    };
    let (inside, beyond) = record.split_at(local);
    let pages: Vec<&[u8]> = beyond.chunks(508).collect();
    let next = |page: usize| {
        let next = if page < pages.len() { page + 2 } else { 0 };
        u32::try_from(next).unwrap().to_be_bytes()
    };
    let first = if pages.is_empty() { Vec::new() } else { next(0).to_vec() };
    let cell = [&number(record.len())[..], &[1], inside, &first].concat();
    let mut page = vec![0; 512];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    page[16] = 2;
    page[59] = 1;
    let at = 512 - cell.len();
    page[100] = 13;
    page[104] = 1;
    page[108..110].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
    page[at..].copy_from_slice(&cell);
    for (number, content) in pages.iter().enumerate() {
        page.extend([&next(number + 1)[..], content].concat());
        page.resize(512 * (number + 2), 0);
    }
    page
}

#[test]
fn a_database_of_sqlite() {
    check(
        Type::Database,
        &sqlite("table", "towns", "CREATE TABLE towns (name, people)"),
        "Title: n\nTables: towns\nKind: SQLite 3 database\nPartial-Text: CREATE TABLE towns (name, people)",
    );
    check(
        Type::Database,
        &sqlite("index", "i", "CREATE INDEX i"),
        "Title: n\nKind: SQLite 3 database",
    );
    // A statement of several pages.
    for bytes in [300, 700, 960, 1_500, 2_000] {
        let names: String = (0..).map(|it| format!("a{it}, ")).take(bytes / 5).collect();
        let statement = format!("CREATE TABLE t ({names}last)");
        let database = sqlite("table", "t", &statement);
        let expected = format!("Kind: SQLite 3 database\nPartial-Text: {statement}");
        assert!(render("n", Type::Database, &database).ends_with(&expected), "{bytes}");
        if 512 < database.len() {
            let rendered = render("n", Type::Database, &database[..database.len() - 512]);
            assert!(rendered.ends_with("! broken: has a statement that breaks off"), "{rendered}");
        }
    }
    // A page that leads to itself.
    let mut page = sqlite("table", "t", "");
    page[100] = 5;
    page[104] = 0;
    page[108..112].copy_from_slice(&1_u32.to_be_bytes());
    assert!(render("n", Type::Database, &page).contains("Truncated: schema-pages 10000"));
}

#[test]
fn a_database_of_access() {
    let words = "Towns of rivers".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let bytes = [
        &b"\0\x01\0\0Standard Jet DB\0\x01\0\0\0"[..],
        &[0; 9],
        &words,
        b"\0\0\xff\xfeUlm on Danube\x07",
    ];
    check(
        Type::Database,
        &bytes.concat(),
        "Title: n\nVersion: Access 2000\nKind: Access database (Jet)\n\
         Partial-Text: Towns of rivers | Ulm on Danube",
    );
}

#[test]
fn data_of_scientists() {
    check(
        Type::ScientificData,
        &netcdf::sample(),
        "Title: Sea ice\nPublisher: Ice House\nHeadings: ice\nKind: NetCDF (classic)\n\
         Partial-Text: lat 9 | title: Sea ice | institution: Ice House | ice | units: metres",
    );
    let mut grib =
        b"GRIB\0\0\x34\x01\0\0\x1c\x02\x62\x01\xff\x80\x0b\x64\0\0\x18\x01\x02\x06\0".to_vec();
    grib.resize(32, 0);
    grib.push(21);
    grib.resize(48, 0);
    grib.extend(b"7777");
    check(
        Type::ScientificData,
        &[&grib[..], b"\0\0", &grib].concat(),
        "Title: n\nDate: 2024-01-02T06:00:00Z\nDate-Source: header\nPublisher: ECMWF\nSubject: Meteorology\nVersion: 1\nMessages: 2\n\
         Kind: GRIB weather data",
    );
    let mut late =
        b"GRIB\0\0\x0a\x02\0\0\0\0\0\0\0\x25\0\0\0\x15\x01\0\x07\0\0\x02\x01\x01".to_vec();
    late.extend([7, 232, 1, 2, 6, 30, 0, 0, 1]);
    check(
        Type::ScientificData,
        &late,
        "Title: n\nDate: 2024-01-02T06:30:00Z\nDate-Source: header\nPublisher: US National Weather Service, NCEP\n\
         Subject: Oceanography\nVersion: 2\nMessages: 1\nKind: GRIB weather data",
    );
    let cards = [
        "SIMPLE  =                    T / standard",
        "NAXIS1  =  20 / columns",
        "NAXIS2  =  10",
        "OBJECT  = 'Ann''s star  ' / name",
        "OBSERVER= 'Ann'",
        "COMMENT  seen twice",
        "END",
    ];
    let fits: String = cards.iter().map(|it| format!("{it:<80}")).collect();
    check(
        Type::ScientificData,
        fits.as_bytes(),
        "Title: Ann's star\nAuthor: Ann\nDimensions: 20x10\nKind: FITS\n\
         Partial-Text: SIMPLE T / standard | NAXIS1 20 / columns | NAXIS2 10 | OBJECT 'Ann''s star ' / name | \
         OBSERVER 'Ann' | seen twice",
    );
    assert!(
        render("n", Type::ScientificData, b"SIMPLE  = T")
            .ends_with("! broken: has a header without an end")
    );
}

#[test]
fn sheets_of_lotus() {
    check(
        Type::Spreadsheet,
        &lotus::sample(),
        "Title: n\nKind: Lotus 1-2-3 sheet, release 2\nPartial-Text: Town People | Ulm 126790 -1",
    );
    let late = [
        &b"\0\0\x1a\0\0\x10"[..],
        &[0; 24],
        b"\x16\0\x09\0\x01\0\0\0'Ulm\0",
        b"\x18\0\x06\0\x01\0\0\x01\x0e\0",
        // 1.5 as the coprocessor has it.
        b"\x17\0\x0e\0\x01\0\0\x02\0\0\0\0\0\0\0\xc0\xff\x3f",
        b"\x25\0\x08\0\x02\0\0\0\x52\x03\0\0",
    ]
    .concat();
    check(
        Type::Spreadsheet,
        &late,
        "Title: n\nKind: Lotus 1-2-3 sheet, release 3\nPartial-Text: Ulm 7 1.5 | 0.13\n\
         ! broken: breaks off before its end",
    );
}

#[test]
fn letters_of_wordperfect() {
    let new =
        b"Two\x80ropes\xd0\x04\x06\0\0\xd0M\x1al\xf0\x21\x01\xf0ll\xf0\x1e\x04\xf0\xd4\x00\x05\0x.";
    check(
        Type::WordProcessor,
        &wordperfect::sample(2, new),
        "Title: Two ropes\nVersion: 6 or later\nKind: WordPerfect document\nPartial-Text: Two ropes | M\u{f6}l\u{e0}ll\u{201b}.",
    );
    let old =
        b"Two ropes\x0ahold\x0dfast\xc3\x0c\xc3\xc0\x3f\x01\xc0\xd1\x01\x04\0\x01\x02\x03\x04.";
    check(
        Type::WordProcessor,
        &wordperfect::sample(0, old),
        "Title: Two ropes\nVersion: 5\nKind: WordPerfect document\nPartial-Text: Two ropes | hold fast\u{f6}.",
    );
    let mut locked = wordperfect::sample(2, b"x");
    locked[12] = 1;
    check(
        Type::WordProcessor,
        &locked,
        "Title: n\nKind: WordPerfect document\n! locked: is locked by a password",
    );
}

#[test]
fn pages_drawings_and_help() {
    check(
        Type::PageLayout,
        b"<MIFFile 7.00>\n<Para\n <PgfTag `Body'>\n <ParaLine\n  <String `Two \\xd2 ropes\\xd3  \\> one'>\n  <Char HardSpace>\n  <String `\\\\x'>\n >\n>\n<Para\n <String `End'>\n>\n",
        "Title: Two \u{201c}ropes\u{201d} > one \\x\nKind: FrameMaker interchange file\n\
         Partial-Text: Two \u{201c}ropes\u{201d} > one \\x | End",
    );
    check(
        Type::Drawing,
        b"  0\r\nSECTION\r\n  2\r\nHEADER\r\n  9\r\n$ACADVER\r\n  1\r\nAC1015\r\n  0\r\nENDSEC\r\n  0\r\nLAYER\r\n  2\r\nWalls\r\n  0\r\nMTEXT\r\n  1\r\n{\\fArial|b0;Two} ropes\\P90%%d \\U+00e4\\S1#2; 100%\r\n  0\r\nEOF\r\n",
        "Title: n\nVersion: AC1015\nKind: AutoCAD exchange file\nPartial-Text: Walls | Two ropes | 90\u{b0} \u{e4}1/2 100%",
    );
    check(
        Type::Help,
        &chm::sample(),
        "Title: Knots\nLanguage: en\nLanguage-Source: declared\nKind: Compiled HTML help\nPartial-Text: bends.htm",
    );
    check(
        Type::Help,
        b"\x3f\x5f\x03\0how to tie two ropes\0",
        "Title: n\nKind: Windows help\nPartial-Text: how to tie two ropes",
    );
}

#[test]
fn a_book_in_one_file() {
    let book = "<?xml version=\"1.0\"?><FictionBook><description><title-info><genre>sea</genre><author>\
        <first-name>Ann</first-name><last-name>Other</last-name></author><book-title>On knots</book-title>\
        <annotation><p>About</p><p>ropes.</p></annotation><lang>en</lang></title-info>\
        <publish-info><publisher>Press</publisher><isbn>978</isbn></publish-info></description>\
        <body><title><p>Part</p><p>one</p></title><p>Two <b>ropes</b>.</p></body><binary>QUJD</binary></FictionBook>";
    check(
        Type::Ebook,
        book.as_bytes(),
        "Title: On knots\nAuthor: Ann Other\nDescription: About ropes.\nPublisher: Press\nGenre: sea\nLanguage: en\nLanguage-Source: declared\n\
         Identifier: isbn:978\nHeadings: Part one\nPartial-Text: Part | one | Two ropes.",
    );
}

#[test]
fn marks_decide_and_words_do_not() {
    assert_eq!(mark_of(b"GRIB is a format of weather data."), None);
    assert_eq!(mark_of(b"GRIB\0\0\0\x02").map(|it| it.1), Some("GRIB weather data"));
    assert_eq!(mark_of(b""), None);
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        (r#type, mark) in proptest::sample::select(vec![
            (Type::Database, &b"\x03\x63\x01\x01\x09\0\0\0\x41\0\x0b\0\0\0"[..]),
            (Type::Database, b"SQLite format 3\0\x02\0"),
            (Type::Database, b"\0\x01\0\0Standard Jet DB\0\x01"),
            (Type::ScientificData, b"CDF\x01\0\0\0\0\0\0\0\x0a\0\0\0\x01"),
            (Type::ScientificData, b"CDF\x05\0\0\0\0"),
            (Type::ScientificData, b"GRIB\0\0\x09\x01"),
            (Type::ScientificData, b"SIMPLE  ="),
            (Type::Spreadsheet, b"\0\0\x02\0\x06\x04"),
            (Type::Spreadsheet, b"\0\0\x1a\0\0\x10"),
            (Type::WordProcessor, b"\xffWPC\x10\0\0\0\x01\x0a\x02\0\0\0\0\0"),
            (Type::WordProcessor, b"\xffWPC\x10\0\0\0\x01\x0a\0\0\0\0\0\0"),
            (Type::PageLayout, b"<MIFFile 7>\n<String `"),
            (Type::Drawing, b"0\nSECTION\n0\nTEXT\n1\n"),
            (Type::Help, b"ITSF\x03\0\0\0"),
            (Type::Ebook, b"<FictionBook><body>"),
            (Type::OneNote, b""),
        ]),
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 32..127_u8, Just(0_u8), Just(1)], 0..300),
        noise in proptest::collection::vec((0..600_usize, any::<u8>()), 0..4),
    ) {
        let mut samples = vec![[mark, &bytes].concat()];
        samples.extend(match r#type {
            Type::Help => Some(chm::sample()),
            Type::ScientificData => Some(netcdf::sample()),
            Type::Spreadsheet => Some(lotus::sample()),
            Type::Database => Some(sqlite("table", "t", "CREATE TABLE t (a)")),
            _ => None,
        });
        for mut bytes in samples {
            for (at, byte) in &noise {
                if let Some(it) = bytes.get_mut(*at) {
                    *it = *byte;
                }
            }
            prop_assert!(render("n", r#type, &bytes).starts_with("Title: "));
        }
    }
}
