//! Tests of opening found files from the search page of `harvest up`: who may, and what is opened.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use net::clock;
use tempfile::TempDir;

use crate::harness::{PATIENCE, Running, ask, harvest, search, texts, wait_for_total, write};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A running `harvest up` on a desktop whose opener writes down what it gets.
struct Desk {
    dir: TempDir,
    running: Running,
    page: String,
    admin: String,
    token: String,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let opener = write(
            dir.path(),
            "bin/xdg-open",
            format!(
                "#!/bin/sh\nprintf '%s\\n' \"$# $1\" >>'{}'\n",
                dir.path().join("opened").display()
            ),
        );
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in [
            ("a b/fine & good.txt", "aubergine\n"),
            ("README", "celery\n"),
            ("evil.desktop", "[Desktop Entry]\nType=Application\nName=broccoli\nExec=sh\n"),
            ("list.bib", "@book{a, title={Fennel}, year=1995}\n"),
            (".hidden.txt", "hidden\n"),
        ] {
            write(dir.path(), &format!("tree/{name}"), text);
        }
        let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(dir.path().join("data")).arg(dir.path().join("tree"));
        let path =
            format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("DISPLAY", ":99");
        let mut running = Running::start(command);
        let page = running.gathered_url();
        let read =
            |name: &str| fs::read_to_string(dir.path().join("data/gatherer").join(name)).unwrap();
        let admin = format!("http://{}", read("admin.address").split(' ').next().unwrap());
        let token = read("admin.token").trim().to_owned();
        Self { dir, running, page, admin, token }
    }

    fn tree(&self) -> PathBuf {
        fs::canonicalize(self.dir.path().join("tree")).unwrap()
    }

    /// Returns a one-time link, as a second `harvest up` gets it.
    fn link(&self) -> String {
        let token = format!("Bearer {}", self.token);
        let url = format!("{}/session", self.admin);
        let (status, _, body) = ask("POST", &url, &[("Authorization", &token)]);
        assert_eq!(status, 200);
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        answer["link"].as_str().unwrap().to_owned()
    }

    /// Follows a link; returns the cookie.
    fn cookie(&self) -> String {
        let (status, head, _) = ask("GET", &self.link(), &[]);
        assert_eq!(status, 303, "{head}");
        assert!(head.contains(&format!("location: {}", self.page)), "{head}");
        let set = head.lines().find_map(|it| it.strip_prefix("set-cookie: ")).unwrap();
        let (cookie, rest) = set.split_once(';').unwrap();
        assert_eq!(rest, " Path=/; HttpOnly; SameSite=Strict");
        cookie.to_owned()
    }

    /// Returns the bytes of a request to open `url`.
    fn request(&self, url: &str, headers: &[(&str, &str)]) -> String {
        let encoded: String = url.bytes().map(|it| format!("%{it:02X}")).collect();
        let body = format!("url={encoded}");
        let mut request = "POST /open HTTP/1.1\r\nConnection: close\r\n".to_owned();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.admin_address());
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let kind = "application/x-www-form-urlencoded";
        request + &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn admin_address(&self) -> &str {
        self.admin.strip_prefix("http://").unwrap()
    }

    /// Returns the URL of the first hit, as the page posts it.
    fn hit(&self, query: &str) -> String {
        search(&self.page, query)["hits"][0]["url"].as_str().unwrap().to_owned()
    }

    /// Asks to open `url`; returns the status and the answer.
    fn open(&self, url: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin_address()).unwrap();
        stream.write_all(self.request(url, headers).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Waits until the opener has been started `count` times; returns its lines.
    fn opened(&self, count: usize) -> Vec<String> {
        let start = clock::monotonic();
        loop {
            let text = fs::read_to_string(self.dir.path().join("opened")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if count <= lines.len() {
                return lines;
            }
            assert!(start.elapsed() < PATIENCE, "{lines:?}");
            std::thread::yield_now();
        }
    }

    fn origin(&self) -> String {
        self.page.trim_end_matches('/').to_owned()
    }
}

fn url_of(path: &Path) -> String {
    url::Url::from_file_path(path).unwrap().to_string()
}

#[test]
fn the_browser_that_up_opened_opens_files() {
    let mut desk = Desk::new();
    let (cookie, origin, tree) = (desk.cookie(), desk.origin(), desk.tree());
    let url = format!("{}?q=aubergine", desk.page);
    let (_, head, body) = ask("GET", &url, &[("Cookie", &cookie)]);
    let html = String::from_utf8(body).unwrap();
    let form = format!(r#"<form class="open" action="{}/open" method="post">"#, desk.admin);
    assert!(html.contains(&form), "{html}");
    assert!(head.contains(&format!("form-action 'self' {}/open;", desk.admin)), "{head}");
    assert!(head.contains("referrer-policy: strict-origin\r"), "{head}");
    let secret = cookie.split_once('=').unwrap().1;
    assert!(!html.contains(secret) && !html.contains(&desk.token), "{html}");

    let path = tree.join("a b/fine & good.txt");
    let allowed = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    let asked = [
        ("aubergine", path),
        ("celery", tree.join("README")),
        // An entry of a list is in its file.
        ("fennel year:1995", tree.join("list.bib")),
        // What a launcher starts is not started.
        ("broccoli", tree.clone()),
    ];
    for (at, (asked, opened)) in asked.iter().enumerate() {
        let (status, answer) = desk.open(&desk.hit(asked), &allowed);
        assert_eq!(status, 204, "{answer}");
        assert_eq!(desk.opened(at + 1)[at], format!("1 {}", opened.display()));
    }
    for unknown in [
        "file:///etc/passwd".to_owned(),
        url_of(&tree.join(".hidden.txt")),
        url_of(&tree.join("README")) + "/../../bin/xdg-open",
        "http://127.0.0.1/".to_owned(),
        String::new(),
    ] {
        let (status, answer) = desk.open(&unknown, &allowed);
        assert_eq!(status, 404, "{unknown}: {answer}");
    }
    assert_eq!(desk.opened(4).len(), 4);
    assert!(desk.running.stop("INT").success());
}

#[test]
fn a_link_that_took_the_place_of_a_file_is_not_opened() {
    let mut desk = Desk::new();
    let (cookie, origin, tree) = (desk.cookie(), desk.origin(), desk.tree());
    let allowed = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    let outside = write(desk.dir.path(), "elsewhere/fine & good.txt", "secret\n");
    // A folder on the way to a file, and a file itself, become links out of the root.
    let moved =
        [("aubergine", "a b", outside.parent().unwrap()), ("celery", "README", outside.as_path())];
    let urls = moved.map(|(query, ..)| desk.hit(query));
    for (_, place, target) in moved {
        fs::rename(tree.join(place), desk.dir.path().join(place)).unwrap();
        symlink(target, tree.join(place)).unwrap();
    }
    let refused = |when: &str| {
        for url in &urls {
            let (status, answer) = desk.open(url, &allowed);
            assert_eq!(status, 404, "{when}: {url}: {answer}");
        }
    };
    refused("perhaps nobody has noticed yet");
    for (query, ..) in moved {
        wait_for_total(&desk.page, query, 0);
    }
    refused("they are gathered no more");
    // Of all these, only a file of the root is opened.
    let (status, answer) = desk.open(&desk.hit("fennel year:1995"), &allowed);
    assert_eq!(status, 204, "{answer}");
    let opened = desk.opened(1);
    assert_eq!(opened, [format!("1 {}", tree.join("list.bib").display())]);
    assert!(desk.running.stop("INT").success());
}

#[test]
fn nobody_else_opens_anything() {
    let mut desk = Desk::new();
    let (cookie, origin) = (desk.cookie(), desk.origin());
    let url = desk.hit("celery");
    let (_, head, body) = ask("GET", &format!("{}?q=celery", desk.page), &[]);
    let html = String::from_utf8(body).unwrap();
    assert!(html.contains("README") && !html.contains("/open"), "{html}");
    assert!(head.contains("form-action 'self';") && head.contains("referrer-policy: same-origin"));

    let check = |headers: &[(&str, &str)], expected: &str| {
        let (status, answer) = desk.open(&url, headers);
        assert!((400..500).contains(&status) && answer.contains(expected), "{headers:?} {answer}");
    };
    let wrong = cookie.replace('=', "=0");
    check(&[("Origin", &origin)], "Only the browser");
    check(&[("Origin", &origin), ("Cookie", &wrong)], "Only the browser");
    let token = format!("Bearer {}", desk.token);
    check(&[("Origin", &origin), ("Authorization", &token)], "Only the browser");
    check(&[("Cookie", &cookie)], "Only the search page");
    for other in ["null", "http://127.0.0.1:9", &desk.admin, "http://evil.example"] {
        check(&[("Cookie", &cookie), ("Origin", other)], "Only the search page");
    }
    // A name that was made to resolve to this machine.
    check(&[("Cookie", &cookie), ("Origin", &origin), ("Host", "evil.example")], "evil.example");

    // A link is good once, and not for a look.
    let link = desk.link();
    assert_eq!(ask("HEAD", &link, &[]).0, 403);
    assert_eq!(ask("GET", &link, &[]).0, 303);
    let (status, head, _) = ask("GET", &link, &[]);
    assert!(status == 403 && !head.contains("set-cookie"), "{head}");
    let (status, ..) = ask("POST", &format!("{}/session", desk.admin), &[]);
    assert_eq!(status, 401, "only its user makes links");

    // Another user of this machine, who has got hold of everything.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let allowed = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
        let answer = as_nobody(&desk, &desk.request(&url, &allowed));
        assert!(answer.contains(" 403 ") && answer.contains("Only the user"), "{answer}");
        let link = desk.link();
        let path = link.strip_prefix(&desk.admin).unwrap();
        let get = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            desk.admin_address()
        );
        let answer = as_nobody(&desk, &get);
        assert!(answer.contains(" 403 "), "{answer}");
        assert_eq!(ask("GET", &link, &[]).0, 303, "the link was not used up");
    } else {
        println!(
            "only root can act as another user: `gatherer::serve::open::neighbor` has the test"
        );
    }
    assert!(!desk.dir.path().join("opened").exists());
    assert!(desk.running.stop("INT").success());
}

/// Sends a request as another user; returns the answer.
fn as_nobody(desk: &Desk, request: &str) -> String {
    let script = r#"exec 3<>"/dev/tcp/${0%:*}/${0##*:}"; printf %s "$1" >&3; cat <&3"#;
    let mut command = Command::new("bash");
    command.args(["-c", script, desk.admin_address(), request]).current_dir("/").uid(NOBODY);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    out
}

#[test]
fn without_a_screen_nothing_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "tree/a.txt", "aubergine\n");
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(dir.path().join("data")).arg(dir.path().join("tree"));
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut running = Running::start(command);
    running.gathered_url();
    let address = fs::read_to_string(dir.path().join("data/gatherer/admin.address")).unwrap();
    let admin = format!("http://{}", address.split(' ').next().unwrap());
    assert_eq!(ask("POST", &format!("{admin}/open"), &[]).0, 401);
    assert_eq!(ask("GET", &format!("{admin}/session/x"), &[]).0, 404);
    assert!(running.stop("INT").success());
}
