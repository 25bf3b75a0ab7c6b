//! Asking back: reads the description at an announced address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daemon::announce::Announcement;
use daemon::describe;
use net::client::{Client, Request, Settings, Timeouts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::proof::BYTES_MAX;

/// Time that a daemon has to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of requests at a time to servers that are known, and to strangers.
const KNOWN_MAX: usize = 64;
const STRANGERS_MAX: usize = 32;
/// Maximum number of requests at a time on behalf of one address.
const OF_ONE_MAX: usize = 4;

/// What asks.
#[derive(Debug)]
pub(super) struct Asking {
    client: Client,
    allow_private: bool,
    known: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    by_address: ByAddress,
}

/// Number of questions under way by the address that asked for them.
type ByAddress = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// The right to ask now.
#[derive(Debug)]
pub(super) struct Permit {
    _permit: OwnedSemaphorePermit,
    of: Option<(ByAddress, IpAddr)>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some((by_address, address)) = &self.of else { return };
        let mut by_address = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(address);
            }
        }
    }
}

impl Asking {
    pub(super) fn new(settings: Settings, allow_private: bool) -> Self {
        let timeouts = Timeouts { total: Some(ANSWER), ..settings.timeouts };
        let settings = Settings {
            timeouts,
            response_bytes_max: BYTES_MAX,
            connections_max: KNOWN_MAX + STRANGERS_MAX,
            ..settings
        };
        Self {
            client: Client::new(settings),
            allow_private,
            known: Arc::new(Semaphore::new(KNOWN_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_MAX)),
            by_address: Arc::default(),
        }
    }

    /// Returns the right to ask for somebody at an address; `None`: too many are asked for at present. For a known
    /// server it waits.
    pub(super) async fn permit(&self, address: IpAddr, is_known: bool) -> Option<Permit> {
        if is_known {
            let permit = Arc::clone(&self.known).acquire_owned().await.ok()?;
            return Some(Permit { _permit: permit, of: None });
        }
        let permit = Arc::clone(&self.strangers).try_acquire_owned().ok()?;
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if OF_ONE_MAX <= *count {
            return None;
        }
        *count += 1;
        Some(Permit { _permit: permit, of: Some((Arc::clone(&self.by_address), address)) })
    }

    /// Returns the description at an announced address, with its signature, as they were served; the error says in words
    /// why there is none.
    pub(super) async fn ask(
        &self,
        announcement: &Announcement,
    ) -> Result<(Vec<u8>, String), String> {
        let url = well_known(&announcement.base_url)?;
        let request =
            Request { keeps_redirect: true, ..Request::get(url).allow_private(self.allow_private) };
        let response = self.client.send(request).await.map_err(|it| self.advised(&it))?;
        if response.status != http::StatusCode::OK {
            return Err(format!("its {} answers {}", describe::PATH, response.status));
        }
        let signature =
            response.header(describe::SIGNATURE.as_str()).unwrap_or_default().to_owned();
        let bytes = response.bytes(BYTES_MAX).await.map_err(|it| it.to_string())?;
        Ok((bytes.to_vec(), signature))
    }

    fn advised(&self, error: &net::Error) -> String {
        let is_private =
            matches!(error, net::Error::Refused { .. } | net::Error::PrivateName { .. });
        match is_private && !self.allow_private {
            true => {
                "its address is in a private network, which this registry does not ask".to_owned()
            }
            false => format!("it cannot be asked: {error}"),
        }
    }
}

/// Returns the address of the description of a daemon at `base`.
fn well_known(base: &Url) -> Result<Url, String> {
    let path = describe::PATH.trim_start_matches('/');
    base.join(path).map_err(|error| format!("{base} is no address: {error}"))
}
