//! Lines between sites: all members of two sites share their line, so a few measure it for all.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Row, agree};

/// Members that have to agree on a line's bandwidth, so that no single liar decides it.
const WITNESSES_MIN: usize = 3;
/// Maximum number of readings of one member that are used for a line: its greatest ones.
const READINGS_OF_ONE_MAX: usize = 4;
/// Maximum number of readings of all members that are used for a line.
const READINGS_MAX: usize = 64;

/// The bandwidths of the lines between and within sites, from the rows of their members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The number of each member's site.
    sites: HashMap<u64, usize>,
    /// The line between two sites, the smaller number first.
    between: BTreeMap<(usize, usize), Line>,
}

/// A line's bandwidth, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The greatest bandwidth that three members agree on.
    Agreed(u64),
    /// The median, if three members or more disagree.
    Disputed(u64),
}

impl Line {
    /// Returns the bandwidth, in bytes a second.
    pub fn bandwidth(self) -> u64 {
        let (Self::Agreed(it) | Self::Disputed(it)) = self;
        it
    }

    /// Returns the bandwidth, in bytes a second, if members agree on it.
    pub fn agreed(self) -> Option<u64> {
        match self {
            Self::Agreed(it) => Some(it),
            Self::Disputed(_) => None,
        }
    }

    /// Returns the line that these readings show; `None` if too few members have measured it.
    /// `readings` are pairs of a member and bytes a second, in any order.
    fn of(readings: &[(u64, u64)]) -> Option<Self> {
        let is_enough = |members: BTreeSet<u64>| WITNESSES_MIN <= members.len();
        let is_agreed = |rate: u64| {
            is_enough(readings.iter().filter(|it| agree(it.1, rate)).map(|it| it.0).collect())
        };
        if let Some(most) = readings.iter().map(|it| it.1).filter(|it| is_agreed(*it)).max() {
            return Some(Self::Agreed(most));
        }
        let mut all: Vec<u64> = readings.iter().map(|it| it.1).collect();
        all.sort_unstable();
        let median = all.get(all.len().checked_sub(1)? / 2).copied()?;
        is_enough(readings.iter().map(|it| it.0).collect()).then_some(Self::Disputed(median))
    }
}

impl Lines {
    /// Computes the lines from the members' rows. Members in none of the `sites` are left out.
    pub fn new<'a>(sites: &Sites<'_>, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut readings: BTreeMap<(usize, usize), Vec<(u64, u64)>> = BTreeMap::new();
        for row in rows {
            let Some(&from) = sites.of.get(&row.from) else { continue };
            let mut of_one: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
            for entry in &row.entries {
                // First the test that most entries fail: a member measures few of the others.
                let Some(bandwidth) = entry.bandwidth() else { continue };
                let Some(&to) = sites.of.get(&entry.to) else { continue };
                of_one.entry((from.min(to), from.max(to))).or_default().push(bandwidth);
            }
            for (line, mut rates) in of_one {
                rates.sort_unstable_by(|a, b| b.cmp(a));
                let all = readings.entry(line).or_default();
                let room = READINGS_MAX.saturating_sub(all.len()).min(READINGS_OF_ONE_MAX);
                all.extend(rates.into_iter().take(room).map(|it| (row.from, it)));
            }
        }
        let between = readings.iter().filter_map(|(line, all)| Some((*line, Line::of(all)?)));
        Self { between: between.collect(), sites: sites.of.clone() }
    }

    /// Returns the line that two members share; `None` if too few members have measured it.
    pub fn between(&self, one: u64, other: u64) -> Option<Line> {
        let (one, other) = (*self.sites.get(&one)?, *self.sites.get(&other)?);
        self.between.get(&(one.min(other), one.max(other))).copied()
    }
}

/// The members of each site, and their turns to probe lines. In turns, two probes of a line do not
/// disturb each other, and members with later turns find the line measured.
///
/// Sites meet like the teams of a tournament: in each round a site meets one other, and in one
/// round itself. When all have met, the next lap begins, in which other members probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites<'a> {
    /// The number of each member's site.
    of: HashMap<u64, usize>,
    /// The sites in the order of names, each with its members in the order of ids.
    members: Vec<(&'a str, Vec<u64>)>,
}

impl<'a> Sites<'a> {
    /// Makes the sites from the members' ids and the names of their sites, in any order.
    pub fn new(members: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let mut sites: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (id, site) in members {
            sites.entry(site).or_default().push(id);
        }
        let mut all: Vec<(&str, Vec<u64>)> = sites.into_iter().collect();
        let mut of = HashMap::new();
        for (number, (_, members)) in all.iter_mut().enumerate() {
            members.sort_unstable();
            of.extend(members.iter().map(|it| (*it, number)));
        }
        Self { of, members: all }
    }

    /// Returns the turn, counted from 0, in which `from` probes its line to `to`, unless the line
    /// is measured by then. `None` if one of them is in no site, or both are the same member.
    pub fn turn(&self, from: u64, to: u64) -> Option<u32> {
        let (one, other) = (*self.of.get(&from)?, *self.of.get(&to)?);
        let (near, far) = (&self.members.get(one)?.1, &self.members.get(other)?.1);
        let (i, j) = (near.binary_search(&from).ok()?, far.binary_search(&to).ok()?);
        // In lap L, members L of both sites are a pair; each time around shifts the pairs by one.
        let around = (j + far.len() - i % far.len()) % far.len();
        let is_near = one == other;
        let lap = i + near.len() * if is_near { around.checked_sub(1)? } else { around };
        let teams = self.members.len().next_multiple_of(2);
        let round = match (one.min(other), one.max(other)) {
            _ if is_near => teams - 1,
            (a, b) if b + 1 == teams => 2 * a % (teams - 1),
            (a, b) => (a + b) % (teams - 1),
        };
        // In the first lap both ends probe, because only together they have enough readings. In
        // later laps they probe one after the other.
        let rounds = if lap == 0 { 0 } else { 2 * lap - 1 + usize::from(other < one) };
        u32::try_from(rounds * teams + round).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MBIT: u64 = 1_000_000 / 8;

    #[test]
    fn a_line_has_the_greatest_bandwidth_that_three_agree_on() {
        let check = |readings: &[(u64, u64)], expected: Option<u64>| {
            let expected = expected.map(|it| Line::Agreed(it * MBIT));
            assert_eq!(Line::of(readings), expected, "{readings:?}");
        };
        let by = |member: u64, mbit: u64| (member, mbit * MBIT);
        check(&[], None);
        check(&[by(1, 50), by(2, 48)], None);
        // A member with many readings counts once.
        check(&[by(1, 900), by(1, 900), by(1, 900), by(2, 50)], None);
        check(&[by(1, 900), by(2, 46), by(3, 48), by(4, 50)], Some(50));
        check(&[by(1, 20), by(2, 20), by(3, 20), by(4, 48), by(5, 50), by(6, 49)], Some(50));
        // All fast readings agree.
        check(&[by(1, 12_600), by(2, 16_600), by(3, 1_000)], Some(16_600));
        let disputed = [by(1, 900), by(2, 10), by(3, 50), by(3, 60)];
        assert_eq!(Line::of(&disputed), Some(Line::Disputed(50 * MBIT)));
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|it| format!("s{it:03}")).collect()
    }

    #[test]
    fn a_site_meets_one_other_in_each_round() {
        for count in 1..20_u64 {
            let names = names(20);
            let sites = Sites::new((0..count).zip(names.iter().map(String::as_str)));
            let mut rounds: BTreeMap<(u64, u32), u64> = BTreeMap::new();
            for a in 0..count {
                for b in (0..count).filter(|it| *it != a) {
                    let turn = sites.turn(a, b).unwrap();
                    assert_eq!(sites.turn(b, a), Some(turn));
                    assert!(turn < 20, "{a} meets {b} of {count} in turn {turn}");
                    assert_eq!(rounds.insert((a, turn), b), None);
                }
            }
        }
    }

    proptest! {
        /// A member probes at most one other in a turn. Both ends of a line probe only in lap 0.
        #[test]
        fn members_take_turns_at_a_line(sizes in prop::collection::vec(1u64..6, 1..7)) {
            let names = names(7);
            let members = || {
                let of = |(site, size): (usize, &u64)| (0..*size).map(move |it| (site, it));
                sizes.iter().enumerate().flat_map(of)
            };
            // Ids are in another order than sites.
            let id = |(site, member): (usize, u64)| member * 100 + site as u64;
            let sites = Sites::new(members().map(|it| (id(it), names[it.0].as_str())));
            let mut by_line: BTreeMap<(usize, usize, u32), usize> = BTreeMap::new();
            let mut by_member = BTreeSet::new();
            for one in members() {
                for other in members().filter(|it| *it != one) {
                    let turn = sites.turn(id(one), id(other)).unwrap();
                    prop_assert!(by_member.insert((one, turn)), "{:?} twice in {}", one, turn);
                    let line = (one.0.min(other.0), one.0.max(other.0), turn);
                    let count = by_line.entry(line).or_default();
                    *count += 1;
                    let both = usize::from(one.0 != other.0 && turn < 8);
                    prop_assert!(*count <= 1 + both, "{:?} by {}", line, count);
                }
            }
            prop_assert_eq!(sites.turn(id((0, 0)), 77_777), None);
        }
    }
}
