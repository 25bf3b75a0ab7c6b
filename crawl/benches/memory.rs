//! Benchmark of the frontier's memory and time for each URL.
//!
//! ```text
//! cargo bench -p crawl --bench memory                                1,000,000 URLs
//! HARVEST_BENCH_URLS=5000000 cargo bench -p crawl --bench memory
//! ```
//!
//! URLs of 1,000 hosts are pushed, pushed again, and fetched. The figures are the bytes that the
//! frontier counts itself, and the process's own pages as Linux shows them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock and what the process takes")]

use std::time::Instant;
use std::{env, fs};

use crawl::frontier::{Candidate, Frontier, Next, Outcome, Pushed, Settings, TrapLimits};
use crawl::robots::Answer;
use url::Url;

fn main() {
    let count: usize = env::var("HARVEST_BENCH_URLS").map_or(1_000_000, |it| it.parse().unwrap());
    let traps = TrapLimits { crowd_urls_max: 0, ..TrapLimits::default() };
    let settings = Settings { urls_max: usize::MAX, traps, ..Settings::default() };
    let before = resident();
    let mut frontier = Frontier::new(settings, Box::new(|_| None));
    let start = Instant::now();
    let mut bytes = 0;
    for n in 0..count {
        let url = url(n);
        bytes += url.as_str().len();
        let candidate = Candidate { url: &url, depth: 3, known: false };
        assert_eq!(frontier.push(candidate), Pushed::In);
    }
    let pushed = start.elapsed();
    println!("{count} URLs of {:.1} bytes", bytes as f64 / count as f64);
    println!("counted    {:6.1} MB", frontier.bytes() as f64 / 1e6);
    println!("resident   {:6.1} MB", (resident() - before) / 1e3);
    println!("push       {:6.2} µs", pushed.as_secs_f64() * 1e6 / count as f64);
    let start = Instant::now();
    for n in 0..count {
        let url = url(n);
        let candidate = Candidate { url: &url, depth: 3, known: false };
        assert_eq!(frontier.push(candidate), Pushed::Seen);
    }
    println!("push again {:6.2} µs", start.elapsed().as_secs_f64() * 1e6 / count as f64);
    let start = Instant::now();
    let mut now_ms = 0;
    loop {
        match frontier.next(now_ms) {
            Next::Fetch { url, .. } => {
                frontier.answered(&url, Outcome::Done { took_ms: 50 }, now_ms);
            }
            Next::Robots { url } => frontier.robots_answered(&url, Answer::Status(404), now_ms),
            Next::Wait { until_ms } => now_ms = until_ms.unwrap(),
            Next::Done => break,
        }
    }
    assert_eq!(frontier.counts().done, count);
    println!("fetch      {:6.2} µs", start.elapsed().as_secs_f64() * 1e6 / count as f64);
}

/// Returns a URL as long as those of the web are in the mean, with a number.
fn url(n: usize) -> Url {
    let (host, folder) = (n % 1_000, n / 10_000);
    let text = format!(
        "https://www.host{host}.example/departments/history/{folder}/annual-report-{n}.html?p=1"
    );
    Url::parse(&text).unwrap()
}

/// Returns the resident memory of this process, in kB.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
