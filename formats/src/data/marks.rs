//! The marks by which programs know their own files, with what each is called.
//!
//! Source: the formats' own definitions, where there are any; else what file(1) and PRONOM say.

use super::dbf;
use crate::Type;
use crate::text::is_text;

/// A printable mark shorter than this many bytes may begin a text, too.
const WORD_BYTES: usize = 8;

/// A mark: the type, its offset, the bytes, and what the file is called in `Kind`.
type Mark = (Type, usize, &'static [u8], &'static str);

/// All marks. Of two that match, the earlier one decides.
const MARKS: &[Mark] = &[
    (Type::Ebook, 60, b"BOOKMOBI", "Mobipocket book"),
    (Type::Ebook, 60, b"TEXtREAd", "PalmDOC book"),
    (Type::Ebook, 60, b"TEXtTlDc", "PalmDOC book"),
    (Type::Ebook, 60, b"PNRdPPrs", "eReader book"),
    (Type::Ebook, 60, b"zTXTGPlm", "zTXT book"),
    (Type::Ebook, 60, b"DataPlkr", "Plucker book"),
    (Type::Ebook, 0, b"ITOLITLS", "Microsoft Reader book"),
    (Type::Ebook, 0, b"L\0R\0F\0\0\0", "BroadBand eBook"),
    (Type::Ebook, 0, b"TPZ0", "Kindle Topaz book"),
    (Type::Database, 0, b"SQLite format 3\0", "SQLite 3 database"),
    (Type::Database, 4, b"Standard Jet DB\0", "Access database (Jet)"),
    (Type::Database, 4, b"Standard ACE DB\0", "Access database (ACE)"),
    (Type::Database, 4, b"MSISAM Database\0", "Money database"),
    (Type::Database, 0, b"!BDN", "Outlook store of mail"),
    (Type::Database, 0, b"\x1a\0\0\x04\0\0", "Lotus Notes database"),
    (Type::Database, 12, b"\x62\x31\x05\0", "Berkeley DB (B-tree)"),
    (Type::Database, 12, b"\x61\x15\x06\0", "Berkeley DB (hash)"),
    (Type::Database, 0, b"\xce\x9a\x57\x13", "GDBM database"),
    (Type::Database, 0, b"\xcf\x9a\x57\x13", "GDBM database"),
    (Type::ScientificData, 0, b"\x89HDF\r\n\x1a\n", "HDF5"),
    (Type::ScientificData, 512, b"\x89HDF\r\n\x1a\n", "HDF5"),
    (Type::ScientificData, 0, b"\x0e\x03\x13\x01", "HDF4"),
    (Type::ScientificData, 0, b"CDF\x01", "NetCDF (classic)"),
    (Type::ScientificData, 0, b"CDF\x02", "NetCDF (64-bit offsets)"),
    (Type::ScientificData, 0, b"CDF\x05", "NetCDF (64-bit data)"),
    (Type::ScientificData, 0, b"\xcd\xf3\x00\x01", "NASA CDF"),
    (Type::ScientificData, 0, b"GRIB", "GRIB weather data"),
    (Type::ScientificData, 0, b"BUFR", "BUFR weather data"),
    (Type::ScientificData, 0, b"SIMPLE  =", "FITS"),
    (Type::ScientificData, 0, b"MATLAB 5.0 MAT-file", "MATLAB data"),
    (Type::ScientificData, 0, b"MATLAB 7.3 MAT-file", "MATLAB data (HDF5)"),
    (Type::ScientificData, 0, b"$FL2@(#)", "SPSS data"),
    (Type::ScientificData, 0, b"$FL3@(#)", "SPSS data (compressed)"),
    (Type::ScientificData, 12, b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0", "SAS data set"),
    (Type::ScientificData, 0, b"HEADER RECORD*******LIB", "SAS transport file"),
    (Type::ScientificData, 0, b"<stata_dta>", "Stata data"),
    (Type::ScientificData, 0, b"\x93NUMPY", "NumPy array"),
    (Type::ScientificData, 0, b"PAR1", "Parquet table"),
    (Type::ScientificData, 0, b"ARROW1\0\0", "Arrow table"),
    (Type::ScientificData, 0, b"FEA1", "Feather table"),
    (Type::ScientificData, 0, b"Obj\x01", "Avro records"),
    (Type::ScientificData, 0, b"ORC\x0a", "ORC table"),
    (Type::ScientificData, 0, b"RDX2\n", "R data"),
    (Type::ScientificData, 0, b"RDX3\n", "R data"),
    (Type::ScientificData, 0, b"LASF", "LAS point cloud"),
    (Type::ScientificData, 0, b"\0\0\x27\x0a\0\0\0\0", "Shapefile"),
    (Type::Drawing, 0, b"AC1.", "AutoCAD drawing"),
    (Type::Drawing, 0, b"AC1001", "AutoCAD drawing, release 2"),
    (Type::Drawing, 0, b"AC1002", "AutoCAD drawing, release 2.5"),
    (Type::Drawing, 0, b"AC1003", "AutoCAD drawing, release 2.6"),
    (Type::Drawing, 0, b"AC1004", "AutoCAD drawing, release 9"),
    (Type::Drawing, 0, b"AC1006", "AutoCAD drawing, release 10"),
    (Type::Drawing, 0, b"AC1009", "AutoCAD drawing, release 11/12"),
    (Type::Drawing, 0, b"AC1012", "AutoCAD drawing, release 13"),
    (Type::Drawing, 0, b"AC1014", "AutoCAD drawing, release 14"),
    (Type::Drawing, 0, b"AC1015", "AutoCAD drawing, 2000"),
    (Type::Drawing, 0, b"AC1018", "AutoCAD drawing, 2004"),
    (Type::Drawing, 0, b"AC1021", "AutoCAD drawing, 2007"),
    (Type::Drawing, 0, b"AC1024", "AutoCAD drawing, 2010"),
    (Type::Drawing, 0, b"AC1027", "AutoCAD drawing, 2013"),
    (Type::Drawing, 0, b"AC1032", "AutoCAD drawing, 2018"),
    (Type::Drawing, 0, b"AutoCAD Binary DXF\r\n", "AutoCAD exchange file (binary)"),
    (Type::Drawing, 0, b"\x08\x09\xfe\x02", "MicroStation design"),
    (Type::Drawing, 0, b"(DWF V", "Design Web Format"),
    (Type::Drawing, 0, b"ISO-10303-21;", "STEP model"),
    (Type::Drawing, 0, b"VjCD0100", "ChemDraw drawing"),
    (Type::Drawing, 0, b"BLENDER", "Blender model"),
    (Type::Drawing, 0, b"glTF", "glTF model"),
    (Type::PageLayout, 0, b"<MIFFile", "FrameMaker interchange file"),
    (Type::PageLayout, 0, b"<MakerFile", "FrameMaker document"),
    (Type::PageLayout, 0, b"<BookFile", "FrameMaker book"),
    (
        Type::PageLayout,
        0,
        b"\x06\x06\xed\xf5\xd8\x1d\x46\xe5\xbd\x31\xef\xe7\xfe\x74\xb7\x1d",
        "InDesign document",
    ),
    (Type::PageLayout, 4, b"MMXPR3", "QuarkXPress document"),
    (Type::PageLayout, 4, b"IIXPR3", "QuarkXPress document"),
    (
        Type::OneNote,
        0,
        b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3",
        "OneNote section",
    ),
    (
        Type::OneNote,
        0,
        b"\xa1\x2f\xff\x43\xd9\xef\x76\x4c\x9e\xe2\x10\xea\x57\x22\x76\x5f",
        "OneNote table of contents",
    ),
    (Type::Help, 0, b"ITSF\x03\0\0\0", "Compiled HTML help"),
    (Type::Help, 0, b"\x3f\x5f\x03\0", "Windows help"),
    (Type::WordProcessor, 0, b"HWP Document File V", "Hangul document, version 3"),
    (Type::WordProcessor, 0, b"WordPro\0", "Lotus Word Pro document"),
    (Type::WordProcessor, 0, b"\x31\xbe\0\0\0\xab", "Windows Write document"),
    (Type::WordProcessor, 0, b"<abiword", "AbiWord document"),
    (Type::WordProcessor, 0, b"<!DOCTYPE abiword", "AbiWord document"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x04\x04", "Lotus 1-2-3 sheet, release 1A"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x05\x04", "Symphony sheet"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x06\x04", "Lotus 1-2-3 sheet, release 2"),
    (Type::Spreadsheet, 0, b"\0\0\x1a\0\0\x10", "Lotus 1-2-3 sheet, release 3"),
    (Type::Spreadsheet, 0, b"\0\0\x1a\0\x02\x10", "Lotus 1-2-3 sheet, release 4"),
    (Type::Spreadsheet, 0, b"\0\0\x1a\0\x03\x10", "Lotus 1-2-3 sheet, version 97"),
    (Type::Spreadsheet, 0, b"\0\0\x1a\0\x05\x10", "Lotus 1-2-3 sheet, version 9"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x20\x51", "Quattro Pro sheet for DOS"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x21\x51", "Quattro Pro sheet for DOS, version 5"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x01\x10", "Quattro Pro sheet for Windows, version 1"),
    (Type::Spreadsheet, 0, b"\0\0\x02\0\x02\x10", "Quattro Pro sheet for Windows, version 6"),
    (Type::Spreadsheet, 0, b"\xff\0\x02\0\x04\x04", "Works sheet"),
    (Type::Image, 128, b"DICM", "DICOM picture"),
    (Type::Image, 0, b"BPG\xfb", "BPG picture"),
    (Type::Image, 0, b"\x97JB2\r\n\x1a\n", "JBIG2 picture"),
    (Type::Image, 0, b"SDPX\0", "DPX picture"),
    (Type::Image, 0, b"NITF0", "NITF picture"),
    (Type::Image, 0, b"Paint Shop Pro Image", "Paint Shop Pro picture"),
    (Type::Image, 0, b"\xd7\xcd\xc6\x9a\0\0", "Windows metafile"),
    (Type::Image, 40, b" EMF\0\0\x01\0", "Enhanced metafile"),
    (Type::MacCompressed, 0, b"StuffIt (c)", "StuffIt archive"),
    (Type::MacCompressed, 10, b"rLau", "StuffIt archive"),
    (Type::MacCompressed, 0, b"\0\x05\x16\0\0", "AppleSingle file"),
    (Type::MacCompressed, 0, b"\0\x05\x16\x07\0", "AppleDouble file"),
    (Type::Binary, 0, b"bplist0", "Binary property list"),
    (Type::Binary, 0, b"TZif", "Time zone"),
    (Type::Binary, 0, b"\xd4\xc3\xb2\xa1", "Captured network packets"),
    (Type::Binary, 0, b"\xa1\xb2\xc3\xd4", "Captured network packets"),
    (Type::Binary, 0, b"\x0a\x0d\x0d\x0a", "Captured network packets (next generation)"),
    (Type::Binary, 0, b"d8:announce", "BitTorrent metadata"),
    (Type::Binary, 0, b"\xfe\xed\xfe\xed\0\0", "Java key store"),
    (Type::Binary, 36, b"acspAPPL", "Color profile"),
    (Type::Binary, 36, b"acspMSFT", "Color profile"),
    (Type::Binary, 0, b"GVariant", "GVariant table"),
    (Type::Binary, 0, b"\x80\x02ccopy_reg", "Python pickle"),
    (Type::Binary, 0, b"L\0\0\0\x01\x14\x02\0", "Windows shortcut"),
];

/// Kinds of WordPerfect files by the product and file type of their prefix.
fn word_perfect(head: &[u8]) -> Option<(Type, &'static str)> {
    Some(match head.get(8..10)? {
        [1, 10] => (Type::WordProcessor, "WordPerfect document"),
        [1, 1] => (Type::Binary, "WordPerfect macro"),
        [1, 22] => (Type::Image, "WordPerfect graphics"),
        [15, _] => (Type::Presentation, "Corel Presentations slides"),
        _ => (Type::Binary, "WordPerfect data"),
    })
}

/// Returns type and name of the program's file that begins with `head`.
pub fn mark_of(head: &[u8]) -> Option<(Type, &'static str)> {
    if head.starts_with(super::wordperfect::MARK) {
        return word_perfect(head);
    }
    let found = MARKS.iter().find(|(_, at, mark, _)| {
        let is_word = mark.len() < WORD_BYTES && mark.iter().all(u8::is_ascii_graphic);
        head.get(*at..).is_some_and(|it| it.starts_with(mark)) && !(is_word && is_text(head))
    });
    found
        .map(|(r#type, _, _, kind)| (*r#type, *kind))
        .or_else(|| dbf::kind(head).map(|kind| (Type::Database, kind)))
}

/// Returns the marks of objects of this type that stand at their beginning.
pub fn marks_of(r#type: Type) -> Vec<&'static [u8]> {
    let own = MARKS.iter().filter(|(it, at, ..)| *it == r#type && *at == 0);
    own.map(|(_, _, mark, _)| *mark).collect()
}
