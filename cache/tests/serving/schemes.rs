//! Tests of objects of other schemes: of vsftpd, pyftpdlib, gophernicus and INN, asked for by HTTP.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use crate::common::{Answer, Site, answer};
use crate::inn::Inn;
use crate::peer::{Peer, free_port};
use crate::servers::{Pyftpdlib, Vsftpd, gophernicus};
use cache::Config;
use cache::access_log::Format;
use http::Method;
use net::body;
use net::fetch::Login;
use url::Url;

/// Returns a cache with these settings; its origin of HTTP is not used.
async fn cache(change: impl FnOnce(&mut Config)) -> Site {
    Site::with(|_, _| async { answer(500, &[], body::empty()) }, change).await
}

/// Returns an answer from what is stored: until a server's last reply has come, requests join the fetch.
async fn stored(site: &Site, url: &str) -> Answer {
    loop {
        let answer = site.get(url).await;
        if !answer.how().ends_with("; collapsed") {
            assert!(answer.how().starts_with("hit; ttl="), "{answer:?}");
            return answer;
        }
    }
}

/// Returns the links of a page, as whole URLs.
fn links(page: &Answer, at: &str) -> Vec<String> {
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(
        page.body.contains("color-scheme:light dark") && page.body.contains("width=device-width")
    );
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let at = Url::parse(at).unwrap();
    let links = page.body.split("href=\"").skip(1).map(|it| it.split('"').next().unwrap());
    links.map(|it| at.join(&it.replace("&amp;", "&")).unwrap().to_string()).collect()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a.txt", b"one\r\ntwo\r\n".to_vec()),
        ("long.csv", b"0123456,89\n".repeat(300_000)),
        ("sub/c & <d>#.txt", b"below".to_vec()),
    ]
}

/// Reads the files above through a cache, from the server at `base`.
async fn check_files(site: &Site, base: &str) {
    let at = |path: &str| format!("{base}{path}");
    let first = site.get(&at("a.txt;type=i")).await;
    assert_eq!((first.status, first.body.as_str()), (200, "one\r\ntwo\r\n"), "{first:?}");
    assert_eq!(first.how(), "fwd=uri-miss; fwd-status=200; stored");
    assert_eq!(first.header("content-type"), "text/plain");
    assert!(net::client::http_date(first.header("last-modified")).is_some(), "{first:?}");
    let again = stored(site, &at("a.txt")).await;
    assert_eq!(again.body, first.body);
    let ttl: u32 = again.how()["hit; ttl=".len()..].parse().unwrap();
    assert!((86_000..=86_400).contains(&ttl), "a new file is good for a day: {ttl}");
    let part = site.get_with(&at("a.txt"), &[("range", "bytes=5-7")]).await;
    assert_eq!((part.status, part.body.as_str()), (206, "two"));
    let valid = site.get_with(&at("a.txt"), &[("cache-control", "no-cache")]).await;
    assert_eq!(valid.how(), "fwd=request; fwd-status=304; stored", "{valid:?}");
    assert_eq!(valid.body, first.body);

    let head = site.ask(Method::HEAD, &at("long.csv"), &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, "3300000"), "{head:?}");
    let long = site.get(&at("long.csv")).await;
    assert!(long.body.as_bytes() == files()[1].1, "{} bytes", long.body.len());
    stored(site, &at("long.csv")).await;

    let page = site.get(&at("")).await;
    let expected = ["sub/", "a.txt", "long.csv"].map(at);
    assert_eq!(links(&page, base), expected, "{page:?}");
    assert!(page.body.contains("<td>3,300,000</td>"), "{page:?}");
    stored(site, &at("")).await;
    let moved = site.get(&at("sub")).await;
    assert_eq!((moved.status, moved.header("location")), (301, at("sub/").as_str()), "{moved:?}");
    let head = site.ask(Method::HEAD, &at("sub"), &[]).await;
    assert_eq!((head.status, head.header("location")), (301, at("sub/").as_str()), "{head:?}");
    let sub = site.get(&at("sub;type=d")).await;
    let below = links(&sub, &at("sub/"));
    assert_eq!(below[0], base);
    let file = site.get(&below[1]).await;
    assert_eq!((file.status, file.body.as_str()), (200, "below"), "{below:?}");

    for missing in ["none.txt", "none/"] {
        let answer = site.get(&at(missing)).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        assert!(answer.body.contains("says \"550 ") && answer.body.contains("check the name"));
        stored(site, &at(missing)).await;
    }
    let head = site.ask(Method::HEAD, &at("nowhere"), &[]).await;
    assert_eq!(head.status, 404);
    let post = site.ask(Method::POST, &at("a.txt"), &[]).await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
    stored(site, &at("a.txt")).await;
    assert_eq!(site.handle.purge(&Url::parse(&at("a.txt;type=a")).unwrap()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_come_from_vsftpd() {
    let server = Vsftpd::start(false, &files());
    check_files(&cache(|_| ()).await, &format!("ftp://{}/", server.running.address)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_come_from_pyftpdlib() {
    let server = Pyftpdlib::start(false, &files());
    check_files(&cache(|_| ()).await, &format!("ftp://{}/", server.running.address)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_sees_is_for_nobody_else_and_the_password_is_in_no_log() {
    let server = Pyftpdlib::start(false, &files());
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let named = log.clone();
    let mut site = cache(|it| it.access_log = Some((named, Format::Squid))).await;
    let host = server.running.address;
    let open = format!("ftp://{host}/a.txt");
    site.get(&open).await;
    let with = |login: &str| format!("ftp://{login}@{host}/a.txt");
    for _ in 0..2 {
        let own = site.get(&with("reader:secret")).await;
        assert_eq!((own.status, own.body.as_str()), (200, "one\r\ntwo\r\n"));
        assert!(own.how().starts_with("fwd=uri-miss; fwd-status=200; detail="), "{}", own.how());
    }
    let basic =
        |password: &str| Login { name: "reader".to_owned(), password: password.to_owned() }.basic();
    let shown = site.get_with(&open, &[("authorization", &basic("secret"))]).await;
    assert!(shown.status == 200 && shown.how().starts_with("fwd=uri-miss"), "{shown:?}");
    let by_url = site.get(&with("reader:guess")).await;
    let by_header = site.get_with(&open, &[("authorization", &basic("guess"))]).await;
    for refused in [by_url, by_header] {
        assert_eq!(refused.status, 401, "{refused:?}");
        assert!(refused.header("www-authenticate").starts_with("Basic realm=\"127.0.0.1:"));
        assert!(refused.body.contains("check the name and password"), "{refused:?}");
        assert!(!refused.body.contains("guess"), "{refused:?}");
    }
    stored(&site, &open).await;
    site.end().await;
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.contains(&format!("ftp://reader@{host}/a.txt")), "{lines}");
    assert!(!lines.contains("secret") && !lines.contains("guess"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_is_served_with_and_without_a_name() {
    let server = Pyftpdlib::start(false, &files());
    let (site, host) = (cache(|_| ()).await, server.running.address);
    let proxy = format!("http://{}", site.cache);
    let curl = async |login: &str, path: &str| {
        let mut command = Command::new("curl");
        command.args(["-sSf", "-x", &proxy]).arg(format!("ftp://{login}{host}/{path}"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let content = "one\r\ntwo\r\n".to_owned();
    assert_eq!(curl("", "a.txt").await, (Some(0), content.clone()));
    assert_eq!(curl("reader:secret@", "a.txt").await, (Some(0), content));
    assert_eq!(curl("reader:guess@", "a.txt").await.0, Some(22));
    assert!(curl("", "sub/").await.1.contains("href=\"./c%20%26%20%3Cd%3E%23.txt\""));
    let answers = site.handle.status().answers;
    assert_eq!((answers["miss"], answers["hit"]), (4, 0), "{answers:?}");
    assert_eq!(curl("", "a.txt").await.0, Some(0));
    assert_eq!(site.handle.status().answers["hit"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn menus_and_texts_come_from_gophernicus() {
    let peer = Peer::unpack("gophernicus");
    let root = peer.make_folder("root");
    for (name, content) in [("a.txt", "one\n.two\n"), ("page.html", "<p>page</p>")] {
        peer.write(&format!("root/{name}"), content);
        // The server shows only what everybody may read.
        fs::set_permissions(root.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    let base = format!("gopher://{}", gophernicus(Arc::new(peer)).await);
    let site = cache(|_| ()).await;
    let menu = site.get(&base).await;
    let links = links(&menu, &format!("{base}/1"));
    assert!(site.get(&format!("{base}/1")).await.how().starts_with("hit; ttl="), "it is the same");
    let mut seen = Vec::new();
    for link in links {
        let object = site.get(&link).await;
        seen.push(format!("{} {} {}", object.status, object.header("content-type"), object.body));
    }
    let expected = [
        "200 text/plain; charset=utf-8 one\r\n.two\r\n",
        "200 text/html; charset=utf-8 <p>page</p>",
    ];
    assert_eq!(seen, expected);
    let missing = site.get(&format!("{base}/0/none.txt")).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    assert!(missing.body.contains("File or directory not found"), "{missing:?}");
    let head = site.ask(Method::HEAD, &format!("{base}/9/a.txt"), &[]).await;
    assert_eq!((head.status, head.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert_eq!(site.get(&format!("{base}/8login")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_articles_come_from_inn() {
    let inn = Inn::start();
    inn.give("<1$a@x>", "test.a", "One <b>", "..dot\r\nbody\r\n").await;
    inn.give("<2@x>", "test.a", "Two", "two\r\n").await;
    let server = Url::parse(&format!("nntp://{}", inn.address())).unwrap();
    let site = cache(|it| (it.news_server, it.allow_private) = (Some(server), false)).await;
    let group = site.get("news:test.a").await;
    assert_eq!(group.how(), "fwd=uri-miss; fwd-status=200; stored");
    assert!(group.body.contains(">One &lt;b&gt;</a>"), "{group:?}");
    let links = links(&group, "news:test.a");
    assert_eq!(links, ["news:2@x", "news:1$a@x"]);
    let article = site.get(&links[1]).await;
    assert_eq!(article.header("content-type"), "text/plain; charset=utf-8");
    assert!(article.body.contains("Subject: One <b>\r\n"), "{article:?}");
    assert!(article.body.ends_with("\r\n\r\n.dot\r\nbody\r\n"), "{article:?}");
    assert!(site.get("news:1$a@x").await.how().starts_with("hit; ttl=60479"));
    for missing in ["news:test.none", "news:none@x"] {
        let answer = site.get(missing).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        assert!(answer.body.contains(missing), "{answer:?}");
    }
    let closed = site.get("news:test.closed").await;
    assert!([403, 404].contains(&closed.status), "{closed:?}");

    let none = cache(|_| ()).await.get("news:test.a").await;
    assert_eq!(none.status, 501);
    assert!(none.body.contains("news_server"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_reached_is_told() {
    let site = cache(|it| it.ports = vec![1_025..=u16::MAX]).await;
    for scheme in ["ftp", "gopher"] {
        let dead = site.get(&format!("{scheme}://127.0.0.1:{}/1", free_port())).await;
        assert_eq!(dead.status, 502, "{dead:?}");
        assert!(dead.body.contains("cannot connect to 127.0.0.1:"), "{dead:?}");
        let port = site.get(&format!("{scheme}://127.0.0.1/1")).await;
        assert_eq!(port.status, 403);
        assert!(port.body.contains("`ports`"), "{port:?}");
    }
    let closed = cache(|it| it.allow_private = false).await;
    for url in ["ftp://127.0.0.1:2121/a", "gopher://localhost:7070/"] {
        let private = closed.get(url).await;
        assert_eq!(private.status, 403, "{private:?}");
        assert!(private.body.contains("allow_private"), "{private:?}");
    }
}
