//! Costs of a feed: CPU time beside nginx with the same bytes as a file, memory of a server with a
//! large collection, many pulls at once, and bytes sent again after cuts.
//!
//! `cargo bench -p collection --bench feed`. It needs nginx (`apt-get install nginx-light`).
//! `HARVEST_RECORDS` is the number of records of the large collection (default 200,000).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Batch, Change, Collection, GATHERER_ID, Options, Stamp};
use http::{HeaderName, HeaderValue};
use net::body::Body;
use net::client::{Client, Request, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::{clock, host};
use soif::Record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::service_fn;
use url::Url;

/// Records of a delta.
const DELTA: u64 = 1_000;
/// Number of requests to each server in a turn.
const REQUESTS: usize = 1_000;
const TURNS: usize = 5;
/// Brokers that pull at once.
const BROKERS: usize = 200;
/// Number of cuts of a pull.
const CUTS: u64 = 5;
/// Clock ticks of /proc in a second, on every present Linux.
const TICKS: f64 = 100.0;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => runtime.block_on(serve_collection(Path::new(&arguments[2]))),
        Some("delta") => runtime.block_on(beside_nginx()),
        _ => runtime.block_on(async {
            beside_nginx().await;
            at_once().await;
            large_and_cut().await;
        }),
    }
}

fn now() -> Stamp {
    Stamp(clock::now_ms())
}

/// Makes a record of about 2 KB of words.
fn record(n: u64) -> Record {
    const WORDS: &[u8] = b"gatherbrokerstreamrecordchangeobjectsourceindexqueryrootserialepochfeed";
    let mut record = Record::new("FILE", format!("http://www.example.org/{}/{n}.html", n % 97));
    record.push(GATHERER_ID, "0123456789abcdef");
    let mut text = Vec::new();
    let mut state = n + 1;
    while text.len() < 1800 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = usize::try_from(state >> 58).unwrap();
        text.extend_from_slice(&WORDS[at..at + 6]);
        text.push(b' ');
    }
    record.push("Partial-Text", text);
    record
}

fn filled(dir: &Path, records: u64) -> Collection {
    let (collection, _) = Collection::open(dir, Options::default(), now()).unwrap();
    for start in (0..records).step_by(1000) {
        let changes = (start..records.min(start + 1000)).map(|n| Change::Update(record(n)));
        let batch = Batch { changes: changes.collect(), notes: Vec::new() };
        collection.commit(batch, now()).unwrap();
    }
    collection
}

/// Runs as the other process: serves the collection and prints its address, until it is killed.
async fn serve_collection(dir: &Path) {
    let (collection, _) = Collection::open(dir, Options::default(), now()).unwrap();
    let feed = FeedServer::new(collection, FeedOptions::default());
    let service = service_fn(move |request: http::Request<Body>| {
        let feed = feed.clone();
        async move {
            let mut request = request.map(drop);
            // All but the last parameter are the feed's own.
            let whole = request.uri().to_string();
            let Some(rest) = whole.strip_suffix("&q=half") else {
                return Ok::<_, Infallible>(feed.respond(request).await);
            };
            *request.uri_mut() = rest.parse().unwrap();
            Ok(feed.respond_selected(request, &half()).await)
        }
    });
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let shutdown = Shutdown::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, service, Limits::default(), shutdown.clone()));
    std::future::pending::<()>().await;
}

/// Returns the selection of half of the records.
fn half() -> Selection {
    let takes =
        |record: &Record| record.url.len().is_multiple_of(2) || record.url.ends_with("1.html");
    Selection { name: "half".to_owned(), takes: Arc::new(takes), among: None }
}

/// A process that ends with its handle.
struct Served {
    process: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Served {
    /// Serves the collection in `dir` from a process of its own.
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([Path::new("serve"), dir])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, address: line.trim().parse().unwrap() }
    }

    /// Serves the files in `dir` with nginx.
    async fn nginx(dir: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let here = dir.display();
        let config = dir.join("nginx.conf");
        let text = format!(
            "daemon off; master_process off; worker_processes 1; pid {here}/pid; error_log {here}/log;
             events {{ worker_connections 512; }}
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
                     client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
                     uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
                     server {{ listen {port}; root {here}; }} }}"
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(dir).arg("-c").arg(&config).stderr(Stdio::null());
        let process = command.spawn().expect("nginx is missing: apt-get install nginx-light");
        while TcpStream::connect(port).await.is_err() {
            tokio::task::yield_now().await;
        }
        Self { process, address: port }
    }

    fn url(&self, path: &str) -> Url {
        host::join(&Url::parse(&format!("http://{}/", self.address)).unwrap(), path)
    }

    /// Returns the CPU time used so far, in seconds.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..13].iter().map(|it| it.parse::<f64>().unwrap()).sum::<f64>() / TICKS
    }

    /// Returns a figure of its memory, in megabytes.
    fn memory(&self, name: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|it| it.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e3
    }
}

fn feed_client(client: Client, base: Url) -> FeedClient {
    FeedClient::new(client, base, "source").allow_private(true)
}

fn client() -> Client {
    Client::new(Settings {
        allow_private: true,
        response_bytes_max: u64::MAX,
        ..Settings::default()
    })
}

/// Fetches a body and returns its size, in bytes.
async fn fetch(client: &Client, url: Url) -> u64 {
    let view = (HeaderName::from_static("harvest-view"), HeaderValue::from_static("half"));
    let response = client.send(Request::get(url.clone()).header(view.0, view.1)).await.unwrap();
    assert_eq!(response.status.as_u16(), 200, "{url}");
    let mut response = response;
    while response.chunk().await.unwrap().is_some() {}
    response.received()
}

async fn beside_nginx() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("collection");
    let collection = filled(&at, 20 * DELTA);
    let version = collection.version();
    let since = version.serial - DELTA;
    drop(collection);
    let ours = Served::start(&at);
    let url = ours.url(&format!("feed?since={since}&epoch={}", version.epoch));
    let client = client();
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    let bytes = fetch(&client, url.clone()).await;
    fs::write(files.join("delta.gz"), vec![b'x'; usize::try_from(bytes).unwrap()]).unwrap();
    let nginx = Served::nginx(&files).await;
    let file = nginx.url("delta.gz");
    let half = ours.url(&format!("feed?since={since}&epoch={}&q=half", version.epoch));
    let part = fetch(&client, half.clone()).await;
    let (mut theirs, mut own, mut selected) = (0.0, 0.0, 0.0);
    for _ in 0..TURNS {
        for (server, url, bytes, used) in [
            (&nginx, &file, bytes, &mut theirs),
            (&ours, &url, bytes, &mut own),
            (&ours, &half, part, &mut selected),
        ] {
            let before = server.cpu();
            for _ in 0..REQUESTS {
                assert_eq!(fetch(&client, url.clone()).await, bytes);
            }
            *used += server.cpu() - before;
        }
    }
    println!("a delta of {DELTA} records, {bytes} bytes, {} times:", REQUESTS * TURNS);
    let selection = format!("feed of a selection, {part} bytes");
    for (name, used) in [
        ("yardstick: nginx, a file (sendfile)", theirs),
        ("feed", own),
        (selection.as_str(), selected),
    ] {
        let each = used * 1e6 / (REQUESTS * TURNS) as f64;
        println!("    {name:<40} {each:>8.0} µs of CPU {:>6.2} x", used / theirs);
    }
}

/// Many brokers pull everything at once, each into a collection of its own.
async fn at_once() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("collection");
    drop(filled(&at, DELTA));
    let server = Served::start(&at);
    let mut pulls = JoinSet::new();
    for number in 0..BROKERS {
        let broker = dir.path().join(format!("broker-{number}"));
        let (collection, _) = Collection::open(&broker, Options::default(), now()).unwrap();
        let limits = PullLimits::default();
        let puller = Puller::new(feed_client(client(), server.url("")), collection.clone(), limits);
        pulls.spawn(async move { puller.pull(None).await.map(|_| collection.len()) });
    }
    let start = clock::monotonic();
    let (mut whole, mut failed) = (0, 0);
    while let Some(pulled) = pulls.join_next().await {
        match pulled.unwrap() {
            Ok(DELTA) => whole += 1,
            other => {
                failed += 1;
                println!("    a pull went wrong: {other:?}");
            }
        }
    }
    println!(
        "{BROKERS} brokers pull {DELTA} records at once: {whole} whole, {failed} not, {:.1} s; server at most {:.0} MB",
        start.elapsed().as_secs_f64(),
        server.memory("VmHWM")
    );
}

/// Measures a server's memory for a large collection and for one a hundredth as large, and the
/// bytes of a pull of the large one that is cut.
async fn large_and_cut() {
    let records = std::env::var("HARVEST_RECORDS").ok().and_then(|it| it.parse().ok());
    let records = records.unwrap_or(200_000);
    let dir = tempfile::tempdir().unwrap();
    let mut last = None;
    for records in [records / 100, records] {
        let at = dir.path().join(records.to_string());
        drop(filled(&at, records));
        let server = Served::start(&at);
        let opened = server.memory("VmRSS");
        let bytes = fetch(&client(), server.url("feed?since=0")).await;
        println!(
            "{records} records, {:.1} MB: the server has {opened:.1} MB of memory when open, {:.1} MB at most while it sends all",
            bytes as f64 / 1e6,
            server.memory("VmHWM")
        );
        last = Some((server, bytes));
    }
    let (server, whole) = last.unwrap();
    let cuts = (1..=CUTS).map(|cut| whole / (CUTS + 1) + cut * 1000).collect();
    let (proxy, _tasks) = cutting(server.address, cuts).await;
    let broker = dir.path().join("broker");
    let (collection, _) = Collection::open(&broker, Options::default(), now()).unwrap();
    let base = Url::parse(&format!("http://{proxy}/")).unwrap();
    let client =
        Client::new(Settings { allow_private: true, idle_per_host_max: 0, ..Settings::default() });
    let puller = Puller::new(feed_client(client, base), collection.clone(), PullLimits::default());
    let (mut bytes, mut resumed, mut tries) = (0, 0, 0);
    while collection.len() < records {
        tries += 1;
        assert!(tries <= 2 * CUTS, "it does not come to an end");
        if let Ok(pulled) = puller.pull(None).await {
            bytes += pulled.bytes;
            resumed += pulled.resumed;
        }
    }
    println!(
        "a pull of {records} records, cut {CUTS} times: {resumed} resumed, {:.4} of its bytes sent",
        bytes as f64 / whole as f64
    );
}

/// Starts a proxy that cuts large transfers, after the given numbers of bytes.
async fn cutting(server: SocketAddr, mut cuts: Vec<u64>) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(server).await.unwrap();
            let most = cuts.last().copied().unwrap_or(u64::MAX);
            // Small answers, such as redirects, do not use up a cut.
            if most <= pass(near, far, most).await {
                cuts.pop();
            }
        }
    });
    (address, tasks)
}

/// Passes bytes until one side ends, or `most` bytes have gone back; returns their number.
async fn pass(mut near: TcpStream, mut far: TcpStream, most: u64) -> u64 {
    let (mut from_near, mut to_near) = near.split();
    let (mut from_far, mut to_far) = far.split();
    let mut passed = 0;
    let mut buffer = vec![0; 64 << 10];
    let up = tokio::io::copy(&mut from_near, &mut to_far);
    let down = async {
        while passed < most {
            let Ok(count @ 1..) = from_far.read(&mut buffer).await else { return };
            let left = usize::try_from(most - passed).unwrap_or(usize::MAX);
            let piece = &buffer[..count.min(left)];
            if to_near.write_all(piece).await.is_err() {
                return;
            }
            passed += piece.len() as u64;
        }
    };
    tokio::pin!(up);
    tokio::select! { _ = &mut up => {}, () = down => {} }
    passed
}
