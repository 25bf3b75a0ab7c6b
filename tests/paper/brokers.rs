//! Brokers in this process, and sources that stand for gatherers: they count who asks them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use broker::config::Config;
use broker::server::{Handle, Server};
use broker::source::Source;
use collection::feed::{FeedOptions, FeedServer};
use collection::{Batch, Change, Collection, Options, Stamp};
use net::body::Body;
use net::client::{Client, Settings};
use net::clock;
use net::server::Limits;
use net::shutdown::Shutdown;
use soif::Record;
use tempfile::TempDir;
use tower::service_fn;
use url::Url;

/// Time after which anything counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Number of records in one commit.
const COMMIT: usize = 1_000;

/// A collection with a feed.
pub(crate) struct Origin {
    pub(crate) feed: FeedServer,
    pub(crate) url: Url,
    shutdown: Shutdown,
    _folder: TempDir,
}

impl Origin {
    pub(crate) async fn start(records: Vec<Record>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (collection, _) =
            Collection::open(folder.path(), Options::default(), Stamp(1)).unwrap();
        for records in records.chunks(COMMIT) {
            let changes = records.iter().cloned().map(Change::Update).collect();
            let batch = Batch { changes, notes: Vec::new() };
            collection.commit(batch, Stamp(clock::now_ms())).unwrap();
        }
        let feed = FeedServer::new(collection, FeedOptions::default());
        let listener = net::server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = url_of(listener.local_addr().unwrap());
        let (served, shutdown) = (feed.clone(), Shutdown::new());
        let service = service_fn(move |request: http::Request<Body>| {
            let feed = served.clone();
            async move { Ok::<_, Infallible>(feed.respond(request.map(drop)).await) }
        });
        let until = shutdown.clone();
        tokio::spawn(net::server::serve(listener, service, Limits::default(), until));
        Self { feed, url, shutdown, _folder: folder }
    }

    /// Returns how many answers were sent, and how many bytes.
    pub(crate) fn load(&self) -> (u64, u64) {
        let counters = self.feed.counters();
        (counters.deltas + counters.redirects + counters.snapshot_answers, counters.bytes)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

/// A broker that pulls its sources once, and then seldom.
pub(crate) struct Broker {
    pub(crate) handle: Handle,
    pub(crate) url: Url,
    shutdown: Shutdown,
}

impl Broker {
    pub(crate) async fn start(folder: &Path, sources: Vec<Source>) -> Self {
        let mut config = Config::new("Broker", folder);
        config.daemon.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.daemon.admin_listen = config.daemon.listen;
        (config.freshness.interval_min, config.freshness.interval_max) = (3_600.0, 7_200.0);
        config.sources = sources;
        let server = Server::bind(config).await.unwrap();
        let (handle, url, shutdown) =
            (server.handle(), url_of(server.local_addr()), Shutdown::new());
        tokio::spawn(Box::pin(server.run(shutdown.clone())));
        Self { handle, url, shutdown }
    }

    /// Waits until it has so many objects, finds them, and has pulled each source to the end.
    pub(crate) async fn has(&self, objects: u64) {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = self.handle.status().await;
            let is_indexed = status.index_covered == Some(status.serial);
            let is_pulled = status.sources.iter().all(|it| it.last_pull.is_some());
            if status.objects == objects && is_indexed && is_pulled {
                return;
            }
            assert!(clock::monotonic() < end, "{status:#?}");
            tokio::task::yield_now().await;
        }
    }
}

impl Broker {
    /// Returns the answer of the search API, without what costs more than the search.
    pub(crate) async fn search(&self, query: &str) -> serde_json::Value {
        let mut url = self.url.join("api/search").unwrap();
        let asked = [("q", query), ("match", "all"), ("limit", "1000")];
        url.query_pairs_mut().extend_pairs(asked);
        url.query_pairs_mut().extend_pairs([("facets", "false"), ("snippets", "false")]);
        let client = Client::new(Settings { allow_private: true, ..Settings::default() });
        let response = client.send(net::client::Request::get(url)).await.unwrap();
        response.require_success().await.unwrap().json().await.unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

fn url_of(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}
