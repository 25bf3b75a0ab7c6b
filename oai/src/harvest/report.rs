//! The report of a harvest: counts, warnings, and the reason for a failure.

use crate::error::Fault;
use crate::response::{BASE_URL_ADVICE, Quarantined};

use super::Remedy;

/// Maximum number of unreadable records that a report names.
pub const QUARANTINED_MAX: usize = 100;

/// The counts of a harvest since it was begun or continued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct records that were handed out, deleted ones included. One that came again is counted
    /// again only in a harvest of very many records.
    pub records: u64,
    /// Number of deleted ones among these records.
    pub deleted: u64,
    /// Records that were dropped because they were unchanged.
    pub duplicates: u64,
    /// Unreadable records, with those that earlier harvests could not read and that have not come
    /// since.
    pub quarantined: u64,
    /// The first [`QUARANTINED_MAX`] of them.
    pub quarantine: Vec<Quarantined>,
    /// Identifiers of records that could not be read before, and have come now, or are gone.
    pub recovered: Vec<String>,
    /// Responses that were readable only after repairs.
    pub repaired: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes of the responses as received.
    pub bytes: u64,
    /// Warnings: the first one of each kind, with their number.
    pub warnings: Vec<(Warning, u64)>,
    /// Items of the repository: as announced, or as a full harvest counted them.
    pub elements: Option<u64>,
    /// Whether the harvest was full.
    pub full: bool,
    /// Dates of the gaps that were left when the harvest came to its end; the next harvest tries
    /// them again.
    pub gaps: Vec<String>,
}

impl Report {
    pub(super) fn warn(&mut self, warning: Warning) {
        let kind = std::mem::discriminant(&warning);
        match self.warnings.iter_mut().find(|(it, _)| std::mem::discriminant(it) == kind) {
            Some((_, count)) => *count += 1,
            None => self.warnings.push((warning, 1)),
        }
    }

    /// Removes an unreadable record that has come, or is gone.
    pub(super) fn recover(&mut self, identifier: String) {
        let before = self.quarantine.len();
        self.quarantine.retain(|it| it.identifier.as_ref() != Some(&identifier));
        let removed = u64::try_from(before - self.quarantine.len()).unwrap_or(0);
        self.quarantined = self.quarantined.saturating_sub(removed);
        self.recovered.push(identifier);
    }

    /// Adds an unreadable record. One that is named already has come again.
    pub(super) fn quarantine(&mut self, found: Quarantined) {
        let is_same =
            |it: &&mut Quarantined| it.identifier.is_some() && it.identifier == found.identifier;
        if let Some(known) = self.quarantine.iter_mut().find(is_same) {
            *known = found;
            return;
        }
        self.quarantined += 1;
        if self.quarantine.len() < QUARANTINED_MAX {
            self.quarantine.push(found);
        }
    }
}

/// Something odd about a repository that does not end its harvest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The repository's clock is wrong. Its times are used only up to our time, because an earlier
    /// time is always safe.
    #[error("its clock is off by {secs} s, by ours")]
    ClockOff {
        /// Offset in seconds, positive if its clock is ahead.
        secs: i64,
    },
    /// The beginning of the next harvest is unknown.
    #[error("its responses have no date; the next harvest must be a full one")]
    NoResponseDate,
    /// The number of records differs from the announced one: the repository counts wrongly, or has
    /// not sent all records.
    #[error("it says that a list has {announced} records, and sent {found}")]
    ListSize {
        /// The announced size.
        announced: u64,
        /// The distinct records that came.
        found: u64,
    },
    /// A list without records, perhaps from a broken repository.
    #[error("it sent empty lists instead of noRecordsMatch; absent records are kept")]
    EmptyList,
    /// The repository has none of the wanted formats.
    #[error("it has no metadata format {wanted:?}; {used:?} is harvested")]
    OtherFormat {
        /// The wanted formats.
        wanted: String,
        /// The harvested format.
        used: String,
    },
    /// A set of the settings is not listed.
    #[error("it does not list the set {0:?}")]
    UnknownSet(String),
    /// The last harvest was so long ago that the repository may have forgotten deletions: a full
    /// harvest follows.
    #[error("it forgets old deletions, and the last harvest is long ago; all is harvested again")]
    DeletionsLate,
    /// Later parts of a list have records of other sets.
    #[error("a list of the set {0:?} went on with records of other sets, which are left out")]
    SetLost(String),
    /// A request was made again.
    #[error("a request was made again: {0}")]
    Retried(String),
    /// A list was begun again, with fewer dates.
    #[error("a list was begun again: {0}")]
    Restarted(String),
    /// The repository announces seconds, but accepts only days.
    #[error("it takes no seconds, although it says so; days are asked for")]
    DaysOnly,
    /// The repository sends records outside the requested dates.
    #[error("it sends records of dates that it was not asked for")]
    OutsideWindow,
    /// Absent records are kept, since some may be missing by mistake.
    #[error("records may be missing, so absent records are kept")]
    ReleaseWithheld,
    /// A record without a readable datestamp.
    #[error("records have no datestamp, such as {0:?}")]
    NoDatestamp(String),
    /// A list ended with an error instead of an empty token.
    #[error("a list ended with noRecordsMatch")]
    EndedByError,
    /// The last part of a complete list has a token that was handed out before.
    #[error("a list ended with a resumption token that it had handed out before")]
    EndedByToken,
}

/// The reason for an early end of a harvest. The checkpoint says where to continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A token came back: the list would never end.
    #[error(
        "it handed out the same resumption token twice, so that its list would not end; \
         what came is kept"
    )]
    TokenLoop,
    /// The list brings new tokens, but only records that it has brought before.
    #[error("it sends the same records again and again ({pages} parts in a row)")]
    Endless {
        /// Parts without anything new.
        pages: u64,
    },
    /// The repository refuses the tokens that it hands out.
    #[error("it refuses its own resumption tokens, last with: {0}")]
    TokenRefused(String),
    /// Some windows failed, even when they were made shorter; everything else came. The next
    /// harvest tries them again.
    #[error("records changed from {gaps} cannot be harvested: {why}; all others came")]
    Gaps {
        /// Their dates.
        gaps: String,
        /// The reason why the last of them failed.
        why: String,
    },
    /// A token is longer than allowed.
    #[error("its resumption token has {bytes} bytes, more than {bytes_max}")]
    TokenSize {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Its answers cannot be read, even after repeated requests.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// It answers with an HTTP error.
    #[error("it answers with status {status}{}", status_advice(*.status))]
    Status {
        /// The status.
        status: u16,
    },
    /// It asks for a longer pause than is allowed.
    #[error("it asks for a pause of {secs} s, which is too long")]
    Busy {
        /// The pause, in seconds.
        secs: u64,
    },
    /// The transfer of an answer failed.
    #[error("{problem}")]
    Transfer {
        /// The reason.
        problem: String,
        /// The remedy that did not help.
        remedy: Remedy,
    },
    /// It refuses the request.
    #[error("it refuses: {0}")]
    Refused(Fault),
    /// It has none of the formats.
    #[error("it has none of the metadata formats {wanted}, but {offered}")]
    NoFormat {
        /// The wanted formats.
        wanted: String,
        /// The formats that it has.
        offered: String,
    },
    /// It does not list a set, in a strict harvest.
    #[error("it does not list the set {wanted}")]
    NoSet {
        /// The wanted sets that it does not list.
        wanted: String,
    },
    /// The repository exceeds a limit of the settings.
    #[error("the harvest takes more than {max} {what}; raise {setting:?} if that is meant")]
    OverLimit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: u64,
        /// The name of its setting.
        setting: &'static str,
    },
    /// The harvest took too long.
    #[error("the harvest takes longer than {secs} s; the next one continues from here")]
    TimeUp {
        /// Longest time, in seconds.
        secs: u64,
    },
}

/// Returns advice to append to an HTTP status: where the address may be wrong, to check it.
pub fn status_advice(status: u16) -> String {
    if matches!(status, 404 | 410) { format!("; {BASE_URL_ADVICE}") } else { String::new() }
}
