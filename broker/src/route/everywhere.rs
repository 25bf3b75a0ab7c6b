//! Searches everywhere: one answer of the brokers that are worth asking, this one among them.
//!
//! 1. Choose by content summaries ([`choose`](super::choose)); who has none is asked, too; who fails is left alone for a
//!    while.
//! 2. Ask the chosen for the statistics of the query's words. Who does not answer in time counts by its summary.
//! 3. Ask them for hits, which all score by the statistics of all of them; engines of other makes meanwhile
//!    ([`foreign`](super::foreign)).
//! 4. Merge ([`merge`](super::merge)), and say who was asked, and what came of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use query::{Query, QueryError};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::asking::{Failure, Spent};
use super::choose::Wanted;
use super::merge::{self, Part, merged};
use super::routing::{Chosen, Outcome, Route, Target};
use crate::answer::{
    Answer, AskedBroker, AskedState, Everywhere, Facet, FromBroker, Notice, SearchRequest, Sort,
};
use crate::error::{Crowded, Error};
use crate::page::PageState;
use crate::page::client::Client;
use crate::page::parameters::{Parameters, Scope};

/// Highest `offset + limit`: each broker that is asked sends as many hits.
pub const DEPTH_MAX: usize = 200;
/// Share of the deadline in which statistics must come.
const STATISTICS_SHARE: u32 = 4;
/// Share of the deadline that must be left to ask for another spelling.
const SPELLING_SHARE: u32 = 4;
/// Share of the time of who has sent a search on that is left to him, so that he is answered in time.
const ANSWER_SHARE: u32 = 5;

/// Maximum number of brokers that one has asked in turn and that are named.
const IN_TURN_MAX: usize = 100;

/// A search that is under way.
struct Round<'a> {
    route: &'a Route,
    client: Client,
    asked: &'a Parameters,
    deadline: Instant,
    spent: &'a Arc<Spent>,
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
        // Views are of one broker.
        let is_of_here =
            client.limit.is_some() || asked.filters.iter().any(|it| it.facet == Facet::View);
        let Some(route) = self.route().filter(|it| it.is_open() && !is_of_here) else {
            let own = Parameters { scope: Scope::Here, ..asked.clone() };
            return Box::pin(self.ask(client, &own, text)).await;
        };
        if let Some(message) = impossible(asked) {
            return Err(Error::Query(QueryError { offset: 0, len: text.len(), message }));
        }
        let crowded =
            Crowded { message: "many searches everywhere are under way", retry_after_secs: 2 };
        let _permit = route.permit().ok_or(crowded)?;
        let time = match asked.within {
            Some(within) => (within - within / ANSWER_SHARE).min(route.deadline()),
            None => route.deadline(),
        };
        let (deadline, spent) = (Instant::now() + time, &Arc::new(Spent::default()));
        let round = Round { route, client, asked, deadline, spent };
        // Who was sent here has engines of its own; they are not asked for further pages.
        let is_first = asked.search.is_none() && asked.offset == 0 && asked.filters.is_empty();
        let foreign = async {
            if is_first { route.engines().ask(query, (deadline, spent)).await } else { None }
        };
        let (answer, foreign) = tokio::join!(self.rounds(round, time, (text, query)), foreign);
        let mut answer = answer?;
        if let Some(everywhere) = &mut answer.everywhere {
            // To what those have spent that have asked others in turn.
            let (messages, bytes) = (&mut everywhere.messages, &mut everywhere.bytes);
            *messages = messages.saturating_add(spent.messages.load(Ordering::Relaxed));
            *bytes = bytes.saturating_add(spent.bytes.load(Ordering::Relaxed));
            everywhere.foreign = foreign;
        }
        Ok((asked.request(query.clone(), self.matching(asked)), answer))
    }

    /// Asks once, or twice if the answer is to another spelling: in that, all are to score alike.
    async fn rounds(
        &self,
        round: Round<'_>,
        time: Duration,
        typed: (&str, &Query),
    ) -> Result<Answer, Error> {
        let answer = self.ask_once(&round, typed).await?;
        let is_time = Instant::now() + time / SPELLING_SHARE <= round.deadline;
        let respelled = answer.suggestion.clone().filter(|_| answer.respelled && is_time);
        let Some((other, query)) =
            respelled.and_then(|it| Some((it.clone(), query::parse(&it).ok()?)))
        else {
            return Ok(answer);
        };
        let asked = Parameters { text: Some(other.clone()), search: None, ..round.asked.clone() };
        let mut answer = self.ask_once(&Round { asked: &asked, ..round }, (&other, &query)).await?;
        (answer.respelled, answer.suggestion) = (true, Some(other));
        Ok(answer)
    }

    /// Asks the brokers that are worth it for their statistics, and then for hits that are scored by those of all.
    async fn ask_once(
        &self,
        round: &Round<'_>,
        (text, query): (&str, &Query),
    ) -> Result<Answer, Error> {
        let Round { route, client, asked, deadline, spent } = round;
        let (chosen, known) = route.chosen(&Wanted::of(query), asked.ask);
        let statistics = match &asked.statistics {
            // Who has sent it here knows of more brokers.
            Some(given) => Arc::clone(given),
            None => {
                let own = self.statistics(client.clone(), query).await?;
                let time = deadline.saturating_duration_since(Instant::now());
                let soon = (Instant::now() + time / STATISTICS_SHARE, *spent);
                Arc::new(route.statistics(&chosen.targets, (text, &own), soon).await)
            }
        };
        let own = Parameters {
            scope: Scope::Here,
            limit: asked.offset.saturating_add(asked.limit),
            statistics: Some(statistics),
            // All order alike, whatever their settings say.
            matching: Some(self.matching(asked)),
            feedback: Some(asked.feedback.unwrap_or(false)),
            search: None,
            within: None,
            ..asked.at(0)
        };
        let outcomes = self.hits_of(round, chosen, (&own, text)).await?;
        let wanted = merge::Wanted {
            sort: asked.sort,
            duplicates: asked.duplicates,
            offset: asked.offset,
            limit: asked.limit,
        };
        Ok(summed_up(outcomes, wanted, (known, round.route.here())))
    }

    /// Asks those that were chosen for hits.
    async fn hits_of(
        &self,
        round: &Round<'_>,
        chosen: Chosen,
        (own, text): (&Parameters, &str),
    ) -> Result<Vec<Outcome>, Error> {
        let Round { route, client, asked, deadline, spent } = round;
        let asks_others = 0 < asked.hops;
        let is_sent_on = asks_others || asked.search.is_some();
        let to_others = Parameters {
            search: is_sent_on.then(|| asked.search.clone().unwrap_or_else(|| route.name())),
            scope: if asks_others { Scope::Everywhere } else { Scope::Here },
            within: is_sent_on.then(|| deadline.saturating_duration_since(Instant::now())),
            hops: asked.hops.saturating_sub(1),
            ..own.clone()
        };
        let parameters: Arc<[(&str, String)]> = to_others.all().into();
        let (mut running, mut is_asked) = (JoinSet::new(), false);
        for target in chosen.targets {
            match target {
                Target::Here => is_asked = true,
                Target::There(peer) => {
                    let (route, parameters) = ((*route).clone(), Arc::clone(&parameters));
                    let (deadline, spent) = (*deadline, Arc::clone(spent));
                    running.spawn(async move {
                        let asking = (&*parameters, asks_others);
                        route.ask(&peer, asking, (deadline, &spent)).await
                    });
                }
            }
        }
        let mut outcomes = Vec::new();
        if is_asked {
            let began = Instant::now();
            let asking = Box::pin(self.ask(client.clone(), own, text));
            let answer = match timeout_at(*deadline, asking).await {
                Ok(Ok((_, answer))) => Ok(answer),
                Err(_) | Ok(Err(Error::Late)) => Err(Failure::Late),
                Ok(Err(Error::Crowded(crowded))) => Err(Failure::Failed(crowded.to_string())),
                Ok(Err(error)) => return Err(error),
            };
            let (broker, took) = (route.here().clone(), began.elapsed());
            let (objects_max, warnings) = (u64::MAX, Vec::new());
            outcomes.push(Outcome { broker, answer, took, objects_max, warnings });
        }
        while let Some(ended) = running.join_next().await {
            outcomes.extend(ended.ok());
        }
        outcomes.sort_by_key(|it| it.took);
        outcomes.extend(chosen.resting.into_iter().map(|it| route.resting(it)));
        Ok(outcomes)
    }
}

/// Returns why several brokers cannot answer as asked.
fn impossible(asked: &Parameters) -> Option<String> {
    if DEPTH_MAX < asked.offset.saturating_add(asked.limit) {
        return Some(format!(
            "only the first {DEPTH_MAX} hits of all brokers can be looked through"
        ));
    }
    // When a record came to a broker, only that broker knows.
    (asked.sort == Sort::Updated).then(|| {
        "the order of updates is that of one broker; sort=newest is by modification".to_owned()
    })
}

/// Returns whether both name one broker.
fn are_same(a: &FromBroker, b: &FromBroker) -> bool {
    a.url == b.url || (a.id == b.id && !a.id.is_empty())
}

/// Returns one answer of all, which names who was asked.
fn summed_up(
    outcomes: Vec<Outcome>,
    wanted: merge::Wanted,
    (mut known, here): (Everywhere, &FromBroker),
) -> Answer {
    let (mut parts, mut asked, mut in_turn) = (Vec::new(), Vec::new(), Vec::new());
    for Outcome { broker, answer, took, objects_max, warnings } in outcomes {
        if let Some(others) = answer.as_ref().ok().and_then(|it| it.everywhere.as_ref()) {
            known.messages = known.messages.saturating_add(others.messages);
            known.bytes = known.bytes.saturating_add(others.bytes);
            // Those who know us may ask us.
            let is_other =
                |it: &&AskedBroker| !are_same(&it.broker, &broker) && !are_same(&it.broker, here);
            let others = others.asked.iter().filter(is_other);
            in_turn.extend(others.take(IN_TURN_MAX).map(|it| merge::asked_by(it, &broker)));
        }
        let (state, problem) = AskedState::of(answer.as_ref().err());
        asked.push(AskedBroker {
            broker: broker.clone(),
            state,
            total: answer.as_ref().map_or(0, |it| it.total.min(objects_max)),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            problem,
            warnings,
            via: None,
        });
        parts.extend(answer.ok().map(|answer| Part { broker, answer, objects_max }));
    }
    let is_none = asked.is_empty();
    asked.extend(in_turn);
    let mut answer = merged(parts, wanted);
    if is_none {
        let message = "none of the brokers that are known has these words".to_owned();
        answer.notice = Some(Notice { message, ..Notice::default() });
    }
    answer.everywhere = Some(Everywhere { asked, ..known });
    answer
}
