//! Decisions about servers that only another registry lists, and those that a stop came in the middle of.

use std::path::Path;
use std::time::Duration;

use broker::source::{Kind, Source};
use collection::{Batch, Collection, Note, Options, SUPPRESSED_FILE, Stamp, Suppression};
use daemon::announce::State;
use http::StatusCode;
use net::clock;
use serde_json::Value;
use url::Url;

use crate::common::*;

const DAY: Duration = Duration::from_secs(86_400);

/// Returns the number of objects that a search finds.
async fn found(registry: &Url) -> u64 {
    let answer: Value = get_json(registry.join("api/search?q=*").unwrap()).await;
    answer["total"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_another_registry_lists_is_revoked_and_approved() {
    let dir = tempfile::tempdir().unwrap();
    let first = registry(settings(&dir.path().join("a"), DAY)).await;
    let mut config = settings(&dir.path().join("b"), DAY);
    let source = Source::gatherer("first", first.url.clone());
    config.broker.sources = vec![Source { kind: Kind::Broker, follow: true, ..source }];
    let second = registry(config).await;
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(3));
    let id = fake.identity.id();
    announce(&first.url, &fake.announcement()).await;
    let list = until(&second.url, "the other registry", |it| it.len() == 1).await;
    assert_eq!(list[0].state, "relayed");
    assert!(!second.handle.revoke("0000000000000000").await.unwrap());
    assert!(second.handle.revoke(&id).await.unwrap());
    assert!(listed(&second.url).await.is_empty());
    assert_eq!(found(&second.url).await, 0);
    assert_eq!(listed(&first.url).await.len(), 1);
    let known = second.handle.overview().servers;
    assert_eq!((known.len(), &*known[0].state, &*known[0].name), (1, "revoked", "Fake"));
    // Nor is it asked when it comes by itself.
    let asked = *fake.asked.lock().unwrap();
    let (status, reply) = announce(&second.url, &fake.announcement()).await;
    assert!(status == 403 && reply.reason.unwrap().contains("revoked"));
    assert_eq!(*fake.asked.lock().unwrap(), asked);
    // Approved while it does not answer, it is what the other registry says.
    fake.served.lock().unwrap().0 = StatusCode::NOT_FOUND;
    let approved = second.handle.approve(&id, None).await.unwrap().unwrap();
    assert_eq!((&*approved.key, &*approved.url), (fake.identity.key(), fake.url.as_str()));
    let list = until(&second.url, "the other registry again", |it| it.len() == 1).await;
    assert_eq!(list[0].state, "relayed");
    fake.serve(&fake.description(5));
    let (_, reply) = announce(&second.url, &fake.announcement()).await;
    assert_eq!(reply.state, State::Listed);
    let is_alive = |it: &[registry::answer::Listed]| it.len() == 1 && it[0].state == "alive";
    until(&second.url, "at first hand", is_alive).await;
    second.stop().await;
    first.stop().await;
}

/// Leaves a registry's data as a stop does between the decision to revoke a server and its takedown.
fn revoke_in_part(data: &Path, id: &str) {
    let now = Stamp(clock::now_ms());
    let options = Options { suppressed: Some(data.join(SUPPRESSED_FILE)), ..Options::default() };
    let (collection, _) = Collection::open(&data.join("collection"), options, now).unwrap();
    let key = format!("registry/server/{id}").into_bytes();
    let (_, lease) = collection.notes(&key).next().unwrap().unwrap();
    let mut lease: Value = serde_json::from_slice(&lease).unwrap();
    lease["decision"] = "revoked".into();
    let note = Note { key, value: Some(serde_json::to_vec(&lease).unwrap()) };
    collection.commit(Batch { changes: Vec::new(), notes: vec![note] }, now).unwrap();
    collection.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_revoked_in_part_is_taken_down_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("r");
    let config = settings(&data, DAY);
    let first = registry(config.clone()).await;
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(1));
    assert_eq!(announce(&first.url, &fake.announcement()).await.1.state, State::Listed);
    let end = clock::monotonic() + STEP_MAX;
    while found(&first.url).await != 1 {
        assert!(clock::monotonic() < end, "it is never found");
    }
    first.stop().await;
    let (id, folder) = (fake.identity.id(), data.clone());
    let revoked = id.clone();
    tokio::task::spawn_blocking(move || revoke_in_part(&folder, &revoked)).await.unwrap();
    let second = registry(config).await;
    let suppressed = second.admin.join("suppressed").unwrap();
    let end = clock::monotonic() + STEP_MAX;
    let taken_down: Vec<Suppression> = loop {
        let all: Vec<Suppression> = get_json(suppressed.clone()).await;
        if !all.is_empty() && found(&second.url).await == 0 {
            break all;
        }
        assert!(clock::monotonic() < end, "it is never taken down: {all:?}");
    };
    assert_eq!(taken_down.len(), 1);
    assert!(taken_down[0].active && taken_down[0].notice.subject.gatherer == id);
    assert!(listed(&second.url).await.is_empty());
    assert_eq!(second.handle.overview().servers[0].state, "revoked");
    second.stop().await;
}
