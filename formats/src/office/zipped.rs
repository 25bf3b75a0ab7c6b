//! Documents of other programs in zip files of XML: Visio, XPS, InDesign, Hangul and iWork.
//!
//! Source: \[MS-VSDX\]; ECMA-388 (OpenXPS) §12 (glyphs); Adobe's IDML File Format Specification;
//! KS X 6101 (OWPML, `.hwpx`); the parts of iWork '09 as its programs write them.
//!
//! # Differences from the specification
//!
//! * Only the text of pages and stories is read, in the order of the parts. iWork since 2013 packs its
//!   text in a format of its own, which is not read.

use super::package::Package;
use super::xml::Piece;
use super::{Kind, OfficeDraft, PROPERTIES};
use crate::limit::Limit;
use crate::text::Body;
use crate::{Draft, Input};

/// A kind of document: its parts, and where in them text stands.
struct Family {
    /// What it is called in `Kind`.
    kind: &'static str,
    /// The folder and the end of the name of a part that only this kind has.
    mark: (&'static str, &'static str),
    /// The folder and the end of the names of the parts that have text.
    parts: (&'static str, &'static str),
    /// Elements with text in them, by local name.
    texts: &'static [&'static str],
    /// An element with text in an attribute.
    attribute: (&'static str, &'static str),
    /// Elements after which a line ends.
    lines: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        kind: "Visio drawing",
        mark: ("visio/", "document.xml"),
        parts: ("visio/pages/page", ".xml"),
        texts: &["Text"],
        attribute: ("", ""),
        lines: &["Text"],
    },
    Family {
        kind: "XPS document",
        mark: ("", ".fdseq"),
        parts: ("", ".fpage"),
        texts: &[],
        attribute: ("Glyphs", "UnicodeString"),
        lines: &["Glyphs"],
    },
    Family {
        kind: "InDesign document (IDML)",
        mark: ("designmap", ".xml"),
        parts: ("Stories/", ".xml"),
        texts: &["Content"],
        attribute: ("", ""),
        lines: &["Br", "ParagraphStyleRange"],
    },
    Family {
        kind: "Hangul document",
        mark: ("Contents/section", ".xml"),
        parts: ("Contents/section", ".xml"),
        texts: &["t"],
        attribute: ("", ""),
        lines: &["p"],
    },
    Family {
        kind: "iWork document",
        mark: ("index.", "xml"),
        parts: ("index.", "xml"),
        texts: &["p"],
        attribute: ("ct", "s"),
        lines: &["p", "ct"],
    },
    Family {
        kind: "Keynote slides",
        mark: ("index.", "apxl"),
        parts: ("index.", "apxl"),
        texts: &["p"],
        attribute: ("", ""),
        lines: &["p"],
    },
    Family {
        kind: "iWork document (2013 or later)",
        mark: ("Index", ""),
        parts: ("Index", ".xml"),
        texts: &[],
        attribute: ("", ""),
        lines: &[],
    },
];

/// Reads a document of one of these kinds; `None` if it is of none.
pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Option<Draft<'a>> {
    let has = |(folder, end): (&str, &str)| !package.in_folder(folder, end).is_empty();
    let family = FAMILIES.iter().find(|it| has(it.mark))?;
    let mut document = OfficeDraft::new(input);
    document.properties.read_parts(package, &PROPERTIES);
    let (folder, end) = family.parts;
    for path in package.in_folder(folder, end) {
        if document.body.is_full() || package.is_over() {
            break;
        }
        family.part(package, &path, &mut document);
    }
    let mut draft = document.draft();
    draft.other("Kind", family.kind);
    Some(draft)
}

impl Family {
    fn part(&self, package: &mut Package<'_>, path: &str, document: &mut OfficeDraft) {
        let mut paragraph = Body::new(Limit::Paragraph.bound());
        let mut inside = 0_usize;
        package.walk(path, &mut |piece| {
            match piece {
                Piece::Start(it) => {
                    inside += usize::from(self.texts.contains(&it.name));
                    if self.attribute.0 == it.name {
                        paragraph.push_squeezed(&it.get(self.attribute.1));
                    }
                }
                Piece::Text(text) if 0 < inside => paragraph.push_squeezed(text),
                Piece::Text(_) => {}
                Piece::End(name) => {
                    if self.texts.contains(&name) {
                        inside = inside.saturating_sub(1);
                    }
                    if self.lines.contains(&name) {
                        document.take_paragraph(&mut paragraph, Kind::Text);
                    }
                }
            }
            !document.body.is_full()
        });
        document.take_paragraph(&mut paragraph, Kind::Text);
    }
}
