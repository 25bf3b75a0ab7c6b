//! Tests of fonts, built byte by byte.

use proptest::prelude::*;

use crate::Type;
use crate::testing::render;

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("f.font", Type::Font, bytes), expected);
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap().to_be_bytes()
}

fn long(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

/// Returns a `name` table: names for Windows in English, then one in French.
fn names(names: &[(u16, &str)]) -> Vec<u8> {
    let (mut records, mut storage) = (Vec::new(), Vec::new());
    let french = [(4_u16, "Exemple Gras")];
    for (language, (id, name)) in
        names.iter().map(|it| (0x409_u16, it)).chain(french.iter().map(|it| (0x40c, it)))
    {
        let value: Vec<u8> = name.encode_utf16().flat_map(u16::to_be_bytes).collect();
        records.extend([0, 3, 0, 1]);
        records.extend(language.to_be_bytes());
        records.extend(id.to_be_bytes());
        records.extend(short(value.len()));
        records.extend(short(storage.len()));
        storage.extend(value);
    }
    let count = records.len() / 12;
    [[0, 0].as_slice(), &short(count), &short(6 + records.len()), &records, &storage].concat()
}

fn scripts(bits: u128) -> Vec<u8> {
    let mut table = vec![0; 96];
    for word in 0..4 {
        let bits = u32::try_from(bits >> (32 * word) & 0xffff_ffff).unwrap();
        table[42 + 4 * word..46 + 4 * word].copy_from_slice(&bits.to_be_bytes());
    }
    table
}

const NAMES: &[(u16, &str)] = &[
    (0, "Copyright 2020 Ann"),
    (1, "Example"),
    (4, "Example Bold"),
    (5, "Version 1.2"),
    (9, "Ann Example"),
    (10, "For signs"),
    (11, "http://o.example/"),
    (13, "OFL 1.1"),
];

const EXPECTED: &str = "Title: Example Bold\nAuthor: Ann Example\nDescription: For signs\n\
     Copyright: Copyright 2020 Ann\nLicense: OFL 1.1\nFonts: Example\nVersion: 1.2\n\
     Scripts: Latin | Greek | Khmer\nURL-References: http://o.example/\nPartial-Text: For signs";

fn tables() -> [(&'static [u8], Vec<u8>); 2] {
    [(b"OS/2", scripts(1 | 1 << 7 | 1 << 80)), (b"name", names(NAMES))]
}

#[test]
fn an_opentype_font() {
    let mut directory = [b"\0\x01\0\0".as_slice(), &short(2), &[0; 6]].concat();
    let mut data = Vec::new();
    for (name, table) in tables() {
        directory.extend(name);
        directory.extend([0; 4]);
        directory.extend(long(44 + data.len()));
        directory.extend(long(table.len()));
        data.extend(table);
    }
    check(&[directory, data].concat(), EXPECTED);
}

#[test]
fn a_web_font() {
    let mut directory = [b"wOFF\0\x01\0\0".as_slice(), &[0; 4], &short(2), &[0; 30]].concat();
    let mut data = Vec::new();
    for (name, table) in tables() {
        let mut packer = flate2::read::ZlibEncoder::new(&*table, flate2::Compression::best());
        let mut packed = Vec::new();
        std::io::Read::read_to_end(&mut packer, &mut packed).unwrap();
        directory.extend(name);
        directory.extend(long(84 + data.len()));
        directory.extend(long(packed.len()));
        directory.extend(long(table.len()));
        directory.extend([0; 4]);
        data.extend(packed);
    }
    check(&[directory, data].concat(), EXPECTED);
}

#[test]
fn type_1_fonts_and_their_metrics() {
    let program = "%!PS-AdobeFont-1.0: Example-Bold 1.2\n%%CreationDate: today\n% For signs\n\
                   /FontInfo 9 dict dup begin\n/version (1.2) readonly def\n\
                   /Notice (\\(c\\) 2020 (Ann)) readonly def\n/FullName (Example Bold) readonly def\n\
                   /FamilyName (Example) readonly def\ncurrentfile eexec\n/FamilyName (No)";
    let expected = "Title: Example Bold\nDescription: For signs\nCopyright: (c) 2020 (Ann)\n\
                    Fonts: Example\nVersion: 1.2\nPartial-Text: For signs";
    check(program.as_bytes(), expected);
    let len = u32::try_from(program.len()).unwrap().to_le_bytes();
    check(&[b"\x80\x01".as_slice(), &len, program.as_bytes(), b"\x80\x02"].concat(), expected);
    check(
        b"StartFontMetrics 2.0\nComment Creation Date: today\nFullName Example Bold\n\
          FamilyName Example\nVersion 1.2\nNotice (c) 2020 (Ann)\nComment For signs\n\
          StartCharMetrics 9\nFamilyName No\n",
        expected,
    );
}

#[test]
fn bitmap_fonts() {
    check(
        b"STARTFONT 2.1\nCOMMENT For signs\nFONT -x-example-\nSTARTPROPERTIES 6\nFOUNDRY \"X\"\n\
          FAMILY_NAME \"Example\"\nWEIGHT_NAME \"Bold\"\nSLANT \"I\"\nPIXEL_SIZE 12\n\
          COPYRIGHT \"Public domain\"\nCHARSET_REGISTRY \"ISO8859\"\nCHARSET_ENCODING \"1\"\n\
          ENDPROPERTIES\nCHARS 1\nFAMILY_NAME \"No\"\n",
        "Title: Example Bold Italic 12\nDescription: For signs\nPublisher: X\nSubject: ISO8859-1\n\
         Copyright: Public domain\nFonts: Example\nPartial-Text: For signs",
    );
    let strings = b"FAMILY_NAME\0Example\0PIXEL_SIZE\0";
    let little = |number: u32| number.to_le_bytes();
    let table = [
        little(0),
        little(2),
        little(0),
        [1, 12, 0, 0],
        [0, 20, 0, 0],
        [0, 0, 13, 0],
        [0, 0, 0, 0],
        little(31),
    ]
    .concat();
    // Two properties of nine bytes, two bytes of padding, the length of the strings.
    let table = [&table[..26], &[0, 0], &little(31), strings.as_slice()].concat();
    let len = u32::try_from(table.len()).unwrap();
    let head = [b"\x01fcp".to_owned(), little(1), little(1), little(0), little(len), little(24)];
    check(&[head.concat(), table].concat(), "Title: Example 13\nFonts: Example");
}

#[test]
fn names_far_behind_the_front_are_read() {
    let filler = "X 1\n".repeat(20_000);
    check(
        format!("STARTFONT 2.1\n{filler}FAMILY_NAME \"Example\"\nCHARS 1\n").as_bytes(),
        "Title: Example\nFonts: Example",
    );
    check(
        format!("StartFontMetrics 2.0\n{filler}FamilyName Example\n").as_bytes(),
        "Title: f.font\nFonts: Example",
    );
    check(
        format!("%!PS-AdobeFont-1.0\n{filler}/FamilyName (Example) def\neexec").as_bytes(),
        "Title: f.font\nFonts: Example",
    );
    let table = names(&[(1, "Example")]);
    let others = [[0; 8], [0, 0, 0, 1, 0, 0, 0, 1]].concat().repeat(400);
    let start = long(12 + others.len() + 16);
    let entry = [b"name".as_slice(), &[0; 4], &start, &long(table.len())].concat();
    let head = [b"\0\x01\0\0".as_slice(), &short(401), &[0; 6]].concat();
    check(&[head, others, entry, table].concat(), "Title: f.font\nFonts: Example");
}

#[test]
fn hostile_fonts_end() {
    let broken = "Title: f.font\n! broken: is cut off or damaged: its names cannot be read";
    check(b"\0\x01\0\0\xff\xff\0\0\0\0\0\0", broken);
    let faces =
        "Truncated: faces 256\n! limit: has more than 256 fonts in it; the rest was left out";
    let collection = b"ttcf\0\x01\0\0\xff\xff\xff\xff\0\0\0\x0c";
    check(collection, &broken.replace("\n", &format!("\n{faces}\n")));
    check(b"\x01fcp\xff\xff\xff\xff", broken);
    // A collection whose thousands of faces are the collection itself.
    let own = [b"ttcf\0\x01\0\0\xff\xff\xff\xff".as_slice(), &[0; 40_000]].concat();
    render("f.ttc", Type::Font, &own);
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        magic in proptest::sample::select(vec![
            b"\0\x01\0\0\0\x01\0\0\0\0\0\0name\0\0\0\0\0\0\0\x1c\0\0\x01\0".to_vec(),
            b"wOFF\0\x01\0\0".to_vec(), b"\x01fcp\x01\0\0\0\x01\0\0\0\0\0\0\0\xff\0\0\0\x18\0\0\0".to_vec(),
            b"STARTFONT 2.1\n".to_vec(), b"%!PS-AdobeFont-1.0\n/Notice (".to_vec(), b"ttcf".to_vec(),
        ]),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        render("f.font", Type::Font, &[magic, rest].concat());
    }
}
