//! Speed of commits and disk space after churn, each beside a yardstick of the same run.
//!
//! `cargo bench -p collection --bench log`. `HARVEST_RECORDS` is the number of records that the
//! first part appends (default 200,000).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use collection::{Batch, Change, Collection, Oid, Options, Stamp};
use flate2::Compression;
use flate2::write::GzEncoder;
use net::clock;
use soif::Record;
use soif::digest::Md5;

/// Records of a commit.
const BATCH: u64 = 1000;
/// Objects that are churned.
const CHURNED: u64 = 100_000;
/// Number of times that each of them is overwritten.
const OVERWRITES: u64 = 10;
/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
/// Number of words of the records' language.
const WORDS: usize = 8_000;
const GATHERER: &str = "0123456789abcdef";

fn main() {
    let records = std::env::var("HARVEST_RECORDS").ok().and_then(|it| it.parse().ok());
    let records = records.unwrap_or(200_000);
    let author = Author::new();
    for (bytes, records) in [(500, records), (2000, records / 4)] {
        append(&author, bytes, records);
    }
    churn(&author);
}

fn url(n: u64) -> String {
    format!("http://www.example.org/collection/{:03}/object-{n}.html", n % 997)
}

/// A writer of records: their words have natural frequencies (Zipf), to compress like text.
struct Author {
    words: Vec<String>,
}

impl Author {
    fn new() -> Self {
        let mut random = Random(1);
        let word = |_| {
            let letters = 2 + random.below(9);
            (0..letters)
                .map(|_| char::from(b"etaoinshrdlucmfwypvbgkjqxz"[random.below(26)]))
                .collect()
        };
        Self { words: (0..WORDS).map(word).collect() }
    }

    /// Makes a record of about `bytes` bytes, different in each `round`.
    fn record(&self, n: u64, round: u64, bytes: usize) -> Record {
        let mut record = Record::new("FILE", url(n));
        record.push("Gatherer-Id", GATHERER);
        record.push("Gatherer-Root", "http://www.example.org/collection/");
        record.push("MD5", Md5::of(&[n.to_le_bytes(), round.to_le_bytes()].concat()).to_string());
        let mut random = Random((n + 1) * 31 + round);
        let mut text = String::new();
        while text.len() + 230 < bytes {
            // Ranks are drawn below a random number, so few words are frequent, as in text.
            let rank = (0..2).fold(WORDS, |below, _| random.below(below) + 1);
            text.push_str(&self.words[rank - 1]);
            text.push(' ');
        }
        record.push("Partial-Text", text);
        record
    }
}

/// A generator of the same random numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = clock::monotonic();
    (work(), start.elapsed())
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

fn batches(
    author: &Author,
    records: u64,
    round: u64,
    bytes: usize,
) -> impl Iterator<Item = (Vec<Change>, usize)> {
    (0..records).step_by(usize::try_from(BATCH).unwrap()).map(move |start| {
        let range = start..(start + BATCH).min(records);
        let records: Vec<Record> = range.map(|n| author.record(n, round, bytes)).collect();
        let mut plain = Vec::new();
        records.iter().for_each(|it| soif::write_record(&mut plain, it));
        (records.into_iter().map(Change::Update).collect(), plain.len())
    })
}

/// Measures appends, beside a minimum for any collection: each batch written as SOIF, packed,
/// appended to a file and synced.
fn append(author: &Author, bytes: usize, records: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (collection, _) = Collection::open(dir.path(), Options::default(), now()).unwrap();
    let mut bare = File::create(dir.path().join("bare")).unwrap();
    let (mut ours, mut theirs, mut plain_bytes) = (Duration::ZERO, Duration::ZERO, 0);
    for (changes, plain) in batches(author, records, 0, bytes) {
        plain_bytes += plain;
        let ((), took) = timed(|| bare_append(&mut bare, &changes));
        theirs += took;
        let batch = Batch { changes, notes: Vec::new() };
        let (_, took) = timed(|| collection.commit(batch, now()).unwrap());
        ours += took;
    }
    let rate = |took: Duration| records as f64 / took.as_secs_f64();
    println!(
        "append of {} records of {} bytes, in batches of {BATCH}, each synced:",
        records,
        plain_bytes as u64 / records
    );
    let megabytes = plain_bytes as f64 / 1e6;
    for (name, took) in [("collection", ours), ("yardstick: SOIF, gzip -1, write, sync", theirs)] {
        println!(
            "    {name:<40} {:>8.0} records/s {:>7.1} MB/s {:>6.2} x",
            rate(took),
            megabytes / took.as_secs_f64(),
            took.as_secs_f64() / theirs.as_secs_f64()
        );
    }
}

fn bare_append(file: &mut File, changes: &[Change]) {
    let mut plain = Vec::new();
    for change in changes {
        let Change::Update(record) = change else { continue };
        soif::write_record(&mut plain, record);
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::new(1));
    packer.write_all(&plain).unwrap();
    file.write_all(&packer.finish().unwrap()).unwrap();
    file.sync_data().unwrap();
}

/// Measures overwrites and deletes, with the compactions that are due; then the bytes on disk
/// beside those of the live records alone.
fn churn(author: &Author) {
    let dir = tempfile::tempdir().unwrap();
    let (collection, _) = Collection::open(dir.path(), Options::default(), now()).unwrap();
    let most = Cell::new(0);
    let commit = |changes| {
        collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
        collection.compact_if_due(now()).unwrap();
        most.set(segment_bytes(dir.path()).max(most.get()));
    };
    for round in 0..=OVERWRITES {
        batches(author, CHURNED, round, 500).for_each(|(changes, _)| commit(changes));
    }
    let overwritten = segment_bytes(dir.path());
    let most = most.get();
    let held = collection.scan(0).unwrap();
    let is_kept = |n: &u64| n.is_multiple_of(10);
    let gone: Vec<u64> = (0..CHURNED).filter(|n| !is_kept(n)).collect();
    for part in gone.chunks(usize::try_from(BATCH).unwrap()) {
        let delete = |n: &u64| Change::Delete(Oid::new(GATHERER, &url(*n)));
        commit(part.iter().map(delete).collect());
    }
    let (alive, alone) =
        (live_bytes(author, 0..CHURNED), live_bytes(author, (0..CHURNED).filter(is_kept)));
    let left = segment_bytes(dir.path());
    println!("churn: {CHURNED} objects of 500 bytes, {OVERWRITES} overwrites, then 90 % deleted:");
    let line = |name: &str, bytes: u64, of: u64| {
        println!("    {name:<40} {bytes:>12} bytes {:>6.2} x", bytes as f64 / of as f64);
    };
    line("live after overwrites, alone, compressed", alive, alive);
    line("segments after overwrites", overwritten, alive);
    line("segments at most meanwhile", most, alive);
    line("live after deletes, alone, compressed", alone, alone);
    line("segments after deletes", left, alone);
    line("of which a reader of the log holds", overwritten, alone);
    line("key index", directory_bytes(&dir.path().join("keys")), alone);
    drop(held);
    line("segments without a reader", segment_bytes(dir.path()), alone);
}

/// Returns the bytes of the objects' last versions in a collection of their own, compacted.
fn live_bytes(author: &Author, objects: impl Iterator<Item = u64>) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let (collection, _) = Collection::open(dir.path(), Options::default(), now()).unwrap();
    let changes = objects.map(|n| Change::Update(author.record(n, OVERWRITES, 500))).collect();
    collection.commit(Batch { changes, notes: Vec::new() }, now()).unwrap();
    collection.compact(now()).unwrap();
    segment_bytes(dir.path())
}

fn segment_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let segments = files.filter(|it| it.file_name().to_string_lossy().starts_with("segment-"));
    segments.map(|it| it.metadata().unwrap().len()).sum()
}

fn directory_bytes(dir: &Path) -> u64 {
    let bytes = |it: fs::DirEntry| match it.metadata().unwrap() {
        data if data.is_dir() => directory_bytes(&it.path()),
        data => data.len(),
    };
    fs::read_dir(dir).unwrap().map(|it| bytes(it.unwrap())).sum()
}
