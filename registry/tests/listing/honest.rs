//! Daemons that say the truth.

use std::time::Duration;

use broker::answer::Answer;
use broker::source::{Kind, Source};
use daemon::announce::{Announcement, GOODBYE_PATH, Gathering, Goodbye, State};
use daemon::describe::{Description, SIGNATURE};
use http::HeaderValue;
use net::client::Request;
use registry::answer::Approved;
use registry::keeper::Keeper;

use crate::common::*;

const DAY: Duration = Duration::from_secs(86_400);

async fn approve(keeper: &Keeper, id: &str, key: Option<&str>) -> Option<Approved> {
    keeper.approve(id, key).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_is_listed_found_and_gone_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let one = broker("Geology", &dir.path().join("a"), &registry.url).await;
    let two = broker("Botany", &dir.path().join("b"), &registry.url).await;
    let list = until(&registry.url, "both", |it| it.len() == 2).await;
    let names: Vec<(&str, &str, &str)> =
        list.iter().map(|it| (&*it.name, &*it.kind, &*it.state)).collect();
    assert_eq!(names, [("Botany", "broker", "alive"), ("Geology", "broker", "alive")]);
    assert_eq!(list[1].url, one.url.as_str());
    // It is an object as any other: found by its words, and in the feed.
    let mut search = registry.url.join("api/search").unwrap();
    search.query_pairs_mut().append_pair("q", "type:Broker geology location:boulder");
    let end = net::clock::monotonic() + STEP_MAX;
    loop {
        let answer: Answer = get_json(search.clone()).await;
        if answer.total == 1 {
            assert_eq!(answer.hits[0].url, one.url.as_str());
            break;
        }
        assert!(net::clock::monotonic() < end, "{answer:?}");
    }
    // The daemon knows.
    let status = one.handle.status().await;
    assert_eq!(status.listening.registries[0].state, Some(State::Listed));
    // The page works.
    let page = client().send(Request::get(registry.url.join("servers").unwrap())).await.unwrap();
    let page = String::from_utf8(page.bytes(1 << 20).await.unwrap().to_vec()).unwrap();
    assert!(page.contains("Geology") && page.contains(two.url.as_str()), "{page}");
    // One ends, and says so; the other one is killed.
    one.stop().await;
    until(&registry.url, "the goodbye", |it| it.len() == 1).await;
    two.kill().await;
    until(&registry.url, "the death", |it| it[0].state == "dead").await;
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_are_no_changes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let fake = Fake::start(1).await;
    // Announces it as a daemon does, until the registry asks back.
    let renew = async |description: Description| {
        fake.serve(&description);
        let (asked, end) = (*fake.asked.lock().unwrap(), net::clock::monotonic() + STEP_MAX);
        while *fake.asked.lock().unwrap() == asked {
            assert!(net::clock::monotonic() < end, "it is not asked any more");
            let (status, reply) = announce(&registry.url, &fake.announcement()).await;
            assert_eq!((status, reply.state), (200, State::Listed));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let serial = async || {
        let status: serde_json::Value = get_json(registry.admin.join("status").unwrap()).await;
        status["serial"].as_u64().unwrap()
    };
    renew(fake.description(1)).await;
    let (first, seen) = (serial().await, listed(&registry.url).await[0].last_seen);
    for sequence in 2..5 {
        // Figures change from hour to hour.
        let mut description = fake.description(sequence);
        description.facts.objects = sequence;
        renew(description).await;
    }
    assert!(seen < listed(&registry.url).await[0].last_seen, "it was heard of");
    assert_eq!(serial().await, first);
    let mut news = fake.description(5);
    news.facts.location = Some("Boulder".to_owned());
    renew(news).await;
    assert!(first < serial().await);
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_is_gone_and_a_restart_forgets_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let config = settings(&dir.path().join("r"), Duration::from_secs(6));
    let first = registry(config.clone()).await;
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(5));
    let (status, reply) = announce(&first.url, &fake.announcement()).await;
    assert_eq!((status, reply.state, reply.every_secs), (200, State::Listed, 1));
    assert_eq!(listed(&first.url).await.len(), 1);
    first.stop().await;
    let second = registry(config).await;
    let list = listed(&second.url).await;
    assert_eq!((list.len(), &*list[0].state), (1, "alive"));
    // Its key and its last number are known.
    fake.serve(&fake.description(4));
    let (status, reply) = announce(&second.url, &fake.announcement()).await;
    assert_eq!((status, reply.state), (403, State::Refused));
    assert!(reply.reason.unwrap().contains("older"));
    // Of who is gone nothing is known any more, but that it was approved.
    let approved = Fake::start(2).await;
    approved.serve(&approved.description(1));
    announce(&second.url, &approved.announcement()).await;
    approve(&second.handle, &approved.identity.id(), None).await.unwrap();
    until(&second.url, "their end", <[_]>::is_empty).await;
    let mut known = second.handle.overview().servers;
    // The list is written before what is known.
    while known.len() == 2 {
        tokio::task::yield_now().await;
        known = second.handle.overview().servers;
    }
    assert_eq!((known.len(), &known[0].id), (1, &approved.identity.id()));
    // Back again, it is as new.
    fake.serve(&fake.description(6));
    for it in [&fake, &approved] {
        assert_eq!(announce(&second.url, &it.announcement()).await.1.state, State::Listed);
    }
    assert_eq!(listed(&second.url).await.len(), 2);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_approves_and_revokes() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = settings(&dir.path().join("r"), DAY);
    config.announcements.approval = true;
    let registry = registry(config).await;
    let fake = Fake::start(2).await;
    fake.serve(&fake.description(1));
    let id = fake.identity.id();
    assert_eq!(announce(&registry.url, &fake.announcement()).await.1.state, State::Waiting);
    assert!(listed(&registry.url).await.is_empty());
    assert_eq!(registry.handle.overview().servers[0].state, "waiting");
    let own = approve(&registry.handle, &id, None).await.unwrap();
    assert_eq!((&*own.key, &*own.url), (fake.identity.key(), fake.url.as_str()));
    assert_eq!(listed(&registry.url).await.len(), 1);
    assert!(registry.handle.revoke(&id).await.unwrap());
    assert!(listed(&registry.url).await.is_empty());
    let asked = *fake.asked.lock().unwrap();
    let (status, reply) = announce(&registry.url, &fake.announcement()).await;
    assert!(status == 403 && reply.reason.unwrap().contains("revoked"));
    assert_eq!(*fake.asked.lock().unwrap(), asked, "a revoked server is asked nothing");
    assert_eq!(approve(&registry.handle, "0000000000000000", None).await, None);
    // With another key it has to be approved again, and that key has to be named: it may be anybody's.
    let other = Fake::start(3).await;
    let mut description = other.description(1);
    description.id.clone_from(&id);
    other.serve(&description);
    assert_eq!(approve(&registry.handle, &id, None).await.as_ref(), Some(&own));
    let announcement = Announcement { id: id.clone(), base_url: other.url.clone() };
    let (_, reply) = announce(&registry.url, &announcement).await;
    assert!(reply.reason.unwrap().contains("another key"));
    assert_eq!(approve(&registry.handle, &id, None).await, Some(own));
    let list = listed(&registry.url).await;
    assert_eq!((list.len(), &*list[0].url), (1, fake.url.as_str()));
    let refused = registry.handle.overview();
    assert_eq!((refused.refused["key"], refused.refused.get("proof")), (1, None));
    let new = refused.refusals.into_iter().find_map(|it| it.key).unwrap();
    assert_eq!(new, other.identity.key());
    assert_eq!(approve(&registry.handle, &id, Some(&new)).await.unwrap().key, new);
    // The old address is released.
    let list = listed(&registry.url).await;
    assert_eq!((list.len(), &*list[0].url), (1, other.url.as_str()));
    // Of an id of which nothing else is known, the key that was refused is the one.
    let (third, unknown) = (Fake::start(4).await, "00000000000000aa");
    third.serve(&Description { id: unknown.to_owned(), ..third.description(1) });
    let announcement = Announcement { id: unknown.to_owned(), base_url: third.url.clone() };
    assert_eq!(announce(&registry.url, &announcement).await.0, 403);
    let approved = approve(&registry.handle, unknown, None).await.unwrap();
    assert_eq!((&*approved.key, &*approved.url), (third.identity.key(), third.url.as_str()));
    assert_eq!(listed(&registry.url).await.len(), 2);
    // Commands want the token.
    let url = registry.admin.join(&format!("servers/revoke?id={id}")).unwrap();
    let refused = client().send(Request::post(url, "")).await.unwrap();
    assert_eq!(refused.status, 401);
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_listed_without_approval_waits_once_it_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = settings(&dir.path().join("r"), DAY);
    let first = registry(config.clone()).await;
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(1));
    announce(&first.url, &fake.announcement()).await;
    assert_eq!(listed(&first.url).await.len(), 1);
    first.stop().await;
    config.announcements.approval = true;
    let second = registry(config).await;
    assert!(listed(&second.url).await.is_empty());
    assert_eq!(second.handle.overview().servers[0].state, "waiting");
    approve(&second.handle, &fake.identity.id(), None).await.unwrap();
    assert_eq!(listed(&second.url).await.len(), 1);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_pull_each_other_and_a_goodbye_is_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let first = registry(settings(&dir.path().join("a"), DAY)).await;
    let mut config = settings(&dir.path().join("b"), DAY);
    let source = Source::gatherer("first", first.url.clone());
    config.broker.sources = vec![Source { kind: Kind::Broker, follow: true, ..source }];
    let second = registry(config).await;
    let fake = Fake::start(4).await;
    fake.serve(&fake.description(3));
    announce(&first.url, &fake.announcement()).await;
    let list = until(&second.url, "the other registry", |it| it.len() == 1).await;
    assert_eq!(list[0].state, "relayed");
    // Who hears of it at first hand knows it as the same.
    fake.serve(&fake.description(4));
    announce(&second.url, &fake.announcement()).await;
    let list = until(&second.url, "at first hand", |it| it[0].state == "alive").await;
    assert_eq!(list.len(), 1);
    // Somebody asks who gathers a site.
    let mut asked = second.url.join("api/gathers").unwrap();
    asked.query_pairs_mut().append_pair("url", "https://orchard.example/apples/");
    let gathering: Vec<Gathering> = get_json(asked.clone()).await;
    assert_eq!(gathering[0].url, fake.url.as_str());
    // What is revoked is not listed because another registry lists it.
    assert!(second.handle.revoke(&fake.identity.id()).await.unwrap());
    assert!(listed(&second.url).await.is_empty());
    assert!(get_json::<Vec<Gathering>>(asked.clone()).await.is_empty());
    let found = async || {
        let url = second.url.join("api/search?q=*").unwrap();
        get_json::<serde_json::Value>(url).await["total"].as_u64().unwrap()
    };
    assert_eq!(found().await, 0, "what is revoked is not found, though the other has it");
    assert_eq!(listed(&first.url).await.len(), 1);
    approve(&second.handle, &fake.identity.id(), None).await.unwrap();
    assert_eq!(listed(&second.url).await[0].state, "alive");
    fake.serve(&fake.description(5));
    announce(&second.url, &fake.announcement()).await;
    until(&second.url, "it is listed anew", |it| it.len() == 1).await;
    let end = net::clock::monotonic() + Duration::from_secs(50);
    while found().await != 1 {
        assert!(net::clock::monotonic() < end, "what is approved is found again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    asked.set_query(Some("url=https://other.example/"));
    assert!(get_json::<Vec<Gathering>>(asked).await.is_empty());
    // It says goodbye to one of them.
    let goodbye = |sequence| Goodbye { goodbye: fake.identity.id(), sequence };
    let say = async |sequence, signer: &net::identity::Identity| {
        let body = serde_json::to_vec(&goodbye(sequence)).unwrap();
        let signature = HeaderValue::try_from(signer.sign(&body)).unwrap();
        let request = Request::post(first.url.join(GOODBYE_PATH).unwrap(), body);
        let answer = client().send(request.header(SIGNATURE, signature)).await;
        answer.unwrap().status.as_u16()
    };
    let stranger = net::identity::Identity::of(&[9; 32]).unwrap();
    assert_eq!(say(9, &stranger).await, 403);
    assert_eq!(say(3, &fake.identity).await, 403, "a number that was used");
    assert_eq!(say(9, &fake.identity).await, 204);
    until(&first.url, "the goodbye", <[_]>::is_empty).await;
    until(&second.url, "the goodbye elsewhere", <[_]>::is_empty).await;
    first.stop().await;
    second.stop().await;
}
