//! Measuring: which links a member measures and when, and the bandwidths that all members report.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::time::Duration;

use super::charter::Charter;
use super::rows::Rows;
use super::{Action, FAILURES_MAX, Group, Peer};
use crate::estimate::{self, Candidate, Estimate, Line, Lines, Measure, Row, Sites};
use crate::id::MemberId;
use crate::version::{Hash, Name};

/// Bound of the random delay that is added to a measurement's pause, so that members do not keep
/// measuring at the same time.
const MEASURE_SPREAD_MS: u64 = 2_000;
/// Shortest pause between two calls of a member that does not answer although a link is up.
const RECALL: Duration = Duration::from_mins(1);
/// Time after a transfer during which there are no probes.
const QUIET: Duration = Duration::from_secs(10);
/// Longest time for which transfers delay a probe of a link without a known bandwidth. Such a link
/// is hardly used before its probe.
const QUIET_WAIT_MAX: Duration = Duration::from_mins(5);
/// Longest time for which transfers delay a probe of a link with a known bandwidth.
const QUIET_WAIT_AGAIN_MAX: Duration = Duration::from_hours(1);

fn sites(charter: &Charter) -> Sites<'_> {
    Sites::new(charter.body().members.iter().map(|it| (it.id().0, it.site.as_str())))
}

/// Returns the bandwidth that a member reports of its link to `me`, in bytes a second, if any.
fn theirs(rows: &Rows, member: MemberId, me: MemberId) -> Option<u64> {
    rows.get(member)?.signed.row.entries.iter().find(|it| it.to == me.0)?.bandwidth()
}

fn is_recent(busy: Option<Duration>, now: Duration) -> bool {
    busy.is_some_and(|it| now < it + QUIET)
}

impl Group {
    /// Returns the rows of all members that are not silent or have sent a row since, this one
    /// included. Where a member has not measured a link's bandwidth itself, its row gets the
    /// bandwidth of the line between the two sites, if that is known.
    pub fn all_rows(&self) -> Vec<Row> {
        let Some(charter) = &self.charter else { return Vec::new() };
        let lines = Lines::new(&sites(charter), self.live_rows());
        let whole = |row: &Row| {
            let mut row = row.clone();
            for entry in &mut row.entries {
                if entry.bandwidth().is_none() && entry.round_trip().is_some() {
                    let line = lines.between(row.from, entry.to);
                    *entry = line.map_or(*entry, |it| entry.with_bandwidth(it.bandwidth()));
                }
            }
            row
        };
        self.live_rows().map(whole).collect()
    }

    fn live_rows(&self) -> impl Iterator<Item = &Row> {
        let others = self.rows.iter().map(|(_, it)| &it.signed.row);
        others.chain(self.own.iter().map(|it| &it.row)).filter(|it| self.is_live(it))
    }

    fn is_live(&self, row: &Row) -> bool {
        let member = self.charter.as_ref().and_then(|it| it.body().member(MemberId(row.from)));
        member.is_some_and(|it| it.silent.is_none_or(|it| it < row.sequence))
    }

    /// Returns the estimate of the link to a member; none for an id that is no other member.
    pub fn estimate(&self, member: MemberId) -> Option<&Estimate> {
        self.peers.get(&member).map(|it| &it.estimate)
    }

    /// Returns the bandwidth of the link to a member, in bytes a second: the measured one, or else
    /// that of the line which the link shares with others; `None` if neither is known.
    pub fn bandwidth(&self, member: MemberId) -> Option<u64> {
        let peer = self.peers.get(&member)?;
        peer.estimate.bandwidth().or_else(|| peer.line.map(Line::bandwidth))
    }

    /// Starts the next measurement if one is due, and sets the time of the one after it.
    pub(super) fn measure(&mut self, now: Duration) {
        let Some(charter) = self.charter.clone() else {
            self.due.measure = now + estimate::PAUSE_YOUNG;
            return;
        };
        let sites = sites(&charter);
        let lines = Lines::new(&sites, self.live_rows());
        for (id, peer) in &mut self.peers {
            peer.line = lines.between(self.me.0, id.0);
            let (theirs, line) =
                (theirs(&self.rows, *id, self.me), peer.line.and_then(Line::agreed));
            let is_wanted = peer.estimate.wants_probe(theirs, line, now);
            peer.wanted = is_wanted.then(|| peer.wanted.unwrap_or(now));
        }
        let is_there = |id: &MemberId, peer: &Peer| {
            let member = charter.body().member(*id);
            // A linked member will probably answer calls again at some time.
            let is_called = peer.called.is_some_and(|it| now < it + RECALL);
            let is_worth_it = self.linked.contains_key(id) && !is_called;
            let is_failing = FAILURES_MAX <= peer.failures;
            (!is_failing || is_worth_it) && member.is_some_and(|it| it.silent.is_none())
        };
        let mut there: Vec<(MemberId, &Peer)> = self
            .peers
            .iter()
            .filter(|(id, it)| is_there(id, it))
            .map(|(id, it)| (*id, it))
            .collect();
        // Each member begins with the member after itself, so that not all call the same one.
        let before = there.partition_point(|(id, _)| *id < self.me);
        there.rotate_left(before);
        let busy = self.busy_sites(&charter, now);
        let busy_at = |it| self.busy_at(&charter, &busy, it, now);
        let all: Vec<Candidate<'_>> = there
            .iter()
            .map(|(id, peer)| self.candidate(&sites, *id, peer, busy_at(*id)))
            .collect();
        let mut next = estimate::measure(&all, self.last_measure, now);
        let called = match next {
            Measure::Call { member, probe } => there.get(member).map(|it| (it.0, probe)),
            Measure::Wait(_) => None,
        };
        if let Some((member, probe)) = called {
            let begun = now + self.measure_spread(member);
            next = estimate::measure(&all, Some(begun), now);
            self.last_measure = Some(begun);
            let has_cross_traffic = is_recent(self.busy_at(&charter, &busy, member, now), now);
            if let Some(peer) = self.peers.get_mut(&member) {
                peer.called = Some(now);
                if probe {
                    peer.estimate.handle_probing(now);
                    peer.has_cross_traffic = has_cross_traffic;
                    self.last_probe = Some(now);
                }
            }
            self.queue.push_back(Action::Measure { member, probe });
        }
        self.due.measure = match next {
            Measure::Wait(until) => until,
            Measure::Call { .. } => now + estimate::PAUSE_NEW,
        };
    }

    /// Returns the sites where transfers are probable: a member there lacks a version of others.
    fn busy_sites<'a>(&self, charter: &'a Charter, now: Duration) -> BTreeSet<&'a Name> {
        let members = || charter.body().members.iter().filter(|it| it.silent.is_none());
        let there = members().map(|it| it.id()).collect();
        let behind = self.held.behind(self.me, &there, now);
        members().filter(|it| behind.contains(&it.id())).map(|it| &it.site).collect()
    }

    /// Returns whether other traffic is probably on the line to a member, or was until recently.
    pub(super) fn is_busy(&self, member: MemberId, now: Duration) -> bool {
        let Some(charter) = &self.charter else { return false };
        is_recent(self.busy_at(charter, &self.busy_sites(charter, now), member, now), now)
    }

    /// Returns the last time at which other traffic was probably on the line to a member; `busy`
    /// has the busy sites.
    fn busy_at(
        &self,
        charter: &Charter,
        busy: &BTreeSet<&Name>,
        member: MemberId,
        now: Duration,
    ) -> Option<Duration> {
        let is_busy = |it| charter.body().member(it).is_some_and(|it| busy.contains(&it.site));
        if is_busy(member) || is_busy(self.me) { Some(now) } else { self.last_busy }
    }

    /// Returns a member as a candidate for measuring; the members that may measure it take turns.
    /// `busy` is the time of the last traffic on the line to the candidate.
    fn candidate<'a>(
        &self,
        sites: &Sites<'_>,
        id: MemberId,
        peer: &'a Peer,
        busy: Option<Duration>,
    ) -> Candidate<'a> {
        let turn = sites.turn(self.me.0, id.0).unwrap_or(u32::MAX);
        let due = peer.since + estimate::PAUSE_YOUNG.saturating_mul(turn);
        let after = |last: Option<Duration>, pause| last.map_or(due, |it| due.max(it + pause));
        let is_known = peer.estimate.bandwidth().is_some();
        let pause = if is_known { QUIET_WAIT_AGAIN_MAX } else { QUIET_WAIT_MAX };
        let wait_max = peer.wanted.map_or(due, |it| due.max(it)) + pause;
        let quiet = after(busy, QUIET).min(wait_max);
        let probe_from = quiet.max(after(self.last_probe, estimate::PAUSE_YOUNG));
        let line = peer.line.and_then(Line::agreed);
        let theirs = theirs(&self.rows, id, self.me);
        Candidate { estimate: &peer.estimate, theirs, line, probe_from }
    }

    /// Returns the practically random delay of the next measurement.
    fn measure_spread(&self, member: MemberId) -> Duration {
        let last = self.last_measure.unwrap_or_default().as_nanos().to_le_bytes();
        let hash =
            Hash::of(&[&self.me.0.to_le_bytes(), &member.0.to_le_bytes(), &last[..]].concat());
        Duration::from_millis(u64::from_le_bytes(hash.first()) % MEASURE_SPREAD_MS)
    }
}
