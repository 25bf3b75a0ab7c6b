//! Test of a broker that is killed at random points and started again: no change is lost or
//! doubled, and index, catalog and views agree.
//!
//! The broker runs in a process of its own: this test program, started again with an environment
//! variable that makes [`child`] a broker instead of a test.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use broker::config::Config;
use broker::server::Server;
use broker::source::Source;
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Change, Collection, Oid, Options, Stamp, Version};
use common::{Origin, Running, STEP_MAX, client, object_url, url_of};
use net::clock;
use net::shutdown::Shutdown;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use url::Url;

const ID: &str = "000000000000000c";

/// Number of kills; `HARVEST_CRASH_ROUNDS` overrides it for long runs.
const CRASHES: u64 = 6;

/// Maximum time from a broker's start to its kill, milliseconds.
const LIFE_MS_MAX: u64 = 400;

/// Maximum number of objects at the source.
const OBJECTS: u64 = 200;

/// Words by which objects are in views of the same name.
const WORDS: [&str; 2] = ["apple", "pear"];

const FOLDER: &str = "HARVEST_BROKER_CHILD_FOLDER";
const FEED: &str = "HARVEST_BROKER_CHILD_FEED";

/// Not a test: runs the broker that the test kills, if the environment variables are set.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let (Ok(folder), Ok(feed)) = (std::env::var(FOLDER), std::env::var(FEED)) else { return };
    let source = Source::gatherer("a", Url::parse(&feed).unwrap());
    let mut config = config(Path::new(&folder), Source { follow: true, ..source });
    config.name = "Child".to_owned();
    let server = Server::bind(config).await.unwrap();
    println!("\nready {}", server.local_addr());
    server.run(Shutdown::new()).await.unwrap();
}

fn config(folder: &Path, source: Source) -> Config {
    let view = |it: &str| format!("[[view]]\nname = \"{it}\"\nquery = \"{it}\"\n");
    let text = format!("name = \"n\"\ndata = \"d\"\n{}", WORDS.map(view).concat());
    let views = Config::parse(&text).unwrap().views;
    Config { views, ..common::config(folder, vec![source]) }
}

/// Consumers of the views, which keep their cursors whatever happens to the broker.
struct Consumers {
    collection: Collection,
    _dir: tempfile::TempDir,
}

impl Consumers {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default();
        let (collection, _) = Collection::open(dir.path(), options, Stamp(1)).unwrap();
        Self { collection, _dir: dir }
    }

    fn puller(&self, address: SocketAddr, word: &str) -> Puller {
        let feed = FeedClient::new(client(), url_of(address), word).allow_private(true);
        let feed = feed.part(Some(("view", word.to_owned())));
        Puller::new(feed, self.collection.clone(), PullLimits::default()).confirmed(true)
    }

    /// Pulls all views over and over, as far as they can be had.
    async fn follow(&self, address: SocketAddr) {
        loop {
            for word in WORDS {
                let _ = self.puller(address, word).pull(None).await;
            }
        }
    }

    /// Checks that each view has exactly its objects: in searches, in what they count, and in what its consumer has been
    /// given.
    async fn check(&self, broker: &Running, expected: &BTreeMap<u64, String>) {
        let end = clock::monotonic() + STEP_MAX;
        for word in WORDS {
            // What the views have is found out after a start.
            while let Err(error) = self.puller(broker.address, word).pull(None).await {
                assert!(clock::monotonic() < end && error.to_string().contains("503"), "{error}");
            }
        }
        for word in WORDS {
            let has = |it: &(&u64, &String)| it.1.ends_with(word);
            let urls = expected.iter().filter(has).map(|it| object_url(*it.0));
            let urls: BTreeSet<String> = urls.collect();
            let answer = broker.search(&format!("view:{word}")).await;
            assert_eq!(answer["total"], urls.len(), "{answer}");
            loop {
                // Views without objects are not among them.
                let answer = broker.search("object").await;
                let counted = answer["facets"]["view"].as_array().unwrap();
                let counted_of = counted.iter().find(|it| it[0] == word);
                let count = counted_of.map_or(0, |it| it[1].as_u64().unwrap());
                if count == urls.len() as u64 {
                    break;
                }
                assert!(clock::monotonic() < end, "{word} has {}: {counted:?}", urls.len());
            }
            let scan = self.collection.scan(0).unwrap().map(|it| it.unwrap());
            let live = scan.filter_map(|it| match it.change {
                Change::Update(record) => {
                    let serial = self.collection.serial(&Oid::of(&record).unwrap()).unwrap();
                    let text = record.text("Partial-Text").unwrap().into_owned();
                    (serial == Some(it.serial) && text.ends_with(word)).then_some(record.url)
                }
                _ => None,
            });
            assert_eq!(live.collect::<BTreeSet<_>>(), urls, "{word}");
        }
        assert_eq!(self.collection.len(), expected.len() as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_loses_and_doubles_nothing() {
    let crashes = std::env::var("HARVEST_CRASH_ROUNDS").map_or(CRASHES, |it| it.parse().unwrap());
    let seed = std::env::var("HARVEST_CRASH_SEED")
        .map_or_else(|_| clock::now_ms(), |it| it.parse().unwrap());
    println!("HARVEST_CRASH_SEED={seed} HARVEST_CRASH_ROUNDS={crashes}");
    let mut random = Random(seed);
    let origin = Origin::start(ID).await;
    let dir = tempfile::tempdir().unwrap();
    let (mut expected, consumers) = (BTreeMap::new(), Consumers::new());
    let source = || origin.source("a");
    // The consumers have something already, which the crashes may not let them keep.
    let version = change(&origin, &mut random, &mut expected).await;
    let broker = Running::start(config(dir.path(), source())).await;
    broker.caught_up("a", version).await;
    consumers.check(&broker, &expected).await;
    broker.stop().await;
    for crash in 0..crashes {
        let (mut child, address) = spawn(dir.path(), &origin).await;
        let life = Duration::from_millis(random.below(LIFE_MS_MAX));
        let until = tokio::time::Instant::now() + life;
        let changes = async {
            while tokio::time::Instant::now() < until {
                change(&origin, &mut random, &mut expected).await;
            }
        };
        tokio::select! {
            () = changes => {}
            () = consumers.follow(address) => {}
        }
        println!("crash {crash} after {life:?}, {} objects", expected.len());
        child.kill().await.unwrap();
    }
    let version = change(&origin, &mut random, &mut expected).await;
    let broker = Running::start(config(dir.path(), source())).await;
    broker.caught_up("a", version).await;
    let objects = expected.len() as u64;
    assert_eq!(broker.total("object").await, objects, "the index has every object once");
    let status = broker.source("a").await;
    assert_eq!((status.objects, status.elements), (objects, Some(objects)), "so has the catalog");
    for (n, word) in expected.iter().take(50) {
        let answer = broker.search(&format!("number{n}")).await;
        assert_eq!(answer["total"], 1, "{n}: {answer}");
        assert_eq!(answer["hits"][0]["url"], object_url(*n));
        let answer = broker.search(&format!("number{n} AND \"{word}\"")).await;
        assert_eq!(answer["total"], 1, "{n} is of another version than {word}: {answer}");
    }
    consumers.check(&broker, &expected).await;
    broker.stop().await;
    // An index that is made anew knows of the views what the old one knew.
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    let version = change(&origin, &mut random, &mut expected).await;
    let broker = Running::start(config(dir.path(), source())).await;
    broker.caught_up("a", version).await;
    consumers.check(&broker, &expected).await;
    broker.stop().await;
}

/// Commits one random change at the source, and updates `expected`.
async fn change(
    origin: &Origin,
    random: &mut Random,
    expected: &mut BTreeMap<u64, String>,
) -> Version {
    let first = random.below(OBJECTS);
    let last = (first + random.below(10)).min(OBJECTS);
    if random.below(4) == 0 {
        expected.retain(|n, _| !(first..=last).contains(n));
        origin.delete(first..=last).await
    } else {
        let kind = WORDS[usize::from(random.below(2) == 0)];
        let word = format!("word{} {kind}", random.below(1 << 40));
        expected.extend((first..=last).map(|n| (n, word.clone())));
        origin.update(first..=last, &word).await
    }
}

async fn spawn(folder: &Path, origin: &Origin) -> (Child, SocketAddr) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).env(FEED, origin.url().as_str());
    command.stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(address) = line.strip_prefix("ready ") {
                return address.parse().unwrap();
            }
        }
        panic!("the child ended before it was ready");
    };
    let address = tokio::time::timeout(STEP_MAX, ready).await.unwrap();
    (child, address)
}

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
