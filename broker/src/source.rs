//! A source: another collection that this broker pulls.
//!
//! This module has the checked settings of a source; its status is in [`crate::status`], its pull
//! times are in [`crate::schedule`]. A gatherer and a broker serve the same feed, so the two kinds
//! differ only for people and in status. An OAI-PMH repository is harvested with the settings
//! [`Oai`]. A replica is read from a directory of this machine, which a replicator keeps up to
//! date.
//!
//! Sans-I/O.

pub(crate) mod state;

use std::fmt;

pub use daemon::Token;
pub use exchange::source::Oai;
use freshness::schedule::Window;
use freshness::syndication::Syndication;
use net::client::Credentials;
use net::tls::ClientFiles;
use query::Query;
use url::Url;

use crate::views;

/// Default maximum number of changes in one pull, and of objects of a source.
pub const RECORDS_MAX: u64 = 50_000_000;

/// Default maximum number of compressed bytes accepted in one pull (64 GiB).
pub const BYTES_MAX: u64 = 64 << 30;

/// Kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A gatherer: it writes the records that it serves.
    Gatherer,
    /// Another broker: it serves the records that it has collected, so brokers can form a cascade.
    Broker,
    /// A repository with OAI-PMH.
    Oai,
    /// The log of another collection, which a replicator copies to this machine.
    Replica,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Gatherer, Self::Broker, Self::Oai, Self::Replica];
    /// The names that the settings accept, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["gatherer", "broker", "oai", "replica"];

    /// Returns the kind with the given name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the name that the settings use.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A part of what a broker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// What a query selects.
    Query(Query),
    /// A view of that broker, by name.
    View(String),
}

impl Part {
    /// Returns the parameter of the feed that asks for it.
    pub fn parameter(&self) -> (&'static str, String) {
        match self {
            Self::Query(query) => ("q", query.to_string()),
            Self::View(name) => (views::FIELD, name.clone()),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(query) => write!(f, "what {query} selects"),
            Self::View(name) => write!(f, "its view {name}"),
        }
    }
}

/// One source, as the settings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The name, unique among the sources of a broker. Cursor and objects of the source are kept
    /// under this name, so renaming a source means removing one and adding another.
    pub name: String,
    /// Kind of the source.
    pub kind: Kind,
    /// URL below which `feed` and `snapshot/…` are; for a repository, its base URL; for a replica,
    /// its directory as a `file` URL.
    pub url: Url,
    /// Where the same log is served as well, under the same versions: any of them is pulled with the same cursor.
    pub replicas: Vec<Url>,
    /// Whether to keep a long poll open, so that a change is found at once.
    pub follow: bool,
    /// Whether to subscribe at the source's hub, so that a change is found within the shortest
    /// interval.
    pub push: bool,
    /// Whether the host may be in a private or loopback network.
    pub allow_private: bool,
    /// Bearer token to send, if the source asks for one.
    pub token: Option<Token>,
    /// Client certificate, if the source asks for one.
    pub certificate: Option<ClientFiles>,
    /// Maximum number of changes in one pull, and of objects that the source may hold here.
    pub records_max: u64,
    /// Maximum number of compressed bytes accepted in one pull.
    pub bytes_max: u64,
    /// What is pulled of a broker; `None`: all that it has.
    pub part: Option<Part>,
    /// Whether takedowns from this source hold for the objects of every source. Otherwise only
    /// takedowns by an object's own gatherer hold.
    pub trusted_takedowns: bool,
    /// Hours of the day (UTC) in which scheduled pulls are allowed; `None` for all hours.
    pub window: Option<Window>,
    /// Shortest interval between scheduled pulls, seconds; `None` for the broker's setting.
    pub interval_min: Option<f64>,
    /// Longest interval between pulls, seconds; `None` for the broker's setting.
    pub interval_max: Option<f64>,
    /// Acceptable latency (Liu): maximum age of a change when it is found, seconds.
    pub latency_secs: Option<f64>,
    /// Weight of the source's freshness relative to that of the other sources.
    pub weight: f64,
    /// The source's update times; it is pulled right after each of them.
    pub syndication: Option<Syndication>,
    /// Whether a repository is pulled at its announced update times, if the settings have none.
    pub announced: bool,
    /// Harvest settings; for [`Kind::Oai`] only.
    pub oai: Option<Oai>,
}

impl Source {
    /// Returns the credentials of this broker at the source.
    pub fn credentials(&self) -> Credentials {
        exchange::source::credentials(self.token.as_ref(), self.certificate.as_ref())
    }

    /// Returns a gatherer with the given name and URL and the defaults of the settings file.
    pub fn gatherer(name: impl Into<String>, url: Url) -> Self {
        Self {
            name: name.into(),
            kind: Kind::Gatherer,
            url,
            replicas: Vec::new(),
            follow: false,
            push: false,
            allow_private: true,
            token: None,
            certificate: None,
            records_max: RECORDS_MAX,
            bytes_max: BYTES_MAX,
            part: None,
            trusted_takedowns: false,
            window: None,
            interval_min: None,
            interval_max: None,
            latency_secs: None,
            weight: 1.0,
            syndication: None,
            announced: true,
            oai: None,
        }
    }
}
