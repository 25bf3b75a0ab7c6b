//! Run-time control of a daemon's listeners: their status, and settings that change while they
//! serve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use disk::Disk;
use net::shutdown::Shutdown;
use net::tally::Tally;
use net::tls;
use serde::{Deserialize, Serialize};

use crate::access::Resource;
use crate::auth::CERTIFICATE_FILE_NAME;
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
        self.tls_problem.iter().map(|it| Trouble::new("TLS", it.clone()))
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
        Ok(Self { gate, tls, tally: Tally::default(), client, for_commands })
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
            tls_problem: self.tls.as_ref().and_then(tls::Server::problem),
        }
    }

    /// Puts new certificate files in use, and writes the certificate for the commands, until `stop`
    /// starts. Without TLS it returns at once.
    pub async fn keep(&self, stop: &Shutdown) {
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
