//! Paces: how fast the addresses of brokers have answered, and which are not asked for now.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use url::Url;

/// How much a new measurement counts.
const GAIN: f64 = 0.2;
/// Pause after the first failure in a row, and the longest: whoever fails is not asked meanwhile.
const REST: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// Number of failures in a row that are forgiven.
const FORGIVEN: u32 = 1;
/// After how many times the usual time another replica is asked, and the shortest and longest such wait.
const HEDGE: f64 = 2.0;
const HEDGE_WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// Maximum number of addresses that are known.
const KNOWN_MAX: usize = 20_000;

/// What is known of an address.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Usual time of an answer, in seconds.
    secs: Option<f64>,
    /// Failures in a row.
    failures: u32,
    rest_until: Option<Instant>,
}

/// The paces of all addresses.
#[derive(Debug, Default)]
pub(crate) struct Paces {
    known: HashMap<Url, Pace>,
}

impl Paces {
    /// Takes how long an answer took.
    pub(crate) fn answered(&mut self, url: &Url, took: Duration) {
        let pace = self.entry(url);
        let secs = took.as_secs_f64();
        pace.secs = Some(pace.secs.map_or(secs, |it| it + GAIN * (secs - it)));
        (pace.failures, pace.rest_until) = (0, None);
    }

    /// Takes that another one's answer came first, so long after this one was asked.
    pub(crate) fn outpaced(&mut self, url: &Url, waited: Duration) {
        let pace = self.entry(url);
        if pace.secs.is_none_or(|it| it < waited.as_secs_f64()) {
            pace.secs = Some(waited.as_secs_f64());
        }
    }

    /// Takes that no answer came.
    pub(crate) fn failed(&mut self, url: &Url, now: Instant) {
        let pace = self.entry(url);
        pace.failures = pace.failures.saturating_add(1);
        if let Some(beyond) = pace.failures.checked_sub(FORGIVEN + 1) {
            let rest = (REST.0 * 2_u32.saturating_pow(beyond)).min(REST.1);
            pace.rest_until = Some(now + rest);
        }
    }

    /// Returns whether an address is left alone for now.
    pub(crate) fn rests(&self, url: &Url, now: Instant) -> bool {
        self.known.get(url).and_then(|it| it.rest_until).is_some_and(|it| now < it)
    }

    /// Returns addresses in the order in which to ask them: the fastest first, those that rest last.
    pub(crate) fn ordered(&self, urls: &[Url], now: Instant) -> Vec<Url> {
        let mut ordered = urls.to_vec();
        let secs = |it: &Url| self.known.get(it).and_then(|it| it.secs).unwrap_or_default();
        ordered.sort_by(|a, b| {
            self.rests(a, now).cmp(&self.rests(b, now)).then_with(|| secs(a).total_cmp(&secs(b)))
        });
        ordered
    }

    /// Returns after which time to ask another replica, too.
    pub(crate) fn hedge(&self, url: &Url) -> Duration {
        let usual = self.known.get(url).and_then(|it| it.secs);
        let wait = usual.map_or(HEDGE_WAIT.1, |it| Duration::from_secs_f64(it * HEDGE));
        wait.clamp(HEDGE_WAIT.0, HEDGE_WAIT.1)
    }

    fn entry(&mut self, url: &Url) -> &mut Pace {
        if KNOWN_MAX <= self.known.len() && !self.known.contains_key(url) {
            self.known.clear();
        }
        self.known.entry(url.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_asked_first_and_who_fails_rests() {
        let [a, b, c] = ["http://a/", "http://b/", "http://c/"].map(|it| Url::parse(it).unwrap());
        let (mut paces, now) = (Paces::default(), net::clock::monotonic());
        let all = [a.clone(), b.clone(), c.clone()];
        assert_eq!(paces.ordered(&all, now), all);
        paces.answered(&a, Duration::from_millis(100));
        paces.answered(&b, Duration::from_millis(10));
        paces.answered(&c, Duration::from_millis(50));
        assert_eq!(paces.ordered(&all, now), [b.clone(), c.clone(), a.clone()]);
        assert_eq!(paces.hedge(&a).as_millis(), 200);
        assert_eq!(paces.hedge(&b).as_millis(), 20);
        paces.outpaced(&b, Duration::from_millis(5));
        assert_eq!(paces.ordered(&all, now)[0], b, "it is known to be slower than that");
        paces.outpaced(&b, Duration::from_millis(60));
        assert_eq!(paces.ordered(&all, now), [c.clone(), b.clone(), a.clone()]);
        paces.answered(&b, Duration::from_millis(10));
        paces.answered(&b, Duration::from_millis(10));
        assert_eq!(paces.ordered(&all, now), [b.clone(), c.clone(), a.clone()]);
        paces.failed(&b, now);
        assert!(!paces.rests(&b, now), "one failure is forgiven");
        paces.failed(&b, now);
        assert!(paces.rests(&b, now) && !paces.rests(&b, now + REST.0));
        assert_eq!(paces.ordered(&all, now), [c, a, b.clone()]);
        (0..100).for_each(|_| paces.failed(&b, now));
        assert!(paces.rests(&b, now + REST.1 / 2) && !paces.rests(&b, now + REST.1));
        paces.answered(&b, Duration::from_millis(10));
        assert!(!paces.rests(&b, now));
    }
}
