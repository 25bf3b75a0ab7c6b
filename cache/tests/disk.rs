//! Tests of disks that are full, fail or vanish: all requests are answered, what cannot be kept flows to
//! those who ask, and no byte is wrong.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "other tests use the rest of what they share")]

mod common;

use std::fs::{self, OpenOptions};
use std::future::ready;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use bytes::Bytes;
use cache::{Config, Server, Status};
use common::{PATIENCE, Site, answer, until};
use http::{Request, Response};
use net::body::{self, Body};
use net::client::{self, Client, Proxy};
use net::clock;
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tokio::sync::Semaphore;
use tower::service_fn;
use url::Url;

/// Variables with what a child process is to run: its data folder, and the file that it tells its addresses.
const FOLDER: &str = "HARVEST_CACHE_FOLDER";
const TOLD: &str = "HARVEST_CACHE_TOLD";

/// Length of a long body, in bytes.
const LONG: usize = 24 << 20;

/// Length of a short body, in bytes.
const SHORT: usize = 10_000;

/// Length of a block of a body, which names itself, in bytes.
const BLOCK: usize = 4 << 10;

/// What is put before a member's command: a folder of 8 MiB, or files of 512 KiB at most, beyond which
/// writing fails (EFBIG) as it does on a disk that fails.
const FULL: &str =
    "mount -t tmpfs -o size=8m none \"$HARVEST_CACHE_FOLDER\" && exec \"$0\" a_member --exact";
const FAILING: &str = "trap '' XFSZ && ulimit -f 1024 && exec \"$0\" a_member --exact";

/// Runs a member in this process; does nothing in a usual run.
#[test]
fn a_member() {
    let (Ok(folder), Ok(told)) = (std::env::var(FOLDER), std::env::var(TOLD)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut config = Config::new(any, any, folder);
        (config.memory_bytes, config.disk_bytes) = (1 << 20, 1 << 30);
        config.allow_private = true;
        let server = Server::bind(config).await.unwrap();
        let text = format!("{} {}", server.local_addr(), server.admin_addr());
        fs::write(format!("{told}.new"), text).unwrap();
        fs::rename(format!("{told}.new"), told).unwrap();
        server.run(Shutdown::new()).await.unwrap();
    });
}

/// A member in a process of its own; it ends with the value.
struct Member {
    child: Child,
    proxy: Url,
    admin: Url,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Member {
    async fn start(before: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (data, told) = (folder.path().join("data"), folder.path().join("told"));
        fs::create_dir(&data).unwrap();
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", before]).arg(std::env::current_exe().unwrap());
        command.env(FOLDER, data).env(TOLD, &told);
        let child = command.spawn().expect("it needs unshare: apt-get install util-linux");
        until("a member", async || told.exists()).await;
        let text = fs::read_to_string(&told).unwrap();
        let url = |at: &str| Url::parse(&format!("http://{at}/")).unwrap();
        let (proxy, admin) = text.split_once(' ').map(|(a, b)| (url(a), url(b))).unwrap();
        let client = Client::new(client::Settings {
            allow_private: true,
            response_bytes_max: 1 << 30,
            ..client::Settings::default()
        });
        Self { child, proxy, admin, client, _folder: folder }
    }

    /// Fetches an object through the member; returns its body, and whether it was stored there.
    async fn get(&self, url: &Url) -> (Bytes, bool) {
        let proxy = Some(Proxy::new(self.proxy.clone(), None).unwrap());
        let request = client::Request::get(url.clone()).proxy(proxy);
        let came = self.client.send(request).await.unwrap();
        assert_eq!(came.status, 200, "{url}");
        let is_hit = came.header("cache-status").unwrap().contains("; hit");
        (came.bytes(1 << 30).await.unwrap(), is_hit)
    }

    async fn status(&self) -> Status {
        let url = self.admin.join("status").unwrap();
        let came = self.client.send(client::Request::get(url)).await.unwrap();
        let bytes = came.bytes(1 << 20).await.unwrap();
        axum::Json::from_bytes(&bytes).unwrap().0
    }

    /// Returns the most memory that was resident, in bytes.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the body at a path: no other path has a block that is like one of its, nor has it two.
fn content(path: &str) -> Bytes {
    let length = if path.starts_with("/long") { LONG } else { SHORT };
    let start = xxhash_rust::xxh3::xxh3_64(path.as_bytes());
    let filling = vec![start.to_be_bytes()[0]; BLOCK - 8];
    let mut bytes = Vec::with_capacity(length + BLOCK);
    while bytes.len() < length {
        bytes.extend_from_slice(&start.wrapping_add(bytes.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&filling);
    }
    bytes.truncate(length);
    bytes.into()
}

fn page(request: &Request<Body>) -> Response<Body> {
    let path = request.uri().path();
    let control = if path.contains("private") { "private" } else { "max-age=600" };
    let mut rest = content(path);
    let length = rest.len() as u64;
    let read = move || {
        let piece = rest.split_to(rest.len().min(100_000));
        Ok((!piece.is_empty()).then_some(piece))
    };
    answer(200, &[("cache-control", control)], body::pieces(read, length))
}

async fn origin(stop: &Shutdown) -> Url {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let service = service_fn(|request: Request<Body>| {
        ready(Ok::<_, std::convert::Infallible>(page(&request)))
    });
    tokio::spawn(serve(listener, service, Limits::default(), stop.clone()));
    url
}

/// Checks that a member whose disk has no room answers all requests.
async fn check(member: &Member, origin: &Url) {
    let at = |path: &str| origin.join(path).unwrap();
    // Three at once, of which two ask for the same.
    for path in ["/long", "/long-private", "/long"] {
        let urls = [at(path), at(path), at("/long-too")];
        let (one, other, third) =
            tokio::join!(member.get(&urls[0]), member.get(&urls[1]), member.get(&urls[2]));
        assert!(one.0 == content(path) && other.0 == content(path), "{path}");
        assert!(third.0 == content("/long-too"));
        assert!(!one.1 && !other.1 && !third.1, "what was not kept is not taken from the store");
    }
    for n in 0..500 {
        let path = format!("/{n}");
        assert!(member.get(&at(&path)).await.0 == content(&path), "{path}");
    }
    assert!(member.get(&at("/499")).await.1, "what is small is in memory");
    // A debug build, its buffers, and what waits for the disk.
    assert!(member.peak() < 300 << 20, "{} bytes", member.peak());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_disk_cannot_keep_flows_to_those_who_ask() {
    let stop = Shutdown::new();
    let (member, origin) = (Member::start(FULL).await, origin(&stop).await);
    check(&member, &origin).await;
    stop.start();
    let status = member.status().await;
    assert!(status.disk_bytes < 8 << 20, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failing_disk_cannot_keep_flows_to_those_who_ask() {
    let stop = Shutdown::new();
    let (member, origin) = (Member::start(FAILING).await, origin(&stop).await);
    let mut fetched = 0;
    while member.status().await.disk_problem.is_none() {
        let path = format!("/first-{fetched}");
        assert!(member.get(&origin.join(&path).unwrap()).await.0 == content(&path));
        fetched += 1;
        assert!(fetched < 10_000, "it never says that the disk fails");
    }
    check(&member, &origin).await;
    stop.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_folder_of_bodies_on_their_way_vanishes_they_flow_on() {
    let site = Site::new(|request: Request<Body>, _| async move { page(&request) }).await;
    fs::remove_dir_all(site.data().join("transfers")).unwrap();
    for _ in 0..2 {
        let asked = site.seen().len();
        let mut slow = site.send("/long", &[]).await;
        let first = slow.chunk().await.unwrap().unwrap();
        let began = clock::monotonic();
        let came = site.send("/long", &[]).await.bytes(1 << 30).await.unwrap();
        assert!(came == content("/long"));
        // The slow one may hold it up for 5 s.
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        // What it has, it has of the same body; the rest it gets or is cut off.
        let mut seen = first.to_vec();
        while let Ok(Some(piece)) = slow.chunk().await {
            seen.extend_from_slice(&piece);
        }
        assert!(content("/long").starts_with(&seen));
        assert!(asked < site.seen().len(), "it was stored");
    }
    for how in ["; stored", "; hit"] {
        let came = site.send("/small", &[]).await;
        assert!(came.header("cache-status").unwrap().contains(how));
        assert!(came.bytes(1 << 30).await.unwrap() == content("/small"));
    }
}

/// Cuts off all files of stored objects, as a disk does that cannot be read any more.
fn lose(objects: &Path) {
    for it in fs::read_dir(objects).unwrap() {
        let file = OpenOptions::new().write(true).open(it.unwrap().path()).unwrap();
        file.set_len(0).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_any_more_is_fetched() {
    let site = Site::with(
        |request: Request<Body>, _| async move { page(&request) },
        |config| config.memory_bytes = 1 << 18,
    );
    let site = site.await;
    let get = async |path: &str| site.send(path, &[]).await.bytes(1 << 30).await;
    for n in 0..300 {
        assert!(get(&format!("/{n}")).await.unwrap() == content(&format!("/{n}")));
    }
    assert!(get("/long").await.unwrap() == content("/long"));
    until("all is on disk", async || site.handle.status().disk_objects == 301).await;
    let before = site.seen().len();
    lose(&site.data().join("objects"));
    for n in 0..300 {
        assert!(get(&format!("/{n}")).await.unwrap() == content(&format!("/{n}")));
    }
    assert!(before + 200 < site.seen().len(), "those that were not in memory were fetched");
    // The head of a long body is out when the disk fails; who asks again gets it.
    let first = get("/long").await;
    assert!(first.is_err() || first.unwrap() == content("/long"));
    assert!(get("/long").await.unwrap() == content("/long"), "it is cut off for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_objects_do_not_flush_small_ones_that_are_used() {
    const LARGE: usize = 2 << 20;
    let site = Site::with(
        |request: Request<Body>, _| async move {
            if !request.uri().path().starts_with("/large") {
                return page(&request);
            }
            answer(200, &[("cache-control", "max-age=600")], body::full(vec![b'x'; LARGE]))
        },
        |config| (config.memory_bytes, config.disk_bytes) = (1 << 18, 64 << 20),
    );
    let site = site.await;
    let get = async |path: &str| {
        let came = site.send(path, &[]).await;
        let is_hit = came.header("cache-status").unwrap().contains("; hit");
        (came.bytes(1 << 30).await.unwrap(), is_hit)
    };
    for _ in 0..2 {
        for n in 0..99 {
            get(&format!("/{n}")).await;
        }
        until("all are on disk", async || 99 <= site.handle.status().disk_objects).await;
    }
    assert_eq!(site.seen().len(), 99);
    // Three times as much as has room; each is more than memory has.
    for n in 0..96 {
        assert_eq!(get(&format!("/large-{n}")).await.0.len(), LARGE);
    }
    let mut kept = 0;
    for n in 0..99 {
        let (body, is_hit) = get(&format!("/{n}")).await;
        assert!(body == content(&format!("/{n}")));
        kept += usize::from(is_hit);
    }
    assert_eq!(kept, 99);
    until("large ones are stored, too", async || 99 < site.handle.status().disk_objects).await;
}

/// Returns the bytes of the files without a name in a folder that this process has open.
fn open_bytes(folder: &Path) -> u64 {
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|it| Some(it.ok()?.path()));
    let is_there =
        |at: &Path| at.starts_with(folder) && at.to_string_lossy().ends_with(" (deleted)");
    let there = open.filter(|it| fs::read_link(it).is_ok_and(|at| is_there(&at)));
    // It may have been closed meanwhile.
    there.filter_map(|it| fs::metadata(it).ok()).map(|it| it.len()).sum()
}

/// Returns the bytes of the files in a folder.
fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files.filter_map(|it| it.unwrap().metadata().ok()).map(|it| it.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_unknown_length_and_objects_have_the_disks_room_together() {
    const ROOM: u64 = 40 << 20;
    const PIECE: usize = 100_000;
    const PIECES: usize = 39;
    const MANY: usize = 20;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let site = Site::with(
        move |request: Request<Body>, _| {
            let gate = Arc::clone(&gate);
            // The last piece of those that are slow comes when the gate is opened.
            let is_slow = request.uri().path().starts_with("/slow");
            let next = move |at: usize| {
                let gate = Arc::clone(&gate);
                async move {
                    if is_slow && at + 1 == PIECES {
                        gate.acquire().await.unwrap().forget();
                    }
                    let piece = (at < PIECES).then(|| Bytes::from(vec![b'x'; PIECE]));
                    (at + 1, Ok::<_, std::io::Error>(piece))
                }
            };
            let lines = [("cache-control", "max-age=600")];
            ready(answer(200, &lines, body::unfold(0, next)))
        },
        |it| it.disk_bytes = ROOM,
    );
    let site = site.await;
    let (objects, coming) = (site.data().join("objects"), site.data().join("transfers"));
    // The disk is full of objects.
    for n in 0..MANY {
        let came = site.send(&format!("/{n}"), &[]).await.bytes(1 << 30).await.unwrap();
        assert_eq!(came.len(), PIECES * PIECE);
        until("it is written", async || open_bytes(&coming) == 0).await;
    }
    let is_full = async || open_bytes(&coming) == 0 && ROOM / 2 < bytes_in(&objects);
    until("the disk is full", is_full).await;
    let mut slow = Vec::new();
    for n in 0..MANY {
        let (mut answer, mut came) = (site.send(&format!("/slow-{n}"), &[]).await, 0);
        while came < (PIECES - 1) * PIECE {
            came += answer.chunk().await.unwrap().unwrap().len();
        }
        slow.push((answer, came));
        let bytes = open_bytes(&coming);
        assert!(bytes <= ROOM / 5, "{bytes} bytes on their way");
    }
    assert!(0 < open_bytes(&coming));
    // Lists of segments are small.
    let fits = async || bytes_in(&objects) + open_bytes(&coming) <= ROOM + ROOM / 50;
    until("objects make room", fits).await;
    opened.add_permits(MANY);
    for (mut answer, mut came) in slow {
        while let Some(piece) = answer.chunk().await.unwrap() {
            came += piece.len();
        }
        assert_eq!(came, PIECES * PIECE, "who asks gets it whole");
    }
    until("the room is given back", async || open_bytes(&coming) == 0).await;
    // What comes then has room again, and is stored; what had none is not.
    opened.add_permits(1);
    let is_hit = async |path: &str| {
        let came = site.send(path, &[]).await;
        came.header("cache-status").unwrap().contains("; hit")
    };
    let came = site.send("/slow-later", &[]).await.bytes(1 << 30).await.unwrap();
    assert_eq!(came.len(), PIECES * PIECE);
    until("it is stored", async || is_hit("/slow-later").await).await;
    assert!(!is_hit(&format!("/slow-{}", MANY - 1)).await, "it had none");
}
