//! Tests of access over TLS between two institutions: consumers get only what the settings allow.

use std::fs;
use std::path::Path;

use daemon::describe::Description;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use net::client::{Client, Request, Settings};
use net::clock;
use net::tls;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::Url;

use crate::certificates::Authority;
use crate::daemons::free_port;
use crate::harness::{PATIENCE, Running, harvest, run, run_ok, small_tree, texts, write};

const TOKEN: &str = "of-the-union-0123456789";
const WRONG: &str = "of-a-stranger-0123456789";

/// An HTTP client that trusts the authorities of a file.
struct Outsider {
    runtime: Runtime,
    client: Client,
}

impl Outsider {
    fn new(trust: &Path) -> Self {
        let extra_roots = tls::certificates(trust).unwrap();
        let settings = Settings { allow_private: true, extra_roots, ..Settings::default() };
        Self { runtime: Runtime::new().unwrap(), client: Client::new(settings) }
    }

    /// Returns status and text of the answer.
    fn ask(&self, url: &str, token: Option<&str>) -> (u16, String) {
        self.send(Request::get(Url::parse(url).unwrap()), token)
    }

    /// Subscribes to a topic with a callback that the hub refuses; returns the hub's answer.
    fn subscribe(&self, hub: &str, topic: &str, token: &str) -> (u16, String) {
        let topic = url::form_urlencoded::byte_serialize(topic.as_bytes()).collect::<String>();
        let form = format!(
            "hub.mode=subscribe&hub.topic={topic}&hub.callback=http%3A%2F%2F127.0.0.1%3A9%2F"
        );
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post(Url::parse(hub).unwrap(), form);
        self.send(request.header(CONTENT_TYPE, media_type), Some(token))
    }

    fn send(&self, request: Request, token: Option<&str>) -> (u16, String) {
        self.runtime.block_on(async {
            let request = request.token(token.map(str::to_owned));
            let response = self.client.send(request).await.unwrap();
            let status = response.status.as_u16();
            let bytes = response.bytes(1 << 22).await.unwrap();
            (status, String::from_utf8_lossy(&bytes).into_owned())
        })
    }
}

/// Writes the settings of an institution's daemon, with `more` at the end; returns their path.
fn settings(folder: &Path, name: &str, port: u16, admin: &str, more: &str) -> String {
    let [certificate, key] = ["pem", "key"].map(|it| format!("{name}.{it}"));
    let data = folder.join(format!("{name}-data"));
    let text = format!(
        "name = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\nadmin_listen = \"{admin}\"\n\
         base_url = \"https://localhost:{port}/\"\ndata = \"{}\"\nadministrator = \"mailto:it@example.org\"\n\
         [tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\nclient_ca = \"union.pem\"\n\
         trust = \"union.pem\"\n{more}",
        data.display(),
    );
    write(folder, &format!("{name}.toml"), text).display().to_string()
}

/// Returns a daemon's `status --json`.
fn status(kind: &str, file: &str) -> Value {
    serde_json::from_str(&run_ok([kind, "status", "-c", file, "--json"])).unwrap()
}

/// Waits until the status satisfies `wanted`, and returns it.
fn wait_for(kind: &str, file: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = clock::monotonic();
    loop {
        let status = status(kind, file);
        if wanted(&status) {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "{status:#}");
    }
}

/// An institution with a gatherer, and the union's authority with its certificates.
struct Union {
    folder: TempDir,
    authority: Authority,
    outsider: Outsider,
    gatherer: Running,
    /// The gatherer's settings.
    orchard: String,
    /// The gatherer's URL.
    base: String,
}

impl Union {
    /// Starts the gatherer. Its admin listener is open to other machines, and so uses TLS.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        small_tree(&root.join("tree"));
        let authority = Authority::new("of the union");
        let outsider = Outsider::new(&write(root, "union.pem", &authority.pem));
        for name in ["orchard", "fruit", "herbs-broker", "stranger", "harvester"] {
            authority.write(root, name, &["localhost"]);
        }
        authority.write(root, "herbs", &["herbs.example"]);
        let (port, admin) = (free_port(), free_port());
        let consumers = format!(
            "[[consumer]]\nname = \"union\"\ntoken = \"{TOKEN}\"\nmay = [\"feed\"]\n\
             [[consumer]]\nname = \"herbs\"\ncertificate = \"herbs.example\"\nmay = [\"feed\", \"oai\"]\n\
             [push]\nhub = \"self\"\nallow_private = false\n\
             [[root]]\nurl = \"file://{}\"\n",
            root.join("tree").display()
        );
        let orchard = settings(root, "orchard", port, &format!("0.0.0.0:{admin}"), &consumers);
        run_ok(["gatherer", "check", "-c", &orchard]);
        let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", &orchard]));
        gatherer.line_with("https://");
        let base = format!("https://localhost:{port}/");
        wait_for("gatherer", &orchard, |it| it["objects"].as_u64() >= Some(7));
        Self { folder, authority, outsider, gatherer, orchard, base }
    }

    /// Starts a broker that pulls with the credentials `shown`; returns its settings and URL, too.
    fn broker(&self, name: &str, shown: &str) -> (Running, String, String) {
        let more = format!(
            "[freshness]\npolicy = \"fixed\"\ninterval = \"1 s\"\ninterval_min = \"1 s\"\n\
             [[consumer]]\nname = \"anyone\"\nmay = [\"search\"]\n\
             [[consumer]]\nname = \"member\"\ntoken = \"{TOKEN}\"\nmay = [\"search\", \"objects\", \"feed\"]\n\
             [[source]]\nname = \"orchard\"\nkind = \"gatherer\"\nurl = \"{}\"\n{shown}",
            self.base
        );
        let (port, admin) = (free_port(), format!("127.0.0.1:{}", free_port()));
        let file = settings(self.folder.path(), name, port, &admin, &more);
        run_ok(["broker", "check", "-c", &file]);
        let mut running = Running::start(harvest(["broker", "run", "-c", &file]));
        running.line_with("https://");
        (running, file, format!("https://localhost:{port}/"))
    }

    fn check(&self, url: &str, token: Option<&str>, expected: u16, part: &str) {
        let (status, text) = self.outsider.ask(url, token);
        assert!(status == expected && text.contains(part), "{url}: {status} {text}");
    }
}

#[test]
fn two_institutions_share_over_tls_and_a_stranger_gets_nothing() {
    let union = Union::start();
    // Three brokers: one has the token, one shows a certificate, one has a wrong token.
    let (_fruit, fruit_file, fruit) = union.broker("fruit", &format!("token = \"{TOKEN}\"\n"));
    let herbs = "client_certificate = \"herbs.pem\"\nclient_key = \"herbs.key\"\n";
    let (_herbs, herbs_file, _) = union.broker("herbs-broker", herbs);
    let (_stranger, stranger_file, _) = union.broker("stranger", &format!("token = \"{WRONG}\"\n"));
    for file in [&fruit_file, &herbs_file] {
        let shown = wait_for("broker", file, |it| it["objects"].as_u64() >= Some(7));
        assert_eq!(shown["sources"][0]["errors"]["count"], 0, "{shown:#}");
    }
    let is_refused = |it: &Value| !it["sources"][0]["errors"]["last"].is_null();
    let shown = wait_for("broker", &stranger_file, is_refused);
    let last = shown["sources"][0]["errors"]["last"].to_string();
    assert!(last.contains("401") && last.contains("token"), "{last}");
    assert_eq!(shown["objects"], 0);

    // A gatherer that harvests with OAI-PMH shows its certificate as well.
    let root = format!(
        "[[root]]\naccess = \"oai\"\nurl = \"{}oai\"\n{herbs}\
         [[consumer]]\nname = \"nobody\"\nmay = [\"search\", \"objects\", \"oai\", \"feed\"]\n",
        union.base
    );
    let (port, admin) = (free_port(), format!("127.0.0.1:{}", free_port()));
    let harvester = settings(union.folder.path(), "harvester", port, &admin, &root);
    let mut running = Running::start(harvest(["gatherer", "run", "-c", &harvester]));
    running.line_with("https://");
    wait_for("gatherer", &harvester, |it| it["objects"].as_u64() >= Some(7));
    union.check(&format!("https://localhost:{port}/feed"), Some(TOKEN), 401, "needs a token");

    // The gatherer counts requests by consumer.
    let shown = status("gatherer", &union.orchard);
    for name in ["union", "herbs"] {
        assert!(shown["access"][name]["allowed"].as_u64() > Some(0), "{shown:#}");
        assert_eq!(shown["access"][name]["refused"], 0, "{shown:#}");
    }
    assert!(shown["access"]["unknown"]["refused"].as_u64() > Some(0), "{shown:#}");

    // Anyone may search; all else is for members.
    union.check(&format!("{fruit}api/search?q=pears"), None, 200, "Pears");
    union.check(&format!("{fruit}feed"), None, 401, "needs a token");
    union.check(&format!("{fruit}object?oid=x"), Some(WRONG), 401, "needs a token");
    union.check(&format!("{fruit}oai?verb=Identify"), None, 200, "Identify");
    union.check(&format!("{fruit}feed"), Some(TOKEN), 200, "");
    union.check(&format!("{}oai?verb=Identify", union.base), Some(TOKEN), 403, "may not have");
    union.check(&format!("{}healthz", union.base), None, 200, "ok");
    // The hub refuses subscriptions to topics that a consumer may not read.
    let hub = format!("{}hub", union.base);
    for (topic, expected) in [
        ("oai?verb=ListRecords&metadataPrefix=oai_dc", "does not tell you of"),
        ("feed", "does not ask"),
    ] {
        let (status, text) = union.outsider.subscribe(&hub, &(union.base.clone() + topic), TOKEN);
        assert!(status == 403 && text.contains(expected), "{topic}: {status} {text}");
    }

    // The description of each daemon is public, and names no file.
    let (_, about) = union.outsider.ask(&format!("{}.well-known/harvest", union.base), None);
    let about: Description = serde_json::from_str(&about).unwrap();
    assert_eq!((about.kind.as_str(), about.facts.objects), ("gatherer", 8), "{about:#?}");
    assert_eq!(about.facts.administrator.as_deref(), Some("mailto:it@example.org"));
    assert!(about.facts.gathers.is_empty() && 0 < about.facts.types["Text"], "{about:#?}");
    union.check(&format!("{fruit}.well-known/harvest"), None, 200, "\"kind\":\"broker\"");
}

#[test]
fn consumers_and_certificates_change_at_runtime_and_wrong_ones_are_ignored() {
    let union = Union::start();
    let (feed, oai) = (format!("{}feed", union.base), format!("{}oai?verb=Identify", union.base));
    union.check(&feed, Some(TOKEN), 200, "");
    union.check(&oai, Some(TOKEN), 403, "may not have");
    let text = fs::read_to_string(&union.orchard).unwrap();
    fs::write(&union.orchard, text.replace("may = [\"feed\"]", "may = [\"oai\"]")).unwrap();
    union.gatherer.signal("HUP");
    let began = clock::monotonic();
    while union.outsider.ask(&oai, Some(TOKEN)).0 != 200 {
        assert!(began.elapsed() < PATIENCE, "the new consumers are not in force");
    }
    union.check(&feed, Some(TOKEN), 403, "may not have");

    // A wrong key file is reported, and the old certificate stays in use.
    let key_file = union.folder.path().join("orchard.key");
    let key = fs::read(&key_file).unwrap();
    fs::write(&key_file, "no key").unwrap();
    let has_problem =
        |it: &Value| it["tls_problem"].as_str().is_some_and(|it| it.contains("orchard.key"));
    wait_for("gatherer", &union.orchard, has_problem);
    union.check(&format!("{}healthz", union.base), None, 200, "ok");
    let output = run(["gatherer", "check", "-c", &union.orchard]);
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("orchard.key"), "{err}");
    fs::write(&key_file, key).unwrap();
    wait_for("gatherer", &union.orchard, |it| it["tls_problem"].is_null());

    // New connections get a renewed certificate.
    union.authority.write(union.folder.path(), "orchard", &["localhost", "orchard.example"]);
    let began = clock::monotonic();
    while !run(["gatherer", "status", "-c", &union.orchard]).status.success() {
        assert!(began.elapsed() < PATIENCE, "the new certificate is not in force");
    }
}
