//! Tests of `harvest up` with the address of a web site, which nginx serves.

mod kinds;
mod site;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use net::clock;
use tempfile::TempDir;

use crate::daemons::free_port;
use crate::harness::{
    PATIENCE, Running, harvest, run_ok, search, texts, total, wait_for_total, write,
};

/// Number of pages of the site, besides its first.
const PAGES: usize = 1_500;

/// Maximum number of requests that are under way at a host of this machine, as docs/gathering.md has it.
const REQUESTS_MAX: usize = 8;

/// A running nginx; it is stopped when this is dropped.
struct Nginx {
    folder: TempDir,
    child: Child,
    url: String,
}

impl Nginx {
    /// Serves the files of a new folder, and keeps a log of the requests.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("net/tests/peers/prepare");
        let prepared = Command::new(script).arg("nginx").arg(at("unpacked")).status().unwrap();
        assert!(prepared.success(), "nginx is missing; see above");
        fs::create_dir(at("site")).unwrap();
        let port = free_port();
        let settings = format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log; events {{}}\n\
             http {{ access_log access.log; default_type text/html;\n\
             client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;\n\
             scgi_temp_path t5; gzip on; gzip_min_length 1; gzip_types text/plain;\n\
             server {{ listen 127.0.0.1:{port}; root site; }} }}\n"
        );
        write(folder.path(), "nginx.conf", settings);
        let mut command = Command::new(at("unpacked/usr/sbin/nginx"));
        command.arg("-p").arg(folder.path()).arg("-c").arg(at("nginx.conf"));
        command.env("LD_LIBRARY_PATH", libraries(&at("unpacked")));
        let mut child = command.spawn().unwrap();
        let began = clock::monotonic();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(child.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        Self { folder, child, url: format!("http://127.0.0.1:{port}/") }
    }

    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// Returns the path and status of each answer so far, in order.
    fn answers(&self) -> Vec<(String, u16)> {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap();
        let answer = |line: &str| {
            let (_, rest) = line.split_once("\"GET ")?;
            let (path, rest) = rest.split_once(" HTTP/1.1\" ")?;
            Some((path.to_owned(), rest.split(' ').next()?.parse().ok()?))
        };
        log.lines().filter_map(answer).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the folders of libraries below `unpacked`.
fn libraries(unpacked: &Path) -> String {
    let mut found = Vec::new();
    for parent in ["usr/lib", "lib"] {
        let Ok(entries) = fs::read_dir(unpacked.join(parent)) else { continue };
        let folders = entries.map(|it| it.unwrap().path().display().to_string());
        found.extend(folders.filter(|it| it.ends_with("-linux-gnu")));
    }
    found.join(":")
}

fn up(nginx: &Nginx, data: &Path, options: &[&str]) -> Command {
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.args(options).arg("--data").arg(data).arg(&nginx.url);
    command
}

/// Makes a site of pages that each lead to two others.
fn make_pages(site: &Path) {
    for number in 0..PAGES {
        let mut page =
            format!("<title>Page {number}</title><p>word{number} in an orchard of pages");
        for next in [2 * number + 1, 2 * number + 2] {
            if next < PAGES {
                write!(page, " <a href='/p/{next}.html'>next</a>").unwrap();
            }
        }
        write(site, &format!("p/{number}.html"), page);
    }
    write(site, "index.html", "<title>Start</title><a href=/p/0.html>first</a>");
}

#[test]
fn a_site_is_found_and_nothing_that_was_done_is_fetched_again_after_a_kill() {
    let (nginx, data) = (Nginx::start(), tempfile::tempdir().unwrap());
    make_pages(&nginx.site());
    let mut first = Running::start(up(&nginx, data.path(), &["--urls-max", "10000"]));
    let page = first.search_url();
    let began = clock::monotonic();
    let found = loop {
        let found = total(&page, "orchard");
        if 100 <= found {
            break found;
        }
        assert!(began.elapsed() < PATIENCE, "{found} are found");
    };
    first.signal("KILL");
    drop(first);
    let fetched = nginx.answers().iter().filter(|it| it.0.starts_with("/p/")).count();

    let output = up(&nginx, data.path(), &["--urls-max", "10000", "--once"]).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    let mut times: HashMap<String, usize> = HashMap::new();
    for (path, status) in nginx.answers().into_iter().filter(|it| it.0.starts_with("/p/")) {
        assert_eq!(status, 200, "{path}");
        *times.entry(path).or_default() += 1;
    }
    assert_eq!(times.len(), PAGES, "{out}\n{err}");
    let again = times.values().filter(|it| 1 < **it).count();
    let lost = fetched - usize::try_from(found).unwrap();
    assert!(
        again <= REQUESTS_MAX && times.values().all(|it| *it <= 2),
        "{again} again; {lost} of {fetched} were not found yet"
    );

    // What has not changed is not sent again.
    let mut third = Running::start(up(&nginx, data.path(), &["--urls-max", "10000"]));
    let page = third.gathered_url();
    wait_for_total(&page, "orchard", u64::try_from(PAGES).unwrap());
    let hit = &search(&page, "word77")["hits"][0];
    assert_eq!(hit["url"].as_str().unwrap(), format!("{}p/77.html", nginx.url));
    assert_eq!(hit["title"].as_str().unwrap(), "Page 77");
    let sent = nginx.answers().iter().rev().take(PAGES).filter(|it| it.1 == 200).count();
    assert!(sent <= 1, "{sent} pages are sent again");
    assert!(third.stop("INT").success());
}

#[test]
fn the_limits_of_a_site_are_named_and_a_site_that_is_not_there_is_a_failure() {
    let (nginx, data) = (Nginx::start(), tempfile::tempdir().unwrap());
    make_pages(&nginx.site());
    let output = up(&nginx, data.path(), &["--once", "--urls-max", "20"]).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    for option in ["--urls-max", "--hosts-max", "--delay", "--as oai"] {
        assert!(err.contains(option), "{option} is missing in:\n{err}");
    }
    assert!(out.contains("indexed   20 objects"), "{out}");

    fs::remove_file(nginx.site().join("index.html")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = up(&nginx, elsewhere.path(), &["--once"]).output().unwrap();
    let (out, err) = texts(&output);
    assert!(!output.status.success(), "{out}\n{err}");
    assert!(out.contains(&format!("failed    {}", nginx.url)) && out.contains("403"), "{out}");
}

#[test]
fn a_gatherer_says_why_and_pauses_a_host() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().unwrap());
    write(&nginx.site(), "index.html", "<a href=a.html>a</a><a href=b.html>b</a>");
    write(&nginx.site(), "a.html", "<title>A</title>");
    let settings = format!(
        "name = \"Orchard\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:{}\"\ndata = \"{}\"\n\n\
         [[root]]\nurl = \"{}\"\ndeny = [\"b.html\"]\n",
        free_port(),
        folder.path().join("data").display(),
        nginx.url
    );
    let file = write(folder.path(), "gatherer.toml", settings);
    let file = file.to_str().unwrap();
    let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", file]));
    gatherer.line_with("http://");
    let page = format!("{}a.html", nginx.url);
    let began = clock::monotonic();
    let explained = loop {
        let explained = run_ok(["gatherer", "explain", "-c", file, &page]);
        if explained.contains(": done") && explained.contains("1 record") {
            break explained;
        }
        assert!(began.elapsed() < PATIENCE, "{explained}");
    };
    assert!(explained.contains("the host has no robots.txt"), "{explained}");
    let denied = run_ok(["gatherer", "explain", "-c", file, &format!("{}b.html", nginx.url)]);
    assert!(denied.contains("out: `deny` has \"b.html\""), "{denied}");
    let status = run_ok(["gatherer", "status", "-c", file]);
    assert!(status.contains("0 waiting, 0 failed, 0 kept out by robots.txt"), "{status}");
    assert_eq!(run_ok(["gatherer", "pause", "-c", file, "127.0.0.1"]), "127.0.0.1 is paused\n");
    assert_eq!(run_ok(["gatherer", "resume", "-c", file, "127.0.0.1"]), "127.0.0.1 is resumed\n");
    assert!(gatherer.stop("TERM").success());
}
