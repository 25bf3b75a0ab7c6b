//! Tests of foreign peers: other formats, other protocols, too much data.

use std::convert::Infallible;
use std::net::SocketAddr;

use collection::feed::FeedOptions;
use collection::member::end_mark;
use collection::pull::PullLimits;
use collection::{Cursor, Epoch, Error, Pulled, Version};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use net::body::Body;
use net::client::Request;
use net::host;
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tower::service_fn;

use crate::support::{Server, Store, base, client, limited, now, puller, update};

#[tokio::test]
async fn a_consumer_of_another_format_gets_the_servers_format() {
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
    assert_eq!(told, "this server has format 1, not 7\n");
    assert_eq!(ask("7, 1").await.status, StatusCode::OK);

    // The other way round: a server of a later release.
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

/// Starts a server whose answers come from `answer`.
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
async fn an_answer_that_is_no_feed_is_reported_as_such() {
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
async fn a_source_cannot_exceed_its_limits() {
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

/// Makes an answer with a delta's headers and only an end mark.
fn delta(epoch: Epoch, from: u64, to: u64, objects: u64) -> Response<Body> {
    let mark = end_mark(Version { epoch, serial: to });
    let mut response = Response::new(net::body::full(mark));
    let (epoch, from, to) = (epoch.to_string(), from.to_string(), to.to_string());
    for (name, text) in [
        ("harvest-kind", "delta"),
        ("harvest-format", "1"),
        ("harvest-epoch", &epoch),
        ("harvest-from", &from),
        ("harvest-to", &to),
        ("harvest-objects", &objects.to_string()),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_str(text).unwrap());
    }
    response
}

#[tokio::test]
async fn a_delta_is_taken_only_if_it_was_requested() {
    let cursor = Cursor { epoch: Epoch(9), serial: 5, snapshot: None, part: None };
    for (epoch, from, to, taken) in [(9, 5, 5, true), (9, 5, 8, true), (8, 5, 5, false)]
        .into_iter()
        .chain([(9, 4, 5, false), (9, 6, 8, false), (9, 5, 4, false)])
    {
        let broker = Store::new();
        let pulled = Pulled {
            source: "source".to_owned(),
            id: None,
            epoch: cursor.epoch,
            changes: (1..=3).map(|n| (u64::from(n), update(n, "held"))).collect(),
            cursor: cursor.clone(),
            end_of_snapshot: None,
        };
        broker.collection.apply(pulled, now()).unwrap();
        let server = scripted(move |_| delta(Epoch(epoch), from, to, u64::MAX)).await;
        let outcome = puller(server, &broker).pull(None).await;
        let reached = broker.collection.cursor("source").unwrap().unwrap().serial;
        if taken {
            let summary = outcome.unwrap();
            assert_eq!((summary.version.serial, reached), (to, to));
            assert_eq!(summary.objects, 3, "it claims more than it ever sent");
        } else {
            let back = epoch < 9 && matches!(outcome, Err(Error::EpochBack { .. }));
            assert!(back || matches!(outcome, Err(Error::NotAFeed { .. })), "{outcome:?}");
            assert_eq!(reached, 5);
        }
    }
}
