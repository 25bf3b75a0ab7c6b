//! Requests of the HTTP client: what callers ask for, and the form in which it is sent.
//!
//! Source: RFC 9110 §15.4 for redirects, RFC 7617 for names and passwords.
//!
//! Sans-I/O.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use url::{Position, Url};

use super::proxy::Proxy;
use super::settings::Timeouts;
use crate::body::{self, Body};
use crate::connect::authority;
use crate::error::Error;
use crate::fetch::Login;
use crate::guard::Policy;
use crate::pool::Destination;
use crate::tls::ClientFiles;

/// The product as `User-Agent` names it.
const PRODUCT: &str = concat!("harvest/", env!("CARGO_PKG_VERSION"));

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
    /// URL; `http` or `https`, and through a proxy one of any scheme.
    pub url: Url,
    /// Headers other than Host, User-Agent and the body's, which the client sets.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Proof of the requester's identity; dropped when a redirect leads to another origin.
    pub credentials: Credentials,
    /// The proxy that it goes through, as do the requests to which it is redirected; without one it
    /// goes to the host itself.
    pub proxy: Option<Proxy>,
    /// Replaces the settings' time-outs.
    pub timeouts: Option<Timeouts>,
    /// Replaces `allow_private` of the settings.
    pub policy: Option<Policy>,
    /// Replaces the settings' limit, in bytes.
    pub response_bytes_max: Option<u64>,
    /// Whether an answer that redirects is returned as it is; otherwise the redirect is followed.
    pub keeps_redirect: bool,
    /// What is asked for at the host, in place of the URL's path and query: these as somebody else has
    /// written them.
    pub target: Option<PathAndQuery>,
    /// Whether it is somebody else's, who is not to seem to be this client: its headers are sent as
    /// they are.
    pub is_passed_on: bool,
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
            proxy: None,
            timeouts: None,
            policy: None,
            response_bytes_max: None,
            keeps_redirect: false,
            target: None,
            is_passed_on: false,
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

    /// Sets the proxy.
    #[must_use]
    pub fn proxy(mut self, proxy: Option<Proxy>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Sets whether private networks and this machine may be reached.
    #[must_use]
    pub fn allow_private(mut self, allow_private: bool) -> Self {
        self.policy = Some(Policy::from_allow_private(allow_private));
        self
    }
}

impl Request {
    /// Makes this the request that follows a redirect to `url`.
    pub(super) fn redirect(&mut self, url: Url, status: StatusCode) {
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
        (self.url, self.target) = (url, None);
    }

    /// Returns the request as it is sent, with its own body unless there is a `streamed` one.
    pub(super) fn message(
        &self,
        user_agent: &HeaderValue,
        streamed: Option<Body>,
    ) -> Result<http::Request<Body>, Error> {
        let wrong = |message: String| Error::Url { url: self.url.to_string(), message };
        // A proxy is told the whole URL; it is asked for nothing within a tunnel.
        let asked = self.proxy.as_ref().filter(|it| !it.tunnels(&self.url));
        let host = match (self.url.host_str(), self.url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            // A `news` URL has none (RFC 9112 §3.2).
            (None, _) if asked.is_some() => String::new(),
            (None, _) => return Err(wrong("it names no host".to_owned())),
        };
        let begin = if asked.is_some() { Position::BeforeScheme } else { Position::BeforePath };
        let mut target = self.url[begin..Position::BeforePath].to_owned();
        let own = &self.url[Position::BeforePath..Position::AfterQuery];
        target += self.target.as_ref().map_or(own, PathAndQuery::as_str);
        let own = || body::full(self.body.clone());
        let mut message = http::Request::new(streamed.unwrap_or_else(own));
        *message.method_mut() = self.method.clone();
        *message.uri_mut() = target.parse().map_err(|error| wrong(format!("{error}")))?;
        *message.headers_mut() = self.headers.clone();
        let value =
            |text: &str| HeaderValue::try_from(text).map_err(|error| wrong(error.to_string()));
        let headers = message.headers_mut();
        if !(self.is_passed_on && headers.contains_key(header::HOST)) {
            headers.insert(header::HOST, value(&host)?);
        }
        if !self.is_passed_on {
            headers.entry(header::USER_AGENT).or_insert_with(|| user_agent.clone());
        }
        let Credentials { token, login, .. } = &self.credentials;
        let shown = token.as_ref().map(|it| format!("Bearer {it}"));
        if let Some(shown) = shown.or_else(|| login.as_ref().map(Login::basic)) {
            let mut token = value(&shown)?;
            token.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, token);
        }
        headers.remove(header::PROXY_AUTHORIZATION);
        if let Some(value) = asked.and_then(Proxy::authorization) {
            headers.insert(header::PROXY_AUTHORIZATION, value.clone());
        }
        Ok(message)
    }

    /// Returns the host as errors name it, with its port and the proxy.
    pub(super) fn host(&self) -> String {
        let host = authority(&self.url);
        match &self.proxy {
            Some(proxy) => format!("{host} through {proxy}"),
            None => host,
        }
    }

    /// Checks that an answer is of the host. Only a proxy answers 407 (RFC 9110 §15.5.8), and
    /// within a tunnel it does not speak.
    ///
    /// # Errors
    ///
    /// [`Error::Proxy`]: it is of the proxy.
    pub(super) fn vet_answer(&self, status: StatusCode) -> Result<(), Error> {
        match &self.proxy {
            Some(proxy)
                if !proxy.tunnels(&self.url)
                    && status == StatusCode::PROXY_AUTHENTICATION_REQUIRED =>
            {
                Err(proxy.refusal(authority(&self.url), status))
            }
            _ => Ok(()),
        }
    }
}

/// Returns our name for the field `User-Agent`, with whom to ask about our requests: a URL or mail address.
pub fn user_agent(contact: Option<&str>) -> HeaderValue {
    let contact = contact.map(|it| format!(" (+{it})")).unwrap_or_default();
    let text = format!("{PRODUCT}{contact}");
    let text: String = text.chars().filter(|it| matches!(it, ' '..='~')).collect();
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(PRODUCT))
}

/// Returns where the connection for a request leads, which the guard lets through.
///
/// # Errors
///
/// [`Error::Url`]: the client does not fetch such URLs. [`Error::Refused`] or
/// [`Error::PrivateName`]: a proxy must not be asked for it.
pub(super) fn destination(request: &Request, policy: Policy) -> Result<Destination, Error> {
    let url = &request.url;
    let wrong = |message: &str| Error::Url { url: url.to_string(), message: message.to_owned() };
    let secure = match (url.scheme(), &request.proxy) {
        ("http", _) => false,
        ("https", None) => true,
        (_, Some(proxy)) if proxy.tunnels(url) => true,
        (_, Some(proxy)) => {
            proxy.vet(url, policy)?;
            return Ok(Destination::of_proxy(proxy.clone()));
        }
        _ => return Err(wrong("only http and https are supported")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("take the name and password out of it; use a token"));
    }
    let host = url.host_str().ok_or_else(|| wrong("it names no host"))?;
    let port = url.port_or_known_default().ok_or_else(|| wrong("it names no port"))?;
    let shown = request.credentials.certificate.as_ref().filter(|_| secure).map(Arc::clone);
    let own = || Destination::new(secure, host.to_owned(), port, policy, shown);
    let Some(proxy) = &request.proxy else { return Ok(own()) };
    proxy.vet(url, policy)?;
    Ok(if secure { own().through(proxy.clone()) } else { Destination::of_proxy(proxy.clone()) })
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
