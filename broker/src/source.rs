//! A source: somebody else's collection that this broker pulls.
//!
//! What the settings say of a source, checked; how it fares is in [`crate::status`], when it is
//! pulled in [`crate::schedule`]. A gatherer and a broker speak the same feed, so that of these two the
//! kind is for people and for status. An OAI-PMH repository is harvested: it has [`Oai`]. A replica is read
//! where a replicator keeps it, in a directory of this machine.
//!
//! Sans-I/O.

use std::path::Path;

pub use daemon::Token;
pub use exchange::source::Oai;
use freshness::schedule::Window;
use freshness::syndication::Syndication;
use net::client::Credentials;
use net::tls::ClientFiles;
use serde::Serialize;
use url::Url;

/// Most changes accepted in one pull, unless the settings say otherwise.
pub const RECORDS_MAX: u64 = 50_000_000;

/// Most compressed bytes accepted in one pull, unless the settings say otherwise (64 GiB).
pub const BYTES_MAX: u64 = 64 << 30;

/// What a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A gatherer: it writes the records that it serves.
    Gatherer,
    /// Another broker: it serves what it has collected itself (a cascade).
    Broker,
    /// A repository that speaks OAI-PMH.
    Oai,
    /// The log of a collection elsewhere, which a replicator brings here.
    Replica,
}

impl Kind {
    /// The names that the settings accept.
    pub const NAMES: [&'static str; 4] = ["gatherer", "broker", "oai", "replica"];

    /// Returns the kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "gatherer" => Some(Self::Gatherer),
            "broker" => Some(Self::Broker),
            "oai" => Some(Self::Oai),
            "replica" => Some(Self::Replica),
            _ => None,
        }
    }

    /// Returns the name that the settings use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gatherer => "gatherer",
            Self::Broker => "broker",
            Self::Oai => "oai",
            Self::Replica => "replica",
        }
    }
}

/// One source, as the settings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Unique among the sources of a broker; its cursor and its holdings are kept under this name,
    /// so renaming a source means removing one and adding another.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Where its feed is: `feed` and `snapshot/…` are joined to this. Of a repository, its base URL; of a replica,
    /// the directory as a `file` URL.
    pub url: Url,
    /// Whether to hold a long poll open, so that a change is heard of at once.
    pub follow: bool,
    /// Whether to have its hub tell of changes, so that they are heard of at once.
    pub push: bool,
    /// Whether the host may be in a private or loopback network.
    pub allow_private: bool,
    /// Bearer token to send, where the source asks for one.
    pub token: Option<Token>,
    /// What it is shown, where it asks for a certificate.
    pub certificate: Option<ClientFiles>,
    /// Most changes accepted in one pull.
    pub records_max: u64,
    /// Most compressed bytes accepted in one pull.
    pub bytes_max: u64,
    /// Whether what it suppresses is suppressed for every source; otherwise only what an object's own
    /// gatherer suppresses is.
    pub trusted_takedowns: bool,
    /// Hours of the day (UTC) in which scheduled pulls are allowed; `None`: any.
    pub window: Option<Window>,
    /// Shortest interval between scheduled pulls, seconds; `None`: that of the broker.
    pub interval_min: Option<f64>,
    /// Longest interval between pulls, seconds; `None`: that of the broker.
    pub interval_max: Option<f64>,
    /// How old its changes may get before they are found, seconds (Liu's acceptable latency).
    pub latency_secs: Option<f64>,
    /// Weight of its freshness beside the others'.
    pub weight: f64,
    /// When it says to be updated: it is pulled right after that.
    pub syndication: Option<Syndication>,
    /// Whether a repository is pulled when it says to be updated, if the settings do not say when that is.
    pub announced: bool,
    /// How it is harvested, if it is of [`Kind::Oai`], and no other.
    pub oai: Option<Oai>,
}

impl Source {
    /// Returns what says to it who asks.
    pub fn credentials(&self) -> Credentials {
        exchange::source::credentials(self.token.as_ref(), self.certificate.as_ref())
    }

    /// Returns a gatherer of that name and address with the defaults of the settings file.
    pub fn gatherer(name: impl Into<String>, url: Url) -> Self {
        Self {
            name: name.into(),
            kind: Kind::Gatherer,
            url,
            follow: false,
            push: false,
            allow_private: true,
            token: None,
            certificate: None,
            records_max: RECORDS_MAX,
            bytes_max: BYTES_MAX,
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

    /// Returns a repository of that name and base URL with the defaults of the settings file.
    pub fn oai(name: impl Into<String>, url: Url) -> Self {
        Self { kind: Kind::Oai, oai: Some(Oai::default()), ..Self::gatherer(name, url) }
    }

    /// Returns a replica of that name in that directory with the defaults of the settings file; `None` if the
    /// path is not said from the root on.
    pub fn replica(name: impl Into<String>, directory: &Path) -> Option<Self> {
        let url = Url::from_file_path(directory).ok()?;
        Some(Self { kind: Kind::Replica, ..Self::gatherer(name, url) })
    }
}
