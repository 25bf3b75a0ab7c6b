//! Tests of a hub and its subscribers: notifications and refusals.

use super::*;

#[tokio::test]
async fn a_verified_subscriber_is_notified_of_every_version() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())]).await;
    assert_eq!(subscriber.hears().await, of("a", None), "what was before is to be pulled");
    assert!(matches!(subscriber.listener.view("a"), Some((SubscriptionState::Active { .. }, _))));
    until(|| source.notifier.status().subscriptions == 1).await;
    for n in 1..4 {
        let version = source.put(n, "after");
        assert_eq!(subscriber.hears().await, of("a", Some(version)));
    }
    until(|| source.notifier.status().delivered == 3).await;
    let (_, counters) = subscriber.listener.view("a").unwrap();
    assert_eq!((counters.notices, counters.forged, counters.unsigned), (3, 0, 0));
}

/// A subscriber of an older version asks for the changes themselves, and gets the version.
#[tokio::test]
async fn a_request_for_more_than_the_version_is_accepted() {
    let source = Source::start(settings()).await;
    let (callback, mut sent) = yes_to_all();
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", callback));
    let form = asked(Mode::Subscribe, source.topic(), url).form() + "&harvest.content=fat";
    assert_eq!(source.ask(form).await.0, StatusCode::ACCEPTED);
    until(|| source.notifier.status().subscriptions == 1).await;
    let version = source.put(0, "new");
    let told = timeout(SOON, sent.recv()).await.expect("nothing is heard").unwrap();
    assert_eq!(told, format!("{version}\n"));
}

#[tokio::test]
async fn forged_unsigned_and_unknown_notifications_are_refused_and_counted() {
    let source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())]).await;
    subscriber.hears().await;
    let (path, body) = ("token-of-a", "00000000000000ff-7\n");
    let forged = sign(&Secret::new("a guess").unwrap(), Method::Sha256, body.as_bytes());
    let of_other = sign(&secret(), Method::Sha256, b"00000000000000ff-8\n");
    for signed in [Some(forged.as_str()), Some(&of_other), Some("sha1=00"), Some("x")] {
        assert_eq!(subscriber.notify(path, signed, body).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(subscriber.notify(path, None, body).await, StatusCode::FORBIDDEN);
    let sound = sign(&secret(), Method::Sha512, body.as_bytes());
    assert_eq!(subscriber.notify("another", Some(&sound), body).await, StatusCode::GONE);
    assert_eq!(subscriber.notify(path, Some(&sound), body).await, StatusCode::ACCEPTED);
    // A hub of an older version sends the changes themselves; a foreign hub sends the topic's
    // content.
    for changes in ["harvest-changes 1 00000000000000ff 6 7 50\n\u{1f}", "<OAI-PMH/>"] {
        let sound = sign(&secret(), Method::Sha256, changes.as_bytes());
        assert_eq!(subscriber.notify(path, Some(&sound), changes).await, StatusCode::ACCEPTED);
    }
    let version = body.trim().parse().unwrap();
    assert_eq!(subscriber.hears().await, of("a", Some(version)), "and nothing before it");
    assert_eq!(subscriber.hears().await, of("a", None));
    assert_eq!(subscriber.hears().await, of("a", None));
    let counters = subscriber.listener.counters();
    assert_eq!((counters.notices, counters.forged, counters.unsigned), (3, 4, 1));
}

#[tokio::test]
async fn a_callback_confirms_only_its_own_requests() {
    let source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())]).await;
    subscriber.hears().await;
    until(|| source.notifier.status().subscriptions == 1).await;
    // An attacker who knows the callback tries to end the subscription, or to add another.
    let callback = subscriber.url.join("push/token-of-a").unwrap();
    let asked = |mode, topic| asked(mode, topic, callback.clone());
    let records = source.url.join("oai?verb=ListRecords&metadataPrefix=oai_dc").unwrap();
    for (n, asked) in (1..).zip([
        asked(Mode::Unsubscribe, source.topic()),
        asked(Mode::Subscribe, source.topic()),
        asked(Mode::Subscribe, records.to_string()),
    ]) {
        assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
        until(|| source.notifier.counters().unverified == n).await;
    }
    let version = source.put(0, "new");
    assert_eq!(subscriber.hears().await, of("a", Some(version)), "signed as before");
}

#[tokio::test]
async fn refusals_give_a_reason() {
    let limits = Limits { subscriptions_max: 0, ..Limits::default() };
    let source = Source::start(Settings { limits, ..settings() }).await;
    let callback = Url::parse("http://127.0.0.1:9/").unwrap();
    let asked = |topic| asked(Mode::Subscribe, topic, callback.clone());
    for (form, status, part) in [
        (String::new(), StatusCode::BAD_REQUEST, "hub.mode is missing"),
        (asked("http://other/feed".into()).form(), StatusCode::NOT_FOUND, "does not tell of"),
        (asked(source.topic()).form(), StatusCode::SERVICE_UNAVAILABLE, "as many subscriptions"),
        ("x=".repeat(10_000), StatusCode::PAYLOAD_TOO_LARGE, "longer than"),
        (
            format!("hub.mode=publish&hub.url={}", source.topic()),
            StatusCode::FORBIDDEN,
            "push.publishers",
        ),
    ] {
        let (found, text) = source.ask(form).await;
        assert!(found == status && text.contains(part), "{found} {text}");
    }
    assert_eq!(source.notifier.counters().refused, 5);
}

/// Strangers name callbacks. The hub asks no target of a redirect, and this machine only if it may.
#[tokio::test]
async fn a_hub_reaches_only_allowed_addresses() {
    let asked_of = Arc::new(Mutex::new(Vec::new()));
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    let seen = Arc::clone(&asked_of);
    let note = move |path: &'static str| {
        let seen = Arc::clone(&seen);
        get(move |RawQuery(query): RawQuery| async move {
            seen.lock().unwrap().push(path);
            let challenge = challenge(query);
            let location = [(header::LOCATION, format!("/inside?hub.challenge={challenge}"))];
            match path {
                "outside" => (StatusCode::FOUND, location, String::new()),
                "padded" => (StatusCode::OK, location, format!("{challenge}\n")),
                _ => (StatusCode::OK, location, challenge),
            }
        })
    };
    let router = Router::new()
        .route("/outside", note("outside"))
        .route("/inside", note("inside"))
        .route("/padded", note("padded"));
    spawn(&mut tasks, socket, router);
    let form = |source: &Source, path: &str| {
        asked(Mode::Subscribe, source.topic(), url.join(path).unwrap()).form()
    };

    let open = Source::start(settings()).await;
    for path in ["outside", "padded", "inside"] {
        assert_eq!(open.ask(form(&open, path)).await.0, StatusCode::ACCEPTED);
    }
    until(|| (open.notifier.counters().verified, open.notifier.counters().unverified) == (1, 2))
        .await;
    let mut seen = std::mem::take(&mut *asked_of.lock().unwrap());
    seen.sort_unstable();
    assert_eq!(seen, ["inside", "outside", "padded"], "each once, and nobody is sent on");

    let shut = Source::start(Settings { allow_private: false, ..settings() }).await;
    let (status, text) = shut.ask(form(&shut, "inside")).await;
    assert!(status == StatusCode::FORBIDDEN && text.contains("push.allow_private"), "{text}");
    let named = form(&shut, "inside")
        .replace("callback=http%3A%2F%2F127.0.0.1", "callback=http%3A%2F%2Flocalhost");
    assert_eq!(shut.ask(named).await.0, StatusCode::FORBIDDEN);
    assert_eq!(*asked_of.lock().unwrap(), Vec::<&str>::new());
}

#[tokio::test]
async fn subscriptions_survive_a_restart_of_the_hub() {
    let mut source = Source::start(settings()).await;
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())]).await;
    subscriber.hears().await;
    until(|| source.notifier.status().subscriptions == 1).await;
    // Stop it after it has saved the subscription.
    let saved = source.dir.path().join("subscriptions.json");
    until(|| std::fs::read_to_string(&saved).is_ok_and(|it| it.contains("/push/"))).await;
    source.shutdown.start();
    source.tasks.abort_all();
    while source.tasks.join_next().await.is_some() {}
    let version = source.put(0, "while the hub was away");
    source.collection.close();
    let Source { url, dir, .. } = source;
    let address: SocketAddr = url.authority().parse().unwrap();
    let again = Source::start_at(bind(address).await.unwrap(), url, dir, settings(), None);
    assert_eq!(again.collection.version(), version);
    assert_eq!(subscriber.hears().await, of("a", Some(version)));
    let version = again.put(1, "and now");
    assert_eq!(subscriber.hears().await, of("a", Some(version)));
}

/// The subscription begins at the version before the question.
#[tokio::test]
async fn a_commit_during_the_verification_is_announced() {
    let source = Source::start(settings()).await;
    source.put(0, "before");
    let (socket, url) = listen().await;
    let (sender, mut heard) = mpsc::unbounded_channel();
    let collection = source.collection.clone();
    let yes = move |RawQuery(query): RawQuery| async move {
        let mut record = Record::new("FILE", "http://h/while");
        record.push(GATHERER_ID, GATHERER);
        let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
        collection.commit(batch, now()).unwrap();
        challenge(query)
    };
    let mut tasks = JoinSet::new();
    let take = move |body: String| {
        sender.send(body).unwrap();
        async { StatusCode::OK }
    };
    spawn(&mut tasks, socket, Router::new().route("/", get(yes).post(take)));
    let asked = asked(Mode::Subscribe, source.topic(), url);
    assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
    let told = timeout(SOON, heard.recv()).await.expect("nothing is heard").unwrap();
    assert_eq!(told, format!("{}\n", source.collection.version()));
}
