//! Slides of PowerPoint of before 2007: records within records, some of which are text.
//!
//! Source: Microsoft's \[MS-PPT\] 2.3.1 (record header), 2.4.14.3 (`SlideListWithTextContainer`), 2.9.13
//! and 2.9.42 to 2.9.44 (text).
//!
//! # Differences from the specification
//!
//! * What was changed and saved quickly is in the stream twice; both are read.
//!
//! Sans-I/O.

use super::compound::{u16_at, usize_at, utf16};
use super::{Found, Kind, PARAGRAPH_BYTES_MAX};
use crate::Input;
use crate::object::ProblemKind;
use crate::text::front;

/// Records between two looks at the clock.
const POLL_RECORDS: usize = 1024;
/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;
/// Kinds of records.
const SLIDE_PERSIST: u16 = 1011;
const MASTER: u16 = 1016;
const TEXT_HEADER: u16 = 3999;
const TEXT_WIDE: u16 = 4000;
const TEXT_NARROW: u16 = 4008;
const HANDOUT: u16 = 4041;
const SLIDES_WITH_TEXT: u16 = 4080;

/// Reads the slides in `stream`.
pub(super) fn read(
    stream: &[u8],
    input: &Input<'_>,
    found: &mut Found,
) -> Result<(), (ProblemKind, String)> {
    let mut rest = stream;
    let (mut count, mut in_slides, mut kind) = (0_usize, false, Kind::Text);
    while let (Some(instance), Some(record), Some(size)) =
        (u16_at(rest, 0), u16_at(rest, 2), usize_at(rest, 4))
    {
        count += 1;
        if count.is_multiple_of(POLL_RECORDS) && (input.cancelled)() {
            return Err((ProblemKind::Time, "ran out of time on the slides".to_owned()));
        }
        if found.body.is_full() {
            break;
        }
        let content = rest.get(HEADER_BYTES..).unwrap_or_default();
        let whole = content.get(..size).unwrap_or(content);
        let (is_container, instance) = (instance & 0xf == 0xf, instance >> 4);
        if record == SLIDES_WITH_TEXT {
            in_slides = instance == 0;
        }
        // Of masters there is only what to click on.
        let is_master =
            matches!(record, MASTER | HANDOUT) || record == SLIDES_WITH_TEXT && instance == 1;
        if is_container && !is_master {
            rest = content;
            continue;
        }
        match record {
            SLIDE_PERSIST if in_slides => found.slides += 1,
            // Titles, of slides and in the middle of one.
            TEXT_HEADER => {
                let is_title = matches!(usize_at(whole, 0), Some(0 | 6));
                kind = if is_title { Kind::Heading } else { Kind::Text };
            }
            TEXT_WIDE => text(&utf16(whole), kind, found),
            TEXT_NARROW => {
                // The low halves of sixteen bits.
                let wide: String = whole.iter().map(|it| char::from(*it)).collect();
                text(&wide, kind, found);
            }
            _ => {}
        }
        rest = content.get(size..).unwrap_or_default();
    }
    Ok(())
}

fn text(text: &str, kind: Kind, found: &mut Found) {
    let text = front(text, PARAGRAPH_BYTES_MAX).replace(['\r', '\u{b}'], "\n");
    // A title of two lines is one.
    let text = if kind == Kind::Heading { text.replace('\n', " ") } else { text };
    // Placeholders for the number of a slide.
    if text.trim() != "*" {
        found.paragraph(&text, kind);
    }
}
