//! Pull parser for a SOIF stream: bytes in, in pieces of any size; events out, borrowed.
//!
//! The reader owns no source of bytes. The caller [feeds](Reader::feed) it whatever has come in,
//! [pulls](Reader::next_event) events until there are none, and says [finish](Reader::finish) at the
//! end. The same reader therefore serves a socket, a file, a decompressor, a test and a fuzzer.
//!
//! A byte is copied once, into the reader's buffer; records borrow from there. Whoever has the whole
//! stream in memory uses [`parse`] or [`Reader::over`] and copies nothing.
//!
//! Source: TR §3 and Figure 3. A value's end is given by its byte count alone, so it may hold line
//! feeds, braces and binary data.
//!
//! Sans-I/O.

use crate::error::{ErrorKind, ParseError};
use crate::machine::Machine;
use crate::record::{Record, RecordRef};
use crate::stream::{Event, Limits, Mode, Section};

/// Incremental parser of a SOIF stream.
#[derive(Debug)]
pub struct Reader {
    /// Bytes fed and not yet done with.
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte in the stream.
    base: u64,
    mode: Mode,
    ended: bool,
    machine: Machine,
}

impl Reader {
    /// Returns a reader at the start of a stream.
    pub fn new(mode: Mode, limits: Limits) -> Self {
        Self {
            buffer: Vec::new(),
            base: 0,
            mode,
            ended: false,
            machine: Machine::new(mode, limits),
        }
    }

    /// Adds bytes of the stream, in stream order.
    ///
    /// Memory stays below twice the longest record and what was fed since the last `next_event`
    /// that returned `None`.
    pub fn feed(&mut self, bytes: &[u8]) {
        let done = self.machine.needed();
        // Moving the rest is paid for by at least as many bytes that are done with.
        if self.buffer.len() <= 2 * done {
            self.buffer.drain(..done);
            self.machine.shift(done);
            self.base += done as u64;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next event, or `None` when it takes more bytes (after
    /// [`finish`](Self::finish): when there are no more).
    ///
    /// # Errors
    ///
    /// Strict: the stream is damaged at the error's offset, every later call returns the same error,
    /// and the caller drops the connection or the file. Lenient: never.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ParseError> {
        let found = self.machine.step(&self.buffer, self.base, self.ended)?;
        Ok(found.map(|found| self.machine.event(found, &self.buffer, self.base)))
    }

    /// Returns the next record, whatever the section; `None` as for
    /// [`next_event`](Self::next_event).
    ///
    /// # Errors
    ///
    /// As for [`next_event`](Self::next_event).
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>, ParseError> {
        use crate::machine::Found;
        loop {
            match self.machine.step(&self.buffer, self.base, self.ended)? {
                None => return Ok(None),
                Some(Found::Record) => break,
                Some(Found::Open(_) | Found::Close(_)) => {}
            }
        }
        match self.machine.event(Found::Record, &self.buffer, self.base) {
            Event::Record(record) => Ok(Some(record)),
            Event::Open(_) | Event::Close(_) => Ok(None),
        }
    }

    /// Ends the stream. To be called when [`next_event`](Self::next_event) has returned `None`.
    ///
    /// After it, a lenient reader may have more events: the objects that a byte count past the end
    /// had swallowed, and the close of a section left open. Pull until there are none.
    ///
    /// # Errors
    ///
    /// Strict: the stream ends inside an object (at the error's offset) or a section. What was
    /// returned before is whole.
    pub fn finish(&mut self) -> Result<(), ParseError> {
        self.ended = true;
        match self.mode {
            Mode::Strict if !self.machine.is_between_objects(&self.buffer) => {
                match self.machine.step(&self.buffer, self.base, true) {
                    Err(error) => Err(error),
                    // Events were left unread: where the reader stands is where it stops.
                    Ok(_) => {
                        let error =
                            ParseError { kind: ErrorKind::Truncated, offset: self.offset() };
                        Err(self.machine.fail(error))
                    }
                }
            }
            Mode::Strict | Mode::Lenient => Ok(()),
        }
    }

    /// Takes the problems met since the last call (lenient), in stream order; at most 1,024, of
    /// [`problems_total`](Self::problems_total).
    pub fn problems(&mut self) -> Vec<ParseError> {
        self.machine.take_problems()
    }

    /// How many problems were met since the start of the stream.
    pub fn problems_total(&self) -> u64 {
        self.machine.problems_total()
    }

    /// The section that the reader is in.
    pub fn section(&self) -> Option<Section> {
        self.machine.section()
    }

    /// How far the stream has been parsed, in bytes from its start.
    pub fn offset(&self) -> u64 {
        self.base + self.machine.at() as u64
    }

    /// Hands every event of a stream that is whole in memory to `handle`, without copying it.
    ///
    /// Returns the problems met (lenient); at most 1,024.
    ///
    /// # Errors
    ///
    /// Strict: the stream is damaged at the error's offset; what came before was handed over.
    pub fn over(
        bytes: &[u8],
        mode: Mode,
        limits: Limits,
        mut handle: impl FnMut(Event<'_>),
    ) -> Result<Vec<ParseError>, ParseError> {
        let mut machine = Machine::new(mode, limits);
        while let Some(found) = machine.step(bytes, 0, true)? {
            handle(machine.event(found, bytes, 0));
        }
        Ok(machine.take_problems())
    }
}

/// Reads a stream that is whole in memory, strictly and within the default limits; records in
/// sections and outside of them alike.
///
/// # Errors
///
/// The stream is damaged at the error's offset, and nothing of it is returned.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, ParseError> {
    let mut records = Vec::new();
    Reader::over(bytes, Mode::Strict, Limits::default(), |event| {
        if let Event::Record(record) = event {
            records.push(record.to_record());
        }
    })?;
    Ok(records)
}
