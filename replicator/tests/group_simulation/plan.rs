//! Random worlds, and plans of their faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use replicator::group::Group;
use replicator::group::access::{Access, Rule};
use replicator::group::charter::Carried;
use replicator::group::invited::VALID_RANGE;
use replicator::group::join::Invitation;
use replicator::id::MemberId;
use replicator::topology::Connectivity;
use replicator::version::Name;

use super::member::{Member, foreign, identity, settings};
use super::properties::is_connected_without;
use super::world::{Event, World, pair};

/// Returns some trees carried from other groups, near or far.
pub(crate) fn some_carried(dice: &mut Rng) -> Vec<Carried> {
    let numbers: Vec<usize> = (0..4).filter(|_| dice.bool()).collect();
    numbers.into_iter().map(|it| foreign(it, dice.u8(1..4))).collect()
}

/// Returns the secret of a member's invitation.
pub(crate) fn secret(member: usize) -> [u8; 32] {
    let mut secret = [9; 32];
    secret[..8].copy_from_slice(&(member as u64).to_le_bytes());
    secret
}

/// Returns round trip and bandwidth of each pair: good within a site; two sites share one line.
pub(crate) fn pairs(dice: &mut Rng, sites: &[usize]) -> BTreeMap<[usize; 2], (Duration, u64)> {
    let (mut pairs, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for a in 0..sites.len() {
        for b in 0..a {
            let link = match sites[a] == sites[b] {
                true => (Duration::from_micros(dice.u64(200..2_000)), 100_000_000),
                false => {
                    let line = lines.entry(pair(sites[a], sites[b]));
                    let bandwidth = *line.or_insert_with(|| dice.u64(30_000..10_000_000));
                    (Duration::from_millis(dice.u64(10..150)), bandwidth)
                }
            };
            pairs.insert(pair(a, b), link);
        }
    }
    pairs
}

impl World {
    /// Makes members: the first founds the group at once, the others have an invitation.
    pub(crate) fn new(mut dice: Rng, count: usize) -> Self {
        let sites: Vec<usize> = (0..count).map(|_| dice.usize(..3)).collect();
        let are_invited = dice.bool();
        let mut access = Access::default();
        if !are_invited {
            let id = |it: usize| Rule::Member(MemberId::of(&identity(it).public()));
            access.allow = (0..count).map(id).collect();
        }
        let is_everywhere = dice.bool();
        let connectivity = [Connectivity::Two, Connectivity::Three, Connectivity::Tree];
        let mut members = Vec::new();
        for (at, site) in sites.iter().enumerate() {
            let access = (at == 0 || is_everywhere).then(|| access.clone());
            let mut settings = settings(at, *site, access);
            if at == 0 {
                let at = dice.usize(..5).saturating_sub(2);
                settings.connectivity = Some(connectivity[at]);
            }
            if dice.u8(..3) == 0 {
                settings.carried = some_carried(&mut dice);
            }
            let mut member = Member::new(at, settings, dice.u32(80..125));
            member.ahead = dice.u64(..300);
            members.push(member);
        }
        let pairs = pairs(&mut dice, &sites);
        let mut world = Self::with(dice, members, pairs);
        world.found(are_invited);
        world
    }

    /// Has the first member found the group and invite each other, with a secret if needed.
    pub(crate) fn found(&mut self, are_invited: bool) {
        let first = &mut self.members[0];
        let identity = Arc::clone(&first.identity);
        let (name, settings) = (Name::new("group").unwrap(), first.settings.clone());
        let mut group = Group::found(identity, name, settings, Duration::ZERO).unwrap();
        group.handle_clock(first.time_of_day(Duration::ZERO), Duration::ZERO);
        let invitation: Invitation = group.invitation(None).unwrap();
        for (at, it) in self.members.iter_mut().enumerate() {
            let secret = are_invited.then(|| secret(at));
            it.invitation = Some(Invitation { secret, ..invitation.clone() });
            if let Some(key) = it.invitation.as_ref().and_then(Invitation::public) {
                group.invite(key, *VALID_RANGE.end(), Duration::ZERO).unwrap();
            }
        }
        self.members[0].group = Some(group);
        self.call(0, |_, _| {});
    }

    /// Restarts the founder, so that its changed settings apply.
    pub(crate) fn reopen_founder(&mut self) {
        self.crash(0);
        self.start(0);
    }

    /// Plans a start of all others before `end`.
    pub(crate) fn join_before(&mut self, end: Duration) {
        for member in 1..self.members.len() {
            let at = self.moment(Duration::ZERO, end);
            self.schedule(at, Event::Start { member });
        }
    }

    pub(crate) fn moment(&mut self, from: Duration, to: Duration) -> Duration {
        Duration::from_millis(self.dice.u64(from.as_millis() as u64..to.as_millis() as u64))
    }

    /// Blocks some pairs for ever, unless the group could not be three-connected then.
    pub(crate) fn block_some(&mut self) {
        let count = self.members.len();
        for _ in 0..self.dice.usize(..=count / 2) {
            let (a, b) = (self.dice.usize(1..count), self.dice.usize(1..count));
            if a != b {
                self.blocked.insert(pair(a, b));
            }
        }
        let all: BTreeSet<usize> = (0..count).collect();
        let links: BTreeSet<[usize; 2]> =
            self.pairs.keys().copied().filter(|it| !self.blocked.contains(it)).collect();
        let is_enough = (0..count)
            .all(|a| (0..count).all(|b| is_connected_without(&all, &links, &[a, b].into())));
        if !is_enough {
            self.blocked.clear();
        }
    }

    pub(crate) fn plan(&mut self, from: Duration, end: Duration, faults: usize) {
        for _ in 0..faults {
            let at = self.moment(from, end);
            let until = self.moment(at, end + Duration::from_millis(1));
            self.fault(at, until);
        }
        // Readers see one version after another.
        for _ in 0..self.dice.usize(..40) {
            let (at, member) = (self.moment(from, end), self.dice.usize(..self.members.len()));
            self.schedule(at, Event::Hold { member });
        }
    }

    fn fault(&mut self, at: Duration, until: Duration) {
        let count = self.members.len();
        let member = self.dice.usize(..count);
        let other = (member + self.dice.usize(1..count)) % count;
        match self.dice.u8(..12) {
            0 | 1 => {
                let is_torn = self.dice.bool();
                self.schedule(at, Event::Crash { member, is_torn, is_disk_lost: false });
                self.schedule(until, Event::Start { member });
            }
            2 => {
                self.schedule(at, Event::Crash { member, is_torn: false, is_disk_lost: true });
                self.schedule(until, Event::Start { member });
            }
            3 | 4 => {
                let sides = (0..count).map(|_| self.dice.u8(..2)).collect();
                self.schedule(at, Event::Part { sides });
                self.schedule(until, Event::Part { sides: vec![0; count] });
            }
            5 => {
                let pair = pair(member, other);
                self.schedule(at, Event::Cut { pair, is_cut: true });
                self.schedule(until, Event::Cut { pair, is_cut: false });
            }
            6 => {
                for _ in 0..4 {
                    let at = self.moment(at, until + Duration::from_millis(1));
                    self.schedule(at, Event::Break { pair: pair(member, other) });
                }
            }
            7 => self.schedule(at, Event::Pause { member, until }),
            8 => self.schedule(at, Event::RestartAll),
            9 | 10 => self.schedule(at, Event::CrashLeader { until }),
            _ => self.schedule(at, Event::ChangeSettings { member }),
        }
    }
}
