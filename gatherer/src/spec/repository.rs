//! A root that is an OAI-PMH repository: `access = "oai"`.
//!
//! Source: OAI-PMH §2.7 (selective harvesting).
//!
//! Harvested records belong to the repository: they have the `Gatherer-Id` that every harvester
//! gives to them (`oai::crosswalk`), so that two gatherers of one repository do not cause every
//! record to exist twice.
//!
//! Sans-I/O.

use std::time::Duration;

use daemon::{Token, client_certificate};
use exchange::source::{self, Oai};
use net::tls::ClientFiles;
use settings::Table;
use url::Url;

/// Default interval between harvests.
pub const INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// A repository to harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The repository's base URL.
    pub base_url: Url,
    /// Selection of records, and settings of the harvest.
    pub oai: Oai,
    /// Time from one harvest to the next.
    pub interval: Duration,
    /// Bearer token, if the repository requires one.
    pub token: Option<Token>,
    /// Client certificate, if the repository requires one.
    pub certificate: Option<Box<ClientFiles>>,
    /// Whether the repository's host may be in a private or loopback network.
    pub allow_private: bool,
}

impl Repository {
    /// Returns the repository at `base_url` with every setting at its default.
    pub fn new(base_url: Url) -> Self {
        let oai = Oai::default();
        let (token, certificate) = (None, None);
        Self { base_url, oai, interval: INTERVAL, token, certificate, allow_private: true }
    }

    /// Returns the base URL as text.
    pub fn url(&self) -> &str {
        self.base_url.as_str()
    }

    /// Reads a `[[root]]` with `access = "oai"`, and reports its mistakes. Confirmed records live
    /// for `ttl`.
    pub(crate) fn read(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Option<Self> {
        table.require("url", "\"https://archive.example.org/oai\"");
        let oai = Oai::read(table);
        let interval = interval(table, interval_max, ttl);
        let (token, certificate) = (Token::read(table), client_certificate(table).map(Box::new));
        let allow_private = table.boolean("allow_private", true);
        let base_url = source::base_url(table)?;
        Some(Self { base_url, oai, interval, token, certificate, allow_private })
    }
}

/// Reads the interval of a root that is not on this machine: at most half of `ttl`, so that a pass
/// may fail.
pub(super) fn interval(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Duration {
    const LEAST: Duration = Duration::from_secs(1);
    let interval = table.duration_within("interval", LEAST..=interval_max);
    let most = (ttl / 2).max(LEAST);
    if let Some(interval) = interval.filter(|it| most < *it) {
        let message = format!(
            "the interval ({} s) is longer than half of ttl ({} s): if one pass fails, its records \
             are gone at brokers before they are gathered again",
            interval.as_secs(),
            ttl.as_secs()
        );
        table.mistake("interval", message, "at most half of ttl, or a longer ttl");
    }
    interval.unwrap_or_else(|| INTERVAL.min(most))
}
