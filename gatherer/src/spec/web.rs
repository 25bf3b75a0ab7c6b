//! A root that is crawled: a web site, an FTP folder, a Gopher hole or a newsgroup; `access = "web"`.
//!
//! Source: the manual's RootNodes (`URL=URL-Max,Host-Max Delay=seconds Depth=depth
//! Enumeration=program` and its allow and deny lists); its defaults are 250 URLs, one host, a
//! second between requests.
//!
//! # Differences from the original
//!
//! * What lies outside the folder of the root's URL is left out, unless `allow` names it.
//! * `allow` and `deny` are globs, and their order does not matter.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crawl::frontier::{Order, Settings, TrapKind, TrapLimits};
use daemon::{Token, client_certificate};
use essence::config::{Files, patterns};
use http::HeaderValue;
use net::client::{Credentials, Proxy};
use net::fetch::Login;
use net::tls::ClientFiles;
use settings::Table;
use url::Url;

use super::enumeration::{Enumeration, enumeration, leaves};
use super::filter::{DENIED, NOT_ALLOWED, NOT_LISTED, is_same_site, is_within};
use super::login;
use super::protocol::{self, Protocol};
use super::proxy;
use super::realm::{self, Realm};
use super::repository::INTERVAL;

/// Default maximum number of URLs of a root.
pub const URLS_MAX: usize = 250;

/// Largest `urls_max`.
const URLS_LIMIT: u64 = 20_000_000;

/// Largest `hosts_max`.
const HOSTS_LIMIT: u64 = 100_000;

/// Default delay between two requests to a host.
const DELAY: Duration = Duration::from_secs(1);

/// Longest delay between two requests to a host.
const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// Default time for which an object that seems to be gone keeps its record.
const GRACE: Duration = Duration::from_secs(24 * 3_600);

/// Default longest time for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(300);

/// Longest times for one answer that can be set.
const ANSWER_TIMES: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 3_600);

/// Longest such time.
const GRACE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A root to crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// The first URL; its folder is gathered.
    pub url: Url,
    /// Of a `[[leaf]]`, all URLs that are gathered, in order; of a root none.
    pub leaves: Vec<Url>,
    /// Names of the hosts of these.
    pub leaf_hosts: BTreeSet<String>,
    /// Where more URLs are listed: addresses of lists, and absolute paths of programs that write one.
    pub enumeration: Vec<Enumeration>,
    /// Schemes of the URLs that are gathered.
    pub schemes: Vec<String>,
    /// Our name in requests of HTTP, and whom to ask about them; default: this program's, and the address of the
    /// gatherer.
    pub user_agent: Option<HeaderValue>,
    /// Maximum number of URLs; what is known counts first.
    pub urls_max: usize,
    /// Maximum number of new URLs of a pass in one folder, of one page or calendar; `None`: that of
    /// its kind.
    pub trap_urls_max: Option<u32>,
    /// Maximum number of hosts.
    pub hosts_max: usize,
    /// Maximum number of links from the first URL.
    pub depth: u16,
    /// Shortest time between two requests to a host.
    pub delay: Duration,
    /// Maximum number of bytes a second of a host, on average; `None`: any.
    pub bandwidth: Option<u64>,
    /// Order of requests.
    pub order: Order,
    /// Globs; if there are any, a URL must match one of them.
    pub allow: Vec<String>,
    /// Globs; a URL that matches one is left out.
    pub deny: Vec<String>,
    /// Time from one pass to the next.
    pub interval: Duration,
    /// Time for which an object that seems to be gone keeps its record.
    pub grace: Duration,
    /// Longest time for one answer.
    pub answer_time_max: Duration,
    /// Bearer token, if the site requires one.
    pub token: Option<Token>,
    /// Name and password, if the host requires them: sent to it alone.
    pub login: Option<Box<Login>>,
    /// Credentials of realms, sent when a host asks for them.
    pub realms: Vec<Realm>,
    /// Whether the password may be sent without TLS to another host than this machine, by FTP or News.
    pub allow_unencrypted_password: bool,
    /// Whether connections of FTP and News that begin without TLS go on with it.
    pub start_tls: bool,
    /// Client certificate, if the site requires one.
    pub certificate: Option<Box<ClientFiles>>,
    /// Whether the URL's host may be in a private or loopback network.
    pub allow_private: bool,
    /// The proxy that all requests go through; of HTTP alone.
    pub proxy: Option<Proxy>,
}

impl Web {
    /// Returns the site at `url` with every setting at its default.
    pub fn new(url: Url) -> Self {
        Self {
            schemes: schemes_of(Protocol::of(&url)),
            user_agent: None,
            leaves: Vec::new(),
            leaf_hosts: BTreeSet::new(),
            enumeration: Vec::new(),
            url,
            urls_max: URLS_MAX,
            trap_urls_max: None,
            hosts_max: 1,
            depth: u16::MAX,
            delay: DELAY,
            bandwidth: None,
            order: Order::Breadth,
            allow: Vec::new(),
            deny: Vec::new(),
            interval: INTERVAL,
            grace: GRACE,
            answer_time_max: ANSWER_TIME,
            token: None,
            login: None,
            realms: Vec::new(),
            allow_unencrypted_password: false,
            start_tls: false,
            certificate: None,
            allow_private: true,
            proxy: None,
        }
    }

    /// Returns the protocol of the root.
    pub fn protocol(&self) -> Protocol {
        Protocol::of(&self.url).unwrap_or(Protocol::Web)
    }

    /// Returns whether `url` is in the folder of the root's URL, at the same site.
    pub(crate) fn holds(&self, url: &Url) -> bool {
        if self.leaves.is_empty() { is_within(&self.url, url) } else { self.leaves.contains(url) }
    }

    /// Returns the URLs at which the crawl begins.
    pub(crate) fn starts(&self) -> &[Url] {
        if self.leaves.is_empty() { std::slice::from_ref(&self.url) } else { &self.leaves }
    }

    /// Returns whether `url` is at a host that the settings name: `allow_private` is about these.
    pub(crate) fn is_own(&self, url: &Url) -> bool {
        if self.leaves.is_empty() {
            is_same_site(&self.url, url)
        } else {
            url.host_str().is_some_and(|it| self.leaf_hosts.contains(it))
        }
    }

    /// Returns the URL as text.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Reads a `[[root]]` with `access = "web"`, and reports its mistakes. Confirmed records live
    /// for `ttl`.
    pub(crate) fn read(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Option<Self> {
        const EXPECTED: &str = "an address such as \"https://www.example.org/docs/\"";
        table.require("url", EXPECTED);
        let count = |key, most, default| {
            let found = table.integer(key, 1..=most);
            found.and_then(|it| usize::try_from(it).ok()).unwrap_or(default)
        };
        let (urls_max, hosts_max) =
            (count("urls_max", URLS_LIMIT, URLS_MAX), count("hosts_max", HOSTS_LIMIT, 1));
        let trap_urls_max = table.integer("trap_urls_max", 1..=URLS_LIMIT);
        let depth = table.integer("depth", 0..=u64::from(u16::MAX));
        let order = match table.choice("order", &["breadth", "depth"]) {
            Some("depth") => Order::Depth,
            _ => Order::Breadth,
        };
        let (allow, deny) = (patterns(table, "allow"), patterns(table, "deny"));
        let (token, certificate) = (Token::read(table), client_certificate(table).map(Box::new));
        let start_tls = table.boolean("start_tls", false);
        let allow_unencrypted_password = table.boolean("allow_unencrypted_password", false);
        let (login, schemes) = (login(table).map(Box::new), schemes(table));
        let (enumeration, common) = (enumeration(table), Common::read(table, interval_max, ttl));
        let (text, server) = (table.string("url"), table.string("server"));
        let url = text.and_then(|it| {
            let url = protocol::start(&it, server.as_deref());
            url.map_err(|fault| table.mistake("url", fault, EXPECTED)).ok()
        });
        let schemes = schemes.unwrap_or_else(|| schemes_of(url.as_ref().and_then(Protocol::of)));
        let proxy = proxy::read(table, &schemes);
        let url = url?;
        let realms = realm::read(table, &url);
        if enumeration.iter().any(|it| *it == Enumeration::Address(url.clone())) {
            let fault = format!("{url} is the first page, too, and a list is no page");
            table.mistake("enumeration", fault, "another address");
        }
        Some(Self {
            urls_max,
            trap_urls_max: trap_urls_max.and_then(|it| u32::try_from(it).ok()),
            hosts_max,
            depth: depth.and_then(|it| u16::try_from(it).ok()).unwrap_or(u16::MAX),
            order,
            allow,
            deny,
            token,
            login,
            realms,
            allow_unencrypted_password,
            start_tls,
            certificate,
            schemes,
            proxy,
            enumeration,
            ..common.of(url)
        })
    }

    /// Reads a `[[leaf]]`: a list of URLs, each gathered for itself. `read` reads the file that it may name.
    pub(crate) fn read_leaf(
        table: &Table<'_>,
        (interval_max, ttl): (Duration, Duration),
        files: Files<'_>,
    ) -> Option<Self> {
        let name = table.string("name").unwrap_or_else(|| "leaf".to_owned());
        let common = Common::read(table, interval_max, ttl);
        let listed = leaves(table, files);
        let url = Url::parse(&format!("leaf:{name}")).ok();
        let Some(url) = url.filter(|it| it.path() == name && !name.is_empty()) else {
            table.mistake("name", format!("{name:?} is none"), "letters, digits and dashes");
            return None;
        };
        let all = [Protocol::Web, Protocol::Ftp, Protocol::Gopher, Protocol::News];
        Some(Self {
            urls_max: listed.len(),
            hosts_max: listed.len(),
            depth: 0,
            schemes: all.into_iter().flat_map(|it| schemes_of(Some(it))).collect(),
            leaf_hosts: listed.iter().filter_map(|it| it.host_str().map(str::to_owned)).collect(),
            leaves: listed,
            ..common.of(url)
        })
    }

    /// Returns the rule with this number, for people.
    pub(crate) fn rule(&self, number: u16) -> String {
        let pattern = number.checked_sub(DENIED).and_then(|it| self.deny.get(usize::from(it)));
        match (number, pattern) {
            (_, Some(pattern)) => format!("`deny` has {pattern:?}"),
            (NOT_LISTED, None) => "not in the list".to_owned(),
            (NOT_ALLOWED, None) => "nothing in `allow` matches".to_owned(),
            _ => format!("not in the folder of {}, and `allow` does not name it", self.url),
        }
    }

    /// Returns the settings of the frontier.
    pub(crate) fn frontier(&self) -> Settings {
        let lists_all = self.protocol().lists_all();
        Settings {
            // Lists come before what they list, one after the other, so that nothing is asked for of which they tell
            // enough.
            order: if lists_all { Order::Breadth } else { self.order },
            urls_max: self.urls_max,
            hosts_max: self.hosts_max,
            depth_max: self.depth,
            delay_ms: u64::try_from(self.delay.as_millis()).unwrap_or(u64::MAX),
            // Without a delay, the root's own site is asked as fast as it answers.
            delay_factor: if self.delay.is_zero() { 0 } else { Settings::default().delay_factor },
            host_requests_max: if self.delay.is_zero() { HOST_REQUESTS } else { 1 },
            schemes: self.schemes.clone(),
            traps: self.traps(),
            ..Settings::default()
        }
    }

    fn traps(&self) -> TrapLimits {
        let limits = if self.protocol().lists_all() { LISTED } else { TrapLimits::default() };
        match self.trap_urls_max {
            Some(most) => TrapLimits { calendar_urls_max: most, crowd_urls_max: most, ..limits },
            None => limits,
        }
    }

    /// Returns the cap by which a trap was found, if `trap_urls_max` changes it.
    pub(crate) fn trap_cap(&self, kind: TrapKind) -> Option<u32> {
        match kind {
            TrapKind::Calendar => Some(self.traps().calendar_urls_max),
            TrapKind::Crowd => Some(self.traps().crowd_urls_max),
            TrapKind::Endless | TrapKind::Session => None,
        }
    }

    /// Returns the credentials for a request to `url`: none for other origins than the root's.
    pub(crate) fn credentials(&self, url: &Url) -> Credentials {
        if url.origin() == self.url.origin() {
            let (token, certificate) = (self.token.as_ref(), self.certificate.as_deref());
            let login = self.login.as_deref().cloned();
            Credentials { login, ..exchange::source::credentials(token, certificate) }
        } else {
            Credentials::default()
        }
    }
}

/// The settings that a `[[root]]` and a `[[leaf]]` both have.
struct Common {
    delay: Option<Duration>,
    bandwidth: Option<u64>,
    interval: Duration,
    grace: Option<Duration>,
    answer_time_max: Option<Duration>,
    user_agent: Option<HeaderValue>,
    allow_private: bool,
}

impl Common {
    fn read(table: &Table<'_>, interval_max: Duration, ttl: Duration) -> Self {
        let within = |key, most| table.duration_within(key, Duration::ZERO..=most);
        Self {
            delay: within("delay", DELAY_MAX),
            bandwidth: super::bandwidth(table),
            interval: super::repository::interval(table, interval_max, ttl),
            grace: within("grace", GRACE_MAX),
            answer_time_max: table.duration_within("answer_time_max", ANSWER_TIMES),
            user_agent: user_agent(table),
            allow_private: table.boolean("allow_private", true),
        }
    }

    /// Returns what is at `url` with these settings, and with all others at their defaults.
    fn of(self, url: Url) -> Web {
        let Self { bandwidth, interval, user_agent, allow_private, .. } = self;
        let (delay, grace) = (self.delay.unwrap_or(DELAY), self.grace.unwrap_or(GRACE));
        let answer_time_max = self.answer_time_max.unwrap_or(ANSWER_TIME);
        let base = Web { delay, grace, answer_time_max, ..Web::new(url) };
        Web { bandwidth, interval, user_agent, allow_private, ..base }
    }
}

fn schemes_of(protocol: Option<Protocol>) -> Vec<String> {
    let protocol = protocol.unwrap_or(Protocol::Web);
    protocol.schemes().iter().map(|it| (*it).to_owned()).collect()
}

/// Reads `schemes`.
fn schemes(table: &Table<'_>) -> Option<Vec<String>> {
    let schemes = table.strings("schemes");
    let is_known = |it: &String| Protocol::of_scheme(it).is_some();
    for (i, wrong) in schemes.iter().enumerate().filter(|(_, it)| !is_known(it)) {
        let expected = "http, https, ftp, ftps, gopher, news or snews";
        table.mistake_in(
            "schemes",
            i,
            format!("{wrong:?} is no scheme that is gathered"),
            expected,
        );
    }
    (!schemes.is_empty()).then_some(schemes)
}

/// Reads `user_agent`, or makes it of `contact`.
fn user_agent(table: &Table<'_>) -> Option<HeaderValue> {
    let (named, contact) = (table.string("user_agent"), table.string("contact"));
    if named.is_some() && contact.is_some() {
        table.mistake("contact", "there is a `user_agent`, too", "one of them");
    }
    match named {
        None => contact.map(|it| net::client::user_agent(Some(&it))),
        Some(name) => match HeaderValue::try_from(&name).ok().filter(|_| !name.is_empty()) {
            Some(value) => Some(value),
            None => {
                table.mistake(
                    "user_agent",
                    format!("{name:?} cannot be sent"),
                    "visible characters",
                );
                None
            }
        },
    }
}

/// Reads `user` and `password`, which are not beside a token.
fn login(table: &Table<'_>) -> Option<Login> {
    let login = login::read(table, "user", "password", "the name that the host knows")?;
    if table.has("token") {
        table.mistake("user", "there is a token, too", "one of them");
    }
    Some(login)
}

/// Caps on what has an end, because a server lists it: only loops are kept out.
const LISTED: TrapLimits = TrapLimits {
    calendar_urls_max: 0,
    session_urls_max: 0,
    crowd_urls_max: 0,
    parts_max: 64,
    equal_parts_max: 3,
};

/// Number of requests at the same time to a host without a delay.
const HOST_REQUESTS: usize = 8;

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    fn read(text: &str) -> Result<Option<Web>, Vec<settings::Mistake>> {
        let document = Document::parse(text).unwrap();
        let web = Web::read(&document.root(), 10 * DAY, 2 * DAY);
        document.finish().map(|()| web)
    }

    #[test]
    fn settings_have_bounds_and_defaults() {
        let web = read("url = \"https://h.example/docs/#top\"").unwrap().unwrap();
        assert_eq!(web, Web::new(Url::parse("https://h.example/docs/").unwrap()));
        assert_eq!((web.urls_max, web.hosts_max, web.delay), (250, 1, Duration::from_secs(1)));
        assert_eq!(web.answer_time_max, Duration::from_secs(300));
        let all = "url = \"http://h.example/\"\nurls_max = 9\nhosts_max = 2\ndepth = 3\n\
                   delay = \"0 s\"\norder = \"depth\"\nallow = [\"/a\"]\ndeny = [\"*.iso\"]\n\
                   answer_time_max = \"20 s\"\nschemes = [\"http\", \"ftp\"]\ncontact = \"mailto:a@h.example\"\n\
                   interval = \"2 h\"\ngrace = \"0 s\"\nallow_private = false\n";
        assert!(read(&format!("{all}proxy = \"http://p.example:3128\"")).is_err(), "of FTP, too");
        let web = read(all).unwrap().unwrap();
        assert_eq!((web.urls_max, web.hosts_max, web.depth), (9, 2, 3));
        assert_eq!(
            (web.delay, web.grace, web.order),
            (Duration::ZERO, Duration::ZERO, Order::Depth)
        );
        assert_eq!(web.answer_time_max, Duration::from_secs(20));
        let agent = web.user_agent.as_ref().unwrap().to_str().unwrap();
        assert!(agent.starts_with("harvest/") && agent.ends_with(" (+mailto:a@h.example)"));
        let settings = web.frontier();
        assert_eq!(settings.schemes, ["http", "ftp"]);
        assert_eq!(settings.traps, TrapLimits::default());
        assert_eq!((settings.delay_ms, settings.delay_factor), (0, 0));
        let caps = |more: &str, url: &str| {
            let web = read(&format!("url = \"{url}\"\n{more}")).unwrap().unwrap();
            let traps = web.frontier().traps;
            [traps.calendar_urls_max, traps.session_urls_max, traps.crowd_urls_max]
        };
        assert_eq!(caps("trap_urls_max = 5", "http://h.example/"), [5, 20, 5]);
        assert_eq!(caps("trap_urls_max = 5", "ftp://h.example/"), [5, 0, 5]);
        assert_eq!(caps("", "ftp://h.example/"), [0, 0, 0]);
        // Of a short ttl the default is no mistake.
        let short = Document::parse("url = \"http://h.example/\"").unwrap();
        let web = Web::read(&short.root(), 10 * DAY, DAY).unwrap();
        assert_eq!(web.interval, DAY / 2);
        short.finish().unwrap();
        for wrong in [
            "url = \"telnet://h.example/\"",
            "url = \"docs\"",
            "url = \"http://h.example/\"\nurls_max = 0",
            "url = \"http://h.example/\"\ntrap_urls_max = 0",
            "url = \"http://h.example/\"\ndelay = \"2 days\"",
            "url = \"http://h.example/\"\nanswer_time_max = \"0 s\"",
            "url = \"http://h.example/\"\norder = \"random\"",
            "url = \"http://h.example/\"\ninterval = \"25 h\"",
            "url = \"http://h.example/\"\ndeny = [\"[\"]",
            "url = \"http://h.example/\"\nschemes = [\"mailto\"]",
            "url = \"http://h.example/\"\nuser_agent = \"a\"\ncontact = \"b\"",
            "url = \"ftp://h.example/\"\nuser = \"u\"",
            "url = \"ftp://h.example/\"\nuser = \"u:v\"\npassword = \"p\"",
            "url = \"http://h.example/\"\nuser = \"u\"\npassword = \"p\"\ntoken = \"t\"",
            "url = \"ftp://h.example/\"\nproxy = \"http://p.example:3128\"",
            "url = \"http://h.example/\"\nschemes = [\"ftp\"]\nproxy = \"http://p.example:3128\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
