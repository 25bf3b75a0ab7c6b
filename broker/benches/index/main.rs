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
//! | `page` | rendering the whole page of ten hits with snippets |
//! | `large` | a broker that collects, indexes and answers `HARVEST_BENCH_RECORDS` (default 1,000,000) generated records: records/s, peak resident memory, and 200 clients at once |
//!
//! Generated records: words of a Zipf distribution, 1 to 2 KB of text each (see `corpus.rs`).
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
        }
        if wanted("page") {
            page::pages(&index, &corpus);
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
    // The system updates the figure when the thread gives up the processor.
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn median_and_p95(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() * share / 100).min(values.len() - 1)];
    (at(50), at(95))
}
