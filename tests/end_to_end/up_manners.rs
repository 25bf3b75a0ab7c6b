//! Tests of what `harvest up` says, and when: its address, progress, problems, and refusals.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::harness::{
    PATIENCE, Running, ask, harvest, run, run_ok, search, texts, total, wait_for_total, write,
};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// Number of files that are not gathered in one commit.
const FILES: u64 = 3_000;

fn page(url: &str) -> String {
    let (status, head, body) = ask("GET", url, &[]);
    assert_eq!(status, 200, "{head}");
    String::from_utf8_lossy(&body).into_owned()
}

#[test]
fn the_page_answers_at_once_and_says_that_more_will_come() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "a.txt", "aubergine\n");
    // A repository that never answers: gathering does not end.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let repository = format!("http://{}/oai", silent.local_addr().unwrap());
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data.path()).arg(tree.path()).arg(repository);
    let mut running = Running::start(command);
    let url = running.search_url();
    wait_for_total(&url, "aubergine", 1);
    for path in ["", "?q=aubergine"] {
        let html = page(&format!("{url}{path}"));
        assert!(html.contains(r#"role="status">Still gathering</p>"#), "{html}");
        assert!(!html.contains("<script"), "{html}");
    }
    assert_eq!(search(&url, "aubergine")["activity"], "still gathering");
    for format in [None, Some("--json")] {
        let asked = ["search", "aubergine", "--broker", &url].into_iter().chain(format);
        let output = run(asked);
        let (out, err) = texts(&output);
        assert!(output.status.success() && !out.contains("note:"), "{out}{err}");
        assert_eq!(err, "note: still gathering; search again later to find the rest\n");
    }
    assert!(running.stop("INT").success());

    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "a.txt", "aubergine\n");
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data.path()).arg(tree.path());
    let mut running = Running::start(command);
    let url = running.gathered_url();
    let html = page(&url);
    assert!(!html.to_lowercase().contains("still "), "{html}");
    assert_eq!(search(&url, "aubergine").get("activity"), None);
    let (_, err) = texts(&run(["search", "aubergine", "--broker", &url]));
    assert_eq!(err, "");
    assert!(running.stop("INT").success());
}

/// Returns the number in a text such as `still gathering, 43 %`; `None` if it names none.
fn percent(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("till gathering, ")?;
    rest.split_once(" %").map(|it| it.0.parse().unwrap())
}

#[test]
fn how_much_is_gathered_is_said_until_all_is() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..FILES {
        write(tree.path(), &format!("{}/{number}.txt", number % 20), format!("apple {number}\n"));
    }
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data.path()).arg(tree.path());
    let mut running = Running::start(command);
    let url = running.search_url();
    let (mut answered, mut on_page) = (Vec::new(), Vec::new());
    let start = net::clock::monotonic();
    while let Some(activity) = search(&url, "apple")["activity"].as_str() {
        answered.extend(percent(activity));
        on_page.extend(percent(&page(&url)));
        assert!(start.elapsed() < PATIENCE, "{activity}");
    }
    for seen in [&answered, &on_page] {
        assert!(seen.is_sorted() && seen.iter().any(|it| (1..100).contains(it)), "{seen:?}");
    }
    assert_eq!(total(&url, "apple"), FILES);
    assert!(running.stop("INT").success());
}

#[test]
fn of_very_many_problems_the_newest_are_listed_and_all_are_counted() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..1_003 {
        write(tree.path(), &format!("{number}.zip"), b"PK\x03\x04xxxxxxxxxxxx");
    }
    let mut command = harvest(["up", "--once", "--data"]);
    command.arg(data.path()).arg(tree.path());
    let (out, err) = texts(&command.output().unwrap());
    assert!(out.contains("\nproblems  1,003 failures:\n"), "{out}{err}");
    let more = out.lines().find_map(|it| it.trim_start().strip_prefix("1000 more: harvest "));
    let output = run(more.expect(&out).split(' '));
    let (out, err) = texts(&output);
    assert_eq!(out.matches(".zip: ").count(), 1_000, "{err}");
    assert!(err.contains("these are the newest 1000;"), "{err}");
}

#[test]
fn three_failures_are_named_and_a_command_prints_the_rest() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..5 {
        write(tree.path(), &format!("{number}.zip"), b"PK\x03\x04xxxxxxxxxxxx");
    }
    symlink("/", tree.path().join("out")).unwrap();
    let up = |flag: &str| {
        let mut command = harvest(["up", flag, "--data"]);
        command.arg(data.path()).arg(tree.path());
        command
    };
    let output = up("--once").output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    let at = lines.iter().position(|it| *it == "problems  5 failures:").expect(&out);
    assert!(lines[at + 1..at + 4].iter().all(|it| it.contains(".zip: ")), "{out}");
    let command = lines[at + 4].trim_start().strip_prefix("2 more: harvest ").expect(&out);
    let notes = lines[at + 5];
    assert!(notes.starts_with("notes     1 note (link-escape 1): harvest up --problems"), "{out}");

    // What the line names is a command.
    let all = run_ok(command.split(' '));
    assert_eq!(all.matches(".zip: ").count(), 5, "{all}");
    let (failures, notes) = all.split_once("\nnotes\n").expect(&all);
    assert!(failures.starts_with("failures\n") && notes.contains("out: "), "{all}");

    let mut command = up("--no-open");
    command.args(["--listen", "127.0.0.1:0"]);
    let mut running = Running::start(command);
    running.gathered_url();
    write(tree.path(), "5.zip", b"PK\x03\x04xxxxxxxxxxxx");
    write(tree.path(), "after.txt", "aubergine\n");
    let all = || run_ok(["up".as_ref(), "--problems".as_ref(), tree.path().as_os_str()]);
    let start = net::clock::monotonic();
    // Those of before are not read again, and still broken.
    while all().matches(".zip: ").count() != 6 {
        assert!(start.elapsed() < crate::harness::FOUND_WITHIN, "{}", all());
    }
    assert!(running.stop("INT").success());
}

/// Runs a copy of the program as a user whom permissions restrict, as they do not restrict root.
fn run_restricted(folder: &Path, args: &[&str]) -> std::process::Output {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let copy = folder.join("harvest");
    fs::copy(env!("CARGO_BIN_EXE_harvest"), &copy).unwrap();
    let mut command = Command::new(copy);
    command.args(args).current_dir(folder).env("HOME", folder).env("XDG_DATA_HOME", folder);
    if is_root() {
        command.uid(NOBODY);
    }
    command.output().unwrap()
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0
}

#[test]
fn a_root_that_cannot_be_read_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (locked, listed) = (folder.path().join("locked"), folder.path().join("listed"));
    for (path, mode) in [(&locked, 0o311), (&listed, 0o644)] {
        fs::create_dir(path).unwrap();
        write(path, "a.txt", "aubergine\n");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let output = run_restricted(folder.path(), &["up", "--once", path.to_str().unwrap()]);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert!(err.contains("cannot read") && err.contains(path.to_str().unwrap()), "{out}{err}");
    }
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let output = run(["up", "--once", "--data", data, "http://127.0.0.1:1/oai"]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("failed    http://127.0.0.1:1/oai"), "{out}{err}");
}

#[test]
fn data_in_the_tree_are_refused() {
    let tree = tempfile::tempdir().unwrap();
    let (root, data) = (tree.path().to_str().unwrap(), tree.path().join("new/data"));
    let output = run(["up", "--once", "--data", data.to_str().unwrap(), root]);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("leave --data out") && !data.exists(), "{err}");
}

#[test]
fn a_public_listener_is_warned_of() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "a.txt", "aubergine\n");
    let mut command = harvest(["up", "--no-open", "--listen", "0.0.0.0:0", "--data"]);
    command.arg(data.path()).arg(tree.path());
    let mut running = Running::start(command);
    let url = running.search_url();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let warning = running.seen_with("warning: everyone who reaches");
    assert!(warning.contains("full texts"), "{warning}");
    // Without a way to others, the system names no address for them.
    if has_way_out() {
        let line = running.seen_with("also at   http://");
        assert!(line.ends_with("/ from other machines"), "{line}");
        let elsewhere = line.split_whitespace().find(|it| it.starts_with("http://")).unwrap();
        let port = url.rsplit(':').next().unwrap();
        assert!(elsewhere.ends_with(&format!(":{port}")) && elsewhere != url, "{elsewhere} {url}");
        assert!(!elsewhere.contains("127.0.0.1") && !elsewhere.contains("0.0.0.0"), "{elsewhere}");
        assert!(page(elsewhere).contains("Search "), "it is reached there, too");
    } else {
        println!("this machine has no way to others: which address they use is not tested");
    }
    // What is found leads to the page of its text, and nowhere on the visitor's own machine.
    wait_for_total(&url, "aubergine", 1);
    let results = page(&format!("{url}?q=aubergine"));
    let (_, title) = results.split_once("<h3 dir=\"auto\"><a href=\"/").expect(&results);
    let object = page(&format!("{url}{}", title.split('"').next().unwrap().replace("&amp;", "&")));
    assert!(object.contains(">aubergine</mark>"), "{object}");
    for html in [results, object] {
        assert!(!html.contains("href=\"file:") && html.contains("/a.txt</bdi>"), "{html}");
    }
    assert!(running.stop("INT").success());
}

/// Returns whether this machine has a default route (IPv4).
fn has_way_out() -> bool {
    let routes = fs::read_to_string("/proc/net/route").unwrap();
    routes.lines().any(|it| it.split_whitespace().nth(1) == Some("00000000"))
}
