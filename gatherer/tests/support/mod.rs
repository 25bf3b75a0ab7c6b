//! A gatherer over a temporary tree, controlled like by its users: by files, HTTP and its handle.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod archive;
pub(crate) mod site;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use gatherer::metrics::StageCount;
use gatherer::progress::{Phase, Progress, RootStatus, Status};
use gatherer::spec::{self, Root};
use gatherer::{Config, Error, Handle, Server};
use net::client::{Client, Request, Settings};
use net::clock;
use net::shutdown::Shutdown;
use soif::Record;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use url::Url;

/// Maximum wait before a test fails: much longer than any step should take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A temporary tree and the data directory beside it.
pub(crate) struct Tree {
    pub(crate) folder: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(tree.root()).unwrap();
        tree
    }

    /// Returns a tree with these files, each of which contains its own name.
    pub(crate) fn with(files: &[&str]) -> Self {
        let tree = Self::new();
        for file in files {
            tree.write(file, file);
        }
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Sets the time of a file, in seconds since 1970. A file that was written just now would be
    /// read again by the next pass, since it may change once more within the same tick of the
    /// clock.
    pub(crate) fn date(&self, name: &str, seconds: u64) {
        let file = std::fs::File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }

    pub(crate) fn config(&self) -> Config {
        Config { workers: 2, ..Config::for_paths(&[self.root()], &self.data()) }
    }
}

/// Returns the settings of the tree, the first root.
pub(crate) fn settings_of(config: &mut Config) -> &mut spec::Tree {
    match config.roots.first_mut() {
        Some(Root::Tree(tree)) => tree,
        other => panic!("{other:?}"),
    }
}

/// Returns whether this number of passes are finished and nothing is under way.
fn is_idle(progress: &Progress, passes: u64) -> bool {
    progress.phase == Phase::Idle && passes <= progress.passes_done
}

/// A running gatherer of a tree.
pub(crate) struct Bench {
    pub(crate) tree: Tree,
    pub(crate) handle: Handle,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Error>>,
    pub(crate) public: Url,
    admin: Url,
    client: Client,
}

impl Bench {
    /// Starts a gatherer on the tree and waits until its first pass is over.
    pub(crate) async fn start(tree: Tree) -> Self {
        let config = tree.config();
        Self::start_with(tree, config).await
    }

    /// Does the same as [`Bench::start`], with other settings.
    pub(crate) async fn start_with(tree: Tree, config: Config) -> Self {
        Self::start_within(tree, config, PATIENCE).await
    }

    /// Does the same as [`Bench::start_with`], with a longer wait for the first pass.
    pub(crate) async fn start_within(tree: Tree, config: Config, patience: Duration) -> Self {
        let server = Server::bind(config).await.unwrap();
        let url =
            |address: std::net::SocketAddr| Url::parse(&format!("http://{address}/")).unwrap();
        let public = url(server.local_addr());
        let admin = url(server.admin_addr());
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let task = tokio::spawn(server.run(shutdown.clone()));
        let client = Client::new(Settings { allow_private: true, ..Settings::default() });
        let bench = Self { tree, handle, shutdown, task, public, admin, client };
        bench.progress_within(patience, |it| is_idle(it, 1)).await;
        bench
    }

    /// Stops the gatherer. Returns its tree, and the time that the stop took.
    pub(crate) async fn stop(self) -> (Tree, Duration) {
        let began = clock::monotonic();
        self.shutdown.start();
        self.task.await.unwrap().unwrap();
        (self.tree, clock::monotonic() - began)
    }

    /// Waits until this number of passes are finished and nothing is under way.
    pub(crate) async fn passes(&self, count: u64) -> Progress {
        self.progress(|it| is_idle(it, count)).await
    }

    pub(crate) async fn progress(&self, wanted: impl Fn(&Progress) -> bool) -> Progress {
        self.progress_within(PATIENCE, wanted).await
    }

    async fn progress_within(
        &self,
        patience: Duration,
        wanted: impl Fn(&Progress) -> bool,
    ) -> Progress {
        let mut progress = self.handle.progress();
        let found = tokio::time::timeout(patience, progress.wait_for(|it| wanted(it))).await;
        found.unwrap_or_else(|_| panic!("{:#?}", self.handle.status())).unwrap().clone()
    }

    pub(crate) async fn status(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        let end = clock::monotonic() + PATIENCE;
        // There is no notification of a changed status.
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            let status = self.handle.status();
            if wanted(&status) {
                return status;
            }
            assert!(clock::monotonic() < end, "{status:#?}\n{:#?}", self.handle.problems());
        }
    }

    /// Requests a pass and waits for its end.
    pub(crate) async fn gather(&self) -> Progress {
        let before = self.handle.progress().borrow().passes_done;
        assert_eq!(self.post("gather").await.0, 202);
        self.passes(before + 1).await
    }

    /// Returns the number of passes over roots that have ended, crawls included.
    pub(crate) async fn crawls(&self) -> u64 {
        let (_, metrics) = self.get_admin("metrics").await;
        let line = metrics.lines().find(|it| it.starts_with("harvest_gatherer_passes_total"));
        line.and_then(|it| it.rsplit(' ').next()).unwrap().parse().unwrap()
    }

    /// Waits until this number of passes over roots have ended.
    pub(crate) async fn crawled(&self, count: u64) {
        let end = clock::monotonic() + PATIENCE;
        // There is no notification of a pass.
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while self.crawls().await < count {
            tick.tick().await;
            assert!(clock::monotonic() < end, "{:#?}", self.handle.status());
        }
    }

    /// Waits until the object of this file exists (or not), and returns the time that it took.
    pub(crate) async fn until(&self, name: &str, there: bool) -> Duration {
        self.until_url(&spec::file_url(&self.tree.path(name)), |it| it.is_some() == there).await
    }

    /// Waits until the file's record holds this text.
    pub(crate) async fn until_text(&self, name: &str, text: &str) -> Duration {
        let url = spec::file_url(&self.tree.path(name));
        let holds = |record: &Record| {
            record.attributes().iter().any(|it| String::from_utf8_lossy(&it.value).contains(text))
        };
        self.until_url(&url, |it| it.is_some_and(holds)).await
    }

    /// Waits until `wanted` accepts the record of the object with this URL.
    pub(crate) async fn until_url(
        &self,
        url: &str,
        wanted: impl Fn(Option<&Record>) -> bool,
    ) -> Duration {
        let began = clock::monotonic();
        let mut versions = self.handle.versions();
        let wait = async {
            loop {
                versions.borrow_and_update();
                if wanted(self.object(url).await.as_ref()) {
                    return;
                }
                versions.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("{url}: {:#?}", self.handle.status()));
        clock::monotonic() - began
    }

    pub(crate) async fn object(&self, url: &str) -> Option<Record> {
        let mut address = self.public.join("object").unwrap();
        address.query_pairs_mut().append_pair("oid", url);
        let (status, body) = self.send(Request::get(address)).await;
        if status == 404 {
            return None;
        }
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        Some(soif::parse(&body).unwrap().pop().unwrap())
    }

    /// Fetches the record of a file that must exist.
    pub(crate) async fn file(&self, name: impl AsRef<Path>) -> Record {
        let url = spec::file_url(&self.tree.root().join(name));
        self.object(&url).await.unwrap_or_else(|| panic!("{url} is not there"))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let (status, body) = self.send(Request::get(self.public.join(path).unwrap())).await;
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    pub(crate) async fn get_admin(&self, path: &str) -> (u16, String) {
        let (status, body) = self.send(Request::get(self.admin.join(path).unwrap())).await;
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Posts to the admin listener with the token.
    pub(crate) async fn post(&self, path: &str) -> (u16, String) {
        let token = std::fs::read_to_string(self.tree.data().join("admin.token")).unwrap();
        self.post_as(path, Some(token.trim().to_owned())).await
    }

    pub(crate) async fn post_as(&self, path: &str, token: Option<String>) -> (u16, String) {
        let request = Request::post(self.admin.join(path).unwrap(), "").token(token);
        let (status, body) = self.send(request).await;
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    async fn send(&self, request: Request) -> (u16, Vec<u8>) {
        let response = self.client.send(request).await.unwrap();
        let status = response.status.as_u16();
        (status, response.bytes(16 << 20).await.unwrap().to_vec())
    }

    /// Returns the kinds of all problems with the last part of their objects' URLs, sorted.
    pub(crate) fn problems(&self) -> Vec<String> {
        let short = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
        let mut all: Vec<String> = self
            .handle
            .problems()
            .iter()
            .map(|it| format!("{} {}", it.kind, short(&it.object)))
            .collect();
        all.sort();
        all
    }

    /// Waits until there are only these problems, as [`Bench::problems`] returns them.
    pub(crate) async fn until_problems(&self, expected: &[&str]) {
        self.status(|_| self.problems() == expected).await;
    }

    pub(crate) fn root(&self) -> RootStatus {
        self.handle.status().roots.remove(0)
    }

    /// Returns the number of files read since the start.
    pub(crate) fn read(&self) -> u64 {
        self.handle.stages()[1].entered
    }

    /// Asserts that no stage has lost an object, and that the counts between stages agree.
    pub(crate) fn assert_conserved(&self) {
        // A commit is visible a moment before it is counted, and what reloading starts may be under way.
        let end = clock::monotonic() + PATIENCE;
        while !is_conserved(&self.handle.stages()) {
            assert!(clock::monotonic() < end, "{:#?}", self.handle.stages());
            std::thread::yield_now();
        }
    }
}

/// Returns whether every object that came into a stage went out or was dropped for a reason, and none is between two.
fn is_conserved(stages: &[StageCount]) -> bool {
    let [walk, fetch, summarize, vanish, commit] = stages else { return false };
    let same = ["same-content", "missing", "twin"].iter().filter_map(|it| fetch.dropped.get(*it));
    stages.iter().all(|it| it.entered == it.left + it.dropped.values().sum::<u64>())
        && walk.left == fetch.entered
        && fetch.left == summarize.entered
        && commit.entered == summarize.left + same.sum::<u64>() + vanish.left
}
