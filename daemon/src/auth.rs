//! The administrator's token: required for requests that change state, and for reading if the
//! settings say so.
//!
//! The token is in `DATA/admin.token`, readable by the daemon's user alone, and is made at the
//! first start. Source: RFC 6750 §2.1 (the `Authorization` header only: a token in a form or a
//! query would end up in logs, and a browser would send it for a foreign page). For reading, the
//! token may also be sent as the password for which a browser asks its user (RFC 7617). Browsers
//! also send passwords with requests that foreign pages cause, although these pages do not see the
//! answers; so a password never permits a change. Where a page has a form that changes something, a person types the
//! token in for each change, and it is taken from a page of the same origin alone.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use disk::Disk;
use http::header::{HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use net::identity;
use settings::Table;
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::Error;
use crate::credentials::{bearer, password};

/// Name of the file in the data directory.
pub const FILE_NAME: &str = "admin.token";
/// Name of the file in the data directory with the address of the admin listener.
pub const ADDRESS_FILE_NAME: &str = "admin.address";
/// Name of the file in the data directory with the certificate (DER) of an admin listener that
/// speaks TLS. The commands recognize the daemon by it, even if the certificate files of the
/// settings are wrong.
pub const CERTIFICATE_FILE_NAME: &str = "admin.certificate";
/// Minimum number of characters of a token that an administrator writes.
pub const TOKEN_CHARS_MIN: usize = 32;
/// Permission bits: the owner may read and write.
const MODE: u32 = 0o600;

/// The token that state-changing requests must carry. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

impl AdminToken {
    /// Reads `data_dir/admin.token`, or makes it (mode 0600, whole or not at all). Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read or made, others may read it, or it holds no token: the message says
    /// what to do; the daemon should not start.
    pub fn load_or_create(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join(FILE_NAME);
        match Self::load(&path) {
            Err(Error::TokenFile { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                identity::place_secret(&path, &identity::random_secret()?)
                    .map_err(|source| Error::TokenFile { path: path.clone(), source })?;
                Self::load(&path)
            }
            other => other,
        }
    }

    /// Reads the token at `path`, for a client on the same machine. Blocks.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::TokenFile { path: path.to_owned(), source };
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Error::TokenMode { path: path.to_owned(), mode });
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let token = text.trim();
        if token.len() < TOKEN_CHARS_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::TokenText { path: path.to_owned(), min: TOKEN_CHARS_MIN });
        }
        Ok(Self(token.into()))
    }

    /// Returns the value of an `Authorization` header that carries the token.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns whether `headers` carry the token. The time does not depend on the position at which
    /// a wrong token differs.
    pub fn permits(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|it| it.ct_eq(self.0.as_bytes()).into())
    }

    /// Returns whether a form may change something: with the token in the header, as programs send it, or `typed` into a
    /// page of this listener.
    pub fn permits_form(&self, headers: &HeaderMap, typed: &str) -> bool {
        let is_typed = || is_from_here(headers) && typed.as_bytes().ct_eq(self.0.as_bytes()).into();
        self.permits(headers) || is_typed()
    }

    /// Returns whether `headers` carry the token as a password, whatever the user's name is.
    fn is_password_of(&self, headers: &HeaderMap) -> bool {
        password(headers).is_some_and(|it| it.ct_eq(self.0.as_bytes()).into())
    }
}

/// Returns whether a browser says that a request is of a page of the host that it asks.
///
/// Source: RFC 6454 §7 (`Origin`).
pub fn is_from_here(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
    let of_both = || {
        let origin = Url::parse(origin.to_str().ok()?).ok()?;
        let host = headers.get(HOST)?.to_str().ok()?;
        let here = Url::parse(&format!("{}://{host}/", origin.scheme())).ok()?;
        Some(origin.origin() == here.origin())
    };
    of_both().unwrap_or(false)
}

/// Condition for reading at the admin listener: pages, status, metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminRead {
    /// No condition: every client that reaches the listener may read, so every user of this machine
    /// may.
    #[default]
    Local,
    /// The token.
    Token,
}

impl AdminRead {
    /// Reads the setting `admin_read`.
    pub fn read(table: &Table<'_>) -> Self {
        match table.choice("admin_read", &["local", "token"]) {
            Some("token") => Self::Token,
            Some(_) | None => Self::Local,
        }
    }
}

/// The rights at an admin listener.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The token that permits everything.
    pub token: AdminToken,
    /// The condition for reading.
    pub read: AdminRead,
}

impl Guard {
    /// Returns the refusal of a request; `None` permits it.
    fn refusal(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_open = self.read == AdminRead::Local || matches!(path, "/healthz" | "/readyz");
        if self.token.permits(headers) || reads && (is_open || self.token.is_password_of(headers)) {
            return None;
        }
        let message = if reads {
            "reading this needs the token of DATA/admin.token: as `Authorization: Bearer TOKEN`, or in a \
             browser as the password, with any name"
        } else {
            "this request changes state: it needs the header `Authorization: Bearer TOKEN` with the token of \
             DATA/admin.token"
        };
        let body = axum::Json(serde_json::json!({ "error": { "message": message } }));
        let mut response = (StatusCode::UNAUTHORIZED, body).into_response();
        // A header each: Chromium reads a list of challenges as none.
        let basic =
            r#"Basic realm="the token of DATA/admin.token, with any name", charset="UTF-8""#;
        for challenge in [reads.then_some(basic), Some("Bearer")].into_iter().flatten() {
            response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        Some(response)
    }
}

/// Address of an admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAddress {
    /// The socket's address.
    pub address: SocketAddr,
    /// Whether it speaks TLS. If so, [`CERTIFICATE_FILE_NAME`] holds the certificate that it shows.
    pub is_secure: bool,
}

impl AdminAddress {
    /// Writes the address and the id of this process to `data_dir/admin.address`, readable by its
    /// owner alone. Commands that get the data directory find the daemon by it. Blocks.
    pub fn write(&self, data_dir: &Path) -> Result<(), Error> {
        let path = data_dir.join(ADDRESS_FILE_NAME);
        let failed = |source| Error::AddressFile { path: path.clone(), source };
        let new = path.with_extension("address.new");
        // A file left by an interrupted start may have another mode.
        let _ = fs::remove_file(&new);
        let tls = if self.is_secure { " tls" } else { "" };
        let (address, process) = (self.address, std::process::id());
        let line = format!("{address} {process}{tls}\n");
        Disk::System.replace(&path, &new, MODE, line.as_bytes()).map_err(failed).map(drop)
    }

    /// Reads the address that [`write`](Self::write) wrote, and the id of the process. That process
    /// may have ended, and another program may listen there now: send the token only after you know
    /// that the process runs. Blocks. Fails if there is no such file, or it holds no address.
    pub fn read(data_dir: &Path) -> Result<(Self, u32), Error> {
        let path = data_dir.join(ADDRESS_FILE_NAME);
        let failed = |source| Error::AddressFile { path: path.clone(), source };
        let text = fs::read_to_string(&path).map_err(failed)?;
        let wrong = || failed(io::Error::new(io::ErrorKind::InvalidData, "it holds no address"));
        let mut words = text.trim().splitn(3, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let (address, process) = (word()?, word()?);
        let is_secure = words.next() == Some("tls");
        let address = address.parse().map_err(|_error| wrong())?;
        Ok((Self { address, is_secure }, process.parse().map_err(|_error| wrong())?))
    }
}

/// Passes on requests that the [`Guard`] permits; answers others with 401.
///
/// Use it as `router.layer(axum::middleware::from_fn_with_state(guard, auth::guard))`.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.refusal(request.method(), request.uri().path(), request.headers()) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http::HeaderValue;
    use http::header::AUTHORIZATION;
    use tower::ServiceExt as _;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_token_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let made = AdminToken::load_or_create(dir.path()).unwrap();
        let path = dir.path().join(FILE_NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        let again = AdminToken::load_or_create(dir.path()).unwrap();
        assert!(again.permits(&headers(&made.authorization())));
        assert_eq!(fs::read_to_string(&path).unwrap().trim().len(), 64);
        assert!(!format!("{made:?}").contains(&*made.0));
    }

    #[test]
    fn simultaneous_starts_agree_on_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let tokens: Vec<_> = std::thread::scope(|scope| {
            let start = || scope.spawn(|| AdminToken::load_or_create(dir.path()).unwrap());
            let handles: Vec<_> = std::iter::repeat_with(start).take(8).collect();
            handles.into_iter().map(|it| it.join().unwrap().0).collect()
        });
        assert!(tokens.iter().all(|it| *it == tokens[0]));
    }

    #[test]
    fn bad_files_are_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let check = |text: &str, mode: u32, advice: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let message = AdminToken::load_or_create(dir.path()).unwrap_err().to_string();
            assert!(message.contains(advice) && message.contains(FILE_NAME), "{message}");
        };
        check(&"x".repeat(64), 0o644, "chmod 600");
        check("short", 0o600, "delete the file");
        check(&"ü".repeat(64), 0o600, "delete the file");
        let missing = AdminToken::load_or_create(&dir.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("check the folder"), "{missing}");
    }

    #[test]
    fn an_address_is_read_with_its_process() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AdminAddress::read(dir.path()).is_err());
        let address = "127.0.0.1:9500".parse().unwrap();
        let mut written = AdminAddress { address, is_secure: false };
        // An old file may be readable by others.
        fs::write(dir.path().join("admin.address.new"), "").unwrap();
        written.write(dir.path()).unwrap();
        let path = dir.path().join(ADDRESS_FILE_NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        let ours = std::process::id();
        assert_eq!(AdminAddress::read(dir.path()).unwrap(), (written.clone(), ours));
        written.is_secure = true;
        written.write(dir.path()).unwrap();
        assert_eq!(AdminAddress::read(dir.path()).unwrap(), (written, ours));
        fs::write(&path, "127.0.0.1:9500\n").unwrap();
        assert!(AdminAddress::read(dir.path()).is_err());
    }

    #[test]
    fn only_the_page_of_this_host_is_from_here() {
        let check = |origins: &[&str], host: &str, expected: bool| {
            let origins = origins.iter().map(|it| (ORIGIN, HeaderValue::from_str(it).unwrap()));
            let host = (HOST, HeaderValue::from_str(host).unwrap());
            let headers: HeaderMap = origins.chain([host]).collect();
            assert_eq!(is_from_here(&headers), expected, "{headers:?}");
        };
        let here = "127.0.0.1:9501";
        check(&["http://127.0.0.1:9501"], here, true);
        check(&["https://broker.example"], "broker.example", true);
        check(&["http://127.0.0.1:9502"], here, false);
        check(&["http://localhost:9501"], here, false);
        check(&["https://127.0.0.1.example.org:9501"], here, false);
        check(&["null"], here, false);
        check(&[""], here, false);
        check(&["data:,x"], here, false);
        check(&["http://127.0.0.1:9501", "http://127.0.0.1:9501"], here, false);
        check(&[], here, false);
        check(&["http://127.0.0.1:9501"], "a b", false);
    }

    #[test]
    fn a_form_needs_the_token_and_a_page_of_this_host() {
        let token = AdminToken("a".repeat(32).into());
        let of = |origin: Option<&str>| {
            let origin = origin.map(|it| (ORIGIN, HeaderValue::from_str(it).unwrap()));
            let host = (HOST, HeaderValue::from_static("127.0.0.1:9501"));
            origin.into_iter().chain([host]).collect::<HeaderMap>()
        };
        let here = of(Some("http://127.0.0.1:9501"));
        assert!(token.permits_form(&here, &"a".repeat(32)));
        for (headers, typed) in [
            (here, "a".repeat(31)),
            (of(None), "a".repeat(32)),
            (of(Some("http://evil.example")), "a".repeat(32)),
        ] {
            assert!(!token.permits_form(&headers, &typed), "{headers:?} {typed}");
        }
        assert!(token.permits_form(&headers(&token.authorization()), ""));
    }

    #[test]
    fn only_the_token_is_permitted() {
        let token = AdminToken("a".repeat(32).into());
        assert!(token.permits(&headers(&format!("bearer {}", "a".repeat(32)))));
        let wrong = ["", "Bearer", "Bearer ", "Basic aaaa"].map(str::to_owned);
        let near = [31, 33].map(|n| format!("Bearer {}", "a".repeat(n)));
        for value in wrong.iter().chain(&near) {
            assert!(!token.permits(&headers(value)), "{value:?}");
        }
        assert!(!token.permits(&HeaderMap::new()));
        let mut twice = headers(&token.authorization());
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert!(!token.permits(&twice), "two headers are ambiguous");
    }

    #[tokio::test]
    async fn reading_follows_the_setting_and_changing_needs_the_token() {
        let token = AdminToken("a".repeat(32).into());
        let check = async |read, method: Method, path: &str, authorization: &str, expected: u16| {
            let guard = Guard { token: token.clone(), read };
            let layer = axum::middleware::from_fn_with_state(guard, super::guard);
            let route = || get(|| async {}).post(|| async {});
            let router = Router::new().route("/", route()).route("/readyz", route()).layer(layer);
            let request = http::Request::builder().method(method).uri(path);
            let request = request.header(AUTHORIZATION, authorization).body(Body::empty()).unwrap();
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected, "{read:?} {path} {authorization}");
            let mut challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            assert_eq!(
                challenges.any(|it| it == "Bearer"),
                expected == 401,
                "in a header of its own"
            );
        };
        // `any:aaa…a`, and `any:aaa…b`.
        let basic = |last: &str| format!("Basic YW55OmFh{}{last}", "YWFh".repeat(9));
        let (password, other) = (basic("YWFh"), basic("YWFi"));
        let (bearer, get, post) = (token.authorization(), Method::GET, Method::POST);
        for read in [AdminRead::Local, AdminRead::Token] {
            let free = if read == AdminRead::Local { 200 } else { 401 };
            check(read, get.clone(), "/", "x", free).await;
            check(read, get.clone(), "/", &other, free).await;
            check(read, Method::HEAD, "/", "Bearer x", free).await;
            check(read, get.clone(), "/", &password, 200).await;
            check(read, get.clone(), "/", &bearer, 200).await;
            check(read, get.clone(), "/readyz", "x", 200).await;
            check(read, post.clone(), "/", "x", 401).await;
            check(read, post.clone(), "/readyz", "x", 401).await;
            // A browser sends the password for foreign pages.
            check(read, post.clone(), "/", &password, 401).await;
            check(read, post.clone(), "/", &bearer, 200).await;
            check(read, Method::DELETE, "/", "Bearer x", 401).await;
        }
    }
}
