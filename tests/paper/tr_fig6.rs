//! Tests of TR Figure 6: how many bytes incremental gathering saves, by how often is gathered.
//!
//! The paper's objects are not to be had; what it says of their lifetimes is: 44 days on average, 28 % of at most ten
//! days, 1 % of at most one. Here lifetimes are drawn log-uniformly between these points, up to the longest that
//! gives the mean; nothing else is fitted. The changes go through a real feed, and the bytes are those that
//! come over the socket.
//!
//! # Differences from the paper
//!
//! * It computed the bytes of whole objects from their sizes and dates; here records are sent, and both ways
//!   have them compressed.
//! * An object changes once in each of its lifetimes, from a random moment on.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Batch, Change, Collection, GATHERER_ID, Options, Stamp};
use http::Request;
use net::body::Body;
use net::client::{Client, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use soif::Record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::service_fn;
use url::Url;

const OBJECTS: u64 = 300;
const DAYS: u64 = 56;
const MEAN_DAYS: f64 = 44.0;
const GATHERER: &str = "00000000000000aa";

/// Returns the mean of a number that is log-uniform between two others.
fn mean(low: f64, high: f64) -> f64 {
    (high - low) / (high / low).ln()
}

/// Returns the longest lifetime with which all have the paper's mean.
fn longest() -> f64 {
    let (mut low, mut high) = (11.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        let all = 0.01 * mean(0.1, 1.0) + 0.27 * mean(1.0, 10.0) + 0.72 * mean(10.0, middle);
        if all < MEAN_DAYS { low = middle } else { high = middle }
    }
    low
}

/// Returns the lifetime of the object at `rank` (0 to 1) of all lifetimes, in days.
fn lifetime(rank: f64, longest: f64) -> f64 {
    let (from, to, low, high): (f64, f64, f64, f64) = match rank {
        it if it < 0.01 => (0.0, 0.01, 0.1, 1.0),
        it if it < 0.28 => (0.01, 0.28, 1.0, 10.0),
        _ => (0.28, 1.0, 10.0, longest),
    };
    low * (high / low).powf((rank - from) / (to - from))
}

fn open(folder: &Path) -> Collection {
    Collection::open(folder, Options::default(), Stamp(1)).unwrap().0
}

/// Returns the record of a version of an object, between 1 and 16 KiB long.
fn record(object: u64, version: u64) -> Change {
    let mut random = fastrand::Rng::with_seed(object << 20 | version);
    let mut record = Record::new("FILE", format!("http://h.example/{object}"));
    let bytes = 1_024 << (object % 5);
    let mut text = String::new();
    while text.len() < bytes {
        // Few words are frequent, as in any language.
        let most = 1 << random.u32(4..14);
        let word = random.u32(..most);
        text.push_str(&format!("w{word:x} "));
    }
    record.push("Full-Text", text);
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

/// Relays connections to `to`, and counts the bytes that come back.
async fn relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, bytes) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counted = bytes.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(to).await.unwrap();
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
            });
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut piece = vec![0; 64 << 10];
                while let Ok(count @ 1..) = from_server.read(&mut piece).await {
                    counted.fetch_add(count as u64, Relaxed);
                    if to_client.write_all(&piece[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (address, bytes)
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

async fn pull(address: SocketAddr, into: &Collection) {
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let base = Url::parse(&format!("http://{address}/")).unwrap();
    let ask = FeedClient::new(client, base, "source").allow_private(true);
    Puller::new(ask, into.clone(), PullLimits::default()).pull(None).await.unwrap();
}

/// Returns how many times as many bytes full gathering takes as incremental gathering, every `period` days.
async fn saving(period: u64) -> f64 {
    let (folder, longest) = (tempfile::tempdir().unwrap(), longest());
    let source = open(&folder.path().join("source"));
    let (address, bytes) = relay(serve_feed(&source).await).await;
    let mut phases = fastrand::Rng::with_seed(6);
    // The phase and the version of each.
    let mut objects: Vec<(f64, u64)> = (0..OBJECTS).map(|_| (phases.f64(), 0)).collect();
    let consumer = open(&folder.path().join("consumer"));
    let (mut all, mut full, mut incremental) = (0, 0, 0);
    for day in (0..=DAYS).step_by(usize::try_from(period).unwrap()) {
        let mut changes = Vec::new();
        for (object, (phase, version)) in (0..OBJECTS).zip(&mut objects) {
            // Ranks are mixed, so that they have nothing to do with sizes.
            let rank = (object * 113 % OBJECTS) as f64 / OBJECTS as f64;
            let lifetime = lifetime(rank, longest);
            let changes_so_far = (0..).take_while(|it| {
                let at = (f64::from(*it) + 1.0 - *phase) * lifetime;
                at <= day as f64
            });
            let now = 1 + changes_so_far.count() as u64;
            if *version != now {
                *version = now;
                changes.push(record(object, now));
            }
        }
        source.commit(Batch { changes, notes: Vec::new() }, Stamp(day + 2)).unwrap();
        let before = bytes.load(Relaxed);
        pull(address, &consumer).await;
        assert_eq!(consumer.len(), OBJECTS);
        let came = bytes.load(Relaxed) - before;
        // The first time it is all; new versions are as long as old ones.
        if day == 0 { all = came } else { (full, incremental) = (full + all, incremental + came) }
    }
    full as f64 / incremental as f64
}

#[test]
fn lifetimes_are_those_of_the_paper() {
    let longest = longest();
    let all: Vec<f64> = (0..10_000).map(|it| lifetime(f64::from(it) / 1e4, longest)).collect();
    let share = |days: f64| all.iter().filter(|it| **it < days).count();
    assert_eq!((share(1.0), share(10.0)), (100, 2_800));
    let mean = all.iter().sum::<f64>() / 1e4;
    assert!((mean - MEAN_DAYS).abs() < 0.1, "{mean}");
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_gathering_saves_most_where_it_is_frequent() {
    let mut savings = Vec::new();
    for period in [1, 7, 28] {
        savings.push(saving(period).await);
    }
    println!(
        "full over incremental: {savings:.2?} (daily, weekly, every 28 days; 4.8 in the paper, daily)"
    );
    let [daily, weekly, monthly] = savings[..] else { panic!("{savings:?}") };
    assert!(weekly < daily && monthly < weekly, "{savings:?}");
    // As in the paper, it is clearly worthwhile each day, and hardly each month.
    assert!(4.0 < daily && 1.0 < monthly && monthly < 2.5, "{savings:?}");
}
