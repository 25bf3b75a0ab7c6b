//! Unreadable records: they are remembered until they have come, and asked for one by one.
//!
//! A repository may repair a record without a new datestamp, so no list of changes brings it. The
//! next incremental harvest therefore asks for the record itself.

use crate::error::{Code, Fault};
use crate::request::Request;
use crate::response::{Quarantined, Record};

use super::checkpoint::Run;
use super::{Harvest, Phase};

/// Maximum number of unreadable records that one harvest asks for; the others wait for the next.
const ASKED_MAX: usize = 10;

impl Harvest {
    /// Reports and remembers an unreadable record, and counts it as one of the list.
    pub(super) fn unread(&mut self, run: &mut Run, unread: Quarantined) {
        let identifier = unread.identifier.as_deref();
        if identifier.is_none_or(|it| self.seen.is_new(it)) {
            run.unread = run.unread.saturating_add(1);
        }
        self.checkpoint.remember_unread(&unread);
        self.report.quarantine(unread);
    }

    /// Notes that a record has come, or is gone.
    pub(super) fn recover(&mut self, identifier: &str) {
        if self.checkpoint.forget_unread(identifier) {
            self.report.recover(identifier.to_owned());
        }
    }

    /// Counts a record that is handed out, unless the harvest has counted it before.
    pub(super) fn count(&mut self, record: &Record) {
        if self.seen.is_uncounted(&record.header.identifier) {
            self.report.records += 1;
            self.report.deleted += u64::from(record.header.deleted);
        }
    }

    /// Returns the phase in which the remembered records are asked for; that of lists if there are
    /// none.
    pub(super) fn phase_of_unread(&self) -> Phase {
        let left = self.checkpoint.unread.len().min(ASKED_MAX);
        if left == 0 { Phase::List } else { Phase::Unread { left } }
    }

    /// Returns the request for the first remembered record.
    pub(super) fn request_unread(&self) -> Option<Request> {
        let identifier = self.checkpoint.unread.first()?.identifier.clone()?;
        Some(Request::Get { identifier, prefix: self.checkpoint.prefix.clone() })
    }

    /// Takes the record that was asked for.
    pub(super) fn record_of_unread(&mut self, record: Record) {
        let identifier = record.header.identifier.clone();
        let asked = self.checkpoint.unread.first().and_then(|it| it.identifier.as_ref());
        if asked != Some(&identifier) {
            return self.next_unread();
        }
        self.recover(&identifier);
        self.next_phase();
        self.count(&record);
        self.hand_out(vec![record], false);
    }

    /// Handles a protocol error instead of the record.
    pub(super) fn faults_of_unread(&mut self, faults: &[Fault]) {
        let is_gone =
            |it: &Fault| matches!(it.code, Code::IdDoesNotExist | Code::CannotDisseminateFormat);
        let asked = self.checkpoint.unread.first().and_then(|it| it.identifier.clone());
        match asked.filter(|_| faults.iter().any(is_gone)) {
            Some(identifier) => {
                self.recover(&identifier);
                self.next_phase();
            }
            None => self.next_unread(),
        }
    }

    /// Goes on without the record; the next harvests ask for the others first.
    pub(super) fn next_unread(&mut self) {
        let unread = &mut self.checkpoint.unread;
        if !unread.is_empty() {
            unread.rotate_left(1);
        }
        self.next_phase();
    }

    fn next_phase(&mut self) {
        self.tries = 0;
        self.phase = match self.phase {
            Phase::Unread { left } if 1 < left && !self.checkpoint.unread.is_empty() => {
                Phase::Unread { left: left - 1 }
            }
            _ => Phase::List,
        };
    }
}
