//! How fast links may send: buckets of tokens, each for one link or shared by all links between two sites.
//!
//! A bucket fills at its rate up to its burst, and may be overdrawn: whoever takes what is not there yet is
//! told how long to wait, and whoever comes next waits behind. What a link has sent it pays for afterwards,
//! a little at a time ([`Share`]): so what it sends next is chosen as late as possible, and of several links
//! that share a bucket each gets as many bytes, whatever the size of its messages.
//!
//! Source: the generic cell rate algorithm (ITU-T I.371, annex A).
//!
//! Sans-I/O.

use std::time::Duration;

/// The least rate, in bytes a second: the null call and the keep-alive need some.
pub const RATE_MIN: u64 = 256;
/// What a link pays at once, in bytes. The next link's turn comes after so many.
pub const PAYMENT_BYTES: u64 = 4 << 10;

/// The greatest rate, in bytes a second, and the greatest burst, in bytes: beyond what any link has.
pub const RATE_MAX: u64 = 1 << 40;

/// What is due so soon counts as paid: timers are no finer. So a bucket's burst should last for some
/// milliseconds, or its rate is not reached.
pub const SLACK: Duration = Duration::from_millis(1);

const NANOS: i128 = 1_000_000_000;

/// So many bytes a second, and so many at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u64,
    burst: u64,
    /// When all that was taken will have come in, in bytes times nanoseconds at this rate: no fraction of a
    /// byte nor of a nanosecond is lost. Below 0 where it had come in before the member started.
    paid: i128,
}

impl Bucket {
    /// Makes a bucket that fills at `rate` bytes a second, from [`RATE_MIN`] to [`RATE_MAX`], and is full
    /// with `burst` bytes, as it is at first.
    #[must_use]
    pub fn new(rate: u64, burst: u64) -> Self {
        let burst = burst.min(RATE_MAX);
        Self { rate: rate.clamp(RATE_MIN, RATE_MAX), burst, paid: -i128::from(burst) * NANOS }
    }

    /// In bytes a second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Takes so many bytes; returns how long to wait until they are there. Whoever takes has to wait.
    pub fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        let now = self.units(now);
        // Waits are rounded up, by less than a nanosecond: what comes in then is not lost.
        let full = now - i128::from(self.burst) * NANOS - i128::from(self.rate);
        self.paid = self.paid.max(full) + i128::from(bytes) * NANOS;
        let wait = (self.paid - now).max(0).cast_unsigned().div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Goes on at another rate. What was taken stays taken.
    pub fn set_rate(&mut self, now: Duration, rate: u64) {
        let owed = self.paid - self.units(now);
        self.rate = rate.clamp(RATE_MIN, RATE_MAX);
        self.paid = self.units(now) + owed;
    }

    fn units(&self, at: Duration) -> i128 {
        // As far as 292 years from the member's start.
        let nanos = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        i128::from(nanos) * i128::from(self.rate)
    }
}

/// What one link owes a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    owed: u64,
    /// When its last payment is through.
    through: Duration,
}

impl Share {
    /// Takes note of what was sent.
    pub fn handle_sent(&mut self, bytes: u64) {
        self.owed = self.owed.saturating_add(bytes);
    }

    /// Pays a little of what is owed. Returns when to ask again; `None` when less than
    /// [`PAYMENT_BYTES`] is owed, and the next message may go.
    pub fn poll(&mut self, bucket: &mut Bucket, now: Duration) -> Option<Duration> {
        while self.through <= now + SLACK {
            // All pay as much in their turn, so that all get as much.
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
    fn what_is_there_is_given_at_once_and_the_rest_when_it_has_come() {
        check(&[(0, 1_000, 0), (0, 500, 500), (0, 500, 1_000), (1_000, 0, 0)], 1_000, 1_000);
        // It fills while nobody takes, and no further than to its burst.
        check(&[(0, 1_000, 0), (600, 600, 0), (9_000, 1_000, 0), (9_000, 1, 1)], 1_000, 1_000);
        check(&[(5_000, 1_000, 1_000), (5_000, 0, 1_000)], 1_000, 0);
    }

    #[test]
    fn a_rate_that_changes_changes_the_rest() {
        let mut bucket = Bucket::new(1_000, 0);
        assert!(is_about(bucket.take(SECOND, 1_000), SECOND));
        bucket.set_rate(SECOND + SECOND / 2, 250);
        assert_eq!(bucket.rate(), RATE_MIN);
        bucket.set_rate(SECOND + SECOND / 2, 500);
        // Of the 1,000 bytes 500 have come, and the others take a second now.
        assert!(is_about(bucket.take(SECOND + SECOND / 2, 0), SECOND));
    }

    #[test]
    fn a_clock_that_stands_or_years_that_pass_do_no_harm() {
        let ages = Duration::MAX;
        let mut bucket = Bucket::new(u64::MAX, u64::MAX);
        assert_eq!(bucket.take(ages, RATE_MAX), Duration::ZERO);
        assert!(is_about(bucket.take(ages, RATE_MAX), SECOND));
        let mut bucket = Bucket::new(0, 0);
        for _ in 0..9 {
            assert!(Duration::from_hours(1 << 20) < bucket.take(Duration::ZERO, u64::MAX));
        }
    }

    /// Links that always have something to send, each in messages of its own size, for so long: how many bytes
    /// each has sent.
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
        /// Over any time a bucket gives its burst and its rate, not a byte more, and not a byte less
        /// to whoever takes all the time.
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
        fn links_that_share_a_bucket_get_as_much_each(
            rate in 10_000u64..1_000_000,
            sizes in prop::collection::vec(64u64..65_536, 1..8),
        ) {
            let burst = 16 << 10;
            let mut bucket = Bucket::new(rate, burst);
            let seconds = 20 + 65_536 * 20 / rate;
            let sent = send(&mut bucket, &sizes, Duration::from_secs(seconds));
            let (all, most) = (sent.iter().sum::<u64>(), sizes.iter().max().unwrap());
            // Each may have sent a message that it has still to pay for, and a little more.
            let owed: u64 = sizes.iter().map(|it| it + PAYMENT_BYTES).sum::<u64>() + rate / 500;
            prop_assert!(all <= rate * seconds + burst + owed, "{sent:?}");
            prop_assert!(rate * seconds <= all + PAYMENT_BYTES * sizes.len() as u64, "{sent:?}");
            let between = sent.iter().max().unwrap() - sent.iter().min().unwrap();
            prop_assert!(between <= 2 * most + burst + 2 * PAYMENT_BYTES, "{sizes:?} {sent:?}");
        }

        #[test]
        fn a_rate_may_change_at_any_time(
            rates in prop::collection::vec(1u64..u64::MAX, 1..9),
            bytes in 0u64..1 << 40,
        ) {
            let mut bucket = Bucket::new(1_000, 1_000);
            let mut now = SECOND;
            for rate in rates {
                bucket.set_rate(now, rate);
                let wait = bucket.take(now, bytes);
                prop_assert!(wait <= bucket.clone().take(now, 1));
                prop_assert!((RATE_MIN..=RATE_MAX).contains(&bucket.rate()));
                now += Duration::from_millis(7);
            }
        }
    }
}
