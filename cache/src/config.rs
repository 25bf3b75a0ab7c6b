//! A cache's settings: `cache.toml`, read and checked, with all defaults filled in.
//!
//! ```toml
//! listen = "127.0.0.1:3128"
//! memory_bytes = "256 MiB"
//! disk_bytes = "10 GiB"
//!
//! [[refresh]]                # how long answers are used whose origin does not say
//! pattern = "^http://www\\.example\\.org/images/"
//! min = "1 h"
//! percent = 20
//! max = "7 days"
//!
//! [[origin]]                 # a site before which the cache stands
//! host = "www.example.org"
//! url = "http://127.0.0.1:8080/"
//! ```
//!
//! docs/cache.md has all keys.

mod neighbor;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use net::host::HostPort;
use net::nntp::{self, Reader};
use regex::Regex;
use settings::{Document, Mistake, Table};
use url::Url;

use crate::access_log::Format;
use crate::neighbors::Neighbor;
use crate::policy::control::SECONDS_MAX;
use crate::policy::freshness::{Guess, Rules};
use crate::policy::mirrors::Mirror;
use crate::target::{self, Destination, Scheme};

/// Default address of the proxy.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3_128);
/// Default address of the administration.
pub const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4_128);
/// Default address for neighbors' questions.
pub const ICP_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3_130);
/// Default memory for objects, in bytes.
pub const MEMORY_BYTES: u64 = 256 << 20;
/// Default room for objects on disk, in bytes.
pub const DISK_BYTES: u64 = 10 << 30;
/// Allowed range of the room for objects on disk, in bytes; 0 is none.
pub const DISK_RANGE: RangeInclusive<u64> = 64 << 20..=1 << 48;
/// Allowed range of the memory for objects, in bytes.
pub const MEMORY_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// Maximum number of origins, and of rules on freshness.
pub const LISTED_MAX: usize = 1_000;
/// Ports to which requests may go, unless the settings list others.
pub const PORTS: [RangeInclusive<u16>; 6] =
    [21..=21, 70..=70, 80..=80, 119..=119, 443..=443, 1_025..=u16::MAX];
/// Ports to which tunnels may go, unless the settings list others.
pub const CONNECT_PORTS: [RangeInclusive<u16>; 1] = [443..=443];

/// Digits of the cache's id in its name in `Via`.
const PSEUDONYM_DIGITS: usize = 8;

/// Lifetime of answers that an object of another scheme than HTTP's is not there, in seconds: that of
/// the original.
const NEGATIVE_SECONDS: u32 = 300;

/// A cache's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Common settings of daemons.
    pub daemon: daemon::Settings,
    /// The name, by which the cache itself can be asked.
    pub name: String,
    /// Memory for objects, in bytes.
    pub memory_bytes: u64,
    /// Room for objects on disk, in bytes; 0: none are stored there.
    pub disk_bytes: u64,
    /// The file of the access log, if there is one, and its format.
    pub access_log: Option<(PathBuf, Format)>,
    /// Ports to which requests may go.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Ports to which tunnels may go.
    pub connect_ports: Vec<RangeInclusive<u16>>,
    /// Hosts to which requests and tunnels may go; empty: to all.
    pub destinations: Vec<Destination>,
    /// Whether requests may go to private networks and this machine.
    pub allow_private: bool,
    /// Rules on freshness, the first that fits first.
    pub refresh: Vec<Refresh>,
    /// The sites before which the cache stands.
    pub origins: Vec<Origin>,
    /// Address at which neighbors are asked, and ask; `None`: the cache has none.
    pub icp_listen: Option<SocketAddr>,
    /// The neighbors that are asked.
    pub neighbors: Vec<Neighbor>,
    /// The objects of which there are copies elsewhere, the first that fit first.
    pub mirrors: Vec<Mirror>,
    /// The server of `news` URLs: `nntp://HOST` or, with TLS, `nntps://HOST`.
    pub news_server: Option<Url>,
}

/// How the lifetime of some answers is guessed.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The URLs that it is about.
    pub pattern: Regex,
    /// The guess.
    pub guess: Guess,
}

/// A site before which the cache stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its host as clients name it, in lower case, with a port unless that is the scheme's.
    pub host: String,
    /// Where it is.
    pub url: Url,
}

impl Config {
    /// Returns the settings of a cache for this machine's clients.
    pub fn new(listen: SocketAddr, admin_listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        Self {
            daemon: daemon::Settings::new(listen, admin_listen, data),
            name: default_name(),
            memory_bytes: MEMORY_BYTES,
            disk_bytes: DISK_BYTES,
            access_log: None,
            ports: PORTS.into(),
            connect_ports: CONNECT_PORTS.into(),
            destinations: Vec::new(),
            allow_private: false,
            refresh: Vec::new(),
            origins: Vec::new(),
            icp_listen: None,
            neighbors: Vec::new(),
            mirrors: Vec::new(),
            news_server: None,
        }
    }

    /// Reads a settings file's text; a missing `data` is `data`.
    ///
    /// # Errors
    ///
    /// Returns all mistakes, each with its line and the expected value: show them all.
    pub fn parse(text: &str, data: &Path) -> Result<Self, Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        let daemon =
            daemon::Settings::new(LISTEN, ADMIN_LISTEN, data).read(&root, "/var/lib/harvest/cache");
        let access = root.table("access");
        let memory_bytes = root.bytes("memory_bytes").unwrap_or(MEMORY_BYTES);
        if !MEMORY_RANGE.contains(&memory_bytes) {
            let message = format!("{memory_bytes} bytes of memory");
            root.mistake("memory_bytes", message, "1 MiB to 1 TiB");
        }
        let disk_bytes = root.bytes("disk_bytes").unwrap_or(DISK_BYTES);
        if disk_bytes != 0 && !DISK_RANGE.contains(&disk_bytes) {
            let message = format!("{disk_bytes} bytes of disk");
            root.mistake("disk_bytes", message, "64 MiB to 256 TiB, or \"0 B\" for none");
        }
        let neighbors: Vec<Neighbor> =
            listed(&root, "neighbor").iter().filter_map(neighbor::read).collect();
        let is_asked = root.has("icp_listen") || !neighbors.is_empty();
        let icp_listen = is_asked.then(|| root.addr("icp_listen", ICP_LISTEN));
        let config = Self {
            name: read_name(&root),
            memory_bytes,
            disk_bytes,
            access_log: read_access_log(&root),
            ports: read_ports(&access, "ports", &PORTS),
            connect_ports: read_ports(&access, "connect_ports", &CONNECT_PORTS),
            destinations: read_destinations(&access),
            allow_private: access.boolean("allow_private", false),
            refresh: listed(&root, "refresh").iter().filter_map(read_refresh).collect(),
            origins: read_origins(&root),
            icp_listen,
            neighbors,
            mirrors: listed(&root, "mirror").iter().filter_map(read_mirror).collect(),
            news_server: read_news_server(&root),
            daemon,
        };
        document.finish()?;
        Ok(config)
    }

    /// Returns the name in `Via` and `Cache-Status`. That of the machine has the beginning of the cache's id
    /// added: another cache on the machine may have it, too, and the one would take its requests for its own.
    pub(crate) fn pseudonym(&self, id: &str) -> String {
        if self.name != default_name() {
            return self.name.clone();
        }
        format!("{}-{}", self.name, id.get(..PSEUDONYM_DIGITS).unwrap_or(id))
    }

    /// Makes relative paths relative to `folder`, the one of the settings file.
    pub fn resolve(&mut self, folder: &Path) {
        self.daemon.resolve(folder);
        if let Some((path, _)) = &mut self.access_log {
            *path = folder.join(&path);
        }
    }

    /// Returns what the settings say of the answers of a URL.
    pub fn rules(&self, url: &Url, is_before_origin: bool) -> Rules {
        let fits = |it: &&Refresh| it.pattern.is_match(url.as_str());
        let scheme = Scheme::of(url);
        let default = || scheme.map(|it| it.guess(url)).unwrap_or_default();
        let guess = self.refresh.iter().find(fits).map_or_else(default, |it| it.guess);
        let negative = scheme.map_or_else(|| Rules::default().negative, |_| NEGATIVE_SECONDS);
        Rules { guess, is_before_origin, negative }
    }
}

/// Returns the name of this machine if the system tells it (on Linux), or else the product's.
fn default_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if is_name(name) { name.to_owned() } else { "harvest".to_owned() }
}

/// Returns whether `Via` can hold the name (RFC 9110 §7.6.3: a host, or a token).
fn is_name(name: &str) -> bool {
    let is_of_token = |it: u8| it.is_ascii_alphanumeric() || b"-._~!#$&'*+^`|".contains(&it);
    (1..=100).contains(&name.len()) && name.bytes().all(is_of_token)
}

fn read_name(root: &Table<'_>) -> String {
    let Some(name) = root.string("name") else { return default_name() };
    if !is_name(&name) {
        root.mistake(
            "name",
            format!("{name:?} is no name"),
            "1 to 100 letters, digits, \"-\" and \".\"",
        );
    }
    name
}

fn read_access_log(root: &Table<'_>) -> Option<(PathBuf, Format)> {
    let format = match root.choice("access_log_format", &["squid", "common"]) {
        Some("common") => Format::Common,
        _ => Format::Squid,
    };
    let path = root.path("access_log");
    if path.is_none() && root.has("access_log_format") {
        root.mistake(
            "access_log_format",
            "there is no access log",
            "access_log = \"access.log\" as well",
        );
    }
    path.map(|it| (it, format))
}

fn read_mirror(table: &Table<'_>) -> Option<Mirror> {
    const EXPECTED: &str =
        "the beginning of URLs, with a slash at its end: \"http://www.example.org/pub/\"";
    let prefix = |text: &str| {
        let url = Url::parse(text).ok()?;
        let is_prefix = ["http", "https"].contains(&url.scheme()) && text.ends_with('/');
        (is_prefix && url.query().is_none() && url.username().is_empty()).then_some(url)
    };
    let url = table.required_string("url");
    if prefix(&url).is_none() {
        table.mistake("url", format!("{url:?} is no beginning of URLs"), EXPECTED);
    }
    table.require("mirrors", "a list of where the copies are: [\"http://mirror.example.net/\"]");
    let mut mirrors = Vec::new();
    for (i, text) in table.strings("mirrors").iter().enumerate() {
        match prefix(text) {
            Some(it) => mirrors.push(it),
            None => {
                table.mistake_in("mirrors", i, format!("{text:?} is no such beginning"), EXPECTED);
            }
        }
    }
    Some(Mirror { url: prefix(&url)?, mirrors })
}

fn read_news_server(root: &Table<'_>) -> Option<Url> {
    let text = root.string("news_server")?;
    let url = Url::parse(&text).ok();
    let is_server = |it: &Url| Reader::new(nntp::Settings::new(it.clone())).is_ok();
    let is_whole = |it: &Url| ["", "/"].contains(&it.path()) && it.query().is_none();
    let server = url.filter(|it| is_server(it) && is_whole(it));
    if server.is_none() {
        let expected = "\"nntp://news.example.org\", or with TLS \"nntps://news.example.org\"";
        root.mistake("news_server", format!("{text:?} is no news server"), expected);
    }
    server
}

fn listed<'a>(root: &Table<'a>, key: &str) -> Vec<Table<'a>> {
    let tables = root.tables(key);
    if LISTED_MAX < tables.len() {
        root.mistake(key, format!("more than {LISTED_MAX} of them"), "fewer");
    }
    tables
}

fn read_ports(
    access: &Table<'_>,
    key: &str,
    default: &[RangeInclusive<u16>],
) -> Vec<RangeInclusive<u16>> {
    const EXPECTED: &str = "a port, or two with a hyphen: \"80\", \"1025-65535\"";
    if !access.has(key) {
        return default.into();
    }
    let mut ports = Vec::new();
    for (i, text) in access.strings(key).iter().enumerate() {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => ports.push(first..=last),
            _ => access.mistake_in(key, i, format!("{text:?} is no port"), EXPECTED),
        }
    }
    ports
}

fn read_destinations(access: &Table<'_>) -> Vec<Destination> {
    const EXPECTED: &str = "a domain, an address or a network: \"example.org\", \"192.0.2.0/24\"";
    let mut found = Vec::new();
    for (i, text) in access.strings("destinations").iter().enumerate() {
        match text.parse() {
            Ok(it) => found.push(it),
            Err(message) => access.mistake_in("destinations", i, message, EXPECTED),
        }
    }
    found
}

fn read_refresh(table: &Table<'_>) -> Option<Refresh> {
    let default = Guess::default();
    let seconds = |key: &str, default| {
        let time = table.duration(key)?.as_secs();
        Some(u32::try_from(time).map_or(SECONDS_MAX, |it| it.min(SECONDS_MAX))).or(default)
    };
    let min = seconds("min", None).unwrap_or(default.min);
    let max = seconds("max", None).unwrap_or(default.max);
    if max < min {
        table.mistake("max", format!("{max} s is shorter than min"), "a longer time");
    }
    let percent = table.integer("percent", 0..=1_000);
    let percent = percent.and_then(|it| u32::try_from(it).ok()).unwrap_or(default.percent);
    let text = table.required_string("pattern");
    match Regex::new(&text) {
        Ok(pattern) => Some(Refresh { pattern, guess: Guess { min, percent, max } }),
        Err(error) => {
            let message = format!("{text:?} is no regular expression: {error}");
            table.mistake("pattern", message, "one such as \"\\\\.(png|jpg)$\"");
            None
        }
    }
}

fn read_origins(root: &Table<'_>) -> Vec<Origin> {
    let mut origins = Vec::<Origin>::new();
    for table in listed(root, "origin") {
        let Some(origin) = read_origin(&table) else { continue };
        if origins.iter().any(|it| it.host == origin.host) {
            let message = format!("two origins are named {:?}", origin.host);
            table.mistake("host", message, "one [[origin]] for each host");
        }
        origins.push(origin);
    }
    origins
}

fn read_origin(table: &Table<'_>) -> Option<Origin> {
    let written = table.required_string("host");
    let named =
        Url::parse(&format!("http://{written}/")).ok().map(|it| target::named(&it).to_owned());
    let host = named.unwrap_or_else(|| written.clone());
    if HostPort::parse(&written).is_none() {
        table.mistake(
            "host",
            format!("{host:?} is no host"),
            "the site's name: \"www.example.org\"",
        );
    }
    table.require("url", "where the site is: \"http://127.0.0.1:8080/\"");
    let url = table.url("url")?;
    if !["http", "https"].contains(&url.scheme()) || url.path() != "/" || url.query().is_some() {
        let expected = "a scheme and a host alone: \"http://127.0.0.1:8080/\"";
        table.mistake("url", format!("{url} is no site"), expected);
    }
    Some(Origin { host, url })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolution::Kind;

    #[test]
    fn settings_are_read_with_their_defaults() {
        let config = Config::parse("", Path::new("/d")).unwrap();
        assert_eq!((config.daemon.listen, config.memory_bytes), (LISTEN, MEMORY_BYTES));
        assert!(is_name(&config.name) && !config.allow_private);
        assert_eq!(config.pseudonym("0123456789abcdef"), format!("{}-01234567", config.name));
        let text = r#"
            name = "cache.example.org"
            news_server = "nntp://news.example.org"
            memory_bytes = "1 GiB"
            access_log = "access.log"
            access_log_format = "common"
            [access]
            ports = ["80", "8000-8099"]
            destinations = ["example.org", "192.0.2.0/24"]
            allow_private = true
            [[refresh]]
            pattern = "\\.png$"
            min = "1 min"
            percent = 20
            max = "7 days"
            [[neighbor]]
            host = "192.0.2.7"
            icp_port = 3131
            kind = "parent"
            domains = ["Example.org"]
            [[mirror]]
            url = "http://www.example.org/pub/"
            mirrors = ["https://mirror.example.net/www/"]
            [[origin]]
            host = "WWW.example.org"
            url = "http://127.0.0.1:8080"
        "#;
        let config = Config::parse(text, Path::new("/d")).unwrap();
        assert_eq!(config.pseudonym("0123456789abcdef"), "cache.example.org");
        assert_eq!(
            (config.ports, config.connect_ports),
            (vec![80..=80, 8_000..=8_099], vec![443..=443])
        );
        assert_eq!(config.access_log, Some(("access.log".into(), Format::Common)));
        assert_eq!(config.destinations[0], Destination::Domain("example.org".to_owned()));
        assert_eq!(config.destinations.len(), 2);
        let neighbor = &config.neighbors[0];
        assert_eq!(
            (neighbor.http_port, neighbor.icp_port, neighbor.kind),
            (3_128, 3_131, Kind::Parent)
        );
        assert_eq!(
            (config.icp_listen, neighbor.domains[0].as_str()),
            (Some(ICP_LISTEN), "example.org")
        );
        assert_eq!(config.origins[0].host, "www.example.org");
        let rules = |url: &str| {
            Config::parse(text, Path::new("/d"))
                .unwrap()
                .rules(&Url::parse(url).unwrap(), false)
                .guess
        };
        assert_eq!(rules("http://h/a.png"), Guess { min: 60, percent: 20, max: 604_800 });
        assert_eq!(rules("http://h/a"), Guess::default());
        assert_eq!(rules("ftp://h/a.png").max, 604_800, "the pattern counts first");
        assert_eq!(rules("gopher://h/1"), Guess { min: 86_400, percent: 0, max: 86_400 });
        assert_eq!(config.mirrors[0].mirrors[0].as_str(), "https://mirror.example.net/www/");
        assert_eq!(config.news_server.unwrap().host_str(), Some("news.example.org"));
    }

    #[test]
    fn every_mistake_is_named() {
        let text = r#"
            name = "a b"
            news_server = "http://news.example.org"
            memory_bytes = "1 B"
            disk_bytes = "1 B"
            [access]
            ports = ["x", "9-1"]
            destinations = ["*.example.org"]
            [[refresh]]
            pattern = "("
            min = "2 h"
            max = "1 h"
            [[origin]]
            host = "a/b"
            url = "http://h/path"
            [[origin]]
            host = "h"
            [[neighbor]]
            host = "h:1"
            kind = "uncle"
            [[mirror]]
            url = "http://h/a"
            mirrors = ["ftp://h/"]
            [[mirror]]
            url = "http://h/"
        "#;
        let mistakes = Config::parse(text, Path::new("/d")).unwrap_err();
        assert_eq!(mistakes.len(), 17, "{mistakes:#?}");
    }
}
