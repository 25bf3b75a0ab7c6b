//! Searches everywhere: one answer of the brokers that are worth asking, this one among them.
//!
//! 1. Choose by content summaries ([`choose`]); who has none is asked, too; who fails is left alone for a while.
//! 2. Ask the chosen for the statistics of the query's words. Who does not answer in time counts by its summary.
//! 3. Ask them for hits, which all score by the statistics of all of them.
//! 4. Merge ([`merge`]), and say who was asked, and what came of it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use net::clock;
use query::Query;
use query::stem::stem;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::asking::{Asking, Failure, Spent};
use super::choose::{Wanted, ranked};
use super::merge::{Part, merged};
use super::peers::{Peer, Peers};
use super::summary::Content;
use crate::answer::{
    Answer, AskedBroker, AskedState, Everywhere, FromBroker, Notice, SearchRequest, Statistics,
};
use crate::error::{Crowded, Error};
use crate::page::PageState;
use crate::page::client::Client;
use crate::page::parameters::{Parameters, Scope};

/// Highest `offset + limit`: each broker that is asked sends as many hits.
pub const DEPTH_MAX: usize = 200;
/// Maximum number of searches everywhere at a time.
const SEARCHES_MAX: usize = 32;
/// Share of the deadline in which statistics must come.
const STATISTICS_SHARE: u32 = 4;
/// Maximum number of statistics that are remembered.
const STATISTICS_MAX: usize = 4_096;
/// For how long a search is known again, so that it does not go round, and how many are known.
const SEEN: (Duration, usize) = (Duration::from_secs(60), 10_000);

/// What answers searches everywhere. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Route(Arc<Routing>);

#[derive(Debug)]
struct Routing {
    peers: Peers,
    asking: Asking,
    /// What this broker has itself.
    own: watch::Receiver<Arc<Content>>,
    here: FromBroker,
    statistics: Mutex<HashMap<(String, String), Statistics>>,
    searches: Semaphore,
    seen: Mutex<HashMap<String, std::time::Instant>>,
}

/// Whom to ask.
#[derive(Clone, Debug)]
enum Target {
    Here,
    There(Peer),
}

impl Target {
    fn broker(&self, here: &FromBroker) -> FromBroker {
        match self {
            Self::Here => here.clone(),
            Self::There(peer) => peer.broker.clone(),
        }
    }
}

/// What came of a broker.
struct Outcome {
    broker: FromBroker,
    answer: Result<Answer, Failure>,
    took: Duration,
}

impl Route {
    pub(crate) fn new(
        peers: Peers,
        client: net::client::Client,
        own: watch::Receiver<Arc<Content>>,
        here: FromBroker,
    ) -> Self {
        let asking = Asking::new(client, peers.allow_private());
        let (statistics, seen) = (Mutex::default(), Mutex::default());
        let searches = Semaphore::new(SEARCHES_MAX);
        Self(Arc::new(Routing { peers, asking, own, here, statistics, searches, seen }))
    }

    /// Returns whether there are others to ask.
    pub(crate) fn is_open(&self) -> bool {
        self.0.peers.are_named()
    }

    /// Returns whom to ask, and what is known of all.
    fn chosen(&self, wanted: &Wanted, ask: Option<usize>) -> (Vec<Target>, Everywhere) {
        let known = self.0.peers.known();
        let ask = ask.unwrap_or_else(|| self.0.peers.settings().ask);
        let own = Arc::clone(&self.0.own.borrow());
        let (mut told, mut untold) = (Vec::new(), Vec::new());
        // Until the first summary is made of the index, nobody knows what is in it.
        if own.objects == 0 {
            untold.push(Target::Here);
        } else {
            told.push((None, &*own));
        }
        for peer in known.iter().filter(|it| !self.0.asking.rests(it)) {
            match &peer.summary {
                Some(summary) => told.push((Some(peer), &summary.content)),
                None => untold.push(Target::There(peer.clone())),
            }
        }
        let contents: Vec<&Content> = told.iter().map(|it| it.1).collect();
        let best = ranked(wanted, &contents);
        let target =
            |peer: Option<&Peer>| peer.map_or(Target::Here, |it| Target::There(it.clone()));
        let best = best.into_iter().take(ask).filter_map(|at| told.get(at)).map(|it| target(it.0));
        let chosen = best.chain(untold.into_iter().take(ask)).collect();
        let everywhere = Everywhere {
            by: self.0.here.id.clone(),
            known: known.len() as u64 + 1,
            objects: contents.iter().map(|it| it.objects).sum(),
            ..Everywhere::default()
        };
        (chosen, everywhere)
    }

    /// Returns the statistics of the words of `own`, of all that were chosen.
    async fn statistics(
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
        let version = peer.summary.as_ref().map_or(0, |it| it.content.words);
        let key = (peer.broker.url.clone(), format!("{version} {text}"));
        if let Some(statistics) = known().get(&key) {
            return statistics.clone();
        }
        let parameters = [("q", text)];
        match self
            .0
            .asking
            .ask::<Statistics>(peer, "api/statistics", &parameters, (deadline, spent))
            .await
        {
            Ok((statistics, _)) => {
                let statistics = statistics.within(own);
                let mut known = known();
                if STATISTICS_MAX <= known.len() {
                    known.clear();
                }
                known.insert(key, statistics.clone());
                statistics
            }
            Err(_none) => {
                peer.summary.as_ref().map(|it| statistics_of(&it.content, own)).unwrap_or_default()
            }
        }
    }

    /// Asks a broker for hits.
    async fn ask(
        &self,
        peer: Peer,
        parameters: Vec<(&'static str, String)>,
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Outcome {
        let began = Instant::now();
        let broker = peer.broker.clone();
        let pairs: Vec<(&str, &str)> = parameters.iter().map(|it| (it.0, &*it.1)).collect();
        let mut answer =
            self.0.asking.ask::<Answer>(&peer, "api/search", &pairs, (deadline, spent)).await;
        if matches!(answer, Err(Failure::Older)) {
            let pairs: Vec<(&str, &str)> =
                pairs.into_iter().filter(|it| !NEW.contains(&it.0)).collect();
            answer =
                self.0.asking.ask::<Answer>(&peer, "api/search", &pairs, (deadline, spent)).await;
        }
        let answer = answer.map(|it| it.0);
        Outcome { broker, answer, took: began.elapsed() }
    }

    /// Returns whether a search comes here for the first time.
    fn is_new(&self, id: &str) -> bool {
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
}

/// Parameters that brokers of older versions do not know.
const NEW: [&str; 5] = ["statistics", "scope", "ask", "hops", "search"];

/// Returns what a summary says of words.
fn statistics_of(content: &Content, own: &Statistics) -> Statistics {
    let objects = |word: &str| {
        let stem = stem(word);
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

impl PageState {
    /// Answers a search by all brokers that are worth asking.
    ///
    /// # Errors
    ///
    /// As for [`PageState::ask`]; who else fails is named in the answer.
    pub(crate) async fn ask_everywhere(
        &self,
        client: Client,
        asked: &Parameters,
        text: &str,
        query: &Query,
    ) -> Result<(SearchRequest, Answer), Error> {
        let own = Parameters { scope: Scope::Here, ..asked.clone() };
        let Some(route) = self.route().filter(|it| it.is_open() && client.limit.is_none()) else {
            return Box::pin(self.ask(client, &own, text)).await;
        };
        let depth = asked.offset.saturating_add(asked.limit);
        if DEPTH_MAX < depth {
            let message =
                format!("only the first {DEPTH_MAX} hits of all brokers can be looked through");
            return Err(Error::Query(query::QueryError { offset: 0, len: text.len(), message }));
        }
        let id = asked.search.clone().unwrap_or_else(|| format!("{:032x}", fresh()));
        let crowded =
            Crowded { message: "many searches everywhere are under way", retry_after_secs: 2 };
        let _permit = route.0.searches.try_acquire().ok().ok_or(crowded)?;
        if !route.is_new(&id) {
            // It has come round: who sent it has our answer already.
            return Ok((asked.request(query.clone(), self.matching(asked)), Answer::default()));
        }
        let (began, spent) = (Instant::now(), Arc::new(Spent::default()));
        let round = (route, client.clone(), (began, &spent));
        let mut answer = self.ask_once(round, (asked, id), (text, query)).await?;
        // In the other spelling, all are to score alike.
        if let Some(other) = answer.suggestion.clone().filter(|_| answer.respelled)
            && let Ok(query) = query::parse(&other)
        {
            let asked = Parameters { text: Some(other.clone()), ..asked.clone() };
            let round = (route, client, (began, &spent));
            let id = format!("{:032x}", fresh());
            answer = self.ask_once(round, (&asked, id), (&other, &query)).await?;
            (answer.respelled, answer.suggestion) = (true, Some(other));
        }
        if let Some(everywhere) = &mut answer.everywhere {
            everywhere.messages = spent.messages.load(Ordering::Relaxed);
            everywhere.bytes = spent.bytes.load(Ordering::Relaxed);
        }
        Ok((asked.request(query.clone(), self.matching(asked)), answer))
    }

    /// Asks the brokers that are worth it for their statistics, and then for hits that are scored by those of all.
    async fn ask_once(
        &self,
        (route, client, (began, spent)): (&Route, Client, (Instant, &Arc<Spent>)),
        (asked, id): (&Parameters, String),
        (text, query): (&str, &Query),
    ) -> Result<Answer, Error> {
        let time = route.0.peers.settings().deadline;
        let deadline = began + time;
        let soon = (Instant::now() + time / STATISTICS_SHARE).min(deadline);
        let (chosen, known) = route.chosen(&Wanted::of(query), asked.ask);
        let statistics = self.statistics(client.clone(), query).await?;
        let statistics = route.statistics(&chosen, (text, &statistics), (soon, spent)).await;
        let statistics = Some(Arc::new(statistics));
        let limit = asked.offset.saturating_add(asked.limit);
        let own = Parameters { scope: Scope::Here, limit, statistics, ..asked.at(0) };
        let to_others = Parameters {
            search: (0 < asked.hops).then_some(id),
            scope: if 0 < asked.hops { Scope::Everywhere } else { Scope::Here },
            hops: asked.hops.saturating_sub(1),
            ..own.clone()
        };
        let mut outcomes = self
            .hits_of(route, &chosen, (client, &own, text), &to_others, (deadline, spent))
            .await?;
        outcomes.sort_by_key(|it| it.took);
        Ok(summed_up(outcomes, (asked.offset, asked.limit), known))
    }

    /// Asks those that were chosen for hits.
    async fn hits_of(
        &self,
        route: &Route,
        chosen: &[Target],
        (client, here, text): (Client, &Parameters, &str),
        to_others: &Parameters,
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Result<Vec<Outcome>, Error> {
        let (mut running, mut is_asked) = (JoinSet::new(), false);
        for target in chosen {
            match target {
                Target::Here => is_asked = true,
                Target::There(peer) => {
                    let (route, peer) = (route.clone(), peer.clone());
                    let parameters = to_others.all();
                    let spent = Arc::clone(spent);
                    running.spawn(
                        async move { route.ask(peer, parameters, (deadline, &spent)).await },
                    );
                }
            }
        }
        let mut outcomes = Vec::new();
        if is_asked {
            let began = Instant::now();
            let (_, answer) = Box::pin(self.ask(client, here, text)).await?;
            let broker = Target::Here.broker(&route.0.here);
            outcomes.push(Outcome { broker, answer: Ok(answer), took: began.elapsed() });
        }
        while let Some(ended) = running.join_next().await {
            outcomes.extend(ended.ok());
        }
        Ok(outcomes)
    }
}

/// Returns one answer of all, which names who was asked.
fn summed_up(outcomes: Vec<Outcome>, part: (usize, usize), known: Everywhere) -> Answer {
    let (mut parts, mut asked) = (Vec::new(), Vec::new());
    for Outcome { broker, answer, took } in outcomes {
        let (state, problem) = match &answer {
            Ok(_) => (AskedState::Answered, None),
            Err(Failure::Late) => (AskedState::Late, None),
            Err(Failure::Closed) => (AskedState::Closed, None),
            Err(Failure::Older) => {
                (AskedState::Failed, Some("it is of an older version".to_owned()))
            }
            Err(Failure::Failed(problem)) => (AskedState::Failed, Some(problem.clone())),
        };
        asked.push(AskedBroker {
            broker: broker.clone(),
            state,
            total: answer.as_ref().map_or(0, |it| it.total),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            problem,
        });
        let hits_max = part.0.saturating_add(part.1);
        parts.extend(answer.ok().map(|answer| Part { broker, answer, hits_max }));
    }
    let is_none = asked.is_empty();
    let mut answer = merged(parts, part);
    if is_none {
        let message = "none of the brokers that are known has these words".to_owned();
        answer.notice = Some(Notice { message, ..Notice::default() });
    }
    answer.everywhere = Some(Everywhere { asked, ..known });
    answer
}

/// Returns a number that nobody else has, to know a search again.
fn fresh() -> u128 {
    use std::collections::hash_map::RandomState;
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = || u128::from(RandomState::new().build_hasher().finish());
    (random() << 64) | random()
}
