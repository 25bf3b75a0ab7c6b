//! Film: its duration and dimensions, and the metadata of its container.
//!
//! Source: ISO 14496-12 and the QuickTime file format (MP4, MOV), RFC 8794 and RFC 9559 (EBML,
//! Matroska, WebM), Microsoft's RIFF and OpenDML (AVI), the ASF specification (WMV), Theora in Ogg.
//!
//! Every container is a tree of pieces that declare their length. Useless pieces are skipped unread. A
//! piece never ends after the piece around it, so no tree has more pieces than bytes.

mod asf;
mod matroska;
mod mp4;
mod ogg;
mod riff;

use super::{audio, report_end};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::metadata::Metadata;
use crate::object::ProblemKind;
use crate::{Draft, Input};

/// The state of reading one film.
struct Film<'a> {
    about: Metadata,
    time: TimeLimit<'a>,
    pieces: usize,
    /// Whether a piece ended after the piece around it.
    cut: bool,
    /// The problem of a part that was not read.
    unread: Option<(ProblemKind, String)>,
}

impl Film<'_> {
    /// Counts a piece; returns `None` when reading must stop.
    fn step(&mut self) -> Option<()> {
        if Limit::Pieces.bound() <= self.pieces {
            self.unread = Some(Limit::Pieces.cut().problem());
            return None;
        }
        self.pieces += 1;
        self.time.goes_on().then_some(())
    }
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &input.object.bytes;
    let (about, time) = (Metadata::default(), TimeLimit::new(input.cancelled));
    let mut film = Film { about, time, pieces: 0, cut: false, unread: None };
    match bytes.as_ref() {
        [0x1a, 0x45, 0xdf, 0xa3, ..] => matroska::read(bytes, &mut film),
        [b'R', b'I', b'F', b'F', ..] => riff::read(bytes, &mut film),
        [0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11, ..] => asf::read(bytes, &mut film),
        [_, _, _, _, b'f', b't', b'y', b'p', ..]
        | [_, _, _, _, b'm' | b's' | b'w' | b'f', b'o' | b'd' | b'k' | b'i' | b'r', ..] => {
            mp4::read(input, &mut film);
        }
        [b'O', b'g', b'g', b'S', ..] if !ogg::read(bytes, &mut film) => {
            return audio::summarize(input);
        }
        _ => {}
    }
    let Film { about, time, cut, unread, .. } = film;
    let mut draft = about.draft(input.text_bytes_max());
    time.report("the film's structure", &mut draft);
    draft.add_problems(unread);
    if cut && !time.is_over() {
        report_end(input, "is cut off: a piece is longer than what is there", &mut draft);
    }
    draft
}

#[cfg(test)]
mod tests;
