//! Rate limits of links: token buckets, each for one link or shared by all links between two sites.
//!
//! A bucket fills at its rate up to its burst, and may be overdrawn: a caller that overdraws it has
//! to wait, and the next caller waits longer. A link pays for its messages after they were sent, a
//! little at a time ([`Share`]). So the next message is chosen as late as possible, and links that
//! share a bucket get equal numbers of bytes, whatever the size of their messages.
//!
//! Source: the generic cell rate algorithm (ITU-T I.371, annex A).
//!
//! Sans-I/O.

use std::time::Duration;

/// The least rate, in bytes a second: null calls and pings need some bandwidth.
pub const RATE_MIN: u64 = 256;
/// One payment of a link, in bytes. After it the next link has its turn.
pub const PAYMENT_BYTES: u64 = 4 << 10;

/// The greatest rate (bytes a second) and the greatest burst (bytes): more than any link carries.
pub const RATE_MAX: u64 = 1 << 40;

/// A payment that will be through within this time counts as paid, because timers are not finer. A
/// burst should therefore last some milliseconds, or the rate is not reached.
pub const SLACK: Duration = Duration::from_millis(1);

const NANOS: i128 = 1_000_000_000;

/// A token bucket: a rate in bytes a second and a burst in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u64,
    burst: u64,
    /// The time at which all bytes taken are paid, in nanoseconds times the rate, so that no
    /// fraction is lost. Negative if that was before the member started.
    paid: i128,
}

impl Bucket {
    /// Makes a full bucket of `burst` bytes, at most [`RATE_MAX`], that fills at `rate` bytes a
    /// second, brought between [`RATE_MIN`] and [`RATE_MAX`].
    pub fn new(rate: u64, burst: u64) -> Self {
        let burst = burst.min(RATE_MAX);
        Self { rate: rate.clamp(RATE_MIN, RATE_MAX), burst, paid: -i128::from(burst) * NANOS }
    }

    /// Takes `bytes` bytes. Returns how long the caller has to wait before it uses them.
    pub fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        let now = self.units(now);
        // Waits are rounded up by less than a nanosecond: the bytes of that time are not lost.
        let full = now - i128::from(self.burst) * NANOS - i128::from(self.rate);
        self.paid = self.paid.max(full) + i128::from(bytes) * NANOS;
        let wait = (self.paid - now).max(0).cast_unsigned().div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn units(&self, at: Duration) -> i128 {
        // Saturates 292 years after the member's start.
        let nanos = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        i128::from(nanos) * i128::from(self.rate)
    }
}

/// The debt of one link to a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    owed: u64,
    /// The time at which the bucket has the bytes of the last payment.
    through: Duration,
}

impl Share {
    /// Adds `bytes` sent bytes to the debt.
    pub fn handle_sent(&mut self, bytes: u64) {
        self.owed = self.owed.saturating_add(bytes);
    }

    /// Pays part of the debt. Returns when to ask again; `None` if all payments are through and
    /// less than [`PAYMENT_BYTES`] is owed, so that the next message may go.
    pub fn poll(&mut self, bucket: &mut Bucket, now: Duration) -> Option<Duration> {
        while self.through <= now + SLACK {
            // All links pay in equal amounts, so all get equal shares.
            if self.owed < PAYMENT_BYTES {
                return None;
            }
            self.owed -= PAYMENT_BYTES;
            self.through = now.saturating_add(bucket.take(now, PAYMENT_BYTES));
        }
        Some(self.through)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn is_about(found: Duration, expected: Duration) -> bool {
        found.abs_diff(expected) <= Duration::from_nanos(9)
    }

    fn check(takes: &[(u64, u64, u64)], rate: u64, burst: u64) {
        let mut bucket = Bucket::new(rate, burst);
        for (at, (ms, bytes, wait)) in takes.iter().enumerate() {
            let waits = bucket.take(Duration::from_millis(*ms), *bytes);
            assert!(is_about(waits, Duration::from_millis(*wait)), "take {at}: {waits:?}");
        }
    }

    #[test]
    fn a_full_bucket_gives_at_once_and_an_empty_one_at_its_rate() {
        check(&[(0, 1_000, 0), (0, 500, 500), (0, 500, 1_000), (1_000, 0, 0)], 1_000, 1_000);
        // It fills up to its burst while nobody takes.
        check(&[(0, 1_000, 0), (600, 600, 0), (9_000, 1_000, 0), (9_000, 1, 1)], 1_000, 1_000);
        check(&[(5_000, 1_000, 1_000), (5_000, 0, 1_000)], 1_000, 0);
    }

    #[test]
    fn a_stopped_clock_and_the_longest_times_do_no_harm() {
        let ages = Duration::MAX;
        let mut bucket = Bucket::new(u64::MAX, u64::MAX);
        assert_eq!(bucket.take(ages, RATE_MAX), Duration::ZERO);
        assert!(is_about(bucket.take(ages, RATE_MAX), SECOND));
        let mut bucket = Bucket::new(0, 0);
        for _ in 0..9 {
            assert!(Duration::from_hours(1 << 20) < bucket.take(Duration::ZERO, u64::MAX));
        }
    }

    /// Simulates links that always send messages of these sizes, until `last`. Returns their bytes.
    fn send(bucket: &mut Bucket, sizes: &[u64], last: Duration) -> Vec<u64> {
        let mut links: Vec<(Share, Duration, u64)> =
            sizes.iter().map(|_| (Share::default(), Duration::ZERO, 0)).collect();
        loop {
            let next = links.iter().enumerate().min_by_key(|(_, it)| it.1).map(|it| it.0);
            let at = next.unwrap();
            let (share, due, sent) = &mut links[at];
            if last < *due {
                return links.iter().map(|it| it.2).collect();
            }
            let now = *due;
            match share.poll(bucket, now) {
                Some(later) => *due = later,
                None => {
                    share.handle_sent(sizes[at]);
                    *sent += sizes[at];
                }
            }
        }
    }

    proptest! {
        /// Over any time, a busy bucket gives exactly its burst and its rate times that time.
        #[test]
        fn no_fraction_is_lost(
            rate in RATE_MIN..1_000_000_000,
            burst in 0u64..1 << 20,
            takes in prop::collection::vec(1u64..70_000, 1..200),
        ) {
            let mut bucket = Bucket::new(rate, burst);
            let (mut now, mut given) = (Duration::ZERO, 0u128);
            for bytes in takes {
                now += bucket.take(now, bytes);
                given += u128::from(bytes);
                let due = given.saturating_sub(u128::from(burst)) * NANOS.cast_unsigned();
                let exactly = due.div_ceil(u128::from(rate));
                prop_assert!(now.as_nanos().abs_diff(exactly) <= 1, "{now:?} for {exactly} ns");
            }
        }

        #[test]
        fn links_that_share_a_bucket_get_equal_shares(
            rate in 10_000u64..1_000_000,
            sizes in prop::collection::vec(64u64..65_536, 1..8),
        ) {
            let burst = 16 << 10;
            let mut bucket = Bucket::new(rate, burst);
            let seconds = 20 + 65_536 * 20 / rate;
            let sent = send(&mut bucket, &sizes, Duration::from_secs(seconds));
            let (all, most) = (sent.iter().sum::<u64>(), sizes.iter().max().unwrap());
            // Each link may still owe one message and a little more.
            let owed: u64 = sizes.iter().map(|it| it + PAYMENT_BYTES).sum::<u64>() + rate / 500;
            prop_assert!(all <= rate * seconds + burst + owed, "{sent:?}");
            prop_assert!(rate * seconds <= all + PAYMENT_BYTES * sizes.len() as u64, "{sent:?}");
            let between = sent.iter().max().unwrap() - sent.iter().min().unwrap();
            prop_assert!(between <= 2 * most + burst + 2 * PAYMENT_BYTES, "{sizes:?} {sent:?}");
        }
    }
}
