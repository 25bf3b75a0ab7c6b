//! Tests of roots that nginx serves: as servers do it in the field, well and badly.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Proof, Realm, Root, Web};
use net::clock;
use net::fetch::Login;
use soif::digest::Md5;
use tempfile::TempDir;
use url::Url;

use crate::certificates::Authority;
use crate::nginx::{Asked, Nginx};
use crate::peer::{Peer, free_port, public_folder};
use crate::support::site::again;
use crate::support::{Bench, Tree};

/// Writes files that nginx serves.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = public_folder();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    folder
}

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn settings(tree: &Tree, url: &str, change: impl FnOnce(&mut Web)) -> Config {
    let (delay, grace) = (Duration::ZERO, Duration::ZERO);
    let mut web = Web { delay, grace, ..Web::new(Url::parse(url).unwrap()) };
    change(&mut web);
    Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..tree.config() }
}

/// Starts a gatherer of what nginx serves, and waits for its first pass.
async fn gather(nginx: &Nginx, change: impl FnOnce(&mut Web)) -> (Bench, String) {
    let url = format!("http://{}/", nginx.running.address);
    let tree = Tree::new();
    let config = settings(&tree, &url, change);
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    (bench, url)
}

fn of(nginx: &Nginx, path: &str) -> Vec<Asked> {
    nginx.asked().into_iter().filter(|it| it.path == path).collect()
}

fn statuses(nginx: &Nginx, path: &str) -> Vec<u16> {
    of(nginx, path).iter().map(|it| it.status).collect()
}

/// Checks that a problem with an object says this.
#[track_caller]
fn has_problem(bench: &Bench, kind: &str, url: &str, part: &str) {
    let problems = bench.handle.problems();
    let is_it = |it: &gatherer::problems::Entry| {
        it.kind == kind && it.object == url && it.message.contains(part)
    };
    assert!(problems.iter().any(is_it), "{kind} {url}: {part}: {problems:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_over_tls_is_gathered_if_its_authority_is_trusted() {
    let folder = folder(&[("index.html", "<a href=a.html>a</a>"), ("a.html", "<title>A</title>")]);
    let (authority, port) = (Authority::new("Orchard"), free_port());
    let nginx = Nginx::start_by(folder.path(), |peer: &Peer| {
        let (certificate, key) = authority.sign(&["127.0.0.1"]);
        let [certificate, key] = [("tls.pem", certificate), ("tls.key", key)]
            .map(|(name, text)| peer.write(name, text).display().to_string());
        format!(
            "listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};"
        )
    });
    let url = format!("https://127.0.0.1:{port}/");
    for is_trusted in [false, true] {
        let tree = Tree::new();
        let mut config = settings(&tree, &url, |_| {});
        if is_trusted {
            let trusted = tree.folder.path().join("authority.pem");
            fs::write(&trusted, &authority.pem).unwrap();
            config.daemon.trust = vec![trusted];
        }
        let bench = Bench::start_with(tree, config).await;
        bench.progress(|it| it.harvests_due == 0).await;
        let objects = bench.handle.status().objects;
        assert_eq!(objects, if is_trusted { 2 } else { 0 }, "{:#?}", bench.handle.problems());
        if is_trusted {
            let record = bench.object(&format!("{url}a.html")).await.unwrap();
            assert_eq!(record.text("Title").unwrap(), "A");
        } else {
            has_problem(&bench, "crawl", &url, "robots.txt");
        }
        bench.stop().await;
    }
    assert_eq!(statuses(&nginx, "/a.html"), [200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_in_a_circle_and_to_what_is_inside_are_named() {
    let links = "<a href=loop>l</a><a href=ping>p</a><a href=meta>m</a><a href=to>t</a>";
    let folder = folder(&[("index.html", links), ("a.html", "<title>A</title>")]);
    let nginx = Nginx::start_by(folder.path(), |_| {
        "location = /loop { return 302 /loop; } location = /ping { return 301 /pong; }\n\
         location = /pong { return 307 /ping; } location = /to { return 308 /a.html; }\n\
         location = /meta { return 302 http://169.254.169.254/latest/meta-data/; }"
            .to_owned()
    });
    let (bench, url) = gather(&nginx, |_| {}).await;
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    has_problem(&bench, "unreachable", &format!("{url}loop"), "back to itself");
    has_problem(&bench, "unreachable", &format!("{url}pong"), "back to itself");
    has_problem(&bench, "unreachable", &format!("{url}meta"), "link-local");
    for path in ["/loop", "/ping", "/pong"] {
        assert_eq!(statuses(&nginx, path).len(), 1, "{path}");
    }
    assert!(!bench.handle.problems().iter().any(|it| it.object == format!("{url}to")));
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_asks_for_a_pause_gets_it_and_is_asked_again() {
    for (status, is_date) in [(429, false), (503, true)] {
        let page = ("busy.html", "<title>Open again</title>");
        let folder = folder(&[("index.html", "<a href=busy.html>b</a>"), page]);
        let flag = folder.path().join("is-busy");
        fs::write(&flag, "").unwrap();
        let until_seconds = Cell::new(0);
        let nginx = Nginx::start_by(folder.path(), |_| {
            until_seconds.set(clock::now_ms() / 1_000 + 4);
            let wait = match is_date {
                true => net::client::http_date_of(until_seconds.get()),
                false => "2".to_owned(),
            };
            format!(
                "location = /busy.html {{ if (-f {}) {{ add_header Retry-After \"{wait}\" always;\n\
                 return {status}; }} }}",
                flag.display()
            )
        });
        let url = format!("http://{}/", nginx.running.address);
        let tree = Tree::new();
        let config = settings(&tree, &url, |_| {});
        let bench = Bench::start_with(tree, config).await;
        bench.status(|_| !statuses(&nginx, "/busy.html").is_empty()).await;
        fs::remove_file(&flag).unwrap();
        bench.until_url(&format!("{url}busy.html"), |it| it.is_some()).await;
        let asked = of(&nginx, "/busy.html");
        let statuses: Vec<u16> = asked.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [status, 200]);
        let is_obeyed = match is_date {
            true => until_seconds.get() * 1_000 <= asked[1].at_ms,
            false => 2_000 <= asked[1].at_ms - asked[0].at_ms,
        };
        assert!(is_obeyed, "{asked:?}, until {until_seconds:?}");
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_given_up_and_named_and_others_go_on() {
    let folder = folder(&[
        ("index.html", "<a href=slow.html>s</a><a href=a.html>a</a>"),
        ("a.html", "<title>A</title>"),
        ("slow.html", &"word ".repeat(200_000)),
    ]);
    let nginx =
        Nginx::start_by(folder.path(), |_| "location = /slow.html { limit_rate 1000; }".to_owned());
    let (bench, url) = gather(&nginx, |web| web.answer_time_max = Duration::from_secs(1)).await;
    assert_eq!(bench.handle.status().objects, 2);
    has_problem(&bench, "unreachable", &format!("{url}slow.html"), "1 s");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calendars_and_paths_without_end_are_left_and_an_example_is_named() {
    let folder = folder(&[
        ("index.html", "<a href=/cal/2026/1>c</a><a href=/deep/x>d</a><a href=a.html>a</a>"),
        ("a.html", "<title>A</title>"),
    ]);
    let nginx = Nginx::start_by(folder.path(), |_| {
        let days: String =
            (1..=12).map(|it| format!("<a href=/cal/2026/{it}/$1$2>d</a>")).collect();
        format!(
            "location ~ ^/cal/2026/(\\d+)/?(\\d*)$ {{ default_type text/html; return 200 '{days}'; }}\n\
             location /deep {{ default_type text/html; return 200 \"<a href='$uri/x'>x</a>$uri\"; }}"
        )
    });
    let (bench, url) = gather(&nginx, |web| web.urls_max = 5_000).await;
    let asked = nginx.asked().len();
    assert!(asked < 1_100, "{asked} requests");
    assert!(bench.object(&format!("{url}a.html")).await.is_some());
    let traps = bench.root().crawl.unwrap().traps;
    assert_eq!(traps.len(), 2, "{traps:?}");
    let problems = bench.handle.problems();
    for (begin, part) in [("cal/2026/", "calendar"), ("deep/x", "path")] {
        let named = problems
            .iter()
            .find(|it| it.kind == "trap" && it.object.starts_with(&format!("{url}{begin}")));
        let named = named.unwrap_or_else(|| panic!("{begin}: {problems:#?}"));
        assert!(named.message.contains(part) && named.message.contains(&url), "{named:?}");
        let remedy = "; set `trap_urls_max` to raise the cap of 1000, for all traps";
        assert_eq!(named.message.ends_with(remedy), part == "calendar", "{named:?}");
        // The example was not asked for.
        let example = named.object.strip_prefix(url.trim_end_matches('/')).unwrap();
        assert!(of(&nginx, example).is_empty(), "{example}");
    }
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_alone_is_asked_with_and_without_validators_the_digest_tells() {
    let folder = folder(&[
        ("index.html", "<a href=bare/a.html>a</a><a href=dated/b.html>b</a><a href=c.html>c</a>"),
        ("bare/a.html", "<title>A</title>"),
        ("dated/b.html", "<title>B</title>"),
        ("c.html", "<title>C</title>"),
    ]);
    let nginx = Nginx::start_by(folder.path(), |_| {
        "location /bare/ { etag off; if_modified_since off; add_header Last-Modified ''; }\n\
         location /dated/ { etag off; }"
            .to_owned()
    });
    let (bench, url) = gather(&nginx, |_| {}).await;
    assert_eq!(bench.handle.status().objects, 4);
    let before = bench.object(&format!("{url}bare/a.html")).await.unwrap();
    again(&bench).await;
    assert_eq!(statuses(&nginx, "/bare/a.html"), [200, 200]);
    assert_eq!(statuses(&nginx, "/dated/b.html"), [200, 304]);
    assert_eq!(statuses(&nginx, "/c.html"), [200, 304]);
    let conditions = |path: &str| of(&nginx, path)[1].conditions.clone().map(|it| it != "-");
    assert_eq!(conditions("/bare/a.html"), [false, false]);
    assert_eq!(conditions("/dated/b.html"), [false, true]);
    assert_eq!(conditions("/c.html"), [true, true]);
    // What was sent again is no change.
    assert_eq!(bench.object(&format!("{url}bare/a.html")).await.unwrap(), before);
    put(folder.path(), "bare/a.html", "<title>Another</title>");
    again(&bench).await;
    let is_other = |it: &soif::Record| it.text("Title").unwrap() == "Another";
    bench.until_url(&format!("{url}bare/a.html"), |it| it.is_some_and(is_other)).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_says_not_found_with_success_loses_and_gains_nothing() {
    let sorry = "<title>Sorry</title><p>We could not find what you are looking for on our site.";
    let folder = folder(&[
        ("index.html", "<a href=a.html>a</a><a href=b.html>b</a><a href=none.html>n</a>"),
        ("a.html", "<title>A</title><p>Of apples, and how they are kept over the winter"),
        ("b.html", "<title>B</title><p>Of pears"),
        ("sorry.html", sorry),
    ]);
    let nginx = Nginx::start_by(folder.path(), |_| "error_page 404 =200 /sorry.html;".to_owned());
    let (bench, url) = gather(&nginx, |_| {}).await;
    // robots.txt is the same page, which has no rules.
    assert_eq!(bench.handle.status().objects, 3, "{:#?}", bench.handle.problems());
    assert!(bench.object(&format!("{url}none.html")).await.is_none());
    let before = bench.object(&format!("{url}a.html")).await;
    fs::remove_file(folder.path().join("a.html")).unwrap();
    for _ in 0..2 {
        again(&bench).await;
    }
    assert_eq!(bench.object(&format!("{url}a.html")).await, before);
    assert_eq!(bench.handle.status().objects, 3);
    let explained = bench.handle.explain(&Url::parse(&format!("{url}a.html")).unwrap()).remove(0);
    assert!(explained.state.contains("\"not found\""), "{explained:?}");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_packed_and_their_digest_is_of_what_is_in_them() {
    let page = format!("<title>A</title><p>{}", "word after word ".repeat(500));
    let folder = folder(&[("index.html", "<a href=a.html>a</a>"), ("a.html", &page)]);
    let nginx = Nginx::start_by(folder.path(), |_| "gzip on; gzip_min_length 1;".to_owned());
    let (bench, url) = gather(&nginx, |_| {}).await;
    assert_eq!(of(&nginx, "/a.html")[0].coding, "gzip");
    let record = bench.object(&format!("{url}a.html")).await.unwrap();
    assert_eq!(record.text("MD5").unwrap(), Md5::of(page.as_bytes()).to_string());
    assert_eq!(record.text("File-Size").unwrap(), page.len().to_string());
    // nginx packs by the way and says so: the tag is a weak one, which serves all the same.
    again(&bench).await;
    assert_eq!(statuses(&nginx, "/a.html"), [200, 304]);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_is_told_who_asks_once_and_then_unasked() {
    let folder = folder(&[
        ("index.html", "<a href=members/>m</a><a href=staff/>s</a><a href=board/>b</a>"),
        ("members/index.html", "<title>Members</title><a href=a.html>a</a>"),
        ("members/a.html", "<title>A</title>"),
        ("staff/index.html", "<title>Staff</title>"),
        ("board/index.html", "<title>Board</title>"),
    ]);
    let nginx = Nginx::start_by(folder.path(), |peer: &Peer| {
        let area = |name: &str, user: &str| {
            let file = peer.write(&format!("nginx/{name}"), format!("{user}:{{PLAIN}}secret\n"));
            let file = file.display();
            format!(
                "location /{name}/ {{ auth_basic \"The {name}\"; auth_basic_user_file {file}; }}"
            )
        };
        area("members", "anna") + &area("staff", "bert") + &area("board", "carl")
    });
    let url = Url::parse(&format!("http://{}/", nginx.running.address)).unwrap();
    let realm = |name: &str, user: &str, password: &str| {
        let login = Login { name: user.to_owned(), password: password.to_owned() };
        Realm { url: url.clone(), name: name.to_owned(), proof: Proof::Login(login) }
    };
    let (bench, url) = gather(&nginx, |it| {
        it.realms = vec![
            realm("The members", "anna", "secret"),
            realm("The staff", "bert", "secret"),
            realm("The board", "carl", "wrong"),
        ];
    })
    .await;
    assert_eq!(statuses(&nginx, "/members/"), [401, 200]);
    assert_eq!(statuses(&nginx, "/members/a.html"), [200]);
    assert_eq!(statuses(&nginx, "/staff/"), [401, 200]);
    assert_eq!(statuses(&nginx, "/board/"), [401, 401]);
    for (path, title) in [("members/", "Members"), ("members/a.html", "A"), ("staff/", "Staff")] {
        let record = bench.object(&format!("{url}{path}")).await.unwrap();
        assert_eq!(record.text("Title").unwrap(), title);
    }
    let board = format!("{url}board/");
    let problems = bench.handle.problems();
    let is_named = problems.iter().any(|it| it.object == board && it.message.contains("401"));
    assert!(is_named, "{problems:#?}");
    bench.stop().await;
}
