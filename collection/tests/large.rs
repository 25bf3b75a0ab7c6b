//! A large collection: all records are there; speed of commits, look-ups, opening and compaction.
//!
//! `HARVEST_RECORDS` is the number of records (default 20,000). The figures are printed: run a
//! release build with `--nocapture` to compare them with docs/measurements.md.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::env;
use std::fs;
use std::time::Duration;

use collection::{Batch, Change, Collection, Oid, Options, Stamp};
use net::clock;
use soif::Record;
use soif::digest::Md5;

/// Records of a commit.
const BATCH: u64 = 1000;
/// Look-ups that are timed.
const GETS: u64 = 1000;

fn url(n: u64) -> String {
    format!("http://www.example.org/collection/{:03}/object-{n}.html", n % 997)
}

/// Makes a record of about 500 bytes, of words that compress like text.
fn record(n: u64) -> Record {
    const WORDS: [&str; 16] = [
        "gather", "broker", "stream", "record", "change", "object", "source", "index", "query",
        "root", "serial", "epoch", "feed", "holder", "cursor", "member",
    ];
    let mut record = Record::new("FILE", url(n));
    record.push("Gatherer-Id", "0123456789abcdef");
    record.push("Gatherer-Root", "http://www.example.org/collection/");
    record.push("MD5", Md5::of(&n.to_le_bytes()).to_string());
    let mut state = n + 1;
    let mut text = String::new();
    while text.len() < 270 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = usize::try_from(state >> 60).unwrap();
        text.push_str(WORDS[word]);
        text.push(' ');
    }
    record.push("Partial-Text", text);
    record
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = clock::monotonic();
    (work(), start.elapsed())
}

#[test]
fn all_records_are_committed_found_and_kept() {
    let records = env::var("HARVEST_RECORDS").ok().and_then(|it| it.parse().ok());
    let records: u64 = records.unwrap_or(20_000);
    let dir = tempfile::tempdir().unwrap();
    let open = || Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
    let (collection, _) = open();
    let ((), took) = timed(|| {
        for start in (0..records).step_by(usize::try_from(BATCH).unwrap()) {
            let range = start..(start + BATCH).min(records);
            let changes = range.map(|n| Change::Update(record(n))).collect();
            collection.commit(Batch { changes, notes: vec![] }, Stamp(clock::now_ms())).unwrap();
        }
    });
    let stats = collection.stats();
    let rate = |took: Duration| records as f64 / took.as_secs_f64();
    println!("append: {:.0} records/s, {} bytes on disk", rate(took), stats.bytes);
    let ((), took) = timed(|| {
        for n in 0..GETS {
            let n = n * 7919 % records;
            let stored = collection.get(&Oid::new("0123456789abcdef", &url(n))).unwrap().unwrap();
            assert_eq!((stored.serial, stored.record.url), (n + 1, url(n)));
        }
    });
    println!("get: {:.0} µs", took.as_secs_f64() * 1e6 / GETS as f64);
    let (count, took) = timed(|| collection.scan(0).unwrap().filter(Result::is_ok).count());
    assert_eq!(count as u64, records);
    println!("scan: {:.0} records/s", rate(took));
    drop(collection);
    let ((collection, recovery), took) = timed(open);
    assert_eq!((recovery.cut, recovery.keys_rebuilt, recovery.replayed), (vec![], None, 0));
    assert_eq!(collection.len(), records);
    println!("open: {:.3} s", took.as_secs_f64());
    let (compacted, took) = timed(|| collection.compact(Stamp(clock::now_ms())).unwrap());
    assert_eq!((compacted.kept, compacted.dropped), (records, 0));
    println!("compact: {:.0} records/s, {:?} bytes", rate(took), compacted.bytes);
    let (report, took) = timed(|| collection.verify().unwrap());
    assert_eq!((report.problems, report.objects), (vec![], records));
    println!("verify: {:.0} records/s", rate(took));
    drop(collection);
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    let ((collection, recovery), took) = timed(open);
    assert!(recovery.keys_rebuilt.is_some() && recovery.cut.is_empty(), "{recovery:?}");
    assert_eq!(collection.len(), records);
    println!("rebuild of the keys: {:.1} s, {:.0} records/s", took.as_secs_f64(), rate(took));
    println!("resident at most: {} MB", peak_bytes() >> 20);
}

/// Returns the largest resident memory of this process so far, in bytes.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
