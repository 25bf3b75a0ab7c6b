//! Support for tests of collections: a feed's source, members and consumers in this process.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{FeedClient, PullLimits, Puller, Summary};
use collection::{
    Author, Batch, Change, Collection, GATHERER_ID, Oid, Options, PurgeReport, Stamp, Subject,
    Version,
};
use net::client::{Client, Settings};
use net::clock;
use net::identity::Identity;
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use replicator::status::{CollectionStatus, Published, Status, TreeStatus};
use replicator::{Config, Handle, Server};
use soif::Record;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};
use url::Url;

/// Much longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks at a status.
const LOOK: Duration = Duration::from_millis(20);
const GATHERER: &str = "00000000000000aa";

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

fn update(number: u32, title: &str) -> Change {
    let mut record = Record::new("FILE", format!("http://h/{number}"));
    record.push("Title", format!("{title} {number}"));
    record.push("Keywords", format!("{:x}", u128::from(number).wrapping_mul(u128::MAX / 7_919)));
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

/// The content of a directory's files, by name.
pub(crate) type LogFiles = BTreeMap<String, Vec<u8>>;

/// A collection in its own temporary folder.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) collection: Collection,
    dir: Arc<TempDir>,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(dir: TempDir) -> Self {
        let options = Options { member_bytes_max: 2 << 10, ..Options::default() };
        let (collection, _) = Collection::open(dir.path(), options, now()).unwrap();
        Self { collection, dir: Arc::new(dir) }
    }

    /// Makes a collection that allows takedowns.
    pub(crate) fn suppressing() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let suppressed = Some(dir.path().join("suppressed.soif"));
        let options = Options { member_bytes_max: 2 << 10, suppressed, ..Options::default() };
        let at = dir.path().join("collection");
        let (collection, _) = Collection::open(&at, options, now()).unwrap();
        Self { collection, dir: Arc::new(dir) }
    }

    /// Takes an object down.
    pub(crate) fn suppress(&self, number: u32) {
        let identity = Identity::of(&[1; 32]).unwrap();
        let author = Author { id: identity.id(), identity };
        let subject = Subject::parse(&format!("http://h/{number}")).unwrap();
        self.collection.suppress(&author, subject, "", now()).unwrap();
    }

    /// Makes a copy with the same history.
    pub(crate) fn fork(&self) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(self.dir.path(), dir.path());
        Self::open(dir)
    }

    /// Commits objects, `each` of them together.
    pub(crate) fn fill(&self, numbers: Range<u32>, title: &str, each: usize) {
        let all: Vec<Change> = numbers.map(|it| update(it, title)).collect();
        for changes in all.chunks(each) {
            self.commit(changes.to_vec());
        }
    }

    /// Commits objects with this many random characters each, which do not compress well.
    pub(crate) fn fill_with(&self, numbers: Range<u32>, digits: usize) {
        let mut random = fastrand::Rng::with_seed(u64::from(numbers.start));
        let changes = numbers.map(|number| {
            let mut change = update(number, "large");
            if let Change::Update(record) = &mut change {
                record
                    .push("Digits", (0..digits).map(|_| random.alphanumeric()).collect::<String>());
            }
            change
        });
        self.commit(changes.collect());
    }

    pub(crate) fn delete(&self, number: u32) {
        self.commit(vec![Change::Delete(Oid::new(GATHERER, &format!("http://h/{number}")))]);
    }

    fn commit(&self, changes: Vec<Change>) {
        self.collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
    }

    pub(crate) fn version(&self) -> Version {
        self.collection.version()
    }

    /// Returns the title of every live object.
    pub(crate) fn titles(&self) -> BTreeMap<String, String> {
        let mut titles = BTreeMap::new();
        for scanned in self.collection.scan(0).unwrap() {
            match scanned.unwrap().change {
                Change::Update(record) => {
                    titles.insert(record.url.clone(), record.text("Title").unwrap().into_owned());
                }
                Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                    drop(titles.remove(&oid.url));
                }
                Change::Refresh(..) | Change::Confirm { .. } => {}
            }
        }
        titles
    }

    /// Pulls the changes of a feed.
    pub(crate) async fn pull(&self, base: &Url) -> Summary {
        self.puller(base).pull(None).await.unwrap()
    }

    /// Pulls the changes of a log folder.
    pub(crate) async fn pull_in_place(&self, folder: &Path) -> Summary {
        let mut summary = Summary::default();
        let puller = self.puller(&"http://localhost/".parse().unwrap());
        puller.pull_in_place(folder, None, &mut summary).await.unwrap();
        summary
    }

    fn puller(&self, base: &Url) -> Puller {
        let settings = Settings { allow_private: true, ..Settings::default() };
        let (client, limits) = (Client::new(settings), PullLimits::default());
        let ask = FeedClient::new(client, base.clone(), "s").allow_private(true);
        Puller::new(ask, self.collection.clone(), limits)
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let at = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &at);
        } else {
            fs::copy(path, at).unwrap();
        }
    }
}

/// A server of a collection's feed; the collection can be exchanged.
pub(crate) struct FeedSource {
    pub(crate) base: Url,
    feed: Arc<Mutex<FeedServer>>,
    _tasks: JoinSet<()>,
}

impl FeedSource {
    pub(crate) async fn start(original: &Records) -> Self {
        let feed = FeedServer::new(original.collection.clone(), FeedOptions::default());
        let feed = Arc::new(Mutex::new(feed));
        let shared = feed.clone();
        let answer = move |request: Request| {
            let feed = shared.lock().unwrap().clone();
            async move { feed.respond(request.map(drop)).await.map(Body::new) }
        };
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let router = Router::new().fallback(answer);
            serve(listener, router, Limits::default(), Shutdown::new()).await.unwrap();
        });
        Self { base, feed, _tasks: tasks }
    }

    pub(crate) async fn purge(&self) -> PurgeReport {
        let feed = self.feed.lock().unwrap().clone();
        feed.purge(None).await.unwrap()
    }

    pub(crate) fn serve(&self, original: &Records) {
        let feed = FeedServer::new(original.collection.clone(), FeedOptions::default());
        *self.feed.lock().unwrap() = feed;
    }
}

/// Returns the settings to publish this source.
fn collection_settings(source: &FeedSource) -> String {
    format!("[[collection]]\nname = \"c\"\nfeed = \"{}\"\n", source.base)
}

struct ClusterMember {
    /// Its settings, without collections.
    text: String,
    config: Config,
    running: Option<Running>,
}

struct Running {
    handle: Handle,
    admin: SocketAddr,
    feeds: Option<SocketAddr>,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), replicator::Error>>,
}

/// A group of members; the first has founded it, and publishes the collection `c`.
pub(crate) struct Cluster {
    dir: TempDir,
    members: Vec<ClusterMember>,
    pub(crate) origin: String,
}

impl Cluster {
    pub(crate) async fn found(source: &FeedSource) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = Self { dir, members: Vec::new(), origin: String::new() };
        cluster.start("[[group]]\nname = \"g\"\n", &collection_settings(source)).await;
        cluster.origin = cluster.status(0).await.id;
        cluster
    }

    /// Founds a group of this many members.
    pub(crate) async fn of(source: &FeedSource, members: usize) -> Self {
        let mut cluster = Self::found(source).await;
        for _ in 1..members {
            cluster.join().await;
        }
        cluster
    }

    pub(crate) async fn join(&mut self) {
        let invitation = self.running(0).handle.invite(None, None).await.unwrap().invitation;
        self.start(&format!("[[group]]\njoin = \"{invitation}\"\n"), "").await;
    }

    async fn start(&mut self, group: &str, collections: &str) {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap().port();
        drop(free);
        let data = self.data(self.members.len());
        let data = data.display();
        let text = format!(
            "data = \"{data}\"\naddress = \"127.0.0.1:{at}\"\nlisten = \"127.0.0.1:{at}\"\n\
             admin_listen = \"127.0.0.1:0\"\nfeed_listen = \"127.0.0.1:0\"\n\
             base_url = \"https://feeds.example.org/papers\"\n{group}"
        );
        let config = Config::parse(&(text.clone() + collections)).unwrap();
        self.members.push(ClusterMember { text, config, running: None });
        self.resume(self.members.len() - 1).await;
    }

    /// Has the first member publish this source, or none.
    pub(crate) async fn reload(&mut self, source: Option<&FeedSource>) {
        let collections = source.map(collection_settings).unwrap_or_default();
        let member = &mut self.members[0];
        member.config = Config::parse(&(member.text.clone() + &collections)).unwrap();
        let config = member.config.clone();
        self.running(0).handle.reload(config).await.unwrap();
    }

    /// Adds lines to the first member's settings, until the next reload.
    pub(crate) async fn reload_with(&self, source: &FeedSource, more: &str) {
        let text = self.members[0].text.clone() + &collection_settings(source) + more;
        self.running(0).handle.reload(Config::parse(&text).unwrap()).await.unwrap();
    }

    pub(crate) async fn resume(&mut self, member: usize) {
        let server = Server::bind(self.members[member].config.clone()).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let (admin, feeds) = (server.admin_addr(), server.feed_addr());
        let task = tokio::spawn(server.run(shutdown.clone()));
        self.members[member].running = Some(Running { handle, admin, feeds, shutdown, task });
    }

    pub(crate) async fn halt(&mut self, member: usize) {
        let Running { shutdown, task, .. } = self.members[member].running.take().unwrap();
        shutdown.start();
        task.await.unwrap().unwrap();
    }

    pub(crate) async fn stop(mut self) {
        for member in 0..self.members.len() {
            self.halt(member).await;
        }
    }

    fn running(&self, member: usize) -> &Running {
        self.members[member].running.as_ref().unwrap()
    }

    pub(crate) async fn status(&self, member: usize) -> Status {
        self.running(member).handle.status().await.unwrap()
    }

    pub(crate) async fn publish(&self) -> Published {
        self.running(0).handle.publish("c".to_owned(), false).await.unwrap()
    }

    pub(crate) fn data(&self, member: usize) -> PathBuf {
        self.dir.path().join(member.to_string())
    }

    /// Returns the collection's feed at a member's administration listener.
    pub(crate) fn admin_feed(&self, member: usize) -> Url {
        format!("http://{}/collections/c/", self.running(member).admin).parse().unwrap()
    }

    /// Returns the collection's feed at a member's public listener, by its full name.
    pub(crate) fn public_feed(&self, member: usize) -> Url {
        let at = self.running(member).feeds.unwrap();
        format!("http://{at}/collections/c@{}/", self.origin).parse().unwrap()
    }

    /// Requests a path from the public listener. Returns the response's head, in lower case.
    pub(crate) async fn get_head(&self, member: usize, host: &str, path: &str) -> String {
        let response = self.get(member, host, path).await;
        response.split("\r\n\r\n").next().unwrap_or_default().to_lowercase()
    }

    /// Requests a path from the public listener, and returns the whole response.
    pub(crate) async fn get(&self, member: usize, host: &str, path: &str) -> String {
        let at = self.running(member).feeds.unwrap();
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Returns a member's two statuses of the collection.
    pub(crate) async fn report(&self, member: usize) -> Option<(TreeStatus, CollectionStatus)> {
        let found = self.status(member).await.trees.into_iter().find(|it| it.name == "c")?;
        let collection = found.collection.clone()?;
        Some((found, collection))
    }

    /// Waits until a member's status of the collection meets a condition.
    pub(crate) async fn until(
        &self,
        member: usize,
        condition: impl Fn(&TreeStatus, &CollectionStatus) -> bool,
    ) {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.report(member).await;
            if found.as_ref().is_some_and(|(tree, collection)| condition(tree, collection)) {
                return;
            }
            if until < Instant::now() {
                panic!("the condition fails at {member}: {:#?}", self.status(member).await);
            }
            sleep(LOOK).await;
        }
    }

    /// Returns the directory with the data of all members.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Waits until a condition holds; `what` describes the failure.
    pub(crate) async fn until_true(&self, what: &str, condition: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < until, "{what}: {:#?}", self.status(0).await);
            sleep(LOOK).await;
        }
    }

    /// Waits until a member has a note with all of these words.
    pub(crate) async fn until_noted(&self, member: usize, words: &[&str]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status(member).await;
            let has_all = |text: &str| words.iter().all(|it| text.contains(it));
            if status.notes.iter().any(|it| has_all(&it.text)) {
                return;
            }
            assert!(Instant::now() < until, "{words:?} is not noted at {member}: {status:#?}");
            sleep(LOOK).await;
        }
    }

    /// Waits until all members have reached the original's version.
    pub(crate) async fn all_reach(&self, original: &Records) {
        let (version, objects) = (original.version().to_string(), original.collection.len());
        for member in 0..self.members.len() {
            let is_there = |_: &TreeStatus, it: &CollectionStatus| {
                it.reached.as_ref() == Some(&version) && it.objects == objects
            };
            self.until(member, is_there).await;
        }
    }

    /// Returns the bytes that a member has received over its links.
    pub(crate) async fn bytes_in(&self, member: usize) -> u64 {
        self.status(member).await.links.iter().map(|it| it.bytes_in).sum()
    }

    /// Returns the link that readers of a member open.
    pub(crate) fn current(&self, member: usize) -> PathBuf {
        let name = format!("c@{}", self.origin);
        self.data(member).join("collections").join(name).join("current")
    }

    /// Reads the files that readers of a member see.
    pub(crate) fn files(&self, member: usize) -> LogFiles {
        let entries = fs::read_dir(self.current(member)).unwrap().map(|it| it.unwrap().path());
        let name = |it: &Path| it.file_name().unwrap().to_str().unwrap().to_owned();
        entries.map(|it| (name(&it), fs::read(&it).unwrap())).collect()
    }

    /// Checks that all members have the same files, and returns these.
    pub(crate) fn assert_equal(&self) -> LogFiles {
        let files = self.files(0);
        assert!(files.contains_key("CHAIN") && 1 < files.len(), "{:?}", files.keys());
        for member in 1..self.members.len() {
            assert!(self.files(member) == files, "member {member} has other bytes");
        }
        files
    }
}
