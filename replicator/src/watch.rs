//! The schedule of a watched tree: walks soon after changes or, without events, at an interval.
//!
//! A walk reads the whole tree. Before each walk, and also at an interval, a *check* tells whether
//! the system still reports events. A check is short, unless the tree has to be watched anew.
//!
//! Sans-I/O.

use std::time::Duration;

/// Time without events before a walk, unless a change has waited too long already.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// Interval of walks even with events, and of new tries to watch a tree.
pub(crate) const REWALK: Duration = Duration::from_mins(10);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// Times of the first and the last change.
    pub(crate) changed: Option<(Duration, Duration)>,
    /// Whether events were lost.
    pub(crate) is_lost: bool,
    /// The reason why there are no more events.
    pub(crate) failure: Option<WatchFailure>,
}

/// The reason why a tree is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchFailure {
    /// The problem and the remedy.
    pub(crate) why: String,
    /// Whether it will probably last.
    pub(crate) is_lasting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Whether a walk is due, whatever the check finds.
    pub(crate) is_before_walk: bool,
    /// Whether the tree has to be watched anew, because events were lost.
    pub(crate) is_anew: bool,
    /// Whether the tree may be watched: not for a while after a failure that will probably last.
    pub(crate) may_watch: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The tree is watched, as before.
    Watched,
    /// The tree is watched anew.
    Started,
    /// The tree cannot be watched.
    Failed(WatchFailure),
    /// The tree is not watched, and the check did not try.
    Untried,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchState {
    Idle,
    Checking,
    /// Start of the walk.
    Walking(Duration),
}

/// The schedule of one tree.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Longest time between a change and its walk, and interval of walks without events.
    every: Duration,
    state: WatchState,
    changed: Option<(Duration, Duration)>,
    is_lost: bool,
    failure: Option<WatchFailure>,
    check_at: Duration,
    /// Time of the next walk, even without events.
    walk_at: Duration,
    /// Earliest time of the next walk, so that walking takes at most half of the time.
    rested_at: Duration,
    /// Time of the next try to watch the tree.
    try_at: Duration,
}

impl Watch {
    /// Returns the schedule of a tree that is walked now.
    pub(crate) fn new(every: Duration, now: Duration) -> Self {
        Self {
            every,
            state: WatchState::Idle,
            changed: None,
            is_lost: false,
            failure: None,
            check_at: now,
            walk_at: now,
            rested_at: now,
            try_at: now,
        }
    }

    /// Walks the tree at once, and tries again to watch it if it is not watched.
    pub(crate) fn handle_reload(&mut self, now: Duration) {
        (self.walk_at, self.try_at) = (now, now);
    }

    /// Returns why the tree is not watched; `None` if it is.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|it| it.why.as_str())
    }

    /// Takes in events. Returns whether the watch has failed with them.
    pub(crate) fn handle_events(&mut self, events: Events, now: Duration) -> bool {
        if let Some((first, last)) = events.changed {
            let first = self.changed.map_or(first, |it| it.0);
            self.changed = Some((first, last));
        }
        if events.is_lost {
            self.is_lost = true;
            self.walk_at = self.walk_at.min(now);
        }
        match events.failure {
            Some(failure) if self.failure.is_none() => {
                self.walk_at = self.walk_at.min(now);
                self.set_failure(failure, now);
                true
            }
            _ => false,
        }
    }

    /// Returns the time of the next [`poll_check`](Self::poll_check); `None` during check and walk.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        (self.state == WatchState::Idle).then(|| self.check_at.min(self.due()))
    }

    /// Returns the time of the next walk.
    fn due(&self) -> Duration {
        let quiet = self.changed.map(|(first, last)| (last + QUIET).min(first + self.every));
        quiet.map_or(self.walk_at, |it| it.min(self.walk_at)).max(self.rested_at)
    }

    pub(crate) fn poll_check(&mut self, now: Duration) -> Option<Check> {
        if self.poll_timeout().is_none_or(|it| now < it) {
            return None;
        }
        self.state = WatchState::Checking;
        Some(Check {
            is_before_walk: self.due() <= now,
            is_anew: std::mem::take(&mut self.is_lost),
            may_watch: self.failure.is_none() || self.try_at <= now,
        })
    }

    /// Takes in the result of a check. Returns whether the tree is to be walked now; `is_busy`
    /// tells whether it is being published already.
    pub(crate) fn handle_checked(&mut self, found: Checked, is_busy: bool, now: Duration) -> bool {
        if self.state != WatchState::Checking {
            return false;
        }
        self.check_at = now + self.every;
        let is_due = self.due() <= now;
        let is_wanted = match found {
            Checked::Watched | Checked::Untried => is_due,
            Checked::Started => {
                self.failure = None;
                true
            }
            Checked::Failed(failure) => {
                let is_new = self.failure.is_none();
                self.set_failure(failure, now);
                is_new || is_due
            }
        };
        let walks = is_wanted && !is_busy;
        if walks {
            // Changes from here on are for the next walk.
            self.changed = None;
        } else if is_wanted {
            (self.walk_at, self.rested_at) = (now, now + QUIET);
        }
        self.state = if walks { WatchState::Walking(now) } else { WatchState::Idle };
        walks
    }

    /// Takes in the end of a walk; `is_done` tells whether the whole tree is published.
    pub(crate) fn handle_walked(&mut self, is_done: bool, now: Duration) {
        let WatchState::Walking(since) = self.state else { return };
        self.state = WatchState::Idle;
        self.rested_at = now + QUIET.max(now.saturating_sub(since));
        let is_sure = is_done && self.failure.is_none();
        self.walk_at = now + if is_sure { REWALK.max(self.every) } else { self.every };
        self.check_at = now + self.every;
    }

    fn set_failure(&mut self, failure: WatchFailure, now: Duration) {
        if self.try_at <= now {
            self.try_at = now + if failure.is_lasting { REWALK } else { Duration::ZERO };
        }
        self.failure = Some(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Returns the schedule of a watched tree that was walked once, at 0.
    fn watched() -> Watch {
        let mut watch = Watch::new(EVERY, at(0.0));
        let check = watch.poll_check(at(0.0));
        let all = Check { is_before_walk: true, is_anew: false, may_watch: true };
        assert_eq!(check, Some(all));
        assert!(watch.handle_checked(Checked::Started, false, at(0.0)));
        assert_eq!(watch.poll_timeout(), None);
        watch.handle_walked(true, at(0.0));
        watch
    }

    fn failure(is_lasting: bool) -> WatchFailure {
        WatchFailure { why: "why".to_owned(), is_lasting }
    }

    /// Lets time pass, in steps of 100 ms; returns the times of walks.
    fn walks(watch: &mut Watch, until: u32, mut events: impl FnMut(f64) -> Events) -> Vec<f64> {
        let mut walks = Vec::new();
        for step in 1..=until * 10 {
            let now = f64::from(step) / 10.0;
            watch.handle_events(events(now), at(now));
            if let Some(check) = watch.poll_check(at(now)) {
                let found = if check.may_watch { Checked::Watched } else { Checked::Untried };
                if watch.handle_checked(found, false, at(now)) {
                    walks.push(now);
                    watch.handle_walked(true, at(now));
                }
            }
        }
        walks
    }

    fn changed(now: f64) -> Events {
        Events { changed: Some((at(now), at(now))), ..Events::default() }
    }

    #[test]
    fn a_tree_is_walked_once_it_is_quiet_and_otherwise_rarely() {
        let mut watch = watched();
        let events =
            |now| if (3.0..4.05).contains(&now) { changed(now) } else { Events::default() };
        assert_eq!(walks(&mut watch, 1_300, events), [5.0, 605.0, 1_205.0]);
    }

    #[test]
    fn endless_changes_are_seen_within_a_bound() {
        assert_eq!(walks(&mut watched(), 31, changed), [10.1, 20.2, 30.3]);
    }

    #[test]
    fn long_walks_leave_as_much_time_between_them() {
        let mut watch = watched();
        watch.handle_events(changed(1.0), at(1.0));
        assert!(watch.poll_check(at(2.0)).is_some());
        assert!(watch.handle_checked(Checked::Watched, false, at(2.0)));
        watch.handle_events(changed(3.0), at(3.0));
        watch.handle_walked(true, at(7.0));
        assert_eq!(watch.poll_timeout(), Some(at(12.0)));
    }

    #[test]
    fn an_unwatched_tree_is_walked_at_an_interval_and_tried_again_later() {
        let mut watch = watched();
        let lost = Events { failure: Some(failure(true)), ..Events::default() };
        assert!(watch.handle_events(lost.clone(), at(0.1)));
        assert!(!watch.handle_events(lost, at(0.1)), "it is reported once");
        assert_eq!(watch.failure(), Some("why"));
        let seen = walks(&mut watch, 601, |_| Events::default());
        assert_eq!(seen.first(), Some(&1.0));
        assert!(seen.windows(2).all(|it| it[1] - it[0] < 10.2), "{seen:?}");
        assert!(watch.poll_check(at(620.0)).is_some_and(|it| it.may_watch));
        assert!(watch.handle_checked(Checked::Started, false, at(620.0)));
        assert_eq!(watch.failure(), None);
    }

    #[test]
    fn lost_events_and_another_directory_lead_to_a_walk() {
        let mut watch = watched();
        let lost = Events { is_lost: true, ..Events::default() };
        assert!(!watch.handle_events(lost, at(2.0)));
        let check = Check { is_before_walk: true, is_anew: true, may_watch: true };
        assert_eq!(watch.poll_check(at(2.0)), Some(check));
        assert!(watch.handle_checked(Checked::Started, false, at(2.0)));
        watch.handle_walked(true, at(2.0));
        // A regular check finds another directory in the place of this one.
        let check = Check { is_before_walk: false, is_anew: false, may_watch: true };
        assert_eq!(watch.poll_check(at(12.0)), Some(check));
        assert!(watch.handle_checked(Checked::Started, false, at(12.0)));
        assert!(!watch.handle_checked(Checked::Started, false, at(12.0)), "it is looking");
    }

    #[test]
    fn a_failed_or_busy_tree_is_walked_again() {
        let mut watch = watched();
        watch.handle_events(changed(1.0), at(1.0));
        assert!(watch.poll_check(at(2.0)).is_some());
        assert!(!watch.handle_checked(Checked::Watched, true, at(2.0)));
        assert_eq!(watch.poll_timeout(), Some(at(3.0)));
        assert!(watch.poll_check(at(3.0)).is_some());
        assert!(watch.handle_checked(Checked::Watched, false, at(3.0)));
        watch.handle_walked(false, at(3.0));
        assert_eq!(walks(&mut watch, 14, |_| Events::default()), [13.0]);
    }
}
