//! Tests of pushed changes: taken if they follow the cursor, and not otherwise.

use collection::feed::FeedOptions;
use collection::pull::{Kind, Pushed, Summary};
use collection::{Change, Error, Stamp, Version};

use crate::support::{Server, Store, oid, pull, puller};

#[tokio::test]
async fn changes_at_the_cursor_are_taken_and_changes_after_a_gap_are_not() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..50, "first", 7);
    let server = Server::start(&source, FeedOptions::default()).await;
    let puller = puller(server.address, &broker);
    let mut summary = Summary::default();
    let since = |have: Version| source.collection.changes_since(have, 1 << 20).unwrap();

    let early = since(Version { serial: 0, ..source.collection.version() }).unwrap();
    assert!(!puller.take(&early, &mut summary).await.unwrap(), "nothing has been pulled yet");
    pull(server.address, &broker).await;

    let first = source.collection.version();
    source.fill(45..55, "second", 3);
    source.commit(vec![Change::Delete(oid(5))]);
    let second = source.collection.version();
    let pushed = since(first).unwrap();
    assert_eq!((pushed.from, pushed.to, pushed.objects), (first.serial, second, 54));
    source.fill(60..62, "third", 1);
    let gap = since(second).unwrap();

    assert!(!puller.take(&gap, &mut summary).await.unwrap(), "the second is missing");
    assert!(puller.take(&pushed, &mut summary).await.unwrap());
    assert_eq!((summary.kind, summary.changes, summary.version), (Kind::Delta, 11, second));
    assert_eq!((summary.objects, summary.bytes), (54, pushed.members.len() as u64));
    assert!(!puller.take(&pushed, &mut summary).await.unwrap(), "it has been taken");
    assert!(!puller.take(&since(first).unwrap(), &mut summary).await.unwrap(), "it begins before");
    assert!(puller.take(&gap, &mut summary).await.unwrap());
    assert_eq!(summary.changes, 2);
    assert_eq!(broker.titles(), source.titles());
    let pulled = pull(server.address, &broker).await;
    assert_eq!((pulled.kind, pulled.changes), (Kind::Delta, 0), "the cursor went along");

    source.collection.new_epoch(Stamp(0)).unwrap();
    source.fill(70..71, "restored", 1);
    let other = since(Version { serial: 0, ..source.collection.version() });
    assert!(!puller.take(&other.unwrap(), &mut summary).await.unwrap(), "another epoch");
}

#[tokio::test]
async fn a_pull_continues_after_the_good_part_of_damaged_changes() {
    let source = Store::new();
    source.fill(0..5, "first", 5);
    let server = Server::start(&source, FeedOptions::default()).await;
    let brokers: Vec<Store> = (0..8).map(|_| Store::new()).collect();
    for broker in &brokers {
        pull(server.address, broker).await;
    }
    let first = source.collection.version();
    source.fill(0..90, "second", 30);
    let pushed = source.collection.changes_since(first, 1 << 20).unwrap().unwrap();
    let bytes = pushed.members.len();
    for (n, broker) in brokers.iter().enumerate() {
        let at = bytes * (n / 2) / 4;
        let mut flipped = pushed.members.to_vec();
        flipped[at] ^= 0x10;
        let members = if n % 2 == 0 { flipped.into() } else { pushed.members.slice(..at) };
        let bad = Pushed { members, ..pushed.clone() };
        let taken = puller(server.address, broker).take(&bad, &mut Summary::default()).await;
        assert!(matches!(taken, Err(Error::Corrupt { .. })), "at {at} of {bytes}: {taken:?}");
        pull(server.address, broker).await;
        assert_eq!(broker.titles(), source.titles(), "at {at} of {bytes}");
    }
}

#[test]
fn a_source_pushes_no_more_than_fits_and_nothing_before_its_horizon() {
    let source = Store::new();
    source.fill(0..50, "first", 7);
    let (now, horizon) = (source.collection.version(), source.collection.horizon());
    let since = |have, bytes_max| source.collection.changes_since(have, bytes_max).unwrap();
    let all = since(Version { serial: horizon, ..now }, 1 << 20).unwrap();
    let bytes = all.members.len() as u64;
    assert!(since(Version { serial: horizon, ..now }, bytes).is_some());
    assert!(since(Version { serial: horizon, ..now }, bytes - 1).is_none());
    assert!(since(Version::default(), 1 << 20).is_none(), "another epoch");
    assert!(since(Version { serial: now.serial + 1, ..now }, 1 << 20).is_none(), "not yet");
}
