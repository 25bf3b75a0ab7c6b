//! Loads of servers: the CPU time that a site pays for being gathered, by FTP, by HTTP and by the stream of a gatherer.
//! Source: TR §4, "server load".
//!
//! ```text
//! cargo bench -p gatherer --bench loads                  over documentation on this machine
//! HARVEST_SITE=FOLDER cargo bench -p gatherer …          over the HTML files below a folder
//! HARVEST_LOADS_SCALE=10 cargo bench -p gatherer …       a tenth of the iterations, to try it
//! ```
//!
//! Times are user and system time of all of a server's processes, whole clock ticks of 10 ms: what is quick is repeated
//! until they do not matter. Turns of all rows alternate. The servers are packages of Debian, which
//! `net/tests/peers/prepare` unpacks below `target`; it says what is missing.
//!
//! # Differences from the paper
//!
//! * Servers and networks are those of today, and all is on one machine: what the kernel does for a receiver on
//!   loopback, it does in the sender's time.
//! * What the kernel does for a session of vsftpd after its end, and what its processes use that nobody waits for, is
//!   not counted: FTP is dearer than it says here.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]

mod cpu;
mod gatherer;
#[path = "../../../net/tests/peers/nginx.rs"]
mod nginx;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
#[path = "../../../tests/paper/prose.rs"]
mod prose;
mod rows;
mod site;
mod vsftpd;

use std::env;
use std::path::Path;

use gatherer::Gatherer;
use nginx::Nginx;
use rows::{Row, Task};
use site::Site;
use vsftpd::Vsftpd;

/// Files of the paper's site.
const FILES: usize = 2_300;
/// Files of the site that nginx serves.
const FILES_OF_HTTP: usize = 5_000;
/// Records of a stream.
const RECORDS: u64 = 1_000;
const TURNS: usize = 5;
/// Ratios that are asked for.
const FTP_RATIO_MIN: f64 = 5_000.0;
const HTTP_RATIO_MIN: f64 = 300.0;

/// The allocator of `harvest`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.as_slice() {
        [gatherer::ROLE, detail, root, data] => {
            runtime.block_on(gatherer::serve(detail, Path::new(root), Path::new(data)));
        }
        _ => runtime.block_on(measure()),
    }
}

async fn measure() {
    let pages = site::pages(FILES_OF_HTTP);
    let large = Site::copy(pages.iter());
    let small = Site::copy((0..FILES).map(|it| &pages[it * FILES_OF_HTTP / FILES]));
    for site in [&small, &large] {
        println!("a site of {} files, {:.1} MB", site.paths.len(), site.bytes as f64 / 1e6);
    }
    let mut rows = Vec::new();
    // vsftpd with its defaults is started by root alone.
    let ways = if peer::is_root() { &[true, false][..] } else { &[false] };
    let servers: Vec<(bool, Vsftpd)> =
        ways.iter().map(|it| (*it, Vsftpd::start(small.folder(), *it))).collect();
    for (is_separated, server) in &servers {
        let way = if *is_separated { "its defaults" } else { "one process a session" };
        let (id, address) = (server.running.id(), server.running.address);
        let row =
            |what, count, task| Row::new(format!("FTP, {what} (vsftpd, {way})"), count, id, task);
        rows.push(row("new connections", 1_000, Task::FtpNew(address)));
        rows.push(row("a kept connection", 5_000, Task::ftp_kept(address)));
    }
    let nginx = Nginx::start(large.folder(), false);
    let (id, address) = (nginx.running.id(), nginx.running.address);
    rows.push(Row::new("HTTP, a kept connection (nginx)", 10_000, id, Task::http(address)));
    rows.push(Row::new("local file system (the reader)", 10_000, std::process::id(), Task::Local));
    let mut gatherers = Vec::new();
    for detail in ["rich", "brief"] {
        for site in [&small, &large] {
            gatherers.push((detail, Gatherer::start(site.folder(), detail)));
        }
    }
    let streams = rows.len();
    for (at, (detail, gatherer)) in gatherers.iter().enumerate() {
        let mut stream = |what: String, count, url| {
            let name = format!("one stream of {what}, {detail}");
            rows.push(Row::new(name, count, gatherer.id(), Task::stream(url)));
        };
        if at % 2 == 0 {
            stream(format!("{RECORDS} records"), 4_000, gatherer.newest(RECORDS));
        }
        let all = format!("all {} records", gatherer.objects);
        stream(format!("{all}, as changes"), 2_000, gatherer.newest(gatherer.objects));
        stream(format!("{all}, as a snapshot"), 1_000, gatherer.all());
    }
    for row in &mut rows {
        row.warm(&small, &large).await;
    }
    for _ in 0..TURNS {
        for row in &mut rows {
            row.turn(&small, &large).await;
        }
    }
    println!("\nCPU of the server, medians of {TURNS} turns (least to most):");
    for row in &rows {
        println!("{row}");
    }
    let (objects, streams) = rows.split_at(streams);
    ratios(objects, streams);
}

/// Prints what was asked for and what the paper has.
fn ratios(objects: &[Row], streams: &[Row]) {
    let of = |part: &str| objects.iter().find(|it| it.name.contains(part)).unwrap().median();
    println!("\nratios:");
    let new = of("new connections");
    for [thousand, streams @ ..] in streams.as_chunks::<5>().0 {
        println!("one of FTP, new connections / {}: {:.2}", thousand.name, new / thousand.median());
        let [small @ .., large, large_whole] = streams;
        for stream in small {
            println!(
                "one of FTP, new connections / {}: {:.2}; TR 2.7",
                stream.name,
                new / stream.median()
            );
            for row in objects.iter().filter(|it| it.name.starts_with("FTP")) {
                let whole = FILES as f64 * row.median() / stream.median();
                let (asked, paper) = match row.name.contains("new") {
                    true => (verdict(whole, FTP_RATIO_MIN), "6,429"),
                    false => (String::new(), "about 950"),
                };
                println!("{FILES} × {} / {}: {whole:.0}{asked}; TR {paper}", row.name, stream.name);
            }
        }
        for stream in [large, large_whole] {
            let whole = FILES_OF_HTTP as f64 * of("HTTP") / stream.median();
            let asked = verdict(whole, HTTP_RATIO_MIN);
            println!("{FILES_OF_HTTP} × HTTP / {}: {whole:.0}{asked}", stream.name);
        }
    }
    println!("FTP, new / local: {:.1}; TR 7.0", new / of("local"));
    println!("FTP, new / kept: {:.1}; TR 7.0", new / of("a kept connection (vsftpd"));
}

fn verdict(ratio: f64, least: f64) -> String {
    let outcome = if ratio < least { "missed" } else { "met" };
    format!(" (asked for {least}: {outcome})")
}
