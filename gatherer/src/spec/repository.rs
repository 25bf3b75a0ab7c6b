//! A root that is an OAI-PMH repository, to be harvested: `access = "oai"`.
//!
//! Source: OAI-PMH §2.7 (what can be selected).
//!
//! What is harvested belongs to the repository: its records have the `Gatherer-Id` that every
//! harvester gives them (`oai::crosswalk`), so that two gatherers of one repository do not bring
//! every record twice.
//!
//! Sans-I/O.

use std::time::Duration;

use daemon::{Token, client_certificate};
use exchange::source::{self, Oai};
use net::tls::ClientFiles;
use settings::Table;
use url::Url;

/// How often a repository is harvested, unless told otherwise.
pub const INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// A repository to harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its base URL.
    pub base_url: Url,
    /// What is harvested of it, and how.
    pub oai: Oai,
    /// How long after a harvest the next one begins.
    pub interval: Duration,
    /// Bearer token to send, where it asks for one.
    pub token: Option<Token>,
    /// What it is shown, where it asks for a certificate.
    pub certificate: Option<Box<ClientFiles>>,
    /// Whether its host may be in a private or loopback network.
    pub allow_private: bool,
}

impl Repository {
    /// Returns the repository at `base_url` with every setting at its default.
    pub fn new(base_url: Url) -> Self {
        let oai = Oai::default();
        let (token, certificate) = (None, None);
        Self { base_url, oai, interval: INTERVAL, token, certificate, allow_private: true }
    }

    /// Returns what a base URL may be; `None` for other text.
    pub fn base_url_of(text: &str) -> Option<Url> {
        source::base_url_of(text)
    }

    /// Returns the base URL as text.
    pub fn url(&self) -> &str {
        self.base_url.as_str()
    }

    /// Reads a `[[root]]` with `access = "oai"`, recording what is wrong with it. What is confirmed by a harvest
    /// lives for `ttl`.
    pub(crate) fn read(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Option<Self> {
        table.require("url", "\"https://archive.example.org/oai\"");
        let oai = Oai::read(table);
        let shortest = Duration::from_secs(1);
        let interval = table.duration_within("interval", shortest..=interval_max);
        let interval = interval.unwrap_or(INTERVAL);
        if ttl < interval {
            let message = format!(
                "the interval ({} s) is longer than ttl ({} s): its records would be gone at \
                 brokers before the next harvest",
                interval.as_secs(),
                ttl.as_secs()
            );
            table.mistake("interval", message, "at most ttl, or a longer ttl");
        }
        let (token, certificate) = (Token::read(table), client_certificate(table).map(Box::new));
        let allow_private = table.boolean("allow_private", true);
        let base_url = source::base_url(table)?;
        Some(Self { base_url, oai, interval, token, certificate, allow_private })
    }
}
