//! The broker's settings: what `broker.toml` says, checked.
//!
//! Every default is a constant here; every mistake in a file is named with its line (see
//! `web::settings`), not just the first.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use url::Url;

use crate::source::Source;

/// Where the public listener listens, unless the settings say otherwise.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8501);

/// Where the admin listener listens, unless the settings say otherwise.
pub const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9501);

/// Most sources of one broker.
pub const SOURCES_MAX: usize = 10_000;

/// The settings of a broker.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What the broker calls itself on its pages.
    pub name: String,
    /// Address of the public listener: page, search API, objects, feed.
    pub listen: SocketAddr,
    /// Address of the admin listener: status, metrics, commands.
    pub admin_listen: SocketAddr,
    /// The public address where it differs from the listener's (behind a proxy).
    pub base_url: Option<Url>,
    /// Where collection, index, id and admin token are kept.
    pub data: PathBuf,
    /// A folder of page templates that replace the built-in ones.
    pub templates: Option<PathBuf>,
    /// Whom to pull; names are unique.
    pub sources: Vec<Source>,
    /// How fresh to be.
    pub freshness: Freshness,
}

impl Config {
    /// Returns the defaults of the settings file for a broker that keeps its state in `data`.
    pub fn new(name: impl Into<String>, data: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            listen: LISTEN,
            admin_listen: ADMIN_LISTEN,
            base_url: None,
            data: data.into(),
            templates: None,
            sources: Vec::new(),
            freshness: Freshness::default(),
        }
    }
}

/// How the intervals between pulls are chosen: policy OAP(θ), the only one so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freshness {
    /// The freshness to keep at the least cost, 0 up to but not including 1.
    pub theta: f64,
    /// Gain of the rate estimator, above 0 and up to 1.
    pub gain: f64,
    /// Shortest interval between scheduled pulls of one source, seconds, above 0.
    pub interval_min: f64,
    /// Longest interval between pulls of one source, seconds.
    pub interval_max: f64,
}

impl Freshness {
    /// Freshness aimed at by default.
    pub const THETA: f64 = 0.9;
    /// Gain by default (the value that Adly §4 suggests).
    pub const GAIN: f64 = 0.25;
    /// Shortest interval by default, seconds.
    pub const INTERVAL_MIN: f64 = 10.0;
    /// Longest interval by default, seconds (a day).
    pub const INTERVAL_MAX: f64 = 86_400.0;
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            theta: Self::THETA,
            gain: Self::GAIN,
            interval_min: Self::INTERVAL_MIN,
            interval_max: Self::INTERVAL_MAX,
        }
    }
}
