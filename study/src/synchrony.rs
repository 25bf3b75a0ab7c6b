//! Synchrony: freshness of a source's harvested copy, from all its updates and harvests.
//!
//! Source: Liu §3: a harvested source is fresh at a time (1) if it has been harvested since its nearest update
//! before that time, otherwise not (0). The freshness of the service provider is the average over its sources.
//!
//! # Differences from the paper
//!
//! * [`Synchrony::share`] also averages over time, so one number rates a schedule.
//! * A source that was never harvested is not fresh.
//! * Adly's freshness counts elements; see [`freshness::metrics`].
//!
//! Sans-I/O.

/// Freshness of one harvested source. 40 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synchrony {
    at_secs: Option<i64>,
    is_fresh: bool,
    fresh_secs: u64,
    observed_secs: u64,
}

impl Synchrony {
    /// Takes in a change of the source at `at_secs`, in Unix seconds. Calls come in order of time; a step back
    /// counts as no time.
    pub fn handle_update(&mut self, at_secs: i64) {
        self.advance(at_secs);
        self.is_fresh = false;
    }

    /// Takes in a harvest of the source at `at_secs`, in Unix seconds.
    pub fn handle_harvest(&mut self, at_secs: i64) {
        self.advance(at_secs);
        self.is_fresh = true;
    }

    /// Returns whether the copy has all updates so far.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Returns the share of the time up to `until_secs` in which the copy was fresh, from 0 to 1; without any time,
    /// 1 if it is fresh, otherwise 0.
    pub fn share(&self, until_secs: i64) -> f64 {
        let mut to = *self;
        to.advance(until_secs);
        match to.observed_secs {
            0 => f64::from(u8::from(to.is_fresh)),
            secs => to.fresh_secs as f64 / secs as f64,
        }
    }

    fn advance(&mut self, at: i64) {
        let elapsed = self.at_secs.map_or(0, |before| at.saturating_sub(before));
        let elapsed = u64::try_from(elapsed).unwrap_or(0);
        self.at_secs = Some(at);
        self.observed_secs = self.observed_secs.saturating_add(elapsed);
        if self.is_fresh {
            self.fresh_secs = self.fresh_secs.saturating_add(elapsed);
        }
    }
}

/// Returns the freshness of the service provider: the average of its sources' (0 or 1 now, or shares of time); 1
/// without any source. Infinities and NaN are left out.
pub fn of_provider(freshness: impl IntoIterator<Item = f64>) -> f64 {
    let mut all = freshness::history::Moments::default();
    freshness.into_iter().for_each(|it| all.handle(it));
    all.mean().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u` is an update and `h` a harvest, one a second; the share is taken at the last one.
    #[track_caller]
    fn check(events: &str, is_fresh: bool, share: f64) {
        let mut found = Synchrony::default();
        for (at, event) in (0..).zip(events.chars()) {
            match event {
                'u' => found.handle_update(at),
                'h' => found.handle_harvest(at),
                _ => {}
            }
        }
        assert_eq!(found.is_fresh(), is_fresh, "{events}");
        let until = i64::try_from(events.len()).unwrap() - 1;
        assert!((found.share(until) - share).abs() < 1e-12, "{events}: {}", found.share(until));
    }

    #[test]
    fn a_copy_is_stale_from_the_update_to_the_harvest() {
        check("h", true, 1.0);
        check("u", false, 0.0);
        check("h....", true, 1.0);
        check("h..u.", false, 0.75);
        check("h.u.h", true, 0.5);
        check("u.h.uuh.", true, 3.0 / 7.0);
    }

    #[test]
    fn a_provider_is_as_fresh_as_its_sources_are_on_average() {
        assert!((of_provider([1.0, 0.0, 0.5, f64::NAN]) - 0.5).abs() < 1e-12);
        assert!((of_provider([]) - 1.0).abs() < 1e-12);
    }
}
