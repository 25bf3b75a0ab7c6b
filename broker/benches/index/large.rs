//! Benchmark of a broker with a million records, in a process of its own: speed of collecting and
//! indexing, memory, and 200 clients at once.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::Request;
use broker::config::Config;
use broker::server::Server;
use broker::source::Source;
use collection::feed::{FeedOptions, FeedServer};
use collection::{Collection, Options, Stamp, Version};
use net::clock;
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use url::Url;

use crate::corpus::{GATHERER, fill};
use crate::{cpu_secs, median_and_p95, number};

/// Environment variable with three lines: the source's URL, its version, the child's data
/// directory.
const CHILD: &str = "HARVEST_BENCH_CHILD";
/// Number of clients at the same time.
const CLIENTS: usize = 200;
/// Number of clients that ask for the dearest.
const DEAR_CLIENTS: u8 = 32;
/// Number of cheap searches beside them.
const CHEAP: usize = 600;
/// Number of requests of each client.
const REQUESTS: usize = 24;

const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

pub(crate) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Collects and indexes everything, then answers until its input ends. Prints its address, its times
/// and its peak of memory; for each line of its input, the peaks of all and of anonymous memory since
/// the line before, and how many seconds indexing and content summaries took so far.
pub(crate) fn child() {
    let told = env::var(CHILD).unwrap();
    let told: Vec<&str> = told.split('\n').collect();
    let mut config = Config::new("Bench", told[2]);
    (config.daemon.listen, config.daemon.admin_listen) = (LOOPBACK, LOOPBACK);
    config.sources = vec![Source::gatherer("source", Url::parse(told[0]).unwrap())];
    let version: Version = told[1].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let began = clock::monotonic();
        let server = Server::bind(config).await.unwrap();
        let (address, handle, shutdown) = (server.local_addr(), server.handle(), Shutdown::new());
        let (until, peak) = (shutdown.clone(), Arc::new(AtomicU64::new(0)));
        let running = tokio::spawn(server.run(until));
        let watching = tokio::spawn(watch_anonymous(Arc::clone(&peak), shutdown.clone()));
        handle.caught_up("source", version).await.unwrap();
        let collected = status("VmHWM");
        println!("{address} {} {} {collected}", began.elapsed().as_secs_f64(), cpu_secs());
        let answering = move || {
            for _ in std::io::stdin().lines() {
                let counters = handle.counters();
                let [indexing, summarizing] =
                    [counters.indexing, counters.summarizing].map(|it| it.as_secs_f64());
                let own = peak.swap(0, Ordering::Relaxed);
                println!("{} {own} {indexing} {summarizing}", status("VmHWM"));
            }
        };
        tokio::task::spawn_blocking(answering).await.unwrap();
        shutdown.start();
        running.await.unwrap().unwrap();
        watching.await.unwrap();
    });
}

/// Raises `peak` to the process's anonymous memory in kB, sampled every 50 ms.
async fn watch_anonymous(peak: Arc<AtomicU64>, shutdown: Shutdown) {
    while !shutdown.is_started() {
        peak.fetch_max(status("RssAnon"), Ordering::Relaxed);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Returns a figure of the process's status, in kB.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|it| it.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn large(dir: &Path) {
    let records = number("HARVEST_BENCH_RECORDS", 1_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let place = dir.join("origin");
    let (collection, _) = Collection::open(&place, Options::default(), Stamp(1)).unwrap();
    fill(&collection, records);
    runtime.block_on(async {
        let (shutdown, address) = (Shutdown::new(), serve(&collection).await);
        let mut child = start(address, collection.version(), &dir.join("data"));
        let mut told = child.stdin.take().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = move || tokio::task::block_in_place(|| said.next().unwrap().unwrap());
        let line = next();
        let first: Vec<&str> = line.split(' ').collect();
        let [wall, cpu, collected]: [f64; 3] = [1, 2, 3].map(|it| first[it].parse().unwrap());
        let mut peaks = || {
            told.write_all(b"\n").unwrap();
            let line = next();
            let told: Vec<f64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
            ([told[0] / 1e3, told[1] / 1e3], [told[2], told[3]])
        };
        let ([_, own_before], _) = peaks();
        println!("\n{records} generated records, collected over HTTP and indexed by one broker");
        println!(
            "  {:.0} records/s wall, {:.0} a CPU-second of the broker ({wall:.0} s, {cpu:.0} CPU s)",
            records as f64 / wall,
            records as f64 / cpu
        );
        let address = first[0].parse().unwrap();
        clients(address, records).await;
        let ([_, own_clients], _) = peaks();
        crowd(address).await;
        let ([all, own_crowd], [indexing, summarizing]) = peaks();
        drop(told);
        assert!(child.wait().unwrap().success());
        println!(
            "  peak resident memory {all:.0} MB ({:.0} MB before the clients came; with pages of the index's files); its own {own_before:.0} MB while it indexed, {own_clients:.0} MB beside the clients, {own_crowd:.0} MB beside the dearest (at most 1,000)",
            collected / 1e3,
        );
        println!(
            "  content summaries took {summarizing:.2} s, indexing {indexing:.0} s: {:.2} % (at most 1, and ten seconds)",
            100.0 * summarizing / indexing
        );
        shutdown.start();
    });
}

/// Serves the collection's feed while the runtime lives; returns the address.
async fn serve(collection: &Collection) -> SocketAddr {
    let listener = net::server::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    let feed = FeedServer::new(collection.clone(), FeedOptions::default());
    let router = Router::new().fallback(move |request: Request| {
        let feed = feed.clone();
        async move { feed.respond(request.map(drop)).await.map(axum::body::Body::new) }
    });
    tokio::spawn(net::server::serve(listener, router, Default::default(), Shutdown::new()));
    address
}

fn start(address: SocketAddr, version: Version, data: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .env(CHILD, format!("http://{address}/\n{version}\n{}", data.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs all clients at once: they request searches, pages and objects in turn, each over a new
/// connection.
async fn clients(address: SocketAddr, records: u64) {
    let began = clock::monotonic();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(async move {
            let (mut took, mut errors) = (Vec::new(), Vec::new());
            for n in 0..REQUESTS {
                let path = path(client * REQUESTS + n, records);
                let began = clock::monotonic();
                match get(address, &path).await {
                    Ok(head) if head.starts_with("HTTP/1.1 200") => {}
                    Ok(head) => errors.push(format!("{path}: {head}")),
                    Err(error) => errors.push(format!("{path}: {error}")),
                }
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
            (took, errors)
        });
    }
    let (mut took, mut errors) = (Vec::new(), Vec::new());
    while let Some(ended) = clients.join_next().await {
        let (times, faults) = ended.unwrap();
        took.extend(times);
        errors.extend(faults);
    }
    let answered = took.len();
    let (median, p95) = median_and_p95(took);
    println!(
        "  {CLIENTS} clients at once: {answered} requests, {} errors, {:.0} a second; median {median:.0} ms, p95 {p95:.0} ms",
        errors.len(),
        answered as f64 / began.elapsed().as_secs_f64()
    );
    for error in errors.iter().take(5) {
        println!("    {error}");
    }
}

/// Measures cheap searches, alone and beside clients that ask for nothing but the dearest.
async fn crowd(address: SocketAddr) {
    let cheap = async || {
        let mut took = Vec::new();
        for query in ["kater", "mo+sol", "%22in+mo%22"].iter().cycle().take(CHEAP) {
            let began = clock::monotonic();
            let head = get(address, &format!("/api/search?q={query}")).await.unwrap();
            assert!(head.starts_with("HTTP/1.1 200"), "{query}: {head}");
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        (took[CHEAP / 2], took[CHEAP * 99 / 100])
    };
    let (alone_median, alone_p99) = cheap().await;
    let ended = Shutdown::new();
    let mut dear = JoinSet::new();
    for client in 0..DEAR_CLIENTS {
        let ended = ended.clone();
        dear.spawn(async move {
            // Each has an address, and so a budget, of its own.
            let from = SocketAddr::from(([127, 0, 1, client], 0));
            let (mut answers, mut refusals) = (0, Vec::new());
            while !ended.is_started() {
                let began = clock::monotonic();
                let path = "/api/search?q=%2F(.*a)%7B20%7D%2F";
                match get_from(from, address, path).await.unwrap() {
                    head if head.starts_with("HTTP/1.1 429") => {
                        refusals.push(began.elapsed().as_secs_f64() * 1e3);
                    }
                    _ => answers += 1,
                }
            }
            (answers, refusals)
        });
    }
    let (median, p99) = cheap().await;
    ended.start();
    let (answers, refusals): (Vec<u32>, Vec<_>) = dear.join_all().await.into_iter().unzip();
    let refusals = refusals.concat();
    let (answered, refused) = (answers.iter().sum::<u32>(), refusals.len());
    let (_, late) = median_and_p95(refusals);
    println!(
        "  cheap searches alone: median {alone_median:.1} ms, p99 {alone_p99:.1} ms; beside {DEAR_CLIENTS} clients of the dearest: median {median:.1} ms, p99 {p99:.1} ms (at most 250); of the dearest {answered} answered or given up, {refused} refused (p95 {late:.1} ms, at most 100)"
    );
}

fn path(n: usize, records: u64) -> String {
    const ASKED: [&str; 6] =
        ["kater", "mo+sol", "%22in+mo%22", "title:re", "type:PDF+kater", "size:%3E5000+mo"];
    let query = ASKED[n / 4 % ASKED.len()];
    match n % 4 {
        0 => format!("/?q={query}"),
        1 | 2 => format!("/api/search?q={query}"),
        _ => {
            let n = n as u64 * 7_919 % records;
            let (host, folder) = (n % 97, n / 97 % 997);
            let url = format!("http%3A%2F%2Fwww{host}.example.org%2F{folder:03}%2Fpage-{n}.html");
            format!("/object?oid={GATHERER}%3A{url}")
        }
    }
}

/// Sends a request and reads the answer to its end; returns the answer's first line.
async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    get_from(LOOPBACK, address, path).await
}

/// Does the same from a local address.
async fn get_from(from: SocketAddr, address: SocketAddr, path: &str) -> std::io::Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from)?;
    let mut stream = socket.connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let head = answer.split(|it| *it == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(head).into_owned())
}
