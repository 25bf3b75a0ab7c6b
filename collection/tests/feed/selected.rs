//! Tests of selections: a consumer has what its query selects at the source, whatever happens on the way.

use std::collections::BTreeMap;
use std::fs;
use std::future::{Future as _, poll_fn};
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::pull::{Kind, PullLimits, Puller, Summary};
use collection::{Change, Collection, Error, KeptSubset, Options, Stamp, Subset};
use flate2::read::MultiGzDecoder;
use http::{HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use net::client::Request;
use soif::Record;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use url::Url;

use crate::support::{
    Harm, Random, SOON, Server, Store, client, feed_client, now, oid, proxy, update,
};

const VIEW: &str = "harvest-view";

type Takes = Arc<dyn Fn(&Record) -> bool + Send + Sync>;

const WORDS: [&str; 3] = ["apple", "pear", "quince"];

fn puller(address: SocketAddr, store: &Store, query: &str) -> Puller {
    let part = (!query.is_empty()).then(|| ("q", query.to_owned()));
    let feed = feed_client(client(), address, "source").part(part);
    Puller::new(feed, store.collection.clone(), PullLimits::default())
}

async fn pull_of(address: SocketAddr, store: &Store, query: &str) -> Summary {
    timeout(SOON, puller(address, store, query).pull(None)).await.unwrap().unwrap()
}

/// Returns the titles of a store that begin with a word.
fn titles(store: &Store, word: &str) -> BTreeMap<String, String> {
    store.titles().into_iter().filter(|it| it.1.starts_with(word)).collect()
}

#[tokio::test]
async fn what_is_selected_comes_and_what_is_no_longer_goes() {
    let (source, consumer) = (Store::new(), Store::new());
    source.fill(0..300, "apple", 50);
    source.fill(300..600, "pear", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    let first = pull_of(server.address, &consumer, "apple").await;
    assert_eq!((first.kind, consumer.collection.len()), (Kind::Snapshot, 300));
    assert_eq!(titles(&source, "apple"), consumer.titles());
    // One leaves, one comes, one changes and stays, one is deleted, one that never came changes.
    let leaving = update(1, "pear");
    source.commit(vec![leaving, update(301, "apple"), update(2, "apple again")]);
    source.commit(vec![Change::Delete(oid(3)), update(302, "pear again")]);
    let next = pull_of(server.address, &consumer, "apple").await;
    assert_eq!(next.kind, Kind::Delta);
    assert!(next.bytes <= 2 << 10, "{} bytes", next.bytes);
    assert_eq!((consumer.collection.len(), titles(&source, "apple")), (299, consumer.titles()));
    // A consumer that was set back to the beginning is told what is not selected, too.
    let version = source.collection.version();
    let url = format!("http://{}/feed?since=0&epoch={}&q=apple", server.address, version.epoch);
    let view = (HeaderName::from_static("harvest-view"), HeaderValue::from_static("name-of-apple"));
    let request = Request::get(Url::parse(&url).unwrap()).header(view.0, view.1);
    let response = client().send(request).await.unwrap();
    assert_eq!((response.status.as_u16(), response.header("harvest-kind")), (200, Some("delta")));
    let bytes = response.bytes(1 << 20).await.unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let deletes = text.split("@DELETE").skip(1).collect::<String>();
    assert!(deletes.contains("http://h/1\n") && deletes.contains("http://h/3\n"), "{text}");
    // With nothing new, the answer is an end mark.
    let idle = pull_of(server.address, &consumer, "apple").await;
    assert!(idle.bytes < 100 && idle.changes == 0, "{idle:?}");
}

#[tokio::test]
async fn another_query_takes_the_place_of_the_first_without_a_question() {
    let (source, consumer) = (Store::new(), Store::new());
    source.fill(0..300, "apple", 50);
    source.fill(300..600, "pear", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    for (query, count) in [("apple", 300), ("pear", 300), ("", 600), ("quince", 0), ("a", 300)] {
        let summary = pull_of(server.address, &consumer, query).await;
        assert_eq!((summary.kind, consumer.collection.len()), (Kind::Snapshot, count), "{query}");
        assert_eq!(titles(&source, query), consumer.titles());
    }
    // That is the administrator's own doing; a source that turns to something else is held as ever.
    source.fill(0..300, "medlar", 50);
    let later = Store::new();
    later.fill(0..300, "medlar", 50);
    server.serve(&later);
    let error = puller(server.address, &consumer, "a").pull(None).await.unwrap_err();
    assert!(matches!(error, Error::Loss { lost: 300, .. }), "{error}");
    assert_eq!(consumer.collection.len(), 300);
}

#[tokio::test]
async fn a_query_that_matches_far_less_waits_for_a_confirmation() {
    let (source, consumer) = (Store::new(), Store::new());
    source.fill(0..300, "apple", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull_of(server.address, &consumer, "apple").await;
    source.fill(0..80, "pear", 80);
    pull_of(server.address, &consumer, "apple").await;
    assert_eq!(consumer.collection.len(), 220);
    source.fill(80..280, "pear", 200);
    for _ in 0..2 {
        let error = puller(server.address, &consumer, "apple").pull(None).await.unwrap_err();
        assert!(matches!(error, Error::Loss { of: 300, .. }), "{error}");
        assert_eq!(consumer.collection.len(), 220);
    }
    let confirmed = puller(server.address, &consumer, "apple").confirmed(true);
    timeout(SOON, confirmed.pull(None)).await.unwrap().unwrap();
    assert_eq!(titles(&source, "apple"), consumer.titles());
    assert_eq!(consumer.collection.len(), 20);
}

#[tokio::test]
async fn a_mass_that_goes_bit_by_bit_waits_as_well() {
    let (source, consumer) = (Store::new(), Store::new());
    source.fill(0..12_000, "apple", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull_of(server.address, &consumer, "apple").await;
    // Far more than is applied at once.
    source.fill(0..11_000, "pear", 500);
    for _ in 0..4 {
        let error = puller(server.address, &consumer, "apple").pull(None).await.unwrap_err();
        assert!(matches!(error, Error::Loss { of: 12_000, .. }), "{error}");
        assert!(8_400 <= consumer.collection.len(), "{}", consumer.collection.len());
    }
    let confirmed = puller(server.address, &consumer, "apple").confirmed(true);
    timeout(SOON, confirmed.pull(None)).await.unwrap().unwrap();
    assert_eq!(consumer.collection.len(), 1_000);
    // It counts anew.
    source.fill(11_000..11_100, "pear", 100);
    pull_of(server.address, &consumer, "apple").await;
    assert_eq!(consumer.collection.len(), 900);
}

#[tokio::test]
async fn a_mass_that_goes_by_many_pulls_waits_as_well() {
    let (source, consumer) = (Store::new(), Store::new());
    source.fill(0..1_000, "apple", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull_of(server.address, &consumer, "apple").await;
    for step in 0..3 {
        source.fill(100 * step..100 * (step + 1), "pear", 100);
        pull_of(server.address, &consumer, "apple").await;
        assert_eq!(consumer.collection.len(), 900 - u64::from(step) * 100);
    }
    source.fill(300..301, "pear", 1);
    let error = puller(server.address, &consumer, "apple").pull(None).await.unwrap_err();
    assert!(matches!(error, Error::Loss { lost: 301, of: 1_000, .. }), "{error}");
    assert_eq!(consumer.collection.len(), 700);
}

#[tokio::test]
async fn an_answer_is_made_once_and_its_files_go() {
    let source = Store::new();
    source.fill(0..300, "apple", 50);
    let options = FeedOptions { patience: Duration::ZERO, ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    let files = || fs::read_dir(source.dir.path().join("selected")).map_or(0, Iterator::count);
    // Who does not get it at once asks again, and it is there.
    let consumers: Vec<Store> = (0..4).map(|_| Store::new()).collect();
    for consumer in &consumers {
        let asked = async {
            loop {
                match puller(server.address, consumer, "apple").pull(None).await {
                    Ok(_) => return,
                    // Even of a source that changes all the time.
                    Err(Error::Source { .. }) => source.commit(vec![update(900, "pear")]),
                    Err(error) => panic!("{error}"),
                }
            }
        };
        timeout(SOON, asked).await.unwrap();
        assert_eq!(consumer.collection.len(), 300);
        assert!(files() <= 8, "{} files", files());
    }
    // A killed server leaves its files.
    let Store { collection, dir } = source;
    let had = collection.len();
    server.serve(&Store::new());
    collection.close();
    drop(collection);
    fs::create_dir_all(dir.path().join("selected")).unwrap();
    fs::write(dir.path().join("selected/segment-00000001.gz"), "left").unwrap();
    let (opened, _) = Collection::open(dir.path(), Options::default(), now()).unwrap();
    assert!(!dir.path().join("selected").exists());
    assert_eq!(opened.len(), had);
}

#[tokio::test]
async fn of_too_many_selections_those_go_that_were_asked_for_longest_ago() {
    let source = Store::new();
    source.fill(0..100, "apple", 50);
    let feed = FeedServer::new(source.collection.clone(), FeedOptions::default());
    let files = || fs::read_dir(source.dir.path().join("selected")).map_or(0, Iterator::count);
    let ask = async |name: String| {
        let takes: Takes = Arc::new(|_| true);
        let selection = Selection { name, takes, among: None };
        let request = http::Request::get("/feed").body(()).unwrap();
        let answer = feed.respond_selected(request, &selection).await;
        let place = answer.headers()["location"].to_str().unwrap().to_owned();
        let target = format!("/{}", place.trim_start_matches('/'));
        feed.respond(http::Request::get(target).body(()).unwrap()).await.status().as_u16()
    };
    let count = 80;
    for it in 0..count {
        assert_eq!(ask(format!("selection {it}")).await, 200);
        assert!(files() <= 64, "{} files", files());
    }
    // What is kept is not made again, and what has gone is.
    let snapshots = || feed.counters().snapshots;
    for (which, made) in [(count - 1, 0), (count - 60, 0), (0, 1), (0, 0)] {
        let before = snapshots();
        assert_eq!(ask(format!("selection {which}")).await, 200);
        assert_eq!(snapshots() - before, made, "{which}");
    }
}

#[tokio::test]
async fn it_is_told_once_that_an_object_has_left() {
    let source = Store::new();
    source.commit(vec![update(1, "apple"), update(2, "apple")]);
    let before = source.collection.version();
    source.commit(vec![update(1, "pear")]);
    let left = source.collection.version();
    source.commit(vec![update(1, "quince")]);
    let now = source.collection.version();
    let mut subset = Subset { members: Arc::new([2].into()), ..Subset::default() };
    subset.add_left(4, 3);
    let (_reached, receiver) = watch::channel(now);
    let kept = KeptSubset::new(receiver, move || Some(subset.clone()));
    for is_compacted in [false, true] {
        if is_compacted {
            source.collection.compact(Stamp(1)).unwrap();
        }
        let feed = FeedServer::new(source.collection.clone(), FeedOptions::default());
        // By its leaving, if that is still there, and by its last change.
        for (since, count) in [(before, 2 - usize::from(is_compacted)), (left, 0), (now, 0)] {
            let (among, takes): (_, Takes) = (Some(kept.clone()), Arc::new(|_| true));
            let selection = Selection { name: "apple".to_owned(), takes, among };
            let target = format!("/feed?since={}&epoch={}", since.serial, since.epoch);
            let request = http::Request::get(target).header(VIEW, "apple").body(()).unwrap();
            let response = feed.respond_selected(request, &selection).await;
            assert_eq!(response.headers()["harvest-kind"], "delta");
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            let mut text = String::new();
            MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            let deletes: Vec<&str> = text.split("@DELETE").skip(1).collect();
            assert_eq!(deletes.len(), count, "{since:?} {is_compacted} {text}");
            assert!(deletes.iter().all(|it| it.contains("http://h/1\n")), "{text}");
        }
    }
}

#[tokio::test]
async fn it_is_told_that_an_object_has_left_that_changes_again_meanwhile() {
    let source = Store::new();
    source.commit(vec![update(1, "apple"), update(2, "apple")]);
    let before = source.collection.version();
    source.commit(vec![update(1, "pear")]);
    let left = source.collection.version();
    // The answer is that of this version, and the object changes while it is being made.
    let (_reached, receiver) = watch::channel(left);
    let (collection, again) = (source.collection.clone(), vec![update(1, "quince")]);
    let get = move || {
        if collection.version() == left {
            let batch = collection::Batch { changes: again.clone(), notes: Vec::new() };
            collection.commit(batch, now()).unwrap();
        }
        let mut subset = Subset { members: Arc::new([2].into()), ..Subset::default() };
        subset.add_left(3, 3);
        Some(subset)
    };
    let (among, takes): (_, Takes) = (Some(KeptSubset::new(receiver, get)), Arc::new(|_| true));
    let selection = Selection { name: "apple".to_owned(), takes, among };
    let feed = FeedServer::new(source.collection.clone(), FeedOptions::default());
    let target = format!("/feed?since={}&epoch={}", before.serial, before.epoch);
    let request = http::Request::get(target).header(VIEW, "apple").body(()).unwrap();
    let response = feed.respond_selected(request, &selection).await;
    assert_eq!(response.headers()["harvest-to"], left.serial.to_string());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let mut text = String::new();
    MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let deletes: Vec<&str> = text.split("@DELETE").skip(1).collect();
    assert_eq!(deletes.len(), 1, "{text}");
    assert!(deletes[0].contains("http://h/1\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_long_keeps_no_changes_waiting() {
    let source = Store::new();
    source.fill(0..300, "apple", 50);
    let feed = FeedServer::new(source.collection.clone(), FeedOptions::default());
    let gate = Arc::new(Semaphore::new(0));
    let (closed, runtime) = (Arc::clone(&gate), Handle::current());
    let blocks: Takes = Arc::new(move |_| runtime.block_on(closed.acquire()).is_ok());
    let ask = async |name: &str, takes: &Takes, parameters: &str| {
        let selection = Selection { name: name.to_owned(), takes: Arc::clone(takes), among: None };
        let request = http::Request::get(format!("/feed{parameters}")).header(VIEW, name);
        let request = request.body(()).unwrap();
        feed.respond_selected(request, &selection).await.status().as_u16()
    };
    // Far more of these than may be under way begin to make snapshots, which come to no end.
    let all = (0..40).map(|it| format!("slow {it}")).collect::<Vec<_>>();
    let mut snapshots = all.iter().map(|it| Box::pin(ask(it, &blocks, ""))).collect::<Vec<_>>();
    let begun = poll_fn(|context| {
        let polled = snapshots.iter_mut().map(|it| it.as_mut().poll(context));
        let refused = polled.filter(|it| matches!(it, Poll::Ready(503))).count();
        Poll::Ready(refused)
    });
    assert!(begun.await < 40);
    let version = source.collection.version();
    let after = format!("?since={}&epoch={}", version.serial - 10, version.epoch);
    let takes: Takes = Arc::new(|_| true);
    let delta = timeout(SOON, ask("quick", &takes, &after)).await;
    gate.close();
    assert_eq!(delta.unwrap(), 200);
}

/// A source changes, is compacted, served anew; connections break off and bytes turn. After each pull that succeeds, the
/// consumer has exactly what is selected.
#[tokio::test]
async fn a_consumer_has_what_is_selected_whatever_happens() {
    for seed in 1..=12 {
        let mut random = Random(seed);
        let (source, consumer) = (Store::new(), Store::new());
        source.fill(0..40, "apple", 10);
        let server = Server::start(&source, FeedOptions::default()).await;
        let mut harms = Random(seed + 100);
        let between = proxy(server.address, move |_| match harms.below(6) {
            0 => Harm::Cut(harms.below(3_000)),
            // Heads have no checksum.
            1 => Harm::Flip(1_000 + harms.below(3_000)),
            _ => Harm::None,
        })
        .await;
        let mut query = WORDS[0];
        for step in 0..40 {
            match random.below(12) {
                0 => drop(source.collection.compact(now()).unwrap()),
                1 => server.serve(&source),
                2 => query = WORDS[usize::try_from(random.below(3)).unwrap()],
                3 => drop(source.collection.compact(Stamp(now().0 + 90 * 86_400_000)).unwrap()),
                _ => {
                    let changes = (0..=random.below(4)).map(|_| {
                        let n = u32::try_from(random.below(60)).unwrap();
                        let word = WORDS[usize::try_from(random.below(3)).unwrap()];
                        if random.below(5) == 0 { Change::Delete(oid(n)) } else { update(n, word) }
                    });
                    // One change of each object in a commit.
                    let mut last = BTreeMap::new();
                    changes.for_each(|it| drop(last.insert(it.oid().unwrap().url.clone(), it)));
                    source.commit(last.into_values().collect());
                }
            }
            let pulled = timeout(SOON, puller(between, &consumer, query).pull(None)).await.unwrap();
            if let Err(error) = &pulled {
                let is_broken = matches!(error, Error::Source { .. } | Error::Corrupt { .. });
                assert!(is_broken, "seed {seed}, step {step}: {error}");
            } else {
                let (wanted, found) = (titles(&source, query), consumer.titles());
                assert_eq!(wanted, found, "seed {seed}, step {step}, {query}");
            }
        }
    }
}
