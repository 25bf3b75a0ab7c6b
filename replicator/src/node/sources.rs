//! Sources of this member's versions: trees, which are published by command or when they change
//! (`watching`), and logs of collections, which are published when they have grown (`following`).

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use net::client::Client;
use net::shutdown::Shutdown;
use tokio::sync::oneshot;

use super::following::{self, Following};
use super::job::Job;
use super::notes::Notes;
use super::own::Own;
use super::publishing::{Answer, OwnSource, Reply};
use super::watching::{CheckResult, Watching};
use crate::config::{Config, TreeConfig};
use crate::version::Name;

#[derive(Debug)]
pub(super) struct Sources {
    pub(super) watching: Watching,
    pub(super) following: Following,
    /// Names of sources that are being published.
    pub(super) busy: BTreeSet<Name>,
}

#[derive(Debug)]
pub(super) enum SourceTask {
    Start(Job),
    Publish(OwnSource, Reply),
}

impl Sources {
    /// Returns the sources in the settings; `stop` ends all their jobs.
    pub(super) fn new(own: &Own, client: Client, started: Instant, stop: &Shutdown) -> Self {
        let data = own.config.daemon.data.clone();
        let mut sources = Self {
            watching: Watching::new(started, stop.clone()),
            following: Following::new(own.me, client, data, stop.clone()),
            busy: BTreeSet::new(),
        };
        sources.set(&own.config, Duration::ZERO);
        sources
    }

    pub(super) fn set(&mut self, config: &Config, now: Duration) {
        self.watching.set(&config.trees, now);
        self.following.set(&config.collections, now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let all = [self.watching.poll_timeout(), self.following.poll_timeout()];
        all.into_iter().flatten().min()
    }

    pub(super) fn poll(&mut self, now: Duration, notes: &mut Notes) -> Vec<SourceTask> {
        let mut due = Vec::new();
        for checking in self.watching.poll(now, notes) {
            if checking.is_long() {
                due.push(SourceTask::Start(Job::Check(checking)));
            } else {
                due.extend(self.handle_checked(checking.run(), now, notes));
            }
        }
        due.extend(self.following.poll(now).into_iter().map(|it| match it {
            following::FollowTask::Pull(pulling) => SourceTask::Start(Job::Pull(pulling)),
            following::FollowTask::Publish(source) => SourceTask::Publish(source, Reply::Follower),
        }));
        due
    }

    /// Takes in whether a tree is watched; returns the task to publish the tree, if that is due.
    pub(super) fn handle_checked(
        &mut self,
        found: CheckResult,
        now: Duration,
        notes: &mut Notes,
    ) -> Option<SourceTask> {
        let busy = &self.busy;
        let walks = self.watching.handle_checked(found, |it| busy.contains(it), now, notes);
        Some(SourceTask::Publish(OwnSource::tree(walks?, false), Reply::Nobody))
    }

    /// Returns the task of publishing a tree, found by its name or its directory. For a collection,
    /// found by its name, a pull is planned, and there is no task. If nothing can be published,
    /// there is no task, and the reason is sent to `reply`.
    pub(super) fn ask(
        &mut self,
        tree: &str,
        accepts_loss: bool,
        reply: oneshot::Sender<Answer>,
        own: &Own,
    ) -> Option<SourceTask> {
        let is_it = |it: &&TreeConfig| it.name.as_str() == tree || it.directory == Path::new(tree);
        let (reply, refused) = match own.config.trees.iter().find(is_it) {
            Some(tree) if !self.busy.contains(&tree.name) => {
                let source = OwnSource::tree(tree.clone(), accepts_loss);
                return Some(SourceTask::Publish(source, Reply::Caller(reply)));
            }
            Some(tree) => (reply, format!("{} is being published just now: try again", tree.name)),
            None => {
                let left = self.following.ask(tree, reply, own.now())?;
                let why = "there is no [[tree]] or [[collection]]";
                (left, format!("{why} {tree:?} in the settings"))
            }
        };
        drop(reply.send(Err(refused)));
        None
    }

    /// Reports the result of publishing a source: to the caller, or to the part of the sources that
    /// started it.
    pub(super) fn answer(
        &mut self,
        name: &Name,
        reply: Reply,
        answer: Answer,
        now: Duration,
        notes: &mut Notes,
    ) {
        match reply {
            Reply::Caller(reply) => drop(reply.send(answer)),
            Reply::Follower => self.following.handle_published(name, answer, now, notes),
            Reply::Nobody => self.watching.handle_walked(name, answer.err(), now, notes),
        }
    }
}
