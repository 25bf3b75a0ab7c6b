//! Tests of the subscriber: verifications, leases, failures and signatures.

use proptest::prelude::*;

use super::super::signature::{Method, sign};
use super::*;

const TOKEN: &str = "0123";
const TOPIC: &str = "http://source/feed";

fn secret() -> Secret {
    Secret::new("secret").unwrap()
}

fn wanted(source: &str, token: &str) -> Wanted {
    let callback = Url::parse("http://broker/push/").unwrap().join(token).unwrap();
    let (source, token) = (source.to_owned(), token.to_owned());
    Wanted { source, token, callback, secret: secret() }
}

fn discovery() -> Discovery {
    let url = |text: &str| Url::parse(text).ok();
    Discovery { hub: url("http://hub/"), topic: url(TOPIC) }
}

fn intent(mode: Mode, topic: &str, lease_secs: u64) -> String {
    let (topic, challenge) = (topic.to_owned(), "c".to_owned());
    let question = Question::Intent { mode, topic, challenge, lease_secs };
    question.url(&Url::parse("http://x/").unwrap()).query().unwrap().to_owned()
}

fn discover(source: &str) -> Option<String> {
    Some(source.to_owned())
}

/// Returns a subscriber that has sent its request to the hub.
fn asked(now_ms: u64) -> Subscriber {
    let mut subscriber = Subscriber::new(900);
    subscriber.handle_sources([wanted("a", TOKEN)], now_ms);
    assert_eq!(subscriber.poll(now_ms), discover("a"));
    assert_eq!((subscriber.poll(now_ms), subscriber.poll_timeout()), (None, None));
    let (hub, form) = subscriber.handle_discovered("a", Ok(discovery()), now_ms).unwrap();
    assert_eq!(hub.as_str(), "http://hub/");
    assert_eq!(
        form,
        "hub.mode=subscribe&hub.topic=http%3A%2F%2Fsource%2Ffeed\
         &hub.callback=http%3A%2F%2Fbroker%2Fpush%2F0123&hub.lease_seconds=900&hub.secret=secret"
    );
    subscriber.handle_asked("a", None, now_ms);
    subscriber
}

fn yes(is_new: bool) -> Reply {
    Reply::Yes { challenge: "c".to_owned(), source: "a".to_owned(), is_new }
}

fn state(subscriber: &Subscriber, now_ms: u64) -> SubscriptionState {
    subscriber.view("a", now_ms).unwrap().0
}

#[test]
fn only_requested_subscriptions_are_confirmed() {
    let mut subscriber = asked(0);
    for query in [
        intent(Mode::Unsubscribe, TOPIC, 900),
        intent(Mode::Subscribe, "http://source/other", 900),
        "hub.mode=subscribe".to_owned(),
        String::new(),
    ] {
        assert_eq!(subscriber.handle_question(TOKEN, &query, 1), Reply::No, "{query}");
    }
    let sound = intent(Mode::Subscribe, TOPIC, 900);
    assert_eq!(subscriber.handle_question("4567", &sound, 1), Reply::No);
    assert_eq!(state(&subscriber, 1), SubscriptionState::Asking);
    assert_eq!(subscriber.handle_question(TOKEN, &sound, 1), yes(true));
    assert_eq!(state(&subscriber, 1), SubscriptionState::Active { until_ms: 900_001 });
    assert_eq!(subscriber.handle_question(TOKEN, &sound, 2), Reply::No, "it was asked for once");
}

#[test]
fn a_lease_is_renewed_before_its_end() {
    let mut subscriber = asked(0);
    subscriber.handle_question(TOKEN, &intent(Mode::Subscribe, TOPIC, 900), 0);
    assert_eq!((subscriber.poll(599_999), subscriber.poll_timeout()), (None, Some(600_000)));
    assert_eq!(subscriber.poll(600_000), discover("a"));
    subscriber.handle_discovered("a", Ok(discovery()), 600_000);
    let sound = intent(Mode::Subscribe, TOPIC, 60);
    assert_eq!(subscriber.handle_question(TOKEN, &sound, 600_000), yes(false), "nothing is missed");
    assert_eq!(state(&subscriber, 600_000), SubscriptionState::Active { until_ms: 660_000 });
    // This time the source cannot be reached until after the end of the lease.
    assert_eq!(subscriber.poll(660_000), discover("a"));
    subscriber.handle_discovered("a", Err("unreachable".to_owned()), 660_000);
    assert_eq!(state(&subscriber, 660_000), SubscriptionState::Failed("unreachable".to_owned()));
    assert_eq!(subscriber.poll_timeout(), Some(665_000));
    assert_eq!(subscriber.poll(4_000_000), discover("a"));
    subscriber.handle_discovered("a", Ok(discovery()), 4_000_000);
    assert_eq!(
        subscriber.handle_question(TOKEN, &sound, 4_000_000),
        yes(true),
        "what came meanwhile?"
    );
}

#[test]
fn failures_are_retried_with_growing_waits() {
    let mut subscriber = Subscriber::new(900);
    subscriber.handle_sources([wanted("a", TOKEN)], 0);
    let mut waits = Vec::new();
    let mut now_ms = 0;
    for _ in 0..12 {
        assert_eq!(subscriber.poll(now_ms), discover("a"));
        subscriber.handle_discovered("a", Err("unreachable".to_owned()), now_ms);
        let due_ms = subscriber.poll_timeout().unwrap();
        waits.push((due_ms - now_ms) / 1_000);
        now_ms = due_ms;
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]);
}

#[test]
fn a_refusing_or_silent_hub_is_asked_again_later() {
    let mut subscriber = asked(0);
    subscriber.handle_asked("a", Some("it answers 503".to_owned()), 0);
    assert_eq!(state(&subscriber, 0), SubscriptionState::Failed("it answers 503".to_owned()));
    assert_eq!(subscriber.poll_timeout(), Some(5_000));
    let mut subscriber = asked(0);
    assert_eq!((subscriber.poll(119_999), subscriber.poll(120_000)), (None, None));
    assert_eq!(state(&subscriber, 120_000), SubscriptionState::Failed(NOT_ASKED.to_owned()));
    assert_eq!(subscriber.poll(125_000), discover("a"));
    let nothing = Discovery { hub: None, ..discovery() };
    assert_eq!(subscriber.handle_discovered("a", Ok(nothing), 125_000), None);
    assert_eq!(subscriber.poll_timeout(), Some(125_000 + 3_600_000));
}

#[test]
fn a_hub_can_end_a_subscription() {
    let mut subscriber = asked(0);
    subscriber.handle_question(TOKEN, &intent(Mode::Subscribe, TOPIC, 900), 0);
    let (topic, reason) = (TOPIC.to_owned(), "moved\nout".to_owned());
    let denied = Question::Denied { topic, reason }.url(&Url::parse("http://x/").unwrap());
    let query = denied.query().unwrap();
    assert_eq!(subscriber.handle_question("4567", query, 1), Reply::No);
    assert_eq!(subscriber.handle_question(TOKEN, query, 1), Reply::Noted);
    assert_eq!(
        state(&subscriber, 1),
        SubscriptionState::Failed("the hub says no: movedout".to_owned())
    );
    assert_eq!(subscriber.poll_timeout(), Some(3_600_001));
}

#[test]
fn only_signed_notifications_are_accepted() {
    let mut subscriber = asked(0);
    let sound = sign(&secret(), Method::Sha256, b"body");
    let other = sign(&Secret::new("other").unwrap(), Method::Sha256, b"body");
    let mut told =
        |token: &str, signature: Option<&str>| subscriber.handle_notice(token, signature, b"body");
    assert_eq!(told(TOKEN, Some(&sound)), Verdict::Believed { source: "a".to_owned() });
    assert_eq!(told(TOKEN, Some(&other)), Verdict::Refused(Refused::Forged));
    assert_eq!(told(TOKEN, Some("sha1=00")), Verdict::Refused(Refused::Malformed));
    assert_eq!(told(TOKEN, None), Verdict::Refused(Refused::Unsigned));
    assert_eq!(told("4567", Some(&sound)), Verdict::Unknown);
    let counters = Counters { notices: 1, unsigned: 1, forged: 2 };
    assert_eq!(subscriber.view("a", 0).unwrap().1, counters);
    assert_eq!(subscriber.counters(), counters);
}

#[test]
fn remaining_sources_keep_their_subscriptions() {
    let mut subscriber = asked(0);
    subscriber.handle_question(TOKEN, &intent(Mode::Subscribe, TOPIC, 900), 0);
    subscriber.handle_sources([wanted("a", TOKEN), wanted("b", "b1")], 1);
    assert_eq!(state(&subscriber, 1), SubscriptionState::Active { until_ms: 900_000 });
    assert_eq!((subscriber.poll(1), subscriber.poll(1)), (discover("b"), None));
    subscriber.handle_sources([wanted("b", "b2")], 2);
    assert_eq!(subscriber.view("a", 2), None);
    assert_eq!(subscriber.handle_notice(TOKEN, None, b""), Verdict::Unknown);
    assert_eq!(subscriber.handle_notice("b1", None, b""), Verdict::Unknown);
    assert_eq!(subscriber.poll(2), discover("b"), "it is another callback");
    subscriber.handle_discovered("a", Ok(discovery()), 2);
    subscriber.handle_asked("a", None, 2);
}

#[test]
fn a_hub_without_a_lease_grants_the_requested_one() {
    let mut subscriber = asked(0);
    let sound = intent(Mode::Subscribe, TOPIC, 0);
    assert_eq!(subscriber.handle_question(TOKEN, &sound, 0), yes(true));
    assert_eq!(state(&subscriber, 0), SubscriptionState::Active { until_ms: 900_000 });
}

#[test]
fn short_leases_cause_one_pull_in_an_hour() {
    let mut subscriber = asked(0);
    let sound = intent(Mode::Subscribe, TOPIC, 1);
    let (mut now_ms, mut new) = (0, Vec::new());
    while now_ms < 7_200_000 {
        if subscriber.handle_question(TOKEN, &sound, now_ms) == yes(true) {
            new.push(now_ms);
        }
        now_ms = subscriber.poll_timeout().unwrap();
        assert_eq!(subscriber.poll(now_ms), discover("a"));
        subscriber.handle_discovered("a", Ok(discovery()), now_ms);
    }
    assert_eq!(new, [0, 3_600_000]);
}

#[test]
fn setting_the_clock_back_delays_nothing() {
    let years_ms = 100_000_000_000;
    let mut subscriber = asked(years_ms);
    subscriber.handle_question(TOKEN, &intent(Mode::Subscribe, TOPIC, 900), years_ms);
    assert_eq!((subscriber.poll(years_ms), subscriber.poll(1_000)), (None, None));
    assert_eq!(state(&subscriber, 1_000), SubscriptionState::Active { until_ms: 901_000 });
    assert_eq!(subscriber.poll_timeout(), Some(601_000));
    assert_eq!(subscriber.poll(601_000), discover("a"));
}

proptest! {
    /// Checks that, whatever leases a hub grants, the subscriber makes the next request no earlier
    /// than after its shortest wait.
    #[test]
    fn no_hub_causes_endless_requests(
        leases in prop::collection::vec(any::<u64>(), 1..20), answers in any::<u32>(),
    ) {
        let mut subscriber = Subscriber::new(900);
        subscriber.handle_sources([wanted("a", TOKEN)], 0);
        let mut now_ms = 0;
        for (n, lease_secs) in leases.into_iter().enumerate() {
            prop_assert_eq!(subscriber.poll(now_ms), discover("a"));
            if answers >> n & 1 == 0 {
                subscriber.handle_discovered("a", Ok(discovery()), now_ms);
                let query = intent(Mode::Subscribe, TOPIC, lease_secs);
                let reply = subscriber.handle_question(TOKEN, &query, now_ms);
                let confirms = matches!(reply, Reply::Yes { .. });
                prop_assert!(confirms);
            } else {
                subscriber.handle_discovered("a", Err(String::new()), now_ms);
            }
            let due_ms = subscriber.poll_timeout().unwrap();
            let least_ms = if answers >> n & 1 == 0 { 60_000 } else { 5_000 };
            prop_assert!(now_ms + least_ms <= due_ms);
            now_ms = due_ms;
        }
    }
}
