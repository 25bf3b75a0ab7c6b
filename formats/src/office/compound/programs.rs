//! The programs that write compound files, told apart by the streams and storages right below the root, or
//! by the class of the root.
//!
//! Source: Microsoft's \[MS-CFB\] 2.6.1 (the class of the root), and the programs' own formats.

use super::{Compound, ROOT};
use crate::Type;
use crate::office::outlook;

/// What the directory of a compound file says about its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// A program that is known: the type, and what the file is.
    Known(Type, &'static str),
    /// None that is known.
    Other,
    /// The directory, or a part of it, is not in the bytes.
    Unseen,
}

/// Streams and storages that only one program has, with the type and what the file is. Of two that are
/// there, the earlier one decides: slides and drawings may have a workbook beside them.
const NAMES: &[(&str, Type, &str)] = &[
    (outlook::PROPERTIES, Type::Mail, "Outlook item"),
    ("VisioDocument", Type::Drawing, "Visio drawing"),
    ("PowerPoint Document", Type::PowerPoint, "PowerPoint slides"),
    ("PP40", Type::PowerPoint, "PowerPoint 4 slides"),
    ("WordDocument", Type::Word, "Word document"),
    ("Workbook", Type::Excel, "Excel workbook"),
    ("Book", Type::Excel, "Excel workbook"),
    ("Quill", Type::PageLayout, "Publisher document"),
    ("HwpSummaryInformation", Type::WordProcessor, "Hangul document"),
    ("\u{5}HwpSummaryInformation", Type::WordProcessor, "Hangul document"),
    ("PrvText", Type::WordProcessor, "Hangul document"),
    ("PerfectOffice_MAIN", Type::WordProcessor, "WordPerfect document"),
    ("Props9", Type::Database, "Project plan"),
    ("Props12", Type::Database, "Project plan"),
    ("Props14", Type::Database, "Project plan"),
    ("NativeContent_MAIN", Type::Spreadsheet, "Quattro Pro spreadsheet"),
    ("MatOST", Type::WordProcessor, "Works document"),
    ("WksSSWorkBook", Type::Spreadsheet, "Works spreadsheet"),
    ("StarWriterDocument", Type::WordProcessor, "StarWriter document"),
    ("StarCalcDocument", Type::Spreadsheet, "StarCalc spreadsheet"),
    ("StarDrawDocument", Type::Presentation, "StarImpress slides"),
    ("StarDrawDocument3", Type::Presentation, "StarImpress slides"),
    ("PageMaker", Type::PageLayout, "PageMaker document"),
    ("Dgn~H", Type::Drawing, "MicroStation drawing"),
    ("RSeDb", Type::Drawing, "Inventor model"),
    ("SwDocMgrTempStorage", Type::Drawing, "SolidWorks model"),
    ("BasicFileInfo", Type::Drawing, "Revit model"),
];

/// Classes of roots: the first four bytes of their identifiers, as a number.
const CLASSES: &[(u32, Type, &str)] = &[
    (0x000c_1084, Type::Archive, "Windows installer package"),
    (0x000c_1086, Type::Archive, "Windows installer patch"),
    (0x000c_1082, Type::Archive, "Windows installer transform"),
    (0x74b7_8f3a, Type::Database, "Project plan"),
    (0x5661_6700, Type::Image, "FlashPix picture"),
    (0x0002_1a13, Type::Drawing, "Visio drawing"),
    (0x0002_1a14, Type::Drawing, "Visio drawing"),
    (0x0002_1201, Type::PageLayout, "Publisher document"),
    (0x0002_0900, Type::Word, "Word document"),
    (0x0002_0906, Type::Word, "Word document"),
    (0x0002_0810, Type::Excel, "Excel workbook"),
    (0x0002_0820, Type::Excel, "Excel workbook"),
    (0x6481_8d10, Type::PowerPoint, "PowerPoint slides"),
];

/// Returns what the directory of a compound file says, as far as it is in `bytes`: the front of the file, or
/// all of it.
pub fn inside(bytes: &[u8]) -> Inside {
    Compound::directory_of(bytes).map_or(Inside::Unseen, |file| program(&file))
}

pub(in crate::office) fn program(file: &Compound<'_>) -> Inside {
    let named = NAMES.iter().find(|(name, ..)| file.child(ROOT, name).is_some());
    let named = named.map(|(_, r#type, kind)| (*r#type, *kind));
    let class = crate::numbers::le32(file.class(), 0);
    let classed = || CLASSES.iter().find(|(it, ..)| Some(*it) == class);
    match named.or_else(|| classed().map(|(_, r#type, kind)| (*r#type, *kind))) {
        Some((r#type, kind)) => Inside::Known(r#type, kind),
        None if file.is_whole => Inside::Other,
        None => Inside::Unseen,
    }
}
