//! Which versions the members of a group hold: each says it of itself, signed, and it goes to all as rows do.
//!
//! So every member's administrator sees how far all the others are, not only its neighbors, and members see to which
//! sites something is on its way, and do not measure the line meanwhile. Nothing of the data goes by it: whom to ask for
//! chunks is said by the messages of `replica`.
//!
//! A member says all that it holds at once, when it says that it is there, if anything has changed since, and no more
//! often than every [`PAUSE`] (in a large group [`PAUSE_EACH`] for each member) and a second for each tree: so that it
//! takes no more than some 30 bytes a second, whatever it publishes, and nothing while no version changes. Of one that
//! holds more than [`ENTRIES_MAX`] trees those that have changed last are named, and the others counted. Since what
//! changes is said, the last that is known of a member holds for as long as it is heard of.
//!
//! # Differences from the paper
//!
//! A mirror-d knows what its neighbors have.
//!
//! Sans-I/O.

mod said;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::charter::Charter;
use super::rows::{Budgets, Taken};
use super::{Action, Alarm, Group};
use crate::id::{GroupId, MemberId};
use crate::version::{Namespace, Number};

pub(super) use said::Signed;
pub use said::Tag;
use said::{ENTRY_BYTES, Entry};

/// Most trees of which a member says which version it holds.
pub const ENTRIES_MAX: usize = 256;
/// Longest message of what a member holds, in bytes.
pub const HELD_BYTES_MAX: usize = 1 + 8 + 8 + 2 + ENTRIES_MAX * ENTRY_BYTES + 64;
/// For so long who holds less than somebody has said is taken to be about to fetch it.
const BEHIND_MAX: Duration = Duration::from_hours(24);
/// What a member holds is said no more often; and a second later for each tree that was named the last time.
pub const PAUSE: Duration = Duration::from_secs(15);
/// Nor is it in a group of many members, after so long for each: what all say goes over each link.
pub const PAUSE_EACH: Duration = Duration::from_millis(200);

/// What a member says that it holds.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    signed: &'a Signed,
    /// When it was heard first.
    heard: Duration,
}

impl Held<'_> {
    /// The version of a tree or a collection; none if it has none, or does not say so.
    #[must_use]
    pub fn number(&self, of: Tag) -> Option<Number> {
        self.signed.number(of)
    }

    /// How many trees it holds of which it does not say the version, since they are too many.
    #[must_use]
    pub fn left_out(&self) -> u16 {
        self.signed.left_out
    }

    /// How long ago it was heard; it may be older, if it was said before one came.
    #[must_use]
    pub fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.heard)
    }
}

/// What is held, here and at others.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// How many members the group has, and its trees.
    members: u32,
    listed: BTreeSet<Tag>,
    /// Those that are held here: which version, and since when.
    own: BTreeMap<Tag, (Number, Duration)>,
    /// What was said of that last, and when.
    told: Option<(Signed, Duration)>,
    /// What others have said, and when it came.
    heard: BTreeMap<MemberId, (Signed, Duration)>,
    budgets: Budgets,
}

impl Holdings {
    /// Goes by another charter.
    pub(super) fn handle_charter(&mut self, charter: &Charter) {
        let body = charter.body();
        self.members = u32::try_from(body.members.len()).unwrap_or(u32::MAX);
        let namespaces = body.trees.iter().map(|it| it.tree.namespace());
        self.listed = namespaces.map(|it| Tag::of(&it)).collect();
        self.heard.retain(|it, _| body.member(*it).is_some());
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

    /// What there is to say, in the order of tags, and of how many trees nothing is said.
    fn entries(&self) -> (Vec<Entry>, u16) {
        let is_listed = |it: &(&Tag, &(Number, Duration))| self.listed.contains(it.0);
        let mut all: Vec<(&Tag, &(Number, Duration))> = self.own.iter().filter(is_listed).collect();
        all.sort_by_key(|(_, (_, since))| Reverse(*since));
        let left_out = all.len().saturating_sub(ENTRIES_MAX);
        all.truncate(ENTRIES_MAX);
        let entry = |(tag, (number, _)): (&Tag, &(Number, _))| Entry { tag: *tag, number: *number };
        let mut entries: Vec<Entry> = all.into_iter().map(entry).collect();
        entries.sort_unstable_by_key(|it| it.tag);
        // A group has at most 1,024 trees.
        (entries, u16::try_from(left_out).unwrap_or(u16::MAX))
    }

    /// Who of these, `me` being oneself, holds less than another says. What was said longer than [`BEHIND_MAX`] ago
    /// does not count: whoever has not come to have it by then may never.
    pub(super) fn behind(
        &self,
        me: MemberId,
        there: &BTreeSet<MemberId>,
        now: Duration,
    ) -> BTreeSet<MemberId> {
        let is_news = |since: Duration| now < since + BEHIND_MAX;
        let heard = || self.heard.iter().filter(|it| there.contains(it.0)).map(|it| it.1);
        let said = heard().filter(|it| is_news(it.1)).flat_map(|it| &it.0.entries);
        let own = self.own.iter().filter(|it| is_news(it.1.1)).map(|(tag, it)| (*tag, it.0));
        let mut newest: BTreeMap<Tag, Number> = own.collect();
        for it in said.filter(|it| self.listed.contains(&it.tag)) {
            let number = newest.entry(it.tag).or_insert(it.number);
            *number = it.number.max(*number);
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
        heard().filter(|it| is_behind(&it.0)).map(|it| it.0.from).chain(own).collect()
    }

    /// What is to be said now; none if it was said, or if it is too soon.
    fn poll(&self, now: Duration) -> Option<(Vec<Entry>, u16)> {
        let news = self.entries();
        match &self.told {
            None => Some(news),
            Some((told, at)) => {
                let trees = Duration::from_secs(told.entries.len() as u64);
                let pause = PAUSE.max(PAUSE_EACH * self.members) + trees;
                let is_news = (&told.entries, told.left_out) != (&news.0, news.1);
                (is_news && *at + pause <= now).then_some(news)
            }
        }
    }

    /// Has all be said once more, since others know something newer.
    pub(super) fn forget_told(&mut self) {
        self.told = None;
    }

    /// The sequence of what is known of a member, oneself included; 0 if nothing is.
    pub(super) fn sequence(&self, member: MemberId) -> u64 {
        let told = self.told.iter().map(|it| &it.0).find(|it| it.from == member);
        let heard = || self.heard.get(&member).map(|it| &it.0);
        told.or_else(heard).map_or(0, |it| it.sequence)
    }

    /// What to send to somebody who is as far as that.
    pub(super) fn after(&self, known: &BTreeMap<MemberId, u64>) -> impl Iterator<Item = Arc<[u8]>> {
        let all = self.told.iter().chain(self.heard.values()).map(|it| &it.0);
        let is_new = |it: &&Signed| known.get(&it.from).copied().unwrap_or_default() < it.sequence;
        all.filter(is_new).map(|it| Arc::clone(&it.bytes))
    }

    /// Whether somebody knows more of any of the members.
    pub(super) fn lacks(
        &self,
        known: &BTreeMap<MemberId, u64>,
        is_member: impl Fn(MemberId) -> bool,
    ) -> bool {
        known.iter().any(|(id, sequence)| self.sequence(*id) < *sequence && is_member(*id))
    }

    /// Takes in what another holds.
    pub(super) fn take(
        &mut self,
        signed: Signed,
        (group, key): (GroupId, &[u8; 32]),
        now: Duration,
    ) -> Taken {
        let from = signed.from;
        if signed.sequence <= self.sequence(from) {
            return Taken::Old;
        }
        let taken = self.budgets.take(from, now, || signed.is_signed(group, key));
        if taken == Taken::New {
            self.heard.insert(from, (signed, now));
        }
        taken
    }
}

impl Group {
    /// Takes over which versions readers see here: of all namespaces, also of other groups. Call it before
    /// [`Group::handle_timeout`].
    pub fn handle_held<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a Namespace, Number)>,
        now: Duration,
    ) {
        self.held.set_own(all, now);
    }

    /// Says what one holds, if that is due.
    pub(super) fn say_held(&mut self, now: Duration) {
        if !self.is_member() {
            return;
        }
        let Some(news) = self.held.poll(now) else { return };
        let sequence = self.next_sequence(now);
        let signed = Signed::sign(&self.identity, self.group, sequence, news);
        self.flood(&signed.bytes, None);
        self.held.told = Some((signed, now));
    }

    /// Takes in what one is said to hold oneself: if that is newer than all that one has said, it was said before the disk
    /// was lost.
    pub(super) fn handle_own_held(&mut self, signed: &Signed, now: Duration) {
        let is_newer = self.sequence() < signed.sequence;
        if is_newer && signed.is_signed(self.group, &self.identity.public()) {
            self.queue.push_back(Action::Alarm(Alarm::Forgotten));
            self.jump(signed.sequence, now);
        }
    }

    /// What a member has said last of what it holds; none as long as nothing was heard of that since it started.
    #[must_use]
    pub fn held_by(&self, member: MemberId) -> Option<Held<'_>> {
        let (signed, heard) = self.held.heard.get(&member)?;
        let incarnation = |sequence: u64| sequence >> 32;
        let row = self.heard(member).map_or(0, |it| it.0);
        let is_of_now = incarnation(row) <= incarnation(signed.sequence);
        is_of_now.then_some(Held { signed, heard: *heard })
    }
}
