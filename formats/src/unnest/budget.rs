//! The unnesting budget: limits on opening one fetched object, and the readers that stop at them.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::is_plain;
use crate::limit::Limit;
use crate::object::{Object, Problem, ProblemKind, SeekReader, SeekState};

/// Bytes read from a container between two checks of the time limit.
const PIECE_BYTES: usize = 64 * 1024;

/// Least room for one more member, in bytes: enough to tell its type.
const ROOM_BYTES_MIN: u64 = 64 * 1024;

/// A problem without its URL.
pub(crate) type Fault = (ProblemKind, String);

/// Limits on opening one fetched object, over all depths together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum number of bytes that come out of one fetched object.
    pub bytes_max: u64,
    /// Maximum number of bytes kept of one member.
    pub member_bytes_max: usize,
    /// Maximum bytes out for each byte in, once [`Limits::ratio_from_bytes`] have come out.
    pub ratio_max: u64,
    /// Number of bytes out up to which the ratio is not limited.
    pub ratio_from_bytes: u64,
    /// Maximum number of containers within containers.
    pub depth_max: u32,
    /// Maximum number of members of all containers together.
    pub members_max: u64,
    /// Maximum number of bytes of the URLs of all members together, since one note stores them.
    pub names_bytes_max: u64,
    /// Maximum number of bytes of all records made of one fetched object: they are published
    /// together, and stay in memory until then.
    pub records_bytes_max: u64,
    /// Maximum number of bytes in memory at once, besides the fetched object: of the members that
    /// are open, one in another, and of the records made so far.
    pub held_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 256 * 1024 * 1024,
            member_bytes_max: 64 * 1024 * 1024,
            ratio_max: 1000,
            ratio_from_bytes: 1024 * 1024,
            depth_max: 8,
            members_max: 10_000,
            names_bytes_max: 4 * 1024 * 1024,
            records_bytes_max: 64 * 1024 * 1024,
            held_bytes_max: 128 * 1024 * 1024,
        }
    }
}

/// The limits for one fetched object less all use so far, shared by all its containers.
pub struct Budget<'a> {
    pub(super) limits: Limits,
    bytes_left: Cell<u64>,
    members_left: Cell<u64>,
    names_bytes_left: Cell<u64>,
    records_bytes: Cell<u64>,
    held_bytes: Cell<u64>,
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget")
            .field("bytes_left", &self.bytes_left)
            .field("members_left", &self.members_left)
            .finish_non_exhaustive()
    }
}

impl<'a> Budget<'a> {
    /// Returns the full budget for one fetched object. `cancelled` is polled for every 64 KiB.
    pub fn new(limits: Limits, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self {
            limits,
            bytes_left: Cell::new(limits.bytes_max),
            members_left: Cell::new(limits.members_max),
            names_bytes_left: Cell::new(limits.names_bytes_max),
            records_bytes: Cell::new(0),
            held_bytes: Cell::new(0),
            cancelled,
        }
    }

    /// Takes the member at `path` of `container` off; fails with the reason why the rest is left out.
    pub fn take_member(&self, container: &Object, path: &[u8]) -> Result<(), Problem> {
        // A percent-encoded byte takes one or three bytes.
        let encoded = path.iter().take(Limit::Path.bound());
        let encoded = encoded.map(|it| if is_plain(*it) { 1 } else { 3 });
        let name_bytes = container.url.len() + encoded.sum::<usize>();
        let name_bytes = u64::try_from(name_bytes).unwrap_or(u64::MAX);
        let (members, names) = (self.members_left.get(), self.names_bytes_left.get());
        self.members_left.set(members.saturating_sub(1));
        self.names_bytes_left.set(names.saturating_sub(name_bytes));
        let limits = &self.limits;
        let (limit, max) = if members == 0 {
            (Limit::Members, limits.members_max)
        } else if names < name_bytes {
            (Limit::Names, limits.names_bytes_max)
        } else if limits.records_bytes_max < self.records_bytes.get() {
            (Limit::Records, limits.records_bytes_max)
        } else if self.room() < ROOM_BYTES_MIN.min(limits.held_bytes_max) {
            (Limit::Memory, limits.held_bytes_max)
        } else {
            return Ok(());
        };
        Err(Problem::cut(&container.url, limit.cut_at(max)))
    }

    /// Takes the bytes of a member that is decoded in memory; fails with the reason why it is left out.
    pub(super) fn take_bytes(&self, count: usize) -> Result<(), Stop> {
        if (self.cancelled)() {
            return Err(Stop::Time);
        }
        let (left, count) = (self.bytes_left.get(), count as u64);
        self.bytes_left.set(left.saturating_sub(count));
        if left < count { Err(Stop::Bytes(self.limits.bytes_max)) } else { Ok(()) }
    }

    /// Gives bytes that were only inspected back to the budget.
    pub(super) fn give_back(&self, count: usize) {
        self.bytes_left.set(self.bytes_left.get().saturating_add(count as u64));
    }

    /// Counts a record, which stays in memory until all are made.
    pub fn add_record(&self, bytes: usize) {
        self.records_bytes.set(self.records_bytes.get().saturating_add(bytes as u64));
        self.hold(bytes);
    }

    /// Counts bytes that stay in memory.
    pub fn hold(&self, count: usize) {
        self.held_bytes.set(self.held_bytes.get().saturating_add(count as u64));
    }

    /// Ends the count of bytes that were held.
    pub fn release(&self, count: usize) {
        self.held_bytes.set(self.held_bytes.get().saturating_sub(count as u64));
    }

    fn room(&self) -> u64 {
        self.limits.held_bytes_max.saturating_sub(self.held_bytes.get())
    }

    /// Returns how many bytes of the next member may be kept.
    pub(super) fn member_bytes_max(&self) -> usize {
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        self.limits.member_bytes_max.min(room)
    }

    /// Returns the fault of a member that was cut to `bytes_max` bytes.
    pub(super) fn cut(&self, bytes_max: usize) -> Fault {
        let why = if bytes_max < self.limits.member_bytes_max {
            ", all that memory is left for"
        } else {
            ""
        };
        let message = format!("is longer than {bytes_max} bytes{why}; only its front was read");
        (Limit::Member.kind_at(bytes_max), message)
    }

    pub(super) fn is_late(&self) -> bool {
        (self.cancelled)()
    }
}

/// The reason why a container was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Bytes(u64),
    Ratio(u64),
    Time,
}

impl Stop {
    pub(super) fn fault(self) -> Fault {
        match self {
            Self::Bytes(max) => {
                (Limit::Opened.kind_at(max), format!("opens to more than {max} bytes in all; cut"))
            }
            Self::Ratio(max) => {
                (Limit::Ratio.kind_at(max), format!("opens to more than {max} times its size; cut"))
            }
            Self::Time => (ProblemKind::Time, "ran out of time while it was opened".to_owned()),
        }
    }
}

/// A reader of a container's bytes with a shared count of the bytes that are left.
pub(super) struct Source<'b> {
    front: &'b [u8],
    left: Rc<Cell<usize>>,
    /// Reads what follows the front.
    behind: Option<SeekReader<'b>>,
}

impl<'b> Source<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { front: bytes, left: Rc::new(Cell::new(bytes.len())), behind: None }
    }

    /// Returns a reader of `bytes` and, if they are the end of the object's front, of its rest.
    pub(super) fn of(
        object: &'b Object,
        bytes: &'b [u8],
        budget: &'b Budget<'b>,
        state: &Rc<SeekState>,
    ) -> Self {
        let mut source = Self::new(bytes);
        let is_end = bytes.as_ptr_range().end == object.bytes.as_ptr_range().end;
        if is_end && object.rest.is_some() {
            let count = object.size.saturating_sub(object.bytes.len() as u64);
            let left = bytes.len().saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
            source.left.set(left);
            source.behind = Some(SeekReader::behind_front(object, budget.cancelled, state));
        }
        source
    }

    /// Returns the shared count of bytes that are left.
    pub(super) fn left(&self) -> Rc<Cell<usize>> {
        Rc::clone(&self.left)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.behind {
            Some(behind) if self.front.is_empty() => behind.fill_buf(),
            _ => Ok(self.front),
        }
    }

    fn consume(&mut self, count: usize) {
        match &mut self.behind {
            Some(behind) if self.front.is_empty() => behind.consume(count),
            _ => self.front = self.front.get(count..).unwrap_or_default(),
        }
        self.left.set(self.left.get().saturating_sub(count));
    }
}

/// A reader of a container's content that stops at the end of the budget.
pub(super) struct Metered<'b, R> {
    inner: R,
    /// Size of the container that `inner` reads, in bytes.
    whole: usize,
    /// Bytes of the container that `inner` has not read.
    left: Rc<Cell<usize>>,
    /// Bytes that have come out.
    out: u64,
    budget: &'b Budget<'b>,
    stop: &'b Cell<Option<Stop>>,
}

impl<'b, R: Read> Metered<'b, R> {
    /// Returns a meter around `inner`, which reads a container of `whole` bytes; `left` of them are unread.
    pub(super) fn new(
        inner: R,
        whole: usize,
        left: Rc<Cell<usize>>,
        budget: &'b Budget<'b>,
        stop: &'b Cell<Option<Stop>>,
    ) -> Self {
        Self { inner, whole, left, out: 0, budget, stop }
    }

    /// Returns the count of unread bytes of the container.
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    fn stop_reason(&self) -> Option<Stop> {
        let limits = &self.budget.limits;
        if (self.budget.cancelled)() {
            return Some(Stop::Time);
        }
        if self.budget.bytes_left.get() == 0 {
            return Some(Stop::Bytes(limits.bytes_max));
        }
        let consumed = self.whole.saturating_sub(self.left.get()).max(1) as u64;
        let allowed = limits.ratio_max.saturating_mul(consumed);
        (limits.ratio_from_bytes < self.out && allowed < self.out)
            .then_some(Stop::Ratio(limits.ratio_max))
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(stop) = self.stop.get().or_else(|| self.stop_reason()) {
            self.stop.set(Some(stop));
            return Err(io::Error::other("the budget ends here"));
        }
        let left = usize::try_from(self.budget.bytes_left.get()).unwrap_or(usize::MAX);
        let room = buffer.len().min(PIECE_BYTES).min(left);
        let count = self.inner.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.out += count as u64;
        self.budget.bytes_left.set(self.budget.bytes_left.get().saturating_sub(count as u64));
        Ok(count)
    }
}

/// The end of reading one member.
pub(super) enum End {
    /// All of it was read.
    Whole,
    /// More bytes follow than were requested.
    Longer,
    /// It breaks off or is damaged, or the budget ended (then the reader's `stop` has the reason).
    Broken(io::Error),
}

/// Appends to `kept` until it has `bytes_max` bytes.
pub(super) fn read_up_to(reader: &mut dyn Read, bytes_max: usize, kept: &mut Vec<u8>) -> End {
    // One more byte shows whether that was all.
    let room = bytes_max.saturating_add(1).saturating_sub(kept.len());
    let room = u64::try_from(room).unwrap_or(u64::MAX);
    let outcome = Read::take(reader, room).read_to_end(kept);
    let longer = bytes_max < kept.len();
    kept.truncate(bytes_max);
    match outcome {
        Ok(_) if longer => End::Longer,
        Ok(_) => End::Whole,
        Err(error) => End::Broken(error),
    }
}

/// Skips the next `count` bytes; fails if there are fewer.
pub(super) fn skip(reader: &mut dyn Read, count: u64) -> io::Result<()> {
    let skipped = io::copy(&mut Read::take(reader, count), &mut io::sink())?;
    if skipped < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
