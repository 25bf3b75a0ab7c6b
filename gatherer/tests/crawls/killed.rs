//! Tests of kill -9 amid a crawl: nothing is fetched again but what was under way.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use gatherer::config::Watch;
use gatherer::spec::{Root, Web};
use gatherer::{Config, Server};
use net::clock;
use net::shutdown::Shutdown;
use url::Url;

use crate::support::site::{Site, config, start_with};
use crate::support::{PATIENCE, Tree};

/// Variables with the data folder and the site of the test binary that is started again and killed.
const VICTIM: [&str; 2] = ["HARVEST_TEST_CRAWL_DATA", "HARVEST_TEST_CRAWL_SITE"];

const PAGES: usize = 600;

/// Numbers of requests after which the crawl is killed.
const KILLS: [usize; 3] = [100, 250, 400];

/// Maximum number of requests that are under way at a host without a delay.
const REQUESTS_MAX: usize = 8;

/// Is the child process, which crawls until it is killed. Does nothing without the variables.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let [Ok(data), Ok(site)] = VICTIM.map(env::var) else { return };
    let data = PathBuf::from(data);
    let web = Web { delay: Duration::ZERO, ..Web::new(Url::parse(&site).unwrap()) };
    let web = Web { urls_max: 2 * PAGES, ..web };
    let base = Config::for_paths(std::slice::from_ref(&data), &data);
    let config = Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..base };
    let stopped = Server::bind(config).await.unwrap().run(Shutdown::new()).await;
    panic!("stopped by itself: {stopped:?}");
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
    let tree = Tree::new();
    let mut asked = Vec::new();
    for kill in KILLS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed::victim"])
            .env(VICTIM[0], tree.data())
            .env(VICTIM[1], site.url.as_str())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = clock::monotonic() + PATIENCE;
        while asked.len() < kill && clock::monotonic() < end {
            // There is no notification of a request.
            tokio::time::sleep(Duration::from_millis(2)).await;
            asked.extend(site.take_asked());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        asked.extend(site.take_asked());
        assert!((kill..PAGES).contains(&asked.len()), "{} requests", asked.len());
    }
    let mut settings = config(&tree, &site);
    crate::support::site::web_of(&mut settings).urls_max = 2 * PAGES;
    let bench = start_with(tree, settings).await;
    asked.extend(site.take_asked());
    assert_eq!(bench.handle.status().objects, PAGES as u64, "{:#?}", bench.handle.problems());
    let mut times: HashMap<String, usize> = HashMap::new();
    for (path, status) in asked.into_iter().filter(|it| it.0 == "/" || it.0.starts_with("/p")) {
        assert_eq!(status, 200, "{path}");
        *times.entry(path).or_default() += 1;
    }
    assert_eq!(times.len(), PAGES);
    let again: usize = times.values().map(|it| it - 1).sum();
    assert!(again <= KILLS.len() * REQUESTS_MAX, "{again} pages were fetched again");
    // Nothing is left when the pass is over.
    let spool = bench.tree.data().join("spool");
    let left = std::fs::read_dir(spool).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    bench.assert_conserved();
    bench.stop().await;
}
