//! The links that are up, the data to send over them, and the keys that may connect.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::serving::{Batch, Ready, Serving};
use super::spaces::Spaces;
use crate::config::Config;
use crate::id::MemberId;
use crate::limit::Bucket;
use crate::link::frame::Reason;
use crate::link::{Command, KeyCheck, Limit, Link, Neighbor, SendError};
use crate::message::{Message, Request};
use crate::status::LinkStatus;
use crate::tree::generation::LastFile;
use crate::tree::store::Store;
use crate::version::{Hash, Name};

/// Minimum time for which a link to a member that is no neighbor is kept.
const SPARE: Duration = Duration::from_mins(2);
/// Maximum number of links to strangers, which are not members.
const STRANGERS_MAX: usize = 32;

/// The keys that may connect.
#[derive(Debug, Default)]
struct Door {
    keys: HashSet<[u8; 32]>,
    /// The members that all groups deny: a member that only some groups deny may be about to join
    /// another.
    denied: HashSet<MemberId>,
    strangers: usize,
}

impl Door {
    /// Admits members and a bounded number of strangers, since new members come as strangers.
    /// Otherwise returns the reason for closing the link.
    fn check(&self, key: &[u8; 32]) -> Result<(), Reason> {
        if self.keys.contains(key) {
            Ok(())
        } else if self.denied.contains(&MemberId::of(key)) {
            Err(Reason::Denied)
        } else if self.strangers < STRANGERS_MAX {
            Ok(())
        } else {
            Err(Reason::Unknown)
        }
    }
}

/// A link that is up, with the requests that came over it.
#[derive(Debug)]
struct MemberLink {
    link: Link,
    serving: Serving,
    since: Duration,
    /// Whether the link is to a member, so that content goes over it.
    is_member: bool,
}

impl MemberLink {
    /// Sends ready chunks until the link is full; returns the next batch to read.
    fn next_batch(&mut self) -> Option<Batch> {
        while let Some(ready) = self.serving.pop() {
            let message = Message::chunk(&ready.bytes);
            match self.link.send_chunk(ready.priority, ready.hash.0, message.into()) {
                Ok(()) | Err(SendError::Down | SendError::TooLong(_)) => {}
                Err(SendError::Full) => {
                    self.serving.put_back(ready);
                    break;
                }
            }
        }
        self.serving.next_batch()
    }
}

/// Job: read the chunks that a neighbor has requested and that are not in memory.
#[derive(Debug)]
pub(super) struct Reading {
    member: MemberId,
    batch: Batch,
    store: Option<Arc<Store>>,
    /// The chunks of the batch; `None` for those that are not in memory.
    chunks: Vec<(Hash, Option<Bytes>)>,
}

impl Reading {
    /// Reads the chunks that are not in memory, if there is a store. Blocks.
    pub(super) fn run(mut self) -> Self {
        let store = self.store.take();
        let mut opened = LastFile::default();
        let mut read = |hash: &Hash| match store.as_ref()?.read_with(hash, &mut opened) {
            Ok(found) => found.map(Bytes::from),
            Err(error) => {
                tracing::warn!(%error, "a chunk cannot be read");
                None
            }
        };
        for (hash, bytes) in self.chunks.iter_mut().filter(|it| it.1.is_none()) {
            *bytes = read(hash);
        }
        self
    }
}

#[derive(Debug)]
pub(super) struct Links {
    all: BTreeMap<MemberId, MemberLink>,
    door: Arc<RwLock<Door>>,
    /// For each other site, the limit that all links to the site share.
    site_limits: BTreeMap<Name, Limit>,
    to_hub: VecDeque<Command>,
    commands: mpsc::Sender<Command>,
}

impl Links {
    pub(super) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self {
            all: BTreeMap::new(),
            door: Arc::default(),
            site_limits: BTreeMap::new(),
            to_hub: VecDeque::new(),
            commands,
        }
    }

    pub(super) fn key_check(&self) -> KeyCheck {
        let door = self.door.clone();
        Arc::new(move |key| door.read().unwrap_or_else(PoisonError::into_inner).check(key))
    }

    fn door(&self) -> RwLockWriteGuard<'_, Door> {
        self.door.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the members' keys and the denied members. Strangers may connect too, unless they are
    /// denied.
    pub(super) fn let_in(&self, keys: HashSet<[u8; 32]>, denied: HashSet<MemberId>) {
        let mut door = self.door();
        (door.keys, door.denied) = (keys, denied);
    }

    fn count_strangers(&self) {
        self.door().strangers = self.all.values().filter(|it| !it.is_member).count();
    }

    pub(super) fn is_up(&self, member: MemberId) -> bool {
        self.all.contains_key(&member)
    }

    /// Returns whether this is the present link to its member; another may have replaced it.
    pub(super) fn has(&self, link: &Link) -> bool {
        self.all.get(&link.member()).is_some_and(|it| it.link == *link)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = MemberId> {
        self.all.keys().copied()
    }

    /// Takes in a link that is up; `site` is the site of its member, if known.
    pub(super) fn insert(
        &mut self,
        link: Link,
        is_member: bool,
        site: Option<&Name>,
        config: &Config,
        now: Duration,
    ) {
        link.set_limits(limits(&mut self.site_limits, site, config));
        let (member, serving) = (link.member(), Serving::default());
        self.all.insert(member, MemberLink { link, serving, since: now, is_member });
        self.count_strangers();
    }

    /// Takes in that a link is down; returns whether it was the present one to its member.
    pub(super) fn remove(&mut self, link: &Link) -> bool {
        let is_it = self.has(link);
        if is_it {
            self.all.remove(&link.member());
            self.count_strangers();
        }
        is_it
    }

    /// Updates which links are to members; returns the changes.
    pub(super) fn set_members(
        &mut self,
        is_member: impl Fn(MemberId) -> bool,
    ) -> Vec<(MemberId, bool)> {
        let mut changed = Vec::new();
        for (member, linked) in &mut self.all {
            let is_member = is_member(*member);
            if std::mem::replace(&mut linked.is_member, is_member) != is_member {
                changed.push((*member, is_member));
            }
        }
        self.count_strangers();
        changed
    }

    /// Sets the limits of all links anew; `site` returns the site of a member.
    pub(super) fn limit_all<'a>(
        &mut self,
        site: impl Fn(MemberId) -> Option<&'a Name>,
        config: &Config,
    ) {
        self.site_limits.clear();
        for (member, linked) in &self.all {
            let limits = limits(&mut self.site_limits, site(*member), config);
            linked.link.set_limits(limits);
        }
    }

    /// Closes the link to a member, if there is one; returns whether there is.
    pub(super) fn close(&self, member: MemberId, reason: Reason) -> bool {
        let linked = self.all.get(&member);
        linked.inspect(|it| it.link.close(reason)).is_some()
    }

    /// Closes the links that are not to needed members and have been up for at least [`SPARE`].
    pub(super) fn close_spare(&self, needed: &HashSet<MemberId>, now: Duration) {
        for (member, linked) in &self.all {
            if !needed.contains(member) && linked.since + SPARE <= now {
                linked.link.close(Reason::Unwanted);
            }
        }
    }

    pub(super) fn probe(&self, member: MemberId, round_trip: Duration) {
        if let Some(linked) = self.all.get(&member) {
            linked.link.probe(round_trip);
        }
    }

    pub(super) fn connect(&mut self, neighbor: Neighbor) {
        self.to_hub.push_back(Command::Once(neighbor));
    }

    /// Sets the neighbors to which the hub keeps links.
    pub(super) fn want(&mut self, neighbors: Vec<Neighbor>) {
        self.to_hub.push_back(Command::Want(neighbors));
    }

    pub(super) async fn send_commands(&mut self) {
        while let Some(command) = self.to_hub.pop_front() {
            // The hub may have ended, if this member is ending.
            let _ = self.commands.send(command).await;
        }
    }

    /// Sends a message that is not a chunk.
    pub(super) fn send(&self, to: MemberId, bytes: Bytes) {
        let Some(linked) = self.all.get(&to) else { return };
        match linked.link.send(bytes) {
            Ok(()) | Err(SendError::Down) => {}
            // The member reads too slowly and would miss messages. Over a new link, both sides
            // begin anew.
            Err(error @ (SendError::Full | SendError::TooLong(_))) => {
                tracing::warn!(member = %to, %error, "the link is closed");
                linked.link.close(Reason::Full);
            }
        }
    }

    /// Takes in a request of a member; answers at once that the chunks above the bound are not
    /// available.
    pub(super) fn handle_request(&mut self, from: MemberId, request: Request) {
        let Some(linked) = self.all.get_mut(&from) else { return };
        let over = linked.serving.ask(request);
        if !over.is_empty() {
            self.send(from, Message::Gone(over).to_bytes().into());
        }
    }

    /// Cancels the sending of chunks to a member.
    pub(super) fn unsend(&mut self, to: MemberId, chunks: &[Hash]) {
        let Some(linked) = self.all.get_mut(&to) else { return };
        linked.serving.cancel(chunks);
        for hash in chunks {
            linked.link.cancel(&hash.0);
        }
    }

    /// Passes a chunk that has come on to the members that wait for it, each with a priority.
    pub(super) fn pass_on(&mut self, hash: Hash, bytes: &Bytes, waiting: Vec<(MemberId, u8)>) {
        self.all.values_mut().for_each(|it| it.serving.handle_came(&hash));
        for (to, priority) in waiting {
            if let Some(linked) = self.all.get_mut(&to) {
                linked.serving.push(Ready { priority, hash, bytes: bytes.clone() });
            }
        }
    }

    /// Sends requested chunks as far as the links take them; returns jobs that read the chunks not
    /// in memory.
    pub(super) fn serve(&mut self, spaces: &Spaces) -> Vec<Reading> {
        let mut readings = Vec::new();
        for (member, linked) in &mut self.all {
            while let Some(batch) = linked.next_batch() {
                let of = &batch.namespace;
                let fresh = |it: &Hash| spaces.fresh(of, it).cloned();
                let chunks: Vec<(Hash, Option<Bytes>)> =
                    batch.chunks.iter().map(|it| (*it, fresh(it))).collect();
                // Chunks in memory are sent at once: a job would cost more than the rest of the
                // work.
                if chunks.iter().all(|it| it.1.is_some()) {
                    linked.serving.handle_found(&batch, chunks);
                    continue;
                }
                let store = spaces.store(of).cloned();
                readings.push(Reading { member: *member, batch, store, chunks });
            }
        }
        readings
    }

    /// Takes in the chunks read for a neighbor; returns the neighbor and its request for the chunks
    /// that are absent, if any.
    pub(super) fn handle_read(&mut self, read: Reading) -> Option<(MemberId, Request)> {
        let Reading { member, batch, chunks, .. } = read;
        let absent = self.all.get_mut(&member)?.serving.handle_found(&batch, chunks);
        (!absent.is_empty()).then(|| (member, batch.request(&absent)))
    }

    pub(super) fn status(&self, now: Duration) -> Vec<LinkStatus> {
        let all = self.all.iter().map(|(member, it)| {
            let traffic = it.link.traffic();
            LinkStatus {
                member: member.to_string(),
                address: it.link.address().to_string(),
                up: now.saturating_sub(it.since).as_secs(),
                bytes_in: traffic.bytes_in,
                bytes_out: traffic.bytes_out,
                waiting: it.link.waiting() as u64,
            }
        });
        all.collect()
    }
}

/// Returns the limits of a link to a member of this site; `shared` has the limits shared by all
/// links to one site.
fn limits(shared: &mut BTreeMap<Name, Limit>, site: Option<&Name>, config: &Config) -> Vec<Limit> {
    let bucket = |rate: u64| Arc::new(Mutex::new(Bucket::new(rate, (rate / 8).max(64 << 10))));
    let mut limits: Vec<Limit> = config.link_rate.map(bucket).into_iter().collect();
    let site = site.filter(|it| **it != config.site);
    if let (Some(rate), Some(site)) = (config.site_rate, site) {
        limits.push(shared.entry(site.clone()).or_insert_with(|| bucket(rate)).clone());
    }
    limits
}
