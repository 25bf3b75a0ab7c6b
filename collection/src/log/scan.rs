//! A scan of the log, in serial order.
//!
//! The files that a scan reads stay readable: they are removed only after their last reader.
//!
//! Source: ARCHITECTURE.md, "The one idea".

use std::vec::IntoIter;

use crate::change::Scanned;
use crate::error::Error;
use crate::log::View;
use crate::log::segment::Entry;
use crate::member::{MEMBER_BYTES_MAX, Unpacker};

/// Iterator over the log; see [`Collection::scan`](crate::Collection::scan). Ends after an error.
#[derive(Debug)]
pub struct Scan {
    view: View,
    /// Changes up to this serial are left out.
    since: u64,
    /// The index of the segment that is read next.
    segment: usize,
    /// The index in it of the member that is read next.
    member: usize,
    ahead: IntoIter<Scanned>,
    unpacker: Unpacker,
    /// The last serial before the first hole without bytes.
    hole: Option<u64>,
    /// Whether damaged members are skipped.
    lenient: bool,
    failed: bool,
}

impl Scan {
    pub(crate) fn new(view: View, since: u64) -> Self {
        let unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        let ahead = Vec::new().into_iter();
        let holes = view.missing.iter().filter(|it| it.base < it.last && since < it.last);
        let hole = holes.map(|it| it.base).min();
        let (lenient, failed) = (false, false);
        let mut scan =
            Self { view, since, segment: 0, member: 0, ahead, unpacker, hole, lenient, failed };
        scan.skip_read();
        scan
    }

    /// Returns a scan of the whole log without damaged members and holes.
    pub(crate) fn of_sound(view: View) -> Self {
        Self { hole: None, lenient: true, ..Self::new(view, 0) }
    }

    /// Returns the error of a hole before the next member; `None` if there is no hole.
    fn at_hole(&mut self, next: Option<&Entry>) -> Option<Error> {
        let base = self.hole?;
        let is_here = next.is_none_or(|entry| base <= entry.base);
        is_here.then(|| self.view.gap())
    }

    /// Goes to the first member that has serials after `since`.
    fn skip_read(&mut self) {
        while let Some(segment) = self.view.segments.get(self.segment) {
            let entries = segment.entries();
            self.member = entries.partition_point(|it| it.last <= self.since);
            if self.member < entries.len() {
                return;
            }
            drop(entries);
            self.segment += 1;
        }
    }

    /// Returns the next member and the index of its segment, or `None` at the end.
    fn next_entry(&mut self) -> Option<(usize, Entry)> {
        loop {
            let segment = self.view.segments.get(self.segment)?;
            let entry = segment.entries().get(self.member).copied();
            match entry {
                None => {
                    self.segment += 1;
                    self.member = 0;
                }
                // Changes after the view's version are left to a later scan.
                Some(entry) if self.view.version.serial < entry.last => return None,
                Some(entry) => {
                    self.member += 1;
                    if !entry.local {
                        return Some((self.segment, entry));
                    }
                }
            }
        }
    }

    fn read(&mut self, segment: usize, entry: &Entry) -> Result<Vec<Scanned>, Error> {
        let Some(segment) = self.view.segments.get(segment) else { return Ok(Vec::new()) };
        let member = segment.read(entry, &mut self.unpacker)?;
        member.changes().map_err(|what| segment.fault(entry, what))
    }
}

impl Iterator for Scan {
    type Item = Result<Scanned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(scanned) = self.ahead.next() {
                if scanned.serial <= self.since {
                    continue;
                }
                return Some(Ok(scanned));
            }
            if self.failed {
                return None;
            }
            let next = self.next_entry();
            if let Some(error) = self.at_hole(next.as_ref().map(|(_, entry)| entry)) {
                self.failed = true;
                return Some(Err(error));
            }
            let (segment, entry) = next?;
            match self.read(segment, &entry) {
                Ok(changes) => self.ahead = changes.into_iter(),
                Err(Error::Damaged { .. }) if self.lenient => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
