//! Tests of the harvester against simulated repositories: pages, tokens, faults, and changes during
//! the harvest.

mod absence;
mod lists;
mod pages;
mod unread;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::error::{Code, Fault};
use crate::repository::oap::Totals;
use crate::response::{Deleted, Format, Header, Quarantined, Set, Token, Xml};

/// 2026-01-01, in Unix seconds.
const START: i64 = 1_767_225_600;
const START_MS: u64 = 1_767_225_600_000;
const HOUR: i64 = 3_600;

/// Seeded pseudo-random numbers.
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// Returns true once in `times` calls, on average; never if `times` is 0.
    fn once_in(&mut self, times: u64) -> bool {
        times != 0 && self.roll(times) == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    /// Datestamp by the repository's clock.
    stamp: i64,
    /// Visible from this true time on: a change is stamped before others can see it.
    visible: i64,
    deleted: bool,
    version: u64,
}

/// The properties and faults of a simulated repository.
#[derive(Clone, Debug)]
struct Behavior {
    granularity: Granularity,
    deleted: Deleted,
    /// Offset of its clock, in seconds.
    off_secs: i64,
    page: usize,
    /// Number of requests among which one fails, on average; 0 for never.
    fault_every: u64,
    change_every: u64,
    /// Longest time between stamp and visibility, in seconds.
    delay_secs: u64,
    /// Whether the repository announces the size of a list.
    tells_size: bool,
    /// Error of the announced size.
    size_off: i64,
    /// Hands out the same token for ever.
    loops: bool,
    refuses_tokens: bool,
    /// Truncates every response with this item.
    broken_item: Option<u64>,
    /// Accepts only days, although it announces seconds.
    days_only: bool,
    /// Announces an earliest datestamp that is too late.
    earliest_late: bool,
    no_dates: bool,
    /// Forgets the set of a list after the first part.
    loses_set: bool,
    /// Number of records at which every list ends; 0 for no limit.
    list_max: i64,
    /// Sends an empty list instead of any list.
    hollow: bool,
    /// Offset of its datestamps alone, in seconds.
    stamps_off_secs: i64,
}

impl Default for Behavior {
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
    behavior: Behavior,
    items: BTreeMap<u64, Item>,
    dice: Dice,
    /// The true time, in Unix seconds.
    now: i64,
    requests: u64,
    /// Number of items in its Identify response.
    totals: Option<u64>,
}

type Stored = BTreeMap<u64, (u64, u64)>;

impl Repository {
    fn new(behavior: Behavior, count: u64, seed: u64) -> Self {
        let mut dice = Dice(seed | 1);
        let span = 2_000 * 86_400;
        let items = (0..count)
            .map(|id| {
                let stamp = START - 3 * 86_400 - i64::try_from(dice.roll(span)).unwrap();
                (id, Item { stamp, visible: stamp, deleted: false, version: 0 })
            })
            .collect();
        Self { behavior, items, dice, now: START, requests: 0, totals: None }
    }

    fn change(&mut self) {
        let count = u64::try_from(self.items.len()).unwrap();
        let id = self.dice.roll(count + 2);
        let id = if count <= id {
            10_000 + count
        } else {
            *self.items.keys().nth(usize::try_from(id).unwrap()).unwrap()
        };
        let old = self.items.get(&id).cloned();
        // An item changes only when its last change is visible, and stamps never fall.
        if old.as_ref().is_some_and(|it| self.now <= it.visible) {
            return;
        }
        let delay = i64::try_from(self.dice.roll(self.behavior.delay_secs + 1)).unwrap();
        let item = Item {
            stamp: self.now + self.behavior.off_secs + self.behavior.stamps_off_secs,
            visible: self.now + delay,
            deleted: old.is_some() && self.dice.once_in(4),
            version: old.map_or(0, |it| it.version + 1),
        };
        if item.deleted && self.behavior.deleted == Deleted::No {
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
        Datestamp::at(secs, self.behavior.granularity)
    }

    fn answer(&mut self, request: &Request) -> Outcome {
        self.requests += 1;
        self.now += 1 + i64::try_from(self.dice.roll(20)).unwrap();
        if self.dice.once_in(self.behavior.change_every) {
            self.change();
        }
        if self.dice.once_in(self.behavior.fault_every) {
            return self.fault(request);
        }
        let body = match request {
            Request::Identify => {
                let first = self.items.values().map(|it| it.stamp).min().unwrap_or(START);
                let late = if self.behavior.earliest_late { 900 * 86_400 } else { 0 };
                Body::Identify(Box::new(Identify {
                    earliest_datestamp: Some(self.stamp(first + late)),
                    deleted_record: self.behavior.deleted,
                    granularity: self.behavior.granularity,
                    descriptions: self
                        .totals
                        .map(|it| Totals { elements: it, list: None }.to_xml())
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
            Request::Get { identifier, .. } => {
                let id = identifier.strip_prefix("oai:x:").unwrap().parse().unwrap();
                if self.items.contains_key(&id) {
                    Body::Record(Box::new(self.record(id)))
                } else {
                    Body::Faults(vec![Fault::new(Code::IdDoesNotExist, "")])
                }
            }
        };
        self.response(body)
    }

    fn response(&self, body: Body) -> Outcome {
        let date = Datestamp::at(self.now + self.behavior.off_secs, Granularity::Second);
        let response_date = (!self.behavior.no_dates).then_some(date);
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
            5 => Outcome::Unreadable { problem, remedy: Remedy::AgainOrLess, whole: Vec::new() },
            6 if matches!(request, Request::List { scope: Scope::Token(_), .. }) => {
                self.response(Body::Faults(vec![Fault::new(Code::BadResumptionToken, "")]))
            }
            _ => self.response(Body::Formats(Vec::new())),
        }
    }

    /// Returns a list; its tokens contain the selection and the last record sent.
    fn list(&mut self, scope: &Scope) -> Result<Body, Box<Outcome>> {
        let fault = |repository: &Self, code| {
            Err(Box::new(repository.response(Body::Faults(vec![Fault::new(code, "")]))))
        };
        let (from, until, set, after, cursor) = match scope {
            Scope::Selection(it) => {
                for stamp in it.from.iter().chain(&it.until) {
                    let is_fine = stamp.granularity() == Granularity::Second;
                    if is_fine
                        && (self.behavior.days_only
                            || self.behavior.granularity != Granularity::Second)
                    {
                        return fault(self, Code::BadArgument);
                    }
                }
                let from = it.from.map_or(i64::MIN, Datestamp::secs);
                let until = it.until.map_or(i64::MAX, Datestamp::last_secs);
                (from, until, it.set.is_some(), (i64::MIN, 0), 0)
            }
            Scope::Token(_) if self.behavior.refuses_tokens => {
                return fault(self, Code::BadResumptionToken);
            }
            Scope::Token(token) => {
                let n: Vec<i64> = token.split(',').map(|it| it.parse().unwrap()).collect();
                (n[0], n[1], n[2] == 1, (n[3], u64::try_from(n[4]).unwrap()), n[5])
            }
        };
        if self.behavior.hollow {
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
        let page = i64::try_from(self.behavior.page).unwrap();
        let is_cut = self.behavior.list_max != 0 && self.behavior.list_max <= cursor + page;
        let more = self.behavior.page < found.len() && !is_cut;
        found.truncate(self.behavior.page);
        if self.behavior.broken_item.is_some_and(|id| found.iter().any(|it| it.1 == id)) {
            let upto = found.iter().take_while(|it| Some(it.1) != self.behavior.broken_item);
            let whole = upto.map(|it| self.record(it.1)).collect();
            return Err(Box::new(cut(whole)));
        }
        if found.is_empty() {
            return fault(self, Code::NoRecordsMatch);
        }
        let last = found.last().copied().unwrap_or(after);
        let next = cursor + i64::try_from(found.len()).unwrap();
        let last = if self.behavior.loops && cursor != 0 { after } else { last };
        let next = if self.behavior.loops && cursor != 0 { cursor } else { next };
        let set = i64::from(set && !self.behavior.loses_set);
        let value = format!("{from},{until},{set},{},{},{next}", last.0, last.1);
        let token = (more || cursor != 0 || self.behavior.loops).then(|| Token {
            value: if more || self.behavior.loops { value } else { String::new() },
            complete_list_size: self
                .behavior
                .tells_size
                .then(|| u64::try_from(size + self.behavior.size_off).unwrap()),
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

fn cut(whole: Vec<Record>) -> Outcome {
    Outcome::Unreadable { problem: "cut".to_owned(), remedy: Remedy::AgainOrLess, whole }
}

/// The received records and the checkpoint stored with them.
#[derive(Clone, Debug, Default)]
struct Store {
    /// Identifiers with version and generation.
    items: Stored,
    checkpoint: Checkpoint,
}

impl Store {
    fn take(&mut self, batch: Batch) {
        for record in batch.records {
            let id = record.header.identifier.strip_prefix("oai:x:").unwrap().parse().unwrap();
            if record.header.deleted {
                self.items.remove(&id);
                continue;
            }
            let text = record.metadata.unwrap().0;
            let version = text.trim_start_matches("<v>").trim_end_matches("</v>").parse().unwrap();
            self.items.insert(id, (version, batch.generation));
        }
        if batch.release {
            self.items.retain(|_, (_, generation)| *generation == batch.generation);
        }
        // The checkpoint as it would be on disk.
        self.checkpoint = Checkpoint::from_bytes(&batch.checkpoint.to_bytes()).unwrap();
    }

    fn live(&self) -> BTreeMap<u64, u64> {
        self.items.iter().map(|(id, (version, _))| (*id, *version)).collect()
    }
}

/// Harvests to the end, or until `kill` returns true before an action; `None` then.
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
            Action::Take(batch) => store.take(*batch),
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
fn harvest_to_end(behavior: Behavior, expected: &Result<(), Failure>) -> (Store, Repository, End) {
    let mut repository = Repository::new(behavior, 60, 42);
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

fn list_of(items: Vec<Record>, token: Option<Token>, quarantined: Vec<Quarantined>) -> Outcome {
    let body = Body::Records(Page { items, token, quarantined });
    let response_date = Some(Datestamp::at(START, Granularity::Second));
    Outcome::Response { response: Response { response_date, body }, repaired: false }
}

/// Returns a harvest before its first ListRecords.
fn at_list(settings: Settings) -> Harvest {
    at_list_at(settings, 0)
}

/// Returns the same at `now_ms` milliseconds since 1970 by our clock.
fn at_list_at(settings: Settings, now_ms: u64) -> Harvest {
    let mut repository = Repository::new(Behavior::default(), 1, 1);
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

fn token(value: &str) -> Token {
    Token { value: value.to_owned(), ..Token::default() }
}
