//! Tests of answers: interrupted, held, compressed, slow, or missing.

use super::*;

#[tokio::test]
async fn an_interrupted_harvest_continues_at_its_page() {
    let peer = peer(45).await;
    for batches_max in [0, 1, 2] {
        assert!(peer.harvest(peer.settings(), batches_max).await.is_none());
    }
    assert_eq!(peer.titles().len(), 30);
    let (end, stored) = peer.harvest(peer.settings(), usize::MAX).await.unwrap();
    assert_eq!((end.outcome, end.report.requests, stored.len()), (Ok(()), 2, 2));
    assert_eq!(peer.titles(), peer.expected());
    // Check the collection on the disk.
    peer.collection.close();
    let again = Collection::open(peer.dir.path(), Options::default(), Stamp(1)).unwrap().0;
    assert_eq!(again.len(), 45);
    assert!(again.harvest_checkpoint("test").unwrap().unwrap().is_intact);
}

#[tokio::test]
async fn fast_pages_are_merged_into_one_batch_on_request() {
    let peer = peer(45).await;
    let bounds = Bounds::default();
    let running = |settings| {
        let (repository, shutdown) = (peer.repository(), peer.shutdown.child());
        let running = Running::new(repository, settings, Checkpoint::default(), bounds, shutdown);
        running.holding(Duration::from_secs(3_600))
    };
    let mut all = running(peer.settings());
    let Step::Batch(batch) = all.next().await else { panic!() };
    assert_eq!((batch.records.len(), batch.last), (45, true));
    assert!(matches!(all.next().await, Step::End(_)));
    // Nothing is held during a pause.
    let mut some = running(Settings { delay_ms: 50, ..peer.settings() });
    let Step::Batch(batch) = some.next().await else { panic!() };
    assert_eq!((batch.records.len(), batch.last), (10, false));
}

#[tokio::test]
async fn nothing_is_held_during_the_wait_for_a_turn() {
    let peer = peer(45).await;
    let hosts = Hosts::default();
    let bounds = Bounds { time_max: Duration::from_secs(5), ..Bounds::default() };
    let repository = peer.repository().pacing(hosts.clone(), Duration::from_millis(1));
    let (checkpoint, shutdown) = (Checkpoint::default(), peer.shutdown.child());
    let running = Running::new(repository, peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_secs(3_600));
    let Step::Batch(batch) = running.next().await else { panic!() };
    assert_eq!(batch.records.len(), 10);
    // While somebody else has the turn no request is made, and the wait is bounded.
    let turn = hosts.turn("127.0.0.1", Duration::ZERO).await;
    let asked = peer.site.lock().unwrap().asked.len();
    let Step::End(end) = running.next().await else { panic!() };
    assert_eq!(end.outcome, Err(Failure::TimeUp { secs: 5 }));
    assert_eq!(peer.site.lock().unwrap().asked.len(), asked);
    drop(turn);
}

#[tokio::test]
async fn nothing_is_held_while_an_answer_is_missing() {
    let peer = peer(25).await;
    let (bounds, shutdown) = (Bounds::default(), peer.shutdown.child());
    let checkpoint = Checkpoint::default();
    let running = Running::new(peer.repository(), peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_millis(200));
    // Permits for Identify, the formats and one page.
    let gate = peer.gate.clone();
    gate.forget_permits(Semaphore::MAX_PERMITS);
    gate.add_permits(3);
    let Step::Batch(batch) = running.next().await else { panic!() };
    assert_eq!(batch.records.len(), 10);
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    let Step::Batch(batch) = running.next().await else { panic!() };
    assert_eq!((batch.records.len(), batch.last), (15, true));
    assert!(matches!(running.next().await, Step::End(_)));
    assert_eq!(peer.site.lock().unwrap().asked.len(), 5, "each was asked for once");
}

#[tokio::test]
async fn held_records_are_bounded_in_bytes() {
    let peer = peer(45).await;
    // Pages of 3 MiB.
    peer.site.lock().unwrap().large = (0..45).step_by(10).map(|it| (it, 3 << 20)).collect();
    let (bounds, shutdown) = (Bounds::default(), peer.shutdown.child());
    let checkpoint = Checkpoint::default();
    let running = Running::new(peer.repository(), peer.settings(), checkpoint, bounds, shutdown);
    let mut running = running.holding(Duration::from_secs(3_600));
    let Step::Batch(batch) = running.next().await else { panic!() };
    assert_eq!((batch.records.len(), batch.last), (30, false));
}

#[tokio::test]
async fn compressed_pages_are_decompressed() {
    for mode in [Mode::Gzip, Mode::Deflate] {
        let peer = peer(25).await;
        peer.set(mode);
        let end = peer.harvest_all().await;
        assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()), "{mode:?}");
    }
}

#[tokio::test]
async fn a_page_that_decompresses_to_too_much_is_reported() {
    let peer = peer(25).await;
    peer.set(Mode::Bomb);
    let Err(Failure::Transfer { problem, .. }) = peer.harvest_all().await.outcome else { panic!() };
    assert!(problem.contains("unpacks to more than 4194304 bytes"), "{problem}");
    peer.set(Mode::Brotli);
    let Err(Failure::Transfer { problem, .. }) = peer.harvest_all().await.outcome else { panic!() };
    assert!(problem.contains("\"br\""), "{problem}");
    peer.set(Mode::Sound);
    assert_eq!((peer.harvest_all().await.outcome, peer.titles()), (Ok(()), peer.expected()));
}

#[tokio::test]
async fn long_tokens_are_sent_with_post() {
    let peer = peer(25).await;
    peer.site.lock().unwrap().padding = 3_000;
    assert_eq!((peer.harvest_all().await.outcome, peer.titles()), (Ok(()), peer.expected()));
    let site = peer.site.lock().unwrap();
    assert_eq!(site.asked.iter().filter(|it| it.0 == Method::POST).count(), 2);
    assert!(site.asked.iter().all(|(_, length)| *length < 2_000), "{:?}", site.asked);
}

#[tokio::test]
async fn a_requested_pause_is_made() {
    let peer = peer(5).await;
    peer.set(Mode::Busy);
    let began = clock::monotonic();
    let end = peer.harvest_all().await;
    assert_eq!((end.outcome, peer.titles()), (Ok(()), peer.expected()));
    assert!(Duration::from_secs(1) <= clock::monotonic() - began);
    let [(Warning::Retried(why), 1)] = &end.report.warnings[..] else { panic!() };
    assert!(why.contains("503"), "{why}");
}

#[tokio::test]
async fn protocol_errors_count_under_any_status() {
    let peer = peer(0).await;
    peer.set(Mode::WrongStatus);
    assert_eq!(peer.harvest_all().await.outcome, Ok(()), "noRecordsMatch is no failure");
}

#[tokio::test]
async fn a_wrong_base_url_is_named_after_one_request() {
    let peer = peer(5).await;
    peer.set(Mode::Html);
    let end = peer.harvest_all().await;
    let Err(Failure::Unreadable(problem)) = end.outcome else { panic!("{:?}", end.outcome) };
    assert!(problem.contains("HTML") && problem.contains("base URL"), "{problem}");
    assert_eq!(end.report.requests, 1);
}

#[tokio::test]
async fn single_requests_are_answered_or_refused_with_a_reason() {
    let peer = peer(25).await;
    let repository = peer.repository();
    assert_eq!(repository.identify().await.unwrap().0.repository_name, "Test");
    assert_eq!(repository.formats(None).await.unwrap()[0].prefix, "oai_dc");
    assert_eq!(repository.sets(None).await.unwrap().items[0].spec, "a");
    let found = repository.get("oai:test:7".to_owned(), "oai_dc".to_owned()).await.unwrap();
    assert!(found.metadata.unwrap().0.contains("Item 7 v0"));
    let missing = repository.get("oai:test:99".to_owned(), "oai_dc".to_owned()).await;
    let Err(Error::Refused { faults, .. }) = missing else { panic!("{missing:?}") };
    assert_eq!(faults[0].code, Code::IdDoesNotExist);
    peer.set(Mode::Html);
    let html = repository.identify().await.unwrap_err().to_string();
    assert!(html.starts_with(peer.url.as_str()) && html.contains("HTML"), "{html}");
    assert!(html.contains("base URL"), "{html}");
    let access = Access { allow_private: false, ..Access::default() };
    let client = Client::new(net::client::Settings::default());
    let guarded = Repository::new(client, peer.url.clone(), access);
    let refused = guarded.identify().await.unwrap_err().to_string();
    assert!(refused.contains("allow_private"), "{refused}");
}

#[tokio::test]
async fn a_shutdown_stops_a_harvest() {
    let peer = peer(25).await;
    let shutdown = Shutdown::new();
    let checkpoint = peer.target().checkpoint().await.unwrap();
    let bounds = Bounds::default();
    let (repository, settings) = (peer.repository(), peer.settings());
    let mut running = Running::new(repository, settings, checkpoint, bounds, shutdown.clone());
    assert!(matches!(running.next().await, Step::Batch(_)));
    shutdown.start();
    assert_eq!(running.next().await, Step::Stopped);
}
