//! Tests of a broker end to end, over loopback: it collects, indexes, answers, and loses nothing
//! when sources die, come back, share objects or are removed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Origin, Running, client, config, get_json, object_url, record, url_of};
use broker::config::Config;
use broker::server::Server;
use broker::source::{Kind, Source, Token};
use broker::status::{Held, Status};
use collection::{Applied, Change, Swept};
use http::{HeaderValue, StatusCode, header};
use net::client::Request;
use net::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const A: &str = "000000000000000a";
const B: &str = "000000000000000b";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_source_are_found_and_deleted_ones_are_not() {
    let origin = Origin::start(A).await;
    let version = origin.update(1..=500, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
    broker.caught_up("a", version).await;
    assert_eq!(broker.total("alpha").await, 500);

    origin.update([7], "beta").await;
    let version = origin.delete(100..200).await;
    broker.caught_up("a", version).await;
    assert_eq!(broker.total("alpha").await, 399);
    let answer = broker.search("beta").await;
    assert_eq!(answer["total"], 1);
    assert_eq!(answer["hits"][0]["url"], object_url(7));

    let source = broker.source("a").await;
    assert_eq!((source.objects, source.elements), (400, Some(400)));
    assert_eq!(source.errors.count, 0);
    let status = broker.until("indexed", |it| it.index_covered == Some(it.serial)).await;
    assert_eq!(status.objects, 400);
    let counters = broker.handle.counters();
    let version = counters.applied.version;
    let applied = Applied { version, updated: 501, deleted: 100, ..Applied::default() };
    assert_eq!((counters.changes, counters.applied), (601, applied), "all changes are applied");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_followed_source_are_found_at_once() {
    let origin = Origin::start(A).await;
    let version = origin.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), vec![Source { follow: true, ..origin.source("a") }]);
    // The schedule alone would pull again in an hour.
    (config.freshness.interval_min, config.freshness.interval_max) = (3_600.0, 86_400.0);
    let broker = Running::start(config).await;
    broker.caught_up("a", version).await;
    for n in 4..=8 {
        let began = clock::monotonic();
        let version = origin.update([n], "alpha").await;
        broker.caught_up("a", version).await;
        let took = clock::monotonic() - began;
        assert!(took.as_secs() < 2, "change {n} took {took:?}");
        assert_eq!(broker.total("alpha").await, n);
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_killed_during_a_pull_is_read_to_its_end_later() {
    let origin = Origin::start(A).await;
    let words: String = (0..2_000).map(|n| format!("w{} ", n * 7_919 % 100_003)).collect();
    for n in 1..=40 {
        origin.update([n], &words).await;
    }
    // Enough for some of the objects; then the source is gone, in the middle of its stream.
    let proxy = Proxy::start(origin.address(), 60_000).await;
    let dir = tempfile::tempdir().unwrap();
    let source = Source::gatherer("a", url_of(proxy.address));
    let broker = Running::start(config(dir.path(), vec![source])).await;
    let cut = broker.until("cut", |it| 1 <= it.sources[0].errors.count).await;
    assert!((1..40).contains(&cut.objects), "the good part is kept: {cut:#?}");
    assert!(1.0 <= cut.sources[0].errors.back_off_seconds, "{cut:#?}");

    proxy.allowed.store(u64::MAX, Ordering::SeqCst);
    let version = origin.update([41], "omega").await;
    broker.handle.pull(Some("a")).unwrap();
    broker.caught_up("a", version).await;
    let status = broker.source("a").await;
    assert_eq!((status.objects, status.errors.in_a_row), (41, 0));
    assert_eq!(broker.total("object").await, 41);
    assert_eq!(broker.total("omega").await, 1);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_source_does_not_delay_the_others() {
    let (mut dead, alive) = (Origin::start(A).await, Origin::start(B).await);
    let first = dead.update(1..=10, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let sources = vec![dead.source("dead"), alive.source("alive")];
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.caught_up("dead", first).await;
    dead.stop().await;
    broker.until("failing", |it| 1 <= it.sources[0].errors.in_a_row).await;
    let version = alive.update(11..=20, "beta").await;
    broker.caught_up("alive", version).await;
    assert_eq!(broker.total("beta").await, 10);
    assert_eq!(broker.total("alpha").await, 10, "its objects stay");

    dead.serve().await;
    let version = dead.update([21], "alpha").await;
    broker.caught_up("dead", version).await;
    assert_eq!(broker.total("alpha").await, 11);
    assert_eq!(broker.source("dead").await.errors.in_a_row, 0);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_goes_with_its_last_holder() {
    // Two brokers' views of the same gatherer: the same OIDs from two sources.
    let (one, other) = (Origin::start(A).await, Origin::start(A).await);
    let from_one = one.update(1..=4, "alpha").await;
    let from_other = other.update(3..=6, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let sources = vec![one.source("one"), other.source("other")];
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.caught_up("one", from_one).await;
    broker.caught_up("other", from_other).await;
    assert_eq!(broker.total("object").await, 6);

    let from_one = one.delete(1..=4).await;
    broker.caught_up("one", from_one).await;
    assert_eq!(broker.total("object").await, 4, "3 and 4 have another holder");
    let from_other = other.delete(3..=4).await;
    broker.caught_up("other", from_other).await;
    assert_eq!(broker.total("object").await, 2);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_are_named() {
    let (one, other) = (Origin::start(A).await, Origin::start(B).await);
    let (from_one, from_other) = (one.update([1], "alpha").await, other.update([1], "alpha").await);
    let dir = tempfile::tempdir().unwrap();
    let sources = vec![one.source("one"), other.source("other")];
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.caught_up("one", from_one).await;
    broker.caught_up("other", from_other).await;
    let answer = broker.search("alpha").await;
    assert_eq!(answer["total"], 1, "{answer}");
    assert_eq!(answer["hits"][0]["duplicates"].as_array().unwrap().len(), 1, "{answer}");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_adds_changes_and_removes_sources() {
    let (one, other) = (Origin::start(A).await, Origin::start(B).await);
    let (from_one, from_other) =
        (one.update(1..=4, "alpha").await, other.update(5..=6, "beta").await);
    let dir = tempfile::tempdir().unwrap();
    let before = config(dir.path(), vec![one.source("one")]);
    let broker = Running::start(before.clone()).await;
    broker.caught_up("one", from_one).await;

    let mut after = Config { sources: vec![other.source("other")], ..before.clone() };
    after.freshness.theta = 0.5;
    after.name = "Another".to_owned();
    assert_eq!(broker.handle.reload(after.clone()).await.unwrap(), ["name"]);
    broker.caught_up("other", from_other).await;
    assert_eq!(broker.total("alpha").await, 0, "a removed source releases its objects");
    assert_eq!(broker.total("beta").await, 2);
    let status = broker.status().await;
    assert_eq!((status.sources.len(), status.theta), (1, 0.5));
    assert!(broker.handle.pull(Some("one")).is_err());

    // The settings change while the broker is down: they name the first source again, not the
    // other.
    broker.stop().await;
    let broker = Running::start(before).await;
    broker.caught_up("one", from_one).await;
    assert_eq!(broker.total("beta").await, 0);
    assert_eq!(broker.total("alpha").await, 4);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_index_is_built_anew_without_a_restart() {
    let origin = Origin::start(A).await;
    let version = origin.update(1..=40, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = config(dir.path(), vec![origin.source("a")]);
    let broker = Running::start(settings.clone()).await;
    broker.caught_up("a", version).await;
    broker.stop().await;
    for file in std::fs::read_dir(dir.path().join("index")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "store") {
            let mut bytes = std::fs::read(&path).unwrap();
            let (from, to) = (bytes.len() / 4, bytes.len() / 3);
            bytes[from..to].iter_mut().for_each(|byte| *byte = !*byte);
            std::fs::write(path, bytes).unwrap();
        }
    }
    let broker = Running::start(settings).await;
    // The open or the first search finds the damage; the source does not change meanwhile.
    let url = url_of(broker.address).join("api/search?q=alpha&limit=50").unwrap();
    drop(client().send(Request::get(url)).await.unwrap());
    broker.until("indexed", |it| it.index_covered == Some(it.serial)).await;
    let answer = broker.search("alpha").await;
    assert_eq!(answer["hits"].as_array().unwrap().len(), 40, "{answer}");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_fails_changes_nothing() {
    let origin = Origin::start("000000000000000a").await;
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut before = config(dir.path(), vec![origin.source("a")]);
    before.templates = Some(folder.path().join("templates"));
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    let broker = Running::start(before.clone()).await;
    std::fs::remove_dir(folder.path().join("templates")).unwrap();
    let after = Config { sources: Vec::new(), ..before };
    let error = broker.handle.reload(after).await.unwrap_err();
    assert!(error.to_string().contains("templates"), "{error}");
    assert_eq!(broker.status().await.sources.len(), 1, "the old settings stay");
    let version = origin.update(1..=3, "alpha").await;
    broker.caught_up("a", version).await;
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_id_file_is_an_error_and_no_id_is_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let id = dir.path().join("id");
    // The remains of an earlier attempt, after a full disk or a kill.
    std::fs::write(id.with_extension("new"), "01").unwrap();
    drop(Server::bind(config(dir.path(), Vec::new())).await.unwrap());
    assert_eq!(std::fs::read_to_string(&id).unwrap().trim().len(), 16);
    assert!(!id.with_extension("new").exists());
    std::fs::write(&id, "").unwrap();
    let error = Server::bind(config(dir.path(), Vec::new())).await.unwrap_err();
    assert!(
        error.to_string().contains("delete it and identity.key to begin as a new one"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_feeds_a_broker() {
    let origin = Origin::start(A).await;
    let version = origin.update(1..=50, "alpha").await;
    let (dir_low, dir_high) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let low = Running::start(config(dir_low.path(), vec![origin.source("gatherer")])).await;
    low.caught_up("gatherer", version).await;
    let source = Source { kind: Kind::Broker, ..Source::gatherer("low", url_of(low.address)) };
    // The origin as well: the same objects come from two sources.
    let sources = vec![source, origin.source("gatherer")];
    let high = Running::start(config(dir_high.path(), sources)).await;
    high.caught_up("low", low.handle.version()).await;
    high.caught_up("gatherer", version).await;
    assert_eq!(high.total("alpha").await, 50);

    origin.update([1], "gamma").await;
    let version = origin.delete([2]).await;
    low.caught_up("gatherer", version).await;
    high.caught_up("low", low.handle.version()).await;
    high.caught_up("gatherer", version).await;
    assert_eq!((high.total("alpha").await, high.total("gamma").await), (48, 1));
    let status = high.status().await;
    assert_eq!(status.sources.iter().map(|it| it.objects).collect::<Vec<_>>(), [49, 49]);
    high.stop().await;
    low.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_need_the_token_and_status_does_not() {
    let origin = Origin::start(A).await;
    let version = origin.update(1..=5, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
    broker.caught_up("a", version).await;
    let token = std::fs::read_to_string(dir.path().join("admin.token")).unwrap();
    let post = async |path: &str, token: &str| {
        let url = url_of(broker.admin).join(path).unwrap();
        let value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).unwrap();
        let request = Request::post(url, "").header(header::AUTHORIZATION, value);
        client().send(request).await.unwrap().status
    };
    assert_eq!(post("pull", "wrong").await, StatusCode::UNAUTHORIZED);
    assert_eq!(post("pull", &token).await, StatusCode::ACCEPTED);
    assert_eq!(post("pull?source=a", &token).await, StatusCode::ACCEPTED);
    assert_eq!(post("pull?source=none", &token).await, StatusCode::NOT_FOUND);
    assert_eq!(post("confirm", &token).await, StatusCode::OK);
    assert_eq!(post("compact", &token).await, StatusCode::OK);
    for address in [broker.address, broker.admin] {
        let health = get_json(url_of(address).join("healthz").unwrap()).await;
        assert_eq!(health["status"], "ok");
    }
    let url = url_of(broker.admin).join("metrics").unwrap();
    let text = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(text.contains("harvest_broker_objects 5\n"), "{text}");
    let accepted = broker.status().await.listening.listener["accepted"];
    assert!(1 <= accepted, "the public listener accepted the health request");
    let counted = format!("harvest_http_events_total{{event=\"accepted\"}} {accepted}\n");
    assert!(text.contains(&counted), "{text}");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access_and_limits_of_a_source_are_enforced() {
    let mut origin = Origin::start(A).await;
    origin.stop().await;
    origin.token = Some("secret".to_owned());
    origin.serve().await;
    let version = origin.update(1..=5, "alpha").await;
    let token = Some(Token::new("secret"));
    let named = |name: &str| Source { token: token.clone(), ..origin.source(name) };
    let sources = vec![
        named("good"),
        Source { token: None, ..named("token") },
        Source { allow_private: false, ..named("private") },
        Source { records_max: 4, ..named("records") },
        Source { bytes_max: 100, ..named("bytes") },
    ];
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.caught_up("good", version).await;
    let failed = |it: &Status| it.sources.iter().skip(1).all(|it| 1 <= it.errors.count);
    let status = broker.until("all refused", failed).await;
    let said = ["401", "allow_private", "records_max", "bytes_max"];
    for (source, said) in status.sources.iter().skip(1).zip(said) {
        let error = source.errors.last.clone().unwrap();
        assert!(error.contains(said), "{}: {error}", source.name);
        assert_eq!(source.pulls, 0);
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unconfirmed_objects_expire_but_never_many_at_once() {
    let origin = Origin::start(A).await;
    let mut short = record(A, 1, "alpha");
    short.set("Time-to-Live", "1");
    origin.commit(vec![Change::Update(short)]).await;
    let version = origin.update(2..=5, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = config(dir.path(), vec![origin.source("a")]);
    let broker = Running::start(settings.clone()).await;
    broker.caught_up("a", version).await;
    broker.stop().await;

    // One in five objects has expired: more than a sweep deletes without confirmation.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let broker = Running::start(settings).await;
    let status = broker.until("held", |it| it.held.is_some()).await;
    assert_eq!(status.held, Some(Held { would_expire: 1, of: 5 }));
    assert_eq!(status.objects, 5);
    assert_eq!(broker.handle.confirm().await.unwrap(), Swept::Done { expired: 1 });
    let indexed = |it: &Status| it.objects == 4 && it.index_covered == Some(it.serial);
    let status = broker.until("expired", indexed).await;
    assert_eq!(status.held, None);
    assert_eq!(broker.total("alpha").await, 4);
    broker.stop().await;
}

/// Forwards connections to an address until `allowed` bytes of answers have passed; then it cuts
/// these and all later connections.
struct Proxy {
    address: SocketAddr,
    allowed: Arc<AtomicU64>,
    _task: JoinSet<()>,
}

impl Proxy {
    async fn start(to: SocketAddr, allowed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allowed = Arc::new(AtomicU64::new(allowed));
        let mut task = JoinSet::new();
        let left = allowed.clone();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                connections.spawn(forward(client, to, left.clone()));
            }
        });
        Self { address, allowed, _task: task }
    }
}

async fn forward(mut client: TcpStream, to: SocketAddr, left: Arc<AtomicU64>) {
    let mut server = TcpStream::connect(to).await.unwrap();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = tokio::io::copy(&mut from_client, &mut to_server);
    let down = async {
        let mut buffer = vec![0; 4_096];
        loop {
            let read = from_server.read(&mut buffer).await.unwrap_or(0);
            let room = left.load(Ordering::SeqCst).min(read as u64);
            let bytes = &buffer[..usize::try_from(room).unwrap()];
            left.fetch_sub(room, Ordering::SeqCst);
            if to_client.write_all(bytes).await.is_err() || bytes.len() < read || read == 0 {
                return;
            }
        }
    };
    // If one direction ends, so does the other.
    tokio::select! {
        _ = up => {}
        () = down => {}
    }
}
