//! The time limit: a check of it in long loops, and a reader that stops decoders of other libraries.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use crate::object::{ProblemKind, SeekReader};
use crate::{Draft, Input};

/// Steps between two checks of the time limit, if a step is a line or a token.
const SHORT_STEPS: u32 = 1_024;
/// Steps between two checks of the time limit, if a step may take long.
const LONG_STEPS: u32 = 64;

/// The time limit in a long loop.
pub(crate) struct TimeLimit<'c> {
    cancelled: &'c dyn Fn() -> bool,
    /// Steps between two checks.
    every: u32,
    steps: u32,
    is_over: bool,
}

impl<'c> TimeLimit<'c> {
    /// Returns the limit of a loop over lines, tokens or the like.
    pub(crate) fn new(cancelled: &'c dyn Fn() -> bool) -> Self {
        Self { cancelled, every: SHORT_STEPS, steps: 0, is_over: false }
    }

    /// Returns the limit of a loop whose steps may take long: entries of a list, pieces of a picture.
    pub(crate) fn of_long_steps(cancelled: &'c dyn Fn() -> bool) -> Self {
        Self { every: LONG_STEPS, ..Self::new(cancelled) }
    }

    /// Counts a step, and returns whether to go on. The first step is checked, too.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.is_over |= self.steps.is_multiple_of(self.every) && (self.cancelled)();
        self.steps = self.steps.wrapping_add(1);
        !self.is_over
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds a problem to the draft if the time was up.
    pub(crate) fn report(&self, subject: &str, draft: &mut Draft<'_>) {
        if self.is_over {
            draft.problem(ProblemKind::Time, format!("ran out of time on {subject}"));
        }
    }
}

/// A reader of bytes for other libraries, which fails once a check finds that the time is up.
pub(crate) struct CancellableReader<'a, R = Cursor<&'a [u8]>> {
    bytes: R,
    time: TimeLimit<'a>,
}

impl<'a> CancellableReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { bytes: Cursor::new(bytes), time: TimeLimit::of_long_steps(cancelled) }
    }
}

impl<'a> CancellableReader<'a, SeekReader<'a>> {
    /// Returns a reader of the whole object.
    pub(crate) fn of(input: &Input<'a>) -> Self {
        let bytes = SeekReader::new(input.object, input.cancelled, &Rc::default());
        Self { bytes, time: TimeLimit::of_long_steps(input.cancelled) }
    }
}

impl<R> CancellableReader<'_, R> {
    fn step(&mut self) -> io::Result<()> {
        if self.time.goes_on() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl<R: Read> Read for CancellableReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.step()?;
        self.bytes.read(into)
    }
}

impl<R: BufRead> BufRead for CancellableReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.step()?;
        self.bytes.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.consume(bytes);
    }
}

impl<R: Seek> Seek for CancellableReader<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.step()?;
        self.bytes.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_on_cancellation() {
        let bytes = [0; 4096];
        let all = CancellableReader::new(&bytes, &|| false).bytes().filter(Result::is_ok).count();
        assert_eq!(all, 4096);
        let looks = std::cell::Cell::new(0);
        let cancelled = || looks.replace(looks.get() + 1) == 1;
        let some =
            CancellableReader::new(&bytes, &cancelled).bytes().take_while(Result::is_ok).count();
        assert_eq!(some, 64);
    }
}
