//! Pull parser for a SOIF stream: it takes bytes in pieces of any size and lends events.
//!
//! The reader owns no source of bytes. The caller [feeds](Reader::feed) it the bytes that came in,
//! [pulls](Reader::next_event) events until there are none, and calls [finish](Reader::finish) at
//! the end. The same reader therefore serves a socket, a file, a decompressor, a test and a fuzzer.
//!
//! A byte is copied once, into the reader's buffer; records borrow from there. For a stream that is
//! whole in memory, [`Reader::over`] copies nothing, and [`parse`] copies once.
//!
//! Source: TR §3 and Figure 3. A value's end is given by its byte count alone, so it may hold line
//! feeds, braces and binary data.
//!
//! Sans-I/O.

use crate::error::{ErrorKind, ParseError};
use crate::machine::Machine;
use crate::record::Record;
use crate::stream::{Event, Limits, Mode};

/// Incremental parser of a SOIF stream.
#[derive(Debug)]
pub struct Reader {
    /// Bytes fed and still needed.
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
    /// Memory stays below twice the longest record plus the bytes fed since the last `next_event`
    /// that returned `None`.
    pub fn feed(&mut self, bytes: &[u8]) {
        let done = self.machine.needed();
        // At least half of the buffer is released, so no more bytes are moved than released.
        if self.buffer.len() <= 2 * done {
            self.buffer.drain(..done);
            self.machine.shift(done);
            self.base += done as u64;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next event, or `None` when more bytes are needed (after
    /// [`finish`](Self::finish): when there are no more events).
    ///
    /// # Errors
    ///
    /// Strict: the stream is damaged at the error's offset. Every later call returns the same
    /// error; the caller drops the connection or the file. Lenient: never.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ParseError> {
        let found = self.machine.step(&self.buffer, self.base, self.ended)?;
        Ok(found.map(|found| self.machine.event(found, &self.buffer, self.base)))
    }

    /// Ends the stream. Call it when [`next_event`](Self::next_event) has returned `None`.
    ///
    /// A lenient reader may then have more events: objects that a too large byte count had
    /// swallowed, and the close of an open section. Pull until there are none.
    ///
    /// # Errors
    ///
    /// Strict: the stream ends inside an object (at the error's offset) or a section, or events
    /// were not pulled. The events returned before are whole.
    pub fn finish(&mut self) -> Result<(), ParseError> {
        self.ended = true;
        match self.mode {
            Mode::Strict if !self.machine.is_between_objects(&self.buffer) => {
                match self.machine.step(&self.buffer, self.base, true) {
                    Err(error) => Err(error),
                    // The caller left events unread, so the stream ends for it at this offset.
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

    /// Takes the problems since the last call (lenient), in stream order; at most 1,024 of
    /// [`problems_total`](Self::problems_total).
    pub fn problems(&mut self) -> Vec<ParseError> {
        std::mem::take(&mut self.machine.problems)
    }

    /// Returns the number of problems since the start of the stream.
    pub fn problems_total(&self) -> u64 {
        self.machine.problems_total
    }

    /// Returns how far the stream has been parsed, in bytes from its start.
    pub fn offset(&self) -> u64 {
        self.base + self.machine.at as u64
    }

    /// Calls `handle` with every event of a stream that is whole in memory, without copying.
    ///
    /// Returns the problems (lenient); at most 1,024.
    ///
    /// # Errors
    ///
    /// Strict: the stream is damaged at the error's offset; the events before it were handed over.
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
        Ok(machine.problems)
    }
}

/// Reads the records of a stream that is whole in memory, strictly and within the default limits.
/// Records inside and outside sections are returned.
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
