//! A source that is followed and goes away for a moment: what it has when it is back is found at once.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use collection::feed::{FeedOptions, FeedServer};
use common::{Origin, Running, config, url_of};
use http::StatusCode;
use http::header::RETRY_AFTER;
use net::clock;
use net::shutdown::Shutdown;
use tempfile::TempDir;
use tokio::sync::watch;

const ID: &str = "000000000000000d";

/// What a busy machine needs beyond what is waited for.
const MARGIN: Duration = Duration::from_secs(3);

/// The pause after the third failure in a row, with a quarter for chance.
const THIRD_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause of a source that was there a moment ago, whatever it asks for.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A long poll of 10 seconds, and 5 for its answer to come.
const SILENCE: Duration = Duration::from_secs(10 + 5);

/// A broker with the settings of one that runs for good, which follows what is at this address.
async fn follower(source: broker::source::Source) -> (TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let source = broker::source::Source { follow: true, ..source };
    let mut settings = config(dir.path(), vec![source]);
    (settings.freshness.interval_min, settings.freshness.interval_max) = (10.0, 86_400.0);
    let running = Running::start(settings).await;
    (dir, running)
}

/// Waits until the source has failed so often.
async fn failed(broker: &Running, times: u64) {
    broker.until("the source fails", |it| times <= it.sources[0].errors.count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_started_anew_is_heard_of_at_once() {
    let mut origin = Origin::start(ID).await;
    let version = origin.update(0..3, "before").await;
    let (_dir, broker) = follower(origin.source("a")).await;
    broker.caught_up("a", version).await;
    origin.stop().await;
    failed(&broker, 3).await;
    let version = origin.update(3..5, "after").await;
    origin.serve().await;
    let began = clock::monotonic();
    broker.caught_up("a", version).await;
    assert!(began.elapsed() < THIRD_PAUSE + MARGIN, "{:?}", began.elapsed());
    assert_eq!(broker.total("after").await, 2);
    broker.stop().await;
}

/// How a source answers.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    /// With 503, and the wish to be left alone for a minute.
    Busy,
    /// It takes requests, and says nothing until it is well.
    Silent,
}

/// Serves what an origin has, in moods.
async fn moody(origin: &Origin) -> (std::net::SocketAddr, Arc<watch::Sender<Mood>>, Shutdown) {
    let feed = FeedServer::new(origin.collection.clone(), FeedOptions::default());
    let mood = Arc::new(watch::Sender::new(Mood::Well));
    let moods = mood.clone();
    let router = Router::new().fallback(move |request: Request| {
        let (feed, mut mood) = (feed.clone(), moods.subscribe());
        async move {
            let answering = async {
                let asked = *mood.borrow_and_update();
                if asked == Mood::Busy {
                    let retry = [(RETRY_AFTER, "60")];
                    return (StatusCode::SERVICE_UNAVAILABLE, retry, "busy").into_response();
                }
                feed.respond(request.map(drop)).await.map(axum::body::Body::new)
            };
            let response = answering.await;
            // An answer that is ready is held as well.
            drop(mood.wait_for(|it| *it != Mood::Silent).await);
            response
        }
    });
    let listener =
        net::server::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Shutdown::new();
    let until = stop.clone();
    tokio::spawn(async move {
        net::server::serve(listener, router, net::server::Limits::default(), until).await.unwrap();
    });
    (address, mood, stop)
}

/// A source that is in another mood for a while; `noticed`: until the broker knows that at most; `found`: and then
/// that it is well again.
async fn check(other: Mood, noticed: Duration, found: Duration) {
    let origin = Origin::start(ID).await;
    let (address, mood, stop) = moody(&origin).await;
    let version = origin.update(0..3, "before").await;
    let (_dir, broker) = follower(broker::source::Source::gatherer("a", url_of(address))).await;
    broker.caught_up("a", version).await;
    let began = clock::monotonic();
    mood.send_replace(other);
    // The long poll under way is answered with this; the next one is not.
    origin.update(3..4, "meanwhile").await;
    failed(&broker, 1).await;
    let version = origin.update(4..6, "after").await;
    assert!(began.elapsed() < noticed + MARGIN, "noticed after {:?}", began.elapsed());
    mood.send_replace(Mood::Well);
    let began = clock::monotonic();
    broker.caught_up("a", version).await;
    assert!(began.elapsed() < found + MARGIN, "found after {:?}", began.elapsed());
    assert_eq!(broker.total("after").await, 2);
    stop.start();
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_answers_503_and_is_well_then_is_heard_of_soon() {
    check(Mood::Busy, Duration::ZERO, PAUSE_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_nothing_is_noticed_and_heard_of_at_once_then() {
    // It has been asked again already, and answers that.
    check(Mood::Silent, SILENCE, Duration::ZERO).await;
}
