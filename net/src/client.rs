//! The HTTP client: one per daemon, shared by its clones.
//!
//! The client asks for no compression and decodes none. Callers see the bytes that the peer sent,
//! so checksums and byte ranges hold. It keeps no cookies and caches nothing.
//!
//! Source: RFC 9110 §15.4 for redirects. A redirect from the public internet into a private network
//! is refused, even if the first URL was allowed to be in a private network. Credentials go only to
//! the origin for which they were meant.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::clock::monotonic;
use crate::connect::{Connector, authority};
use crate::error::{Error, Stage};
use crate::fetch::Login;
use crate::guard::{self, Policy, Refusal};
use crate::pool::{Destination, Pool};
pub use crate::response::{Response, http_date, retry_after};
use crate::session::Session;
use crate::tls::ClientFiles;

/// Largest body of a redirect that is read to reuse the connection, in bytes.
const REDIRECT_BYTES_MAX: u64 = 16 * 1024;

/// The product as `User-Agent` names it.
const PRODUCT: &str = concat!("harvest/", env!("CARGO_PKG_VERSION"));

/// Time for which an unused connection is kept.
const KEPT: Duration = Duration::from_secs(20);

/// Time limits of each stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time for resolving and connecting, TLS included; before that, as long for a free connection.
    /// Default 10 s.
    pub connect: Duration,
    /// Time from the request to the answer's head. Default 30 s.
    pub header: Duration,
    /// Longest total time of waiting for each 16 KiB of the body, however many pieces these come
    /// in. Default 60 s.
    pub idle: Duration,
    /// Time for the whole exchange, redirects included, until the body's last byte; no limit by
    /// default.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            total: None,
        }
    }
}

/// Settings of a [`Client`]; a request can replace some of them for itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Contact for questions about our requests: a URL or mail address, named in `User-Agent`.
    pub contact: Option<String>,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Whether requests may go to private networks and this machine. Default `false`.
    pub allow_private: bool,
    /// Maximum number of redirects of one request. Default 5.
    pub redirects_max: u32,
    /// Largest body of an answer, in bytes. Default 64 MiB.
    pub response_bytes_max: u64,
    /// Maximum number of requests in progress at once. Default 1,024.
    pub connections_max: usize,
    /// Maximum number of unused connections kept for one host. Default 4.
    pub idle_per_host_max: usize,
    /// Certificates (DER) of authorities to trust in addition to the system's.
    pub extra_roots: Vec<Vec<u8>>,
    /// The only certificate (DER) that is trusted, whatever name it has: that of a daemon whose
    /// data folder this process can read.
    pub pinned: Option<Vec<u8>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            contact: None,
            timeouts: Timeouts::default(),
            allow_private: false,
            redirects_max: 5,
            response_bytes_max: 64 * 1024 * 1024,
            connections_max: 1_024,
            idle_per_host_max: 4,
            extra_roots: Vec::new(),
            pinned: None,
        }
    }
}

/// Proof of the requester's identity.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// Sent as `Authorization: Basic` (RFC 7617) if there is no token.
    pub login: Option<Login>,
    /// The certificate shown to a host that requests one.
    pub certificate: Option<Arc<ClientFiles>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "…");
        f.debug_struct("Credentials")
            .field("token", &token)
            .field("login", &self.login)
            .field("certificate", &self.certificate)
            .finish()
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// URL; `http` or `https`.
    pub url: Url,
    /// Headers other than Host, User-Agent and the body's, which the client sets.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Proof of the requester's identity; dropped when a redirect leads to another origin.
    pub credentials: Credentials,
    /// Replaces the settings' time-outs.
    pub timeouts: Option<Timeouts>,
    /// Replaces `allow_private` of the settings.
    pub policy: Option<Policy>,
    /// Replaces the settings' limit, in bytes.
    pub response_bytes_max: Option<u64>,
    /// Whether an answer that redirects is returned as it is; otherwise the redirect is followed.
    pub keeps_redirect: bool,
}

impl Request {
    /// Returns a GET of `url`.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            credentials: Credentials::default(),
            timeouts: None,
            policy: None,
            response_bytes_max: None,
            keeps_redirect: false,
        }
    }

    /// Returns a POST of `body` to `url`.
    pub fn post(url: Url, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url) }
    }

    /// Sets a header; replaces the earlier value of that name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the bearer token.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.credentials.token = token;
        self
    }

    /// Sets the credentials.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets whether private networks and this machine may be reached.
    #[must_use]
    pub fn allow_private(mut self, allow_private: bool) -> Self {
        self.policy = Some(Policy::from_allow_private(allow_private));
        self
    }
}

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

    /// Sends a request and returns its answer as soon as the head has come, whatever its status.
    /// Redirects are followed, each hop vetted by the guard.
    ///
    /// # Errors
    ///
    /// There is no answer; the error says whether to try again.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let timeouts = request.timeouts.unwrap_or(self.shared.settings.timeouts);
        let host = authority(&request.url);
        let permit = self.permit(&host, timeouts.connect).await?;
        let sent = Box::pin(self.follow(request, timeouts));
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
    async fn follow(&self, mut request: Request, timeouts: Timeouts) -> Result<Response, Error> {
        let settings = &self.shared.settings;
        let start = request.url.clone();
        let default = Policy::from_allow_private(settings.allow_private);
        let mut policy = request.policy.unwrap_or(default);
        let mut outside = None;
        for _ in 0..=settings.redirects_max {
            let answered = self.exchange(&request, policy, timeouts).await;
            let answered = answered.map_err(|error| private_redirect(error, outside.as_deref()))?;
            let next = if request.keeps_redirect {
                None
            } else {
                redirect(&request.url, answered.head.status(), answered.head.headers())?
            };
            let bytes_max = request.response_bytes_max.unwrap_or(settings.response_bytes_max);
            let status = answered.head.status();
            let private = guard::classify(answered.session.address).is_some();
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
        policy: Policy,
        timeouts: Timeouts,
    ) -> Result<AnswerHead, Error> {
        let shown = request.credentials.certificate.as_ref();
        let destination = destination(&request.url, policy, shown)?;
        let host = authority(&request.url);
        while let Some(mut session) = self.take(&destination).await {
            let message = request.message(&self.shared.user_agent)?;
            match timeout(timeouts.header, session.send(message)).await {
                Ok(Ok(head)) => return Ok(AnswerHead { head, session, destination }),
                Ok(Err(mut error)) => {
                    // The peer closed the connection while it was in the pool, or is closing it
                    // just now.
                    let unsent = error.take_message().is_some();
                    if !unsent && !request.method.is_safe() {
                        return Err(protocol_error(host, error.into_error()));
                    }
                }
                Err(_) => return Err(header_timeout(host, timeouts)),
            }
        }
        let (url, patience) = (&request.url, timeouts.connect);
        let shown = shown.map(Arc::as_ref);
        let connected = self.shared.connector.connect(url, policy, patience, shown).await?;
        let mut session = Session::new(connected.stream, connected.address)
            .await
            .map_err(|error| protocol_error(host.clone(), error))?;
        let message = request.message(&self.shared.user_agent)?;
        match timeout(timeouts.header, session.send(message)).await {
            Ok(Ok(head)) => Ok(AnswerHead { head, session, destination }),
            Ok(Err(error)) => Err(protocol_error(host, error.into_error())),
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
        (error, _) => error,
    }
}

impl Request {
    /// Makes this the request that follows a redirect to `url`.
    fn redirect(&mut self, url: Url, status: StatusCode) {
        if self.url.origin() != url.origin() {
            self.credentials = Credentials::default();
            self.headers.remove(header::AUTHORIZATION);
            self.headers.remove(header::COOKIE);
        }
        let keeps_method =
            matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !keeps_method && self.method != Method::HEAD {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        self.url = url;
    }

    /// Returns the request as it is sent.
    fn message(&self, user_agent: &HeaderValue) -> Result<http::Request<Full<Bytes>>, Error> {
        let wrong = |message: String| Error::Url { url: self.url.to_string(), message };
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let host = match (self.url.host_str(), self.url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return Err(wrong("it names no host".to_owned())),
        };
        let mut message = http::Request::new(Full::new(self.body.clone()));
        *message.method_mut() = self.method.clone();
        *message.uri_mut() = path.parse().map_err(|error| wrong(format!("{error}")))?;
        *message.headers_mut() = self.headers.clone();
        let value =
            |text: &str| HeaderValue::try_from(text).map_err(|error| wrong(error.to_string()));
        let headers = message.headers_mut();
        headers.insert(header::HOST, value(&host)?);
        headers.entry(header::USER_AGENT).or_insert_with(|| user_agent.clone());
        let basic = |it: &Login| {
            format!("Basic {}", STANDARD.encode(format!("{}:{}", it.name, it.password)))
        };
        let Credentials { token, login, .. } = &self.credentials;
        let shown = token.as_ref().map(|it| format!("Bearer {it}"));
        if let Some(shown) = shown.or_else(|| login.as_ref().map(basic)) {
            let mut token = value(&shown)?;
            token.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, token);
        }
        Ok(message)
    }
}

/// Returns our name for the field `User-Agent`, with whom to ask about our requests: a URL or mail address.
pub fn user_agent(contact: Option<&str>) -> HeaderValue {
    let contact = contact.map(|it| format!(" (+{it})")).unwrap_or_default();
    let text = format!("{PRODUCT}{contact}");
    let text: String = text.chars().filter(|it| matches!(it, ' '..='~')).collect();
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(PRODUCT))
}

fn destination(
    url: &Url,
    policy: Policy,
    shown: Option<&Arc<ClientFiles>>,
) -> Result<Destination, Error> {
    let wrong = |message: &str| Error::Url { url: url.to_string(), message: message.to_owned() };
    let secure = match url.scheme() {
        "http" => false,
        "https" => true,
        _ => return Err(wrong("only http and https are supported")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("take the name and password out of it; use a token"));
    }
    let host = url.host_str().ok_or_else(|| wrong("it names no host"))?;
    let port = url.port_or_known_default().ok_or_else(|| wrong("it names no port"))?;
    let shown = shown.filter(|_| secure).map(Arc::clone);
    Ok(Destination::new(secure, host.to_owned(), port, policy, shown))
}

/// Returns the URL to which an answer from `url` redirects; `None` if it does not redirect.
///
/// # Errors
///
/// [`Error::Url`]: it redirects to what is no URL.
pub fn redirect(url: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, Error> {
    use StatusCode as S;
    let redirects = [
        S::MOVED_PERMANENTLY,
        S::FOUND,
        S::SEE_OTHER,
        S::TEMPORARY_REDIRECT,
        S::PERMANENT_REDIRECT,
    ];
    let location = headers.get(header::LOCATION).filter(|_| redirects.contains(&status));
    let Some(location) = location else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let message = |error| format!("it redirects to {location:?}, which is no URL: {error}");
    url.join(&location)
        .map(Some)
        .map_err(|error| Error::Url { url: url.to_string(), message: message(error) })
}

fn protocol_error(host: String, error: hyper::Error) -> Error {
    Error::Protocol { host, source: error.into() }
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
