//! A cancellable reader: it stops decoders of other libraries when the time is up.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};

/// Steps between two looks at the clock.
const POLL_STEPS: u32 = 256;

/// Foreign bytes as a file that fails after cancellation.
pub(crate) struct CancellableReader<'a> {
    bytes: Cursor<&'a [u8]>,
    cancelled: &'a dyn Fn() -> bool,
    steps: u32,
}

impl<'a> CancellableReader<'a> {
    /// Returns a reader of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { bytes: Cursor::new(bytes), cancelled, steps: 0 }
    }

    fn step(&mut self) -> io::Result<()> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(POLL_STEPS) && (self.cancelled)() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        Ok(())
    }
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.step()?;
        self.bytes.read(into)
    }
}

impl BufRead for CancellableReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.step()?;
        self.bytes.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.consume(bytes);
    }
}

impl Seek for CancellableReader<'_> {
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
        let some =
            CancellableReader::new(&bytes, &|| true).bytes().take_while(Result::is_ok).count();
        assert_eq!(some, 255);
    }
}
