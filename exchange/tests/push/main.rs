//! Tests of hub and subscriber over real connections.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod hub;
mod topics;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::routing::{MethodRouter, get, post};
use collection::feed::{FeedOptions, FeedServer};
use collection::{Batch, Change, Collection, GATHERER_ID, Options, Stamp, Version};
use exchange::push::hub::Limits;
use exchange::push::request::{Mode, SubscriptionRequest};
use exchange::push::settings::HubChoice;
use exchange::push::signature::{HEADER, Method, Secret, sign};
use exchange::push::subscriber::{SubscriptionState, Wanted};
use exchange::push::{Address, Hooks, Listener, Notifier, Settings, feed};
use http::{HeaderName, HeaderValue, StatusCode, header};
use net::client::{Client, Request};
use net::clock;
use net::server::{bind, serve};
use net::shutdown::Shutdown;
use soif::Record;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

const SOON: Duration = Duration::from_secs(30);
const GATHERER: &str = "00000000000000aa";

fn client() -> Client {
    Client::new(net::client::Settings { allow_private: true, ..Default::default() })
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

async fn listen() -> (TcpListener, Url) {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, Url::parse(&url).unwrap())
}

fn spawn(tasks: &mut JoinSet<()>, listener: TcpListener, router: Router) {
    tasks.spawn(async move {
        serve(listener, router, net::server::Limits::default(), Shutdown::new()).await.unwrap();
    });
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, wait).await.expect("it does not come to that");
}

/// A daemon with a collection, its feed and a hub.
struct Source {
    collection: Collection,
    notifier: Notifier,
    url: Url,
    dir: TempDir,
    tasks: JoinSet<()>,
    shutdown: Shutdown,
}

fn settings() -> Settings {
    Settings { hub: HubChoice::Own, allow_private: true, ..Settings::default() }
}

impl Source {
    async fn start(settings: Settings) -> Self {
        let (listener, url) = listen().await;
        Self::start_at(listener, url, tempfile::tempdir().unwrap(), settings, None)
    }

    fn start_at(
        listener: TcpListener,
        url: Url,
        dir: TempDir,
        settings: Settings,
        base_url: Option<Url>,
    ) -> Self {
        let (collection, _) =
            Collection::open(&dir.path().join("c"), Options::default(), now()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let mut own = daemon::Settings::new(any, any, dir.path());
        own.base_url.clone_from(&base_url);
        let control = daemon::Control::open(&own).unwrap();
        let notifier =
            Notifier::open(dir.path(), base_url, settings, collection.clone(), &control).unwrap();
        let server = FeedServer::new(collection.clone(), FeedOptions::default());
        let router =
            feed::routes(server, notifier.clone(), feed::all(), None).merge(notifier.routes());
        let (mut tasks, shutdown) = (JoinSet::new(), Shutdown::new());
        spawn(&mut tasks, listener, router);
        let (running, stop) = (notifier.clone(), shutdown.clone());
        tasks.spawn(async move { running.run(stop).await });
        Self { collection, notifier, url, dir, tasks, shutdown }
    }

    fn put(&self, n: u32, title: &str) -> Version {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push("Title", title);
        record.push(GATHERER_ID, GATHERER);
        let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
        self.collection.commit(batch, now()).unwrap()
    }

    fn topic(&self) -> String {
        self.url.join("feed").unwrap().to_string()
    }

    async fn ask(&self, form: String) -> (StatusCode, String) {
        ask(self.url.join("hub").unwrap(), form).await
    }
}

async fn ask(url: Url, body: String) -> (StatusCode, String) {
    let response = client().send(Request::post(url, body)).await.unwrap();
    let status = response.status;
    (status, String::from_utf8(response.bytes(1 << 16).await.unwrap().to_vec()).unwrap())
}

/// Returns an unsigned request for a subscription, or for its end.
fn asked(mode: Mode, topic: String, callback: Url) -> SubscriptionRequest {
    SubscriptionRequest { mode, topic, callback, lease_secs: None, secret: None, consumer: None }
}

fn challenge(query: Option<String>) -> String {
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(name, _)| name == "hub.challenge")
        .map(|(_, it)| it.into_owned())
        .unwrap_or_default()
}

/// Returns a callback that confirms everything, and the bodies that it receives.
fn yes_to_all() -> (MethodRouter, mpsc::UnboundedReceiver<String>) {
    let (sender, sent) = mpsc::unbounded_channel();
    let take = move |body: String| {
        sender.send(body).unwrap();
        async { StatusCode::OK }
    };
    let yes = |RawQuery(query): RawQuery| async move { challenge(query) };
    (get(yes).post(take), sent)
}

fn secret() -> Secret {
    Secret::new("a secret").unwrap()
}

struct Subscriber {
    listener: Listener,
    url: Url,
    heard: mpsc::UnboundedReceiver<(String, Option<Version>)>,
    _tasks: JoinSet<()>,
}

impl Subscriber {
    async fn start(sources: &[(&str, Url)]) -> Self {
        let (socket, url) = listen().await;
        let (sender, heard) = mpsc::unbounded_channel();
        let addresses: BTreeMap<String, Url> =
            sources.iter().map(|(name, url)| ((*name).to_owned(), url.clone())).collect();
        let find = move |name: &str| {
            let url = addresses.get(name)?.join("feed").unwrap();
            Some(Address { url, credentials: Default::default(), allow_private: true })
        };
        let tell = move |name: &str, version| drop(sender.send((name.to_owned(), version)));
        let hooks = Hooks { find: Box::new(find), on_notice: Box::new(tell) };
        let listener = Listener::new(client(), 900, hooks);
        let wanted = sources.iter().map(|(name, _)| Wanted {
            source: (*name).to_owned(),
            token: format!("token-of-{name}"),
            callback: url.join(&format!("push/token-of-{name}")).unwrap(),
            secret: secret(),
        });
        listener.handle_sources(wanted);
        let mut tasks = JoinSet::new();
        spawn(&mut tasks, socket, listener.routes());
        let running = listener.clone();
        tasks.spawn(async move { running.run(Shutdown::new()).await });
        Self { listener, url, heard, _tasks: tasks }
    }

    async fn hears(&mut self) -> (String, Option<Version>) {
        timeout(SOON, self.heard.recv()).await.expect("nothing is heard").unwrap()
    }

    async fn notify(&self, token: &str, signed: Option<&str>, body: &'static str) -> StatusCode {
        let mut request = Request::post(self.url.join("push/").unwrap().join(token).unwrap(), body);
        if let Some(signed) = signed {
            let value = HeaderValue::try_from(signed).unwrap();
            request = request.header(HeaderName::from_static(HEADER), value);
        }
        client().send(request).await.unwrap().status
    }
}

fn of(name: &str, version: Option<Version>) -> (String, Option<Version>) {
    (name.to_owned(), version)
}
