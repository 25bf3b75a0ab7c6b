//! Hub and subscriber over real connections: told of what changes, and of nothing that is not signed.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::routing::{MethodRouter, get, post};
use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{Asking, PullLimits, Puller, Summary};
use collection::{Batch, Change, Collection, GATHERER_ID, Options, Stamp, Version};
use exchange::push::hub::Limits;
use exchange::push::request::{Asked, Content, Mode};
use exchange::push::settings::Teller;
use exchange::push::signature::{HEADER, Method, Secret, sign};
use exchange::push::subscriber::{State, Wanted};
use exchange::push::{Address, Hooks, Listener, Notice, Notifier, Settings, feed};
use exchange::repository::Repository;
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

/// Waits for what does not announce itself.
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
    Settings { teller: Teller::Own, allow_private: true, ..Settings::default() }
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
        let notifier = Notifier::open(dir.path(), base_url, settings, collection.clone()).unwrap();
        let server = FeedServer::new(collection.clone(), FeedOptions::default());
        let router = feed::routes(server, notifier.clone()).merge(notifier.routes());
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

/// What asks for a subscription that is not signed, or for its end.
fn asked(mode: Mode, topic: String, callback: Url) -> Asked {
    Asked { mode, topic, callback, lease_secs: None, secret: None, content: Content::Thin }
}

/// What a callback is to answer with, to say yes.
fn challenge(query: Option<String>) -> String {
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(name, _)| name == "hub.challenge")
        .map(|(_, it)| it.into_owned())
        .unwrap_or_default()
}

/// A callback that says yes to everything, and what it was sent.
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

/// One that subscribes to sources and writes down what it hears.
struct Subscriber {
    listener: Listener,
    url: Url,
    heard: mpsc::UnboundedReceiver<(String, Notice)>,
    _tasks: JoinSet<()>,
}

impl Subscriber {
    async fn start(sources: &[(&str, Url)], content: Content) -> Self {
        let (socket, url) = listen().await;
        let (sender, heard) = mpsc::unbounded_channel();
        let addresses: BTreeMap<String, Url> =
            sources.iter().map(|(name, url)| ((*name).to_owned(), url.clone())).collect();
        let find = move |name: &str| {
            let url = addresses.get(name)?.join("feed").unwrap();
            Some(Address { url, token: None, allow_private: true })
        };
        let tell = move |name: &str, notice| sender.send((name.to_owned(), notice)).is_ok();
        let hooks = Hooks { find: Box::new(find), tell: Box::new(tell) };
        let listener = Listener::new(client(), 900, hooks);
        let wanted = sources.iter().map(|(name, _)| Wanted {
            source: (*name).to_owned(),
            token: format!("token-of-{name}"),
            callback: url.join(&format!("push/token-of-{name}")).unwrap(),
            secret: secret(),
            content,
        });
        listener.handle_sources(wanted);
        let mut tasks = JoinSet::new();
        spawn(&mut tasks, socket, listener.routes());
        let running = listener.clone();
        tasks.spawn(async move { running.run(Shutdown::new()).await });
        Self { listener, url, heard, _tasks: tasks }
    }

    async fn hears(&mut self) -> (String, Notice) {
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

fn thin(name: &str, version: Option<Version>) -> (String, Notice) {
    (name.to_owned(), Notice::Thin(version))
}

#[tokio::test]
async fn a_subscriber_hears_of_every_version_once_it_has_been_asked_whether_it_wants_to() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Thin).await;
    assert_eq!(subscriber.hears().await, thin("a", None), "what was before is to be pulled");
    assert!(matches!(subscriber.listener.view("a"), Some((State::Active { .. }, _))));
    until(|| source.notifier.status().subscriptions == 1).await;
    for n in 1..4 {
        let version = source.put(n, "after");
        assert_eq!(subscriber.hears().await, thin("a", Some(version)));
    }
    until(|| source.notifier.status().delivered == 3).await;
    let (_, counters) = subscriber.listener.view("a").unwrap();
    assert_eq!((counters.notices, counters.forged, counters.unsigned), (3, 0, 0));
}

#[tokio::test]
async fn a_fat_notification_has_what_a_pull_would_have_brought() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let dir = tempfile::tempdir().unwrap();
    let (broker, _) = Collection::open(dir.path(), Options::default(), now()).unwrap();
    let limits = PullLimits::default();
    let ask = Asking::new(client(), source.url.clone(), "a").allow_private(true);
    let puller = Puller::new(ask, broker.clone(), limits);
    puller.pull(None).await.unwrap();
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Fat).await;
    assert_eq!(subscriber.hears().await, thin("a", None));
    until(|| source.notifier.status().subscriptions == 1).await;
    for (n, title) in [(1, "one"), (2, "two"), (1, "three")] {
        let version = source.put(n, title);
        let (_, Notice::Fat(pushed)) = subscriber.hears().await else { panic!() };
        assert_eq!(pushed.to, version);
        let mut summary = Summary::default();
        assert!(puller.take(&pushed, &mut summary).await.unwrap());
        assert_eq!((summary.changes, summary.objects), (1, broker.len()));
        until(|| source.notifier.status().delivered == version.serial - 1).await;
    }
    assert_eq!(puller.pull(None).await.unwrap().changes, 0, "nothing is left to pull");
    // More than fits is told and not sent.
    let records = (0..40_u32).map(|n| {
        let mut record = Record::new("FILE", format!("http://h/noise/{n}"));
        record.push("Noise", noise(15_000));
        record.push(GATHERER_ID, GATHERER);
        Change::Update(record)
    });
    let batch = Batch { changes: records.collect(), notes: Vec::new() };
    let version = source.collection.commit(batch, now()).unwrap();
    assert_eq!(subscriber.hears().await, thin("a", Some(version)));
}

/// Text that does not compress.
fn noise(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).unwrap();
    random.iter().map(|it| char::from(b'!' + it % 90)).collect()
}

#[tokio::test]
async fn what_is_forged_unsigned_or_for_nobody_is_refused_and_counted() {
    let source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Thin).await;
    subscriber.hears().await;
    let (path, body) = ("token-of-a", "00000000000000ff-7\n");
    let forged = sign(&Secret::new("a guess").unwrap(), Method::Sha256, body.as_bytes());
    let of_other = sign(&secret(), Method::Sha256, b"00000000000000ff-8\n");
    for signed in [Some(forged.as_str()), Some(&of_other), Some("sha1=00"), Some("x")] {
        assert_eq!(subscriber.notify(path, signed, body).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(subscriber.notify(path, None, body).await, StatusCode::FORBIDDEN);
    let sound = sign(&secret(), Method::Sha512, body.as_bytes());
    assert_eq!(subscriber.notify("another", Some(&sound), body).await, StatusCode::GONE);
    assert_eq!(subscriber.notify(path, Some(&sound), body).await, StatusCode::ACCEPTED);
    let version = body.trim().parse().unwrap();
    assert_eq!(subscriber.hears().await, thin("a", Some(version)), "and nothing before it");
    let counters = subscriber.listener.counters();
    assert_eq!((counters.notices, counters.forged, counters.unsigned), (1, 4, 1));
}

#[tokio::test]
async fn a_callback_is_asked_only_for_what_it_asked() {
    let source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Thin).await;
    subscriber.hears().await;
    until(|| source.notifier.status().subscriptions == 1).await;
    // Somebody who has got hold of the callback wants to end it, or to have it told of something else.
    let callback = subscriber.url.join("push/token-of-a").unwrap();
    let asked = |mode, topic| asked(mode, topic, callback.clone());
    let records = source.url.join("oai?verb=ListRecords&metadataPrefix=oai_dc").unwrap();
    for (n, asked) in (1..).zip([
        asked(Mode::Unsubscribe, source.topic()),
        asked(Mode::Subscribe, source.topic()),
        asked(Mode::Subscribe, records.to_string()),
    ]) {
        assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
        until(|| source.notifier.counters().unverified == n).await;
    }
    let version = source.put(0, "new");
    assert_eq!(subscriber.hears().await, thin("a", Some(version)), "signed as before");
}

#[tokio::test]
async fn what_a_hub_does_not_take_it_says() {
    let limits = Limits { subscriptions_max: 0, ..Limits::default() };
    let source = Source::start(Settings { limits, ..settings() }).await;
    let callback = Url::parse("http://127.0.0.1:9/").unwrap();
    let asked = |topic| asked(Mode::Subscribe, topic, callback.clone());
    for (form, status, part) in [
        (String::new(), StatusCode::BAD_REQUEST, "hub.mode is missing"),
        (asked("http://other/feed".into()).form(), StatusCode::NOT_FOUND, "does not tell of"),
        (asked(source.topic()).form(), StatusCode::SERVICE_UNAVAILABLE, "as many subscriptions"),
        ("x=".repeat(10_000), StatusCode::PAYLOAD_TOO_LARGE, "longer than"),
        (
            format!("hub.mode=publish&hub.url={}", source.topic()),
            StatusCode::FORBIDDEN,
            "push.publishers",
        ),
    ] {
        let (found, said) = source.ask(form).await;
        assert!(found == status && said.contains(part), "{found} {said}");
    }
    assert_eq!(source.notifier.counters().refused, 5);
}

/// Callbacks are named by strangers: neither this machine nor one that it is sent on to is asked.
#[tokio::test]
async fn a_hub_reaches_only_whom_it_may() {
    let asked_of = Arc::new(Mutex::new(Vec::new()));
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    let seen = Arc::clone(&asked_of);
    let note = move |path: &'static str| {
        let seen = Arc::clone(&seen);
        get(move |RawQuery(query): RawQuery| async move {
            seen.lock().unwrap().push(path);
            let challenge = challenge(query);
            let location = [(header::LOCATION, format!("/inside?hub.challenge={challenge}"))];
            match path {
                "outside" => (StatusCode::FOUND, location, String::new()),
                "padded" => (StatusCode::OK, location, format!("{challenge}\n")),
                _ => (StatusCode::OK, location, challenge),
            }
        })
    };
    let router = Router::new()
        .route("/outside", note("outside"))
        .route("/inside", note("inside"))
        .route("/padded", note("padded"));
    spawn(&mut tasks, socket, router);
    let form = |source: &Source, path: &str| {
        asked(Mode::Subscribe, source.topic(), url.join(path).unwrap()).form()
    };

    let open = Source::start(settings()).await;
    for path in ["outside", "padded", "inside"] {
        assert_eq!(open.ask(form(&open, path)).await.0, StatusCode::ACCEPTED);
    }
    until(|| (open.notifier.counters().verified, open.notifier.counters().unverified) == (1, 2))
        .await;
    let mut seen = std::mem::take(&mut *asked_of.lock().unwrap());
    seen.sort_unstable();
    assert_eq!(seen, ["inside", "outside", "padded"], "each once, and nobody is sent on");

    let shut = Source::start(Settings { allow_private: false, ..settings() }).await;
    let (status, said) = shut.ask(form(&shut, "inside")).await;
    assert!(status == StatusCode::FORBIDDEN && said.contains("push.allow_private"), "{said}");
    let named = form(&shut, "inside")
        .replace("callback=http%3A%2F%2F127.0.0.1", "callback=http%3A%2F%2Flocalhost");
    assert_eq!(shut.ask(named).await.0, StatusCode::FORBIDDEN);
    assert_eq!(*asked_of.lock().unwrap(), Vec::<&str>::new());
}

#[tokio::test]
async fn subscriptions_survive_the_hub_and_what_came_meanwhile_is_told() {
    let mut source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Thin).await;
    subscriber.hears().await;
    until(|| source.notifier.status().subscriptions == 1).await;
    // It may be killed once it has written down who subscribes.
    let saved = source.dir.path().join("subscriptions.json");
    until(|| std::fs::read_to_string(&saved).is_ok_and(|it| it.contains("/push/"))).await;
    source.shutdown.start();
    source.tasks.abort_all();
    while source.tasks.join_next().await.is_some() {}
    let version = source.put(0, "while the hub was away");
    source.collection.close();
    let Source { url, dir, .. } = source;
    let address: SocketAddr = url.authority().parse().unwrap();
    let again = Source::start_at(bind(address).await.unwrap(), url, dir, settings(), None);
    assert_eq!(again.collection.version(), version);
    assert_eq!(subscriber.hears().await, thin("a", Some(version)));
    let version = again.put(1, "and now");
    assert_eq!(subscriber.hears().await, thin("a", Some(version)));
}

/// It looks for what there is when it says yes; what comes after that it is to be told.
#[tokio::test]
async fn what_is_committed_while_a_subscriber_answers_it_is_told() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let (socket, url) = listen().await;
    let (sender, mut heard) = mpsc::unbounded_channel();
    let collection = source.collection.clone();
    let yes = move |RawQuery(query): RawQuery| async move {
        let mut record = Record::new("FILE", "http://h/while");
        record.push(GATHERER_ID, GATHERER);
        let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
        collection.commit(batch, now()).unwrap();
        challenge(query)
    };
    let mut tasks = JoinSet::new();
    let take = move |body: String| {
        sender.send(body).unwrap();
        async { StatusCode::OK }
    };
    spawn(&mut tasks, socket, Router::new().route("/", get(yes).post(take)));
    let asked = asked(Mode::Subscribe, source.topic(), url);
    assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
    let told = timeout(SOON, heard.recv()).await.expect("nothing is heard").unwrap();
    assert_eq!(told, format!("{}\n", source.collection.version()));
}

/// Who harvests is sent the records themselves, and nothing that is not of its list.
#[tokio::test]
async fn of_a_list_of_records_the_new_ones_are_sent() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let daemon = exchange::repository::Daemon {
        name: "Library".to_owned(),
        id: GATHERER.to_owned(),
        base_url: None,
        syndication: None,
    };
    let sets = source.dir.path().join("sets");
    let of_records = exchange::repository::Settings::default();
    let repository = Repository::new(source.collection.clone(), of_records, daemon, sets);
    drop(source.notifier.linked(&repository));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { repository.keep(Shutdown::new()).await });

    let (callback, mut sent) = yes_to_all();
    let (socket, url) = listen().await;
    spawn(
        &mut tasks,
        socket,
        Router::new().route("/all", callback.clone()).route("/none", callback),
    );
    for (path, set) in [("all", ""), ("none", "&set=type%3ASomething")] {
        let topic = format!("{}oai?verb=ListRecords&metadataPrefix=oai_dc{set}", source.url);
        let asked = asked(Mode::Subscribe, topic, url.join(path).unwrap());
        let asked = Asked { secret: Some(secret()), content: Content::Fat, ..asked };
        assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
    }
    until(|| source.notifier.status().subscriptions == 2).await;
    for (n, title) in [(1, "one"), (2, "two")] {
        source.put(n, title);
        let page = timeout(SOON, sent.recv()).await.expect("nothing is sent").unwrap();
        let reading = oai::response::read(page.as_bytes(), oai::Verb::ListRecords).unwrap();
        let oai::response::Body::Records(list) = reading.response.body else { panic!() };
        let last = list.items.last().unwrap();
        assert!(last.header.identifier.ends_with(&format!("/{n}")), "{page}");
        assert!(last.metadata.as_ref().unwrap().0.contains(title), "{page}");
    }
    until(|| source.notifier.status().delivered == 4).await;
    assert!(sent.try_recv().is_err(), "nothing of the other list has changed");
}

/// Names cost nothing: what counts is the machine that they lead to.
#[tokio::test]
async fn another_name_for_a_machine_is_no_other_machine() {
    let limits = Limits { per_host_max: 1, ..Limits::default() };
    let source = Source::start(Settings { limits, ..settings() }).await;
    let (callback, _sent) = yes_to_all();
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", callback));
    let form = |callback: &str| {
        let callback = Url::parse(callback).unwrap();
        asked(Mode::Subscribe, source.topic(), callback).form()
    };
    assert_eq!(source.ask(form(url.as_str())).await.0, StatusCode::ACCEPTED);
    until(|| source.notifier.status().subscriptions == 1).await;
    let other = url.as_str().replace("127.0.0.1", "localhost");
    let (status, said) = source.ask(form(&other)).await;
    assert!(status == StatusCode::SERVICE_UNAVAILABLE && said.contains("of that host"), "{said}");
    assert_eq!(source.ask(form(url.as_str())).await.0, StatusCode::ACCEPTED, "it renews");
}

/// A hub that asks publishers for a token takes nobody's word who does not show it.
#[tokio::test]
async fn who_publishes_shows_the_token_that_the_hub_asks_for() {
    let (socket, url) = listen().await;
    let token = Secret::new("a-token");
    let publishers = vec![Url::parse("http://source/").unwrap()];
    let of_hub = Settings { publishers, token, teller: Teller::Nobody, ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let hub = Source::start_at(socket, url.clone(), dir, of_hub, Some(url));
    let form = "hub.mode=publish&hub.url=http://source/feed";
    for (shown, expected) in [
        (None, StatusCode::UNAUTHORIZED),
        (Some("Bearer a-guess"), StatusCode::UNAUTHORIZED),
        (Some("Basic a-token"), StatusCode::UNAUTHORIZED),
        (Some("bearer a-token"), StatusCode::NO_CONTENT),
    ] {
        let mut request = Request::post(hub.url.join("hub").unwrap(), form);
        if let Some(shown) = shown {
            request = request.header(header::AUTHORIZATION, HeaderValue::from_static(shown));
        }
        assert_eq!(client().send(request).await.unwrap().status, expected, "{shown:?}");
    }
    assert_eq!(hub.notifier.counters().refused, 3);
    let strangers = Request::post(hub.url.join("hub").unwrap(), form.replace("source", "stranger"));
    let response = client().send(strangers.token(Some("a-token".to_owned()))).await.unwrap();
    assert_eq!(response.status, StatusCode::FORBIDDEN);
}

/// Source, hub and subscriber, each by itself: the source names the hub, and tells it.
#[tokio::test]
async fn a_hub_tells_of_the_topics_of_others() {
    let (hub_socket, hub_url) = listen().await;
    let (source_socket, source_url) = listen().await;
    let publishers = vec![source_url.clone()];
    let token = Secret::new("a-token");
    let of_hub = Settings { publishers, token, teller: Teller::Nobody, ..settings() };
    let hub_dir = tempfile::tempdir().unwrap();
    let name = Some(hub_url.clone());
    let hub = Source::start_at(hub_socket, hub_url.clone(), hub_dir, of_hub.clone(), name);
    let teller = Teller::Other(hub_url.join("hub").unwrap());
    let of_source = Settings { teller, token: of_hub.token.clone(), ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let base_url = Some(source_url.clone());
    let source = Source::start_at(source_socket, source_url, dir, of_source, base_url);
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())], Content::Fat).await;
    assert_eq!(subscriber.hears().await, thin("a", None));
    until(|| hub.notifier.status().subscriptions == 1).await;
    assert_eq!(source.notifier.status().subscriptions, 0);
    // One after the other: who shows the token is taken at its word, as often as it has something to say.
    for n in 0..4 {
        let version = source.put(n, "new");
        let heard = timeout(SOON / 5, subscriber.hears()).await;
        assert_eq!(heard.expect("it is kept waiting"), thin("a", Some(version)));
    }
    assert_eq!(source.ask(String::new()).await.0, StatusCode::NOT_FOUND, "it has no hub itself");
}

/// A hub that is not there when something changes hears of it when it is.
#[tokio::test]
async fn a_hub_that_was_away_is_told_of_the_newest_version() {
    let (socket, hub_url) = listen().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let mut failures = 2;
    let failing = Mutex::new(move || {
        failures -= i32::from(0 < failures);
        failures == 0
    });
    let failing = Arc::new(failing);
    let hub = move |headers: http::HeaderMap, body: String| {
        let agent = headers[header::USER_AGENT].to_str().unwrap();
        assert!(agent.contains("http://127.0.0.1"), "whom to ask about it: {agent}");
        let answer = if (failing.lock().unwrap())() { 204 } else { 503 };
        sender.send(body).unwrap();
        async move { StatusCode::from_u16(answer).unwrap() }
    };
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", post(hub)));
    let (source_socket, url) = listen().await;
    let of_source = Settings { teller: Teller::Other(hub_url), ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let source = Source::start_at(source_socket, url.clone(), dir, of_source, Some(url.clone()));
    let mut hears = async || timeout(SOON, told.recv()).await.expect("nothing is told").unwrap();
    let first = hears().await;
    let version = source.put(0, "new");
    let second = hears().await;
    let shown = |version: Version| format!("&harvest.version={version}");
    assert!(!first.contains(&shown(version)) && second.ends_with(&shown(version)), "{second}");
    assert!(second.contains("hub.url=http%3A%2F%2F127.0.0.1"), "{second}");
    let version = source.put(1, "newer");
    assert!(hears().await.ends_with(&shown(version)));
}
