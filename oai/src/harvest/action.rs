//! Actions of a harvest and the answers to them.

use std::time::Duration;

use crate::request::{Request, Verb};
use crate::response::{Record, Response, Unreadable};

use super::{Checkpoint, Failure, Report};

/// The next action of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make this request, and hand its outcome to [`Harvest::handle`](super::Harvest::handle).
    Ask(Request),
    /// Wait this long, then poll again.
    Wait(Duration),
    /// Store the records together with the checkpoint, then poll again.
    Take(Box<Batch>),
    /// The harvest is over.
    Done(Box<End>),
}

/// Records, and the checkpoint after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Records, deleted ones included, in the order of arrival; of several records with the same
    /// identifier, the last one is valid.
    pub records: Vec<Record>,
    /// The checkpoint after these records.
    pub checkpoint: Checkpoint,
    /// Number of the full harvest, greater than those of all earlier ones; 0 in an incremental
    /// harvest.
    pub generation: u64,
    /// Whether records that this full harvest did not bring are to be deleted.
    pub release: bool,
    /// Whether this is the last batch of the harvest.
    pub last: bool,
}

impl Batch {
    /// Appends the next batch.
    pub fn absorb(&mut self, next: Self) {
        self.records.extend(next.records);
        self.checkpoint = next.checkpoint;
        self.generation = next.generation;
        (self.release, self.last) = (next.release, next.last);
    }
}

/// The end of a harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Success, or the reason for an early end.
    pub outcome: Result<(), Failure>,
    /// Its report.
    pub report: Report,
    /// The checkpoint from which the next harvest continues.
    pub checkpoint: Checkpoint,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The outcome.
    pub outcome: Outcome,
    /// Bytes of the response as received.
    pub bytes: u64,
    /// Number of the repository's items, from the response's headers ([`crate::repository::oap`]).
    pub elements: Option<u64>,
    /// Number of records of the whole list, from the response's headers.
    pub list: Option<u64>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with any HTTP status: some repositories send protocol errors under an HTTP error.
    Response {
        /// The response.
        response: Response,
        /// Whether the response was readable only after repairs.
        repaired: bool,
    },
    /// An answer with a status of success (2xx) that is not a complete response.
    Unreadable {
        /// The problem.
        problem: String,
        /// The remedy that may help ([`Remedy::for_unreadable`]).
        remedy: Remedy,
        /// Records in it that are complete.
        whole: Vec<Record>,
    },
    /// An answer with another status and without a response.
    Status {
        /// The status.
        status: u16,
        /// The requested pause, read by [`retry_after_secs`](super::retry_after_secs).
        retry_after_secs: Option<u64>,
    },
    /// No answer, or one that cannot be used.
    Failed {
        /// The reason.
        problem: String,
        /// The remedy that may help.
        remedy: Remedy,
    },
}

/// The remedy that may help after a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Try again.
    Again,
    /// Try again, and then ask for less at once.
    AgainOrLess,
    /// Ask for less at once.
    Less,
    /// Nothing.
    None,
}

impl Remedy {
    /// Returns the remedy for an answer to `asked` that is not a readable response.
    pub fn for_unreadable(error: &Unreadable, asked: Verb) -> Self {
        let is_list = asked == Verb::ListRecords;
        match error {
            // It is a part of the program or its template, and comes again with every answer.
            Unreadable::Doctype { .. } | Unreadable::NoVerb { .. } if is_list => Self::Less,
            Unreadable::Doctype { .. }
            | Unreadable::NoVerb { .. }
            | Unreadable::Html { .. }
            | Unreadable::NotOai { .. }
                if !is_list =>
            {
                Self::None
            }
            // An overloaded repository may send an HTML page instead of a long list.
            _ => Self::AgainOrLess,
        }
    }
}
