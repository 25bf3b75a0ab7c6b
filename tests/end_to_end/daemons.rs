//! Tests of `harvest gatherer` and `harvest broker` as an institution runs them: two processes, two
//! settings files, signals, status, administration.

mod cascade;
mod community;
mod registry;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use net::clock;

use crate::harness::{
    PATIENCE, Running, ask, harvest, run, run_ok, small_tree, texts, total, wait_for_total, write,
};

pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    gatherer: Running,
    pub(crate) gatherer_url: String,
}

/// Starts a gatherer over the small tree, on a free port, and waits for the end of its first pass:
/// a broker without `follow` gets everything with its first pull.
pub(crate) fn gatherer_site() -> Site {
    let folder = tempfile::tempdir().unwrap();
    small_tree(&folder.path().join("tree"));
    let settings = gatherer_settings(folder.path(), "http://www.example.org/docs/");
    let file = write(folder.path(), "gatherer.toml", settings);
    let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", file.to_str().unwrap()]));
    let gatherer_url = url_in(&gatherer.line_with("http://"));
    let first = format!("{gatherer_url}object?oid=http://www.example.org/docs/site/index.html");
    let began = clock::monotonic();
    while ask("GET", &first, &[]).0 != 200 {
        assert!(began.elapsed() < PATIENCE, "{first} is not there");
    }
    Site { folder, gatherer, gatherer_url }
}

pub(crate) fn gatherer_settings(folder: &Path, prefix: &str) -> String {
    let tree = folder.join("tree");
    format!(
        "name = \"Orchard\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:{}\"\ndata = \"{}\"\n\n\
         [[root]]\nurl = \"file://{}\"\n\n[[map]]\nurl_prefix = \"{prefix}\"\ndirectory = \"{}\"\n",
        free_port(),
        folder.join("gatherer-data").display(),
        tree.display(),
        tree.display(),
    )
}

pub(crate) fn broker_settings(folder: &Path, sources: &[(&str, bool)]) -> String {
    let mut text = format!(
        "name = \"Fruit\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:{}\"\ndata = \"{}\"\n\n\
         [freshness]\npolicy = \"oap\"\ntheta = 0.9\n",
        free_port(),
        folder.join("broker-data").display()
    );
    for (url, follow) in sources {
        text.push_str(&format!(
            "\n[[source]]\nkind = \"gatherer\"\nurl = \"{url}\"\nfollow = {follow}\n"
        ));
    }
    text
}

/// Returns a port that was free a moment ago. Commands find a daemon by its settings file, so its
/// admin listener needs a fixed port. The port is below those that the system assigns by itself,
/// and no other test of this run gets it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other runs at the same time begin with other ports.
    let first = 10_000 + std::process::id() % 20_000;
    loop {
        let port = u16::try_from(first).unwrap() + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn url_in(line: &str) -> String {
    let word = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    word.trim_end_matches([',', ';', '.']).to_owned()
}

#[test]
fn gatherer_and_broker_meet_over_http() {
    let mut site = gatherer_site();
    let file = write(
        site.folder.path(),
        "broker.toml",
        broker_settings(site.folder.path(), &[(&site.gatherer_url, true)]),
    );
    let file = file.to_str().unwrap();
    let mut broker = Running::start(harvest(["broker", "run", "-c", file]));
    let page = broker.search_url();
    let took = wait_for_total(&page, "orchard", 1);
    println!("found after {took:?}");
    let answer = crate::harness::search(&page, "orchard");
    assert_eq!(answer["hits"][0]["url"], "http://www.example.org/docs/site/index.html");
    assert_eq!(answer["hits"][0]["gatherer"], "Orchard");

    // The stream is readable with gunzip, by anybody.
    let (status, head, body) = ask("GET", &format!("{}feed?since=0", site.gatherer_url), &[]);
    assert_eq!(status, 303, "an unknown epoch means a snapshot: {head}");
    assert!(body.len() < 1_000);
    let location = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("location:").map(|_| line[9..].trim().to_owned())
        })
        .unwrap();
    let base = site.gatherer_url.trim_end_matches('/');
    let snapshot = if location.starts_with("http") {
        location
    } else {
        format!("{base}/{}", location.trim_start_matches('/'))
    };
    let (status, head, mut body) = ask("GET", &snapshot, &[]);
    assert_eq!(status, 200, "{head}");
    assert!(!head.to_ascii_lowercase().contains("content-encoding"), "{head}");
    // The broker may have caused the snapshot before all was gathered: a delta has the rest.
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, it)| it.trim()).next()
    };
    let (epoch, to) = (header("harvest-epoch").unwrap(), header("harvest-to").unwrap());
    let delta = format!("{}feed?since={to}&epoch={epoch}", site.gatherer_url);
    let (status, _, rest) = ask("GET", &delta, &[]);
    assert_eq!(status, 200);
    body.extend(rest);
    let mut plain = String::new();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(&body[..]), &mut plain)
        .unwrap();
    assert!(plain.contains("@UPDATE {") && plain.contains("Orchard keeping"), "{plain}");

    // Both daemons report status and health.
    let json = run_ok(["broker", "status", "-c", file, "--json"]);
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["sources"].as_array().unwrap().len(), 1, "{json}");
    let (code, _, _) = ask("GET", &format!("{}healthz", page), &[]);
    assert_eq!(code, 200);
    let settings = site.folder.path().join("gatherer.toml");
    let text = run_ok(["gatherer", "status", "-c", settings.to_str().unwrap()]);
    assert!(text.contains("Orchard"), "{text}");

    assert!(broker.stop("TERM").success());
    assert!(site.gatherer.stop("TERM").success());
}

#[test]
fn the_last_word_of_a_long_text_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Fifteen mebibytes of long words.
    let text = format!("{}\nquincunx\n", ("abcdefgh".repeat(8) + "\n").repeat(15 << 14));
    write(&path.join("tree"), "long.txt", text);
    let settings = gatherer_settings(path, "http://www.example.org/docs/");
    let settings = write(path, "gatherer.toml", format!("full_text = [\"all\"]\n{settings}"));
    let settings = settings.to_str().unwrap();
    let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", settings]));
    let url = url_in(&gatherer.line_with("http://"));
    let settings = write(path, "broker.toml", broker_settings(path, &[(&url, true)]));
    let mut broker = Running::start(harvest(["broker", "run", "-c", settings.to_str().unwrap()]));
    let (page, began) = (broker.search_url(), clock::monotonic());
    while total(&page, "quincunx") == 0 {
        assert!(began.elapsed() < PATIENCE, "the last word is not found");
    }
    assert!(broker.stop("TERM").success());
    assert!(gatherer.stop("TERM").success());
}

#[test]
fn a_daemon_raises_its_limit_of_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "broker.toml", broker_settings(folder.path(), &[]));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -Sn 256; exec \"$0\" broker run -c \"$1\""]);
    shell.arg(env!("CARGO_BIN_EXE_harvest")).arg(&file);
    let mut broker = Running::start(shell);
    broker.search_url();
    let limits = fs::read_to_string(format!("/proc/{}/limits", broker.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    assert!(256 < numbers[0], "{line}");
    assert!(broker.stop("TERM").success());
}

#[test]
fn a_broker_without_follow_pulls_by_its_schedule() {
    let site = gatherer_site();
    let file = write(
        site.folder.path(),
        "broker.toml",
        broker_settings(site.folder.path(), &[(&site.gatherer_url, false)]),
    );
    let file = file.to_str().unwrap();
    let mut broker = Running::start(harvest(["broker", "run", "-c", file]));
    let page = broker.search_url();
    wait_for_total(&page, "orchard", 1);

    // A change at the source waits for the next pull; an administrator can start one now.
    write(&site.folder.path().join("tree"), "late.txt", "a late greengage\n");
    assert_eq!(run_ok(["broker", "pull", "-c", file]), "1 source is pulled now\n");
    let json: serde_json::Value =
        serde_json::from_str(&run_ok(["broker", "pull", "-c", file, "--json"])).unwrap();
    assert_eq!(json, serde_json::json!({ "due": 1 }));
    assert_eq!(run_ok(["broker", "confirm", "-c", file]), "0 objects expired\n");
    let output = run(["broker", "pull", "-c", file, "nobody"]);
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("no source is named nobody"), "{err}");
    let gatherer = site.folder.path().join("gatherer.toml");
    let gatherer = gatherer.to_str().unwrap();
    assert_eq!(run_ok(["gatherer", "gather", "-c", gatherer]), "all roots are gathered now\n");
    let asked = clock::monotonic();
    while total(&page, "greengage") == 0 {
        run_ok(["broker", "pull", "-c", file]);
        assert!(
            asked.elapsed() < PATIENCE,
            "a pull on request has not brought the change:\n{}\n{}",
            run_ok(["gatherer", "status", "-c", gatherer, "--json"]),
            run_ok(["broker", "status", "-c", file, "--json"]),
        );
    }
    assert!(broker.stop("TERM").success());
}

#[test]
fn all_mistakes_in_settings_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "broker.toml",
        "name = 7\nlisten = \"nowhere\"\n\n[[source]]\nkind = \"gopher\"\nurl = \"http://a b/\"\n\n[freshness]\ntheta = 1.5\nthetta = 0.9\n",
    );
    let output = run(["broker", "check", "-c", file.to_str().unwrap()]);
    let (out, err) = texts(&output);
    let all = format!("{out}{err}");
    assert!(!output.status.success(), "{all}");
    for line in [
        "broker.toml:1:",
        "broker.toml:2:",
        "broker.toml:5:",
        "broker.toml:6:",
        "broker.toml:9:",
        "broker.toml:10:",
    ] {
        assert!(all.contains(line), "{line} is missing in:\n{all}");
    }
    assert!(all.contains("theta"), "{all}");

    let missing = folder.path().join("none.toml");
    let output = run(["gatherer", "check", "-c", missing.to_str().unwrap()]);
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("none.toml"), "{err}");
}

#[test]
fn a_reload_takes_correct_settings_and_refuses_wrong_ones() {
    let mut site = gatherer_site();
    let settings = site.folder.path().join("gatherer.toml");
    let good = fs::read_to_string(&settings).unwrap();

    fs::write(&settings, good.replace("[[root]]", "[[rooot]]")).unwrap();
    site.gatherer.signal("HUP");
    let line = site.gatherer.line_with("rooot");
    assert!(line.contains("gatherer.toml") || line.contains("settings"), "{line}");
    let (code, _, _) = ask("GET", &format!("{}healthz", site.gatherer_url), &[]);
    assert_eq!(code, 200, "the old settings stay");

    let more = write(&site.folder.path().join("more"), "plum.txt", "a plum\n");
    let root = format!("{good}\n[[root]]\nurl = \"file://{}\"\n", more.parent().unwrap().display());
    fs::write(&settings, root).unwrap();
    site.gatherer.signal("HUP");
    site.gatherer.line_with("settings read again");
    let file = write(
        site.folder.path(),
        "broker.toml",
        broker_settings(site.folder.path(), &[(&site.gatherer_url, true)]),
    );
    let mut broker = Running::start(harvest(["broker", "run", "-c", file.to_str().unwrap()]));
    let page = broker.search_url();
    wait_for_total(&page, "plum", 1);
    assert!(broker.stop("TERM").success());
    assert!(site.gatherer.stop("TERM").success());
}

#[test]
fn a_daemon_that_is_still_opening_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    small_tree(&tree);
    let gatherer = write(
        folder.path(),
        "gatherer.toml",
        gatherer_settings(folder.path(), "http://www.example.org/docs/"),
    );
    let broker = write(folder.path(), "broker.toml", broker_settings(folder.path(), &[]));
    let (gatherer, broker) = (gatherer.to_str().unwrap(), broker.to_str().unwrap());
    let data = folder.path().join("up");
    let up = ["up", "--no-open", tree.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let commands: [(&[&str], &Path); 3] = [
        (&["gatherer", "run", "-c", gatherer], &folder.path().join("gatherer-data")),
        (&["broker", "run", "-c", broker], &folder.path().join("broker-data")),
        (&up, &data.join("gatherer")),
    ];
    for (command, data) in commands {
        // Opening waits until the id is written, as it would wait for a long repair.
        let id = data.join("id");
        fs::create_dir_all(data).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&id).status().unwrap().success());
        let mut running = Running::start(harvest(command));
        // The pipe opens as soon as the daemon reads it; by then the daemon handles signals.
        let (sender, opened) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(fs::OpenOptions::new().write(true).open(&id)));
        let writer = opened.recv_timeout(PATIENCE).unwrap().unwrap();
        assert!(running.stop("TERM").success(), "{command:?}");
        drop(writer);
    }
}
