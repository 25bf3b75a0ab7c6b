//! Announcements: a member's own rows and beats, the rows and beats of others that it floods, and
//! its search for lost members.
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use super::links::{UPDATE_BYTES, is_unanswered};
use super::rows::{Digest, Intake, KnownRow, OwnRow, RowMessage};
use super::{
    Action, BEAT_INTERVAL, COMPARE_INTERVAL, FAILURES_MAX, Group, LOST_AFTER, Message, rows,
};
use crate::estimate::{Estimate, LinkEstimate};
use crate::id::{GroupId, MemberId};
use crate::topology::cost;

/// Shortest pause before a row with a [`Change::Whole`].
const ROW_PAUSE: Duration = Duration::from_secs(5);
/// Shortest pause before any other row; a second for each entry if that is longer. So each member's
/// rows take at most about 14 bytes a second in a group of any size.
const ROW_PAUSE_USUAL: Duration = Duration::from_secs(15);
/// Change of a link's cost, bandwidth or round trip, in hundredths, above which the link is
/// announced again. Bandwidth and round trip are compared too, because the cost may depend little
/// on one of them.
const CHANGE_PERCENT: u64 = 10;
/// Smallest difference of round trips that counts.
const ROUND_TRIP_CHANGE_MIN: Duration = Duration::from_millis(5);
/// Shortest pause between two requests to a neighbor for missing rows.
const ASK_PAUSE: Duration = Duration::from_secs(5);
/// Shortest pause between two attempts to reach lost members. The pause is a share ([`LOOK_SHARE`])
/// of the time since the last member was lost.
const LOOK_PAUSE_MIN: Duration = Duration::from_secs(1);
/// See [`LOOK_PAUSE_MIN`].
const LOOK_PAUSE_MAX: Duration = Duration::from_mins(1);
/// Divisor of the time since the last member was lost, which gives the pause between attempts.
const LOOK_SHARE: u32 = 32;
/// Interval at which a member checks whether any member is lost.
const LOOK: Duration = Duration::from_secs(5);

/// Degree to which a link differs from its announcement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Some,
    /// The other member stopped or began to answer, or the bandwidth of a known link became known.
    Whole,
}

impl Group {
    /// Announces that this member is alive, and its links if they have changed.
    pub(super) fn announce(&mut self, now: Duration) {
        self.due.announce = now + BEAT_INTERVAL;
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
        let beat = if is_due { None } else { self.own.as_mut().and_then(OwnRow::beat) };
        let bytes = beat.unwrap_or_else(|| {
            let sequence = self.next_sequence(now);
            let own = OwnRow::sign(&self.identity, self.group, sequence, entries);
            let bytes = own.bytes();
            (self.own, self.own_since) = (Some(own), now);
            self.lead.handle_row();
            bytes
        });
        self.flood(&bytes, None);
        // A change that had to wait is announced as soon as allowed.
        let unannounced = self.own.as_ref().map(|it| change(&it.row.entries, &self.entries(now)));
        if unannounced == Some(Change::Whole) {
            self.due.announce = self.due.announce.min(self.own_since + ROW_PAUSE);
        }
    }

    /// Returns the entries for the links to the other members, as they are now.
    fn entries(&self, now: Duration) -> Vec<LinkEstimate> {
        let Some(charter) = &self.charter else { return Vec::new() };
        let is_lost =
            |it: &MemberId| charter.body().member(*it).is_none_or(|it| it.silent.is_some());
        let mut entries = Vec::new();
        for (to, peer) in self.peers.iter().filter(|it| !is_lost(it.0)) {
            let is_down = FAILURES_MAX <= peer.failures && !self.linked.contains_key(to);
            if is_down {
                entries.push(LinkEstimate::new(to.0, &Estimate::default(), now));
            } else if peer.estimate.age(now).is_some() {
                entries.push(LinkEstimate::new(to.0, &peer.estimate, now));
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

    /// Takes in a message with or about rows that came over the link to `from`.
    pub fn handle_row(&mut self, from: MemberId, bytes: &[u8], now: Duration) {
        let Some(charter) = self.charter.clone() else { return };
        let is_peer = self.peers.contains_key(&from);
        let key = |it: u64| charter.body().member(MemberId(it)).map(|it| *it.key());
        let taken = match rows::read(bytes) {
            None => return self.lied(from),
            Some(RowMessage::Digest(digest)) => return self.handle_digest(from, &digest, now),
            Some(_) if !is_peer => return,
            Some(RowMessage::Row(signed)) if signed.row.from == self.me.0 => {
                let is_signed = |group, key: &[u8; 32]| signed.is_signed(group, key);
                return self.handle_own(signed.row.sequence, is_signed, now);
            }
            Some(RowMessage::Row(signed)) => match key(signed.row.from) {
                Some(key) => self.rows.take_row(signed, (self.group, &key), now),
                None => return,
            },
            Some(RowMessage::Beat(beat)) if self.peers.contains_key(&beat.from) => {
                self.rows.take_beat(&beat, now)
            }
            Some(RowMessage::Beat(_)) => return,
            Some(RowMessage::Held(signed)) if signed.from == self.me => {
                let is_signed = |group, key: &[u8; 32]| signed.is_signed(group, key);
                return self.handle_own(signed.sequence, is_signed, now);
            }
            Some(RowMessage::Held(signed)) => match key(signed.from.0) {
                Some(key) => self.held.take(signed, (self.group, &key), now),
                None => return,
            },
        };
        match taken {
            Intake::New => {
                self.lead.handle_row();
                self.flood(&bytes.into(), Some(from));
            }
            Intake::Lacking => self.ask_rows(from, now),
            Intake::Forged => self.lied(from),
            Intake::Old | Intake::TooOften => {}
        }
    }

    /// Takes in one of this member's own messages. If it is newer than all that this member knows
    /// of, it was sent before the disk was lost.
    fn handle_own(
        &mut self,
        sequence: u64,
        is_signed: impl FnOnce(GroupId, &[u8; 32]) -> bool,
        now: Duration,
    ) {
        if self.sequence() < sequence && is_signed(self.group, &self.identity.public()) {
            self.queue.push_back(Action::Alarm(super::Alarm::Forgotten));
            self.jump(sequence, now);
        }
    }

    /// Asks a neighbor for the rows that this member lacks.
    fn ask_rows(&mut self, from: MemberId, now: Duration) {
        let Some(linked) = self.linked.get_mut(&from) else { return };
        if linked.asked.is_none_or(|it| it + ASK_PAUSE <= now) {
            linked.asked = Some(now);
            self.compare(from, false);
        }
    }

    /// Sends a digest to a member, which answers with newer rows and asks for those that it lacks.
    pub(super) fn compare(&mut self, member: MemberId, is_answer: bool) {
        let Some(charter) = &self.charter else { return };
        if !self.linked.contains_key(&member) {
            return;
        }
        // Strangers learn nothing about members.
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
            self.linked.entry(from).and_modify(|it| it.charter_sent = hash);
        } else if is_peer {
            // The other side follows another charter although it may have been sent this one. If it
            // refuses this charter, its answer shows why.
            self.linked.entry(from).and_modify(|it| it.charter_sent = None);
            self.offer_charter(from);
        } else if !digest.is_answer {
            // The other side's answer shows under which charter it is a member.
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
        let known = self.own.as_ref().map(OwnRow::mark).unwrap_or_default();
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

    /// Compares rows with the next linked member in turn.
    pub(super) fn compare_next(&mut self, now: Duration) {
        self.due.compare = now + COMPARE_INTERVAL;
        let all: Vec<MemberId> =
            self.linked.keys().filter(|it| self.peers.contains_key(it)).copied().collect();
        self.turn = self.turn.wrapping_add(1);
        if let Some(member) = all.get(self.turn % all.len().max(1)) {
            self.compare(*member, false);
        }
    }

    /// Tries to reach one of the lost members. While no member is linked, all count as lost.
    pub(super) fn look(&mut self, now: Duration) {
        self.due.look = now + LOOK;
        let Some(charter) = self.charter.clone() else { return };
        let is_alone = self.linked.keys().all(|it| !self.peers.contains_key(it));
        let is_lost = |id: MemberId, failures: u32, is_silent: bool| {
            let is_down =
                FAILURES_MAX <= failures || is_silent || LOST_AFTER <= self.unheard(id, now);
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

    /// Returns the sequence and the last beat of a member's row; `None` if no row of it is known.
    pub fn row_mark(&self, member: MemberId) -> Option<(u64, u16)> {
        self.rows.get(member).map(KnownRow::mark)
    }
}

/// Returns the degree to which the links differ from the announced ones.
fn change(announced: &[LinkEstimate], now: &[LinkEstimate]) -> Change {
    // Both lists are in the order of ids.
    let find = |it: &LinkEstimate| {
        announced.binary_search_by_key(&it.to, |it| it.to).ok().and_then(|at| announced.get(at))
    };
    let one = |it: &LinkEstimate| match find(it) {
        None if is_unanswered(*it) => Change::Whole,
        None => Change::Some,
        Some(old) if is_unanswered(*old) != is_unanswered(*it) => Change::Whole,
        // Once the bandwidth is announced, the others need not measure the line in their turn.
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
    let is_fewer = now.len() < announced.len();
    let least = if is_fewer { Change::Some } else { Change::None };
    now.iter().map(one).fold(least, Change::max)
}

/// Returns whether the bandwidths or the round trips differ by more than [`CHANGE_PERCENT`]. They
/// do not if one of the two is unknown.
fn has_part_changed(old: LinkEstimate, new: LinkEstimate) -> bool {
    let differs = |a: u64, b: u64| a.max(b) * CHANGE_PERCENT < a.abs_diff(b) * 100;
    let bandwidths = old.bandwidth().zip(new.bandwidth());
    let round_trips = old.round_trip().zip(new.round_trip());
    let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX >> 8);
    bandwidths.is_some_and(|(a, b)| differs(a, b))
        || round_trips.is_some_and(|(a, b)| {
            ROUND_TRIP_CHANGE_MIN <= a.abs_diff(b) && differs(micros(a), micros(b))
        })
}

fn price(entry: LinkEstimate) -> Option<u64> {
    Some(u64::from(cost(entry.round_trip()?, entry.bandwidth()?, UPDATE_BYTES)))
}
