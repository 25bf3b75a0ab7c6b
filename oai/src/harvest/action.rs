//! What a harvest asks for, and what it is told.

use std::time::Duration;

use crate::request::Request;
use crate::response::{Record, Response};

use super::{Checkpoint, Failure, Report};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make this request, and hand its outcome to [`Harvest::handle`](super::Harvest::handle).
    Ask(Request),
    /// Wait for so long, then ask again what to do.
    Wait(Duration),
    /// Store this, the checkpoint with the records, then ask again what to do.
    Take(Box<Part>),
    /// Nothing: it is over.
    Done(Box<End>),
}

/// Records, and how far the harvest has come with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Records, deleted ones included, in the order in which they came; later ones count.
    pub records: Vec<Record>,
    /// Where to go on after them.
    pub checkpoint: Checkpoint,
    /// Number of the full harvest that they are of, higher than all before; 0 of a harvest of what is
    /// new.
    pub generation: u64,
    /// Whether what this full harvest did not bring is not there any more.
    pub release: bool,
    /// Whether the harvest has come to its end.
    pub last: bool,
}

impl Part {
    /// Adds the part that came after this one.
    pub fn absorb(&mut self, next: Self) {
        self.records.extend(next.records);
        self.checkpoint = next.checkpoint;
        self.generation = next.generation;
        (self.release, self.last) = (next.release, next.last);
    }
}

/// How a harvest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Why it ended before its end, if it did.
    pub outcome: Result<(), Failure>,
    /// What it did.
    pub report: Report,
    /// Where the next one goes on.
    pub checkpoint: Checkpoint,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// That.
    pub outcome: Outcome,
    /// Bytes of the response, as they came.
    pub bytes: u64,
    /// What the response's head says ([`crate::repository::oap`]): items of the repository.
    pub elements: Option<u64>,
    /// And records of the list that the response is a part of.
    pub list: Option<u64>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response, whatever its status of HTTP: some send errors of the protocol under one of HTTP.
    Response {
        /// It.
        response: Response,
        /// Whether it could be read only after it was repaired.
        repaired: bool,
    },
    /// An answer with status 200 that is no whole response.
    Unreadable {
        /// What is wrong with it.
        problem: String,
        /// Records that were whole all the same.
        whole: Vec<Record>,
    },
    /// An answer with another status, and no response in it.
    Status {
        /// Which.
        status: u16,
        /// The pause that it asks for, as [`retry_after_secs`](super::retry_after_secs) reads it.
        retry_after_secs: Option<u64>,
    },
    /// No answer.
    Failed {
        /// Why not.
        problem: String,
        /// What may help.
        remedy: Remedy,
    },
}

/// What may help after there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Trying again.
    Again,
    /// Trying again, and then asking for less at once.
    AgainOrLess,
    /// Asking for less at once.
    Less,
    /// Nothing.
    None,
}
