//! What the users of a daemon's listeners share: what can be asked of them while it runs, and changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use disk::Disk;
use net::shutdown::Shutdown;
use net::tally::Tally;
use net::tls;
use serde::{Deserialize, Serialize};

use crate::access::Thing;
use crate::auth::CERTIFICATE_FILE_NAME;
use crate::gate::{Gate, Visits};
use crate::metrics::Sample;
use crate::overview::Trouble;
use crate::{Error, Settings};

/// How often the files of certificates are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What is the same for all users of a daemon's listeners. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Control {
    pub(crate) gate: Gate,
    pub(crate) tls: Option<tls::Server>,
    /// What peers of the public listener do.
    pub(crate) tally: Tally,
    pub(crate) calling: net::client::Settings,
    /// Where commands look for the certificate that the administration listener shows.
    shown: Option<PathBuf>,
}

/// What a daemon says of its listeners in its status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// The URL that others reach the public listener by, where the settings say one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// What peers of the public listener have done since the start, by event: `accepted`, and those that an
    /// administrator wants to know of (`crowding`, `malformed`, `refused`, `shortage`, `slow`, `waited`).
    pub listener: BTreeMap<String, u64>,
    /// Who asked so often for what only known consumers may have, by name.
    #[serde(default)]
    pub access: BTreeMap<String, Visits>,
    /// What is wrong with the files of certificates, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_problem: Option<String>,
}

impl Listening {
    /// The samples of it.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let help = "What peers of the public listener did, or what was done to them.";
        let events = self.listener.iter().map(move |(event, count)| {
            Sample::counter("harvest_http_events_total", help, *count as f64).with("event", event)
        });
        events.chain(crate::gate::samples(&self.access))
    }

    /// What needs an administrator.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> + '_ {
        self.tls_problem.iter().map(|it| Trouble::new("TLS", it.clone()))
    }
}

impl Control {
    /// Reads what `settings` name.
    ///
    /// # Errors
    ///
    /// A certificate cannot be used: the message says which and why.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        // Small files, before there is anybody to keep waiting.
        let tls = settings.tls.clone().map(tls::Server::open).transpose()?;
        let mut extra_roots = Vec::new();
        for path in &settings.trust {
            extra_roots.append(&mut tls::certificates(path)?);
        }
        let contact = settings.base_url.as_ref().map(ToString::to_string);
        let calling = net::client::Settings { contact, extra_roots, ..Default::default() };
        let gate = Gate::new(settings.access.clone());
        let shown = settings.is_admin_secure().then(|| settings.data.join(CERTIFICATE_FILE_NAME));
        Ok(Self { gate, tls, tally: Tally::default(), calling, shown })
    }

    /// Puts in force what of `settings` can be while the daemon runs; the rest is what
    /// [`Settings::differences`] names.
    pub fn reload(&self, settings: &Settings) {
        self.gate.set(settings.access.clone());
    }

    /// Whether the consumer of that name, or whoever is nobody known, may have `thing`.
    pub fn may(&self, consumer: Option<&str>, thing: Thing) -> bool {
        self.gate.may(consumer, thing)
    }

    /// Returns how others are called: in whose name, and whom to trust.
    pub fn calling(&self) -> net::client::Settings {
        self.calling.clone()
    }

    /// Returns what there is to say of the listeners.
    pub fn listening(&self) -> Listening {
        let counts = self.tally.counts();
        Listening {
            base_url: self.calling.contact.clone(),
            listener: counts.map(|(event, count)| (event.to_owned(), count)).into(),
            access: self.gate.visits(),
            tls_problem: self.tls.as_ref().and_then(tls::Server::problem),
        }
    }

    /// Looks at the files of certificates until `stop` starts.
    pub async fn keep(&self, stop: &Shutdown) {
        let mut wait = Duration::ZERO;
        while let Some(tls) = self.tls.clone() {
            tokio::select! {
                () = stop.started() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let (shown, is_first) = (self.shown.clone(), wait.is_zero());
            wait = LOOK_EVERY;
            let looked = tokio::task::spawn_blocking(move || {
                let is_new = tls.refresh();
                if let Some(path) = shown.filter(|_| is_new || is_first) {
                    keep_shown(&path, &tls.shown());
                }
                (is_new, tls.problem())
            });
            let looked = looked.await;
            match looked {
                Ok((true, None)) => tracing::info!("new certificate in use"),
                Ok((true, Some(problem))) => tracing::warn!("{problem}"),
                Ok((false, _)) => {}
                Err(error) => tracing::error!(%error, "the certificates cannot be looked at"),
            }
        }
    }
}

/// Writes the certificate for the commands. Without it they do not trust the listener, which nothing else needs.
fn keep_shown(path: &Path, shown: &[u8]) {
    if let Err(error) = Disk::System.replace(path, &path.with_extension("new"), disk::MODE, shown) {
        tracing::warn!(path = %path.display(), %error, "the commands will not know the certificate");
    }
}
