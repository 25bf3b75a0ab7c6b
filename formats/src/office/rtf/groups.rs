//! The groups of a document: where their text goes, and the properties that hold in them.

use encoding_rs::Encoding;

/// Groups without text of the document.
pub(super) const SKIPPED: [&str; 18] = [
    "bkmkstart",
    "bkmkend",
    "colortbl",
    "pict",
    "ftnsep",
    "ftnsepc",
    "ftncn",
    "listtext",
    "pntext",
    "pntxta",
    "pntxtb",
    "sp",
    "xe",
    "tc",
    "filetbl",
    "revtbl",
    "objdata",
    "printim",
];
/// Groups with the headers and footers of pages: of all, of left, right and first ones.
pub(super) const PAGE_TEXTS: [&str; 8] =
    ["header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"];
/// Groups of `\info` with text.
pub(super) const FIELDS: [&str; 9] = [
    "title",
    "subject",
    "author",
    "keywords",
    "doccomm",
    "company",
    "category",
    "operator",
    "generator",
];

/// The destination of a group's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Text,
    Skipped,
    Fonts,
    Styles,
    Info,
    Field(&'static str),
    Created,
    /// A field's instruction: the target, if it is a link.
    Instruction,
}

/// The properties of a group. At its end those of the group around it hold again.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    pub(super) destination: Destination,
    /// The destination around `\upr`, where the text of its `\ud` goes: the same in Unicode.
    pub(super) outer: Destination,
    /// Number of characters after each `\u` that stand in for it in programs without Unicode.
    pub(super) stand_ins: usize,
    pub(super) encoding: &'static Encoding,
    pub(super) hidden: bool,
    /// Whether the text is in the header or footer of pages.
    pub(super) in_page: bool,
}
