//! PowerPoint slides from before 2007: nested records, some of which are text.
//!
//! Source: Microsoft's \[MS-PPT\] 2.3.1 (record header), 2.3.2 (`CurrentUserAtom`), 2.4.14.3
//! (`SlideListWithTextContainer`), 2.5.3 (`MainMasterContainer`), 2.7.8 (`PlaceholderAtom`), 2.9.13 and
//! 2.9.42 to 2.9.44 (text); Apache POI's notes on `PP97_DUALSTORAGE`.
//!
//! # Differences from the specification
//!
//! * A document saved by "fast save" may have changed text twice in its stream; both are read.

use super::art::{self, ArtRecord, ArtRecords};
use super::compound::{Compound, ROOT, utf16};
use super::{Kind, OfficeDraft};
use crate::Input;
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le32};
use crate::object::ProblemKind;
use crate::text::front;

/// The stream with the slides.
pub(super) const STREAM: &str = "PowerPoint Document";
/// The storage with the newer form of slides that are saved for PowerPoint 95 as well.
const DUAL: &str = "PP97_DUALSTORAGE";
/// The number in the stream `Current User` that says that the slides are locked, and its offset.
const LOCKED: u32 = 0xf3d1_c4df;
const LOCKED_AT: usize = 12;
/// Kinds of records.
const SLIDE: u16 = 1006;
const NOTES: u16 = 1008;
const SLIDE_PERSIST: u16 = 1011;
const MASTER: u16 = 1016;
const PLACEHOLDER: u16 = 3011;
const TEXT_HEADER: u16 = 3999;
const TEXT_WIDE: u16 = 4000;
const TEXT_NARROW: u16 = 4008;
const HANDOUT: u16 = 4041;
const SLIDES_WITH_TEXT: u16 = 4080;

/// Returns the storage with the slides that PowerPoint 97 and later read, if there are any.
pub(super) fn storage(file: &Compound<'_>) -> usize {
    let dual = file.child(ROOT, DUAL).map(|it| it.number);
    dual.filter(|it| file.child(*it, STREAM).is_some()).unwrap_or(ROOT)
}

/// The reader of slides.
struct SlidesReader<'d> {
    in_slides: bool,
    in_drawings: bool,
    /// Whether the shape only says where its text goes: "Click to edit".
    is_template: bool,
    kind: Kind,
    document: &'d mut OfficeDraft,
}

pub(super) fn read(
    stream: &[u8],
    user: Option<&[u8]>,
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Result<(), (ProblemKind, String)> {
    if user.is_some_and(|it| le32(it, LOCKED_AT) == Some(LOCKED)) {
        return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
    }
    let (in_slides, in_drawings, is_template, kind) = (false, false, false, Kind::Text);
    let mut slides = SlidesReader { in_slides, in_drawings, is_template, kind, document };
    let mut records = ArtRecords::new(stream);
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(record) = records.next() {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time on the slides".to_owned()));
        }
        if slides.document.body.is_full() {
            break;
        }
        // The list of masters has only placeholders to click on.
        if record.kind == SLIDES_WITH_TEXT && record.instance == 1 {
            records.leave();
        } else {
            slides.take(&record);
        }
    }
    Ok(())
}

impl SlidesReader<'_> {
    fn take(&mut self, record: &ArtRecord<'_>) {
        match record.kind {
            SLIDES_WITH_TEXT => {
                (self.in_slides, self.is_template) = (record.instance == 0, false);
                if record.instance == 2 {
                    self.document.body.place("notes");
                }
            }
            // What is drawn follows the list of all slides; the drawings may be in any order.
            SLIDE | NOTES | MASTER | HANDOUT if !std::mem::replace(&mut self.in_drawings, true) => {
                self.document.body.place("slides");
            }
            SLIDE_PERSIST if self.in_slides => self.document.slide(),
            art::SHAPE => self.is_template = false,
            // Masters have lower numbers than slides.
            PLACEHOLDER => self.is_template = matches!(record.content.get(4), Some(1..=6)),
            _ if self.is_template => {}
            // Titles of slides, and titles in the middle of a slide.
            TEXT_HEADER => {
                let is_title = matches!(le_len32(record.content, 0), Some(0 | 6));
                self.kind = if is_title { Kind::Heading } else { Kind::Text };
            }
            TEXT_WIDE => self.text(&utf16(record.content), self.kind),
            TEXT_NARROW => {
                // The low bytes of UTF-16.
                let wide: String = record.content.iter().map(|it| char::from(*it)).collect();
                self.text(&wide, self.kind);
            }
            art::PROPERTIES => {
                if let Some(text) = art::word_art(record) {
                    self.text(&text, Kind::Text);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, kind: Kind) {
        let kept = front(text, Limit::Paragraph.bound());
        if kept.len() < text.len() {
            self.document.cuts.insert(Limit::Paragraph);
        }
        let text = kept.replace(['\r', '\u{b}'], "\n");
        // A title of two lines is one title.
        let text = if kind == Kind::Heading { text.replace('\n', " ") } else { text };
        // `*` is the placeholder for a slide's number.
        if text.trim() != "*" {
            self.document.paragraph(&text, kind);
        }
    }
}
