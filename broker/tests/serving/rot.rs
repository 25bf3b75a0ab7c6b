//! Tests of bit rot: a byte of the broker's data changes between two runs. The lost objects are
//! fetched again, and search finds everything.

use std::fs;
use std::path::Path;

use crate::common::{Origin, Running, STEP_MAX, config};
use collection::member::{Decoder, MEMBER_BYTES_MAX, Member};
use collection::{Batch, Change, Collection, Note, Options, Scanned, Stamp};
use net::clock;

const ID: &str = "000000000000000c";
const OBJECTS: u64 = 300;

/// Opens the collection of a stopped broker, ends its segment if `seal`, and returns the number of
/// its problems.
fn problems(data: &Path, seal: bool) -> usize {
    let (collection, _) =
        Collection::open(&data.join("collection"), Options::default(), Stamp(clock::now_ms()))
            .unwrap();
    if seal {
        collection.compact(Stamp(clock::now_ms())).unwrap();
    }
    assert_eq!(collection.len(), OBJECTS);
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
    let origin = Origin::start(ID).await;
    let dir = tempfile::tempdir().unwrap();
    let version = origin.update(0..OBJECTS, "object").await;
    let start = || Running::start(config(dir.path(), vec![origin.source("a")]));
    let broker = start().await;
    broker.caught_up("a", version).await;
    broker.stop().await;
    assert_eq!(problems(dir.path(), sealed), 0);
    flip(dir.path());

    let broker = start().await;
    let found = broker.until("the damage is found", |it| it.damaged_total == 1).await;
    assert_eq!(found.objects, OBJECTS, "no object is given up");
    let pulled = |it: &broker::status::Status| it.sources.iter().all(|it| 0 < it.pulls);
    broker.until("the lost objects are fetched", pulled).await;
    broker.caught_up("a", version).await;
    assert_eq!(broker.total("object").await, OBJECTS);
    let healed = broker.until("the damage is repaired", |it| it.damaged.is_empty()).await;
    assert_eq!(healed.objects, OBJECTS);
    broker.stop().await;
    assert_eq!(problems(dir.path(), false), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_with_a_damaged_feed_is_not_ready_until_it_is_repaired() {
    let origin = Origin::start(ID).await;
    let dir = tempfile::tempdir().unwrap();
    let version = origin.update(0..OBJECTS, "object").await;
    let start = || Running::start(config(dir.path(), vec![origin.source("a")]));
    let broker = start().await;
    broker.caught_up("a", version).await;
    broker.stop().await;
    assert_eq!(problems(dir.path(), true), 0);
    let broker = start().await;
    broker.caught_up("a", version).await;
    let get = async |address, path: &str| {
        let url = crate::common::url_of(address).join(path).unwrap();
        let response = crate::common::client().send(net::client::Request::get(url)).await.unwrap();
        let status = response.status.as_u16();
        (status, String::from_utf8_lossy(&response.bytes(1 << 20).await.unwrap()).into_owned())
    };
    assert_eq!(get(broker.address, "readyz").await.0, 200);
    flip(dir.path());
    // Damage is found by a read at the latest: the answer breaks off there.
    let feed = crate::common::url_of(broker.address).join("feed").unwrap();
    let ask = async || {
        crate::common::client().send(net::client::Request::get(feed.clone())).await.unwrap()
    };
    drop(ask().await.bytes(1 << 20).await);
    assert!(ask().await.header("harvest-missing").is_some(), "the feed has a snapshot of the rest");
    let (status, said) = get(broker.address, "readyz").await;
    let folder = dir.path().display().to_string();
    assert!(status == 503 && !said.contains(&folder), "{said}");
    assert!(said.contains(r#"{"name":"serves-whole-feed","ok":false,"message":"#), "{said}");
    let (status, said) = get(broker.admin, "readyz").await;
    assert!(status == 503 && said.contains(&folder), "{said}");
    let (_, text) = get(broker.admin, "metrics").await;
    for line in [
        "harvest_ready 0",
        "harvest_ready_check{check=\"serves-whole-feed\"} 0",
        "harvest_ready_check{check=\"answers-searches\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
    assert_eq!(get(broker.address, "healthz").await.0, 200, "it lives");
    while broker.handle.compact().await.is_err() {
        broker.caught_up("a", version).await;
    }
    assert_eq!(get(broker.address, "readyz").await.0, 200);
    broker.stop().await;
}

/// Ends the segment, then changes a byte in the header of the last member with a delete (if
/// `of_delete`) or with another change.
fn lose_header(data: &Path, of_delete: bool) {
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
    let members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let is_it = |it: &Member| {
        let changes = it.changes().unwrap();
        let is_delete = |it: &Scanned| matches!(it.change, Change::Delete(_));
        changes.iter().any(|it| is_delete(it) == of_delete)
    };
    let found: Vec<_> = members.filter(is_it).collect();
    bytes[usize::try_from(found.last().unwrap().offset).unwrap() + 20] ^= 4;
    fs::write(&segment, bytes).unwrap();
}

async fn check_header(of_delete: bool, has_keys: bool) {
    let origin = Origin::start(ID).await;
    let dir = tempfile::tempdir().unwrap();
    origin.update(0..=OBJECTS, "object").await;
    let start = || Running::start(config(dir.path(), vec![origin.source("a")]));
    let broker = start().await;
    broker.caught_up("a", origin.collection.version()).await;
    let version = origin.delete([OBJECTS]).await;
    broker.handle.pull(None).unwrap();
    broker.caught_up("a", version).await;
    broker.stop().await;
    lose_header(dir.path(), of_delete);
    if !has_keys {
        fs::remove_dir_all(dir.path().join("collection/keys")).unwrap();
    }

    let broker = start().await;
    broker.caught_up("a", version).await;
    broker.until("the damage is repaired", |it| it.damaged.is_empty()).await;
    let end = clock::monotonic() + STEP_MAX;
    while broker.total("object").await != OBJECTS {
        assert!(clock::monotonic() < end);
    }
    broker.stop().await;
    assert_eq!(problems(dir.path(), false), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_damaged_before_a_start_are_fetched_again() {
    check_header(false, true).await;
    check_header(false, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_delete_was_lost_is_deleted_again() {
    check_header(true, true).await;
    check_header(true, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_a_sealed_segment_is_fetched_again() {
    Box::pin(check(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_lost_in_the_last_segment_is_fetched_again() {
    Box::pin(check(false)).await;
}
