//! A test of records that are as large as a collection takes them: whatever is asked of them, the
//! answer is short, comes soon, and takes bounded memory. It is alone in its process, whose memory it
//! measures.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::time::Duration;

use collection::{Batch, Change, Collection, Options, Stamp};
use common::site::{GATHERER, Site};
use net::clock;
use soif::Record;

/// The promise "an answer within 1 s", with a margin for a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum length of a page, in bytes.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum length of an answer with the large records as its hits, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Maximum peak of memory, in bytes: a few copies of the records, and the index.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Length of a large value, in bytes; a record with four of them is as large as one may be.
const VALUE_BYTES: usize = 7 << 20;

fn record(name: &str) -> Record {
    let mut record = Record::new("FILE", format!("http://example.org/{name}"));
    record.push("Gatherer-Id", GATHERER);
    record
}

/// Returns records with a large value in each attribute that something is made of.
fn large() -> Vec<Record> {
    let words = "knots and ends ".repeat(VALUE_BYTES / 15);
    let one_word = format!("knots {}", "x".repeat(VALUE_BYTES));
    let lines = "knots\n".repeat(VALUE_BYTES / 6);
    let mut records = Vec::new();
    for (number, value) in [words, one_word, lines].iter().enumerate() {
        for names in [
            ["Title", "Description", "Keywords", "Author"],
            ["Type", "Gatherer-Name", "Landing-Page", "Language"],
            ["URL-References", "Text-Places", "Text-Print", "X-Other"],
        ] {
            let mut large = record(&format!("{number}/{}", names[0]));
            large.push("Partial-Text", "knots in short");
            for name in names {
                large.push(name, value.as_str());
            }
            records.push(large);
        }
    }
    let mut text = record("text");
    text.push("Full-Text", format!("knots {}", "rope ".repeat((30 << 20) / 5)));
    records.push(text);
    records
}

/// Returns the peak of this process' resident memory, in bytes.
fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn however_large_a_record_is_answers_are_short_and_soon() {
    // A value of 100 MB is refused, and nothing with it.
    let dir = tempfile::tempdir().unwrap();
    let now = Stamp(1_700_000_000_000);
    let (collection, _) = Collection::open(dir.path(), Options::default(), now).unwrap();
    let mut huge = record("huge");
    huge.push("Title", "x".repeat(100_000_000));
    let batch = Batch { changes: vec![Change::Update(huge)], notes: Vec::new() };
    let error = collection.commit(batch, now).unwrap_err();
    assert!(error.to_string().contains("larger than a collection takes"), "{error}");
    assert_eq!(collection.len(), 0);
    drop(collection);

    let records = large();
    let count = records.len();
    let urls: Vec<_> = records.iter().map(|it| it.url.clone()).collect();
    let site = Site::of(records);
    let check = async |path: &str, bytes_max: usize| {
        let began = clock::monotonic();
        let seen = site.get_ok(path).await;
        let took = began.elapsed();
        assert!(took < ANSWERED_WITHIN, "{took:?} for {path}");
        let bytes = seen.body.len();
        assert!(bytes < bytes_max, "{bytes} bytes for {path}");
        seen
    };
    for asked in ["q=knots", "q=knots+ends", "q=%22knots+and+ends%22", "q=*&sort=title", "q=kn*"] {
        let found = check(&format!("/api/search?{asked}&limit=100"), ANSWER_BYTES_MAX).await;
        assert!(0 < found.json()["total"].as_u64().unwrap(), "{asked}: {}", found.body);
        check(&format!("/?{asked}&limit=100"), PAGE_BYTES_MAX).await;
    }
    let all = check("/api/search?q=knots&limit=100", ANSWER_BYTES_MAX).await.json();
    assert_eq!(all["total"], count);
    for url in urls {
        let path = format!("/object?oid={GATHERER}:{url}&q=knots");
        let page = check(&path, PAGE_BYTES_MAX).await;
        assert!(page.body.contains("knots"), "{}", page.body);
    }
    let peak = memory_peak_bytes();
    assert!(peak < MEMORY_BYTES_MAX, "{} MB", peak >> 20);
}
