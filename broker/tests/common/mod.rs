//! Helpers of the end-to-end tests: a source made by the test, and a broker.

#![allow(clippy::unwrap_used, reason = "tests may panic")]
#![allow(dead_code, reason = "each test file uses only some")]

pub(crate) mod site;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use broker::config::Config;
use broker::server::{Handle, Server};
use broker::source::Source;
use broker::status::{SourceStatus, Status};
use collection::feed::{Counters, FeedOptions, FeedServer, proof_of_site};
use collection::{Batch, Change, Collection, Oid, Options, Stamp, Version};
use http::StatusCode;
use http::header::AUTHORIZATION;
use net::clock;
use net::identity::Identity;
use net::shutdown::Shutdown;
use serde_json::Value;
use soif::Record;
use soif::digest::Md5;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use url::Url;

/// Longer than any step of a test takes, even on a busy machine.
pub(crate) const STEP_MAX: Duration = Duration::from_secs(60);

/// A source in place of a gatherer: a collection with a feed.
pub(crate) struct Origin {
    pub(crate) collection: Collection,
    pub(crate) id: String,
    /// Token that requests must have; `None` if they need none.
    pub(crate) token: Option<String>,
    /// The key that it names, and the proof that it is its own, as the feed sends them.
    owner: (Option<String>, Option<String>),
    address: SocketAddr,
    serving: Option<(Shutdown, JoinHandle<()>)>,
    feed: Option<FeedServer>,
    _dir: TempDir,
}

impl Origin {
    /// Starts a source with this gatherer id.
    pub(crate) async fn start(id: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(dir.path(), Options::default(), now).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut origin = Self {
            collection,
            id: id.to_owned(),
            token: None,
            owner: (None, None),
            address,
            serving: None,
            feed: None,
            _dir: dir,
        };
        origin.serve().await;
        origin
    }

    /// Starts a gatherer with the key of this secret, which shows that the feed is its own.
    pub(crate) async fn with_key(secret: u8) -> Self {
        let identity = Identity::of(&[secret; 32]).unwrap();
        let origin = Self::start(&identity.id()).await;
        let owner = format!("{} {}", identity.id(), identity.key());
        let proof = proof_of_site(&identity, &origin.url());
        origin.named((Some(owner), Some(proof))).await
    }

    /// Starts a source that sends key and proof of another as its own.
    pub(crate) async fn posing_as(other: &Self) -> Self {
        Self::start(&other.id).await.named(other.owner.clone()).await
    }

    async fn named(mut self, owner: (Option<String>, Option<String>)) -> Self {
        self.owner = owner;
        self.stop().await;
        self.serve().await;
        self
    }

    /// Returns a replica that has what is here by now, and gets no more.
    pub(crate) async fn left_behind(&mut self) -> Self {
        let mut other = Self::start(&self.id).await;
        let folder = other._dir.path().join("copy");
        self.stop().await;
        self.collection.close();
        let copied = Command::new("cp").arg("-r").arg(self._dir.path()).arg(&folder).status();
        assert!(copied.unwrap().success());
        let open = |folder: &Path| {
            let now = Stamp(clock::now_ms());
            Collection::open(folder, Options::default(), now).unwrap().0
        };
        (self.collection, other.collection) = (open(self._dir.path()), open(&folder));
        self.serve().await;
        other.stop().await;
        other.serve().await;
        other
    }

    /// Serves the feed, at the previous address if there was one.
    pub(crate) async fn serve(&mut self) {
        let listener = net::server::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let shutdown = Shutdown::new();
        let (owner, site) = self.owner.clone();
        let options = FeedOptions { owner, site, ..FeedOptions::default() };
        let options = FeedOptions { shutdown: shutdown.clone(), ..options };
        let feed = FeedServer::new(self.collection.clone(), options);
        self.feed = Some(feed.clone());
        let wanted = self.token.as_ref().map(|it| format!("Bearer {it}"));
        let router = Router::new().fallback(move |request: Request| {
            let given = request.headers().get(AUTHORIZATION).map(|it| it.to_str().unwrap());
            let permitted = wanted.is_none() || wanted.as_deref() == given;
            let feed = feed.clone();
            async move {
                if permitted {
                    feed.respond(request.map(drop)).await.map(axum::body::Body::new)
                } else {
                    StatusCode::UNAUTHORIZED.into_response()
                }
            }
        });
        let until = shutdown.clone();
        let task = tokio::spawn(async move {
            let limits = net::server::Limits::default();
            net::server::serve(listener, router, limits, until).await.unwrap();
        });
        self.serving = Some((shutdown, task));
    }

    /// Stops answering; the collection stays.
    pub(crate) async fn stop(&mut self) {
        let (shutdown, task) = self.serving.take().unwrap();
        shutdown.start();
        task.await.unwrap();
    }

    /// Returns the counters of the feed since its last start.
    pub(crate) fn feed_counters(&self) -> Counters {
        self.feed.as_ref().unwrap().counters()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> Url {
        url_of(self.address)
    }

    /// Returns the settings by which a broker pulls from here, under this name.
    pub(crate) fn source(&self, name: &str) -> Source {
        Source::gatherer(name, self.url())
    }

    pub(crate) fn oid(&self, n: u64) -> Oid {
        Oid::new(&self.id, &object_url(n))
    }

    /// Commits objects with these numbers and this text, and returns the version.
    pub(crate) async fn update(
        &self,
        numbers: impl IntoIterator<Item = u64>,
        text: &str,
    ) -> Version {
        let changes = numbers.into_iter().map(|n| Change::Update(record(&self.id, n, text)));
        self.commit(changes.collect()).await
    }

    pub(crate) async fn delete(&self, numbers: impl IntoIterator<Item = u64>) -> Version {
        let changes = numbers.into_iter().map(|n| Change::Delete(self.oid(n))).collect();
        self.commit(changes).await
    }

    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Version {
        let collection = self.collection.clone();
        let batch = Batch { changes, notes: Vec::new() };
        let commit = move || collection.commit(batch, Stamp(clock::now_ms())).unwrap();
        tokio::task::spawn_blocking(commit).await.unwrap()
    }
}

pub(crate) fn url_of(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

pub(crate) fn object_url(n: u64) -> String {
    format!("http://example.org/object/{n}")
}

/// Returns a record in the form of a gatherer; `text` distinguishes its versions.
pub(crate) fn record(gatherer: &str, n: u64, text: &str) -> Record {
    let mut record = Record::new("FILE", object_url(n));
    let content = format!("object number{n} {text}");
    record.push("Type", "Text");
    record.push("Title", format!("Object {n}"));
    record.push("Partial-Text", content.as_str());
    record.push("File-Size", content.len().to_string());
    record.push("MD5", Md5::of(content.as_bytes()).to_string());
    record.push("Update-Time", (clock::now_ms() / 1_000).to_string());
    record.push("Time-to-Live", "2592000");
    record.push("Gatherer-Id", gatherer);
    record.push("Gatherer-Name", format!("gatherer {gatherer}"));
    record
}

/// A broker that runs in this process.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

/// Returns settings with ports chosen by the system and short intervals.
pub(crate) fn config(data: &Path, sources: Vec<Source>) -> Config {
    let mut config = Config::new("Test", data);
    config.daemon.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.daemon.admin_listen = config.daemon.listen;
    config.freshness.interval_min = 0.1;
    config.freshness.interval_max = 0.5;
    config.sources = sources;
    config
}

impl Running {
    pub(crate) async fn start(config: Config) -> Self {
        Self::run(Server::bind(config).await.unwrap())
    }

    pub(crate) fn run(server: Server) -> Self {
        let (address, admin) = (server.local_addr(), server.admin_addr());
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let until = shutdown.clone();
        let task = tokio::spawn(async move { server.run(until).await.unwrap() });
        Self { handle, address, admin, shutdown, task }
    }

    /// Stops the broker, and checks that this takes less than two seconds.
    pub(crate) async fn stop(self) {
        let Self { shutdown, task, handle, .. } = self;
        let began = clock::monotonic();
        shutdown.start();
        task.await.unwrap();
        drop(handle);
        let took = clock::monotonic() - began;
        assert!(took < Duration::from_secs(2), "stopping took {took:?}");
    }

    pub(crate) async fn caught_up(&self, source: &str, version: Version) {
        let caught_up = self.handle.caught_up(source, version);
        let waited = tokio::time::timeout(STEP_MAX, caught_up).await;
        match waited {
            Ok(outcome) => outcome.unwrap(),
            Err(_) => panic!("{source} never reached {version}: {:#?}", self.handle.status().await),
        }
    }

    /// Searches over HTTP; returns the answer's JSON.
    pub(crate) async fn search(&self, query: &str) -> Value {
        let mut url = url_of(self.address).join("api/search").unwrap();
        url.query_pairs_mut().append_pair("q", query).append_pair("limit", "50");
        get_json(url).await
    }

    pub(crate) async fn total(&self, query: &str) -> u64 {
        self.search(query).await["total"].as_u64().unwrap()
    }

    pub(crate) async fn status(&self) -> Status {
        let url = url_of(self.admin).join("status").unwrap();
        serde_json::from_value(get_json(url).await).unwrap()
    }

    pub(crate) async fn source(&self, name: &str) -> SourceStatus {
        let status = self.status().await;
        status.sources.into_iter().find(|it| it.name == name).unwrap()
    }

    /// Polls the status until `wanted` accepts it.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let deadline = clock::monotonic() + STEP_MAX;
        loop {
            let status = self.status().await;
            if wanted(&status) {
                return status;
            }
            assert!(clock::monotonic() < deadline, "never {what}: {status:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn client() -> net::client::Client {
    let settings = net::client::Settings { allow_private: true, ..Default::default() };
    net::client::Client::new(settings)
}

pub(crate) async fn get_json(url: Url) -> Value {
    let response = client().send(net::client::Request::get(url)).await.unwrap();
    response.require_success().await.unwrap().json().await.unwrap()
}
