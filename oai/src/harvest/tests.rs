//! The harvester against simulated repositories: pages, tokens, faults, and changes as it goes on.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::error::{Code, Fault};
use crate::response::{Header, Quarantined, Token, Xml};

/// 2026-01-01, in Unix seconds.
const START: i64 = 1_767_225_600;
const START_MS: u64 = 1_767_225_600_000;
const HOUR: i64 = 3_600;

/// Seeded numbers, as good as they need to be here.
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// True once in so many times; never of 0.
    fn once_in(&mut self, times: u64) -> bool {
        times != 0 && self.roll(times) == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    /// By the repository's clock.
    stamp: i64,
    /// By the true clock: a change is stamped before others can see it.
    visible: i64,
    deleted: bool,
    version: u64,
}

/// How a repository is and what ails it.
#[derive(Clone, Debug)]
struct Nature {
    granularity: Granularity,
    deleted: Deleted,
    /// How far its clock is off, in seconds.
    off_secs: i64,
    page: usize,
    /// Once in so many requests; 0 for never.
    fault_every: u64,
    change_every: u64,
    /// Longest time between stamp and visibility, in seconds.
    delay_secs: u64,
    /// Whether it says how many records a list has.
    tells_size: bool,
    /// Added to that.
    size_off: i64,
    /// Hands out its own token for ever.
    loops: bool,
    /// Takes back every token.
    refuses_tokens: bool,
    /// Sends no whole response that has this item in it.
    broken_item: Option<u64>,
    /// Takes no seconds, although it says so.
    days_only: bool,
    /// Says that its first record is younger than it is.
    earliest_late: bool,
    /// Says no time.
    no_dates: bool,
    /// Forgets by the second part of a list which set it is of.
    loses_set: bool,
    /// Ends every list at so many records; 0 for no such limit.
    list_max: i64,
    /// Sends an empty list in the place of any.
    hollow: bool,
    /// How far its datestamps are off, and nothing else, in seconds.
    stamps_off_secs: i64,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            granularity: Granularity::Second,
            deleted: Deleted::Persistent,
            off_secs: 0,
            page: 7,
            fault_every: 0,
            change_every: 0,
            delay_secs: 0,
            tells_size: true,
            size_off: 0,
            loops: false,
            refuses_tokens: false,
            broken_item: None,
            days_only: false,
            earliest_late: false,
            no_dates: false,
            loses_set: false,
            list_max: 0,
            hollow: false,
            stamps_off_secs: 0,
        }
    }
}

#[derive(Clone, Debug)]
struct Repository {
    nature: Nature,
    items: BTreeMap<u64, Item>,
    dice: Dice,
    /// The true time, in Unix seconds.
    now: i64,
    requests: u64,
    /// What its Identify response says of how many items it has.
    totals: Option<u64>,
}

type Stored = BTreeMap<u64, (u64, u64)>;

impl Repository {
    fn new(nature: Nature, count: u64, seed: u64) -> Self {
        let mut dice = Dice(seed | 1);
        let span = 2_000 * 86_400;
        let items = (0..count)
            .map(|id| {
                let stamp = START - 3 * 86_400 - i64::try_from(dice.roll(span)).unwrap();
                (id, Item { stamp, visible: stamp, deleted: false, version: 0 })
            })
            .collect();
        Self { nature, items, dice, now: START, requests: 0, totals: None }
    }

    /// Changes, deletes or adds an item.
    fn change(&mut self) {
        let count = u64::try_from(self.items.len()).unwrap();
        let id = self.dice.roll(count + 2);
        let id = if count <= id {
            10_000 + count
        } else {
            *self.items.keys().nth(usize::try_from(id).unwrap()).unwrap()
        };
        let old = self.items.get(&id).cloned();
        // Nothing changes again before it can be seen, and stamps never fall.
        if old.as_ref().is_some_and(|it| self.now <= it.visible) {
            return;
        }
        let delay = i64::try_from(self.dice.roll(self.nature.delay_secs + 1)).unwrap();
        let item = Item {
            stamp: self.now + self.nature.off_secs + self.nature.stamps_off_secs,
            visible: self.now + delay,
            deleted: old.is_some() && self.dice.once_in(4),
            version: old.map_or(0, |it| it.version + 1),
        };
        if item.deleted && self.nature.deleted == Deleted::No {
            self.items.remove(&id);
        } else {
            self.items.insert(id, item);
        }
    }

    fn live(&self) -> BTreeMap<u64, u64> {
        let live = self.items.iter().filter(|(_, it)| !it.deleted);
        live.map(|(id, it)| (*id, it.version)).collect()
    }

    fn stamp(&self, secs: i64) -> Datestamp {
        Datestamp::at(secs, self.nature.granularity)
    }

    fn answer(&mut self, request: &Request) -> Outcome {
        self.requests += 1;
        self.now += 1 + i64::try_from(self.dice.roll(20)).unwrap();
        if self.dice.once_in(self.nature.change_every) {
            self.change();
        }
        if self.dice.once_in(self.nature.fault_every) {
            return self.fault(request);
        }
        let body = match request {
            Request::Identify => {
                let first = self.items.values().map(|it| it.stamp).min().unwrap_or(START);
                let late = if self.nature.earliest_late { 900 * 86_400 } else { 0 };
                Body::Identify(Box::new(Identify {
                    earliest_datestamp: Some(self.stamp(first + late)),
                    deleted_record: self.nature.deleted,
                    granularity: self.nature.granularity,
                    descriptions: self
                        .totals
                        .map(|it| Totals { elements: it, list: None }.written())
                        .into_iter()
                        .collect(),
                    ..Identify::default()
                }))
            }
            Request::Formats { .. } => {
                Body::Formats(vec![Format { prefix: OAI_DC.to_owned(), ..Format::default() }])
            }
            Request::Sets { .. } => {
                Body::Sets(Page::of(vec![Set { spec: "even".to_owned(), ..Set::default() }]))
            }
            Request::List { scope, .. } => match self.list(scope) {
                Ok(body) => body,
                Err(outcome) => return *outcome,
            },
            Request::Get { .. } => unreachable!("nothing asks for one record"),
        };
        self.response(body)
    }

    fn response(&self, body: Body) -> Outcome {
        let date = Datestamp::at(self.now + self.nature.off_secs, Granularity::Second);
        let response_date = (!self.nature.no_dates).then_some(date);
        Outcome::Response { response: Response { response_date, body }, repaired: false }
    }

    fn fault(&mut self, request: &Request) -> Outcome {
        let problem = "simulated".to_owned();
        match self.dice.roll(8) {
            0 => Outcome::Status { status: 503, retry_after_secs: Some(self.dice.roll(30)) },
            1 => Outcome::Status { status: 503, retry_after_secs: None },
            2 => Outcome::Status { status: 500, retry_after_secs: None },
            3 => Outcome::Failed { problem, remedy: Remedy::AgainOrLess },
            4 => Outcome::Failed { problem, remedy: Remedy::Again },
            5 => Outcome::Unreadable { problem, whole: Vec::new() },
            6 if matches!(request, Request::List { scope: Scope::Token(_), .. }) => {
                self.response(Body::Faults(vec![Fault::new(Code::BadResumptionToken, "")]))
            }
            _ => self.response(Body::Formats(Vec::new())),
        }
    }

    /// A list: tokens say the selection and the last record that was sent.
    fn list(&mut self, scope: &Scope) -> Result<Body, Box<Outcome>> {
        let fault = |repository: &Self, code| {
            Err(Box::new(repository.response(Body::Faults(vec![Fault::new(code, "")]))))
        };
        let (from, until, set, after, cursor) = match scope {
            Scope::Selection(it) => {
                for stamp in it.from.iter().chain(&it.until) {
                    let is_fine = stamp.granularity() == Granularity::Second;
                    if is_fine
                        && (self.nature.days_only || self.nature.granularity != Granularity::Second)
                    {
                        return fault(self, Code::BadArgument);
                    }
                }
                let from = it.from.map_or(i64::MIN, Datestamp::secs);
                let until = it.until.map_or(i64::MAX, Datestamp::last_secs);
                (from, until, it.set.is_some(), (i64::MIN, 0), 0)
            }
            Scope::Token(_) if self.nature.refuses_tokens => {
                return fault(self, Code::BadResumptionToken);
            }
            Scope::Token(token) => {
                let n: Vec<i64> = token.split(',').map(|it| it.parse().unwrap()).collect();
                (n[0], n[1], n[2] == 1, (n[3], u64::try_from(n[4]).unwrap()), n[5])
            }
        };
        if self.nature.hollow {
            return Ok(Body::Records(Page::of(Vec::new())));
        }
        let now = self.now;
        let mut found: Vec<(i64, u64)> = self
            .items
            .iter()
            .filter(|(id, it)| {
                let is_in = (!set || *id % 2 == 0) && it.visible <= now;
                is_in && (from..=until).contains(&it.stamp)
            })
            .map(|(id, it)| (it.stamp, *id))
            .collect();
        found.sort_unstable();
        let size = i64::try_from(found.len()).unwrap();
        found.retain(|it| after < *it);
        let page = i64::try_from(self.nature.page).unwrap();
        let is_cut = self.nature.list_max != 0 && self.nature.list_max <= cursor + page;
        let more = self.nature.page < found.len() && !is_cut;
        found.truncate(self.nature.page);
        if self.nature.broken_item.is_some_and(|id| found.iter().any(|it| it.1 == id)) {
            let upto = found.iter().take_while(|it| Some(it.1) != self.nature.broken_item);
            let whole = upto.map(|it| self.record(it.1)).collect();
            return Err(Box::new(Outcome::Unreadable { problem: "cut".to_owned(), whole }));
        }
        if found.is_empty() {
            return fault(self, Code::NoRecordsMatch);
        }
        let last = found.last().copied().unwrap_or(after);
        let next = cursor + i64::try_from(found.len()).unwrap();
        let last = if self.nature.loops && cursor != 0 { after } else { last };
        let next = if self.nature.loops && cursor != 0 { cursor } else { next };
        let set = i64::from(set && !self.nature.loses_set);
        let value = format!("{from},{until},{set},{},{},{next}", last.0, last.1);
        let token = (more || cursor != 0 || self.nature.loops).then(|| Token {
            value: if more || self.nature.loops { value } else { String::new() },
            complete_list_size: self
                .nature
                .tells_size
                .then(|| u64::try_from(size + self.nature.size_off).unwrap()),
            ..Token::default()
        });
        let items = found.iter().map(|it| self.record(it.1)).collect();
        Ok(Body::Records(Page { items, token, quarantined: Vec::new() }))
    }

    fn record(&self, id: u64) -> Record {
        let item = &self.items[&id];
        Record {
            header: Header {
                identifier: format!("oai:x:{id}"),
                datestamp: Some(self.stamp(item.stamp)),
                sets: vec![if id.is_multiple_of(2) { "even".to_owned() } else { "odd".to_owned() }],
                deleted: item.deleted,
            },
            metadata: (!item.deleted).then(|| Xml(format!("<v>{}</v>", item.version))),
            about: Vec::new(),
        }
    }
}

/// What has come, and the checkpoint that was stored with it.
#[derive(Clone, Debug, Default)]
struct Store {
    /// Identifiers with version and generation.
    items: Stored,
    checkpoint: Checkpoint,
}

impl Store {
    fn take(&mut self, part: Part) {
        for record in part.records {
            let id = record.header.identifier.strip_prefix("oai:x:").unwrap().parse().unwrap();
            if record.header.deleted {
                self.items.remove(&id);
                continue;
            }
            let text = record.metadata.unwrap().0;
            let version = text.trim_start_matches("<v>").trim_end_matches("</v>").parse().unwrap();
            self.items.insert(id, (version, part.generation));
        }
        if part.release {
            self.items.retain(|_, (_, generation)| *generation == part.generation);
        }
        // As it is on disk.
        self.checkpoint = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
    }

    fn live(&self) -> BTreeMap<u64, u64> {
        self.items.iter().map(|(id, (version, _))| (*id, *version)).collect()
    }
}

/// Harvests until the end, or until `kill` says so before an action; `None` then.
fn run(
    settings: &Settings,
    store: &mut Store,
    repository: &mut Repository,
    mut kill: impl FnMut() -> bool,
) -> Option<End> {
    let mut harvest = Harvest::new(settings.clone(), store.checkpoint.clone());
    for _ in 0..20_000 {
        let now_ms = u64::try_from(repository.now).unwrap() * 1_000;
        if kill() {
            return None;
        }
        match harvest.poll(now_ms) {
            Action::Ask(request) => {
                let outcome = repository.answer(&request);
                let now_ms = u64::try_from(repository.now).unwrap() * 1_000;
                harvest.handle(Answer { outcome, bytes: 100, elements: None, list: None }, now_ms);
            }
            Action::Wait(pause) => {
                assert!(pause <= Duration::from_secs(600), "{pause:?}");
                repository.now += i64::try_from(pause.as_millis().div_ceil(1_000)).unwrap();
            }
            Action::Take(part) => store.take(*part),
            Action::Done(end) => {
                store.checkpoint = end.checkpoint.clone();
                return Some(*end);
            }
        }
    }
    panic!("the harvest has no end");
}

fn settings() -> Settings {
    Settings { overlap_secs: 900, window_days: 30, ..Settings::new("http://h/oai") }
}

#[track_caller]
fn ends(nature: Nature, expected: &Result<(), Failure>) -> (Store, Repository, End) {
    let mut repository = Repository::new(nature, 60, 42);
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!(&end.outcome, expected);
    if expected.is_ok() {
        assert_eq!(store.live(), repository.live());
    }
    (store, repository, end)
}

fn warned(end: &End, kind: &Warning) -> bool {
    let kind = std::mem::discriminant(kind);
    end.report.warnings.iter().any(|(it, _)| std::mem::discriminant(it) == kind)
}

#[test]
fn all_comes_and_then_only_what_is_new() {
    for granularity in [Granularity::Day, Granularity::Second] {
        let nature = Nature { granularity, ..Nature::default() };
        let (mut store, mut repository, end) = ends(nature, &Ok(()));
        assert_eq!((end.report.records, end.report.elements), (60, Some(60)));
        assert_eq!(end.report.warnings, [], "{granularity:?}");
        repository.now += 20 * 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, end.report.records), (Ok(()), 0), "nothing new is no failure");
        assert_eq!(end.report.requests, 2);
        for _ in 0..20 {
            repository.change();
        }
        repository.now += 2 * HOUR;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!(end.outcome, Ok(()));
        assert!((1..=20).contains(&end.report.records), "{end:?}");
        assert_eq!(store.live(), repository.live());
    }
}

#[test]
fn what_the_overlap_brings_again_is_dropped_unless_it_says_something_else() {
    let nature = Nature { granularity: Granularity::Day, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    repository.now += HOUR;
    repository.items.get_mut(&3).unwrap().stamp = repository.now;
    repository.items.get_mut(&4).unwrap().stamp = repository.now;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (2, 0));
    // Twice on the same day.
    repository.items.get_mut(&4).unwrap().version += 1;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (1, 1));
    assert_eq!(store.live(), repository.live());
}

#[test]
fn a_token_that_comes_back_is_a_loop_which_shorter_windows_avoid() {
    let (_, _, end) = ends(Nature { loops: true, ..Nature::default() }, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
    assert!(!end.checkpoint.is_in_progress());
    // Of one date, no window is short enough: all behind comes nevertheless.
    let mut repository =
        Repository::new(Nature { loops: true, page: 2, ..Nature::default() }, 60, 42);
    for (id, item) in &mut repository.items {
        let days = if *id < 9 { 0 } else { i64::try_from(*id).unwrap() };
        item.stamp = START - 90 * 86_400 + days * 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { why, .. }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert_eq!(why, Failure::TokenLoop.to_string());
    assert!((9..60).all(|it| store.items.contains_key(&it)) && store.checkpoint.reached.is_some());
    repository.nature.loops = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn a_list_that_is_whole_ends_although_its_last_token_leads_back() {
    let mut harvest = at_list(settings());
    let item = |id| Repository::new(Nature::default(), 2, 1).record(id);
    let told = || Some(Token { complete_list_size: Some(2), ..token("a") });
    answer(&mut harvest, list_of(vec![item(0)], told(), vec![]), 0);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    answer(&mut harvest, list_of(vec![item(1)], told(), vec![]), 0);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    let report = harvest.report();
    assert_eq!(report.warnings.iter().filter(|it| it.0 == Warning::EndedByToken).count(), 1);
    assert!(!report.warnings.iter().any(|it| matches!(it.0, Warning::Restarted(_))));
}

#[test]
fn whatever_ails_a_gap_the_harvest_ends_behind_it() {
    let nature = Nature { broken_item: Some(30), ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let mut store = Store::default();
    run(&settings(), &mut store, &mut repository, || false).unwrap();
    let reached = store.checkpoint.reached.unwrap();
    repository.now += 7_200;
    let mut harvest = Harvest::new(settings(), store.checkpoint.clone());
    for _ in 0..50 {
        let now_ms = u64::try_from(repository.now).unwrap() * 1_000;
        match harvest.poll(now_ms) {
            Action::Ask(request) => {
                let is_gap = harvest.is_at_gap();
                let outcome = repository.answer(&request);
                let refused = Outcome::Status { status: 403, retry_after_secs: None };
                answer(&mut harvest, if is_gap { refused } else { outcome }, now_ms);
            }
            Action::Wait(pause) => repository.now += i64::try_from(pause.as_secs()).unwrap() + 1,
            Action::Take(_) => {}
            Action::Done(end) => {
                assert!(matches!(end.outcome, Err(Failure::Gaps { .. })), "{:?}", end.outcome);
                return assert!(Some(reached) < end.checkpoint.reached);
            }
        }
    }
    panic!("it has no end");
}

#[test]
fn without_tokens_it_goes_by_dates() {
    // Every window of more than a page fails, until windows are short enough.
    let nature = Nature { refuses_tokens: true, page: 20, ..Nature::default() };
    let (_, _, end) = ends(nature, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn tokens_that_are_refused_for_one_date_end_it_by_name() {
    let nature = Nature { refuses_tokens: true, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    for item in repository.items.values_mut() {
        item.stamp = START - 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { gaps, why }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert!(gaps.contains("2025-12-31") && why.contains("badResumptionToken"), "{gaps}: {why}");
    repository.nature.refuses_tokens = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn of_a_page_that_is_always_cut_comes_what_is_whole() {
    let nature = Nature { broken_item: Some(30), ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let mut store = Store::default();
    for full in [true, false] {
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        let Err(Failure::Gaps { gaps, why }) = end.outcome else { panic!("{:?}", end.outcome) };
        let day = repository.stamp(repository.items[&30].stamp).to_string();
        assert!(gaps.contains(&day[..10]) && why.contains("cut"), "{gaps}: {why}");
        assert_eq!((end.report.full, end.report.gaps.join(", ")), (full, gaps));
        let mut all = repository.live();
        all.remove(&30);
        assert_eq!(store.live(), all, "all others come");
        repository.now += 7_200;
        repository.change();
    }
    repository.nature.broken_item = None;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(end.checkpoint.gaps.is_empty() && !end.report.full);
}

#[test]
fn however_many_windows_cannot_be_had_all_others_come() {
    for bad in [5, 40] {
        let mut repository = Repository::new(Nature { page: 1, ..Nature::default() }, 60, 42);
        // Two records on each of the first days, which takes a token; one each on the others.
        repository.nature.refuses_tokens = true;
        for (id, item) in &mut repository.items {
            let id = i64::try_from(*id).unwrap();
            item.stamp = START - 90 * 86_400 + if id < bad { id / 2 } else { id } * 86_400;
        }
        let twice: Vec<u64> = (1..u64::try_from(bad).unwrap()).step_by(2).collect();
        repository.nature.granularity = Granularity::Day;
        let settings = Settings { window_days: 1, ..settings() };
        let mut store = Store::default();
        for _ in 0..30 {
            run(&settings, &mut store, &mut repository, || false).unwrap();
        }
        let mut all = repository.live();
        all.retain(|id, _| !twice.contains(id));
        assert!(all.keys().all(|it| store.items.contains_key(it)), "{bad}");
        assert!(!store.checkpoint.gaps.is_empty() && store.checkpoint.reached.is_some());
        repository.nature.refuses_tokens = false;
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    }
}

#[test]
fn oddities_are_named_and_lose_nothing() {
    let check = |nature: Nature, expected: Warning| {
        let (_, _, end) = ends(nature, &Ok(()));
        assert!(warned(&end, &expected), "{expected:?}: {:?}", end.report.warnings);
    };
    let off = Nature { off_secs: HOUR, ..Nature::default() };
    check(off, Warning::ClockOff { secs: HOUR });
    let off = Nature { off_secs: -HOUR, ..Nature::default() };
    check(off, Warning::ClockOff { secs: -HOUR });
    let more = Nature { size_off: 5, ..Nature::default() };
    check(more, Warning::ListSize { told: 0, found: 0 });
    check(Nature { days_only: true, ..Nature::default() }, Warning::DaysOnly);
    check(Nature { no_dates: true, ..Nature::default() }, Warning::NoResponseDate);
    let (_, _, end) = ends(Nature { earliest_late: true, ..Nature::default() }, &Ok(()));
    assert_eq!(end.report.records, 60);
}

#[test]
fn sets_are_harvested_one_after_the_other() {
    let mut repository = Repository::new(Nature::default(), 60, 42);
    let mut store = Store::default();
    let settings = Settings { sets: vec!["even".to_owned(), "no".to_owned()], ..settings() };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!(end.outcome, Ok(()));
    assert!(warned(&end, &Warning::UnknownSet(String::new())));
    let expected: Vec<u64> = (0..60).step_by(2).collect();
    assert_eq!(store.items.keys().copied().collect::<Vec<u64>>(), expected);
    // Other sets are another selection: all is harvested anew.
    let settings = Settings { sets: vec!["even".to_owned()], ..settings };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.full, end.report.records), (true, 30));
    let nature = Nature { loses_set: true, ..Nature::default() };
    let mut repository = Repository { nature, ..repository };
    let settings = Settings { window_days: 0, ..settings };
    let end = run(&settings, &mut Store::default(), &mut repository, || false).unwrap();
    assert!(warned(&end, &Warning::SetLost(String::new())), "{:?}", end.report);
}

#[test]
fn records_of_other_sets_are_left_out_once_a_list_forgets_its_set() {
    let nature = Nature { loses_set: true, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let sets = vec!["even".to_owned()];
    let settings = Settings { sets, window_days: 0, requests_max: 6, ..settings() };
    let mut store = Store::default();
    // Broken off in between, it is known of which set the list was.
    let first = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert!(matches!(first.outcome, Err(Failure::OverLimit { .. })), "{:?}", first.outcome);
    let settings = Settings { requests_max: 100, ..settings };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert!(warned(&first, &Warning::SetLost(String::new())), "{:?}", first.report);
    assert!(!warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
    let expected: Vec<u64> = (0..60).step_by(2).collect();
    assert_eq!(store.items.keys().copied().collect::<Vec<u64>>(), expected);
}

#[test]
fn what_lists_leave_out_that_end_early_comes_in_shorter_windows() {
    for window_days in [0, 30, 365] {
        let nature = Nature { list_max: 20, deleted: Deleted::No, ..Nature::default() };
        let mut repository = Repository::new(nature, 60, 42);
        let settings = Settings { window_days, ..settings() };
        let mut store = Store::default();
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome.clone(), store.live()), (Ok(()), repository.live()));
        assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
        assert!(!warned(&end, &Warning::ReleaseWithheld), "nothing is missing");
        assert!(!end.checkpoint.miscounts && end.report.requests < 60, "{:?}", end.report);
    }
}

#[test]
fn sizes_that_are_wrong_are_asked_about_once() {
    let nature = Nature { size_off: 50, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    let restarts = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Restarted(_)));
    assert!(restarts.is_some_and(|it| it.1 <= 12), "{:?}", end.report);
    assert!(end.checkpoint.miscounts && end.report.requests < 80, "{:?}", end.report);
    // The next harvest knows.
    for _ in 0..30 {
        repository.now += 86_400;
        repository.change();
    }
    repository.now += HOUR;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    assert!(warned(&end, &Warning::ListSize { told: 0, found: 0 }), "{:?}", end.report);
    assert!(!warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn an_empty_list_does_not_say_that_nothing_is_new_or_that_all_is_gone() {
    let nature = Nature { deleted: Deleted::No, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    let (before, reached) = (store.items.len(), store.checkpoint.reached);
    for full in [false, true] {
        let days = if full { 31 } else { 3 };
        repository.now += days * 86_400;
        repository.items.get_mut(&9).unwrap().version += 1;
        repository.items.get_mut(&9).unwrap().stamp = repository.now;
        repository.nature.hollow = true;
        repository.now += 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert!(end.report.full == full && warned(&end, &Warning::EmptyList), "{:?}", end.report);
        let asked = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Retried(_)));
        assert!(asked.is_some_and(|it| it.1 >= 4), "{:?}", end.report);
        assert_eq!((end.outcome, store.items.len()), (Ok(()), before));
        assert_eq!(store.checkpoint.reached, reached, "as it was");
    }
    repository.nature.hollow = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(reached < store.checkpoint.reached);
}

#[test]
fn an_empty_list_among_others_is_one_without_records() {
    let mut harvest = at_list_at(Settings { window_days: 1, ..settings() }, START_MS);
    let item = || vec![Repository::new(Nature::default(), 1, 1).record(0)];
    let (mut now_ms, mut asked) = (START_MS, 0);
    loop {
        match harvest.poll(now_ms) {
            Action::Ask(Request::List { scope: Scope::Selection(it), .. }) => {
                asked += 1;
                let items = if it.until.is_none() { item() } else { Vec::new() };
                answer(&mut harvest, list_of(items, None, Vec::new()), now_ms);
            }
            Action::Wait(pause) => now_ms += u64::try_from(pause.as_millis()).unwrap(),
            Action::Take(_) => {}
            Action::Done(end) => {
                assert!(5 < asked && warned(&end, &Warning::EmptyList));
                assert_eq!((end.outcome, end.checkpoint.reached), (Ok(()), Some(START)));
                return;
            }
            Action::Ask(it) => panic!("{it:?}"),
        }
    }
}

#[test]
fn a_list_that_goes_in_a_circle_is_noticed_however_often_it_is_broken_off() {
    for length in [1, 2, 7, 50] {
        let repository = Repository::new(Nature::default(), 60, 1);
        let mut harvest = at_list(settings());
        let mut pages = 0;
        loop {
            let next = token(&(pages % length).to_string());
            let item = repository.record(pages % length);
            answer(&mut harvest, list_of(vec![item], Some(next), vec![]), 0);
            pages += 1;
            if harvest.report().warnings.iter().any(|it| matches!(it.0, Warning::Restarted(_))) {
                break;
            }
            let Action::Take(part) = harvest.poll(0) else { panic!() };
            if pages % 3 == 0 {
                let stored = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
                harvest = Harvest::new(settings(), stored);
            }
            assert!(pages < 4 * length + 8, "{length}");
        }
    }
}

#[test]
fn datestamps_in_local_time_lose_nothing_east_or_west() {
    for hours in [-11, -5, 5, 14] {
        let nature = Nature { stamps_off_secs: hours * HOUR, ..Nature::default() };
        let mut repository = Repository::new(nature, 60, 42);
        let (settings, mut store) = (Settings::new("http://h/oai"), Store::default());
        for _ in 0..20 {
            run(&settings, &mut store, &mut repository, || false).unwrap();
            repository.now += 2 * HOUR;
            repository.change();
            repository.now += 60;
        }
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()), "{hours} h");
    }
}

#[test]
fn a_list_that_ends_with_an_error_is_begun_again_only_if_much_is_missing() {
    let repository = Repository::new(Nature::default(), 200, 1);
    for (told, is_short) in
        [(None, false), (Some(199), false), (Some(200), false), (Some(300), true)]
    {
        let mut harvest = at_list_at(Settings { window_days: 0, ..settings() }, START_MS);
        let items = (0..199).map(|it| repository.record(it)).collect();
        let next = Token { complete_list_size: told, ..token("a") };
        answer(&mut harvest, list_of(items, Some(next), vec![]), START_MS);
        assert!(matches!(harvest.poll(START_MS), Action::Take(_)));
        let none = Body::Faults(vec![Fault::new(Code::NoRecordsMatch, "")]);
        answer(&mut harvest, repository.response(none), START_MS);
        let has = |kind: &str| {
            harvest.report().warnings.iter().any(|it| format!("{:?}", it.0).starts_with(kind))
        };
        assert!(has("EndedByError") && has("Restarted") == is_short, "{told:?}");
        assert_eq!(has("ListSize"), told == Some(200));
        // One of 200 is within what an estimate may be off: what did not come is not kept for it.
        let Action::Take(part) = harvest.poll(START_MS) else { panic!() };
        assert_eq!((part.last, part.release), (!is_short, !is_short), "{told:?}");
    }
}

#[test]
fn deletions_that_are_not_told_of_show_in_a_full_harvest() {
    let nature = Nature { deleted: Deleted::No, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    repository.items.retain(|id, _| id % 3 != 0);
    repository.now += 29 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(!end.report.full && store.items.len() == 60);
    repository.now += 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full);
    assert_eq!((end.report.elements, store.live()), (Some(40), repository.live()));
}

#[test]
fn deletions_that_a_repository_may_have_forgotten_show_in_a_full_harvest() {
    let nature = Nature { deleted: Deleted::Transient, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    // Asked often enough, it tells of all.
    for _ in 0..3 {
        repository.now += 29 * 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert!(!end.report.full && !warned(&end, &Warning::DeletionsLate));
    }
    repository.items.retain(|id, _| id % 3 != 0);
    repository.now += 31 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && warned(&end, &Warning::DeletionsLate));
    assert_eq!((store.items.len(), store.live()), (40, repository.live()));
}

#[test]
fn a_set_that_is_not_listed_any_more_loses_nothing() {
    let mut repository = Repository::new(Nature::default(), 60, 42);
    let mut store = Store::default();
    let sets = |it: &str| Settings { sets: vec![it.to_owned()], ..settings() };
    let end = run(&sets("no"), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && warned(&end, &Warning::UnknownSet(String::new())));
    assert!(warned(&end, &Warning::ReleaseWithheld));
    let end = run(&sets("even"), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && !warned(&end, &Warning::ReleaseWithheld));
}

#[test]
fn a_clock_that_is_set_back_prolongs_no_pause() {
    let mut harvest = at_list(settings());
    let busy = Outcome::Status { status: 503, retry_after_secs: Some(30) };
    answer(&mut harvest, busy, 86_400_000);
    assert_eq!(harvest.poll(0), Action::Wait(Duration::from_secs(600)));
    assert!(matches!(harvest.poll(600_000), Action::Ask(_)));
}

#[test]
fn without_its_formats_a_repository_is_harvested() {
    let mut repository = Repository::new(Nature::default(), 60, 42);
    let mut harvest = Harvest::new(settings(), Checkpoint::default());
    let identified = repository.answer(&Request::Identify);
    answer(&mut harvest, identified, 0);
    let refused = Outcome::Status { status: 404, retry_after_secs: None };
    answer(&mut harvest, refused, 0);
    assert!(matches!(harvest.poll(0), Action::Ask(Request::List { .. })));
}

#[test]
fn what_did_not_come_is_kept_where_records_may_be_missing() {
    let nature = Nature { deleted: Deleted::No, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    repository.items.remove(&7);
    repository.nature.size_off = 1;
    repository.now += 31 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(warned(&end, &Warning::ReleaseWithheld));
    assert!(end.report.full && store.items.contains_key(&7));
}

fn list_of(items: Vec<Record>, token: Option<Token>, quarantined: Vec<Quarantined>) -> Outcome {
    let body = Body::Records(Page { items, token, quarantined });
    let response_date = Some(Datestamp::at(START, Granularity::Second));
    Outcome::Response { response: Response { response_date, body }, repaired: false }
}

/// A harvest that is about to list records.
fn at_list(settings: Settings) -> Harvest {
    at_list_at(settings, 0)
}

/// The same, at so many milliseconds since 1970 by our clock.
fn at_list_at(settings: Settings, now_ms: u64) -> Harvest {
    let mut repository = Repository::new(Nature::default(), 1, 1);
    repository.totals = Some(5);
    let mut harvest = Harvest::new(settings, Checkpoint::default());
    for poll_ms in [now_ms, now_ms + 10_000] {
        let Action::Ask(request) = harvest.poll(poll_ms) else { panic!() };
        let outcome = repository.answer(&request);
        harvest.handle(Answer { outcome, bytes: 1, elements: None, list: None }, now_ms);
    }
    harvest
}

fn answer(harvest: &mut Harvest, outcome: Outcome, now_ms: u64) {
    harvest.handle(Answer { outcome, bytes: 1, elements: Some(77), list: None }, now_ms);
}

#[test]
fn pauses_are_kept_to_and_end() {
    let busy = |retry_after_secs| Outcome::Status { status: 503, retry_after_secs };
    let mut harvest = at_list(settings());
    answer(&mut harvest, busy(Some(30)), 0);
    assert_eq!(harvest.poll(0), Action::Wait(Duration::from_secs(30)));
    assert_eq!(harvest.poll(29_000), Action::Wait(Duration::from_secs(1)));
    assert!(matches!(harvest.poll(30_000), Action::Ask(_)));
    // None asked for, or none at all: a pause of our own, longer each time.
    answer(&mut harvest, busy(None), 30_000);
    assert_eq!(harvest.poll(30_000), Action::Wait(Duration::from_secs(2)));
    answer(&mut harvest, busy(Some(0)), 40_000);
    assert_eq!(harvest.poll(40_000), Action::Wait(Duration::from_secs(4)));
    answer(&mut harvest, busy(None), 50_000);
    answer(&mut harvest, busy(None), 60_000);
    let Action::Done(end) = harvest.poll(60_000) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::Status { status: 503 }));
    let mut harvest = at_list(settings());
    answer(&mut harvest, busy(Some(601)), 0);
    let Action::Done(end) = harvest.poll(0) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::Busy { secs: 601 }));
    let mut harvest = at_list(Settings { delay_ms: 250, ..settings() });
    answer(&mut harvest, list_of(vec![], Some(token("a")), vec![]), 1_000);
    assert!(matches!(harvest.poll(1_000), Action::Take(_)));
    assert_eq!(harvest.poll(1_000), Action::Wait(Duration::from_millis(250)));
}

fn token(value: &str) -> Token {
    Token { value: value.to_owned(), ..Token::default() }
}

#[test]
fn a_list_without_end_ends() {
    let mut harvest = at_list(settings());
    for n in 0..100_000 {
        let repository = Repository::new(Nature::default(), 1, 1);
        let items = if n == 0 { vec![repository.record(0)] } else { vec![] };
        answer(&mut harvest, list_of(items, Some(token(&n.to_string())), vec![]), 0);
        assert!(matches!(harvest.poll(0), Action::Take(_)));
        if let Action::Done(end) = harvest.poll(0) {
            assert_eq!(end.outcome, Err(Failure::Endless { pages: 1_000 }));
            return;
        }
    }
    panic!("it has no end");
}

#[test]
fn what_a_token_may_be_is_bounded() {
    let mut harvest = at_list(settings());
    let too_long = || list_of(vec![], Some(token(&"t".repeat(40_000))), vec![]);
    for _ in 0..100 {
        answer(&mut harvest, too_long(), 0);
        let Action::Take(part) = harvest.poll(0) else { panic!() };
        assert!(Checkpoint::from_bytes(&part.checkpoint.to_bytes()).is_some());
        if let Action::Done(end) = harvest.poll(0) {
            let expected = Failure::TokenSize { bytes: 40_000, bytes_max: 32_768 };
            return assert_eq!(end.outcome, Err(expected));
        }
    }
    panic!("it has no end");
}

#[test]
fn what_could_not_be_read_is_named_up_to_a_bound() {
    let mut harvest = at_list(settings());
    let broken = Quarantined { identifier: Some("x".to_owned()), ..Quarantined::default() };
    answer(&mut harvest, list_of(vec![], None, vec![broken; 150]), 0);
    let report = harvest.report();
    assert_eq!((report.quarantined, report.quarantine.len()), (150, 100));
    assert_eq!(report.elements, Some(77));
    let Action::Take(part) = harvest.poll(0) else { panic!() };
    assert!(!part.release);
}

#[test]
fn totals_are_read_in_all_forms() {
    let mut harvest = at_list(settings());
    assert_eq!(harvest.report().elements, Some(5), "of the Identify response");
    let item = || Repository::new(Nature::default(), 1, 1).record(0);
    let total = Token { total_elements: Some(8), ..token("a") };
    let outcome = list_of(vec![item()], Some(total), vec![]);
    harvest.handle(Answer { outcome, bytes: 1, elements: Some(7), list: Some(3) }, 0);
    assert_eq!(harvest.report().elements, Some(8), "of the token");
    let outcome = list_of(vec![], None, vec![]);
    harvest.poll(0);
    harvest.handle(Answer { outcome, bytes: 1, elements: Some(9), list: Some(3) }, 0);
    assert_eq!(harvest.report().elements, Some(9), "of the head");
    let short = (Warning::ListSize { told: 3, found: 1 }, 1);
    assert!(harvest.report().warnings.contains(&short));
}

#[test]
fn a_harvest_that_is_stopped_goes_on_where_it_was() {
    let mut harvest = at_list(settings());
    answer(&mut harvest, list_of(vec![], Some(token("a")), vec![]), 0);
    harvest.stop(Failure::TimeUp { secs: 1 });
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    let Action::Done(end) = harvest.poll(0) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::TimeUp { secs: 1 }));
    let mut harvest = Harvest::new(settings(), end.checkpoint);
    let scope = Scope::Token("a".to_owned());
    let expected = Request::List { listed: Listed::Records, scope };
    assert_eq!(harvest.poll(0), Action::Ask(expected));
}

#[test]
fn limits_end_it_where_it_can_go_on() {
    let requests = Settings { requests_max: 4, ..settings() };
    let records = Settings { records_max: 35, ..settings() };
    for (settings, named) in [(requests, "requests_max"), (records, "records_max")] {
        let mut repository = Repository::new(Nature::default(), 60, 42);
        let (mut store, mut ends) = (Store::default(), 0);
        let mut harvest = || run(&settings, &mut store, &mut repository, || false).unwrap();
        while let Err(failure) = harvest().outcome {
            assert!(failure.to_string().contains(named), "{failure}");
            ends += 1;
            assert!(ends < 100);
        }
        assert!(1 <= ends);
        assert_eq!(store.live(), repository.live());
    }
}

#[test]
fn a_list_is_not_given_as_many_records_again_by_each_harvest() {
    let mut repository = Repository::new(Nature::default(), 60, 42);
    let mut store = Store::default();
    let mut settings = Settings { records_max: 10, window_days: 0, ..settings() };
    for _ in 0..10 {
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert!(matches!(end.outcome, Err(Failure::OverLimit { .. })), "{:?}", end.outcome);
        assert!(store.items.len() < 20 && end.checkpoint.is_in_progress());
    }
    settings.records_max = 100;
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn a_harvest_that_is_killed_before_any_step_goes_on() {
    let nature = Nature { page: 5, ..Nature::default() };
    let whole = Repository::new(nature, 60, 42);
    let steps = {
        let mut steps = 0;
        let (mut store, mut repository) = (Store::default(), whole.clone());
        let counted = || {
            steps += 1;
            false
        };
        run(&settings(), &mut store, &mut repository, counted).unwrap();
        steps
    };
    for at in 0..steps {
        let (mut store, mut repository) = (Store::default(), whole.clone());
        let mut left = at;
        let kill = || {
            left -= 1;
            left < 0
        };
        assert!(run(&settings(), &mut store, &mut repository, kill).is_none());
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()), "killed at {at}");
    }
}

fn natures() -> impl Strategy<Value = Nature> {
    let numbers = (1..30_usize, 0..12_u64, 0..6_u64, 0..800_u64, -4..=4_i64);
    (numbers, any::<[bool; 6]>(), prop::sample::select(vec![0, 4, 8])).prop_map(
        |((page, faults, changes, delay_secs, off), flags, least)| Nature {
            granularity: if flags[0] { Granularity::Day } else { Granularity::Second },
            deleted: if flags[1] { Deleted::No } else { Deleted::Persistent },
            off_secs: off * HOUR,
            page,
            fault_every: if faults == 0 { 0 } else { faults + least },
            change_every: changes,
            delay_secs,
            tells_size: flags[2],
            days_only: flags[3],
            earliest_late: flags[4],
            no_dates: flags[5] && changes % 2 == 0,
            ..Nature::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever repositories do while they are harvested, and however often a harvest is killed: once
    /// they are quiet, one that ends well leaves nothing out.
    #[test]
    fn nothing_is_lost(nature in natures(), count in 0..80_u64, seed in any::<u64>(),
                       kill_every in 0..40_u64, window_days in prop::sample::select(vec![0, 1, 30, 365])) {
        let mut repository = Repository::new(nature, count, seed);
        let settings = Settings { window_days, ..settings() };
        let mut store = Store::default();
        let mut dice = Dice(seed.rotate_left(17) | 1);
        for round in 0..12 {
            if round == 8 {
                // Quiet from now on.
                repository.nature.change_every = 0;
                repository.nature.fault_every = 0;
                repository.now += HOUR;
            }
            let kill_every = if round < 8 { kill_every } else { 0 };
            let end = run(&settings, &mut store, &mut repository, || dice.once_in(kill_every));
            prop_assert!(round < 8 || end.is_some_and(|it| it.outcome.is_ok()));
            repository.now += i64::try_from(dice.roll(3 * 86_400)).unwrap();
            for _ in 0..dice.roll(5) {
                if round < 7 {
                    repository.change();
                }
            }
        }
        if repository.nature.deleted == Deleted::No {
            repository.now += 31 * 86_400;
            let end = run(&settings, &mut store, &mut repository, || false);
            prop_assert!(end.is_some_and(|it| it.outcome.is_ok() && it.report.full));
        }
        prop_assert_eq!(store.live(), repository.live());
    }
}
