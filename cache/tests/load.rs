//! Mixed load: 256 connections on two neighbors, of which one fills its disk, while both are killed and
//! started again, and an origin that fails in turn. No byte is wrong, and nothing leaks.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cache::neighbors::Neighbor;
use cache::resolution::Kind;
use cache::{Config, Server};
use http::{Response, header};
use net::body::{self, Body};
use net::client::{Client, Proxy, Request, Response as Came, Settings, Timeouts};
use net::clock;
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tokio::task::JoinSet;
use tower::service_fn;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// Variable with what a child process is to run: its number, and its folder.
const MEMBER: &str = "HARVEST_CACHE_MEMBER";
const FOLDER: &str = "HARVEST_CACHE_FOLDER";

/// Number of connections to each member.
const CONNECTIONS: [usize; 2] = [208, 48];

/// Number of objects.
const OBJECTS: u64 = 400;

/// Room of the small disk, in MiB, and that of memory, in bytes.
const SMALL_DISK_MIB: u64 = 24;
const MEMORY_BYTES: u64 = 32 << 20;

/// Maximum resident memory of a member, in bytes: a debug build, 256 connections with their buffers, and
/// the blocks that are read for them, beside the objects.
const RESIDENT_BYTES_MAX: u64 = 400 << 20;

/// Address of a member, where it listens for clients and for neighbors.
fn address(member: usize) -> SocketAddr {
    // Nobody else is there: the network of each test process is the machine's, but hardly anybody uses these.
    let last = if member == 0 { 41 } else { 42 };
    SocketAddr::from((Ipv4Addr::new(127, 0, 7, last), 3_128))
}

/// Runs a member in this process; does nothing in a usual run.
#[test]
fn a_member() {
    let Ok(member) = std::env::var(MEMBER) else { return };
    let member: usize = member.parse().unwrap();
    let folder = std::env::var(FOLDER).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let at = address(member);
        let mut config = Config::new(at, SocketAddr::from(([127, 0, 0, 1], 0)), folder);
        config.name = format!("member-{member}");
        (config.memory_bytes, config.disk_bytes) = (MEMORY_BYTES, 1 << 30);
        (config.allow_private, config.icp_listen) = (true, Some(at));
        let other = address(1 - member);
        config.neighbors.push(Neighbor {
            host: other.ip().to_string(),
            http_port: other.port(),
            icp_port: other.port(),
            kind: Kind::Sibling,
            domains: Vec::new(),
        });
        Server::bind(config).await.unwrap().run(Shutdown::new()).await.unwrap();
    });
}

/// A member in a process of its own; it ends with the value.
struct Member(Child);

impl Member {
    /// Starts the member; the second has its folder on a small disk, which ends with it.
    fn start(member: usize, folder: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let mount = format!(
            "mount -t tmpfs -o size={SMALL_DISK_MIB}m none \"${FOLDER}\" && exec \"$0\" a_member --exact"
        );
        let mut command = if member == 0 {
            let mut command = Command::new(&program);
            command.args(["a_member", "--exact"]);
            command
        } else {
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", &mount]).arg(&program);
            command
        };
        command.env(MEMBER, member.to_string()).env(FOLDER, folder);
        let mut this = Self(command.spawn().expect("it needs unshare: apt-get install util-linux"));
        let end = clock::monotonic() + Duration::from_secs(60);
        while TcpStream::connect(address(member)).is_err() {
            assert!(
                clock::monotonic() < end && this.0.try_wait().unwrap().is_none(),
                "member {member}"
            );
            std::thread::yield_now();
        }
        this
    }

    /// Returns the number of descriptors, and the most memory that was resident, in bytes.
    fn use_of(&self) -> (usize, u64) {
        let folder = format!("/proc/{}", self.0.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
        let peak = line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10;
        (std::fs::read_dir(format!("{folder}/fd")).unwrap().count(), peak)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the content of an object in a version: nothing else is like it.
fn content(object: u64, version: u64) -> Bytes {
    let length = match object % 20 {
        0 if object.is_multiple_of(100) => 3 << 20,
        1 => 300 << 10,
        2 => 70 << 10,
        5 => 0,
        other => usize::try_from(other * other * 40).unwrap(),
    };
    // Words of a counter that starts at a place of its own.
    let start = xxh3_64(format!("{object} {version}").as_bytes());
    let words = (0..length.div_ceil(8)).map(|it| start.wrapping_add(it as u64).to_be_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(length);
    bytes.into()
}

/// Answers as the object's number says; `count` is the number of requests before.
fn answer(path: &str, count: u64) -> Response<Body> {
    let object: u64 = path.trim_start_matches('/').parse().unwrap();
    let version = count % 1_000;
    let tag = format!("\"{version}\"");
    let control = match object % 7 {
        0 => "no-store",
        1 => "max-age=1, stale-while-revalidate=5",
        2 => "private, max-age=60",
        3 => "max-age=1, stale-if-error=9",
        _ => "max-age=60",
    };
    if object % 11 == 3 && count.is_multiple_of(3) {
        return Response::builder().status(503).body(body::empty()).unwrap();
    }
    let bytes = content(object, version);
    let builder = Response::builder()
        .header(header::CACHE_CONTROL, control)
        .header(header::ETAG, tag)
        .header(header::CONTENT_LENGTH, bytes.len());
    let is_broken = object % 13 == 2 && count.is_multiple_of(4) && !bytes.is_empty();
    let (middle, length) = (bytes.len() / 2, bytes.len());
    let mut pieces = vec![Ok(Some(bytes.slice(..middle)))];
    pieces.push(match is_broken {
        true => Err(std::io::Error::other("it breaks off")),
        false => Ok(Some(bytes.slice(middle..))),
    });
    let mut pieces = pieces.into_iter();
    let next = move || pieces.next().unwrap_or(Ok(None));
    builder.body(body::pieces(next, u64::try_from(length).unwrap())).unwrap()
}

async fn origin(stop: &Shutdown) -> (Url, Arc<AtomicU64>) {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let service = service_fn(move |request: http::Request<Body>| {
        let before = counted.fetch_add(1, Ordering::Relaxed);
        let response = answer(request.uri().path(), before);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let limits =
        Limits { peer_connections_max: 4_096, connections_max: 4_096, ..Limits::default() };
    tokio::spawn(serve(listener, service, limits, stop.clone()));
    (url, count)
}

/// What clients have seen.
#[derive(Debug, Default)]
struct Tally {
    whole: AtomicU64,
    parts: AtomicU64,
    cut: AtomicU64,
    refused: AtomicU64,
}

/// Checks an answer that came whole: each of its bytes is that of its object and version.
async fn check(object: u64, came: Came, wanted: Option<(usize, usize)>, tally: &Tally) {
    let status = came.status.as_u16();
    let tag = came.headers.get(header::ETAG).and_then(|it| it.to_str().ok()).map(str::to_owned);
    let Ok(bytes) = came.bytes(8 << 20).await else {
        tally.cut.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let version = || tag.as_deref().unwrap().trim_matches('"').parse().unwrap();
    match (status, wanted) {
        (200, _) => {
            assert!(bytes == content(object, version()), "object {object} {tag:?}");
            tally.whole.fetch_add(1, Ordering::Relaxed);
        }
        (206, Some((start, end))) => {
            let all = content(object, version());
            let end = end.min(all.len());
            assert!(bytes == all.slice(start..end), "object {object} {tag:?} {start}-{end}");
            tally.parts.fetch_add(1, Ordering::Relaxed);
        }
        (416 | 502 | 503 | 504, _) => drop(tally.refused.fetch_add(1, Ordering::Relaxed)),
        _ => panic!("object {object}: {status}"),
    }
}

/// Asks for one object after the other until `end`.
async fn ask(seed: u64, member: usize, origin: Url, end: std::time::Instant, tally: Arc<Tally>) {
    let client = Client::new(Settings {
        allow_private: true,
        timeouts: Timeouts { connect: Duration::from_secs(5), ..Timeouts::default() },
        ..Settings::default()
    });
    let proxy = Url::parse(&format!("http://{}/", address(member))).unwrap();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while clock::monotonic() < end {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Some are asked for far more often than others.
        let object = (random % OBJECTS).min((random >> 32) % OBJECTS);
        let start = usize::try_from(random >> 40).unwrap() % 200;
        let wanted = random.is_multiple_of(8).then_some((start, start + 5_000));
        let mut request = Request::get(origin.join(&object.to_string()).unwrap())
            .proxy(Some(Proxy::new(proxy.clone(), None).unwrap()));
        if let Some((start, end)) = wanted {
            let range = format!("bytes={start}-{}", end - 1).parse().unwrap();
            request.headers.insert(header::RANGE, range);
        }
        match client.send(request).await {
            // Some leave in the middle.
            Ok(mut came) if random.is_multiple_of(31) => drop(came.chunk().await),
            Ok(came) => check(object, came, wanted, &tally).await,
            Err(_) => {
                tally.refused.fetch_add(1, Ordering::Relaxed);
                // Its member may be starting.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_is_wrong_whoever_dies() {
    let seconds: u64 =
        std::env::var("HARVEST_SOAK_SECONDS").map_or(5, |text| text.parse().unwrap());
    let stop = Shutdown::new();
    let (origin, asked) = origin(&stop).await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |member: usize| Member::start(member, folders[member].path());
    let mut members = [start(0), start(1)];
    let at_rest = members[0].use_of().0;
    let (tally, began) = (Arc::new(Tally::default()), clock::monotonic());
    let after = |part: u64| began + Duration::from_millis(seconds * 1_000 * part / 4);
    let mut clients = JoinSet::new();
    for (member, count) in CONNECTIONS.into_iter().enumerate() {
        for n in 0..count {
            let seed = u64::try_from(member * 1_000 + n + 1).unwrap();
            clients.spawn(ask(seed, member, origin.clone(), after(4), Arc::clone(&tally)));
        }
    }
    for (part, member) in [(1, 0), (2, 1), (3, 0)] {
        tokio::time::sleep_until(after(part).into()).await;
        let folder = folders[member].path();
        members[member].0.kill().unwrap();
        members[member].0.wait().unwrap();
        members[member] = tokio::task::block_in_place(|| Member::start(member, folder));
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let asked = asked.load(Ordering::Relaxed);
    println!("{seconds} s: {tally:?}, {asked} requests at the origin");
    for (member, it) in members.iter().enumerate() {
        println!("member {member}: {:?} descriptors and bytes", it.use_of());
    }
    let answered = tally.whole.load(Ordering::Relaxed) + tally.parts.load(Ordering::Relaxed);
    assert!(100 < answered, "{tally:?}");
    for it in &members {
        assert!(it.use_of().1 < RESIDENT_BYTES_MAX, "{:?}", it.use_of());
    }
    // Connections are closed as their clients leave; those to the origin are kept for a while.
    let few = at_rest + 100;
    let end = clock::monotonic() + Duration::from_secs(60);
    while few < members[0].use_of().0 {
        assert!(
            clock::monotonic() < end,
            "{:?} descriptors, {at_rest} at the start",
            members[0].use_of()
        );
        tokio::task::yield_now().await;
    }
    stop.start();
}
