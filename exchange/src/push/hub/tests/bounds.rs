//! Tests of bounds: many subscribers, slow hosts, strangers, and events in any order.

use super::*;

#[test]
fn strangers_can_have_a_host_asked_at_a_limited_rate() {
    let limits = Limits { intents_per_host_per_minute_max: 3, ..Limits::default() };
    let mut hub = Hub::new(limits);
    verify(&mut hub, asked(Mode::Subscribe, "http://c/known"), Verdict::Yes, 0);
    for _ in 0..2 {
        verify(&mut hub, asked(Mode::Subscribe, "http://c/x"), Verdict::No, 1_000);
    }
    let again = ask(&mut hub, asked(Mode::Subscribe, "http://c/x"), "x", 2_000);
    assert_eq!((again, hub.counters().refused), (Err(Refused::Often), 1));
    verify(&mut hub, asked(Mode::Subscribe, "http://c/known"), Verdict::Yes, 2_000);
    verify(&mut hub, asked(Mode::Subscribe, "http://d/x"), Verdict::Yes, 2_000);
    verify(&mut hub, asked(Mode::Subscribe, "http://c/x"), Verdict::Yes, 60_000);
}

/// The cost of a notification does not depend on the number of subscriptions.
#[test]
fn the_next_subscriber_is_found_as_fast_among_many_as_among_few() {
    let time_each = |count: usize| {
        let limits = Limits { subscriptions_max: count, per_host_max: count, ..Limits::default() };
        let one = |n: usize| SavedSubscription {
            topic: TOPIC.to_owned(),
            callback: Url::parse(&format!("http://h{}/{n}", n % 100)).unwrap(),
            host: None,
            secret: None,
            consumer: None,
            lease_until_ms: 1_000_000,
            notified: None,
        };
        let subscriptions = (0..count).map(one).collect();
        let mut hub = Hub::restored(limits, SavedHub { subscriptions }, 0);
        hub.handle_change(TOPIC, Some(version(2)), 0);
        let begun = net::clock::monotonic();
        for _ in 0..300 {
            let delivery = deliver(&mut hub, 0);
            hub.handle_delivered(delivery.ticket, Answer::Taken(delivery.version), 0);
            assert_eq!(hub.poll_timeout(), Some(0));
        }
        begun.elapsed()
    };
    // Take the shortest of several times: a busy machine only takes longer.
    let best = |count| (0..5).map(|_| time_each(count)).min().unwrap();
    let (few, many) = (best(500), best(5_000));
    assert!(many < few * 4, "{few:?} of 500, {many:?} of 5,000");
}

#[test]
fn neither_one_host_nor_a_crowd_fills_the_hub() {
    let limits =
        Limits { subscriptions_max: 4, per_host_max: 2, intents_max: 3, ..Limits::default() };
    let mut hub = Hub::new(limits);
    let wants = |hub: &mut Hub, callback: &str| ask(hub, asked(Mode::Subscribe, callback), "x", 0);
    assert_eq!(wants(&mut hub, "http://a/1"), Ok(()));
    assert_eq!(wants(&mut hub, "http://a/2"), Ok(()));
    assert_eq!(wants(&mut hub, "http://a:81/3"), Err(Refused::HostFull));
    assert_eq!(wants(&mut hub, "http://a/2"), Ok(()), "it is the same");
    assert_eq!(wants(&mut hub, "http://b/1"), Ok(()));
    assert_eq!(wants(&mut hub, "http://c/1"), Err(Refused::Busy));
    while let Some(Action::Verify { ticket, .. }) = hub.poll(0) {
        hub.handle_verified(ticket, Verdict::Yes, None, 0);
    }
    assert_eq!(wants(&mut hub, "http://c/1"), Ok(()));
    assert_eq!(wants(&mut hub, "http://d/1"), Err(Refused::Full));
    let end = ask(&mut hub, asked(Mode::Unsubscribe, "http://e/"), "x", 0);
    assert_eq!((end, hub.counters().refused), (Ok(()), 3));
}

#[test]
fn silent_strangers_delay_no_notification_and_no_renewal() {
    let limits = Limits {
        intents_max: 4,
        intents_per_host_max: 2,
        requests_max: 4,
        requests_per_host_max: 4,
        ..Limits::default()
    };
    let mut hub = Hub::new(limits);
    verify(&mut hub, asked(Mode::Subscribe, "http://honest/"), Verdict::Yes, 0);
    let wants = |hub: &mut Hub, mode, callback: &str| ask(hub, asked(mode, callback), "x", 0);
    // Strangers name the subscriber's own host and other hosts.
    for callback in ["http://honest/1", "http://honest/2", "http://1.evil/", "http://2.evil/"] {
        assert_eq!(wants(&mut hub, Mode::Subscribe, callback), Ok(()));
    }
    assert_eq!(wants(&mut hub, Mode::Subscribe, "http://3.evil/"), Err(Refused::Busy));
    let asked_of = [hub.poll(0), hub.poll(0), hub.poll(0)];
    assert!(matches!(asked_of, [Some(Action::Verify { .. }), Some(Action::Verify { .. }), None]));
    // Verified subscribers have reserved room, and come first.
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let delivery = deliver(&mut hub, 0);
    hub.handle_delivered(delivery.ticket, taken(&delivery), 0);
    assert_eq!(wants(&mut hub, Mode::Subscribe, "http://honest/"), Ok(()), "it renews");
    let Some(Some(Action::Verify { ticket, .. })) = asked_of.into_iter().next() else { panic!() };
    hub.handle_verified(ticket, Verdict::No, None, 0);
    let Some(Action::Verify { url, .. }) = hub.poll(0) else { panic!() };
    assert!(url.as_str().starts_with("http://honest/?"), "before the strangers: {url}");
}

#[test]
fn strangers_have_limited_verifications_at_one_host() {
    let limits = Limits { intents_per_host_max: 3, requests_per_host_max: 4, ..Limits::default() };
    let mut hub = Hub::new(limits);
    for (n, expected) in (0..).zip([Ok(()), Ok(()), Ok(()), Err(Refused::Busy)]) {
        let asked = asked(Mode::Subscribe, &format!("http://honest/{n}"));
        assert_eq!(ask(&mut hub, asked, "x", 0), expected);
    }
    let begun = std::iter::from_fn(|| hub.poll(0)).count();
    assert_eq!(begun, 2, "half of what may be under way to it");
}

#[test]
fn ending_an_unknown_subscription_asks_nobody() {
    let mut hub = Hub::new(Limits::default());
    let end = asked(Mode::Unsubscribe, "http://victim/");
    assert_eq!(ask(&mut hub, end, "x", 0), Ok(()));
    assert_eq!((hub.poll(0), is_empty(&hub)), (None, true));
}

#[test]
fn a_slow_host_delays_no_other() {
    let limits = Limits { requests_max: 3, requests_per_host_max: 2, ..Limits::default() };
    let mut hub = Hub::new(limits);
    for callback in ["http://a/1", "http://a/2", "http://a/3", "http://b/1", "http://c/1"] {
        verify(&mut hub, asked(Mode::Subscribe, callback), Verdict::Yes, 0);
    }
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let first = deliver(&mut hub, 0);
    let others = [deliver(&mut hub, 0), deliver(&mut hub, 0)];
    let hosts = others.each_ref().map(|it| it.callback.host_str().unwrap_or_default().to_owned());
    assert_eq!((first.callback.host_str(), hosts), (Some("a"), ["a".into(), "b".into()]));
    assert_eq!(hub.poll(0), None, "three at once");
    hub.handle_delivered(others[1].ticket, taken(&others[1]), 0);
    assert_eq!(deliver(&mut hub, 0).callback.host_str(), Some("c"));
    hub.handle_delivered(first.ticket, taken(&first), 0);
    assert_eq!(deliver(&mut hub, 0).callback.as_str(), "http://a/3");
}

#[test]
fn a_slow_host_does_not_hide_the_due_time_of_another() {
    let limits = Limits { requests_max: 3, requests_per_host_max: 1, ..Limits::default() };
    let mut hub = Hub::new(limits);
    for callback in ["http://a/1", "http://a/2", "http://b/1"] {
        verify(&mut hub, asked(Mode::Subscribe, callback), Verdict::Yes, 0);
    }
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let slow = deliver(&mut hub, 0);
    let other = deliver(&mut hub, 0);
    assert_eq!(hub.poll_timeout(), None, "the second of the slow host waits for the first");
    hub.handle_delivered(other.ticket, Answer::Failed(None), 0);
    assert_eq!((hub.poll(0), hub.poll_timeout()), (None, Some(1_000)));
    deliver(&mut hub, 1_000);
    hub.handle_delivered(slow.ticket, taken(&slow), 5_000);
    assert_eq!(hub.poll_timeout(), Some(0), "now it can be notified");
    // Every possible action begins, or else the shell would poll without end.
    deliver(&mut hub, 5_000);
    ask(&mut hub, asked(Mode::Subscribe, "http://c/"), "x", 5_000).unwrap();
    ask(&mut hub, asked(Mode::Subscribe, "http://d/"), "x", 5_000).unwrap();
    assert!(hub.poll(5_000).is_some());
    assert_eq!((hub.poll(5_000), hub.poll_timeout()), (None, None), "three at once");
}

#[test]
fn a_removed_topic_is_denied() {
    let mut hub = subscribed("http://c/", 0);
    hub.handle_topics(|it, _| it == TOPIC, "");
    assert_eq!(hub.poll(0), None);
    hub.handle_topics(|_, _| false, "no such feed");
    let Some(Action::Deny { ticket, url }) = hub.poll(0) else { panic!() };
    assert_eq!(
        Question::read(url.query().unwrap()),
        Some(Question::Denied { topic: TOPIC.to_owned(), reason: "no such feed".to_owned() })
    );
    hub.handle_verified(ticket, Verdict::Silent, None, 0);
    assert!(is_empty(&hub) && hub.poll_timeout().is_none());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(u8, bool),
    Change,
    Poll,
    Report(prop::sample::Index, u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8, any::<bool>()).prop_map(|(who, on)| Step::Ask(who, on)),
        Just(Step::Change),
        Just(Step::Poll),
        (any::<prop::sample::Index>(), 0..4_u8).prop_map(|(at, how)| Step::Report(at, how)),
        (0..100_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// After any events: bounds hold, no subscriber gets two notifications at once or an older
    /// version, and in the end every answering subscriber has the newest version.
    #[test]
    fn every_answering_subscriber_gets_the_newest_version(steps in prop::collection::vec(step(), 0..120)) {
        let limits = Limits {
            subscriptions_max: 4, per_host_max: 2, intents_max: 3, requests_max: 3,
            requests_per_host_max: 2, ..Limits::default()
        };
        let (mut hub, mut now_ms, mut newest) = (Hub::new(limits), 0, 1);
        let mut flights: Vec<Action> = Vec::new();
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Ask(who, on) => {
                    let mode = if on { Mode::Subscribe } else { Mode::Unsubscribe };
                    let callback = format!("http://h{}/{who}", who / 2);
                    let _ = ask(&mut hub, asked(mode, &callback), "x", now_ms);
                }
                Step::Change => {
                    newest += 1;
                    hub.handle_change(TOPIC, Some(version(newest)), now_ms);
                }
                Step::Poll => match hub.poll(now_ms) {
                    Some(action) => flights.push(action),
                    None => {
                        let due_ms = hub.poll_timeout();
                        prop_assert!(due_ms.is_none_or(|it| now_ms < it), "it would not rest");
                    }
                },
                Step::Report(at, how) if !flights.is_empty() => {
                    let action = flights.swap_remove(at.index(flights.len()));
                    report(&mut hub, action, how, newest, &mut told, now_ms)?;
                }
                Step::Report(..) => {}
                Step::Pass(ms) => now_ms += ms,
            }
            prop_assert!(flights.len() <= 3 && hub.len().0 <= 4 && hub.len().1 <= 3 + 4);
            let mut busy: Vec<&Url> = flights.iter().filter_map(|it| match it {
                Action::Deliver(delivery) => Some(&delivery.callback),
                _ => None,
            }).collect();
            busy.sort();
            prop_assert!(busy.windows(2).all(|it| it[0] != it[1]), "{:?}", busy);
        }
        for action in flights {
            report(&mut hub, action, 0, newest, &mut told, now_ms)?;
        }
        newest += 1;
        hub.handle_change(TOPIC, Some(version(newest)), now_ms);
        let mut rounds = 0;
        while let Some(due_ms) = hub.poll_timeout() {
            rounds += 1;
            prop_assert!(rounds < 100, "it does not come to rest");
            now_ms = now_ms.max(due_ms);
            while let Some(action) = hub.poll(now_ms) {
                report(&mut hub, action, 0, newest, &mut told, now_ms)?;
            }
        }
        for one in hub.saved().subscriptions {
            let found = one.notified.clone();
            let fresh = found == Some(version(newest).to_string());
            prop_assert!(fresh, "{} of {}: {:?}", one.callback, newest, found);
        }
    }
}

fn report(
    hub: &mut Hub,
    action: Action,
    how: u8,
    newest: u64,
    told: &mut BTreeMap<String, u64>,
    now_ms: u64,
) -> Result<(), TestCaseError> {
    match action {
        Action::Verify { ticket, .. } => {
            let verdict = [Verdict::Yes, Verdict::Yes, Verdict::No, Verdict::Silent][how as usize];
            hub.handle_verified(ticket, verdict, Some(version(newest)), now_ms);
        }
        Action::Deny { ticket, .. } => hub.handle_verified(ticket, Verdict::No, None, now_ms),
        Action::Deliver(delivery) => {
            let answer = match how {
                0 | 1 => {
                    let serial = delivery.version.unwrap().serial;
                    let before = told.insert(delivery.callback.to_string(), serial);
                    prop_assert!(before.unwrap_or(0) <= serial, "told of less");
                    taken(&delivery)
                }
                2 => Answer::Gone,
                _ => Answer::Failed(None),
            };
            hub.handle_delivered(delivery.ticket, answer, now_ms);
        }
    }
    Ok(())
}

#[test]
fn a_consumer_without_access_is_denied_and_gets_nothing_else() {
    let mut hub = Hub::new(Limits::default());
    for (callback, consumer) in
        [("http://a/", Some("union")), ("http://b/", Some("gone")), ("http://c/", None)]
    {
        let consumer = consumer.map(str::to_owned);
        let asked = SubscriptionRequest { consumer, ..asked(Mode::Subscribe, callback) };
        ask(&mut hub, asked, "x", 0).unwrap();
        let Some(Action::Verify { ticket, .. }) = hub.poll(0) else { panic!("it is verified") };
        hub.handle_verified(ticket, Verdict::Yes, None, 0);
    }
    // The consumer is saved.
    let mut hub = Hub::restored(Limits::default(), hub.saved(), 0);
    hub.handle_topics(|_, consumer| consumer == Some("union"), "not yours");
    assert_eq!(hub.len().0, 1);
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let (mut told, mut denied) = (Vec::new(), 0);
    while let Some(action) = hub.poll(0) {
        match action {
            Action::Deliver(delivery) => told.push(delivery.callback.to_string()),
            Action::Deny { .. } => denied += 1,
            Action::Verify { .. } => panic!("nobody is asked"),
        }
    }
    assert_eq!((told, denied), (vec!["http://a/".to_owned()], 2));
}
