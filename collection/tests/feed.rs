//! Feeds over real connections: whole, waited for, cut anywhere, damaged, passed on, and asked for
//! by many at once.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{Kind, PullLimits, Puller, Summary};
use collection::{
    Batch, Change, Collection, Damage, Error, GATHERER_ID, ORIGIN_VERSION, Oid, Options, Stamp,
};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use net::body::Body;
use net::client::{Client, Request, Settings, Timeouts};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::{clock, host};
use soif::Record;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

const SOON: Duration = Duration::from_secs(30);
const GATHERER: &str = "00000000000000aa";

/// A collection in a folder of its own, with small members so that a stream has many.
struct Store {
    collection: Collection,
    _dir: TempDir,
}

impl Store {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { member_bytes_max: 2 << 10, ..options };
        let (collection, _) = Collection::open(dir.path(), options, now()).unwrap();
        Self { collection, _dir: dir }
    }

    fn commit(&self, changes: Vec<Change>) {
        self.collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
    }

    /// Commits objects `numbers`, `each` to a commit.
    fn fill(&self, numbers: std::ops::Range<u32>, title: &str, each: usize) {
        let all: Vec<_> = numbers.map(|n| update(n, title)).collect();
        for changes in all.chunks(each) {
            self.commit(changes.to_vec());
        }
    }

    /// The title of every live object.
    fn titles(&self) -> BTreeMap<String, String> {
        let mut titles = BTreeMap::new();
        for scanned in self.collection.scan(0).unwrap() {
            match scanned.unwrap().change {
                Change::Update(record) => {
                    titles.insert(record.url.clone(), record.text("Title").unwrap().into_owned());
                }
                Change::Delete(oid) => {
                    titles.remove(&oid.url);
                }
                Change::Refresh(_) | Change::Confirm { .. } => {}
            }
        }
        assert_eq!(titles.len() as u64, self.collection.len());
        titles
    }
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

fn oid(n: u32) -> Oid {
    Oid::new(GATHERER, &format!("http://h/{n}"))
}

fn update(n: u32, title: &str) -> Change {
    let mut record = Record::new("FILE", oid(n).url);
    record.push("Title", format!("{title} {n}"));
    // Does not compress well, so that streams have some length.
    record.push(
        "Keywords",
        format!("{:x}", u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)),
    );
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

/// A server whose feed can be changed for another.
struct Server {
    address: SocketAddr,
    feed: Arc<Mutex<FeedServer>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(store: &Store, options: FeedOptions) -> Self {
        let feed = FeedServer::new(store.collection.clone(), options);
        let feed = Arc::new(Mutex::new(feed));
        let shared = Arc::clone(&feed);
        let service = service_fn(move |request: http::Request<Body>| {
            let feed = shared.lock().unwrap().clone();
            async move { Ok::<_, Infallible>(feed.respond(request.map(drop)).await) }
        });
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            serve(listener, service, Limits::default(), Shutdown::new()).await.unwrap();
        });
        Self { address, feed, _tasks: tasks }
    }

    fn feed(&self) -> FeedServer {
        self.feed.lock().unwrap().clone()
    }

    /// Serves another collection, or the same one as after a restart.
    fn serve(&self, store: &Store) {
        let fresh = FeedServer::new(store.collection.clone(), FeedOptions::default());
        *self.feed.lock().unwrap() = fresh;
    }
}

/// A client with a connection for each request, so that a proxy can tell them apart.
fn client() -> Client {
    patient(Timeouts::default().idle)
}

/// A client that gives up on a peer that is silent for so long.
fn patient(idle: Duration) -> Client {
    let timeouts = Timeouts { idle, ..Timeouts::default() };
    let settings = Settings { timeouts, allow_private: true, ..Settings::default() };
    Client::new(Settings { idle_per_host_max: 0, ..settings })
}

fn base(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

fn puller(address: SocketAddr, store: &Store) -> Puller {
    limited(address, store, PullLimits::default())
}

fn limited(address: SocketAddr, store: &Store, limits: PullLimits) -> Puller {
    let (base, collection) = (base(address), store.collection.clone());
    Puller::new(client(), base, "source".to_owned(), collection, limits).allow_private(true)
}

async fn pull(address: SocketAddr, store: &Store) -> Summary {
    timeout(SOON, puller(address, store).pull(None)).await.unwrap().unwrap()
}

async fn get(address: SocketAddr, path: &str) -> net::client::Response {
    client().send(Request::get(host::join(&base(address), path))).await.unwrap()
}

/// What a proxy does to the bytes of one connection on their way back.
#[derive(Clone, Copy)]
enum Harm {
    None,
    /// Closes after so many.
    Cut(u64),
    /// Passes no more after so many, and stays open.
    Stall(u64),
    /// Changes the one with this number.
    Flip(u64),
}

/// Stands between client and server; `harm` says what happens to each connection, from 0.
async fn proxy(
    server: SocketAddr,
    mut harm: impl FnMut(u64) -> Harm + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        for number in 0.. {
            let (near, _) = listener.accept().await.unwrap();
            connections.spawn(pass(near, server, harm(number)));
        }
    });
    address
}

async fn pass(near: TcpStream, server: SocketAddr, harm: Harm) {
    let far = TcpStream::connect(server).await.unwrap();
    let (mut from_near, mut to_near) = near.into_split();
    let (mut from_far, mut to_far) = far.into_split();
    let up = async {
        let _closed = tokio::io::copy(&mut from_near, &mut to_far).await;
        std::future::pending::<()>().await;
    };
    let down = async {
        let (mut passed, mut buffer) = (0, [0; 4096]);
        loop {
            let Ok(count @ 1..) = from_far.read(&mut buffer).await else { return };
            let (mut piece, end) = (&mut buffer[..count], passed + count as u64);
            match harm {
                Harm::None => {}
                Harm::Flip(at) => {
                    if (passed..end).contains(&at) {
                        piece[usize::try_from(at - passed).unwrap()] ^= 0x40;
                    }
                }
                Harm::Cut(at) | Harm::Stall(at) => {
                    let keep = at.saturating_sub(passed).min(count as u64);
                    piece = &mut piece[..usize::try_from(keep).unwrap()];
                }
            }
            if to_near.write_all(piece).await.is_err() {
                return;
            }
            match harm {
                Harm::Cut(at) if at <= end => return,
                Harm::Stall(at) if at <= end => return std::future::pending().await,
                _ => passed = end,
            }
        }
    };
    tokio::select! { () = up => {}, () = down => {} }
}

/// Numbers that look random; a failing seed fails again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test]
async fn the_first_pull_is_a_snapshot_and_the_next_are_deltas() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..300, "first", 40);
    let server = Server::start(&source, FeedOptions::default()).await;

    let first = pull(server.address, &broker).await;
    assert_eq!((first.kind, first.changes, first.objects), (Kind::Snapshot, 300, 300));
    assert_eq!((first.applied.updated, first.version), (300, source.collection.version()));
    assert_eq!(broker.titles(), source.titles());

    source.fill(290..310, "second", 7);
    source.commit(vec![Change::Delete(oid(5)), Change::Refresh(oid(6))]);
    let second = pull(server.address, &broker).await;
    assert_eq!((second.kind, second.changes, second.objects), (Kind::Delta, 21, 309));
    assert_eq!((second.applied.updated, second.applied.deleted), (20, 1));
    assert!(second.bytes < first.bytes / 4, "{second:?}");
    assert!((0.0..30.0).contains(&second.age_secs), "{second:?}");
    assert_eq!(broker.titles(), source.titles());

    let before = broker.collection.version();
    let third = pull(server.address, &broker).await;
    assert_eq!((third.kind, third.changes, third.resumed), (Kind::Delta, 0, 0));
    assert_eq!(broker.collection.version(), before, "nothing new, nothing written");
    let counters = server.feed().counters();
    assert_eq!((counters.snapshots, counters.redirects, counters.deltas), (1, 1, 3));
}

#[tokio::test]
async fn a_waiting_pull_hears_of_a_commit_at_once() {
    let (source, broker) = (Store::new(), Store::new());
    let shutdown = Shutdown::new();
    let options = FeedOptions { shutdown: shutdown.clone(), ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    pull(server.address, &broker).await;

    let puller = puller(server.address, &broker);
    let waiting = tokio::spawn(async move { puller.pull(Some(Duration::from_secs(60))).await });
    while server.feed().counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    source.fill(0..1, "new", 1);
    let began = clock::monotonic();
    let summary = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 1));
    assert!(clock::monotonic() - began < Duration::from_secs(10));
    assert_eq!((server.feed().counters().woken, server.feed().counters().waiting), (1, 0));

    // Nothing happens: the answer comes when the time is up, or the server stops.
    let have = source.collection.version();
    let path = format!("feed?since={}&epoch={}&wait=1", have.serial, have.epoch);
    assert_eq!(get(server.address, &path).await.header("harvest-kind"), Some("delta"));
    let path = path.replace("wait=1", "wait=60");
    let stopping = async {
        while server.feed().counters().waiting == 0 {
            tokio::task::yield_now().await;
        }
        shutdown.start();
    };
    let both = async { tokio::join!(get(server.address, &path), stopping) };
    let (response, ()) = timeout(SOON, both).await.unwrap();
    assert_eq!(response.status, StatusCode::OK);
}

#[tokio::test]
async fn an_unknown_epoch_or_serial_leads_to_a_snapshot_that_releases_what_it_does_not_name() {
    let (source, restored, broker) = (Store::new(), Store::new(), Store::new());
    source.fill(0..20, "old", 10);
    restored.fill(10..25, "new", 10);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;

    server.serve(&restored);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 10));
    assert_eq!(broker.titles(), restored.titles());

    restored.collection.new_epoch(now()).unwrap();
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 0));
    assert_eq!(summary.version, restored.collection.version());

    let version = restored.collection.version();
    let future = format!("feed?since={}&epoch={}", version.serial + 1, version.epoch);
    assert_eq!(get(server.address, &future).await.header("harvest-kind"), Some("snapshot"));
}

#[tokio::test]
async fn a_transfer_cut_anywhere_goes_on_and_brings_every_change_once() {
    let seeds: u64 = std::env::var("HARVEST_SEEDS").map_or(4, |it| it.parse().unwrap());
    for seed in 0..seeds {
        let (source, broker) = (Store::new(), Store::new());
        source.fill(0..400, "first", 30);
        let server = Server::start(&source, FeedOptions::default()).await;
        let mut random = Random(seed);
        let proxy = proxy(server.address, move |_| Harm::Cut(2_000 + random.below(6_000))).await;

        let summary = pull(proxy, &broker).await;
        println!("seed {seed}: snapshot {summary:?}");
        assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 400));
        assert_eq!(summary.applied.updated, 400);
        assert!(1 < summary.resumed);

        source.fill(200..600, "second", 30);
        let summary = pull(proxy, &broker).await;
        println!("seed {seed}: delta {summary:?}");
        assert_eq!((summary.kind, summary.changes), (Kind::Delta, 400));
        assert!(1 < summary.resumed);
        assert_eq!(broker.titles(), source.titles());
        let changes = broker.collection.scan(0).unwrap().count();
        assert_eq!(changes, 800, "every change is in the log once");
    }
}

#[tokio::test]
async fn a_pull_that_is_dropped_midway_is_taken_up_by_the_next() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..6_000, "first", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    let whole = get(server.address, "feed").await;
    let bytes: u64 = whole.header("content-length").unwrap().parse().unwrap();
    // The first connection is for the redirect.
    let proxy = proxy(server.address, move |number| match number {
        1 => Harm::Stall(bytes * 9 / 10),
        _ => Harm::None,
    });
    let proxy = proxy.await;
    let puller = puller(proxy, &broker);
    let dropped = tokio::spawn(async move { puller.pull(None).await });
    let mut versions = broker.collection.watch();
    timeout(SOON, versions.wait_for(|it| 0 < it.serial)).await.unwrap().unwrap();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());

    let before = broker.collection.len();
    assert!((1..6_000).contains(&before));
    let summary = pull(proxy, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 6_000 - before));
    assert!(summary.bytes < bytes * 2 / 3, "only the rest is fetched: {summary:?}");
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(broker.collection.scan(0).unwrap().count(), 6_000, "every change once");
}

#[tokio::test]
async fn a_snapshot_that_is_gone_is_begun_anew() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..400, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    let cutting = proxy(server.address, |number| match number {
        0 => Harm::None,
        1 => Harm::Cut(9_000),
        _ => Harm::Cut(0),
    });
    let error = puller(cutting.await, &broker).pull(None).await.unwrap_err();
    assert!(matches!(error, Error::Source { .. }) && error.retry().is_some(), "{error}");
    let cursor = broker.collection.cursor("source").unwrap().unwrap();
    let progress = cursor.snapshot.unwrap();
    assert!(0 < progress.offset && !broker.collection.is_empty(), "the good part is kept");

    server.serve(&source);
    let path = format!("snapshot/{}", progress.id);
    assert_eq!(get(server.address, &path).await.status, StatusCode::GONE);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 400));
    assert!(summary.applied.updated < 400, "what was there is not new");
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(broker.collection.cursor("source").unwrap().unwrap().snapshot, None);
}

#[tokio::test]
async fn damage_is_found_named_and_fetched_again() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..400, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    let once = proxy(server.address, |number| match number {
        1 => Harm::Flip(9_000),
        _ => Harm::None,
    });
    let summary = pull(once.await, &broker).await;
    assert_eq!((summary.changes, summary.resumed), (400, 1));
    assert_eq!(broker.titles(), source.titles());

    let broker = Store::new();
    // Resumed answers begin later in the stream; damage them from their start on.
    let always = proxy(server.address, |number| Harm::Flip(if number < 2 { 9_000 } else { 900 }));
    let error = puller(always.await, &broker).pull(None).await.unwrap_err();
    let Error::Corrupt { name, url, offset, what } = &error else { panic!("{error}") };
    assert!(name == "source" && url.contains("/snapshot/"), "{error}");
    let good = broker.collection.cursor("source").unwrap().unwrap().snapshot.unwrap().offset;
    assert_eq!(*offset, good, "all before the damage is kept");
    assert!((1_000..9_000).contains(offset), "{offset}");
    assert_ne!(*what, Damage::Truncated);
    assert!(!broker.collection.is_empty());
}

#[tokio::test]
async fn changes_pass_through_a_second_hop_with_their_origin() {
    let (source, broker, cascade) = (Store::new(), Store::new(), Store::new());
    source.fill(0..50, "first", 20);
    let near = Server::start(&source, FeedOptions::default()).await;
    let far = Server::start(&broker, FeedOptions::default()).await;
    pull(near.address, &broker).await;
    pull(far.address, &cascade).await;
    source.fill(40..60, "second", 20);
    source.commit(vec![Change::Delete(oid(1))]);
    pull(near.address, &broker).await;
    let summary = pull(far.address, &cascade).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 21));
    assert_eq!(cascade.titles(), source.titles());

    let origin = source.collection.get(&oid(59)).unwrap().unwrap().serial;
    let stored = cascade.collection.get(&oid(59)).unwrap().unwrap().record;
    let expected = format!("{}-{origin}", source.collection.version().epoch);
    assert_eq!(stored.text(ORIGIN_VERSION).unwrap(), expected);
}

#[tokio::test]
async fn two_hundred_at_once_share_one_snapshot_and_waiting_is_bounded() {
    let source = Store::new();
    source.fill(0..200, "first", 50);
    let options = FeedOptions { waiting_max: 50, ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    let address = server.address;
    let mut all = JoinSet::new();
    for _ in 0..200 {
        all.spawn(async move { get(address, "feed").await.bytes(1 << 20).await.unwrap() });
    }
    let bodies = all.join_all().await;
    assert!(bodies.iter().all(|it| *it == bodies[0]));
    let counters = server.feed().counters();
    assert_eq!((counters.snapshots, counters.redirects), (1, 200));
    assert_eq!(counters.snapshot_answers, 200);
    let told = "fetch the snapshot first\n".len();
    assert_eq!(counters.bytes, 200 * (bodies[0].len() + told) as u64);

    let have = source.collection.version();
    let path = format!("feed?since={}&epoch={}&wait=60", have.serial, have.epoch);
    let mut all = JoinSet::new();
    for _ in 0..200 {
        let path = path.clone();
        all.spawn(
            async move { get(address, &path).await.header("harvest-to").unwrap().to_owned() },
        );
    }
    for _ in 0..150 {
        let to = timeout(SOON, all.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(to, have.serial.to_string(), "whoever finds no room is answered at once");
    }
    assert_eq!(server.feed().counters().waiting, 50);
    source.fill(0..1, "second", 1);
    while let Some(to) = timeout(SOON, all.join_next()).await.unwrap() {
        assert_eq!(to.unwrap(), (have.serial + 1).to_string());
    }
}

#[tokio::test]
async fn a_consumer_of_another_format_is_told_which_is_spoken() {
    let source = Store::new();
    let server = Server::start(&source, FeedOptions::default()).await;
    let ask = |format: &'static str| {
        let url = host::join(&base(server.address), "feed");
        let name = HeaderName::from_static("harvest-accept-format");
        let request = Request::get(url).header(name, HeaderValue::from_static(format));
        async move { client().send(request).await.unwrap() }
    };
    let response = ask("7").await;
    assert_eq!(response.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(response.header("harvest-format"), Some("1"));
    let told = response.bytes(1_000).await.unwrap();
    assert_eq!(told, "format 1 is spoken here, not 7\n");
    assert_eq!(ask("7, 1").await.status, StatusCode::OK);

    // And the other way round: a server of the future.
    let future = scripted(|_| {
        let mut response = Response::new(net::body::full("format 7 is spoken here"));
        *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
        response.headers_mut().insert("harvest-format", HeaderValue::from_static("7"));
        response
    });
    let error = puller(future.await, &source).pull(None).await.unwrap_err();
    assert!(matches!(&error, Error::Format { spoken, ours: 1, .. } if spoken == "7"), "{error}");
    assert!(error.retry().is_none());
}

/// A server that answers whatever `answer` says.
async fn scripted(
    answer: impl Fn(&str) -> Response<Body> + Clone + Send + Sync + 'static,
) -> SocketAddr {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = service_fn(move |request: http::Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(answer(request.uri().path())))
    });
    tokio::spawn(serve(listener, service, Limits::default(), Shutdown::new()));
    address
}

#[tokio::test]
async fn what_is_no_feed_is_said_to_be_none() {
    let broker = Store::new();
    let page = scripted(|_| Response::new(net::body::full("<html>hello</html>"))).await;
    let error = puller(page, &broker).pull(None).await.unwrap_err();
    assert!(matches!(error, Error::NotAFeed { .. }), "{error}");
    assert!(error.to_string().contains("check the source's URL"), "{error}");
    let missing = scripted(|_| {
        let mut response = Response::new(net::body::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    });
    let error = puller(missing.await, &broker).pull(None).await.unwrap_err();
    assert!(matches!(error, Error::NotAFeed { .. }), "{error}");
}

#[tokio::test]
async fn a_source_brings_no_more_than_it_may() {
    let source = Store::new();
    source.fill(0..100, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    for (limits, setting) in [
        (PullLimits { records_max: 99, ..PullLimits::default() }, "records_max"),
        (PullLimits { bytes_max: 1_000, ..PullLimits::default() }, "bytes_max"),
    ] {
        let broker = Store::new();
        let error = limited(server.address, &broker, limits).pull(None).await.unwrap_err();
        let Error::OverLimit { setting: named, .. } = &error else { panic!("{error}") };
        assert_eq!(*named, setting);
        assert!(error.retry().is_none());
    }
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_given_up() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..100, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    let silent = proxy(server.address, |_| Harm::Stall(900)).await;
    let (client, collection) = (patient(Duration::from_millis(200)), broker.collection.clone());
    let limits = PullLimits::default();
    let puller = Puller::new(client, base(silent), "source".to_owned(), collection, limits);
    let puller = puller.allow_private(true);
    let error = timeout(SOON, puller.pull(None)).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("without sending anything"), "{error}");
    assert!(error.retry().is_some());
}

#[tokio::test]
async fn a_snapshot_has_ranges_conditions_and_a_head() {
    let source = Store::new();
    source.fill(0..100, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    let response = get(server.address, "feed").await;
    let (url, tag) = (response.url.clone(), response.header("etag").unwrap().to_owned());
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    assert!(response.header("cache-control").unwrap().contains("no-transform"));
    assert!(response.header("content-encoding").is_none());
    let whole = response.bytes(1 << 20).await.unwrap();

    let ask = |method: Method, pairs: &[(&'static str, &str)]| {
        let mut request = Request { method, ..Request::get(url.clone()) };
        for (name, text) in pairs {
            let (name, text) = (HeaderName::from_static(name), HeaderValue::from_str(text));
            request = request.header(name, text.unwrap());
        }
        async move { client().send(request).await.unwrap() }
    };
    let head = ask(Method::HEAD, &[]).await;
    assert_eq!(head.header("content-length").unwrap(), whole.len().to_string());
    assert_eq!(head.bytes(1).await.unwrap(), "");

    let part = ask(Method::GET, &[("range", "bytes=100-"), ("if-range", &tag)]).await;
    let range = format!("bytes 100-{}/{}", whole.len() - 1, whole.len());
    assert_eq!(
        (part.status, part.header("content-range")),
        (StatusCode::PARTIAL_CONTENT, Some(&*range))
    );
    // A commit in between changes nothing.
    source.fill(0..100, "second", 50);
    assert_eq!(part.bytes(1 << 20).await.unwrap(), whole[100..]);
    for cut in [1, whole.len() / 2, whole.len() - 1] {
        let first = ask(Method::GET, &[("range", &format!("bytes=0-{}", cut - 1))]).await;
        let second = ask(Method::GET, &[("range", &format!("bytes={cut}-"))]).await;
        let (first, second) =
            (first.bytes(1 << 20).await.unwrap(), second.bytes(1 << 20).await.unwrap());
        assert_eq!([first, second].concat(), whole, "cut at {cut}");
    }
    let other = ask(Method::GET, &[("range", "bytes=100-"), ("if-range", "\"other\"")]).await;
    assert_eq!(
        (other.status, other.bytes(1 << 20).await.unwrap()),
        (StatusCode::OK, whole.clone())
    );
    let past = ask(Method::GET, &[("range", "bytes=99999999-")]).await;
    assert_eq!(past.status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(ask(Method::GET, &[("if-none-match", &tag)]).await.status, StatusCode::NOT_MODIFIED);

    assert_eq!(ask(Method::POST, &[]).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get(server.address, "snapshot/none").await.status, StatusCode::GONE);
    assert_eq!(get(server.address, "elsewhere").await.status, StatusCode::NOT_FOUND);
    let bad = get(server.address, "feed?since=x").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_snapshot_outlives_the_compaction_of_what_it_shows() {
    let (source, broker) = (Store::new(), Store::new());
    for title in ["first", "second", "third"] {
        source.fill(0..200, title, 50);
    }
    let server = Server::start(&source, FeedOptions::default()).await;
    let response = get(server.address, "feed").await;
    let url = response.url.clone();
    let before = response.bytes(1 << 20).await.unwrap();
    let compacted = source.collection.compact(now()).unwrap();
    assert!(400 <= compacted.dropped, "{compacted:?}");
    let after = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
    assert!(before == after, "the bytes of a snapshot never change");

    // Begun before the compaction and ended after it.
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 600));
    assert_eq!(broker.titles(), source.titles());
    server.serve(&source);
    let newcomer = Store::new();
    assert_eq!(pull(server.address, &newcomer).await.changes, 200);
    assert_eq!(newcomer.titles(), source.titles());
}

#[tokio::test]
async fn a_serial_from_before_the_horizon_leads_to_a_snapshot() {
    let options = Options { horizon: Duration::ZERO, ..Options::default() };
    let (source, broker) = (Store::with(options), Store::new());
    source.fill(0..50, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    source.commit((0..20).map(|n| Change::Delete(oid(n))).collect());
    source.fill(50..60, "first", 10);
    source.collection.compact(Stamp(now().0 + 1_000)).unwrap();
    assert!(0 < source.collection.stats().horizon, "the deletes are forgotten");
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 20));
    assert_eq!(broker.titles(), source.titles());
}
