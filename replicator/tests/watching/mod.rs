//! Trees that publish themselves: what happens in a directory is heard of, or looked for.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Duration;

use tokio::task::JoinSet;

use super::world::World;

/// Nobody looks for changes so rarely: they have been heard of.
const RARELY: &str = "24 h";
/// Set for the child that has a limit of its own.
const LIMITED: &str = "HARVEST_FEW_WATCHES";
/// Most watches of all programs in that child's user namespace.
const LIMIT: &str = "/proc/sys/user/max_inotify_watches";

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_change_is_heard_of_and_published() {
    let world = World::watching(RARELY).await;
    let at = |path| world.source(path);
    let seen = async |what: &str| {
        println!("{what}");
        world.until(World::is_published).await;
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
    let other = world.beside("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("x"), "5").unwrap();
    fs::rename(at(""), world.beside("former")).unwrap();
    fs::rename(other, at("")).unwrap();
    seen("another directory in this one's place").await;
    fs::write(at("x"), "6").unwrap();
    seen("a change in that").await;
    assert_eq!(world.unheard().await, None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_changes_is_a_version_or_two() {
    let world = World::watching(RARELY).await;
    fs::write(world.source("first"), "1").unwrap();
    world.until(World::is_published).await;
    let before = world.sequence().await;
    for dir in 0..100 {
        let dir = world.source(&dir.to_string());
        fs::create_dir(&dir).unwrap();
        for file in 0..100 {
            fs::write(dir.join(file.to_string()), "x").unwrap();
        }
    }
    world.until_entries(10_101).await;
    assert!(world.is_published());
    let versions = world.sequence().await - before;
    println!("{versions} versions of 10,000 changes");
    assert!((1..=10).contains(&versions), "{versions}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_stops_writing_is_published_all_the_same() {
    let world = World::watching("2 s").await;
    let (new, at) = (world.beside("new"), world.source(""));
    let mut writers = JoinSet::new();
    writers.spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        for turn in 0..u32::MAX {
            fs::write(&new, turn.to_string()).unwrap();
            fs::rename(&new, at.join((turn % 20).to_string())).unwrap();
            pace.tick().await;
        }
    });
    world.until_sequence(4).await;
    assert!(writers.try_join_next().is_none(), "it has stopped");
    writers.shutdown().await;
    world.until(World::is_published).await;
    world.stop().await;
}

#[test]
fn what_the_system_does_not_watch_is_looked_at_and_named() {
    if env::var_os(LIMITED).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(fall_back());
    }
    let limited = format!("echo 3 > {LIMIT} && exec \"$0\" \"$@\"");
    let name = "watching::what_the_system_does_not_watch_is_looked_at_and_named";
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &limited])
        .arg(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

async fn fall_back() {
    let world = World::watching("1 s").await;
    world.until(World::is_published).await;
    // There is no room for that one more.
    fs::create_dir_all(world.source("a/b/c/d")).unwrap();
    fs::write(world.source("a/b/c/d/e"), "1").unwrap();
    world.until(World::is_published).await;
    world.until_unheard(true).await;
    let why = world.unheard().await.unwrap();
    assert!(why.contains("fs.inotify.max_user_watches"), "{why}");
    assert_eq!(world.noted("changes of t are not heard of").await, 1);
    for turn in 2..5 {
        fs::write(world.source("a/b/c/d/e"), turn.to_string()).unwrap();
        world.until(World::is_published).await;
    }
    fs::write(LIMIT, "1000").unwrap();
    world.reload().await;
    world.until_unheard(false).await;
    fs::write(world.source("a/b/c/d/e"), "last").unwrap();
    world.until(World::is_published).await;
    assert_eq!(world.noted("changes of t are heard of again").await, 1);
    world.stop().await;
}
