//! Measured freshness of a source's part of the collection, from the results of its pulls.
//!
//! Source: Adly §3.1. An element is stale from its change at the source until the pull that brings
//! the change. A pull knows both ends: every change carries its stamp. Averaged over the span since
//! the pull before, the stale share of the source's N elements is therefore
//!
//! ```text
//! Σ (pull time − stamp) / (N · span)
//! ```
//!
//! Freshness is 1 minus that share. Several pulls are averaged by their element-seconds (N · span).
//! Each older pull counts `1 − gain` times as much as the next, so the average follows a source
//! that changes its behavior.
//!
//! # Differences from the paper
//!
//! * Eq. 1 *predicts* freshness from λ and the interval; this *measures* it, irregular changes,
//!   slow pulls and outages included. The two agree when changes come evenly and pulls are
//!   instant (there is a test).
//! * An element that changes twice in one span counts twice, as in the paper's model, where every
//!   change makes one more element stale. Freshness is thus never overstated.
//! * Stamps are the source's clock. The mean age of a pull's changes is clamped to the possible
//!   range, so a wrong clock cannot push freshness above 1 or make one pull count for years.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

/// Maximum number of element-seconds of a pull, so that sums stay finite; a larger pull is ignored.
const SPAN_MAX: f64 = 1e30;

/// Decayed sums of one source's pulls, to seven digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Element-seconds stale.
    stale: f32,
    /// Element-seconds in all.
    all: f32,
}

/// The result of a pull: the changes in the span since the pull before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Length, seconds.
    pub secs: f64,
    /// Elements at the source, N.
    pub elements: u64,
    /// Number of changes found.
    pub changes: u64,
    /// Mean age of the changes when the pull ended, seconds; any value if there are none.
    pub age_secs: f64,
    /// Upper limit of the age, seconds: the time from the pull before to the end of this one.
    pub age_secs_max: f64,
}

impl Measured {
    /// Takes the next pull into the average; `gain` lies above 0 and up to 1.
    pub fn handle_span(&mut self, span: Span, gain: f64) {
        let all = span.secs * span.elements.max(1) as f64;
        if !(0.0 < all && all <= SPAN_MAX) {
            return;
        }
        // In this order, NaN becomes 0.
        let age = span.age_secs.max(0.0).min(span.age_secs_max);
        let stale = (span.changes as f64 * age).min(all);
        #[expect(clippy::cast_possible_truncation, reason = "seven digits of a mean will do")]
        let add = |sum: f32, now: f64| ((1.0 - gain) * f64::from(sum) + now) as f32;
        (self.stale, self.all) = (add(self.stale, stale), add(self.all, all));
    }

    /// Returns the nearest sensible sums; stored numbers may be any.
    pub(crate) fn checked(self) -> Self {
        let (stale, all) = (self.stale.max(0.0), self.all);
        if stale <= all && all.is_finite() { Self { stale, all } } else { Self::default() }
    }

    /// Returns freshness, 0 to 1; `None` before the first span.
    pub fn freshness(&self) -> Option<f64> {
        let stale = || f64::from(self.stale) / f64::from(self.all);
        (0.0 < self.all).then(|| (1.0 - stale()).clamp(0.0, 1.0))
    }
}

/// Returns the freshness of sources together: the mean by weight times elements (Adly §3.1, §6), as
/// for a policy's θ. Sources without a measurement and weights of NaN are left out; `None` if
/// nothing is left.
pub fn overall(sources: impl Iterator<Item = (Option<f64>, f64, u64)>) -> Option<f64> {
    let (mut sum, mut mass) = (0.0, 0.0);
    for (freshness, weight, elements) in sources {
        let own = weight * elements as f64;
        if let Some(freshness) = freshness.filter(|_| 0.0 < own && own.is_finite()) {
            sum += freshness * own;
            mass += own;
        }
    }
    (0.0 < mass).then(|| sum / mass)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAIN: f64 = 0.25;

    /// Simulates a source whose element `i % elements` changes at every multiple of `1 / rate`
    /// seconds, pulled every `interval` seconds, and compares the measurement with the truth: the
    /// stale share of elements, sampled every millisecond.
    fn check(rate: f64, elements: usize, interval: f64, tolerance: f64) {
        let mut measured = Measured::default();
        let (mut stale_now, mut stale_sum, mut looks) = (vec![false; elements], 0_usize, 0_usize);
        let (mut changed, mut last) = (Vec::new(), 0.0);
        let (mut changes, mut pulls) = (0_usize, 1_u64);
        for ms in 1..=120_000u64 {
            let now = ms as f64 / 1_000.0;
            while (changes as f64 + 0.5) / rate <= now {
                changed.push((changes as f64 + 0.5) / rate);
                stale_now[changes % elements] = true;
                changes += 1;
            }
            stale_sum += stale_now.iter().filter(|stale| **stale).count();
            looks += elements;
            if interval * pulls as f64 <= now {
                let age = changed.iter().map(|at| now - at).sum::<f64>() / changed.len() as f64;
                let secs = now - last;
                let (n, found) = (elements as u64, changed.len() as u64);
                let span =
                    Span { secs, elements: n, changes: found, age_secs: age, age_secs_max: secs };
                measured.handle_span(span, GAIN);
                stale_now.fill(false);
                changed.clear();
                (last, pulls) = (now, pulls + 1);
            }
        }
        let truth = 1.0 - stale_sum as f64 / looks as f64;
        let found = measured.freshness().unwrap();
        assert!((found - truth).abs() < tolerance, "measured {found}, true {truth}");
        let predicted = 1.0 - rate * interval / (2.0 * elements as f64);
        assert!((found - predicted).abs() < tolerance, "measured {found}, eq. 1 {predicted}");
    }

    #[test]
    fn measured_freshness_is_the_true_freshness() {
        check(10.0, 100, 2.0, 0.005);
        check(50.0, 100, 0.5, 0.005);
        check(1.0, 100, 20.0, 0.005);
        check(0.5, 10, 10.0, 0.005);
    }

    #[test]
    fn a_wrong_clock_is_held_to_the_span() {
        let mut measured = Measured::default();
        let span =
            Span { secs: 10.0, elements: 100, changes: 10, age_secs: -5_000.0, age_secs_max: 10.0 };
        measured.handle_span(span, GAIN);
        assert_eq!(measured.freshness(), Some(1.0));
        let mut measured = Measured::default();
        measured.handle_span(Span { age_secs: 5_000.0, ..span }, GAIN);
        assert_eq!(measured.freshness(), Some(0.9));
    }

    #[test]
    fn no_span_no_freshness() {
        let mut measured = Measured::default();
        let nothing =
            Span { secs: 0.0, elements: 5, changes: 0, age_secs: f64::NAN, age_secs_max: 3.0 };
        measured.handle_span(nothing, GAIN);
        assert_eq!(measured.freshness(), None);
        measured.handle_span(Span { secs: 3.0, ..nothing }, GAIN);
        assert_eq!(measured.freshness(), Some(1.0));
    }

    #[test]
    fn sources_count_by_their_size_and_weight() {
        let all = [(Some(1.0), 1.0, 300), (Some(0.5), 1.0, 100), (None, 1.0, 9_000)];
        assert_eq!(overall(all.into_iter()), Some(0.875));
        let weighed = [(Some(1.0), 1.0, 300), (Some(0.5), 3.0, 100), (Some(0.0), f64::NAN, 7)];
        assert_eq!(overall(weighed.into_iter()), Some(0.75));
        assert_eq!(overall([(None, 1.0, 5), (Some(0.5), 0.0, 5)].into_iter()), None);
    }
}
