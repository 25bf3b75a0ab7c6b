//! The client of a repository: one request and its answer.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use crawl::walls::{self, Wall};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::client::{Client, Credentials, Request as HttpRequest};
use net::clock;
use net::error::Stage;
use net::pace::{Hosts, Turn};
use oai::error::Fault;
use oai::harvest::{Answer, Outcome, Remedy, retry_after_secs, status_advice};
use oai::repository::oap;
use oai::request::{Request, Verb};
use oai::response::{Body, Format, Identify, Page, Reading, Record, Set, Unreadable};
use url::Url;

use super::body::{self, Coding, Problem};

/// Default limit of a response, compressed or decompressed, in bytes (64 MiB).
pub const PAGE_BYTES_MAX: u64 = 64 << 20;

/// Default time limit from a request to the last byte of its answer.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(600);

/// Maximum length of the URL of a GET, in bytes. A request with a longer one is sent as a POST.
pub const URL_BYTES_MAX: usize = 2_000;

/// How to reach a repository: credentials and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Credentials of the harvester.
    pub credentials: Credentials,
    /// Whether the repository may be in a private network or on this machine.
    pub allow_private: bool,
    /// Maximum length of a response, compressed or decompressed, in bytes.
    pub page_bytes_max: u64,
    /// Time limit from a request to the last byte of its answer.
    pub time_max: Duration,
}

impl Default for Access {
    /// Returns access without credentials and private networks, with the default limits.
    fn default() -> Self {
        Self {
            credentials: Credentials::default(),
            allow_private: false,
            page_bytes_max: PAGE_BYTES_MAX,
            time_max: REQUEST_TIME_MAX,
        }
    }
}

/// The failure of a single request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer came. Try again if [`net::Error::retry`] says so.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// The answer is an HTTP error.
    #[error("{url} answers with status {status}{}", status_advice(.status.as_u16()))]
    Status {
        /// The requested URL.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
    /// The answer is not an OAI-PMH response. Check whether the URL is that of a repository.
    #[error("{url}: {problem}")]
    Unreadable {
        /// The requested URL.
        url: String,
        /// The problem.
        problem: String,
    },
    /// The repository refuses the request.
    #[error("{url} refuses: {}", reasons(.faults))]
    Refused {
        /// The requested URL.
        url: String,
        /// The errors; at least one.
        faults: Vec<Fault>,
    },
}

fn reasons(all: &[Fault]) -> String {
    all.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

/// Number of bytes within which an answer says that it is one of OAI-PMH.
const FRONT_BYTES: usize = 4_096;

/// The HTTP answer to a request, of any kind.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    url: Url,
    /// The decompressed body.
    bytes: Vec<u8>,
    /// Number of bytes received.
    received: u64,
    /// The problem of the body; the bytes before it are in `bytes`.
    problem: Option<(String, Remedy)>,
}

impl Reply {
    /// Returns the bot wall that has answered instead of the repository, if one has.
    fn wall(&self) -> Option<Wall> {
        let front = self.bytes.get(..FRONT_BYTES).unwrap_or(&self.bytes);
        // Records can tell of walls.
        let is_oai = String::from_utf8_lossy(front).contains("<OAI-PMH");
        let found = || walls::recognize(self.status.as_u16(), &self.headers, &self.bytes);
        if is_oai { None } else { found() }
    }
}

/// A repository that is reached over HTTP.
#[derive(Clone, Debug)]
pub struct Repository {
    client: Client,
    base: Url,
    access: Access,
    hosts: Hosts,
    delay: Duration,
}

impl Repository {
    /// Returns the repository at `base`.
    pub fn new(client: Client, base: Url, access: Access) -> Self {
        Self { client, base, access, hosts: Hosts::default(), delay: Duration::ZERO }
    }

    /// Makes the requests of harvests to one host take turns, with a pause of `delay` after each
    /// answer. Repositories that share `hosts` share these turns.
    #[must_use]
    pub fn pacing(mut self, hosts: Hosts, delay: Duration) -> Self {
        (self.hosts, self.delay) = (hosts, delay);
        self
    }

    /// Returns the address of the repository.
    pub fn base_url(&self) -> &Url {
        &self.base
    }

    /// Returns the URL of a request with GET.
    pub fn url(&self, request: &Request) -> Url {
        let mut url = self.base.clone();
        url.query_pairs_mut().extend_pairs(request.arguments());
        url
    }

    /// Requests the description of the repository.
    pub async fn identify(&self) -> Result<(Identify, Reading), Error> {
        let reading = self.ask(&Request::Identify).await?;
        match &reading.response.body {
            Body::Identify(found) => Ok(((**found).clone(), reading)),
            _ => Err(self.other(&Request::Identify)),
        }
    }

    /// Requests the metadata formats of the repository, or of one item.
    pub async fn formats(&self, identifier: Option<String>) -> Result<Vec<Format>, Error> {
        let request = Request::Formats { identifier };
        match self.ask(&request).await?.response.body {
            Body::Formats(found) => Ok(found),
            _ => Err(self.other(&request)),
        }
    }

    /// Requests a part of the list of sets; `token` continues the list.
    pub async fn sets(&self, token: Option<String>) -> Result<Page<Set>, Error> {
        let request = Request::Sets { token };
        match self.ask(&request).await?.response.body {
            Body::Sets(page) => Ok(page),
            _ => Err(self.other(&request)),
        }
    }

    /// Requests the record of an item.
    pub async fn get(&self, identifier: String, prefix: String) -> Result<Record, Error> {
        let request = Request::Get { identifier, prefix };
        match self.ask(&request).await?.response.body {
            Body::Record(found) => Ok(*found),
            _ => Err(self.other(&request)),
        }
    }

    /// Makes any request, once. A request for a list returns one part of it.
    pub async fn ask(&self, request: &Request) -> Result<Reading, Error> {
        let reply = self.send(request).await?;
        let (url, status) = (reply.url.to_string(), reply.status);
        if let Some(wall) = reply.wall() {
            return Err(Error::Unreadable { url, problem: wall.to_string() });
        }
        let (read, problem) = read(reply, request.verb()).await;
        let reading = match (read, problem) {
            (Ok(reading), None) => reading,
            _ if !status.is_success() => return Err(Error::Status { url, status }),
            (_, Some((problem, _))) => return Err(Error::Unreadable { url, problem }),
            (Err(error), None) => {
                return Err(Error::Unreadable { url, problem: error.advised() });
            }
        };
        match reading.response.body {
            Body::Faults(faults) => Err(Error::Refused { url, faults }),
            _ if !status.is_success() => Err(Error::Status { url, status }),
            _ => Ok(reading),
        }
    }

    fn other(&self, request: &Request) -> Error {
        let problem = format!("it does not answer {}", request.verb().name());
        Error::Unreadable { url: self.url(request).to_string(), problem }
    }

    /// Waits for the repository's turn at the host. Keep the turn until the answer has come. `None`
    /// without pacing.
    pub(super) async fn turn(&self) -> Option<Turn> {
        if self.delay.is_zero() {
            return None;
        }
        let host = self.base.host_str().unwrap_or_default();
        Some(self.hosts.turn(host, self.delay).await)
    }

    /// Makes a request of a harvest, once, without waiting for a turn. Pass the answer to
    /// [`oai::harvest::Harvest::handle`].
    pub async fn answer(&self, request: &Request) -> Answer {
        match self.send(request).await {
            Ok(reply) => judge(reply, request.verb()).await,
            Err(error) => {
                let outcome =
                    Outcome::Failed { problem: error.to_string(), remedy: remedy(&error) };
                Answer { outcome, bytes: 0, elements: None, list: None }
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<Reply, net::Error> {
        let mut sent = self.client.send(self.message(request)).await?;
        let mut packed = Vec::new();
        let broken = loop {
            match sent.chunk().await {
                Ok(Some(piece)) => packed.extend_from_slice(&piece),
                Ok(None) => break None,
                // The bytes before the error may contain complete records.
                Err(error) => break Some((error.to_string(), remedy(&error))),
            }
        };
        let received = sent.received();
        let name = sent.header(header::CONTENT_ENCODING.as_str()).unwrap_or_default().to_owned();
        let (bytes, problem) = if let Some(coding) = Coding::by_name(&name) {
            let bytes_max = self.access.page_bytes_max;
            let unpacked = blocking(move || body::unpack(packed, coding, bytes_max)).await;
            let problem = match (broken, unpacked.problem) {
                (None, Some(Problem::Size)) => {
                    let problem = format!("its answer unpacks to more than {bytes_max} bytes");
                    Some((problem, Remedy::Less))
                }
                (None, Some(Problem::Damaged(problem))) => Some((problem, Remedy::AgainOrLess)),
                (broken, _) => broken,
            };
            (unpacked.bytes, problem)
        } else {
            let problem =
                format!("its answer has the Content-Encoding {name:?}, which was not offered");
            (Vec::new(), Some((problem, Remedy::None)))
        };
        let (status, headers, url) = (sent.status, sent.headers, sent.url);
        Ok(Reply { status, headers, url, bytes, received, problem })
    }

    fn message(&self, request: &Request) -> HttpRequest {
        let url = self.url(request);
        let message = if url.as_str().len() <= URL_BYTES_MAX {
            HttpRequest::get(url)
        } else {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            let body = Bytes::from(request.to_query());
            HttpRequest::post(self.base.clone(), body).header(header::CONTENT_TYPE, form)
        };
        let mut message = message
            .credentials(self.access.credentials.clone())
            .allow_private(self.access.allow_private)
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static(body::ACCEPTED))
            .header(
                header::ACCEPT,
                HeaderValue::from_static("text/xml, application/xml, */*;q=0.1"),
            );
        let mut timeouts = self.client.timeouts();
        // A repository may take long to make a list over many dates.
        timeouts.header = timeouts.header.max(self.access.time_max / 4);
        timeouts.total = Some(self.access.time_max);
        message.timeouts = Some(timeouts);
        message.response_bytes_max = Some(self.access.page_bytes_max);
        message
    }
}

/// Returns the remedy for a network error.
fn remedy(error: &net::Error) -> Remedy {
    use net::Error as E;
    match error {
        E::Timeout { stage: Stage::Header | Stage::Idle | Stage::Total, .. }
        | E::Cut { .. }
        | E::Protocol { .. } => Remedy::AgainOrLess,
        E::TooLarge { .. } => Remedy::Less,
        // A certificate that is not accepted.
        E::Tls { source, .. } if source.kind() == ErrorKind::InvalidData => Remedy::None,
        E::Timeout { .. } | E::Resolve { .. } | E::Connect { .. } | E::Tls { .. } => Remedy::Again,
        _ => Remedy::None,
    }
}

pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Reads a reply, and passes on the problem of its body.
async fn read(
    reply: Reply,
    asked: Verb,
) -> (Result<Reading, Unreadable>, Option<(String, Remedy)>) {
    let (bytes, problem) = (reply.bytes, reply.problem);
    (blocking(move || oai::response::read(&bytes, asked)).await, problem)
}

/// Converts a reply to the answer for a harvest.
async fn judge(reply: Reply, asked: Verb) -> Answer {
    let text = |name: &str| reply.headers.get(name).and_then(|it| it.to_str().ok());
    let number = |name: &str| text(name).and_then(|it| it.trim().parse().ok());
    let (elements, list) = (number(oap::TOTAL_HEADER), number(oap::LIST_HEADER));
    let now_secs = i64::try_from(clock::now_ms() / 1_000).unwrap_or(i64::MAX);
    let date = text(header::DATE.as_str());
    let wait = text(header::RETRY_AFTER.as_str());
    let retry_after_secs = wait.and_then(|it| retry_after_secs(it, date, now_secs));
    let (status, received) = (reply.status, reply.received);
    let refused = Outcome::Status { status: status.as_u16(), retry_after_secs };
    let outcome = if let Some(wall) = reply.wall() {
        // Its administrator has to let us in: nothing that can be asked now helps.
        Outcome::Failed { problem: wall.to_string(), remedy: Remedy::None }
    } else if status.is_success() {
        outcome(read(reply, asked).await, asked)
    } else if status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 407 | 429) {
        // Some repositories send protocol errors under an HTTP error.
        match read(reply, asked).await {
            (Ok(Reading { response, repaired, .. }), None)
                if matches!(response.body, Body::Faults(_)) =>
            {
                Outcome::Response { response, repaired }
            }
            _ => refused,
        }
    } else {
        refused
    };
    Answer { outcome, bytes: received, elements, list }
}

fn outcome(
    (read, broken): (Result<Reading, Unreadable>, Option<(String, Remedy)>),
    asked: Verb,
) -> Outcome {
    let whole = |reading: Reading| match reading.response.body {
        Body::Records(page) => page.items,
        _ => Vec::new(),
    };
    match (read, broken) {
        (Ok(Reading { response, repaired, .. }), None) => Outcome::Response { response, repaired },
        (_, Some((problem, remedy @ (Remedy::Less | Remedy::None)))) => {
            Outcome::Failed { problem, remedy }
        }
        (Ok(reading), Some((problem, _))) => {
            Outcome::Unreadable { problem, remedy: Remedy::AgainOrLess, whole: whole(reading) }
        }
        (Err(error), broken) => {
            let (problem, remedy) = match broken {
                Some((problem, _)) => (problem, Remedy::AgainOrLess),
                // Where lists come from, the address is right.
                None if asked == Verb::ListRecords => {
                    (error.to_string(), Remedy::for_unreadable(&error, asked))
                }
                None => (error.advised(), Remedy::for_unreadable(&error, asked)),
            };
            let whole = error.into_whole().map(whole).unwrap_or_default();
            Outcome::Unreadable { problem, remedy, whole }
        }
    }
}
