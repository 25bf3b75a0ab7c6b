//! Realms: which credentials a host asks for, and where they are sent unasked from then on.
//!
//! Source: RFC 9110 §11 (challenges), RFC 7617 §2.2 (what a realm covers).
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::{HeaderMap, StatusCode, header};
use http_auth::parse_challenges;
use net::client::Credentials;
use url::Url;

use crate::lock::lock;
use crate::spec::Realm;

/// Maximum number of folders that are remembered; of others, the host is let ask each time.
const FOLDERS_MAX: usize = 1_000;

/// What a pass has learned of the realms of its root.
#[derive(Debug, Default)]
pub(super) struct Realms {
    /// The realm, by its place in the settings, of all that is in a folder: a URL that ends with `/`.
    folders: Mutex<BTreeMap<String, usize>>,
}

impl Realms {
    /// Returns what is sent with a request for `url` because another in its folder was asked for it; that of the
    /// deepest such folder.
    pub(super) fn known(&self, realms: &[Realm], url: &Url) -> Option<Credentials> {
        if realms.is_empty() {
            return None;
        }
        let (mut folder, folders) = (folder(url)?, lock(&self.folders));
        loop {
            if let Some(at) = folders.get(&folder) {
                return realms.get(*at).map(|it| it.proof.credentials());
            }
            folder.pop();
            folder.truncate(folder.rfind('/')? + 1);
        }
    }

    /// Returns what the host asks for by this answer for `url`, to be sent once; `None`: nothing that there is, or it
    /// was sent already.
    pub(super) fn asked(
        &self,
        realms: &[Realm],
        url: &Url,
        (status, headers): (StatusCode, &HeaderMap),
        sent: &Credentials,
    ) -> Option<Credentials> {
        if status != StatusCode::UNAUTHORIZED || realms.is_empty() {
            return None;
        }
        let at = headers.get_all(header::WWW_AUTHENTICATE).iter().find_map(|line| {
            let challenges = parse_challenges(line.to_str().ok()?).ok()?;
            challenges.iter().find_map(|challenge| {
                let named =
                    challenge.params.iter().find(|it| it.0.eq_ignore_ascii_case("realm"))?;
                let name = named.1.to_unescaped();
                realms.iter().position(|it| {
                    it.url.origin() == url.origin()
                        && it.name == name
                        && challenge.scheme.eq_ignore_ascii_case(it.proof.scheme())
                })
            })
        })?;
        let credentials = realms.get(at)?.proof.credentials();
        if (&credentials.login, &credentials.token) == (&sent.login, &sent.token) {
            return None;
        }
        let mut folders = lock(&self.folders);
        if let Some(folder) = folder(url).filter(|_| folders.len() < FOLDERS_MAX) {
            folders.insert(folder, at);
        }
        Some(credentials)
    }
}

/// Returns the folder of a URL, with its origin; `None` if it has none.
fn folder(url: &Url) -> Option<String> {
    let (path, origin) = (url.path(), url.origin());
    let end = path.rfind('/')?;
    origin.is_tuple().then(|| format!("{}{}", origin.ascii_serialization(), &path[..=end]))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use net::fetch::Login;

    use super::*;
    use crate::spec::Proof;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn realm(host: &str, name: &str, user: &str) -> Realm {
        let login = Login { name: user.to_owned(), password: "p".to_owned() };
        Realm { url: url(host), name: name.to_owned(), proof: Proof::Login(login) }
    }

    fn name(credentials: Option<Credentials>) -> Option<String> {
        Some(credentials?.login?.name)
    }

    #[test]
    fn a_realm_is_answered_where_it_is_and_covers_the_folder() {
        let all = [
            realm("http://h/", "Members", "anna"),
            realm("http://h/", "a \"b\"", "bert"),
            realm("http://o/", "Members", "carl"),
        ];
        let realms = Realms::default();
        let ask = |at: &str, status: u16, line: &'static str, sent: &Credentials| {
            let headers = [(header::WWW_AUTHENTICATE, HeaderValue::from_static(line))];
            let (status, headers) = (StatusCode::from_u16(status).unwrap(), headers.into_iter());
            name(realms.asked(&all, &url(at), (status, &headers.collect()), sent))
        };
        let none = Credentials::default();
        let members = "Digest realm=\"x\", nonce=\"y\", Basic realm=\"Members\", charset=\"UTF-8\"";
        assert_eq!(ask("http://h/m/a", 200, members, &none), None);
        assert_eq!(ask("http://h:81/m/a", 401, members, &none), None);
        assert_eq!(ask("http://h/m/a", 401, "Basic realm=\"Others\"", &none), None);
        assert_eq!(ask("http://h/m/a", 401, "Bearer realm=\"Members\"", &none), None);
        assert_eq!(ask("http://h/m/a", 401, "Basic realm=", &none), None);
        assert_eq!(name(realms.known(&all, &url("http://h/m/a"))), None);

        assert_eq!(ask("http://h/m/a", 401, members, &none).unwrap(), "anna");
        assert_eq!(
            ask("http://h/m/n/b?c/d", 401, "basic Realm=\"a \\\"b\\\"\"", &none).unwrap(),
            "bert"
        );
        assert_eq!(ask("http://o/a", 401, members, &none).unwrap(), "carl");
        let known = |at: &str| name(realms.known(&all, &url(at)));
        assert_eq!(known("http://h/m/z").unwrap(), "anna");
        assert_eq!(known("http://h/m/n/").unwrap(), "bert");
        assert_eq!(known("http://h/m/o/p/q").unwrap(), "anna");
        assert_eq!(
            (known("http://h/"), known("http://h/mm"), known("https://h/m/a")),
            (None, None, None)
        );

        // Who is refused with it is not asked to send it again.
        let sent = realms.known(&all, &url("http://h/m/z")).unwrap();
        assert_eq!(ask("http://h/m/z", 401, members, &sent), None);
    }
}
