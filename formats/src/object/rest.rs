//! The rest of an object behind the front that is in memory: read on demand, in pieces, up to a bound.
//!
//! Source: TR §4 names no limit; zip, 7-Zip, PDF and others keep their directory at their end. Whoever
//! fetched the object hands in a [`ReadAt`], so that this crate itself reads no file.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use soif::digest::Md5;

use super::{Object, ProblemKind};
use crate::Input;
use crate::limit::Limit;

/// Number of bytes that are read at once, from a multiple of it on.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Bytes at positions of an object: an open file, or a process that has one.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads from `offset` on into `into`. Returns the number of bytes, fewer than requested only at
    /// the end.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// The rest of an object. Clones share the bound.
#[derive(Clone, Debug)]
pub struct Rest {
    source: Arc<dyn ReadAt>,
    /// Number of bytes that may still be read.
    left: Arc<AtomicU64>,
}

impl Rest {
    /// Returns the rest of an object whose bytes `source` reads.
    pub fn new(source: Arc<dyn ReadAt>) -> Self {
        Self { source, left: Arc::new(AtomicU64::new(Limit::Rest.bound() as u64)) }
    }

    /// Reads as [`ReadAt::read_at`] does.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, are more than [`PIECE_BYTES`], or exceed [`Limit::Rest`] in all
    /// (`QuotaExceeded`).
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len() as u64;
        let take = |left: u64| left.checked_sub(count);
        if PIECE_BYTES < into.len() || self.left.fetch_update(Relaxed, Relaxed, take).is_err() {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.source.read_at(offset, into)
    }
}

/// The bound of [`SeekReader`]s of one object, and the reason why they failed.
#[derive(Debug)]
pub(crate) struct SeekState {
    /// Number of bytes that may still be read of the rest.
    left: Cell<u64>,
    fault: RefCell<Option<(ProblemKind, String)>>,
    is_over: Cell<bool>,
}

impl Default for SeekState {
    fn default() -> Self {
        Self {
            left: Cell::new(Limit::Rest.bound() as u64),
            fault: RefCell::default(),
            is_over: Cell::default(),
        }
    }
}

impl SeekState {
    /// Sets the number of bytes that may be read of the rest from here on.
    pub(crate) fn limit(&self, bytes_max: u64) {
        self.left.set(bytes_max);
    }

    /// Returns why the last read failed, if the reason is not in the bytes themselves.
    pub(crate) fn fault(&self) -> Option<(ProblemKind, String)> {
        self.fault.borrow().clone()
    }

    /// Returns what [`Self::fault`] does, and forgets it: later reads may succeed.
    pub(crate) fn take_fault(&self) -> Option<(ProblemKind, String)> {
        self.fault.take()
    }

    /// Returns whether no further read can succeed: time is up, or a bound is reached.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    fn fail(&self, kind: ProblemKind, message: String) -> io::Error {
        self.is_over
            .set(self.is_over() || matches!(kind, ProblemKind::Time | ProblemKind::Limit(_)));
        let error = io::Error::other(message.clone());
        self.fault.replace(Some((kind, message)));
        error
    }
}

/// A reader of an object: of its front in memory and, if that is possible, of its rest.
pub(crate) struct SeekReader<'a> {
    object: &'a Object,
    cancelled: &'a dyn Fn() -> bool,
    state: Rc<SeekState>,
    at: u64,
    /// Bytes of the rest from `piece_at` on.
    piece: Vec<u8>,
    piece_at: u64,
}

impl<'a> SeekReader<'a> {
    /// `cancelled` is polled for every piece of the rest.
    pub(crate) fn new(
        object: &'a Object,
        cancelled: &'a dyn Fn() -> bool,
        state: &Rc<SeekState>,
    ) -> Self {
        let (state, piece, piece_at) = (Rc::clone(state), Vec::new(), 0);
        Self { object, cancelled, state, at: 0, piece, piece_at }
    }

    /// Returns a reader of the bytes behind the front.
    pub(crate) fn behind_front(
        object: &'a Object,
        cancelled: &'a dyn Fn() -> bool,
        state: &Rc<SeekState>,
    ) -> Self {
        Self { at: object.bytes.len() as u64, ..Self::new(object, cancelled, state) }
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn size(&self) -> u64 {
        let object = self.object;
        if object.rest.is_some() { object.size } else { object.bytes.len() as u64 }
    }

    fn behind(bytes: &[u8], from: u64, at: u64) -> &[u8] {
        let offset = at.checked_sub(from).and_then(|it| usize::try_from(it).ok());
        offset.and_then(|it| bytes.get(it..)).unwrap_or_default()
    }

    /// Reads the piece of the rest that has the next byte.
    fn fetch(&mut self, rest: &Rest) -> io::Result<()> {
        let (object, state) = (self.object, &self.state);
        if state.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if (self.cancelled)() {
            return Err(state.fail(ProblemKind::Time, "ran out of time while it was read".into()));
        }
        let from = self.at - self.at % PIECE_BYTES as u64;
        let count = (object.size - from).min(PIECE_BYTES as u64);
        let left = state.left.get().checked_sub(count);
        self.piece.clear();
        self.piece.resize(usize::try_from(count).unwrap_or(0), 0);
        self.piece_at = from;
        let read = match left {
            Some(left) => {
                state.left.set(left);
                rest.read_at(from, &mut self.piece)
            }
            None => Err(io::ErrorKind::QuotaExceeded.into()),
        };
        self.piece.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(_) if Self::behind(&self.piece, from, self.at).is_empty() => {
                let message = "became shorter while it was read".to_owned();
                Err(state.fail(ProblemKind::Broken, message))
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                let max = Limit::Rest.bound();
                let message = format!(
                    "takes reading more than {max} bytes behind its first {} (`read_max`); \
                     the rest was left out",
                    object.bytes.len()
                );
                Err(state.fail(Limit::Rest.kind(), message))
            }
            Err(error) => {
                let message = format!("cannot be read behind its front: {error}");
                Err(state.fail(ProblemKind::Broken, message))
            }
        }
    }
}

impl BufRead for SeekReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let object = self.object;
        let front = Self::behind(&object.bytes, 0, self.at);
        if !front.is_empty() {
            return Ok(front);
        }
        let Some(rest) = object.rest.as_ref().filter(|_| self.at < object.size) else {
            return Ok(&[]);
        };
        if Self::behind(&self.piece, self.piece_at, self.at).is_empty() {
            self.fetch(rest)?;
        }
        Ok(Self::behind(&self.piece, self.piece_at, self.at))
    }

    fn consume(&mut self, count: usize) {
        self.at = self.at.saturating_add(count as u64);
    }
}

impl Read for SeekReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl Seek for SeekReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Object {
    /// Returns the digest of the whole object; `None` if it is unknown and cannot be computed.
    pub fn digest(&self) -> Option<Md5> {
        // The bytes of a file that was unpacked are not those of the object.
        let is_whole = !self.truncated && self.bytes.len() as u64 == self.size;
        self.md5.or_else(|| is_whole.then(|| Md5::of(&self.bytes)))
    }

    /// Returns whether only the front can be read.
    pub(crate) fn is_cut(&self) -> bool {
        self.truncated && self.rest.is_none()
    }

    /// Returns the problem of an object of which only the front was read, for a format that needs
    /// `needed`.
    pub(crate) fn cut(&self, needed: &str) -> (ProblemKind, String) {
        let front = self.bytes.len();
        // The limits on members have no setting.
        let advice =
            if self.url.contains('#') { "" } else { "; raise `read_max` to read all of it" };
        let message = format!("only its first {front} bytes were read, not {needed}{advice}");
        (Limit::Read.kind_at(front), message)
    }
}

impl Input<'_> {
    /// Returns the whole object, for formats that are read in memory; if it has more than `bytes_max`
    /// bytes, or its rest cannot be read, its front, with the reason.
    pub(crate) fn whole_up_to(&self, bytes_max: u64) -> (Bytes, Option<(ProblemKind, String)>) {
        let object = self.object;
        let front = object.bytes.clone();
        if !object.truncated {
            return (front, None);
        }
        if object.is_cut() || bytes_max < object.size {
            return (front, Some(object.cut("the rest")));
        }
        let state = Rc::default();
        let mut reader = SeekReader::new(object, self.cancelled, &state);
        let mut bytes = Vec::with_capacity(usize::try_from(object.size).unwrap_or(0));
        match reader.read_to_end(&mut bytes) {
            Ok(_) => (bytes.into(), None),
            Err(_) => (front, state.take_fault()),
        }
    }
}
