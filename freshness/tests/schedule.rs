//! Properties of every schedule, under any events and numbers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use freshness::interval::{Bounds, Model, Outcome, Policy};
use freshness::rate::Method;
use freshness::schedule::{
    FirstChanges, Pace, PullReport, RETRY_AFTER_MAX_MS, Rules, Schedule, Settings, SourceId,
    SourceNote, View, Window,
};
use freshness::syndication::{Period, Syndication};
use proptest::prelude::*;

/// From 10 seconds to 7 days.
const BOUNDS: Bounds = Bounds { interval_min: 10.0, interval_max: 604_800.0 };
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
const YEAR_MS: u64 = 365 * DAY_MS;
const START_MS: u64 = 20_000 * DAY_MS;
/// Due times from here on (200 million years) are taken as never.
const END_MS: u64 = u64::MAX / 3;

const SETTINGS: Settings = Settings {
    policy: Policy::Optimal { theta: 0.95 },
    model: Model::Poisson,
    method: Method::Datestamps,
    gain: 0.25,
    pulls_per_minute_max: 600,
};

/// An event of a schedule; `which` is one of the sources, or of the pulls under way.
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<Rules>),
    Remove(usize),
    Rules(usize, Rules),
    Settings(Settings),
    /// Polls until nothing is due, this much later.
    Poll(u64),
    Pull {
        which: usize,
        found: PullReport,
        took_ms: u64,
    },
    /// A report of a pull that was never started.
    Unasked(usize, PullReport),
    Fail(usize, Option<Duration>),
    Cancel(usize),
    Request(usize),
    Notice(usize),
    /// The clock is set by milliseconds.
    Jump(i64),
    /// The clock is set back without a report.
    Slip(u64),
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => 0.0..1e6_f64,
        1 => prop::sample::select(vec![
            0.0, 1.0, 2.0, -1.0, 0.9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-300, 1e9,
        ]),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let pace = prop_oneof![
        3 => Just(Pace::Planned),
        1 => Just(Pace::BestEstimation),
        1 => (prop::sample::select(Period::ALL.to_vec()), 1..9_u32, 0..2_000_000_000_i64)
            .prop_map(|(period, frequency, base)| {
                Pace::Syndication(Syndication::new(period, frequency, base).unwrap())
            }),
    ];
    let window = prop::option::weighted(0.2, Just("22-6"));
    let kind = (prop::bool::weighted(0.2), any::<bool>());
    (numbers(), numbers(), numbers(), kind, window, pace).prop_map(
        |(interval_min, interval_max, weight, (follow, datestamps), window, pace)| Rules {
            bounds: Bounds { interval_min, interval_max },
            weight,
            follow,
            window: window.and_then(Window::parse),
            pace,
            datestamps,
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let policy = (0..6_u8, numbers()).prop_map(|(kind, number)| match kind {
        0 => Policy::Optimal { theta: number },
        1 => Policy::Uniform { theta: number },
        2 => Policy::Individual { theta: number },
        3 => Policy::Fixed { interval: number },
        4 => Policy::CombinedCost { price: number },
        _ => Policy::Budget { pulls: number },
    });
    let model = prop::sample::select(vec![Model::Printed, Model::Linear, Model::Poisson]);
    let method = prop::sample::select(vec![Method::Ewma, Method::BiasReduced, Method::Datestamps]);
    let most = prop_oneof![0..9_u32, Just(600), Just(u32::MAX)];
    (policy, model, method, numbers(), most).prop_map(
        |(policy, model, method, gain, pulls_per_minute_max)| Settings {
            policy,
            model,
            method,
            gain,
            pulls_per_minute_max,
        },
    )
}

/// Reports, including some of a billion changes and of sources that lose everything.
fn found() -> impl Strategy<Value = PullReport> {
    let counts = || prop_oneof![Just(0), 0..100_u64, Just(1_000_000_000), Just(u64::MAX)];
    let as_of = prop_oneof![3 => Just(None), 1 => any::<u64>().prop_map(Some), 1 => Just(Some(0))];
    let first_changes =
        (counts(), numbers()).prop_map(|(objects, age_secs)| FirstChanges { objects, age_secs });
    let first_changes = prop::option::of(first_changes);
    (any::<bool>(), counts(), numbers(), first_changes, counts(), as_of, any::<bool>()).prop_map(
        |(full, changes, age_secs, first_changes, elements, as_of, early)| {
            let as_of_ms = as_of.unwrap_or(START_MS);
            PullReport { full, changes, age_secs, first_changes, elements, as_of_ms, early }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let years = -3 * YEAR_MS.cast_signed()..3 * YEAR_MS.cast_signed();
    let wait = prop_oneof![0..2_000_u64, 0..100_000_u64, 0..30 * DAY_MS];
    prop_oneof![
        2 => prop::collection::vec(rules(), 1..4).prop_map(Step::Add),
        1 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), rules()).prop_map(|(which, rules)| Step::Rules(which, rules)),
        1 => settings().prop_map(Step::Settings),
        6 => wait.prop_map(Step::Poll),
        6 => (any::<usize>(), found(), prop_oneof![0..5_000_u64, 0..DAY_MS])
            .prop_map(|(which, found, took_ms)| Step::Pull { which, found, took_ms }),
        1 => (any::<usize>(), found()).prop_map(|(which, found)| Step::Unasked(which, found)),
        2 => (any::<usize>(), prop::option::of(any::<u64>()))
            .prop_map(|(which, secs)| Step::Fail(which, secs.map(Duration::from_secs))),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Request),
        1 => any::<usize>().prop_map(Step::Notice),
        1 => years.prop_map(Step::Jump),
        1 => (0..YEAR_MS).prop_map(Step::Slip),
    ]
}

/// Narrows a bound to the seven digits of a schedule.
#[expect(clippy::cast_possible_truncation, reason = "as they are kept")]
fn narrow(number: f64) -> f32 {
    number as f32
}

/// A schedule, and the state of a shell around it.
struct Shell {
    schedule: Schedule,
    settings: Settings,
    there: BTreeMap<SourceId, Rules>,
    running: BTreeSet<SourceId>,
    /// The wall clock.
    now_ms: u64,
    /// A clock that is never set.
    passed_ms: u64,
    /// Starts of pulls, by the clock that is never set.
    began_ms: VecDeque<u64>,
}

impl Shell {
    fn new() -> Self {
        Self {
            schedule: Schedule::new(SETTINGS),
            settings: SETTINGS,
            there: BTreeMap::new(),
            running: BTreeSet::new(),
            now_ms: START_MS,
            passed_ms: MINUTE_MS,
            began_ms: VecDeque::new(),
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.passed_ms += ms;
    }

    fn pick(&self, which: usize) -> Option<SourceId> {
        self.there.keys().nth(which % self.there.len().max(1)).copied()
    }

    fn take(&mut self, which: usize) -> Option<SourceId> {
        let id = *self.running.iter().nth(which % self.running.len().max(1))?;
        self.running.remove(&id);
        Some(id)
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Add(rules) => {
                let known = rules.iter().map(|it| (*it, SourceNote::default()));
                let ids = self.schedule.add(known, self.now_ms);
                self.there.extend(ids.into_iter().zip(rules));
            }
            Step::Poll(ms) => {
                self.pass(ms);
                self.poll();
            }
            Step::Settings(settings) => {
                self.settings = settings;
                self.schedule.handle_all_rules([], settings, self.now_ms);
            }
            Step::Jump(by_ms) => {
                self.now_ms = self.now_ms.saturating_add_signed(by_ms);
                self.schedule.handle_jump(by_ms, self.now_ms);
            }
            Step::Slip(by_ms) => {
                self.now_ms = self.now_ms.saturating_sub(by_ms);
                self.poll();
            }
            Step::Remove(which)
            | Step::Rules(which, _)
            | Step::Request(which)
            | Step::Notice(which)
            | Step::Unasked(which, _) => {
                if let Some(id) = self.pick(which) {
                    self.handle(id, step);
                }
            }
            Step::Pull { which, .. } | Step::Fail(which, _) | Step::Cancel(which) => {
                if let Some(id) = self.take(which) {
                    self.handle(id, step);
                }
            }
        }
    }

    fn handle(&mut self, id: SourceId, step: Step) {
        match step {
            Step::Remove(_) => {
                self.schedule.remove(id, self.now_ms);
                self.there.remove(&id);
                self.running.remove(&id);
            }
            Step::Rules(_, rules) => {
                self.schedule.handle_rules(id, rules, self.now_ms);
                self.there.insert(id, rules);
            }
            Step::Request(_) => assert!(self.schedule.handle_request(id, self.now_ms)),
            Step::Notice(_) => assert!(self.schedule.handle_notice(id, self.now_ms)),
            Step::Unasked(_, found) => {
                self.running.remove(&id);
                self.schedule.handle_pull(id, found, self.now_ms);
            }
            Step::Pull { found, took_ms, .. } => {
                let as_of_ms =
                    if found.as_of_ms == START_MS { self.now_ms } else { found.as_of_ms };
                self.pass(took_ms);
                self.schedule.handle_pull(id, PullReport { as_of_ms, ..found }, self.now_ms);
            }
            Step::Fail(_, wait) => self.schedule.handle_failure(id, wait, self.now_ms),
            Step::Cancel(_) => self.schedule.handle_cancel(id, self.now_ms),
            _ => {}
        }
    }

    fn poll(&mut self) {
        while self.began_ms.front().is_some_and(|it| it + MINUTE_MS <= self.passed_ms) {
            self.began_ms.pop_front();
        }
        while let Some(due) = self.schedule.poll_due(true, self.now_ms) {
            assert!(self.running.insert(due.source), "{:?} is pulled twice at once", due.source);
            self.began_ms.push_back(self.passed_ms);
            let most = self.settings.pulls_per_minute_max.max(1) as usize;
            assert!(self.began_ms.len() <= most, "{:?}", self.began_ms);
        }
    }

    /// Waits until every source with a due time is being pulled.
    fn poll_all(&mut self) {
        for _ in 0..self.there.len() {
            let Some(at_ms) = self.schedule.poll_timeout(true).filter(|it| *it < END_MS) else {
                break;
            };
            self.pass(at_ms.saturating_sub(self.now_ms));
            self.poll();
        }
        for id in self.there.keys() {
            let view = self.schedule.view(*id).unwrap();
            let later = view.due_ms.is_some_and(|it| END_MS <= it);
            assert!(later || self.running.contains(id), "{view:?}");
        }
    }

    fn check(&self) {
        for (id, rules) in &self.there {
            let view = self.schedule.view(*id).unwrap();
            assert_eq!(view.pulling, self.running.contains(id));
            self.check_due(&view, rules);
            let finite = |it: Option<f64>, least| it.is_none_or(|it| least <= it && it.is_finite());
            assert!(finite(view.rate, 0.0) && finite(view.took_secs, 0.0), "{view:?}");
            assert!(finite(view.pull_cost, 1.0), "{view:?}");
            assert!(view.freshness.is_none_or(|it| (0.0..=1.0).contains(&it)), "{view:?}");
            let known = self.schedule.note(*id).unwrap();
            let text = serde_json::to_string(&known).unwrap();
            assert!(serde_json::from_str::<SourceNote>(&text).is_ok(), "{text}");
        }
        let expected = self.schedule.expected();
        let contradict =
            |it: &&Rules| narrow(it.bounds.interval_max) < narrow(it.bounds.interval_min);
        assert_eq!(expected.contradictory, self.there.values().filter(contradict).count());
        let least = if self.settings.model == Model::Printed { f64::NEG_INFINITY } else { -1e-6 };
        assert!((least..=1.0 + 1e-6).contains(&expected.freshness), "{expected:?}");
        assert!(0.0 <= expected.pulls, "{expected:?}");
    }

    /// A source is due within its longest interval or wait after a failure, and its hours.
    fn check_due(&self, view: &View, rules: &Rules) {
        let Some(due_ms) = view.due_ms else {
            assert!(view.pulling, "never due: {view:?}");
            return;
        };
        let interval = view.interval_secs.unwrap_or_default();
        let bounds = rules.bounds.settled();
        // Seven digits are stored.
        let (least, most) =
            (bounds.interval_min * (1.0 - 1e-6), bounds.interval_max * (1.0 + 1e-6));
        assert!(interval <= most.max(1e-3), "{view:?} {rules:?}");
        assert!(
            view.interval_secs.is_none() || least.min(1e12) <= interval + 1e-9,
            "{view:?} {rules:?}"
        );
        assert!(!rules.follow || view.interval_secs.is_none(), "{view:?}");
        let pause = if rules.follow { bounds.interval_min } else { 0.0 };
        // The pause after a poll that came back early.
        let longest_ms = (interval.max(pause) * 1e3).max(view.back_off_ms as f64).max(1_000.0);
        assert!(view.back_off_ms <= RETRY_AFTER_MAX_MS, "{view:?}");
        // Hours open once a day. Times in milliseconds are rounded by up to a half.
        let closed_ms = if rules.window.is_some() { DAY_MS as f64 } else { 0.0 };
        let latest_ms = self.now_ms as f64 + longest_ms * (1.0 + 1e-6) + closed_ms + 1.0;
        assert!(due_ms as f64 <= latest_ms, "{view:?} {rules:?} at {}", self.now_ms);
    }
}

proptest! {
    #[test]
    fn every_sequence_of_events_leaves_a_valid_schedule(
        first in prop::collection::vec(rules(), 1..5),
        steps in prop::collection::vec(step(), 0..35),
    ) {
        let mut shell = Shell::new();
        shell.perform(Step::Add(first));
        for step in steps {
            shell.perform(step);
            shell.check();
        }
        // At rest every source has its turn, one after the other because of the cap.
        for _ in 0..shell.there.len() {
            shell.perform(Step::Cancel(0));
        }
        shell.check();
        prop_assert!(shell.running.is_empty());
        shell.poll_all();
    }
}

fn found_changes(changes: u64, as_of_ms: u64) -> PullReport {
    PullReport {
        full: false,
        changes,
        age_secs: 60.0,
        first_changes: None,
        elements: 10_000,
        as_of_ms,
        early: false,
    }
}

/// Returns the note of a source that brought `changes` in each of ten hourly pulls.
fn learned(changes: u64) -> SourceNote {
    let mut schedule = Schedule::new(SETTINGS);
    let id = schedule.add([(Rules::new(BOUNDS), SourceNote::default())], START_MS)[0];
    for hour in 0..=10 {
        let at_ms = START_MS + hour * 60 * MINUTE_MS;
        let full = hour == 0;
        schedule.handle_pull(id, PullReport { full, ..found_changes(changes, at_ms) }, at_ms + 100);
    }
    schedule.note(id).unwrap()
}

fn expected(theta: f64, bounds: Bounds) -> freshness::schedule::Expected {
    let mut schedule = Schedule::new(Settings { policy: Policy::Optimal { theta }, ..SETTINGS });
    let contrary = Bounds { interval_min: 7_200.0, interval_max: 60.0 };
    let sources = [bounds, bounds, contrary].map(|it| (Rules::new(it), learned(100)));
    schedule.add(sources, START_MS + DAY_MS);
    schedule.expected()
}

/// For any θ, and despite contradicting bounds, the schedule reports the outcome and the attainable
/// freshness.
#[test]
fn an_aim_that_cannot_be_met_is_reported() {
    let bounds = Bounds { interval_min: 3_600.0, interval_max: 36_000.0 };
    for (theta, outcome, shortest, longest) in [
        (1.0, Outcome::AllShortest, 2, 0),
        (2.0, Outcome::AllShortest, 2, 0),
        (f64::INFINITY, Outcome::AllShortest, 2, 0),
        (0.0, Outcome::AllLongest, 0, 2),
        (-1.0, Outcome::AllLongest, 0, 2),
        (f64::NAN, Outcome::AllLongest, 0, 2),
        (0.98, Outcome::Met, 0, 0),
    ] {
        let found = expected(theta, bounds);
        assert_eq!(found.outcome, outcome, "{theta}: {found:?}");
        assert_eq!((found.shortest, found.longest), (shortest, longest), "{theta}: {found:?}");
        assert_eq!(found.contradictory, 1, "{theta}");
        assert!((0.9..1.0).contains(&found.freshness), "{theta}: {found:?}");
    }
}

#[test]
fn a_source_that_was_silent_for_a_year_recovers() {
    let mut schedule = Schedule::new(SETTINGS);
    let bounds = Bounds { interval_min: 600.0, interval_max: 7.0 * 86_400.0 };
    let id = schedule.add([(Rules::new(bounds), SourceNote::default())], START_MS)[0];
    let awake_ms = START_MS + YEAR_MS;
    let (mut now_ms, mut last_ms, mut pulls) = (START_MS, START_MS, 0);
    let mut intervals = Vec::new();
    while now_ms < awake_ms + 60 * DAY_MS {
        let due = schedule.poll_due(true, now_ms).unwrap();
        // From `awake_ms` on, there is a change every 36 seconds.
        let changes = now_ms.saturating_sub(last_ms.max(awake_ms)) / 36_000;
        let found = found_changes(changes, now_ms);
        schedule.handle_pull(due.source, PullReport { full: pulls == 0, ..found }, now_ms + 100);
        (last_ms, pulls) = (now_ms, pulls + 1);
        intervals.push((now_ms, schedule.view(id).unwrap().interval_secs.unwrap()));
        now_ms = schedule.poll_timeout(true).unwrap();
    }
    let before = intervals.iter().rfind(|it| it.0 < awake_ms).unwrap().1;
    assert!((before - bounds.interval_max).abs() < 1.0, "{before}");
    // 10,000 objects at 95 %: about 1.07 times 1,000 changes, 38,600 s.
    let after = intervals.last().unwrap().1;
    assert!((30_000.0..45_000.0).contains(&after), "{after}");
    assert!(pulls < 150, "{pulls} pulls, about 60 of them in the year of silence");
}

#[test]
fn a_million_sources_are_scheduled() {
    // A debug build would take its time.
    const COUNT: usize = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    let mut schedule = Schedule::new(Settings { pulls_per_minute_max: 100, ..SETTINGS });
    let rules = Rules::new(BOUNDS);
    let ids = schedule.add(std::iter::repeat_n((rules, learned(100)), COUNT), START_MS + YEAR_MS);
    assert_eq!(ids.last().unwrap().index(), COUNT - 1);
    let due = std::iter::from_fn(|| schedule.poll_due(true, START_MS + YEAR_MS));
    assert_eq!(due.count(), 10, "all are overdue, and no more begin at once than may");
    assert!((schedule.expected().freshness - 0.95).abs() < 1e-6, "{:?}", schedule.expected());
}
