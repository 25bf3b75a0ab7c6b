//! Tests of OAI-PMH repositories as sources of a broker: Harvest's own over HTTP, and failing ones.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Origin, Running, STEP_MAX, client, config, record, url_of};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use broker::source::{Kind, Oai, Source};
use collection::{Change, Version};
use exchange::repository::{Daemon, Repository, Settings};
use net::clock;
use net::shutdown::Shutdown;
use oai::syndication::Syndication;
use url::Url;

const G: &str = "0123456789abcdef";

/// Text in place of the repository's answers, if any.
type Instead = Arc<Mutex<Option<&'static str>>>;

/// A collection as a repository, and the requests to it.
struct TestRepository {
    origin: Origin,
    address: SocketAddr,
    repository: Repository,
    instead: Instead,
    /// Requests with this text are not answered.
    stalled: Instead,
    asked: Arc<Mutex<Vec<String>>>,
    shutdown: Shutdown,
    sets: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for TestRepository {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

#[derive(Clone)]
struct Watched {
    instead: Instead,
    stalled: Instead,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn watch(State(watched): State<Watched>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    watched.asked.lock().unwrap().push(query.clone());
    // Looked at as often as a client would ask whether it goes on.
    while watched.stalled.lock().unwrap().is_some_and(|text| query.contains(text)) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let instead = *watched.instead.lock().unwrap();
    match instead {
        Some(text) => text.into_response(),
        None => next.run(request).await,
    }
}

impl TestRepository {
    async fn start(syndication: Option<Syndication>) -> Self {
        let origin = Origin::start(G).await;
        let dir = tempfile::tempdir().unwrap();
        let base_url = Some(Url::parse("https://library.example/").unwrap());
        let daemon = Daemon { name: "Library".to_owned(), id: G.to_owned(), base_url, syndication };
        let settings = Settings { page_records: 10, ..Settings::default() };
        let sets = dir.path().join("sets");
        let repository = Repository::new(origin.collection.clone(), settings, daemon, sets.clone());
        let (shutdown, kept) = (Shutdown::new(), repository.clone());
        let until = shutdown.clone();
        tokio::spawn(async move { kept.keep(until).await });
        let listener = net::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (instead, stalled, asked) = (Instead::default(), Instead::default(), Arc::default());
        let watched = Watched {
            instead: Arc::clone(&instead),
            stalled: Arc::clone(&stalled),
            asked: Arc::clone(&asked),
        };
        let router: Router =
            repository.routes().layer(middleware::from_fn_with_state(watched, watch));
        let limits = net::server::Limits::default();
        tokio::spawn(net::server::serve(listener, router, limits, shutdown.clone()));
        let site = Self {
            origin,
            address,
            repository,
            instead,
            stalled,
            asked,
            shutdown,
            sets,
            _dir: dir,
        };
        site.ready().await;
        site
    }

    /// Waits until the repository can serve lists.
    async fn ready(&self) {
        while self.repository.counters().ready == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(self.sets.starts_with(self._dir.path()));
    }

    fn source(&self, oai: Oai) -> Source {
        let url = url_of(self.address).join("oai").unwrap();
        Source { kind: Kind::Oai, oai: Some(oai), ..Source::gatherer("library", url) }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn soif() -> Oai {
    Oai { prefixes: vec!["soif".to_owned()], ..Oai::default() }
}

/// Waits until a search finds `total` objects.
async fn finds(broker: &Running, query: &str, total: u64) {
    let deadline = clock::monotonic() + STEP_MAX;
    loop {
        let found = broker.total(query).await;
        if found == total {
            return;
        }
        assert!(clock::monotonic() < deadline, "{query}: {found}: {:#?}", broker.status().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_harvest_repository_gives_the_same_objects_as_its_feed() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=25, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![site.source(soif())])).await;
    finds(&broker, "alpha", 25).await;
    let first = broker.source("library").await;
    assert_eq!((first.kind.as_str(), first.objects, first.elements), ("oai", 25, Some(25)));
    assert_eq!(first.errors.count, 0, "{:?}", first.errors.last);
    // The same objects as from its feed.
    let hit = &broker.search("alpha").await["hits"][0];
    assert!(hit["url"].as_str().unwrap().starts_with("http://example.org/object/"), "{hit}");

    site.origin.update(3..=5, "beta").await;
    site.origin.delete([7]).await;
    finds(&broker, "beta", 3).await;
    finds(&broker, "alpha", 21).await;
    let status =
        broker.until("learns its rate", |it| it.sources[0].rate_per_second.is_some()).await;
    let source = &status.sources[0];
    assert_eq!(source.last_pull.as_ref().unwrap().kind, "delta");
    assert!(0.0 < source.rate_per_second.unwrap(), "{source:?}");
    assert_eq!((source.objects, source.errors.count), (24, 0), "{:?}", source.errors.last);

    // After a restart it goes on where it stopped.
    let asked = site.asked();
    assert!(asked.iter().any(|it| it == "verb=ListMetadataFormats"), "{asked:?}");
    broker.stop().await;
    site.asked();
    site.origin.update(30..=30, "gamma").await;
    let broker = Running::start(config(dir.path(), vec![site.source(soif())])).await;
    finds(&broker, "gamma", 1).await;
    let asked = site.asked();
    assert!(asked.iter().all(|it| it != "verb=ListMetadataFormats"), "{asked:?}");
    assert!(asked.iter().any(|it| it.contains("from=20")), "{asked:?}");
    broker.stop().await;
}

#[tokio::test]
async fn a_long_first_pull_says_what_it_does() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=25, "alpha").await;
    *site.stalled.lock().unwrap() = Some("resumptionToken");
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![site.source(soif())])).await;
    let does = |it: &broker::status::Status| {
        it.sources[0].activity.as_ref().is_some_and(|it| it.contains("asks for part 2 of the"))
    };
    let status = broker.until("asks for part 2", does).await;
    let activity = status.sources[0].activity.clone().unwrap();
    assert!(activity.ends_with("10 records so far"), "{activity}");
    let page = client().send(net::client::Request::get(url_of(broker.admin))).await.unwrap();
    let page = page.bytes(1 << 20).await.unwrap();
    let page = String::from_utf8_lossy(&page).into_owned();
    assert!(page.contains(&format!("The harvest of library {activity}.")), "{page}");
    *site.stalled.lock().unwrap() = None;
    finds(&broker, "alpha", 25).await;
    broker.until("has ended", |it| it.sources[0].activity.is_none()).await;
    broker.stop().await;
}

#[tokio::test]
async fn dublin_core_records_become_objects_of_the_repository() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=12, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let oai = Oai { keep_original: true, ..Oai::default() };
    let broker = Running::start(config(dir.path(), vec![site.source(oai)])).await;
    finds(&broker, "object", 12).await;
    let found = broker.search("object").await;
    let url = found["hits"][0]["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("oai:library.example:"), "{url}");
    site.origin.delete(1..=11).await;
    finds(&broker, "object", 1).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_failing_repository_is_named_and_pulled_again() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=25, "alpha").await;
    *site.instead.lock().unwrap() = Some(
        "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://h/oai</request>\
         <error code=\"badVerb\">closed for today</error></OAI-PMH>",
    );
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![site.source(soif())])).await;
    let status = broker.until("fails", |it| 0 < it.sources[0].errors.count).await;
    let errors = &status.sources[0].errors;
    assert_eq!(errors.by_kind.keys().collect::<Vec<_>>(), ["refused"]);
    let said = errors.last.clone().unwrap();
    for part in ["library", &site.address.to_string(), "badVerb", "closed for today"] {
        assert!(said.contains(part), "{said}");
    }
    *site.instead.lock().unwrap() = None;
    finds(&broker, "alpha", 25).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_repository_is_pulled_at_its_announced_update_times() {
    let daily = Syndication {
        period: Some("daily".to_owned()),
        frequency: None,
        base: Some("2026-01-31T12:00:00Z".to_owned()),
    };
    let site = TestRepository::start(Some(daily)).await;
    site.origin.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |oai| {
        let mut config = config(dir.path(), vec![site.source(oai)]);
        config.freshness.interval_max = 10.0 * 86_400.0;
        config
    };
    let broker = Running::start(settings(soif())).await;
    finds(&broker, "alpha", 3).await;
    let due = |at_ms: u64| (at_ms / 1_000 + 43_200) % 86_400;
    let is_after_noon =
        |it: &broker::status::Status| it.sources[0].next_due_ms.is_some_and(|at| due(at) < 3_600);
    broker.until("is due after noon", is_after_noon).await;
    broker.stop().await;
}

/// The test looks only at search results: the serials in a repository's cursor are its broker's.
#[tokio::test]
async fn the_newest_version_of_an_object_wins() {
    let site = TestRepository::start(None).await;
    let version: Version = site.origin.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let sources = vec![site.origin.source("feed"), site.source(soif())];
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.caught_up("feed", version).await;
    broker.until("both hold all", |it| it.sources.iter().all(|it| it.objects == 3)).await;
    finds(&broker, "alpha", 3).await;
    site.origin.commit(vec![Change::Update(record(G, 2, "beta"))]).await;
    finds(&broker, "beta", 1).await;
    finds(&broker, "alpha", 2).await;
    site.origin.delete([1]).await;
    finds(&broker, "alpha", 1).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_harvested_record_does_not_block_newer_ones_of_the_feed() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=2, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let sources = vec![site.origin.source("feed"), site.source(soif())];
    let broker = Running::start(config(dir.path(), sources)).await;
    broker.until("both hold all", |it| it.sources.iter().all(|it| it.objects == 2)).await;
    // From now on only the feed brings changes.
    *site.instead.lock().unwrap() = Some("<html>closed</html>");
    site.origin.commit(vec![Change::Update(record(G, 2, "beta"))]).await;
    finds(&broker, "beta", 1).await;
    finds(&broker, "alpha", 1).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_harvest_that_takes_longer_than_a_pull_goes_on_and_has_not_failed() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=60, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let oai = Oai { delay: Duration::from_millis(500), ..soif() };
    let mut config = config(dir.path(), vec![site.source(oai)]);
    config.timeouts.pull_max = Duration::from_secs(2);
    let broker = Running::start(config).await;
    let goes_on = |it: &broker::status::Status| {
        it.sources[0].warnings.iter().any(|it| it.contains("goes on"))
    };
    broker.until("goes on", goes_on).await;
    finds(&broker, "alpha", 60).await;
    let status = broker.until("ends", |it| it.sources[0].pulls != 0).await;
    assert_eq!((status.sources[0].errors.count, status.sources[0].objects), (0, 60));
    broker.stop().await;
}

/// Answers as a repository with one record; a list without `from` is larger than the limit.
fn with_a_gap(query: &str) -> String {
    let body = if query.contains("verb=Identify") {
        "<Identify><repositoryName>Gap</repositoryName><baseURL>http://h/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@h.org</adminEmail>\
         <earliestDatestamp>2020-01-01T00:00:00Z</earliestDatestamp>\
         <deletedRecord>persistent</deletedRecord>\
         <granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
            .to_owned()
    } else if query.contains("verb=ListMetadataFormats") {
        "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
         <schema>s</schema><metadataNamespace>n</metadataNamespace></metadataFormat>\
         </ListMetadataFormats>"
            .to_owned()
    } else if !query.contains("from=") {
        " ".repeat(100_000)
    } else if query.contains("until=") {
        "<error code=\"noRecordsMatch\">none</error>".to_owned()
    } else {
        "<ListRecords><record><header><identifier>oai:h:1</identifier>\
         <datestamp>2026-10-01T00:00:00Z</datestamp></header><metadata>\
         <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>alpha</dc:title></oai_dc:dc>\
         </metadata></record></ListRecords>"
            .to_owned()
    };
    format!(
        "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-11-01T12:00:00Z</responseDate><request>http://h/oai</request>{body}\
         </OAI-PMH>"
    )
}

#[tokio::test]
async fn a_source_with_a_gap_succeeds_with_a_warning() {
    let listener = net::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = url_of(listener.local_addr().unwrap()).join("oai").unwrap();
    let answer = |request: Request| async move {
        with_a_gap(request.uri().query().unwrap_or_default()).into_response()
    };
    let (shutdown, limits) = (Shutdown::new(), net::server::Limits::default());
    let router: Router = Router::new().fallback(answer);
    let serving = tokio::spawn(net::server::serve(listener, router, limits, shutdown.clone()));
    let dir = tempfile::tempdir().unwrap();
    let oai = Oai { page_bytes_max: 50_000, ..Oai::default() };
    let source = Source { kind: Kind::Oai, oai: Some(oai), ..Source::gatherer("gap", url) };
    let broker = Running::start(config(dir.path(), vec![source])).await;
    let status = broker.until("is pulled", |it| it.sources[0].pulls != 0).await;
    let source = &status.sources[0];
    assert_eq!((source.errors.count, source.objects), (0, 1), "{source:#?}");
    assert!(source.warnings[0].contains("cannot be harvested"), "{:?}", source.warnings);
    broker.stop().await;
    shutdown.start();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_repository_above_records_max_is_not_asked() {
    let site = TestRepository::start(None).await;
    site.origin.update(1..=25, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![site.source(soif())])).await;
    finds(&broker, "alpha", 25).await;
    broker.stop().await;
    site.asked();
    let source = Source { records_max: 20, ..site.source(soif()) };
    let broker = Running::start(config(dir.path(), vec![source])).await;
    let status = broker.until("is refused", |it| it.sources[0].errors.count != 0).await;
    let errors = &status.sources[0].errors;
    assert_eq!(errors.by_kind.keys().collect::<Vec<_>>(), ["over_limit"]);
    let said = errors.last.clone().unwrap();
    assert!(said.contains("25 objects") && said.contains("records_max"), "{said}");
    assert_eq!(site.asked(), Vec::<String>::new());
    broker.stop().await;
}
