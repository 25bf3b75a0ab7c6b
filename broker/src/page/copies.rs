//! The caches whose copies of objects are linked: of several, the nearest that this broker reaches.

use std::sync::Arc;
use std::time::Duration;

use net::client::Client;
use net::guard::Policy;
use tokio::sync::Mutex;
use url::Url;

use super::PageState;

/// Time for measuring how distant caches are, for which a page waits once in some seconds.
const MEASURING: Duration = Duration::from_millis(500);

/// The caches. Clones share what is known of them.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    caches: Arc<[Url]>,
    client: Client,
    /// One page measures, and the others take what it finds.
    turn: Arc<Mutex<()>>,
}

impl Copies {
    /// Returns the cache to link; `None`: there is none.
    async fn nearest(&self) -> Option<Url> {
        let _turn = self.turn.lock().await;
        let caches = self.client.nearest(self.caches.to_vec(), Policy::AllowPrivate, MEASURING);
        caches.await.into_iter().next()
    }
}

impl PageState {
    /// Returns the same pages, which link the copies of caches.
    pub(crate) fn with_copies(self, caches: &[Url], client: Client) -> Self {
        Self {
            copies: Some(Copies { caches: caches.into(), client, turn: Arc::default() }),
            ..self
        }
    }

    /// Returns the cache whose copies are linked; `None`: there is none.
    pub(super) async fn nearest_cache(&self) -> Option<Url> {
        self.copies.as_ref()?.nearest().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cache_that_is_not_reached_is_linked_last() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = |at: &tokio::net::TcpListener| {
            Url::parse(&format!("http://{}/", at.local_addr().unwrap())).unwrap()
        };
        let (here, away) = (url(&listener), url(&gone));
        drop(gone);
        let linked = async |caches: &[&Url]| {
            let caches = caches.iter().copied().cloned().collect();
            let client = Client::new(net::client::Settings::default());
            Copies { caches, client, turn: Arc::default() }.nearest().await
        };
        assert_eq!(linked(&[&away, &here]).await, Some(here.clone()));
        assert_eq!(linked(&[&here, &away]).await, Some(here));
        // Where there is no choice, nobody waits.
        assert_eq!(linked(&[&away]).await, Some(away));
        assert_eq!(linked(&[]).await, None);
    }
}
