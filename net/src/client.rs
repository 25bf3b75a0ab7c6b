//! The HTTP client: one per daemon, shared by its clones.
//!
//! The client asks for no compression and decodes none. Callers see the bytes that the peer sent,
//! so checksums and byte ranges hold. It keeps no cookies and caches nothing.
//!
//! Source: RFC 9110 §15.4 for redirects. A redirect from the public internet into a private network
//! is refused, even if the first URL was allowed to be in a private network. Credentials go only to
//! the origin for which they were meant. A request may go through a [`Proxy`]; none is taken from
//! the environment.

pub(crate) mod proxy;
mod request;
pub(crate) mod settings;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, header};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

pub use self::proxy::Proxy;
use self::request::destination;
pub use self::request::{Credentials, Request, redirect, user_agent};
pub use self::settings::{Settings, Timeouts};
use crate::body::Body;
use crate::clock::monotonic;
use crate::connect::distance::Distances;
use crate::connect::{Connector, Dialed, Route, authority};
use crate::error::{Error, Stage};
use crate::guard::{self, Policy, Refusal};
use crate::pool::{Destination, Pool};
pub use crate::response::{Response, http_date, http_date_of, retry_after};
use crate::session::{Session, Unanswered};

/// Largest body of a redirect that is read to reuse the connection, in bytes.
const REDIRECT_BYTES_MAX: u64 = 16 * 1024;

/// Time for which an unused connection is kept.
const KEPT: Duration = Duration::from_secs(20);

/// An HTTP client: one per daemon, shared by its clones.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    settings: Settings,
    user_agent: HeaderValue,
    connector: Connector,
    permits: Arc<Semaphore>,
    pool: Mutex<Pool<Session>>,
}

impl Shared {
    /// Keeps a connection for the next request.
    pub(crate) fn keep(&self, destination: Destination, session: Session) {
        self.pool().keep(destination, session, monotonic());
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool<Session>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The head of an answer, and the connection that its body will come over.
struct AnswerHead {
    head: http::Response<Incoming>,
    session: Session,
    destination: Destination,
}

impl Client {
    /// Returns a client. Control characters in the contact are left out.
    pub fn new(settings: Settings) -> Self {
        let connector = Connector::new(settings.extra_roots.clone(), settings.pinned.clone());
        let permits = Arc::new(Semaphore::new(settings.connections_max));
        let pool = Mutex::new(Pool::new(settings.idle_per_host_max, KEPT));
        let user_agent = user_agent(settings.contact.as_deref());
        Self { shared: Arc::new(Shared { settings, user_agent, connector, permits, pool }) }
    }

    /// Returns the time-outs of requests that have none of their own.
    pub fn timeouts(&self) -> Timeouts {
        self.shared.settings.timeouts
    }

    /// Returns the distances of the hosts that this client has connected to.
    pub fn distances(&self) -> &Distances {
        &self.shared.connector.distances
    }

    /// Connects to a URL's host within `patience` and no more, to know its distance.
    ///
    /// # Errors
    ///
    /// The host was not reached, or is refused by the guard.
    pub async fn measure(
        &self,
        url: &Url,
        policy: Policy,
        patience: Duration,
    ) -> Result<(), Error> {
        self.shared.connector.measure(url, policy, patience).await
    }

    /// Orders the addresses of replicas: the nearest first by the measured time of a round trip, those that were not
    /// reached within `patience` last. Hosts that nobody has tried lately are measured, all at the same time; one
    /// address alone is not.
    ///
    /// Source: TR §11 (the nearest instance of a server).
    pub async fn nearest(
        &self,
        mut urls: Vec<Url>,
        policy: Policy,
        patience: Duration,
    ) -> Vec<Url> {
        if urls.len() < 2 {
            return urls;
        }
        let mut measuring = JoinSet::new();
        let now = monotonic();
        for url in urls.iter().filter(|it| self.distances().lately(it, now).is_none()) {
            let (client, url) = (self.clone(), url.clone());
            measuring.spawn(async move { client.measure(&url, policy, patience).await });
        }
        while measuring.join_next().await.is_some() {}
        let now = monotonic();
        let distance = |it: &Url| self.distances().lately(it, now).flatten();
        // They may change meanwhile.
        urls.sort_by_cached_key(|it| distance(it).unwrap_or(Duration::MAX));
        urls
    }

    /// Connects to `port` of `host` within `patience`, for any protocol. The name is resolved, the guard vets
    /// each address, and connections are made only to addresses that it allows.
    ///
    /// # Errors
    ///
    /// [`Error::Resolve`], [`Error::Refused`], [`Error::Connect`] or [`Error::Timeout`].
    pub async fn dial(
        &self,
        host: Host<&str>,
        port: u16,
        policy: Policy,
        patience: Duration,
    ) -> Result<Dialed, Error> {
        self.shared.connector.dial(host, port, policy, patience).await
    }

    /// Returns the addresses of a host, as they are remembered for a minute.
    ///
    /// # Errors
    ///
    /// [`Error::Resolve`]
    pub async fn addresses(&self, host: Host<&str>, port: u16) -> Result<Vec<SocketAddr>, Error> {
        self.shared.connector.addresses(host, port).await
    }

    /// Returns whether the host of a URL is in a private network, or this machine; false if it is not known.
    pub async fn is_private(&self, url: &Url) -> bool {
        let Some(host) = url.host() else { return false };
        let addresses = self.addresses(host, url.port_or_known_default().unwrap_or(80)).await;
        addresses.is_ok_and(|them| them.iter().any(|it| guard::classify(it.ip()).is_some()))
    }

    /// Sends a request and returns its answer as soon as the head has come, whatever its status.
    /// Redirects are followed, each hop vetted by the guard.
    ///
    /// # Errors
    ///
    /// There is no answer; the error says whether to try again.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        self.send_with(request, None).await
    }

    /// Sends somebody's request with a body that is read while it is sent. Returns the answer as it
    /// is, also one that redirects.
    ///
    /// # Errors
    ///
    /// There is no answer; the error says whether to try again. The body is lost.
    pub async fn pass(&self, request: Request, body: Body) -> Result<Response, Error> {
        let request = Request { keeps_redirect: true, is_passed_on: true, ..request };
        // Without a body it can be sent again.
        let body = (!http_body::Body::is_end_stream(&body)).then_some(body);
        self.send_with(request, body).await
    }

    async fn send_with(&self, request: Request, body: Option<Body>) -> Result<Response, Error> {
        let timeouts = request.timeouts.unwrap_or(self.shared.settings.timeouts);
        let host = request.host();
        let permit = self.permit(&host, timeouts.connect).await?;
        let sent = Box::pin(self.follow(request, body, timeouts));
        let Some(total) = timeouts.total else {
            return sent.await.map(|it| it.begin(permit, None));
        };
        let deadline = Instant::now() + total;
        match timeout_at(deadline, sent).await {
            Ok(sent) => sent.map(|it| it.begin(permit, Some((deadline, total)))),
            Err(_) => Err(Error::Timeout { host, stage: Stage::Total, after: total }),
        }
    }

    async fn permit(&self, host: &str, after: Duration) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Arc::clone(&self.shared.permits).acquire_owned();
        match timeout(after, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::Timeout { host: host.to_owned(), stage: Stage::Queue, after }),
        }
    }

    /// Sends a request, and those that its answers redirect to.
    async fn follow(
        &self,
        mut request: Request,
        mut body: Option<Body>,
        timeouts: Timeouts,
    ) -> Result<Response, Error> {
        let settings = &self.shared.settings;
        let start = request.url.clone();
        let default = Policy::from_allow_private(settings.allow_private);
        let mut policy = request.policy.unwrap_or(default);
        let mut outside = None;
        for _ in 0..=settings.redirects_max {
            let answered = self.exchange(&request, body.take(), policy, timeouts).await;
            let answered = answered.map_err(|error| private_redirect(error, outside.as_deref()))?;
            request.vet_answer(answered.head.status())?;
            let next = if request.keeps_redirect {
                None
            } else {
                redirect(&request.url, answered.head.status(), answered.head.headers())?
            };
            let bytes_max = request.response_bytes_max.unwrap_or(settings.response_bytes_max);
            let status = answered.head.status();
            let private = guard::is_inside(answered.session.address, request.url.host());
            let AnswerHead { head, session, destination } = answered;
            let (url, shared) = (request.url.clone(), Arc::clone(&self.shared));
            let response =
                Response::new(head, url, session, destination, shared, timeouts.idle, bytes_max);
            let Some(next) = next else { return Ok(response) };
            // The body is read so that the connection can be used again; its content does not
            // matter.
            drop(response.bytes(REDIRECT_BYTES_MAX).await);
            if !private && (policy == Policy::AllowPrivate || outside.is_some()) {
                policy = Policy::Public;
                outside = Some(authority(&request.url));
            }
            request.redirect(next, status);
        }
        Err(Error::Redirects { url: start.into(), redirects_max: settings.redirects_max })
    }

    /// Sends one request over a kept connection, or else over a new one.
    async fn exchange(
        &self,
        request: &Request,
        mut streamed: Option<Body>,
        policy: Policy,
        timeouts: Timeouts,
    ) -> Result<AnswerHead, Error> {
        let is_streamed = streamed.is_some();
        let (destination, host) = (destination(request, policy)?, request.host());
        while let Some(mut session) = self.take(&destination).await {
            let message = request.message(&self.shared.user_agent, streamed.take())?;
            match timeout(timeouts.header, session.send(message)).await {
                Ok(Ok(head)) => return Ok(AnswerHead { head, session, destination }),
                Ok(Err(Unanswered { unsent, source })) => {
                    // The peer closed the connection while it was in the pool, or is closing it
                    // just now.
                    if unsent.is_none() && (is_streamed || !request.method.is_safe()) {
                        return Err(Error::Protocol { host, source });
                    }
                    streamed = unsent.filter(|_| is_streamed).map(http::Request::into_body);
                }
                Err(_) => return Err(header_timeout(host, timeouts)),
            }
        }
        let route = Route {
            url: &request.url,
            policy,
            shown: request.credentials.certificate.as_deref(),
            proxy: request.proxy.as_ref(),
            user_agent: request.headers.get(header::USER_AGENT).unwrap_or(&self.shared.user_agent),
        };
        let connected = self.shared.connector.connect(&route, &host, timeouts.connect).await?;
        let mut session = Session::new(connected.line, connected.address)
            .await
            .map_err(|error| Error::Protocol { host: host.clone(), source: error.into() })?;
        let message = request.message(&self.shared.user_agent, streamed)?;
        match timeout(timeouts.header, session.send(message)).await {
            Ok(Ok(head)) => Ok(AnswerHead { head, session, destination }),
            Ok(Err(Unanswered { source, .. })) => Err(Error::Protocol { host, source }),
            Err(_) => Err(header_timeout(host, timeouts)),
        }
    }

    async fn take(&self, destination: &Destination) -> Option<Session> {
        loop {
            let mut session = self.shared.pool().take(destination, monotonic())?;
            if session.is_usable().await {
                return Some(session);
            }
        }
    }
}

/// If the public host `outside` redirected to a private address, returns an error that names
/// `outside`; otherwise returns `error`.
fn private_redirect(error: Error, outside: Option<&str>) -> Error {
    match (error, outside) {
        (
            Error::Refused {
                host,
                address,
                refusal: refusal @ (Refusal::Private | Refusal::Loopback),
            },
            Some(from),
        ) => Error::PrivateRedirect { from: from.to_owned(), host, address, refusal },
        (Error::PrivateName { host, proxy, .. }, Some(from)) => {
            Error::PrivateName { host, proxy, from: Some(from.to_owned()) }
        }
        (error, _) => error,
    }
}

fn header_timeout(host: String, timeouts: Timeouts) -> Error {
    Error::Timeout { host, stage: Stage::Header, after: timeouts.header }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_redirect_inside_names_its_origin_and_gives_no_useless_advice() {
        let led = |refusal, outside: Option<&str>| {
            let (host, address) = ("h:1".to_owned(), IpAddr::from([10, 0, 0, 1]));
            private_redirect(Error::Refused { host, address, refusal }, outside).to_string()
        };
        let said = led(Refusal::Private, Some("w.example"));
        assert!(said.starts_with("w.example redirects to h:1, which is at 10.0.0.1"), "{said}");
        assert!(!said.contains("set `allow_private`"), "{said}");
        assert!(led(Refusal::Private, None).contains("set `allow_private`"));
        assert!(led(Refusal::LinkLocal, Some("w.example")).ends_with("which is never asked"));
    }
}
