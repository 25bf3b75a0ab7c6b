//! Tests of brokers that pull what a query selects at other brokers.

use broker::config::Config;
use broker::source::{Kind, Part, Source};
use broker::views::Views;
use net::clock;

use crate::common::{Origin, Running, STEP_MAX, client, config, object_url, url_of};

/// Returns the source of what a query selects at a broker.
pub(crate) fn of(broker: &Running, name: &str, query: &str) -> Source {
    let part = (!query.is_empty()).then(|| Part::Query(query::parse(query).unwrap()));
    Source { kind: Kind::Broker, part, ..Source::gatherer(name, url_of(broker.address)) }
}

/// Waits until a broker finds so many objects.
pub(crate) async fn finds(broker: &Running, query: &str, count: u64) {
    let end = clock::monotonic() + STEP_MAX;
    while broker.total(query).await != count {
        assert!(clock::monotonic() < end, "{query}: {:#?}", broker.status().await);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_has_what_is_selected_and_costs_the_first_nothing() {
    let mut gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |name: &str, sources| config(&dir.path().join(name), sources);
    let a = Running::start(settings("a", vec![gatherer.source("gatherer")])).await;
    finds(&a, "object", 6).await;
    // The gatherer is not needed for what others pull.
    gatherer.stop().await;
    let b = Running::start(settings("b", vec![of(&a, "a", "alpha OR number4")])).await;
    finds(&b, "object", 4).await;
    let both = vec![of(&b, "b", "alpha"), of(&a, "a", "beta")];
    let c = Running::start(settings("c", both)).await;
    for (query, count) in [("alpha", 3), ("beta", 3), ("object", 6)] {
        finds(&c, query, count).await;
    }
    // By which way it came is shown, the first that pulled the gatherer before the others.
    let object = format!("object?oid=00000000000000aa:{}", object_url(1));
    let page = get(&c, &object).await;
    let [first, then] = [&a, &b].map(|it| page.find(it.handle.id()));
    assert!(page.contains("By way of") && first.is_some() && first < then, "{page}");
    let record = get(&c, &format!("{object}&format=soif")).await;
    let path = format!("{} {}", a.handle.id(), b.handle.id());
    assert!(record.contains("Origin-Path") && record.contains(&path), "{record}");

    // What is edited out goes, and what is edited in comes, all the way.
    gatherer.serve().await;
    gatherer.update([1], "gamma").await;
    gatherer.update([5], "alpha").await;
    finds(&b, "object", 4).await;
    finds(&b, "number5", 1).await;
    finds(&c, "object", 5).await;
    finds(&c, "number1", 0).await;
    // Another query of the same source.
    c.handle.reload(settings("c", vec![of(&b, "b", "number4")])).await.unwrap();
    finds(&c, "object", 1).await;
    let all = vec![of(&a, "a", "")];
    c.handle.reload(settings("c", all)).await.unwrap();
    finds(&c, "object", 6).await;
    for broker in [a, b, c] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_selections_keeps_nothing() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |name: &str, sources| config(&dir.path().join(name), sources);
    let a = Running::start(settings("a", vec![gatherer.source("gatherer")])).await;
    let b = Running::start(settings("b", vec![of(&a, "a", "alpha")])).await;
    let round = vec![gatherer.source("gatherer"), of(&b, "b", "object")];
    a.handle.reload(settings("a", round)).await.unwrap();
    finds(&b, "object", 3).await;
    gatherer.update([1], "gamma").await;
    finds(&b, "object", 2).await;
    finds(&a, "gamma", 1).await;
    gatherer.delete([2]).await;
    finds(&a, "object", 2).await;
    finds(&b, "object", 1).await;
    for broker in [a, b] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_selects_nothing_is_named() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let part = Some(Part::Query(query::parse("alpha").unwrap()));
    let source = Source { kind: Kind::Broker, part, ..gatherer.source("other") };
    let broker = Running::start(config(dir.path(), vec![source])).await;
    let status = broker.until("refused", |it| it.sources[0].errors.last.is_some()).await;
    let problem = status.sources[0].errors.last.clone().unwrap();
    assert!(problem.contains("parameter q is unknown"), "{problem}");
    assert_eq!(status.objects, 0);
    broker.stop().await;
}

/// Returns a page of a broker.
async fn get(broker: &Running, path: &str) -> String {
    let url = url_of(broker.address).join(path).unwrap();
    let response = client().send(net::client::Request::get(url)).await.unwrap();
    let page = response.require_success().await.unwrap().bytes(1 << 20).await.unwrap();
    String::from_utf8(page.to_vec()).unwrap()
}

/// Returns the views of a settings file.
pub(crate) fn views(lines: &str) -> Views {
    Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{lines}")).unwrap().views
}

/// Two views of a broker, one within the other.
const NESTED: &str = "[[view]]\nname = \"letters\"\nquery = \"alpha OR beta\"\n\
                      [[view]]\nname = \"first\"\nquery = \"alpha\"\nwithin = \"letters\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_a_scope_of_searches_and_a_source_of_others() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |lines: &str| {
        let config = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
        Config { views: views(lines), ..config }
    };
    let a = Running::start(settings(NESTED)).await;
    finds(&a, "object", 6).await;
    // What is best of the words is still of the view alone.
    for (query, count) in [
        ("view:first", 3),
        ("view:letters", 6),
        ("view:first number1 number4", 1),
        ("view:first beta", 0),
        ("view:letters -alpha", 3),
    ] {
        assert_eq!(a.total(query).await, count, "{query}");
    }
    let mut url = url_of(a.address).join("api/search").unwrap();
    url.query_pairs_mut().append_pair("q", "view:none object");
    let refused = client().send(net::client::Request::get(url)).await.unwrap();
    assert_eq!(refused.status, 400);
    let said = refused.bytes(1 << 20).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("there is no view"), "{said:?}");

    // The views can be browsed, each within the other, with their numbers.
    let began = clock::monotonic();
    let page = loop {
        let page = get(&a, "views").await;
        if page.contains("3<span") && page.contains("6<span") {
            break page;
        }
        assert!(began.elapsed() < STEP_MAX, "{page}");
    };
    let at = |name: &str| page.find(&format!("?q=view%3A{name}\"")).unwrap();
    assert!(at("letters") < at("first"), "{page}");
    assert!(get(&a, "").await.contains("href=\"/views\""));

    // Another broker pulls it, and follows it when it is defined anew.
    let part = Some(Part::View("first".to_owned()));
    let source = Source { kind: Kind::Broker, part, ..Source::gatherer("a", url_of(a.address)) };
    let b = Running::start(config(&dir.path().join("b"), vec![source])).await;
    finds(&b, "object", 3).await;
    assert_eq!(b.source("a").await.part.unwrap(), "its view first");
    let second = NESTED.replace("\"alpha\"", "\"beta AND NOT number6\"");
    a.handle.reload(settings(&second)).await.unwrap();
    finds(&b, "beta", 2).await;
    finds(&b, "object", 2).await;
    // One that is gone is a problem, and deletes nothing.
    a.handle.reload(settings("")).await.unwrap();
    b.until("refused", |it| it.sources[0].errors.in_a_row > 0).await;
    assert_eq!(b.total("object").await, 2);
    for broker in [a, b] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_count_the_views() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
    let a = Running::start(Config { views: views(NESTED), ..config }).await;
    finds(&a, "object", 6).await;
    finds(&a, "view:first", 3).await;

    let counted = async |asked: &str| {
        let answer = get(&a, &format!("api/search?{asked}")).await;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        (answer["total"].as_u64().unwrap(), answer["facets"]["view"].to_string())
    };
    for (asked, total, views) in [
        ("q=object", 6, "[[\"letters\",6]]"),
        ("q=number1+OR+number2+OR+number4&match=all", 3, "[[\"letters\",3]]"),
        ("q=object&view=letters", 6, "[[\"letters\",6],[\"first\",3]]"),
        ("q=view%3Aletters+%28number2+OR+number4%29", 2, "[[\"first\",1]]"),
        ("q=object&view=first", 3, "[[\"first\",3]]"),
        ("q=object&view=first&view=letters", 6, "[[\"letters\",6],[\"first\",3]]"),
    ] {
        assert_eq!(counted(asked).await, (total, views.to_owned()), "{asked}");
    }
    let page = get(&a, "?q=object&view=letters").await;
    assert!(page.contains("href=\"/?q=object&amp;view=first\""), "{page}");
    // An object that has changed is counted by what it is now.
    gatherer.update(1..=1, "beta").await;
    finds(&a, "view:first", 2).await;
    let began = clock::monotonic();
    while counted("q=object&view=first").await.1 != "[[\"first\",2]]" {
        assert!(began.elapsed() < STEP_MAX, "{:?}", counted("q=object&view=first").await);
    }
    gatherer.update(1..=1, "alpha").await;
    finds(&a, "view:first", 3).await;
    a.stop().await;
}
