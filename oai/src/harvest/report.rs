//! What a harvest did, what was odd about it, and why it could not go on.

use crate::error::Fault;
use crate::response::Quarantined;

use super::Remedy;

/// Most records that could not be read that a report names.
pub const QUARANTINED_MAX: usize = 100;

/// What a harvest did, since it was begun or gone on with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that were handed out, deleted ones included; one that came again after a restart, or
    /// in two sets, counts again.
    pub records: u64,
    /// Of those, deleted ones.
    pub deleted: u64,
    /// Records that had come before as they are, and were dropped.
    pub duplicates: u64,
    /// Records that could not be read.
    pub quarantined: u64,
    /// The first [`QUARANTINED_MAX`] of them.
    pub quarantine: Vec<Quarantined>,
    /// Responses that could be read only after they were repaired.
    pub repaired: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes of the responses, as they came.
    pub bytes: u64,
    /// What was odd: the first of its kind, and how often there was one.
    pub warnings: Vec<(Warning, u64)>,
    /// Items of the repository: as it says, or as a full harvest counted them.
    pub elements: Option<u64>,
    /// Whether the harvest was of everything.
    pub full: bool,
    /// The dates of what could not be had, of a harvest that has come to its end; the next one tries
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

    pub(super) fn quarantine(&mut self, found: &[Quarantined]) {
        self.quarantined += u64::try_from(found.len()).unwrap_or(u64::MAX);
        let room = QUARANTINED_MAX.saturating_sub(self.quarantine.len());
        self.quarantine.extend(found.iter().take(room).cloned());
    }
}

/// What is odd about a repository and does not end its harvest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Its own times count, up to ours: earlier is always safe.
    #[error("its clock is off by {secs} s, by ours")]
    ClockOff {
        /// Above 0 if it is ahead.
        secs: i64,
    },
    /// Nothing says where the next harvest would have to begin.
    #[error("it does not say what time it is; the next harvest has to be of everything")]
    NoResponseDate,
    /// The repository may count wrongly, or not have sent all.
    #[error("it says that a list has {told} records, and sent {found}")]
    ListSize {
        /// What it says.
        told: u64,
        /// Distinct records that came.
        found: u64,
    },
    /// A list without records, which may come of a repository that is broken.
    #[error(
        "it sent an empty list in the place of noRecordsMatch, again and again; \
         what did not come is kept"
    )]
    EmptyList,
    /// None of the wanted formats is there.
    #[error("it has no metadata format {wanted:?}; {used:?} is harvested")]
    OtherFormat {
        /// What was wanted.
        wanted: String,
        /// What is harvested.
        used: String,
    },
    /// A set that was asked for is not on its list.
    #[error("it does not list the set {0:?}")]
    UnknownSet(String),
    /// It was not asked for so long that it may have forgotten deletions: everything is harvested again.
    #[error(
        "it does not keep deletions for good, and was not asked for long: all is harvested again"
    )]
    DeletionsLate,
    /// Later parts of a list are of more than the set.
    #[error("a list of the set {0:?} went on with records of other sets, which are left out")]
    SetLost(String),
    /// A request was made again.
    #[error("a request was made again: {0}")]
    Retried(String),
    /// A list was begun again, of fewer dates.
    #[error("a list was begun again: {0}")]
    Restarted(String),
    /// It has seconds, as it says, and takes days alone.
    #[error("it takes no seconds, although it says so; days are asked for")]
    DaysOnly,
    /// It does not keep to the dates that it is asked for.
    #[error("it sends records of dates that it was not asked for")]
    OutsideWindow,
    /// What a full harvest did not bring was kept, since records were missing.
    #[error("records may be missing, so what did not come is kept")]
    ReleaseWithheld,
    /// A record without a time, or with none that can be read.
    #[error("records have no datestamp, such as {0:?}")]
    NoDatestamp(String),
    /// A list ended with an error in the place of an empty token.
    #[error("a list ended with noRecordsMatch")]
    EndedByError,
    /// The last part of a list, which is whole as it says, has a token that was handed out before.
    #[error("a list ended with a resumption token that it had handed out before")]
    EndedByToken,
}

/// Why a harvest ended before its end. The checkpoint says where to go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A token came back: the list would never end.
    #[error(
        "it handed out the same resumption token twice, so that its list would not end; \
         what came is kept"
    )]
    TokenLoop,
    /// New tokens with old records.
    #[error("it sends the same records again and again ({pages} parts in a row)")]
    Endless {
        /// Parts without anything new.
        pages: u64,
    },
    /// It takes back the tokens that it hands out.
    #[error("it refuses its own resumption tokens, last with: {0}")]
    TokenRefused(String),
    /// Windows could not be had, nor any shorter ones; everything else came. The next harvest tries them
    /// again.
    #[error("records changed from {gaps} cannot be had: {why}; all others came")]
    Gaps {
        /// Their dates.
        gaps: String,
        /// Why not the last of them.
        why: String,
    },
    /// A token that is longer than any could be.
    #[error("its resumption token has {bytes} bytes, more than {bytes_max}")]
    TokenSize {
        /// Its length.
        bytes: usize,
        /// Most that are taken.
        bytes_max: usize,
    },
    /// What it sends is no response, again and again.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// It answers with an error of HTTP.
    #[error("it answers with status {status}")]
    Status {
        /// Which.
        status: u16,
    },
    /// It asks for a longer pause than is allowed.
    #[error("it asks to be left alone for {secs} s")]
    Busy {
        /// So long.
        secs: u64,
    },
    /// There was no answer.
    #[error("{problem}")]
    Transfer {
        /// Why not.
        problem: String,
        /// What might have helped, and did not.
        remedy: Remedy,
    },
    /// It cannot do what it was asked.
    #[error("it refuses: {0}")]
    Refused(Fault),
    /// It has none of the formats.
    #[error("it has none of the metadata formats {wanted}, but {offered}")]
    NoFormat {
        /// What was wanted.
        wanted: String,
        /// What it has.
        offered: String,
    },
    /// More than the settings allow.
    #[error("the harvest takes more than {max} {what}; raise {setting:?} if that is meant")]
    OverLimit {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: u64,
        /// Its name among the settings.
        setting: &'static str,
    },
    /// It took too long.
    #[error("the harvest takes longer than {secs} s; the next one goes on from where it came to")]
    TimeUp {
        /// Longest time, in seconds.
        secs: u64,
    },
}
