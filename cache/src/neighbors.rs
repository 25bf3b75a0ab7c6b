//! The neighbors of a cache: they are asked by ICP who has an object, and are answered.
//!
//! The rules are those of [`resolution`] and [`icp`](crate::icp); this is their
//! socket. Whoever answers is believed only if it was asked, under that number and for that URL, at the
//! address from which the answer comes.

mod tally;

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::client::{Client, Proxy};
use net::clock;
use net::guard::Policy;
use net::shutdown::Shutdown;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use url::{Host, Url};

pub(crate) use self::tally::Tally;
use crate::fetch::giver::Giver;
use crate::icp::{DATAGRAM_BYTES_MAX, Datagram, Opcode};
use crate::resolution::{self, Choice, Code, Kind, Liveness, PATIENCE, Resolution};
use crate::target::destination::is_in_domain;

/// Number of questions that are known after the wait for their answers.
const DONE_MAX: usize = 256;

/// A neighbor, as the settings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Its host.
    pub host: String,
    /// Port of its proxy.
    pub http_port: u16,
    /// Port of its ICP; 0: it speaks none, and is a parent for what no other neighbor has.
    pub icp_port: u16,
    /// Its place in the hierarchy.
    pub kind: Kind,
    /// Domains of the objects for which it is asked; empty: all.
    pub domains: Vec<String>,
}

impl Neighbor {
    fn host(&self) -> Host<&str> {
        match self.host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(address)) => Host::Ipv4(address),
            Ok(IpAddr::V6(address)) => Host::Ipv6(address),
            Err(_) => Host::Domain(&self.host),
        }
    }

    /// Returns the port that names it.
    pub(crate) fn port(&self) -> u16 {
        if self.icp_port == 0 { self.http_port } else { self.icp_port }
    }

    /// Returns whether it is asked for objects of a host.
    fn is_for(&self, host: &str) -> bool {
        self.domains.is_empty() || self.domains.iter().any(|it| is_in_domain(host, it))
    }
}

/// The neighbors. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Neighbors(Arc<Hood>);

#[derive(Debug)]
struct Hood {
    socket: Option<UdpSocket>,
    client: Client,
    list: Vec<State>,
    /// Homes whose distance is being measured, by host and port; each says whether it was reached.
    measuring: Mutex<HashMap<String, watch::Receiver<Option<bool>>>>,
    tasks: TaskTracker,
    waiting: Mutex<HashMap<u32, Waiting>>,
    /// The latest questions that nobody waits for any more, the last [`DONE_MAX`]: answers to them are
    /// still counted.
    done: Mutex<VecDeque<(u32, Waiting)>>,
    /// Datagrams that were not read, or not asked for.
    ignored: AtomicU64,
}

#[derive(Debug)]
struct State {
    settings: Neighbor,
    proxy: Proxy,
    liveness: Mutex<Liveness>,
    tally: Mutex<Tally>,
}

/// Who waits for answers about a URL, and from whom.
#[derive(Debug)]
struct Waiting {
    url: String,
    asked: Vec<(usize, SocketAddr)>,
    answers: mpsc::Sender<(usize, Opcode)>,
    since: Instant,
}

/// Ends the wait for the answers to a question when it is dropped.
struct Done<'a>(&'a Neighbors, u32);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.is_done(self.1);
    }
}

/// Who is asked for an object, and why.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The neighbor's proxy, and how it is named where it gives the object; `None`: the home.
    pub(crate) neighbor: Option<(Proxy, Giver)>,
    pub(crate) code: Code,
}

impl Route {
    /// The way to the home itself.
    pub(crate) const DIRECT: Self = Self { neighbor: None, code: Code::Direct };
}

impl Neighbors {
    /// Returns the neighbors, to be asked and answered over `socket`.
    ///
    /// # Errors
    ///
    /// A neighbor's host is none.
    pub(crate) fn new(
        settings: &[Neighbor],
        socket: Option<UdpSocket>,
        client: Client,
    ) -> Result<Self, net::Error> {
        let state = |it: &Neighbor| {
            let url = format!("http://{}:{}/", it.host, it.http_port);
            let wrong = |error: url::ParseError| net::Error::Url {
                url: url.clone(),
                message: error.to_string(),
            };
            Ok(State {
                settings: it.clone(),
                proxy: Proxy::new(Url::parse(&url).map_err(wrong)?, None)?,
                liveness: Mutex::default(),
                tally: Mutex::default(),
            })
        };
        let list = settings.iter().map(state).collect::<Result<_, net::Error>>()?;
        Ok(Self(Arc::new(Hood {
            socket,
            client,
            list,
            measuring: Mutex::default(),
            tasks: TaskTracker::new(),
            waiting: Mutex::default(),
            done: Mutex::default(),
            ignored: AtomicU64::new(0),
        })))
    }

    /// Waits until no home is being measured any more.
    pub(crate) async fn ended(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Returns the number of datagrams that were not read or not asked for.
    pub(crate) fn ignored(&self) -> u64 {
        self.0.ignored.load(Ordering::Relaxed)
    }

    /// Returns the neighbors, each with what it was asked, and whether it is dead.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Neighbor, Tally, bool)> {
        let list = self.0.list.iter();
        list.map(|it| (&it.settings, *locked(&it.tally), locked(&it.liveness).is_dead()))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, Waiting>> {
        locked(&self.0.waiting)
    }

    /// Returns who is asked for an object.
    pub(crate) async fn route(&self, url: &Url, policy: Policy) -> Route {
        let Some(named) = url.host_str().filter(|_| url.scheme() == "http") else {
            return Route::DIRECT;
        };
        let fit = self.0.list.iter().map(|it| &it.settings).enumerate();
        let (mute, fit): (Vec<_>, Vec<_>) =
            fit.filter(|(_, it)| it.is_for(named)).partition(|(_, it)| it.icp_port == 0);
        let above = mute.first().map(|it| it.0);
        let fit: Vec<usize> = fit.into_iter().map(|it| it.0).collect();
        let choice = self.resolve((url, policy), &fit, above).await;
        match choice.unwrap_or_else(|| resolution::without_answers(above)) {
            Choice::Home(code) => Route { neighbor: None, code },
            Choice::Neighbor(index, code) => {
                let state = self.0.list.get(index);
                state.into_iter().for_each(|it| locked(&it.tally).chosen += 1);
                let giver = |it: &State| Giver::new(code, &it.settings.host);
                Route { neighbor: state.map(|it| (it.proxy.clone(), giver(it))), code }
            }
        }
    }

    /// Asks the neighbors `fit` by ICP who gives an object; `above` is the parent that cannot be asked. `None`: nobody
    /// is asked.
    async fn resolve(
        &self,
        (url, policy): (&Url, Policy),
        fit: &[usize],
        above: Option<usize>,
    ) -> Option<Choice> {
        let socket = self.0.socket.as_ref().filter(|_| !fit.is_empty())?;
        let number = number_of(url);
        let (answers, mut came) = mpsc::channel(fit.len().max(1));
        let query = Datagram { opcode: Opcode::Query, number, url: url.as_str().to_owned() };
        let bytes = query.write()?;
        let asked = self.addresses(fit).await;
        let since = clock::monotonic();
        let waiting = Waiting { url: query.url, asked: asked.clone(), answers, since };
        self.waiting().insert(number, waiting);
        // Whoever asked may leave meanwhile.
        let done = Done(self, number);
        let waited = self.ask(socket, &asked, &bytes).await;
        let mut resolution = Resolution::new(waited, above);
        let lately = self.0.client.distances().lately(url, since);
        let mut home = pin!(self.reached(url, policy, lately));
        let (mut time, mut is_home_known) = (pin!(sleep(PATIENCE)), false);
        let choice = loop {
            if let Some(choice) = resolution.choice() {
                break choice;
            }
            tokio::select! {
                Some((neighbor, opcode)) = came.recv() => {
                    // Timers are not as exact as a distance.
                    let is_near = lately.flatten().is_some_and(|it| it <= since.elapsed());
                    if is_near && !is_home_known {
                        is_home_known = true;
                        resolution.home_reached();
                    }
                    resolution.answer(neighbor, opcode);
                }
                is_reached = &mut home, if !is_home_known => {
                    is_home_known = true;
                    if is_reached {
                        resolution.home_reached();
                    }
                }
                () = &mut time => resolution.time_is_up(),
            }
        };
        drop(done);
        for state in resolution.unanswered().filter_map(|it| self.0.list.get(it)) {
            locked(&state.liveness).was_silent();
        }
        Some(choice)
    }

    /// Returns whether the home of an object can be reached, after as long as that takes: as `lately` says,
    /// what was found of it lately. Otherwise it is measured, once for all who ask meanwhile.
    async fn reached(&self, url: &Url, policy: Policy, lately: Option<Option<Duration>>) -> bool {
        match lately {
            Some(Some(distance)) => {
                sleep(distance).await;
                true
            }
            Some(None) => false,
            None => {
                let mut measured = self.measure(url, policy);
                let measured = measured.wait_for(Option::is_some).await;
                measured.is_ok_and(|it| *it == Some(true))
            }
        }
    }

    /// Has a home measured, if it is not being measured already. It ends when whoever asked has gone, too:
    /// so the next one knows.
    fn measure(&self, url: &Url, policy: Policy) -> watch::Receiver<Option<bool>> {
        let at = format!("{}:{:?}", url.host_str().unwrap_or_default(), url.port());
        let mut measuring = locked(&self.0.measuring);
        if let Some(measured) = measuring.get(&at) {
            return measured.clone();
        }
        let (tell, measured) = watch::channel(None);
        measuring.insert(at.clone(), measured.clone());
        let (this, url) = (self.clone(), url.clone());
        self.0.tasks.spawn(async move {
            let reached = this.0.client.measure(&url, policy, PATIENCE).await;
            locked(&this.0.measuring).remove(&at);
            tell.send_replace(Some(reached.is_ok()));
        });
        measured
    }

    /// Ends the wait for answers.
    fn is_done(&self, number: u32) {
        if let Some(waiting) = self.waiting().remove(&number) {
            let mut done = locked(&self.0.done);
            done.push_back((number, waiting));
            if DONE_MAX < done.len() {
                done.pop_front();
            }
        }
    }

    /// Returns the addresses of neighbors, as far as their names are known.
    async fn addresses(&self, fit: &[usize]) -> Vec<(usize, SocketAddr)> {
        let mut found = Vec::with_capacity(fit.len());
        for index in fit {
            let Some(State { settings, .. }) = self.0.list.get(*index) else { continue };
            let named = self.0.client.addresses(settings.host(), settings.icp_port).await;
            match named.ok().and_then(|it| it.first().copied()) {
                Some(address) => found.push((*index, address)),
                None => tracing::debug!(host = settings.host, "the neighbor's name is unknown"),
            }
        }
        found
    }

    /// Asks the neighbors, and returns those whose answers are waited for.
    async fn ask(
        &self,
        socket: &UdpSocket,
        asked: &[(usize, SocketAddr)],
        query: &[u8],
    ) -> Vec<(usize, Kind)> {
        let mut waited = Vec::new();
        for (index, address) in asked {
            let Some(state) = self.0.list.get(*index) else { continue };
            let is_sent = socket.send_to(query, address).await.is_ok();
            locked(&state.tally).asked += 1;
            let liveness = *locked(&state.liveness);
            if is_sent && !liveness.is_dead() {
                waited.push((*index, state.settings.kind));
            }
        }
        waited
    }

    /// Answers neighbors, and takes their answers, until `stop` starts. `has` says whether a URL is
    /// answered from what is stored, and `may` whether an address may ask.
    pub(crate) async fn run<F: Future<Output = bool>>(
        &self,
        has: impl Fn(Url) -> F,
        may: impl Fn(IpAddr) -> bool,
        stop: &Shutdown,
    ) {
        let Some(socket) = &self.0.socket else { return };
        let mut bytes = vec![0; DATAGRAM_BYTES_MAX + 1];
        loop {
            let received = tokio::select! {
                () = stop.started() => return,
                received = socket.recv_from(&mut bytes) => received,
            };
            // An error is about a datagram that was sent earlier.
            let Ok((count, from)) = received else { continue };
            let datagram = Datagram::read(bytes.get(..count).unwrap_or_default());
            let answer = match datagram {
                Ok(query) if query.opcode == Opcode::Query && may(from.ip()) => {
                    match Url::parse(&query.url) {
                        Ok(url) => {
                            query.answer(if has(url).await { Opcode::Hit } else { Opcode::Miss })
                        }
                        Err(_) => query.answer(Opcode::Error),
                    }
                }
                Ok(answer) if answer.opcode != Opcode::Query && self.take(&answer, from) => {
                    continue;
                }
                _ => {
                    self.0.ignored.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            };
            if let Some(bytes) = answer.write()
                && let Err(error) = socket.send_to(&bytes, from).await
            {
                tracing::debug!(%from, %error, "a neighbor was not answered");
            }
        }
    }

    /// Takes an answer; returns whether it was asked for.
    fn take(&self, answer: &Datagram, from: SocketAddr) -> bool {
        let (waiting, done) = (self.waiting(), locked(&self.0.done));
        let late = done.iter().rev().find(|it| it.0 == answer.number).map(|it| &it.1);
        let asked = waiting.get(&answer.number).or(late).filter(|it| it.url == answer.url);
        let by = asked.and_then(|it| Some((it, it.asked.iter().find(|(_, at)| *at == from)?.0)));
        // An answer that comes later still shows that its sender lives.
        let later = || {
            self.0
                .list
                .iter()
                .position(|it| it.settings.icp_port == from.port() && it.is_at(from.ip()))
        };
        let Some(index) = by.map(|it| it.1).or_else(later) else { return false };
        if let Some(state) = self.0.list.get(index) {
            if locked(&state.liveness).answered() {
                tracing::info!(host = state.settings.host, "a neighbor answers again");
            }
            if let Some((waiting, _)) = by {
                locked(&state.tally).answered(answer.opcode, waiting.since.elapsed());
            }
        }
        if let Some((waiting, index)) = by {
            // Each neighbor's first answer has room.
            let _ = waiting.answers.try_send((index, answer.opcode));
        }
        true
    }
}

impl State {
    /// Returns whether the neighbor is named by this address.
    fn is_at(&self, address: IpAddr) -> bool {
        self.settings.host.parse::<IpAddr>().is_ok_and(|it| it == address)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a number that nobody can guess who has not seen the query.
fn number_of(url: &Url) -> u32 {
    let [.., one, two, three, four] = RandomState::new().hash_one(url.as_str()).to_be_bytes();
    u32::from_be_bytes([one, two, three, four])
}

#[cfg(test)]
mod tests {
    use net::client::Settings;

    use super::*;

    #[test]
    fn a_neighbor_is_asked_for_its_domains() {
        let neighbor = |domains: &[&str]| Neighbor {
            host: "h".to_owned(),
            http_port: 1,
            icp_port: 2,
            kind: Kind::Parent,
            domains: domains.iter().map(|it| (*it).to_owned()).collect(),
        };
        assert!(neighbor(&[]).is_for("a.example"));
        let some = neighbor(&["example.org", ".edu"]);
        let seen = ["example.org", "www.example.org", "myexample.org", "b.edu", "a.example"];
        assert_eq!(seen.map(|it| some.is_for(it)), [true, true, false, true, false]);
    }

    #[tokio::test]
    async fn a_home_is_measured_once_for_all_who_ask() {
        let home = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = home.local_addr().unwrap();
        let url = Url::parse(&format!("http://{at}/a")).unwrap();
        let neighbors = Neighbors::new(&[], None, Client::new(Settings::default())).unwrap();
        let reached = || async {
            let lately = neighbors.0.client.distances().lately(&url, clock::monotonic());
            neighbors.reached(&url, Policy::AllowPrivate, lately).await
        };
        assert_eq!(tokio::join!(reached(), reached(), reached()), (true, true, true));
        assert!(reached().await);
        home.accept().await.unwrap();
        // Who comes now is the next: nobody else had come.
        let last = tokio::net::TcpStream::connect(at).await.unwrap();
        assert_eq!(home.accept().await.unwrap().1, last.local_addr().unwrap());
        neighbors.ended().await;
        assert!(locked(&neighbors.0.measuring).is_empty());
    }
}
