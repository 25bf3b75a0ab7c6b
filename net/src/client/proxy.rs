//! The proxy that outgoing requests go through: its address and credentials, what is asked of it,
//! and what its refusals mean.
//!
//! URLs of `http` are requested from it in absolute form. For those of `https` it opens a tunnel,
//! in which TLS ends at the origin: it sees the host's name, the amounts and the times alone.
//!
//! The proxy resolves the names of hosts, so that the guard cannot see where they lead: it refuses
//! addresses, and names that say themselves that they are of a private network.
//!
//! Source: RFC 9112 §3.2.2 (absolute form) and §3.2.3 (authority form), RFC 9110 §9.3.6 (CONNECT),
//! §11.7.2 (`Proxy-Authorization`) and §15.5.8 (407), RFC 7617 (Basic).
//!
//! Sans-I/O.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use url::{Host, Url};

use crate::connect::authority;
use crate::error::Error;
use crate::fetch::Login;
use crate::guard::{self, Policy, Refusal};

/// A proxy of HTTP, by `http` or `https`. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proxy(Arc<Parts>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    url: Url,
    /// The value of `Proxy-Authorization`; marked as sensitive, so that it is never shown.
    authorization: Option<HeaderValue>,
    /// Whether it is asked for `https` in absolute form, and so reads it.
    fetches_https: bool,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (self.0.url.host_str().unwrap_or_default(), self.port());
        write!(f, "the proxy {host}:{port}")
    }
}

impl Proxy {
    /// Returns the proxy at `url`, such as `http://proxy.example:3128`, which is told `login` in
    /// each request (`Proxy-Authorization: Basic`). Without a port, it is that of the scheme.
    ///
    /// # Errors
    ///
    /// [`Error::Url`]: it is no address of a proxy, or there is a name or password in it, or a
    /// name in `login` that cannot be sent. Correct it.
    pub fn new(url: Url, login: Option<&Login>) -> Result<Self, Error> {
        let is_secret = !url.username().is_empty() || url.password().is_some();
        let is_whole = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let fault = match url.scheme() {
            // The password is for nobody's eyes.
            _ if is_secret => {
                let url = format!("the proxy {}", url.host_str().unwrap_or_default());
                let message = "take the name and password out of its address".to_owned();
                return Err(Error::Url { url, message });
            }
            "http" | "https" if !url.has_host() => Some("it names no host"),
            "http" | "https" if !is_whole => Some("a proxy has a host and a port, and no path"),
            "http" | "https" => None,
            _ => Some("only proxies of http and https are supported"),
        };
        let fault = fault.or_else(|| {
            let is_wrong = |it: &Login| it.name.contains(':');
            login.is_some_and(is_wrong).then_some("a name with a colon cannot be sent")
        });
        if let Some(fault) = fault {
            return Err(Error::Url { url: url.into(), message: fault.to_owned() });
        }
        let wrong = |message: String| Error::Url { url: url.to_string(), message };
        let authorization = match login {
            None => None,
            Some(login) => {
                let value = HeaderValue::try_from(login.basic());
                let mut value = value.map_err(|error| wrong(error.to_string()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self(Arc::new(Parts { url, authorization, fetches_https: false })))
    }

    /// Returns the same proxy, which is asked for `https` URLs as for others, in place of a tunnel: it fetches
    /// them by TLS, verifies the host, and reads what comes. For a cache of our own.
    #[must_use]
    pub fn fetching_https(self) -> Self {
        Self(Arc::new(Parts { fetches_https: true, ..Parts::clone(&self.0) }))
    }

    /// Returns whether a URL is requested through a tunnel.
    pub(crate) fn tunnels(&self, url: &Url) -> bool {
        url.scheme() == "https" && !self.0.fetches_https
    }

    /// Returns its host.
    pub(crate) fn host(&self) -> Option<Host<&str>> {
        self.0.url.host()
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> u16 {
        self.0.url.port_or_known_default().unwrap_or(0)
    }

    /// Returns whether it is spoken to over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.url.scheme() == "https"
    }

    /// Returns the value of `Proxy-Authorization`, which is for it alone.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.0.authorization.as_ref()
    }

    /// Returns the request for a tunnel to `host`, which is a host and its port.
    ///
    /// # Errors
    ///
    /// [`Error::Url`]: the host cannot be sent.
    pub(crate) fn connect_request(
        &self,
        host: &str,
        user_agent: &HeaderValue,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let wrong = |message: String| Error::Url { url: host.to_owned(), message };
        let mut request = Request::new(Full::default());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = host.parse().map_err(|error| wrong(format!("{error}")))?;
        let value = HeaderValue::try_from(host).map_err(|error| wrong(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, value);
        headers.insert(header::USER_AGENT, user_agent.clone());
        if let Some(value) = self.authorization() {
            headers.insert(header::PROXY_AUTHORIZATION, value.clone());
        }
        Ok(request)
    }

    /// Checks that a request for `url` may go to the proxy, as far as the URL tells where it leads.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] or [`Error::PrivateName`]: the policy forbids it.
    pub(crate) fn vet(&self, url: &Url, policy: Policy) -> Result<(), Error> {
        let Some(named) = url.host() else { return Ok(()) };
        let Err(refusal) = guard::vet_host(&named, policy) else { return Ok(()) };
        let host = authority(url);
        let address = match named {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            Host::Domain(_) if refusal == Refusal::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Host::Domain(_) => {
                return Err(Error::PrivateName { host, proxy: self.to_string(), from: None });
            }
        };
        Err(Error::Refused { host, address, refusal })
    }

    /// Returns the error that the proxy answered `status` to a request for `host`.
    pub(crate) fn refusal(&self, host: String, status: StatusCode) -> Error {
        Error::Proxy { proxy: self.to_string(), host, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str, login: Option<(&str, &str)>) -> Result<Proxy, Error> {
        let login = login
            .map(|(name, password)| Login { name: name.to_owned(), password: password.to_owned() });
        Proxy::new(Url::parse(url).unwrap(), login.as_ref())
    }

    #[test]
    fn a_proxy_has_a_host_a_port_and_no_secrets_in_its_address() {
        let named = |url: &str| proxy(url, None).unwrap().to_string();
        assert_eq!(named("http://p.example:3128"), "the proxy p.example:3128");
        assert_eq!(named("https://[::1]/"), "the proxy [::1]:443");
        for (wrong, part) in [
            ("socks5://p.example:1080", "only proxies of http and https"),
            ("http://p.example/path", "no path"),
            ("http://p.example/?q", "no path"),
            ("http://u:s3cret@p.example/", "take the name and password out"),
        ] {
            let error = proxy(wrong, None).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
        }
        assert!(proxy("http://p.example/", Some(("a:b", "c"))).is_err());
        let secret = proxy("http://p.example/", Some(("Aladdin", "open sesame"))).unwrap();
        assert!(!format!("{secret:?}").contains("QWxhZGRpbjpvcGVuIHNlc2FtZQ"), "{secret:?}");
    }

    #[test]
    fn a_tunnel_is_requested_by_host_and_port() {
        let agent = HeaderValue::from_static("a");
        let secret = proxy("http://p.example/", Some(("Aladdin", "open sesame"))).unwrap();
        let request = secret.connect_request("[2001:db8::1]:443", &agent).unwrap();
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.uri(), "[2001:db8::1]:443");
        assert_eq!(request.headers()["host"], "[2001:db8::1]:443");
        // The example of RFC 7617 §2.
        let shown = &request.headers()["proxy-authorization"];
        assert_eq!(shown, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn hosts_of_private_networks_are_refused_as_far_as_they_can_be_seen() {
        let proxy = proxy("http://p.example/", None).unwrap();
        let vet = |url: &str, policy| proxy.vet(&Url::parse(url).unwrap(), policy);
        for private in ["http://10.0.0.1/", "https://localhost/", "http://[::1]:81/"] {
            let error = vet(private, Policy::Public).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{error}");
            vet(private, Policy::AllowPrivate).unwrap();
        }
        let error = vet("http://wiki/", Policy::Public).unwrap_err();
        assert!(error.to_string().starts_with("wiki:80 is a name of a private network"), "{error}");
        vet("http://wiki/", Policy::AllowPrivate).unwrap();
        assert!(vet("http://169.254.169.254/", Policy::AllowPrivate).is_err());
        vet("http://www.example.org/", Policy::Public).unwrap();
    }
}
