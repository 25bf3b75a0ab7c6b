//! Tests of the hub against callbacks that confirm, deny or are silent.

mod bounds;
mod notifications;

use collection::Epoch;
use proptest::prelude::*;

use super::subscription::{ATTEMPTS_MAX, VERIFICATIONS_MAX};
use super::*;

const TOPIC: &str = "http://source/feed";

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(7), serial }
}

fn asked(mode: Mode, callback: &str) -> SubscriptionRequest {
    SubscriptionRequest {
        mode,
        topic: TOPIC.to_owned(),
        callback: Url::parse(callback).unwrap(),
        lease_secs: Some(3_600),
        secret: Secret::new("s"),
        consumer: None,
    }
}

/// Makes a request whose host is the host name of the callback.
fn ask(
    hub: &mut Hub,
    asked: SubscriptionRequest,
    challenge: &str,
    now_ms: u64,
) -> Result<(), Refused> {
    let host = host_of(&asked.callback);
    hub.handle_request(asked, &host, challenge.to_owned(), now_ms)
}

/// Looks at the clock each minute until `until_ms`, as an idle shell does.
fn idle(hub: &mut Hub, until_ms: u64) {
    let minute_ms = 60_000;
    while let Some(next_ms) = hub.seen_ms.map(|it| it + minute_ms).filter(|it| *it < until_ms) {
        assert_eq!(hub.poll(next_ms), None);
    }
}

/// Makes a request and answers its verification; returns the question.
fn verify(hub: &mut Hub, asked: SubscriptionRequest, verdict: Verdict, now_ms: u64) -> Url {
    ask(hub, asked, "challenge", now_ms).unwrap();
    let Some(Action::Verify { ticket, url, challenge }) = hub.poll(now_ms) else { panic!() };
    assert_eq!(challenge, "challenge");
    hub.handle_verified(ticket, verdict, Some(version(1)), now_ms);
    url
}

fn subscribed(callback: &str, now_ms: u64) -> Hub {
    let mut hub = Hub::new(Limits::default());
    verify(&mut hub, asked(Mode::Subscribe, callback), Verdict::Yes, now_ms);
    hub
}

/// Returns the version that the first subscriber acknowledged last.
fn notified(hub: &Hub) -> Option<Version> {
    hub.saved().subscriptions[0].notified.as_ref()?.parse().ok()
}

fn is_empty(hub: &Hub) -> bool {
    hub.len() == (0, 0)
}

#[track_caller]
fn deliver(hub: &mut Hub, now_ms: u64) -> Delivery {
    match hub.poll(now_ms) {
        Some(Action::Deliver(delivery)) => delivery,
        other => panic!("{other:?}"),
    }
}

fn taken(delivery: &Delivery) -> Answer {
    Answer::Taken(delivery.version)
}
