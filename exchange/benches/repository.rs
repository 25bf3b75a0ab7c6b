//! A repository of a million records: how fast a list is served, and whether its last part is as fast as
//! its first. `cargo bench -p exchange --bench repository`; `RECORDS=100000` for fewer.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a benchmark prints what it measures"
)]

use std::hint::black_box;
use std::time::Instant;

use axum::body::Body;
use axum::http::Request;
use collection::{Batch, Change, Collection, Options, Stamp};
use exchange::repository::{Daemon, Repository, Settings};
use http_body_util::BodyExt as _;
use net::clock;
use net::shutdown::Shutdown;
use soif::Record;
use tower::ServiceExt as _;

/// Records that are served in a second, at least.
const PER_SECOND_MIN: f64 = 20_000.0;
/// How much longer the last parts may take than the first.
const SLOWER_MAX: f64 = 1.5;
/// Records of one commit.
const BATCH: usize = 10_000;
/// Parts at either end that are timed.
const PARTS: usize = 20;

fn record(n: usize) -> Change {
    let mut record = Record::new("FILE", format!("https://www.example.org/papers/{n}.html"));
    record.push("Gatherer-Id", "0123456789abcdef");
    record.push("Gatherer-Root", "https://www.example.org/papers/");
    record.push("Type", ["PDF", "HTML", "Text"][n % 3]);
    record.push("Title", format!("The {n}th paper on the life of summaries & records"));
    record.push("Author", "A. Librarian\nB. Reader");
    record.push("Keywords", "harvest\nrepository\nmetadata\nsummary");
    record.push("Abstract", "What is summarized once need not be read again. ".repeat(8));
    record.push("MD5", format!("{n:032x}"));
    record.push("Last-Modification-Time", (1_700_000_000 + n).to_string());
    Change::Update(record)
}

async fn ask(repository: &Repository, query: &str) -> String {
    let request = Request::get(format!("/oai?{query}")).body(Body::empty()).unwrap();
    let response = repository.routes().oneshot(request).await.unwrap();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn token(text: &str) -> Option<&str> {
    let found = text.rsplit_once("<resumptionToken")?.1.split_once('>')?.1.split('<').next()?;
    Some(found).filter(|it| !it.is_empty())
}

/// Seconds of processor time that the process has taken.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    // Ticks of 10 ms on every Linux that Rust runs on.
    (ticks(11) + ticks(12)) / 100.0
}

fn mean_ms(secs: &[f64]) -> f64 {
    secs.iter().sum::<f64>() * 1_000.0 / secs.len() as f64
}

/// Reads a list to its end; prints and checks. What counts is processor time: others may be at work.
async fn list(repository: &Repository, what: &str, arguments: &str) {
    let mut query = format!("verb=ListRecords&{arguments}");
    let (mut times, mut records) = (Vec::new(), 0);
    let began = clock::monotonic();
    loop {
        let before = cpu_secs();
        let text = ask(repository, &query).await;
        times.push(cpu_secs() - before);
        records += text.matches("<record>").count();
        match token(black_box(&text)) {
            Some(token) => query = format!("verb=ListRecords&resumptionToken={token}"),
            None => break,
        }
    }
    let parts = PARTS.min(times.len() - 2);
    // The first of all may find what is read from the disk once; the last is shorter.
    let first = mean_ms(&times[1..=parts]);
    let last = mean_ms(&times[times.len() - 1 - parts..times.len() - 1]);
    let rate = records as f64 / times.iter().sum::<f64>();
    println!(
        "{what:26} {records:8} records, {rate:7.0} in a second of one processor ({:.0} in one of the \
         clock); parts: first {first:.2} ms, last {last:.2} ms",
        records as f64 / since(began)
    );
    assert!(PER_SECOND_MIN <= rate || records < BATCH, "{rate} records a second");
    assert!(last <= first * SLOWER_MAX, "the last parts are slower");
}

fn since(began: Instant) -> f64 {
    clock::monotonic().duration_since(began).as_secs_f64()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    #[allow(clippy::disallowed_methods, reason = "a benchmark may be told how much")]
    let count = std::env::var("RECORDS").ok().and_then(|it| it.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let began = clock::monotonic();
    let folder = dir.path().join("collection");
    let (collection, _) = Collection::open(&folder, Options::default(), Stamp(1)).unwrap();
    for (batch, from) in (0..count).step_by(BATCH).enumerate() {
        let changes = (from..count.min(from + BATCH)).map(record).collect();
        let now = Stamp(1_700_000_000_000 + batch as u64 * 1_000);
        collection.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
    }
    println!("{count} records made in {:.1} s", since(began));
    let daemon =
        Daemon { name: "Bench".into(), id: "0123456789abcdef".into(), ..Daemon::default() };
    for round in ["made", "read from its file"] {
        let sets = dir.path().join("oai/sets");
        let repository =
            Repository::new(collection.clone(), Settings::default(), daemon.clone(), sets);
        let shutdown = Shutdown::new();
        let (kept, stop) = (repository.clone(), shutdown.clone());
        let began = clock::monotonic();
        let keep = tokio::spawn(async move { kept.keep(stop).await });
        while repository.counters().ready == 0 {
            tokio::task::yield_now().await;
        }
        println!("sets {round} in {:.2} s", since(began));
        if round == "made" {
            list(&repository, "oai_dc", "metadataPrefix=oai_dc").await;
            list(&repository, "soif", "metadataPrefix=soif").await;
            list(&repository, "oai_dc, one type of three", "metadataPrefix=oai_dc&set=type:PDF")
                .await;
            let from = 1_700_000_000 + (count / BATCH) as i64 * 9 / 10;
            let from = oai::Datestamp::at(from, oai::Granularity::Second);
            list(
                &repository,
                "oai_dc, the last tenth",
                &format!("metadataPrefix=oai_dc&from={from}"),
            )
            .await;
        }
        shutdown.start();
        keep.await.unwrap();
    }
}
