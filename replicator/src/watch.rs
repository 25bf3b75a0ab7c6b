//! When a tree that publishes itself is looked at: soon after something has happened in it, or once in a while where
//! that is not heard of.
//!
//! A look walks all of the tree. Before each, and once in a while besides, it is *checked* whether the system still
//! says what happens there: that takes the shell a moment, or long if directories are to be watched anew.
//!
//! Sans-I/O.

use std::time::Duration;

/// So long nothing must happen before a tree is looked at, unless it has waited too long already.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// A tree whose changes are heard of is looked at once in so long all the same; what could not be watched is tried again.
pub(crate) const RELOOK: Duration = Duration::from_mins(10);

/// What was heard since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// When something happened, first and last.
    pub(crate) changed: Option<(Duration, Duration)>,
    /// Whether more may have happened than was heard of.
    pub(crate) is_lost: bool,
    /// Why changes are not heard of any more.
    pub(crate) failure: Option<Deaf>,
}

/// Why changes of a tree are not heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deaf {
    /// What is wrong, and what to do about it.
    pub(crate) why: String,
    /// Whether it will be the same in a moment.
    pub(crate) is_lasting: bool,
}

/// What is to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Whether a look comes next, in any case.
    pub(crate) is_before_look: bool,
    /// Whether what is watched is of no use any more.
    pub(crate) is_anew: bool,
    /// Whether directories may be watched at all: not while it is known that there is no use in trying.
    pub(crate) may_watch: bool,
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The tree is watched, as before.
    Hearing,
    /// It is watched, since just now.
    Placed,
    /// It is not.
    Deaf(Deaf),
    /// It is not, and that was not tried.
    Untried,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Checking,
    /// Since then.
    Looking(Duration),
}

/// When one tree is looked at.
#[derive(Debug)]
pub(crate) struct Watch {
    /// A change waits no longer, however much happens; and so often a tree is looked at that cannot be watched.
    every: Duration,
    state: State,
    changed: Option<(Duration, Duration)>,
    is_lost: bool,
    deaf: Option<Deaf>,
    /// The next check.
    check_at: Duration,
    /// The next look, whatever is heard.
    look_at: Duration,
    /// No look before: looking does not take more than half of the time.
    rested_at: Duration,
    /// What could not be watched is tried again.
    try_at: Duration,
}

impl Watch {
    /// A tree that is looked at now.
    pub(crate) fn new(every: Duration, now: Duration) -> Self {
        Self {
            every,
            state: State::Idle,
            changed: None,
            is_lost: false,
            deaf: None,
            check_at: now,
            look_at: now,
            rested_at: now,
            try_at: now,
        }
    }

    /// Looks at once, and tries again to watch what could not be watched.
    pub(crate) fn handle_reload(&mut self, now: Duration) {
        (self.look_at, self.try_at) = (now, now);
    }

    /// Why changes are not heard of; `None` if they are.
    pub(crate) fn deaf(&self) -> Option<&str> {
        self.deaf.as_ref().map(|it| it.why.as_str())
    }

    /// Takes in what was heard. Returns whether it is heard of changes no more, since just now.
    pub(crate) fn handle_news(&mut self, news: News, now: Duration) -> bool {
        if let Some((first, last)) = news.changed {
            let first = self.changed.map_or(first, |it| it.0);
            self.changed = Some((first, last));
        }
        if news.is_lost {
            self.is_lost = true;
            self.look_at = self.look_at.min(now);
        }
        match news.failure {
            Some(deaf) if self.deaf.is_none() => {
                self.look_at = self.look_at.min(now);
                self.fall_silent(deaf, now);
                true
            }
            _ => false,
        }
    }

    /// When [`poll_check`](Self::poll_check) has something; `None` while something is done.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        (self.state == State::Idle).then(|| self.check_at.min(self.due()))
    }

    /// When the next look is due.
    fn due(&self) -> Duration {
        let quiet = self.changed.map(|(first, last)| (last + QUIET).min(first + self.every));
        quiet.map_or(self.look_at, |it| it.min(self.look_at)).max(self.rested_at)
    }

    /// What is to be checked, if it is time.
    pub(crate) fn poll_check(&mut self, now: Duration) -> Option<Check> {
        if self.poll_timeout().is_none_or(|it| now < it) {
            return None;
        }
        self.state = State::Checking;
        Some(Check {
            is_before_look: self.due() <= now,
            is_anew: std::mem::take(&mut self.is_lost),
            may_watch: self.deaf.is_none() || self.try_at <= now,
        })
    }

    /// Takes what was found. Returns whether the tree is to be looked at now; `is_busy`: it is being published already.
    pub(crate) fn handle_checked(&mut self, found: Checked, is_busy: bool, now: Duration) -> bool {
        if self.state != State::Checking {
            return false;
        }
        self.check_at = now + self.every;
        let is_due = self.due() <= now;
        let is_wanted = match found {
            Checked::Hearing | Checked::Untried => is_due,
            Checked::Placed => {
                self.deaf = None;
                true
            }
            Checked::Deaf(deaf) => {
                let is_new = self.deaf.is_none();
                self.fall_silent(deaf, now);
                is_new || is_due
            }
        };
        let looks = is_wanted && !is_busy;
        if looks {
            // What happens from here on is for the next look.
            self.changed = None;
        } else if is_wanted {
            (self.look_at, self.rested_at) = (now, now + QUIET);
        }
        self.state = if looks { State::Looking(now) } else { State::Idle };
        looks
    }

    /// A look has ended: whether all that is there is published.
    pub(crate) fn handle_looked(&mut self, is_done: bool, now: Duration) {
        let State::Looking(since) = self.state else { return };
        self.state = State::Idle;
        self.rested_at = now + QUIET.max(now.saturating_sub(since));
        let is_sure = is_done && self.deaf.is_none();
        self.look_at = now + if is_sure { RELOOK.max(self.every) } else { self.every };
        self.check_at = now + self.every;
    }

    fn fall_silent(&mut self, deaf: Deaf, now: Duration) {
        if self.try_at <= now {
            self.try_at = now + if deaf.is_lasting { RELOOK } else { Duration::ZERO };
        }
        self.deaf = Some(deaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A watch that hears, and has looked once, at 0.
    fn hearing() -> Watch {
        let mut watch = Watch::new(EVERY, at(0.0));
        let check = watch.poll_check(at(0.0));
        let all = Check { is_before_look: true, is_anew: false, may_watch: true };
        assert_eq!(check, Some(all));
        assert!(watch.handle_checked(Checked::Placed, false, at(0.0)));
        assert_eq!(watch.poll_timeout(), None);
        watch.handle_looked(true, at(0.0));
        watch
    }

    fn deaf(is_lasting: bool) -> Deaf {
        Deaf { why: "why".to_owned(), is_lasting }
    }

    /// Lets time go on, in steps of 100 ms; returns when the tree was looked at.
    fn looks(watch: &mut Watch, until: u32, mut news: impl FnMut(f64) -> News) -> Vec<f64> {
        let mut looks = Vec::new();
        for step in 1..=until * 10 {
            let now = f64::from(step) / 10.0;
            watch.handle_news(news(now), at(now));
            if let Some(check) = watch.poll_check(at(now)) {
                let found = if check.may_watch { Checked::Hearing } else { Checked::Untried };
                if watch.handle_checked(found, false, at(now)) {
                    looks.push(now);
                    watch.handle_looked(true, at(now));
                }
            }
        }
        looks
    }

    fn changed(now: f64) -> News {
        News { changed: Some((at(now), at(now))), ..News::default() }
    }

    #[test]
    fn a_tree_is_looked_at_once_it_is_quiet_and_otherwise_rarely() {
        let mut watch = hearing();
        let news = |now| if (3.0..4.05).contains(&now) { changed(now) } else { News::default() };
        assert_eq!(looks(&mut watch, 1_300, news), [5.0, 605.0, 1_205.0]);
    }

    #[test]
    fn endless_changes_are_seen_within_a_bound() {
        assert_eq!(looks(&mut hearing(), 31, changed), [10.1, 20.2, 30.3]);
    }

    #[test]
    fn looks_that_take_long_leave_as_much_time_between_them() {
        let mut watch = hearing();
        watch.handle_news(changed(1.0), at(1.0));
        assert!(watch.poll_check(at(2.0)).is_some());
        assert!(watch.handle_checked(Checked::Hearing, false, at(2.0)));
        watch.handle_news(changed(3.0), at(3.0));
        watch.handle_looked(true, at(7.0));
        assert_eq!(watch.poll_timeout(), Some(at(12.0)));
    }

    #[test]
    fn what_is_not_watched_is_polled_and_tried_again_later() {
        let mut watch = hearing();
        let lost = News { failure: Some(deaf(true)), ..News::default() };
        assert!(watch.handle_news(lost.clone(), at(0.1)));
        assert!(!watch.handle_news(lost, at(0.1)), "it is said once");
        assert_eq!(watch.deaf(), Some("why"));
        let seen = looks(&mut watch, 601, |_| News::default());
        assert_eq!(seen.first(), Some(&1.0));
        assert!(seen.windows(2).all(|it| it[1] - it[0] < 10.2), "{seen:?}");
        assert!(watch.poll_check(at(620.0)).is_some_and(|it| it.may_watch));
        assert!(watch.handle_checked(Checked::Placed, false, at(620.0)));
        assert_eq!(watch.deaf(), None);
    }

    #[test]
    fn lost_events_and_another_directory_lead_to_a_look() {
        let mut watch = hearing();
        let lost = News { is_lost: true, ..News::default() };
        assert!(!watch.handle_news(lost, at(2.0)));
        let check = Check { is_before_look: true, is_anew: true, may_watch: true };
        assert_eq!(watch.poll_check(at(2.0)), Some(check));
        assert!(watch.handle_checked(Checked::Placed, false, at(2.0)));
        watch.handle_looked(true, at(2.0));
        // A check that is not due to a change finds another directory in this one's place.
        let check = Check { is_before_look: false, is_anew: false, may_watch: true };
        assert_eq!(watch.poll_check(at(12.0)), Some(check));
        assert!(watch.handle_checked(Checked::Placed, false, at(12.0)));
        assert!(!watch.handle_checked(Checked::Placed, false, at(12.0)), "it is looking");
    }

    #[test]
    fn what_failed_or_is_being_published_is_looked_at_again() {
        let mut watch = hearing();
        watch.handle_news(changed(1.0), at(1.0));
        assert!(watch.poll_check(at(2.0)).is_some());
        assert!(!watch.handle_checked(Checked::Hearing, true, at(2.0)));
        assert_eq!(watch.poll_timeout(), Some(at(3.0)));
        assert!(watch.poll_check(at(3.0)).is_some());
        assert!(watch.handle_checked(Checked::Hearing, false, at(3.0)));
        watch.handle_looked(false, at(3.0));
        assert_eq!(looks(&mut watch, 14, |_| News::default()), [13.0]);
    }
}
