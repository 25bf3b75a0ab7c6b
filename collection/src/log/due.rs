//! The decision about compaction: whether it is worthwhile, and for which part of the log.
//!
//! Sans-I/O.

use std::sync::Arc;

use super::View;
use super::segment::Segment;

/// Minimum number of superseded changes that are worth a full compaction; they must also be at
/// least a third as many as the objects. Since commits compress less well than compaction, that
/// third takes half as much space as the objects.
const GARBAGE_MIN: u64 = 10_000;
/// Minimum size of the notes written since the last compaction that are worth a full one, in bytes;
/// it must also be at least half that of everything else. Only a compaction shows which notes are
/// superseded.
const NOTES_BYTES_MIN: u64 = 16 << 20;
/// Minimum number of small members since the last compaction that are worth packing.
const TAIL_MEMBERS_MIN: u64 = 512;
/// Mean size below which members count as small, in bytes.
const TAIL_MEMBER_BYTES: u64 = 8 << 10;
/// A segment just before the tail is added to it if it has at most this size, in bytes.
const TAIL_BYTES_MIN: u64 = 1 << 20;

/// The part of the log that is worth compacting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionDue {
    /// All of it: many changes are superseded.
    All,
    /// Its end: many members are small.
    Tail,
}

/// Decides whether compaction is worthwhile for a log with `objects` live objects; with `no_room`
/// it is as soon as it frees any space. Damaged segments cannot be compacted before they are
/// repaired.
pub(crate) fn due(view: &View, objects: u64, no_room: bool) -> Option<CompactionDue> {
    let (mut changes, mut members, mut bytes) = (0_u64, 0_u64, 0_u64);
    let (mut notes_bytes, mut other_bytes) = (0_u64, 0_u64);
    for segment in &view.segments {
        for entry in segment.entries().iter() {
            changes += u64::from(entry.changes);
            let is_new_notes = entry.local && view.compacted < entry.commit;
            *(if is_new_notes { &mut notes_bytes } else { &mut other_bytes }) +=
                u64::from(entry.bytes);
            if view.compacted < entry.commit {
                members += 1;
                bytes += u64::from(entry.bytes);
            }
        }
    }
    let garbage = changes.saturating_sub(objects).saturating_sub(view.residue);
    let much_of_notes = NOTES_BYTES_MIN.max(other_bytes / 2) <= notes_bytes;
    let is_much = GARBAGE_MIN.max(objects / 3) <= garbage || much_of_notes;
    let is_any = no_room && (garbage != 0 || notes_bytes != 0);
    let is_sound = |part: &[Arc<Segment>]| part.iter().all(|it| it.damaged().is_empty());
    if (is_much || is_any) && is_sound(&view.segments) {
        return Some(CompactionDue::All);
    }
    let small = TAIL_MEMBERS_MIN <= members && bytes < members * TAIL_MEMBER_BYTES;
    (small && is_sound(&view.segments[tail_start(&view.segments)..])).then_some(CompactionDue::Tail)
}

/// Returns the index of the first segment of the tail. Going back from the end, a segment belongs
/// to the tail if it is at most twice as large as all those after it together, or very small.
pub(crate) fn tail_start(segments: &[Arc<Segment>]) -> usize {
    let mut bytes = 0;
    let mut start = segments.len();
    for segment in segments.iter().rev() {
        if (2 * bytes).max(TAIL_BYTES_MIN) < segment.end() {
            break;
        }
        bytes += segment.end();
        start -= 1;
    }
    start
}
