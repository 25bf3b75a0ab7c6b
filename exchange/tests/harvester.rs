//! Repositories over HTTP as sources of a collection: packed and broken pages, long tokens, pauses, and
//! harvests that are broken off.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use collection::{Change, Collection, Oid, Options, Stamp, Swept};
use exchange::harvester::{
    Access, Bounds, Error, Hosts, Repository, Running, Step, Stored, Target,
};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use net::client::Client;
use net::clock;
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::crosswalk::SourceIdentity;
use oai::harvest::{Checkpoint, End, Failure, Settings, Warning};
use oai::request::{Listed, Request, Scope};
use oai::response::write::Writer;
use oai::response::{Deleted, Format, Header, Identify, Record, Set, Token, Xml};
use oai::{Code, Datestamp, Fault, Granularity};
use tokio::sync::Semaphore;
use url::Url;

/// 2026-01-01, in Unix seconds.
const START: i64 = 1_767_225_600;

const PAGE: usize = 10;

/// When items changed, if they did.
static CHANGED: LazyLock<i64> = LazyLock::new(now);

/// How the next answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Sound,
    Gzip,
    Deflate,
    /// Unpacks to 5 MiB.
    Bomb,
    /// A page of HTML with status 200.
    Html,
    /// Busy once, then sound.
    Busy,
    /// Errors of the protocol come under status 404.
    WrongStatus,
    /// Packed with what nobody asked for.
    Brotli,
}

#[derive(Debug, Default)]
struct Shared {
    mode: Mode,
    /// Identifiers with version and whether they are deleted; stamps go by the version.
    items: BTreeMap<u32, (u32, bool)>,
    /// What was asked: method and length of the URL.
    asked: Vec<(Method, usize)>,
    deleted: Deleted,
    /// Appended to tokens.
    padding: usize,
    /// Items with a long title: so many bytes.
    large: BTreeMap<u32, usize>,
}

type Site = Arc<Mutex<Shared>>;

fn stamp(version: u32) -> Datestamp {
    let at = if version == 0 { START } else { *CHANGED };
    Datestamp::at(at, Granularity::Second)
}

fn now() -> i64 {
    i64::try_from(clock::now_ms() / 1_000).unwrap()
}

fn record(id: u32, (version, deleted): (u32, bool)) -> Record {
    let text = format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Item {id} v{version}</dc:title>\
         </oai_dc:dc>"
    );
    Record {
        header: Header {
            identifier: format!("oai:test:{id}"),
            datestamp: Some(stamp(version)),
            sets: Vec::new(),
            deleted,
        },
        metadata: (!deleted).then_some(Xml(text)),
        about: Vec::new(),
    }
}

/// The records of a list from `from` on.
fn chosen(site: &Shared, from: i64) -> Vec<Record> {
    let mut chosen = Vec::new();
    for (id, item) in &site.items {
        let mut it = record(*id, *item);
        if let Some(bytes) = site.large.get(id) {
            let long = format!("Item {}", "x".repeat(*bytes));
            it.metadata = it.metadata.take().map(|it| Xml(it.0.replace("Item", &long)));
        }
        if from <= it.header.datestamp.unwrap().secs() {
            chosen.push(it);
        }
    }
    chosen
}

fn written(site: &Shared, request: &Result<Request, Fault>) -> (String, bool) {
    let date = Datestamp::at(now(), Granularity::Second);
    let writer = Writer::new(date, "http://h/oai", request.as_ref().ok());
    let fault = |code| vec![Fault::new(code, "")];
    let (scope, listed) = match request {
        Err(fault) => return (writer.faults(std::slice::from_ref(fault)), true),
        Ok(Request::Identify) => {
            let identify = Identify {
                repository_name: "Test".to_owned(),
                base_url: "http://h/oai".to_owned(),
                protocol_version: "2.0".to_owned(),
                admin_emails: vec!["admin@h.org".to_owned()],
                earliest_datestamp: Some(stamp(0)),
                deleted_record: site.deleted,
                granularity: Granularity::Second,
                ..Identify::default()
            };
            return (writer.identify(&identify), false);
        }
        Ok(Request::Formats { .. }) => {
            let format = Format { prefix: "oai_dc".to_owned(), ..Format::default() };
            return (writer.formats(&[format]), false);
        }
        Ok(Request::Sets { .. }) => {
            let set = Set { spec: "a".to_owned(), name: "A".to_owned(), descriptions: Vec::new() };
            return (writer.sets(&[set], None), false);
        }
        Ok(Request::Get { identifier, .. }) => {
            let id = identifier.strip_prefix("oai:test:").and_then(|it| it.parse().ok());
            return match id.and_then(|id| Some((id, *site.items.get(&id)?))) {
                Some((id, item)) => (writer.one(&record(id, item)), false),
                None => (writer.faults(&fault(Code::IdDoesNotExist)), true),
            };
        }
        Ok(Request::List { scope, .. }) => (scope, Listed::Records),
    };
    let (from, skip) = match scope {
        Scope::Selection(it) => (it.from.map_or(i64::MIN, Datestamp::secs), 0),
        Scope::Token(token) => {
            let mut parts = token.split(',');
            let mut next = || parts.next().unwrap().parse().unwrap();
            (next(), usize::try_from(next()).unwrap())
        }
    };
    let chosen = chosen(site, from);
    if chosen.is_empty() {
        return (writer.faults(&fault(Code::NoRecordsMatch)), true);
    }
    let mut list = writer.list(listed);
    chosen.iter().skip(skip).take(PAGE).for_each(|it| list.push(it));
    let next = skip + PAGE;
    let token = Token {
        value: if next < chosen.len() {
            format!("{from},{next},{}", "p".repeat(site.padding))
        } else {
            String::new()
        },
        complete_list_size: Some(u64::try_from(chosen.len()).unwrap()),
        ..Token::default()
    };
    (list.finish((PAGE < chosen.len()).then_some(&token)), false)
}

async fn serve(
    State((site, gate)): State<(Site, Arc<Semaphore>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    gate.acquire().await.unwrap().forget();
    let mut site = site.lock().unwrap();
    site.asked.push((method.clone(), uri.to_string().len()));
    let query = String::from_utf8(body.to_vec()).unwrap();
    let query = if method == Method::POST { &query } else { uri.query().unwrap_or_default() };
    // What the base URL has besides stays there.
    let query = query.replace("key=1&", "");
    let (text, is_error) = written(&site, &Request::parse(&query));
    let accepts = headers.get(header::ACCEPT_ENCODING).unwrap().to_str().unwrap();
    assert!(accepts.contains("gzip") && accepts.contains("deflate"));
    let xml = [(header::CONTENT_TYPE, "text/xml")];
    let coded = |name: &'static str, bytes: Vec<u8>| {
        ([(header::CONTENT_TYPE, "text/xml"), (header::CONTENT_ENCODING, name)], bytes)
            .into_response()
    };
    match site.mode {
        Mode::Sound => (xml, text).into_response(),
        Mode::Gzip => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            coded("gzip", gzip.finish().unwrap())
        }
        Mode::Deflate => {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            zlib.write_all(text.as_bytes()).unwrap();
            coded("deflate", zlib.finish().unwrap())
        }
        Mode::Bomb => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            for _ in 0..5 {
                gzip.write_all(&[b' '; 1 << 20]).unwrap();
            }
            coded("gzip", gzip.finish().unwrap())
        }
        Mode::Html => "<html><body>Down for maintenance</body></html>".into_response(),
        Mode::Busy => {
            site.mode = Mode::Sound;
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response()
        }
        Mode::WrongStatus if is_error => (StatusCode::NOT_FOUND, xml, text).into_response(),
        Mode::WrongStatus => (xml, text).into_response(),
        Mode::Brotli => coded("br", b"xyz".to_vec()),
    }
}

struct Peer {
    site: Site,
    url: Url,
    shutdown: Shutdown,
    dir: tempfile::TempDir,
    collection: Collection,
    /// One request is answered for each of its permits.
    gate: Arc<Semaphore>,
    /// How long records are said to live.
    ttl_secs: Option<u64>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

/// A repository of so many items, and an empty collection.
async fn peer(count: u32) -> Peer {
    let items = (0..count).map(|id| (id, (0, false))).collect();
    let deleted = Deleted::Persistent;
    let site = Arc::new(Mutex::new(Shared { items, deleted, ..Shared::default() }));
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 4));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/oai?key=1", listener.local_addr().unwrap());
    let router = Router::new().fallback(serve).with_state((Arc::clone(&site), Arc::clone(&gate)));
    let shutdown = Shutdown::new();
    tokio::spawn(server::serve(listener, router, Limits::default(), shutdown.clone()));
    let dir = tempfile::tempdir().unwrap();
    let collection = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap().0;
    let url = Url::parse(&url).unwrap();
    Peer { site, url, shutdown, dir, collection, ttl_secs: None, gate }
}

impl Peer {
    fn repository(&self) -> Repository {
        let access = Access { allow_private: true, page_bytes_max: 4 << 20, ..Access::default() };
        Repository::new(Client::new(net::client::Settings::default()), self.url.clone(), access)
    }

    fn target(&self) -> Target {
        let mut identity = SourceIdentity::new(self.url.as_str());
        if let Some(secs) = self.ttl_secs {
            identity.attributes.push(("Time-to-Live".to_owned(), secs.to_string()));
        }
        Target::new(self.collection.clone(), "test".to_owned(), identity)
    }

    fn settings(&self) -> Settings {
        Settings::new(self.url.as_str())
    }

    /// Harvests into the collection; after so many parts it is broken off, and nothing returned.
    async fn harvest(&self, settings: Settings, parts_max: usize) -> Option<(End, Vec<Stored>)> {
        let mut target = self.target();
        let checkpoint = target.checkpoint().await.unwrap();
        let shutdown = self.shutdown.child();
        let bounds = Bounds::default();
        let mut running = Running::new(self.repository(), settings, checkpoint, bounds, shutdown);
        let mut all = Vec::new();
        loop {
            match running.next().await {
                Step::Part(part) => {
                    if all.len() == parts_max {
                        return None;
                    }
                    let prefix = running.prefix().to_owned();
                    all.push(target.store(*part, &prefix).await.unwrap());
                }
                Step::End(end) => {
                    target.store_end(&end.checkpoint).await.unwrap();
                    return Some((*end, all));
                }
                Step::Stopped => return None,
            }
        }
    }

    async fn whole(&self) -> End {
        self.harvest(self.settings(), usize::MAX).await.unwrap().0
    }

    fn set(&self, mode: Mode) {
        self.site.lock().unwrap().mode = mode;
    }

    /// Titles of the objects that the collection has, by number.
    fn titles(&self) -> BTreeMap<u32, String> {
        let gatherer = SourceIdentity::new(self.url.as_str()).gatherer_id;
        (0..200)
            .filter_map(|id| {
                let oid = Oid::new(&gatherer, &format!("oai:test:{id}"));
                let stored = self.collection.get(&oid).unwrap()?;
                Some((id, stored.record.text("Title").unwrap().into_owned()))
            })
            .collect()
    }

    fn expected(&self) -> BTreeMap<u32, String> {
        let site = self.site.lock().unwrap();
        let live = site.items.iter().filter(|(_, (_, deleted))| !deleted);
        live.map(|(id, (version, _))| (*id, format!("Item {id} v{version}"))).collect()
    }
}

/// Records that say nothing of how long they live do so until the repository says otherwise: one that was
/// away for longer than that would not send them again.
#[tokio::test]
async fn what_a_repository_that_is_away_has_sent_stays() {
    let peer = peer(15).await;
    peer.whole().await;
    let year = 365 * 86_400_000;
    let swept = peer.collection.sweep(Stamp(clock::now_ms() + 50 * year), 1.0).unwrap();
    assert_eq!((swept, peer.titles().len()), (Swept::Done { expired: 0 }, 15));
}

#[tokio::test]
async fn a_record_that_is_too_large_is_named_and_counted() {
    let peer = peer(5).await;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { record_bytes_max: 4_096, ..Options::default() };
    let small = Collection::open(dir.path(), options, Stamp(1)).unwrap().0;
    peer.site.lock().unwrap().large.insert(3, 20_000);
    let identity = SourceIdentity::new(peer.url.as_str());
    let mut target = Target::new(small.clone(), "test".to_owned(), identity);
    let (settings, shutdown) = (peer.settings(), peer.shutdown.child());
    let (checkpoint, bounds) = (Checkpoint::default(), Bounds::default());
    let mut running = Running::new(peer.repository(), settings, checkpoint, bounds, shutdown);
    let Step::Part(part) = running.next().await else { panic!() };
    let stored = target.store(*part, "oai_dc").await.unwrap();
    assert_eq!((small.len(), stored.applied.oversized, stored.problems), (4, 1, 1));
    let [(identifier, problem)] = &stored.named[..] else { panic!("{:?}", stored.named) };
    assert_eq!(identifier, "oai:test:3");
    assert!(problem.message.contains("too large"), "{problem}");
}

/// What is as it was is not sent again: without a word it would be taken for gone once the time that it has
/// is over.
#[tokio::test]
async fn harvests_confirm_what_lives() {
    let mut peer = peer(15).await;
    peer.ttl_secs = Some(30 * 86_400);
    let confirmed = || {
        let identity = SourceIdentity::new(peer.url.as_str());
        let changes = peer.collection.scan(0).unwrap().map(|it| it.unwrap().change);
        let confirms = changes.filter_map(|it| match it {
            Change::Confirm { gatherer, root, at } => Some((gatherer, root, at)),
            _ => None,
        });
        let last = confirms.last().unwrap();
        assert_eq!((last.0, last.1), (identity.gatherer_id, identity.base_url));
        last.2
    };
    peer.whole().await;
    let first = confirmed();
    peer.whole().await;
    // Not with each: it is a change, of which everybody hears.
    assert!(confirmed().0 - first.0 <= 6 * 3_600_000);
    // A month after the last one they go, and not before.
    let day = 86_400_000;
    let after = |days: u64| Stamp(confirmed().0 + days * day);
    let swept = |at| peer.collection.sweep(at, 1.0).unwrap();
    assert_eq!(swept(after(29)), Swept::Done { expired: 0 });
    assert_eq!(swept(after(31)), Swept::Done { expired: 15 });
}

#[tokio::test]
async fn what_is_there_comes_and_then_what_is_new() {
    let peer = peer(45).await;
    let end = peer.whole().await;
    assert_eq!((end.outcome, end.report.records), (Ok(()), 45));
    assert_eq!(peer.titles(), peer.expected());
    assert_eq!(peer.titles().len(), 45);
    {
        let mut site = peer.site.lock().unwrap();
        site.items.insert(3, (1, false));
        site.items.insert(4, (1, true));
        site.items.insert(77, (1, false));
    }
    let version = peer.collection.version();
    let end = peer.whole().await;
    assert_eq!((end.outcome, end.report.records, end.report.deleted), (Ok(()), 3, 1));
    assert_eq!(peer.titles(), peer.expected());
    let changed = peer.collection.version();
    // Three changes, and at times the confirmation of all that lives.
    assert!((3..=4).contains(&(changed.serial - version.serial)), "{version} to {changed}");
    // The overlap brings them again; nothing comes of it.
    let end = peer.whole().await;
    assert_eq!((end.outcome, end.report.full), (Ok(()), false));
    assert!(peer.collection.version().serial - changed.serial <= 1);
}

#[tokio::test]
async fn a_harvest_that_is_broken_off_goes_on_at_its_page() {
    let peer = peer(45).await;
    for parts_max in [0, 1, 2] {
        assert!(peer.harvest(peer.settings(), parts_max).await.is_none());
    }
    assert_eq!(peer.titles().len(), 30);
    let (end, stored) = peer.harvest(peer.settings(), usize::MAX).await.unwrap();
    assert_eq!((end.outcome, end.report.requests, stored.len()), (Ok(()), 2, 2));
    assert_eq!(peer.titles(), peer.expected());
    // As it is on disk.
    peer.collection.close();
    let again = Collection::open(peer.dir.path(), Options::default(), Stamp(1)).unwrap().0;
    assert_eq!(again.len(), 45);
    assert!(again.harvest_checkpoint("test").unwrap().unwrap().is_intact);
}

#[tokio::test]
async fn pages_that_come_fast_are_one_part_where_that_is_wanted() {
    let peer = peer(45).await;
    let bounds = Bounds::default();
    let running = |settings| {
        let (repository, shutdown) = (peer.repository(), peer.shutdown.child());
        let running = Running::new(repository, settings, Checkpoint::default(), bounds, shutdown);
        running.holding(Duration::from_secs(3_600))
    };
    let mut all = running(peer.settings());
    let Step::Part(part) = all.next().await else { panic!() };
    assert_eq!((part.records.len(), part.last), (45, true));
    assert!(matches!(all.next().await, Step::End(_)));
    // Nothing is held while a pause is made.
    let mut some = running(Settings { delay_ms: 50, ..peer.settings() });
    let Step::Part(part) = some.next().await else { panic!() };
    assert_eq!((part.records.len(), part.last), (10, false));
}

#[tokio::test]
async fn nothing_is_held_over_a_turn_that_is_waited_for() {
    let peer = peer(45).await;
    let hosts = Hosts::default();
    let bounds = Bounds { time_max: Duration::from_secs(5), ..Bounds::default() };
    let repository = peer.repository().pacing(hosts.clone(), Duration::from_millis(1));
    let (checkpoint, shutdown) = (Checkpoint::default(), peer.shutdown.child());
    let running = Running::new(repository, peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_secs(3_600));
    let Step::Part(part) = running.next().await else { panic!() };
    assert_eq!(part.records.len(), 10);
    // As long as somebody else has the turn nothing is asked, and the wait has an end.
    let turn = hosts.turn("127.0.0.1", Duration::ZERO).await;
    let asked = peer.site.lock().unwrap().asked.len();
    let Step::End(end) = running.next().await else { panic!() };
    assert_eq!(end.outcome, Err(Failure::TimeUp { secs: 5 }));
    assert_eq!(peer.site.lock().unwrap().asked.len(), asked);
    drop(turn);
}

#[tokio::test]
async fn nothing_is_held_while_an_answer_does_not_come() {
    let peer = peer(25).await;
    let (bounds, shutdown) = (Bounds::default(), peer.shutdown.child());
    let checkpoint = Checkpoint::default();
    let running = Running::new(peer.repository(), peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_millis(200));
    // Identify, the formats and a page.
    let gate = peer.gate.clone();
    gate.forget_permits(Semaphore::MAX_PERMITS);
    gate.add_permits(3);
    let Step::Part(part) = running.next().await else { panic!() };
    assert_eq!(part.records.len(), 10);
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    let Step::Part(part) = running.next().await else { panic!() };
    assert_eq!((part.records.len(), part.last), (15, true));
    assert!(matches!(running.next().await, Step::End(_)));
    assert_eq!(peer.site.lock().unwrap().asked.len(), 5, "each was asked for once");
}

#[tokio::test]
async fn what_is_held_is_bounded_in_bytes() {
    let peer = peer(45).await;
    // Pages of 3 MiB.
    peer.site.lock().unwrap().large = (0..45).step_by(10).map(|it| (it, 3 << 20)).collect();
    let (bounds, shutdown) = (Bounds::default(), peer.shutdown.child());
    let checkpoint = Checkpoint::default();
    let running = Running::new(peer.repository(), peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_secs(3_600));
    let Step::Part(part) = running.next().await else { panic!() };
    assert_eq!((part.records.len(), part.last), (30, false));
}

#[tokio::test]
async fn packed_pages_are_unpacked() {
    for mode in [Mode::Gzip, Mode::Deflate] {
        let peer = peer(25).await;
        peer.set(mode);
        let end = peer.whole().await;
        assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()), "{mode:?}");
    }
}

#[tokio::test]
async fn what_unpacks_to_too_much_is_named() {
    let peer = peer(25).await;
    peer.set(Mode::Bomb);
    let Err(Failure::Transfer { problem: why, .. }) = peer.whole().await.outcome else { panic!() };
    assert!(why.contains("unpacks to more than 4194304 bytes"), "{why}");
    peer.set(Mode::Brotli);
    let Err(Failure::Transfer { problem: why, .. }) = peer.whole().await.outcome else { panic!() };
    assert!(why.contains("\"br\""), "{why}");
    peer.set(Mode::Sound);
    assert_eq!((peer.whole().await.outcome, peer.titles()), (Ok(()), peer.expected()));
}

#[tokio::test]
async fn long_tokens_go_by_post() {
    let peer = peer(25).await;
    peer.site.lock().unwrap().padding = 3_000;
    assert_eq!((peer.whole().await.outcome, peer.titles()), (Ok(()), peer.expected()));
    let site = peer.site.lock().unwrap();
    assert_eq!(site.asked.iter().filter(|it| it.0 == Method::POST).count(), 2);
    assert!(site.asked.iter().all(|(_, length)| *length < 2_000), "{:?}", site.asked);
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_made() {
    let peer = peer(5).await;
    peer.set(Mode::Busy);
    let began = clock::monotonic();
    let end = peer.whole().await;
    assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()));
    assert!(Duration::from_secs(1) <= clock::monotonic() - began);
    let [(Warning::Retried(why), 1)] = &end.report.warnings[..] else { panic!() };
    assert!(why.contains("503"), "{why}");
}

#[tokio::test]
async fn errors_of_the_protocol_count_under_any_status() {
    let peer = peer(0).await;
    peer.set(Mode::WrongStatus);
    assert_eq!(peer.whole().await.outcome, Ok(()), "noRecordsMatch is no failure");
}

#[tokio::test]
async fn deletions_that_are_not_told_of_show_in_a_full_harvest() {
    let peer = peer(25).await;
    peer.site.lock().unwrap().deleted = Deleted::No;
    assert_eq!(peer.whole().await.outcome, Ok(()));
    peer.site.lock().unwrap().items.retain(|id, _| id % 5 != 0);
    assert_eq!(peer.whole().await.outcome, Ok(()));
    assert_eq!(peer.titles().len(), 25);
    // Waits for as long as that until it is time.
    let settings = Settings { full_every_secs: 1, ..peer.settings() };
    let full = async {
        loop {
            let (end, _) = peer.harvest(settings.clone(), usize::MAX).await.unwrap();
            if end.report.full {
                return end;
            }
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(10), full).await.unwrap();
    assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()));
}

/// A full harvest; what the collection says to it.
async fn full(peer: &Peer, confirmed: bool) -> Result<End, collection::Error> {
    let mut target = peer.target().confirmed(confirmed);
    let mut checkpoint = target.checkpoint().await?;
    checkpoint.forget_progress();
    let (repository, shutdown) = (peer.repository(), peer.shutdown.child());
    let bounds = Bounds::default();
    let mut running = Running::new(repository, peer.settings(), checkpoint, bounds, shutdown);
    loop {
        match running.next().await {
            Step::Part(part) => {
                let prefix = running.prefix().to_owned();
                target.store(*part, &prefix).await?;
            }
            Step::End(end) => return Ok(*end),
            Step::Stopped => panic!("nobody stopped it"),
        }
    }
}

#[tokio::test]
async fn a_repository_that_has_lost_most_waits_for_a_word() {
    let peer = peer(150).await;
    assert_eq!(peer.whole().await.outcome, Ok(()));
    peer.site.lock().unwrap().items.retain(|id, _| *id < 10);
    for _ in 0..2 {
        let held = full(&peer, false).await;
        assert!(
            matches!(held, Err(collection::Error::Loss { lost: 140, of: 150, .. })),
            "{held:?}"
        );
        assert_eq!(peer.titles().len(), 150);
    }
    assert_eq!(full(&peer, true).await.unwrap().outcome, Ok(()));
    assert_eq!(peer.titles(), peer.expected());
}

#[tokio::test]
async fn what_was_lost_and_is_back_needs_no_word() {
    let peer = peer(150).await;
    assert_eq!(peer.whole().await.outcome, Ok(()));
    let all = peer.site.lock().unwrap().items.clone();
    // Several pages: the harvest is held at the last one.
    peer.site.lock().unwrap().items.retain(|id, _| *id < 35);
    let held = full(&peer, false).await;
    assert!(matches!(held, Err(collection::Error::Loss { lost: 115, .. })), "{held:?}");
    peer.site.lock().unwrap().items = all;
    let end = peer.whole().await;
    assert_eq!((end.outcome, end.report.full), (Ok(()), true));
    assert_eq!((peer.titles().len(), peer.titles()), (150, peer.expected()));
}

#[tokio::test]
async fn single_requests_are_answered_or_refused_by_name() {
    let peer = peer(25).await;
    let repository = peer.repository();
    assert_eq!(repository.identify().await.unwrap().0.repository_name, "Test");
    assert_eq!(repository.formats(None).await.unwrap()[0].prefix, "oai_dc");
    assert_eq!(repository.sets(None).await.unwrap().items[0].spec, "a");
    let found = repository.get("oai:test:7".to_owned(), "oai_dc".to_owned()).await.unwrap();
    assert!(found.metadata.unwrap().0.contains("Item 7 v0"));
    let missing = repository.get("oai:test:99".to_owned(), "oai_dc".to_owned()).await;
    let Err(Error::Refused { faults, .. }) = missing else { panic!("{missing:?}") };
    assert_eq!(faults[0].code, Code::IdDoesNotExist);
    peer.set(Mode::Html);
    let html = repository.identify().await.unwrap_err().to_string();
    assert!(html.starts_with(peer.url.as_str()) && html.contains("HTML"), "{html}");
    let access = Access { allow_private: false, ..Access::default() };
    let client = Client::new(net::client::Settings::default());
    let guarded = Repository::new(client, peer.url.clone(), access);
    let refused = guarded.identify().await.unwrap_err().to_string();
    assert!(refused.contains("allow_private"), "{refused}");
}

#[tokio::test]
async fn a_shutdown_ends_it_where_it_is() {
    let peer = peer(25).await;
    let shutdown = Shutdown::new();
    let checkpoint = peer.target().checkpoint().await.unwrap();
    let bounds = Bounds::default();
    let (repository, settings) = (peer.repository(), peer.settings());
    let mut running = Running::new(repository, settings, checkpoint, bounds, shutdown.clone());
    assert!(matches!(running.next().await, Step::Part(_)));
    shutdown.start();
    assert_eq!(running.next().await, Step::Stopped);
}
