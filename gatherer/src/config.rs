//! A gatherer's settings: `gatherer.toml` as written, checked, with every default.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use crate::spec::{Map, Root};

/// Where a gatherer serves its feed unless told otherwise.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8500);

/// Where a gatherer is administered unless told otherwise: this machine only.
pub const ADMIN_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9500);

/// How long a record lives without being confirmed: one month, as in the original.
pub const TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How often a record is expected to be confirmed: one week, as in the original.
pub const REFRESH_RATE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How often every root is walked again although it is watched: what a watcher may have missed.
pub const REWALK: Duration = Duration::from_secs(3_600);

/// How often a root that is polled is walked, unless told otherwise.
pub const POLL: Duration = Duration::from_secs(60);

/// How much of one file is read, in bytes; of a larger one the beginning is summarized.
pub const READ_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How the gatherer learns of changes between passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// By the system's notifications; falls back to polling every [`POLL`] where there are none.
    Notify,
    /// By walking every root at this interval: for network file systems, which notify of nothing.
    Poll(Duration),
    /// Not at all: passes happen at the start, at every `rewalk`, and when asked for.
    Off,
}

/// Which types are published with their full text, beside what summarizing them gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FullText {
    /// None.
    #[default]
    None,
    /// Every type that has text.
    All,
    /// These types, by the name that the `Type` attribute has.
    Types(BTreeSet<String>),
}

/// A gatherer's settings, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What people call it: the `Gatherer-Name` of its records.
    pub name: String,
    /// The public listener: the page, the feed, snapshots and objects.
    pub listen: SocketAddr,
    /// The listener for status, metrics and administration.
    pub admin_listen: SocketAddr,
    /// The URL under which the public listener is reached through a proxy, if there is one.
    pub base_url: Option<Url>,
    /// The folder of everything stored: collection, id, token. Never gathered itself.
    pub data: PathBuf,
    /// The trees to gather; none lies inside another.
    pub roots: Vec<Root>,
    /// Public URLs of directories.
    pub maps: Vec<Map>,
    /// Which types carry their full text.
    pub full_text: FullText,
    /// The `Time-to-Live` of records.
    pub ttl: Duration,
    /// The `Refresh-Rate` of records.
    pub refresh_rate: Duration,
    /// How changes are noticed.
    pub watch: Watch,
    /// How often every root is walked whatever the watch says.
    pub rewalk: Duration,
    /// How much of one file is read, in bytes.
    pub read_bytes_max: u64,
    /// How many threads read and summarize; at least 1.
    pub workers: usize,
}

impl Config {
    /// Returns the settings for gathering `paths` (absolute) with everything stored in `data`, on
    /// ports of this machine that the system chooses: what `harvest up` runs.
    pub fn for_paths(paths: &[PathBuf], data: &Path) -> Self {
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let mut roots: Vec<Root> = Vec::new();
        let mut sorted: Vec<&PathBuf> = paths.iter().collect();
        sorted.sort();
        for path in sorted {
            if !roots.iter().any(|root| path.starts_with(&root.directory)) {
                roots.push(Root::new(path));
            }
        }
        Self {
            name: paths.first().map_or_else(String::new, |path| {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }),
            listen: local,
            admin_listen: local,
            roots,
            ..Self::new(data)
        }
    }

    /// Returns the default settings with everything stored in `data`, and no roots.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            name: String::new(),
            listen: LISTEN,
            admin_listen: ADMIN_LISTEN,
            base_url: None,
            data: data.into(),
            roots: Vec::new(),
            maps: Vec::new(),
            full_text: FullText::None,
            ttl: TTL,
            refresh_rate: REFRESH_RATE,
            watch: Watch::Notify,
            rewalk: REWALK,
            read_bytes_max: READ_BYTES_MAX,
            workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_paths_are_one_root() {
        let paths = ["/b/c".into(), "/a".into(), "/a/x".into(), "/b/c".into()];
        let config = Config::for_paths(&paths, Path::new("/data"));
        let roots: Vec<_> = config.roots.iter().map(Root::url).collect();
        assert_eq!(roots, ["file:///a", "file:///b/c"]);
        assert_eq!(config.name, "c");
        assert_eq!(config.listen.port(), 0);
    }
}
