//! Helpers: a registry, a broker that announces itself, and a daemon that says what a test wants.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::get;
use broker::source::Source;
use daemon::announce::{Announcement, PATH, Registries, Reply};
use daemon::describe::{self, Description, Facts, SIGNATURE};
use http::StatusCode;
use net::client::{Client, Request, Settings};
use net::clock;
use net::identity::Identity;
use net::shutdown::Shutdown;
use registry::answer::Listed;
use registry::config::{Announcements, Config};
use registry::keeper::Keeper;
use registry::server::Server;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use url::Url;

/// Longer than any step of a test takes, even on a busy machine.
pub(crate) const STEP_MAX: Duration = Duration::from_secs(60);
/// Time between two announcements.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

pub(crate) const HERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A daemon that runs.
pub(crate) struct Running<T> {
    pub(crate) url: Url,
    pub(crate) admin: Url,
    pub(crate) handle: T,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl<T> Running<T> {
    pub(crate) async fn stop(self) {
        self.shutdown.start();
        self.task.await.unwrap();
    }

    /// Ends it as a kill does: it says nothing more.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }
}

fn url_of(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

pub(crate) fn settings(data: &Path, ttl: Duration) -> Config {
    let mut config = Config::new("Registry", data);
    (config.broker.daemon.listen, config.broker.daemon.admin_listen) = (HERE, HERE);
    config.announcements =
        Announcements { every: EVERY, ttl, approval: false, allow_private: None };
    config
}

pub(crate) async fn registry(config: Config) -> Running<Keeper> {
    let server = Server::bind(config).await.unwrap();
    let (url, admin) = (url_of(server.local_addr()), url_of(server.admin_addr()));
    let (handle, shutdown) = (server.keeper(), Shutdown::new());
    let stop = shutdown.clone();
    let task = tokio::spawn(async move { server.run(stop).await.unwrap() });
    Running { url, admin, handle, shutdown, task }
}

/// Starts a broker that announces itself to a registry.
pub(crate) async fn broker(
    name: &str,
    data: &Path,
    registry: &Url,
) -> Running<broker::server::Handle> {
    broker_of(name, data, registry, None).await
}

/// Starts one that pulls a source.
pub(crate) async fn broker_of(
    name: &str,
    data: &Path,
    registry: &Url,
    source: Option<Source>,
) -> Running<broker::server::Handle> {
    let mut config = broker::config::Config::new(name, data);
    (config.daemon.listen, config.daemon.admin_listen) = (HERE, HERE);
    config.daemon.registry = Registries { urls: vec![registry.clone()], allow_private: None };
    config.daemon.location = Some("Boulder".to_owned());
    config.sources.extend(source);
    let server = broker::server::Server::bind(config).await.unwrap();
    let (url, admin) = (url_of(server.local_addr()), url_of(server.admin_addr()));
    let (handle, shutdown) = (server.handle(), Shutdown::new());
    let stop = shutdown.clone();
    let task = tokio::spawn(async move { server.run(stop).await.unwrap() });
    Running { url, admin, handle, shutdown, task }
}

/// A daemon whose description a test makes.
pub(crate) struct Fake {
    pub(crate) identity: Identity,
    pub(crate) url: Url,
    /// What is served at the address of its description, with its signature.
    pub(crate) served: Arc<Mutex<(StatusCode, Vec<u8>, String)>>,
    /// How often it was asked.
    pub(crate) asked: Arc<Mutex<u64>>,
    _shutdown: Shutdown,
}

impl Fake {
    pub(crate) async fn start(secret: u8) -> Self {
        let listener = net::server::bind(HERE).await.unwrap();
        let url = url_of(listener.local_addr().unwrap());
        let served = Arc::new(Mutex::new((StatusCode::OK, Vec::new(), String::new())));
        let asked = Arc::new(Mutex::new(0));
        let (answer, count) = (Arc::clone(&served), Arc::clone(&asked));
        let router = Router::new().route(
            describe::PATH,
            get(move || {
                *count.lock().unwrap() += 1;
                let (status, body, signature) = answer.lock().unwrap().clone();
                async move { (status, [(SIGNATURE, signature)], body).into_response() }
            }),
        );
        let shutdown = Shutdown::new();
        let (stop, limits) = (shutdown.clone(), net::server::Limits::default());
        tokio::spawn(async move { net::server::serve(listener, router, limits, stop).await });
        let identity = Identity::of(&[secret; 32]).unwrap();
        Self { identity, url, served, asked, _shutdown: shutdown }
    }

    /// Returns an honest description of it.
    pub(crate) fn description(&self, sequence: u64) -> Description {
        Description {
            id: self.identity.id(),
            key: self.identity.key().to_owned(),
            kind: "gatherer".to_owned(),
            software: "0.1.0".to_owned(),
            facts: Facts {
                name: "Fake".to_owned(),
                base_url: Some(self.url.clone()),
                gathers: vec!["https://orchard.example/".to_owned()],
                ..Facts::default()
            },
            time_ms: clock::now_ms(),
            sequence,
            ..Description::default()
        }
    }

    /// Serves a description, signed by its key.
    pub(crate) fn serve(&self, description: &Description) {
        let body = serde_json::to_vec(description).unwrap();
        let signature = self.identity.sign(&body);
        *self.served.lock().unwrap() = (StatusCode::OK, body, signature);
    }

    pub(crate) fn announcement(&self) -> Announcement {
        Announcement { id: self.identity.id(), base_url: self.url.clone() }
    }
}

pub(crate) fn client() -> Client {
    Client::new(Settings { allow_private: true, ..Settings::default() })
}

pub(crate) async fn get_json<T: DeserializeOwned>(url: Url) -> T {
    let response = client().send(Request::get(url)).await.unwrap();
    let bytes = response.bytes(1 << 20).await.unwrap();
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

/// Announces, and returns the status and the answer.
pub(crate) async fn announce(registry: &Url, announcement: &Announcement) -> (u16, Reply) {
    let body = serde_json::to_vec(announcement).unwrap();
    let (status, bytes) = post(registry, PATH, body).await;
    (status, serde_json::from_slice(&bytes).unwrap())
}

pub(crate) async fn post(registry: &Url, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
    let url = registry.join(path).unwrap();
    let request = Request::post(url, body)
        .header(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    let response = client().send(request).await.unwrap();
    let status = response.status.as_u16();
    (status, response.bytes(1 << 20).await.unwrap().to_vec())
}

pub(crate) async fn listed(registry: &Url) -> Vec<Listed> {
    get_json(registry.join("api/servers").unwrap()).await
}

/// Waits until the list is as `is_so` wants it, and returns it.
pub(crate) async fn until(
    registry: &Url,
    what: &str,
    is_so: impl Fn(&[Listed]) -> bool,
) -> Vec<Listed> {
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let listed = listed(registry).await;
        if is_so(&listed) {
            return listed;
        }
        assert!(clock::monotonic() < end, "{what}: {listed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
