//! Tests of kill -9 amid a crawl: nothing is fetched again but what was under way.

use std::collections::HashMap;
use std::env;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gatherer::config::Watch;
use gatherer::spec::{Root, Web, start};
use gatherer::{Config, Server};
use net::shutdown::Shutdown;

use crate::inn::Inn;
use crate::peer::Peer;
use crate::relay::Relay;
use crate::servers::{Pyftpdlib, Vsftpd, gophernicus};
use crate::support::site::{Site, start_with};
use crate::support::{Bench, PATIENCE, Tree};

/// Variables with the data folder and the site of the test binary that is started again and killed.
const VICTIM: [&str; 2] = ["HARVEST_TEST_CRAWL_DATA", "HARVEST_TEST_CRAWL_SITE"];

/// Number of pages of a web site, and of objects of another server.
const PAGES: usize = 600;
const OBJECTS: usize = 120;

/// Parts of the requests after which the crawl is killed, of six.
const KILLS: [usize; 3] = [1, 2, 4];

/// Maximum number of requests that are under way at a host without a delay; of those that list what they have.
const REQUESTS_MAX: usize = 8;
const LISTED_MAX: usize = 1;

fn settings(data: &Path, url: &str) -> Config {
    let web = Web { delay: Duration::ZERO, ..Web::new(start(url, None).unwrap()) };
    let web = Web { urls_max: 2 * PAGES, ..web };
    let base = Config::for_paths(&[data.to_owned()], data);
    Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..base }
}

/// Is the child process, which crawls until it is killed. Does nothing without the variables.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let [Ok(data), Ok(site)] = VICTIM.map(env::var) else { return };
    let config = settings(&PathBuf::from(data), &site);
    let stopped = Server::bind(config).await.unwrap().run(Shutdown::new()).await;
    panic!("stopped by itself: {stopped:?}");
}

/// Gathers from `url` and kills the gatherer, again and again, then lets it come to its end: all objects are there.
/// `asked` waits for this number of requests, and returns that of all so far.
async fn kill_and_go_on(url: &str, objects: usize, mut asked: impl AsyncFnMut(usize) -> usize) {
    let tree = Tree::new();
    for part in KILLS {
        let kill = part * objects / 6;
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed::victim"])
            .env(VICTIM[0], tree.data())
            .env(VICTIM[1], url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let waited = tokio::time::timeout(PATIENCE, asked(kill)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(waited.is_ok(), "{kill} requests never came");
        let count = asked(0).await;
        assert!((kill..objects).contains(&count), "{count} requests");
    }
    let settings = settings(&tree.data(), url);
    let bench = start_with(tree, settings).await;
    check_end(&bench, objects);
    bench.stop().await;
}

fn check_end(bench: &Bench, objects: usize) {
    assert_eq!(bench.handle.status().objects, objects as u64, "{:#?}", bench.handle.problems());
    // Nothing is left when the pass is over.
    let spool = bench.tree.data().join("spool");
    let left = fs::read_dir(spool).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    bench.assert_conserved();
}

/// Checks that all objects were asked for, and again only those for which requests were under way at a kill.
fn check_asked(asked: impl IntoIterator<Item = String>, objects: usize, under_way_max: usize) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for it in asked {
        *times.entry(it).or_default() += 1;
    }
    assert_eq!(times.len(), objects);
    let again: usize = times.values().map(|it| it - 1).sum();
    assert!(again <= KILLS.len() * under_way_max, "{again} were fetched again");
}

/// Does so with the objects of another server than of the web, whose requests have this text.
async fn check_other(scheme: &str, path: &str, relay: &Relay, text: &str, under_way_max: usize) {
    let url = format!("{scheme}://{}/{path}", relay.address);
    kill_and_go_on(&url, OBJECTS, async |count| relay.asked(text, count).await.len()).await;
    check_asked(relay.asked(text, 0).await, OBJECTS, under_way_max);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_is_not_fetched_again_after_a_kill() {
    let site = Site::start(&[]).await;
    for number in 0..PAGES {
        let links = [2 * number + 1, 2 * number + 2]
            .map(|it| if it < PAGES { format!("<a href=/p{it}>p</a>") } else { String::new() });
        let path = if number == 0 { "/".to_owned() } else { format!("/p{number}") };
        site.set(&path, &format!("<title>Page {number}</title>{}", links.concat()));
    }
    let mut asked = Vec::new();
    let count = async |count| loop {
        asked.extend(site.take_asked());
        if count <= asked.len() {
            return asked.len();
        }
        // There is no notification of a request.
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    kill_and_go_on(site.url.as_str(), PAGES, count).await;
    asked.extend(site.take_asked());
    let pages = asked.into_iter().filter(|it| it.0 == "/" || it.0.starts_with("/p"));
    let pages = pages.inspect(|(path, status)| assert_eq!(*status, 200, "{path}"));
    check_asked(pages.map(|it| it.0), PAGES, REQUESTS_MAX);
}

/// Returns files in folders.
fn files() -> Vec<(String, Vec<u8>)> {
    let file = |it| (format!("{}/{it}.txt", it % 8), format!("text {it}\n").into_bytes());
    (0..OBJECTS).map(file).collect()
}

async fn check_ftp(server: SocketAddr) {
    let relay = Relay::start(server).await;
    check_other("ftp", "", &relay, "RETR ", LISTED_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_with_vsftpd() {
    let files = files();
    let files: Vec<_> = files.iter().map(|it| (it.0.as_str(), it.1.clone())).collect();
    let server = Vsftpd::start(false, &files);
    check_ftp(server.running.address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_with_pyftpdlib() {
    let files = files();
    let files: Vec<_> = files.iter().map(|it| (it.0.as_str(), it.1.clone())).collect();
    let server = Pyftpdlib::start(false, &files);
    check_ftp(server.running.address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_with_gophernicus() {
    let peer = Arc::new(Peer::unpack("gophernicus"));
    let root = peer.make_folder("root");
    let relay = Relay::start(gophernicus(peer.clone()).await).await;
    let (host, port) = (relay.address.ip(), relay.address.port());
    let item = |it| format!("0Text {it}\t/{it}.txt\t{host}\t{port}\n");
    peer.write("root/gophermap", (0..OBJECTS).map(item).collect::<String>());
    for it in 0..OBJECTS {
        peer.write(&format!("root/{it}.txt"), format!("text {it}\n"));
    }
    for file in fs::read_dir(root).unwrap() {
        // The server shows only what everybody may read.
        fs::set_permissions(file.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
    }
    check_other("gopher", "", &relay, ".txt", REQUESTS_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_with_inn() {
    let server = Inn::start();
    for it in 0..OBJECTS {
        let (id, subject) = (format!("<{it}@x.invalid>"), format!("Number {it}"));
        server.give(&id, "test.a", &subject, &format!("Text {it}.\r\n")).await;
    }
    let relay = Relay::start(server.address()).await;
    check_other("news", "test.a", &relay, "ARTICLE ", LISTED_MAX).await;
}
