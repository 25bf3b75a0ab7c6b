//! The hub: connects and accepts, and keeps one link to each member.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use net::error::Retry;
use net::peer::{Endpoint, Stream};
use net::shutdown::Shutdown;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::dial::{Backoff, Strangers, replaces};
use super::frame::{Frame, Reason};
use super::run::linger;
use super::{Event, Link};
use crate::id::MemberId;
use crate::version::Hash;

/// Maximum number of events that wait for the receiver. While so many wait, links whose messages
/// find no room are not read.
pub const EVENTS_MAX: usize = 128;
/// Maximum number of links of one member.
pub const LINKS_MAX: usize = 512;
/// Maximum number of connections that are being made at once.
const DIALS_MAX: usize = 32;
/// Pause after accepting a connection failed because the system lacks some resource.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest time that the hub waits while nothing is due.
const IDLE: Duration = Duration::from_hours(1);
/// Time in which all links send their goodbyes at the end, or a refused connection gets its reason.
const GOODBYES: Duration = Duration::from_millis(1_500);

/// A member to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Neighbor {
    /// Host and port.
    pub address: String,
    /// Its public key; `None` if it is unknown, so that any key is accepted.
    pub key: Option<[u8; 32]>,
}

/// A command to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Keep a link to each of these members, and connect to no others. Links that are up stay up.
    Want(Vec<Neighbor>),
    /// Connect once, if there is no link.
    Once(Neighbor),
}

/// Checks whether the owner of a key may connect. An error is the reason of the refusal.
pub type KeyCheck = Arc<dyn Fn(&[u8; 32]) -> Result<(), Reason> + Send + Sync>;

/// A wanted neighbor.
#[derive(Debug, Default)]
struct Wanted {
    backoff: Backoff,
    /// Time of the next attempt; `None` while there is a link, or if no attempt will follow.
    due: Option<Duration>,
    is_dialing: bool,
    /// The member that was last reached at this address.
    member: Option<MemberId>,
}

/// Result of a task.
enum Done {
    Accepted { from: IpAddr, outcome: Result<Stream, net::peer::Error> },
    Dialed { neighbor: Neighbor, outcome: Result<Stream, net::peer::Error> },
    Ended { link: Link },
    Left { from: IpAddr },
}

/// The links of a member.
pub struct Hub {
    endpoint: Endpoint,
    me: MemberId,
    key_check: KeyCheck,
    started: Instant,
    events: mpsc::Sender<Event>,
    wanted: HashMap<Neighbor, Wanted>,
    links: HashMap<MemberId, Link>,
    strangers: Strangers,
    dials: usize,
    tasks: JoinSet<Done>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hub({} with {} links)", self.me, self.links.len())
    }
}

impl Hub {
    /// Returns a hub without links. `key_check` checks the key of each incoming connection once.
    /// Times of links count from `started`. The receiver of `events` must take them without long
    /// pauses.
    pub fn new(
        endpoint: Endpoint,
        key_check: KeyCheck,
        started: Instant,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let me = MemberId::of(&endpoint.identity().public());
        Self {
            endpoint,
            me,
            key_check,
            started,
            events,
            wanted: HashMap::new(),
            links: HashMap::new(),
            strangers: Strangers::default(),
            dials: 0,
            tasks: JoinSet::new(),
        }
    }

    /// Connects and accepts until the shutdown starts or the commands end. Then it closes all links
    /// within 1.5 s.
    pub async fn run(
        mut self,
        listener: TcpListener,
        mut commands: mpsc::Receiver<Command>,
        shutdown: Shutdown,
    ) {
        loop {
            self.dial_due();
            let wait = self.next_due().saturating_sub(self.now());
            tokio::select! {
                () = shutdown.started() => break,
                Some(done) = self.tasks.join_next() => {
                    if let Ok(done) = done {
                        self.handle_done(done);
                    }
                }
                command = commands.recv() => match command {
                    Some(command) => self.handle_command(command),
                    None => break,
                },
                accepted = listener.accept() => match accepted {
                    Ok((tcp, address)) => self.accept(tcp, address),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a link");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = sleep(wait) => {}
            }
        }
        drop(listener);
        self.links.values().for_each(|it| it.close(Reason::Stopping));
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(GOODBYES, ended).await;
        self.tasks.shutdown().await;
    }

    fn now(&self) -> Duration {
        net::clock::monotonic().saturating_duration_since(self.started)
    }

    fn handle_command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Want(neighbors) => {
                let mut before = std::mem::take(&mut self.wanted);
                for neighbor in neighbors {
                    let new = Wanted { due: Some(now), ..Wanted::default() };
                    let wanted = before.remove(&neighbor).unwrap_or(new);
                    self.wanted.insert(neighbor, wanted);
                }
            }
            Command::Once(neighbor) => {
                let member = neighbor.key.map(|it| MemberId::of(&it));
                if member.is_some_and(|it| self.links.contains_key(&it)) {
                    return;
                }
                match self.wanted.get_mut(&neighbor) {
                    Some(wanted) => wanted.due = wanted.due.map(|_| now),
                    None => self.dial(neighbor),
                }
            }
        }
    }

    fn accept(&mut self, tcp: TcpStream, address: SocketAddr) {
        let from = address.ip();
        if !self.strangers.enter(from) {
            tracing::warn!(%address, "closed: too many of this address have not shown a key");
            return;
        }
        let endpoint = self.endpoint.clone();
        self.tasks
            .spawn(async move { Done::Accepted { from, outcome: endpoint.accept(tcp).await } });
    }

    fn dial(&mut self, neighbor: Neighbor) {
        self.dials += 1;
        let endpoint = self.endpoint.clone();
        self.tasks.spawn(async move {
            let outcome = endpoint.connect(&neighbor.address, neighbor.key).await;
            Done::Dialed { neighbor, outcome }
        });
    }

    fn next_due(&self) -> Duration {
        if DIALS_MAX <= self.dials {
            return self.now() + IDLE;
        }
        let due = self.wanted.values().filter(|it| !it.is_dialing).filter_map(|it| it.due);
        due.min().unwrap_or_else(|| self.now() + IDLE)
    }

    fn dial_due(&mut self) {
        let now = self.now();
        let mut due = Vec::new();
        for (neighbor, wanted) in &mut self.wanted {
            if wanted.is_dialing || wanted.due.is_none_or(|it| now < it) {
                continue;
            }
            let member = neighbor.key.map(|it| MemberId::of(&it)).or(wanted.member);
            if member.is_some_and(|it| self.links.contains_key(&it)) {
                wanted.due = None;
            } else if self.dials + due.len() < DIALS_MAX {
                wanted.is_dialing = true;
                due.push(neighbor.clone());
            }
        }
        due.into_iter().for_each(|it| self.dial(it));
    }

    fn handle_done(&mut self, done: Done) {
        match done {
            Done::Accepted { from, outcome: Ok(stream) } => match (self.key_check)(&stream.key()) {
                Ok(()) => {
                    self.strangers.leave(from);
                    self.admit(stream);
                }
                Err(reason) => self.refuse(stream, reason, Some(from)),
            },
            Done::Accepted { from, outcome: Err(error) } => {
                tracing::debug!(%error, "nobody came in");
                self.strangers.leave(from);
            }
            Done::Dialed { neighbor, outcome } => self.handle_dialed(neighbor, outcome),
            Done::Ended { link } => self.handle_ended(&link),
            Done::Left { from } => self.strangers.leave(from),
        }
    }

    fn handle_dialed(&mut self, neighbor: Neighbor, outcome: Result<Stream, net::peer::Error>) {
        self.dials -= 1;
        let now = self.now();
        let lot = self.lot(&neighbor);
        let wanted = self.wanted.get_mut(&neighbor).filter(|it| it.is_dialing);
        let error = match outcome {
            Ok(stream) => {
                if let Some(wanted) = wanted {
                    wanted.is_dialing = false;
                    wanted.due = None;
                    wanted.member = Some(MemberId::of(&stream.key()));
                }
                return self.admit(stream);
            }
            Err(error) => error,
        };
        let again = wanted.and_then(|wanted| {
            wanted.is_dialing = false;
            let wait = wanted.backoff.handle_failed(lot);
            wanted.due = (error.retry() != Retry::No).then(|| now + wait);
            wanted.due.map(|_| wait)
        });
        self.report(Event::Unreachable { neighbor, error, again });
    }

    /// Makes a link from a connection, unless the link that exists is to be kept.
    fn admit(&mut self, stream: Stream) {
        let member = MemberId::of(&stream.key());
        if let Some(old) = self.links.get(&member) {
            if old.is_up() && !replaces(self.me, member, old.is_dialed(), stream.is_dialed()) {
                return self.refuse(stream, Reason::Duplicate, None);
            }
            old.close(Reason::Duplicate);
        } else if LINKS_MAX <= self.links.len() {
            return self.refuse(stream, Reason::Full, None);
        }
        let link = Link::new(&stream, self.started);
        self.links.insert(member, link.clone());
        // The line between two sites may be up again, so other members are tried at once, too.
        let now = self.now();
        for wanted in self.wanted.values_mut() {
            wanted.due = wanted.due.map(|it| it.min(now));
        }
        let events = self.events.clone();
        self.tasks.spawn(async move {
            let _ = events.send(Event::Up(link.clone())).await;
            let end = link.run(stream, &events).await;
            tracing::debug!(member = %link.member(), %end, "a link is down");
            let _ = events.send(Event::Down(link.clone(), end)).await;
            Done::Ended { link }
        });
    }

    fn handle_ended(&mut self, link: &Link) {
        let now = self.now();
        let member = link.member();
        if self.links.get(&member) != Some(link) {
            return;
        }
        self.links.remove(&member);
        let lasted = now.saturating_sub(link.since());
        let is_it = |neighbor: &Neighbor, wanted: &Wanted| match neighbor.key {
            Some(key) => key == link.key(),
            None => wanted.member == Some(member),
        };
        let lots: Vec<(Neighbor, u64)> = self
            .wanted
            .iter()
            .filter(|(neighbor, wanted)| is_it(neighbor, wanted))
            .map(|(neighbor, _)| (neighbor.clone(), self.lot(neighbor)))
            .collect();
        for (neighbor, lot) in lots {
            if let Some(wanted) = self.wanted.get_mut(&neighbor) {
                wanted.backoff.handle_lasted(lasted);
                wanted.due = Some(now + wanted.backoff.handle_failed(lot));
            }
        }
    }

    /// Sends the reason of a refusal, and closes.
    fn refuse(&mut self, mut stream: Stream, reason: Reason, stranger: Option<IpAddr>) {
        let (address, key) = (stream.address(), stream.key());
        tracing::info!(%address, member = %MemberId::of(&key), reason = reason.text(), "link refused");
        self.report(Event::Refused { address, key, reason });
        let from = stranger.unwrap_or_else(|| address.ip());
        let counts = stranger.is_some();
        if !counts && !self.strangers.enter(from) {
            return;
        }
        self.tasks.spawn(async move {
            let mut goodbye = BytesMut::new();
            Frame::Bye(reason).encode(false, &mut goodbye);
            let sending = async {
                stream.write_all(&goodbye).await?;
                stream.flush().await?;
                stream.shutdown().await
            };
            if let Ok(Ok(())) = timeout(GOODBYES, sending).await {
                linger(&mut stream).await;
            }
            Done::Left { from }
        });
    }

    /// Reports an event that may be lost: it is dropped if too many events wait.
    fn report(&self, event: Event) {
        let _ = self.events.try_send(event);
    }

    /// Returns a random-looking number for a pair of members and an attempt.
    fn lot(&self, neighbor: &Neighbor) -> u64 {
        let failures = self.wanted.get(neighbor).map_or(0, |it| it.backoff.failures());
        let key = self.endpoint.identity().public();
        let parts = [&key[..], neighbor.address.as_bytes(), &failures.to_le_bytes()];
        u64::from_le_bytes(Hash::of(&parts.concat()).first())
    }
}
