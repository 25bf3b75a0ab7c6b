//! The HTTP client: one per daemon, shared by its clones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::Error;
use crate::guard::Policy;

/// How long each stage of a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Resolving and connecting, TLS included. Default 10 s.
    pub connect: Duration,
    /// From the request to the answer's head. Default 30 s.
    pub header: Duration,
    /// Between two pieces of the body. Default 60 s.
    pub idle: Duration,
    /// The whole exchange, redirects included, until the body's last byte; none by default.
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

/// What a [`Client`] does where a request does not say otherwise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The product as `User-Agent` names it. Default `harvest/VERSION`.
    pub product: String,
    /// Whom to ask about our requests: a URL or mail address, named in `User-Agent`.
    pub contact: Option<String>,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Whether requests may go to private networks and this machine. Default `false`.
    pub allow_private: bool,
    /// Most redirects of one request. Default 5.
    pub redirects_max: u32,
    /// Largest body of an answer, in bytes. Default 64 MiB.
    pub response_bytes_max: u64,
    /// Most requests in progress at once. Default 1,024.
    pub connections_max: usize,
    /// Most unused connections kept for one host. Default 4.
    pub idle_per_host_max: usize,
    /// How long an unused connection is kept. Default 20 s.
    pub idle_connection: Duration,
    /// Certificates (DER) of authorities to trust besides the system's.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            product: concat!("harvest/", env!("CARGO_PKG_VERSION")).to_owned(),
            contact: None,
            timeouts: Timeouts::default(),
            allow_private: false,
            redirects_max: 5,
            response_bytes_max: 64 * 1024 * 1024,
            connections_max: 1_024,
            idle_per_host_max: 4,
            idle_connection: Duration::from_secs(20),
            extra_roots: Vec::new(),
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// URL; `http` or `https`.
    pub url: Url,
    /// Headers besides Host, User-Agent and the body's, which the client sets.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Sent as `Authorization: Bearer`, but not to another origin that a redirect leads to.
    pub token: Option<String>,
    /// Instead of the settings' time-outs.
    pub timeouts: Option<Timeouts>,
    /// Instead of the settings' policy.
    pub policy: Option<Policy>,
    /// Instead of the settings' limit, in bytes.
    pub response_bytes_max: Option<u64>,
}

impl Request {
    /// Returns a GET of `url`.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            token: None,
            timeouts: None,
            policy: None,
            response_bytes_max: None,
        }
    }

    /// Returns a POST of `body` to `url`.
    pub fn post(url: Url, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url) }
    }

    /// Adds a header, replacing one of that name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the bearer token.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token;
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
    shared: Arc<Settings>,
}

impl Client {
    /// Returns a client.
    pub fn new(settings: Settings) -> Self {
        Self { shared: Arc::new(settings) }
    }

    /// Sends a request and returns its answer as soon as the head is there, whatever its status.
    /// Redirects are followed, each hop vetted by the guard.
    ///
    /// # Errors
    ///
    /// There is no answer; the error says whose fault that is and whether to try again.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let message = format!("{} is not served yet", self.shared.product);
        std::future::ready(Err(Error::Url { url: request.url.into(), message })).await
    }
}

/// An answer, its body still to come.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The URL that answered: the last one after redirects.
    pub url: Url,
}

impl Response {
    /// Returns this answer if its status is 2xx.
    ///
    /// # Errors
    ///
    /// [`Error::Status`] with the beginning of what the peer said.
    pub async fn require_success(self) -> Result<Self, Error> {
        std::future::ready(Ok(self)).await
    }

    /// Returns the body's next piece, `None` at its end.
    ///
    /// # Errors
    ///
    /// The body broke off, took too long or is too large. What came before is good.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::ready(Ok(None)).await
    }

    /// Returns the whole body.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk); more than `bytes_max` bytes are too large.
    pub async fn bytes(mut self, bytes_max: u64) -> Result<Bytes, Error> {
        let url = self.url.to_string();
        self.chunk().await?.ok_or(Error::TooLarge { url, bytes_max })
    }

    /// Returns the body as JSON.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes), or it is not the JSON expected.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.url.to_string();
        let bytes = self.bytes(0).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Json { url, message: error.to_string() })
    }
}
