//! The served bytes of a feed or a snapshot: members as they are on the disk, checked before they
//! are sent.
//!
//! Disks sometimes lose bits. A member is sent only if it matches its checksums. Otherwise it is
//! marked as damaged, and the transfer is cut without an end mark. The next request gets an error
//! that names the damage.
//!
//! Source: ours.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use net::body::{self, Body};

use super::SegmentRange;
use super::segment::{Entry, Segment};

/// Maximum size of a piece that is read and sent at once, in bytes. A larger member is checked
/// first, and then sent in several pieces. One piece is read ahead.
const PIECE_BYTES_MAX: u64 = 128 << 10;

/// Returns the total number of bytes in the parts.
pub(crate) fn bytes_of(parts: &[SegmentRange]) -> u64 {
    parts.iter().map(|it| it.end - it.start).sum()
}

/// Returns a body with the bytes `from..to` of the parts followed by the `tail`.
pub(crate) fn body(parts: &[SegmentRange], tail: &Bytes, from: u64, to: u64) -> Body {
    body::pieces(pieces(parts, tail, from, to), to.saturating_sub(from))
}

/// Returns a function that reads, piece by piece, the bytes `from..to` of the parts followed by the
/// `tail`.
pub(crate) fn pieces(
    parts: &[SegmentRange],
    tail: &Bytes,
    from: u64,
    to: u64,
) -> impl FnMut() -> io::Result<Option<Bytes>> + Send + Unpin + use<> {
    let (mut at, mut taken) = (0, VecDeque::new());
    for part in parts {
        let (start, end) = (at, at + (part.end - part.start));
        at = end;
        if from < end && start < to {
            let first = part.start + from.saturating_sub(start);
            let last = part.end - end.saturating_sub(to);
            taken.push_back(Remainder {
                part: SegmentRange { start: first, end: last, ..part.clone() },
                sound: 0,
            });
        }
    }
    let in_tail = |byte: u64| usize::try_from(byte.saturating_sub(at)).unwrap_or(0).min(tail.len());
    let mut tail = tail.slice(in_tail(from)..in_tail(to).max(in_tail(from)));
    move || {
        while let Some(left) = taken.front_mut() {
            if left.part.start < left.part.end {
                return left.next().map(Some);
            }
            taken.pop_front();
        }
        let tail = std::mem::take(&mut tail);
        Ok((!tail.is_empty()).then_some(tail))
    }
}

/// The unsent rest of a part.
struct Remainder {
    part: SegmentRange,
    /// End of a checked member that is too large for one piece.
    sound: u64,
}

impl Remainder {
    fn next(&mut self) -> io::Result<Bytes> {
        let SegmentRange { segment, start, end } = &mut self.part;
        if *start < self.sound {
            let take = PIECE_BYTES_MAX.min(self.sound.min(*end) - *start);
            let piece = read(segment, *start, take)?;
            *start += take;
            return Ok(piece.into());
        }
        let members = members_at(segment, *start, *end);
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return Err(io::Error::other("the segment has no member at this offset"));
        };
        if PIECE_BYTES_MAX < u64::from(first.bytes) {
            segment.check_large(first).map_err(io::Error::other)?;
            self.sound = first.end();
            return self.next();
        }
        let bytes =
            read(segment, first.offset, last.end() - first.offset).inspect_err(|_error| {
                // Read each member alone, so that the damaged one is marked.
                members.iter().for_each(|it| drop(segment.raw(it)));
            })?;
        for entry in &members {
            let at = usize::try_from(entry.offset - first.offset).unwrap_or(usize::MAX);
            let member = bytes.get(at..at + entry.bytes as usize).unwrap_or_default();
            segment.check(entry, member).map_err(io::Error::other)?;
        }
        let within = |byte: u64| usize::try_from(byte - first.offset).unwrap_or(0);
        let piece = Bytes::from(bytes).slice(within(*start)..within(last.end().min(*end)));
        *start = last.end().min(*end);
        Ok(piece)
    }
}

/// Returns the member that contains the byte `start`, and the next members that fit in a piece with
/// it and begin before `end`.
fn members_at(segment: &Segment, start: u64, end: u64) -> Vec<Entry> {
    let entries = segment.entries();
    let from = entries.partition_point(|it| it.end() <= start);
    let first = entries.get(from).map_or(0, |it| it.offset);
    let rest = entries.iter().skip(from).enumerate();
    let fits = |(at, it): &(usize, &Entry)| {
        *at == 0 || (it.offset < end && it.end() - first <= PIECE_BYTES_MAX)
    };
    rest.take_while(fits).map(|(_, it)| *it).collect()
}

fn read(segment: &Segment, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(bytes).unwrap_or(0)];
    segment.file.read_exact_at(&mut piece, offset)?;
    Ok(piece)
}
