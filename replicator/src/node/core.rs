//! The core: one loop on a thread of its own, which drives the state machines of the groups and of
//! the content.
//!
//! It checks signatures, computes topologies and syncs small files, so it may block for
//! milliseconds. Slower work (chunks, switching, publishing) is done by jobs.

mod asking;
mod content;
mod grouping;
mod linking;
mod opening;
mod publishing;
mod reporting;

use std::sync::Arc;
use std::time::Duration;

use net::identity::Identity;
use net::shutdown::Shutdown;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Asks;
use super::feeds::{Feeding, Feeds};
use super::groups::Groups;
use super::job::{Done, Jobs};
use super::links::Links;
use super::measuring::Measuring;
use super::notes::Notes;
use super::own::Own;
use super::sources::Sources;
use super::spaces::Spaces;
use crate::config::Config;
use crate::id::MemberId;
use crate::link::{Event, KeyCheck};
use crate::replica::Replica;
use crate::version::Version;

/// Maximum number of received bytes that are not on disk yet; above it, nothing more is read from
/// links.
const FRESH_BYTES_MAX: usize = 64 << 20;
/// Interval of the regular check for work.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Core {
    pub(super) own: Own,
    pub(super) groups: Groups,
    replica: Replica,
    spaces: Spaces,
    feeding: Feeding,
    links: Links,
    measuring: Measuring,
    sources: Sources,
    pub(super) notes: Notes,
    jobs: Jobs,
    look_at: Duration,
    asks: Asks,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core({})", self.own.me)
    }
}

impl Core {
    pub(crate) fn id(&self) -> MemberId {
        self.own.me
    }

    pub(crate) fn identity(&self) -> Arc<Identity> {
        self.own.identity.clone()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.own.config
    }

    pub(crate) fn feeds(&self) -> Feeds {
        self.feeding.feeds().clone()
    }

    pub(crate) fn key_check(&self) -> KeyCheck {
        self.links.key_check()
    }

    /// Runs until the shutdown starts, or the links' hub is gone.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>, shutdown: Shutdown) {
        let all = self.spaces.named_stores();
        all.iter().for_each(|(of, _)| self.renew_feed(of));
        self.remove_old(all);
        let tree_changes = self.sources.watching.changes();
        loop {
            self.settle().await;
            let wait = self.poll_timeout().saturating_sub(self.now());
            let has_room = self.has_room();
            tokio::select! {
                () = shutdown.started() => break,
                Some(done) = self.jobs.next() => self.handle_done(done),
                event = events.recv(), if has_room => match event {
                    Some(event) => self.handle_event(event),
                    None => break,
                },
                Some(ask) = self.asks.recv() => {
                    self.groups.set_clocks(self.now());
                    ask(&mut self);
                }
                () = tree_changes.notified() => {}
                () = sleep(wait) => {}
            }
            // All waiting events are taken in before the resulting actions are done: many may come
            // at once.
            for _ in 0..crate::link::EVENTS_MAX {
                if !self.has_room() {
                    break;
                }
                let Ok(event) = events.try_recv() else { break };
                self.handle_event(event);
            }
            self.handle_timeout();
        }
        drop(events);
        // All work of the stores ends early.
        self.spaces.stores().for_each(|it| it.1.stop());
        self.jobs.end().await;
    }

    fn now(&self) -> Duration {
        self.own.now()
    }

    fn has_room(&self) -> bool {
        self.spaces.fresh_bytes() < FRESH_BYTES_MAX
    }

    /// Carries out the actions of the state machines until none is left, starts jobs, and sends
    /// commands to the links.
    async fn settle(&mut self) {
        loop {
            let mut has_done = false;
            for group in self.groups.ids() {
                while let Some(action) = self.groups.poll_action(group) {
                    self.handle_group_action(group, action);
                    has_done = true;
                }
            }
            while let Some(action) = self.replica.poll_action() {
                self.handle_action(action);
                has_done = true;
            }
            if !has_done {
                break;
            }
        }
        self.start_jobs();
        self.links.send_commands().await;
    }

    fn poll_timeout(&self) -> Duration {
        let first = self.look_at.min(self.replica.poll_timeout());
        let others = [
            self.groups.poll_timeout(),
            self.measuring.poll_timeout(),
            self.sources.poll_timeout(),
        ];
        others.into_iter().flatten().min().map_or(first, |it| it.min(first))
    }

    fn handle_timeout(&mut self) {
        let now = self.now();
        self.groups.set_clocks(now);
        self.groups.handle_timeout(&self.replica, now);
        if self.replica.poll_timeout() <= now {
            self.replica.handle_timeout(now);
        }
        self.measure_late(now);
        let due = self.sources.poll(now, &mut self.notes);
        self.publish_due(due, now);
        if self.look_at <= now {
            self.look_at = now + LOOK;
            self.spaces.look();
            self.heal(now);
            let old = self.spaces.poll_old(now);
            self.remove_old(old);
            self.links.close_spare(&self.groups.needed(), now);
        }
    }

    fn handle_done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Space(namespace, outcome) => self.handle_outcome(&namespace, outcome, now),
            Done::Read(read) => self.handle_read(read, now),
            Done::Called(member, is_sent) => self.handle_called(member, is_sent, now),
            Done::Checked(found) => {
                let due = self.sources.handle_checked(found, now, &mut self.notes);
                self.publish_due(due, now);
            }
            Done::Drafted(drafted) => self.handle_drafted(drafted, now),
            Done::Committed(committed) => self.handle_committed(committed, now),
            Done::Pulled(pulled) => {
                self.sources.following.handle_pulled(pulled, now, &mut self.notes);
            }
            Done::Renewed(of, outcome) => self.handle_renewed(&of, outcome, now),
            Done::Verified(verified) => {
                self.heal(now);
                verified.answer();
            }
            Done::Removed(of, left) => self.spaces.handle_old(of, left, now),
            Done::Discarded => {}
            Done::Opened(of, opened) => {
                self.spaces.handle_opened(&of, opened, &self.own, &mut self.notes);
            }
        }
    }

    /// Saves a version. If that fails, a note is added, and the version has to come from others
    /// again after a restart.
    fn remember(&mut self, version: &Version, now: Duration) {
        if let Err(error) = self.own.files.put_version(&version.namespace, &version.to_bytes()) {
            self.notes.add(format!("a version cannot be saved: {error}"), now);
        }
    }
}
