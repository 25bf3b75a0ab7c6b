//! What a source's answer says before its body comes, and what is wrong with one that is none.

use http::{HeaderName, HeaderValue, StatusCode};
use net::client::Response;
use net::error::Stage;
use url::Url;

use super::{Kind, Puller};
use crate::change::Version;
use crate::error::Error;
use crate::{feed, member};

/// What the head of an answer says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: Kind,
    pub(super) from: u64,
    pub(super) to: Version,
    pub(super) objects: u64,
}

impl Puller {
    /// Notes which key the source says is its own: what it signs is known by it.
    pub(super) fn note_key(&self, response: &Response) {
        let owner = response.headers.get(feed::KEY).and_then(|it| it.to_str().ok());
        if let Some((_id, key)) = owner.and_then(|it| it.split_once(' ')) {
            self.collection.source_key(&self.source, key);
        }
    }

    /// Reads what the head says of the body.
    pub(super) fn answer(&self, response: &Response) -> Result<Answer, Error> {
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
        let kind = match text(&feed::KIND)? {
            "delta" => Kind::Delta,
            "snapshot" => Kind::Snapshot,
            other => return Err(wrong(format!("it answers with {other:?}"))),
        };
        let format = text(&feed::FORMAT)?;
        if format.parse() != Ok(member::FORMAT) {
            return Err(self.other_format(&response.url, format));
        }
        let epoch = text(&feed::EPOCH)?.parse().map_err(|error: Error| wrong(error.to_string()))?;
        let to = Version { epoch, serial: number(&feed::TO)? };
        Ok(Answer { kind, from: number(&feed::FROM)?, to, objects: number(&feed::OBJECTS)? })
    }

    /// Names what a source that answers with neither 200 nor 206 wants to say.
    pub(super) async fn refused(&self, response: Response) -> Error {
        let spoken = response.header(feed::FORMAT.as_str()).map(str::to_owned);
        match (response.status, spoken) {
            (StatusCode::NOT_ACCEPTABLE, Some(spoken)) => self.other_format(&response.url, &spoken),
            (StatusCode::NOT_FOUND, _) => self.no_feed(&response.url, "404 Not Found".to_owned()),
            _ => self.failed(response.into_error().await),
        }
    }

    pub(super) fn failed(&self, error: net::Error) -> Error {
        match error {
            net::Error::TooLarge { .. } => {
                let what = format!("more than {} bytes at once", self.limits.bytes_max);
                self.over_limit(what, "bytes_max")
            }
            error => Error::Source { name: self.source.clone(), error },
        }
    }

    pub(super) fn over_limit(&self, what: String, setting: &'static str) -> Error {
        Error::OverLimit { name: self.source.clone(), what, setting }
    }

    pub(super) fn no_feed(&self, url: &Url, what: String) -> Error {
        Error::NotAFeed { name: self.source.clone(), url: url.to_string(), what }
    }

    pub(super) fn other_format(&self, url: &Url, spoken: &str) -> Error {
        let (name, url, spoken) = (self.source.clone(), url.to_string(), spoken.to_owned());
        Error::Format { name, url, spoken, ours: member::FORMAT }
    }
}

/// Returns the first byte of `Content-Range`.
pub(super) fn range_start(response: &Response) -> Option<u64> {
    let range = response.header("content-range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}

/// Whether it was the transfer that failed, and another may go on from where it did.
pub(super) fn is_of_transfer(error: &Error) -> bool {
    use net::Error::{Cut, Protocol, Timeout};
    match error {
        Error::Corrupt { .. } | Error::SetBack { .. } => true,
        Error::Source { error, .. } => {
            matches!(error, Cut { .. } | Protocol { .. } | Timeout { stage: Stage::Idle, .. })
        }
        _ => false,
    }
}
