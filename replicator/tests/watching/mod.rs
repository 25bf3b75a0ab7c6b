//! Tests of watched trees: changes are reported by the system, or looked for.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Duration;

use tokio::task::JoinSet;

use super::cluster::Cluster;

/// An interval longer than the test, so that only a watch can find changes.
const RARELY: &str = "24 h";
/// Environment of the child with its own limit of watches.
const LIMITED: &str = "HARVEST_FEW_WATCHES";
/// File with the maximum number of watches in that child's user namespace.
const LIMIT: &str = "/proc/sys/user/max_inotify_watches";

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_change_is_noticed_and_published() {
    let cluster = Cluster::watching(RARELY).await;
    let at = |path| cluster.source(path);
    let seen = async |what: &str| {
        println!("{what}");
        cluster.until(Cluster::is_published).await;
    };
    fs::write(at("a"), "1").unwrap();
    seen("a file").await;
    fs::create_dir_all(at("b/c/d")).unwrap();
    fs::write(at("b/c/d/e"), "2").unwrap();
    seen("a file in new directories").await;
    fs::write(at("b/c/d/e"), "3").unwrap();
    seen("a change in a directory that was not there when it began").await;
    fs::rename(at("a"), at("b/a")).unwrap();
    fs::rename(at("b/c"), at("f")).unwrap();
    seen("moves").await;
    fs::write(at("f/d/e"), "4").unwrap();
    seen("a change in a directory that was moved").await;
    fs::remove_file(at("b/a")).unwrap();
    fs::remove_dir_all(at("f/d")).unwrap();
    seen("deletes").await;
    let other = cluster.beside("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("x"), "5").unwrap();
    fs::rename(at(""), cluster.beside("former")).unwrap();
    fs::rename(other, at("")).unwrap();
    seen("another directory in this one's place").await;
    fs::write(at("x"), "6").unwrap();
    seen("a change in that").await;
    assert_eq!(cluster.watch_problem().await, None);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_changes_is_a_version_or_two() {
    let cluster = Cluster::watching(RARELY).await;
    fs::write(cluster.source("first"), "1").unwrap();
    cluster.until(Cluster::is_published).await;
    let before = cluster.sequence().await;
    for dir in 0..100 {
        let dir = cluster.source(&dir.to_string());
        fs::create_dir(&dir).unwrap();
        for file in 0..100 {
            fs::write(dir.join(file.to_string()), "x").unwrap();
        }
    }
    cluster.until_entries(10_101).await;
    assert!(cluster.is_published());
    let versions = cluster.sequence().await - before;
    println!("{versions} versions of 10,000 changes");
    assert!((1..=10).contains(&versions), "{versions}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_always_changes_is_published_too() {
    let cluster = Cluster::watching("2 s").await;
    let (new, at) = (cluster.beside("new"), cluster.source(""));
    let mut writers = JoinSet::new();
    writers.spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        for turn in 0..u32::MAX {
            fs::write(&new, turn.to_string()).unwrap();
            fs::rename(&new, at.join((turn % 20).to_string())).unwrap();
            pace.tick().await;
        }
    });
    cluster.until_sequence(4).await;
    assert!(writers.try_join_next().is_none(), "it has stopped");
    writers.shutdown().await;
    cluster.until(Cluster::is_published).await;
    cluster.stop().await;
}

#[test]
fn directories_without_a_watch_are_walked_and_reported() {
    if env::var_os(LIMITED).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(fall_back());
    }
    let limited = format!("echo 3 > {LIMIT} && exec \"$0\" \"$@\"");
    let name = "watching::directories_without_a_watch_are_walked_and_reported";
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &limited])
        .arg(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(stdout.contains("1 passed"), "{stdout}");
}

async fn fall_back() {
    let cluster = Cluster::watching("1 s").await;
    cluster.until(Cluster::is_published).await;
    // The limit allows no watches of more directories.
    fs::create_dir_all(cluster.source("a/b/c/d")).unwrap();
    fs::write(cluster.source("a/b/c/d/e"), "1").unwrap();
    cluster.until(Cluster::is_published).await;
    cluster.until_watch_problem(true).await;
    let why = cluster.watch_problem().await.unwrap();
    assert!(why.contains("fs.inotify.max_user_watches"), "{why}");
    assert_eq!(cluster.noted("changes of t are not reported").await, 1);
    for turn in 2..5 {
        fs::write(cluster.source("a/b/c/d/e"), turn.to_string()).unwrap();
        cluster.until(Cluster::is_published).await;
    }
    fs::write(LIMIT, "1000").unwrap();
    cluster.reload().await;
    cluster.until_watch_problem(false).await;
    fs::write(cluster.source("a/b/c/d/e"), "last").unwrap();
    cluster.until(Cluster::is_published).await;
    assert_eq!(cluster.noted("changes of t are reported again").await, 1);
    cluster.stop().await;
}
