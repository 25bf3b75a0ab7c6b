//! A byte of the gatherer's data that changes between two runs: what was lost is gathered again, and
//! nothing else is.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::fs;
use std::path::Path;

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{Collection, Options, Stamp};
use net::clock;
use support::{Bench, PATIENCE, Tree};

const FILES: u64 = 400;

/// Opens the collection of a gatherer that does not run; `seal`: and ends its segment.
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

/// Changes a byte of the first member that has changes.
fn flip(data: &Path) {
    let files = fs::read_dir(data.join("collection")).unwrap().map(|it| it.unwrap().path());
    let mut segments: Vec<_> =
        files.filter(|it| it.extension().is_some_and(|it| it == "gz")).collect();
    segments.sort_by_key(|it| std::cmp::Reverse(fs::metadata(it).unwrap().len()));
    let mut bytes = fs::read(&segments[0]).unwrap();
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let mut members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let member = members.find(|it| !it.header.entries.is_empty()).unwrap();
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
    if sealed {
        // What was damaged is named, gathered again, and left out of the log.
        let end = clock::monotonic() + PATIENCE;
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            tick.tick().await;
            let status = bench.handle.status();
            assert!(clock::monotonic() < end, "{status:?}");
            if status.damaged_total == 1 && status.damaged.is_empty() {
                assert_eq!(status.problems["damaged"], 1);
                break;
            }
        }
        let gathered =
            bench.handle.stages().iter().find(|it| it.stage == "summarize").unwrap().left;
        assert!(0 < gathered && gathered < FILES, "{gathered} of {FILES}");
    }
    for n in [0, FILES / 2, FILES - 1] {
        assert!(bench.file(format!("{n}.txt")).await.text("File-Size").is_some());
    }
    bench.assert_conserved();
    let (tree, _) = bench.stop().await;
    assert_eq!(look(&tree.data(), false), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_a_sealed_segment_is_gathered_again() {
    check(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_the_last_segment_is_gathered_again() {
    check(false).await;
}
