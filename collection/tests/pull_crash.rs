//! A consumer that is killed while it pulls. This binary starts itself as a child, which pulls over
//! a connection that is cut at a random byte. A random moment later, while the child applies the
//! received part, it is killed with SIGKILL. In the end every change is there, and none twice.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of kills (default 6); `HARVEST_CRASH_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{
    Batch, Change, Collection, GATHERER_ID, ORIGIN_VERSION, Oid, Options, Recovery, Stamp,
};
use http::Request;
use net::body::Body;
use net::client::{Client, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use soif::Record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;

/// Environment variables of the child: the directory of its collection; the address of the source.
const DIRECTORY: &str = "HARVEST_PULL_DIRECTORY";
const ADDRESS: &str = "HARVEST_PULL_ADDRESS";
const GATHERER: &str = "00000000000000aa";
const SOON: Duration = Duration::from_secs(60);
/// A budget without a cut: more than any answer.
const WHOLE: u64 = u64::MAX;

fn open(dir: &Path) -> (Collection, Recovery) {
    let options = Options { member_bytes_max: 2 << 10, ..Options::default() };
    Collection::open(dir, options, Stamp(1)).unwrap()
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn oid(n: u64) -> Oid {
    Oid::new(GATHERER, &format!("http://h/{n}"))
}

fn update(n: u64, state: &mut u64) -> Change {
    let mut record = Record::new("FILE", oid(n).url);
    record.push("Title", format!("{n} as of {}", random(state)));
    let noise: Vec<_> = (0..40).map(|_| format!("{:x}", random(state))).collect();
    record.push("Keywords", noise.join(" "));
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

/// Changes, adds and deletes some of the source's objects, in a few commits.
fn change(source: &Collection, state: &mut u64) {
    for _ in 0..4 {
        let numbers: BTreeSet<_> = (0..40).map(|_| random(state) % 300).collect();
        let changes = numbers.into_iter().map(|n| match random(state) % 5 {
            0 => Change::Delete(oid(n)),
            _ => update(n, state),
        });
        source.commit(Batch { changes: changes.collect(), notes: Vec::new() }, Stamp(1)).unwrap();
    }
}

/// Returns the live objects' titles; no object may be in the log twice with one version.
fn titles(collection: &Collection) -> BTreeMap<String, String> {
    let mut titles = BTreeMap::new();
    let mut versions = BTreeSet::new();
    for scanned in collection.scan(0).unwrap() {
        match scanned.unwrap().change {
            Change::Update(record) => {
                let title = record.text("Title").unwrap().into_owned();
                if let Some(version) = record.text(ORIGIN_VERSION) {
                    let fresh = versions.insert((record.url.clone(), version.into_owned()));
                    assert!(fresh, "{} came twice", record.url);
                }
                titles.insert(record.url.clone(), title);
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                titles.remove(&oid.url);
            }
            Change::Refresh(..) | Change::Confirm { .. } => {}
        }
    }
    assert_eq!(titles.len() as u64, collection.len());
    titles
}

/// Runs as the child: pulls once.
#[tokio::test]
async fn child() {
    let (Ok(dir), Ok(address)) = (env::var(DIRECTORY), env::var(ADDRESS)) else { return };
    let (collection, recovery) = open(Path::new(&dir));
    assert!(!recovery.lost, "{recovery:?}");
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let base = url::Url::parse(&format!("http://{address}/")).unwrap();
    let ask = FeedClient::new(client, base, "source").allow_private(true);
    Puller::new(ask, collection, PullLimits::default()).pull(None).await.unwrap();
}

fn start_child(dir: &Path, address: SocketAddr) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["child", "--exact"])
        .env(DIRECTORY, dir)
        .env(ADDRESS, address.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn serve_feed(source: &Collection) -> SocketAddr {
    let feed = FeedServer::new(source.clone(), FeedOptions::default());
    let service = service_fn(move |request: Request<Body>| {
        let feed = feed.clone();
        async move { Ok::<_, Infallible>(feed.respond(request.map(drop)).await) }
    });
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, service, Limits::default(), Shutdown::new()));
    address
}

/// Passes `budget` bytes from the server, over any number of connections, then cuts and reports.
async fn proxy(server: SocketAddr, budget: Arc<AtomicU64>, cut: mpsc::Sender<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (near, _) = listener.accept().await.unwrap();
            connections.spawn(pass(near, server, Arc::clone(&budget), cut.clone()));
        }
    });
    address
}

async fn pass(near: TcpStream, server: SocketAddr, budget: Arc<AtomicU64>, cut: mpsc::Sender<()>) {
    let far = TcpStream::connect(server).await.unwrap();
    let ((mut from_near, mut to_near), (mut from_far, mut to_far)) =
        (near.into_split(), far.into_split());
    let up = async {
        let _closed = tokio::io::copy(&mut from_near, &mut to_far).await;
        std::future::pending::<()>().await;
    };
    let down = async {
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = from_far.read(&mut buffer).await {
            let left = budget.load(Ordering::SeqCst);
            let keep = left.min(count as u64);
            budget.store(left - keep, Ordering::SeqCst);
            let piece = &buffer[..usize::try_from(keep).unwrap()];
            if to_near.write_all(piece).await.is_err() {
                return;
            }
            if keep < count as u64 {
                // One report is enough.
                cut.try_send(()).unwrap_or_default();
                return;
            }
        }
    };
    tokio::select! { () = up => {}, () = down => {} }
}

#[tokio::test]
async fn a_kill_while_pulling_loses_and_repeats_nothing() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6);
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let mut state = seed;
    let (source_dir, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, _) = open(source_dir.path());
    let budget = Arc::new(AtomicU64::new(0));
    let (cut, mut cuts) = mpsc::channel(1);
    let address = proxy(serve_feed(&source).await, Arc::clone(&budget), cut).await;
    for round in 0..rounds {
        change(&source, &mut state);
        let (bytes, spin) = (random(&mut state) % 60_000, random(&mut state) % 3_000_000);
        println!("seed {seed}, round {round}: cut after {bytes} bytes, killed after {spin} spins");
        while cuts.try_recv().is_ok() {}
        budget.store(bytes, Ordering::SeqCst);
        let mut child = start_child(dir.path(), address);
        let ended = timeout(SOON, async {
            tokio::select! {
                _ = cuts.recv() => None,
                ended = child.wait() => Some(ended.unwrap()),
            }
        });
        match ended.await.unwrap() {
            Some(ended) => assert!(ended.success(), "the child failed by itself"),
            None => {
                for it in 0..spin {
                    std::hint::black_box(it);
                }
                child.start_kill().unwrap();
                child.wait().await.unwrap();
            }
        }
    }
    budget.store(WHOLE, Ordering::SeqCst);
    let ended = timeout(SOON, start_child(dir.path(), address).wait_with_output()).await;
    assert!(ended.unwrap().unwrap().status.success(), "the last pull is whole");

    let (collection, recovery) = open(dir.path());
    assert!(recovery.cut.is_empty(), "{recovery:?}");
    assert_eq!(titles(&collection), titles(&source));
    let report = collection.verify().unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let cursor = collection.cursor("source").unwrap().unwrap();
    assert_eq!((cursor.serial, cursor.snapshot), (source.version().serial, None));
}
