//! Does what the machine of the content wants done: on links and, by jobs, on disk.

use std::time::Duration;

use bytes::Bytes;

use super::core::{Core, Done};
use super::links::Read;
use super::space::{Outcome, Said};
use crate::link::frame::Reason;
use crate::replica::{Action, Failure, Notice};
use crate::version::{Namespace, Number, Version};

/// So often it is tried again to remove what readers had a lease on.
const OLD_AGAIN: Duration = Duration::from_secs(10);

/// Generations that are to go, and cannot yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub(super) left: usize,
    again: Duration,
}

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
                    if let Some(space) = self.spaces.get_mut(namespace) {
                        space.keep(hash, bytes.clone());
                    }
                }
            }
            Action::Remember(version) => self.remember(&version, now),
            Action::Begin(version) => self.begin_fetch(&version, now),
            Action::Stop(namespace) => {
                if let Some(space) = self.spaces.get_mut(&namespace) {
                    space.stop();
                }
            }
            Action::Switch(version) => {
                if let Some(space) = self.spaces.get_mut(&version.namespace) {
                    space.switch();
                }
            }
            Action::Close { member, why } => {
                self.notes.add(format!("the link to {member} is closed: {why}"), now);
                self.links.close(member, Reason::Malformed);
            }
            Action::Notice(notice) => self.handle_notice(&notice, now),
        }
    }

    fn handle_notice(&mut self, notice: &Notice, now: Duration) {
        let said = match notice {
            Notice::Contradiction(of) => format!(
                "{of}: its writer has signed two versions of one number; nothing more of that epoch is taken"
            ),
            Notice::Behind(of, number) => format!(
                "{of}: others know version {number}, which is not here; the next one is of a later epoch"
            ),
            Notice::Refused(member, why) => {
                format!("what {member} said of a version was refused: {why}")
            }
            Notice::Faulty(member, fault) => {
                format!("{member}: {fault}; others are asked for a while")
            }
            Notice::Missing(of, number) => {
                format!("{of}: nobody has all of version {number}; it is tried again")
            }
        };
        self.notes.add(said, now);
    }

    fn begin_fetch(&mut self, version: &Version, now: Duration) {
        let namespace = &version.namespace;
        if let Err(failed) = self.open_space(namespace, version.kind) {
            self.fail(namespace, version.number, &failed, Failure::Disk, now);
            return;
        }
        if let Some(space) = self.spaces.get_mut(namespace) {
            space.begin(version);
        }
    }

    pub(super) fn handle_outcome(&mut self, of: &Namespace, outcome: Outcome, now: Duration) {
        let Some(space) = self.spaces.get_mut(of) else { return };
        let said = space.handle_outcome(outcome);
        let missing = space.missing_bytes();
        let Some((number, said)) = said else { return };
        match said {
            Said::Wanted(chunks) => {
                if let Some(missing) = missing {
                    self.replica.set_missing(of, missing);
                }
                self.replica.want(of, &chunks, now);
            }
            Said::Whole => {
                let is_told = self.replica.progress(of).is_some_and(|it| it.is_whole);
                self.replica.handle_whole(of, number, now);
                if let Some(space) = self.spaces.get_mut(of).filter(|_| is_told) {
                    space.switch();
                }
            }
            Said::Switched => {
                self.failures.remove(of);
                self.replica.handle_switched(of, number, now);
                self.remove_old(of);
                self.renew_feed(of);
            }
            Said::Failed(error) => {
                self.fail(of, number, &error.to_string(), error.failure(), now);
            }
        }
    }

    /// A version cannot be taken, now or at all.
    fn fail(&mut self, of: &Namespace, number: Number, why: &str, failure: Failure, now: Duration) {
        self.notes.add(format!("{of} {number}: {why}"), now);
        self.failures.insert(of.clone(), format!("{number}: {why}"));
        self.replica.handle_failed(of, number, failure, now);
    }

    /// Removes generations that nobody needs any more.
    pub(super) fn remove_old(&mut self, of: &Namespace) {
        let Some(store) = self.spaces.get(of).map(|it| it.store().clone()) else { return };
        let of = of.clone();
        self.jobs.spawn_blocking(move || {
            let left = store.remove_old().unwrap_or_else(|error| {
                tracing::warn!(%of, %error, "an old generation stays for now");
                1
            });
            Done::Old(of, left)
        });
    }

    /// Removes what a crash, or who read it, has left.
    pub(super) fn remove_all_old(&mut self) {
        let all: Vec<Namespace> = self.spaces.keys().cloned().collect();
        all.iter().for_each(|it| self.remove_old(it));
    }

    /// Some generations could not be removed: readers have leases on them.
    pub(super) fn handle_old(&mut self, of: Namespace, left: usize, now: Duration) {
        if left == 0 {
            self.old.remove(&of);
        } else {
            self.old.insert(of, Old { left, again: now + OLD_AGAIN });
        }
    }

    /// Tries again to remove what was in use.
    pub(super) fn retry_old(&mut self, now: Duration) {
        let due = self.old.iter_mut().filter(|it| it.1.again <= now);
        let due: Vec<Namespace> = due
            .map(|(of, old)| {
                old.again = now + OLD_AGAIN;
                of.clone()
            })
            .collect();
        due.iter().for_each(|it| self.remove_old(it));
    }

    /// Has jobs do what is to be done on disk.
    pub(super) fn start_jobs(&mut self) {
        for (namespace, space) in &mut self.spaces {
            if let Some(job) = space.next_job() {
                let namespace = namespace.clone();
                self.jobs.spawn_blocking(move || Done::Space(namespace, job.run()));
            }
        }
        for reading in self.links.serve(&self.spaces) {
            self.jobs.spawn_blocking(move || Done::Read(reading.run()));
        }
    }

    pub(super) fn handle_read(&mut self, read: Read, now: Duration) {
        if let Some((member, request)) = self.links.handle_read(read) {
            self.replica.handle_not_here(member, &request, &request.chunks, now);
        }
    }
}
