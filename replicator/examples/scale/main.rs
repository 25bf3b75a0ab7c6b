//! Scale of groups of 30, 300 and 3,000 members: their messages, the time of an update, and the
//! leader's work, in the worlds of the seeded simulations, with the state machines of `harvest`:
//!
//!     cargo run --release -p replicator --example scale [-- MEMBERS…]
//!     cargo run --release -p replicator --example scale -- memory MEMBERS
//!     cargo run --release -p replicator --example scale -- holdings MEMBERS
//!
//! docs/scale.md explains the numbers. Times of work are of this machine; all others are of the
//! simulated world, and the same in each run.

#![allow(clippy::print_stdout, reason = "the example prints its results")]
#![allow(clippy::print_stderr, reason = "the worlds say what is amiss")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that fails may panic")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a simulation are small")]

mod control;
mod leader;
mod update;

use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of members of a group here.
const GROUP: usize = 300;
/// Members of a site.
const SITE: usize = 10;
/// Members of each group that are in the group above too.
const CARRIERS: usize = 2;

/// Returns the groups of this many members; if there are several, the last is the one above them.
fn groups(members: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..members).collect();
    let mut groups: Vec<Vec<usize>> = all.chunks(GROUP).map(<[usize]>::to_vec).collect();
    if 1 < groups.len() {
        groups.push(groups.iter().flat_map(|it| &it[it.len() - CARRIERS..]).copied().collect());
    }
    groups
}

/// Returns the lines within groups: good in a site, random between sites.
fn lines(members: usize, seed: u64) -> HashMap<[usize; 2], (Duration, u64)> {
    let mut lines = HashMap::new();
    for (at, group) in groups(members).into_iter().enumerate() {
        let mut dice = fastrand::Rng::with_seed(seed + at as u64);
        let sites: Vec<usize> = group.iter().map(|it| it / SITE).collect();
        for ([a, b], line) in control::pairs(&mut dice, &sites) {
            lines.entry([group[a], group[b]]).or_insert(line);
        }
    }
    lines
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|it| it == "memory").is_some() {
        let members = arguments.next().expect("how many members?").parse().unwrap();
        println!("{} kB a member of a group of {members}", control::memory(members) / 1_000);
        return;
    }
    if arguments.next_if(|it| it == "holdings").is_some() {
        let members = arguments.next().expect("how many members?").parse().unwrap();
        control::settle(members, 1).hold();
        return;
    }
    let asked: Vec<usize> = arguments.map(|it| it.parse().unwrap()).collect();
    let sizes = if asked.is_empty() { vec![30, 300, 3_000] } else { asked };
    println!("What a leader computes\n");
    sizes.iter().for_each(|it| leader::print(*it));
    println!("\nAn update of 1 MiB in 64 chunks, from one member to all\n");
    update::Update::print_head();
    for members in &sizes {
        update::run(*members, 1).print();
    }
    println!("\nControl traffic of one group: messages and bytes a member and minute\n");
    for members in sizes.iter().filter(|it| **it <= GROUP) {
        let mut group = control::settle(*members, 1);
        group.print_joined();
        control::Rest::print_head();
        for (name, from, minutes) in [("first hour", 20, 5), ("later", 62, 30)] {
            group.rest(Duration::from_mins(from), Duration::from_mins(minutes)).print(name);
        }
        group.lose_leader();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds are those of docs/scale.md.
    #[test]
    fn thirty_members_send_no_more_than_documented() {
        let update = update::run(30, 1);
        assert_eq!(update.held, 30, "all have it");
        assert!(update.announcements <= 2 * update.links, "{update:?}");
        assert!(update.announcement_bytes <= 200 * update.announcements, "{update:?}");
        let minimum = update.bytes * 29;
        assert!(minimum <= update.sent && update.sent * 100 <= minimum * 105, "{update:?}");
        let mut group = control::settle(30, 1);
        let rest = group.rest(Duration::from_mins(4), Duration::from_mins(2));
        // All measure each other for the first time, and flood their rows.
        assert!(rest.bytes < 80_000.0, "{rest:?} a minute");
        assert!(group.charter_bytes() < 4_000);
    }

    #[test]
    fn groups_are_stitched_by_members_of_two() {
        let found = groups(3_000);
        assert_eq!(found.len(), 11);
        assert!(found.iter().all(|it| it.len() <= GROUP));
        assert_eq!(found[10].len(), 10 * CARRIERS);
        assert_eq!(groups(30), [(0..30).collect::<Vec<_>>()]);
    }
}
