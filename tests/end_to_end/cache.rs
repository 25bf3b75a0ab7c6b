//! Tests of the object cache as a process: what it has stored is there again after any stop.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use net::clock;

use crate::harness::{PATIENCE, Running, harvest, run, run_ok, texts, write};

/// An origin that counts the requests for each path.
struct Origin {
    base: String,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Returns the body at a path; its length differs from path to path.
fn body(path: &str) -> String {
    let number: usize = path.trim_start_matches("/o").parse().unwrap();
    // One is too long for memory.
    let count = if number == 100 { 700_000 } else { 1 + number * 37 % 4_000 };
    format!("{path} ").repeat(count)
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
    let body = body(&path);
    let head =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nConnection: close\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len())
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

    /// Waits until so many objects are on disk.
    fn has(&self, count: u64) {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = run_ok(["cache", "status", "--json", "-c", text(&self.settings)]);
            let status: serde_json::Value = serde_json::from_str(&status).unwrap();
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
    let admin = crate::daemons::free_port();
    let text = format!(
        "listen = '127.0.0.1:0'\nadmin_listen = '127.0.0.1:{admin}'\ndata = 'data'\nname = 'c'\n\
         memory_bytes = '1 MiB'\ndisk_bytes = '64 MiB'\naccess_log = 'access.log'\n[access]\nallow_private = true\n"
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
