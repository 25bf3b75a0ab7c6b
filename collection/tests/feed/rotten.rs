//! Flipped bytes on the disk: found by every reader, reported, never sent, and replaced from
//! sources that still have the objects.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::member::{Decoder, MEMBER_BYTES_MAX, Member};
use collection::{Batch, Collection, Error, Healing, KeptSubset, Note, Options, Subset};
use http::StatusCode;
use net::client::Request;
use net::host;
use tokio::sync::watch;

use crate::support::{
    GATHERER, Random, Server, Store, base, client, get, now, oid, pull, puller, update,
};

fn small() -> Options {
    Options { segment_bytes_max: 8 << 10, ..Options::default() }
}

/// Returns the segments in log order, with their members.
fn segments(store: &Store) -> Vec<(PathBuf, Vec<Member>)> {
    let manifest = fs::read_to_string(store.dir.path().join("MANIFEST")).unwrap();
    let numbers = manifest.lines().filter_map(|it| it.strip_prefix("segment "));
    let names = numbers.map(|it| it.split(' ').next().unwrap());
    let read = |number: &str| {
        let path = store.dir.path().join(format!("segment-{number:0>8}.gz"));
        let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
        decoder.feed(&fs::read(&path).unwrap());
        let members = std::iter::from_fn(|| decoder.next_member().unwrap()).collect();
        (path, members)
    };
    names.map(read).collect()
}

fn flip(path: &PathBuf, at: u64, bit: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], at).unwrap();
}

/// Returns a member's parts: gzip header, our field, its checksum, compressed bytes, trailer.
fn regions(member: &Member, bytes: &[u8]) -> [(u64, u64); 5] {
    let start = usize::try_from(member.offset).unwrap();
    let extra = u64::from(u16::from_le_bytes([bytes[start + 10], bytes[start + 11]]));
    let (field, end) = (12 + extra, member.length);
    [(0, 12), (12, field - 4), (field - 4, field), (field, end - 8), (end - 8, end)]
        .map(|(from, to)| (member.offset + from, member.offset + to))
}

/// Fetches a snapshot that is cut before its end; returns the number of received bytes.
async fn fetch(server: &Server) -> u64 {
    let request = Request::get(host::join(&base(server.address), "feed"));
    // If the damage was found before the head went out, nothing was sent.
    let Ok(mut response) = client().send(request).await else { return 0 };
    let mut bytes = Vec::new();
    let cut = loop {
        match response.chunk().await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            ended => break ended.is_err(),
        }
    };
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    while let Some(member) = decoder.next_member().unwrap() {
        assert!(!member.header.end_mark);
    }
    assert!(cut);
    bytes.len() as u64
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Sealed,
    Unsealed,
    Compacted,
}

/// Checks that no answer passes the hole, and that the snapshot names its serials as missing.
async fn check_answers(server: &Server, (base, last): (u64, u64), what: &str) {
    let missing = format!("{}-{last}", base + 1);
    let snapshot = get(server.address, "feed").await;
    assert_eq!(snapshot.status, StatusCode::OK, "{what}");
    assert_eq!(snapshot.header("harvest-missing"), Some(&*missing), "{what}");
    let epoch = snapshot.header("harvest-epoch").unwrap().to_owned();
    snapshot.bytes(1 << 24).await.unwrap();
    for since in [0, base.saturating_sub(1), base, last - 1] {
        let response = get(server.address, &format!("feed?since={since}&epoch={epoch}")).await;
        assert_eq!(response.header("harvest-missing"), Some(&*missing), "{what}");
        if since < base {
            assert_eq!(response.status, StatusCode::OK, "{what}");
            assert_eq!(response.header("harvest-to"), Some(&*base.to_string()), "{what}");
            response.bytes(1 << 24).await.unwrap();
            continue;
        }
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
        assert!(response.header("retry-after").is_some(), "{what}");
        let text = response.bytes(1 << 16).await.unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains(&missing) && !text.contains("segment-"), "{what}: {text}");
    }
    let response = get(server.address, &format!("feed?since={last}&epoch={epoch}")).await;
    assert_eq!((response.status, response.header("harvest-missing")), (StatusCode::OK, None));
}

/// Flips a byte of a random member in the given region, and reads it in every way.
async fn check(kind: Kind, region: usize, random: &mut Random) {
    let store = Store::with(small());
    store.fill(0..400, "first", 30);
    if kind == Kind::Compacted {
        store.fill(100..200, "second", 30);
        store.collection.compact(now()).unwrap();
    }
    let all = segments(&store);
    // After a compaction the last segment is empty.
    let place = match kind {
        Kind::Unsealed => all.len() - 1,
        _ => usize::try_from(random.below(all.len() as u64 - 1)).unwrap(),
    };
    let (path, members) = &all[place];
    let member = &members[usize::try_from(random.below(members.len() as u64)).unwrap()];
    let (from, to) = regions(member, &fs::read(path).unwrap())[region];
    let at = from + random.below(to - from);
    flip(path, at, random.below(8));
    let before: u64 = all[..place].iter().flat_map(|it| &it.1).map(|it| it.length).sum();
    let what = format!("{kind:?}, byte {at} of {}", path.display());

    let server = Server::start(&store, FeedOptions::default()).await;
    let received = fetch(&server).await;
    assert!(received <= before + member.offset, "{what}: {received} bytes");
    let entries = &member.header.entries;
    let (serial, base, last) = (entries[0].0, member.header.base, entries[entries.len() - 1].0);
    check_answers(&server, (base, last), &what).await;
    let newer = store.collection.version();
    let path_newer = format!("feed?since={}&epoch={}", newer.serial, newer.epoch);
    assert_eq!(get(server.address, &path_newer).await.status, StatusCode::OK, "{what}");

    let is_it = |error: &Error| match error {
        Error::Damaged { path: file, offset, .. } => (file, *offset) == (path, member.offset),
        _ => false,
    };
    let read: Result<Vec<_>, _> = store.collection.scan(0).unwrap().collect();
    assert!(is_it(&read.unwrap_err()), "{what}");
    assert!(is_it(&store.collection.scan(serial - 1).unwrap().next().unwrap().unwrap_err()));
    let lost = store.collection.lost().unwrap();
    assert!(!lost.is_empty() && lost.len() <= member.header.entries.len(), "{what}");
    assert!(lost.iter().all(|it| is_it(&store.collection.get(it).unwrap_err())), "{what}");
    let report = store.collection.verify().unwrap();
    assert_eq!((&report.problems[0].file, report.problems[0].offset), (path, member.offset));
    assert_eq!(report.lost, lost);
    let health = store.collection.health();
    assert_eq!((health.damaged.len(), health.damaged_total), (1, 1), "{what}");
    assert_eq!((&health.damaged[0].file, health.damaged[0].offset), (path, member.offset));

    // No other source has the objects: an administrator drops them.
    assert_eq!(store.collection.drop_damaged(now()).unwrap(), lost.len() as u64);
    assert_eq!(store.collection.len(), 400 - lost.len() as u64);
    assert_eq!(store.collection.verify().unwrap().problems, [], "{what}");
    assert_eq!(store.collection.health().damaged, []);
    assert_eq!(get(server.address, "feed").await.status, StatusCode::OK, "{what}");
}

#[tokio::test]
async fn a_flipped_byte_is_never_sent_and_named_by_every_reader() {
    let seeds: u64 = std::env::var("HARVEST_SEEDS").map_or(4, |it| it.parse().unwrap());
    let mut random = Random(seeds);
    for _ in 0..seeds.div_ceil(4) {
        for kind in [Kind::Sealed, Kind::Unsealed, Kind::Compacted] {
            for region in 0..5 {
                check(kind, region, &mut random).await;
            }
        }
    }
}

/// Flips a byte in the first member of changes, or of notes, of the sealed segments.
fn flip_first(store: &Store, local: bool) {
    let all = segments(store);
    let sealed = all[..all.len() - 1].iter();
    let mut members = sealed.flat_map(|(path, members)| members.iter().map(move |it| (path, it)));
    let (path, member) = members.find(|(_, it)| it.header.local == local).unwrap();
    flip(path, member.offset + member.length - 20, 3);
    store.collection.scrub(u64::MAX).unwrap();
    assert_eq!(store.collection.health().damaged.len(), 1);
}

#[tokio::test]
async fn before_a_hole_it_is_not_passed_over_that_an_object_left() {
    let source = Store::with(small());
    source.commit(vec![update(1, "apple"), update(2, "apple")]);
    let before = source.collection.version();
    source.commit(vec![update(1, "pear")]);
    source.fill(10..200, "pear", 30);
    source.commit(vec![update(1, "quince")]);
    let now = source.collection.version();
    // The last change is behind the hole; that by which it left may be compacted away.
    let all = segments(&source);
    let mut members =
        all.iter().flat_map(|(path, members)| members.iter().map(move |it| (path, it)));
    let (path, member) = members.find(|it| 3 < it.1.header.base).unwrap();
    flip(path, member.offset + member.length - 20, 3);
    source.collection.scrub(u64::MAX).unwrap();
    assert_eq!(source.collection.health().damaged.len(), 1);
    let feed = FeedServer::new(source.collection.clone(), FeedOptions::default());
    let (_reached, receiver) = watch::channel(now);
    for by in [3, now.serial] {
        let mut subset = Subset { members: Arc::new([2].into()), ..Subset::default() };
        subset.add_left(now.serial, by);
        let among = Some(KeptSubset::new(receiver.clone(), move || Some(subset.clone())));
        let selection = Selection { name: "apple".to_owned(), takes: Arc::new(|_| true), among };
        let target = format!("/feed?since={}&epoch={}", before.serial, before.epoch);
        let request = http::Request::get(target).header("harvest-view", "apple").body(()).unwrap();
        let status = feed.respond_selected(request, &selection).await.status();
        // Who needs it gets all anew, and the others what comes before the hole.
        let expected = if by == 3 { StatusCode::SEE_OTHER } else { StatusCode::OK };
        assert_eq!(status, expected);
    }
}

#[tokio::test]
async fn a_broker_takes_damaged_objects_from_its_sources_again() {
    let (source, broker, reader) = (Store::new(), Store::with(small()), Store::new());
    let server = Server::start(&source, FeedOptions::default()).await;
    let above = Server::start(&broker, FeedOptions::default()).await;
    for numbers in [0..200, 150..300] {
        source.fill(numbers, "some", 30);
        pull(server.address, &broker).await;
    }
    flip_first(&broker, false);
    // A newcomer takes the rest, and stays due.
    let error = puller(above.address, &reader).pull(None).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert!(!reader.titles().is_empty() && reader.titles().len() < source.titles().len());

    let Some(Healing::Waiting { lost, sources }) = broker.collection.heal(now()).unwrap() else {
        panic!("nothing is lost");
    };
    assert_eq!(sources, ["source"]);
    assert!(lost.iter().all(|it| broker.collection.get(it).is_err()));
    // The sources are named only once.
    let again = broker.collection.heal(now()).unwrap().unwrap();
    assert_eq!(again, Healing::Waiting { lost: lost.clone(), sources: Vec::new() });
    let summary = pull(server.address, &broker).await;
    assert_eq!(summary.applied.updated, lost.len() as u64, "no more than was lost");
    assert_eq!(broker.collection.heal(now()).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(broker.collection.heal(now()).unwrap(), None);
    assert_eq!(broker.collection.verify().unwrap().problems, []);
    assert_eq!(broker.titles(), source.titles());
    let summary = pull(above.address, &reader).await;
    assert_eq!((summary.kind, summary.applied.deleted), (collection::pull::Kind::Snapshot, 0));
    assert_eq!(reader.titles(), source.titles());
}

#[tokio::test]
async fn damaged_notes_are_rewritten_from_the_keys() {
    let (source, broker) = (Store::new(), Store::with(small()));
    source.fill(0..300, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    let note = Note { key: b"n".to_vec(), value: Some(b"value".to_vec()) };
    broker.collection.commit(Batch { changes: Vec::new(), notes: vec![note] }, now()).unwrap();
    flip_first(&broker, true);
    // Notes are never sent, so no request is refused.
    let above = Server::start(&broker, FeedOptions::default()).await;
    assert_eq!(get(above.address, "feed").await.status, StatusCode::OK);
    assert_eq!(broker.collection.heal(now()).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(broker.collection.verify().unwrap().problems, []);
    let cursor = broker.collection.cursor("source").unwrap();
    broker.collection.close();
    fs::remove_dir_all(broker.dir.path().join("keys")).unwrap();
    let (opened, _) = Collection::open(broker.dir.path(), small(), now()).unwrap();
    assert_eq!(opened.cursor("source").unwrap(), cursor);
    assert_eq!(opened.note(b"n").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(opened.sources().unwrap()[0].objects, 300);
}

#[tokio::test]
async fn a_gatherer_gets_the_names_of_lost_objects() {
    let store = Store::with(small());
    store.fill(0..300, "first", 30);
    flip_first(&store, false);
    let Some(Healing::Waiting { lost, sources }) = store.collection.heal(now()).unwrap() else {
        panic!("nothing is lost");
    };
    assert!(sources.is_empty() && lost.iter().all(|it| it.gatherer == GATHERER));
    let numbers = (0..300).filter(|n| lost.contains(&oid(*n)));
    store.commit(numbers.map(|n| update(n, "again")).collect());
    assert_eq!(store.collection.heal(now()).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(store.collection.verify().unwrap().problems, []);
    assert_eq!(store.collection.len(), 300);
}

#[tokio::test]
async fn a_pull_in_progress_does_not_undo_a_cursor_that_was_set_back() {
    let (source, broker) = (Store::new(), Store::with(small()));
    let server = Server::start(&source, FeedOptions::default()).await;
    for numbers in [0..200, 150..300] {
        source.fill(numbers, "some", 30);
        pull(server.address, &broker).await;
    }
    flip_first(&broker, false);
    let waiting = puller(server.address, &broker);
    let wait = Some(std::time::Duration::from_secs(60));
    let waiting = tokio::spawn(async move { waiting.pull(wait).await });
    while server.feed().counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(broker.collection.heal(now()).unwrap(), Some(Healing::Waiting { .. })));
    source.fill(300..310, "new", 10);
    waiting.await.unwrap().unwrap();
    assert_eq!(broker.collection.heal(now()).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(broker.titles(), source.titles());
}
