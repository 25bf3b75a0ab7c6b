//! Miss ratios of the store over a trace: `ratios_beside` plays the same to others.
//!
//! The trace has a line for each request: the object's number and its size in bytes. An object that is not
//! stored is put.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints")]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;

use bytes::Bytes;
use cache::content::Content;
use cache::memory::Object;
use cache::policy::freshness::{Rules, Times};
use cache::policy::storing::{Ask, keep};
use cache::store::Store;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Objects that wait to be written at most.
const WAITING_MAX: usize = 100;

fn main() {
    // `cargo bench` adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let [trace, bytes_max] = words.as_slice() else {
        println!("usage: ratios TRACE BYTES (cache/benches/ratios_beside makes traces)");
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { play(trace, bytes_max.parse().unwrap()) });
}

fn play(trace: &str, bytes_max: u64) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(disk::Disk::System, folder.path(), bytes_max).unwrap();
    let answer =
        HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("max-age=600"))]);
    let none = HeaderMap::new();
    let ask = Ask { method: &Method::GET, headers: &none };
    let head = keep(ask, StatusCode::OK, &answer, Times::default(), &Rules::default()).unwrap();
    let content = Bytes::from(vec![b'x'; 1 << 20]);
    let (mut requests, mut misses, mut bytes, mut missed) = (0_u64, 0_u64, 0_u64, 0_u64);
    // What waits to be written is in the memory of a cache.
    let mut waiting = HashSet::new();
    for line in BufReader::new(std::fs::File::open(trace).unwrap()).lines() {
        let line = line.unwrap();
        let (number, size) = line.split_once(' ').unwrap();
        let (url, size) = (format!("http://h/{number}"), size.parse::<usize>().unwrap());
        (requests, bytes) = (requests + 1, bytes + size as u64);
        if waiting.contains(&url) {
            continue;
        }
        if store.may_have(&url) {
            store.touch(&url);
            continue;
        }
        (misses, missed) = (misses + 1, missed + size as u64);
        let body = Content::Memory(content.slice(..size));
        store.put(&url, (&Arc::new(Object::new(&head, body)), &head), |_| ());
        waiting.insert(url);
        if waiting.len() == WAITING_MAX {
            while store.waiting() != 0 {
                std::thread::yield_now();
            }
            waiting.clear();
        }
    }
    let share = |part: u64, all: u64| part as f64 / all as f64;
    println!("{:.4} {:.4}", share(misses, requests), share(missed, bytes));
}
