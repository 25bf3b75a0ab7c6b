//! Tests of verifications, notifications, leases and clocks.

use super::*;

#[test]
fn a_verified_subscriber_is_notified_of_later_changes() {
    let mut hub = subscribed("http://c/", 0);
    assert_eq!((hub.len(), hub.topics()), ((1, 0), vec![TOPIC.to_owned()]));
    assert_eq!(hub.handle_change(TOPIC, Some(version(1)), 1), 0, "it was there already");
    assert_eq!(hub.handle_change("http://source/fee", Some(version(2)), 1), 0);
    assert_eq!((hub.poll(1), hub.poll_timeout()), (None, None));
    assert_eq!(hub.handle_change(TOPIC, Some(version(2)), 5), 1);
    assert_eq!(hub.poll_timeout(), Some(5));
    let delivery = deliver(&mut hub, 5);
    assert_eq!((notified(&hub), delivery.version), (Some(version(1)), Some(version(2))));
    assert_eq!(delivery.callback.as_str(), "http://c/");
    assert_eq!(delivery.secret, Secret::new("s"));
    hub.handle_delivered(delivery.ticket, taken(&delivery), 6);
    assert_eq!((hub.poll(6), hub.counters().delivered), (None, 1));
}

#[test]
fn a_verification_names_what_to_confirm() {
    let mut hub = Hub::new(Limits { lease_secs_max: 600, ..Limits::default() });
    let url = verify(&mut hub, asked(Mode::Subscribe, "http://c/?a=b"), Verdict::Yes, 0);
    assert_eq!(
        url.as_str(),
        "http://c/?a=b&hub.mode=subscribe&hub.topic=http%3A%2F%2Fsource%2Ffeed\
         &hub.challenge=challenge&hub.lease_seconds=600"
    );
    let url = verify(&mut hub, asked(Mode::Unsubscribe, "http://c/?a=b"), Verdict::Yes, 0);
    assert!(!url.as_str().contains("lease") && url.as_str().contains("hub.mode=unsubscribe"));
    assert!(is_empty(&hub));
}

#[test]
fn an_unconfirmed_change_has_no_effect() {
    let mut hub = subscribed("http://c/", 0);
    verify(&mut hub, asked(Mode::Unsubscribe, "http://c/"), Verdict::No, 1);
    let other =
        SubscriptionRequest { secret: Secret::new("other"), ..asked(Mode::Subscribe, "http://c/") };
    verify(&mut hub, other.clone(), Verdict::No, 1);
    hub.handle_change(TOPIC, Some(version(2)), 2);
    let delivery = deliver(&mut hub, 2);
    assert_eq!(delivery.secret, Secret::new("s"));
    hub.handle_delivered(delivery.ticket, Answer::Failed(None), 2);
    // A confirmed change replaces the subscription, and pending notifications stay.
    verify(&mut hub, other, Verdict::Yes, 3);
    let delivery = deliver(&mut hub, 3);
    assert_eq!((delivery.secret, delivery.version), (Secret::new("other"), Some(version(2))));
    assert_eq!(hub.counters().unverified, 2);
}

#[test]
fn a_confirmation_counts_for_its_own_request_alone() {
    let mut hub = subscribed("http://c/", 0);
    ask(&mut hub, asked(Mode::Subscribe, "http://c/"), "one", 0).unwrap();
    let Some(Action::Verify { ticket, .. }) = hub.poll(0) else { panic!() };
    ask(&mut hub, asked(Mode::Unsubscribe, "http://c/"), "other", 0).unwrap();
    let Some(Action::Verify { ticket: other, .. }) = hub.poll(0) else { panic!() };
    hub.handle_verified(ticket, Verdict::Yes, None, 0);
    assert_eq!(hub.len(), (1, 1), "not unsubscribed");
    hub.handle_verified(other, Verdict::Yes, None, 0);
    assert!(is_empty(&hub));
}

#[test]
fn a_silent_verification_is_repeated_a_few_times() {
    let mut hub = Hub::new(Limits::default());
    ask(&mut hub, asked(Mode::Subscribe, "http://c/"), "x", 0).unwrap();
    let mut times = Vec::new();
    while let Some(now_ms) = hub.poll_timeout() {
        let Some(Action::Verify { ticket, .. }) = hub.poll(now_ms) else { panic!() };
        assert_eq!(hub.poll(now_ms), None, "it is being asked");
        hub.handle_verified(ticket, Verdict::Silent, None, now_ms);
        times.push(now_ms);
    }
    assert_eq!(times, [0, 1_000, 3_000]);
    assert_eq!(times.len(), VERIFICATIONS_MAX as usize);
    assert!(is_empty(&hub));
}

#[test]
fn many_changes_become_one_pending_notification() {
    let mut hub = subscribed("http://c/", 0);
    for serial in 2..=100 {
        hub.handle_change(TOPIC, Some(version(serial)), serial);
    }
    let first = deliver(&mut hub, 100);
    assert_eq!(first.version, Some(version(100)));
    assert_eq!(hub.counters().coalesced, 98);
    for serial in 101..=200 {
        hub.handle_change(TOPIC, Some(version(serial)), serial);
    }
    assert_eq!(hub.poll(200), None, "one at a time");
    hub.handle_delivered(first.ticket, taken(&first), 200);
    let second = deliver(&mut hub, 200);
    assert_eq!((notified(&hub), second.version), (Some(version(100)), Some(version(200))));
    // The notification named a later version.
    hub.handle_change(TOPIC, Some(version(201)), 200);
    hub.handle_delivered(second.ticket, Answer::Taken(Some(version(201))), 201);
    assert_eq!(hub.poll(201), None);
}

#[test]
fn false_claims_neither_hide_true_ones_nor_exceed_the_rate() {
    let mut hub = subscribed("http://c/", 0);
    // A guess at the next version, which does not exist yet.
    hub.handle_published(TOPIC, Some(version(2)), 1_000);
    let guess = deliver(&mut hub, 1_000);
    // The true version comes during that notification; then an older one.
    hub.handle_published(TOPIC, Some(version(2)), 1_001);
    hub.handle_delivered(guess.ticket, taken(&guess), 1_002);
    hub.handle_published(TOPIC, Some(version(1)), 1_003);
    assert_eq!((hub.poll(1_003), hub.poll_timeout()), (None, Some(11_000)));
    let truth = deliver(&mut hub, 11_000);
    assert_eq!(truth.version, Some(version(2)));
    hub.handle_published(TOPIC, Some(version(3)), 11_001);
    let elsewhere = Version { epoch: Epoch(8), serial: 1 };
    hub.handle_published(TOPIC, Some(elsewhere), 11_002);
    hub.handle_published(TOPIC, Some(elsewhere), 11_003);
    hub.handle_delivered(truth.ticket, Answer::Failed(None), 11_004);
    let failed = deliver(&mut hub, 21_000);
    assert_eq!(failed.version, None, "which of them is newer nobody knows");
    hub.handle_delivered(failed.ticket, taken(&failed), 21_001);
    for now_ms in 21_001..21_100 {
        hub.handle_published(TOPIC, None, now_ms);
    }
    assert_eq!((hub.poll(30_999), hub.poll_timeout()), (None, Some(31_000)));
    assert_eq!(
        hub.saved().subscriptions[0].notified,
        Some(version(1).to_string()),
        "not on a word"
    );
}

#[test]
fn versions_that_a_notification_went_beyond_are_not_sent_again() {
    let mut hub = subscribed("http://c/", 0);
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let first = deliver(&mut hub, 0);
    hub.handle_change(TOPIC, Some(version(3)), 0);
    hub.handle_delivered(first.ticket, Answer::Taken(Some(version(4))), 0);
    assert_eq!(hub.poll(0), None, "it named a later one");
    assert_eq!(hub.handle_change(TOPIC, Some(version(4)), 0), 0);
    assert_eq!(hub.handle_change(TOPIC, Some(version(5)), 0), 1);
}

#[test]
fn failures_are_retried_with_growing_waits_and_then_once_for_each_change() {
    let mut hub = subscribed("http://c/", 0);
    hub.handle_change(TOPIC, Some(version(2)), 0);
    let mut times = Vec::new();
    while let Some(now_ms) = hub.poll_timeout() {
        let delivery = deliver(&mut hub, now_ms);
        assert_eq!(delivery.version, Some(version(2)));
        hub.handle_delivered(delivery.ticket, Answer::Failed(None), now_ms);
        times.push(now_ms / 1_000);
    }
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]);
    assert_eq!((times.len(), hub.counters().given_up), (ATTEMPTS_MAX as usize, 1));
    hub.handle_change(TOPIC, Some(version(3)), 600_000);
    let delivery = deliver(&mut hub, 600_000);
    hub.handle_delivered(delivery.ticket, Answer::Failed(None), 600_000);
    assert_eq!((hub.poll_timeout(), hub.counters().given_up), (None, 2));
    hub.handle_change(TOPIC, Some(version(4)), 700_000);
    let delivery = deliver(&mut hub, 700_000);
    assert_eq!((notified(&hub), delivery.version), (Some(version(1)), Some(version(4))));
    hub.handle_delivered(delivery.ticket, taken(&delivery), 700_000);
    hub.handle_change(TOPIC, Some(version(5)), 700_000);
    let delivery = deliver(&mut hub, 700_000);
    hub.handle_delivered(delivery.ticket, Answer::Failed(None), 700_000);
    assert_eq!(hub.poll_timeout(), Some(701_000), "it was there: all attempts again");
}

#[test]
fn a_subscriber_can_ask_for_a_pause_or_end_with_410() {
    let mut hub = subscribed("http://c/", 0);
    hub.handle_change(TOPIC, None, 0);
    let delivery = deliver(&mut hub, 0);
    let wait = Answer::Failed(Some(Duration::from_secs(60)));
    hub.handle_delivered(delivery.ticket, wait, 0);
    assert_eq!(hub.poll_timeout(), Some(60_000));
    let delivery = deliver(&mut hub, 60_000);
    hub.handle_delivered(delivery.ticket, Answer::Failed(Some(Duration::MAX)), 60_000);
    assert_eq!(hub.poll_timeout(), Some(3_660_000), "an hour at most");
    let mut hub = subscribed("http://c/", 0);
    hub.handle_change(TOPIC, None, 0);
    let delivery = deliver(&mut hub, 0);
    assert!(hub.take_changed());
    hub.handle_delivered(delivery.ticket, Answer::Gone, 0);
    assert!(is_empty(&hub) && hub.take_changed() && !hub.take_changed());
}

#[test]
fn leases_end_within_their_bounds() {
    for (asked_secs, expected_secs) in
        [(None, 86_400), (Some(1), 60), (Some(600), 600), (Some(u64::MAX), 10 * 86_400)]
    {
        let mut hub = Hub::new(Limits::default());
        let asked =
            SubscriptionRequest { lease_secs: asked_secs, ..asked(Mode::Subscribe, "http://c/") };
        verify(&mut hub, asked, Verdict::Yes, 5);
        let end_ms = 5 + expected_secs * 1_000;
        idle(&mut hub, end_ms - 1);
        assert_eq!(hub.handle_change(TOPIC, None, end_ms - 1), 1, "{asked_secs:?}");
        assert_eq!(hub.handle_change(TOPIC, None, end_ms), 0, "{asked_secs:?}");
        assert_eq!((hub.counters().expired, is_empty(&hub)), (1, true));
    }
}

#[test]
fn a_day_of_silence_ends_the_subscription() {
    const HOUR_MS: u64 = 3_600_000;
    let mut hub = Hub::new(Limits::default());
    let week =
        SubscriptionRequest { lease_secs: Some(7 * 86_400), ..asked(Mode::Subscribe, "http://c/") };
    verify(&mut hub, week, Verdict::Yes, 0);
    let mut attempts = 0;
    for hour in 0..=30 {
        idle(&mut hub, hour * HOUR_MS);
        hub.handle_change(TOPIC, Some(version(2 + hour)), hour * HOUR_MS);
        while let Some(now_ms) = hub.poll_timeout() {
            attempts += 1;
            let delivery = deliver(&mut hub, now_ms);
            // It answers once in between.
            let answer = if hour == 3 { taken(&delivery) } else { Answer::Failed(None) };
            hub.handle_delivered(delivery.ticket, answer, now_ms);
        }
        let ends = hour == 27;
        assert_eq!((is_empty(&hub), hub.take_changed()), (27 <= hour, ends || hour == 0), "{hour}");
    }
    // Ten, one each hour, the successful one, ten again, and one each hour.
    assert_eq!(attempts, 10 + 2 + 1 + 10 + 23);
}

#[test]
fn setting_the_clock_back_makes_nothing_wait_for_years() {
    const YEAR_MS: u64 = 365 * 86_400_000;
    let mut hub = subscribed("http://c/", YEAR_MS);
    hub.handle_change(TOPIC, Some(version(2)), YEAR_MS);
    let delivery = deliver(&mut hub, YEAR_MS);
    hub.handle_delivered(delivery.ticket, Answer::Failed(None), YEAR_MS);
    ask(&mut hub, asked(Mode::Subscribe, "http://d/"), "x", YEAR_MS).unwrap();
    let Some(Action::Verify { ticket, .. }) = hub.poll(YEAR_MS) else { panic!() };
    hub.handle_verified(ticket, Verdict::Silent, None, YEAR_MS);
    // The longest wait between two attempts is five minutes; the longest lease is ten days.
    assert_eq!(hub.poll(5), None);
    assert_eq!(hub.poll_timeout(), Some(5 + 300_000));
    assert!(matches!(hub.poll(5 + 300_000), Some(Action::Deliver(_))));
    assert!(matches!(hub.poll(5 + 300_000), Some(Action::Verify { .. })));
    let end_ms = 5 + 10 * 86_400_000;
    idle(&mut hub, end_ms - 1);
    assert_eq!(hub.handle_change(TOPIC, Some(version(3)), end_ms - 1), 1);
    assert_eq!(hub.handle_change(TOPIC, Some(version(3)), end_ms), 0);
}

#[test]
fn a_clock_that_leaps_ahead_ends_no_lease() {
    let year_ms = 365 * 86_400_000;
    let mut hub = subscribed("http://c/", 0);
    assert_eq!((hub.poll(600_000), hub.poll(year_ms)), (None, None));
    assert_eq!(hub.len(), (1, 0));
    // Ten minutes of its lease of an hour were over.
    let end_ms = year_ms + 3_000_000;
    idle(&mut hub, end_ms - 1);
    assert_eq!(hub.handle_change(TOPIC, Some(version(2)), end_ms - 1), 1);
    assert_eq!(hub.handle_change(TOPIC, Some(version(3)), end_ms), 0);
    // Many leaps do not extend a lease beyond the longest.
    let mut hub = subscribed("http://c/", 0);
    for leap in 1..100 {
        assert_eq!(hub.poll(leap * 86_400_000), None);
    }
    let longest_ms = 10 * 86_400_000;
    assert!(hub.saved().subscriptions[0].lease_until_ms <= 99 * 86_400_000 + longest_ms);
}

#[test]
fn many_names_of_one_machine_are_one_host() {
    let limits = Limits { per_host_max: 2, ..Limits::default() };
    let mut hub = Hub::new(limits);
    for n in 0..2 {
        let asked = asked(Mode::Subscribe, &format!("http://n{n}.example/"));
        hub.handle_request(asked, "192.0.2.1", "x".to_owned(), 0).unwrap();
        let Some(Action::Verify { ticket, .. }) = hub.poll(0) else { panic!() };
        hub.handle_verified(ticket, Verdict::Yes, None, 0);
    }
    let third = asked(Mode::Subscribe, "http://n3.example/");
    let refused = hub.handle_request(third.clone(), "192.0.2.1", "x".to_owned(), 0);
    assert_eq!(refused, Err(Refused::HostFull));
    // The host stays the same after a restart, and if its name resolves to another machine at
    // renewal.
    let mut hub = Hub::restored(limits, hub.saved(), 0);
    let renewed = asked(Mode::Subscribe, "http://n1.example/");
    assert!(hub.has(&renewed) && !hub.has(&third));
    verify(&mut hub, renewed, Verdict::Yes, 0);
    let refused = hub.handle_request(third.clone(), "192.0.2.1", "x".to_owned(), 0);
    assert_eq!(refused, Err(Refused::HostFull));
    assert_eq!(hub.handle_request(third, "192.0.2.2", "x".to_owned(), 0), Ok(()));
}

#[test]
fn saved_subscriptions_are_restored() {
    let mut hub = subscribed("http://c/", 0);
    verify(&mut hub, asked(Mode::Subscribe, "http://d/"), Verdict::Yes, 500_000);
    hub.handle_change(TOPIC, Some(version(2)), 500_000);
    let text = serde_json::to_string(&hub.saved()).unwrap();
    let saved: SavedHub = serde_json::from_str(&text).unwrap();
    assert_eq!(saved, hub.saved());
    let mut again = Hub::restored(Limits::default(), saved.clone(), 3_600_000);
    assert_eq!(again.len(), (1, 0), "the lease of the first has ended");
    assert_eq!(again.handle_change(TOPIC, Some(version(1)), 3_600_000), 0);
    assert_eq!(again.handle_change(TOPIC, Some(version(2)), 3_600_000), 1, "it was not notified");
    let limits = Limits { subscriptions_max: 1, ..Limits::default() };
    assert_eq!(Hub::restored(limits, saved, 0).len(), (1, 0));
}
