//! Tests of the object cache as a process and of its commands: what it has stored is there again after any
//! stop.

mod gathering;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use net::clock;
use net::server::{Limits, bind};
use net::shutdown::Shutdown;

use crate::certificates::Authority;
use crate::harness::{PATIENCE, Running, harvest, run, run_ok, texts, write};

/// An origin that counts the requests for each path.
struct Origin {
    base: String,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Returns the body at a path; its length differs from path to path.
fn body(path: &str) -> String {
    page(path).unwrap()
}

/// Returns the page at a path, if there is one.
fn page(path: &str) -> Option<String> {
    if path == "/" {
        return Some(
            "<title>All</title><a href=o1>1</a> <a href=o2>2</a> <a href=o3>3</a>".to_owned(),
        );
    }
    let number: usize = path.strip_prefix("/o")?.parse().ok()?;
    // One is too long for memory.
    let count = if number == 100 { 700_000 } else { 1 + number * 37 % 4_000 };
    Some(format!("{path} ").repeat(count))
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let counted = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                // A client that was killed leaves in the middle.
                thread::spawn(move || stream.and_then(|it| serve(it, &counted)));
            }
        });
        Self { base, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<BTreeMap<String, usize>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut path = String::new();
    for line in reader.by_ref().lines() {
        let line = line?;
        if path.is_empty() {
            line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
        }
        if line.is_empty() {
            break;
        }
    }
    *asked.lock().unwrap().entry(path.clone()).or_default() += 1;
    let (status, body) = page(&path).map_or(("404 Not Found", String::new()), |it| ("200 OK", it));
    let head = format!(
        "HTTP/1.1 {status}\r\nCache-Control: max-age=3600\r\nContent-Type: text/html\r\n\
         Connection: close\r\nContent-Length: {}",
        body.len()
    );
    write!(stream, "{head}\r\n\r\n{body}")
}

struct Cache {
    settings: PathBuf,
    running: Running,
    proxy: String,
}

impl Cache {
    fn start(folder: &Path) -> Self {
        let settings = folder.join("cache.toml");
        let mut running = Running::start(harvest(["cache", "run", "-c", text(&settings)]));
        let line = running.line_with("use http://");
        let proxy = line.split("use http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self { settings, running, proxy }
    }

    /// Fetches a path of the origin; returns how the answer came about.
    fn get(&self, origin: &Origin, path: &str) -> String {
        get(&self.proxy, origin, path).unwrap()
    }

    fn status(&self) -> serde_json::Value {
        let status = run_ok(["cache", "status", "--json", "-c", text(&self.settings)]);
        serde_json::from_str(&status).unwrap()
    }

    /// Waits until so many objects are on disk.
    fn has(&self, count: u64) {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = self.status();
            if status["disk_objects"] == count {
                return;
            }
            assert!(clock::monotonic() < end, "{status:#}");
        }
    }
}

/// Fetches a path of the origin through a cache; returns how the answer came about. `None`: the cache is
/// gone.
fn get(proxy: &str, origin: &Origin, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(proxy).ok()?;
    let request =
        format!("GET {}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", origin.base);
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, came) = answer.split_once("\r\n\r\n")?;
    if !head.contains(&format!("content-length: {}", came.len())) {
        return None;
    }
    assert!(head.starts_with("HTTP/1.1 200 ") && came == body(path), "a wrong answer: {head}");
    let how = head.lines().find_map(|it| it.strip_prefix("cache-status: "));
    Some(how.unwrap().to_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn settings(folder: &Path) {
    settings_with(folder, "disk_bytes = '64 MiB'\nlisten = '127.0.0.1:0'", "");
}

/// Writes settings with these lines at the top, and these in `[access]` or after it.
fn settings_with(folder: &Path, top: &str, access: &str) {
    let admin = crate::daemons::free_port();
    let text = format!(
        "{top}\nadmin_listen = '127.0.0.1:{admin}'\ndata = 'data'\nname = 'c'\n\
         memory_bytes = '1 MiB'\naccess_log = 'access.log'\n[access]\nallow_private = true\n{access}\n"
    );
    write(folder, "cache.toml", text);
}

#[test]
fn what_was_stored_is_there_after_a_stop_and_after_a_kill() {
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    settings(folder.path());
    let paths: Vec<String> = (0..200).map(|it| format!("/o{it}")).collect();
    let mut cache = Cache::start(folder.path());
    for path in &paths {
        assert!(cache.get(&origin, path).contains("fwd=uri-miss"));
    }
    assert!(cache.running.stop("TERM").success());
    let mut cache = Cache::start(folder.path());
    for path in &paths {
        assert!(cache.get(&origin, path).contains("; hit"), "{path}");
    }
    assert_eq!(origin.asked(), paths.len());
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert_eq!(log.matches(" TCP_MISS/200 ").count(), paths.len(), "as it was before the stop");
    let one = format!("{}/o7", origin.base);
    let explained = run_ok(["cache", "explain", "-c", text(&cache.settings), &one]);
    assert!(explained.contains("good for 3600 s by max-age"), "{explained}");
    let purged = run_ok(["cache", "purge", "-c", text(&cache.settings), &one]);
    assert!(purged.contains("1 object removed"), "{purged}");
    let more: Vec<String> = (200..300).map(|it| format!("/o{it}")).collect();
    for path in &more {
        cache.get(&origin, path);
    }
    cache.has(299);
    // It is killed while objects come.
    let (proxy, base) = (cache.proxy.clone(), &origin);
    let killing = thread::scope(|scope| {
        let busy = scope.spawn(move || {
            let busy = (1_000..100_000).map(|it| format!("/o{it}"));
            busy.take_while(|path| get(&proxy, base, path).is_some()).count()
        });
        while origin.asked() < 350 {
            thread::yield_now();
        }
        cache.running.signal("KILL");
        busy.join().unwrap()
    });
    assert!(0 < killing);
    cache.running.stop("KILL");
    let cache = Cache::start(folder.path());
    let before = origin.asked();
    for path in paths.iter().chain(&more) {
        let how = cache.get(&origin, path);
        assert_eq!(how.contains("; hit"), path != "/o7", "{path}: {how}");
    }
    assert_eq!(origin.asked(), before + 1, "what was purged alone");
}

#[test]
fn what_a_cache_does_is_told_and_what_it_has_is_listed_and_removed() {
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    settings(folder.path());
    let cache = Cache::start(folder.path());
    for path in ["/o1", "/o2", "/o3", "/o4", "/o4", "/o4"] {
        cache.get(&origin, path);
    }
    let of = |command, more: &[&'static str]| {
        let mut args = vec!["cache", command, "-c", text(&cache.settings)];
        args.extend(more);
        run(args)
    };
    let told = |command, more: &[&'static str]| {
        let (out, err) = texts(&of(command, more));
        assert!(!out.is_empty(), "{err}");
        out
    };
    let top = told("top", &[]);
    let line = |end: &str| {
        let line = top.lines().find(|it| it.ends_with(end)).unwrap_or_else(|| panic!("{top}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("/o4")[0], "3", "{top}");
    let host = origin.base.trim_start_matches("http://");
    assert_eq!(line(host)[2..4], ["4", "0"], "{top}");
    assert!(top.contains("33.3 %") && top.contains("in memory ("), "{top}");
    let json: serde_json::Value = serde_json::from_str(&told("top", &["--json"])).unwrap();
    assert_eq!(json["lately"][3]["hits"], 2, "{json:#}");

    let listed = told("objects", &["--match", "/o[1-3]$"]);
    let urls: Vec<_> = listed.lines().filter_map(|it| it.split("http://").nth(1)).collect();
    assert_eq!(urls, ["/o1", "/o2", "/o3"].map(|it| format!("{host}{it}")), "{listed}");
    assert!(listed.contains("memory") && listed.contains("60 minutes"), "{listed}");
    let (out, err) = texts(&of("objects", &["--limit", "2", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((json["objects"].as_array().unwrap().len(), &json["is_cut"]), (2, &true.into()));
    assert!(err.contains("raise --limit"), "{err}");
    assert!(told("purge", &["--match", "/o[1-3]$"]).contains("3 objects removed"));
    assert_eq!(told("objects", &[]).matches("http://").count(), 1);
    for (command, more, expected) in [
        ("purge", &["--match", "("][..], "is no regular expression"),
        ("purge", &["--match", ".", "http://h/"], "cannot be used with"),
        ("purge", &[], "<URL|--match <PATTERN>>"),
        ("objects", &["--limit", "0"], "1..=100000"),
    ] {
        let output = of(command, more);
        let (_, err) = texts(&output);
        assert!(!output.status.success() && err.contains(expected), "{command}: {err}");
    }
}

#[test]
fn a_kill_costs_what_came_in_the_last_seconds_at_most() {
    const SAFE_AFTER: Duration = Duration::from_secs(5);
    const LOST_BYTES_MAX: usize = 64 << 20;
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    settings_with(folder.path(), "disk_bytes = '2 GiB'\nlisten = '127.0.0.1:0'", "");
    let mut cache = Cache::start(folder.path());
    let lasting = SAFE_AFTER + Duration::from_millis(fastrand::u64(500..3_000));
    let (end, killed) = (clock::monotonic() + lasting, AtomicBool::new(false));
    // Two clients fetch what nobody has asked for, until the cache is killed.
    let fetched: Vec<(String, Instant)> = thread::scope(|scope| {
        let (proxy, origin, killed) = (cache.proxy.as_str(), &origin, &killed);
        let fetching = |from: usize| {
            scope.spawn(move || {
                let paths = (from..).step_by(2).map(|it| format!("/o{it}"));
                let fetched = paths.map_while(|path| {
                    get(proxy, origin, &path).map(|_| (path, clock::monotonic()))
                });
                let all: Vec<_> = fetched.collect();
                assert!(killed.load(Ordering::SeqCst), "it ended too early");
                all
            })
        };
        let clients = [fetching(1_000), fetching(1_001)];
        #[expect(clippy::disallowed_methods, reason = "objects become older than five seconds")]
        thread::sleep(end.saturating_duration_since(clock::monotonic()));
        killed.store(true, Ordering::SeqCst);
        cache.running.stop("KILL");
        clients.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let killed_at = clock::monotonic();
    let cache = Cache::start(folder.path());
    let (mut lost, mut old) = (Vec::new(), 0);
    for (path, at) in &fetched {
        let is_old = SAFE_AFTER < killed_at.duration_since(*at);
        old += usize::from(is_old);
        if !cache.get(&origin, path).contains("; hit") {
            assert!(
                !is_old,
                "{path} is lost, which came {:?} before",
                killed_at.duration_since(*at)
            );
            lost.push(path);
        }
    }
    let bytes: usize = lost.iter().map(|it| body(it).len()).sum();
    println!(
        "{} objects came, {old} of them long before; {} are lost: {bytes} bytes",
        fetched.len(),
        lost.len()
    );
    assert!(0 < old && old < fetched.len() && bytes <= LOST_BYTES_MAX, "{bytes} bytes are lost");
}

/// Serves a page over TLS until the value is dropped.
struct Secure {
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Secure {
    fn start(authority: &Authority, folder: &Path) -> Self {
        let (certificate, key) = authority.write(folder, "origin", &["localhost"]);
        let files = net::tls::ServerFiles { certificate, key, client_ca: None };
        let limits =
            Limits { tls: Some(net::tls::Server::open(files).unwrap()), ..Limits::default() };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(bind("127.0.0.1:0".parse().unwrap())).unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let service = tower::service_fn(|request: http::Request<net::body::Body>| {
            let is_there = request.uri().path() == "/page";
            let response = http::Response::builder()
                .status(if is_there { 200 } else { 404 })
                .header("cache-control", "max-age=3600")
                .body(net::body::full("a page\n"));
            std::future::ready(Ok::<_, std::convert::Infallible>(response.unwrap()))
        });
        runtime.spawn(net::server::serve(listener, service, limits, Shutdown::new()));
        Self { url, _runtime: runtime }
    }
}

#[test]
fn an_object_is_got_by_http_and_https_and_kept() {
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    let authority = Authority::new("of the web");
    write(folder.path(), "ca.pem", &authority.pem);
    let (secure, port) = (Secure::start(&authority, folder.path()), crate::daemons::free_port());
    authority.write(folder.path(), "cache", &["localhost"]);
    let plain = format!("listen = '127.0.0.1:{port}'");
    let secret = format!("{plain}\nbase_url = 'https://localhost:{port}/'");
    let files = "[tls]\ntrust = 'ca.pem'";
    for (top, tls) in [
        (plain, files.to_owned()),
        // Clients speak TLS to it, too.
        (secret, format!("{files}\ncertificate = 'cache.pem'\nkey = 'cache.key'")),
    ] {
        settings_with(folder.path(), &top, &tls);
        let settings = folder.path().join("cache.toml");
        let checked = run_ok(["cache", "check", "-c", text(&settings)]);
        assert!(checked.contains("no mistakes"), "{checked}");
        let mut running = Running::start(harvest(["cache", "run", "-c", text(&settings)]));
        running.line_with("cache runs");
        let got = |url: &str| {
            let output = run(["cache", "get", "-c", text(&settings), url]);
            let (out, err) = texts(&output);
            (output.status.success(), out, err)
        };
        let pages = [format!("{}/o7", origin.base), format!("{}/page", secure.url)];
        let bodies = [body("/o7"), "a page\n".to_owned()];
        for (url, expected) in pages.iter().zip(bodies) {
            for how in ["fwd=uri-miss; fwd-status=200; stored", "hit; ttl="] {
                let (is_ok, out, err) = got(url);
                assert!(is_ok && out == expected, "{url}: {err}");
                assert!(err.contains(&format!("cache-status: \"c\"; {how}")), "{url}: {err}");
            }
            run_ok(["cache", "purge", "-c", text(&settings), url]);
        }
        let (is_ok, out, err) = got(&format!("{}/nothing", secure.url));
        assert!(!is_ok && out.is_empty() && err.contains("404"), "{out} {err}");
        running.stop("TERM");
    }
}

#[test]
fn mistakes_are_named_and_new_settings_hold_at_once() {
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    let wrong = write(
        folder.path(),
        "wrong.toml",
        "memory_bytes = '1 B'\n[access]\ndestinations = ['*.a']\n",
    );
    let output = run(["cache", "check", "-c", text(&wrong)]);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    for place in ["wrong.toml:1:", "wrong.toml:3:"] {
        assert!(err.contains(place), "{place}: {err}");
    }

    settings(folder.path());
    let mut cache = Cache::start(folder.path());
    cache.get(&origin, "/o1");
    let got = || {
        let mut stream = TcpStream::connect(&cache.proxy).unwrap();
        let text =
            format!("GET {}/o1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", origin.base);
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(got().starts_with("HTTP/1.1 200 "));
    let before = std::fs::read_to_string(&cache.settings).unwrap();
    write(folder.path(), "cache.toml", format!("{before}destinations = ['example.org']\n"));
    cache.running.signal("HUP");
    cache.running.line_with("settings read again");
    let refused = got();
    assert!(
        refused.starts_with("HTTP/1.1 403 ") && refused.contains("`destinations`"),
        "{refused}"
    );
    // With a mistake in them, those that hold stay.
    write(folder.path(), "cache.toml", format!("{before}destinations = 7\n"));
    cache.running.signal("HUP");
    cache.running.line_with("the old settings stay");
    assert!(got().starts_with("HTTP/1.1 403 "));
    write(folder.path(), "cache.toml", before);
    cache.running.signal("HUP");
    cache.running.line_with("settings read again");
    assert!(got().starts_with("HTTP/1.1 200 "));
}

#[test]
fn without_settings_a_cache_serves_this_machine_at_its_default_ports() {
    // In a network of its own, where nobody else has the ports.
    let script = "ip link set lo up && \"$0\" cache run & pid=$!\n\
                  until \"$0\" cache status >/dev/null 2>&1; do kill -0 $pid || exit 1; done\n\
                  \"$0\" cache status; cat /proc/net/tcp; ls \"$XDG_DATA_HOME/harvest/cache\"\n\
                  kill $pid; wait $pid\n";
    let data = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("unshare")
        .args(["-rn", "sh", "-c", script, env!("CARGO_BIN_EXE_harvest")])
        .env("XDG_DATA_HOME", data.path())
        .output()
        .expect("it needs unshare: apt-get install util-linux");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out} {err}");
    assert!(
        out.contains(" URLs in memory") && err.contains("use http://127.0.0.1:3128"),
        "{out} {err}"
    );
    // Addresses that are listened at, as the system writes them.
    for address in ["0100007F:0C38", "0100007F:1020"] {
        assert!(out.contains(&format!("{address} 00000000:0000 0A")), "{out}");
    }
    assert_eq!(out.matches(" 00000000:0000 0A ").count(), 2, "nothing else is open: {out}");
    assert!(out.contains("objects") && out.contains("admin.token"), "{out}");
}
