//! Actions of the content's state machine: on links and, by jobs, on disk.

use std::time::Duration;

use bytes::Bytes;

use super::super::job::Job;
use super::super::links::Reading;
use super::super::space::{Outcome, Space, SpaceEvent};
use super::super::spaces::NamedStore;
use super::Core;
use crate::link::frame::Reason;
use crate::replica::{Action, Failure, Notice};
use crate::version::{Namespace, Number, Version};

impl Core {
    pub(super) fn handle_action(&mut self, action: Action) {
        let now = self.now();
        match action {
            Action::Send { to, message } => self.links.send(to, message.to_bytes().into()),
            Action::Lookup { to, request } => self.links.handle_request(to, request),
            Action::Unsend { to, chunks } => self.links.unsend(to, &chunks),
            Action::Keep { hash, bytes, namespaces, waiting } => {
                let bytes = Bytes::from(bytes);
                self.links.pass_on(hash, &bytes, waiting);
                for namespace in &namespaces {
                    self.spaces.with(namespace, |it| it.keep(hash, bytes.clone()));
                }
            }
            Action::Remember(version) => self.remember(&version, now),
            Action::Begin(version) => self.begin_fetch(&version, now),
            Action::Stop(namespace) => self.spaces.with(&namespace, Space::stop),
            Action::Switch(version) => self.spaces.with(&version.namespace, Space::switch),
            Action::Close { member, why } => {
                self.notes.add(format!("the link to {member} is closed: {why}"), now);
                self.links.close(member, Reason::Malformed);
            }
            Action::Notice(notice) => self.handle_notice(&notice, now),
        }
    }

    fn handle_notice(&mut self, notice: &Notice, now: Duration) {
        let text = match notice {
            Notice::Contradiction(of) => format!(
                "{of}: its writer has signed two versions of one number; nothing more of that epoch is taken"
            ),
            Notice::Behind(of, number) => format!(
                "{of}: others know version {number}, which is not here; the next one is of a later epoch"
            ),
            Notice::Refused(member, why) => {
                format!("a version announced by {member} was refused: {why}")
            }
            Notice::Faulty(member, fault) => {
                format!("{member}: {fault}; others are asked for a while")
            }
            Notice::Missing(of, number) => {
                format!("{of}: nobody has all of version {number}; it is tried again")
            }
        };
        self.notes.add(text, now);
    }

    fn begin_fetch(&mut self, version: &Version, now: Duration) {
        let of = &version.namespace;
        match self.spaces.open_one(of, version.kind, &self.own, &mut self.notes) {
            Ok(_) => self.spaces.with(of, |it| it.begin(version)),
            Err(failed) => self.fail(of, version.number, &failed, Failure::Disk, now),
        }
    }

    pub(super) fn handle_outcome(&mut self, of: &Namespace, outcome: Outcome, now: Duration) {
        let Some((number, news, missing)) = self.spaces.handle_outcome(of, outcome) else { return };
        match news {
            SpaceEvent::Wanted(chunks) => {
                if let Some(missing) = missing {
                    self.replica.set_missing(of, missing);
                }
                self.replica.want(of, &chunks, now);
            }
            SpaceEvent::Whole => {
                let was_whole = self.replica.progress(of).is_some_and(|it| it.is_whole);
                self.replica.handle_whole(of, number, now);
                if was_whole {
                    self.spaces.with(of, Space::switch);
                }
            }
            SpaceEvent::Switched => {
                self.spaces.failures.remove(of);
                self.replica.handle_switched(of, number, now);
                self.handle_new(of);
            }
            SpaceEvent::Failed(error) => {
                self.fail(of, number, &error.to_string(), error.failure(), now);
            }
        }
    }

    /// Takes in a new version: removes old generations and renews the feed.
    pub(super) fn handle_new(&mut self, of: &Namespace) {
        self.remove_old(self.spaces.store(of).map(|it| (of.clone(), it.clone())));
        self.renew_feed(of);
    }

    /// Reports that a version cannot be taken, now or at all.
    fn fail(&mut self, of: &Namespace, number: Number, why: &str, failure: Failure, now: Duration) {
        self.notes.add(format!("{of} {number}: {why}"), now);
        self.spaces.failures.insert(of.clone(), format!("{number}: {why}"));
        self.replica.handle_failed(of, number, failure, now);
    }

    pub(super) fn remove_old(&mut self, old: impl IntoIterator<Item = NamedStore>) {
        old.into_iter().for_each(|(of, store)| self.jobs.start(Job::Remove(of, store)));
    }

    /// Makes the feed of a collection serve what readers of its directory see now.
    pub(super) fn renew_feed(&mut self, of: &Namespace) {
        let renewing = self.spaces.store(of).and_then(|it| self.feeding.renew(of, it));
        if let Some(renewing) = renewing {
            self.jobs.start(Job::Renew(renewing));
        }
    }

    pub(super) fn handle_renewed(
        &mut self,
        of: &Namespace,
        outcome: Result<(), collection::Error>,
        now: Duration,
    ) {
        if self.feeding.handle_renewed(of, outcome, now, &mut self.notes) {
            self.renew_feed(of);
        }
    }

    /// Starts the repair of damaged trees and collections.
    pub(super) fn heal(&mut self, now: Duration) {
        let damaged = self.spaces.stores().filter(|it| !it.1.damaged().is_empty());
        let damaged: Vec<Namespace> = damaged.map(|it| it.0.clone()).collect();
        for of in damaged {
            if of.origin == self.own.me && self.sources.following.publish_again(&of, now) {
                self.notes.add(format!("{of} is damaged here: it is published again"), now);
            } else if of.origin == self.own.me {
                self.notes.add(format!("{of} is damaged here: publish it again"), now);
            } else if self.replica.held(&of).is_some() {
                self.notes.add(format!("{of} is damaged here: it is fetched again"), now);
                self.replica.handle_damaged(&of, now);
            }
        }
    }

    pub(super) fn start_jobs(&mut self) {
        for (of, work) in self.spaces.poll_work() {
            self.jobs.start(Job::Space(of, Box::new(work)));
        }
        for reading in self.links.serve(&self.spaces) {
            self.jobs.start(Job::Read(reading));
        }
    }

    pub(super) fn handle_read(&mut self, read: Reading, now: Duration) {
        if let Some((member, request)) = self.links.handle_read(read) {
            self.replica.handle_not_here(member, &request, &request.chunks, now);
        }
    }
}
