//! What is purged where a collection is leaves all members.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use collection::pull::Kind;
use flate2::read::MultiGzDecoder;
use replicator::status::FailureStatus;
use replicator::tree::generation::Lease;

use crate::support::{Kept, Source, World};

/// What is to be gone: a word of one object alone.
const WORD: &str = "zanzibarite";
const OBJECT: u32 = 7_000;

/// The files below a directory, and those that are open and have no name there any more.
fn files(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = open.pop() {
        // What goes meanwhile is not there.
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

/// The files below a directory that have the word: as it is, in a part of a log as it was packed once, or in any
/// that can be unpacked.
fn holding(top: &Path, packed: &[u8]) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| -> io::Result<bool> {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        let mut plain = Vec::new();
        // What is cut off, or no log, is looked through as far as it can be unpacked.
        let _ = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        Ok([&bytes, &plain].iter().any(|it| has(it, WORD.as_bytes())) || has(&bytes, packed))
    };
    files(top).into_iter().filter(|it| holds(it).unwrap_or(false)).collect()
}

/// Commits the object, and returns bytes of it as the origin's log has them.
async fn commit_packed(kept: &Kept, world: &World) -> Vec<u8> {
    let last = |files: &crate::support::Files| {
        let mut of_log = files.iter().rev().filter(|it| it.0.starts_with("log-"));
        of_log.next().map(|it| (it.0.clone(), it.1.clone())).unwrap()
    };
    let before = last(&world.files(0));
    kept.fill(OBJECT..OBJECT + 1, WORD, 1);
    world.all_reach(kept).await;
    let after = last(&world.files(0));
    let from = if after.0 == before.0 { before.1.len() } else { 0 };
    let member = &after.1[from..];
    // The packed text is at the end of a member.
    member[member.len() - 80..member.len() - 16].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_purged_at_the_source_leaves_all_members_soon() {
    let kept = Kept::suppressing();
    kept.fill(0..300, "first", 20);
    let source = Source::start(&kept).await;
    let mut world = World::of(&source, 3).await;
    world.all_reach(&kept).await;
    kept.fill(0..5, "second", 1);
    world.all_reach(&kept).await;
    let packed = commit_packed(&kept, &world).await;
    let (ahead, behind) = (Kept::new(), Kept::new());
    assert_eq!(behind.pull(&world.outside(2)).await.kind, Kind::Snapshot);
    assert_eq!(ahead.pull(&world.outside(1)).await.kind, Kind::Snapshot);
    kept.suppress(OBJECT);
    world.all_reach(&kept).await;
    assert_eq!(ahead.pull(&world.outside(1)).await.kind, Kind::Delta);
    for member in 0..3 {
        assert_ne!(holding(&world.data(member), &packed), [] as [PathBuf; 0], "at {member}");
    }
    // A reader of one member has not ended.
    let lease = Lease::take(&world.current(1)).unwrap();
    let report = source.purge().await;
    assert_eq!((report.purged.left, report.purged.subjects.len()), (0, 1), "{report:?}");
    let purged = net::clock::monotonic();
    for member in [0, 2] {
        let is_clean = || holding(&world.data(member), &packed).is_empty();
        world.until_so("it holds what was purged", is_clean).await;
        println!("member {member} is clean after {:?}", purged.elapsed());
    }
    let is_named = |it: Option<&String>| it.is_some_and(|it| it.contains("in use by readers"));
    world.until(1, |_, it| is_named(it.unpurged.as_ref())).await;
    assert_ne!(holding(&world.data(1), &packed), [] as [PathBuf; 0]);
    drop(lease);
    world.until_so("it holds what was purged", || holding(world.dir(), &packed).is_empty()).await;
    for member in 0..3 {
        world.until(member, |_, it| it.unpurged.is_none()).await;
    }
    // Consumers go on where they were, and who was behind begins with what there is.
    kept.fill(10..15, "third", 1);
    world.all_reach(&kept).await;
    world.assert_equal();
    let summary = ahead.pull(&world.outside(2)).await;
    assert_eq!((summary.kind, summary.version), (Kind::Delta, kept.version()));
    assert_eq!(behind.pull(&world.outside(1)).await.version, kept.version());
    world.join().await;
    world.all_reach(&kept).await;
    let late = Kept::new();
    assert_eq!(late.pull(&world.outside(3)).await.kind, Kind::Snapshot);
    for reader in [ahead, behind, late] {
        assert_eq!(reader.titles(), kept.titles());
    }
    // Once is enough.
    let folded = world.files(0);
    source.purge().await;
    world.publish().await;
    assert!(world.files(0) == folded, "it was folded again");
    assert_eq!(holding(world.dir(), &packed), [] as [PathBuf; 0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_folded_here_comes_from_others_and_is_named() {
    let kept = Kept::suppressing();
    kept.fill(0..300, "first", 20);
    let source = Source::start(&kept).await;
    let world = World::of(&source, 2).await;
    world.all_reach(&kept).await;
    // What is no directory is in the way.
    let in_the_way = world.current(1).with_file_name("folded");
    fs::write(&in_the_way, "").unwrap();
    let purge = async |number| {
        kept.suppress(number);
        world.all_reach(&kept).await;
        source.purge().await;
    };
    purge(7).await;
    let is_named = |it: Option<&FailureStatus>| it.is_some_and(|it| it.text.contains("folded"));
    world.until(1, |_, it| is_named(it.unfolded.as_ref())).await;
    world.until(1, |tree, _| tree.held == tree.newest).await;
    world.assert_equal();
    fs::remove_file(in_the_way).unwrap();
    purge(8).await;
    world.until(1, |tree, it| it.unfolded.is_none() && tree.held == tree.newest).await;
    world.assert_equal();
    world.stop().await;
}
