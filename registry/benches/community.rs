//! Benchmark of a registry: 10,000 servers announce themselves every five minutes.
//!
//! ```text
//! cargo bench -p registry                      takes a quarter of an hour: strangers are taken 20 a second
//! HARVEST_BENCH_SERVERS=1000 cargo bench …     with fewer
//! ```
//!
//! The registry is a process of its own, of which CPU and memory are those of `/proc`. The servers are one process: each
//! has its own key, address and description, which the registry asks for at each announcement.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use daemon::announce::Announcement;
use daemon::describe::{Description, Facts, SIGNATURE};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use net::client::{Client, Request, Settings};
use net::clock;
use net::identity::Identity;
use net::shutdown::Shutdown;
use registry::config::Config;
use registry::server::Server;
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Names the data folder to the child, which is the registry.
const CHILD: &str = "HARVEST_BENCH_REGISTRY";
/// Servers at one address: a registry lists no more of one host.
const OF_ONE_ADDRESS: usize = 200;
/// Time between two announcements of a server, and that for which the registry is watched.
const EVERY: Duration = Duration::from_secs(300);
const WATCHED: Duration = Duration::from_secs(120);
const FINDS: usize = 200;
const SUBJECTS: [&str; 8] =
    ["geology", "botany", "history", "maps", "music", "physics", "law", "medicine"];

/// The servers: their keys, and the number of descriptions that were given.
struct Servers {
    identities: Vec<Identity>,
    port: u16,
    given: AtomicU64,
}

impl Servers {
    fn url(&self, at: usize) -> Url {
        let host = at / OF_ONE_ADDRESS + 1;
        let text = format!("http://127.0.{}.{}:{}/{at}/", host / 250, host % 250 + 1, self.port);
        Url::parse(&text).unwrap()
    }

    fn description(&self, at: usize) -> Description {
        let identity = &self.identities[at];
        let subject = SUBJECTS[at % SUBJECTS.len()];
        Description {
            id: identity.id(),
            key: identity.key().to_owned(),
            kind: if at.is_multiple_of(2) { "broker" } else { "gatherer" }.to_owned(),
            software: "0.1.0".to_owned(),
            facts: Facts {
                name: format!("Library {at} of {subject}"),
                base_url: Some(self.url(at)),
                location: Some(format!("Town {}", at % 500)),
                gathers: vec![format!("https://site{at}.example/")],
                objects: at as u64,
                ..Facts::default()
            },
            time_ms: clock::now_ms(),
            sequence: self.given.fetch_add(1, Ordering::Relaxed) + 1,
            ..Description::default()
        }
    }
}

async fn describe(State(servers): State<Arc<Servers>>, Path(at): Path<usize>) -> Response {
    let body = serde_json::to_vec(&servers.description(at)).unwrap();
    let signature = servers.identities[at].sign(&body);
    ([(SIGNATURE, signature)], body).into_response()
}

async fn servers(count: usize) -> Arc<Servers> {
    let identity = |at: usize| {
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&at.to_le_bytes());
        Identity::of(&secret).unwrap()
    };
    let listener = net::server::bind(([0, 0, 0, 0], 0).into()).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let identities = (0..count).map(identity).collect();
    let servers = Arc::new(Servers { identities, port, given: AtomicU64::new(0) });
    let router = Router::new()
        .route("/{at}/.well-known/harvest", get(describe))
        .with_state(Arc::clone(&servers));
    tokio::spawn(async move {
        let limits = net::server::Limits::default();
        net::server::serve(listener, router, limits, Shutdown::new()).await.unwrap();
    });
    servers
}

/// Announces a server from an address of its own; returns the status.
async fn announce(client: &Client, registry: &Url, servers: &Servers, at: usize) -> StatusCode {
    let announcement = Announcement { id: servers.identities[at].id(), base_url: servers.url(at) };
    let from = format!("10.{}.{}.{}", at >> 16, (at >> 8) & 255, at & 255);
    let request = Request::post(
        registry.join("announce").unwrap(),
        serde_json::to_vec(&announcement).unwrap(),
    )
    .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    .header(HeaderName::from_static("x-forwarded-for"), HeaderValue::try_from(from).unwrap());
    let response = client.send(request).await.unwrap();
    let status = response.status;
    let _read = response.bytes(1 << 16).await.unwrap();
    status
}

/// The registry's process; it is ended when this is dropped.
struct Registry {
    child: Child,
    url: Url,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Registry {
    async fn start(data: &std::path::Path) -> Self {
        let child = Command::new(env::current_exe().unwrap()).env(CHILD, data).spawn().unwrap();
        let written = data.join("bench.address");
        let address = loop {
            match fs::read_to_string(&written) {
                Ok(text) if text.ends_with('/') => break text,
                _ => sleep(Duration::from_millis(50)).await,
            }
        };
        Self { child, url: Url::parse(&address).unwrap() }
    }

    /// Returns the CPU seconds of the process, user and system.
    fn cpu_secs(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Returns a line of the process's memory, in MB.
    fn memory_mb(&self, line: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix(line)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1_024.0 / 1e6
    }
}

/// Runs the registry until it is ended.
async fn run(data: PathBuf) {
    let text = format!(
        "name = \"bench\"\ndata = {data:?}\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         trusted_proxies = [\"127.0.0.1\"]\n[announcements]\nallow_private = true\n"
    );
    let server = Server::bind(Config::parse(&text).unwrap()).await.unwrap();
    fs::write(data.join("bench.address"), format!("http://{}/", server.local_addr())).unwrap();
    server.run(Shutdown::new()).await.unwrap();
}

/// Has all servers listed, as fast as strangers are.
async fn ramp_up(client: &Client, registry: &Registry, servers: &Servers) {
    let began = Instant::now();
    for at in 0..servers.identities.len() {
        while announce(client, &registry.url, servers, at).await != StatusCode::OK {
            sleep(Duration::from_millis(50)).await;
        }
    }
    let (secs, cpu) = (began.elapsed().as_secs_f64(), registry.cpu_secs());
    println!(
        "{} servers were listed in {secs:.0} s, with {cpu:.1} s of CPU",
        servers.identities.len()
    );
}

/// Watches the registry while all servers announce themselves again and again.
async fn watch(client: &Client, registry: &Registry, servers: &Arc<Servers>) {
    let count = servers.identities.len();
    let pause = EVERY / u32::try_from(count).unwrap();
    let (began, cpu) = (Instant::now(), registry.cpu_secs());
    let (mut next, mut announced, mut refused) = (began, 0, 0);
    while began.elapsed() < WATCHED {
        sleep_until(next).await;
        next += pause;
        let status = announce(client, &registry.url, servers, announced % count).await;
        refused += usize::from(status != StatusCode::OK);
        announced += 1;
    }
    let share = (registry.cpu_secs() - cpu) / began.elapsed().as_secs_f64() * 100.0;
    let (now, most) = (registry.memory_mb("VmRSS:"), registry.memory_mb("VmHWM:"));
    println!(
        "{announced} announcements in {:.0} s ({refused} refused): {share:.1} % of a core, {now:.0} MB resident, {most:.0} MB at most",
        began.elapsed().as_secs_f64()
    );
}

async fn find(client: &Client, registry: &Registry) {
    let mut times = Vec::new();
    for at in 0..FINDS {
        let subject = SUBJECTS[at % SUBJECTS.len()];
        let path = format!("api/search?q=type:Broker+{subject}+location:%22town+{at}%22");
        let began = Instant::now();
        let response = client.send(Request::get(registry.url.join(&path).unwrap())).await.unwrap();
        let answer = response.bytes(16 << 20).await.unwrap();
        times.push(began.elapsed());
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        assert!(answer["total"].is_number(), "{answer}");
    }
    times.sort();
    let ms = |share: usize| times[FINDS * share / 100].as_secs_f64() * 1_000.0;
    println!("a find: p50 {:.1} ms, p95 {:.1} ms", ms(50), ms(95));
}

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    if let Some(data) = env::var_os(CHILD) {
        return run(PathBuf::from(data)).await;
    }
    let count = env::var("HARVEST_BENCH_SERVERS").ok().and_then(|it| it.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    let servers = servers(count.unwrap_or(10_000)).await;
    let registry = Registry::start(dir.path()).await;
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    ramp_up(&client, &registry, &servers).await;
    watch(&client, &registry, &servers).await;
    find(&client, &registry).await;
}
