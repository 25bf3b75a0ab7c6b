//! Jobs: slow work that runs outside the core. A job is a value that has everything it needs, and
//! its result is another value.
//!
//! A job does not know its starter; its result waits until the core takes it in.

use std::sync::Arc;
use std::time::Duration;

use net::shutdown::Shutdown;
use tokio::task::JoinSet;

use super::feeds::Renewing;
use super::following::{Pulled, Pulling};
use super::links::Reading;
use super::measuring::Calling;
use super::publishing::{Committed, Committing, Drafted, Drafting};
use super::space::{Outcome, Work};
use super::spaces::remove_old;
use super::verifying::{Verified, Verifying};
use super::watching::{CheckResult, Checking};
use crate::id::MemberId;
use crate::tree;
use crate::tree::publish::Draft;
use crate::tree::store::Store;
use crate::version::Namespace;

/// Longest time that an ending member waits for its jobs.
const END: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum Job {
    /// Write chunks of a tree or collection, or switch to a version.
    Space(Namespace, Box<Work>),
    Read(Reading),
    Call(Calling),
    /// Check whether a tree is watched, and start a watch if needed.
    Check(Checking),
    Draft(Drafting),
    Discard(Box<Draft>),
    /// Make readers see a draft.
    Commit(Box<Committing>),
    Pull(Box<Pulling>),
    /// Renew the served feed of a collection.
    Renew(Renewing),
    Verify(Verifying),
    /// Remove the generations that are no longer needed.
    Remove(Namespace, Arc<Store>),
    /// Change others' access to a tree, which takes a while for many files.
    Open(Namespace, Arc<Store>),
}

/// Result of the [`Job`] of the same kind.
#[derive(Debug)]
pub(super) enum Done {
    Space(Namespace, Outcome),
    Read(Reading),
    /// Whether the call to this member was sent.
    Called(MemberId, bool),
    Checked(CheckResult),
    Drafted(Drafted),
    Committed(Committed),
    Pulled(Pulled),
    Renewed(Namespace, Result<(), collection::Error>),
    Verified(Verified),
    /// How many old generations are left.
    Removed(Namespace, usize),
    Discarded,
    Opened(Namespace, Result<(), tree::error::Error>),
}

#[derive(Debug)]
pub(super) struct Jobs {
    all: JoinSet<Done>,
    /// The shutdown that starts when the jobs have to end.
    stop: Shutdown,
}

impl Jobs {
    /// Returns an empty set; when jobs have to end early, `stop` is started.
    pub(super) fn new(stop: Shutdown) -> Self {
        Self { all: JoinSet::new(), stop }
    }

    /// Starts a job; it runs at the same time as all others.
    pub(super) fn start(&mut self, job: Job) {
        match job {
            Job::Call(it) => {
                self.all.spawn(async {
                    let (member, is_sent) = it.run().await;
                    Done::Called(member, is_sent)
                });
            }
            Job::Pull(it) => {
                self.all.spawn(async { Done::Pulled(it.run().await) });
            }
            Job::Space(of, work) => self.block(|| Done::Space(of, work.run())),
            Job::Read(it) => self.block(|| Done::Read(it.run())),
            Job::Check(it) => self.block(|| Done::Checked(it.run())),
            Job::Draft(it) => self.block(|| Done::Drafted(it.run())),
            Job::Discard(it) => self.block(|| {
                it.discard();
                Done::Discarded
            }),
            Job::Commit(it) => self.block(|| Done::Committed(it.run())),
            Job::Renew(it) => self.block(|| {
                let (of, outcome) = it.run();
                Done::Renewed(of, outcome)
            }),
            Job::Verify(it) => self.block(|| Done::Verified(it.run())),
            Job::Remove(of, store) => self.block(move || {
                let left = remove_old(&of, &store);
                Done::Removed(of, left)
            }),
            Job::Open(of, store) => self.block(move || Done::Opened(of, store.open_gate())),
        }
    }

    fn block(&mut self, job: impl FnOnce() -> Done + Send + 'static) {
        self.all.spawn_blocking(job);
    }

    /// Returns the result of the next job that ends; none if no job runs.
    pub(super) async fn next(&mut self) -> Option<Done> {
        loop {
            match self.all.join_next().await? {
                Ok(done) => return Some(done),
                Err(error) => tracing::error!(%error, "a job has failed"),
            }
        }
    }

    /// Tells all jobs to end, and waits for them for at most [`END`].
    pub(super) async fn end(&mut self) {
        self.stop.start();
        let ended = async { while self.all.join_next().await.is_some() {} };
        if tokio::time::timeout(END, ended).await.is_err() {
            tracing::warn!("work on disk has not ended in time; it is repeated at the next start");
        }
    }
}
