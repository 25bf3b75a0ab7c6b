//! Tests of topics: lists of records, foreign topics, and their addresses.

use super::*;

#[tokio::test]
async fn a_change_of_a_list_is_announced_once_it_is_listed() {
    let source = Source::start(settings()).await;
    let (callback, mut sent) = yes_to_all();
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", callback));
    let topic = format!("{}oai?verb=ListRecords&metadataPrefix=oai_dc", source.url);
    let asked = asked(Mode::Subscribe, topic, url);
    assert_eq!(source.ask(asked.form()).await.0, StatusCode::ACCEPTED);
    until(|| source.notifier.status().subscriptions == 1).await;
    let second = clock::now_ms() / 1_000;
    let version = source.put(1, "one");
    let told = timeout(SOON, sent.recv()).await.expect("nothing is sent").unwrap();
    assert_eq!(told, format!("{version}\n"));
    assert!(second < clock::now_ms() / 1_000);
}

/// Names cost nothing: the limit counts the machine to which they resolve.
#[tokio::test]
async fn another_name_of_a_machine_counts_as_the_same_host() {
    let limits = Limits { per_host_max: 1, ..Limits::default() };
    let source = Source::start(Settings { limits, ..settings() }).await;
    let (callback, _sent) = yes_to_all();
    let (socket, url) = listen().await;
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", callback));
    let form = |callback: &str| {
        let callback = Url::parse(callback).unwrap();
        asked(Mode::Subscribe, source.topic(), callback).form()
    };
    assert_eq!(source.ask(form(url.as_str())).await.0, StatusCode::ACCEPTED);
    until(|| source.notifier.status().subscriptions == 1).await;
    let other = url.as_str().replace("127.0.0.1", "localhost");
    let (status, text) = source.ask(form(&other)).await;
    assert!(status == StatusCode::SERVICE_UNAVAILABLE && text.contains("of that host"), "{text}");
    assert_eq!(source.ask(form(url.as_str())).await.0, StatusCode::ACCEPTED, "it renews");
}

#[tokio::test]
async fn publishers_must_show_the_token_of_the_hub() {
    let (socket, url) = listen().await;
    let token = Secret::new("a-token");
    let publishers = vec![Url::parse("http://source/").unwrap()];
    let of_hub = Settings { publishers, token, hub: HubChoice::Nobody, ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let hub = Source::start_at(socket, url.clone(), dir, of_hub, Some(url));
    let form = "hub.mode=publish&hub.url=http://source/feed";
    for (shown, expected) in [
        (None, StatusCode::UNAUTHORIZED),
        (Some("Bearer a-guess"), StatusCode::UNAUTHORIZED),
        (Some("Basic a-token"), StatusCode::UNAUTHORIZED),
        (Some("bearer a-token"), StatusCode::NO_CONTENT),
    ] {
        let mut request = Request::post(hub.url.join("hub").unwrap(), form);
        if let Some(shown) = shown {
            request = request.header(header::AUTHORIZATION, HeaderValue::from_static(shown));
        }
        assert_eq!(client().send(request).await.unwrap().status, expected, "{shown:?}");
    }
    assert_eq!(hub.notifier.counters().refused, 3);
    let strangers = Request::post(hub.url.join("hub").unwrap(), form.replace("source", "stranger"));
    let response = client().send(strangers.token(Some("a-token".to_owned()))).await.unwrap();
    assert_eq!(response.status, StatusCode::FORBIDDEN);
}

/// Source, hub and subscriber are separate: the source names the hub, and announces changes to it.
#[tokio::test]
async fn a_hub_serves_foreign_topics() {
    let (hub_socket, hub_url) = listen().await;
    let (source_socket, source_url) = listen().await;
    let publishers = vec![source_url.clone()];
    let token = Secret::new("a-token");
    let of_hub = Settings { publishers, token, hub: HubChoice::Nobody, ..settings() };
    let hub_dir = tempfile::tempdir().unwrap();
    let name = Some(hub_url.clone());
    let hub = Source::start_at(hub_socket, hub_url.clone(), hub_dir, of_hub.clone(), name);
    let choice = HubChoice::Other(hub_url.join("hub").unwrap());
    let of_source = Settings { hub: choice, token: of_hub.token.clone(), ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let base_url = Some(source_url.clone());
    let source = Source::start_at(source_socket, source_url, dir, of_source, base_url);
    let mut subscriber = Subscriber::start(&[("a", source.url.clone())]).await;
    assert_eq!(subscriber.hears().await, of("a", None));
    until(|| hub.notifier.status().subscriptions == 1).await;
    assert_eq!(source.notifier.status().subscriptions, 0);
    // In a row: a publisher with the token is believed without a rate limit.
    for n in 0..4 {
        let version = source.put(n, "new");
        let heard = timeout(SOON / 5, subscriber.hears()).await;
        assert_eq!(heard.expect("it is kept waiting"), of("a", Some(version)));
    }
    assert_eq!(source.ask(String::new()).await.0, StatusCode::NOT_FOUND, "it has no hub itself");
}

/// A hub that was unreachable during a change gets it later.
#[tokio::test]
async fn a_hub_that_was_away_gets_the_newest_version() {
    let (socket, hub_url) = listen().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let mut failures = 2;
    let failing = Mutex::new(move || {
        failures -= i32::from(0 < failures);
        failures == 0
    });
    let failing = Arc::new(failing);
    let hub = move |headers: http::HeaderMap, body: String| {
        let agent = headers[header::USER_AGENT].to_str().unwrap();
        assert!(agent.contains("http://127.0.0.1"), "whom to ask about it: {agent}");
        let answer = if (failing.lock().unwrap())() { 204 } else { 503 };
        sender.send(body).unwrap();
        async move { StatusCode::from_u16(answer).unwrap() }
    };
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, socket, Router::new().route("/", post(hub)));
    let (source_socket, url) = listen().await;
    let of_source = Settings { hub: HubChoice::Other(hub_url), ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let source = Source::start_at(source_socket, url.clone(), dir, of_source, Some(url.clone()));
    let mut hears = async || timeout(SOON, told.recv()).await.expect("nothing is told").unwrap();
    let first = hears().await;
    let version = source.put(0, "new");
    let second = hears().await;
    let shown = |version: Version| format!("&harvest.version={version}");
    assert!(!first.contains(&shown(version)) && second.ends_with(&shown(version)), "{second}");
    assert!(second.contains("hub.url=http%3A%2F%2F127.0.0.1"), "{second}");
    let version = source.put(1, "newer");
    assert!(hears().await.ends_with(&shown(version)));
}
