//! Tests of the page Views of a running broker: trials, changes of its settings file, and refusals.

use std::fs;
use std::path::PathBuf;

use broker::config::Config;
use broker::server::Server;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, ORIGIN};
use http::{HeaderMap, HeaderValue};
use net::client::Request;
use net::clock;
use serde_json::Value;
use tempfile::TempDir;
use url::form_urlencoded;

use crate::common::{Origin, Running, STEP_MAX, client, config, url_of};

/// A title that would be markup if it were not escaped.
const TITLE: &str = "\"><script>alert(1)</script> & 'c'";

/// A broker with a settings file, and a source with ten objects of one kind and four of another.
struct Site {
    broker: Running,
    file: PathBuf,
    token: String,
    _origin: Origin,
    _dir: TempDir,
}

struct Seen {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Site {
    async fn start() -> Self {
        let origin = Origin::start("00000000000000a1").await;
        origin.update(0..10, "alpha").await;
        let version = origin.update(10..14, "beta").await;
        let dir = tempfile::tempdir().unwrap();
        let (file, data) = (dir.path().join("broker.toml"), dir.path().join("data"));
        let text = format!(
            "# The library's.\nname = \"Library\"   # short\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
             data = {data:?}\n\n[[source]]\nname = \"origin\" # the only one\nurl = \"{}\"\n\n\
             [freshness]\ninterval_min = \"100 ms\"\n",
            origin.url()
        );
        fs::write(&file, &text).unwrap();
        let server = Server::bind(Config::parse(&text).unwrap()).await.unwrap();
        let read = file.clone();
        server.read_settings_by(&file, move || {
            let text = fs::read_to_string(&read).unwrap();
            // As if a file that the settings name were missing.
            if text.contains("unreadable") {
                return Err("a certificate is missing".to_owned());
            }
            Config::parse(&text).map_err(|mistakes| format!("{mistakes:?}"))
        });
        let broker = Running::run(server);
        broker.caught_up("origin", version).await;
        let token = fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned();
        Self { broker, file, token, _origin: origin, _dir: dir }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    fn own(&self) -> String {
        format!("http://{}", self.broker.admin)
    }

    async fn page(&self, path: &str) -> Seen {
        seen(&self.broker, path).await
    }

    /// Posts a form; `origin` is of the page that it is of.
    async fn post(&self, path: &str, form: &[(&str, &str)], origin: Option<&str>) -> Seen {
        let url = url_of(self.broker.admin).join(path).unwrap();
        let mut request = Request::post(url, encoded(form));
        if let Some(origin) = origin {
            request = request.header(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        answer(request).await
    }

    /// Tries a view, and saves it as the page offers it.
    async fn save(&self, form: &[(&str, &str)]) -> Seen {
        let tried = self.page(&format!("views?{}", encoded(form))).await;
        let trial = trial(&tried.body);
        let form = [form, &[("trial", &*trial), ("token", &*self.token)]].concat();
        self.post("views/save", &form, Some(&self.own())).await
    }

    async fn views(&self) -> Value {
        let seen = self.page("views?format=json").await;
        assert_eq!(seen.status, 200, "{}", seen.body);
        serde_json::from_str(&seen.body).unwrap()
    }

    /// Waits until each view has as many objects.
    async fn have(&self, expected: &[(&str, u64)]) {
        let began = clock::monotonic();
        loop {
            let views = self.views().await;
            let count = |it: &Value| {
                (it["name"].as_str().unwrap().to_owned(), it["objects"].as_u64().unwrap_or(99))
            };
            let found: Vec<_> = views.as_array().unwrap().iter().map(count).collect();
            if found.iter().map(|it| (&*it.0, it.1)).eq(expected.iter().copied()) {
                return;
            }
            assert!(began.elapsed() < STEP_MAX, "{views}");
        }
    }
}

fn encoded(form: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish()
}

async fn answer(request: Request) -> Seen {
    let request = Request { keeps_redirect: true, ..request };
    let response = client().send(request).await.unwrap();
    let (status, headers) = (response.status.as_u16(), response.headers.clone());
    let body = String::from_utf8(response.bytes(1 << 24).await.unwrap().to_vec()).unwrap();
    Seen { status, headers, body }
}

async fn seen(broker: &Running, path: &str) -> Seen {
    let url = url_of(broker.admin).join(path).unwrap();
    answer(Request::get(url).header(ACCEPT, HeaderValue::from_static("text/html"))).await
}

/// Returns the trial that a page offers to save.
fn trial(page: &str) -> String {
    let after = page.split("name=\"trial\" value=\"").nth(1);
    after.unwrap_or_else(|| panic!("{page}")).split('"').next().unwrap().to_owned()
}

/// Returns the words of a page, without its markup.
fn words(page: &str) -> String {
    let text = page.split('<').map(|it| it.split_once('>').map_or(it, |it| it.1));
    text.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn has(seen: &Seen, status: u16, parts: &[&str]) {
    let words = words(&seen.body);
    assert_eq!(seen.status, status, "{words}");
    for part in parts {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!seen.body.contains("<script"), "{}", seen.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_tried_saved_changed_and_removed() {
    let site = Site::start().await;
    let before = site.text();
    has(&site.page("views").await, 200, &["There are no views yet.", "Add a view"]);
    assert!(site.page("").await.body.contains("href=\"views\""));

    // A trial changes nothing.
    let letters = [("name", "letters"), ("title", TITLE), ("within", ""), ("query", "alpha")];
    let tried = site.page(&format!("views?{}", encoded(&letters))).await;
    has(&tried, 200, &["10 objects", "Object ", "http://example.org/object/", "The view is new."]);
    assert_eq!((site.text(), site.views().await), (before.clone(), serde_json::json!([])));

    // Saved, the file has the view and all else as it was, and the view is in force.
    let saved = site.save(&letters).await;
    assert_eq!(saved.status, 303, "{}", words(&saved.body));
    let to = saved.headers[LOCATION].to_str().unwrap();
    has(&site.page(to).await, 200, &["The view letters is saved, and in force.", "10 objects"]);
    let lines = "\n[[view]]\nname = \"letters\"\ntitle = '\"><script>alert(1)</script> & ''c'''\n";
    let added = site.text().strip_prefix(&before).unwrap().to_owned();
    assert_eq!(added.lines().count(), lines.lines().count() + 1, "{added}");
    assert!(added.ends_with("query = \"alpha\"\n"), "{added}");
    site.have(&[("letters", 10)]).await;
    assert_eq!(site.broker.total("view:letters").await, 10);
    let first = [("name", "first"), ("within", "letters"), ("query", "number1")];
    assert_eq!(site.save(&first).await.status, 303);
    site.have(&[("first", 1), ("letters", 10)]).await;

    // Changed, it takes those within it along.
    let form = site.page("views?edit=letters").await;
    has(&form, 200, &["Change the view letters"]);
    assert!(form.body.contains("name=\"query\" value=\"alpha\""), "{}", form.body);
    let other = [("changes", "true"), ("name", "letters"), ("query", "beta OR number2")];
    let tried = site.page(&format!("views?{}", encoded(&other))).await;
    let change = "It has 10 objects now: 4 would come, and 9 would go.";
    has(&tried, 200, &["5 objects", change, "within it or name it: first ."]);
    assert_eq!(site.save(&other).await.status, 303);
    site.have(&[("first", 0), ("letters", 5)]).await;

    // Others lean on it; without them it goes.
    let asked = site.page("views/removing?name=letters").await;
    has(&asked, 200, &["5 objects", "It cannot be removed", "first"]);
    assert!(!asked.body.contains("<form"), "{}", asked.body);
    let token = ("token", &*site.token);
    let refused = site.post("views/remove", &[("name", "letters"), token], Some(&site.own())).await;
    has(&refused, 409, &["It was not removed", "there is no view &quot;letters&quot;"]);
    let asked = site.page("views/removing?name=first").await;
    has(&asked, 200, &["0 objects", "are refused from then on"]);
    for name in ["first", "letters"] {
        let gone = site.post("views/remove", &[("name", name), token], Some(&site.own())).await;
        let to = gone.headers[LOCATION].to_str().unwrap();
        has(&site.page(to).await, 200, &[&format!("There is no view {name} any more.")]);
    }
    assert_eq!((site.text(), site.views().await), (before, serde_json::json!([])));
    has(&site.page("views/removing?name=first").await, 404, &["There is no view of this name."]);
    site.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_and_the_page_of_the_listener_change_views() {
    let site = Site::start().await;
    let before = site.text();
    let view = [("name", "letters"), ("query", "alpha")];
    let trial = trial(&site.page(&format!("views?{}", encoded(&view))).await.body);
    let form = |token: &'static str| [&view[..], &[("trial", &*trial), ("token", token)]].concat();
    let own = site.own();
    let wrong = "this is not the token of DATA/admin.token";
    for token in ["", "0", "ü\r\n", "a b"] {
        let refused = site.post("views/save", &form(token), Some(&own)).await;
        has(&refused, 403, &["Nothing was saved:", wrong, "Save it as it was tried"]);
        assert!(refused.body.contains("value=\"alpha\"") && !refused.body.contains("alpha AND"));
        let refused = site.post("views/remove", &form(token), Some(&own)).await;
        has(&refused, 403, &["It was not removed:", wrong]);
    }
    let right = [&view[..], &[("trial", &*trial), ("token", &*site.token)]].concat();
    has(&site.post("views/save", &right, None).await, 403, &[wrong]);
    for foreign in ["null", "http://example.org", "http://127.0.0.1:1"] {
        let refused = site.post("views/save", &right, Some(foreign)).await;
        has(&refused, 403, &["Only the page of this listener may change its views."]);
        assert_eq!(site.post("views/remove", &right, Some(foreign)).await.status, 403);
    }
    let long = "x".repeat(20_000);
    let long = site.post("views/save", &[("query", &*long)], Some(&own)).await;
    has(&long, 413, &["The form is longer than"]);
    assert_eq!(site.text(), before);
    // Programs send it as to all commands.
    let url = url_of(site.broker.admin).join("views/save").unwrap();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", site.token)).unwrap();
    let saved = Request::post(url, encoded(&form(""))).header(AUTHORIZATION, bearer);
    assert_eq!(answer(saved).await.status, 303);
    assert_eq!(site.views().await[0]["name"], "letters");
    site.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_tried_is_shown_and_what_is_refused_is_put_back() {
    let site = Site::start().await;
    let view = [("name", "letters"), ("query", "alpha")];
    let own = site.own();
    let with = |trial: &str| {
        let more = [("trial", trial), ("token", &site.token)];
        encoded(&[&view[..], &more].concat())
    };
    let post = async |form: String| {
        let url = url_of(site.broker.admin).join("views/save").unwrap();
        answer(Request::post(url, form).header(ORIGIN, HeaderValue::from_str(&own).unwrap())).await
    };
    // The trial of one that was not tried can be saved.
    let shown = post(with("")).await;
    has(&shown, 409, &["Nothing was saved:", "it was not tried yet", "10 objects"]);
    let first = trial(&shown.body);
    // The administrator edits the file meanwhile.
    let edited = format!("{}# Edited by hand.\n", site.text());
    fs::write(&site.file, &edited).unwrap();
    let shown = post(with(&first)).await;
    has(&shown, 409, &["Nothing was saved:", "or the settings file was: look at it again"]);
    assert_eq!(site.text(), edited);
    // The broker refuses it, and the old text is there again.
    let refused = site.save(&[("name", "broken"), ("query", "unreadable")]).await;
    let reason =
        "the old settings stay: a certificate is missing. What was there before is there again.";
    has(&refused, 409, &["Nothing was saved:", reason, "broken"]);
    assert_eq!((site.text(), site.views().await), (edited.clone(), serde_json::json!([])));
    let saved = post(with(&trial(&shown.body))).await;
    assert_eq!(saved.status, 303, "{}", words(&saved.body));
    let lines = "\n[[view]]\nname = \"letters\"\nquery = \"alpha\"\n";
    assert_eq!(site.text().replace(lines, ""), edited);
    // A file that cannot be read is told of.
    fs::remove_file(&site.file).unwrap();
    has(&site.page("views?name=a&query=x").await, 500, &["broker.toml cannot be read"]);
    site.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_shown_beside_their_fields_and_nothing_typed_is_lost() {
    let site = Site::start().await;
    assert_eq!(site.save(&[("name", "a"), ("query", "alpha")]).await.status, 303);
    assert_eq!(site.save(&[("name", "b"), ("query", "view:a x")]).await.status, 303);
    for (query, field, part) in [
        ("name=c&query=(x&title=T", "query", "at byte"),
        ("name=c&query=x~1&title=T", "query", "finds other words"),
        ("name=c&query=x&within=none&title=T", "within", "there is no view"),
        ("name=a&query=view:b&changes=true&title=T", "query", "in no circle"),
        ("name=a&query=x&within=b&changes=true&title=T", "within", "in no circle"),
        ("name=a&query=x&title=T", "name", "already"),
        ("name=%3Cscript%3E&query=%3Cscript%3E&title=T", "name", "small letters"),
    ] {
        let seen = site.page(&format!("views?{query}")).await;
        has(&seen, 400, &["Nothing was tried:"]);
        let beside = format!("<p class=\"bad\" id=\"{field}-wrong\">");
        let message = seen.body.split(&beside).nth(1).unwrap_or_else(|| panic!("{}", seen.body));
        assert!(message.split("</p>").next().unwrap().contains(part), "{query}: {message}");
        assert!(seen.body.contains("name=\"title\" value=\"T\""), "{query}: {}", seen.body);
        assert!(!seen.body.contains("views/save"), "{query}: {}", seen.body);
    }
    has(&site.page("views?page=77&x=%zz&&").await, 200, &["All views 2"]);
    site.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_settings_file_there_are_lines_to_copy() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name = \"n\"\ndata = \"d\"\n[[view]]\nname = \"a\"\nquery = \"alpha\"\n";
    let views = Config::parse(text).unwrap().views;
    let broker = Running::start(Config { views, ..config(dir.path(), Vec::new()) }).await;
    let tried = seen(&broker, "views?name=b&query=x&within=a").await;
    let lines = "[[view]] name = &quot;b&quot; query = &quot;x&quot; within = &quot;a&quot;";
    has(&tried, 200, &["This broker has no settings file", "0 objects", lines]);
    assert!(!tried.body.contains("views/save"), "{}", tried.body);
    let asked = seen(&broker, "views/removing?name=a").await;
    has(&asked, 200, &["This broker has no settings file"]);
    assert!(!asked.body.contains("<form"), "{}", asked.body);
    let token = fs::read_to_string(dir.path().join("admin.token")).unwrap();
    let url = url_of(broker.admin).join("views/save").unwrap();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim())).unwrap();
    let form = encoded(&[("name", "b"), ("query", "x")]);
    let refused = answer(Request::post(url, form).header(AUTHORIZATION, bearer)).await;
    assert_eq!(refused.status, 409);
    broker.stop().await;
}
