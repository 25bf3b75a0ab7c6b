//! Tests of a followed source that fails for a moment: its changes are found soon after it is back.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Origin, Running, config, url_of};
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use collection::feed::{FeedOptions, FeedServer};
use http::StatusCode;
use http::header::RETRY_AFTER;
use net::clock;
use net::shutdown::Shutdown;
use tempfile::TempDir;
use tokio::sync::watch;

const ID: &str = "000000000000000d";

/// Additional time for a busy machine.
const MARGIN: Duration = Duration::from_secs(3);

/// The pause after the third failure in a row, with a quarter for jitter.
const THIRD_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause after a failure of a source that answered a moment ago, even if it asks for a
/// minute.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The 10 seconds of a long poll, and the 5 seconds after which a missing answer is a failure.
const SILENCE: Duration = Duration::from_secs(10 + 5);

/// Starts a broker with production intervals that follows this source.
async fn follower(source: broker::source::Source) -> (TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let source = broker::source::Source { follow: true, ..source };
    let mut settings = config(dir.path(), vec![source]);
    (settings.freshness.interval_min, settings.freshness.interval_max) = (10.0, 86_400.0);
    let running = Running::start(settings).await;
    (dir, running)
}

async fn failed(broker: &Running, times: u64) {
    broker.until("the source fails", |it| times <= it.sources[0].errors.count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_restarted_source_are_found_at_once() {
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

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    /// Answers 503 with a Retry-After of a minute.
    Busy,
    /// Accepts requests, and answers nothing until it is well.
    Silent,
}

/// Serves the feed of an origin with a changing mood.
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
            // A ready answer is held back, too.
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

/// Checks a source that is in another mood for a while. `noticed` is the maximum time until the
/// broker counts a failure, `found` the maximum time from the recovery until it finds the changes.
async fn check(other: Mood, noticed: Duration, found: Duration) {
    let origin = Origin::start(ID).await;
    let (address, mood, stop) = moody(&origin).await;
    let version = origin.update(0..3, "before").await;
    let (_dir, broker) = follower(broker::source::Source::gatherer("a", url_of(address))).await;
    broker.caught_up("a", version).await;
    let began = clock::monotonic();
    mood.send_replace(other);
    // This answers the running long poll, not the next one.
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
async fn changes_of_a_source_after_503_are_found_soon() {
    check(Mood::Busy, Duration::ZERO, PAUSE_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_source_is_noticed_and_its_changes_are_found_at_once() {
    // The broker has sent the next request already, and the source answers it.
    check(Mood::Silent, SILENCE, Duration::ZERO).await;
}
