//! Benchmark of searches everywhere: 50 brokers on loopback, in one process with the one that asks them.
//!
//! ```text
//! cargo bench -p broker --bench route
//! ```
//!
//! | figure | is |
//! |---|---|
//! | 5, 50 | a search that asks so many, beside the slowest of them: as it took then, and asked for the same by itself |
//! | few | one that asks 3, each of them behind two relays; then with 500 ms more for 2 % of the answers |
//! | alone | the latter with one relay each: what the second is for |
//!
//! Each broker has 400 generated records. Times are wall time.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]

mod relay;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use broker::answer::{Answer, AskedState};
use broker::config::Config;
use broker::server::Server;
use collection::{Batch, Change, Collection, Options, Stamp};
use net::client::{Client, Request, Settings};
use net::clock;
use net::shutdown::Shutdown;
use soif::Record;
use url::Url;

use relay::Relay;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of brokers, of their records, of different words, and of searches of a figure.
const BROKERS: usize = 50;
const RECORDS: usize = 400;
const WORDS: usize = 1 << 14;
const SEARCHES: usize = 400;
/// How many are asked where few are, and by default.
const FEW: usize = 3;
const USUAL: usize = 5;
/// Longest time for the brokers to know each other.
const PATIENCE: Duration = Duration::from_secs(300);

type Brokers = Vec<SocketAddr>;

/// Returns a word: those with low numbers are frequent.
fn word(random: &mut fastrand::Rng) -> String {
    let magnitude = random.u32(0..=WORDS.ilog2());
    format!("w{}", random.usize(0..1 << magnitude))
}

fn record(random: &mut fastrand::Rng, (broker, number): (usize, usize)) -> Record {
    let mut record = Record::new("FILE", format!("http://b{broker}.example/{number}"));
    let mut text =
        |words: usize| -> String { (0..words).map(|_| word(random)).collect::<Vec<_>>().join(" ") };
    record.push("Gatherer-Id", format!("{broker:016x}"));
    record.push("Gatherer-Name", format!("gatherer {broker}"));
    record.push("Type", "Text");
    record.push("Title", text(5));
    record.push("Partial-Text", text(250));
    record.push("Update-Time", "1700000000");
    record.push("Time-to-Live", "2592000000");
    record
}

async fn start(data: &Path, lines: &str) -> SocketAddr {
    let text = format!("name = \"bench\"\ndata = {data:?}\nlisten = \"127.0.0.1:0\"\n{lines}");
    let mut config = Config::parse(&text).unwrap();
    config.daemon.admin_listen = ([127, 0, 0, 1], 0).into();
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(async move { server.run(Shutdown::new()).await.unwrap() });
    address
}

/// Starts the brokers. Their records are there before they are.
async fn brokers(folder: &Path) -> Brokers {
    let mut all = Vec::new();
    for broker in 0..BROKERS {
        let data = folder.join(broker.to_string());
        let now = Stamp(clock::now_ms());
        let (collection, _) =
            Collection::open(&data.join("collection"), Options::default(), now).unwrap();
        let mut random = fastrand::Rng::with_seed(broker as u64);
        let records = (0..RECORDS).map(|it| record(&mut random, (broker, it)));
        let changes = records.map(Change::Update).collect();
        collection.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
        collection.close();
        all.push(start(&data, "").await);
    }
    all
}

fn peers<'a>(urls: impl Iterator<Item = Vec<&'a SocketAddr>>) -> String {
    let peer = |urls: Vec<&SocketAddr>| {
        let urls: Vec<String> = urls.iter().map(|it| format!("\"http://{it}/\"")).collect();
        format!("[[peer]]\nurl = [{}]\n", urls.join(", "))
    };
    urls.map(peer).collect()
}

fn client() -> Client {
    Client::new(Settings { allow_private: true, ..Settings::default() })
}

async fn search(client: &Client, at: SocketAddr, query: &str, more: &str) -> (Duration, Answer) {
    let url = Url::parse(&format!("http://{at}/api/search?q={query}{more}")).unwrap();
    let began = clock::monotonic();
    let answer = client.send(Request::get(url)).await.unwrap();
    let answer = answer.bytes(16 << 20).await.unwrap();
    let took = began.elapsed();
    (took, serde_json::from_slice(&answer).unwrap())
}

/// Waits until `asker` knows what the others have.
async fn until_known(client: &Client, asker: SocketAddr) {
    let end = clock::monotonic() + PATIENCE;
    loop {
        let (_, answer) = search(client, asker, "w1", "&scope=everywhere&ask=1").await;
        let objects = answer.everywhere.map_or(0, |it| it.objects);
        if objects == (BROKERS * RECORDS) as u64 {
            return;
        }
        assert!(clock::monotonic() < end, "{objects} objects are known");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn queries(seed: u64) -> impl Iterator<Item = String> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..SEARCHES).map(move |_| format!("{}+{}", word(&mut random), word(&mut random)))
}

/// Returns the value below which this percentage of them is, in milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1_000.0
}

/// Searches that ask few; returns the median and the 99th percentile, and how many brokers were late.
async fn few(client: &Client, asker: SocketAddr, seed: u64) -> (f64, f64, usize) {
    let (mut times, mut late) = (Vec::new(), 0);
    for query in queries(seed) {
        let more = format!("&scope=everywhere&ask={FEW}");
        let (took, answer) = search(client, asker, &query, &more).await;
        let asked = answer.everywhere.unwrap().asked;
        assert!(asked.len() <= FEW + 1, "{asked:?}");
        late += asked.iter().filter(|it| it.state != AskedState::Answered).count();
        times.push(took);
    }
    (percentile(&mut times, 50), percentile(&mut times, 99), late)
}

/// Searches that ask so many, beside the slowest of those asked: as it took then, and asked by itself.
async fn beside(client: &Client, brokers: &Brokers, (asker, ask): (SocketAddr, usize)) {
    let (mut routed, mut slowest, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for query in queries(ask as u64) {
        let more = format!("&scope=everywhere&ask={ask}");
        let (took, answer) = search(client, asker, &query, &more).await;
        let asked = answer.everywhere.unwrap().asked;
        let most = asked.iter().map(|it| it.took_ms).max().unwrap_or_default();
        let urls: Vec<_> = asked.into_iter().map(|it| it.broker.url).collect();
        let mut direct = Duration::ZERO;
        for broker in brokers.iter().filter(|it| urls.contains(&format!("http://{it}/"))) {
            direct = direct.max(search(client, *broker, &query, "").await.0);
        }
        routed.push(took);
        slowest.push(Duration::from_millis(most));
        alone.push(direct);
    }
    let [p50, slowest, alone] =
        [&mut routed, &mut slowest, &mut alone].map(|it| percentile(it, 50));
    let p99 = percentile(&mut routed, 99);
    println!(
        "{ask:<6} p50 {p50:6.1} ms, p99 {p99:6.1} ms; the slowest of those asked: p50 {slowest:.1} ms ({:.2} ×), by itself {alone:.1} ms ({:.2} ×)",
        p50 / slowest,
        p50 / alone
    );
}

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (client, brokers) = (client(), brokers(dir.path()).await);
    let asker = start(&dir.path().join("all"), &peers(brokers.iter().map(|it| vec![it]))).await;
    until_known(&client, asker).await;
    for ask in [USUAL, BROKERS] {
        beside(&client, &brokers, (asker, ask)).await;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for broker in &brokers {
        first.push(Relay::start(*broker).await);
        second.push(Relay::start(*broker).await);
    }
    let both = first.iter().zip(&second).map(|(a, b)| vec![&a.address, &b.address]);
    let both = start(&dir.path().join("both"), &peers(both)).await;
    let one = peers(first.iter().map(|it| vec![&it.address]));
    let one = start(&dir.path().join("one"), &one).await;
    until_known(&client, both).await;
    until_known(&client, one).await;
    let show = |name: &str, (p50, p99, late): (f64, f64, usize)| {
        println!(
            "{name:6} p50 {p50:6.1} ms, p99 {p99:6.1} ms: {:.1} ×; {late} without answer",
            p99 / p50
        );
    };
    show("few", few(&client, both, 2).await);
    first.iter().chain(&second).for_each(Relay::delay);
    show("few, delayed", few(&client, both, 3).await);
    show("alone, delayed", few(&client, one, 4).await);
}
