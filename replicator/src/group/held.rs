//! Holdings: the versions that each member of a group holds, signed by that member and flooded like
//! rows.
//!
//! So the administrator of any member sees which versions all members have, not only its neighbors.
//! Members also see to which sites a transfer is under way, and do not measure the lines to these
//! sites meanwhile. No data depends on holdings: the messages of `replica` decide which members are
//! asked for chunks.
//!
//! A member sends all its holdings at once, together with its beat, if anything has changed and the
//! pause is over: at most about 30 bytes a second. If it holds more than [`ENTRIES_MAX`] trees, the
//! message names those that changed last and counts the others. Since every change is sent, the
//! last known message of a member is valid as long as its beats arrive. docs/decisions/versions.md
//! says what that costs and why it stays.
//!
//! # Differences from the paper
//!
//! A mirror-d knows only what its neighbors have.
//!
//! Sans-I/O.

mod message;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Group;
use super::charter::Charter;
use super::rows::{Budgets, Intake};
use crate::id::{GroupId, MemberId};
use crate::version::{Namespace, Number};

use message::ENTRY_BYTES;
pub(super) use message::Signed;
pub use message::Tag;

/// Maximum number of trees whose versions a member names.
pub const ENTRIES_MAX: usize = 256;
/// Length of the longest message on holdings, in bytes.
pub const HELD_BYTES_MAX: usize = 1 + 8 + 8 + 2 + ENTRIES_MAX * ENTRY_BYTES + 64;
/// Age up to which a reported version counts in [`Holdings::behind`]: a member that lacks it is
/// assumed to fetch it soon.
const BEHIND_MAX: Duration = Duration::from_hours(24);
/// Shortest pause between two messages on holdings, to which a second is added for each tree named
/// in the last one.
pub const PAUSE: Duration = Duration::from_secs(15);
/// Shortest pause for each member of the group; in a large group it replaces [`PAUSE`], since every
/// message goes over every link.
pub const PAUSE_EACH: Duration = Duration::from_millis(200);

/// Holdings of a member, as it reports them.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    signed: &'a Signed,
    /// Time at which this report arrived.
    received: Duration,
}

impl Held<'_> {
    /// Returns the member's version of a tree or a collection; `None` if it does not name one.
    pub fn number(&self, of: Tag) -> Option<Number> {
        self.signed.number(of)
    }

    /// Returns how many trees the member has without naming their versions, for lack of room.
    pub fn left_out(&self) -> u16 {
        self.signed.left_out
    }

    /// Returns the time since this report arrived. The report may be older, if it was sent before
    /// this member started.
    pub fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.received)
    }
}

#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Number of the group's members.
    members: u32,
    /// The group's trees.
    listed: BTreeSet<Tag>,
    /// The version of each tree that readers see here, and the time since which they see it.
    own: BTreeMap<Tag, (Number, Duration)>,
    /// This member's last message, and when it was sent. With `None` the next is due at once.
    pub(super) sent: Option<(Signed, Duration)>,
    /// The last message of each other member, and the time at which it came.
    received: BTreeMap<MemberId, (Signed, Duration)>,
    budgets: Budgets,
}

impl Holdings {
    pub(super) fn handle_charter(&mut self, charter: &Charter) {
        let body = charter.body();
        self.members = u32::try_from(body.members.len()).unwrap_or(u32::MAX);
        let namespaces = body.trees.iter().map(|it| it.tree.namespace());
        self.listed = namespaces.map(|it| Tag::of(&it)).collect();
        self.received.retain(|it, _| body.member(*it).is_some());
        self.budgets.keep(|it| body.member(it).is_some());
    }

    fn set_own<'a>(&mut self, all: impl Iterator<Item = (&'a Namespace, Number)>, now: Duration) {
        let before = std::mem::take(&mut self.own);
        let tagged = all.map(|(namespace, number)| (Tag::of(namespace), number));
        for (tag, number) in tagged.filter(|it| self.listed.contains(&it.0)) {
            let known = before.get(&tag).filter(|it| it.0 == number);
            self.own.insert(tag, *known.unwrap_or(&(number, now)));
        }
    }

    /// Returns the entries to send, in the order of tags, and the number of trees left out.
    fn entries(&self) -> (Vec<(Tag, Number)>, u16) {
        let is_listed = |it: &(&Tag, &(Number, Duration))| self.listed.contains(it.0);
        let mut all: Vec<(&Tag, &(Number, Duration))> = self.own.iter().filter(is_listed).collect();
        all.sort_by_key(|(_, (_, since))| Reverse(*since));
        let left_out = all.len().saturating_sub(ENTRIES_MAX);
        all.truncate(ENTRIES_MAX);
        let mut entries: Vec<(Tag, Number)> =
            all.into_iter().map(|(tag, (number, _))| (*tag, *number)).collect();
        entries.sort_unstable_by_key(|it| it.0);
        // A group has at most 1,024 trees.
        (entries, u16::try_from(left_out).unwrap_or(u16::MAX))
    }

    /// Returns the members among `there` and `me` (this member) that lack a version which another
    /// of them has. Versions reported longer ago than [`BEHIND_MAX`] do not count: a member that
    /// has not caught up by then may never do so.
    pub(super) fn behind(
        &self,
        me: MemberId,
        there: &BTreeSet<MemberId>,
        now: Duration,
    ) -> BTreeSet<MemberId> {
        let is_news = |since: Duration| now < since + BEHIND_MAX;
        let received = || self.received.iter().filter(|it| there.contains(it.0)).map(|it| it.1);
        let reported = received().filter(|it| is_news(it.1)).flat_map(|it| &it.0.entries);
        let own = self.own.iter().filter(|it| is_news(it.1.1)).map(|(tag, it)| (*tag, it.0));
        let mut newest: BTreeMap<Tag, Number> = own.collect();
        for (tag, reported) in reported.filter(|it| self.listed.contains(&it.0)) {
            let number = newest.entry(*tag).or_insert(*reported);
            *number = (*reported).max(*number);
        }
        let is_behind = |it: &Signed| {
            let lacks = |(tag, newest): (&Tag, &Number)| match it.number(*tag) {
                Some(number) => number < *newest,
                None => it.left_out == 0,
            };
            newest.iter().any(lacks)
        };
        let has_less =
            |(tag, newest): (&Tag, &Number)| self.own.get(tag).is_none_or(|it| it.0 < *newest);
        let own = newest.iter().any(has_less).then_some(me);
        received().filter(|it| is_behind(&it.0)).map(|it| it.0.from).chain(own).collect()
    }

    /// Returns the entries to send now and the number of trees left out; `None` if the same was
    /// sent last, or if the pause is not over.
    fn poll(&self, now: Duration) -> Option<(Vec<(Tag, Number)>, u16)> {
        let news = self.entries();
        match &self.sent {
            None => Some(news),
            Some((sent, at)) => {
                let trees = Duration::from_secs(sent.entries.len() as u64);
                let pause = PAUSE.max(PAUSE_EACH * self.members) + trees;
                let is_news = (&sent.entries, sent.left_out) != (&news.0, news.1);
                (is_news && *at + pause <= now).then_some(news)
            }
        }
    }

    /// Returns the sequence of any member's last known message; 0 if there is none.
    pub(super) fn sequence(&self, member: MemberId) -> u64 {
        let sent = self.sent.iter().map(|it| &it.0).find(|it| it.from == member);
        let received = || self.received.get(&member).map(|it| &it.0);
        sent.or_else(received).map_or(0, |it| it.sequence)
    }

    /// Returns the messages that are newer than the sequences in `known`, which another member has.
    pub(super) fn after(&self, known: &BTreeMap<MemberId, u64>) -> impl Iterator<Item = Arc<[u8]>> {
        let all = self.sent.iter().chain(self.received.values()).map(|it| &it.0);
        let is_new = |it: &&Signed| known.get(&it.from).copied().unwrap_or_default() < it.sequence;
        all.filter(is_new).map(|it| Arc::clone(&it.bytes))
    }

    /// Returns whether `known` is ahead of this member for any id for which `is_member` holds.
    pub(super) fn lacks(
        &self,
        known: &BTreeMap<MemberId, u64>,
        is_member: impl Fn(MemberId) -> bool,
    ) -> bool {
        known.iter().any(|(id, sequence)| self.sequence(*id) < *sequence && is_member(*id))
    }

    /// Takes in another member's holdings; returns whether they are new, or why they are dropped.
    pub(super) fn take(
        &mut self,
        signed: Signed,
        (group, key): (GroupId, &[u8; 32]),
        now: Duration,
    ) -> Intake {
        let from = signed.from;
        if signed.sequence <= self.sequence(from) {
            return Intake::Old;
        }
        let taken = self.budgets.take(from, now, || signed.is_signed(group, key));
        if taken == Intake::New {
            self.received.insert(from, (signed, now));
        }
        taken
    }
}

impl Group {
    /// Takes in the versions that readers see here. Those of other groups' trees may be among them,
    /// and are left out. Call it before [`Group::handle_timeout`].
    pub fn handle_held<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a Namespace, Number)>,
        now: Duration,
    ) {
        self.held.set_own(all, now);
    }

    pub(super) fn announce_held(&mut self, now: Duration) {
        if !self.is_member() {
            return;
        }
        let Some(news) = self.held.poll(now) else { return };
        let sequence = self.next_sequence(now);
        let signed = Signed::sign(&self.identity, self.group, sequence, news);
        self.flood(&signed.bytes, None);
        self.held.sent = Some((signed, now));
    }

    /// Returns the last reported holdings of a member; `None` until a message of its present
    /// incarnation has arrived.
    pub fn held_by(&self, member: MemberId) -> Option<Held<'_>> {
        let (signed, received) = self.held.received.get(&member)?;
        let incarnation = |sequence: u64| sequence >> 32;
        let row = self.row_mark(member).map_or(0, |it| it.0);
        let is_of_now = incarnation(row) <= incarnation(signed.sequence);
        is_of_now.then_some(Held { signed, received: *received })
    }
}
