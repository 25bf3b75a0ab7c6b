//! The debounce: collects the paths of a watcher's events until there have been no events for a
//! moment.
//!
//! A program that saves a file touches the file several times, and unpacking an archive touches
//! thousands of files. Reading at the first event might read half a file, and waiting for silence
//! might take forever.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time without events before the paths are returned.
pub const QUIET: Duration = Duration::from_millis(150);

/// Maximum time that the first path waits.
pub const WAIT_MAX: Duration = Duration::from_millis(500);

/// Maximum number of paths that are collected; if there are more, everything is walked.
pub const PATHS_MAX: usize = 10_000;

/// Paths that have to be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// These paths and everything below them, in order; none lies below another.
    Paths(Vec<PathBuf>),
    /// Everything: events were lost.
    Everything,
}

/// Collector of paths, with the times of their events.
#[derive(Debug, Default)]
pub struct Debounce {
    paths: BTreeSet<PathBuf>,
    everything: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Debounce {
    /// Adds a changed path. If that would exceed [`PATHS_MAX`], notes lost events and returns
    /// false.
    pub fn handle_path(&mut self, path: &Path, now: Instant) -> bool {
        self.tick(now);
        if self.everything || self.paths.contains(path) {
            return true;
        }
        let fits = self.paths.len() < PATHS_MAX;
        if fits {
            self.paths.insert(path.to_path_buf());
        } else {
            self.handle_overflow(now);
        }
        fits
    }

    /// Notes that events were lost.
    pub fn handle_overflow(&mut self, now: Instant) {
        self.tick(now);
        self.everything = true;
        self.paths.clear();
    }

    /// Returns when [`Debounce::poll_touched`] will return paths; `None` if there are none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        Some((self.last? + QUIET).min(self.first? + WAIT_MAX))
    }

    /// Returns the paths to look at; `None` if it is not time yet.
    pub fn poll_touched(&mut self, now: Instant) -> Option<Touched> {
        if now < self.poll_timeout()? {
            return None;
        }
        (self.first, self.last) = (None, None);
        if std::mem::take(&mut self.everything) {
            return Some(Touched::Everything);
        }
        let mut kept: Vec<PathBuf> = Vec::new();
        // A path sorts directly before the paths below it, as paths compare by component.
        for path in std::mem::take(&mut self.paths) {
            if !kept.last().is_some_and(|above| path.starts_with(above)) {
                kept.push(path);
            }
        }
        Some(Touched::Paths(kept))
    }

    fn tick(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays events of the form (milliseconds, path), where an empty path is an overflow. Polls
    /// every millisecond, and compares the results with `expected`, which has the same form.
    #[track_caller]
    fn check(events: &[(u64, &str)], expected: &[(u64, &[&str])]) {
        #[expect(clippy::disallowed_methods, reason = "an instant to count from")]
        let start = Instant::now();
        let mut debounce = Debounce::default();
        let mut seen = Vec::new();
        for ms in 0..3_000 {
            let now = start + Duration::from_millis(ms);
            for (_, path) in events.iter().filter(|(at, _)| *at == ms) {
                if path.is_empty() {
                    debounce.handle_overflow(now);
                } else {
                    debounce.handle_path(Path::new(path), now);
                }
            }
            if let Some(touched) = debounce.poll_touched(now) {
                seen.push((ms, touched));
            }
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|(ms, paths)| match paths {
                [] => (*ms, Touched::Everything),
                paths => (*ms, Touched::Paths(paths.iter().map(PathBuf::from).collect())),
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(debounce.poll_timeout(), None);
    }

    #[test]
    fn paths_come_out_after_a_quiet_moment() {
        check(&[(10, "/a"), (20, "/b"), (30, "/a")], &[(180, &["/a", "/b"])]);
        check(&[(10, "/a"), (500, "/a")], &[(160, &["/a"]), (650, &["/a"])]);
    }

    #[test]
    fn no_path_waits_longer_than_the_maximum() {
        let busy: Vec<_> = (0..10).map(|n| (n * 100, "/a")).collect();
        check(&busy, &[(500, &["/a"]), (1_000 + 50, &["/a"])]);
    }

    #[test]
    fn paths_below_another_path_are_merged_into_it() {
        check(&[(0, "/a/b/c"), (0, "/a/b"), (0, "/a/b-c")], &[(150, &["/a/b", "/a/b-c"])]);
    }

    #[test]
    fn lost_events_mean_everything() {
        check(&[(0, "/a"), (1, ""), (2, "/b")], &[(152, &[])]);
        let names: Vec<String> = (0..=PATHS_MAX).map(|n| format!("/{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (0, name.as_str())).collect();
        check(&many, &[(150, &[])]);
    }
}
