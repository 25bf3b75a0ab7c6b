//! Tests of TR §4's example, AT&T's pages: a site gathered over HTTP, page by page, and the same taken from the
//! gatherer as one stream.
//!
//! In the paper it is some 4,100 pages of HTML, 20 MB, which took 10 h to gather; the stream has 2.9 MB and took 3 min.
//! Here nginx serves pages of made prose (`prose.rs`), as long as those on average. `HARVEST_ATT_PAGES` is their number:
//! 800 (4 MB) unless it says more, as in `./test long`, since a debug build summarizes slowly.
//!
//! # Differences from the paper
//!
//! * Its hours are those of a network, and of a server of its time. Here all is on this machine, and no delay is
//!   kept between requests: what is compared is work alone. With the gatherer's delay of a second, 4,100 pages take
//!   68 minutes at least.
//! * `brief` records are as short as the paper's. The default ones, `rich`, have all words and nearly all of the text of
//!   such short pages with little markup, so that their stream is hardly shorter than the pages.

use std::fs;
use std::path::Path;
use std::time::Duration;

use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Collection, Options, Stamp};
use essence::config::EssenceConfig;
use formats::Detail;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web};
use gatherer::{Config, Phase, Server};
use net::client::{Client, Settings};
use net::clock;
use net::shutdown::Shutdown;
use url::Url;

use crate::nginx::Nginx;
use crate::peer::public_folder;
use crate::prose::Prose;

const PAGES: usize = 800;

/// Number of brokers, one after the other; the quickest pull counts, as the machine may be busy.
const PULLS: usize = 3;

/// Time for the gatherer to read all pages: much more than it should need.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one way of getting the site costs.
#[derive(Debug)]
struct Cost {
    secs: f64,
    bytes: u64,
}

/// Writes the pages; returns the number of their bytes.
fn make_site(folder: &Path, pages: usize) -> u64 {
    let prose = Prose::new();
    let mut bytes = 0;
    for number in 0..pages {
        let (path, text) = prose.page(number, pages);
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        bytes += text.len() as u64;
        fs::write(path, text).unwrap();
    }
    bytes
}

/// Gathers the site, then pulls it from the gatherer; returns the costs of both.
async fn gather_and_pull(site: &Path, pages: usize, detail: Detail) -> (Cost, Cost) {
    let nginx = Nginx::start(site, true);
    let url = Url::parse(&format!("http://{}/", nginx.running.address)).unwrap();
    let web = Web { urls_max: 2 * pages, delay: Duration::ZERO, ..Web::new(url) };
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        name: "A site".to_owned(),
        watch: Watch::Off,
        roots: vec![Root::Web(web)],
        essence: EssenceConfig { detail, ..EssenceConfig::default() },
        ..Config::for_paths(&[], &folder.path().join("gatherer"))
    };
    let server = Server::bind(config).await.unwrap();
    let (handle, address, shutdown) = (server.handle(), server.local_addr(), Shutdown::new());
    let began = clock::monotonic();
    let running = tokio::spawn(server.run(shutdown.clone()));
    let mut progress = handle.progress();
    let done = progress
        .wait_for(|it| it.phase == Phase::Idle && 0 < it.passes_done && it.harvests_due == 0);
    tokio::time::timeout(PATIENCE, done).await.expect("too slow").unwrap();
    let secs = began.elapsed().as_secs_f64();
    assert_eq!(handle.status().objects, pages as u64, "{:#?}", handle.problems());
    let answers = nginx.answers();
    let bytes = answers.iter().filter(|it| it.status == 200).map(|it| it.bytes).sum();
    let gathered = Cost { secs, bytes };

    let base = Url::parse(&format!("http://{address}/")).unwrap();
    let mut pulled: Option<Cost> = None;
    for broker in 0..PULLS {
        let cost = pull(&base, &folder.path().join(format!("broker-{broker}")), pages).await;
        if pulled.as_ref().is_none_or(|it| cost.secs < it.secs) {
            pulled = Some(cost);
        }
    }
    shutdown.start();
    running.await.unwrap().unwrap();
    (gathered, pulled.unwrap())
}

/// Pulls all records into a new collection.
async fn pull(base: &Url, folder: &Path, pages: usize) -> Cost {
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let feed = FeedClient::new(client, base.clone(), "gatherer").allow_private(true);
    let (broker, _) = Collection::open(folder, Options::default(), Stamp(1)).unwrap();
    let puller = Puller::new(feed, broker.clone(), PullLimits::default());
    let began = clock::monotonic();
    let pulled = puller.pull(None).await.unwrap();
    let secs = began.elapsed().as_secs_f64();
    assert_eq!(broker.len(), pages as u64, "{pulled:?}");
    Cost { secs, bytes: pulled.bytes }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_had_from_its_gatherer_in_less_time_and_fewer_bytes() {
    let pages = std::env::var("HARVEST_ATT_PAGES").map_or(PAGES, |text| text.parse().unwrap());
    let site = public_folder();
    let made = make_site(site.path(), pages);
    for (name, detail, ratio_min) in [("brief", Detail::BRIEF, 4.0), ("rich", Detail::RICH, 0.8)] {
        let (gathered, pulled) = gather_and_pull(site.path(), pages, detail).await;
        let bytes_ratio = gathered.bytes as f64 / pulled.bytes as f64;
        let secs_ratio = gathered.secs / pulled.secs;
        println!(
            "{pages} pages, {name} records: gathered in {:.2} s, {:.2} MB; pulled in {:.2} s, {:.2} MB \
             ({secs_ratio:.1} and {bytes_ratio:.1} x less; 200 and 6.9 in the paper)",
            gathered.secs,
            gathered.bytes as f64 / 1e6,
            pulled.secs,
            pulled.bytes as f64 / 1e6
        );
        // Each page once, and nothing else.
        assert_eq!(gathered.bytes, made);
        assert!(ratio_min < bytes_ratio, "{name}: {pulled:?}, {gathered:?}");
        assert!(1.5 < secs_ratio, "{name}: {pulled:?}, {gathered:?}");
    }
}
