//! The client of a daemon: its admin listener for status and commands, its public one for searches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use daemon::auth::{AdminAddress, AdminToken};
use http::{HeaderValue, StatusCode, header};
use net::client::{Client, Request, Settings, Timeouts};
use net::guard::Policy;
use serde::de::DeserializeOwned;
use url::Url;
use web::foreign::harmless;

use crate::output;

/// Largest answer that is accepted from a daemon, in bytes.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Time limit of a command: it may wait for a large pull.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Time limit of commands that rewrite a whole collection, or read a tree of millions of files.
const LONG_COMMAND_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Time for measuring how distant replicas are.
pub(crate) const MEASURING: Duration = Duration::from_secs(2);

/// Time limit of a replica if there is another one. A broker takes 10 s at most.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns a client for any host that the user names, this machine included.
pub(crate) fn client() -> Client {
    patient(COMMAND_TIMEOUT, None)
}

fn patient(header: Duration, pinned: Option<Vec<u8>>) -> Client {
    let timeouts = Timeouts { connect: Duration::from_secs(5), header, ..Timeouts::default() };
    Client::new(Settings {
        timeouts,
        allow_private: true,
        response_bytes_max: ANSWER_BYTES_MAX,
        pinned,
        ..Settings::default()
    })
}

/// Addresses of places that have the same, as an option or a variable of the environment has them: with spaces between
/// them, and perhaps around them.
#[derive(Clone, Debug)]
pub(crate) struct Places(Vec<Url>);

impl Places {
    /// Reads each of the addresses, at least one, by `read`.
    pub(crate) fn read(
        text: &str,
        read: impl Fn(&str) -> Result<Url, String>,
    ) -> Result<Self, String> {
        let urls = text.split_whitespace().map(read).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() { Err("no address".to_owned()) } else { Ok(Self(urls)) }
    }

    /// Returns the addresses of all of them.
    pub(crate) fn all(several: &[Self]) -> Vec<Url> {
        several.iter().flat_map(|it| it.0.clone()).collect()
    }
}

/// Asks the nearest of several places that have the same; if it gives no answer, the next one. Returns
/// who has answered, the status and the body. Fails as the last one does.
pub(crate) async fn ask_nearest(
    places: &[Url],
    address: impl Fn(&Url) -> anyhow::Result<Url>,
) -> anyhow::Result<(Url, StatusCode, Vec<u8>)> {
    let client = client();
    let places = client.nearest(places.to_vec(), Policy::AllowPrivate, MEASURING).await;
    let short = Timeouts { header: REPLICA_TIMEOUT, idle: REPLICA_TIMEOUT, ..client.timeouts() };
    for (left, place) in (0..places.len()).rev().zip(places) {
        let timeouts = (0 < left).then_some(short);
        let request = Request { timeouts, ..Request::get(address(&place)?) };
        let problem = match ask(&client, request).await {
            Err(error) if left == 0 => return Err(error.into()),
            Err(error) => error.to_string(),
            Ok((status, body)) if 0 < left && is_passing(status) => {
                format!("{status}: {}", failure_message(&body))
            }
            Ok((status, body)) => return Ok((place, status, body)),
        };
        let note = format!("note: {place} gives no answer, so another one is asked: {problem}");
        output::note(&harmless(&note));
    }
    bail!("nobody is named who could be asked")
}

async fn ask(client: &Client, request: Request) -> Result<(StatusCode, Vec<u8>), net::Error> {
    let response = client.send(request).await?;
    let status = response.status;
    Ok((status, response.bytes(ANSWER_BYTES_MAX).await?.to_vec()))
}

/// Returns whether another place may answer what this one does not.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Returns the addresses of places that have the same, for a message.
pub(crate) fn either(places: &[Url]) -> String {
    places.iter().map(Url::as_str).collect::<Vec<_>>().join(" or ")
}

/// A daemon's admin listener.
#[derive(Debug)]
pub(crate) struct Admin {
    client: Client,
    /// The daemon's certificate, if the listener uses TLS.
    pinned: Option<Vec<u8>>,
    base: Url,
    /// The kind of daemon, for messages: `broker`.
    kind: &'static str,
    token: Result<AdminToken, daemon::Error>,
    /// Advice for the message when the daemon does not answer.
    advice: String,
}

impl Admin {
    /// Returns the client for the daemon with these settings. Fails if the settings leave the port
    /// to the system, so that it is unknown here, or the daemon's certificate cannot be read.
    pub(crate) fn new(
        kind: &'static str,
        AdminAddress { address: listen, is_secure }: &AdminAddress,
        data: &Path,
    ) -> anyhow::Result<Self> {
        if listen.port() == 0 {
            bail!("admin_listen has port 0: give it a port to talk to the {kind}");
        }
        let ip = match listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let scheme = if *is_secure { "https" } else { "http" };
        let base = Url::parse(&format!("{scheme}://{}/", SocketAddr::new(ip, listen.port())))?;
        let shown = data.join(daemon::auth::CERTIFICATE_FILE_NAME);
        let pinned = is_secure.then(|| std::fs::read(&shown)).transpose();
        let pinned = pinned.with_context(|| {
            format!(
                "the {kind}'s certificate cannot be read from {}: start the {kind}",
                shown.display()
            )
        })?;
        // Without the token, the daemon refuses commands with a message of its own.
        let token = AdminToken::load(&data.join(daemon::auth::FILE_NAME));
        let advice = format!("start it with `harvest {kind} run -c FILE`");
        let client = patient(COMMAND_TIMEOUT, pinned.clone());
        Ok(Self { client, pinned, base, kind, token, advice })
    }

    /// Returns the patient client of the daemon that has `data` open; its admin listener is `at`.
    pub(crate) fn of_data(at: &AdminAddress, data: &Path) -> anyhow::Result<Self> {
        let advice = "it may be starting or stopping: try again".to_owned();
        Ok(Self { advice, ..Self::new("daemon", at, data)?.patient() })
    }

    /// Returns the same client with [`LONG_COMMAND_TIMEOUT`].
    pub(crate) fn patient(self) -> Self {
        Self { client: patient(LONG_COMMAND_TIMEOUT, self.pinned.clone()), ..self }
    }

    /// Checks that the token for commands was read.
    pub(crate) fn may_command(&self) -> anyhow::Result<()> {
        match &self.token {
            Ok(_) => Ok(()),
            Err(error) => bail!("the {} wants its admin token: {error}", self.kind),
        }
    }

    /// Requests `path` with GET; returns the daemon's answer in JSON. Fails if the daemon does not
    /// run, or refuses.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        self.exchange(Request::get(self.base.join(path)?)).await
    }

    /// Requests `path` with POST and those parameters of `query` that have a value; returns the
    /// daemon's answer in JSON.
    pub(crate) async fn post(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
    ) -> anyhow::Result<Vec<u8>> {
        let mut url = self.base.join(path)?;
        for (name, value) in query.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            url.query_pairs_mut().append_pair(name, value);
        }
        self.exchange(Request::post(url, "")).await
    }

    /// Prints an answer of the daemon: as JSON, or as `render` writes it for a person. Fails if the
    /// answer has not the form that this version expects, or standard output is closed.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        answer: &[u8],
        json: bool,
        render: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<ExitCode> {
        let other_version = || {
            let Self { kind, base, .. } = self;
            format!("the {kind} at {base} is of another version than this command")
        };
        if json {
            let value: serde_json::Value =
                serde_json::from_slice(answer).with_context(other_version)?;
            return output::json(&value);
        } else {
            let text = render(&serde_json::from_slice(answer).with_context(other_version)?);
            output::line(&harmless(&text))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn exchange(&self, mut request: Request) -> anyhow::Result<Vec<u8>> {
        if let Ok(token) = &self.token {
            let mut value = HeaderValue::from_str(&token.authorization())?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let response = self.client.send(request).await.with_context(|| {
            format!("no {} answers at {}; {}", self.kind, self.base, self.advice)
        })?;
        let status = response.status;
        let body = response.bytes(ANSWER_BYTES_MAX).await?;
        if status == StatusCode::UNAUTHORIZED {
            self.may_command()?;
        }
        if !status.is_success() {
            return Err(anyhow!("the {} answers {status}: {}", self.kind, failure_message(&body)));
        }
        Ok(body.to_vec())
    }
}

/// Returns a daemon's failure message: from its JSON, or else the first 500 letters of its text.
pub(crate) fn failure_message(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| {
        let error = json.get("error")?;
        error.as_str().or_else(|| error.get("message")?.as_str())
    });
    match message {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).trim().chars().take(500).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_with_any_space_between_them() {
        let read = |text: &str| {
            let one = |it: &str| Url::parse(it).map_err(|it| it.to_string());
            Places::read(text, one).map(|it| either(&Places::all(&[it])))
        };
        assert_eq!(read("http://a/").unwrap(), "http://a/");
        assert_eq!(read(" http://a/  http://b/\n").unwrap(), "http://a/ or http://b/");
        assert!(read("http://a/ b").is_err());
        assert_eq!(read(" ").unwrap_err(), "no address");
    }

    #[test]
    fn failure_messages_are_read_from_json_and_text() {
        for (body, expected) in [
            (r#"{"error":"no"}"#, "no"),
            (r#"{"error":{"message":"no","offset":1}}"#, "no"),
            ("no\n", "no"),
        ] {
            assert_eq!(failure_message(body.as_bytes()), expected);
        }
    }

    #[test]
    fn a_daemon_on_all_addresses_is_reached_at_localhost() {
        let admin = |text: &str| {
            let at = AdminAddress { address: text.parse().unwrap(), is_secure: false };
            Admin::new("broker", &at, Path::new("/none"))
        };
        assert_eq!(admin("0.0.0.0:9501").unwrap().base.as_str(), "http://127.0.0.1:9501/");
        assert_eq!(admin("[::]:9501").unwrap().base.as_str(), "http://[::1]:9501/");
        assert!(admin("127.0.0.1:0").is_err());
    }
}
