//! Commands from outside, and their answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::directories::link_replicas;
use super::super::job::Job;
use super::super::verifying::Verifying;
use super::Core;
use crate::config::{Config, GroupEntry};
use crate::error::Error;
use crate::id::GroupId;
use crate::status::{Published, Report};

/// Receiver of the answer to a command.
type Caller<T> = oneshot::Sender<Result<T, String>>;

impl Core {
    pub(in super::super) fn publish_by_name(
        &mut self,
        tree: &str,
        accepts_loss: bool,
        reply: Caller<Published>,
    ) {
        let due = self.sources.ask(tree, accepts_loss, reply, &self.own);
        self.publish_due(due, self.now());
    }

    pub(in super::super) fn verify(&mut self, tree: Option<&str>, reply: Caller<Vec<Report>>) {
        if let Some(verifying) = Verifying::new(self.spaces.stores(), tree, reply) {
            self.jobs.start(Job::Verify(verifying));
        }
    }

    pub(in super::super) fn reload(&mut self, config: Arc<Config>) -> Result<(), Error> {
        let before = &self.own.config;
        let key = self.own.key();
        // A new invitation to a group does not change the group.
        let entries = |it: &Config| -> Vec<(GroupId, bool)> {
            let all = it.groups.iter().map(|it| &it.entry);
            all.map(|it| (it.group(&key), matches!(it, GroupEntry::Found(_)))).collect()
        };
        let fixed: Vec<&'static str> = [
            ("listen", before.listen != config.listen),
            ("feed_listen", before.feed_listen != config.feed_listen),
            ("the groups", entries(before) != entries(&config)),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        // The common setting `listen` is `feed_listen` here, which is compared above.
        .chain(before.daemon.differences(&config.daemon).into_iter().filter(|it| *it != "listen"))
        .collect();
        if !fixed.is_empty() {
            return Err(Error::NeedsRestart(fixed));
        }
        let now = self.now();
        self.own.config = config;
        self.sources.set(&self.own.config, now);
        self.links.limit_all(|it| self.groups.site(it), &self.own.config);
        self.groups.settle(&self.own, now);
        for (of, store) in self.spaces.set_access(&self.own, &mut self.notes) {
            self.jobs.start(Job::Open(of, store));
        }
        link_replicas(&self.own, &mut self.notes);
        Ok(())
    }
}
