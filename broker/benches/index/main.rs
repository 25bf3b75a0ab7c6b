//! Benchmarks of the broker: indexing, engine time, pages, memory and clients, each beside its
//! yardstick, measured in the same run and interleaved with it.
//!
//! ```text
//! cargo bench -p broker                          every figure, over generated records
//! cargo bench -p broker -- index query page      some of them
//! HARVEST_BENCH_COLLECTION=DIR cargo bench …     over the collection in DIR (no daemon may use it)
//! ```
//!
//! | figure | is |
//! |---|---|
//! | `index` | `Index::apply` from a collection, against bare tantivy given the same documents |
//! | `query` | from a parsed query to OIDs and counts, against bare tantivy with queries written by hand, with and without facets |
//! | `page` | the whole page of ten hits with snippets; an answer without snippets and facets, against the engine's time |
//! | `large` | a broker that collects, indexes and answers generated records: records/s, peak resident memory, and 200 clients at once |
//!
//! There are `HARVEST_BENCH_RECORDS` generated records (default 30,000; for `large` 1,000,000), of
//! words with a Zipf distribution, each with a text of about `HARVEST_BENCH_TEXT` bytes (default
//! 1,500; see `corpus.rs`), which says that its language is `HARVEST_BENCH_LANGUAGE` (default `en`;
//! one without forms, `zxx`, shows what English costs).
//! Times are CPU seconds of the process, user and system, unless marked as wall.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]

mod corpus;
mod engine;
mod large;
mod page;

use std::env;
use std::fs;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    if large::is_child() {
        return large::child();
    }
    let named: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|it| it == name);
    let dir = tempfile::tempdir().unwrap();
    if wanted("index") || wanted("query") || wanted("page") {
        let corpus = corpus::Corpus::open(dir.path());
        println!("{}", corpus.description);
        let index = engine::indexing(&corpus, dir.path(), if wanted("index") { 3 } else { 1 });
        if wanted("query") {
            engine::queries(&index);
            engine::best(&index);
        }
        if wanted("page") {
            page::pages(&index, &corpus);
            page::plain(&index, &corpus);
        }
    }
    if wanted("large") {
        large::large(dir.path());
    }
}

/// Returns the CPU seconds of this process so far, user and system.
fn cpu_secs() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    // A tick is 10 ms on every Linux that Rust supports.
    (ticks(11) + ticks(12)) / 100.0
}

/// Returns the CPU seconds of this thread so far, for times too short for ticks.
fn thread_secs() -> f64 {
    net::clock::thread_cpu().as_secs_f64()
}

/// Returns the number in an environment variable, or else `default`.
fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn median_and_p95(values: Vec<f64>) -> (f64, f64) {
    median_and(95, values)
}

/// Returns the median, and the value that at least this percentage of them do not exceed.
fn median_and(percent: usize, mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() * share).div_ceil(100).max(1) - 1];
    (at(50), at(percent))
}
