//! What a member says of itself and passes on of others, and whom it looks for.
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use super::links::{UPDATE_BYTES, is_unanswered};
use super::rows::{Digest, Heard, Own, Said, Taken};
use super::{Action, BEAT, COMPARE, FAILURES_MAX, Group, LOST, Message, rows};
use crate::estimate::{Entry, Estimate};
use crate::id::MemberId;
use crate::topology::cost;

/// Between two rows in which a link or its bandwidth comes, or a link goes, lies at least as much.
const ROW_PAUSE: Duration = Duration::from_secs(5);
/// Between any others as well, and a second for each entry: so a group of any size takes 14 bytes a second for each
/// member.
const ROW_PAUSE_USUAL: Duration = Duration::from_secs(15);
/// A link is told of again when what it costs, its bandwidth or its round trip has changed by so many hundredths: the
/// cost may say little of one of the two.
const CHANGE_PERCENT: u64 = 10;
/// Round trips that differ by less are the same.
const ROUND_TRIP_CHANGE_MIN: Duration = Duration::from_millis(5);
/// Who lacks a row asks a neighbor for it no more often.
const ASK_PAUSE: Duration = Duration::from_secs(5);
/// Pauses between two attempts to reach members that are lost: a share of the time since they are, between these.
const LOOK_PAUSE_MIN: Duration = Duration::from_secs(1);
/// See [`LOOK_PAUSE_MIN`].
const LOOK_PAUSE_MAX: Duration = Duration::from_mins(1);
/// The time since members are lost over the pause between attempts.
const LOOK_SHARE: u32 = 32;
/// So often a member sees whether any is lost.
const LOOK: Duration = Duration::from_secs(5);

/// How much a link differs from what was told of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Some,
    /// It has come or gone, or its bandwidth has come.
    Whole,
}

impl Group {
    /// Says that one is there, and what one's links are if they have changed.
    pub(super) fn say(&mut self, now: Duration) {
        self.due.say = now + BEAT;
        if !self.is_member() {
            return;
        }
        let entries = self.entries(now);
        let since = now.saturating_sub(self.own_since);
        let usual = ROW_PAUSE_USUAL.max(Duration::from_secs(entries.len() as u64));
        let is_due = match self.own.as_ref().map(|it| change(&it.row.entries, &entries)) {
            None => true,
            Some(Change::Whole) => ROW_PAUSE <= since,
            Some(Change::Some) => usual <= since,
            Some(Change::None) => false,
        };
        let beat = if is_due { None } else { self.own.as_mut().and_then(Own::beat) };
        let bytes = beat.unwrap_or_else(|| {
            let sequence = self.next_sequence(now);
            let own = Own::sign(&self.identity, self.group, sequence, entries);
            let bytes = own.bytes();
            (self.own, self.own_since) = (Some(own), now);
            self.lead.handle_row();
            bytes
        });
        self.flood(&bytes, None);
        // What could not be told yet is told as soon as it may.
        let untold = self.own.as_ref().map(|it| change(&it.row.entries, &self.entries(now)));
        if untold == Some(Change::Whole) {
            self.due.say = self.due.say.min(self.own_since + ROW_PAUSE);
        }
    }

    /// What is known of the links to the others, as of now.
    fn entries(&self, now: Duration) -> Vec<Entry> {
        let Some(charter) = &self.charter else { return Vec::new() };
        let is_lost =
            |it: &MemberId| charter.body().member(*it).is_none_or(|it| it.silent.is_some());
        let mut entries = Vec::new();
        for (to, peer) in self.peers.iter().filter(|it| !is_lost(it.0)) {
            let is_down = FAILURES_MAX <= peer.failures && !self.linked.contains_key(to);
            if is_down {
                entries.push(Entry::new(to.0, &Estimate::default(), now));
            } else if peer.estimate.age(now).is_some() {
                entries.push(Entry::new(to.0, &peer.estimate, now));
            }
        }
        entries
    }

    pub(super) fn flood(&mut self, bytes: &Arc<[u8]>, except: Option<MemberId>) {
        let is_peer = |it: &&MemberId| self.peers.contains_key(it) && Some(**it) != except;
        let to: Vec<MemberId> = self.linked.keys().filter(is_peer).copied().collect();
        if !to.is_empty() {
            self.queue.push_back(Action::Send { to, message: Message::Row(Arc::clone(bytes)) });
        }
    }

    /// Takes in a message about rows that came over the link to `from`.
    pub fn handle_row(&mut self, from: MemberId, bytes: &[u8], now: Duration) {
        let Some(charter) = self.charter.clone() else { return };
        let is_peer = self.peers.contains_key(&from);
        let key = |it: u64| charter.body().member(MemberId(it)).map(|it| *it.key());
        let taken = match rows::read(bytes) {
            None => return self.lied(from),
            Some(Said::Digest(digest)) => return self.handle_digest(from, &digest, now),
            Some(_) if !is_peer => return,
            Some(Said::Row(signed)) if signed.row.from == self.me.0 => {
                // It was said before the disk was lost.
                if self.sequence() < signed.row.sequence
                    && signed.is_signed(self.group, &self.identity.public())
                {
                    self.queue.push_back(Action::Alarm(super::Alarm::Forgotten));
                    self.jump(signed.row.sequence, now);
                }
                return;
            }
            Some(Said::Row(signed)) => match key(signed.row.from) {
                Some(key) => self.rows.take_row(signed, (self.group, &key), now),
                None => return,
            },
            Some(Said::Beat(beat)) if self.peers.contains_key(&beat.from) => {
                self.rows.take_beat(&beat, now)
            }
            Some(Said::Beat(_)) => return,
            Some(Said::Held(signed)) if signed.from == self.me => {
                return self.handle_own_held(&signed, now);
            }
            Some(Said::Held(signed)) => match key(signed.from.0) {
                Some(key) => self.held.take(signed, (self.group, &key), now),
                None => return,
            },
        };
        match taken {
            Taken::New => {
                self.counts.rows_new += 1;
                self.lead.handle_row();
                self.flood(&bytes.into(), Some(from));
            }
            Taken::Old => self.counts.rows_old += 1,
            Taken::Lacking => self.ask_rows(from, now),
            Taken::Forged => self.lied(from),
            Taken::TooOften => self.counts.rows_too_often += 1,
        }
    }

    /// Lets a neighbor send what one lacks.
    fn ask_rows(&mut self, from: MemberId, now: Duration) {
        let Some(linked) = self.linked.get_mut(&from) else { return };
        if linked.asked.is_none_or(|it| it + ASK_PAUSE <= now) {
            linked.asked = Some(now);
            self.compare(from, false);
        }
    }

    /// Sends a member what one knows, so that it sends what is newer, and asks for what is older.
    pub(super) fn compare(&mut self, member: MemberId, is_answer: bool) {
        let Some(charter) = &self.charter else { return };
        if !self.linked.contains_key(&member) {
            return;
        }
        // Of members nobody else learns.
        let is_peer = self.peers.contains_key(&member);
        let own = self.own.iter().map(|it| (self.me, it.mark()));
        let marks = self.rows.iter().map(|(id, it)| (id, it.mark())).chain(own);
        let number = (charter.epoch(), charter.revision(), charter.hash());
        let marks = marks.map(|(id, mark)| (id, mark, self.held.sequence(id)));
        let digest = Digest::write(is_answer, number, marks.filter(|_| is_peer));
        self.send(member, Message::Row(digest));
    }

    fn handle_digest(&mut self, from: MemberId, digest: &Digest<'_>, now: Duration) {
        let Some(charter) = self.charter.clone() else { return };
        let is_peer = self.peers.contains_key(&from);
        if digest.charter == charter.hash() {
            let hash = Some(digest.charter);
            self.linked.entry(from).and_modify(|it| it.told = hash);
        } else if is_peer {
            // Whatever it was told, it goes by another: it may have refused this one, and say why.
            self.linked.entry(from).and_modify(|it| it.told = None);
            self.tell(from);
        } else if !digest.is_answer {
            // Then it shows by which charter it is a member.
            self.compare(from, true);
        }
        if !is_peer {
            return;
        }
        let marks = digest.marks();
        let mark = |it: MemberId| marks.get(&it).copied().unwrap_or_default();
        let own = self.own.iter().flat_map(|it| it.after(mark(self.me)));
        let held = digest.held();
        let newer = self.rows.after(&marks).chain(own).chain(self.held.after(&held));
        let newer: Vec<Arc<[u8]>> = newer.collect();
        for row in newer {
            self.send(from, Message::Row(row));
        }
        let known = self.own.as_ref().map(Own::mark).unwrap_or_default();
        let is_other = |it: MemberId| self.peers.contains_key(&it);
        let is_behind = self.rows.lacks(&marks, is_other)
            || known < mark(self.me)
            || self.held.lacks(&held, |it| is_other(it) || it == self.me);
        if is_behind && !digest.is_answer {
            self.compare(from, true);
        } else if is_behind {
            self.ask_rows(from, now);
        }
    }

    /// Compares with the neighbor whose turn it is.
    pub(super) fn compare_next(&mut self, now: Duration) {
        self.due.compare = now + COMPARE;
        let all: Vec<MemberId> =
            self.linked.keys().filter(|it| self.peers.contains_key(it)).copied().collect();
        self.turn = self.turn.wrapping_add(1);
        if let Some(member) = all.get(self.turn % all.len().max(1)) {
            self.compare(*member, false);
        }
    }

    /// Tries to reach one of those that nothing is heard of, or to which there should be a link; all, if there is
    /// no link at all.
    pub(super) fn look(&mut self, now: Duration) {
        self.due.look = now + LOOK;
        let Some(charter) = self.charter.clone() else { return };
        let is_alone = self.linked.keys().all(|it| !self.peers.contains_key(it));
        let is_lost = |id: MemberId, failures: u32, is_silent: bool| {
            let is_down = FAILURES_MAX <= failures || is_silent || LOST <= self.unheard(id, now);
            !self.linked.contains_key(&id) && (is_down || is_alone)
        };
        let lost: Vec<_> = charter
            .body()
            .members
            .iter()
            .filter(|member| {
                let peer = self.peers.get(&member.id());
                peer.is_some_and(|it| is_lost(member.id(), it.failures, member.silent.is_some()))
            })
            .collect();
        let (count, since, turn) = &mut self.lost;
        if *count < lost.len() {
            *since = now;
        }
        *count = lost.len();
        *turn = turn.wrapping_add(1);
        let pause = now.saturating_sub(*since) / LOOK_SHARE;
        if let Some(member) = lost.get(*turn % lost.len().max(1)) {
            self.due.look = now + pause.clamp(LOOK_PAUSE_MIN, LOOK_PAUSE_MAX);
            let (key, address) = (*member.key(), member.address.clone());
            self.queue.push_back(Action::Connect { key, address });
        }
    }

    /// How far the rows of a member are known.
    #[must_use]
    pub fn heard(&self, member: MemberId) -> Option<(u64, u16)> {
        self.rows.get(member).map(Heard::mark)
    }
}

/// How much the links have changed since they were told.
fn change(told: &[Entry], now: &[Entry]) -> Change {
    // Both are in the order of ids.
    let find =
        |it: &Entry| told.binary_search_by_key(&it.to, |it| it.to).ok().and_then(|at| told.get(at));
    let one = |it: &Entry| match find(it) {
        None if is_unanswered(*it) => Change::Whole,
        None => Change::Some,
        Some(old) if is_unanswered(*old) != is_unanswered(*it) => Change::Whole,
        // Others whose turn is next need not measure it any more.
        Some(old) if old.bandwidth().is_none() && it.bandwidth().is_some() => Change::Whole,
        Some(old) if has_part_changed(*old, *it) => Change::Some,
        Some(old) => match (price(*old), price(*it)) {
            (Some(old), Some(new)) if old.abs_diff(new) * 100 <= old.max(new) * CHANGE_PERCENT => {
                Change::None
            }
            (None, None) => Change::None,
            _ => Change::Some,
        },
    };
    let is_fewer = now.len() < told.len();
    let least = if is_fewer { Change::Some } else { Change::None };
    now.iter().map(one).fold(least, Change::max)
}

/// Whether the bandwidth or the round trip differs by much, if both are known.
fn has_part_changed(old: Entry, new: Entry) -> bool {
    let differs = |a: u64, b: u64| a.max(b) * CHANGE_PERCENT < a.abs_diff(b) * 100;
    let bandwidths = old.bandwidth().zip(new.bandwidth());
    let round_trips = old.round_trip().zip(new.round_trip());
    let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX >> 8);
    bandwidths.is_some_and(|(a, b)| differs(a, b))
        || round_trips.is_some_and(|(a, b)| {
            ROUND_TRIP_CHANGE_MIN <= a.abs_diff(b) && differs(micros(a), micros(b))
        })
}

fn price(entry: Entry) -> Option<u64> {
    Some(u64::from(cost(entry.round_trip()?, entry.bandwidth()?, UPDATE_BYTES)))
}
