//! The broker's settings: `broker.toml`, read and checked.
//!
//! All mistakes in a file are reported with their lines, not only the first (see `settings`).
//!
//! ```toml
//! name = "Library"
//! listen = "0.0.0.0:8501"
//! data = "/var/lib/harvest/broker"
//!
//! [[source]]
//! kind = "gatherer"
//! url = "http://host:8500/"
//!
//! [freshness]
//! policy = "oap"
//! theta = 0.9
//! ```
//!
//! Sans-I/O.

pub mod edit;
mod freshness;
mod ranking;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ::freshness::schedule::Window;
use ::freshness::syndication::{Syndication, SyndicationError};
use daemon::announce::addresses;
use daemon::{Token, client_certificate};
use exchange::push;
use net::client::Timeouts;
use settings::{Document, Mistake, Table};
use url::{Host, Url};

use crate::engine::Ranking;
use crate::route::settings::Everywhere;
use crate::source::{Kind, Oai, Part, Source};
use crate::views::{self, Views, selecting};

pub use self::freshness::{Freshness, PolicyName};

/// Default address of the public listener.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8501);

/// Default address of the admin listener.
pub const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9501);

/// Maximum number of sources of one broker.
pub const SOURCES_MAX: usize = 10_000;

/// Maximum number of followed sources of one broker, since each holds a connection open.
pub const FOLLOWS_MAX: usize = 256;

/// Maximum number of addresses of one source.
pub const REPLICAS_MAX: usize = 16;

/// Maximum length of a source's name, in bytes; it is part of every key of the source.
pub const NAME_BYTES_MAX: usize = 200;

/// Maximum latency in the settings of a source, in seconds (a year).
const LATENCY_SECS_MAX: f64 = 365.0 * 86_400.0;

/// Maximum weight in the settings of a source.
const WEIGHT_MAX: f64 = 1e6;

/// The settings of a broker.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name of the broker on its pages.
    pub name: String,
    /// Listeners and data directory.
    pub daemon: daemon::Settings,
    /// The hub for the broker's own changes.
    pub push: push::Settings,
    /// A folder of page templates that replace the built-in ones.
    pub templates: Option<PathBuf>,
    /// The caches whose copies of objects are linked.
    pub object_caches: Vec<Url>,
    /// The sources to pull; names are unique.
    pub sources: Vec<Source>,
    /// The views.
    pub views: Views,
    /// Settings of the pull intervals.
    pub freshness: Freshness,
    /// What comes first in an answer.
    pub ranking: Ranking,
    /// Settings of the broker as an OAI-PMH repository.
    pub oai: exchange::repository::Settings,
    /// How searches everywhere are answered.
    pub everywhere: Everywhere,
    /// Time limits of pulls; they are not in the settings file.
    pub timeouts: PullTimeouts,
    /// What the broker is part of; it is not in the settings file.
    pub role: Role,
}

/// What a broker is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The kind of the daemon.
    pub kind: &'static str,
    /// The name of a source whose objects the daemon itself brings; `None`: there is none.
    pub own_source: Option<&'static str>,
    /// Links from the overview of its administration, each with its name, beside those of a broker.
    pub admin_links: &'static [(&'static str, &'static str)],
}

impl Default for Role {
    /// A broker, and no more.
    fn default() -> Self {
        Self { kind: "broker", own_source: None, admin_links: &[] }
    }
}

/// Time limits of pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullTimeouts {
    /// Limits for the stages of a request. The defaults are those of `net`.
    pub request: Timeouts,
    /// Limit for a pull; the next pull continues where it stopped. The default is an hour.
    pub pull_max: Duration,
    /// Time after which a pull gives up its slot and goes on without one. The default is 30 s.
    pub slot_max: Duration,
}

impl Default for PullTimeouts {
    fn default() -> Self {
        let (pull_max, slot_max) = (Duration::from_secs(3_600), Duration::from_secs(30));
        Self { request: Timeouts::default(), pull_max, slot_max }
    }
}

impl Config {
    /// Returns the default settings for a broker with the data directory `data`.
    pub fn new(name: impl Into<String>, data: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            daemon: daemon::Settings::new(LISTEN, ADMIN_LISTEN, data),
            push: push::Settings::default(),
            templates: None,
            object_caches: Vec::new(),
            sources: Vec::new(),
            views: Views::default(),
            freshness: Freshness::default(),
            ranking: Ranking::default(),
            oai: exchange::repository::Settings::default(),
            everywhere: Everywhere::default(),
            timeouts: PullTimeouts::default(),
            role: Role::default(),
        }
    }

    /// Returns the names of the sources whose takedowns hold for the objects of every source.
    pub(crate) fn trusted(&self) -> BTreeSet<String> {
        let trusted = self.sources.iter().filter(|it| it.trusted_takedowns);
        trusted.map(|it| it.name.clone()).collect()
    }

    /// Reads a settings file. A relative `data` or `templates` stays as written; the caller
    /// resolves it against the file's folder.
    ///
    /// # Errors
    ///
    /// All mistakes in the file, in the order of its lines; show them all.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let listeners = (LISTEN, ADMIN_LISTEN);
        Ok(Self::parse_with(text, listeners, "/var/lib/harvest/broker", |_| ())?.0)
    }

    /// Reads a settings file, as [`parse`](Self::parse) does, of a daemon with these default addresses (public, then
    /// administration) and this example of a data directory. `more` reads what else it has.
    ///
    /// # Errors
    ///
    /// All mistakes in the file, in the order of its lines; show them all.
    pub fn parse_with<T>(
        text: &str,
        (listen, admin_listen): (SocketAddr, SocketAddr),
        data: &str,
        more: impl FnOnce(&Table<'_>) -> T,
    ) -> Result<(Self, T), Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        let mut config = Self::new(root.required_string("name"), PathBuf::new());
        (config.daemon.listen, config.daemon.admin_listen) = (listen, admin_listen);
        config.daemon = config.daemon.read(&root, data);
        config.templates = root.path("templates");
        config.object_caches = addresses(&root, "object_cache", "cache");
        config.freshness = Freshness::read(&root.table("freshness"));
        config.ranking = ranking::read(&root.table("ranking"));
        config.push = push::Settings::read(&root.table("push"), config.daemon.base_url.as_ref());
        config.oai = exchange::repository::Settings::read(&root.table("oai"));
        config.everywhere = Everywhere::read(&root);
        config.sources = read_sources(&root, config.freshness);
        config.views = Views::read(&root);
        config.views.limit(&root, &mut config.daemon.access);
        check_callbacks(&root, &config);
        let more = more(&root);
        document.finish()?;
        Ok((config, more))
    }
}

fn read_sources(root: &Table<'_>, freshness: Freshness) -> Vec<Source> {
    let (mut sources, mut names, mut follows) = (Vec::new(), BTreeSet::new(), 0_usize);
    for (i, table) in root.tables("source").iter().enumerate() {
        let Some(source) = read_source(table) else { continue };
        check_bounds(table, &source, freshness);
        if !names.insert(source.name.clone()) {
            let message = format!("two sources are named {:?}", source.name);
            table.mistake("name", message, "a name of its own for each source");
        }
        follows += usize::from(source.follow);
        if source.follow && FOLLOWS_MAX < follows {
            let message = format!("more than {FOLLOWS_MAX} sources are followed");
            table.mistake("follow", message, "false: the schedule keeps it fresh");
        }
        if i == SOURCES_MAX {
            let message = format!("more than {SOURCES_MAX} sources");
            table.mistake("url", message, "a broker in between for some of them");
        }
        sources.push(source);
    }
    sources
}

/// If a source has `push`, checks that a hub can reach this broker.
fn check_callbacks(root: &Table<'_>, config: &Config) {
    if config.daemon.base_url.is_some() {
        return;
    }
    let here = config.daemon.listen.ip();
    for table in root.tables("source").iter().filter(|it| it.boolean("push", false)) {
        let url = table.string("url").and_then(|it| Url::parse(&it).ok());
        let is_elsewhere = url.is_some_and(|it| !is_loopback(&it));
        let message = if here.is_unspecified() {
            "no hub knows the address of this broker".to_owned()
        } else if here.is_loopback() && is_elsewhere {
            format!("the broker listens at {here}, where no hub on another machine reaches it")
        } else {
            continue;
        };
        table.mistake("push", message, "base_url = \"http://host:8501/\" above");
    }
}

/// Returns whether the host of a URL is this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(it)) => it.is_loopback(),
        Some(Host::Ipv6(it)) => it.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Reads one `[[source]]`; `None` if its URL or directory is missing or wrong.
fn read_source(table: &Table<'_>) -> Option<Source> {
    let kind = table.choice("kind", &Kind::NAMES).and_then(Kind::by_name);
    let name = table.string("name");
    let is_oai = kind == Some(Kind::Oai);
    let oai = is_oai.then(|| (Oai::read(table), table.boolean("announced", true)));
    let follow = table.boolean("follow", false);
    if is_oai && follow {
        let message = "an OAI-PMH repository cannot be asked to hold its answer";
        table.mistake("follow", message, "false: the schedule keeps it fresh");
    }
    let push = table.boolean("push", false);
    let allow_private = table.boolean("allow_private", true);
    let (token, certificate) = (Token::read(table), client_certificate(table));
    let records_max = table.integer("records_max", 1..=u64::MAX);
    let bytes_max = table.bytes("bytes_max");
    let takedowns = table.choice("takedowns", &["own", "all"]);
    let window = table.string("window");
    let seconds = |key| Some(table.duration_within(key, Freshness::INTERVALS)?.as_secs_f64());
    let (interval_min, interval_max) = (seconds("interval_min"), seconds("interval_max"));
    let latency = table.float("latency_seconds", 0.1..=LATENCY_SECS_MAX);
    let weight = table.float("weight", 0.0..=WEIGHT_MAX);
    let syndication = read_syndication(&table.table("syndication"));
    let mut replicas = read_urls(table, kind);
    let url = match kind {
        Some(Kind::Replica) => read_directory(table),
        Some(Kind::Oai) => exchange::source::base_url(table),
        _ if replicas.is_empty() => table.base_url("url"),
        _ => Some(replicas.remove(0)),
    };
    let has_url = || table.has("urls") || table.require("url", "\"http://host:8500/\"");
    if kind != Some(Kind::Replica) && !has_url() {
        return None;
    }
    let url = url?;
    let name = name.unwrap_or_else(|| name_of(&url));
    if name.trim().is_empty() || NAME_BYTES_MAX < name.len() || name.contains(char::is_control) {
        let expected = format!("1 to {NAME_BYTES_MAX} bytes without control characters");
        table.mistake("name", format!("{name:?} is no name for a source"), expected);
    }
    let mut source = Source::gatherer(name, url);
    source.kind = kind.unwrap_or(source.kind);
    source.replicas = replicas;
    (source.follow, source.push, source.allow_private) = (follow, push, allow_private);
    if follow && push {
        let message = "the source is followed, so its changes are known at once already";
        table.mistake("push", message, "one of follow and push");
    }
    (source.interval_min, source.interval_max) = (interval_min, interval_max);
    source.latency_secs = latency;
    source.weight = weight.unwrap_or(source.weight);
    source.syndication = syndication;
    if let Some((oai, announced)) = oai {
        (source.oai, source.announced) = (Some(oai), announced);
    }
    source.part = read_part(table, source.kind);
    source.trusted_takedowns = takedowns == Some("all");
    source.records_max = records_max.unwrap_or(source.records_max);
    source.bytes_max = bytes_max.unwrap_or(source.bytes_max);
    (source.token, source.certificate) = (token, certificate);
    if let Some(text) = window {
        source.window = Window::parse(&text);
        if source.window.is_none() {
            let expected = "two hours of the day in UTC, such as \"22-6\"";
            table.mistake("window", format!("\"window\" is {text:?}"), expected);
        }
    }
    Some(source)
}

/// Reads the addresses of a source that is served at several places.
fn read_urls(table: &Table<'_>, kind: Option<Kind>) -> Vec<Url> {
    let mut urls = Vec::new();
    for (i, text) in table.strings("urls").iter().enumerate() {
        match daemon::announce::address(text) {
            Some(url) => urls.push(url),
            None => {
                let message = format!("{text:?} is no address of a feed");
                table.mistake_in("urls", i, message, "such as \"http://host:8500/\"");
            }
        }
    }
    if table.has("urls") && table.has("url") {
        table.mistake("urls", "there is a url, too", "one of the two");
    }
    if table.has("urls") && matches!(kind, Some(Kind::Oai | Kind::Replica)) {
        table.mistake("urls", "only a feed has replicas", "url");
    }
    if REPLICAS_MAX < urls.len() {
        table.mistake("urls", format!("more than {REPLICAS_MAX} replicas"), "the nearest of them");
    }
    urls
}

/// Reads what is pulled of a broker.
fn read_part(table: &Table<'_>, kind: Kind) -> Option<Part> {
    let (text, view) = (table.string("query"), table.string("view"));
    let key = if text.is_some() { "query" } else { "view" };
    if kind != Kind::Broker && (text.is_some() || view.is_some()) {
        let message = format!("a {} sends all that it has", kind.name());
        table.mistake(key, message, "`kind = \"broker\"`, or all");
    }
    match (text, view) {
        (Some(_), Some(_)) => {
            table.mistake("view", "there is a query, too", "one of them");
            None
        }
        (Some(text), None) => {
            let query = selecting::standing(&text);
            let query =
                query.map_err(|fault| table.mistake("query", fault, views::EXPECTED)).ok()?;
            Some(Part::Query(query))
        }
        (None, view) => view.map(Part::View),
    }
}

/// Reads the directory of a replica, and reports keys that no replica has; `None` after a mistake.
fn read_directory(table: &Table<'_>) -> Option<Url> {
    let expected = "a directory that a replicator keeps, such as \"/srv/papers\"";
    if !table.require("directory", expected) {
        return None;
    }
    for key in
        ["url", "token", "client_certificate", "push"].into_iter().filter(|key| table.has(key))
    {
        table.mistake(
            key,
            format!("a replica has no {key}"),
            "nothing: it is read from `directory`",
        );
    }
    let directory = table.path("directory")?;
    let url = Url::from_file_path(&directory).ok();
    if url.is_none() {
        let message = format!("{} is not an absolute path", directory.display());
        table.mistake("directory", message, expected);
    }
    url
}

/// Checks that the intervals of a source agree with each other and with `[freshness]`.
fn check_bounds(table: &Table<'_>, source: &Source, freshness: Freshness) {
    let min = source.interval_min.unwrap_or(freshness.interval_min);
    let max = source.interval_max.unwrap_or(freshness.interval_max);
    if max < min && (source.interval_min.is_some() || source.interval_max.is_some()) {
        let key = if source.interval_max.is_some() { "interval_max" } else { "interval_min" };
        let message = format!("interval_max ({max} s) is below interval_min ({min} s)");
        table.mistake(key, message, "the longer of the two, or both");
    }
    if let Some(latency) = source.latency_secs.filter(|it| *it < min) {
        let message = format!("latency_seconds ({latency}) is below interval_min ({min} s)");
        table.mistake("latency_seconds", message, "an interval_min as short for this source");
    }
}

/// Reads `syndication`, the update times of a source; `None` if it is missing or wrong.
fn read_syndication(table: &Table<'_>) -> Option<Syndication> {
    let [period, frequency, base] = ["period", "frequency", "base"];
    if ![period, frequency, base].iter().any(|key| table.has(key)) {
        return None;
    }
    let times = table.integer(frequency, 1..=u64::from(u32::MAX)).map(|it| it.to_string());
    let (every, since) = (table.string(period), table.string(base));
    match Syndication::parse(every.as_deref(), times.as_deref(), since.as_deref()) {
        Ok(syndication) => Some(syndication),
        Err(error) => {
            let (key, expected) = match error {
                SyndicationError::Period => {
                    (period, "\"hourly\", \"daily\", \"weekly\", \"monthly\" or \"yearly\"")
                }
                SyndicationError::Frequency => (frequency, "how many times in each period"),
                SyndicationError::Base => (base, "a time such as \"2026-01-31T12:00+00:00\""),
            };
            table.mistake(key, error.to_string(), expected);
            None
        }
    }
}

/// Returns the default name of a source: host, port and path of its URL.
fn name_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{host}{port}{}", url.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::freshness::interval::{Model, Policy};

    use super::*;

    /// Reads `text` and compares its mistakes, one on each line.
    fn check(text: &str, expected: &str) {
        let mistakes = match Config::parse(text) {
            Ok(_) => String::new(),
            Err(mistakes) => {
                mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
        };
        assert_eq!(mistakes, expected);
    }

    #[test]
    fn a_short_file_has_the_defaults_of_the_constants() {
        let text = "name = 'n'\ndata = 'd'\n[[source]]\nurl = 'http://host:8500/a'";
        let config = Config::parse(text).unwrap();
        let mut expected = Config::new("n", "d");
        let url = Url::parse("http://host:8500/a/").unwrap();
        expected.sources = vec![Source::gatherer("host:8500/a", url)];
        assert_eq!(config, expected);
    }

    #[test]
    fn the_settings_of_the_repository_are_read() {
        let text = "name = 'n'\ndata = 'd'\n[oai]\noap_attributes = 'off'";
        let oap_attributes = ::oai::repository::oap::Attributes::Off;
        let expected = exchange::repository::Settings { oap_attributes, ..Default::default() };
        assert_eq!(Config::parse(text).unwrap().oai, expected);
        let wrong = "name = 'n'\ndata = 'd'\n[oai]\nrepository_identifier = 'localhost'";
        let mistakes = Config::parse(wrong).unwrap_err();
        assert!(mistakes[0].to_string().starts_with("4:25: \"repository_identifier\" is"));
    }

    #[test]
    fn everything_can_be_set() {
        let text = r#"
            name = "Library"
            listen = "127.0.0.1:1"
            admin_listen = "127.0.0.1:2"
            base_url = "https://library.example/search"
            data = "/d"
            templates = "/t"
            [freshness]
            policy = "oap"
            theta = 0.98
            model = "poisson"
            gain = 0.5
            interval_min = "500 ms"
            interval_max = "2 h"
            pulls_per_minute_max = 7
            [[source]]
            kind = "broker"
            name = "other"
            url = "https://other.example/"
            follow = true
            allow_private = false
            token = "abc"
            records_max = 10
            bytes_max = "1 MiB"
            window = "22-6"
            interval_min = "1 min"
            interval_max = "3 h"
            latency_seconds = 900
            weight = 2.5
            syndication = { period = "daily", frequency = 2, base = "2026-01-31T12:00" }
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.daemon.listen.port(), 1);
        assert_eq!(config.daemon.base_url.unwrap().path(), "/search/");
        let expected = Freshness {
            theta: 0.98,
            model: Model::Poisson,
            gain: 0.5,
            interval_min: 0.5,
            interval_max: 7_200.0,
            pulls_per_minute_max: 7,
            ..Freshness::default()
        };
        assert_eq!(config.freshness, expected);
        let source = &config.sources[0];
        assert_eq!((source.kind, source.follow, source.allow_private), (Kind::Broker, true, false));
        assert_eq!((source.records_max, source.bytes_max), (10, 1 << 20));
        assert_eq!(source.token.as_ref().unwrap().secret(), "abc");
        assert_eq!(source.window, Window::parse("22-6"));
        assert_eq!((source.interval_min, source.interval_max), (Some(60.0), Some(10_800.0)));
        assert_eq!((source.latency_secs, source.weight), (Some(900.0), 2.5));
        let announced = Syndication::parse(Some("daily"), Some("2"), Some("2026-01-31T12:00"));
        assert_eq!(source.syndication, announced.ok());
    }

    fn source(lines: &str) -> String {
        format!("name = 'n'\ndata = 'd'\n[[source]]\nkind = 'oai'\n{lines}")
    }

    #[test]
    fn a_repository_is_harvested_as_the_settings_say() {
        let config = Config::parse(&source("url = 'https://h.org/oai?x=1'")).unwrap();
        let url = Url::parse("https://h.org/oai?x=1").unwrap();
        let expected = Source {
            kind: Kind::Oai,
            oai: Some(Oai::default()),
            ..Source::gatherer("h.org/oai", url)
        };
        assert_eq!(config.sources, [expected]);
        let all = "url = 'http://h/oai'\nprefixes = ['soif', 'oai_dc']\nset = 'a:b'\n\
                   from = '2026-01-31'\nkeep_original = true\ndelay = '500 ms'\n\
                   overlap = '2 h'\nfull_every = '7 days'\nwindow_days = 30\n\
                   page_bytes_max = '8 MiB'\nannounced = false";
        let found = Config::parse(&source(all)).unwrap().sources.remove(0);
        let secs = Duration::from_secs;
        let expected = Oai {
            prefixes: vec!["soif".to_owned(), "oai_dc".to_owned()],
            sets: vec!["a:b".to_owned()],
            from: ::oai::Datestamp::parse("2026-01-31"),
            keep_original: true,
            delay: Duration::from_millis(500),
            overlap: secs(7_200),
            full_every: secs(7 * 86_400),
            window_days: 30,
            page_bytes_max: 8 << 20,
        };
        assert_eq!((found.kind, found.oai, found.announced), (Kind::Oai, Some(expected), false));
    }

    #[test]
    fn mistakes_about_a_repository_are_named() {
        for (lines, part) in [
            ("url = 'ftp://h/oai'", "is not of a web server"),
            ("url = 'http://u:p@h/oai'", "holds a user name"),
            ("url = 'http://h/oai'\nset = 'a'\nsets = ['b']", "both \"set\" and \"sets\""),
            ("url = 'http://h/oai'\nset = ''", "\"\" is not a name"),
            ("url = 'http://h/oai'\nfrom = 'May'", "\"from\" is \"May\""),
            ("url = 'http://h/oai'\nfollow = true", "cannot be asked to hold"),
        ] {
            let mistakes = Config::parse(&source(lines)).unwrap_err();
            assert!(mistakes[0].to_string().contains(part), "{lines}: {}", mistakes[0]);
        }
        let feed = "name = 'n'\ndata = 'd'\n[[source]]\nurl = 'http://h/'\nset = 'a'";
        assert!(Config::parse(feed).unwrap_err()[0].to_string().contains("set"));
    }

    #[test]
    fn a_replica_is_a_directory() {
        let source =
            |lines: &str| format!("name = 'n'\ndata = 'd'\n[[source]]\nkind = 'replica'\n{lines}");
        let config = Config::parse(&source("directory = '/srv/papers'\nfollow = true")).unwrap();
        let found = &config.sources[0];
        assert_eq!((found.kind, found.name.as_str()), (Kind::Replica, "/srv/papers"));
        assert_eq!(found.url.to_file_path().unwrap(), Path::new("/srv/papers"));
        assert!(found.follow);
        for (lines, part) in [
            ("", "\"directory\""),
            ("directory = 'papers'", "papers is not an absolute path"),
            ("directory = '/srv/papers'\nurl = 'http://h/'", "a replica has no url"),
            ("directory = '/srv/papers'\npush = true", "a replica has no push"),
        ] {
            let mistakes = Config::parse(&source(lines)).unwrap_err();
            assert!(mistakes[0].to_string().contains(part), "{lines}: {}", mistakes[0]);
        }
    }

    /// Returns the policy that `[freshness]` with the given lines has.
    fn policy(lines: &str) -> Policy {
        let text = format!("name = 'n'\ndata = 'd'\n[freshness]\n{lines}");
        Config::parse(&text).unwrap().freshness.settings().policy
    }

    #[test]
    fn every_policy_can_be_chosen() {
        for (lines, expected) in [
            ("", Policy::Optimal { theta: 0.9 }),
            ("policy = 'uap'\ntheta = 0.5", Policy::Uniform { theta: 0.5 }),
            ("policy = 'ioap'", Policy::Individual { theta: 0.9 }),
            ("policy = 'fixed'\ninterval = '2 h'", Policy::Fixed { interval: 7_200.0 }),
            ("policy = 'combined_cost'\nprice = 7200.0", Policy::CombinedCost { price: 2.0 }),
            ("policy = 'budget'\npulls_per_hour = 1800.0", Policy::Budget { pulls: 0.5 }),
        ] {
            assert_eq!(policy(lines), expected, "{lines}");
        }
        for (name, policy) in PolicyName::NAMES.iter().map(|it| (it, PolicyName::by_name(it))) {
            assert_eq!(policy.map(PolicyName::name), Some(*name));
        }
    }

    #[test]
    fn push_needs_a_base_url_and_excludes_follow() {
        let source = "[[source]]\nurl = 'http://h/'\npush = true\n";
        let head = "name = 'n'\ndata = 'd'\n";
        check(
            &format!("{head}{source}"),
            "5:8: no hub knows the address of this broker; expected base_url = \"http://host:8501/\" above",
        );
        check(&format!("{head}base_url = 'http://b/'\n{source}"), "");
        check(
            &format!("{head}listen = '127.0.0.1:1'\n{source}"),
            "6:8: the broker listens at 127.0.0.1, where no hub on another machine reaches it; expected base_url = \"http://host:8501/\" above",
        );
        for here in ["localhost", "127.0.0.1:8500", "[::1]"] {
            let source = source.replace("//h/", &format!("//{here}/"));
            check(&format!("{head}listen = '127.0.0.1:1'\n{source}"), "");
        }
        check(&format!("{head}listen = '192.0.2.1:1'\n{source}"), "");
        check(
            &format!("{head}base_url = 'http://b/'\n{source}follow = true\n"),
            "6:8: the source is followed, so its changes are known at once already; expected one of follow and push",
        );
        let text = format!("{head}base_url = 'http://b/'\n{source}[push]\nhub = 'self'\n");
        let config = Config::parse(&text).unwrap();
        assert!(config.sources[0].push && config.push.has_hub());
    }

    #[test]
    fn bounds_that_contradict_each_other_are_mistakes() {
        let head = "name = 'n'\ndata = 'd'\n";
        let source = format!("{head}[[source]]\nurl = 'http://h/'\n");
        check(
            &format!("{source}interval_max = '5 s'\n"),
            "5:16: interval_max (5 s) is below interval_min (10 s); expected the longer of the two, or both",
        );
        check(
            &format!("{source}latency_seconds = 5\n"),
            "5:19: latency_seconds (5) is below interval_min (10 s); expected an interval_min as short for this source",
        );
        check(&format!("{source}latency_seconds = 5\ninterval_min = '1 s'\n"), "");
        check(
            &format!("{head}[freshness]\npolicy = 'fixed'\ninterval = '7 days'\n"),
            "5:12: interval (604800 s) is not within interval_min and interval_max; expected 10 s to 86400 s, or other bounds",
        );
    }

    #[test]
    fn a_setting_that_the_policy_does_not_use_is_a_mistake() {
        let text = "name = 'n'\ndata = 'd'\n[freshness]\npolicy = 'fixed'\ntheta = 0.9\n";
        check(text, r#"5:9: policy "fixed" has no "theta"; expected "interval" or nothing"#);
    }

    #[test]
    fn every_mistake_is_named() {
        check(
            "listen = '127.0.0.1:9501'\n[[source]]\nkind = 'gather'\nname = 'a'\nurl = 'ftp://h/'\n\
             [[source]]\nname = 'a'\n[[source]]\nname = 'b'\nurl = 'http://b/'\nwindow = '9'\n\
             [[source]]\nname = 'b'\nurl = 'http://c/'\ntoken = ' '\n\
             [freshness]\npolicy = 'none'\ntheta = 1.0\ninterval_min = '2 days'\nfolow = 1\n",
            &[
                r#"1:1: "name" is missing; expected name = a text in quotes"#,
                r#"1:1: both listeners are at 127.0.0.1:9501; expected another port for "admin_listen""#,
                r#"1:1: "data" is missing; expected data = "/var/lib/harvest/broker""#,
                r#"3:8: "kind" is "gather"; expected one of "gatherer", "broker", "oai", "replica""#,
                r#"5:7: the URL ftp://h/ is not of a web server; expected an http:// or https:// URL, such as "http://host:8500/""#,
                r#"6:1: "url" is missing in [source 2]; expected url = "http://host:8500/""#,
                r#"11:10: "window" is "9"; expected two hours of the day in UTC, such as "22-6""#,
                r#"13:8: two sources are named "b"; expected a name of its own for each source"#,
                "15:9: the token is not one word; expected visible ASCII without spaces",
                "16:1: interval_max (86400 s) is below interval_min (172800 s); expected the longer of the two",
                r#"17:10: "policy" is "none"; expected one of "oap", "uap", "ioap", "fixed", "combined_cost", "budget", "best_estimation""#,
                r#"18:9: "theta" is 1.0; expected a number from 0 to 0.9999"#,
                r#"20:1: unknown key "folow" in [freshness]; expected one of gain, interval, interval_max, interval_min, model, policy, price, pulls_per_hour, pulls_per_minute_max, theta"#,
            ]
            .join("\n"),
        );
    }
}
