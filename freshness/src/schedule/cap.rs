//! The cap: the maximum number of pulls in any minute.
//!
//! A tenth of them may come at once; the others follow evenly. So a schedule that asks for more
//! than the cap is late by seconds, instead of pulling in bursts with most of a minute in between.
//!
//! Differences from a sliding window: the state is one number, the time at which the next pull
//! would come if all had come evenly (the generic cell rate algorithm, ITU-T I.371 Annex A).
//!
//! Sans-I/O.

const MINUTE_MS: u64 = 60_000;

/// Part of a minute's pulls (1 in this many) that may come at once.
const BURST_SHARE: u64 = 10;

/// Microseconds of a millisecond: pulls may be less than a millisecond apart.
const MS_MICROS: u64 = 1_000;

/// The cap on the pulls in any minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Cap {
    most: u64,
    /// Time of the last pull, microseconds.
    last_micros: u64,
    /// Time of the next pull if all pulls came evenly, microseconds.
    even_micros: u64,
    /// Time between even pulls, microseconds.
    apart_micros: u64,
    /// Time by which a pull may be early, microseconds.
    early_micros: u64,
}

impl Cap {
    /// Returns a cap of `most` pulls a minute; 0 counts as 1.
    pub(super) fn new(most: u32) -> Self {
        let mut cap = Self::default();
        cap.set(most);
        cap
    }

    /// Changes the cap. If it is lower, the last minute may have had too many pulls already: the
    /// next pull waits until a minute after the last.
    pub(super) fn set(&mut self, most: u32) {
        let most = u64::from(most.max(1));
        let fewer = most < self.most;
        self.most = most;
        let burst = (most / BURST_SHARE).max(1);
        // In any minute the first `burst` pulls come at once, and the others at even distances.
        let rest = most - burst + 1;
        self.apart_micros = (MINUTE_MS * MS_MICROS).div_ceil(rest);
        self.early_micros = (burst - 1) * self.apart_micros;
        if fewer && 0 < self.even_micros {
            let past_micros = self.last_micros.saturating_add(MINUTE_MS * MS_MICROS);
            let even_micros = past_micros.saturating_add(self.early_micros);
            self.even_micros = self.even_micros.max(even_micros);
        }
    }

    /// Returns the time from which the next pull may begin.
    pub(super) fn next_ms(&self) -> u64 {
        self.even_micros.saturating_sub(self.early_micros).div_ceil(MS_MICROS)
    }

    pub(super) fn pass(&mut self, now_ms: u64) {
        let now_micros = now_ms.saturating_mul(MS_MICROS);
        self.even_micros = self.even_micros.max(now_micros).saturating_add(self.apart_micros);
        self.last_micros = now_micros;
    }

    /// Moves all times with a clock that was set.
    pub(super) fn handle_jump(&mut self, moved: impl Fn(u64) -> u64) {
        for micros in [&mut self.even_micros, &mut self.last_micros] {
            *micros = moved(micros.div_ceil(MS_MICROS)).saturating_mul(MS_MICROS);
        }
    }

    /// Moves later times to `now_ms`, to which the clock was set back.
    pub(super) fn handle_past(&mut self, now_ms: u64) {
        let now_micros = now_ms.saturating_mul(MS_MICROS);
        let ahead_micros = self.even_micros.saturating_sub(self.last_micros);
        self.last_micros = self.last_micros.min(now_micros);
        self.even_micros = self.even_micros.min(now_micros.saturating_add(ahead_micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of pulls that are all due at once, for ten minutes.
    fn pass_all(cap: &mut Cap) -> Vec<u64> {
        let mut times = Vec::new();
        while cap.next_ms() < 10 * MINUTE_MS {
            let now_ms = cap.next_ms().max(times.last().copied().unwrap_or(0));
            cap.pass(now_ms);
            times.push(now_ms);
        }
        times
    }

    #[test]
    fn no_minute_has_more_pulls_and_few_have_less() {
        for most in [1, 2, 3, 7, 60, 600, 100_000] {
            let times = pass_all(&mut Cap::new(most));
            let most = most as usize;
            for (n, time) in times.iter().enumerate() {
                let within = times[n..].partition_point(|it| *it < time + MINUTE_MS);
                assert!(within <= most, "{within} of {most} in the minute from {time}");
            }
            let least = 9 * 10 * most / 10;
            assert!(least <= times.len(), "{} in ten minutes at {most}", times.len());
        }
    }

    #[test]
    fn late_pulls_come_evenly() {
        let times = pass_all(&mut Cap::new(60));
        assert_eq!(times[..7], [0, 0, 0, 0, 0, 0, 1_091]);
        let gaps: Vec<u64> = times.windows(2).skip(6).map(|it| it[1] - it[0]).collect();
        assert!(gaps.iter().all(|it| (1_090..=1_091).contains(it)), "{gaps:?}");
    }

    #[test]
    fn a_clock_that_is_set_does_not_lift_the_cap() {
        let mut cap = Cap::new(3);
        for _ in 0..3 {
            cap.pass(cap.next_ms());
        }
        let next_ms = cap.next_ms();
        cap.handle_jump(|at| at + 1_000);
        assert_eq!(cap.next_ms(), next_ms + 1_000, "a minute is as long as before");
        cap.handle_past(5);
        assert!((5..=5 + MINUTE_MS).contains(&cap.next_ms()), "{}", cap.next_ms());
        cap.set(1);
        assert!(5 < cap.next_ms(), "the pulls before still count");
    }
}
