//! The client of a feed: its request, the headers of the answer, and errors for answers that are
//! not feeds.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use net::client::{Client, Credentials, Request, Response};
use net::error::{RETRY_DEFAULT, Stage};
use net::host;
use tokio::sync::mpsc;
use url::Url;

use crate::change::Version;
use crate::error::{Damage, Error};
use crate::holders::Part;
use crate::member;
use crate::wire::{self, value};

/// Maximum number of pieces of a body that wait for their taker; each is at most 256 KiB.
pub(crate) const PIECES_AHEAD: usize = 4;

/// Maximum time until the next request to a source with holes, whatever its `Retry-After` says.
const RETRY_MISSING_MAX: Duration = Duration::from_secs(3_600);

/// Maximum time from the end of the requested wait to the answer; after that the source counts as
/// unreachable.
const SILENCE: Duration = Duration::from_secs(5);

/// The limits of one pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullLimits {
    /// Maximum number of changes, and of objects in a snapshot.
    pub records_max: u64,
    /// Maximum number of compressed bytes.
    pub bytes_max: u64,
    /// Maximum duration of the pull. Its changes are kept, and the next pull continues from there.
    pub time_max: Duration,
}

impl Default for PullLimits {
    /// Returns ten million changes, 16 GiB and an hour.
    fn default() -> Self {
        let time_max = Duration::from_secs(3_600);
        Self { records_max: 10_000_000, bytes_max: 16 << 30, time_max }
    }
}

/// The kind of a source's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The changes since the cursor.
    #[default]
    Delta,
    /// All live objects, or the rest of them.
    Snapshot,
}

/// The headers of an answer that describe its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) from: u64,
    pub(crate) to: Version,
    pub(crate) objects: u64,
    /// Subjects suppressed up to this serial are not in the body; 0 if the header is missing.
    pub(crate) purged: u64,
}

/// A feed's address, with the consumer's credentials and limits.
#[derive(Clone, Debug)]
pub struct FeedClient {
    pub(crate) client: Client,
    /// The feed is at `feed` below this URL.
    pub(crate) base: Url,
    /// The source's name.
    pub(crate) source: String,
    pub(crate) credentials: Credentials,
    pub(crate) allow_private: bool,
    pub(crate) consumer: Option<String>,
    /// The parameter that says what is pulled, name and value; `None`: all.
    pub(crate) asks: Option<(&'static str, String)>,
    /// Maximum number of compressed bytes to take.
    pub(crate) bytes_max: u64,
}

impl FeedClient {
    /// Makes a client of the feed at `feed` below `base`; errors name the source as `source`. The
    /// client sends no credentials, and does not connect to private networks, unless the methods
    /// below change that.
    #[must_use]
    pub fn new(client: Client, base: Url, source: impl Into<String>) -> Self {
        Self {
            client,
            base,
            source: source.into(),
            credentials: Credentials::default(),
            allow_private: false,
            consumer: None,
            asks: None,
            bytes_max: PullLimits::default().bytes_max,
        }
    }

    /// Sets the credentials that the client sends.
    #[must_use]
    pub fn credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Sets whether the feed may be in a private network or on this machine.
    #[must_use]
    pub fn allow_private(self, allow_private: bool) -> Self {
        Self { allow_private, ..self }
    }

    /// Sets the id that the client sends, so that the feed knows each consumer's progress.
    #[must_use]
    pub fn consumer(self, id: impl Into<String>) -> Self {
        Self { consumer: Some(id.into()), ..self }
    }

    /// Sets the parameter that says what is pulled, which the source has to know, by name and value; `None`: all.
    #[must_use]
    pub fn part(self, asks: Option<(&'static str, String)>) -> Self {
        Self { asks, ..self }
    }

    /// Returns what is asked for, as the cursor knows it; empty: all.
    pub(crate) fn asked(&self) -> String {
        self.asks.as_ref().map(|(name, value)| format!("{name}={value}")).unwrap_or_default()
    }

    /// Makes a request for `path` below the base. The source may delay its answer by `wait`, and
    /// the exchange may take at most `total`. A request with a wait goes to a source that has
    /// answered before, so its answer is awaited only for a short time beyond `wait`.
    pub(crate) fn get(&self, path: &str, wait: Duration, total: Duration) -> Request {
        let mut request = Request::get(host::join(&self.base, path))
            .credentials(self.credentials.clone())
            .allow_private(self.allow_private)
            .header(wire::ACCEPT_FORMAT, value(member::FORMAT));
        if let Some(id) = &self.consumer {
            request = request.header(wire::CONSUMER, value(id));
        }
        let mut timeouts = self.client.timeouts();
        if !wait.is_zero() {
            timeouts.header = timeouts.header.min(SILENCE) + wait;
        }
        timeouts.total = Some(total);
        request.timeouts = Some(timeouts);
        request.response_bytes_max = Some(self.bytes_max);
        request
    }

    /// Returns the path of the changes after `have`, or of everything.
    pub(crate) fn path(&self, have: Option<Version>, wait: Duration) -> String {
        let mut parameters = Vec::new();
        if let Some(Version { epoch, serial }) = have {
            parameters.push(format!("since={serial}&epoch={epoch}&wait={}", wait.as_secs()));
        }
        if let Some((name, value)) = &self.asks {
            let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            parameters.push(format!("{name}={encoded}"));
        }
        if parameters.is_empty() {
            "feed".to_owned()
        } else {
            format!("feed?{}", parameters.join("&"))
        }
    }

    /// Returns the part of the source that an answer is of; `None`: all of it. A source may limit to a part whoever asks
    /// for all.
    pub(crate) fn part_of(&self, response: &Response) -> Result<Option<Part>, Error> {
        let asked = self.asked();
        match response.header(wire::VIEW.as_str()) {
            Some(name) => Ok(Some(Part { asked, name: name.to_owned(), is_new: false })),
            None if asked.is_empty() => Ok(None),
            None => {
                let what = "it sends all that it has, whatever is asked for".to_owned();
                Err(self.no_feed(&response.url, what))
            }
        }
    }

    /// Reads the headers that describe the body.
    pub(crate) fn answer(&self, response: &Response) -> Result<Answer, Error> {
        let wrong = |what: String| self.no_feed(&response.url, what);
        let text = |name: &HeaderName| {
            let text = response.headers.get(name).map(HeaderValue::to_str);
            match text {
                Some(Ok(text)) => Ok(text.trim()),
                _ => Err(wrong(format!("its answer has no {name}"))),
            }
        };
        let number = |name: &HeaderName| {
            let text = text(name)?;
            text.parse::<u64>().map_err(|_error| wrong(format!("its {name} is {text:?}")))
        };
        let kind = match text(&wire::KIND)? {
            "delta" => Kind::Delta,
            "snapshot" => Kind::Snapshot,
            other => return Err(wrong(format!("it answers with {other:?}"))),
        };
        let format = text(&wire::FORMAT)?;
        if format.parse() != Ok(member::FORMAT) {
            return Err(self.other_format(&response.url, format));
        }
        let epoch = text(&wire::EPOCH)?.parse().map_err(|error: Error| wrong(error.to_string()))?;
        let to = Version { epoch, serial: number(&wire::TO)? };
        let (from, objects) = (number(&wire::FROM)?, number(&wire::OBJECTS)?);
        let is_given = response.headers.contains_key(wire::PURGED);
        let purged = if is_given { number(&wire::PURGED)? } else { 0 };
        Ok(Answer { kind, from, to, objects, purged })
    }

    /// Returns the error of an answer that reports missing changes; `None` if it reports none.
    pub(crate) fn missing(&self, response: &Response) -> Option<Error> {
        let missing = response.header(wire::MISSING.as_str())?.to_owned();
        let (name, url) = (self.source.clone(), response.url.to_string());
        let secs = response.header(header::RETRY_AFTER.as_str()).and_then(|it| it.parse().ok());
        let after = secs.map_or(RETRY_DEFAULT, Duration::from_secs).min(RETRY_MISSING_MAX);
        Some(Error::Missing { name, url, missing, after })
    }

    /// Returns the error of an answer that has neither status 200 nor 206.
    pub(crate) async fn refused(&self, response: Response) -> Error {
        if let Some(missing) = self.missing(&response) {
            return missing;
        }
        let spoken = response.header(wire::FORMAT.as_str()).map(str::to_owned);
        match (response.status, spoken) {
            (StatusCode::NOT_ACCEPTABLE, Some(spoken)) => self.other_format(&response.url, &spoken),
            (StatusCode::NOT_FOUND, _) => self.no_feed(&response.url, "404 Not Found".to_owned()),
            _ => self.failed(response.into_error().await),
        }
    }

    pub(crate) fn failed(&self, error: net::Error) -> Error {
        match error {
            net::Error::TooLarge { .. } => {
                let what = format!("more than {} bytes at once", self.bytes_max);
                self.over_limit(what, "bytes_max")
            }
            error => Error::Source { name: self.source.clone(), error },
        }
    }

    /// Adds the source and `url` to an error if it is about damaged bytes.
    pub(crate) fn corrupt(&self, url: impl ToString, error: Error) -> Error {
        let (name, url) = (self.source.clone(), url.to_string());
        match error {
            Error::Stream { offset, what } => Error::Corrupt { name, url, offset, what },
            error => error,
        }
    }

    /// Returns the outcome of a transfer from `taken`, the outcome of applying the bytes, and
    /// `fetched`, that of receiving them.
    pub(crate) fn transferred<T>(
        &self,
        url: &Url,
        taken: Result<T, Error>,
        fetched: Result<(), net::Error>,
    ) -> Result<T, Error> {
        match (taken, fetched) {
            // The bytes end too early because the connection failed.
            (Err(Error::Stream { what: Damage::Truncated, .. }), Err(error)) => {
                Err(self.failed(error))
            }
            (taken, _) => taken.map_err(|error| self.corrupt(url, error)),
        }
    }

    pub(crate) fn over_limit(&self, what: String, setting: &'static str) -> Error {
        Error::OverLimit { name: self.source.clone(), what, setting }
    }

    pub(crate) fn no_feed(&self, url: &Url, what: String) -> Error {
        Error::NotAFeed { name: self.source.clone(), url: url.to_string(), what }
    }

    pub(crate) fn other_format(&self, url: &Url, spoken: &str) -> Error {
        let (name, url, spoken) = (self.source.clone(), url.to_string(), spoken.to_owned());
        Error::Format { name, url, spoken, ours: member::FORMAT }
    }
}

/// A message from the receiver of a body to the thread that takes its bytes.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// No more bytes will come, for whatever reason.
    End,
}

/// Passes on a body to `pieces`, piece by piece, and then its end.
pub(crate) async fn forward(
    response: &mut Response,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), net::Error> {
    let fetched = loop {
        match response.chunk().await {
            Ok(None) => break Ok(()),
            // The receiver stops receiving after an error in the bytes.
            Ok(Some(piece)) => {
                if pieces.send(Piece::Bytes(piece)).await.is_err() {
                    break Ok(());
                }
            }
            Err(error) => break Err(error),
        }
    };
    // If the receiver is gone, it has ended already.
    drop(pieces.send(Piece::End).await);
    fetched
}

/// Returns the first byte of `Content-Range`; `None` if the header is missing or malformed.
pub(crate) fn range_start(response: &Response) -> Option<u64> {
    let range = response.header("content-range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}

/// Returns whether another request may succeed now: the transfer failed, its bytes were damaged, or
/// the cursor was set back.
pub(crate) fn is_transfer_error(error: &Error) -> bool {
    use net::Error::{Cut, Protocol, Timeout};
    match error {
        Error::Corrupt { .. } | Error::SetBack { .. } => true,
        Error::Source { error, .. } => {
            matches!(error, Cut { .. } | Protocol { .. } | Timeout { stage: Stage::Idle, .. })
        }
        _ => false,
    }
}
