//! Tests of measuring: which members probe which lines.

use super::*;

#[test]
fn few_members_probe_the_line_that_all_share() {
    let (members, sites) = (12, 3);
    let mut net = TestNet::in_sites(members, sites);
    net.run(Duration::from_mins(10));
    let site = |it: MemberId| (1..=members).find(|seed| id(*seed) == it).unwrap() % sites;
    let mut by_line: BTreeMap<(u8, u8), Vec<Duration>> = BTreeMap::new();
    for (from, to, at) in &net.probes {
        let ends = (site(*from).min(site(*to)), site(*from).max(site(*to)));
        by_line.entry(ends).or_default().push(*at);
    }
    // Three lines between sites and three within them. Three or four members probe each line, and
    // later each of them once more.
    assert_eq!(by_line.len(), 6);
    for (ends, at) in &by_line {
        assert!((3..=8).contains(&at.len()), "{ends:?} at {at:?}");
    }
    // All report what they have found.
    for group in net.groups.values() {
        let rows = group.all_rows();
        assert_eq!(rows.len(), usize::from(members));
        for entry in rows.iter().flat_map(|it| &it.entries) {
            let off = entry.bandwidth().map(|it| it.abs_diff(1_000_000));
            assert!(off.is_some_and(|it| it < 1_000), "{entry:?}");
        }
    }
}

#[test]
fn probes_wait_for_transfers_but_not_for_ever() {
    let mut net = TestNet::in_sites(4, 2);
    let begin = loop {
        net.run(Duration::from_millis(500));
        let first = net.groups.get_mut(&id(1)).unwrap();
        first.handle_busy(net.now);
        if first.charter().is_some_and(|it| it.body().members.len() == 4) {
            break net.now;
        }
    };
    while net.now < begin + Duration::from_mins(8) {
        net.run(Duration::from_secs(5));
        let now = net.now;
        net.groups.get_mut(&id(1)).unwrap().handle_busy(now);
    }
    let by = |it: u8| net.probes.iter().filter(move |probe| probe.0 == id(it));
    assert!(by(1).all(|it| begin + Duration::from_mins(4) < it.2), "{:?}", net.probes);
    assert!(by(2).chain(by(3)).any(|it| it.2 < begin + Duration::from_mins(2)));
}

#[test]
fn a_line_probed_during_transfers_is_probed_again_afterwards() {
    let mut net = TestNet::in_sites(6, 2);
    (1..=5).for_each(|it| net.hold(it, 1, 1));
    net.run(Duration::from_mins(50));
    let is_across = |it: &&(MemberId, MemberId, Duration)| {
        let site = |it: MemberId| (1..=6).find(|seed| id(*seed) == it).unwrap() % 2;
        site(it.0) != site(it.1)
    };
    let of_last = |net: &TestNet| net.probes.iter().filter(is_across).map(|it| it.2).collect();
    let beside: Vec<Duration> = of_last(&net);
    assert!(beside.iter().all(|it| *it < Duration::from_mins(10)), "{beside:?}");
    assert!(3 <= beside.len());
    net.hold(6, 1, 1);
    let level = net.now;
    net.run(Duration::from_mins(10));
    let mut after: Vec<Duration> = of_last(&net);
    after.retain(|it| level < *it);
    assert!((3..=8).contains(&after.len()), "{beside:?}, {after:?}");
    net.run(Duration::from_hours(3));
    let all: Vec<Duration> = of_last(&net);
    assert_eq!(all.len(), beside.len() + after.len(), "{all:?}");
}
