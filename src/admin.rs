//! Talks to a running daemon: its admin listener for status and commands, its public one for searches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use daemon::auth::{AdminToken, Whereabouts};
use http::{HeaderValue, StatusCode, header};
use net::client::{Client, Request, Settings, Timeouts};
use serde::de::DeserializeOwned;
use url::Url;

use crate::output;

/// Largest answer that a daemon gives here, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long a command may take: a pull that it waits for may be large.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// How long a purge may take, which writes all of a collection anew, or to publish or read a tree of millions of files.
const LONG_COMMAND_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// A client for whatever the user names, this machine included.
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

/// A daemon's admin listener.
#[derive(Debug)]
pub(crate) struct Admin {
    client: Client,
    /// The certificate that it shows, if it speaks TLS.
    pinned: Option<Vec<u8>>,
    base: Url,
    /// What it is, for messages: `broker`.
    what: &'static str,
    token: Result<AdminToken, daemon::Error>,
    /// What to do if it does not answer.
    advice: String,
}

impl Admin {
    /// The daemon of those settings.
    ///
    /// # Errors
    ///
    /// The settings leave the port to the system, so that nobody can know it.
    pub(crate) fn new(
        what: &'static str,
        Whereabouts { address: listen, is_secure }: &Whereabouts,
        data: &Path,
    ) -> anyhow::Result<Self> {
        if listen.port() == 0 {
            bail!("admin_listen has port 0: give it a port to talk to the {what}");
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
                "no {what} has said in {} which certificate it shows: start it",
                shown.display()
            )
        })?;
        // Without the token, commands are refused with a message of the daemon's own.
        let token = AdminToken::load(&data.join(daemon::auth::FILE_NAME));
        let advice = format!("start it with `harvest {what} run -c FILE`");
        let client = patient(COMMAND_TIMEOUT, pinned.clone());
        Ok(Self { client, pinned, base, what, token, advice })
    }

    /// Whichever daemon has the data folder `data` open, and listens `at`; it may take its time.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub(crate) fn of_data(at: &Whereabouts, data: &Path) -> anyhow::Result<Self> {
        let advice = "it may be starting or stopping: try again".to_owned();
        Ok(Self { advice, ..Self::new("daemon", at, data)?.patient() })
    }

    /// The same, which waits for an answer as long as that may take at the most.
    pub(crate) fn patient(self) -> Self {
        Self { client: patient(LONG_COMMAND_TIMEOUT, self.pinned.clone()), ..self }
    }

    /// Makes sure that there is a token for commands.
    ///
    /// # Errors
    ///
    /// It cannot be read, and why.
    pub(crate) fn may_command(&self) -> anyhow::Result<()> {
        match &self.token {
            Ok(_) => Ok(()),
            Err(error) => bail!("the {} wants its admin token: {error}", self.what),
        }
    }

    /// Asks for `path`; returns the JSON that the daemon answers.
    ///
    /// # Errors
    ///
    /// The daemon does not run, or it refuses.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        self.exchange(Request::get(self.base.join(path)?)).await
    }

    /// Commands `path`, with `query`; returns the JSON that the daemon answers.
    ///
    /// # Errors
    ///
    /// The daemon does not run, or it refuses.
    pub(crate) async fn post(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Vec<u8>> {
        let mut url = self.base.join(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(Request::post(url, "")).await
    }

    /// Prints an answer of the daemon: as JSON, or in the words that `say` finds.
    ///
    /// # Errors
    ///
    /// The answer is not what this version expects, or nobody reads what is printed.
    pub(crate) fn tell<T: DeserializeOwned>(
        &self,
        answer: &[u8],
        json: bool,
        say: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<ExitCode> {
        let other = || {
            let Self { what, base, .. } = self;
            format!("the {what} at {base} is of another version than this command")
        };
        if json {
            let value: serde_json::Value = serde_json::from_slice(answer).with_context(other)?;
            output::line(&serde_json::to_string_pretty(&value)?)?;
        } else {
            let said = say(&serde_json::from_slice(answer).with_context(other)?);
            output::line(&output::harmless(&said))?;
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
            format!("no {} answers at {}; {}", self.what, self.base, self.advice)
        })?;
        let status = response.status;
        let body = response.bytes(ANSWER_BYTES_MAX).await?;
        if status == StatusCode::UNAUTHORIZED {
            self.may_command()?;
        }
        if !status.is_success() {
            return Err(anyhow!("the {} answers {status}: {}", self.what, said(&body)));
        }
        Ok(body.to_vec())
    }
}

/// What a daemon says about a failure: the message of its JSON, or its text.
pub(crate) fn said(body: &[u8]) -> String {
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
    fn what_was_said_is_found_in_json_and_text() {
        for (body, expected) in [
            (r#"{"error":"no"}"#, "no"),
            (r#"{"error":{"message":"no","offset":1}}"#, "no"),
            ("no\n", "no"),
        ] {
            assert_eq!(said(body.as_bytes()), expected);
        }
    }

    #[test]
    fn a_daemon_that_listens_everywhere_is_asked_here() {
        let admin = |text: &str| {
            let at = Whereabouts { address: text.parse().unwrap(), is_secure: false };
            Admin::new("broker", &at, Path::new("/none"))
        };
        assert_eq!(admin("0.0.0.0:9501").unwrap().base.as_str(), "http://127.0.0.1:9501/");
        assert_eq!(admin("[::]:9501").unwrap().base.as_str(), "http://[::1]:9501/");
        assert!(admin("127.0.0.1:0").is_err());
    }
}
