use proptest::prelude::*;

use super::*;
use crate::topology::{UNREACHABLE, cost};

const MBIT: u64 = 1_000_000 / 8;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// How long a block takes over TCP: the window opens from ten segments, doubled each round trip, up to what the
/// link holds; on a warm connection it is open already as far as the blocks before have opened it.
struct Tcp {
    round_trip: Duration,
    bandwidth: u64,
    window: u64,
}

impl Tcp {
    fn new(round_trip: Duration, bandwidth: u64) -> Self {
        Self { round_trip, bandwidth, window: 10 * 1_460 }
    }

    fn send(&mut self, mut bytes: u64) -> Duration {
        // Half a round trip there, and the answer back.
        let mut took = self.round_trip;
        loop {
            let sent = bytes.min(self.window);
            let on_wire = Duration::from_micros(sent * 1_000_000 / self.bandwidth);
            bytes -= sent;
            if bytes == 0 {
                return took + on_wire;
            }
            took += on_wire.max(self.round_trip);
            self.window = if on_wire < self.round_trip { self.window * 2 } else { self.window };
        }
    }
}

fn probe(mut tcp: Tcp) -> (u64, u64) {
    let (mut probe, mut step) = Probe::new(tcp.round_trip);
    let mut sent = 0;
    loop {
        match step {
            Step::Send(bytes) => {
                sent += bytes;
                step = probe.handle_sent(tcp.send(bytes));
            }
            Step::Done(found) => return (found, sent),
        }
    }
}

#[test]
fn a_probe_finds_what_a_link_carries() {
    for round_trip in [1, 10, 40, 100] {
        for mbit in [1, 2, 10, 50, 200] {
            let bandwidth = mbit * MBIT;
            let (found, sent) = probe(Tcp::new(ms(round_trip), bandwidth));
            let off = found.abs_diff(bandwidth) * 100 / bandwidth;
            // Beyond what four megabytes can fill, the window still opens.
            let is_long = 2 << 20 < bandwidth * round_trip / 1_000 * 4;
            assert!(
                off <= 25 || is_long,
                "{mbit} Mbit/s at {round_trip} ms are {} Mbit/s",
                found / MBIT
            );
            assert!(sent <= 2 * BLOCK_LAST);
        }
    }
}

#[test]
fn a_slow_link_is_not_filled_by_its_probe() {
    // TR §8: at home, 28 KB/s.
    let (found, sent) = probe(Tcp::new(ms(150), 28_000));
    assert!(found.abs_diff(28_000) < 2_800, "{found}");
    assert_eq!(sent, BLOCK_FIRST);
}

#[test]
fn a_probe_of_a_fast_link_sends_little() {
    for mbit in [1_000, 10_000] {
        let (found, sent) = probe(Tcp::new(Duration::from_micros(200), mbit * MBIT));
        assert!(50_000_000 <= found, "{found}");
        assert!(sent < 1 << 20, "{sent} bytes were sent at {mbit} Mbit/s");
    }
}

#[test]
fn a_probe_is_not_misled_by_much() {
    let block = |bytes: u64| ms(40) + Duration::from_micros(bytes * 1_000_000 / (50 * MBIT));
    let probe = |round_trip: Duration, took: &dyn Fn(u64) -> Duration| {
        let (mut probe, mut step) = Probe::new(round_trip);
        loop {
            match step {
                Step::Send(bytes) => step = probe.handle_sent(took(bytes)),
                Step::Done(found) => return found * 100 / (50 * MBIT),
            }
        }
    };
    // A round trip that was taken while the link was full.
    assert!((95..=125).contains(&probe(ms(900), &block)));
    // Small blocks that some buffer took at once, and a great one that was sent twice.
    let bursts = |bytes: u64| if bytes <= 256 << 10 { ms(41) } else { block(bytes) };
    assert!((95..=105).contains(&probe(ms(40), &bursts)));
    let lossy = |bytes: u64| if 2 << 20 <= bytes { block(bytes) * 2 } else { block(bytes) };
    assert!((95..=105).contains(&probe(ms(40), &lossy)));
    // An end that is late for a tenth of a second each time.
    let late = |bytes: u64| block(bytes) + ms(100);
    assert!((80..=105).contains(&probe(ms(40), &late)));
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
    // A way that has become longer is believed after a while.
    (0..8).for_each(|at| estimate.handle_round_trip(ms(80), ms(10 + at)));
    assert_eq!((estimate.round_trip(), estimate.age(ms(27))), (Some(ms(80)), Some(ms(10))));
}

/// Takes in transfers of a second each, one a minute: what is known after each.
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
fn transfers_say_what_a_link_carries() {
    let mut estimate = Estimate::default();
    estimate.handle_round_trip(ms(40), ms(0));
    // Too few bytes, too short.
    estimate.handle_transfer(100 << 10, ms(2_000), ms(1));
    estimate.handle_transfer(8 << 20, ms(900), ms(2));
    assert_eq!(estimate.bandwidth(), None);
    assert_eq!(transfers(&mut estimate, &[50]), [50]);
    // Slower ones were held back by something else, until there is nothing but such; a faster one is believed at
    // once.
    assert_eq!(transfers(&mut estimate, &[10, 9, 11, 10]), [50, 50, 50, 11]);
    assert_eq!(transfers(&mut estimate, &[100, 10]), [100, 100]);
    // However many there are in a minute, they are one.
    let now = estimate.measured.unwrap() + READING;
    (0..500).for_each(|at| estimate.handle_transfer(10 * MBIT, ms(1_000), now + ms(at * 100)));
    assert_eq!(estimate.bandwidth(), Some(100 * MBIT));
    assert_eq!(estimate.age(now + ms(50_000)), Some(ms(100)));
}

#[test]
fn a_probe_replaces_what_was_read_too_low() {
    let mut estimate = Estimate::default();
    transfers(&mut estimate, &[26]);
    let now = READING * 2;
    assert!(estimate.wants_probe(None, None, now));
    estimate.handle_probing(now);
    estimate.handle_probe(48 * MBIT, now);
    assert_eq!(estimate.bandwidth(), Some(48 * MBIT));
    // One says that it is slow, one that it is fast: a third one is to say.
    let wants = |it: &Estimate, now: Duration| it.wants_probe(None, None, now);
    let again = now + PROBE_PAUSE;
    assert!(!wants(&estimate, again - ms(1)) && wants(&estimate, again));
    // Unless the other end has found the same.
    assert!(!estimate.wants_probe(Some(45 * MBIT), None, again));
    // Which, of a transfer, is nothing new.
    let mut transferred = Estimate::default();
    transfers(&mut transferred, &[26, 26]);
    assert!(transferred.wants_probe(Some(26 * MBIT), None, again));
    assert!(estimate.wants_probe(Some(26 * MBIT), None, again));
    // If that has found more, two readings are not enough.
    estimate.handle_probe(48 * MBIT, now);
    assert!(!wants(&estimate, again) && estimate.wants_probe(Some(100 * MBIT), None, again));
    (0..2).for_each(|_| estimate.handle_probe(48 * MBIT, now));
    assert!(!estimate.wants_probe(Some(100 * MBIT), None, again));
    let later = now + PROBE_AGAIN;
    assert!(!wants(&estimate, later - ms(1)) && wants(&estimate, later));
}

#[test]
fn a_link_that_always_says_something_else_is_not_probed_all_the_time() {
    let (mut estimate, mut probes) = (Estimate::default(), Vec::new());
    for second in 0..3_600 {
        let now = Duration::from_secs(second);
        if estimate.wants_probe(None, None, now) {
            estimate.handle_probing(now);
            // As if each time another link.
            estimate.handle_probe(1 << (probes.len() % READINGS), now);
            probes.push(second);
        }
    }
    let pauses: Vec<u64> = probes.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(pauses[..7], [15, 30, 60, 120, 240, 480, 480]);
}

proptest! {
    /// Whatever transfers come, and however slow: none lowers what was read less than three readings before.
    #[test]
    fn what_was_held_back_lowers_nothing(
        high in 1u64..1_000,
        slower in prop::collection::vec((1u64..1_000, 1u64..100_000), 1..60),
    ) {
        let mut estimate = Estimate::default();
        estimate.handle_probe(high * MBIT, ms(0));
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

/// All of them may be probed at once.
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
fn who_was_not_measured_for_longest_is_next() {
    let mut all = vec![Estimate::default(); 3];
    let start = Duration::ZERO;
    let next = |all: &[Estimate], last, now| measure(&candidates(all), last, now);
    assert_eq!(next(&all, None, start), Measure::Call { member: 0, probe: true });
    all[0].handle_round_trip(ms(1), start);
    all[0].handle_probe(MBIT, start);
    all[0].handle_probe(MBIT, start);
    assert_eq!(next(&all, Some(start), ms(1)), Measure::Wait(PAUSE_YOUNG));
    assert_eq!(next(&all, Some(start), PAUSE_YOUNG), Measure::Call { member: 1, probe: true });
    all[1].handle_round_trip(ms(1), PAUSE_YOUNG);
    all[2].handle_transfer(2 * MBIT, ms(2_000), ms(1));
    // Those of which more is to be known go before who was not called for longest.
    let known = Duration::from_secs(20);
    assert_eq!(next(&all, None, known), Measure::Call { member: 2, probe: true });
    for it in &mut all[1..] {
        (0..2).for_each(|_| it.handle_probe(MBIT, known));
    }
    assert_eq!(next(&all, None, known), Measure::Call { member: 0, probe: false });
    // All are known: seldom.
    let later = YOUNG + ms(1);
    assert_eq!(next(&all, Some(later), later), Measure::Wait(later + PAUSE_OLD));
    assert_eq!(next(&[], None, start), Measure::Wait(PAUSE_YOUNG));
}

#[test]
fn who_has_just_come_is_probed_by_one_after_another() {
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
    // All call it at once, which costs nothing.
    for it in 0..9 {
        let probe = it == 0;
        assert_eq!(turn(it, ms(0)), Measure::Call { member: 0, probe });
        assert_eq!(turn(it, PAUSE_YOUNG * it), Measure::Call { member: 0, probe: true });
    }
}

#[test]
fn of_two_that_say_something_the_worse_counts() {
    let members = [11, 22, 33];
    let estimate = |millis: u64, bandwidth: u64| {
        let mut it = Estimate::default();
        it.handle_round_trip(ms(millis), Duration::ZERO);
        it.handle_probe(bandwidth, Duration::ZERO);
        it
    };
    let (good, bad) = (estimate(10, 4_000_000), estimate(30, 1_000_000));
    let row = |from: u64, to: u64, estimate: &Estimate, now: Duration| Row {
        from,
        sequence: 1,
        entries: vec![Entry::new(to, estimate, now)],
    };
    let now = Duration::ZERO;
    let mut called = Estimate::default();
    called.handle_round_trip(ms(1), now);
    let rows = [
        row(11, 22, &good, now),
        row(22, 11, &bad, now),
        row(33, 11, &good, LIFE - ms(60_000)),
        // Too old, of nobody, about nobody, and half known.
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
fn what_three_agree_on_is_taken_over_and_not_probed() {
    let check = |said: &[(u64, u64)], expected: Option<u64>| {
        assert_eq!(line(said), expected.map(|it| it * MBIT), "{said:?}");
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
    let now = Duration::from_secs(60);
    let mut estimate = Estimate::default();
    estimate.handle_line(50 * MBIT, now);
    assert_eq!(estimate.bandwidth(), Some(50 * MBIT));
    assert!(!estimate.wants_probe(None, Some(50 * MBIT), now));
    // What others say counts no more once they say something else, nor against what was measured.
    assert!(
        estimate.wants_probe(None, None, now) && estimate.wants_probe(None, Some(9 * MBIT), now)
    );
    estimate.handle_probe(80 * MBIT, now);
    estimate.handle_line(50 * MBIT, now);
    assert_eq!(estimate.bandwidth(), Some(80 * MBIT));
}
