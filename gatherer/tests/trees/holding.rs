//! Tests of the hold: a mass deletion is not published before it is confirmed.

use std::fs;

use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::progress::Hold;

fn many(count: usize) -> Tree {
    let tree = Tree::new();
    for n in 0..count {
        tree.write(&format!("d{}/f{n}.txt", n % 2), &format!("file {n}"));
    }
    tree
}

async fn unwatched(tree: Tree) -> Bench {
    let config = Config { watch: Watch::Off, ..tree.config() };
    Bench::start_with(tree, config).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_loss_is_held_until_it_is_confirmed() {
    let bench = unwatched(many(240)).await;
    fs::remove_dir_all(bench.tree.path("d1")).unwrap();
    bench.tree.write("d0/new.txt", "new");
    bench.gather().await;
    assert_eq!(bench.handle.status().objects, 241, "nothing is deleted, new files are published");
    assert_eq!(bench.root().hold, Some(Hold::Lost { lost: 120, of: 240 }));
    assert_eq!(bench.root().held, 120);
    assert!(bench.problems().iter().any(|it| it.starts_with("held")), "{:?}", bench.problems());
    let (_, text) = bench.get_admin("status").await;
    assert!(text.contains("\"why\":\"lost\""), "{text}");
    let (status, page) = bench.get_admin("").await;
    let expected = "120 objects would be deleted";
    assert!(
        status == 200 && page.contains(expected) && page.contains("confirm --root file:"),
        "{page}"
    );
    assert!(!page.contains("style="), "{page}");

    // The hold survives a restart, and lasts when all files but one are back.
    let (tree, _) = bench.stop().await;
    for n in (1..239).step_by(2) {
        tree.write(&format!("d1/f{n}.txt"), &format!("file {n}"));
    }
    let bench = unwatched(tree).await;
    assert_eq!(bench.handle.status().objects, 241);
    assert!(bench.root().hold.is_some() && bench.root().held == 1, "{:?}", bench.root());

    let wrong = bench.post("confirm?root=file:///other").await;
    assert_eq!(wrong.0, 404);
    let passes = bench.handle.progress().borrow().passes_done;
    let (status, text) = bench.post("confirm").await;
    assert!(status == 202 && text.contains("file://"), "{text}");
    bench.passes(passes + 1).await;
    assert_eq!(bench.handle.status().objects, 240);
    assert_eq!(bench.root().hold, None);
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_ends_by_itself_when_everything_is_back() {
    let bench = unwatched(many(10)).await;
    let aside = bench.tree.folder.path().join("aside");
    fs::rename(bench.tree.root(), &aside).unwrap();
    bench.gather().await;
    assert_eq!(bench.root().hold, Some(Hold::Missing));
    assert!(bench.problems().iter().any(|it| it == "root-missing root"), "{:?}", bench.problems());
    fs::create_dir(bench.tree.root()).unwrap();
    bench.gather().await;
    assert_eq!(bench.root().hold, Some(Hold::Empty));
    assert_eq!(bench.handle.status().objects, 10);
    fs::remove_dir(bench.tree.root()).unwrap();
    fs::rename(&aside, bench.tree.root()).unwrap();
    bench.gather().await;
    assert_eq!(bench.root().hold, None);
    assert_eq!(bench.handle.status().objects, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_loss_is_published_at_once() {
    let bench = unwatched(many(200)).await;
    for n in 0..50 {
        fs::remove_file(bench.tree.path(&format!("d{}/f{n}.txt", n % 2))).unwrap();
    }
    bench.gather().await;
    assert_eq!(bench.handle.status().objects, 150);
    assert_eq!(bench.root().hold, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_loss_is_held_too() {
    let bench = Bench::start(many(400)).await;
    fs::remove_dir_all(bench.tree.path("d0")).unwrap();
    fs::remove_dir_all(bench.tree.path("d1")).unwrap();
    // Files lost before the limit was reached are deleted; the others are held.
    bench.gather().await;
    let objects = bench.handle.status().objects;
    assert!(280 <= objects, "{objects} of 400 are left");
    assert!(bench.root().hold.is_some(), "{:?}", bench.root());
    bench.handle.confirm(None);
    let passes = bench.handle.progress().borrow().passes_done;
    bench.passes(passes + 1).await;
    assert_eq!(bench.handle.status().objects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_removed_by_mistake_keeps_its_objects() {
    let tree = many(120);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("x.txt"), "x").unwrap();
    let bench = unwatched(tree).await;
    let (tree, _) = bench.stop().await;
    let config = Config::for_paths(&[other.path().to_path_buf()], &tree.data());
    let bench = Bench::start_with(tree, config).await;
    let roots = bench.handle.status().roots;
    assert_eq!(roots[1].hold, Some(Hold::Removed));
    assert_eq!(bench.handle.status().objects, 121);
    let passes = bench.handle.progress().borrow().passes_done;
    assert_eq!(bench.post("confirm").await.0, 202);
    bench.passes(passes + 1).await;
    assert_eq!(bench.handle.status().objects, 1);
    assert_eq!(bench.handle.status().roots.len(), 1);
}
