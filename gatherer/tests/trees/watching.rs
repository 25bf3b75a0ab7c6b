//! Tests of the watch: changes of files and directories are published within two seconds.

use std::fs;
use std::time::Duration;

use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::config::Watch;

/// Maximum time until a change is published.
const SOON: Duration = Duration::from_secs(2);

#[track_caller]
fn assert_soon(took: Duration) {
    assert!(took < SOON, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_change_move_and_go() {
    let bench = Bench::start(Tree::with(&["a.txt", "d/b.txt"])).await;
    bench.tree.write("new.txt", "new");
    assert_soon(bench.until("new.txt", true).await);
    bench.tree.write("a.txt", "changed words");
    assert_soon(bench.until_text("a.txt", "changed words").await);
    fs::rename(bench.tree.path("d/b.txt"), bench.tree.path("c.txt")).unwrap();
    assert_soon(bench.until("c.txt", true).await);
    assert_soon(bench.until("d/b.txt", false).await);
    fs::remove_file(bench.tree.path("c.txt")).unwrap();
    assert_soon(bench.until("c.txt", false).await);
    // Editors save by replacing the file.
    bench.tree.write(".a.txt.swp", "saved over");
    fs::rename(bench.tree.path(".a.txt.swp"), bench.tree.path("a.txt")).unwrap();
    assert_soon(bench.until_text("a.txt", "saved over").await);
    assert_eq!(bench.handle.status().objects, 2);
    assert_eq!(bench.handle.progress().borrow().passes_done, 1, "no pass was needed");
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_come_move_and_go_with_their_content() {
    let bench = Bench::start(Tree::with(&["keep.txt"])).await;
    bench.tree.write("x/y/z/1.txt", "1");
    assert_soon(bench.until("x/y/z/1.txt", true).await);
    // The new directory is watched too.
    bench.tree.write("x/y/z/2.txt", "2");
    assert_soon(bench.until("x/y/z/2.txt", true).await);
    fs::rename(bench.tree.path("x/y"), bench.tree.path("moved")).unwrap();
    assert_soon(bench.until("moved/z/2.txt", true).await);
    assert_soon(bench.until("x/y/z/2.txt", false).await);
    let outside = bench.tree.folder.path().join("outside");
    fs::rename(bench.tree.path("moved"), &outside).unwrap();
    assert_soon(bench.until("moved/z/1.txt", false).await);
    fs::rename(&outside, bench.tree.path("back")).unwrap();
    assert_soon(bench.until("back/z/1.txt", true).await);
    bench.tree.write("back/z/3.txt", "3");
    assert_soon(bench.until("back/z/3.txt", true).await);
    fs::remove_dir_all(bench.tree.path("back")).unwrap();
    assert_soon(bench.until("back/z/3.txt", false).await);
    bench.until("back/z/1.txt", false).await;
    bench.until("back/z/2.txt", false).await;
    assert_eq!(bench.handle.status().objects, 1);
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_gitignore_files_are_noticed() {
    let bench = Bench::start(Tree::with(&["a.o", "d/b.o", "d/e/c.o", "keep.txt"])).await;
    bench.tree.write("d/.gitignore", "*.o\n");
    assert_soon(bench.until("d/b.o", false).await);
    assert_soon(bench.until("d/e/c.o", false).await);
    bench.tree.write(".ignore", "a.o\n");
    assert_soon(bench.until("a.o", false).await);
    fs::remove_file(bench.tree.path("d/.gitignore")).unwrap();
    assert_soon(bench.until("d/b.o", true).await);
    assert_soon(bench.until("d/e/c.o", true).await);
    assert_eq!(bench.handle.status().objects, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_replace_a_directory() {
    let bench = Bench::start(Tree::with(&["d/a.txt"])).await;
    fs::remove_dir_all(bench.tree.path("d")).unwrap();
    bench.tree.write("d", "now a file");
    assert_soon(bench.until("d", true).await);
    assert_soon(bench.until("d/a.txt", false).await);
    fs::remove_file(bench.tree.path("d")).unwrap();
    bench.tree.write("d/a.txt", "a directory again");
    assert_soon(bench.until_text("d/a.txt", "a directory again").await);
    assert_soon(bench.until("d", false).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_one_file_is_watched_by_its_name() {
    let tree = Tree::with(&["one.txt", "two.txt"]);
    let config = Config::for_paths(&[tree.path("one.txt")], &tree.data());
    let bench = Bench::start_with(tree, config).await;
    bench.tree.write("two.txt", "not mine");
    bench.tree.write("new.tmp", "saved over");
    fs::rename(bench.tree.path("new.tmp"), bench.tree.path("one.txt")).unwrap();
    assert_soon(bench.until_text("one.txt", "saved over").await);
    assert_eq!(bench.handle.status().objects, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_polled_root_is_walked_at_its_interval() {
    let tree = Tree::with(&["a.txt"]);
    let watch = Watch::Poll(Duration::from_secs(1));
    let config = Config { watch, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.handle.status().watch, "poll 1");
    bench.tree.write("b.txt", "b");
    bench.until("b.txt", true).await;
    fs::remove_file(bench.tree.path("b.txt")).unwrap();
    bench.until("b.txt", false).await;
    bench.passes(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_watch_only_a_request_gathers() {
    let tree = Tree::with(&["a.txt"]);
    let config = Config { watch: Watch::Off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    bench.tree.write("b.txt", "b");
    let progress = bench.gather().await;
    assert_eq!(progress.passes_done, 2);
    bench.file("b.txt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_changes_ends_in_the_state_of_the_tree() {
    let bench = Bench::start(Tree::new()).await;
    for round in 0..5 {
        for n in 0..300 {
            bench.tree.write(&format!("d{}/f{n}.txt", n % 10), &format!("round {round}"));
        }
        fs::remove_dir_all(bench.tree.path(&format!("d{round}"))).unwrap();
    }
    bench.tree.write("last.txt", "last");
    bench.until("last.txt", true).await;
    for n in 0..300 {
        let name = format!("d{}/f{n}.txt", n % 10);
        if bench.tree.path(&name).exists() {
            bench.until_text(&name, "round 4").await;
        } else {
            bench.until(&name, false).await;
        }
    }
    bench.assert_conserved();
}
