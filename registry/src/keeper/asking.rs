//! Asking back: reads the description at an announced address.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemon::announce::Announcement;
use daemon::describe;
use net::client::{Client, Request, Settings, Timeouts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use url::Url;

use super::locked;
use crate::proof::BYTES_MAX;
use crate::reach::Reach;

/// Time that a daemon has to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of requests at a time to servers that are known, and to strangers.
const KNOWN_MAX: usize = 64;
const STRANGERS_MAX: usize = 32;
/// Maximum number of requests at a time on behalf of one address.
const OF_ONE_MAX: usize = 4;
/// Time for which a server that is known waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// What asks.
#[derive(Debug)]
pub(super) struct Asking {
    client: Client,
    reach: Reach,
    known: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    under_way: Arc<Mutex<UnderWay>>,
}

/// The questions under way.
#[derive(Debug, Default)]
struct UnderWay {
    /// Their numbers by the stranger's address that asked for them.
    by_address: HashMap<IpAddr, usize>,
    /// The servers that are asked, by id and address: somebody else's address for an id is in nobody's way.
    servers: HashSet<(String, Url)>,
}

/// The right to ask a server now.
#[derive(Debug)]
pub(super) struct Permit {
    _begun: Begun,
    _turn: OwnedSemaphorePermit,
}

/// A question that is noted as under way.
#[derive(Debug)]
struct Begun {
    under_way: Arc<Mutex<UnderWay>>,
    server: (String, Url),
    stranger: Option<IpAddr>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut under_way = locked(&self.under_way);
        under_way.servers.remove(&self.server);
        let Some(address) = self.stranger else { return };
        if let Some(count) = under_way.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                under_way.by_address.remove(&address);
            }
        }
    }
}

impl Asking {
    pub(super) fn new(settings: Settings, reach: Reach) -> Self {
        let timeouts = Timeouts { total: Some(ANSWER), ..settings.timeouts };
        let settings = Settings {
            timeouts,
            response_bytes_max: BYTES_MAX,
            connections_max: KNOWN_MAX + STRANGERS_MAX,
            ..settings
        };
        Self {
            client: Client::new(settings),
            reach,
            known: Arc::new(Semaphore::new(KNOWN_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_MAX)),
            under_way: Arc::default(),
        }
    }

    /// Returns the right to ask an announced server for somebody at an address; `None`: it is being asked, or too many are
    /// at present. For a known server it waits a little.
    pub(super) async fn permit(
        &self,
        address: IpAddr,
        is_known: bool,
        asked: &Announcement,
    ) -> Option<Permit> {
        let begun = self.begun(asked, (!is_known).then_some(address))?;
        let turn = match is_known {
            true => timeout(TURN, Arc::clone(&self.known).acquire_owned()).await.ok()?.ok()?,
            false => Arc::clone(&self.strangers).try_acquire_owned().ok()?,
        };
        Some(Permit { _begun: begun, _turn: turn })
    }

    /// Notes a question as under way; `None`: it is already, or too many are for this stranger.
    fn begun(&self, asked: &Announcement, stranger: Option<IpAddr>) -> Option<Begun> {
        let mut under_way = locked(&self.under_way);
        let of_one = |it: IpAddr| under_way.by_address.get(&it).copied().unwrap_or_default();
        if stranger.is_some_and(|it| OF_ONE_MAX <= of_one(it)) {
            return None;
        }
        let server = (asked.id.clone(), asked.base_url.clone());
        if !under_way.servers.insert(server.clone()) {
            return None;
        }
        if let Some(address) = stranger {
            *under_way.by_address.entry(address).or_default() += 1;
        }
        let under_way = Arc::clone(&self.under_way);
        Some(Begun { under_way, server, stranger })
    }

    /// Returns the description at an announced address, with its signature, as they were served; the error says in words
    /// why there is none.
    pub(super) async fn ask(
        &self,
        announcement: &Announcement,
    ) -> Result<(Vec<u8>, String), String> {
        let url = well_known(&announcement.base_url)?;
        let allow_private = self.reach.allows_private(&self.client).await;
        let request =
            Request { keeps_redirect: true, ..Request::get(url).allow_private(allow_private) };
        let response = self.client.send(request).await;
        let response = response.map_err(|it| advised(&it, allow_private))?;
        if response.status != http::StatusCode::OK {
            return Err(format!("its {} answers {}", describe::PATH, response.status));
        }
        let signature =
            response.header(describe::SIGNATURE.as_str()).unwrap_or_default().to_owned();
        let bytes = response.bytes(BYTES_MAX).await.map_err(|it| it.to_string())?;
        Ok((bytes.to_vec(), signature))
    }
}

/// Returns why a server was not asked, in words.
fn advised(error: &net::Error, allow_private: bool) -> String {
    let is_private = matches!(error, net::Error::Refused { .. } | net::Error::PrivateName { .. });
    match is_private && !allow_private {
        true => "its address is in a private network, which this registry does not ask".to_owned(),
        false => format!("it cannot be asked: {error}"),
    }
}

/// Returns the address of the description of a daemon at `base`.
fn well_known(base: &Url) -> Result<Url, String> {
    let path = describe::PATH.trim_start_matches('/');
    base.join(path).map_err(|error| format!("{base} is no address: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking() -> Asking {
        Asking::new(Settings::default(), Reach::new(Some(true), None, ([0; 4], 0).into()))
    }

    fn asked(n: usize) -> Announcement {
        let base_url = Url::parse(&format!("http://h{n}/")).unwrap();
        Announcement { id: "00000000000000aa".to_owned(), base_url }
    }

    fn address(n: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, n])
    }

    #[tokio::test]
    async fn a_server_is_asked_once_at_a_time() {
        let asking = asking();
        let first = asking.permit(address(1), true, &asked(1)).await.unwrap();
        for is_known in [true, false] {
            assert!(asking.permit(address(2), is_known, &asked(1)).await.is_none(), "{is_known}");
        }
        // At another address somebody may hold a question to the same id as long as they like.
        let elsewhere = asking.permit(address(2), false, &asked(2)).await;
        assert!(elsewhere.is_some());
        drop(first);
        assert!(asking.permit(address(2), true, &asked(1)).await.is_some());
    }

    #[tokio::test]
    async fn questions_at_a_time_are_bounded() {
        let asking = asking();
        let mut of_one = Vec::new();
        for n in 0..OF_ONE_MAX {
            of_one.push(asking.permit(address(1), false, &asked(n)).await.unwrap());
        }
        assert!(asking.permit(address(1), false, &asked(9)).await.is_none());
        of_one.pop();
        assert!(asking.permit(address(1), false, &asked(9)).await.is_some());
        drop(of_one);
        let mut known = Vec::new();
        for n in 0..KNOWN_MAX {
            known.push(asking.permit(address(1), true, &asked(n)).await.unwrap());
        }
        // Who waits in vain has not begun, and comes again later.
        assert!(asking.permit(address(1), true, &asked(KNOWN_MAX)).await.is_none());
        known.pop();
        assert!(asking.permit(address(1), true, &asked(KNOWN_MAX)).await.is_some());
    }
}
