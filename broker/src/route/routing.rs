//! Routing searches everywhere: the peers, how they are asked, and which searches have been here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use net::clock;
use query::stem::stem;
use query::words::split;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use web::foreign::visible;

use super::asking::{Asking, Failure, STATISTICS, Spent, hits_asked};
use super::choose::{Wanted, ranked};
use super::excess::{self, Excess};
use super::foreign::engines::Engines;
use super::peers::{Peer, Peers};
use super::summary::{BEST_MAX, Content, Summary};
use crate::answer::{Answer, Everywhere, FromBroker, OBJECTS_MAX, Statistics};

/// Maximum number of searches everywhere at a time.
const SEARCHES_MAX: usize = 32;
/// Maximum number of statistics that are remembered.
const STATISTICS_MAX: usize = 4_096;
/// Maximum number of warnings in the status.
const WARNINGS_MAX: usize = 100;
/// For how long a search is known again, so that it does not go round, and how many are known.
const SEEN: (Duration, usize) = (Duration::from_secs(60), 10_000);
/// Parameters that brokers of older versions do not know.
const NEW: [&str; 6] = ["statistics", "scope", "ask", "hops", "search", "within"];
/// Score of an object, in times that of a usual word for each word.
const SCORES_MAX: f32 = 1_000.0;
/// A broker has at most so many times the objects of its summary, which may be an hour old, and so many more.
const GROWTH: (u64, u64) = (2, 1_000);

/// What answers searches everywhere. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Route(Arc<Routing>);

#[derive(Debug)]
struct Routing {
    peers: Peers,
    asking: Asking,
    engines: Engines,
    /// What this broker has itself.
    own: watch::Receiver<Arc<Content>>,
    here: FromBroker,
    statistics: Mutex<Remembered>,
    excess: Mutex<Excess>,
    searches: Arc<Semaphore>,
    seen: Mutex<HashMap<String, std::time::Instant>>,
}

/// Who was chosen.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) targets: Vec<Target>,
    /// Those that would have been, but are left alone since they have failed.
    pub(super) resting: Vec<Peer>,
}

/// Whom to ask.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Here,
    There(Box<Peer>),
}

impl Chosen {
    /// Takes as many of the best as may be asked, and those before them that are left alone; `None` is this broker.
    fn take<'a>(
        &mut self,
        mut best: impl Iterator<Item = Option<&'a Peer>>,
        ask: usize,
        asking: &Asking,
    ) {
        let (targets_max, resting_max) = (self.targets.len() + ask, self.resting.len() + ask);
        while self.targets.len() < targets_max
            && let Some(peer) = best.next()
        {
            match peer {
                None => self.targets.push(Target::Here),
                Some(peer) if !asking.rests(peer) => {
                    self.targets.push(Target::There(Box::new(peer.clone())));
                }
                Some(peer) if self.resting.len() < resting_max => self.resting.push(peer.clone()),
                Some(_) => {}
            }
        }
    }
}

/// What came of a broker.
pub(super) struct Outcome {
    pub(super) broker: FromBroker,
    pub(super) answer: Result<Answer, Failure>,
    pub(super) took: Duration,
    /// Most objects that it is believed to find.
    pub(super) objects_max: u64,
    /// What it has claimed beyond what can be.
    pub(super) warnings: Vec<String>,
}

/// The statistics that brokers have sent, by their addresses and the query: they count as long as the broker is as the
/// same summary says.
#[derive(Debug, Default)]
struct Remembered(HashMap<(String, String), (Weak<Summary>, Statistics)>);

impl Remembered {
    fn get(&self, key: &(String, String), summary: &Arc<Summary>) -> Option<Statistics> {
        let (of, statistics) = self.0.get(key)?;
        // The address of a summary is its own as long as this one knows it.
        (of.as_ptr() == Arc::as_ptr(summary)).then(|| statistics.clone())
    }

    fn put(&mut self, key: (String, String), summary: &Arc<Summary>, statistics: Statistics) {
        if STATISTICS_MAX <= self.0.len() {
            self.0.clear();
        }
        self.0.insert(key, (Arc::downgrade(summary), statistics));
    }
}

impl Route {
    pub(crate) fn new(
        peers: Peers,
        client: net::client::Client,
        own: watch::Receiver<Arc<Content>>,
        here: FromBroker,
    ) -> Self {
        let engines = Engines::new(client.clone(), peers.settings().foreign.clone());
        let asking = Asking::new(client);
        let searches = Arc::new(Semaphore::new(SEARCHES_MAX));
        Self(Arc::new(Routing {
            peers,
            asking,
            engines,
            own,
            here,
            statistics: Mutex::default(),
            excess: Mutex::default(),
            searches,
            seen: Mutex::default(),
        }))
    }

    /// Returns what the brokers that are known have claimed beyond what can be, for people, at most a hundred lines.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let known = self.0.peers.known();
        let of = |peer: &Peer| {
            let (name, url) = (visible(&peer.broker.name), &peer.broker.url);
            let line = |claim| match claim {
                excess::OTHER_ID => format!("broker {name} at {url}: {claim}"),
                _ => format!("broker {name} at {url}: {claim}; the rest does not count"),
            };
            self.claims(peer).into_iter().map(line).collect::<Vec<_>>()
        };
        known.iter().flat_map(of).take(WARNINGS_MAX).collect()
    }

    /// Returns what a broker has claimed beyond what can be.
    fn claims(&self, peer: &Peer) -> BTreeSet<&'static str> {
        let mut claims = self.excess().of(&peer.broker.url);
        claims.extend(peer.summary.iter().flat_map(|it| &it.excess));
        claims.extend(peer.is_another.then_some(excess::OTHER_ID));
        claims
    }

    fn excess(&self) -> MutexGuard<'_, Excess> {
        self.0.excess.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there are others to ask.
    pub(crate) fn is_open(&self) -> bool {
        self.0.peers.are_named() || !self.0.engines.is_empty()
    }

    /// Returns how this broker is named in answers.
    pub(super) fn here(&self) -> &FromBroker {
        &self.0.here
    }

    pub(super) fn engines(&self) -> &Engines {
        &self.0.engines
    }

    /// Returns the time that each broker has.
    pub(super) fn deadline(&self) -> Duration {
        self.0.peers.settings().deadline
    }

    /// Returns a permit for one more search; `None`: too many are under way.
    pub(super) fn permit(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.0.searches).try_acquire_owned().ok()
    }

    /// Returns whom to ask, and what is known of all.
    pub(super) fn chosen(&self, wanted: &Wanted, ask: Option<usize>) -> (Chosen, Everywhere) {
        let known = self.0.peers.known();
        let ask = ask.unwrap_or_else(|| self.0.peers.settings().ask);
        let own = Arc::clone(&self.0.own.borrow());
        let (mut told, mut untold) = (Vec::new(), Vec::new());
        if own.objects != 0 {
            told.push((None, &*own));
        }
        for peer in known.iter() {
            match &peer.summary {
                Some(summary) => told.push((Some(peer), &summary.content)),
                None => untold.push(peer),
            }
        }
        let contents: Vec<&Content> = told.iter().map(|it| it.1).collect();
        let best = ranked(wanted, &contents);
        let best = best.into_iter().filter_map(|at| told.get(at)).map(|it| it.0);
        let mut chosen = Chosen::default();
        chosen.take(best, ask, &self.0.asking);
        // Until the first summary is made of the index, nobody knows what is in it.
        if own.objects == 0 {
            chosen.targets.push(Target::Here);
        }
        // Of those that tell nothing, all get their turn.
        let turn = usize::try_from(fresh() % 1_000_003).unwrap_or_default();
        let others = untold.len();
        let untold = untold.into_iter().cycle().skip(turn % others.max(1)).take(others);
        chosen.take(untold.map(Some), ask, &self.0.asking);
        let everywhere = Everywhere {
            by: self.0.here.id.clone(),
            known: known.len() as u64 + 1,
            objects: contents.iter().fold(0, |sum, it| sum.saturating_add(it.objects)),
            ..Everywhere::default()
        };
        (chosen, everywhere)
    }

    /// Returns the statistics of the words of `own`, of all that were chosen.
    pub(super) async fn statistics(
        &self,
        chosen: &[Target],
        (text, own): (&str, &Statistics),
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Statistics {
        let mut all = Statistics::default();
        let mut running = JoinSet::new();
        for target in chosen {
            let Target::There(peer) = target else {
                all.add(own);
                continue;
            };
            let (this, peer, text, own) =
                (self.clone(), peer.clone(), text.to_owned(), own.clone());
            let spent = Arc::clone(spent);
            running.spawn(async move {
                this.statistics_of(&peer, (&text, &own), (deadline, &spent)).await
            });
        }
        while let Some(ended) = running.join_next().await {
            all.add(&ended.unwrap_or_default());
        }
        all
    }

    async fn statistics_of(
        &self,
        peer: &Peer,
        (text, own): (&str, &Statistics),
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Statistics {
        let known = || self.0.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (peer.broker.url.clone(), text.to_owned());
        let summary = peer.summary.as_ref();
        if let Some(statistics) = summary.and_then(|it| known().get(&key, it)) {
            return statistics;
        }
        let (parameters, budget) = ([("q", text)], (deadline, spent));
        match self.0.asking.ask::<Statistics>(peer, STATISTICS, &parameters, budget).await {
            Ok((statistics, _)) => {
                let most = objects_max(summary.map(|it| it.content.objects), false);
                let claim = statistics.are_too_many(most).then_some(excess::STATISTICS);
                self.excess().set(&peer.broker.url, &[excess::STATISTICS], claim);
                let statistics = statistics.within(own, most);
                if let Some(summary) = summary {
                    known().put(key, summary, statistics.clone());
                }
                statistics
            }
            Err(_none) => summary.map(|it| statistics_of(&it.content, own)).unwrap_or_default(),
        }
    }

    /// Asks a broker for hits, and if `asks_others`, for those of others that it asks in turn.
    pub(super) async fn ask(
        &self,
        peer: &Peer,
        (parameters, asks_others): (&[(&'static str, String)], bool),
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Outcome {
        let began = Instant::now();
        let objects = peer.summary.as_ref().map(|it| it.content.objects);
        let objects_max = objects_max(objects, asks_others);
        let asking = &self.0.asking;
        let pairs: Vec<(&str, &str)> = parameters.iter().map(|it| (it.0, &*it.1)).collect();
        let (hits_max, score_max) = (hits_asked(&pairs), score_max(&pairs));
        let mut answer = asking.ask::<Answer>(peer, "api/search", &pairs, (deadline, spent)).await;
        if matches!(answer, Err(Failure::Older)) {
            let pairs: Vec<(&str, &str)> =
                pairs.into_iter().filter(|it| !NEW.contains(&it.0)).collect();
            answer = asking.ask::<Answer>(peer, "api/search", &pairs, (deadline, spent)).await;
        }
        let mut answer = match answer {
            // Who has asked it has its hits.
            Err(Failure::Known) => Ok(Answer::default()),
            other => other.map(|it| it.0),
        };
        if let Ok(answer) = &mut answer {
            // Who is not to ask others does not speak for them.
            answer.everywhere = answer.everywhere.take().filter(|_| asks_others);
            let claims = excess_of(answer, (objects_max, hits_max), score_max);
            self.excess().set(&peer.broker.url, &excess::OF_ANSWERS, claims);
            let scores = answer.hits.iter_mut().map(|it| &mut it.score);
            scores.filter(|it| !can_be(**it, score_max)).for_each(|it| *it = 0.0);
        }
        let warnings = self.claims(peer).into_iter().map(str::to_owned).collect();
        let (broker, took) = (peer.broker.clone(), began.elapsed());
        Outcome { broker, answer, took, objects_max, warnings }
    }

    /// Returns what comes of a broker that is left alone for now.
    pub(super) fn resting(&self, peer: Peer) -> Outcome {
        let warnings = self.claims(&peer).into_iter().map(str::to_owned).collect();
        let (answer, took) = (Err(Failure::resting()), Duration::ZERO);
        Outcome { broker: peer.broker, answer, took, objects_max: 0, warnings }
    }

    /// Returns whether a search that is known by this comes here for the first time.
    pub(crate) fn is_new(&self, id: &str) -> bool {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::monotonic();
        if SEEN.1 <= seen.len() {
            seen.retain(|_, at| now.saturating_duration_since(*at) < SEEN.0);
        }
        if SEEN.1 <= seen.len() {
            // How far it may go on bounds it, too.
            return true;
        }
        let before = seen.insert(id.to_owned(), now);
        before.is_none_or(|it| SEEN.0 <= now.saturating_duration_since(it))
    }

    /// Returns a name for a search, by which it is known again when it comes here.
    pub(super) fn name(&self) -> String {
        let name = format!("{:032x}", fresh());
        let _new = self.is_new(&name);
        name
    }
}

/// Returns how many objects a broker is believed to find, by the number of those of its summary, if it has one. If it
/// asks others in turn, theirs are among them, and nobody here knows how many they have.
fn objects_max(objects: Option<u64>, asks_others: bool) -> u64 {
    let known = objects.filter(|_| !asks_others);
    known.map_or(OBJECTS_MAX, |it| it.saturating_mul(GROWTH.0).saturating_add(GROWTH.1))
}

/// Returns a score that no object reaches, by the words of a query.
#[expect(clippy::cast_precision_loss, reason = "a bound")]
fn score_max(parameters: &[(&str, &str)]) -> f32 {
    let text = parameters.iter().find(|it| it.0 == "q").map_or("", |it| it.1);
    let words = split(text).len().max(1);
    // Rare words count several times as much as those that summaries weigh, as do words near each other, and settings of
    // its own may weigh more.
    SCORES_MAX * words as f32 * (BEST_MAX as f32 / 1_000.0)
}

/// Returns whether an object can have this score.
fn can_be(score: f32, score_max: f32) -> bool {
    (0.0..=score_max).contains(&score)
}

/// Returns what an answer claims beyond what can be: to find more than so many objects, with more than so many hits, and
/// higher scores.
fn excess_of(
    answer: &Answer,
    (objects_max, hits_max): (u64, u64),
    score_max: f32,
) -> impl Iterator<Item = &'static str> + use<> {
    let is_no_number = answer.hits.iter().any(|it| !can_be(it.score, score_max));
    let claims = [
        (objects_max < answer.total, excess::TOTAL),
        (hits_max < answer.hits.len() as u64, excess::HITS),
        (is_no_number, excess::NUMBERS),
    ];
    claims.into_iter().filter(|it| it.0).map(|it| it.1)
}

/// Returns what a summary says of words.
fn statistics_of(content: &Content, own: &Statistics) -> Statistics {
    let objects = |word: &str| {
        let stem = stem(word.rsplit_once(':').map_or(word, |it| it.1));
        let rare = u64::from(content.rare.may_have(&stem));
        content.terms.get(&*stem).map_or(rare, |it| it.objects)
    };
    let words = own.words.keys().map(|word| (word.clone(), objects(word))).collect();
    // Its fields are taken to be as long as ours.
    let scale = |tokens: &u64| {
        let share = u128::from(*tokens) * u128::from(content.objects);
        u64::try_from(share / u128::from(own.documents.max(1))).unwrap_or(u64::MAX)
    };
    let lengths = own.lengths.iter().map(|(field, it)| (field.clone(), scale(it))).collect();
    Statistics { documents: content.objects, lengths, words }
}

/// Returns a number that nobody else has.
fn fresh() -> u128 {
    use std::collections::hash_map::RandomState;
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = || u128::from(RandomState::new().build_hasher().finish());
    (random() << 64) | random()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Hit;

    fn summary(words: u64) -> Arc<Summary> {
        Arc::new(Summary {
            id: String::new(),
            name: String::new(),
            url: None,
            content: Content { words, ..Content::default() },
            excess: BTreeSet::new(),
        })
    }

    #[test]
    fn statistics_are_remembered_by_the_query_as_long_as_the_summary_is_the_same() {
        let mut remembered = Remembered::default();
        let key = |text: &str| ("http://a/".to_owned(), text.to_owned());
        let statistics = Statistics { documents: 7, ..Statistics::default() };
        let first = summary(100);
        remembered.put(key("ice"), &first, statistics.clone());
        assert_eq!(remembered.get(&key("ice"), &first), Some(statistics.clone()));
        assert_eq!(remembered.get(&key("rock"), &first), None, "another query");
        assert_eq!(remembered.get(&("http://b/".to_owned(), "ice".to_owned()), &first), None);
        // Other objects, of as many words.
        let second = summary(100);
        assert_eq!(remembered.get(&key("ice"), &second), None);
        drop(first);
        assert_eq!(remembered.get(&key("ice"), &second), None);
        remembered.put(key("ice"), &second, Statistics::default());
        assert_eq!(remembered.get(&key("ice"), &second), Some(Statistics::default()));
        for n in 0..2 * STATISTICS_MAX {
            remembered.put(key(&n.to_string()), &second, statistics.clone());
        }
        assert!(remembered.0.len() <= STATISTICS_MAX);
    }

    #[test]
    fn who_asks_others_finds_more_than_it_has() {
        assert_eq!(objects_max(Some(10), false), 1_020);
        assert_eq!(objects_max(Some(u64::MAX), false), u64::MAX);
        // With hops, its hits are not its own alone.
        assert_eq!(objects_max(Some(10), true), OBJECTS_MAX);
        assert_eq!((objects_max(None, false), objects_max(None, true)), (OBJECTS_MAX, OBJECTS_MAX));
    }

    #[test]
    fn what_an_answer_has_too_much_of_is_named() {
        let answer = |total, hits: usize, score| {
            let hits = vec![Hit { score, ..Hit::default() }; hits];
            Answer { total, hits, ..Answer::default() }
        };
        let highest = score_max(&[("q", "ice title:rock")]);
        let usual = 3.0 * SCORES_MAX;
        assert!((usual * 57.0..usual * 58.0).contains(&highest), "{highest}");
        let excess = |answer: &Answer| excess_of(answer, (20, 10), highest).collect::<Vec<_>>();
        for score in [-1.0, 2.0 * highest, 1e38] {
            assert_eq!(excess(&answer(20, 1, score)), [excess::NUMBERS], "{score}");
        }
        assert!(excess(&answer(20, 10, 1.0)).is_empty());
        assert_eq!(excess(&answer(21, 10, 1.0)), [excess::TOTAL]);
        assert_eq!(excess(&answer(20, 11, 1.0)), [excess::HITS]);
        assert_eq!(excess(&answer(20, 1, f32::INFINITY)), [excess::NUMBERS]);
        assert_eq!(excess(&answer(u64::MAX, 11, f32::NAN)).len(), 3);
    }
}
