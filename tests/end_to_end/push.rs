//! Tests of push between processes: a source, a hub that sends its notifications, and a subscribed
//! broker. A proxy between hub and broker loses every second notification.
//!
//! Source: Liu et al. §3 (subscribe/notify); WebSub.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exchange::push::signature::{self, Method, Secret};
use net::clock;
use serde_json::Value;

use crate::daemons::free_port;
use crate::harness::{
    PATIENCE, Running, harvest, run_ok, small_tree, total, wait_for_total, write,
};

/// Number of changes that are timed.
const CHANGES: usize = 8;

/// Interval of the safety poll, in tests that need it.
const SAFETY: &str = "2 s";
/// An interval so long that no pull comes by it during a test.
const NEVER: &str = "1 day";

/// Notifications that the proxy loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Loss {
    #[default]
    None,
    EverySecond,
    All,
}

/// Counts of the notifications at the proxy.
#[derive(Debug, Default)]
struct Proxy {
    forwarded: AtomicU64,
    lost: AtomicU64,
    loss: Mutex<Loss>,
    /// Path of the last notification.
    path: Mutex<String>,
}

/// Starts a proxy in front of the server on `port`. It answers lost notifications with 202 itself.
fn lossy_proxy(listener: TcpListener, port: u16) -> Arc<Proxy> {
    let proxy = Arc::new(Proxy::default());
    let seen = Arc::clone(&proxy);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || forward(stream, port, &seen));
        }
    });
    proxy
}

fn forward(mut stream: TcpStream, port: u16, proxy: &Proxy) {
    let Some(request) = read_request(&mut stream) else { return };
    let line = String::from_utf8_lossy(&request);
    let line = line.lines().next().unwrap_or_default().to_owned();
    if line.starts_with("POST /push/") {
        line.split(' ').nth(1).unwrap_or_default().clone_into(&mut proxy.path.lock().unwrap());
        let all = proxy.forwarded.load(Ordering::SeqCst) + proxy.lost.load(Ordering::SeqCst);
        let is_lost = match *proxy.loss.lock().unwrap() {
            Loss::None => false,
            Loss::EverySecond => all % 2 == 1,
            Loss::All => true,
        };
        if is_lost {
            proxy.lost.fetch_add(1, Ordering::SeqCst);
            let accepted =
                "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(accepted.as_bytes());
            return;
        }
        proxy.forwarded.fetch_add(1, Ordering::SeqCst);
    }
    let answer = ask_raw(port, &request).unwrap_or_default();
    let _ = stream.write_all(&answer);
}

/// Reads a request, and adds `Connection: close` to it.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let (mut request, mut piece) = (Vec::new(), [0; 4_096]);
    let head_end = loop {
        if let Some(at) = request.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            count => request.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&request[..head_end]).into_owned();
    let lines = head.lines().filter_map(|it| it.split_once(": "));
    let length = lines.clone().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.and_then(|(_, it)| it.parse().ok()).unwrap_or(0);
    while request.len() < head_end + length {
        match stream.read(&mut piece).ok()? {
            0 => return None,
            count => request.extend_from_slice(&piece[..count]),
        }
    }
    let body = request.split_off(head_end);
    let mut request = head.replacen("\r\n", "\r\nConnection: close\r\n", 1).into_bytes();
    request.extend_from_slice(&body);
    Some(request)
}

fn ask_raw(port: u16, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// A daemon with its settings file.
struct Daemon {
    kind: &'static str,
    file: String,
    running: Running,
    url: String,
}

impl Daemon {
    fn start(folder: &Path, kind: &'static str, name: &str, port: u16, settings: &str) -> Self {
        let data = folder.join(format!("{name}-data"));
        let text = format!(
            "name = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\nadmin_listen = \"127.0.0.1:{}\"\n\
             data = \"{}\"\n{settings}",
            free_port(),
            data.display()
        );
        let file = write(folder, &format!("{name}.toml"), text).to_str().unwrap().to_owned();
        let mut running = Running::start(harvest([kind, "run", "-c", &file]));
        running.line_with("http://");
        Self { kind, file, running, url: format!("http://127.0.0.1:{port}/") }
    }

    /// Replaces `from` by `to` in the settings, and reloads them.
    fn change_settings(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.file).unwrap();
        assert!(text.contains(from));
        std::fs::write(&self.file, text.replace(from, to)).unwrap();
        self.running.signal("HUP");
    }

    fn status(&self) -> Value {
        let text = run_ok([self.kind, "status", "-c", &self.file, "--json"]);
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until the status satisfies `holds`, and returns it.
    fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(clock::monotonic() < end, "{status:#}");
        }
    }
}

fn url_of(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

fn root(folder: &Path) -> String {
    small_tree(&folder.join("tree"));
    format!("[[root]]\nurl = \"file://{}\"\n", folder.join("tree").display())
}

/// Returns the percentile of sorted times, by nearest rank.
fn rank(times: &[Duration], percent: usize) -> Duration {
    let at = (times.len() * percent).div_ceil(100).max(1) - 1;
    times[at]
}

#[allow(clippy::print_stdout, reason = "the times, shown with --nocapture")]
fn report(label: &str, times: &mut [Duration]) {
    times.sort();
    if !times.is_empty() {
        let (p50, p99, count) = (rank(times, 50), rank(times, 99), times.len());
        println!("{label}: {count} changes, from change to hit p50 {p50:.1?}, p99 {p99:.1?}");
    }
}

/// Starts a gatherer that is its own hub, and waits for the end of its first pass.
fn own_hub(folder: &Path) -> Daemon {
    let settings = format!("[push]\nhub = \"self\"\nallow_private = true\n{}", root(folder));
    let source = Daemon::start(folder, "gatherer", "source", free_port(), &settings);
    source.until(|it| it["progress"]["phase"] == "idle" && it["objects"] == 8);
    source
}

/// Starts a broker, and waits until it has the source's records and is subscribed at the hub.
fn subscribed_broker(folder: &Path, hub: &Daemon, port: u16, settings: &str) -> Daemon {
    let broker = Daemon::start(folder, "broker", "broker", port, settings);
    wait_for_total(&broker.url, "orchard", 1);
    broker.until(|it| it["sources"][0]["push"]["state"] == "active");
    hub.until(|it| it["push"]["subscriptions"] == 1);
    broker
}

/// Makes a change, and waits until the broker has it; returns the time that this took.
fn change(folder: &Path, broker: &Daemon, file: &str, word: &str) -> Duration {
    let page = format!("<html><head><title>{word}</title></head><body/></html>");
    write(folder, &format!("tree/new/{file}.html"), page);
    wait_for_total(&broker.url, word, 1)
}

/// Makes changes one after the other; returns the time of each.
fn changes(folder: &Path, broker: &Daemon, count: usize) -> Vec<Duration> {
    (0..count).map(|n| change(folder, broker, &format!("{n}"), &format!("quandong{n}"))).collect()
}

/// Starts a source, its hub, and a broker that gets its notifications through the lossy proxy. The
/// broker would pull by itself after a day.
fn chain(folder: &Path) -> ([Daemon; 3], u16, Arc<Proxy>) {
    let [source_port, hub_port, broker_port] = [free_port(), free_port(), free_port()];
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let seen_port = between.local_addr().unwrap().port();
    let proxy = lossy_proxy(between, broker_port);

    let settings = format!(
        "base_url = \"{0}\"\n[push]\npublishers = [\"{1}\"]\ntoken = \"a-token\"\nallow_private = true\n",
        url_of(hub_port),
        url_of(source_port)
    );
    let hub = Daemon::start(folder, "broker", "hub", hub_port, &settings);
    let settings = format!(
        "base_url = \"{}\"\n[push]\nhub = \"{}hub\"\ntoken = \"a-token\"\nallow_private = true\n{}",
        url_of(source_port),
        hub.url,
        root(folder)
    );
    let source = Daemon::start(folder, "gatherer", "source", source_port, &settings);
    let settings = format!(
        "base_url = \"{}\"\n[freshness]\npolicy = \"fixed\"\ninterval = \"{NEVER}\"\n\
         interval_min = \"100 ms\"\n[[source]]\nurl = \"{}\"\npush = true\n",
        url_of(seen_port),
        source.url
    );
    let broker = subscribed_broker(folder, &hub, broker_port, &settings);
    ([source, hub, broker], broker_port, proxy)
}

/// Checks that notifications without the secret are refused.
fn forge(broker_port: u16, path: &str) {
    let body = "00000000000000ff-7\n";
    let forged = signature::sign(&Secret::new("a guess").unwrap(), Method::Sha256, body.as_bytes());
    for header in [format!("X-Hub-Signature: {forged}\r\n"), String::new()] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{broker_port}\r\n{header}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let answer = ask_raw(broker_port, request.as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(answer.split(' ').nth(1), Some("403"), "{answer}");
    }
}

#[test]
fn with_every_second_notification_lost_every_change_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ([source, hub, broker], broker_port, proxy) = chain(folder);

    // The next pull by interval is a day away: changes are found by notifications.
    let mut notified = changes(folder, &broker, CHANGES);
    report("notified", &mut notified);
    assert_eq!(proxy.lost.load(Ordering::SeqCst), 0);

    broker.change_settings(NEVER, SAFETY);
    broker.until(|it| it["sources"][0]["interval_seconds"] == 2.0);
    *proxy.loss.lock().unwrap() = Loss::EverySecond;
    let mut lost = Vec::new();
    for n in 0..CHANGES {
        let before = proxy.forwarded.load(Ordering::SeqCst);
        let took = change(folder, &broker, &format!("later{n}"), &format!("muntari{n}"));
        if before == proxy.forwarded.load(Ordering::SeqCst) {
            lost.push(took);
        }
    }
    assert!(0 < proxy.lost.load(Ordering::SeqCst));
    report("found by the safety poll", &mut lost);

    // With all notifications lost, changes and deletions are still found.
    *proxy.loss.lock().unwrap() = Loss::All;
    let before = proxy.forwarded.load(Ordering::SeqCst);
    write(folder, "tree/new/0.html", "<html><title>Muntries</title></html>");
    std::fs::remove_file(folder.join("tree/new/1.html")).unwrap();
    wait_for_total(&broker.url, "muntries", 1);
    wait_for_total(&broker.url, "quandong1", 0);
    assert_eq!(total(&broker.url, "quandong0"), 0);
    assert_eq!(proxy.forwarded.load(Ordering::SeqCst), before);

    forge(broker_port, &proxy.path.lock().unwrap().clone());
    let status = broker.status();
    let pushing = &status["sources"][0]["push"];
    assert_eq!((&pushing["forged"], &pushing["unsigned"]), (&1.into(), &1.into()), "{pushing}");
    assert_eq!(pushing["notices"], before, "{pushing}");
    for mut daemon in [source, hub, broker] {
        assert!(daemon.running.stop("TERM").success());
    }
}

/// A repository that is harvested with OAI-PMH sends notifications once it lists its changes.
#[test]
fn a_repository_is_harvested_at_its_notification() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = own_hub(folder);
    let settings = format!(
        "[freshness]\npolicy = \"fixed\"\ninterval = \"{NEVER}\"\ninterval_min = \"100 ms\"\n\
         [[source]]\nkind = \"oai\"\nurl = \"{}oai\"\npush = true\n",
        source.url
    );
    let mut broker = subscribed_broker(folder, &source, free_port(), &settings);
    report("harvested", &mut changes(folder, &broker, 3));
    assert!(broker.running.stop("TERM").success());
}

/// The library `resync` from PyPI reads our ResourceSync documents.
#[test]
fn a_foreign_client_follows_resources_and_changes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Only objects with a web address are listed.
    let directory = folder.join("tree");
    let (root, prefix) = (root(folder), "http://library.example/");
    let directory = directory.display();
    let text = format!("{root}[[map]]\nurl_prefix = \"{prefix}\"\ndirectory = \"{directory}\"\n");
    let source = Daemon::start(folder, "gatherer", "source", free_port(), &text);
    source.until(|it| it["progress"]["phase"] == "idle" && it["objects"] == 8);
    let changed = write(folder, "tree/notes.txt", "Minutes of another meeting.\n");
    std::fs::remove_file(folder.join("tree/refs.bib")).unwrap();
    source.until(|it| it["objects"] == 6);
    let digest = Command::new("md5sum").arg(&changed).output().unwrap().stdout;
    let digest = String::from_utf8(digest).unwrap();
    let digest = digest.split(' ').next().unwrap();

    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers = home.join("tests/oai_peers");
    assert!(Command::new(peers.join("prepare")).arg("venv").status().unwrap().success());
    let mut peer = Command::new(home.join("target/oai/venv/bin/python"));
    peer.arg(peers.join("resync_reader.py")).arg(&source.url);
    let end = clock::monotonic() + PATIENCE;
    let read = loop {
        let output = peer.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let read: Value = serde_json::from_str(&text).unwrap();
        // The two changes may appear one after the other.
        if read["resources"].to_string().contains(digest) {
            break read;
        }
        assert!(clock::monotonic() < end, "{read:#}");
    };
    let resources = read["resources"].as_object().unwrap();
    assert_eq!(resources.len(), 6, "{read:#}");
    assert!(resources.iter().any(|(url, md5)| url.ends_with("/notes.txt") && md5 == digest));
    let changes = read["changes"].as_array().unwrap();
    let of = |name: &str| -> Vec<&str> {
        let named = changes.iter().filter(|it| it[0].as_str().unwrap().ends_with(name));
        named.map(|it| it[1].as_str().unwrap()).collect()
    };
    assert_eq!(of("/notes.txt"), ["updated", "updated"], "{read:#}");
    assert_eq!(of("/refs.bib"), ["updated", "deleted"], "{read:#}");
    assert!(changes.is_sorted_by_key(|it| it[2].as_str()), "oldest first: {read:#}");
}
