//! Room: what an object takes in memory, what the index takes of one on disk, and how long a start takes with many.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cache::content::Content;
use cache::memory::Object;
use cache::policy::freshness::{Rules, Times};
use cache::policy::storing::{Ask, keep};
use cache::store::Store;
use disk::Disk;
use http::{HeaderMap, Method, StatusCode, header};

use crate::hits::Row;
use crate::load::{self, Connection, origin_form, proxy_form};
use crate::servers::{Ours, Site, squid};

/// First argument of the process that fills a store.
pub(crate) const ROLE: &str = "fill";

/// Objects in memory.
const MEMORY_COUNT: usize = 200_000;
/// Objects before them, after which a server has what it keeps whatever it stores.
const WARM_COUNT: usize = 5_000;
/// Objects on disk.
const DISK_COUNT: usize = 1_000_000;
/// Objects that wait for the disk.
const WAITING_MAX: u64 = 10_000;
const BODY_BYTES: usize = 1 << 10;
/// The room of the store that is filled.
const ROOM: u64 = 20 << 30;
/// A header that is not stored.
const NOT_STORED: &str = "Connection: keep-alive\r\n";

/// Measures by how much servers grow with objects of 1 KiB.
pub(crate) async fn memory() {
    let site = Site::start();
    let at = site.process().address;
    let (ours, squid) =
        (Ours::start("memory_bytes = \"2 GiB\"\ndisk_bytes = \"0 B\""), squid("2 GB", false));
    let mut direct = Connection::open(at, 0).await;
    direct.ask(&origin_form("site.test", "/1k")).await;
    let head = direct.head_bytes - NOT_STORED.len();
    println!(
        "memory: {MEMORY_COUNT} objects of {BODY_BYTES} bytes with heads of {head} bytes, bytes that each \
         takes, and beside body and head"
    );
    let proxied = move |n: usize| proxy_form(at, &format!("/1k?{n}"));
    for mut row in
        [Row::new("ours", ours.process(), proxied), Row::new("Squid", (&squid).into(), proxied)]
    {
        row.turn(32, (0, WARM_COUNT)).await;
        let before = row.process.resident();
        row.turn(32, (WARM_COUNT, MEMORY_COUNT)).await;
        let each = (row.process.resident() - before) as f64 / MEMORY_COUNT as f64;
        println!("  {:28} {each:7.0} {:7.0}", row.name, each - (BODY_BYTES + head) as f64);
    }
}

/// Runs as the process that fills the store in a folder.
pub(crate) fn fill(folder: &str, count: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Disk::System, Path::new(folder), ROOM).unwrap();
        let lines = [
            (header::CONTENT_TYPE, "text/plain"),
            (header::CACHE_CONTROL, "max-age=86400"),
            (header::ETAG, "\"668f2a10-400\""),
            (header::LAST_MODIFIED, "Fri, 21 Aug 2026 06:00:00 GMT"),
        ];
        let headers: HeaderMap =
            lines.into_iter().map(|(name, text)| (name, text.parse().unwrap())).collect();
        let none = HeaderMap::new();
        let ask = Ask { method: &Method::GET, headers: &none };
        let body = Content::Memory(Bytes::from(vec![b'x'; BODY_BYTES]));
        for n in 0..count.parse().unwrap() {
            let came_ms = net::clock::now_ms();
            let times = Times { sent_ms: came_ms, came_ms };
            let head = keep(ask, StatusCode::OK, &headers, times, &Rules::default()).unwrap();
            let object = Arc::new(Object::new(&head, body.clone()));
            store.put(&url(n), (&object, &head), |_| ());
            while n % 1_000 == 0 && store.figures().0 + WAITING_MAX < n {
                tokio::task::yield_now().await;
            }
        }
        store.close().await;
        assert_eq!(store.figures().0.to_string(), count);
    });
}

fn url(n: u64) -> String {
    format!("http://www.example.org/objects/{n}")
}

/// Measures starts with many objects on disk, and what the index takes.
pub(crate) async fn disk() {
    let data = tempfile::tempdir().unwrap();
    let settings = format!("disk_bytes = \"{ROOM} B\"");
    let empty = tempfile::tempdir().unwrap();
    let none = Ours::start_in(empty.path(), "127.0.0.1", &settings);
    let before = none.process().resident();
    let folder = data.path().join("objects");
    let filled = std::process::Command::new(std::env::current_exe().unwrap())
        .args([ROLE, folder.to_str().unwrap(), &DISK_COUNT.to_string()])
        .status();
    assert!(filled.unwrap().success());
    println!("disk: {DISK_COUNT} objects of {BODY_BYTES} bytes");
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = load::now();
        let ours = Ours::start_in(data.path(), "127.0.0.1", &settings);
        times.push(load::now().duration_since(began).as_secs_f64());
        let each = (ours.process().resident() - before) as f64 / DISK_COUNT as f64;
        println!("  a start: {:.2} s, {each:.0} bytes of memory an object", times.last().unwrap());
        let mut connection = Connection::open(ours.address, 0).await;
        let last = url(DISK_COUNT as u64 - 1);
        let asked = format!(
            "GET {last} HTTP/1.1\r\nHost: www.example.org\r\nCache-Control: only-if-cached\r\n\r\n"
        );
        connection.ask(&asked).await;
        ours.stop();
    }
    println!("  median: {:.2} s", crate::hits::median(&times));
}
