//! Tests of a broker whose index is on a failing disk: the broker reports the fault, still answers,
//! and recovers without help.

use std::time::Duration;

use collection::{Batch, Change};
use soif::Record;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::index::Index;
use crate::index::tests::disk::{Disk, Fault, Random};
use crate::index::tests::model::{contents, expected, grow};

/// A time limit longer than any step takes, even on a busy machine.
const STEP_MAX: Duration = Duration::from_secs(60);

fn index(handle: &Handle) -> Index {
    let Engine::Index(index) = &handle.inner.engine;
    index.clone()
}

struct Running {
    handle: Handle,
    disk: Disk,
    log: Vec<Change>,
    random: Random,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Error>>,
    _dir: TempDir,
}

impl Running {
    async fn start(disk: Disk, dir: TempDir) -> Self {
        let mut config = Config::new("Test", dir.path());
        config.daemon.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.daemon.admin_listen = config.daemon.listen;
        let server = Server::bind_at(config, Storage::Disk(disk.clone())).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let task = tokio::spawn(server.run(shutdown.clone()));
        let random = Random::new(7);
        Self { handle, disk, log: Vec::new(), random, shutdown, task, _dir: dir }
    }

    /// Commits further changes to the collection.
    async fn commit(&mut self) {
        let before = self.log.len();
        grow(&mut self.log, 20, &mut self.random);
        let changes = self.log[before..].to_vec();
        let collection = self.handle.inner.collection.clone();
        let commit = move || collection.commit(Batch { changes, notes: vec![] }, Stamp(1));
        tokio::task::spawn_blocking(commit).await.unwrap().unwrap();
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Status) -> bool) {
        let waiting = async {
            while !wanted(&self.handle.status().await) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(STEP_MAX, waiting).await.is_err() {
            panic!("never {what}: {:#?}", self.handle.status().await);
        }
    }

    async fn caught_up(&self) {
        let there = |it: &Status| it.index_covered == Some(it.serial) && it.index_problem.is_none();
        self.until("caught up", there).await;
        assert_eq!(contents(&index(&self.handle)), expected(&self.log));
    }

    async fn stop(self) {
        self.shutdown.start();
        self.task.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_disk_is_reported_and_survived_without_a_restart() {
    let mut broker = Running::start(Disk::default(), tempfile::tempdir().unwrap()).await;
    broker.commit().await;
    broker.caught_up().await;
    for (fault, said) in [
        (Fault::Full(0), "no space left"),
        (Fault::ReadOnly, "cannot be written"),
        (Fault::NoFiles, "too many open files"),
    ] {
        let before = broker.log.clone();
        broker.disk.fail(fault);
        broker.commit().await;
        let named = |it: &Status| it.index_problem.as_ref().is_some_and(|it| it.contains(said));
        broker.until(said, named).await;
        let status = broker.handle.status().await;
        assert!(status.index_covered < Some(status.serial), "{said}: {status:?}");
        let failed = status.ready.checks.iter().filter(|it| !it.ok).map(|it| it.name.as_str());
        assert_eq!(failed.collect::<Vec<_>>(), ["answers-searches"]);
        assert_eq!(contents(&index(&broker.handle)), expected(&before), "{said}");
        broker.disk.fail(Fault::None);
        broker.caught_up().await;
        assert!(broker.handle.ready().ready);
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_found_on_demand_and_repaired_without_a_restart() {
    let mut broker = Running::start(Disk::default(), tempfile::tempdir().unwrap()).await;
    broker.commit().await;
    broker.caught_up().await;
    assert_eq!(broker.handle.verify().await.unwrap(), Vec::<String>::new());
    let mut random = Random::new(3);
    for suffix in [".pos", ".store", ".fast"] {
        let mut found = Vec::new();
        // A flipped bit at a file's end may have no effect.
        while found.is_empty() {
            assert!(broker.disk.flip(suffix, &mut random), "no {suffix}");
            found = broker.handle.verify().await.unwrap();
        }
        assert!(found.iter().all(|it| it.ends_with(suffix)), "{found:?}");
        broker.caught_up().await;
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_before_an_unclean_stop_is_found_in_the_background() {
    let disk = Disk::default();
    let mut broker = Running::start(disk.clone(), tempfile::tempdir().unwrap()).await;
    broker.commit().await;
    broker.caught_up().await;
    let log = broker.log.clone();
    let Running { handle, shutdown, task, _dir: dir, .. } = broker;
    shutdown.start();
    task.await.unwrap().unwrap();
    drop(handle);
    // This disk does not keep the mark of a clean stop. A query for everything does not read the
    // positions of words.
    let mut random = Random::new(5);
    assert!(disk.flip(".pos", &mut random));
    let mut broker = Running::start(disk, dir).await;
    broker.log = log;
    broker.until("verified", |_| !index(&broker.handle).is_suspect()).await;
    broker.caught_up().await;
    assert_eq!(broker.handle.verify().await.unwrap(), Vec::<String>::new());
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_with_an_incomplete_index_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("Test", dir.path());
    config.daemon.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.daemon.admin_listen = config.daemon.listen;
    // The server does not run, so no indexer interferes.
    let handle = Server::bind(config).await.unwrap().handle();
    let work = move || {
        assert!(handle.ready().ready, "it is empty");
        let changes = (0..10_001).map(|n| {
            let mut record = Record::new("FILE", format!("http://x/{n}"));
            record.push("Gatherer-Id", "0123456789abcdef");
            Change::Update(record)
        });
        let batch = Batch { changes: changes.collect(), notes: vec![] };
        handle.inner.collection.commit(batch, Stamp(1)).unwrap();
        let check = |fault: Option<&str>| {
            let ready = handle.ready();
            let check = ready.checks.iter().find(|it| it.name == "answers-searches").unwrap();
            assert_eq!(check.detail.as_deref(), fault);
            assert_eq!((check.ok, ready.ready), (fault.is_none(), fault.is_none()));
        };
        check(Some("the full-text index is being built: 0 of 10,001 changes"));
        let index = index(&handle);
        let has_begun = || index.covered().is_some();
        index.apply(&handle.inner.collection, &has_begun).unwrap();
        check(Some("the full-text index is being built: 10,000 of 10,001 changes"));
        index.apply(&handle.inner.collection, &|| false).unwrap();
        check(None);
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_puts_another_ranking_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("Test", dir.path());
    config.daemon.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.daemon.admin_listen = config.daemon.listen;
    config.ranking.factors.near = 3.0;
    let handle = Server::bind(config.clone()).await.unwrap().handle();
    assert_eq!(handle.inner.engine.ranking(), config.ranking, "it is that of the start");
    config.ranking.matching = crate::answer::Matching::All;
    assert_eq!(handle.reload(config.clone()).await.unwrap(), [""; 0], "no restart is needed");
    assert_eq!(handle.inner.engine.ranking(), config.ranking);
}
