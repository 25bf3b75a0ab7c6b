//! Exposure: the time by which a method divides the updates of a pull.
//!
//! Source: Cho and Garcia-Molina, "Estimating frequency of change", ACM TOIT 3 (2003): the
//! bias-reduced estimator, which uses whether each element changed, and the estimator that uses the
//! time of its last change.
//!
//! A record that changed counts as watched from that change to the pull; a record that did not
//! change, for all the time between the two pulls. The average of these times over all records is
//! the source's exposure, and its updates over its exposure are its rate.
//!
//! # Differences from the paper
//!
//! * Both estimators are for one element that is observed many times. Here they are for the N
//!   records of a source that are observed once, since all records are assumed to change alike.
//! * The number of known records is N, or U if that is more: deleted records have changed and are
//!   no longer counted in N.
//! * At most N of N records can have changed. If U exceeds N, the count estimator takes the larger
//!   of two answers: all N changed, or there were only the U changes seen. The estimate moves from
//!   one to the other without a jump, is never below U, and gives an empty source the plain count.
//! * If all records had the datestamp of now, as after a bulk load, the rate would be infinite. So
//!   a record counts as changing at most [`CHANGES_PER_RECORD_MAX`] times between two pulls.
//!
//! Sans-I/O.

use super::{Method, Pull};

/// Maximum number of changes of one record between two pulls.
pub const CHANGES_PER_RECORD_MAX: f64 = 64.0;

/// Returns the exposure of a source over the time before `pull`, in seconds: above 0 and at most
/// `elapsed_secs`, which must be finite and not negative. Returns 0 if `elapsed_secs` is 0.
pub(super) fn secs(method: Method, pull: Pull) -> f64 {
    let elapsed = pull.elapsed_secs;
    // An unknown N is taken as large; then all methods agree.
    let (Some(elements), true) = (pull.elements, pull.updates > 0) else { return elapsed };
    let ages = pull.ages_secs.filter(|it| !it.is_nan());
    let secs = match (method, ages) {
        (Method::Ewma, _) => elapsed,
        (Method::Datestamps, Some(ages)) => observed(pull.updates, elements, elapsed, ages),
        (Method::BiasReduced, _) | (Method::Datestamps, None) => {
            elapsed * (pull.updates as f64 / changes(pull.updates, elements))
        }
    };
    secs.max(elapsed / CHANGES_PER_RECORD_MAX).min(elapsed)
}

/// Returns the number of changes behind `updates` updated records of `elements`; at least
/// `updates`.
fn changes(updates: u64, elements: u64) -> f64 {
    let unchanged = elements.saturating_sub(updates);
    // −ln((N − U + 0.5) / (N + 0.5)), in a form that is exact for few changes of many.
    let each = (updates.min(elements) as f64 / (unchanged as f64 + 0.5)).ln_1p();
    (elements as f64 * each).max(updates as f64)
}

/// Returns the time from the pull back to a record's last change, or to the pull before, in
/// seconds, averaged over all records.
fn observed(updates: u64, elements: u64, elapsed: f64, ages: f64) -> f64 {
    let records = elements.max(updates) as f64;
    let unchanged = elements.saturating_sub(updates) as f64;
    (ages.clamp(0.0, updates as f64 * elapsed) + unchanged * elapsed) / records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(updates: u64, elements: u64, expected: f64) {
        let found = changes(updates, elements);
        assert!((found - expected).abs() <= 1e-6 * expected, "{updates} of {elements}: {found}");
    }

    #[test]
    fn changes_are_at_least_the_updates_seen() {
        check(0, 1_000, 0.0);
        check(0, 0, 0.0);
        check(7, 0, 7.0);
        // N ln(2N + 1) while that is more than U.
        check(1_000, 1_000, 7_601.402_335);
        check(5_000, 1_000, 7_601.402_335);
        check(9_000, 1_000, 9_000.0);
        check(1, 1_000_000_000_000, 1.0);
        check(u64::MAX, u64::MAX, u64::MAX as f64 * 45.054_566_8);
    }

    #[test]
    fn an_exposure_is_a_part_of_the_time() {
        let pull =
            Pull { updates: 5, elements: Some(10), elapsed_secs: 8.0, ages_secs: Some(16.0) };
        for (method, pull, expected) in [
            (Method::Ewma, pull, 8.0),
            // (16 + 5 · 8) / 10.
            (Method::Datestamps, pull, 5.6),
            (Method::Datestamps, Pull { updates: 0, ..pull }, 8.0),
            (Method::Datestamps, Pull { elements: None, ..pull }, 8.0),
            // An age is at most the time since the pull before.
            (Method::Datestamps, Pull { ages_secs: Some(1e9), ..pull }, 8.0),
            (Method::Datestamps, Pull { ages_secs: Some(-1e9), ..pull }, 4.0),
            // Five records, of which none is left.
            (Method::Datestamps, Pull { elements: Some(0), ..pull }, 3.2),
            (Method::Datestamps, Pull { elements: Some(5), ages_secs: Some(0.0), ..pull }, 0.125),
            (Method::BiasReduced, Pull { elements: Some(0), ..pull }, 8.0),
            (Method::BiasReduced, Pull { elapsed_secs: 0.0, ..pull }, 0.0),
        ] {
            let found = secs(method, pull);
            assert!((found - expected).abs() < 1e-12, "{method:?} {pull:?}: {found}");
        }
        let counted = secs(Method::BiasReduced, pull);
        let dateless = Pull { ages_secs: Some(f64::NAN), ..pull };
        assert!((secs(Method::Datestamps, dateless) - counted).abs() < 1e-12);
        // 10 ln(10.5 / 5.5).
        assert!((5.0 / counted - 6.466_272 / 8.0).abs() < 1e-6);
    }
}
