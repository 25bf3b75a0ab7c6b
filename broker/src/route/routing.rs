//! Routing searches everywhere: the peers, how they are asked, and which searches have been here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use net::clock;
use query::stem::stem;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::asking::{Asking, Failure, STATISTICS, Spent};
use super::choose::{Wanted, ranked};
use super::foreign::engines::Engines;
use super::peers::{Peer, Peers};
use super::summary::Content;
use crate::answer::{Answer, Everywhere, FromBroker, Statistics};

/// Maximum number of searches everywhere at a time.
const SEARCHES_MAX: usize = 32;
/// Maximum number of statistics that are remembered.
const STATISTICS_MAX: usize = 4_096;
/// For how long a search is known again, so that it does not go round, and how many are known.
const SEEN: (Duration, usize) = (Duration::from_secs(60), 10_000);
/// Parameters that brokers of older versions do not know.
const NEW: [&str; 6] = ["statistics", "scope", "ask", "hops", "search", "within"];
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
    statistics: Mutex<HashMap<(String, String), Statistics>>,
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
    /// Most objects that it is believed to have.
    pub(super) objects_max: u64,
}

impl Outcome {
    /// Returns that of a broker that is left alone for now.
    pub(super) fn resting(peer: Peer) -> Self {
        let (answer, took) = (Err(Failure::resting()), Duration::ZERO);
        Self { broker: peer.broker, answer, took, objects_max: 0 }
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
        let (statistics, seen) = (Mutex::default(), Mutex::default());
        let searches = Arc::new(Semaphore::new(SEARCHES_MAX));
        Self(Arc::new(Routing { peers, asking, engines, own, here, statistics, searches, seen }))
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
        // What was asked counts as long as the broker says that it is like that.
        let version = peer.summary.as_ref().map(|it| it.content.words);
        let key = version.map(|it| (peer.broker.url.clone(), format!("{it} {text}")));
        if let Some(statistics) = key.as_ref().and_then(|it| known().get(it).cloned()) {
            return statistics;
        }
        let (parameters, budget) = ([("q", text)], (deadline, spent));
        match self.0.asking.ask::<Statistics>(peer, STATISTICS, &parameters, budget).await {
            Ok((statistics, _)) => {
                let statistics = statistics.within(own);
                let mut known = known();
                if STATISTICS_MAX <= known.len() {
                    known.clear();
                }
                known.extend(key.map(|it| (it, statistics.clone())));
                statistics
            }
            Err(_none) => {
                peer.summary.as_ref().map(|it| statistics_of(&it.content, own)).unwrap_or_default()
            }
        }
    }

    /// Asks a broker for hits.
    pub(super) async fn ask(
        &self,
        peer: &Peer,
        parameters: &[(&'static str, String)],
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Outcome {
        let began = Instant::now();
        let objects = peer.summary.as_ref().map(|it| it.content.objects);
        let objects_max =
            objects.map_or(u64::MAX, |it| it.saturating_mul(GROWTH.0).saturating_add(GROWTH.1));
        let asking = &self.0.asking;
        let pairs: Vec<(&str, &str)> = parameters.iter().map(|it| (it.0, &*it.1)).collect();
        let mut answer = asking.ask::<Answer>(peer, "api/search", &pairs, (deadline, spent)).await;
        if matches!(answer, Err(Failure::Older)) {
            let pairs: Vec<(&str, &str)> =
                pairs.into_iter().filter(|it| !NEW.contains(&it.0)).collect();
            answer = asking.ask::<Answer>(peer, "api/search", &pairs, (deadline, spent)).await;
        }
        let answer = match answer {
            // Who has asked it has its hits.
            Err(Failure::Known) => Ok(Answer::default()),
            other => other.map(|it| it.0),
        };
        Outcome { broker: peer.broker.clone(), answer, took: began.elapsed(), objects_max }
    }

    /// Returns whether a search that is known by this comes here for the first time.
    pub(crate) fn is_new(&self, id: &str) -> bool {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::monotonic();
        if SEEN.1 <= seen.len() {
            seen.retain(|_, at| now.saturating_duration_since(*at) < SEEN.0);
        }
        if SEEN.1 <= seen.len() {
            return false;
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
