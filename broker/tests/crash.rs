//! Test of a broker that is killed at random points and started again: no change is lost or
//! doubled, and index and catalog agree.
//!
//! The broker runs in a process of its own: this test program, started again with an environment
//! variable that makes [`child`] a broker instead of a test.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use broker::server::Server;
use broker::source::Source;
use collection::Version;
use common::{Origin, Running, STEP_MAX, config, object_url};
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

const FOLDER: &str = "HARVEST_BROKER_CHILD_FOLDER";
const FEED: &str = "HARVEST_BROKER_CHILD_FEED";

/// Not a test: runs the broker that the test kills, if the environment variables are set.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let (Ok(folder), Ok(feed)) = (std::env::var(FOLDER), std::env::var(FEED)) else { return };
    let source = Source::gatherer("a", Url::parse(&feed).unwrap());
    let mut config = config(Path::new(&folder), vec![Source { follow: true, ..source }]);
    config.name = "Child".to_owned();
    let server = Server::bind(config).await.unwrap();
    println!("\nready");
    server.run(Shutdown::new()).await.unwrap();
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
    let mut expected = BTreeMap::new();
    for crash in 0..crashes {
        let mut child = spawn(dir.path(), &origin).await;
        let life = Duration::from_millis(random.below(LIFE_MS_MAX));
        let until = tokio::time::Instant::now() + life;
        while tokio::time::Instant::now() < until {
            change(&origin, &mut random, &mut expected).await;
        }
        println!("crash {crash} after {life:?}, {} objects", expected.len());
        child.kill().await.unwrap();
    }
    let version = change(&origin, &mut random, &mut expected).await;
    let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
    broker.caught_up("a", version).await;
    let objects = expected.len() as u64;
    assert_eq!(broker.total("object").await, objects, "the index has every object once");
    let status = broker.source("a").await;
    assert_eq!((status.objects, status.elements), (objects, Some(objects)), "so has the catalog");
    for (n, word) in expected.iter().take(50) {
        let answer = broker.search(&format!("number{n}")).await;
        assert_eq!(answer["total"], 1, "{n}: {answer}");
        assert_eq!(answer["hits"][0]["url"], object_url(*n));
        let answer = broker.search(&format!("number{n} AND {word}")).await;
        assert_eq!(answer["total"], 1, "{n} is of another version than {word}: {answer}");
    }
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
        let word = format!("word{}", random.below(1 << 40));
        expected.extend((first..=last).map(|n| (n, word.clone())));
        origin.update(first..=last, &word).await
    }
}

async fn spawn(folder: &Path, origin: &Origin) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).env(FEED, origin.url().as_str());
    command.stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line == "ready" {
                return;
            }
        }
        panic!("the child ended before it was ready");
    };
    tokio::time::timeout(STEP_MAX, ready).await.unwrap();
    child
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
