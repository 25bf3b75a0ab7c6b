//! The proxy: one request in, one answer out.

mod copies;
mod report;
mod stored;
mod tunnel;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use daemon::access::{Requester, Resource, Verdict};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use net::body::{self, Body};
use net::clock;
use net::guard::Policy;
use net::host::HostPort;
use net::server::{Peer, Tunnel};
use net::shutdown::Shutdown;
use url::Url;

use crate::access_log::{AccessLog, Entry};
use crate::answer::{Answers, message_of, status_of};
use crate::config::Config;
use crate::counts::{Counts, From};
use crate::fetch::giver::Giver;
use crate::fetch::{Answer, Failure, Fetcher};
use crate::memory::Object;
use crate::objects::Objects;
use crate::origin::renewed;
use crate::policy::choice::{Choice, Forward, choose};
use crate::policy::freshness::Times;
use crate::policy::hops;
use crate::policy::status::Source;
use crate::policy::storing::{Ask, Head};
use crate::policy::validation::is_of_same;
use crate::request::Asked;
use crate::resolution::Code;
use crate::serve::Own;
use crate::target::{self, Target};

/// Time for reaching the host of a tunnel.
const TUNNEL_PATIENCE: Duration = Duration::from_secs(10);

/// Name of the header that bounds how often a request is passed on (RFC 9110 §7.6.2).
const MAX_FORWARDS: header::HeaderName = header::MAX_FORWARDS;

/// The proxy. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Proxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: RwLock<Arc<Config>>,
    /// The names under which the cache itself is asked.
    own: Vec<String>,
    answers: Answers,
    objects: Objects,
    fetcher: Fetcher,
    counts: Arc<Counts>,
    log: Option<AccessLog>,
    stop: Shutdown,
}

impl Proxy {
    pub(crate) fn new(
        config: Config,
        (name, own): (&str, Vec<String>),
        (objects, fetcher): (Objects, Fetcher),
        log: Option<AccessLog>,
        stop: Shutdown,
    ) -> Self {
        let answers = Answers::new(name);
        let config = RwLock::new(Arc::new(config));
        let counts = fetcher.counts();
        Self(Arc::new(Shared { config, own, answers, objects, fetcher, counts, log, stop }))
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts new settings in force. Returns the names of those that are read only at the start.
    pub(crate) fn set(&self, config: Config) -> impl Iterator<Item = &'static str> + use<> {
        let before = self.config();
        self.0.log.iter().for_each(AccessLog::reopen);
        let differs = [
            ("access_log", before.access_log != config.access_log),
            ("name", before.name != config.name),
            ("memory_bytes", before.memory_bytes != config.memory_bytes),
            ("disk_bytes", before.disk_bytes != config.disk_bytes),
            ("icp_listen", before.icp_listen != config.icp_listen),
            ("neighbor", before.neighbors != config.neighbors),
            ("mirror", before.mirrors != config.mirrors),
            ("news_server", before.news_server != config.news_server),
            ("allow_private", before.allow_private != config.allow_private),
        ];
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name))
    }

    /// Returns whether a plain request for a URL is answered from what is stored.
    pub(crate) async fn has(&self, url: Url) -> bool {
        let url = target::key(url);
        let rules = self.config().rules(&url, false);
        let stored = self.0.objects.get(url.as_str(), rules).await;
        let objects: &[Arc<Object>] = stored.as_deref().unwrap_or_default();
        let heads: Vec<Head> = objects.iter().map(|it| it.head()).collect();
        let (method, headers) = (Method::GET, http::HeaderMap::new());
        let ask = Ask { method: &method, headers: &headers };
        matches!(choose(ask, &heads, clock::now_ms()), Choice::Use { .. })
    }

    /// Returns whether a cache at this address may ask what is stored.
    pub(crate) fn may_ask(&self, address: IpAddr) -> bool {
        let client = Requester { address, token: None, shown: None };
        let config = self.config();
        let verdict = config.daemon.access.judge(Resource::Proxy, &client);
        let is_neighbor = || config.neighbors.iter().any(|it| it.host.parse() == Ok(address));
        verdict == Verdict::Free || verdict != Verdict::Address && is_neighbor()
    }

    /// Answers a request; those for the cache itself with `pages`.
    pub(crate) async fn answer(
        self,
        request: Request<Body>,
        pages: Own,
    ) -> Result<Response<Body>, Infallible> {
        let Some(log) = self.0.log.clone() else {
            let (from, response) = self.respond(request, pages).await;
            return Ok(self.0.counts.answered(from, response));
        };
        let (method, url) = (request.method().clone(), url_of(&request));
        let (client, came_ms) = (client_of(request.extensions()), clock::now_ms());
        let (from, response) = self.respond(request, pages).await;
        let mut response = self.0.counts.answered(from, response);
        let giver = response.extensions_mut().remove::<Giver>();
        let (status, content_type) = (response.status(), Entry::type_of(response.headers()));
        let entry = Entry { client, method, url, status, from, giver, content_type, came_ms };
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|it| it.to_str().ok()?.parse().ok());
        Ok(response.map(|body| log.watch(entry, length, body)))
    }

    async fn respond(&self, request: Request<Body>, pages: Own) -> (From, Response<Body>) {
        let (config, answers) = (self.config(), &self.0.answers);
        let refused = |status, message: &str| (From::Own, answers.refused(status, message, None));
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let object = match target::of(method, uri, headers, &self.0.own, &config) {
            Ok(Target::Own) if uri.path() == copies::PATH => {
                return self.copy(&config, request).await;
            }
            Ok(Target::Own) => return (From::Own, pages.answer(request).await),
            Ok(Target::Tunnel(to)) => {
                if let Some(refusal) = self.objection(&config, &request, false) {
                    return (From::Own, refusal);
                }
                return self.tunnel(&config, to, request).await;
            }
            Ok(Target::Object(object)) => object,
            Err(refusal) => return refused(refusal.status(), &refusal.to_string()),
        };
        if let Some(refusal) = self.objection(&config, &request, object.is_before_origin()) {
            return (From::Own, refusal);
        }
        if hops::has_passed(headers, &answers.name()) {
            let message =
                format!("this request has been at {} already: it goes round", answers.name());
            return refused(StatusCode::LOOP_DETECTED, &message);
        }
        self.0.counts.requested(object.url.as_str());
        let rules = config.rules(&object.url, object.is_before_origin());
        let (mut parts, body) = request.into_parts();
        if [Method::OPTIONS, Method::TRACE].contains(&parts.method)
            && !count_forwards(&mut parts.headers)
        {
            let none = http::HeaderMap::new();
            let response = answers.passed(StatusCode::OK, none, body::empty(), passed(None));
            return (From::Own, response);
        }
        let (name, client) = (answers.name(), client_of(&parts.extensions));
        let (method, headers) = (parts.method, parts.headers);
        let is_alone = false;
        let asked = Asked { method, object, headers, name, client, rules, is_alone }.identified();
        if asked.method == Method::GET && body.is_end_stream() {
            self.get(asked).await
        } else if asked.method == Method::HEAD {
            self.head(asked).await
        } else {
            self.pass(asked, body).await
        }
    }

    /// Answers from what is stored, or else from the origin.
    async fn get(&self, asked: Asked) -> (From, Response<Body>) {
        let (choice, stored) = self.choose(&asked).await;
        let (why, stored) = match (choice, stored) {
            (Choice::Use { validate, .. }, Some(used)) => return self.hit(asked, used, validate),
            // What an origin says to one user is not said of what is stored for all.
            (choice @ (Choice::Validate { .. } | Choice::Complete { .. }), object) => {
                let why =
                    if let Choice::Validate { why, .. } = choice { why } else { Forward::Partial };
                let object = object.map(|it| it.0);
                (why, object.filter(|_| !asked.headers.contains_key(header::AUTHORIZATION)))
            }
            (Choice::Fetch(why), _) => (why, None),
            (Choice::Nothing, _) | (Choice::Use { .. }, None) => return self.nothing(),
        };
        let forwarded =
            |status, stored, collapsed| Source::Forwarded { why, status, stored, collapsed };
        let (answers, asked) = (&self.0.answers, Arc::new(asked));
        let mut came = self.0.fetcher.get(&asked, stored.clone()).await;
        if let Ok(Answer::Flowing { reader, is_joined: true, .. }) = &came
            && reader.is_too_late()
        {
            let alone = Asked { is_alone: true, ..Asked::clone(&asked) };
            came = self.0.fetcher.get(&Arc::new(alone), stored).await;
        }
        match came {
            Ok(Answer::Flowing { head, own, reader, transfer, is_joined, giver }) => {
                let source = forwarded(Some(head.status), Ok(()), is_joined);
                let (head, body) = (with(Head::clone(&head), own), (reader, transfer.promised()));
                let response = answers.flowing(&asked, head, body, source);
                if is_joined {
                    return (From::Joined, response);
                }
                (From::Miss, given(response, giver))
            }
            Ok(Answer::Validated { object, own, is_joined, giver }) => {
                let source = forwarded(Some(StatusCode::NOT_MODIFIED), Ok(()), is_joined);
                let head = with(object.head(), own);
                let response = self.stored(&asked, head, &object.body, source);
                (From::Validated, given(response, giver))
            }
            Ok(Answer::Instead { object }) => {
                let head = object.head();
                let source = used(&head, true);
                let response = self.stored(&asked, head, &object.body, source);
                (From::Stale, given(response, Some(home(&asked))))
            }
            Ok(Answer::Alone { response, why: not }) => {
                let (status, headers) = (response.status, response.headers.clone());
                let source = forwarded(Some(status), Err(Some(not)), false);
                let giver = response.giver.clone();
                let response = answers.passed(status, headers, response.into_body(), source);
                (From::Miss, given(response, giver))
            }
            Err(failure) => {
                (From::Own, answers.failed(&asked, &failure, forwarded(None, Err(None), false)))
            }
        }
    }

    /// Returns how to answer, and the stored object that the choice is about.
    async fn choose(&self, asked: &Asked) -> (Choice, Option<(Arc<Object>, Head)>) {
        let stored = self.0.objects.get(asked.object.url.as_str(), asked.rules).await;
        let objects: &[Arc<Object>] = stored.as_deref().unwrap_or_default();
        let mut heads: Vec<Head> = objects.iter().map(|it| it.head()).collect();
        let choice = choose(asked.ask(), &heads, clock::now_ms());
        let index = match choice {
            Choice::Use { index, .. }
            | Choice::Validate { index, .. }
            | Choice::Complete { index } => Some(index),
            Choice::Fetch(_) | Choice::Nothing => None,
        };
        let object = index.and_then(|it| objects.get(it).cloned());
        (choice, object.zip(index.map(|it| heads.swap_remove(it))))
    }

    fn hit(
        &self,
        asked: Asked,
        (object, head): (Arc<Object>, Head),
        validate: bool,
    ) -> (From, Response<Body>) {
        let source = used(&head, false);
        let response = self.stored(&asked, head, &object.body, source);
        if validate {
            self.0.fetcher.validate(asked.for_all(), object);
        }
        (From::Hit, response)
    }

    fn nothing(&self) -> (From, Response<Body>) {
        let message = "the request takes stored answers alone (only-if-cached), and none is stored that \
                       can be used";
        (From::Own, self.0.answers.refused(StatusCode::GATEWAY_TIMEOUT, message, None))
    }

    /// Answers HEAD from what is stored, or else from the origin, whose answer updates what is stored.
    async fn head(&self, asked: Asked) -> (From, Response<Body>) {
        let why = match self.choose(&asked).await {
            (Choice::Use { validate, .. }, Some(used)) => return self.hit(asked, used, validate),
            (Choice::Nothing, _) => return self.nothing(),
            (Choice::Validate { why, .. } | Choice::Fetch(why), _) => why,
            (Choice::Use { .. } | Choice::Complete { .. }, _) => Forward::UriMiss,
        };
        let (url, sent_ms) = (asked.object.url.as_str(), clock::now_ms());
        let outgoing = asked.outgoing();
        match self.0.fetcher.pass(&asked, outgoing, body::empty(), None).await {
            Ok(response) => {
                let times = Times { sent_ms, came_ms: clock::now_ms() };
                let is_for_all = !asked.headers.contains_key(header::AUTHORIZATION);
                if response.status == StatusCode::OK && is_for_all {
                    self.freshen(url, &asked, &response.headers, times).await;
                }
                let (status, headers) = (response.status, response.headers.clone());
                let source = Source::Forwarded {
                    why,
                    status: Some(status),
                    stored: Err(None),
                    collapsed: false,
                };
                let response = self.0.answers.passed(status, headers, body::empty(), source);
                (From::Miss, given(response, Some(home(&asked))))
            }
            Err(error) => self.fault(&asked, error, why),
        }
    }

    /// Updates what is stored by the answer to HEAD, or forgets it if it has changed.
    async fn freshen(&self, url: &str, asked: &Asked, headers: &http::HeaderMap, times: Times) {
        let stored = self.0.objects.get(url, asked.rules).await;
        let objects = stored.as_deref().unwrap_or_default().iter();
        for (object, old) in objects.map(|it| (it, it.head())) {
            if !old.vary.answers(&asked.headers) {
                continue;
            }
            let head = renewed(asked, &old, headers, times);
            let length = old.extent().map_or(object.body.len(), |it| it.length);
            match head.filter(|_| is_of_same(&old, length, headers)) {
                Some(head) => {
                    let body = object.body.clone();
                    let new = Arc::new(Object::new(&head, body));
                    self.0.objects.renew(url, (object, &new), || true);
                }
                None => {
                    self.0.objects.remove(url, Some(&asked.headers));
                }
            }
        }
    }

    /// Passes a request on, and forgets what its answer makes unusable.
    async fn pass(&self, asked: Asked, body: Body) -> (From, Response<Body>) {
        let outgoing = asked.outgoing();
        match self.0.fetcher.pass(&asked, outgoing, body, None).await {
            Ok(response) => {
                self.0.fetcher.invalidate(&asked, &response);
                let (status, headers) = (response.status, response.headers.clone());
                let (source, body) = (passed(Some(status)), response.into_body());
                let response = self.0.answers.passed(status, headers, body, source);
                (From::Passed, given(response, Some(home(&asked))))
            }
            Err(error) => self.fault(&asked, error, Forward::Method),
        }
    }

    fn fault(&self, asked: &Asked, error: net::Error, why: Forward) -> (From, Response<Body>) {
        let source = Source::Forwarded { why, status: None, stored: Err(None), collapsed: false };
        let failure = Failure::Origin(Arc::new(error));
        (From::Own, self.0.answers.failed(asked, &failure, source))
    }

    /// Opens a tunnel to a host.
    async fn tunnel(
        &self,
        config: &Config,
        to: HostPort,
        mut request: Request<Body>,
    ) -> (From, Response<Body>) {
        let answers = &self.0.answers;
        let policy = Policy::from_allow_private(config.allow_private);
        let host = url::Host::parse(&to.host);
        let (Ok(host), Some(port), Some(tunnel)) =
            (&host, to.port, request.extensions_mut().remove::<Tunnel>())
        else {
            let message = format!("{to} is no host and port");
            return (From::Own, answers.refused(StatusCode::BAD_REQUEST, &message, None));
        };
        let host = match host {
            url::Host::Domain(name) => url::Host::Domain(name.as_str()),
            url::Host::Ipv4(it) => url::Host::Ipv4(*it),
            url::Host::Ipv6(it) => url::Host::Ipv6(*it),
        };
        match self.0.fetcher.client().dial(host, port, policy, TUNNEL_PATIENCE).await {
            Ok(dialed) => {
                let (stop, giver) = (self.0.stop.clone(), Giver::new(Code::Direct, &to.host));
                self.0.fetcher.spawn(async move {
                    let (up, down) = tunnel::carry(tunnel, dialed, stop).await;
                    tracing::debug!(%to, up, down, "a tunnel ended");
                });
                (From::Tunnel, given(Response::new(body::empty()), Some(giver)))
            }
            Err(error) => {
                let status = status_of(&error);
                (From::Own, answers.refused(status, &message_of(&error), None))
            }
        }
    }

    /// Returns the refusal for a client that may not use the cache. A site that it stands before is for
    /// everybody whose address is not denied.
    fn objection(
        &self,
        config: &Config,
        request: &Request<Body>,
        is_before_origin: bool,
    ) -> Option<Response<Body>> {
        let address = client_of(request.extensions());
        let shown = request.extensions().get();
        let token = daemon::proxy_token(request.headers());
        let client = Requester { address, token: token.as_deref(), shown };
        let verdict = config.daemon.access.judge(Resource::Proxy, &client);
        match verdict {
            Verdict::Free | Verdict::Known(_) => None,
            Verdict::Unknown | Verdict::Lacking(_) if is_before_origin => None,
            Verdict::Address => {
                let message = "your address may not use this cache: ask its administrator";
                Some(self.0.answers.refused(StatusCode::FORBIDDEN, message, None))
            }
            Verdict::Unknown | Verdict::Lacking(_) => {
                let message = "this cache needs a name and a token, given as the password: ask its \
                               administrator";
                let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
                let mut response = self.0.answers.refused(status, message, None);
                let challenge = HeaderValue::from_static("Basic realm=\"harvest cache\"");
                response.headers_mut().insert(header::PROXY_AUTHENTICATE, challenge);
                Some(response)
            }
        }
    }
}

/// Returns the URL of a request, as a log tells it: without a password.
fn url_of(request: &Request<Body>) -> String {
    let host = request.headers().get(header::HOST).and_then(|it| it.to_str().ok());
    let uri = request.uri();
    match (uri.authority(), host) {
        (None, Some(host)) => format!("http://{host}{uri}"),
        (Some(it), _) if it.as_str().contains('@') => {
            let mut url = Url::parse(&uri.to_string()).ok();
            // A URL that cannot have a password has none.
            let _ = url.as_mut().map(|it| it.set_password(None));
            url.map(String::from).unwrap_or_default()
        }
        _ => uri.to_string(),
    }
}

/// Returns a head with headers that are for one client alone.
fn with(mut head: Head, own: http::HeaderMap) -> Head {
    head.headers.extend(own);
    head
}

/// Returns an answer of which the access log is to tell who gave it.
fn given(mut response: Response<Body>, giver: Option<Giver>) -> Response<Body> {
    giver.into_iter().for_each(|it| drop(response.extensions_mut().insert(it)));
    response
}

/// Returns the home of an object, which alone was asked.
fn home(asked: &Asked) -> Giver {
    Giver::new(Code::Direct, asked.object.url.host_str().unwrap_or_default())
}

/// Counts down how often a request may be passed on. Returns whether it may be.
fn count_forwards(headers: &mut http::HeaderMap) -> bool {
    let left = headers.get(MAX_FORWARDS).and_then(|it| it.to_str().ok()?.parse::<u32>().ok());
    let Some(left) = left else { return true };
    headers.insert(MAX_FORWARDS, HeaderValue::from(left.saturating_sub(1)));
    left != 0
}

/// Returns the client of a request; every request has one.
fn client_of(extensions: &http::Extensions) -> IpAddr {
    extensions.get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |it| it.0)
}

fn passed(status: Option<StatusCode>) -> Source {
    Source::Forwarded { why: Forward::Method, status, stored: Err(None), collapsed: false }
}

fn used(head: &Head, fails: bool) -> Source {
    Source::Hit { fails, ttl: head.terms.left_ms(clock::now_ms()).div_euclid(1_000) }
}
