//! Commands from outside, and their answers.

use std::sync::Arc;

use super::super::ask::Ask;
use super::super::directories::link_replicas;
use super::super::job::Job;
use super::super::verifying::Verifying;
use super::Core;
use crate::config::{Config, GroupEntry};
use crate::error::Error;
use crate::id::GroupId;

impl Core {
    pub(super) fn handle_ask(&mut self, ask: Ask) {
        let now = self.now();
        self.groups.set_clocks(now);
        // A caller that has gone away needs no answer.
        match ask {
            Ask::Status(reply) => drop(reply.send(Box::new(self.status()))),
            Ask::Publish { tree, accepts_loss, reply } => {
                let due = self.sources.ask(&tree, accepts_loss, reply, &self.own);
                self.publish_due(due, now);
            }
            Ask::Verify(tree, reply) => {
                let all = self.spaces.stores();
                if let Some(verifying) = Verifying::new(all, tree.as_deref(), reply) {
                    self.jobs.start(Job::Verify(verifying));
                }
            }
            Ask::Invite(group, valid, reply) => {
                drop(reply.send(self.groups.invite(group.as_ref(), valid, &self.own)));
            }
            Ask::Revoke(group, id, reply) => {
                drop(reply.send(self.groups.revoke(group.as_ref(), id, &self.own)));
            }
            Ask::Note(text, reply) => {
                self.notes.add(text, now);
                let _ = reply.send(());
            }
            Ask::Reload(config, reply) => drop(reply.send(self.reload(config))),
            Ask::Lead(group, reply) => {
                drop(reply.send(self.groups.lead(group.as_ref(), &self.own)));
            }
        }
    }

    fn reload(&mut self, config: Arc<Config>) -> Result<(), Error> {
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
        // The address of the feeds is `feed_listen`.
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
        for opening in self.spaces.set_passages(&self.own, &mut self.notes) {
            self.jobs.start(Job::Open(opening));
        }
        link_replicas(&self.own, &mut self.notes);
        Ok(())
    }
}
