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

use std::time::Duration;

use crawl::frontier::{Order, Settings, TrapLimits};
use daemon::{Token, client_certificate};
use essence::config::patterns;
use essence::glob::globs;
use globset::GlobSet;
use http::HeaderValue;
use net::client::{Credentials, Proxy};
use net::fetch::Login;
use net::tls::ClientFiles;
use settings::Table;
use url::Url;

use super::login;
use super::protocol::{self, Protocol};
use super::proxy;
use super::repository::INTERVAL;
use crate::error::Error;

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

/// Longest such time.
const GRACE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// Number of the rule that leaves out what lies outside the folder of the root's URL.
const OUTSIDE: u16 = 0;

/// Number of the rule that leaves out what `allow` does not name.
const NOT_ALLOWED: u16 = 1;

/// Number of the first pattern of `deny`.
const DENIED: u16 = 2;

/// A root to crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// The first URL; its folder is gathered.
    pub url: Url,
    /// Schemes of the URLs that are gathered.
    pub schemes: Vec<String>,
    /// Our name in requests of HTTP, and whom to ask about them; default: this program's, and the address of the
    /// gatherer.
    pub user_agent: Option<HeaderValue>,
    /// Maximum number of URLs; what is known counts first.
    pub urls_max: usize,
    /// Maximum number of hosts.
    pub hosts_max: usize,
    /// Maximum number of links from the first URL.
    pub depth: u16,
    /// Shortest time between two requests to a host.
    pub delay: Duration,
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
    /// Bearer token, if the site requires one.
    pub token: Option<Token>,
    /// Name and password, if the host requires them: sent to it alone.
    pub login: Option<Login>,
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
            schemes: schemes_of(Protocol::of(&url).unwrap_or(Protocol::Web)),
            user_agent: None,
            url,
            urls_max: URLS_MAX,
            hosts_max: 1,
            depth: u16::MAX,
            delay: DELAY,
            order: Order::Breadth,
            allow: Vec::new(),
            deny: Vec::new(),
            interval: INTERVAL,
            grace: GRACE,
            token: None,
            login: None,
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
        is_within(&self.url, url)
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
        let depth = table.integer("depth", 0..=u64::from(u16::MAX));
        let within = |key, most, default| {
            table.duration_within(key, Duration::ZERO..=most).unwrap_or(default)
        };
        let (delay, grace) = (within("delay", DELAY_MAX, DELAY), within("grace", GRACE_MAX, GRACE));
        let order = match table.choice("order", &["breadth", "depth"]) {
            Some("depth") => Order::Depth,
            _ => Order::Breadth,
        };
        let interval = super::repository::interval(table, interval_max, ttl);
        let (allow, deny) = (patterns(table, "allow"), patterns(table, "deny"));
        let (token, certificate) = (Token::read(table), client_certificate(table).map(Box::new));
        let flag = |key, default| table.boolean(key, default);
        let (allow_private, start_tls) = (flag("allow_private", true), flag("start_tls", false));
        let allow_unencrypted_password = flag("allow_unencrypted_password", false);
        let (login, user_agent, schemes) = (login(table), user_agent(table), schemes(table));
        let (text, server) = (table.string("url"), table.string("server"));
        let url = text.and_then(|it| {
            let url = protocol::start(&it, server.as_deref());
            url.map_err(|fault| table.mistake("url", fault, EXPECTED)).ok()
        });
        let schemes = schemes.or_else(|| url.as_ref().and_then(Protocol::of).map(schemes_of));
        let proxy = proxy::read(table, schemes.as_deref().unwrap_or_default());
        let url = url?;
        Some(Self {
            urls_max,
            hosts_max,
            depth: depth.and_then(|it| u16::try_from(it).ok()).unwrap_or(u16::MAX),
            delay,
            order,
            allow,
            deny,
            interval,
            grace,
            token,
            login,
            allow_unencrypted_password,
            start_tls,
            certificate,
            allow_private,
            user_agent,
            proxy,
            schemes: schemes.unwrap_or_else(|| schemes_of(Protocol::Web)),
            url,
        })
    }

    /// Returns the rule with this number, for people.
    pub(crate) fn rule(&self, number: u16) -> String {
        let pattern = number.checked_sub(DENIED).and_then(|it| self.deny.get(usize::from(it)));
        match (number, pattern) {
            (_, Some(pattern)) => format!("`deny` has {pattern:?}"),
            (NOT_ALLOWED, None) => "nothing in `allow` matches".to_owned(),
            _ => format!("not in the folder of {}, and `allow` does not name it", self.url),
        }
    }

    /// Returns the settings of the frontier.
    pub(crate) fn frontier(&self) -> Settings {
        let lists_all = self.protocol().lists_all();
        let is_fast = self.delay.is_zero() && !lists_all;
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
            host_requests_max: if is_fast { HOST_REQUESTS } else { 1 },
            schemes: self.schemes.clone(),
            traps: if lists_all { LISTED } else { TrapLimits::default() },
            ..Settings::default()
        }
    }

    /// Returns the credentials for a request to `url`: none for other origins than the root's.
    pub(crate) fn credentials(&self, url: &Url) -> Credentials {
        if url.origin() == self.url.origin() {
            let (token, certificate) = (self.token.as_ref(), self.certificate.as_deref());
            let login = self.login.clone();
            Credentials { login, ..exchange::source::credentials(token, certificate) }
        } else {
            Credentials::default()
        }
    }
}

fn schemes_of(protocol: Protocol) -> Vec<String> {
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

/// Returns whether two URLs are of one site: the same host at the same port, or at the usual ports of
/// both schemes. At other ports of the host are other services.
pub(crate) fn is_same_site(one: &Url, other: &Url) -> bool {
    let is_usual = |it: &Url| it.port().is_none();
    one.host_str() == other.host_str()
        && (one.port_or_known_default() == other.port_or_known_default()
            || is_usual(one) && is_usual(other))
}

/// Returns whether a URL is in the folder of the root's `start`, at the same site. What a newsgroup leads to is
/// at its server, and a Gopher selector begins behind the type of its object.
fn is_within(start: &Url, url: &Url) -> bool {
    let selector = |it: &'_ Url| it.path().chars().skip(2).collect::<String>();
    is_same_site(start, url)
        && match Protocol::of(start) {
            Some(Protocol::News) => true,
            Some(Protocol::Gopher) => selector(url).starts_with(&selector(start)),
            // A folder without its last slash is listed, too.
            Some(Protocol::Ftp) if !start.path().ends_with('/') => {
                let below = url.path().strip_prefix(start.path());
                below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
            }
            _ => url.path().starts_with(folder(start)),
        }
}

/// Returns the path of the folder of a URL.
fn folder(url: &Url) -> &str {
    let path = url.path();
    path.rfind('/').and_then(|it| path.get(..=it)).unwrap_or("/")
}

/// The compiled rules of a web root about URLs.
#[derive(Clone, Debug)]
pub(crate) struct UrlFilter {
    start: Url,
    allow: GlobSet,
    deny: GlobSet,
}

impl UrlFilter {
    /// Returns the rules of a root.
    ///
    /// # Errors
    ///
    /// The first pattern that is not a glob: the settings have to be corrected.
    pub(crate) fn new(web: &Web) -> Result<Self, Error> {
        let set = |patterns: &[String]| {
            globs(patterns).map_err(|(pattern, message)| Error::Pattern {
                root: web.url().to_owned(),
                pattern,
                message,
            })
        };
        Ok(Self { start: web.url.clone(), allow: set(&web.allow)?, deny: set(&web.deny)? })
    }

    /// Returns the number of the rule that leaves `url` out; `None` if none does.
    pub(crate) fn refuses(&self, url: &Url) -> Option<u16> {
        if *url == self.start {
            return None;
        }
        let whole = url.as_str();
        let path = whole.get(url[..url::Position::BeforePath].len()..).unwrap_or_default();
        let path = path.trim_start_matches('/');
        let matched = |set: &GlobSet| {
            let mut all = set.matches(whole);
            all.extend(set.matches(path));
            // Each pattern makes two globs.
            all.into_iter().min().map(|it| it / 2)
        };
        if let Some(first) = matched(&self.deny) {
            return Some(u16::try_from(first).unwrap_or(u16::MAX).saturating_add(DENIED));
        }
        if !self.allow.is_empty() {
            return matched(&self.allow).is_none().then_some(NOT_ALLOWED);
        }
        let is_own = url.host_str() == self.start.host_str();
        (is_own && !is_within(&self.start, url)).then_some(OUTSIDE)
    }
}

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
        let all = "url = \"http://h.example/\"\nurls_max = 9\nhosts_max = 2\ndepth = 3\n\
                   delay = \"0 s\"\norder = \"depth\"\nallow = [\"/a\"]\ndeny = [\"*.iso\"]\n\
                   schemes = [\"http\", \"ftp\"]\ncontact = \"mailto:a@h.example\"\n\
                   interval = \"2 h\"\ngrace = \"0 s\"\nallow_private = false\n";
        assert!(read(&format!("{all}proxy = \"http://p.example:3128\"")).is_err(), "of FTP, too");
        let web = read(all).unwrap().unwrap();
        assert_eq!((web.urls_max, web.hosts_max, web.depth), (9, 2, 3));
        assert_eq!(
            (web.delay, web.grace, web.order),
            (Duration::ZERO, Duration::ZERO, Order::Depth)
        );
        let agent = web.user_agent.as_ref().unwrap().to_str().unwrap();
        assert!(agent.starts_with("harvest/") && agent.ends_with(" (+mailto:a@h.example)"));
        let settings = web.frontier();
        assert_eq!(settings.schemes, ["http", "ftp"]);
        assert_eq!((settings.delay_ms, settings.delay_factor), (0, 0));
        for wrong in [
            "url = \"telnet://h.example/\"",
            "url = \"docs\"",
            "url = \"http://h.example/\"\nurls_max = 0",
            "url = \"http://h.example/\"\ndelay = \"2 days\"",
            "url = \"http://h.example/\"\norder = \"random\"",
            "url = \"http://h.example/\"\ninterval = \"3 days\"",
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

    #[test]
    fn rules_are_about_the_folder_the_path_and_the_address() {
        let start = Url::parse("https://h.example/docs/index.html").unwrap();
        let with = |allow: &[&str], deny: &[&str]| {
            let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
            let web = Web { allow: own(allow), deny: own(deny), ..Web::new(start.clone()) };
            UrlFilter::new(&web).unwrap()
        };
        let check = |filter: &UrlFilter, url: &str, expected: Option<u16>| {
            assert_eq!(filter.refuses(&Url::parse(url).unwrap()), expected, "{url}");
        };
        let folder = with(&[], &[]);
        check(&folder, "https://h.example/docs/a/b?c", None);
        check(&folder, "http://h.example/docs/a", None);
        check(&folder, "https://h.example/other", Some(OUTSIDE));
        check(&folder, "https://h.example:8443/docs/a", Some(OUTSIDE));
        check(&folder, "https://other.example/x", None);
        let deny = with(&[], &["/docs/old/", "*.iso", "https://other.example/private"]);
        check(&deny, "https://h.example/docs/old/a", Some(DENIED));
        check(&deny, "https://h.example/docs/deep/x.iso", Some(DENIED + 1));
        check(&deny, "https://other.example/private/a", Some(DENIED + 2));
        check(&deny, "https://other.example/public", None);
        let allow = with(&["/docs/a", "/more"], &[]);
        check(&allow, "https://h.example/more/x", None);
        check(&allow, "https://h.example/docs/b", Some(NOT_ALLOWED));
        check(&allow, start.as_str(), None);
        let others =
            |start: &str| UrlFilter::new(&Web::new(protocol::start(start, None).unwrap())).unwrap();
        let folder = others("ftp://h.example/pub");
        check(&folder, "ftp://h.example/pub/a", None);
        check(&folder, "ftp://h.example/public", Some(OUTSIDE));
        let menu = others("gopher://h.example/1/docs");
        check(&menu, "gopher://h.example/0/docs/a", None);
        check(&menu, "gopher://h.example/0/other", Some(OUTSIDE));
        check(&others("news://h.example/a.b"), "news://h.example/1@x", None);
    }
}
