use proptest::prelude::*;

use super::*;
use crate::topology::{UNREACHABLE, cost};

const MBIT: u64 = 1_000_000 / 8;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn the_shortest_of_the_last_round_trips_counts() {
    let mut estimate = Estimate::default();
    assert_eq!(
        (estimate.round_trip(), estimate.bandwidth(), estimate.age(ms(9))),
        (None, None, None)
    );
    for (at, took) in [50, 41, 90].into_iter().enumerate() {
        estimate.handle_round_trip(ms(took), ms(at as u64));
    }
    assert_eq!(estimate.round_trip(), Some(ms(41)));
    // A longer round trip counts when the last eight were longer.
    (0..8).for_each(|at| estimate.handle_round_trip(ms(80), ms(10 + at)));
    assert_eq!((estimate.round_trip(), estimate.age(ms(27))), (Some(ms(80)), Some(ms(10))));
}

/// Takes in transfers of a second each, one a minute. Returns the bandwidth after each, in Mbit/s.
fn transfers(estimate: &mut Estimate, rates: &[u64]) -> Vec<u64> {
    let first = estimate.measured.unwrap_or_default();
    let known = (1..).zip(rates).map(|(turn, rate)| {
        let now = first + READING * turn;
        estimate.handle_transfer(rate * MBIT, ms(1_000), now);
        estimate.bandwidth().unwrap() / MBIT
    });
    known.collect()
}

#[test]
fn transfers_show_a_links_bandwidth() {
    let mut estimate = Estimate::default();
    estimate.handle_round_trip(ms(40), ms(0));
    // Too few bytes, too short.
    estimate.handle_transfer(100 << 10, ms(2_000), ms(1));
    estimate.handle_transfer(8 << 20, ms(900), ms(2));
    assert_eq!(estimate.bandwidth(), None);
    assert_eq!(transfers(&mut estimate, &[50]), [50]);
    // Slower transfers count once all readings are slower; a faster one counts at once.
    assert_eq!(transfers(&mut estimate, &[10, 9, 11, 10]), [50, 50, 50, 11]);
    assert_eq!(transfers(&mut estimate, &[100, 10]), [100, 100]);
    // All transfers of a minute are one reading.
    let now = estimate.measured.unwrap() + READING;
    (0..500).for_each(|at| estimate.handle_transfer(10 * MBIT, ms(1_000), now + ms(at * 100)));
    assert_eq!(estimate.bandwidth(), Some(100 * MBIT));
    assert_eq!(estimate.age(now + ms(50_000)), Some(ms(100)));
}

#[test]
fn a_probe_corrects_a_reading_that_was_too_low() {
    let mut estimate = Estimate::default();
    transfers(&mut estimate, &[26]);
    let now = READING * 2;
    assert!(estimate.wants_probe(None, None, now));
    estimate.handle_probing(now);
    estimate.handle_probe(48 * MBIT, false, now);
    assert_eq!(estimate.bandwidth(), Some(48 * MBIT));
    // A slow and a fast reading: a third has to decide.
    let wants = |it: &Estimate, now: Duration| it.wants_probe(None, None, now);
    let again = now + PROBE_PAUSE;
    assert!(!wants(&estimate, again - ms(1)) && wants(&estimate, again));
    // If the other end reports the same, only one more probe is wanted, a while later.
    assert!(!estimate.wants_probe(Some(45 * MBIT), None, again));
    let once_more = now + PROBE_ONCE_MORE;
    assert!(!estimate.wants_probe(Some(45 * MBIT), None, once_more - ms(1)));
    assert!(estimate.wants_probe(Some(45 * MBIT), None, once_more));
    // The other end's report of the same transfer does not count.
    let mut transferred = Estimate::default();
    transfers(&mut transferred, &[26, 26]);
    assert!(transferred.wants_probe(Some(26 * MBIT), None, again));
    assert!(estimate.wants_probe(Some(26 * MBIT), None, again));
    // If the other end reports more, two readings are not enough.
    estimate.handle_probe(48 * MBIT, false, once_more);
    let again = once_more + PROBE_PAUSE;
    assert!(!wants(&estimate, again) && estimate.wants_probe(Some(100 * MBIT), None, again));
    (0..2).for_each(|_| estimate.handle_probe(48 * MBIT, false, once_more));
    assert!(!estimate.wants_probe(Some(100 * MBIT), None, again + PROBE_ONCE_MORE));
    let later = once_more + PROBE_AGAIN;
    assert!(!wants(&estimate, later - ms(1)) && wants(&estimate, later));
}

#[test]
fn a_probe_beside_other_traffic_is_repeated() {
    let mut estimate = Estimate::default();
    let mut now = Duration::ZERO;
    let mut find = |rate, has_cross_traffic| {
        now += PROBE_ONCE_MORE;
        let is_wanted = estimate.wants_probe(None, None, now);
        estimate.handle_probing(now);
        estimate.handle_probe(rate, has_cross_traffic, now);
        is_wanted
    };
    // Another probe is wanted no matter how often the rate was the same.
    assert!((0..3).all(|_| find(26 * MBIT, true)));
    assert!(find(48 * MBIT, false) && find(48 * MBIT, false));
    assert!(!find(48 * MBIT, false));
    // Transfers do not confirm such a probe: they may be the cross traffic.
    let mut estimate = Estimate::default();
    estimate.handle_probe(26 * MBIT, true, ms(0));
    transfers(&mut estimate, &[26, 26]);
    let last = estimate.measured.unwrap();
    assert!(estimate.wants_probe(None, None, last + PROBE_ONCE_MORE));
}

#[test]
fn a_link_whose_readings_never_agree_is_probed_ever_less_often() {
    let (mut estimate, mut probes) = (Estimate::default(), Vec::new());
    for second in 0..3_600 {
        let now = Duration::from_secs(second);
        if estimate.wants_probe(None, None, now) {
            estimate.handle_probing(now);
            // Each time another rate.
            estimate.handle_probe(1 << (probes.len() % READINGS), false, now);
            probes.push(second);
        }
    }
    let pauses: Vec<u64> = probes.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(pauses[..6], [40, 80, 160, 320, 640, 640]);
}

proptest! {
    /// No transfer, however slow, lowers the bandwidth while a greater reading is remembered.
    #[test]
    fn slow_transfers_do_not_lower_the_bandwidth(
        high in 1u64..1_000,
        slower in prop::collection::vec((1u64..1_000, 1u64..100_000), 1..60),
    ) {
        let mut estimate = Estimate::default();
        estimate.handle_probe(high * MBIT, false, ms(0));
        let mut last = Duration::ZERO;
        for (percent, after) in slower {
            last += ms(after);
            if READING * 3 <= last {
                break;
            }
            estimate.handle_transfer(high * MBIT * percent / 1_000, ms(1_000), last);
            prop_assert_eq!(estimate.bandwidth(), Some(high * MBIT));
        }
    }
}

/// Candidates that may all be probed at once.
fn candidates(all: &[Estimate]) -> Vec<Candidate<'_>> {
    all.iter()
        .map(|estimate| Candidate {
            estimate,
            theirs: None,
            line: None,
            probe_from: Duration::ZERO,
        })
        .collect()
}

#[test]
fn the_member_with_the_oldest_measurement_is_next() {
    let mut all = vec![Estimate::default(); 3];
    let start = Duration::ZERO;
    let next = |all: &[Estimate], last, now| measure(&candidates(all), last, now);
    assert_eq!(next(&all, None, start), Measure::Call { member: 0, probe: true });
    all[0].handle_round_trip(ms(1), start);
    all[0].handle_probe(MBIT, false, start);
    all[0].handle_probe(MBIT, false, start);
    assert_eq!(next(&all, Some(start), ms(1)), Measure::Wait(PAUSE_NEW));
    assert_eq!(next(&all, Some(start), PAUSE_NEW), Measure::Call { member: 1, probe: true });
    all[1].handle_round_trip(ms(1), PAUSE_YOUNG);
    all[2].handle_transfer(2 * MBIT, ms(2_000), ms(1));
    // A member to probe goes before the one with the oldest measurement.
    let known = Duration::from_secs(20);
    assert_eq!(next(&all, None, known), Measure::Call { member: 2, probe: true });
    let lasting = known + READING;
    for it in &mut all {
        it.handle_probe(MBIT, false, known);
        it.handle_probe(MBIT, false, lasting);
    }
    all[0].measured = Some(known);
    assert_eq!(next(&all, None, lasting), Measure::Call { member: 0, probe: false });
    // All estimates are settled: measurements are rare.
    let later = YOUNG + ms(1);
    assert_eq!(next(&all, Some(later), later), Measure::Wait(later + PAUSE_OLD));
    assert_eq!(next(&[], None, start), Measure::Wait(PAUSE_YOUNG));
}

#[test]
fn a_new_member_is_probed_by_one_after_another() {
    let new = Estimate::default();
    let turn = |turn: u32, now: Duration| {
        let all = [Candidate {
            estimate: &new,
            theirs: None,
            line: None,
            probe_from: PAUSE_YOUNG * turn,
        }];
        measure(&all, None, now)
    };
    // All call it at once, because calls cost nothing.
    for it in 0..9 {
        let probe = it == 0;
        assert_eq!(turn(it, ms(0)), Measure::Call { member: 0, probe });
        assert_eq!(turn(it, PAUSE_YOUNG * it), Measure::Call { member: 0, probe: true });
    }
}

#[test]
fn the_worse_of_two_reports_on_a_link_counts() {
    let members = [11, 22, 33];
    let estimate = |millis: u64, bandwidth: u64| {
        let mut it = Estimate::default();
        it.handle_round_trip(ms(millis), Duration::ZERO);
        it.handle_probe(bandwidth, false, Duration::ZERO);
        it
    };
    let (good, bad) = (estimate(10, 4_000_000), estimate(30, 1_000_000));
    let row = |from: u64, to: u64, estimate: &Estimate, now: Duration| Row {
        from,
        sequence: 1,
        entries: vec![LinkEstimate::new(to, estimate, now)],
    };
    let now = Duration::ZERO;
    let mut called = Estimate::default();
    called.handle_round_trip(ms(1), now);
    let rows = [
        row(11, 22, &good, now),
        row(22, 11, &bad, now),
        row(33, 11, &good, LIFE - ms(60_000)),
        // Too old, by a stranger, about a stranger, and without a bandwidth.
        row(22, 33, &good, LIFE),
        row(44, 33, &good, now),
        row(33, 44, &good, now),
        row(33, 22, &called, now),
    ];
    let costs = costs(&members, &rows, 1_000_000);
    let near = |a: u32, b: u32| a.abs_diff(b) <= b / 1_000;
    assert!(near(costs.get(0, 1), cost(ms(30), 1_000_000, 1_000_000)));
    assert!(near(costs.get(0, 2), cost(ms(10), 4_000_000, 1_000_000)));
    assert_eq!(costs.get(1, 2), UNREACHABLE);
}

#[test]
fn in_the_largest_group_all_are_measured_again_before_they_are_forgotten() {
    let others = u32::try_from(crate::group::charter::MEMBERS_MAX - 1).unwrap();
    assert!(PAUSE_OLD * others < LIFE - LIFE / 10);
}

#[test]
fn a_line_that_others_have_measured_is_not_probed() {
    let now = Duration::from_secs(60);
    let line = Some(50 * MBIT);
    let mut estimate = Estimate::default();
    assert!(!estimate.wants_probe(None, line, now) && estimate.wants_probe(None, None, now));
    // A member whose reading is lower tries again until its readings agree.
    for turn in 1..=4 {
        let now = now + PROBE_AGAIN / 4 * (turn - 1);
        assert!(estimate.wants_probe(None, line, now) == (turn != 1), "{turn}");
        estimate.handle_probing(now);
        estimate.handle_probe(20 * MBIT, false, now);
        assert!(!estimate.wants_probe(None, line, now));
    }
    let last = now + PROBE_AGAIN / 4 * 3;
    let sure = last + PROBE_PAUSE * 16;
    assert!(!estimate.wants_probe(None, line, sure));
    // After twelve hours it probes again.
    assert!(estimate.wants_probe(None, line, last + PROBE_AGAIN));
    // Two readings that agree with the line settle it.
    estimate.handle_probe(49 * MBIT, false, sure);
    let again = sure + PROBE_PAUSE * 16;
    assert!(estimate.wants_probe(None, line, again));
    estimate.handle_probe(49 * MBIT, false, again);
    assert!(!estimate.wants_probe(None, line, again + PROBE_PAUSE * 16));
}
