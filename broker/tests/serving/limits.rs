//! Tests of consumers that are limited to a view: they get nothing else, whatever they ask for.

use std::io::Read as _;

use broker::config::Config;
use broker::source::{Kind, Source};
use daemon::Token;
use flate2::read::MultiGzDecoder;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use net::client::Request;
use net::clock;

use crate::common::{Origin, Running, STEP_MAX, client, config, object_url, url_of};

const ID: &str = "00000000000000aa";
const TOKEN: &str = "a-token-of-the-press";
const VIEWS: &str = "[[view]]\nname = \"letters\"\nquery = \"alpha OR beta\"\n\
    [[view]]\nname = \"first\"\nquery = \"alpha\"\nwithin = \"letters\"\n\
    [[view]]\nname = \"other\"\nquery = \"beta\"\n";
const PRESS: &str = "[[consumer]]\nname = \"press\"\ntoken = \"a-token-of-the-press\"\n\
    may = [\"feed\", \"search\", \"objects\", \"oai\"]\nview = \"first\"\n";
/// Whose name has what others must not see.
const OUTSIDE: [u64; 3] = [4, 5, 6];

/// An answer: its status, headers that continue a feed, and its text, unpacked.
struct Seen {
    status: u16,
    view: Option<String>,
    text: String,
}

/// Asks for a page with the token of the press, and follows the feed's redirects.
async fn ask(broker: &Running, path: &str, token: Option<&str>, view: Option<&str>) -> Seen {
    let url = url_of(broker.address).join(path).unwrap();
    let mut request = Request::get(url);
    if let Some(token) = token {
        let shown = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
        request = request.header(AUTHORIZATION, shown);
    }
    if let Some(view) = view {
        let name = HeaderName::from_static("harvest-view");
        request = request.header(name, HeaderValue::try_from(view).unwrap());
    }
    let response = client().send(request).await.unwrap();
    let (status, view) = (response.status.as_u16(), response.header("harvest-view"));
    let view = view.map(str::to_owned);
    let bytes = response.bytes(1 << 20).await.unwrap();
    let mut unpacked = String::new();
    let text = match MultiGzDecoder::new(&bytes[..]).read_to_string(&mut unpacked) {
        Ok(_) => unpacked,
        Err(_) => String::from_utf8(bytes.to_vec()).unwrap(),
    };
    Seen { status, view, text }
}

/// Asks until the answer is not "later".
async fn press(broker: &Running, path: &str) -> Seen {
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let seen = ask(broker, path, Some(TOKEN), None).await;
        if seen.status != 503 {
            return seen;
        }
        assert!(clock::monotonic() < end, "{path}: {}", seen.text);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn is_hidden(seen: &Seen) -> bool {
    let names = OUTSIDE.map(|n| [object_url(n), format!("Object {n}"), format!("number{n}")]);
    names.iter().flatten().all(|it| !seen.text.contains(it.as_str()))
}

/// Returns the URLs of the objects that a delta updates, and of those that it deletes, each in order.
fn named(delta: &str) -> (Vec<String>, Vec<String>) {
    let (mut updated, mut deleted, mut deletes) = (Vec::new(), Vec::new(), false);
    for line in delta.lines() {
        match line.strip_prefix("@FILE { ") {
            Some(url) if deletes => deleted.push(url.to_owned()),
            Some(url) => updated.push(url.to_owned()),
            None if line.starts_with('@') => deletes = line.starts_with("@DELETE"),
            None => {}
        }
    }
    updated.sort();
    deleted.sort();
    deleted.dedup();
    (updated, deleted)
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = clock::monotonic() + STEP_MAX;
    while !is_so().await {
        assert!(clock::monotonic() < end, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_view_sees_nothing_else() {
    let gatherer = Origin::start(ID).await;
    gatherer.update(1..=3, "alpha").await;
    let version = gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |more: &str| {
        let text = format!("name = \"n\"\ndata = \"d\"\n{VIEWS}{more}");
        let read = Config::parse(&text).unwrap();
        let mut config = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
        (config.views, config.daemon.access) = (read.views, read.daemon.access);
        config
    };
    let a = Running::start(settings(PRESS)).await;
    a.caught_up("gatherer", version).await;

    // Every way to an object, by which those of the view are found and no others.
    let oid = |n: u64| format!("{ID}:{}", object_url(n));
    let (inside, outside) = (oid(1), oid(4));
    let record = |n: u64| format!("oai?verb=GetRecord&metadataPrefix=oai_dc&identifier={n}");
    for (path, status, part) in [
        ("", 200, "3 objects"),
        ("views", 200, "view%3Afirst"),
        ("?q=object", 200, "number1"),
        ("?q=view%3Aother", 400, "no view"),
        ("?q=object&view=other", 400, "no view"),
        ("api/search?q=*&limit=50", 200, "\"total\":3"),
        ("api/search?q=beta", 200, "\"total\":0"),
        ("api/search?q=-alpha", 200, "\"total\":0"),
        ("api/search?q=view%3Aother", 400, "no view"),
        ("api/search?q=*&view=other", 400, "no view"),
        ("api/search?q=*&view=first", 200, "\"view\":[[\"first\",3]]"),
        ("api/search?q=*", 200, "\"view\":[]"),
        ("api/search?q=beat", 200, "\"total\":0"),
        ("api/statistics?q=object", 400, "statistics are of all"),
        (&format!("api/search?like={inside}"), 200, "\"total\":"),
        (&format!("api/search?like={outside}"), 200, "no object here"),
        ("atom?q=*", 200, "number1"),
        (&format!("object?oid={inside}"), 200, "number1"),
        (&format!("object?oid={outside}"), 404, "No summary"),
        (&format!("object?oid={outside}&format=soif"), 404, "No summary"),
        ("feed", 200, &object_url(1)),
        ("feed?q=beta", 200, ""),
        ("feed?view=other", 400, "no view"),
        ("feed?q=object+OR+beta", 200, &object_url(1)),
        ("oai?verb=Identify", 200, "<Identify>"),
        ("oai?verb=ListSets", 200, "type:Text"),
        ("oai?verb=ListRecords&metadataPrefix=oai_dc", 200, &object_url(1)),
        ("oai?verb=ListIdentifiers&metadataPrefix=soif&set=view:other", 200, "noRecordsMatch"),
        (".well-known/resourcesync", 404, ""),
        ("resourcesync/resourcelist.xml", 404, ""),
        ("resourcesync/changelist.xml", 404, ""),
    ] {
        let seen = press(&a, path).await;
        assert_eq!(seen.status, status, "{path}: {}", seen.text);
        assert!(seen.text.contains(part), "{path} lacks {part}: {}", seen.text);
        assert!(is_hidden(&seen) || path.contains(&outside), "{path}: {}", seen.text);
        assert!(!path.starts_with("views") || !seen.text.contains("other"), "{}", seen.text);
    }
    let listed = press(&a, "oai?verb=ListIdentifiers&metadataPrefix=soif").await.text;
    let names: Vec<&str> = listed.split("<identifier>").skip(1).collect();
    assert_eq!((names.len(), listed.contains("completeListSize=\"4\"")), (3, false), "{listed}");
    let name = names[0].split('<').next().unwrap();
    let there = press(&a, &record(0).replace("=0", &format!("={name}"))).await;
    assert!(there.text.contains("<metadata>"), "{}", there.text);
    let hidden = name.replace("object/1", "object/4").replace("object~2F1", "object~2F4");
    assert_ne!(name, hidden);
    let absent = press(&a, &record(0).replace("=0", &format!("={hidden}"))).await;
    assert!(absent.text.contains("idDoesNotExist"), "{}", absent.text);
    // Nobody else gets anything.
    for path in ["feed", "api/search?q=*", "oai?verb=Identify", &format!("object?oid={inside}")] {
        assert_eq!(ask(&a, path, None, None).await.status, 401, "{path}");
    }
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_view_is_told_of_what_leaves_it_and_of_nothing_else() {
    let gatherer = Origin::start(ID).await;
    gatherer.update(1..=3, "alpha").await;
    gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let text = format!("name = \"n\"\ndata = \"d\"\n{VIEWS}{PRESS}");
    let read = Config::parse(&text).unwrap();
    let mut settings = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
    (settings.views, settings.daemon.access) = (read.views, read.daemon.access);
    let a = Running::start(settings.clone()).await;
    a.until("pulled", |it| it.objects == 6).await;
    let token = Some(Token::new(TOKEN));
    let source = Source { kind: Kind::Broker, token, ..Source::gatherer("a", url_of(a.address)) };
    let b = Running::start(config(&dir.path().join("b"), vec![source])).await;
    b.until("pulled", |it| it.objects == 3).await;
    let first = press(&a, "feed").await;
    let (view, before) = (first.view.unwrap(), a.status().await);

    // One leaves, one comes, one is deleted; of the others, one changes and one is deleted.
    gatherer.update([1], "gamma").await;
    gatherer.update([5], "alpha").await;
    gatherer.update([4], "beta again").await;
    gatherer.delete([2, 6]).await;
    let after = a.until("pulled", |it| it.objects == 4).await;
    until("object 1 left, and object 5 came", async || {
        b.total("alpha").await == 2 && b.total("number5").await == 1
    })
    .await;
    assert_eq!(b.status().await.objects, 2);
    let path = format!("feed?since={}&epoch={}", before.serial, before.epoch);
    let delta = ask(&a, &path, Some(TOKEN), Some(&view)).await;
    let gone = delta.text.split("@DELETE").skip(1).collect::<String>();
    for (n, is_gone) in [(1, true), (2, true), (4, false), (6, false)] {
        assert_eq!(gone.contains(&format!("{}\n", object_url(n))), is_gone, "{n}: {}", delta.text);
        assert!(is_gone || !delta.text.contains(&object_url(n)), "{n}: {}", delta.text);
    }
    // To a harvester of the press, what left is deleted; to another one it is there.
    let list = press(&a, "oai?verb=ListRecords&metadataPrefix=oai_dc").await.text;
    assert_eq!(list.matches("status=\"deleted\"").count(), 2, "{list}");
    assert_eq!(list.matches("<metadata>").count(), 2, "{list}");
    assert!(!list.contains("object/4") && !list.contains("object/6"), "{list}");

    // All of that is still known after a restart, and whoever is not limited any more sees all.
    settings.daemon.listen = a.address;
    a.stop().await;
    let a = Running::start(settings.clone()).await;
    until("the view is known", async || {
        ask(&a, &path, Some(TOKEN), Some(&view)).await.status == 200
    })
    .await;
    let again = ask(&a, &path, Some(TOKEN), Some(&view)).await.text;
    assert_eq!(again.matches("@DELETE").count(), delta.text.matches("@DELETE").count(), "{again}");
    settings.daemon.access = Default::default();
    a.handle.reload(settings.clone()).await.unwrap();
    assert_eq!(a.total("object").await, after.objects);
    b.until("pulled", |it| it.objects == after.objects).await;
    let sets = press(&a, "oai?verb=ListSets").await.text;
    assert!(sets.contains("<setSpec>view:other</setSpec>"), "{sets}");
    let of = |set: &str| format!("oai?verb=ListRecords&metadataPrefix=oai_dc&set=view:{set}");
    let first = press(&a, &of("first")).await.text;
    assert!(
        first.contains("object/5") && first.contains("<setSpec>view:first</setSpec>"),
        "{first}"
    );
    // Object 1 is there still, and object 2 is not.
    assert!(
        first.matches("status=\"deleted\"").count() == 1 && !first.contains("object/1"),
        "{first}"
    );
    for broker in [a, b] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_consumer_of_a_query_is_told_of_what_leaves_it_and_of_nothing_else() {
    let gatherer = Origin::start(ID).await;
    gatherer.update(1..=3, "alpha").await;
    let mut version = gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let union = PRESS.replace("view = \"first\"\n", "");
    let read = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{union}")).unwrap();
    let mut settings = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
    settings.daemon.access = read.daemon.access;
    let a = Running::start(settings.clone()).await;
    a.caught_up("gatherer", version).await;
    let path = async |a: &Running| {
        let status = a.status().await;
        format!("feed?q=alpha&since={}&epoch={}", status.serial, status.epoch)
    };
    let view = press(&a, "feed?q=alpha").await.view.unwrap();
    let pull = async |a: &Running, path: &str| {
        let mut seen = ask(a, path, Some(TOKEN), Some(&view)).await;
        until("it is put together", async || {
            seen = ask(a, path, Some(TOKEN), Some(&view)).await;
            seen.status != 503
        })
        .await;
        assert_eq!((seen.status, seen.view.as_deref()), (200, Some(view.as_str())), "{path}");
        seen.text
    };
    // As long as it is not known who left the query, all that changed and does not match is released.
    let first = path(&a).await;
    version = gatherer.update([4], "beta again").await;
    a.caught_up("gatherer", version).await;
    assert!(pull(&a, &first).await.contains(&object_url(4)));
    // Soon, others are not named any more.
    let until_kept = async |a: &Running| {
        until("the query is kept", async || {
            let before = path(a).await;
            let version = gatherer.update([5], &format!("beta {}", clock::now_ms())).await;
            a.caught_up("gatherer", version).await;
            !pull(a, &before).await.contains(&object_url(5))
        })
        .await;
    };
    until_kept(&a).await;
    let before = path(&a).await;
    gatherer.update([1], "gamma").await;
    gatherer.update([4], "alpha").await;
    gatherer.update([6], "beta again").await;
    version = gatherer.delete([2, 5]).await;
    a.caught_up("gatherer", version).await;
    let of = |numbers: &[u64]| numbers.iter().map(|n| object_url(*n)).collect::<Vec<_>>();
    assert_eq!(named(&pull(&a, &before).await), (of(&[4]), of(&[1, 2])));
    // It is still known after a restart; and whose version is of before it was known is told of all.
    settings.daemon.listen = a.address;
    a.stop().await;
    let a = Running::start(settings).await;
    until_kept(&a).await;
    assert_eq!(named(&pull(&a, &before).await), (of(&[4]), of(&[1, 2])));
    assert_eq!(named(&pull(&a, &first).await), (of(&[4]), of(&[1, 2, 5, 6])));
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_revoked_gets_nothing_more() {
    let gatherer = Origin::start(ID).await;
    let version = gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let union =
        "[[consumer]]\nname = \"union\"\ntoken = \"a-token-of-the-union\"\nmay = [\"feed\"]\n";
    let access = |lines: &str| {
        let read = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{VIEWS}{lines}"));
        let mut config = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
        let read = read.unwrap();
        (config.views, config.daemon.access) = (read.views, read.daemon.access);
        config
    };
    let a = Running::start(access(&format!("{PRESS}{union}"))).await;
    a.caught_up("gatherer", version).await;
    let before = press(&a, "feed").await;
    assert!((before.status, before.text.contains(&object_url(1))) == (200, true));
    let status = a.status().await;
    let path = format!("feed?since={}&epoch={}", status.serial, status.epoch);
    a.handle.reload(access(union)).await.unwrap();
    for path in ["feed", &path] {
        let seen = ask(&a, path, Some(TOKEN), before.view.as_deref()).await;
        assert_eq!(seen.status, 401, "{path}: {}", seen.text);
    }
    let union = ask(&a, "feed", Some("a-token-of-the-union"), None).await;
    assert_eq!(union.status, 200, "{}", union.text);
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_can_be_limited_and_mistakes_are_named() {
    let gatherer = Origin::start(ID).await;
    gatherer.update(1..=3, "alpha").await;
    let version = gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let all = "[[consumer]]\nname = \"union\"\ntoken = \"a-token-of-the-union\"\nmay = [\"search\"]\n\
        [[consumer]]\nname = \"anyone\"\nmay = [\"search\"]\nview = \"first\"\n";
    let read = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{VIEWS}{all}")).unwrap();
    let mut settings = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
    (settings.views, settings.daemon.access) = (read.views, read.daemon.access);
    let a = Running::start(settings).await;
    a.caught_up("gatherer", version).await;
    assert_eq!(a.total("object").await, 3);
    let union = ask(&a, "api/search?q=object", Some("a-token-of-the-union"), None).await.text;
    assert!(union.contains("\"total\":6"), "{union}");
    a.stop().await;

    let refused = |lines: &str| {
        let text = format!("name = \"n\"\ndata = \"d\"\n{VIEWS}{lines}");
        let mistakes = Config::parse(&text).unwrap_err();
        mistakes.iter().map(ToString::to_string).collect::<String>()
    };
    assert!(refused(&PRESS.replace("first\"", "none\"")).contains("there is no view \"none\""));
    let nobody = "[[consumer]]\nname = \"nobody\"\nmay = [\"feed\"]\nview = \"first\"\n";
    assert!(refused(nobody).contains("nothing anyway"));
}
