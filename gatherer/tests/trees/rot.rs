//! Tests of damage: after a byte of the gatherer's data has changed between two runs, only lost
//! records are gathered again.

use std::fs;
use std::path::Path;

use crate::support::archive::Archive;
use crate::support::{Bench, Tree};
use collection::member::{Decoder, MEMBER_BYTES_MAX, Member};
use collection::{Batch, Change, Collection, Note, Options, Stamp};
use gatherer::spec::{Repository, Root};
use net::client::{Client, Request, Settings};
use net::clock;

const FILES: u64 = 400;

/// Opens the collection of a gatherer that does not run, with `seal` ends its segment, and returns
/// the number of its problems.
fn look(data: &Path, seal: bool) -> usize {
    let (collection, _) =
        Collection::open(&data.join("collection"), Options::default(), Stamp(clock::now_ms()))
            .unwrap();
    if seal {
        collection.compact(Stamp(clock::now_ms())).unwrap();
    }
    assert_eq!(collection.len(), FILES);
    collection.verify().unwrap().problems.len()
}

/// Changes a byte of the first member that has several changes, so is not a root's confirmation.
fn flip(data: &Path) {
    let files = fs::read_dir(data.join("collection")).unwrap().map(|it| it.unwrap().path());
    let mut segments: Vec<_> =
        files.filter(|it| it.extension().is_some_and(|it| it == "gz")).collect();
    segments.sort_by_key(|it| std::cmp::Reverse(fs::metadata(it).unwrap().len()));
    let mut bytes = fs::read(&segments[0]).unwrap();
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let mut members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let member = members.find(|it| 1 < it.header.entries.len()).unwrap();
    bytes[usize::try_from(member.offset + member.length - 30).unwrap()] ^= 4;
    fs::write(&segments[0], bytes).unwrap();
}

async fn check(sealed: bool) {
    let tree = Tree::new();
    for n in 0..FILES {
        tree.write(&format!("{n}.txt"), &format!("number {n} {:032x}", n.wrapping_mul(n) << 17));
    }
    let bench = Bench::start(tree).await;
    bench.passes(1).await;
    let (tree, _) = bench.stop().await;
    assert_eq!(look(&tree.data(), sealed), 0);
    flip(&tree.data());

    let bench = Bench::start(tree).await;
    bench.passes(1).await;
    // Damage is reported, its objects are gathered again, and its members are left out of the log.
    let status = bench.status(|it| it.damaged_total == 1 && it.damaged.is_empty()).await;
    assert_eq!(status.problems["damaged"], 1);
    let gathered = bench.handle.stages().iter().find(|it| it.stage == "summarize").unwrap().left;
    assert!(0 < gathered && gathered < FILES, "{gathered} of {FILES}");
    for n in [0, FILES / 2, FILES - 1] {
        assert!(bench.file(format!("{n}.txt")).await.text("File-Size").is_some());
    }
    bench.assert_conserved();
    let (tree, _) = bench.stop().await;
    assert_eq!(look(&tree.data(), false), 0);
}

/// Returns the status of `/readyz`, and the message of a check.
fn readiness((status, body): (u16, String), check: &str) -> (u16, Option<String>) {
    let text: daemon::health::Readiness = serde_json::from_str(&body).unwrap();
    assert_eq!(text.ready, status == 200, "{body}");
    let check = text.checks.into_iter().find(|it| it.name == check).unwrap();
    assert_eq!(check.ok, check.message.is_none());
    (status, check.detail.or(check.message))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gatherer_with_a_damaged_feed_is_not_ready_until_repaired() {
    let tree = Tree::new();
    for n in 0..FILES {
        tree.write(&format!("{n}.txt"), &format!("number {n} {:032x}", n.wrapping_mul(n) << 17));
    }
    let (tree, _) = Bench::start(tree).await.stop().await;
    assert_eq!(look(&tree.data(), true), 0);
    let bench = Bench::start(tree).await;
    let feed = "serves-whole-feed";
    assert_eq!(readiness(bench.get("readyz").await, feed), (200, None));
    // The files cannot be gathered again for now.
    let aside = bench.tree.folder.path().join("aside");
    fs::rename(bench.tree.root(), &aside).unwrap();
    flip(&bench.tree.data());
    // The damage is found at the latest when the feed reads it: the answer breaks off there.
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let ask = async || client.send(Request::get(bench.public.join("feed").unwrap())).await.unwrap();
    drop(ask().await.bytes(1 << 20).await);
    assert!(ask().await.header("harvest-missing").is_some(), "there is a snapshot of the rest");
    let (status, text) = readiness(bench.get("readyz").await, feed);
    let (text, folder) = (text.unwrap(), bench.tree.folder.path().display().to_string());
    assert!(status == 503 && text.contains("damaged") && !text.contains(&folder), "{text}");
    let (status, text) = readiness(bench.get_admin("readyz").await, feed);
    assert!(status == 503 && text.clone().unwrap().contains(&folder), "{text:?}");
    let (_, text) = bench.get_admin("metrics").await;
    for line in ["harvest_ready 0", "harvest_ready_check{check=\"serves-whole-feed\"} 0"] {
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
    assert_eq!(bench.get("healthz").await.0, 200, "it lives");
    fs::rename(&aside, bench.tree.root()).unwrap();
    let mut passes = 0;
    while !bench.handle.ready().ready {
        bench.gather().await;
        passes += 1;
        assert!(passes < 100, "{:#?}", bench.handle.status());
    }
    assert_eq!(readiness(bench.get("readyz").await, feed), (200, None));
    assert_eq!(bench.get("feed").await.0, 200);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_lost_by_the_last_stop_are_not_released_before_a_full_pass() {
    let tree = Tree::new();
    tree.write("kept.txt", "kept");
    let bench = Bench::start(tree).await;
    bench.passes(1).await;
    // Keeps a copy, to restore the state after a power cut on a disk that loses later commits.
    let (collection, before) =
        (bench.tree.data().join("collection"), bench.tree.folder.path().join("before"));
    copy(&collection, &before);
    bench.tree.write("lost.txt", "lost");
    bench.gather().await;
    bench.file("lost.txt".to_owned()).await;
    let published = bench.handle.version();
    let (tree, _) = bench.stop().await;
    fs::remove_dir_all(&collection).unwrap();
    copy(&before, &collection);

    let aside = tree.folder.path().join("aside");
    fs::rename(tree.root(), &aside).unwrap();
    let bench = Bench::start(tree).await;
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let feed =
        bench.public.join(&format!("feed?since={}&epoch={}", published.serial, published.epoch));
    let feed = feed.unwrap();
    let missing = async || {
        let response = client.send(Request::get(feed.clone())).await.unwrap();
        assert_eq!(response.header("harvest-kind"), Some("snapshot"));
        response.header("harvest-missing").map(str::to_owned)
    };
    let held = bench.status(|it| it.roots.iter().any(|it| it.hold.is_some())).await;
    assert!(missing().await.is_some(), "{held:#?}");
    fs::rename(&aside, bench.tree.root()).unwrap();
    bench.gather().await;
    bench.file("lost.txt".to_owned()).await;
    assert_eq!(missing().await, None);
}

/// Checks the same as [`check`] with harvested records.
async fn check_harvested(sealed: bool) {
    let archive = Archive::start(u32::try_from(FILES).unwrap()).await;
    let start = async |tree: Tree| {
        let mut config = tree.config();
        config.roots.push(Root::Repository(Repository::new(archive.url.clone())));
        let bench = Bench::start_with(tree, config).await;
        bench.progress(|it| it.harvests_due == 0).await;
        bench
    };
    let (tree, _) = start(Tree::new()).await.stop().await;
    assert_eq!(look(&tree.data(), sealed), 0);
    archive.take_queries();
    flip(&tree.data());

    let bench = start(tree).await;
    let is_full = |it: &String| it.contains("metadataPrefix") && !it.contains("from=");
    let asked = std::cell::RefCell::new(Vec::new());
    bench
        .status(|it| {
            asked.borrow_mut().extend(archive.take_queries());
            it.objects == FILES && asked.borrow().iter().any(is_full)
        })
        .await;
    // Damaged members are left out of the log soon after all records are back.
    bench.status(|it| it.damaged.is_empty()).await;
    let (tree, _) = bench.stop().await;
    assert_eq!(look(&tree.data(), false), 0);
}

/// Ends the segment, changes a byte in the header of its member with a delete, and removes the key
/// index, which has the delete, too.
fn lose_delete(data: &Path) {
    let folder = data.join("collection");
    let options = Options { segment_bytes_max: 1, ..Options::default() };
    let (collection, _) = Collection::open(&folder, options, Stamp(clock::now_ms())).unwrap();
    let note = Note { key: b"any".to_vec(), value: Some(Vec::new()) };
    let batch = Batch { changes: Vec::new(), notes: vec![note] };
    collection.commit(batch, Stamp(clock::now_ms())).unwrap();
    drop(collection);
    let segment = folder.join("segment-00000001.gz");
    let mut bytes = fs::read(&segment).unwrap();
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let mut members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let has_delete =
        |it: &Member| it.changes().unwrap().iter().any(|it| matches!(it.change, Change::Delete(_)));
    let at = usize::try_from(members.find(has_delete).unwrap().offset).unwrap();
    bytes[at + 20] ^= 4;
    fs::write(&segment, bytes).unwrap();
    fs::remove_dir_all(folder.join("keys")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_deletion_was_lost_is_deleted_again() {
    let bench = Bench::start(Tree::with(&["a.txt", "b.txt", "c.txt"])).await;
    bench.passes(1).await;
    let (tree, _) = bench.stop().await;
    fs::remove_file(tree.path("b.txt")).unwrap();
    let bench = Bench::start(tree).await;
    bench.until("b.txt", false).await;
    let (tree, _) = bench.stop().await;
    lose_delete(&tree.data());
    {
        // The gatherer notices the loss even if another process opens the collection first.
        let folder = tree.data().join("collection");
        let (collection, recovery) =
            Collection::open(&folder, Options::default(), Stamp(clock::now_ms())).unwrap();
        assert!(recovery.lost);
        assert_eq!(collection.len(), 3, "it lives again");
    }
    let bench = Bench::start(tree).await;
    bench.until("b.txt", false).await;
    bench.status(|it| it.damaged.is_empty()).await;
    for name in ["a.txt", "c.txt"] {
        assert!(bench.file(name).await.text("File-Size").is_some());
    }
    let (tree, _) = bench.stop().await;
    let (collection, _) = Collection::open(
        &tree.data().join("collection"),
        Options::default(),
        Stamp(clock::now_ms()),
    )
    .unwrap();
    assert_eq!((collection.len(), collection.aftermath().unwrap()), (2, None));
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_a_sealed_segment_is_gathered_again() {
    check(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_the_last_segment_is_gathered_again() {
    check(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_a_sealed_segment_is_harvested_again() {
    check_harvested(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_the_last_segment_is_harvested_again() {
    check_harvested(false).await;
}
