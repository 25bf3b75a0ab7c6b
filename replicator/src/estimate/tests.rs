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
fn a_probe_finds_what_the_papers_block_does_not() {
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
    let first = BLOCK_FIRST;
    let block = rate(first, Tcp::new(ms(40), 50 * MBIT).send(first));
    assert!(block < 5 * MBIT, "the paper's block alone reads {} Mbit/s on 50", block / MBIT);
}

#[test]
fn a_slow_link_is_not_filled_by_its_probe() {
    // TR §8: at home, 28 KB/s.
    let (found, sent) = probe(Tcp::new(ms(150), 28_000));
    assert!(found.abs_diff(28_000) < 7_000, "{found}");
    assert!(sent <= 3 * BLOCK_FIRST, "{sent}");
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

#[test]
fn transfers_say_what_a_link_carries() {
    let mut estimate = Estimate::default();
    estimate.handle_round_trip(ms(40), ms(0));
    // Too few bytes, too short.
    estimate.handle_transfer(100 << 10, ms(1_000), ms(1));
    estimate.handle_transfer(1 << 20, ms(200), ms(2));
    assert_eq!(estimate.bandwidth(), None);
    estimate.handle_transfer(6_250_000, ms(1_000), ms(3));
    assert_eq!(estimate.bandwidth(), Some(6_250_000));
    // One that others slowed down says little, many of them say more; a faster one is believed at once.
    estimate.handle_transfer(1_250_000, ms(1_000), ms(4));
    assert_eq!(estimate.bandwidth(), Some(5_000_000));
    (0..20).for_each(|at| estimate.handle_transfer(1_250_000, ms(1_000), ms(5 + at)));
    assert!(estimate.bandwidth().is_some_and(|it| it < 1_300_000));
    estimate.handle_transfer(12_500_000, ms(1_000), ms(30));
    assert_eq!(estimate.bandwidth(), Some(12_500_000));
    estimate.handle_probe(1_000_000, ms(31));
    assert_eq!((estimate.bandwidth(), estimate.age(ms(31))), (Some(1_000_000), Some(ms(0))));
}

#[test]
fn who_was_not_measured_for_longest_is_next() {
    let mut all = vec![Estimate::default(); 3];
    let start = Duration::ZERO;
    assert_eq!(measure(&all, None, start), Measure::Call { member: 0, probe: true });
    all[0].handle_round_trip(ms(1), start);
    all[0].handle_probe(MBIT, start);
    assert_eq!(measure(&all, Some(start), ms(1)), Measure::Wait(PAUSE_YOUNG));
    assert_eq!(measure(&all, Some(start), PAUSE_YOUNG), Measure::Call { member: 1, probe: true });
    all[1].handle_round_trip(ms(1), PAUSE_YOUNG);
    all[2].handle_transfer(1 << 30, ms(10), ms(1));
    // All are known: the one that was measured first, and seldom.
    let later = YOUNG + ms(1);
    assert_eq!(measure(&all, None, later), Measure::Call { member: 0, probe: false });
    assert_eq!(measure(&all, Some(later), later), Measure::Wait(later + PAUSE_OLD));
    assert_eq!(measure(&[], None, start), Measure::Wait(PAUSE_YOUNG));
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
