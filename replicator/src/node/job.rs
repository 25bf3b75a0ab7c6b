//! What takes long: jobs beside the core, each a value that has all it needs, and what comes of each, another value.
//!
//! A job knows nothing of who started it; what it comes to waits until the core takes it in.

use std::time::Duration;

use net::shutdown::Shutdown;
use tokio::task::JoinSet;

use super::feeds::{Renewed, Renewing};
use super::following::{Heard, Hearing};
use super::links::{Read, Reading};
use super::measuring::Calling;
use super::publishing::{Committed, Committing, Drafted, Drafting};
use super::space::{Outcome, Work};
use super::spaces::{Opened, Opening, Removing};
use super::verifying::{Verified, Verifying};
use super::watching::{Checking, Found};
use crate::id::MemberId;
use crate::tree::publish::Draft;
use crate::version::Namespace;

/// At the end jobs get so long.
const END: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug)]
pub(super) enum Job {
    /// Write chunks of a tree or collection, or switch to a version.
    Space(Namespace, Box<Work>),
    /// Read chunks for a neighbor.
    Read(Reading),
    /// Call a member.
    Call(Calling),
    /// See whether changes of a tree are heard of.
    Check(Checking),
    /// Make a draft.
    Draft(Drafting),
    /// Give one up.
    Discard(Box<Draft>),
    /// Have readers see one.
    Commit(Box<Committing>),
    /// Ask the feed of a collection.
    Hear(Box<Hearing>),
    /// Have the feed that is served of one say what is new.
    Renew(Renewing),
    /// Read trees.
    Verify(Verifying),
    /// Remove what is old.
    Remove(Removing),
    /// Let others at a tree, or no more.
    Open(Opening),
}

/// What a job has come to.
#[derive(Debug)]
pub(super) enum Done {
    /// Of [`Job::Space`].
    Space(Namespace, Outcome),
    /// Of [`Job::Read`].
    Read(Read),
    /// A call went out, or not.
    Called(MemberId, bool),
    /// Of [`Job::Check`].
    Checked(Found),
    /// Of [`Job::Draft`].
    Drafted(Drafted),
    /// Of [`Job::Commit`].
    Committed(Committed),
    /// Of [`Job::Hear`].
    Heard(Heard),
    /// Of [`Job::Renew`].
    Renewed(Renewed),
    /// Of [`Job::Verify`].
    Verified(Verified),
    /// What was old is gone, but for so many generations.
    Removed(Namespace, usize),
    /// What was begun is gone.
    Discarded,
    /// Of [`Job::Open`].
    Opened(Opened),
}

/// All jobs that are under way.
#[derive(Debug)]
pub(super) struct Jobs {
    all: JoinSet<Done>,
    /// Starts at the end.
    stop: Shutdown,
}

impl Jobs {
    /// None yet; `stop` is what jobs have that are to end early.
    pub(super) fn new(stop: Shutdown) -> Self {
        Self { all: JoinSet::new(), stop }
    }

    /// Has a job done, beside all others.
    pub(super) fn start(&mut self, job: Job) {
        match job {
            Job::Call(it) => {
                self.all.spawn(async {
                    let (member, is_sent) = it.run().await;
                    Done::Called(member, is_sent)
                });
            }
            Job::Hear(it) => {
                self.all.spawn(async { Done::Heard(it.run().await) });
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
            Job::Renew(it) => self.block(|| Done::Renewed(it.run())),
            Job::Verify(it) => self.block(|| Done::Verified(it.run())),
            Job::Remove(it) => self.block(|| {
                let (of, left) = it.run();
                Done::Removed(of, left)
            }),
            Job::Open(it) => self.block(|| Done::Opened(it.run())),
        }
    }

    /// Does what blocks on a thread for that.
    fn block(&mut self, job: impl FnOnce() -> Done + Send + 'static) {
        self.all.spawn_blocking(job);
    }

    /// What the next one has come to; none while there is none.
    pub(super) async fn next(&mut self) -> Option<Done> {
        loop {
            match self.all.join_next().await? {
                Ok(done) => return Some(done),
                Err(error) => tracing::error!(%error, "a job has failed"),
            }
        }
    }

    /// Ends all of them, and waits for that for some seconds.
    pub(super) async fn end(&mut self) {
        self.stop.start();
        let ended = async { while self.all.join_next().await.is_some() {} };
        if tokio::time::timeout(END, ended).await.is_err() {
            tracing::warn!("what is done on disk has not ended in time; it is done again");
        }
    }
}
