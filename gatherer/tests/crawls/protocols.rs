//! Tests of roots of FTP, Gopher and News, against servers that others wrote.

use std::fs::{self, File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::inn::Inn;
use crate::peer::Peer;
use crate::relay::shared;
use crate::servers::{Pyftpdlib, Vsftpd, gophernicus};
use crate::support::site::{Site, again, start_with};
use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Enumeration, Root, Web, start};
use net::fetch::Login;

/// Time of the files, in Unix seconds.
const DATE: u64 = 1_500_000_000;

/// Starts a gatherer of one root, which is asked as fast as it answers, and waits for its first pass.
async fn gather(scheme: &str, address: SocketAddr, path: &str) -> (Bench, String) {
    gather_with(scheme, address, path, |_| {}).await
}

async fn gather_with(
    scheme: &str,
    address: SocketAddr,
    path: &str,
    change: impl FnOnce(&mut Web),
) -> (Bench, String) {
    let (tree, url) = (Tree::new(), format!("{scheme}://{address}/{path}"));
    let config = config(&tree, &url, change);
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    (bench, url)
}

fn config(tree: &Tree, url: &str, change: impl FnOnce(&mut Web)) -> Config {
    let (grace, delay) = (Duration::ZERO, Duration::ZERO);
    let mut web = Web { delay, grace, ..Web::new(start(url, None).unwrap()) };
    change(&mut web);
    Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..tree.config() }
}

/// Checks that a root over TLS is gathered if the settings trust the authority of its server.
/// `start_tls` is false if its connections begin with TLS.
async fn check_secure(url: &str, start_tls: bool, authority: &str, expected: u64) {
    for is_trusted in [false, true] {
        let tree = Tree::new();
        let mut config = config(&tree, url, |it| it.start_tls = start_tls);
        if is_trusted {
            let file = tree.folder.path().join("authority.pem");
            fs::write(&file, authority).unwrap();
            config.daemon.trust = vec![file];
        }
        let bench = Bench::start_with(tree, config).await;
        bench.progress(|it| it.harvests_due == 0).await;
        let objects = bench.handle.status().objects;
        let problems = bench.handle.problems();
        assert_eq!(objects, if is_trusted { expected } else { 0 }, "{problems:#?}");
        bench.stop().await;
    }
}

/// Returns the number of bytes of all objects that were fetched so far.
async fn fetched_bytes(bench: &Bench) -> u64 {
    let (_, metrics) = bench.get_admin("metrics").await;
    let line = metrics.lines().find(|it| it.starts_with("harvest_gatherer_read_bytes_total"));
    line.and_then(|it| it.rsplit(' ').next()).unwrap().parse().unwrap()
}

async fn title(bench: &Bench, url: &str) -> String {
    let record = bench.object(url).await;
    let record = record.unwrap_or_else(|| panic!("{url}: {:#?}", bench.handle.problems()));
    record.text("Title").unwrap_or_default().into_owned()
}

/// Gives a file a time that is long ago, so that a later change will show.
fn date(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(DATE)).unwrap();
}

fn page(title: &str) -> Vec<u8> {
    format!("<title>{title}</title><p>text of {title}").into_bytes()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a.html", page("Apples")),
        ("sub/b d.html", page("Pears")),
        ("sub/-R [1]/c.html", [page("Plums"), b"<a href='../../a.html'>a</a>".to_vec()].concat()),
        ("old.html", page("Old")),
    ]
}

/// What is gathered from each of the FTP servers with these files, and changed there.
async fn check_ftp(address: SocketAddr, write: impl Fn(&str, &[u8]), remove: impl Fn(&str)) {
    let (bench, url) = gather("ftp", address, "").await;
    let at = |path: &str| format!("{url}{path}");
    assert_eq!(bench.handle.status().objects, 4, "{:#?}", bench.handle.problems());
    assert_eq!(title(&bench, &at("a.html")).await, "Apples");
    assert_eq!(title(&bench, &at("sub/b%20d.html")).await, "Pears");
    assert_eq!(title(&bench, &at("sub/-R%20%5B1%5D/c.html")).await, "Plums");
    let record = bench.object(&at("a.html")).await.unwrap();
    let date: u64 = record.text("Last-Modification-Time").unwrap().parse().unwrap();
    assert!((DATE - 86_400..=DATE).contains(&date), "lists tell only the day: {date}");
    assert_eq!(record.text("Gatherer-Root").unwrap(), url);
    bench.assert_conserved();

    let before = fetched_bytes(&bench).await;
    again(&bench).await;
    assert_eq!(fetched_bytes(&bench).await, before, "the lists tell that nothing has changed");
    assert_eq!(bench.handle.status().objects, 4);

    write("a.html", &page("Apples and more"));
    write("sub/new/e.html", &page("Elder"));
    remove("old.html");
    again(&bench).await;
    assert_eq!(title(&bench, &at("a.html")).await, "Apples and more");
    assert_eq!(title(&bench, &at("sub/new/e.html")).await, "Elder");
    again(&bench).await;
    bench.until_url(&at("old.html"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 4);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vsftpd_is_gathered_by_one_list_of_its_tree() {
    let server = Vsftpd::start(false, &files());
    for (name, _) in files() {
        date(&server.path(name));
    }
    let remove = |name: &str| fs::remove_file(server.path(name)).unwrap();
    check_ftp(server.running.address, |name, content| server.write(name, content), remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyftpdlib_is_gathered_folder_by_folder() {
    let server = Pyftpdlib::start(false, &files());
    for (name, _) in files() {
        date(&server.path(name));
    }
    let write = |name: &str, content: &[u8]| {
        fs::create_dir_all(server.path(name).parent().unwrap()).unwrap();
        fs::write(server.path(name), content).unwrap();
    };
    let remove = |name: &str| fs::remove_file(server.path(name)).unwrap();
    check_ftp(server.running.address, write, remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_ftp_may_be_named_without_its_slash() {
    let server = Pyftpdlib::start(false, &files());
    let (bench, url) = gather("ftp", server.running.address, "sub").await;
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    assert_eq!(title(&bench, &format!("{url}/b%20d.html")).await, "Pears");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_over_tls_are_gathered_if_their_authority_is_trusted() {
    let server = Pyftpdlib::start(true, &files());
    let url = format!("ftp://{}/", server.running.address);
    check_secure(&url, true, &server.authority, 4).await;
    let server = Vsftpd::start_implicit(&files());
    let url = format!("ftps://{}/", server.running.address);
    check_secure(&url, false, &server.authority, 4).await;
    let server = Inn::start();
    server.give("<1@x.invalid>", "test.a", "Apples", "One.\r\n").await;
    let url = format!("news://{}/test.a", server.address());
    check_secure(&url, true, &server.authority, 1).await;
    let implicit = server.start_implicit();
    let url = format!("snews://{}/test.a", implicit.address);
    check_secure(&url, false, &server.authority, 1).await;
}

/// Checks that a page leads to what is at a server over TLS if the root's settings name its scheme, and that all of
/// it stays. `expected` is the number of objects there.
async fn check_link(scheme: &str, path: &str, server: (SocketAddr, &str), expected: u64) {
    let site = Site::start(&[]).await;
    let plain = site.url.socket_addrs(|| None).unwrap()[0];
    let address = shared(server.0, plain).await;
    site.set("/", &format!("<title>Start</title><a href='{scheme}://{address}/{path}'>o</a>"));
    for schemes in [vec!["http"], vec!["http", scheme]] {
        let all = if schemes.len() == 2 { 1 + expected } else { 1 };
        let tree = Tree::new();
        let mut config = config(&tree, &format!("http://{address}/"), |it| {
            it.schemes = schemes.into_iter().map(str::to_owned).collect();
        });
        let file = tree.folder.path().join("authority.pem");
        fs::write(&file, server.1).unwrap();
        config.daemon.trust = vec![file];
        let bench = start_with(tree, config).await;
        for _ in 0..2 {
            let problems = bench.handle.problems();
            assert_eq!(bench.handle.status().objects, all, "{scheme} {path}: {problems:#?}");
            again(&bench).await;
        }
        bench.assert_conserved();
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_lead_to_servers_over_tls_if_the_settings_name_their_schemes() {
    let server = Vsftpd::start_implicit(&files());
    let address = (server.running.address, &*server.authority);
    check_link("ftps", "", address, 4).await;
    check_link("ftps", "sub/b%20d.html", address, 1).await;
    let server = Inn::start();
    for it in 1..4 {
        let id = format!("<{it}+a/b@x.invalid>");
        server.give(&id, "test.a", &format!("Number {it}"), "One.\r\n").await;
    }
    let implicit = server.start_implicit();
    let address = (implicit.address, &*server.authority);
    check_link("snews", "test.a", address, 3).await;
    check_link("snews", "2%2Ba%2Fb@x.invalid", address, 1).await;
}

fn login() -> Option<Box<Login>> {
    let (name, password) = (crate::inn::NAME.to_owned(), "secret".to_owned());
    Some(Box::new(Login { name, password }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_password_open_what_is_closed() {
    let server = Inn::start();
    server.give("<1@x.invalid>", "test.closed", "Closed", "One.\r\n").await;
    let (bench, _) = gather("news", server.address(), "test.closed").await;
    let problems = bench.handle.problems();
    assert!(problems.iter().any(|it| it.message.contains("name and password")), "{problems:#?}");
    bench.stop().await;
    let with_login = |it: &mut Web| it.login = login();
    let (bench, _) = gather_with("news", server.address(), "test.closed", with_login).await;
    assert_eq!(bench.handle.status().objects, 1, "{:#?}", bench.handle.problems());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gophernicus_is_gathered() {
    let peer = Arc::new(Peer::unpack("gophernicus"));
    let root = peer.make_folder("root");
    peer.make_folder("root/sub");
    for (name, content) in [("a.html", page("Apples")), ("sub/b.txt", b"Pears are ripe\n".to_vec())]
    {
        peer.write(&format!("root/{name}"), content);
        // The server shows only what everybody may read.
        fs::set_permissions(root.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    let (bench, url) = gather("gopher", gophernicus(peer.clone()).await, "").await;
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    assert_eq!(title(&bench, &format!("{url}h/a.html")).await, "Apples");
    let text = bench.object(&format!("{url}0/sub/b.txt")).await.unwrap();
    assert!(text.text("Partial-Text").or_else(|| text.text("Full-Text")).unwrap().contains("ripe"));

    peer.write("root/a.html", page("Apples and more"));
    fs::set_permissions(root.join("a.html"), Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(root.join("sub/b.txt")).unwrap();
    again(&bench).await;
    assert_eq!(title(&bench, &format!("{url}h/a.html")).await, "Apples and more");
    assert_eq!(bench.handle.status().objects, 2, "gone once is not gone");
    again(&bench).await;
    bench.until_url(&format!("{url}0/sub/b.txt"), |it| it.is_none()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newsgroup_is_gathered() {
    let server = Inn::start();
    server.give("<1@x.invalid>", "test.a", "Apples", "One.\r\n").await;
    server.give("<2+a/b@x.invalid>", "test.a", "Pears", "Two.\r\n").await;
    let (bench, url) = gather("news", server.address(), "test.a").await;
    let at = |id: &str| url.replace("test.a", id);
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    let record = bench.object(&at("1@x.invalid")).await.unwrap();
    assert_eq!(
        (record.text("Type").unwrap(), record.text("Title").unwrap()),
        ("News".into(), "Apples".into())
    );
    assert_eq!(title(&bench, &at("2%2Ba%2Fb@x.invalid")).await, "Pears");

    let before = fetched_bytes(&bench).await;
    server.cancel("<1@x.invalid>");
    server.give("<3@x.invalid>", "test.a", "Plums", "Three.\r\n").await;
    again(&bench).await;
    assert_eq!(title(&bench, &at("3@x.invalid")).await, "Plums");
    bench.until_url(&at("1@x.invalid"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 2);
    let after = fetched_bytes(&bench).await;
    assert!(before < after && after < 2 * before, "only the new article is fetched");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newsgroup_says_nothing_of_articles_of_others() {
    let server = Inn::start();
    server.give("<1@x.invalid>", "test.a", "Apples", "One.\r\n").await;
    server.give("<2@x.invalid>", "test.closed", "Pears", "Two.\r\n").await;
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls.txt");
    let other = format!("news://{}/2@x.invalid", server.address());
    fs::write(&list, format!("{other}\n")).unwrap();
    let (bench, _) = gather_with("news", server.address(), "test.a", |it| {
        it.login = login();
        it.enumeration = vec![Enumeration::File(list)];
    })
    .await;
    for _ in 0..2 {
        assert_eq!(title(&bench, &other).await, "Pears");
        assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
        again(&bench).await;
    }
    // It is asked for itself whether it is there.
    server.cancel("<2@x.invalid>");
    for _ in 0..2 {
        again(&bench).await;
    }
    bench.until_url(&other, |it| it.is_none()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_that_expire_at_the_server_go() {
    let server = Inn::start();
    server.give("<1@x.invalid>", "test.a", "Apples", "One.\r\n").await;
    server.give("<2@x.invalid>", "test.a", "Pears", "Two.\r\n").await;
    let (bench, url) = gather("news", server.address(), "test.a").await;
    let at = |id: &str| url.replace("test.a", id);
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    server.expire().await;
    server.give("<3@x.invalid>", "test.a", "Plums", "Three.\r\n").await;
    again(&bench).await;
    assert_eq!(title(&bench, &at("3@x.invalid")).await, "Plums");
    for id in ["1@x.invalid", "2@x.invalid"] {
        bench.until_url(&at(id), |it| it.is_none()).await;
    }
    assert_eq!(bench.handle.status().objects, 1);
    // So it is if none is left, and the group stays.
    server.expire().await;
    again(&bench).await;
    bench.until_url(&at("3@x.invalid"), |it| it.is_none()).await;
    assert!(!bench.problems().iter().any(|it| it.starts_with("crawl")), "{:?}", bench.problems());
    bench.assert_conserved();
    bench.stop().await;
}
