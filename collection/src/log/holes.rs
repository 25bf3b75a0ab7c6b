//! Holes: serials whose acknowledged changes the log cannot provide until they are fetched or
//! gathered again.
//!
//! The hole of a damaged member has the serials in its header or, if the header is damaged, all
//! serials between its neighbors. Holes without any bytes (a file was cut short, or is gone) are
//! listed in the manifest. No cursor passes a hole: a feed ends before it, and a consumer there
//! waits.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::fmt;

/// Maximum number of ranges that are written to a header.
const NAMED_MAX: usize = 100;

/// A hole without bytes in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The last serial before it.
    pub(crate) base: u64,
    /// Its last serial; `base` if only notes are missing.
    pub(crate) last: u64,
    /// The last commit that may have had changes or notes in the hole.
    pub(crate) commit: u64,
}

/// Serials skipped after an unclean stop: those above the first number and up to the second.
/// Changes that were lost in that stop without being noticed may have had these serials. So a
/// consumer whose cursor is among them may know changes that are not in the log.
pub(crate) type Skip = (u64, u64);

/// Ranges of serials (above the first number, up to the second), ascending and not overlapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holes(Vec<(u64, u64)>);

impl Holes {
    /// Joins `ranges`, which may be in any order; empty ones are left out.
    pub(crate) fn of(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(base, last)| base < last).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (base, last) in ranges {
            match joined.last_mut() {
                Some(before) if base <= before.1 => before.1 = before.1.max(last),
                _ => joined.push((base, last)),
            }
        }
        Self(joined)
    }

    pub(crate) fn with(self, range: (u64, u64)) -> Self {
        Self::of(self.0.into_iter().chain([range]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the change with that serial is in a hole.
    pub(crate) fn has(&self, serial: u64) -> bool {
        self.after(serial.saturating_sub(1)).is_some_and(|(base, _)| base < serial)
    }

    /// Returns the first hole that a cursor at `since` has not passed yet; `None` if there is none.
    pub(crate) fn after(&self, since: u64) -> Option<(u64, u64)> {
        self.0.get(self.0.partition_point(|(_, last)| *last <= since)).copied()
    }
}

/// First and last serials, as in `Harvest-Missing`: `12-40,77-77`. If there are too many, the last
/// ones are written as one range with the serials between them: the header stays short, but may
/// report sound serials as missing.
impl fmt::Display for Holes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.last().map_or(0, |(_, last)| *last);
        for (at, (base, last)) in self.0.iter().take(NAMED_MAX).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let last = if at + 1 == NAMED_MAX { end } else { *last };
            write!(f, "{comma}{}-{last}", base + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn holes_that_touch_are_one() {
        let holes = Holes::of([(9, 12), (3, 5), (5, 7), (20, 20), (11, 11)]);
        assert_eq!(holes.to_string(), "4-7,10-12");
        assert_eq!(Holes::of([(4, 4)]), Holes::default());
        let many = Holes::of((0..10_000).map(|n| (3 * n, 3 * n + 1))).to_string();
        assert!(many.starts_with("1-1,4-4,") && many.ends_with(",298-29998"), "{many}");
        assert_eq!(many.split(',').count(), NAMED_MAX);
    }

    proptest! {
        #[test]
        fn a_serial_is_in_a_hole_if_it_is_in_a_range(
            ranges in prop::collection::vec((0..60_u64, 0..9_u64), 0..8),
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(base, n)| (base, base + n)).collect();
            let holes = Holes::of(ranges.iter().copied());
            for serial in 1..80 {
                let is_in = ranges.iter().any(|(base, last)| (base + 1..=*last).contains(&serial));
                prop_assert_eq!(holes.has(serial), is_in);
                let ahead = holes.after(serial).is_some();
                prop_assert_eq!(ahead, ranges.iter().any(|(base, last)| base < last && serial < *last));
            }
        }
    }
}
