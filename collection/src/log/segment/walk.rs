//! The walk through a segment's file: member by member; damaged parts are skipped up to the next
//! member.

use super::{Entry, Segment};
use crate::error::{Damage, Error};
use crate::member::{Frame, Header, MEMBER_BYTES_MAX, MemberLayout};

/// Number of bytes of a member that are read at first for its header.
const PROBE_BYTES: usize = 4096;
/// Sector size in bytes. A disk writes a sector whole or, after a power cut, not at all.
const SECTOR_BYTES: u64 = 512;
/// Minimum number of zeros in a row that are no coincidence: a sound member may end with two zeros
/// and contain some more.
const ZEROS_MIN: usize = 8;
/// Block size in bytes: a disk reads a whole block or none of it.
const BLOCK_BYTES: u64 = 4096;
/// Number of bytes read at a time in the search for the next sound member.
const WINDOW_BYTES: usize = 1 << 20;
/// Maximum number of bytes that the search reads to check apparent members, as a multiple of the
/// segment's size.
const RESYNC_SHARE: u64 = 8;
/// Upper bound of serials: a header with a larger one does not belong to a member.
pub(crate) const SERIAL_MAX: u64 = 1 << 48;

impl Segment {
    /// Goes through the first `length` bytes, member by member; skips damage up to the next sound
    /// member with serials above `after` and up to `upto`. With `bodies` the compressed bytes are
    /// checked too, not only the headers. Members out of order, or with serials up to `after`, are
    /// damage.
    ///
    /// # Errors
    ///
    /// The system's error; damage is part of the result.
    pub(crate) fn survey(
        &self,
        bodies: bool,
        after: u64,
        length: u64,
        upto: u64,
    ) -> Result<Vec<Stretch>, Error> {
        let mut found = Vec::new();
        let mut offset = 0;
        let mut budget = RESYNC_SHARE * length;
        while offset < length {
            let why = match self.probe(offset, length, bodies)? {
                Ok((entry, damage)) => {
                    offset = entry.end();
                    found.push(match damage {
                        None => Stretch::Sound(entry),
                        Some(what) => Stretch::Damaged(entry, what),
                    });
                    continue;
                }
                Err(why) => why,
            };
            let next = self.resync(offset + 1, length, (after, upto), &mut budget)?;
            let zeros = next == length && self.is_zero(offset, length)?;
            let why = if zeros { Damage::Truncated } else { why };
            found.push(Stretch::Gap { offset, bytes: next - offset, why });
            offset = next;
        }
        leave_out_of_order(&mut found, after);
        Ok(found)
    }

    /// Reads the member that may start at `offset`: its entry, and the damage of its body.
    fn probe(&self, offset: u64, length: u64, bodies: bool) -> Result<Probe, Error> {
        let rest = usize::try_from(length - offset).unwrap_or(usize::MAX);
        let mut wanted = PROBE_BYTES;
        loop {
            let size = wanted.min(rest);
            let head = self.readable(offset, size)?;
            match Header::read(&head) {
                Err(damage) => return Ok(Err(damage)),
                Ok(Frame::More(_)) if head.len() < size => return Ok(Err(Damage::Unreadable)),
                Ok(Frame::More(bytes)) if rest < bytes => return Ok(Err(Damage::Truncated)),
                Ok(Frame::More(bytes)) => wanted = bytes,
                Ok(Frame::Whole(layout)) => return self.probe_body(&layout, offset, rest, bodies),
            }
        }
    }

    fn probe_body(
        &self,
        layout: &MemberLayout,
        offset: u64,
        rest: usize,
        bodies: bool,
    ) -> Result<Probe, Error> {
        let bytes = layout.member_bytes();
        if MEMBER_BYTES_MAX < bytes {
            return Ok(Err(Damage::TooLarge));
        }
        if rest < bytes {
            return Ok(Err(Damage::Truncated));
        }
        let mut damage = None;
        if bodies {
            let member = self.readable(offset, bytes)?;
            let is_whole = member.len() == bytes;
            let checked = if is_whole { layout.check(&member) } else { Err(Damage::Unreadable) };
            damage = checked.err();
        }
        Ok(Ok((Entry::new(&layout.header, offset, bytes), damage)))
    }

    /// Returns the start of the next sound member, at `from` or later, with serials after `after`
    /// up to `upto`; `length` if there is none. An object's own content may look like a member, so
    /// at most `budget` bytes are read to check such candidates.
    fn resync(
        &self,
        from: u64,
        length: u64,
        (after, upto): (u64, u64),
        budget: &mut u64,
    ) -> Result<u64, Error> {
        const MAGIC: [u8; 4] = [0x1f, 0x8b, 8, 4];
        let mut start = from;
        let mut step = BLOCK_BYTES;
        while start < length {
            let bytes =
                usize::try_from(length - start).map_or(WINDOW_BYTES, |it| it.min(WINDOW_BYTES));
            let window = self.readable(start, bytes)?;
            for (at, _) in window.windows(MAGIC.len()).enumerate().filter(|(_, it)| *it == MAGIC) {
                let candidate = start + at as u64;
                let Ok((entry, _)) = self.probe(candidate, length, false)? else { continue };
                let bytes = u64::from(entry.bytes);
                if entry.base < after || upto < entry.last || *budget < bytes {
                    continue;
                }
                *budget -= bytes;
                if let Ok((_, None)) = self.probe(candidate, length, true)? {
                    return Ok(candidate);
                }
            }
            if window.len() < bytes {
                // The steps over unreadable bytes grow, since a disk may take seconds for each.
                step = if window.is_empty() {
                    (2 * step).min(WINDOW_BYTES as u64)
                } else {
                    BLOCK_BYTES
                };
                start = ((start + window.len() as u64) / BLOCK_BYTES) * BLOCK_BYTES + step;
                continue;
            }
            // The magic may straddle two windows.
            start += (bytes.saturating_sub(MAGIC.len() - 1)).max(1) as u64;
        }
        Ok(length)
    }

    /// Returns whether all bytes of the range in one of the disk's sectors are zeros, which means
    /// that the sector was never written. A part of a sector below [`ZEROS_MIN`] bytes is left out,
    /// because it may be zeros by chance; but not at the start of the range, where a member begins
    /// with other bytes than zeros.
    pub(crate) fn misses_sector(&self, from: u64, bytes: u64) -> Result<bool, Error> {
        let end = from + bytes;
        let mut start = from;
        while start < end {
            let next = end.min((start / SECTOR_BYTES + 1) * SECTOR_BYTES);
            let count = usize::try_from(next - start).unwrap_or(0);
            let sector = self.readable(start, count)?;
            let is_whole = (start == from || ZEROS_MIN <= count) && sector.len() == count;
            if is_whole && sector.iter().all(|it| *it == 0) {
                return Ok(true);
            }
            start = next;
        }
        Ok(false)
    }

    fn is_zero(&self, from: u64, length: u64) -> Result<bool, Error> {
        let mut start = from;
        while start < length {
            let bytes =
                usize::try_from(length - start).map_or(WINDOW_BYTES, |it| it.min(WINDOW_BYTES));
            let window = self.readable(start, bytes)?;
            if window.len() < bytes || window.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            start += bytes as u64;
        }
        Ok(true)
    }
}

/// The outcome of reading a possible member: its entry with the damage of its body, or the reason
/// that there is no member.
type Probe = Result<(Entry, Option<Damage>), Damage>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Stretch {
    Sound(Entry),
    /// A member whose header is sound, but whose body is not.
    Damaged(Entry, Damage),
    /// Bytes that are not a member.
    Gap {
        offset: u64,
        bytes: u64,
        why: Damage,
    },
}

impl Stretch {
    /// Returns the member's entry; `None` if its header is not sound.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Sound(entry) | Self::Damaged(entry, _) => Some(entry),
            Self::Gap { .. } => None,
        }
    }

    /// Returns its offset and length in bytes, and its damage; `None` if it is sound.
    pub(crate) fn damage(&self) -> Option<(u64, u64, Damage)> {
        match *self {
            Self::Sound(_) => None,
            Self::Damaged(entry, why) => Some((entry.offset, u64::from(entry.bytes), why)),
            Self::Gap { offset, bytes, why } => Some((offset, bytes, why)),
        }
    }
}

/// Keeps the longest sequence of members whose serials ascend and begin after serial `after`. The
/// other members are in the wrong places, where they have overwritten members, and become gaps.
fn leave_out_of_order(found: &mut [Stretch], after: u64) {
    // For each length: the ascending sequence that ends with the lowest serial, as the index of its
    // last member, and that serial.
    let mut ends: Vec<(usize, u64)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; found.len()];
    for (at, stretch) in found.iter().enumerate() {
        let Some(entry) = stretch.entry().filter(|it| after <= it.base) else { continue };
        let length = ends.partition_point(|(_, last)| *last <= entry.base);
        before[at] = length.checked_sub(1).map(|it| ends[it].0);
        match ends.get_mut(length) {
            Some(end) if entry.last < end.1 => *end = (at, entry.last),
            Some(_) => {}
            None => ends.push((at, entry.last)),
        }
    }
    let mut stays = vec![false; found.len()];
    let mut next = ends.last().map(|(at, _)| *at);
    while let Some(at) = next {
        stays[at] = true;
        next = before[at];
    }
    for (stretch, stays) in found.iter_mut().zip(stays) {
        if let Some(entry) = stretch.entry().filter(|_| !stays) {
            let (offset, bytes) = (entry.offset, u64::from(entry.bytes));
            *stretch = Stretch::Gap { offset, bytes, why: Damage::Order };
        }
    }
}
