//! Tests of the page Freshness of a running broker: HTML for people, JSON for programs, and wrong
//! requests.

use crate::common::{Origin, Running, client, config, url_of};
use broker::source::Source;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use net::client::Request;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

/// A name that would be markup if it were not escaped.
const NAME: &str = "a <script>alert(1)</script> & \"b\" 'c'";

struct TestBroker {
    broker: Running,
    origins: [Origin; 2],
    _dir: TempDir,
}

struct Seen {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl TestBroker {
    /// Starts a broker that knows the rates of two sources, and cannot reach a third.
    async fn start() -> Self {
        let (one, other) = (Origin::start("00000000000000a1").await, Origin::start("b2").await);
        let away = Source::gatherer("away", Url::parse("http://127.0.0.1:9/").unwrap());
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), vec![one.source(NAME), other.source("other"), away]);
        config.freshness.interval_max = 3_600.0;
        // The base URL of the public pages must not appear on the admin listener.
        config.daemon.base_url = Some(Url::parse("https://example.org/find/").unwrap());
        for origin in [&one, &other] {
            origin.update(0..100, "start").await;
        }
        let broker = Box::pin(Running::start(config)).await;
        let known = |it: &broker::status::Status| {
            it.sources.iter().filter(|it| it.rate_per_second.is_some()).count() == 2
        };
        broker.until("known", known).await;
        Self { broker, origins: [one, other], _dir: dir }
    }

    async fn ask(&self, path: &str, accept: &'static str) -> Seen {
        let url = url_of(self.broker.admin).join(path).unwrap();
        let request = Request::get(url).header(ACCEPT, HeaderValue::from_static(accept));
        let response = client().send(request).await.unwrap();
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        let body = String::from_utf8(response.bytes(1 << 24).await.unwrap().to_vec()).unwrap();
        Seen { status, headers, body }
    }

    async fn page(&self, path: &str) -> String {
        let seen = self.ask(path, "text/html,*/*").await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.body);
        assert_eq!(seen.headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(seen.headers.contains_key(CONTENT_SECURITY_POLICY), "{path}");
        seen.body
    }

    async fn json(&self, path: &str) -> Value {
        let seen = self.ask(path, "application/json").await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.body);
        serde_json::from_str(&seen.body).unwrap()
    }

    async fn stop(self) {
        self.broker.stop().await;
        drop(self.origins);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_the_status_and_the_preview() {
    let site = TestBroker::start().await;
    let json = site.json("freshness?interval=2+s&sort=name").await;
    assert_eq!((&json["policy"], &json["sources_total"]), (&"oap".into(), &3.into()), "{json}");
    let (status, listed) = (site.broker.status().await, json["sources"].as_array().unwrap());
    let names: Vec<&str> = status.sources.iter().map(|it| &*it.name).collect();
    assert_eq!(listed.iter().map(|it| it["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    assert_eq!(json["aim"], serde_json::json!({ "setting": "theta", "value": 0.9 }));
    // The load is that of the shown intervals.
    let preview = &json["preview"];
    let changes = preview["sources"].as_array().unwrap();
    let load: f64 = changes.iter().map(|it| 3_600.0 / number(&it["interval_seconds"])).sum();
    assert!((number(&json["pulls_per_hour"]) / load - 1.0).abs() < 1e-9, "{json}");
    assert_eq!((number(&preview["pulls_per_hour"]), changes.len()), (3_600.0, 2), "{json}");
    assert!(changes.iter().all(|it| it["new_interval_seconds"] == 2.0), "{json}");
    assert_eq!(json["curve"]["points"].as_array().unwrap().len(), 40);

    let page = site.page("freshness?interval=2+s").await;
    assert!(page.contains("<svg ") && page.contains("(policy fixed)"), "{page}");
    assert!(page.contains("interval = &quot;2 s&quot;\n# and without the line theta"), "{page}");
    assert!(page.contains("<dd>3<span>2 with a known rate</span></dd>"), "{page}");
    assert!(page.contains("failure") && page.contains("127.0.0.1:9"), "{page}");
    // Neither sources nor parameters can inject markup.
    let escaped = "a &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;b&quot; &#39;c&#39;";
    assert!(page.contains(escaped) && !page.contains("<script"), "{page}");
    assert_eq!(site.json("freshness?format=json").await["preview"], Value::Null);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_links_to_the_page_and_both_share_a_style() {
    let site = TestBroker::start().await;
    // The overview shows the failing source, and links to the page.
    let overview = site.page("").await;
    assert!(overview.contains("<h1>Broker") && overview.contains("127.0.0.1:9"), "{overview}");
    assert!(overview.contains("href=\"freshness\""), "{overview}");
    let page = site.page("freshness").await;
    assert!(page.contains("<h1>Freshness</h1>"), "{page}");
    for (link, media) in [("href=\"status\"", "application/json"), ("href=\"metrics\"", "text/")] {
        assert!(page.contains(link), "{page}");
        let path = &link[6..link.len() - 1];
        let media_type = site.ask(path, "*/*").await.headers[CONTENT_TYPE].clone();
        assert!(media_type.to_str().unwrap().starts_with(media), "{path}: {media_type:?}");
    }
    let style = page.split("<link rel=\"stylesheet\" href=\"/").nth(1).unwrap();
    let style = site.ask(style.split('"').next().unwrap(), "*/*").await;
    assert_eq!(
        (style.status, &style.headers[CONTENT_TYPE]),
        (200, &"text/css; charset=utf-8".parse().unwrap())
    );
    assert_eq!(site.ask("no/such/page", "text/html").await.status, 404);
    // Every command needs the token, whether it exists or not.
    for path in ["freshness", "pull", "none"] {
        let url = url_of(site.broker.admin).join(path).unwrap();
        let refused = client().send(Request::post(url, "")).await.unwrap();
        assert_eq!(refused.status, 401, "{path}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_shown_beside_their_fields() {
    let site = TestBroker::start().await;
    let long = format!("theta={}", "9".repeat(2_000));
    for (query, field, said) in [
        ("theta=1", "theta", "from 0 to 0.9999"),
        ("theta=NaN", "theta", "number"),
        ("theta=-1e308", "theta", "number"),
        ("theta=0.9&theta=0.8", "theta", "twice"),
        (&long, "theta", "longer than"),
        ("price=1e309", "price", "number"),
        ("price_power=-3", "price_power", "number"),
        ("pulls_per_hour=%00%FF", "pulls_per_hour", "number"),
        ("interval=1000+years", "interval", "such as"),
        ("interval=%22%3E%3Cscript%3E", "interval", "such as"),
        ("policy=%3Cscript%3E", "policy", "one of"),
        ("policy=fixed&theta=0.5", "theta", "has no theta"),
    ] {
        let path = format!("freshness?{query}");
        let seen = site.ask(&path, "text/html").await;
        assert_eq!(seen.status, 400, "{query}");
        let beside = format!("<p class=\"bad\" id=\"{field}-wrong\">");
        let message = seen.body.split(&beside).nth(1).unwrap_or_else(|| panic!("{}", seen.body));
        assert!(message.split("</p>").next().unwrap().contains(said), "{query}: {message}");
        assert!(!seen.body.contains("<script"), "{query}");
        let json = site.ask(&path, "application/json").await;
        assert_eq!(json.status, 400, "{query}");
        assert!(json.body.contains("\"error\"") && json.body.contains(said), "{}", json.body);
    }
    // Every page number has a page.
    for query in ["page=1000000&theta=0.9", "list=77", "sort=name", "utm_source=x&&=&%zz"] {
        site.page(&format!("freshness?{query}")).await;
    }
    for query in ["page=-1", "list=x", "sort=", "sort=size", "format=xml"] {
        let status = site.ask(&format!("freshness?{query}"), "text/html").await.status;
        assert_eq!(status, if query == "sort=" { 200 } else { 400 }, "{query}");
    }
    site.stop().await;
}
