//! The replica: a member's state machine, which floods versions and fetches and passes on chunks.
//!
//! Source: TR §8 (flood-d and mirror-d in one).
//!
//! Of each namespace at most one version is *held* (whole, on disk, seen by readers), and at most
//! one is being fetched. A version is finished before a newer one is begun, unless nobody has it
//! any more. So slow members get a version now and then, however fast the origin publishes. The
//! held version is never replaced by an older one.
//!
//! # Differences from the paper
//!
//! * A member switches only to whole versions. No file is deleted because a member did not answer.
//! * Chunks are passed on as they come, before the version is whole here.
//!
//! Sans-I/O.

mod action;
mod sources;
mod space;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use action::{Action, Notice};
use space::Space;
pub use space::{Failure, Progress};

use crate::fetch::{Arrival, Fetch, Window};
use crate::flood::{Flood, Neighborhood, Outcome};
use crate::id::{GroupId, MemberId};
use crate::message::{Message, Request};
use crate::version::{Hash, Namespace, Number, Version};

/// Time between two reconciliations; the neighbors take turns.
pub const COMPARE_INTERVAL: Duration = Duration::from_secs(30);

/// A member's part in all its groups.
#[derive(Debug)]
pub struct Replica {
    me: MemberId,
    flood: Flood,
    fetch: Fetch,
    spaces: BTreeMap<Namespace, Space>,
    /// Neighbors whose link is up, and the versions that each holds.
    up: BTreeMap<MemberId, BTreeMap<Namespace, Number>>,
    compare_at: Duration,
    compared: Option<MemberId>,
    out: VecDeque<Action>,
}

impl Replica {
    /// Makes a replica without groups.
    pub fn new(me: MemberId) -> Self {
        Self {
            me,
            flood: Flood::new(me),
            fetch: Fetch::default(),
            spaces: BTreeMap::new(),
            up: BTreeMap::new(),
            compare_at: Duration::ZERO,
            compared: None,
            out: VecDeque::new(),
        }
    }

    /// Returns the known versions.
    pub fn flood(&self) -> &Flood {
        &self.flood
    }

    /// Returns the held version.
    pub fn held(&self, namespace: &Namespace) -> Option<&Version> {
        self.spaces.get(namespace)?.held.as_ref()
    }

    /// Returns all held versions.
    pub fn holdings(&self) -> impl Iterator<Item = (&Namespace, Number)> {
        self.spaces.iter().filter_map(|(of, it)| Some((of, it.held.as_ref()?.number)))
    }

    /// Returns the progress of fetching; `None` if no version is being fetched.
    pub fn progress(&self, namespace: &Namespace) -> Option<&Progress> {
        self.spaces.get(namespace)?.fetching.as_ref()
    }

    /// Returns the version that a neighbor holds.
    pub fn held_by(&self, member: MemberId, namespace: &Namespace) -> Option<Number> {
        self.up.get(&member)?.get(namespace).copied()
    }

    /// Joins a group, or takes in its changes.
    pub fn set_group(&mut self, group: GroupId, neighborhood: Neighborhood, now: Duration) {
        self.flood.set_group(group, neighborhood);
        self.advance_all(now);
    }

    /// Leaves a group. Namespaces of no other group are not fetched any more; held versions stay.
    pub fn remove_group(&mut self, group: GroupId, now: Duration) {
        self.flood.remove_group(group);
        self.advance_all(now);
    }

    /// Takes in a version that was known, or held, before a restart. Call it after
    /// [`Replica::set_group`]; call [`Replica::handle_timeout`] after the last version.
    pub fn restore(&mut self, version: &Version, is_held: bool) {
        self.flood.handle_own(version);
        let space = self.space(&version.namespace);
        space.is_due = true;
        if is_held {
            space.held = Some(version.clone());
        }
    }

    /// Publishes a version of this member, whose chunks are here.
    ///
    /// # Errors
    ///
    /// The version is not newer than the newest known one: sign a newer one. Or no group has the
    /// namespace: have a leader list it.
    pub fn publish(&mut self, version: &Version, now: Duration) -> Result<(), PublishError> {
        let namespace = &version.namespace;
        let newest = self.flood.newest(namespace);
        if let Some(newest) = newest.filter(|it| version.number <= it.number) {
            return Err(PublishError::Old(newest.number));
        }
        if let Outcome::Refused(_) = self.flood.handle_own(version) {
            return Err(PublishError::Unlisted);
        }
        self.out.push_back(Action::Remember(version.clone()));
        self.space(namespace).held = Some(version.clone());
        self.pump();
        self.announce_held(namespace);
        self.advance(namespace, now);
        Ok(())
    }

    fn space(&mut self, namespace: &Namespace) -> &mut Space {
        self.spaces.entry(namespace.clone()).or_default()
    }

    /// Takes in that the link to a neighbor is up.
    pub fn handle_up(&mut self, member: MemberId, window: Window, now: Duration) {
        self.up.insert(member, BTreeMap::new());
        self.flood.compare(member);
        for (namespace, space) in &self.spaces {
            if let Some(held) = &space.held {
                let message = Message::Held { namespace: namespace.clone(), number: held.number };
                self.out.push_back(Action::Send { to: member, message });
            }
        }
        self.fetch.handle_up(member, window, now);
        self.finish(now);
    }

    /// Changes the window of a link.
    pub fn set_window(&mut self, member: MemberId, window: Window) {
        self.fetch.set_window(member, window);
    }

    /// Takes in that a link is down.
    pub fn handle_down(&mut self, member: MemberId, now: Duration) {
        self.up.remove(&member);
        self.fetch.handle_down(member, now);
        self.finish(now);
    }

    /// Takes in a neighbor's message. Messages to the state machine of a group are ignored.
    pub fn handle_message(&mut self, from: MemberId, message: Message, now: Duration) {
        match message {
            Message::Announce(announced) => {
                let outcome = self.flood.handle_announcement(from, &announced);
                self.handle_outcome(from, outcome);
            }
            Message::Evidence { group, first, second } => {
                let outcome = self.flood.handle_evidence(from, group, &first, &second);
                self.handle_outcome(from, outcome);
            }
            Message::Digest { group, digest } => self.flood.handle_digest(from, group, digest),
            Message::Versions { group, asks, known } => {
                self.flood.handle_versions(from, group, asks, &known);
            }
            Message::Held { namespace, number } => self.handle_held(from, &namespace, number, now),
            Message::Request(request) if self.flood.serves(from, &request.namespace) => {
                self.out.push_back(Action::Lookup { to: from, request });
            }
            Message::Request(Request { chunks, .. }) => {
                self.out.push_back(Action::Send { to: from, message: Message::Gone(chunks) });
            }
            Message::Cancel(chunks) => {
                self.fetch.handle_cancel(from, &chunks);
                self.out.push_back(Action::Unsend { to: from, chunks });
            }
            Message::Chunk(bytes) => self.handle_chunk(from, bytes, now),
            Message::Gone(chunks) => self.handle_gone(from, &chunks, now),
            Message::Group { .. } => {}
        }
        self.finish(now);
    }

    fn handle_outcome(&mut self, from: MemberId, outcome: Outcome) {
        match outcome {
            Outcome::News(namespace) => {
                if let Some(version) = self.flood.newest(&namespace).cloned() {
                    let number = version.number;
                    self.out.push_back(Action::Remember(version));
                    let held = self.held(&namespace).map(|it| it.number);
                    if namespace.origin == self.me && held < Some(number) {
                        self.notice(Notice::Behind(namespace.clone(), number));
                    }
                }
                self.space(&namespace).is_due = true;
            }
            Outcome::Nearer(namespace) => self.space(&namespace).is_due = true,
            Outcome::Contradiction(namespace) => {
                self.space(&namespace).is_due = true;
                self.notice(Notice::Contradiction(namespace));
            }
            Outcome::Refused(why) => self.notice(Notice::Refused(from, why)),
            Outcome::Nothing => {}
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.out.push_back(Action::Notice(notice));
    }

    fn handle_chunk(&mut self, from: MemberId, bytes: Vec<u8>, now: Duration) {
        let hash = Hash::of(&bytes);
        match self.fetch.handle_chunk(from, &hash, now) {
            Arrival::Wanted { namespaces, waiting } => {
                for namespace in &namespaces {
                    if let Some(progress) = self.space(namespace).fetching.as_mut() {
                        progress.came += bytes.len() as u64;
                        progress.last = now;
                    }
                }
                self.out.push_back(Action::Keep { hash, bytes, namespaces, waiting });
            }
            Arrival::Unwanted => {}
            Arrival::Flooded => {
                let why = "it sends chunks that nobody asked for";
                self.out.push_back(Action::Close { member: from, why });
            }
        }
    }

    /// Has a neighbor wait for requested chunks that are not here, or tells it that they are gone.
    pub fn handle_not_here(
        &mut self,
        to: MemberId,
        request: &Request,
        chunks: &[Hash],
        now: Duration,
    ) {
        let Request { namespace, number, priority, .. } = request;
        let is_expected = self.expects(namespace, *number);
        let mut gone = Vec::new();
        for hash in chunks {
            let of = (namespace, *number);
            if !self.fetch.wait(to, *hash, *priority, of, is_expected, now) {
                gone.push(*hash);
            }
        }
        if !gone.is_empty() {
            self.out.push_back(Action::Send { to, message: Message::Gone(gone) });
        }
        self.finish(now);
    }

    /// Returns whether this member fetches that version, or will fetch it.
    fn expects(&self, namespace: &Namespace, number: Number) -> bool {
        let Some(target) = self.flood.target(namespace) else { return false };
        let Some(space) = self.spaces.get(namespace) else { return false };
        let behind = space.fetching.as_ref().map(|it| it.version.number);
        let is_next = match behind {
            Some(fetching) if number == fetching => return true,
            Some(fetching) => fetching < number,
            None => space.held.as_ref().is_none_or(|it| it.number < number),
        };
        is_next && number <= target.number && !space.is_invalid(number)
    }

    /// Requests missing chunks of the version being fetched, in the order of need. Returns how many
    /// more may be passed.
    pub fn want(&mut self, of: &Namespace, chunks: &[(Hash, u32)], now: Duration) -> usize {
        self.fetch.want(of, chunks, now);
        self.finish(now);
        self.fetch.room()
    }

    /// Sets the missing bytes of the version being fetched: the fewer, the more urgent it is.
    pub fn set_missing(&mut self, of: &Namespace, bytes: u64) {
        if let Some(progress) = self.space(of).fetching.as_mut() {
            progress.missing = bytes;
            self.fetch.set_priority(of, space::priority(bytes));
        }
    }

    /// Takes in that all chunks of a version are here.
    pub fn handle_whole(&mut self, of: &Namespace, number: Number, now: Duration) {
        let progress = self.spaces.get_mut(of).and_then(|it| it.fetching.as_mut());
        let is_new = |it: &&mut Progress| it.version.number == number && !it.is_whole;
        if let Some(progress) = progress.filter(is_new) {
            progress.is_whole = true;
            self.out.push_back(Action::Switch(progress.version.clone()));
        }
        self.finish(now);
    }

    /// Takes in that readers see a version.
    pub fn handle_switched(&mut self, of: &Namespace, number: Number, now: Duration) {
        let space = self.space(of);
        let is_it = |it: &mut Progress| it.version.number == number;
        let Some(progress) = space.fetching.take_if(is_it) else { return };
        space.held = Some(progress.version);
        space.failures = 0;
        self.fetch.end(of);
        self.retry_waiting(of, number);
        self.announce_held(of);
        self.advance(of, now);
    }

    /// Takes in that a version could not be fetched, or cannot be switched to.
    pub fn handle_failed(&mut self, of: &Namespace, number: Number, why: Failure, now: Duration) {
        let space = self.space(of);
        let is_it = |it: &mut Progress| it.version.number == number;
        if space.fetching.take_if(is_it).is_none() {
            return;
        }
        space.handle_failure(number, why, now);
        self.fetch.end(of);
        self.retry_waiting(of, number);
        self.out.push_back(Action::Stop(of.clone()));
        self.advance(of, now);
    }

    /// Looks up again the chunks that neighbors wait for up to this version: no more will come.
    fn retry_waiting(&mut self, namespace: &Namespace, upto: Number) {
        for (to, hash, priority) in self.fetch.take_waiting(namespace, upto) {
            let namespace = namespace.clone();
            let request = Request { namespace, number: upto, priority, chunks: vec![hash] };
            self.out.push_back(Action::Lookup { to, request });
        }
    }

    fn announce_held(&mut self, namespace: &Namespace) {
        let Some(number) = self.held(namespace).map(|it| it.number) else { return };
        for to in self.up.keys() {
            let message = Message::Held { namespace: namespace.clone(), number };
            self.out.push_back(Action::Send { to: *to, message });
        }
    }

    fn advance_all(&mut self, now: Duration) {
        let mut all = self.flood.namespaces();
        all.extend(self.spaces.keys().cloned());
        all.sort_unstable();
        all.dedup();
        for namespace in all {
            self.advance(&namespace, now);
        }
    }

    /// Begins, continues or ends the fetching of a namespace.
    fn advance(&mut self, namespace: &Namespace, now: Duration) {
        let target = self.flood.target(namespace).cloned();
        let me = self.me;
        let space = self.space(namespace);
        space.is_due = false;
        match space.next(namespace.origin == me, target.as_ref(), now) {
            space::Next::Stay => self.set_sources(namespace, now),
            space::Next::Stop(number) => {
                self.fetch.end(namespace);
                self.retry_waiting(namespace, number);
                self.out.push_back(Action::Stop(namespace.clone()));
                self.space(namespace).is_due = true;
            }
            space::Next::Begin(version) => {
                let sources = self.sources(namespace, version.number);
                let urgent = space::priority(0);
                self.fetch.begin(namespace, version.number, sources, urgent);
                self.out.push_back(Action::Begin(version));
            }
        }
        self.pump();
    }

    /// Takes in the results of `fetch`, and advances all due namespaces.
    fn finish(&mut self, now: Duration) {
        for namespace in self.fetch.take_missing() {
            let Some(number) = self.progress(&namespace).map(|it| it.version.number) else {
                continue;
            };
            self.notice(Notice::Missing(namespace.clone(), number));
            self.handle_failed(&namespace, number, Failure::Missing, now);
        }
        for (member, fault) in self.fetch.take_faults() {
            self.notice(Notice::Faulty(member, fault));
        }
        // A stopped namespace is due again, for its next version.
        for _ in 0..2 {
            let due = self.spaces.iter().filter(|(_, it)| it.is_due(now));
            let due: Vec<Namespace> = due.map(|(namespace, _)| namespace.clone()).collect();
            for namespace in due {
                self.advance(&namespace, now);
            }
        }
        self.pump();
    }

    fn pump(&mut self) {
        let messages = self.flood.take_messages().into_iter().chain(self.fetch.take_messages());
        let (up, out) = (&self.up, &mut self.out);
        // Messages over a link that is down are dropped; reconciliation makes up for them.
        let sent = messages.filter(|(to, _)| up.contains_key(to));
        out.extend(sent.map(|(to, message)| Action::Send { to, message }));
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.out.pop_front()
    }

    /// Returns the time for the next call of [`Replica::handle_timeout`].
    pub fn poll_timeout(&self) -> Duration {
        let retries = self.spaces.values().filter_map(Space::timeout);
        retries.chain(self.fetch.poll_timeout()).fold(self.compare_at, Duration::min)
    }

    /// Takes in that the held version is damaged on disk. A tree of another origin is not held
    /// until it is fetched again. A tree of this member is not fetched, because nobody has more of
    /// it: publish it again.
    pub fn handle_damaged(&mut self, of: &Namespace, now: Duration) {
        if of.origin != self.me && self.space(of).held.take().is_some() {
            self.advance(of, now);
        }
    }

    /// Does everything due by now.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.fetch.handle_timeout(now);
        if self.compare_at <= now {
            self.compare_at = now + COMPARE_INTERVAL;
            let after = |it: MemberId| self.up.keys().copied().find(|other| it < *other);
            self.compared =
                self.compared.and_then(after).or_else(|| self.up.keys().next().copied());
            if let Some(with) = self.compared {
                self.flood.compare(with);
            }
        }
        self.finish(now);
    }
}

/// The reason why a version was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// A version of this or a greater number is known: sign a greater one.
    #[error("version {0} is known already: publish a later one")]
    Old(Number),
    /// No group has the namespace.
    #[error(
        "no group lists this tree: have the leader of one add it with this member as its writer"
    )]
    Unlisted,
}
