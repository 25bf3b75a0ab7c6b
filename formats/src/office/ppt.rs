//! PowerPoint slides from before 2007: nested records, some of which are text.
//!
//! Source: Microsoft's \[MS-PPT\] 2.3.1 (record header), 2.4.14.3 (`SlideListWithTextContainer`), 2.9.13
//! and 2.9.42 to 2.9.44 (text).
//!
//! # Differences from the specification
//!
//! * A document saved by "fast save" may have changed text twice in its stream; both are read.

use super::compound::utf16;
use super::{Kind, OfficeDraft};
use crate::Input;
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16};
use crate::object::ProblemKind;
use crate::text::front;

/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;
/// Kinds of records.
const SLIDE: u16 = 1006;
const SLIDE_PERSIST: u16 = 1011;
const MASTER: u16 = 1016;
const TEXT_HEADER: u16 = 3999;
const TEXT_WIDE: u16 = 4000;
const TEXT_NARROW: u16 = 4008;
const HANDOUT: u16 = 4041;
const SLIDES_WITH_TEXT: u16 = 4080;

pub(super) fn read(
    stream: &[u8],
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Result<(), (ProblemKind, String)> {
    let mut rest = stream;
    let (mut in_slides, mut in_drawings, mut kind) = (false, false, Kind::Text);
    let mut time = TimeLimit::new(input.cancelled);
    while let (Some(instance), Some(record), Some(size)) =
        (le16(rest, 0), le16(rest, 2), le_len32(rest, 4))
    {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time on the slides".to_owned()));
        }
        if document.body.is_full() {
            break;
        }
        let content = rest.get(HEADER_BYTES..).unwrap_or_default();
        let whole = content.get(..size).unwrap_or(content);
        let (is_container, instance) = (instance & 0xf == 0xf, instance >> 4);
        if record == SLIDES_WITH_TEXT {
            in_slides = instance == 0;
            if instance == 2 {
                document.body.place("notes");
            }
        }
        // What is drawn on the slides follows the list of all; they may be in any order.
        if record == SLIDE && !std::mem::replace(&mut in_drawings, true) {
            document.body.place("drawings");
        }
        // Masters have only placeholders to click on.
        let is_master =
            matches!(record, MASTER | HANDOUT) || record == SLIDES_WITH_TEXT && instance == 1;
        if is_container && !is_master {
            rest = content;
            continue;
        }
        match record {
            SLIDE_PERSIST if in_slides => document.slide(),
            // Titles of slides, and titles in the middle of a slide.
            TEXT_HEADER => {
                let is_title = matches!(le_len32(whole, 0), Some(0 | 6));
                kind = if is_title { Kind::Heading } else { Kind::Text };
            }
            TEXT_WIDE => text(&utf16(whole), kind, document),
            TEXT_NARROW => {
                // The low bytes of UTF-16.
                let wide: String = whole.iter().map(|it| char::from(*it)).collect();
                text(&wide, kind, document);
            }
            _ => {}
        }
        rest = content.get(size..).unwrap_or_default();
    }
    Ok(())
}

fn text(text: &str, kind: Kind, document: &mut OfficeDraft) {
    let kept = front(text, Limit::Paragraph.bound());
    if kept.len() < text.len() {
        document.cuts.insert(Limit::Paragraph);
    }
    let text = kept.replace(['\r', '\u{b}'], "\n");
    // A title of two lines is one title.
    let text = if kind == Kind::Heading { text.replace('\n', " ") } else { text };
    // `*` is the placeholder for a slide's number.
    if text.trim() != "*" {
        document.paragraph(&text, kind);
    }
}
