//! Tests of webhooks: a receiver is told of what comes into a view and leaves it, whatever happens on the way.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use broker::config::Config;
use broker::views::webhook::{Message, OBJECTS_MAX};
use exchange::push::signature::{HEADER, Secret, verify};
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, StatusCode};
use net::clock;
use net::shutdown::Shutdown;

use crate::common::{Origin, Running, STEP_MAX, config, object_url};

const SECRET: &str = "0123456789abcdef";

/// A receiver: what it answers, and what it got; where it leads to, if it redirects.
#[derive(Clone, Default)]
struct Receiver {
    answer: Arc<AtomicU16>,
    got: Arc<Mutex<Vec<Message>>>,
    refused: Arc<Mutex<usize>>,
    location: Arc<Mutex<String>>,
}

async fn receive(
    State(it): State<Receiver>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> (StatusCode, [(HeaderName, String); 1]) {
    let secret = Secret::new(SECRET).unwrap();
    verify(&secret, headers[HEADER].to_str().ok(), &body).unwrap();
    let answer = StatusCode::from_u16(it.answer.load(Ordering::SeqCst)).unwrap();
    if answer.is_success() {
        it.got.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    } else {
        *it.refused.lock().unwrap() += 1;
    }
    (answer, [(LOCATION, it.location.lock().unwrap().clone())])
}

impl Receiver {
    /// Starts one on a port of its own; it ends with the runtime of the test.
    async fn start() -> (Self, String) {
        let receiver = Self::default();
        receiver.answer.store(200, Ordering::SeqCst);
        let listener = net::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        tokio::spawn(async move {
            let limits = net::server::Limits::default();
            net::server::serve(listener, router, limits, Shutdown::new()).await.unwrap();
        });
        (receiver, url)
    }

    /// Returns which objects are in the view by all that was told, and how many changes that were.
    fn known(&self) -> (BTreeSet<String>, usize) {
        let (mut known, mut changes) = (BTreeSet::new(), 0);
        for message in self.got.lock().unwrap().iter() {
            assert!(message.changed.len() + message.left.len() <= OBJECTS_MAX);
            changes += message.changed.len() + message.left.len();
            known.extend(message.changed.iter().map(|it| it.url.clone()));
            for told in &message.left {
                known.remove(&told.url);
            }
        }
        (known, changes)
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = clock::monotonic() + STEP_MAX;
    while !is_so() {
        assert!(clock::monotonic() < end, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn urls(numbers: impl IntoIterator<Item = u64>) -> BTreeSet<String> {
    numbers.into_iter().map(object_url).collect()
}

/// Returns the settings of a broker with a webhook.
fn settings(dir: &Path, gatherer: &Origin, url: &str, allow_private: bool) -> Config {
    let text = format!(
        "name = \"n\"\ndata = \"d\"\n[[view]]\nname = \"first\"\ntitle = \"First\"\nquery = \"alpha\"\n\
         webhook = \"{url}\"\nwebhook_secret = \"{SECRET}\"\n"
    );
    let views = Config::parse(&text).unwrap().views;
    let mut config = config(dir, vec![gatherer.source("gatherer")]);
    (config.views, config.push.allow_private) = (views, allow_private);
    config
}

/// Returns whether the webhook has such a problem.
fn has_problem(broker: &Running, part: &str) -> bool {
    let states = broker.handle.webhooks();
    states.get("first").and_then(|it| it.problem.as_ref()).is_some_and(|it| it.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_keeps_nobody_else_waiting() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let (receiver, url) = Receiver::start().await;
    // It takes connections, and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/hook", listener.local_addr().unwrap());
    let view = |name: &str, url: &str| {
        format!(
            "[[view]]\nname = \"{name}\"\nquery = \"alpha\"\nwebhook = \"{url}\"\n\
             webhook_secret = \"{SECRET}\"\n"
        )
    };
    let views = view("first", &silent) + &view("second", &url);
    let views = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{views}")).unwrap().views;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(Config { views, ..settings(dir.path(), &gatherer, &url, true) }).await;
    a.until("pulled", |it| it.objects == 3).await;
    until("the views are known", || {
        let states = a.handle.webhooks();
        ["first", "second"].iter().all(|it| states.get(*it).is_some_and(|it| it.to.is_some()))
    })
    .await;
    for n in 4..=6 {
        gatherer.update([n], "alpha").await;
        until("told", || receiver.known().0.contains(&object_url(n))).await;
    }
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_knows_what_a_view_has() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let (receiver, url) = Receiver::start().await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(settings(dir.path(), &gatherer, &url, true)).await;
    a.until("pulled", |it| it.objects == 3).await;
    // It begins with what comes from now on.
    begun(&a).await;
    gatherer.update(4..=5, "alpha").await;
    gatherer.update([6], "beta").await;
    until("told of two", || receiver.known().0.is_superset(&urls(4..=5))).await;
    gatherer.update([4], "beta").await;
    gatherer.delete([5, 6]).await;
    gatherer.update([7], "alpha").await;
    until("told who left", || receiver.known().0.contains(&object_url(7))).await;
    until("told who left", || receiver.known().0.is_disjoint(&urls(4..=6))).await;
    let message = receiver.got.lock().unwrap().last().cloned().unwrap();
    assert_eq!((message.view.as_str(), message.title.as_str()), ("first", "First"));

    // It fails, the broker stops and starts, and much has happened until it is there again.
    receiver.answer.store(500, Ordering::SeqCst);
    gatherer.update(8..=10, "alpha").await;
    until("refused", || 0 < *receiver.refused.lock().unwrap()).await;
    until("the problem is shown", || has_problem(&a, "500")).await;
    let before = receiver.known();
    a.stop().await;
    let a = Running::start(settings(dir.path(), &gatherer, &url, true)).await;
    gatherer.update(11..=260, "alpha").await;
    gatherer.delete([8]).await;
    a.until("pulled", |it| it.objects == 3 + 1 + 1 + 2 + 250).await;
    receiver.answer.store(204, Ordering::SeqCst);
    until("told of all", || receiver.known().0.is_superset(&urls(9..=260))).await;
    let (known, changes) = receiver.known();
    assert!(!known.contains(&object_url(8)) && changes - before.1 < 400, "{changes}");

    // It wants no more.
    receiver.answer.store(410, Ordering::SeqCst);
    let refused = *receiver.refused.lock().unwrap();
    gatherer.update([300], "alpha").await;
    until("over", || refused < *receiver.refused.lock().unwrap()).await;
    until("over", || has_problem(&a, "no more")).await;
    a.stop().await;
}

/// Waits until the webhook is told of what comes from now on.
async fn begun(broker: &Running) {
    let is_known = || broker.handle.webhooks().get("first").is_some_and(|it| it.to.is_some());
    until("the view is known", is_known).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_receiver_leads_to_is_not_told() {
    let gatherer = Origin::start("00000000000000aa").await;
    let (receiver, url) = Receiver::start().await;
    let (other, elsewhere) = Receiver::start().await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(settings(dir.path(), &gatherer, &url, true)).await;
    begun(&a).await;
    *receiver.location.lock().unwrap() = elsewhere;
    for status in [302, 307] {
        receiver.answer.store(status, Ordering::SeqCst);
        let refused = *receiver.refused.lock().unwrap();
        gatherer.update([u64::from(status)], "alpha").await;
        until("asked", || refused < *receiver.refused.lock().unwrap()).await;
        until("the problem is shown", || has_problem(&a, "redirects")).await;
    }
    assert_eq!((other.known().1, *other.refused.lock().unwrap()), (0, 0));
    // Nothing is lost by it.
    receiver.answer.store(200, Ordering::SeqCst);
    until("told of all", || receiver.known().0 == urls([302, 307])).await;
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_a_message_comes_in_the_next() {
    let gatherer = Origin::start("00000000000000aa").await;
    let (receiver, url) = Receiver::start().await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(settings(dir.path(), &gatherer, &url, true)).await;
    begun(&a).await;
    gatherer.update(1..=101, "alpha").await;
    until("told of all", || receiver.known().0 == urls(1..=101)).await;
    let got = receiver.got.lock().unwrap().clone();
    let parts: Vec<_> = got.iter().map(|it| (it.changed.len(), it.more)).collect();
    assert_eq!(parts, [(OBJECTS_MAX, true), (1, false)]);
    let version = |it: &Message| it.to.parse::<collection::Version>().unwrap();
    assert!(version(&got[0]) < version(&got[1]));
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_view_that_is_defined_anew_it_is_said_that_some_may_be_missing() {
    let gatherer = Origin::start("00000000000000aa").await;
    let version = gatherer.update(1..=3, "alpha").await;
    let (receiver, url) = Receiver::start().await;
    let dir = tempfile::tempdir().unwrap();
    let first = settings(dir.path(), &gatherer, &url, true);
    let a = Running::start(first.clone()).await;
    a.caught_up("gatherer", version).await;
    begun(&a).await;
    gatherer.update([4], "alpha").await;
    until("told", || receiver.known().0 == urls([4])).await;
    assert!(!receiver.got.lock().unwrap()[0].incomplete);
    let text = format!(
        "name = \"n\"\ndata = \"d\"\n[[view]]\nname = \"first\"\nquery = \"beta\"\n\
         webhook = \"{url}\"\nwebhook_secret = \"{SECRET}\"\n"
    );
    let views = Config::parse(&text).unwrap().views;
    a.handle.reload(Config { views, ..first }).await.unwrap();
    until("told that it is another one", || receiver.got.lock().unwrap().len() == 2).await;
    let message = receiver.got.lock().unwrap()[1].clone();
    let told = (message.incomplete, message.changed.len(), message.left.len(), message.more);
    assert_eq!(told, (true, 0, 0, false));
    // From then on it is told as ever.
    gatherer.update([5], "beta").await;
    gatherer.update([6], "alpha").await;
    until("told", || receiver.known().0 == urls([4, 5])).await;
    assert!(!receiver.got.lock().unwrap()[2].incomplete);
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_told_only_if_that_is_allowed_and_the_broker_itself_never() {
    let gatherer = Origin::start("00000000000000aa").await;
    let (_receiver, url) = Receiver::start().await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(config(dir.path(), vec![])).await;
    let address = a.address;
    let own = format!("http://{address}/views");
    a.stop().await;
    for (url, allow_private, problem) in [(&url, false, "allow_private"), (&own, true, "405")] {
        let mut settings = settings(dir.path(), &gatherer, url, allow_private);
        settings.daemon.listen = address;
        let a = Running::start(settings).await;
        until("the view is known", || {
            a.handle
                .webhooks()
                .get("first")
                .is_some_and(|it| it.to.is_some() || it.problem.is_some())
        })
        .await;
        gatherer.update(1..=2, &format!("alpha {allow_private}")).await;
        until(problem, || has_problem(&a, problem)).await;
        a.stop().await;
    }
}
