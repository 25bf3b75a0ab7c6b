//! Tests of a stop in the middle of the work: it frees the data directory at once.

use std::time::Duration;

use crate::support::{Bench, PATIENCE, Tree};
use collection::{Collection, Options, Stamp};
use gatherer::Server;
use net::clock;
use net::shutdown::Shutdown;

const ROUNDS: usize = 10;
const FILES: usize = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn stopped_at_work_the_data_directory_is_free_at_once() {
    let tree = Tree::new();
    for n in 0..FILES {
        tree.write(&format!("{}/{n}.txt", n % 10), &format!("number {n}"));
    }
    let mut handles = Vec::new();
    let mut cut_short = 0;
    for round in 0..ROUNDS {
        let server = Server::bind(tree.config()).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let (mut versions, mut progress) = (handle.versions(), handle.progress());
        let running = tokio::spawn(server.run(shutdown.clone()));
        // Even rounds stop while files are walked, odd rounds just after a commit.
        let busy = async {
            match round % 2 {
                0 => progress.wait_for(|it| 0 < it.files_seen).await.map(drop),
                _ => versions.changed().await,
            }
        };
        tokio::time::timeout(PATIENCE, busy).await.unwrap().unwrap();
        let began = clock::monotonic();
        shutdown.start();
        running.await.unwrap().unwrap();
        let took = clock::monotonic() - began;
        assert!(took < Duration::from_secs(2), "stopping took {took:?}");

        let now = Stamp(clock::now_ms());
        let opened = Collection::open(&tree.data().join("collection"), Options::default(), now);
        let (collection, recovery) = opened.unwrap();
        assert!(recovery.cut.is_empty(), "{recovery:?}");
        assert_eq!(collection.version(), handle.version(), "nothing comes after the stop");
        cut_short += usize::from(collection.len() < FILES as u64);
        // A handle that still exists must not keep the data directory open.
        handles.push(handle);
    }
    assert!(0 < cut_short, "it was at work");
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, FILES as u64);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_are_known_after_a_new_start_until_they_are_cured() {
    let tree = Tree::new();
    tree.write("a.zip", "PK\x03\x04 and no more");
    tree.date("a.zip", 1_500_000_000);
    let config = tree.config();
    let bench = Bench::start_with(tree, config.clone()).await;
    bench.until_problems(&["broken a.zip"]).await;
    let (tree, _) = bench.stop().await;

    let bench = Bench::start_with(tree, config).await;
    bench.until_problems(&["broken a.zip"]).await;
    assert_eq!(bench.read(), 0, "it is not read again");
    bench.tree.write("a.zip", "not packed any more");
    bench.until_problems(&[]).await;
    bench.stop().await;
}
