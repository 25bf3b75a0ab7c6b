//! Misses: the CPU of a request that the origin has to be asked for, and how much later its answer begins.

use std::cell::Cell;

use crate::hits::{Row, TURNS, median, print};
use crate::load::{Connection, now, origin_form, proxy_form};
use crate::servers::{Ours, Site, squid, traffic_server};

/// Requests whose first byte is waited for.
const FIRST_COUNT: usize = 2_000;

pub(crate) async fn measure() {
    let site = Site::start();
    let at = site.process().address;
    let (ours, stored) = (Ours::start("disk_bytes = \"0 B\""), Ours::start(""));
    let [squid, squid_stored] = [false, true].map(|has_disk| squid("256 MB", has_disk));
    let traffic_server = traffic_server();
    println!("misses: CPU a request, medians of {TURNS} turns, and beside Squid");
    let next = Cell::new(0);
    for (path, count) in [("/1k", 6_000), ("/64k", 2_000)] {
        for connections in [1, 32, 256] {
            let proxied = move |n: usize| proxy_form(at, &format!("{path}?{n}"));
            let mut rows = vec![
                Row::new("Squid, memory alone", (&squid).into(), proxied),
                Row::new("ours, memory alone", ours.process(), proxied),
                Row::new("Squid, disk as well", (&squid_stored).into(), proxied),
                Row::new("ours, disk as well", stored.process(), proxied),
                Row::new("Traffic Server, disk as well", (&traffic_server).into(), proxied),
            ];
            for _ in 0..TURNS {
                let first = next.replace(next.get() + count);
                for row in &mut rows {
                    row.turn(connections, (first, count)).await;
                }
            }
            println!("{path}, {connections} connections:");
            print(&rows);
        }
    }
}

/// Measures how much later than from its origin an answer begins that the cache has to fetch.
pub(crate) async fn first_byte() {
    let site = Site::start();
    let at = site.process().address;
    let (ours, squid) = (Ours::start(""), squid("256 MB", false));
    let mut direct = Connection::open(at, 0).await;
    let mut proxies =
        [Connection::open(ours.address, 0).await, Connection::open(squid.address(), 0).await];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for n in 0..FIRST_COUNT {
        let path = format!("/1k?{n}");
        let began = now();
        let came = direct.ask(&origin_form("site.test", &path)).await;
        times[0].push(came.duration_since(began).as_secs_f64() * 1e3);
        for (proxy, times) in proxies.iter_mut().zip(&mut times[1..]) {
            let began = now();
            let came = proxy.ask(&proxy_form(at, &path)).await;
            times.push(came.duration_since(began).as_secs_f64() * 1e3);
        }
    }
    let [direct, ours, squid] = times.map(|it| median(&it));
    println!(
        "first byte of a miss of 1 KiB, one connection: {direct:.3} ms from its origin, {:.3} ms later \
         from ours, {:.3} ms later from Squid",
        ours - direct,
        squid - direct
    );
}
