//! Support of the feed tests: a collection, its server, and a proxy that harms answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::pull::{FeedClient, PullLimits, Puller, Summary};
use collection::replica::Replica;
use collection::{Batch, Change, Collection, GATHERER_ID, Oid, Options, Stamp};
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

pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const GATHERER: &str = "00000000000000aa";

/// A collection in a folder of its own, with small members so that a stream has many.
pub(crate) struct Store {
    pub(crate) collection: Collection,
    pub(crate) dir: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { member_bytes_max: 2 << 10, ..options };
        let (collection, _) = Collection::open(dir.path(), options, now()).unwrap();
        Self { collection, dir }
    }

    pub(crate) fn commit(&self, changes: Vec<Change>) {
        self.collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
    }

    /// Commits objects `numbers`, `each` per commit.
    pub(crate) fn fill(&self, numbers: std::ops::Range<u32>, title: &str, each: usize) {
        let all: Vec<_> = numbers.map(|n| update(n, title)).collect();
        for changes in all.chunks(each) {
            self.commit(changes.to_vec());
        }
    }

    /// Returns the title of every live object.
    pub(crate) fn titles(&self) -> BTreeMap<String, String> {
        let mut titles = BTreeMap::new();
        for scanned in self.collection.scan(0).unwrap() {
            match scanned.unwrap().change {
                Change::Update(record) => {
                    titles.insert(record.url.clone(), record.text("Title").unwrap().into_owned());
                }
                Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                    titles.remove(&oid.url);
                }
                Change::Refresh(..) | Change::Confirm { .. } => {}
            }
        }
        assert_eq!(titles.len() as u64, self.collection.len());
        titles
    }
}

pub(crate) fn now() -> Stamp {
    Stamp(clock::now_ms())
}

pub(crate) fn oid(n: u32) -> Oid {
    Oid::new(GATHERER, &format!("http://h/{n}"))
}

pub(crate) fn update(n: u32, title: &str) -> Change {
    let mut record = Record::new("FILE", oid(n).url);
    record.push("Title", format!("{title} {n}"));
    // This does not compress well, so that streams have some length.
    record.push(
        "Keywords",
        format!("{:x}", u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)),
    );
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

/// A server whose feed can be replaced.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    feed: Arc<Mutex<FeedServer>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(store: &Store, options: FeedOptions) -> Self {
        let feed = FeedServer::new(store.collection.clone(), options);
        let feed = Arc::new(Mutex::new(feed));
        let shared = Arc::clone(&feed);
        let service = service_fn(move |request: http::Request<Body>| {
            let feed = shared.lock().unwrap().clone();
            async move {
                let request = request.map(drop);
                Ok::<_, Infallible>(match selected(&request) {
                    Some((request, selection)) => feed.respond_selected(request, &selection).await,
                    None => feed.respond(request).await,
                })
            }
        });
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            serve(listener, service, Limits::default(), Shutdown::new()).await.unwrap();
        });
        Self { address, feed, _tasks: tasks }
    }

    pub(crate) fn feed(&self) -> FeedServer {
        self.feed.lock().unwrap().clone()
    }

    /// Serves a replica instead.
    pub(crate) fn serve_replica(&self, replica: &Replica) {
        let fresh = FeedServer::of_replica(replica.clone(), FeedOptions::default());
        *self.feed.lock().unwrap() = fresh;
    }

    /// Serves another collection, or the same one as after a restart.
    pub(crate) fn serve(&self, store: &Store) {
        self.serve_with(store, FeedOptions::default());
    }

    pub(crate) fn serve_with(&self, store: &Store, options: FeedOptions) {
        let fresh = FeedServer::new(store.collection.clone(), options);
        *self.feed.lock().unwrap() = fresh;
    }
}

/// Returns what a request selects by `q`, a word of titles, and the request without it.
fn selected(request: &http::Request<()>) -> Option<(http::Request<()>, Selection)> {
    let parameters = request.uri().query()?;
    let (rest, word) = parameters.split_once("q=")?;
    let word = word.to_owned();
    let mut request = request.clone();
    let target = format!("{}?{rest}", request.uri().path());
    *request.uri_mut() = target.trim_end_matches(['&', '?']).parse().unwrap();
    let name = format!("name-of-{word}");
    let has = move |record: &Record| record.text("Title").unwrap().starts_with(&word);
    Some((request, Selection { name, takes: Arc::new(has), among: None }))
}

/// A client with a connection for each request, so that a proxy can tell them apart.
pub(crate) fn client() -> Client {
    patient(Timeouts::default().idle)
}

/// Makes a client that gives up on a peer after a silence of `idle`.
pub(crate) fn patient(idle: Duration) -> Client {
    let timeouts = Timeouts { idle, ..Timeouts::default() };
    let settings = Settings { timeouts, allow_private: true, ..Settings::default() };
    Client::new(Settings { idle_per_host_max: 0, ..settings })
}

pub(crate) fn base(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

pub(crate) fn puller(address: SocketAddr, store: &Store) -> Puller {
    limited(address, store, PullLimits::default())
}

pub(crate) fn limited(address: SocketAddr, store: &Store, limits: PullLimits) -> Puller {
    Puller::new(feed_client(client(), address, "source"), store.collection.clone(), limits)
}

pub(crate) fn feed_client(client: Client, address: SocketAddr, source: &str) -> FeedClient {
    FeedClient::new(client, base(address), source).allow_private(true)
}

pub(crate) async fn pull(address: SocketAddr, store: &Store) -> Summary {
    timeout(SOON, puller(address, store).pull(None)).await.unwrap().unwrap()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> net::client::Response {
    client().send(Request::get(host::join(&base(address), path))).await.unwrap()
}

/// A proxy's harm to the response bytes of one connection.
#[derive(Clone, Copy)]
pub(crate) enum Harm {
    None,
    /// Closes after this many bytes.
    Cut(u64),
    /// Passes no more after this many bytes, and stays open.
    Stall(u64),
    /// Changes the byte with this number.
    Flip(u64),
}

/// Starts a proxy between client and server; `harm` chooses the harm for each connection, from 0.
pub(crate) async fn proxy(
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

pub(crate) async fn pass(near: TcpStream, server: SocketAddr, harm: Harm) {
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

/// A generator of random numbers; a failing seed fails again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
