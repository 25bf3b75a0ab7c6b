//! What the lines between sites carry: members of two sites share the line between them, so that what some have found
//! of it the others need not find once more.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Row, agree};

/// So many have to agree on what a line carries: one that lies is not enough.
const TELLERS: usize = 3;
/// Of what one member says of a line so many readings are looked at, the greatest first.
const SAID_OF_ONE_MAX: usize = 4;
/// And so many of what all say.
const SAID_MAX: usize = 64;

/// What the lines between sites carry, and within them, by what members say who have links over them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// In which site, by its number, a member is.
    sites: HashMap<u64, usize>,
    /// Between two sites, the lesser number first.
    found: BTreeMap<(usize, usize), Line>,
}

/// What a line carries, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The greatest bandwidth that three members agree on.
    Agreed(u64),
    /// As many have measured it, and found different things: this is in the middle.
    Disputed(u64),
}

impl Line {
    /// Bytes a second.
    pub fn bandwidth(self) -> u64 {
        let (Self::Agreed(it) | Self::Disputed(it)) = self;
        it
    }

    /// Bytes a second, if members agree on it.
    pub fn agreed(self) -> Option<u64> {
        match self {
            Self::Agreed(it) => Some(it),
            Self::Disputed(_) => None,
        }
    }

    /// What is made of what members say; none as long as they are too few. `said` are who says so and bytes a second,
    /// in any order.
    fn of(said: &[(u64, u64)]) -> Option<Self> {
        let count = |it: BTreeSet<u64>| TELLERS <= it.len();
        let is_agreed = |found: u64| {
            count(said.iter().filter(|it| agree(it.1, found)).map(|it| it.0).collect())
        };
        if let Some(most) = said.iter().map(|it| it.1).filter(|it| is_agreed(*it)).max() {
            return Some(Self::Agreed(most));
        }
        let mut all: Vec<u64> = said.iter().map(|it| it.1).collect();
        all.sort_unstable();
        let middle = all.get(all.len().checked_sub(1)? / 2).copied()?;
        count(said.iter().map(|it| it.0).collect()).then_some(Self::Disputed(middle))
    }
}

impl Lines {
    /// Reads the rows of members; `sites` says in which site each is. Whoever is in none is left out.
    pub fn new<'a>(sites: &Sites<'_>, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut said: BTreeMap<(usize, usize), Vec<(u64, u64)>> = BTreeMap::new();
        for row in rows {
            let Some(&from) = sites.of.get(&row.from) else { continue };
            let mut of_one: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
            for entry in &row.entries {
                // Few have been measured by whoever tells, of the many that are there.
                let Some(bandwidth) = entry.bandwidth() else { continue };
                let Some(&to) = sites.of.get(&entry.to) else { continue };
                of_one.entry((from.min(to), from.max(to))).or_default().push(bandwidth);
            }
            for (line, mut found) in of_one {
                found.sort_unstable_by(|a, b| b.cmp(a));
                let said = said.entry(line).or_default();
                let room = SAID_MAX.saturating_sub(said.len()).min(SAID_OF_ONE_MAX);
                said.extend(found.into_iter().take(room).map(|it| (row.from, it)));
            }
        }
        let found = said.iter().filter_map(|(line, said)| Some((*line, Line::of(said)?)));
        Self { found: found.collect(), sites: sites.of.clone() }
    }

    /// What the line carries that two members share; none if too few have measured it.
    pub fn between(&self, one: u64, other: u64) -> Option<Line> {
        let (one, other) = (*self.sites.get(&one)?, *self.sites.get(&other)?);
        self.found.get(&(one.min(other), one.max(other))).copied()
    }
}

/// Which members are in which site, and when each probes the line to another: members take turns at it, so that no two
/// probes of a line disturb each other, and so that those who come later find it measured.
///
/// Sites meet as the teams of a tournament, each in a round with one other, and in one round with itself. When all
/// have met, the next lap begins, with other members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites<'a> {
    of: HashMap<u64, usize>,
    /// Of each site, in the order of names, its members in the order of ids.
    members: Vec<(&'a str, Vec<u64>)>,
}

impl<'a> Sites<'a> {
    /// From the members' ids, with the names of their sites, in any order.
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

    /// In which turn, counted from 0, a member probes the line to another, unless it has been found by then. None if one
    /// of the two is in no site.
    pub fn turn(&self, from: u64, to: u64) -> Option<u32> {
        let (one, other) = (*self.of.get(&from)?, *self.of.get(&to)?);
        let (near, far) = (&self.members.get(one)?.1, &self.members.get(other)?.1);
        let (i, j) = (near.binary_search(&from).ok()?, far.binary_search(&to).ok()?);
        // In lap L the member L of a site probes member L of the other, and once more for each time around.
        let around = (j + far.len() - i % far.len()) % far.len();
        let is_near = one == other;
        let lap = i + near.len() * if is_near { around.checked_sub(1)? } else { around };
        let places = self.members.len().next_multiple_of(2);
        let round = match (one.min(other), one.max(other)) {
            _ if is_near => places - 1,
            (a, b) if b + 1 == places => 2 * a % (places - 1),
            (a, b) => (a + b) % (places - 1),
        };
        // In the first lap both ends probe: only together they have enough to say. Later one after the other.
        let rounds = if lap == 0 { 0 } else { 2 * lap - 1 + usize::from(other < one) };
        u32::try_from(rounds * places + round).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MBIT: u64 = 1_000_000 / 8;

    #[test]
    fn what_three_agree_on_is_what_a_line_carries() {
        let check = |said: &[(u64, u64)], expected: Option<u64>| {
            let expected = expected.map(|it| Line::Agreed(it * MBIT));
            assert_eq!(Line::of(said), expected, "{said:?}");
        };
        let said = |teller: u64, mbit: u64| (teller, mbit * MBIT);
        check(&[], None);
        check(&[said(1, 50), said(2, 48)], None);
        // One that says much has one voice.
        check(&[said(1, 900), said(1, 900), said(1, 900), said(2, 50)], None);
        check(&[said(1, 900), said(2, 46), said(3, 48), said(4, 50)], Some(50));
        check(
            &[said(1, 20), said(2, 20), said(3, 20), said(4, 48), said(5, 50), said(6, 49)],
            Some(50),
        );
        // What is fast is fast.
        check(&[said(1, 12_600), said(2, 16_600), said(3, 1_000)], Some(16_600));
        let disputed = [said(1, 900), said(2, 10), said(3, 50), said(3, 60)];
        assert_eq!(Line::of(&disputed), Some(Line::Disputed(50 * MBIT)));
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|it| format!("s{it:03}")).collect()
    }

    #[test]
    fn a_site_is_in_one_round_with_one_other() {
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
        /// In each turn a member probes one, at most, and of a line's two ends only the first lap's both.
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
