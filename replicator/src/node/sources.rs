//! What this member publishes: trees by command, or as soon as a look at them shows a change (`watching`); the logs of
//! collections when they have grown (`following`).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::client::Client;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, oneshot};

use super::following::{self, Following};
use super::job::Job;
use super::notes::Notes;
use super::own::Own;
use super::publishing::{Answer, Reply, Source};
use super::watching::{Found, Watching};
use crate::config::{Config, TreeConfig};
use crate::version::Name;

/// All that this member publishes.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) watching: Watching,
    pub(super) following: Following,
    /// What is being published.
    busy: BTreeSet<Name>,
}

/// What is to be done about some of it.
#[derive(Debug)]
pub(super) enum Due {
    /// Start this.
    Start(Job),
    /// Publish this.
    Publish(Source, Reply),
}

impl Sources {
    /// What the settings say; `stop` ends what is done about any of it.
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

    /// Takes over other settings.
    pub(super) fn set(&mut self, config: &Config, now: Duration) {
        self.watching.set(&config.trees, now);
        self.following.set(&config.collections, now);
    }

    /// Is notified once something has been heard of a tree.
    pub(super) fn heard(&self) -> Arc<Notify> {
        self.watching.heard()
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let all = [self.watching.poll_timeout(), self.following.poll_timeout()];
        all.into_iter().flatten().min()
    }

    /// What is due.
    pub(super) fn poll(&mut self, now: Duration, notes: &mut Notes) -> Vec<Due> {
        let mut due = Vec::new();
        for checking in self.watching.poll(now, notes) {
            if checking.is_long() {
                due.push(Due::Start(Job::Check(checking)));
            } else {
                due.extend(self.handle_checked(checking.run(), now, notes));
            }
        }
        due.extend(self.following.poll(now).into_iter().map(|it| match it {
            following::Due::Hear(hearing) => Due::Start(Job::Hear(hearing)),
            following::Due::Publish(source) => Due::Publish(source, Reply::Follower),
        }));
        due
    }

    /// It has been seen whether a tree is watched; returns what is due then.
    pub(super) fn handle_checked(
        &mut self,
        found: Found,
        now: Duration,
        notes: &mut Notes,
    ) -> Option<Due> {
        let busy = &self.busy;
        let looks = self.watching.handle_checked(found, |it| busy.contains(it), now, notes);
        Some(Due::Publish(Source::tree(looks?, false), Reply::Nobody))
    }

    /// What to publish for who has asked for it: a tree, by its name or its directory, or a collection, by its name. That
    /// may be for later, or nothing: then they are told why.
    pub(super) fn ask(
        &mut self,
        tree: &str,
        accepts_loss: bool,
        reply: oneshot::Sender<Answer>,
        own: &Own,
    ) -> Option<Due> {
        let is_it = |it: &&TreeConfig| it.name.as_str() == tree || it.directory == Path::new(tree);
        let (reply, refused) = match own.config.trees.iter().find(is_it) {
            Some(tree) if !self.busy.contains(&tree.name) => {
                let source = Source::tree(tree.clone(), accepts_loss);
                return Some(Due::Publish(source, Reply::Asked(reply)));
            }
            Some(tree) => (reply, format!("{} is being published just now: try again", tree.name)),
            None => {
                let left = self.following.ask(tree, reply, own.now())?;
                let why = "there is no [[tree]] or [[collection]]";
                (left, format!("{why} {tree:?} in the settings"))
            }
        };
        // Who has gone away need not know.
        drop(reply.send(Err(refused)));
        None
    }

    /// Something is being published.
    pub(super) fn begin(&mut self, name: &Name) {
        self.busy.insert(name.clone());
    }

    /// It is no more.
    pub(super) fn end(&mut self, name: &Name) {
        self.busy.remove(name);
    }

    /// Says what has come of it: to who waits for it, or to the admin if something is wrong.
    pub(super) fn answer(
        &mut self,
        name: &Name,
        reply: Reply,
        answer: Answer,
        now: Duration,
        notes: &mut Notes,
    ) {
        match reply {
            // Who has gone away need not know.
            Reply::Asked(reply) => drop(reply.send(answer)),
            Reply::Follower => self.following.handle_published(name, answer, now, notes),
            Reply::Nobody => self.watching.handle_looked(name, answer.err(), now, notes),
        }
    }
}
