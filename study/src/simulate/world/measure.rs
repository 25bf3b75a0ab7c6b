//! Results of pulls, and the sums that give freshness and cost.
//!
//! Source: Adly §3.1 and §3.2, eq. 1 and 2, with the integral of the true history instead of λI/2.
//!
//! # Differences from the paper
//!
//! * An element is one stale element, however often it changed. The paper's count, in which each
//!   change is one more stale element, is kept as well.
//!
//! Sans-I/O.

/// Result of one pull: the changes since the pull before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PullResult {
    /// Number of distinct elements that changed.
    pub updates: u64,
    /// Number of changes.
    pub changes: u64,
    /// Number of present elements, N.
    pub elements: u64,
    /// Sum over the distinct changed elements of the time since their last change, in seconds.
    pub ages_secs: f64,
}

/// Sums since the start. [`since`](Self::since) gives the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Elements, integrated over time, in element seconds.
    pub element_secs: f64,
    /// Stale elements, integrated over time, in element seconds.
    pub stale_secs: f64,
    /// Changes not yet pulled, integrated over time: the paper's staleness, which may exceed the
    /// elements.
    pub counted_secs: f64,
    /// Number of pulls.
    pub pulls: u64,
    /// Number of distinct changed elements that the pulls found, summed over the pulls.
    pub updates: u64,
    /// Number of changes that the pulls found.
    pub changes: u64,
}

impl Totals {
    /// Returns the true freshness: the share of elements that are not stale, over elements and
    /// time, 0 to 1; 1 without elements.
    pub fn freshness(&self) -> f64 {
        (1.0 - self.share(self.stale_secs)).clamp(0.0, 1.0)
    }

    /// Returns the freshness of eq. 1, which may be below 0.
    pub fn freshness_printed(&self) -> f64 {
        1.0 - self.share(self.counted_secs)
    }

    /// Returns the sums since `earlier`, of the same repositories.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            element_secs: self.element_secs - earlier.element_secs,
            stale_secs: self.stale_secs - earlier.stale_secs,
            counted_secs: self.counted_secs - earlier.counted_secs,
            pulls: self.pulls.saturating_sub(earlier.pulls),
            updates: self.updates.saturating_sub(earlier.updates),
            changes: self.changes.saturating_sub(earlier.changes),
        }
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            element_secs: self.element_secs + other.element_secs,
            stale_secs: self.stale_secs + other.stale_secs,
            counted_secs: self.counted_secs + other.counted_secs,
            pulls: self.pulls.saturating_add(other.pulls),
            updates: self.updates.saturating_add(other.updates),
            changes: self.changes.saturating_add(other.changes),
        }
    }

    /// Adds the result of a pull.
    pub(super) fn count(&mut self, found: &PullResult) {
        self.pulls = self.pulls.saturating_add(1);
        self.updates = self.updates.saturating_add(found.updates);
        self.changes = self.changes.saturating_add(found.changes);
    }

    /// Adds a time without changes, with these numbers of elements, stale elements and changes.
    pub(super) fn pass(&mut self, secs: f64, [elements, stale, counted]: [u64; 3]) {
        self.element_secs += elements as f64 * secs;
        self.stale_secs += stale as f64 * secs;
        self.counted_secs += counted as f64 * secs;
    }

    fn share(&self, secs: f64) -> f64 {
        if 0.0 < self.element_secs { secs / self.element_secs } else { 0.0 }
    }
}
