//! Run-time control of a daemon's listeners: their status, settings that change while they serve, and what tells
//! others of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use disk::Disk;
use net::shutdown::Shutdown;
use net::tally::Tally;
use net::tls;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::access::Resource;
use crate::announce::{Announced, Announcing, Sign};
use crate::auth::CERTIFICATE_FILE_NAME;
use crate::describe::{Describer, Facts};
use crate::gate::{Gate, Visits};
use crate::metrics::Sample;
use crate::overview::Trouble;
use crate::{Error, Settings};

/// Time between two checks of the certificate files.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// State and settings of a daemon's listeners. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Control {
    pub(crate) gate: Gate,
    pub(crate) tls: Option<tls::Server>,
    /// Counters of the public listener's events.
    pub(crate) tally: Tally,
    pub(crate) client: net::client::Settings,
    pub(crate) announcing: Announcing,
    /// The file from which commands take the certificate of the administration listener; `None` if
    /// the listener does not speak TLS.
    for_commands: Option<PathBuf>,
}

/// Status of a daemon's listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerStatus {
    /// The URL of the daemon for others, if the settings give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Number of events of the public listener since the start, by name: `accepted`, `crowding`,
    /// `malformed`, `refused`, `shortage`, `slow` and `waited`.
    pub listener: BTreeMap<String, u64>,
    /// Requests for resources of known consumers, and those refused by address, by consumer.
    #[serde(default)]
    pub access: BTreeMap<String, Visits>,
    /// How it goes with the registries of the settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<Announced>,
    /// The fault of the certificate files, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_problem: Option<String>,
}

impl ListenerStatus {
    /// Returns the samples of the status.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let help = "Events of peers of the public listener.";
        let events = self.listener.iter().map(move |(event, count)| {
            Sample::counter("harvest_http_events_total", help, *count as f64).with("event", event)
        });
        events.chain(crate::gate::samples(&self.access))
    }

    /// Returns the troubles that need an administrator.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> + '_ {
        let registries = self.registries.iter().flat_map(|it| {
            let problem = it.problem.as_ref().map(|problem| format!("{}: {problem}", it.registry));
            let all = problem.into_iter().chain(it.others.iter().cloned());
            all.map(|it| Trouble::new("registry", it))
        });
        self.tls_problem.iter().map(|it| Trouble::new("TLS", it.clone())).chain(registries)
    }
}

impl Control {
    /// Reads the certificate files that `settings` name. Fails if one cannot be used; the message
    /// says which and why.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        // Blocking is harmless: the files are small, and nobody waits yet.
        let tls = settings.tls.clone().map(tls::Server::open).transpose()?;
        let mut extra_roots = Vec::new();
        for path in &settings.trust {
            extra_roots.append(&mut tls::certificates(path)?);
        }
        let contact = settings.base_url.as_ref().map(ToString::to_string);
        let client = net::client::Settings { contact, extra_roots, ..Default::default() };
        let gate = Gate::new(settings.access.clone());
        let for_commands =
            settings.is_admin_secure().then(|| settings.data.join(CERTIFICATE_FILE_NAME));
        let announcing = Announcing::new(settings, &client);
        Ok(Self { gate, tls, tally: Tally::default(), client, announcing, for_commands })
    }

    /// Puts new access rights in force. [`Settings::differences`] names the settings that cannot
    /// change while the daemon runs.
    pub fn reload(&self, settings: &Settings) {
        self.gate.set(settings.access.clone());
    }

    /// Returns whether the consumer of that name may have `resource`; `None` is an unknown client.
    /// Addresses are not considered.
    pub fn may(&self, consumer: Option<&str>, resource: Resource) -> bool {
        self.gate.may(consumer, resource)
    }

    /// Returns the settings of the daemon's client: its contact, and the trusted certificates.
    pub fn client_settings(&self) -> net::client::Settings {
        self.client.clone()
    }

    /// Returns the status of the listeners.
    pub fn listening(&self) -> ListenerStatus {
        let counts = self.tally.counts();
        ListenerStatus {
            base_url: self.client.contact.clone(),
            listener: counts.map(|(event, count)| (event.to_owned(), count)).into(),
            access: self.gate.visits(),
            registries: self.announcing.status(),
            tls_problem: self.tls.as_ref().and_then(tls::Server::problem),
        }
    }

    /// Returns the route of the daemon's description, which its registries read. `look` collects the facts, and may
    /// block for a moment; `sign` signs with its key.
    pub fn describe(
        &self,
        describer: &Describer,
        look: impl Fn() -> Facts + Clone + Send + Sync + 'static,
        sign: impl Fn(&[u8]) -> String + Send + Sync + 'static,
    ) -> Router {
        let (sign, announcing): (Sign, _) = (Arc::new(sign), self.announcing.clone());
        let look = move || {
            let facts = look();
            let base_url = facts.base_url.clone().or_else(|| announcing.address());
            Facts { base_url, ..facts }
        };
        self.announcing.is_described_by(describer, Arc::new(look.clone()), Arc::clone(&sign));
        describer.route(look, sign)
    }

    /// Returns the address at which others reach the daemon; `None`: nothing says which.
    pub fn address(&self) -> Option<Url> {
        self.announcing.address()
    }

    /// Has the registries told at once that the daemon's description is another one.
    pub fn announce_again(&self) {
        self.announcing.again();
    }

    /// Announces the daemon to its registries, puts new certificate files in use, and writes the certificate for the
    /// commands, until `stop` starts.
    pub async fn keep(&self, stop: &Shutdown) {
        tokio::join!(self.announcing.run(stop), self.keep_certificates(stop));
    }

    async fn keep_certificates(&self, stop: &Shutdown) {
        let mut wait = Duration::ZERO;
        while let Some(tls) = self.tls.clone() {
            tokio::select! {
                () = stop.started() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let (for_commands, is_first) = (self.for_commands.clone(), wait.is_zero());
            wait = LOOK_EVERY;
            let looked = tokio::task::spawn_blocking(move || {
                let is_new = tls.refresh();
                if let Some(path) = for_commands.filter(|_| is_new || is_first) {
                    write_certificate(&path, &tls.certificate());
                }
                (is_new, tls.problem())
            });
            let looked = looked.await;
            match looked {
                Ok((true, None)) => tracing::info!("new certificate in use"),
                Ok((true, Some(problem))) => tracing::warn!("{problem}"),
                Ok((false, _)) => {}
                Err(error) => tracing::error!(%error, "cannot read the certificates"),
            }
        }
    }
}

/// Writes the certificate for the commands. If that fails, only the commands are affected: they
/// cannot connect, since they do not trust the listener.
fn write_certificate(path: &Path, bytes: &[u8]) {
    if let Err(error) = Disk::System.replace(path, &path.with_extension("new"), disk::MODE, bytes) {
        tracing::warn!(path = %path.display(), %error, "commands will not trust the listener");
    }
}
