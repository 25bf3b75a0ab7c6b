//! Measurements of a repository and a harvester, each in its own process. `benches/oai` runs them.
//!
//! * `measure make DATA COUNT`: creates a collection of COUNT summaries of articles.
//! * `measure serve DATA`: serves the repository of that collection on a free port, whose address
//!   it prints, until standard input ends. Then it prints its CPU-seconds (user and system, all
//!   threads) and its peak resident memory.
//! * `measure scan DATA`: reads the collection's records, 500 at a time, and does nothing with
//!   them.
//! * `measure list URL`: requests a whole list of records, part after part, and searches only for
//!   the tokens. It prints the records, the seconds of wall time, and the milliseconds of a part
//!   (the first, and the median at the beginning and at the end).
//! * `measure harvest URL`: harvests all records as a broker does, into SOIF that is dropped. It
//!   prints the records, seconds of wall time, CPU-seconds, and peak resident memory.

#![allow(clippy::print_stdout, reason = "its purpose is to print")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use collection::{Batch, Change, Collection, Options, Stamp};
use exchange::harvester::{Access, Bounds, Repository as Source, Running, Step};
use exchange::repository::{Daemon, Repository, Settings};
use net::client::{self, Client, Request};
use net::clock;
use net::server::Limits;
use net::shutdown::Shutdown;
use oai::crosswalk::{SourceIdentity, to_soif};
use oai::harvest::{self, Checkpoint};
use soif::Record;
use soif::digest::Md5;
use url::Url;

/// The allocator of `harvest`, which decides about time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Clock ticks in a second, in `/proc`.
const TICKS: f64 = 100.0;

/// Records of each commit, and of each part of a list.
const BATCH: u64 = 500;

/// Maximum number of parts that are timed at the beginning, and at the end.
const TIMED: usize = 100;

const GATHERER: &str = "0123456789abcdef";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.as_slice() {
        ["make", data, count] => make(Path::new(data), count.parse().unwrap()),
        ["serve", data] => runtime.block_on(serve(Path::new(data))),
        ["scan", data] => scan(Path::new(data)),
        ["list", url] => runtime.block_on(list(url)),
        ["harvest", url] => runtime.block_on(harvest(url)),
        _ => panic!("see the head of exchange/examples/measure_oai.rs"),
    }
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

fn open(data: &Path) -> Collection {
    Collection::open(&data.join("collection"), Options::default(), now()).unwrap().0
}

/// Returns generated text, the same for the same seed.
fn words(seed: u64, count: u64) -> String {
    const WORDS: [&str; 16] = [
        "harvest",
        "orchard",
        "yield",
        "of",
        "the",
        "résumé",
        "under",
        "late",
        "frost",
        "and",
        "soil",
        "measured",
        "in",
        "<i>vitro</i>",
        "R&D",
        "seasons",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..count {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(state >> 60).unwrap();
        text.push_str(WORDS[index]);
        text.push(' ');
    }
    text
}

fn make(data: &Path, count: u64) {
    let collection = open(data);
    for start in (0..count).step_by(usize::try_from(BATCH).unwrap()) {
        let article = |n: u64| {
            let url = format!("http://journal.example/articles/{n}");
            let mut record = Record::new("FILE", url.as_str());
            record.push("Gatherer-Id", GATHERER);
            record.push("MD5", Md5::of(&n.to_le_bytes()).to_string());
            record.push("Title", format!("{}{n}", words(n, 9)));
            record.push("Author", format!("Author, A{}\nWriter, B{}", n % 977, n % 1_009));
            record.push("Abstract", words(n + 1, 90));
            record.push("Keywords", words(n + 2, 6).trim_end().replace(' ', "\n"));
            record.push("Type", ["Article", "Report", "Thesis"][usize::try_from(n % 3).unwrap()]);
            record.push("Last-Modification-Time", (1_700_000_000 + n).to_string());
            Change::Update(record)
        };
        let changes = (start..(start + BATCH).min(count)).map(article).collect();
        collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
    }
    println!("made {count}");
}

async fn serve(data: &Path) {
    let daemon = Daemon { name: "Articles".into(), id: GATHERER.into(), ..Daemon::default() };
    let repository = Repository::new(open(data), Settings::default(), daemon, data.join("sets"));
    let shutdown = Shutdown::new();
    let listener = net::server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let keeper = repository.clone();
    let stop = shutdown.clone();
    let keeping = tokio::spawn(async move { keeper.keep(stop).await });
    while repository.counters().ready == 0 {
        tokio::task::yield_now().await;
    }
    let start = cpu_s();
    let routes = repository.routes();
    let serving =
        tokio::spawn(net::server::serve(listener, routes, Limits::default(), shutdown.clone()));
    println!("http://{address}/oai");
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(read).await.unwrap().unwrap();
    shutdown.start();
    serving.await.unwrap().unwrap();
    keeping.await.unwrap();
    let records = repository.counters().records;
    println!("served records {records} cpu {:.2} resident {}", cpu_s() - start, peak_kb());
}

fn scan(data: &Path) {
    let collection = open(data);
    let (began, start) = (clock::monotonic(), cpu_s());
    let (mut records, mut bytes) = (0_u64, 0);
    let last = collection.version().serial;
    for first in (1..=last).step_by(usize::try_from(BATCH).unwrap()) {
        for found in collection.pick((first..first + BATCH).collect()) {
            let Change::Update(record) = found.unwrap().change else { continue };
            records += 1;
            bytes += record.attributes().iter().map(|it| it.value.len()).sum::<usize>();
        }
    }
    let wall = began.elapsed().as_secs_f64();
    println!("scan records {records} bytes {bytes} wall {wall:.3} cpu {:.2}", cpu_s() - start);
}

fn client() -> Client {
    Client::new(client::Settings { allow_private: true, ..client::Settings::default() })
}

async fn list(url: &str) {
    let client = client();
    let base = Url::parse(url).unwrap();
    let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
    let (mut records, mut bytes, mut parts) = (0, 0, Vec::new());
    let began = clock::monotonic();
    loop {
        let mut url = base.clone();
        url.set_query(Some(&query));
        let asked = clock::monotonic();
        let answer = client.send(Request::get(url)).await.unwrap();
        assert!(answer.status.is_success(), "{}", answer.status);
        let page = answer.bytes(64 << 20).await.unwrap();
        let found = memchr::memmem::find_iter(&page, b"<record>").count();
        parts.push((asked.elapsed().as_secs_f64() * 1e3, found));
        records += found;
        bytes += page.len();
        let Some(at) = memchr::memmem::rfind(&page, b"<resumptionToken") else { break };
        let rest = String::from_utf8_lossy(page.split_at(at).1);
        let token = rest.split_once('>').unwrap().1.split('<').next().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        query = format!("verb=ListRecords&resumptionToken={token}");
    }
    let wall = began.elapsed().as_secs_f64();
    // The full parts, without the first, whose request counts the list.
    let whole: Vec<f64> =
        parts.iter().skip(1).filter(|it| it.1 as u64 == BATCH).map(|it| it.0).collect();
    let least = |some: &[f64]| {
        let mut some = some.to_vec();
        some.sort_by(f64::total_cmp);
        some.get(some.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (head, tail) = (whole.len().min(TIMED), whole.len().saturating_sub(TIMED));
    println!("list records {records} bytes {bytes} wall {wall:.3}");
    println!(
        "parts first {:.2} begin {:.2} end {:.2}",
        parts[0].0,
        least(&whole[..head]),
        least(&whole[tail..])
    );
}

async fn harvest(url: &str) {
    let base = Url::parse(url).unwrap();
    let access = Access { allow_private: true, ..Access::default() };
    let source = SourceIdentity::new(url);
    let repository = Source::new(client(), base, access);
    let settings = harvest::Settings::new(url);
    let (began, start) = (clock::monotonic(), cpu_s());
    let mut running = Running::new(
        repository,
        settings,
        Checkpoint::default(),
        Bounds::default(),
        Shutdown::new(),
    );
    let (mut records, mut bytes, mut out) = (0_u64, 0, Vec::new());
    loop {
        match running.next().await {
            Step::Batch(batch) => {
                out.clear();
                for record in &batch.records {
                    let (summary, _problems) = to_soif(record, "oai_dc", &source, false);
                    soif::write_record(&mut out, &summary);
                }
                records += batch.records.len() as u64;
                bytes += out.len();
            }
            Step::End(end) => {
                end.outcome.unwrap();
                break;
            }
            Step::Stopped => unreachable!("nobody stops it"),
        }
    }
    let wall = began.elapsed().as_secs_f64();
    let cpu = cpu_s() - start;
    println!(
        "harvest records {records} bytes {bytes} wall {wall:.3} cpu {cpu:.2} resident {}",
        peak_kb()
    );
}

/// Returns the CPU seconds of this process so far, user and system, all threads.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after = stat.rsplit(')').next().unwrap();
    let ticks = after.split_whitespace().skip(11).take(2).map(|it| it.parse::<f64>().unwrap());
    ticks.sum::<f64>() / TICKS
}

/// Returns the peak resident memory so far, in KiB.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
