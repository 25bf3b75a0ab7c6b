//! Targets: where a request leads, and whether it may.
//!
//! Source: RFC 9112 §3.2 (forms of the target), RFC 9110 §7.4 (misdirected requests).
//!
//! Sans-I/O.

pub(crate) mod destination;
mod scheme;

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use net::fetch::{Login, unescaped};
use net::host::HostPort;
use url::{Position, Url};

use crate::config::Config;

pub use destination::Destination;
pub use scheme::Scheme;
pub(crate) use scheme::{news_name, news_url};

/// Longest URL that is asked for, in bytes.
const URL_BYTES_MAX: usize = 8 << 10;

/// Where a request leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To an object.
    Object(Object),
    /// To a host and a port, as a tunnel.
    Tunnel(HostPort),
    /// To this cache's own pages.
    Own,
}

/// An object of the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its URL, without fragment: the key under which it is stored.
    pub url: Url,
    /// The site behind that it is fetched from, if the cache stands before its origin.
    pub site: Option<Url>,
    /// Path and query as the client wrote them, if the URL's differ from them by quotation marks alone:
    /// signatures of URLs are made of what is written.
    pub written: Option<PathAndQuery>,
    /// Name and password of an `ftp` URL, which are not in the URL above.
    pub login: Option<Box<Login>>,
}

impl Object {
    /// Returns whether the cache stands before its origin.
    pub fn is_before_origin(&self) -> bool {
        self.site.is_some()
    }

    /// Returns where it is fetched from, whoever fetches it.
    pub fn at(&self) -> Url {
        let mut at = self.url.clone();
        // A URL that cannot have a name has none.
        let _ = at.set_username("");
        if let Some(site) = &self.site {
            // Both are URLs of the same kind, so that all three can be set.
            let _ = at.set_scheme(site.scheme());
            let _ = at.set_host(site.host_str());
            let _ = at.set_port(site.port());
        }
        at
    }
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The URL cannot be read, or not fetched.
    Url(String),
    /// Requests do not go to that port.
    Port(u16),
    /// Requests do not go to that host.
    Destination(String),
    /// Nothing here has that host's name.
    Host(String),
    /// There is no news server.
    News,
}

impl Refusal {
    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Url(_) => StatusCode::BAD_REQUEST,
            Self::Port(_) | Self::Destination(_) => StatusCode::FORBIDDEN,
            Self::Host(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::News => StatusCode::NOT_IMPLEMENTED,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(message) => write!(f, "the URL is wrong: {message}"),
            Self::Port(port) => write!(
                f,
                "requests do not go to port {port} from here: `ports` and `connect_ports` in [access] of \
                 cache.toml list the allowed ones"
            ),
            Self::Destination(host) => write!(
                f,
                "requests do not go to {host} from here: `destinations` in [access] of cache.toml lists the \
                 allowed hosts"
            ),
            Self::Host(host) => write!(
                f,
                "this cache stands before no site {host:?}: an [[origin]] in cache.toml names one, and \
                 base_url the cache itself; as a proxy it is asked by whole URLs"
            ),
            Self::News => f.write_str(
                "news come from one server, and this cache has none: news_server = \"nntp://news.example.org\" \
                 in cache.toml names one",
            ),
        }
    }
}

/// Where Squid asks its neighbors for digests of what they have: nothing is there, under any name of this
/// cache.
const DIGESTS: &str = "/squid-internal-periodic/";

/// Returns where a request leads. `own` are the names under which the cache itself is asked.
///
/// # Errors
///
/// It leads nowhere: the refusal is the answer.
pub fn of(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    own: &[String],
    config: &Config,
) -> Result<Target, Refusal> {
    if method == Method::CONNECT {
        let authority = uri.authority().map(|it| it.as_str()).unwrap_or_default();
        let to = HostPort::parse(authority);
        let to = to.ok_or_else(|| Refusal::Url(format!("{authority:?} is no host and port")))?;
        let port = to.port.ok_or_else(|| Refusal::Url("a tunnel leads to a port".to_owned()))?;
        allowed(port, &config.connect_ports)?;
        destined(&to.host, config)?;
        return Ok(Target::Tunnel(to));
    }
    let (path, authority) = (uri.path_and_query(), uri.authority());
    let length =
        path.map_or(0, |it| it.as_str().len()) + authority.map_or(0, |it| it.as_str().len());
    if URL_BYTES_MAX < length {
        return Err(Refusal::Url(format!("it has more than {URL_BYTES_MAX} bytes")));
    }
    let (host, is_whole) = match authority {
        Some(authority) => (authority.as_str().to_ascii_lowercase(), true),
        None => {
            let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
            (host.unwrap_or_default().to_ascii_lowercase(), false)
        }
    };
    let is_site = || config.origins.iter().any(|it| it.host == host);
    let is_at = |it: &String| is_at_any_address(it, &host) && !is_site();
    let is_own = uri.path() == "*" || own.contains(&host) || own.iter().any(is_at);
    if is_own || uri.path().starts_with(DIGESTS) {
        return Ok(Target::Own);
    }
    let (url, login) = if is_whole {
        parsed(&uri.to_string())?
    } else {
        let path = path.map_or("/", |it| it.as_str());
        parsed(&format!("http://{host}{path}"))?
    };
    let written = path.filter(|it| {
        it.query().is_some_and(|query| {
            let is_quoted = query.contains('\'') && it.path() == url.path();
            is_quoted && Some(&*query.replace('\'', "%27")) == url.query()
        })
    });
    let written = written.cloned();
    let (is_http, named) = (url.scheme() == "http", named(&url));
    // A reader names the port, too, where the cache listens at another than 80.
    let bare = &url[Position::BeforeHost..Position::AfterHost];
    let origins = || config.origins.iter().filter(|_| is_http);
    let origin = origins().find(|it| it.host == named);
    let origin = origin.or_else(|| origins().find(|it| !is_whole && it.host == bare));
    if let Some(origin) = origin {
        let site = Some(origin.url.clone());
        return Ok(Target::Object(Object { url, site, written, login }));
    }
    if !is_whole {
        return Err(Refusal::Host(host));
    }
    match Scheme::of(&url).map(|it| it.port(&url)) {
        None => allowed(url.port_or_known_default().unwrap_or_default(), &config.ports)?,
        Some(Some(port)) => allowed(port, &config.ports)?,
        // The news server is the settings' own choice.
        Some(None) if config.news_server.is_some() => {}
        Some(None) => return Err(Refusal::News),
    }
    // So is it for news; all others have a host.
    url.host_str().map_or(Ok(()), |host| destined(host, config))?;
    Ok(Target::Object(Object { url, site: None, written, login }))
}

/// Stands for each address of this machine in the names of a cache.
pub(crate) const ANY_ADDRESS: &str = "*";

/// Returns whether a host is an address with the port of an own name that stands for all of them.
fn is_at_any_address(own: &str, host: &str) -> bool {
    let address = own.strip_prefix(ANY_ADDRESS).and_then(|it| host.strip_suffix(it));
    address.is_some_and(|it| it.trim_matches(['[', ']']).parse::<IpAddr>().is_ok())
}

/// Returns the host of a URL with its port, unless that is the scheme's: as [`Origin`] has it.
///
/// [`Origin`]: crate::config::Origin
pub(crate) fn named(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

/// Returns the URL under which an object is stored.
pub(crate) fn key(url: Url) -> Url {
    Scheme::of(&url).and_then(|it| it.canonical(url.clone())).unwrap_or(url)
}

/// Reads a URL, and takes out its name and password.
fn parsed(text: &str) -> Result<(Url, Option<Box<Login>>), Refusal> {
    let wrong = |message: &str| Refusal::Url(message.to_owned());
    let mut url = Url::parse(text).map_err(|error| Refusal::Url(error.to_string()))?;
    url.set_fragment(None);
    let scheme = Scheme::of(&url);
    if scheme.is_none() && !["http", "https"].contains(&url.scheme()) {
        return Err(Refusal::Url(format!("nothing is fetched by {:?}", url.scheme())));
    }
    let mut login = None;
    if !url.username().is_empty() || url.password().is_some() {
        let text = |part: &str| String::from_utf8(unescaped(part)).ok();
        let (name, password) = (text(url.username()), text(url.password().unwrap_or_default()));
        login = name.zip(password).filter(|_| scheme == Some(Scheme::Ftp));
        let is_out = url.set_username("").is_ok() && url.set_password(None).is_ok();
        if login.is_none() || !is_out {
            return Err(wrong("take the name and password out of it"));
        }
    }
    let url = match scheme {
        Some(scheme) => scheme.canonical(url).ok_or_else(|| wrong("it names no object"))?,
        None => url,
    };
    Ok((url, login.map(|(name, password)| Box::new(Login { name, password }))))
}

fn allowed(port: u16, ports: &[RangeInclusive<u16>]) -> Result<(), Refusal> {
    if ports.iter().any(|it| it.contains(&port)) { Ok(()) } else { Err(Refusal::Port(port)) }
}

/// Checks that requests may go to a host.
fn destined(host: &str, config: &Config) -> Result<(), Refusal> {
    match destination::allows(&config.destinations, host) {
        true => Ok(()),
        false => Err(Refusal::Destination(host.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn target(line: &str, host: &str) -> Result<Target, Refusal> {
        target_with("", line, host)
    }

    /// The same, with these lines in `[access]`.
    fn target_with(access: &str, line: &str, host: &str) -> Result<Target, Refusal> {
        let text = format!(
            "news_server = \"nntp://news\"\n[access]\n{access}\n\
             [[origin]]\nhost = \"www.example.org\"\nurl = \"http://127.0.0.1:8080\""
        );
        let (method, uri) = line.split_once(' ').unwrap();
        let host = HeaderValue::from_str(host).unwrap();
        let headers = [(header::HOST, host)].into_iter().collect();
        let own = ["127.0.0.1:3128".to_owned()];
        of(
            &method.parse().unwrap(),
            &uri.parse().unwrap(),
            &headers,
            &own,
            &Config::parse(&text, std::path::Path::new("/d")).unwrap(),
        )
    }

    fn check(line: &str, host: &str, expected: &str) {
        let seen = match target(line, host) {
            Ok(Target::Object(it)) => format!("{} at {}", it.url, it.at()),
            Ok(Target::Tunnel(to)) => format!("tunnel to {to}"),
            Ok(Target::Own) => "own".to_owned(),
            Err(refusal) => format!("{}", refusal.status().as_u16()),
        };
        assert_eq!(seen, expected, "{line} {host}");
    }

    #[test]
    fn a_request_leads_to_a_host_a_site_behind_or_the_cache_itself() {
        check("GET http://H/a/../b#c", "h", "http://h/b at http://h/b");
        check("GET https://h/", "h", "https://h/ at https://h/");
        check(
            "GET /a?b",
            "WWW.example.org",
            "http://www.example.org/a?b at http://127.0.0.1:8080/a?b",
        );
        check(
            "GET http://www.example.org/a",
            "x",
            "http://www.example.org/a at http://127.0.0.1:8080/a",
        );
        // However the host is written, it is that of the site.
        check(
            "GET /a",
            "www.example.org:80",
            "http://www.example.org/a at http://127.0.0.1:8080/a",
        );
        let other = "http://www.example.org/ at http://127.0.0.1:8080/";
        check("GET http://www.EXAMPLE.org:80/", "x", other);
        check(
            "GET http://www.example.org:8000/",
            "x",
            "http://www.example.org:8000/ at http://www.example.org:8000/",
        );
        check("OPTIONS *", "www.example.org", "own");
        check("GET /a", "127.0.0.1:3128", "own");
        check("GET http://127.0.0.1:3128/healthz", "x", "own");
        check("CONNECT h:443", "h", "tunnel to h:443");
    }

    #[test]
    fn other_schemes_lead_to_their_ports_and_show_no_password() {
        check("GET ftp://h/a;type=i", "h", "ftp://h/a at ftp://h/a");
        check("GET gopher://h", "h", "gopher://h/1 at gopher://h/1");
        check("GET news:a.b", "", "news:a.b at news:a.b");
        check("GET ftp://h:22/a", "h", "403");
        check("GET gopher://h:22/", "h", "403");
        check("GET gopher://u@h/", "h", "400");
        check("GET ftp://u%40x:p@h/a", "h", "ftp://h/a at ftp://h/a");
        let Ok(Target::Object(object)) = target("GET ftp://u%40x:p@h/a", "h") else { panic!() };
        let login = Login { name: "u@x".to_owned(), password: "p".to_owned() };
        assert_eq!(object.login, Some(Box::new(login)));
    }

    #[test]
    fn a_query_is_passed_on_as_it_was_written() {
        let written = |line: &str| match target(line, "h") {
            Ok(Target::Object(it)) => it.written.map(|it| it.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(written("GET http://h/q?a'b"), Some("/q?a'b".to_owned()));
        assert_eq!(written("GET http://h/q?a%27b"), None);
        assert_eq!(written("GET http://h/a/../q?a'b"), None, "it must be what is stored");
    }

    #[test]
    fn requests_go_to_listed_destinations_alone() {
        let access = "destinations = ['example.net', '192.0.2.0/24']";
        for (line, is_allowed) in [
            ("GET http://example.net/", true),
            ("GET https://www.example.net/", true),
            ("GET ftp://192.0.2.7/", true),
            ("GET gopher://WWW.example.net/", true),
            ("CONNECT www.example.net:443", true),
            ("CONNECT 192.0.2.7:443", true),
            // These are the settings' own choices.
            ("GET http://www.example.org/", true),
            ("GET news:a.b", true),
            ("GET http://127.0.0.1:3128/healthz", true),
            ("GET http://example.com/", false),
            ("GET http://notexample.net/", false),
            ("GET http://192.0.3.7/", false),
            ("GET http://0xc0000307/", false),
            ("GET ftp://h/", false),
            ("GET gopher://h/", false),
            ("CONNECT h:443", false),
            ("CONNECT 192.0.3.7:443", false),
        ] {
            match target_with(access, line, "h") {
                Ok(_) => assert!(is_allowed, "{line}"),
                Err(refusal) => {
                    assert_eq!((is_allowed, refusal.status().as_u16()), (false, 403), "{line}");
                    assert!(refusal.to_string().contains("`destinations`"), "{refusal}");
                }
            }
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        check("GET /a", "other", "421");
        check("GET http://h:22/", "h", "403");
        check("GET http://h:1024/", "h", "403");
        check("GET http://u:p@h/", "h", "400");
        check("CONNECT h:80", "h", "403");
        check("CONNECT h", "h", "400");
        check(&format!("GET http://h/{}", "a".repeat(URL_BYTES_MAX)), "h", "400");
    }
}
