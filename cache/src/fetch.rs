//! Fetching: asking origins, once for all clients that ask for the same at that time.
//!
//! A *flight* is one fetch with all who wait for it. Whoever finds one for the URL joins it, and has
//! the body as it arrives ([`Transfer`]). An answer that is for one client alone goes to the one that
//! began the flight; the others fetch for themselves, and so does everybody for that URL for
//! [`APART`].
//!
//! # Differences from other caches
//!
//! A joiner waits for the head alone, not for the whole body, and a fetch outlives the client that
//! began it as long as another one wants it.

mod asking;
pub(crate) mod coming;
mod flight;
mod forgetting;
pub(crate) mod giver;
pub(crate) mod mirrored;
pub(crate) mod schemes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header};
use net::client::Client;
use net::clock;
use net::guard::Policy;
use net::shutdown::Shutdown;
use quick_cache::sync::Cache;
use regex::Regex;
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

use asking::Came;
use coming::Coming;
use flight::{Direct, Flight, Outcome, Place};
use giver::Giver;
use mirrored::Mirrors;
use schemes::Schemes;

use crate::content::Content;
use crate::counts::Counts;
use crate::memory::Object;
use crate::neighbors::Neighbors;
use crate::objects::Objects;
use crate::origin::{dated, is_of_object};
use crate::policy::range;
use crate::policy::storing::{Head, NotStored, keep, own, sets_cookies};
use crate::request::Asked;
use crate::transfer::{End, Quota, Reader, Transfer};

/// Time for which a URL is not joined whose answer was for one client alone.
const APART: Duration = Duration::from_secs(60);

/// Number of URLs of which that is known.
const APART_MAX: usize = 10_000;

/// Bytes of a validation's answer that are read so that the connection can be used again.
const REST_BYTES_MAX: usize = 16 << 10;

/// Bytes ahead of what has come from which on a part is worth waiting for.
const REACH_BYTES: u64 = 1 << 20;

/// An answer of an origin.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It flows to all who want it.
    Flowing {
        head: Arc<Head>,
        /// Headers beside those that all get, for the client that began it.
        own: HeaderMap,
        reader: Reader,
        transfer: Arc<Transfer>,
        /// Whether somebody else's request brought it.
        is_joined: bool,
        giver: Option<Giver>,
    },
    /// What was stored is still good, as this one says.
    Validated { object: Arc<Object>, own: HeaderMap, is_joined: bool, giver: Option<Giver> },
    /// The origin fails, and what was stored is used instead.
    Instead { object: Arc<Object> },
    /// It is for this client alone.
    Alone { response: Box<Coming>, why: NotStored },
}

/// A fetch without an answer.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The origin gave none.
    Origin(Arc<net::Error>),
    /// The cache stops.
    Stopping,
}

/// What asks origins. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    objects: Objects,
    neighbors: Neighbors,
    schemes: Schemes,
    mirrors: Mirrors,
    /// The guard's policy for homes.
    policy: Policy,
    routes: Mutex<BTreeMap<&'static str, u64>>,
    counts: Arc<Counts>,
    flights: Mutex<HashMap<String, Arc<Flight>>>,
    apart: Cache<String, Instant>,
    /// When a URL was last changed by a request, or purged: what was requested before is not stored.
    changed: Cache<String, Instant>,
    /// The same of URLs by patterns, the last of them.
    purged: Mutex<VecDeque<(Instant, Regex)>>,
    /// Why the last answer of a URL was not stored, with its status.
    not_stored: Cache<String, (StatusCode, NotStored)>,
    /// Who gave the last answer of a URL.
    givers: Cache<String, Giver>,
    tasks: TaskTracker,
    stop: Shutdown,
    folder: PathBuf,
    quota: Arc<Quota>,
}

impl Fetcher {
    pub(crate) fn new(
        client: Client,
        (objects, neighbors): (Objects, Neighbors),
        (schemes, mirrors): (Schemes, Mirrors),
        policy: Policy,
        folder: PathBuf,
        stop: Shutdown,
    ) -> Self {
        let quota = objects.quota();
        Self(Arc::new(Shared {
            client,
            objects,
            neighbors,
            schemes,
            mirrors,
            policy,
            routes: Mutex::default(),
            counts: Arc::default(),
            flights: Mutex::default(),
            apart: Cache::new(APART_MAX),
            changed: Cache::new(APART_MAX),
            purged: Mutex::default(),
            not_stored: Cache::new(APART_MAX),
            givers: Cache::new(APART_MAX),
            tasks: TaskTracker::new(),
            stop,
            folder,
            quota,
        }))
    }

    /// Returns how many objects were requested from whom, by code.
    pub(crate) fn routes(&self) -> BTreeMap<&'static str, u64> {
        self.0.routes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what is counted.
    pub(crate) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.0.counts)
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<String, Arc<Flight>>> {
        self.0.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of the last answer of a URL that was not stored, and why it was not.
    pub(crate) fn not_stored(&self, url: &str) -> Option<(StatusCode, NotStored)> {
        self.0.not_stored.get(url)
    }

    /// Returns the number of fetches under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.tasks.len()
    }

    /// Returns the fetches that others can join, with their URLs, and the time since they began.
    pub(crate) fn joinable(&self) -> Vec<(String, Arc<Transfer>, Duration)> {
        let flights = self.flights();
        let one = |(url, it): (&String, &Arc<Flight>)| {
            let is_alone = matches!(&*it.outcome.borrow(), Some(Outcome::Alone(_)));
            let found = (url.clone(), Arc::clone(&it.transfer), it.began.elapsed());
            (!is_alone).then_some(found)
        };
        flights.iter().filter_map(one).collect()
    }

    /// Returns the client that asks origins.
    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns the neighbors.
    pub(crate) fn neighbors(&self) -> &Neighbors {
        &self.0.neighbors
    }

    /// Waits for all fetches to end, after the shutdown has started.
    pub(crate) async fn ended(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.neighbors.ended().await;
    }

    /// Runs a task until it ends by itself.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Fetches an object; `stored` is asked about, if there is something stored.
    pub(crate) async fn get(
        &self,
        asked: &Arc<Asked>,
        stored: Option<Arc<Object>>,
    ) -> Result<Answer, Failure> {
        let (url, headers) = (asked.object.url.as_str(), &asked.headers);
        let is_apart = self.0.apart.get(url).is_some_and(|it| clock::monotonic() < it + APART);
        let (flight, reader, direct) = if is_apart || !asked.may_join() {
            self.fly_apart(asked, stored.clone())
        } else if range::is_passed_on(headers) {
            self.join_near(asked).unwrap_or_else(|| self.fly_apart(asked, stored.clone()))
        } else {
            self.join(asked, stored.clone())
        };
        if direct.is_some() {
            return self.follow(url, &flight, reader, direct).await;
        }
        match self.follow(url, &flight, reader, None).await {
            Ok(Answer::Flowing { head, .. }) if !head.vary.answers(headers) => {}
            Ok(Answer::Validated { object, .. } | Answer::Instead { object, .. })
                if !object.head().vary.answers(headers) => {}
            Ok(Answer::Alone { .. }) => {}
            // Somebody else's flight was given up just now.
            Err(Failure::Stopping) if !self.0.stop.is_started() => {}
            outcome => return outcome,
        }
        self.0.apart.insert(url.to_owned(), clock::monotonic());
        let (flight, reader, direct) = self.fly_apart(asked, stored);
        self.follow(url, &flight, reader, direct).await
    }

    /// Asks the origin whether what is stored is still good, for nobody in particular.
    pub(crate) fn validate(&self, asked: Asked, stored: Arc<Object>) {
        let (flight, reader, direct) = self.join(&Arc::new(asked), Some(stored));
        if direct.is_none() {
            return;
        }
        // It is read by nobody; the reader keeps it from being given up, as long as it can be stored.
        self.spawn(async move {
            flight.transfer.settled().await;
            drop((reader, direct));
        });
    }

    /// Joins the flight for a URL, or begins one. Who begins it gets what is for one client alone.
    fn join(&self, asked: &Arc<Asked>, stored: Option<Arc<Object>>) -> Place {
        let url = asked.object.url.as_str();
        let mut flights = self.flights();
        if let Some(flight) = flights.get(url).filter(|it| it.answers(asked)) {
            return (Arc::clone(flight), flight.transfer.read(), None);
        }
        let place = self.fly_apart(asked, stored);
        flights.insert(url.to_owned(), Arc::clone(&place.0));
        place
    }

    /// Joins the flight for a URL if the part that is asked for is there, or will be soon.
    fn join_near(&self, asked: &Asked) -> Option<Place> {
        let start = range::start(&asked.headers)?;
        let flights = self.flights();
        let flight = flights.get(asked.object.url.as_str())?;
        let is_near = start <= flight.transfer.arrived() + REACH_BYTES && flight.answers(asked);
        is_near.then(|| (Arc::clone(flight), flight.transfer.read(), None))
    }

    /// Begins a flight that nobody else finds.
    fn fly_apart(&self, asked: &Arc<Asked>, stored: Option<Arc<Object>>) -> Place {
        let transfer = Transfer::new(self.0.folder.clone(), Arc::clone(&self.0.quota));
        let (outcome, began) = (watch::Sender::new(None), clock::monotonic());
        let flight = Arc::new(Flight { transfer, outcome, began });
        let reader = flight.transfer.read();
        let (direct, receiver) = oneshot::channel();
        let (this, asked, flown) = (self.clone(), Arc::clone(asked), Arc::clone(&flight));
        self.spawn(async move {
            let url = asked.object.url.as_str();
            tokio::select! {
                biased;
                () = this.given_up(url, &flown) => {}
                () = this.0.stop.started() => {}
                () = this.fly(&asked, stored, &flown, direct) => {}
            }
            this.remove(url, &flown);
            if flown.transfer.is_too_long() {
                // It is not stored; what it would replace is old.
                this.0.objects.remove(url, Some(&asked.headers));
            }
            flown.transfer.end_if_open();
            flown.outcome.send_if_modified(|it| {
                let is_open = it.is_none();
                it.get_or_insert(Outcome::Ended);
                is_open
            });
        });
        (flight, reader, Some(receiver))
    }

    /// Waits until nobody wants a flight any more, and keeps others from joining it.
    async fn given_up(&self, url: &str, flight: &Arc<Flight>) {
        loop {
            flight.transfer.abandoned().await;
            let mut flights = self.flights();
            // Whoever joins holds the lock.
            if flight.transfer.is_abandoned() {
                if flights.get(url).is_some_and(|it| Arc::ptr_eq(it, flight)) {
                    flights.remove(url);
                }
                return;
            }
        }
    }

    fn remove(&self, url: &str, flight: &Arc<Flight>) {
        let mut flights = self.flights();
        if flights.get(url).is_some_and(|it| Arc::ptr_eq(it, flight)) {
            flights.remove(url);
        }
    }

    /// Waits for the outcome of a flight; `direct` brings what is for this client alone.
    async fn follow(
        &self,
        url: &str,
        flight: &Arc<Flight>,
        reader: Reader,
        direct: Option<oneshot::Receiver<Direct>>,
    ) -> Result<Answer, Failure> {
        let is_joined = direct.is_none();
        let mut outcome = flight.outcome.subscribe();
        let mut outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
        let (mut alone, mut own) = (None, HeaderMap::new());
        // It comes before the outcome, or never.
        match direct.and_then(|mut it| it.try_recv().ok()) {
            Some(Direct::Answer(response)) => alone = Some(response),
            Some(Direct::Outcome(its, headers)) => (outcome, own) = (Some(its), headers),
            None => {}
        }
        match outcome.unwrap_or(Outcome::Ended) {
            Outcome::Flowing(head, giver) => {
                let transfer = Arc::clone(&flight.transfer);
                Ok(Answer::Flowing { head, own, reader, transfer, is_joined, giver })
            }
            Outcome::Validated(object, giver) => {
                Ok(Answer::Validated { object, own, is_joined, giver })
            }
            Outcome::Instead(object) => Ok(Answer::Instead { object }),
            Outcome::Alone(why) => {
                self.0.apart.insert(url.to_owned(), clock::monotonic());
                let response = alone.ok_or(Failure::Stopping)?;
                Ok(Answer::Alone { response, why })
            }
            Outcome::Failed(error) => Err(Failure::Origin(error)),
            Outcome::Ended => Err(Failure::Stopping),
        }
    }

    /// Asks the origin, says what came of it, and carries the body.
    async fn fly(
        &self,
        asked: &Asked,
        stored: Option<Arc<Object>>,
        flight: &Arc<Flight>,
        direct: oneshot::Sender<Direct>,
    ) {
        let (url, began) = (asked.object.url.as_str(), clock::monotonic());
        let came = self.ask(asked, stored.as_ref(), began).await;
        let start = match (&came, &stored) {
            (Ok(Came::Rest(..)), Some(object)) => object.body.in_memory(),
            _ => None,
        };
        let (mut response, times) = match came {
            Ok(Came::Answer(response, times) | Came::Rest(response, times)) => (response, times),
            Ok(Came::Stored(outcome, own)) => {
                // Whoever comes now finds it in memory.
                self.remove(url, flight);
                return self.tell(url, flight, (direct, own), outcome);
            }
            Err(error) => {
                self.remove(url, flight);
                flight.outcome.send_replace(Some(Outcome::Failed(Arc::new(error))));
                return;
            }
        };
        self.given(url, response.giver.as_ref());
        dated(&mut response.headers, times);
        let kept = keep(asked.ask(), response.status, &response.headers, times, &asked.rules);
        let head = match kept {
            Ok(head) => Arc::new(head),
            Err(why) => return self.give_alone(asked, (response, why), flight, direct),
        };
        flight.transfer.promise(response.length());
        let giver = response.giver.clone();
        let own = own(&response.headers, &head.terms.control);
        let outcome = Outcome::Flowing(Arc::clone(&head), giver);
        self.tell(url, flight, (direct, own), outcome);
        let bytes_max = self.0.objects.body_bytes_max();
        let end = flight.transfer.fill(start, &mut response, bytes_max).await;
        let transfer = &flight.transfer;
        let is_all = transfer.promised().is_none_or(|it| it == transfer.arrived());
        if end == End::Whole && is_all {
            let whole = flight.transfer.whole();
            let long = || Content::Transfer(Arc::clone(&flight.transfer));
            let body = whole.map_or_else(long, Content::Memory);
            let object = Arc::new(Object::new(&head, body));
            self.0.objects.put(url, (&object, &head), || !self.has_changed(url, began));
        }
    }

    /// Tells all of the outcome of a flight, and the client that began it of its own headers. If these set
    /// cookies, everybody else asks for itself.
    fn tell(
        &self,
        url: &str,
        flight: &Arc<Flight>,
        (direct, own): (oneshot::Sender<Direct>, HeaderMap),
        outcome: Outcome,
    ) {
        // It stays among the flights until its end, so that a refresh for nobody is not begun twice.
        let for_all = if sets_cookies(&own) {
            self.0.apart.insert(url.to_owned(), clock::monotonic());
            Outcome::Alone(NotStored::Cookie)
        } else {
            outcome.clone()
        };
        // Who began the flight may have left.
        let _ = direct.send(Direct::Outcome(outcome, own));
        flight.outcome.send_replace(Some(for_all));
    }

    /// Gives the client that began a flight its answer, which is not stored for this reason.
    fn give_alone(
        &self,
        asked: &Asked,
        (response, why): (Box<Coming>, NotStored),
        flight: &Arc<Flight>,
        direct: oneshot::Sender<Direct>,
    ) {
        let url = asked.object.url.as_str();
        self.0.not_stored.insert(url.to_owned(), (response.status, why));
        // What it replaces is not used any more; an answer that is about the client alone replaces nothing.
        let is_about_object = is_of_object(response.status) && why != NotStored::RequestNoStore;
        if is_about_object && !asked.headers.contains_key(header::AUTHORIZATION) {
            self.0.objects.remove(url, Some(&asked.headers));
        }
        self.remove(url, flight);
        // Who began the flight may have left.
        let _ = direct.send(Direct::Answer(response));
        flight.outcome.send_replace(Some(Outcome::Alone(why)));
    }
}
