//! Reading of the takedown list, even if parts are incomplete or damaged.
//!
//! Source: ours.

use soif::{Event, Limits, Mode, Reader, RecordRef};

use super::{LIST, NOTICE, NOWHERE, PIN, Suppressed, Suppression, WRITING};
use crate::error::Error;

impl Suppressed {
    /// Adds the records of the copy, if the file has `damaged` parts or is gone.
    pub(super) fn take_copy(&mut self, damaged: u64) -> Result<(), Error> {
        let Some(bytes) = self.file.read(true)? else { return Ok(()) };
        self.counts.damaged = 0;
        self.take_in(&bytes, true);
        self.file.is_to_rewrite = self.counts.damaged == 0 && !bytes.is_empty();
        if self.file.is_to_rewrite {
            let path = self.file.path.display();
            tracing::warn!(%path, "the takedown list is restored from its copy");
        } else {
            self.counts.damaged = damaged;
        }
        Ok(())
    }

    /// Adds the records of the file, or of its copy.
    pub(super) fn take_in(&mut self, bytes: &[u8], is_copy: bool) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|it| !it.is_empty()) {
            let mut done = 0;
            let outcome = Reader::over(rest, Mode::Strict, Limits::default(), |event| {
                if let Event::Record(record) = event {
                    done = record.offset() + record.source().len() as u64;
                    let start = at as u64;
                    let span = (start + record.offset(), start + done);
                    self.take_record(&record, if is_copy { NOWHERE } else { span });
                }
            });
            let Err(error) = outcome else { break };
            self.counts.damaged += 1;
            let (path, byte) = (self.file.path.display(), at as u64 + done);
            tracing::error!(%path, byte, %error, "a part of the takedown list is lost");
            // An incomplete record may seem to include the next one. So the search for the next
            // record continues right after the beginning of the incomplete one.
            let index = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
            let next = next_record(bytes, at + index(done));
            let is_before = done != 0 && at + index(error.offset) < next;
            let torn = if done == 0 { at } else { next };
            at = if is_before { next } else { next_record(bytes, torn + 1) };
        }
    }

    fn take_record(&mut self, record: &RecordRef<'_>, span: (u64, u64)) {
        let taken = match record.template() {
            PIN => Some(()),
            LIST => record.number(WRITING).map(|it| self.file.mark.writing = it),
            NOTICE => Suppression::read(record).map(|it| drop(self.put(it, span))),
            _ => None,
        };
        if taken.is_none() {
            self.counts.damaged += 1;
            let path = self.file.path.display();
            tracing::error!(%path, byte = span.0, "a notice is damaged and has no effect");
        }
    }
}

/// Returns the next possible start of a record after `from`.
fn next_record(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.windows(2).position(|it| it == b"\n@");
    found.map_or(bytes.len(), |it| from + it + 1)
}
