//! Named brokers: what each of those that the settings name says of itself, by its own feed.
//!
//! It counts for that broker alone. So it is kept apart from what registries say, and nothing else is taken of the feed:
//! no summary of somebody else, none that was passed on, no record of a server. It is kept in memory: after a start, who
//! cannot be asked for it cannot be asked for hits either.

use std::sync::Arc;
use std::time::Duration;

use collection::Version;
use http::{HeaderName, HeaderValue};
use net::client::{Client, Credentials, Request, Response};
use net::{host, identity};
use url::Url;

use super::settings;
use super::summary::{QUERY, Summary, own_summary};
use crate::blocking::blocking;
use crate::error::Error;

/// The name of the part that is served.
const VIEW: HeaderName = HeaderName::from_static("harvest-view");
/// Longest time for which a feed holds back its answer.
const WAIT: Duration = Duration::from_secs(50);
/// Time for an answer, besides that.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Longest answer, in bytes, compressed: a summary has some 1.2 MB at most.
const BYTES_MAX: u64 = 8 << 20;

/// What a named broker says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Declared {
    /// Its id, which is made of the key that it names; empty if it names none. Keys are no secret: it may be that of
    /// somebody else.
    pub(super) id: String,
    pub(super) summary: Option<Arc<Summary>>,
}

/// The feed of a named broker.
#[derive(Debug)]
pub(super) struct NamedFeed {
    client: Client,
    url: Url,
    credentials: Credentials,
    /// Up to which version it was read, and the name of the part; `None`: it was not.
    at: Option<(Version, HeaderValue)>,
    declared: Declared,
}

impl NamedFeed {
    /// Returns the feed of this broker, at its first address; `None`: it has none.
    pub(super) fn of(named: &settings::Peer, client: Client) -> Option<Self> {
        let url = named.urls.first()?.clone();
        let token = named.token.as_ref().map(|it| it.secret().to_owned());
        let credentials = Credentials { token, ..Credentials::default() };
        Some(Self { client, url, credentials, at: None, declared: Declared::default() })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns what was read so far.
    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Asks for what is new, with which the broker may take its time; returns whether it says something else now.
    ///
    /// # Errors
    ///
    /// The broker cannot be reached, or this is no feed of it, as the text says; try again later.
    pub(super) async fn follow(&mut self) -> Result<bool, String> {
        let response = self.client.send(self.request()).await.map_err(|it| it.to_string())?;
        if !response.status.is_success() {
            return Err(format!("its feed answers {}", response.status));
        }
        let at = reached(&response).ok_or("it has no feed of summaries")?;
        // What a damaged log lacks is not gone.
        let is_whole = response.header("harvest-kind") == Some("snapshot")
            && response.header("harvest-missing").is_none();
        let id = response.header("harvest-key").and_then(id_of).unwrap_or_default().to_owned();
        let bytes = response.bytes(BYTES_MAX).await.map_err(|it| it.to_string())?;
        let of = id.clone();
        let read = move || {
            let own = own_summary(&of, &bytes);
            Ok::<_, Error>(own.map(|it| it.as_ref().and_then(Summary::read)))
        };
        let read = blocking("peers", read).await.map_err(|it| it.to_string())??;
        let before = self.declared.summary.as_ref().filter(|_| !is_whole && self.declared.id == id);
        let summary = read.map(Arc::new).or_else(|| before.cloned());
        let declared = Declared { id, summary };
        self.at = Some(at);
        let is_new = declared != self.declared;
        if is_new {
            self.declared = declared;
        }
        Ok(is_new)
    }

    /// Returns the request for what came after what was read.
    fn request(&self) -> Request {
        let (mut url, mut timeouts) = (host::join(&self.url, "feed"), self.client.timeouts());
        url.query_pairs_mut().append_pair("q", QUERY);
        if let Some((Version { epoch, serial }, _)) = &self.at {
            url.query_pairs_mut()
                .append_pair("since", &serial.to_string())
                .append_pair("epoch", &epoch.to_string())
                .append_pair("wait", &WAIT.as_secs().to_string());
            timeouts.header += WAIT;
        }
        timeouts.total = Some(WAIT + TIME_MAX);
        // The settings name it.
        let request = Request::get(url).credentials(self.credentials.clone()).allow_private(true);
        let request = Request { timeouts: Some(timeouts), ..request };
        match &self.at {
            Some((_, part)) => request.header(VIEW, part.clone()),
            None => request,
        }
    }
}

/// Returns the version that an answer leads to, and the name of the part; `None`: it is none of a part of a feed.
fn reached(response: &Response) -> Option<(Version, HeaderValue)> {
    let part = response.headers.get(VIEW)?.clone();
    let epoch = response.header("harvest-epoch")?.parse().ok()?;
    let serial = response.header("harvest-to")?.parse().ok()?;
    Some((Version { epoch, serial }, part))
}

/// Returns the id of a feed's owner, `ID KEY`, if it is made of the key.
fn id_of(owner: &str) -> Option<&str> {
    let (id, key) = owner.split_once(' ')?;
    (identity::id_of(key) == id).then_some(id)
}
