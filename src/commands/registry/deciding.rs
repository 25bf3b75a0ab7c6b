//! `harvest registry approve` and `revoke`: an administrator decides which servers are listed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use daemon::auth::AdminToken;
use http::{HeaderValue, StatusCode, header};
use net::client::Request;
use net::host::HostPort;
use registry::answer::{Approved, Overview};
use url::{Position, Url};
use web::foreign::harmless;

use super::{address_of, admin_of};
use crate::{admin, output};

/// List a server that waits for approval, or that has another key now.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest registry approve -c registry.toml 0123456789abcdef
  ssh -L 9502:127.0.0.1:9502 registry.example       and then, on your own machine:
  harvest registry approve --registry http://127.0.0.1:9502/ --token-file admin.token 0123456789abcdef")]
pub(crate) struct Approve {
    #[command(flatten)]
    administration: Administration,
    /// The server's id.
    id: String,
    /// Its key; default: the one that is known, or else the only one that was refused.
    #[arg(long)]
    key: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// List a server no more, and refuse its announcements.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    administration: Administration,
    /// The server's id.
    id: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The administration of a registry. Where everybody asks the registry, nobody decides.
#[derive(Debug, clap::Args)]
struct Administration {
    /// The registry's settings file, on its machine.
    #[arg(short, long = "config", value_name = "FILE", required_unless_present = "registry")]
    config: Option<PathBuf>,
    /// The address of the registry's administration (its admin_listen), as this machine reaches it.
    #[arg(long, value_name = "URL", conflicts_with = "config", value_parser = address_of)]
    registry: Option<Url>,
    /// A file with the token of the administration, a copy of the registry's DATA/admin.token.
    #[arg(long, value_name = "FILE", requires = "registry")]
    token_file: Option<PathBuf>,
}

impl Administration {
    /// Sends a decision, and returns the answer.
    async fn post(&self, path: &str, query: &[(&str, Option<&str>)]) -> anyhow::Result<Vec<u8>> {
        match (&self.config, &self.registry) {
            (Some(config), _) => admin_of(config)?.post(path, query).await,
            (None, Some(at)) => self.post_to(at, path, query).await,
            (None, None) => bail!("name the registry's settings with -c FILE"),
        }
    }

    async fn post_to(
        &self,
        at: &Url,
        path: &str,
        query: &[(&str, Option<&str>)],
    ) -> anyhow::Result<Vec<u8>> {
        let Some(file) = &self.token_file else {
            bail!(
                "a decision needs the administration's token: name the settings with -c FILE on the registry's \
                 machine, or a copy of its DATA/admin.token with --token-file"
            );
        };
        let token = AdminToken::load(file)?;
        ensure_administration(at).await?;
        let mut url = at.join(path)?;
        let given = query.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        url.query_pairs_mut().extend_pairs(given);
        let mut value = HeaderValue::from_str(&token.authorization())?;
        value.set_sensitive(true);
        let request = Request::post(url, "").header(header::AUTHORIZATION, value);
        let (status, answer) = answer(Request { keeps_redirect: true, ..request }).await?;
        if status == StatusCode::UNAUTHORIZED {
            bail!("{} has not the token of the registry at {at}", file.display());
        }
        if !status.is_success() {
            let why = admin::failure_message(&answer);
            bail!("the registry at {at} answers {status}: {}", harmless(&why));
        }
        Ok(answer)
    }
}

async fn answer(request: Request) -> Result<(StatusCode, Vec<u8>), net::Error> {
    let response = admin::client().send(request).await?;
    let status = response.status;
    Ok((status, response.bytes(admin::ANSWER_BYTES_MAX).await?.to_vec()))
}

/// Checks that a registry's administration is at an address, before the token goes there, and that nobody reads it on its
/// way.
async fn ensure_administration(at: &Url) -> anyhow::Result<()> {
    let authority = &at[Position::BeforeHost..Position::AfterPort];
    let is_here = HostPort::parse(authority).is_some_and(|it| it.is_loopback());
    let advice = "decisions go to the registry's administration, which its own machine alone reaches unless its \
                  admin_listen says otherwise: name its settings there with -c FILE, or open a tunnel (ssh -L \
                  9502:127.0.0.1:9502 HOST) and name --registry http://127.0.0.1:9502/";
    if at.scheme() != "https" && !is_here {
        bail!("on the way to {at} others could read the token; {advice}");
    }
    let asked = answer(Request::get(at.join("servers")?)).await;
    let (status, answer) = asked
        .with_context(|| format!("no administration of a registry answers at {at}; {advice}"))?;
    // It may want the token for reading, too.
    let is_administration = serde_json::from_slice::<Overview>(&answer).is_ok();
    if status != StatusCode::UNAUTHORIZED && !is_administration {
        bail!("at {at} is no administration of a registry; {advice}");
    }
    Ok(())
}

pub(super) async fn approve(asked: Approve) -> anyhow::Result<ExitCode> {
    let Approve { administration, id, key, json } = asked;
    let decided = [("id", Some(&*id)), ("key", key.as_deref())];
    let answer = administration.post("servers/approve", &decided).await?;
    let Approved { key, url } = serde_json::from_slice(&answer)
        .context("the registry is of another version than this command")?;
    if json {
        let decided =
            serde_json::json!({ "id": id, "decision": "approved", "key": key, "url": url });
        return output::json(&decided);
    }
    let text =
        format!("{id} is approved at {url} with the key {key}: listed as soon as it answers");
    output::line(&harmless(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn revoke(asked: Revoke) -> anyhow::Result<ExitCode> {
    let Revoke { administration, id, json } = asked;
    administration.post("servers/revoke", &[("id", Some(&*id))]).await?;
    if json {
        return output::json(&serde_json::json!({ "id": id, "decision": "revoked" }));
    }
    output::line(&format!("{id} is revoked: its announcements are refused from now on"))?;
    Ok(ExitCode::SUCCESS)
}
