//! Tests of purging: records purged at the source leave all members.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use collection::pull::Kind;
use flate2::read::MultiGzDecoder;
use replicator::status::FailureStatus;
use replicator::tree::generation::Lease;

use crate::support::{Cluster, FeedSource, Records};

/// A word of the one object that is purged.
const WORD: &str = "zanzibarite";
const OBJECT: u32 = 7_000;

/// Returns the files below a directory, and open files that were deleted there.
fn all_files(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = open.pop() {
        // Entries that vanish meanwhile are skipped.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let is_nameless = target.to_string_lossy().ends_with(" (deleted)");
        if is_nameless && target.starts_with(top) {
            found.push(entry.path());
        }
    }
    found
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

/// Returns the files below a directory that contain the word: plain, in the packed bytes of a log,
/// or in any gzip data.
fn with_word(top: &Path, packed: &[u8]) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| -> io::Result<bool> {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        let mut plain = Vec::new();
        // A file that is cut off or not gzip is searched as far as it can be unpacked.
        let _ = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        Ok([&bytes, &plain].iter().any(|it| has(it, WORD.as_bytes())) || has(&bytes, packed))
    };
    all_files(top).into_iter().filter(|it| holds(it).unwrap_or(false)).collect()
}

/// Commits the object. Returns its packed bytes in the origin's log.
async fn commit_packed(original: &Records, cluster: &Cluster) -> Vec<u8> {
    let last = |files: &crate::support::LogFiles| {
        let mut of_log = files.iter().rev().filter(|it| it.0.starts_with("log-"));
        of_log.next().map(|it| (it.0.clone(), it.1.clone())).unwrap()
    };
    let before = last(&cluster.files(0));
    original.fill(OBJECT..OBJECT + 1, WORD, 1);
    cluster.all_reach(original).await;
    let after = last(&cluster.files(0));
    let from = if after.0 == before.0 { before.1.len() } else { 0 };
    let member = &after.1[from..];
    // The packed text is at the end of a gzip member.
    member[member.len() - 80..member.len() - 16].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn purged_records_soon_leave_all_members() {
    let original = Records::suppressing();
    original.fill(0..300, "first", 20);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::of(&source, 3).await;
    cluster.all_reach(&original).await;
    original.fill(0..5, "second", 1);
    cluster.all_reach(&original).await;
    let packed = commit_packed(&original, &cluster).await;
    let (ahead, behind) = (Records::new(), Records::new());
    assert_eq!(behind.pull(&cluster.public_feed(2)).await.kind, Kind::Snapshot);
    assert_eq!(ahead.pull(&cluster.public_feed(1)).await.kind, Kind::Snapshot);
    original.suppress(OBJECT);
    cluster.all_reach(&original).await;
    assert_eq!(ahead.pull(&cluster.public_feed(1)).await.kind, Kind::Delta);
    for member in 0..3 {
        assert!(!with_word(&cluster.data(member), &packed).is_empty(), "at {member}");
    }
    // A reader of one member has a lease.
    let lease = Lease::take(&cluster.current(1)).unwrap();
    let report = source.purge().await;
    assert_eq!((report.purged.left, report.purged.subjects.len()), (0, 1), "{report:?}");
    let purged = net::clock::monotonic();
    for member in [0, 2] {
        let is_clean = || with_word(&cluster.data(member), &packed).is_empty();
        cluster.until_true("purged bytes are left", is_clean).await;
        println!("member {member} is clean after {:?}", purged.elapsed());
    }
    let is_named = |it: Option<&String>| it.is_some_and(|it| it.contains("in use by readers"));
    cluster.until(1, |_, it| is_named(it.unpurged.as_ref())).await;
    assert_ne!(with_word(&cluster.data(1), &packed), [] as [PathBuf; 0]);
    drop(lease);
    cluster
        .until_true("purged bytes are left", || with_word(cluster.dir(), &packed).is_empty())
        .await;
    for member in 0..3 {
        cluster.until(member, |_, it| it.unpurged.is_none()).await;
    }
    // Consumers go on at their cursors; one that was behind begins with a snapshot.
    original.fill(10..15, "third", 1);
    cluster.all_reach(&original).await;
    cluster.assert_equal();
    let summary = ahead.pull(&cluster.public_feed(2)).await;
    assert_eq!((summary.kind, summary.version), (Kind::Delta, original.version()));
    assert_eq!(behind.pull(&cluster.public_feed(1)).await.version, original.version());
    cluster.join().await;
    cluster.all_reach(&original).await;
    let late = Records::new();
    assert_eq!(late.pull(&cluster.public_feed(3)).await.kind, Kind::Snapshot);
    for reader in [ahead, behind, late] {
        assert_eq!(reader.titles(), original.titles());
    }
    // A second purge changes nothing.
    let folded = cluster.files(0);
    source.purge().await;
    cluster.publish().await;
    assert!(cluster.files(0) == folded, "it was folded again");
    assert_eq!(with_word(cluster.dir(), &packed), [] as [PathBuf; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_folded_is_fetched_and_the_failure_is_named() {
    let original = Records::suppressing();
    original.fill(0..300, "first", 20);
    let source = FeedSource::start(&original).await;
    let cluster = Cluster::of(&source, 2).await;
    cluster.all_reach(&original).await;
    // A file blocks the directory for folding.
    let in_the_way = cluster.current(1).with_file_name("folded");
    fs::write(&in_the_way, "").unwrap();
    let purge = async |number| {
        original.suppress(number);
        cluster.all_reach(&original).await;
        source.purge().await;
    };
    purge(7).await;
    let is_named = |it: Option<&FailureStatus>| it.is_some_and(|it| it.text.contains("folded"));
    cluster.until(1, |_, it| is_named(it.unfolded.as_ref())).await;
    cluster.until(1, |tree, _| tree.held == tree.newest).await;
    cluster.assert_equal();
    fs::remove_file(in_the_way).unwrap();
    purge(8).await;
    cluster.until(1, |tree, it| it.unfolded.is_none() && tree.held == tree.newest).await;
    cluster.assert_equal();
    cluster.stop().await;
}
