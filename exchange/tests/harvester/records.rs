//! Tests of records: arrival, expiry and deletion.

use super::*;

/// Records without a time to live stay until the repository deletes them: after a long absence the
/// repository does not send them again.
#[tokio::test]
async fn records_of_an_absent_repository_stay() {
    let peer = peer(15).await;
    peer.harvest_all().await;
    let year = 365 * 86_400_000;
    let swept = peer.collection.sweep(Stamp(clock::now_ms() + 50 * year), 1.0).unwrap();
    assert_eq!((swept, peer.titles().len()), (Swept::Done { expired: 0 }, 15));
}

#[tokio::test]
async fn a_record_that_is_too_large_is_named_and_counted() {
    let peer = peer(5).await;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { record_bytes_max: 4_096, ..Options::default() };
    let small = Collection::open(dir.path(), options, Stamp(1)).unwrap().0;
    peer.site.lock().unwrap().large.insert(3, 20_000);
    let identity = SourceIdentity::new(peer.url.as_str());
    let mut target = Target::new(small.clone(), "test".to_owned(), identity);
    let (settings, shutdown) = (peer.settings(), peer.shutdown.child());
    let (checkpoint, bounds) = (Checkpoint::default(), Bounds::default());
    let mut running = Running::new(peer.repository(), settings, checkpoint, bounds, shutdown);
    let Step::Batch(batch) = running.next().await else { panic!() };
    let stored = target.store(*batch, "oai_dc").await.unwrap();
    assert_eq!((small.len(), stored.applied.oversized, stored.problems), (4, 1, 1));
    let [(identifier, problem)] = &stored.named[..] else { panic!("{:?}", stored.named) };
    assert_eq!(identifier, "oai:test:3");
    assert!(problem.message.contains("too large"), "{problem}");
}

/// Unchanged records are not sent again: without a confirmation they would expire.
#[tokio::test]
async fn harvests_confirm_live_records() {
    let mut peer = peer(15).await;
    peer.ttl_secs = Some(30 * 86_400);
    let confirmed = || {
        let identity = SourceIdentity::new(peer.url.as_str());
        let changes = peer.collection.scan(0).unwrap().map(|it| it.unwrap().change);
        let confirms = changes.filter_map(|it| match it {
            Change::Confirm { gatherer, root, at } => Some((gatherer, root, at)),
            _ => None,
        });
        let last = confirms.last().unwrap();
        assert_eq!((last.0, last.1), (identity.gatherer_id, identity.base_url));
        last.2
    };
    peer.harvest_all().await;
    let first = confirmed();
    peer.harvest_all().await;
    // Not each harvest confirms: a confirmation is a change for all consumers.
    assert!(confirmed().0 - first.0 <= 6 * 3_600_000);
    // The records expire a month after the last confirmation.
    let day = 86_400_000;
    let after = |days: u64| Stamp(confirmed().0 + days * day);
    let swept = |at| peer.collection.sweep(at, 1.0).unwrap();
    assert_eq!(swept(after(29)), Swept::Done { expired: 0 });
    assert_eq!(swept(after(31)), Swept::Done { expired: 15 });
}

#[tokio::test]
async fn a_full_harvest_is_followed_by_incremental_ones() {
    let peer = peer(45).await;
    let end = peer.harvest_all().await;
    assert_eq!((end.outcome, end.report.records), (Ok(()), 45));
    assert_eq!(peer.titles(), peer.expected());
    assert_eq!(peer.titles().len(), 45);
    {
        let mut site = peer.site.lock().unwrap();
        site.items.insert(3, (1, false));
        site.items.insert(4, (1, true));
        site.items.insert(77, (1, false));
    }
    let version = peer.collection.version();
    let end = peer.harvest_all().await;
    assert_eq!((end.outcome, end.report.records, end.report.deleted), (Ok(()), 3, 1));
    assert_eq!(peer.titles(), peer.expected());
    let changed = peer.collection.version();
    // Three changes, and perhaps a confirmation.
    assert!((3..=4).contains(&(changed.serial - version.serial)), "{version} to {changed}");
    // The overlap brings the records again, without effect.
    let end = peer.harvest_all().await;
    assert_eq!((end.outcome, end.report.full), (Ok(()), false));
    assert!(peer.collection.version().serial - changed.serial <= 1);
}

#[tokio::test]
async fn a_full_harvest_finds_unannounced_deletions() {
    let peer = peer(25).await;
    peer.site.lock().unwrap().deleted = Deleted::No;
    assert_eq!(peer.harvest_all().await.outcome, Ok(()));
    peer.site.lock().unwrap().items.retain(|id, _| id % 5 != 0);
    assert_eq!(peer.harvest_all().await.outcome, Ok(()));
    assert_eq!(peer.titles().len(), 25);
    // Wait for the next full harvest.
    let settings = Settings { full_every_secs: 1, ..peer.settings() };
    let full = async {
        loop {
            let (end, _) = peer.harvest(settings.clone(), usize::MAX).await.unwrap();
            if end.report.full {
                return end;
            }
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(10), full).await.unwrap();
    assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()));
}

/// Makes a full harvest; returns its end, or the collection's error.
async fn full(peer: &Peer, confirmed: bool) -> Result<End, collection::Error> {
    let mut target = peer.target().confirmed(confirmed);
    let mut checkpoint = target.checkpoint().await?;
    checkpoint.forget_progress();
    let (repository, shutdown) = (peer.repository(), peer.shutdown.child());
    let bounds = Bounds::default();
    let mut running = Running::new(repository, peer.settings(), checkpoint, bounds, shutdown);
    loop {
        match running.next().await {
            Step::Batch(batch) => {
                let prefix = running.prefix().to_owned();
                target.store(*batch, &prefix).await?;
            }
            Step::End(end) => return Ok(*end),
            Step::Stopped => panic!("nobody stopped it"),
        }
    }
}

#[tokio::test]
async fn the_loss_of_most_records_waits_for_a_confirmation() {
    let peer = peer(150).await;
    assert_eq!(peer.harvest_all().await.outcome, Ok(()));
    peer.site.lock().unwrap().items.retain(|id, _| *id < 10);
    for _ in 0..2 {
        let held = full(&peer, false).await;
        assert!(
            matches!(held, Err(collection::Error::Loss { lost: 140, of: 150, .. })),
            "{held:?}"
        );
        assert_eq!(peer.titles().len(), 150);
    }
    assert_eq!(full(&peer, true).await.unwrap().outcome, Ok(()));
    assert_eq!(peer.titles(), peer.expected());
}

#[tokio::test]
async fn records_that_are_back_need_no_confirmation() {
    let peer = peer(150).await;
    assert_eq!(peer.harvest_all().await.outcome, Ok(()));
    let all = peer.site.lock().unwrap().items.clone();
    // Several pages: the last one causes the refusal.
    peer.site.lock().unwrap().items.retain(|id, _| *id < 35);
    let held = full(&peer, false).await;
    assert!(matches!(held, Err(collection::Error::Loss { lost: 115, .. })), "{held:?}");
    peer.site.lock().unwrap().items = all;
    let end = peer.harvest_all().await;
    assert_eq!((end.outcome, end.report.full), (Ok(()), true));
    assert_eq!((peer.titles().len(), peer.titles()), (150, peer.expected()));
}
